#include "engine/run/campaign/tree-difference.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/text.h"
#include "engine/remote/nodes/local-tree.h"

#include <string.h>

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

int tree_difference(const char *before, const char *now, char **ret, struct failure *failure) {
    cleanup(local_tree_clear) struct local_tree tree = LOCAL_TREE_NONE;
    *ret = NULL;
    int r = local_tree_read(&tree, before, NULL, failure);
    for (size_t i = 0; r == 0 && !*ret && i < tree.count; i++) {
        const struct local_entry *entry = &tree.entries[i];
        cleanup_free char *path = file_join(now, entry->relative);
        if (!path)
            return failure_memory(failure);
        if (!file_exists(path) || file_is_folder(path) != entry->is_folder)
            r = (*ret = text_format("'%s' is gone", path)) ? 0 : failure_memory(failure);
        else if (!entry->is_folder)
            r = file_difference(entry->path, path, ret, failure);
    }
    return r;
}
