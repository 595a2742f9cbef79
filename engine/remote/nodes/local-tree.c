#include "engine/remote/nodes/local-tree.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/path.h"

#include <errno.h>
#include <fcntl.h>
#include <fts.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

/* A call of local_tree_read(). */
struct reading {
    struct local_tree *tree;
    const struct local_tree_filter *filter; /* or NULL */
};

void local_tree_clear(struct local_tree *tree) {
    for (size_t i = 0; i < tree->count; i++) {
        free(tree->entries[i].path);
        free(tree->entries[i].relative);
    }
    free(tree->entries);
    *tree = LOCAL_TREE_NONE;
}

/* ---- listing */

static int complain(struct failure *failure, int code, const char *what, const char *path) {
    return failure_set_kind(failure, FAILURE_INPUT, code, "cannot %s '%s': %s", what, path, strerror(-code));
}

/* Appends PATH to the tree. FAILURE_INPUT when it cannot be read, belongs to another user (for root), or is
 * one too many. */
static int add_entry(struct reading *reading, const char *path, const char *relative,
                     const struct stat *status, struct failure *failure) {
    struct local_tree *tree = reading->tree;
    bool is_folder = S_ISDIR(status->st_mode);
    cleanup_close int file = open(path, O_PATH | O_NOFOLLOW | O_CLOEXEC);
    int r = file < 0 ? complain(failure, -errno, "read", path) : path_check_file(file, path, failure);
    if (r < 0)
        return r;
    if (access(path, is_folder ? R_OK | X_OK : R_OK) < 0)
        return complain(failure, -errno, "read", path);
    r = list_reserve(&tree->entries, &tree->capacity, tree->count + 1, sizeof *tree->entries,
                     LOCAL_TREE_FILES_MAX);
    if (r == -EFBIG)
        return failure_set_kind(failure, FAILURE_INPUT, -EFBIG,
                                "'%s' is one more than the limit of %d files and folders", path,
                                LOCAL_TREE_FILES_MAX);
    if (r < 0)
        return failure_memory(failure);
    struct local_entry *entry = &tree->entries[tree->count];
    *entry = (struct local_entry){.is_folder = is_folder,
                                  .path = xstrdup(path),
                                  .relative = xstrdup(relative),
                                  .mode = status->st_mode & 0777,
                                  .size = is_folder ? 0 : (uint64_t)status->st_size};
    tree->count++;
    tree->files += !is_folder;
    return 0;
}

static int compare_names(const FTSENT **a, const FTSENT **b) {
    return strcmp((*a)->fts_name, (*b)->fts_name);
}

/* Adds what fts_read() gave, unless it is filtered or, below the top, a link or a special file. */
static int read_entry(struct reading *reading, FTS *walk, FTSENT *at, const char *top,
                      struct failure *failure) {
    const struct local_tree_filter *filter = reading->filter;
    const struct stat *status = at->fts_statp;
    bool is_top = at->fts_level == FTS_ROOTLEVEL;
    const char *below = at->fts_path + strlen(top);
    below += *below == '/';
    if (at->fts_info == FTS_DP)
        return 0;
    if (at->fts_info == FTS_NS || at->fts_info == FTS_DNR || at->fts_info == FTS_ERR)
        return complain(failure, -at->fts_errno, is_top ? "read" : "look at", at->fts_path);
    if (!is_top && filter && filter->leaves_out(filter->context, at->fts_path, below, status)) {
        (void)fts_set(walk, at, FTS_SKIP);
        return 0;
    }
    if (S_ISREG(status->st_mode))
        return add_entry(reading, at->fts_path, is_top ? file_base_name(top) : below, status, failure);
    if (!S_ISDIR(status->st_mode) && is_top)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "'%s' is neither a file nor a folder", top);
    reading->tree->left_out += !S_ISDIR(status->st_mode);
    if (!S_ISDIR(status->st_mode))
        return 0;
    if (at->fts_level > LOCAL_TREE_DEPTH_MAX)
        return failure_set_kind(failure, FAILURE_INPUT, -ELOOP, "'%s' is nested deeper than %d folders",
                                at->fts_path, LOCAL_TREE_DEPTH_MAX);
    return add_entry(reading, at->fts_path, is_top ? "" : below, status, failure);
}

static void close_walk(FTS **walk) {
    if (*walk)
        fts_close(*walk);
}

int local_tree_read(struct local_tree *tree, const char *path, const struct local_tree_filter *filter,
                    struct failure *failure) {
    struct reading reading = {.tree = tree, .filter = filter};
    cleanup_free char *top = xstrdup(path);
    for (size_t end = strlen(top); end > 1 && top[end - 1] == '/';)
        top[--end] = '\0';
    int r = path_check(top, PATH_SOURCE, failure);
    if (r < 0)
        return r;
    char *const tops[] = {top, NULL};
    cleanup(close_walk) FTS *walk = fts_open(tops, FTS_PHYSICAL | FTS_COMFOLLOW | FTS_NOCHDIR, compare_names);
    if (!walk)
        return complain(failure, -errno, "read", path);
    FTSENT *at;
    while (r == 0 && (errno = 0, at = fts_read(walk)))
        r = read_entry(&reading, walk, at, top, failure);
    return r == 0 && errno ? complain(failure, -errno, "list", path) : r;
}

/* ---- hashing */

int local_tree_hash(struct local_tree *tree, struct failure *failure) {
    while (tree->hashed < tree->count && tree->entries[tree->hashed].is_folder)
        tree->hashed++;
    if (tree->hashed == tree->count)
        return 0;
    struct local_entry *entry = &tree->entries[tree->hashed++];
    uint64_t size;
    int r = hash_file(entry->path, entry->hash, &size, failure);
    if (r == 0 && size != entry->size)
        r = failure_set(failure, -EBUSY, "'%s' had %llu bytes and has %llu now: it is being written",
                        entry->path, (unsigned long long)entry->size, (unsigned long long)size);
    return r < 0 ? r : 1;
}

static int compare_relative(const void *a, const void *b) {
    return strcmp((*(const struct local_entry *const *)a)->relative,
                  (*(const struct local_entry *const *)b)->relative);
}

int local_tree_manifest(const struct local_tree *tree, struct text *ret) {
    cleanup_free const struct local_entry **files = xcalloc(tree->files + 1, sizeof *files);
    size_t count = 0;
    for (size_t i = 0; i < tree->count; i++)
        if (!tree->entries[i].is_folder)
            files[count++] = &tree->entries[i];
    qsort((void *)files, count, sizeof *files, compare_relative);
    int r = 0;
    for (size_t i = 0; i < count && r == 0; i++)
        r = text_printf(ret, "%s  %s\n", files[i]->hash, files[i]->relative);
    return r;
}
