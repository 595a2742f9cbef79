#include "engine/run/nodes/kinds.h"

#include "engine/foundation/memory.h"

#include <stdlib.h>
#include <string.h>

struct node_texts node_texts_new(size_t count) {
    return (struct node_texts){.items = xcalloc(count + 1, sizeof(char *)), .count = count};
}

void node_texts_clear(struct node_texts *texts) {
    for (size_t i = 0; i < texts->count; i++)
        free(texts->items[i]);
    free(texts->items);
    *texts = (struct node_texts){0};
}

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

/* Groups nodes with the same text, by sorting. Kinds come in the order of their first node. */
struct node_kinds node_kinds_of(const struct node_texts *texts) {
    struct valued *sorted = xcalloc(texts->count, sizeof *sorted);
    struct node_kinds kinds = {.items = xcalloc(texts->count, sizeof *kinds.items),
                               .nodes = xcalloc(texts->count, sizeof *kinds.nodes)};
    size_t known = 0;
    for (size_t i = 0; i < texts->count; i++)
        if (texts->items[i])
            sorted[known++] = (struct valued){texts->items[i], i};
    qsort(sorted, known, sizeof *sorted, compare_values);
    for (size_t i = 0; i < known; i++) {
        kinds.nodes[i] = sorted[i].node;
        if (i == 0 || strcmp(sorted[i].value, sorted[i - 1].value) != 0)
            kinds.items[kinds.count++] =
                (struct node_kind){.value = sorted[i].value, .nodes = kinds.nodes + i};
        kinds.items[kinds.count - 1].count++;
    }
    free(sorted);
    qsort(kinds.items, kinds.count, sizeof *kinds.items, compare_first_nodes);
    return kinds;
}

void node_kinds_clear(struct node_kinds *kinds) {
    free(kinds->items);
    free(kinds->nodes);
    *kinds = (struct node_kinds){0};
}
