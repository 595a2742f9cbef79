#include "engine/plugin/table-repeats.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { PIECE_BYTES = 64 << 10 };

static bool is_same_file(const struct table_source *a, const struct table_source *b) {
    if (a->input.archive && b->input.archive)
        return strcmp(a->input.sha256, b->input.sha256) == 0;
    return a->is_regular && b->is_regular && a->device == b->device && a->inode == b->inode;
}

static bool is_same_run(const struct table_source *a, const struct table_source *b) {
    return a->input.run_id && b->input.run_id && strcmp(a->input.run_id, b->input.run_id) == 0;
}

/* A run's journal only grows: that of a later part begins with the whole journal of an earlier one. */
static int continues(const struct table_source *late, const struct table_source *early, bool *ret,
                     struct failure *failure) {
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
    cleanup(archive_close_member) struct archive_member *journal = NULL;
    *ret = false;
    if (late->journal_bytes <= early->journal_bytes)
        return 0;
    int r = archive_open(late->input.path, &archive, failure);
    r = r < 0 ? r : archive_member_open(archive, TABLE_ARCHIVE_JOURNAL, &journal, failure);
    if (r < 0)
        return r;
    struct hash *hash = hash_new();
    if (!hash)
        return failure_memory(failure);
    char piece[PIECE_BYTES], hex[HASH_HEX_SIZE];
    int64_t length = 1;
    for (uint64_t left = early->journal_bytes; left > 0 && length > 0;
         left -= length > 0 ? (uint64_t)length : 0) {
        length = archive_member_read(journal, piece, left < sizeof piece ? (size_t)left : sizeof piece);
        if (length > 0)
            hash_update(hash, piece, (size_t)length);
    }
    hash_finish(hash, hex);
    hash_free(hash);
    *ret = strcmp(hex, early->journal_sha256) == 0;
    return length < 0 ? archive_member_status(journal, failure) : 0;
}

/* The archive with the longest journal of its run: the latest part, if it continues all the others. */
static const struct table_source *find_latest(const struct table_source *sources, size_t count,
                                              const struct table_source *source) {
    const struct table_source *latest = source;
    for (size_t i = 0; i < count; i++)
        if (is_same_run(&sources[i], source) && sources[i].journal_bytes > latest->journal_bytes)
            latest = &sources[i];
    return latest;
}

static int note(struct text *notes, const char *path, const char *what, const char *other,
                struct failure *failure) {
    int r = text_printf(notes, "'%s' is left out: it %s '%s'%c", path, what, other, '\0');
    return r == -ENOMEM ? failure_memory(failure) : 0; /* notes that are too many to be read are left out */
}

/* Whether SOURCES[i] is left out; the sentence that says so is appended to NOTES. */
static int judge(const struct table_source *sources, size_t count, size_t i, bool *ret, struct text *notes,
                 struct failure *failure) {
    const struct table_source *source = &sources[i];
    const char *path = source->input.path;
    for (size_t before = 0; before < i; before++)
        if (is_same_file(&sources[before], source)) {
            *ret = true;
            return note(notes, path, "is the same file as", sources[before].input.path, failure);
        }
    const struct table_source *latest = find_latest(sources, count, source);
    for (size_t other = 0; latest == source && other < i; other++)
        if (is_same_run(&sources[other], source) && sources[other].journal_bytes == source->journal_bytes)
            latest = &sources[other]; /* neither can continue the other */
    if (latest == source)
        return 0;
    int r = continues(latest, source, ret, failure);
    if (r < 0)
        return r;
    if (!*ret)
        return failure_input(
            failure, path, 0, 0,
            "this archive and '%s' are of one run (%s), and neither continues the other: the run "
            "was resumed in two places, and what both have would count twice; give one of them",
            latest->input.path, source->input.run_id);
    return note(notes, path, "is an earlier part of the run in", latest->input.path, failure);
}

int table_leave_repeats_out(struct table_source *sources, size_t *count, struct text *notes,
                            struct failure *failure) {
    cleanup_free bool *left_out = xcalloc(*count, sizeof *left_out);
    for (size_t i = 0; i < *count; i++) {
        int r = judge(sources, *count, i, &left_out[i], notes, failure);
        if (r < 0)
            return r;
    }
    size_t kept = 0;
    for (size_t i = 0; i < *count; i++) {
        if (left_out[i])
            table_source_clear(&sources[i]);
        else
            sources[kept++] = sources[i];
    }
    *count = kept;
    return 0;
}
