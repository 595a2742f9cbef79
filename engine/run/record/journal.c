#include "engine/run/record/journal.h"

#include "engine/documents/json.h"
#include "engine/foundation/append-file.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

struct journal {
    struct append_file *file;
    uint64_t sequence; /* of the last entry */
    size_t line_start; /* in file->pending, of the entry being written */
    int broken;        /* negative errno of an entry that could not be kept */
};

static struct journal *new_journal(struct append_file *file, uint64_t entries) {
    struct journal *journal = xcalloc(1, sizeof *journal);
    journal->file = file;
    journal->sequence = entries;
    return journal;
}

int journal_create(const char *path, struct journal **ret, struct failure *failure) {
    struct append_file *file;
    int r = append_file_create(path, &file, failure);
    if (r == 0)
        *ret = new_journal(file, 0);
    return r;
}

int journal_open(const char *path, const struct journal_end *end, struct journal **ret,
                 struct failure *failure) {
    struct append_file *file;
    int r = append_file_open(path, end->bytes, &file, failure);
    if (r == 0)
        *ret = new_journal(file, end->entries);
    return r;
}

void journal_close(struct journal *journal) {
    if (!journal)
        return;
    append_file_close(journal->file);
    free(journal);
}

/* Keeps the first failure to add to the journal; the next commit returns it. */
static void note_result(struct journal *journal, int result) {
    if (result < 0 && journal->broken == 0)
        journal->broken = result;
}

void journal_begin(struct journal *journal, const char *event) {
    journal->line_start = journal->file->pending.length;
    note_result(journal, text_printf(&journal->file->pending,
                                     "{\"seq\":%" PRIu64 ",\"t\":\"%" PRId64 "\",\"m\":\"%" PRId64
                                     "\",\"event\":\"%s\"",
                                     ++journal->sequence, clock_wall_ns(), clock_monotonic_ns(), event));
}

/* Without printf, which would be most of the time: an entry has ten members, and a run may have a million
 * entries. */
static void append_member(struct journal *journal, const char *key, const char *value, size_t length) {
    struct text *line = &journal->file->pending;
    note_result(journal, text_append(line, ",\"", 2));
    note_result(journal, text_append(line, key, strlen(key)));
    note_result(journal, text_append(line, "\":", 2));
    note_result(journal, text_append(line, value, length));
}

void journal_integer(struct journal *journal, const char *key, int64_t value) {
    char digits[NUMBER_TEXT_SIZE];
    append_member(journal, key, digits, number_format_int64(value, digits));
}

void journal_time(struct journal *journal, const char *key, int64_t value_ns) {
    char digits[NUMBER_TEXT_SIZE];
    number_format_int64(value_ns, digits);
    journal_string(journal, key, digits);
}

void journal_number(struct journal *journal, const char *key, double value) {
    char digits[NUMBER_TEXT_SIZE] = "null";
    append_member(journal, key, digits, isfinite(value) ? number_format_double(value, digits) : 4);
}

void journal_string(struct journal *journal, const char *key, const char *value) {
    append_member(journal, key, "null", value ? 0 : 4);
    if (value)
        note_result(journal, json_append_string(&journal->file->pending, value, strlen(value)));
}

void journal_strings(struct journal *journal, const char *key, const char *const *items) {
    struct text *line = &journal->file->pending;
    append_member(journal, key, "[", 1);
    for (size_t i = 0; items[i]; i++) {
        if (i > 0)
            note_result(journal, text_append_character(line, ','));
        note_result(journal, json_append_string(line, items[i], strlen(items[i])));
    }
    note_result(journal, text_append_character(line, ']'));
}

void journal_end(struct journal *journal) {
    const char *line = journal->file->pending.bytes + journal->line_start;
    size_t length = journal->file->pending.length - journal->line_start;
    if (length > JOURNAL_LINE_BYTES_MAX - JOURNAL_TAIL_BYTES)
        note_result(journal, -EFBIG);
    char tail[JOURNAL_TAIL_BYTES + 1];
    journal_format_tail(checksum_crc32c(line, length), tail);
    tail[JOURNAL_TAIL_BYTES] = '\n';
    note_result(journal, text_append(&journal->file->pending, tail, sizeof tail));
}

void journal_note(struct journal *journal, const char *event, const char *key, const char *value) {
    journal_begin(journal, event);
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
