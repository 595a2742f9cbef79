#include "engine/design/generate.h"

#include "engine/design/design.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/portable-math.h"

#include <math.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>

/* Adds a column for each of the levels; codes of texts are their indices in the list. */
static int add_columns(struct design *design, const struct levels *levels, size_t count,
                       struct failure *failure) {
    for (size_t i = 0; i < count; i++) {
        struct design_column *column = NULL;
        int r = design_add_column(design, levels[i].name, levels[i].type, &column, failure);
        if (r < 0)
            return r;
        for (size_t j = 0; levels[i].type == COLUMN_STRING && j < levels[i].count; j++)
            text_set_add(&column->labels, levels[i].texts[j], strlen(levels[i].texts[j]));
    }
    return 0;
}

/* Begins a design of ROWS rows with a column for each of the levels. The caller frees *RET on failure too. */
static int begin_design(const struct levels *levels, size_t count, size_t rows, struct design **ret,
                        struct failure *failure) {
    int r = design_new(rows, ret, failure);
    return r < 0 ? r : add_columns(*ret, levels, count, failure);
}

static void put_number(struct design_column *column, size_t row, double value) {
    if (column->about.type == COLUMN_INTEGER)
        column->integers[row] = (int64_t)value;
    else
        column->numbers[row] = value;
}

static void put_level(struct design_column *column, size_t row, const struct levels *levels, uint64_t index) {
    if (column->about.type == COLUMN_STRING)
        column->codes[row] = (uint32_t)index;
    else
        put_number(column, row, levels_number(levels, index));
}

/* ---- Full factorial */

/* The number of combinations into *RET. -EINVAL: times FACTOR, they are more than a design may have. WHAT is
 * the design's word in the message. */
static int count_combinations(const struct levels *levels, size_t count, const char *what, uint64_t factor,
                              uint64_t *ret, struct failure *failure) {
    uint64_t rows = 1;
    for (size_t i = 0; i < count; i++) {
        uint64_t each = levels_count(&levels[i]);
        if (each == 0)
            return levels_failure(&levels[i], failure,
                                  "the range of '%s' has no step, so that its values are not countable; "
                                  "expected a step or a list",
                                  levels[i].name);
        if (each > DESIGN_ROWS_MAX / factor / rows)
            return levels_failure(&levels[i], failure,
                                  "with the factor '%s' the %s has more than %d rows, the most accepted; "
                                  "give fewer values",
                                  levels[i].name, what, DESIGN_ROWS_MAX);
        rows *= each;
    }
    *ret = rows;
    return 0;
}

/* Fills the last COUNT columns with every combination, repeated as often as there are rows for. */
static void put_combinations(struct design *design, const struct levels *levels, size_t count) {
    struct design_column *columns = design->columns + (design->column_count - count);
    uint64_t repeat = 1; /* rows in which the factor keeps its level */
    for (size_t i = count; i-- > 0;) {
        uint64_t each = levels_count(&levels[i]);
        for (size_t row = 0; row < design->row_count; row++)
            put_level(&columns[i], row, &levels[i], row / repeat % each);
        repeat *= each;
    }
}

/* Adds a copy of COLUMN with each value TIMES times. */
static int repeat_column(const struct design_column *column, size_t times, struct design *design,
                         struct failure *failure) {
    struct design_column *copy = NULL;
    int r = design_add_column(design, column->about.name, column->about.type, &copy, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < column->labels.count; i++) /* in the same order, so that codes stay valid */
        text_set_add(&copy->labels, column->labels.texts[i], strlen(column->labels.texts[i]));
    size_t size = column->about.type == COLUMN_STRING ? sizeof *column->codes : sizeof *column->integers;
    for (size_t row = 0; row < design->row_count; row++)
        memcpy((char *)copy->items + row * size, (const char *)column->items + row / times * size, size);
    return 0;
}

/* Crosses each row of TABLE with all combinations of the levels. */
static int cross_table(const struct design *table, const char *what, const struct levels *levels,
                       size_t count, struct design **ret, struct failure *failure) {
    cleanup(design_cleanup) struct design *design = NULL;
    uint64_t times = 0;
    int r = count_combinations(levels, count, what, table->row_count, &times, failure);
    r = r < 0 ? r : design_new(table->row_count * (size_t)times, &design, failure);
    if (r < 0)
        return r;
    design->line = table->line;
    design->column = table->column;
    design->file = table->file ? xstrdup(table->file) : NULL;
    design->lines = table->lines ? xcalloc(design->row_count, sizeof *design->lines) : NULL;
    for (size_t row = 0; table->lines && row < design->row_count; row++)
        design->lines[row] = table->lines[row / times];
    for (size_t i = 0; r == 0 && i < table->column_count; i++)
        r = repeat_column(&table->columns[i], (size_t)times, design, failure);
    r = r < 0 ? r : add_columns(design, levels, count, failure);
    if (r < 0)
        return r;
    put_combinations(design, levels, count);
    *ret = take_pointer(design);
    return 0;
}

int design_generate_factorial(const struct levels *levels, size_t count, struct design **ret,
                              struct failure *failure) {
    cleanup(design_cleanup) struct design *one = NULL;
    int r = design_new(1, &one, failure);
    return r < 0 ? r : cross_table(one, "full factorial", levels, count, ret, failure);
}

int design_generate_crossed(const struct design *table, const struct levels *levels, size_t count,
                            struct design **ret, struct failure *failure) {
    return cross_table(table, "crossed design", levels, count, ret, failure);
}

/* ---- Independent rows */

/* How the values of a factor are drawn; prepared once, for millions of rows. */
struct draw {
    const struct levels *levels;
    struct design_column *column;
    uint64_t count;   /* each as likely; 0: not counted */
    double from, to;  /* of a uniform number */
    bool logarithmic; /* the value is the exponential of that number */
};

/* Draws the value of a factor in ROW. */
static void draw_row(const struct draw *draw, size_t row, struct random_source *source) {
    const struct levels *levels = draw->levels;
    if (draw->count) {
        put_level(draw->column, row, levels, random_below(source, draw->count));
        return;
    }
    double value = draw->from + random_fraction(source) * (draw->to - draw->from);
    if (draw->logarithmic)
        value = portable_exp(value);
    if (levels->type == COLUMN_INTEGER)
        value = floor(value);
    /* A rounding error must not leave the range. */
    put_number(draw->column, row,
               value < levels->low    ? levels->low
               : value > levels->high ? levels->high
                                      : value);
}

/* Draws all rows independently. */
static int draw_rows(const struct levels *levels, struct draw *draws, size_t count, size_t rows,
                     struct random_source *source, struct design **ret, struct failure *failure) {
    cleanup(design_cleanup) struct design *design = NULL;
    int r = begin_design(levels, count, rows, &design, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < count; i++)
        draws[i].column = &design->columns[i];
    for (size_t row = 0; row < rows; row++)
        for (size_t i = 0; i < count; i++)
            draw_row(&draws[i], row, source);
    *ret = take_pointer(design);
    return 0;
}

int design_generate_uniform(const struct levels *levels, size_t count, size_t rows,
                            struct random_source *source, struct design **ret, struct failure *failure) {
    cleanup_free struct draw *draws = xcalloc(count + 1, sizeof *draws);
    for (size_t i = 0; i < count; i++)
        draws[i] = (struct draw){.levels = &levels[i],
                                 .count = levels_count(&levels[i]),
                                 .from = levels[i].low,
                                 .to = levels[i].high};
    return draw_rows(levels, draws, count, rows, source, ret, failure);
}

/* Draws rows whose logarithms are uniform. -EINVAL: a range has a step or values of 0 or less. */
int design_generate_log_uniform(const struct levels *levels, size_t count, size_t rows,
                                struct random_source *source, struct design **ret, struct failure *failure) {
    cleanup_free struct draw *draws = xcalloc(count + 1, sizeof *draws);
    for (size_t i = 0; i < count; i++) {
        const struct levels *one = &levels[i];
        draws[i] = (struct draw){.levels = one, .count = one->count};
        if (!one->is_range)
            continue;
        if (one->low <= 0)
            return levels_failure(one, failure,
                                  "the range of '%s' does not begin above 0; log-uniform needs a range "
                                  "above 0",
                                  one->name);
        if (one->step > 0)
            return levels_failure(one, failure,
                                  "the range of '%s' has a step, but log-uniform accepts none; remove it",
                                  one->name);
        draws[i].logarithmic = true;
        draws[i].from = portable_log(one->low);
        draws[i].to = portable_log(one->type == COLUMN_INTEGER ? one->high + 1 : one->high);
    }
    return draw_rows(levels, draws, count, rows, source, ret, failure);
}

/* ---- Latin hypercube */

/* Fills a column with a random value in each stratum of the factor's range. */
static void fill_strata(struct design_column *column, const struct levels *levels, const uint32_t *strata,
                        size_t rows, struct random_source *source) {
    uint64_t count = levels_count(levels);
    for (size_t row = 0; row < rows; row++) {
        double place = ((double)strata[row] + random_fraction(source)) / (double)rows;
        if (count) {
            uint64_t index = (uint64_t)(place * (double)count);
            put_level(column, row, levels, index < count ? index : count - 1);
        } else {
            double value = levels->low + place * (levels->high - levels->low);
            put_number(column, row, value < levels->high ? value : levels->high);
        }
    }
}

/* Draws a Latin hypercube (M. McKay, R. Beckman, W. Conover 1979): each factor has one value in each of ROWS
 * equal parts of its range. */
int design_generate_latin_hypercube(const struct levels *levels, size_t count, size_t rows,
                                    struct random_source *source, struct design **ret,
                                    struct failure *failure) {
    cleanup(design_cleanup) struct design *design = NULL;
    int r = begin_design(levels, count, rows, &design, failure);
    if (r < 0)
        return r;
    cleanup_free uint32_t *strata = xcalloc(rows, sizeof *strata);
    for (size_t i = 0; i < count; i++) {
        for (size_t row = 0; row < rows; row++)
            strata[row] = (uint32_t)row;
        random_shuffle(source, strata, rows);
        fill_strata(&design->columns[i], &levels[i], strata, rows, source);
    }
    *ret = take_pointer(design);
    return 0;
}
