#include "engine/run/tree-difference.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/text.h"
#include "engine/run/copy.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

enum { FILE_BYTES_MOST = 1 << 30, LINE_SHOWN = 120 };

/* The first line that is not the same in both. */
static char *describe_line(const struct text *before, const struct text *now, const char *name) {
    const char *a = before->bytes, *b = now->bytes;
    size_t line = 1;
    for (;; line++) {
        size_t a_length = strcspn(a, "\n"), b_length = strcspn(b, "\n");
        bool same = a_length == b_length && memcmp(a, b, a_length) == 0;
        if (same && a[a_length] && b[b_length]) {
            a += a_length + 1;
            b += b_length + 1;
            continue;
        }
        int shown_a = (int)(a_length < LINE_SHOWN ? a_length : LINE_SHOWN),
            shown_b = (int)(b_length < LINE_SHOWN ? b_length : LINE_SHOWN);
        return same ? text_format("'%s' has changed at line %zu: its end is another", name, line)
                    : text_format("'%s' has changed at line %zu: was '%.*s', is '%.*s'", name, line, shown_a,
                                  a, shown_b, b);
    }
}

static bool is_text(const struct text *bytes) {
    return !memchr(bytes->bytes, '\0', bytes->length);
}

int file_difference(const char *before, const char *now, char **ret, struct failure *failure) {
    cleanup(text_clear) struct text a, b;
    text_init(&a, FILE_BYTES_MOST);
    text_init(&b, FILE_BYTES_MOST);
    *ret = NULL;
    int r = file_read(before, &a, failure);
    if (r == 0)
        r = file_read(now, &b, failure);
    if (r < 0 || (a.length == b.length && (a.length == 0 || memcmp(a.bytes, b.bytes, a.length) == 0)))
        return r;
    bool shown = a.length > 0 && b.length > 0 && is_text(&a) && is_text(&b);
    *ret = shown ? describe_line(&a, &b, now)
                 : text_format("'%s' has changed: had %zu bytes, has %zu", now, a.length, b.length);
    return *ret ? 0 : failure_memory(failure);
}

/* ---- Folders ---------------------------------------------------------------------------------------------
 */

/* What copies have: regular files and folders whose names are not hidden. */
static int is_counted(const struct dirent *entry) {
    return entry->d_name[0] != '.';
}

static int compare_names(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static int compare_entries(const char *before, const char *now, int depth, char **ret,
                           struct failure *failure);

/* NAME is in BEFORE. */
static int compare_entry(const char *before, const char *now, const char *name, int depth, char **ret,
                         struct failure *failure) {
    cleanup_free char *a = file_join(before, name), *b = file_join(now, name);
    struct stat one, other;
    if (!a || !b)
        return failure_memory(failure);
    if (lstat(a, &one) < 0)
        return failure_set(failure, -errno, "cannot look at '%s': %s", a, strerror(errno));
    if (lstat(b, &other) < 0 || (one.st_mode & S_IFMT) != (other.st_mode & S_IFMT)) {
        *ret = text_format("'%s' is gone", b);
        return *ret ? 0 : failure_memory(failure);
    }
    return S_ISDIR(one.st_mode)   ? compare_entries(a, b, depth + 1, ret, failure)
           : S_ISREG(one.st_mode) ? file_difference(a, b, ret, failure)
                                  : 0;
}

/* A file NAME that is in NOW and may not be in BEFORE. A new folder may be one of runs: its files would have
 * been copied if it had been there. */
static int find_new(const char *before, const char *now, const char *name, char **ret,
                    struct failure *failure) {
    cleanup_free char *a = file_join(before, name), *b = file_join(now, name);
    struct stat status;
    if (!a || !b)
        return failure_memory(failure);
    if (lstat(b, &status) < 0 || !S_ISREG(status.st_mode) || lstat(a, &status) == 0)
        return 0;
    *ret = text_format("'%s' is new", b);
    return *ret ? 0 : failure_memory(failure);
}

/* Calls STEP for each name in FOLDER, until a difference is found. */
static int each_name(const char *folder, const char *before, const char *now, int depth, char **ret,
                     struct failure *failure) {
    struct dirent **entries;
    int count = scandir(folder, &entries, is_counted, compare_names), r = 0;
    if (count < 0)
        return failure_set(failure, -errno, "cannot list '%s': %s", folder, strerror(errno));
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        if (r == 0 && !*ret)
            r = folder == before ? compare_entry(before, now, name, depth, ret, failure)
                                 : find_new(before, now, name, ret, failure);
        free(entries[i]);
    }
    free(entries);
    return r;
}

static int compare_entries(const char *before, const char *now, int depth, char **ret,
                           struct failure *failure) {
    if (depth > COPY_DEPTH_MOST)
        return 0;
    int r = each_name(before, before, now, depth, ret, failure);
    return r < 0 || *ret ? r : each_name(now, before, now, depth, ret, failure);
}

int tree_difference(const char *before, const char *now, char **ret, struct failure *failure) {
    *ret = NULL;
    return compare_entries(before, now, 0, ret, failure);
}
