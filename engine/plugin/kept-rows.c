#include "engine/plugin/kept-rows.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* All the room at once: what is not written to costs no memory. */
static bool make_room(struct kept_rows *kept) {
    for (size_t i = 0; i < kept->column_count; i++)
        if (!(kept->columns[i] = malloc(kept->limit * sizeof(double))))
            return false;
    for (size_t j = 0; j < kept->label_count; j++)
        if (!(kept->labels[j] = malloc(kept->limit * sizeof(uint32_t))))
            return false;
    kept->groups = malloc(kept->limit * sizeof(uint32_t));
    return kept->groups != NULL;
}

int kept_rows_init(struct kept_rows *kept, size_t column_count, size_t label_count, size_t limit) {
    *kept = (struct kept_rows){.limit = limit, .stride = 1};
    kept->columns = calloc(column_count + 1, sizeof *kept->columns);
    kept->labels = calloc(label_count + 1, sizeof *kept->labels);
    kept->column_count = kept->columns ? column_count : 0;
    kept->label_count = kept->labels ? label_count : 0;
    if (kept->columns && kept->labels && make_room(kept))
        return 0;
    kept_rows_clear(kept);
    return -ENOMEM;
}

/* Every second row goes. */
static void thin(struct kept_rows *kept) {
    kept->count /= 2;
    kept->stride *= 2;
    for (size_t i = 0; i < kept->column_count; i++)
        for (size_t row = 0; row < kept->count; row++)
            kept->columns[i][row] = kept->columns[i][2 * row];
    for (size_t j = 0; j < kept->label_count; j++)
        for (size_t row = 0; row < kept->count; row++)
            kept->labels[j][row] = kept->labels[j][2 * row];
    for (size_t row = 0; row < kept->count; row++)
        kept->groups[row] = kept->groups[2 * row];
}

static void copy_codes(uint32_t *to, const uint32_t *from, size_t count, size_t stride) {
    if (stride == 1) {
        memcpy(to, from, count * sizeof *to);
        return;
    }
    for (size_t i = 0; i < count; i++)
        to[i] = from[i * stride];
}

static void copy_numbers(double *to, const double *from, size_t count, size_t stride) {
    if (stride == 1) {
        memcpy(to, from, count * sizeof *to);
        return;
    }
    for (size_t i = 0; i < count; i++)
        to[i] = from[i * stride];
}

void kept_rows_add(struct kept_rows *kept, size_t rows, const double *const *columns,
                   const uint32_t *const *labels, const uint32_t *groups) {
    for (size_t done = 0; done < rows;) {
        /* How far it is to the next row that is kept. */
        size_t skip = (size_t)((kept->stride - kept->rows % kept->stride) % kept->stride);
        if (skip >= rows - done) {
            kept->rows += rows - done;
            return;
        }
        done += skip;
        kept->rows += skip;
        if (kept->count == kept->limit) {
            thin(kept);
            continue;
        }
        size_t stride = (size_t)kept->stride, count = (rows - done + stride - 1) / stride;
        if (count > kept->limit - kept->count)
            count = kept->limit - kept->count;
        for (size_t i = 0; i < kept->column_count; i++)
            copy_numbers(kept->columns[i] + kept->count, columns[i] + done, count, stride);
        for (size_t j = 0; j < kept->label_count; j++)
            copy_codes(kept->labels[j] + kept->count, labels[j] + done, count, stride);
        copy_codes(kept->groups + kept->count, groups + done, count, stride);
        kept->count += count;
        size_t taken = count * stride < rows - done ? count * stride : rows - done;
        done += taken;
        kept->rows += taken;
    }
}

int kept_rows_group(const struct kept_rows *kept, size_t by_count, struct grouping **ret,
                    const uint32_t **ret_codes, struct failure *failure) {
    cleanup(grouping_cleanup) struct grouping *grouping = NULL;
    int r = grouping_new(by_count, &grouping, failure);
    r = r < 0 ? r
              : grouping_assign(grouping, kept->count, (const uint32_t *const *)kept->labels, ret_codes,
                                failure);
    if (r >= 0)
        *ret = take_pointer(grouping);
    return r;
}

void kept_rows_clear(struct kept_rows *kept) {
    for (size_t i = 0; i < kept->column_count; i++)
        free(kept->columns[i]);
    for (size_t j = 0; j < kept->label_count; j++)
        free(kept->labels[j]);
    free(kept->columns);
    free(kept->labels);
    free(kept->groups);
    *kept = (struct kept_rows){0};
}
