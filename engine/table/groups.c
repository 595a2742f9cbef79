#include "engine/table/groups.h"

#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/table/folds.h"

#include <stdlib.h>
#include <string.h>

struct order {
    const uint32_t *labels;
    size_t label_count;
};

static int compare_groups(const void *a, const void *b, void *context) {
    const struct order *order = context;
    const uint32_t *left = order->labels + *(const uint32_t *)a * order->label_count,
                   *right = order->labels + *(const uint32_t *)b * order->label_count;
    for (size_t j = 0; j < order->label_count; j++)
        if (left[j] != right[j])
            return left[j] < right[j] ? -1 : 1;
    return 0;
}

/* Numbers the group of each row in CODES, in order of first appearance, and lists the labels. Returns the
 * number of groups. */
static size_t number_rows(struct groups *groups, const struct table *table, const size_t *by,
                          uint32_t *codes) {
    if (groups->label_count == 0)
        return 1;
    const uint32_t **columns = xcalloc(groups->label_count, sizeof *columns);
    for (size_t j = 0; j < groups->label_count; j++)
        columns[j] = table->categories[by[j]].codes;
    size_t count = folds_units(&(struct folds_columns){.codes = columns, .code_count = groups->label_count},
                               table->rows, codes);
    free(columns);
    groups->labels = xcalloc(count * groups->label_count + 1, sizeof *groups->labels);
    for (size_t row = table->rows; row-- > 0;)
        for (size_t j = 0; j < groups->label_count; j++)
            groups->labels[codes[row] * groups->label_count + j] = table->categories[by[j]].codes[row];
    return count;
}

/* Sorts the groups by their labels. PLACES[g] is where group g went. */
static void sort_groups(struct groups *groups, uint32_t *places) {
    uint32_t *order = xcalloc(groups->count + 1, sizeof *order);
    for (size_t g = 0; g < groups->count; g++)
        order[g] = (uint32_t)g;
    struct order by_labels = {groups->labels, groups->label_count};
    qsort_r(order, groups->count, sizeof *order, compare_groups, &by_labels);
    size_t size = groups->label_count * sizeof *groups->labels;
    uint32_t *sorted = xcalloc(groups->count * groups->label_count + 1, sizeof *sorted);
    for (size_t g = 0; g < groups->count; g++) {
        places[order[g]] = (uint32_t)g;
        if (size > 0)
            memcpy(sorted + g * groups->label_count, groups->labels + order[g] * groups->label_count, size);
    }
    free(groups->labels);
    groups->labels = sorted;
    free(order);
}

/* Divides the rows of TABLE into groups by the categories BY (groups.h). */
void groups_make(struct groups *groups, const struct table *table, const size_t *by, size_t count) {
    *groups = (struct groups){.label_count = count};
    uint32_t *codes = xcalloc(table->rows + 1, sizeof *codes);
    groups->count = number_rows(groups, table, by, codes);
    uint32_t *places = xcalloc(groups->count + 1, sizeof *places);
    sort_groups(groups, places);
    groups->rows = xrealloc_large(NULL, 0, (table->rows + 1) * sizeof *groups->rows);
    groups->first = xcalloc(groups->count + 2, sizeof *groups->first);
    for (size_t row = 0; row < table->rows; row++)
        groups->first[places[codes[row]] + 2]++;
    for (size_t g = 2; g < groups->count + 2; g++)
        groups->first[g] += groups->first[g - 1];
    for (size_t row = 0; row < table->rows;
         row++) /* first[g + 1] grows from where g begins to where it ends */
        groups->rows[groups->first[places[codes[row]] + 1]++] = (uint32_t)row;
    free(places), free(codes);
}

void groups_clear(struct groups *groups) {
    free(groups->rows), free(groups->first), free(groups->labels);
    *groups = (struct groups){0};
}

/* The name of a group, its labels joined by "/"; "all" without labels. The caller frees. */
char *groups_name(const struct groups *groups, const struct table *table, const size_t *by, size_t group) {
    if (groups->label_count == 0)
        return xstrdup("all");
    char *name = NULL;
    for (size_t j = 0; j < groups->label_count; j++) {
        const struct table_category *category = &table->categories[by[j]];
        char *longer = xformat("%s%s%s", name ? name : "", name ? "/" : "",
                               category->levels[groups->labels[group * groups->label_count + j]]);
        free(name);
        name = longer;
    }
    return name;
}
