#include "engine/table/duplicate-inputs.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 << 10 };

static bool is_same_file(const struct input *a, const struct input *b) {
    if (a->about.archive && b->about.archive && a->about.sha256[0])
        return strcmp(a->about.sha256, b->about.sha256) == 0;
    return a->is_regular && b->is_regular && a->device == b->device && a->inode == b->inode;
}

static bool is_same_run(const struct input *a, const struct input *b) {
    return a->about.run_id && b->about.run_id && strcmp(a->about.run_id, b->about.run_id) == 0;
}

/* Hashes the first LENGTH bytes of the journal of INPUT into HEX. */
static int hash_journal(const struct input *input, uint64_t length, char hex[static HASH_HEX_SIZE],
                        struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    cleanup(archive_member_cleanup) struct archive_member *journal = NULL;
    int r = archive_open(input->about.path, &archive, failure);
    r = r < 0 ? r : archive_member_open(archive, ARCHIVE_JOURNAL, &journal, failure);
    if (r < 0)
        return r;
    struct hash *hash = hash_new();
    char piece[PIECE_BYTES];
    int64_t got = 1;
    for (; length > 0 && got > 0; length -= got > 0 ? (uint64_t)got : 0) {
        got = archive_member_read(journal, piece, length < sizeof piece ? (size_t)length : sizeof piece);
        if (got > 0)
            hash_update(hash, piece, (size_t)got);
    }
    hash_finish(hash, hex);
    hash_free(hash);
    return archive_member_status(journal, failure);
}

/* Sets *RET if LATE continues the run of EARLY: its journal begins with EARLY's whole journal, since journals
 * only grow. */
static int continues(const struct input *late, const struct input *early, bool *ret,
                     struct failure *failure) {
    char begin[HASH_HEX_SIZE], whole[HASH_HEX_SIZE];
    *ret = false;
    if (late->journal_bytes <= early->journal_bytes)
        return 0;
    int r = hash_journal(late, early->journal_bytes, begin, failure);
    r = r < 0 ? r : hash_journal(early, early->journal_bytes, whole, failure);
    *ret = r == 0 && strcmp(begin, whole) == 0;
    return r;
}

/* Of the parts of INPUT's run, the one with the longest journal, the first of equal ones: the latest part, if
 * it continues all others. */
static const struct input *find_latest(const struct input *inputs, size_t count, const struct input *input) {
    const struct input *latest = input;
    for (size_t i = 0; i < count; i++)
        if (is_same_run(&inputs[i], input) &&
            (inputs[i].journal_bytes > latest->journal_bytes ||
             (inputs[i].journal_bytes == latest->journal_bytes && &inputs[i] < latest)))
            latest = &inputs[i];
    return latest;
}

/* ---- Rows */

/* FNV-1a (Fowler, Noll and Vo), continued from HASH. */
static uint64_t hash_more(uint64_t hash, const void *bytes, size_t length) {
    for (const unsigned char *at = bytes; length-- > 0; at++)
        hash = (hash ^ *at) * 0x100000001b3;
    return hash;
}

/* A hash of a row, independent of the order of columns and of how numbers are written. */
static uint64_t hash_row(const struct input *input, const struct csv_field *fields) {
    const uint64_t begin = 0xcbf29ce484222325;
    uint64_t sum = 0;
    for (size_t c = 0; c < input->column_count; c++) {
        const char *name = input->columns[c].name;
        uint64_t hash = hash_more(begin, name, strlen(name) + 1);
        double number;
        if (number_parse_double(fields[c].bytes, fields[c].length, &number)) {
            number += 0.0; /* -0 is 0 */
            sum += hash_more(hash, &number, sizeof number);
        } else {
            sum += hash_more(hash, fields[c].bytes, fields[c].length);
        }
    }
    return hash_more(begin, &sum, sizeof sum);
}

static int compare_hashes(const void *a, const void *b) {
    uint64_t x = *(const uint64_t *)a, y = *(const uint64_t *)b;
    return (x > y) - (x < y);
}

/* Hashes all rows of an input, in ascending order of hashes. */
static int hash_rows(struct input *input, const struct table_options *options, struct failure *failure) {
    const struct csv_field *fields;
    int r = input_open(input, options, failure);
    while (r >= 0 && (r = csv_next(input->csv, &fields, failure)) > 0) {
        size_t count = input->row_count++;
        if ((count & (count - 1)) == 0) /* a power of two: that many are full */
            input->row_hashes = xrealloc(input->row_hashes, (2 * count + 1) * sizeof *input->row_hashes);
        input->row_hashes[count] = hash_row(input, fields);
    }
    if (input->row_count > 0)
        qsort(input->row_hashes, input->row_count, sizeof *input->row_hashes, compare_hashes);
    r = r < 0 ? input_failure(input, r, failure) : 0;
    input_close(input);
    return r;
}

/* Whether two inputs could have the same rows by mistake: not archives of different runs, and not parts of
 * one run, which are compared by their journals. */
static bool may_share_rows(const struct input *a, const struct input *b) {
    return a != b && !(a->about.run_id && b->about.run_id) && !is_same_file(a, b);
}

/* Hashes the rows of each input that could share rows with another. */
int duplicate_inputs_hash_rows(struct input *inputs, size_t count, const struct table_options *options,
                               struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        size_t j = 0;
        while (j < count && !may_share_rows(&inputs[i], &inputs[j]))
            j++;
        r = j < count ? hash_rows(&inputs[i], options, failure) : 0;
    }
    return r;
}

/* Whether ALL has all rows of SOME. If both have the same rows, it is true for one of the two only: an
 * archive is kept rather than a file, else the first that was given. */
static bool has_rows_of(const struct input *all, const struct input *some) {
    size_t shared = 0;
    if (some->row_count == 0 || all->row_count < some->row_count || !may_share_rows(all, some))
        return false;
    for (size_t i = 0; i < all->row_count && shared < some->row_count; i++)
        shared += all->row_hashes[i] == some->row_hashes[shared];
    if (shared < some->row_count || all->row_count > some->row_count)
        return shared == some->row_count;
    return all->about.archive == some->about.archive ? all < some : all->about.archive;
}

/* Why input I is left out, into *RET, which the caller frees; NULL: it is used. -EINVAL: two archives of one
 * run that both went on. */
int duplicate_inputs_reason(const struct input *inputs, size_t count, size_t i, char **ret,
                            struct failure *failure) {
    const struct input *input = &inputs[i];
    const char *path = input->about.path;
    *ret = NULL;
    for (size_t before = 0; before < i; before++)
        if (is_same_file(&inputs[before], input)) {
            *ret = xformat("'%s' is left out: it is the same file as '%s'", path, inputs[before].about.path);
            return 0;
        }
    for (size_t j = 0; j < count; j++)
        if (has_rows_of(&inputs[j], input)) {
            *ret = xformat("'%s' is left out: '%s' has all of its %zu rows", path, inputs[j].about.path,
                           input->row_count);
            return 0;
        }
    const struct input *latest = find_latest(inputs, count, input);
    if (latest == input)
        return 0;
    bool is_earlier = false;
    int r = continues(latest, input, &is_earlier, failure);
    if (r < 0)
        return r;
    if (!is_earlier)
        return failure_input(failure, path, 0, 0,
                             "this archive and '%s' belong to the same run (%s), but neither "
                             "continues the other: the run was resumed in two places, and rows that "
                             "both have would count twice; give only one of the two archives",
                             latest->about.path, input->about.run_id);
    *ret = xformat("'%s' is left out: it is an earlier part of the run in '%s'", path, latest->about.path);
    return 0;
}

/* The number of rows that two inputs share. */
static size_t count_shared(const struct input *a, const struct input *b) {
    size_t shared = 0;
    for (size_t i = 0, j = 0; may_share_rows(a, b) && i < a->row_count && j < b->row_count;) {
        uint64_t x = a->row_hashes[i], y = b->row_hashes[j];
        shared += x == y;
        i += x <= y;
        j += y <= x;
    }
    return shared;
}

/* A note on the rows that input I shares with an earlier one, which the caller frees; NULL: none. */
char *duplicate_inputs_describe_shared(const struct input *inputs, size_t i) {
    size_t most = 0, with = 0;
    for (size_t before = 0; before < i; before++) {
        size_t shared = count_shared(&inputs[i], &inputs[before]);
        with = shared > most ? before : with;
        most = shared > most ? shared : most;
    }
    return most ? xformat("'%s' has %zu of its %zu rows in common with '%s', and each of these "
                          "rows counts twice; if they are the same measurements, keep each row "
                          "in one file only",
                          inputs[i].about.path, most, inputs[i].row_count, inputs[with].about.path)
                : NULL;
}
