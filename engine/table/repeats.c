#include "engine/table/repeats.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <string.h>

enum { PIECE_BYTES = 64 << 10 };

static bool is_same_file(const struct input *a, const struct input *b) {
    if (a->about.archive && b->about.archive && a->about.sha256[0])
        return strcmp(a->about.sha256, b->about.sha256) == 0;
    return a->is_regular && b->is_regular && a->device == b->device && a->inode == b->inode;
}

static bool is_same_run(const struct input *a, const struct input *b) {
    return a->about.run_id && b->about.run_id && strcmp(a->about.run_id, b->about.run_id) == 0;
}

/* A run's journal only grows: that of a later part begins with the whole journal of an earlier one. */
static int continues(const struct input *late, const struct input *early, bool *ret,
                     struct failure *failure) {
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
    cleanup(archive_close_member) struct archive_member *journal = NULL;
    *ret = false;
    if (late->journal_bytes <= early->journal_bytes)
        return 0;
    int r = archive_open(late->about.path, &archive, failure);
    r = r < 0 ? r : archive_member_open(archive, "journal.jsonl", &journal, failure);
    if (r < 0)
        return r;
    struct hash *hash = hash_new();
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

/* The archive with the longest journal of INPUT's run, of equal ones the first: the latest part, if it
 * continues all the others. */
static const struct input *find_latest(const struct input *inputs, size_t count, const struct input *input) {
    const struct input *latest = input;
    for (size_t i = 0; i < count; i++)
        if (is_same_run(&inputs[i], input) &&
            (inputs[i].journal_bytes > latest->journal_bytes ||
             (inputs[i].journal_bytes == latest->journal_bytes && &inputs[i] < latest)))
            latest = &inputs[i];
    return latest;
}

int repeats_judge(const struct input *inputs, size_t count, size_t i, char **ret, struct failure *failure) {
    const struct input *input = &inputs[i];
    const char *path = input->about.path;
    *ret = NULL;
    for (size_t before = 0; before < i; before++)
        if (is_same_file(&inputs[before], input)) {
            *ret = xformat("'%s' is left out: it is the same file as '%s'", path, inputs[before].about.path);
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
        return failure_input(
            failure, path, 0, 0,
            "this archive and '%s' are of one run (%s), and neither continues the other: the "
            "run was resumed in two places, and what both have would count twice; give one of "
            "them",
            latest->about.path, input->about.run_id);
    *ret = xformat("'%s' is left out: it is an earlier part of the run in '%s'", path, latest->about.path);
    return 0;
}
