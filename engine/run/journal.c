#include "engine/run/journal.h"

#include "engine/documents/json.h"
#include "engine/foundation/append-file.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    LINE_BYTES_MOST = 1 << 20,
    TAIL_BYTES = sizeof ",\"crc32c\":\"00000000\"}" - 1,
};

struct journal {
    struct append_file *file;
    uint64_t sequence; /* of the last entry */
    size_t line_start; /* in file->pending, of the entry being written */
    int broken;        /* negative errno of an entry that could not be kept */
};

int journal_create(const char *path, struct journal **ret, struct failure *failure) {
    struct journal *journal = calloc(1, sizeof *journal);
    if (!journal)
        return failure_memory(failure);
    int r = append_file_create(path, &journal->file, failure);
    if (r < 0) {
        journal_close(journal);
        return r;
    }
    *ret = journal;
    return 0;
}

void journal_close(struct journal *journal) {
    if (!journal)
        return;
    append_file_close(journal->file);
    free(journal);
}

static void keep(struct journal *journal, int result) {
    if (result < 0 && journal->broken == 0)
        journal->broken = result;
}

static void append_key(struct journal *journal, const char *key) {
    keep(journal, text_append_character(&journal->file->pending, ','));
    keep(journal, json_append_string(&journal->file->pending, key, strlen(key)));
    keep(journal, text_append_character(&journal->file->pending, ':'));
}

void journal_begin(struct journal *journal, const char *event) {
    journal->line_start = journal->file->pending.length;
    keep(journal, text_printf(&journal->file->pending,
                              "{\"seq\":%" PRIu64 ",\"t\":%" PRId64 ",\"m\":%" PRId64 ",\"event\":",
                              ++journal->sequence, clock_wall_ns(), clock_monotonic_ns()));
    keep(journal, json_append_string(&journal->file->pending, event, strlen(event)));
}

void journal_integer(struct journal *journal, const char *key, int64_t value) {
    char digits[NUMBER_TEXT_SIZE];
    append_key(journal, key);
    keep(journal, text_append(&journal->file->pending, digits, number_format_int64(value, digits)));
}

void journal_string(struct journal *journal, const char *key, const char *value) {
    append_key(journal, key);
    if (value)
        keep(journal, json_append_string(&journal->file->pending, value, strlen(value)));
    else
        keep(journal, text_append_string(&journal->file->pending, "null"));
}

void journal_end(struct journal *journal) {
    const char *line = journal->file->pending.bytes + journal->line_start;
    uint32_t crc = checksum_crc32c(line, journal->file->pending.length - journal->line_start);
    keep(journal, text_printf(&journal->file->pending, ",\"crc32c\":\"%08" PRIx32 "\"}\n", crc));
}

void journal_note(struct journal *journal, const char *event, const char *key, const char *value) {
    journal_begin(journal, event);
    if (key)
        journal_string(journal, key, value);
    journal_end(journal);
}

int journal_commit(struct journal *journal, struct failure *failure) {
    if (journal->broken < 0)
        return failure_set(failure, journal->broken, "cannot keep the journal '%s' in memory: %s",
                           journal->file->path, strerror(-journal->broken));
    return append_file_commit(journal->file, failure);
}

uint64_t journal_committed_bytes(const struct journal *journal) {
    return journal->file->committed;
}

bool journal_line_is_whole(const char *line, size_t length) {
    if (length <= TAIL_BYTES)
        return false;
    size_t body = length - TAIL_BYTES;
    char expected[TAIL_BYTES + 1];
    snprintf(expected, sizeof expected, ",\"crc32c\":\"%08" PRIx32 "\"}", checksum_crc32c(line, body));
    return memcmp(line + body, expected, TAIL_BYTES) == 0;
}

/* The number after {"seq": at the start of a line, or 0. */
static uint64_t line_sequence(const char *line, size_t length) {
    static const char opening[] = "{\"seq\":";
    size_t at = sizeof opening - 1, end = at;
    if (length < at || memcmp(line, opening, at) != 0)
        return 0;
    while (end < length && line[end] >= '0' && line[end] <= '9')
        end++;
    uint64_t sequence = 0;
    return number_parse_uint64(line + at, end - at, &sequence) ? sequence : 0;
}

int journal_check(const char *path, uint64_t *ret_bytes, uint64_t *ret_entries, struct failure *failure) {
    cleanup_fclose FILE *stream = fopen(path, "re");
    if (!stream)
        return failure_set(failure, -errno, "cannot open '%s': %s", path, strerror(errno));
    cleanup_free char *line = NULL;
    size_t capacity = 0;
    uint64_t bytes = 0, entries = 0, last = 0;
    ssize_t length;
    while ((length = getline(&line, &capacity, stream)) > 0) {
        bool ended = line[length - 1] == '\n';
        size_t content = (size_t)length - ended;
        uint64_t sequence = line_sequence(line, content);
        if (!ended || content > LINE_BYTES_MOST || !journal_line_is_whole(line, content) ||
            sequence != last + 1)
            break;
        last = sequence;
        bytes += (uint64_t)length;
        entries++;
    }
    if (ferror(stream))
        return failure_set(failure, -EIO, "cannot read '%s'", path);
    *ret_bytes = bytes;
    *ret_entries = entries;
    return 0;
}
