/* The rows of one group as fit() sees them: gathered from the table, without those that miss a value. */
#ifndef ASSAY_FIT_ROWS_H
#define ASSAY_FIT_ROWS_H

#include "engine/model/formula.h"
#include "engine/table/folds.h"
#include "engine/table/table.h"

#include <assay/fit.h>

/* Where the values of a row come from, for all groups. Indices are into table->numbers and table->categories.
 */
struct rows_layout {
    const struct table *table;
    size_t response, weights; /* weights SIZE_MAX: none */
    double response_scale;    /* to the unit that the plugin takes */
    const size_t *columns;    /* of the plugin's parameters */
    const double *column_scales;
    size_t column_count;
    const size_t *categories; /* likewise */
    size_t category_count;
    const size_t *factors, *factor_categories; /* of the formula */
    size_t factor_count, factor_category_count;
    const size_t *fold_categories; /* by which rows are left out together */
    size_t fold_category_count;
    const struct model_term *terms; /* written out */
    size_t term_count;
};

/* The rows of a group, in arrays that are reused for the next group; or a window on the arrays of other
 * rows. */
struct rows {
    struct fit_rows view; /* what fit() gets */
    size_t capacity;
    double *numbers; /* response, weights, terms, columns, factors: one array of `capacity` after the other */
    uint32_t *codes; /* categories, those of the formula, those of the folds, settings: likewise */
    uint64_t *places;
    bool is_window; /* numbers, codes and places are those of other rows */
    const double **terms, **columns;
    const uint32_t **categories;
    struct formula_column
        *factors; /* of the formula: numbers, then categories; then those of the parameters */
    size_t factor_count, named_count;
    const double **setting_numbers; /* what makes a setting: columns and factors */
    const uint32_t **setting_codes;
    struct folds_columns setting, fold_columns;
    uint64_t missing;    /* rows of the group that were left out: a value is missing or not finite */
    uint64_t weightless; /* likewise: their weight is 0 */
};

/* Copies the rows NUMBERS of the table that have all values. -EINVAL: a weight is below 0. ROWS is zeroed
 * memory or was used before. */
int rows_gather(struct rows *rows, const struct rows_layout *layout, const uint32_t *numbers, size_t count,
                struct failure *failure);
/* Copies the rows of FROM fold by fold, and after them all but the last fold once more: so the rows
 * outside of any fold are contiguous, too. FIRST (fold_count + 1) is where each fold begins, ORDER the row
 * of FROM that each row is, without the repeated ones. */
void rows_arrange(struct rows *rows, const struct rows_layout *layout, const struct rows *from,
                  const uint8_t *folds, size_t fold_count, size_t *first, uint32_t *order);
/* Makes ROWS a window on COUNT rows of FROM, from BEGIN on, which must outlive it. */
void rows_window(struct rows *rows, const struct rows_layout *layout, const struct rows *from, size_t begin,
                 size_t count);
/* The column called NAME, of the formula or of the parameters; NULL: there is none. */
const struct formula_column *rows_find(const struct rows *rows, const char *name);
void rows_clear(struct rows *rows);

#endif
