#include "engine/run/record/last-units.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { HEADER_MAX = 1 << 16 };

/* COUNT bytes of FILE from FROM on, the caller's; NULL: there are fewer. */
static char *read_bytes(int file, uint64_t from, size_t count) {
    cleanup_free char *bytes = xmalloc(count + 1);
    bytes[count] = '\0';
    return pread(file, bytes, count, (off_t)from) == (ssize_t)count ? take_pointer(bytes) : NULL;
}

/* The number of columns in the first line of FILE, and where the second begins; 0: it is not there yet. */
static size_t count_columns(int file, uint64_t end, uint64_t *ret_start) {
    cleanup_free char *head = read_bytes(file, 0, end < HEADER_MAX ? (size_t)end : HEADER_MAX);
    char *newline = head ? strchr(head, '\n') : NULL;
    size_t columns = 1;
    bool is_quoted = false;
    if (!newline)
        return 0;
    for (const char *at = head; at < newline; at++) {
        is_quoted ^= *at == '"';
        columns += *at == ',' && !is_quoted;
    }
    *ret_start = (uint64_t)(newline + 1 - head);
    return columns;
}

static void add_row(struct run_history *history, const struct results_row *row) {
    uint32_t index;
    if (!text_set_find(&history->node_names, row->node.bytes, row->node.length, &index))
        return;
    struct run_history_node *node = history->nodes[index];
    size_t length = row->flags.length < sizeof node->flags ? row->flags.length : sizeof node->flags - 1;
    node->unit = row->order;
    memcpy(node->flags, row->flags.bytes, length);
    node->flags[length] = '\0';
}

/* Reads the results from where the last call ended, at most the last LAST_UNITS_TAIL bytes. What cannot be
 * read is ignored. */
void last_units_read(struct run_history *history, const char *folder) {
    if (history->commit_count == 0)
        return;
    cleanup_free char *path = xformat("%s/" ARCHIVE_RESULTS, folder);
    cleanup_close int file = file_open(path, FILE_REGULAR, NULL);
    uint64_t start = 0, end = history->commits[history->commit_count - 1].bytes, from = history->tail_bytes;
    if (file < 0 || end == from)
        return;
    size_t columns = count_columns(file, end, &start);
    if (columns < RESULTS_COLUMNS)
        return;
    if (from < start || from > end) /* nothing was read, or a later part has cut the results */
        from = start;
    bool is_cut = end - from > LAST_UNITS_TAIL;
    from = is_cut ? end - LAST_UNITS_TAIL : from;
    cleanup_free char *bytes = read_bytes(file, from, (size_t)(end - from));
    if (!bytes)
        return;
    const char *at = is_cut ? strchr(bytes, '\n') : bytes, *last = bytes + (end - from), *newline;
    struct results_row row;
    for (at = at && is_cut ? at + 1 : at; at && at < last; at = newline + 1) {
        newline = results_row_read(at, last, columns - RESULTS_COLUMNS, 0, &row);
        if (!newline)
            break;
        add_row(history, &row);
    }
    history->tail_bytes = end;
}
