#include "engine/run/nodes/kinds.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct valued {
    const char *value;
    size_t node;
};

static int compare_values(const void *a, const void *b) {
    const struct valued *left = a, *right = b;
    int order = strcmp(left->value, right->value);
    return order ? order : (left->node > right->node) - (left->node < right->node);
}

static int compare_first_nodes(const void *a, const void *b) {
    size_t left = ((const struct node_kind *)a)->nodes[0], right = ((const struct node_kind *)b)->nodes[0];
    return (left > right) - (left < right);
}

int node_kinds_init(struct node_kinds *kinds, const char *const *values, size_t count) {
    cleanup_free struct valued *sorted = calloc(count ? count : 1, sizeof *sorted);
    cleanup_free size_t *nodes = calloc(count ? count : 1, sizeof *nodes);
    cleanup_free struct node_kind *items = calloc(count ? count : 1, sizeof *items);
    if (!sorted || !nodes || !items)
        return -ENOMEM;
    size_t there = 0, found = 0;
    for (size_t i = 0; i < count; i++)
        if (values[i])
            sorted[there++] = (struct valued){values[i], i};
    qsort(sorted, there, sizeof *sorted, compare_values);
    for (size_t i = 0; i < there; i++) {
        nodes[i] = sorted[i].node;
        if (i == 0 || strcmp(sorted[i].value, sorted[i - 1].value) != 0)
            items[found++] = (struct node_kind){.value = sorted[i].value, .nodes = nodes + i};
        items[found - 1].count++;
    }
    qsort(items, found, sizeof *items, compare_first_nodes);
    *kinds = (struct node_kinds){.items = take_pointer(items), .count = found, .nodes = take_pointer(nodes)};
    return 0;
}

void node_kinds_clear(struct node_kinds *kinds) {
    free(kinds->items);
    free(kinds->nodes);
    *kinds = (struct node_kinds){0};
}
