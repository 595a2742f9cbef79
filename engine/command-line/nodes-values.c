#include "engine/command-line/nodes-values.h"

#include "engine/command-line/shown.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- equal ones together */

struct said {
    const char *text;
    size_t node;
};

static int compare_said(const void *a, const void *b) {
    const struct said *x = a, *y = b;
    int order = strcmp(x->text, y->text);
    return order ? order : (x->node > y->node) - (x->node < y->node);
}

static int compare_values(const void *a, const void *b) {
    const struct nodes_value *x = a, *y = b;
    if (x->count != y->count)
        return x->count > y->count ? -1 : 1;
    return (x->nodes[0] > y->nodes[0]) - (x->nodes[0] < y->nodes[0]);
}

int nodes_values_group(char *const *texts, size_t count, struct nodes_values *ret) {
    cleanup_free struct said *all = calloc(count + 1, sizeof *all);
    struct nodes_values values = {.values = calloc(count + 1, sizeof *values.values),
                                  .numbers = calloc(count + 1, sizeof *values.numbers)};
    if (!all || !values.values || !values.numbers) {
        nodes_values_clear(&values);
        return -ENOMEM;
    }
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (texts[i])
            all[known++] = (struct said){.text = texts[i], .node = i};
    qsort(all, known, sizeof *all, compare_said);
    for (size_t i = 0; i < known; i++) {
        values.numbers[i] = all[i].node;
        if (i == 0 || strcmp(all[i].text, all[i - 1].text) != 0)
            values.values[values.count++] =
                (struct nodes_value){.text = all[i].text, .nodes = &values.numbers[i]};
        values.values[values.count - 1].count++;
    }
    qsort(values.values, values.count, sizeof *values.values, compare_values);
    *ret = values;
    return 0;
}

void nodes_values_clear(struct nodes_values *values) {
    free(values->values);
    free(values->numbers);
    *values = (struct nodes_values){0};
}

/* ---- tables */

void nodes_table_init(struct nodes_table *table, const struct nodes *nodes) {
    *table = (struct nodes_table){.nodes = nodes};
}

void nodes_table_clear(struct nodes_table *table) {
    size_t nodes = table->nodes ? node_group_count(table->nodes->group) : 0;
    for (size_t i = 0; i < table->count; i++) {
        struct nodes_row *row = &table->rows[i];
        for (size_t k = 0; row->texts && k < nodes; k++)
            free(row->texts[k]);
        free(row->texts);
        free(row->name);
    }
    free(table->rows);
    *table = (struct nodes_table){0};
}

static struct nodes_row *find_row(const struct nodes_table *table, const char *name) {
    for (size_t i = 0; i < table->count; i++)
        if (strcmp(table->rows[i].name, name) == 0)
            return &table->rows[i];
    return NULL;
}

static int add_row(struct nodes_table *table, const char *name, struct nodes_row **ret,
                   struct failure *failure) {
    int r = list_reserve(&table->rows, &table->capacity, table->count + 1, sizeof *table->rows,
                         NODES_TABLE_ROWS_MAX);
    if (r == -EFBIG)
        return failure_set(failure, -E2BIG, "the nodes have more than %d different things to tell of",
                           NODES_TABLE_ROWS_MAX);
    if (r < 0)
        return failure_memory(failure);
    struct nodes_row *row = &table->rows[table->count];
    row->name = strdup(name);
    row->texts = calloc(node_group_count(table->nodes->group) + 1, sizeof *row->texts);
    if (!row->name || !row->texts) {
        free(take_pointer(row->name));
        free(take_pointer(row->texts));
        return failure_memory(failure);
    }
    table->count++;
    *ret = row;
    return 0;
}

int nodes_table_add(struct nodes_table *table, size_t node, const char *name, char *text,
                    struct failure *failure) {
    cleanup_free char *owned = text;
    if (!owned)
        return failure_memory(failure);
    struct nodes_row *row = find_row(table, name);
    int r = row ? 0 : add_row(table, name, &row, failure);
    if (r < 0)
        return r;
    char **place = &row->texts[node];
    char *joined = *place ? text_format("%s; %s", *place, owned) : take_pointer(owned);
    if (!joined)
        return failure_memory(failure);
    free(*place);
    *place = joined;
    return 0;
}

static int print_row(const struct nodes_table *table, const struct nodes_row *row, int width) {
    cleanup(nodes_values_clear) struct nodes_values values = {0};
    int r = nodes_values_group(row->texts, node_group_count(table->nodes->group), &values);
    for (size_t i = 0; r == 0 && i < values.count; i++) {
        printf("%-*s  ", width, i == 0 ? shown(row->name).text : "");
        shown_print(stdout, values.values[i].text, false);
        if (values.count > 1) {
            cleanup_free char *names =
                nodes_fold(table->nodes, values.values[i].nodes, values.values[i].count);
            if (!names)
                return -ENOMEM;
            printf("   %s", shown(names).text);
        }
        putchar('\n');
    }
    return r;
}

int nodes_table_print(const struct nodes_table *table, int width, struct failure *failure) {
    for (size_t i = 0; i < table->count; i++)
        if (print_row(table, &table->rows[i], width) < 0)
            return failure_memory(failure);
    return 0;
}

int nodes_table_print_row(const struct nodes_table *table, const char *name, struct failure *failure) {
    cleanup(nodes_values_clear) struct nodes_values values = {0};
    const struct nodes_row *row = find_row(table, name);
    if (!row)
        return 0;
    if (nodes_values_group(row->texts, node_group_count(table->nodes->group), &values) < 0)
        return failure_memory(failure);
    for (size_t i = 0; i < values.count; i++) {
        cleanup_free char *names = nodes_fold(table->nodes, values.values[i].nodes, values.values[i].count);
        if (!names)
            return failure_memory(failure);
        shown_print(stdout, names, false);
        fputs(": ", stdout);
        shown_print(stdout, values.values[i].text, false);
        putchar('\n');
    }
    return 0;
}

int nodes_print_known(const struct nodes *nodes, const bool *known, int width, struct failure *failure) {
    size_t all = node_group_count(nodes->group), count = 0;
    cleanup_free size_t *numbers = xcalloc(all + 1, sizeof *numbers);
    for (size_t i = 0; i < all; i++)
        if (known[i])
            numbers[count++] = i;
    cleanup_free char *names = nodes_fold(nodes, numbers, count);
    if (!names)
        return failure_memory(failure);
    printf("%-*s  ", width, count == 1 ? "node" : "nodes");
    shown_print(stdout, names, false);
    printf(count == 1 ? "\n" : "   (%zu)\n", count);
    return 0;
}
