/* The listing of a folder of the node, from bytes to entries. The agent is not trusted with the paths: they
 * become paths of files on the engine's machine. */
#include "engine/foundation/list.h"
#include "engine/remote/link/inside.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Decimal or octal digits up to END, which must be where they end. */
static bool take_digits(const char **at, char end, unsigned base, uint64_t *ret) {
    uint64_t value = 0;
    const char *digit = *at;
    for (; *digit >= '0' && *digit < (char)('0' + base); digit++)
        if (__builtin_mul_overflow(value, base, &value) ||
            __builtin_add_overflow(value, (unsigned)(*digit - '0'), &value))
            return false;
    if (digit == *at || *digit != end)
        return false;
    *at = digit + (end != '\0');
    *ret = value;
    return true;
}

/* "f 644 1234" */
static bool take_head(const char *head, struct agent_entry *ret) {
    static const char kinds[] = "fdlo"; /* in the order of enum agent_entry_kind */
    const char *kind = head[0] ? strchr(kinds, head[0]) : NULL;
    if (!kind || head[1] != ' ')
        return false;
    const char *at = head + 2;
    uint64_t mode, size;
    if (!take_digits(&at, ' ', 8, &mode) || mode > 07777 || !take_digits(&at, '\0', 10, &size))
        return false;
    ret->kind = (enum agent_entry_kind)(kind - kinds);
    ret->mode = (unsigned)mode;
    ret->size = size;
    return true;
}

/* Every part of it is a name: it leads nowhere but below. */
static bool is_below(const char *path) {
    for (const char *part = path;; part++) {
        size_t length = strcspn(part, "/");
        if (length == 0 || (length == 1 && part[0] == '.') ||
            (length == 2 && part[0] == '.' && part[1] == '.'))
            return false;
        part += length;
        if (*part == '\0')
            return part - path <= PROTOCOL_PATH_LIMIT;
    }
}

static int by_path(const void *left, const void *right) {
    const struct agent_entry *const a = left, *const b = right;
    return strcmp(a->path, b->path);
}

static int take_entries(const struct text *bytes, struct agent_entry **items, size_t *count,
                        struct failure *failure) {
    size_t capacity = 0;
    const char *at = bytes->bytes, *end = at + bytes->length;
    while (at < end) {
        /* There is a NUL after the last byte, so that strlen() ends. */
        const char *path = at + strlen(at) + 1;
        struct agent_entry entry = {0};
        if (path >= end || path + strlen(path) >= end || !take_head(at, &entry))
            return failure_set(failure, -EPROTO, "a listing is malformed at its byte %zu",
                               (size_t)(at - bytes->bytes));
        entry.path = path;
        at = path + strlen(path) + 1;
        bool is_whole = *count == 0 && at == end && path[0] == '\0';
        if (!is_whole && !is_below(path))
            return failure_set(failure, -EPROTO, "a listing has an entry that is not below its folder");
        int r = list_reserve(items, &capacity, *count + 1, sizeof **items, AGENT_TREE_LIMIT);
        if (r == -EFBIG)
            return failure_set(failure, r, "there are more than %d files and folders in it",
                               AGENT_TREE_LIMIT);
        if (r < 0)
            return failure_memory(failure);
        (*items)[(*count)++] = entry;
    }
    return 0;
}

int tree_parse(const struct text *bytes, struct agent_entry **ret, size_t *ret_count,
               struct failure *failure) {
    struct agent_entry *items = NULL;
    size_t count = 0;
    int r = take_entries(bytes, &items, &count, failure);
    bool sorted = true;
    for (size_t i = 1; r == 0 && i < count; i++)
        sorted &= strcmp(items[i - 1].path, items[i].path) < 0;
    if (r == 0 && !sorted)
        qsort(items, count, sizeof *items, by_path);
    for (size_t i = 1; r == 0 && !sorted && i < count; i++)
        if (strcmp(items[i - 1].path, items[i].path) == 0)
            r = failure_set(failure, -EPROTO, "a listing has '%.256s' twice", items[i].path);
    if (r < 0) {
        free(items);
        return r;
    }
    *ret = items;
    *ret_count = count;
    return 0;
}
