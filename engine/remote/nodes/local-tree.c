#include "engine/remote/nodes/local-tree.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

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

/* ---- looking */

static int complain(struct failure *failure, int code, const char *what, const char *path) {
    return failure_set_kind(failure, FAILURE_INPUT, code, "cannot %s '%s': %s", what, path, strerror(-code));
}

static int add(struct reading *reading, const char *path, const char *relative, const struct stat *status,
               struct failure *failure) {
    struct local_tree *tree = reading->tree;
    bool is_folder = S_ISDIR(status->st_mode);
    if (access(path, is_folder ? R_OK | X_OK : R_OK) < 0)
        return complain(failure, -errno, "read", path);
    int r = list_reserve(&tree->entries, &tree->capacity, tree->count + 1, sizeof *tree->entries,
                         LOCAL_TREE_FILES_MOST);
    if (r == -EFBIG)
        return failure_set_kind(failure, FAILURE_INPUT, -EFBIG,
                                "'%s' is one more than the limit of %d files and folders", path,
                                LOCAL_TREE_FILES_MOST);
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

static int not_dots(const struct dirent *entry) {
    return strcmp(entry->d_name, ".") != 0 && strcmp(entry->d_name, "..") != 0;
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int read_folder(struct reading *reading, const char *path, const char *relative, int depth,
                       struct failure *failure);

static int read_entry(struct reading *reading, const char *folder, const char *relative, const char *name,
                      int depth, struct failure *failure) {
    cleanup_free char *path = xformat("%s/%s", folder, name);
    cleanup_free char *below = xformat("%s%s%s", relative, relative[0] ? "/" : "", name);
    struct stat status;
    if (lstat(path, &status) < 0)
        return complain(failure, -errno, "look at", path);
    const struct local_tree_filter *filter = reading->filter;
    if (filter && filter->leaves_out(filter->context, path, below, &status))
        return 0;
    if (S_ISREG(status.st_mode))
        return add(reading, path, below, &status, failure);
    if (!S_ISDIR(status.st_mode)) {
        reading->tree->left_out++;
        return 0;
    }
    int r = add(reading, path, below, &status, failure);
    return r < 0 ? r : read_folder(reading, path, below, depth + 1, failure);
}

static int read_folder(struct reading *reading, const char *path, const char *relative, int depth,
                       struct failure *failure) {
    if (depth > LOCAL_TREE_DEPTH_MOST)
        return failure_set_kind(failure, FAILURE_INPUT, -ELOOP, "'%s' is nested deeper than %d folders", path,
                                LOCAL_TREE_DEPTH_MOST);
    struct dirent **entries;
    int count = scandir(path, &entries, not_dots, compare_names);
    if (count < 0)
        return complain(failure, -errno, "list", path);
    int r = 0;
    for (int i = 0; i < count; i++) {
        if (r == 0)
            r = read_entry(reading, path, relative, entries[i]->d_name, depth, failure);
        free(entries[i]);
    }
    free(entries);
    return r;
}

/* The top, links followed: the user named it. */
static int read_top(struct reading *reading, const char *path, const struct stat *top,
                    struct failure *failure) {
    if (S_ISREG(top->st_mode))
        return add(reading, path, file_base_name(path), top, failure);
    if (!S_ISDIR(top->st_mode))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "'%s' is neither a file nor a folder", path);
    int r = add(reading, path, "", top, failure);
    return r < 0 ? r : read_folder(reading, path, "", 0, failure);
}

int local_tree_read(struct local_tree *tree, const char *path, const struct local_tree_filter *filter,
                    struct failure *failure) {
    struct reading reading = {.tree = tree, .filter = filter};
    struct stat status;
    if (stat(path, &status) < 0)
        return complain(failure, -errno, "read", path);
    return read_top(&reading, path, &status, failure);
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
