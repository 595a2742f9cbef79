#include "plugins/numerics/grouped-rows.h"

#include <errno.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

void grouped_rows_init(struct grouped_rows *rows, size_t columns) {
    *rows = (struct grouped_rows){.columns = columns};
}

void grouped_rows_clear(struct grouped_rows *rows) {
    for (size_t c = 0; c < rows->columns; c++)
        free(rows->values[c]);
    free(rows->groups);
    free(rows->left_out);
    free(rows->starts);
    free(rows->numbers);
    *rows = (struct grouped_rows){0};
}

static int grow(struct grouped_rows *rows, size_t needed) {
    if (needed <= rows->capacity)
        return 0;
    if (needed > GROUPED_ROWS_MAX)
        return -EFBIG;
    size_t capacity = rows->capacity ? 2 * rows->capacity : 1024;
    while (capacity < needed)
        capacity *= 2;
    for (size_t c = 0; c < rows->columns; c++) {
        double *values = realloc(rows->values[c], capacity * sizeof *values);
        if (!values)
            return -ENOMEM;
        rows->values[c] = values;
    }
    uint32_t *groups = realloc(rows->groups, capacity * sizeof *groups);
    if (!groups)
        return -ENOMEM;
    rows->groups = groups;
    uint64_t *numbers = rows->numbered ? realloc(rows->numbers, capacity * sizeof *numbers) : NULL;
    if (rows->numbered && !numbers)
        return -ENOMEM;
    rows->numbers = numbers;
    rows->capacity = capacity;
    return 0;
}

static int grow_groups(struct grouped_rows *rows, uint32_t group_count) {
    if (group_count > rows->left_out_capacity) {
        size_t capacity = group_count < 512 ? 1024 : 2 * (size_t)group_count;
        uint64_t *left_out = realloc(rows->left_out, capacity * sizeof *left_out);
        if (!left_out)
            return -ENOMEM;
        memset(left_out + rows->left_out_capacity, 0,
               (capacity - rows->left_out_capacity) * sizeof *left_out);
        rows->left_out = left_out;
        rows->left_out_capacity = capacity;
    }
    if (group_count > rows->group_count)
        rows->group_count = group_count;
    return 0;
}

int grouped_rows_add(struct grouped_rows *rows, size_t count, const double *const *columns,
                     const uint32_t *groups, uint32_t group_count) {
    int r = grow(rows, rows->count + count);
    r = r < 0 ? r : grow_groups(rows, group_count);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++, rows->seen++) {
        bool finite = true;
        for (size_t c = 0; c < rows->columns; c++) {
            rows->values[c][rows->count] = columns[c][i];
            finite = finite && isfinite(columns[c][i]);
        }
        if (!finite) {
            rows->left_out[groups[i]]++;
            continue;
        }
        if (rows->numbered)
            rows->numbers[rows->count] = rows->seen;
        rows->groups[rows->count++] = groups[i];
    }
    return 0;
}

/* After the values, by where the groups now begin. */
static int sort_numbers(struct grouped_rows *rows) {
    uint64_t *sorted = malloc((rows->count + 1) * sizeof *sorted);
    size_t *next = malloc(((size_t)rows->group_count + 1) * sizeof *next);
    bool good = sorted && next;
    if (good) {
        memcpy(next, rows->starts, ((size_t)rows->group_count + 1) * sizeof *next);
        for (size_t i = 0; i < rows->count; i++)
            sorted[next[rows->groups[i]]++] = rows->numbers[i];
        free(rows->numbers);
        rows->numbers = sorted;
    } else {
        free(sorted);
    }
    free(next);
    return good ? 0 : -ENOMEM;
}

int grouped_rows_sort(struct grouped_rows *rows) {
    rows->starts = calloc((size_t)rows->group_count + 2, sizeof *rows->starts);
    double *sorted = malloc((rows->count + 1) * sizeof *sorted);
    if (!rows->starts || !sorted) {
        free(sorted);
        return -ENOMEM;
    }
    size_t *next =
        rows->starts + 1; /* where the next row of a group goes; in the end, where the group ends */
    for (size_t i = 0; i < rows->count; i++)
        next[rows->groups[i] + 1]++;
    for (uint32_t g = 1; g <= rows->group_count; g++)
        next[g] += next[g - 1];
    for (size_t c = 0; c < rows->columns; c++) {
        for (size_t i = 0; i < rows->count; i++)
            sorted[next[rows->groups[i]]++] = rows->values[c][i];
        double *values = rows->values[c];
        rows->values[c] = sorted;
        sorted = values;
        if (c + 1 < rows->columns) { /* back to where the groups begin */
            for (uint32_t g = rows->group_count; g-- > 0;)
                next[g + 1] = next[g];
            next[0] = 0;
        }
    }
    free(sorted);
    return rows->numbered ? sort_numbers(rows) : 0;
}
