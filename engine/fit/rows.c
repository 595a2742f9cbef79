#include "engine/fit/rows.h"

#include "engine/foundation/memory.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Values per cache line: the capacity of each array is a multiple of it. */
enum { ALIGNED = 8 };

static size_t array_count(const struct rows_layout *layout) {
    return 2 + layout->term_count + layout->column_count + layout->factor_count;
}

static size_t code_count(const struct rows_layout *layout) {
    return layout->category_count + layout->factor_category_count + layout->fold_category_count;
}

/* The index, in the table, of the category that array C of codes holds. */
static size_t category_of(const struct rows_layout *layout, size_t c) {
    size_t of_factors = layout->category_count, of_folds = of_factors + layout->factor_category_count;
    return c < of_factors ? layout->categories[c]
           : c < of_folds ? layout->factor_categories[c - of_factors]
                          : layout->fold_categories[c - of_folds];
}

static double *array(struct rows *rows, size_t i) {
    return rows->numbers + i * rows->capacity;
}

static struct formula_column name_numbers(struct rows *rows, const struct rows_layout *layout, size_t number,
                                          size_t i) {
    return (struct formula_column){.name = layout->table->numbers[number].name, .numbers = array(rows, i)};
}

static struct formula_column name_codes(struct rows *rows, const struct rows_layout *layout, size_t i) {
    const struct table_category *category = &layout->table->categories[category_of(layout, i)];
    return (struct formula_column){.name = category->name,
                                   .codes = rows->codes + i * rows->capacity,
                                   .texts = (const char *const *)category->levels,
                                   .text_count = category->level_count};
}

/* Lists the columns by name in rows->factors: the formula's first, as formula_values() reads them, then those
 * of the parameters. */
static void name_columns(struct rows *rows, const struct rows_layout *layout) {
    size_t columns = 2 + layout->term_count, factors = columns + layout->column_count, count = 0;
    struct formula_column *named = rows->factors;
    for (size_t i = 0; i < layout->factor_count; i++)
        named[count++] = name_numbers(rows, layout, layout->factors[i], factors + i);
    for (size_t i = 0; i < layout->factor_category_count; i++)
        named[count++] = name_codes(rows, layout, layout->category_count + i);
    rows->factor_count = count;
    for (size_t i = 0; i < layout->column_count; i++)
        named[count++] = name_numbers(rows, layout, layout->columns[i], columns + i);
    for (size_t i = 0; i < layout->category_count; i++)
        named[count++] = name_codes(rows, layout, i);
    rows->named_count = count;
}

/* Lists the arrays whose values define a setting, and those that define a fold, for folds_units(). */
static void name_settings(struct rows *rows, const struct rows_layout *layout) {
    size_t numbers = layout->column_count + layout->factor_count, codes = code_count(layout);
    for (size_t i = 0; i < numbers; i++)
        rows->setting_numbers[i] = array(rows, 2 + layout->term_count + i);
    for (size_t i = 0; i < codes; i++)
        rows->setting_codes[i] = rows->codes + i * rows->capacity;
    size_t of_setting = codes - layout->fold_category_count;
    rows->setting = (struct folds_columns){.numbers = rows->setting_numbers,
                                           .number_count = numbers,
                                           .codes = rows->setting_codes,
                                           .code_count = of_setting};
    rows->fold_columns = (struct folds_columns){.codes = rows->setting_codes + of_setting,
                                                .code_count = layout->fold_category_count};
}

/* Allocates the lists of pointers to the arrays of ROWS. */
static void make_lists(struct rows *rows, const struct rows_layout *layout) {
    size_t numbers = layout->column_count + layout->factor_count, codes = code_count(layout);
    rows->terms = xcalloc(layout->term_count + 1, sizeof *rows->terms);
    rows->columns = xcalloc(layout->column_count + 1, sizeof *rows->columns);
    rows->categories = xcalloc(layout->category_count + 1, sizeof *rows->categories);
    rows->factors = xcalloc(numbers + codes + 1, sizeof *rows->factors);
    rows->setting_numbers = xcalloc(numbers + 1, sizeof *rows->setting_numbers);
    rows->setting_codes = xcalloc(codes + 1, sizeof *rows->setting_codes);
}

/* Points all lists and the plugin's view to the arrays of ROWS, whose capacity changed. */
static void point_lists(struct rows *rows, const struct rows_layout *layout) {
    if (!rows->terms)
        make_lists(rows, layout);
    for (size_t t = 0; t < layout->term_count; t++)
        rows->terms[t] = array(rows, 2 + t);
    for (size_t c = 0; c < layout->column_count; c++)
        rows->columns[c] = array(rows, 2 + layout->term_count + c);
    for (size_t c = 0; c < layout->category_count; c++)
        rows->categories[c] = rows->codes + c * rows->capacity;
    rows->view = (struct fit_rows){
        .size = sizeof rows->view,
        .response = rows->numbers,
        .weights = layout->weights == SIZE_MAX ? NULL : array(rows, 1),
        .terms = rows->terms,
        .term_stride = rows->capacity,
        .columns = rows->columns,
        .categories = rows->categories,
        .numbers = rows->places,
        .settings = rows->codes + code_count(layout) * rows->capacity,
    };
    name_columns(rows, layout);
    name_settings(rows, layout);
}

/* Makes room for COUNT rows; earlier contents are lost. */
static void make_room(struct rows *rows, const struct rows_layout *layout, size_t count) {
    if (count <= rows->capacity && rows->terms)
        return;
    rows_clear(rows);
    rows->capacity = (count + count / 8 + ALIGNED) / ALIGNED * ALIGNED;
    rows->numbers = xmalloc(array_count(layout) * rows->capacity * sizeof *rows->numbers);
    rows->codes = xmalloc((code_count(layout) + 1) * rows->capacity * sizeof *rows->codes);
    rows->places = xmalloc(rows->capacity * sizeof *rows->places);
    point_lists(rows, layout);
}

static void gather(double *to, const double *from, double scale, const uint32_t *numbers, size_t count) {
    for (size_t i = 0; i < count; i++)
        to[i] = from[numbers[i]] * scale;
}

/* Copies the rows NUMBERS of the table into the arrays of ROWS, scaled to the plugin's units, and computes
 * the terms. */
static void gather_all(struct rows *rows, const struct rows_layout *layout, const uint32_t *numbers,
                       size_t count) {
    const struct table *table = layout->table;
    gather(array(rows, 0), table->numbers[layout->response].values, layout->response_scale, numbers, count);
    if (layout->weights != SIZE_MAX)
        gather(array(rows, 1), table->numbers[layout->weights].values, 1, numbers, count);
    size_t at = 2 + layout->term_count;
    for (size_t c = 0; c < layout->column_count; c++)
        gather(array(rows, at++), table->numbers[layout->columns[c]].values, layout->column_scales[c],
               numbers, count);
    for (size_t f = 0; f < layout->factor_count; f++)
        gather(array(rows, at++), table->numbers[layout->factors[f]].values, 1, numbers, count);
    for (size_t c = 0; c < code_count(layout); c++) {
        for (size_t i = 0; i < count; i++)
            rows->codes[c * rows->capacity + i] = table->categories[category_of(layout, c)].codes[numbers[i]];
    }
    const char *missing;
    for (size_t t = 0; t < layout->term_count; t++)
        (void)formula_values(&layout->terms[t], rows->factors,
                             layout->factor_count + layout->factor_category_count, count, array(rows, 2 + t),
                             &missing); /* all columns are there */
    for (size_t i = 0; i < count; i++)
        rows->places[i] = numbers[i];
}

static void move_row(struct rows *rows, const struct rows_layout *layout, size_t from, size_t to) {
    for (size_t a = 0; a < array_count(layout); a++)
        array(rows, a)[to] = array(rows, a)[from];
    for (size_t c = 0; c < code_count(layout); c++)
        rows->codes[c * rows->capacity + to] = rows->codes[c * rows->capacity + from];
    rows->places[to] = rows->places[from];
}

/* Whether no value of the first COUNT rows is missing or infinite. */
static bool is_all_finite(struct rows *rows, const struct rows_layout *layout, size_t count) {
    enum { LANES = 8 }; /* beside each other, so that the compiler uses vectors */
    for (size_t a = 0; a < array_count(layout); a++) {
        const double *values = array(rows, a);
        double sums[LANES] = {0}; /* of zeros, unless a value is missing or infinite */
        size_t i = 0;
        if (a == 1 && layout->weights == SIZE_MAX)
            continue;
        for (; i + LANES <= count; i += LANES)
            for (size_t l = 0; l < LANES; l++)
                sums[l] += values[i + l] * 0;
        for (; i < count; i++)
            sums[0] += values[i] * 0;
        for (size_t l = 0; l < LANES; l++)
            if (sums[l] != 0)
                return false;
    }
    return true;
}

static bool is_finite_row(struct rows *rows, const struct rows_layout *layout, size_t i) {
    for (size_t a = 0; a < array_count(layout); a++)
        if (!(a == 1 && layout->weights == SIZE_MAX) && !isfinite(array(rows, a)[i]))
            return false;
    return true;
}

/* Removes rows with a missing or infinite value, or of weight 0; *COUNT becomes the number of rows that
 * remain. -EINVAL with the place: a weight is below 0. */
static int drop_rows(struct rows *rows, const struct rows_layout *layout, size_t *count,
                     struct failure *failure) {
    bool is_weighted = layout->weights != SIZE_MAX;
    size_t kept = 0;
    rows->missing = rows->weightless = 0;
    if (!is_weighted && is_all_finite(rows, layout, *count))
        return 0;
    for (size_t i = 0; i < *count; i++) {
        if (!is_finite_row(rows, layout, i)) {
            rows->missing++;
            continue;
        }
        double weight = is_weighted ? array(rows, 1)[i] : 1;
        const struct table_input *input;
        uint64_t line;
        if (weight < 0 && table_place(layout->table, rows->places[i], &input, &line))
            return failure_input(failure, input->path, (size_t)line, 0,
                                 "the weight is %g; expected 0 or more", weight);
        if (weight < 0)
            return failure_input(failure, NULL, 0, 0, "a weight is %g; expected 0 or more", weight);
        if (weight == 0)
            rows->weightless++;
        else if (kept++ != i)
            move_row(rows, layout, i, kept - 1);
    }
    *count = kept;
    return 0;
}

int rows_gather(struct rows *rows, const struct rows_layout *layout, const uint32_t *numbers, size_t count,
                struct failure *failure) {
    make_room(rows, layout, count);
    gather_all(rows, layout, numbers, count);
    int r = drop_rows(rows, layout, &count, failure);
    rows->view.count = count;
    rows->view.setting_count =
        folds_units(&rows->setting, count, rows->codes + code_count(layout) * rows->capacity);
    return r;
}

/* Sorts rows by fold: FIRST[f] is where fold f begins, ORDER the row at each place. Returns the room needed
 * by rows_arrange(): all rows, and all but the last fold again. */
static size_t order_rows(const uint8_t *folds, size_t count, size_t fold_count, size_t *first,
                         uint32_t *order) {
    memset(first, 0, (fold_count + 1) * sizeof *first);
    for (size_t i = 0; i < count; i++)
        first[folds[i] + 1]++;
    size_t last = first[fold_count];
    for (size_t f = 0; f < fold_count; f++)
        first[f + 1] += first[f];
    for (size_t i = 0; i < count; i++)
        order[first[folds[i]]++] = (uint32_t)i;
    memmove(first + 1, first, fold_count * sizeof *first); /* each was moved on to where the next begins */
    first[0] = 0;
    return 2 * count - last;
}

/* Copies FROM fold by fold, and all but the last fold once more (rows.h): the rows outside of any fold are
 * then contiguous. */
void rows_arrange(struct rows *rows, const struct rows_layout *layout, const struct rows *from,
                  const uint8_t *folds, size_t fold_count, size_t *first, uint32_t *order) {
    size_t count = from->view.count, all = order_rows(folds, count, fold_count, first, order);
    make_room(rows, layout, all);
    for (size_t a = 0; a < array_count(layout); a++) {
        if (a == 1 && layout->weights == SIZE_MAX)
            continue;
        double *to = array(rows, a);
        const double *source = from->numbers + a * from->capacity;
        for (size_t k = 0; k < count; k++)
            to[k] = source[order[k]];
        memcpy(to + count, to, (all - count) * sizeof *to);
    }
    for (size_t c = 0; c < code_count(layout) + 1; c++) {
        uint32_t *to = rows->codes + c * rows->capacity;
        for (size_t k = 0; k < count; k++)
            to[k] = from->codes[c * from->capacity + order[k]];
        memcpy(to + count, to, (all - count) * sizeof *to);
    }
    for (size_t k = 0; k < count; k++)
        rows->places[k] = from->places[order[k]];
    memcpy(rows->places + count, rows->places, (all - count) * sizeof *rows->places);
    rows->view.count = count;
    rows->view.setting_count = from->view.setting_count;
}

void rows_window(struct rows *rows, const struct rows_layout *layout, const struct rows *from, size_t begin,
                 size_t count) {
    rows->is_window = true;
    rows->capacity = from->capacity;
    rows->numbers = from->numbers + begin;
    rows->codes = from->codes + begin;
    rows->places = from->places + begin;
    point_lists(rows, layout);
    rows->view.count = count;
    rows->view.setting_count = from->view.setting_count;
}

const struct formula_column *rows_find(const struct rows *rows, const char *name) {
    for (size_t i = 0; i < rows->named_count; i++)
        if (strcmp(rows->factors[i].name, name) == 0)
            return &rows->factors[i];
    return NULL;
}

void rows_clear(struct rows *rows) {
    if (!rows->is_window)
        free(rows->numbers), free(rows->codes), free(rows->places);
    free(rows->terms), free(rows->columns), free(rows->categories), free(rows->factors);
    free(rows->setting_numbers), free(rows->setting_codes);
    *rows = (struct rows){0};
}
