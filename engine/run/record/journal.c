#include "engine/run/record/journal.h"

#include "engine/documents/json.h"
#include "engine/foundation/append-file.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/clock.h"
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

static int keep_file(struct append_file *file, uint64_t entries, struct journal **ret,
                     struct failure *failure) {
    struct journal *journal = calloc(1, sizeof *journal);
    if (!journal) {
        append_file_close(file);
        return failure_memory(failure);
    }
    journal->file = file;
    journal->sequence = entries;
    *ret = journal;
    return 0;
}

int journal_create(const char *path, struct journal **ret, struct failure *failure) {
    struct append_file *file;
    int r = append_file_create(path, &file, failure);
    return r < 0 ? r : keep_file(file, 0, ret, failure);
}

int journal_open(const char *path, const struct journal_end *end, struct journal **ret,
                 struct failure *failure) {
    struct append_file *file;
    int r = append_file_open(path, end->bytes, &file, failure);
    return r < 0 ? r : keep_file(file, end->entries, ret, failure);
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

static void append(struct journal *journal, const char *bytes, size_t length) {
    keep(journal, text_append(&journal->file->pending, bytes, length));
}

/* KEY with its colon, and the comma before it. An entry a unit and ten members an entry: these few functions
 * are what a journal costs. */
static void append_key(struct journal *journal, const char *key) {
    append(journal, ",", 1);
    keep(journal, json_append_string(&journal->file->pending, key, strlen(key)));
    append(journal, ":", 1);
}

static void append_integer(struct journal *journal, int64_t value) {
    char digits[NUMBER_TEXT_SIZE];
    append(journal, digits, number_format_int64(value, digits));
}

void journal_begin(struct journal *journal, const char *event) {
    static const char sequence[] = "{\"seq\":", wall[] = ",\"t\":", monotonic[] = ",\"m\":";
    journal->line_start = journal->file->pending.length;
    append(journal, sequence, sizeof sequence - 1);
    append_integer(journal, (int64_t)++journal->sequence);
    append(journal, wall, sizeof wall - 1);
    append_integer(journal, clock_wall_ns());
    append(journal, monotonic, sizeof monotonic - 1);
    append_integer(journal, clock_monotonic_ns());
    journal_string(journal, "event", event);
}

void journal_integer(struct journal *journal, const char *key, int64_t value) {
    append_key(journal, key);
    append_integer(journal, value);
}

void journal_number(struct journal *journal, const char *key, double value) {
    char digits[NUMBER_TEXT_SIZE];
    append_key(journal, key);
    if (isfinite(value))
        append(journal, digits, number_format_double(value, digits));
    else
        append(journal, "null", 4);
}

void journal_string(struct journal *journal, const char *key, const char *value) {
    append_key(journal, key);
    if (value)
        keep(journal, json_append_string(&journal->file->pending, value, strlen(value)));
    else
        append(journal, "null", 4);
}

void journal_end(struct journal *journal) {
    const char *line = journal->file->pending.bytes + journal->line_start;
    size_t length = journal->file->pending.length - journal->line_start;
    if (length > JOURNAL_LINE_BYTES_MOST - JOURNAL_TAIL_BYTES)
        keep(journal, -EFBIG);
    char tail[JOURNAL_TAIL_BYTES + 1];
    journal_write_tail(checksum_crc32c(line, length), tail);
    tail[JOURNAL_TAIL_BYTES] = '\n';
    append(journal, tail, sizeof tail);
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
