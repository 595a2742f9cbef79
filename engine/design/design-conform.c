/* A design against an experiment: its factors, its conditions, its maxima. */
#include "engine/design/design.h"
#include "engine/foundation/cleanup.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void free_expression(struct expression **expression) {
    expression_free(*expression);
}

/* ---- Types */

static int refuse_value(const struct design *design, size_t row, const struct design_factor *factor,
                        const char *value, struct failure *failure) {
    char expectation[DESIGN_EXPECTATION_SIZE];
    return design_failure(design, row, failure, "'%s' is %.64s, expected %s", factor->name, value,
                          design_factor_expectation(factor, expectation));
}

/* Every value of column I must be one of FACTOR's; a column of integers or numbers becomes what the factor
 * is. */
static int adopt_column(struct design *design, size_t i, const struct design_factor *factor,
                        struct failure *failure) {
    struct design_column *column = &design->columns[i];
    bool is_text = column->type == DESIGN_TEXT;
    for (size_t row = 0; row < design->row_count; row++) {
        char buffer[NUMBER_TEXT_SIZE];
        const char *value = is_text ? column->labels.items[column->codes[row]] : NULL;
        bool good = is_text != (factor->type == DESIGN_TEXT) ? false
                    : is_text ? design_factor_admits_text(factor, value, strlen(value))
                              : design_factor_admits(factor, design_number(design, row, i));
        if (!good)
            return refuse_value(design, row, factor, design_value(design, row, i, buffer), failure);
    }
    if (column->type == factor->type)
        return 0;
    /* Both kinds of number take eight bytes: converted where they stand. */
    for (size_t row = 0; row < design->row_count; row++) {
        if (factor->type == DESIGN_INTEGER)
            column->integers[row] = (int64_t)column->numbers[row];
        else
            column->numbers[row] = (double)column->integers[row];
    }
    column->type = factor->type;
    return 0;
}

/* ---- Defaults */

/* The factors that the design does not have, and the expressions of their defaults. */
struct missing {
    struct design *design;
    const struct design_factors *factors;
    size_t *columns;                 /* by factor: its column, or SIZE_MAX while it has none */
    struct expression **expressions; /* by factor; NULL where there is a column, or the default is a text */
    size_t left;
};

static void missing_clear(struct missing *missing) {
    for (size_t i = 0; missing->expressions && i < missing->factors->count; i++)
        expression_free(missing->expressions[i]);
    free(missing->expressions);
    free(missing->columns);
}

/* The place of a default: the experiment's file, when it says where. */
static int refuse_default(const struct missing *missing, size_t i, struct failure *failure,
                          const char *sentence) {
    const struct design_factor *factor = &missing->factors->items[i];
    return failure_input(failure, missing->factors->file, factor->default_line, factor->default_column, "%s",
                         sentence);
}

static int parse_default(struct missing *missing, size_t i, const char *const *names,
                         struct failure *failure) {
    const struct design_factors *factors = missing->factors;
    const struct design_factor *factor = &factors->items[i];
    int r = expression_parse(factor->default_text, names, factors->count, factors->file, factor->default_line,
                             factor->default_column, &missing->expressions[i], failure);
    if (r < 0)
        return failure_prefix(failure, "the default of '%s'", factor->name);
    for (size_t j = 0; j < factors->count; j++)
        if (factors->items[j].type == DESIGN_TEXT && expression_uses(missing->expressions[i], j))
            return expression_failure(missing->expressions[i], failure,
                                      "the default of '%s' uses '%s', which is a text", factor->name,
                                      factors->items[j].name);
    return 0;
}

static int add_default_text(struct missing *missing, size_t i, struct failure *failure) {
    const struct design_factor *factor = &missing->factors->items[i];
    const char *text = factor->default_text;
    if (!design_factor_admits_text(factor, text, strlen(text))) {
        char expectation[DESIGN_EXPECTATION_SIZE], sentence[FAILURE_TEXT_SIZE];
        snprintf(sentence, sizeof sentence, "the default of '%s' is '%.64s', expected %s", factor->name, text,
                 design_factor_expectation(factor, expectation));
        return refuse_default(missing, i, failure, sentence);
    }
    struct design_column *column;
    int r = design_add_column(missing->design, factor->name, DESIGN_TEXT, &column, failure);
    if (r < 0)
        return r;
    missing->columns[i] = missing->design->column_count - 1;
    uint32_t code; /* 0, which the new column is full of */
    return labels_code(&column->labels, text, strlen(text), &code) < 0 ? failure_memory(failure) : 0;
}

/* Finds what is missing; adds the defaults that are texts, and parses the others. */
static int find_missing(struct missing *missing, struct failure *failure) {
    const struct design_factors *factors = missing->factors;
    cleanup_free const char **names = calloc(factors->count + 1, sizeof *names);
    if (!names)
        return failure_memory(failure);
    for (size_t i = 0; i < factors->count; i++)
        names[i] = factors->items[i].name;
    int r = 0;
    for (size_t i = 0; r == 0 && i < factors->count; i++) {
        const struct design_factor *factor = &factors->items[i];
        missing->columns[i] = design_find(missing->design, factor->name);
        if (missing->columns[i] != SIZE_MAX)
            continue;
        if (!factor->default_text) {
            const struct design *design = missing->design;
            return failure_input(failure, design->file, design->lines ? 1 : design->line, design->column,
                                 "no column '%s', expected one, since this factor has no default",
                                 factor->name);
        }
        r = factor->type == DESIGN_TEXT ? add_default_text(missing, i, failure)
                                        : parse_default(missing, i, names, failure);
        missing->left += factor->type != DESIGN_TEXT;
    }
    return r;
}

/* Whether all that the default of factor I needs is there. */
static bool is_ready(const struct missing *missing, size_t i) {
    for (size_t j = 0; j < missing->factors->count; j++)
        if (missing->columns[j] == SIZE_MAX && expression_uses(missing->expressions[i], j))
            return false;
    return true;
}

static int add_default_numbers(struct missing *missing, size_t i, struct failure *failure) {
    const struct design_factors *factors = missing->factors;
    const struct design_factor *factor = &factors->items[i];
    struct design *design = missing->design;
    const struct expression *expression = missing->expressions[i];
    cleanup_free double *values = calloc(factors->count + 1, sizeof *values);
    struct design_column *column;
    int r = values ? design_add_column(design, factor->name, factor->type, &column, failure)
                   : failure_memory(failure);
    if (r < 0)
        return r;
    missing->columns[i] = design->column_count - 1;
    for (size_t row = 0; row < design->row_count; row++) {
        for (size_t j = 0; j < factors->count; j++)
            values[j] =
                missing->columns[j] == SIZE_MAX ? NAN : design_number(design, row, missing->columns[j]);
        double value = expression_value(expression, values);
        if (!design_factor_admits(factor, value)) {
            char text[NUMBER_TEXT_SIZE], expectation[DESIGN_EXPECTATION_SIZE];
            number_format_double(value, text);
            return design_failure(
                design, row, failure, "the default of '%s', %.128s, is %s here, expected %s", factor->name,
                expression_text(expression), text, design_factor_expectation(factor, expectation));
        }
        if (factor->type == DESIGN_INTEGER)
            column->integers[row] = (int64_t)value;
        else
            column->numbers[row] = value;
    }
    return 0;
}

/* Each round adds what is ready; a round that adds nothing has found a circle. */
static int add_defaults(struct missing *missing, struct failure *failure) {
    while (missing->left > 0) {
        size_t before = missing->left, waiting = SIZE_MAX;
        for (size_t i = 0; i < missing->factors->count; i++) {
            if (missing->columns[i] != SIZE_MAX)
                continue;
            if (!is_ready(missing, i)) {
                waiting = i;
                continue;
            }
            int r = add_default_numbers(missing, i, failure);
            if (r < 0)
                return r;
            missing->left--;
        }
        if (missing->left == before)
            return expression_failure(
                missing->expressions[waiting], failure,
                "the default of '%s', %.128s, needs itself, directly or by way of other defaults",
                missing->factors->items[waiting].name, expression_text(missing->expressions[waiting]));
    }
    return 0;
}

/* What a column must be, or NULL. */
static const struct design_factor *factor_of_column(const struct design_factors *factors, const char *name) {
    size_t found = design_factor_find(factors, name);
    return found == SIZE_MAX ? control_factor_find(name) : &factors->items[found];
}

int design_conform(struct design *design, const struct design_factors *factors, struct failure *failure) {
    for (size_t i = 0; i < design->column_count; i++) {
        const char *name = design->columns[i].name;
        const struct design_factor *factor = factor_of_column(factors, name);
        int r = factor ? adopt_column(design, i, factor, failure)
                       : design_factor_unknown(factors, name, design->file, design->lines ? 1 : design->line,
                                               design->column, failure);
        if (r < 0)
            return r;
    }
    cleanup(missing_clear) struct missing missing = {
        .design = design,
        .factors = factors,
        .columns = calloc(factors->count + 1, sizeof *missing.columns),
        .expressions = calloc(factors->count + 1, sizeof *missing.expressions),
    };
    cleanup_free struct design_column *columns =
        calloc(factors->count + design->control_count + 1, sizeof *columns);
    if (!missing.columns || !missing.expressions || !columns)
        return failure_memory(failure);
    int r = find_missing(&missing, failure);
    if (r == 0)
        r = add_defaults(&missing, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < factors->count; i++)
        columns[i] = design->columns[missing.columns[i]];
    for (size_t i = 0, at = factors->count; i < design->column_count; i++)
        if (control_of_column(design->columns[i].name))
            columns[at++] = design->columns[i];
    free(design->columns);
    design->columns = take_pointer(columns);
    return 0;
}

/* ---- Expressions over a design */

/* The value of EXPRESSION in a row; refused when it is not finite. VALUES has room for a number a column. */
static int finite_value(const struct design *design, size_t row, const struct expression *expression,
                        double *values, double *ret, struct failure *failure) {
    design_numbers(design, row, values);
    double value = expression_value(expression, values);
    if (!isfinite(value)) {
        char text[NUMBER_TEXT_SIZE];
        number_format_double(value, text);
        return design_failure(design, row, failure, "%.256s is %s here, expected a finite number",
                              expression_text(expression), text);
    }
    *ret = value;
    return 0;
}

int design_compute(struct design *design, const char *name, const char *text, const char *file, size_t line,
                   size_t place, struct failure *failure) {
    cleanup(free_expression) struct expression *expression = NULL;
    cleanup_free const char **names = calloc(design->column_count + 1, sizeof *names);
    cleanup_free double *values = calloc(design->column_count + 1, sizeof *values);
    if (!names || !values)
        return failure_memory(failure);
    for (size_t i = 0; i < design->column_count; i++)
        names[i] = design->columns[i].name;
    int r = expression_parse(text, names, design->column_count, file, line, place, &expression, failure);
    for (size_t i = 0; r == 0 && i < design->column_count; i++)
        if (design->columns[i].type == DESIGN_TEXT && expression_uses(expression, i))
            r = expression_failure(expression, failure, "'%s' is computed from '%s', which is a text", name,
                                   names[i]);
    struct design_column *column;
    if (r == 0)
        r = design_add_column(design, name, DESIGN_NUMBER, &column, failure);
    if (r < 0)
        return r;
    design->column_count--; /* the expression is over the columns before it */
    bool all_whole = true;
    for (size_t row = 0; r == 0 && row < design->row_count; row++) {
        double value = 0;
        r = finite_value(design, row, expression, values, &value, failure);
        column->numbers[row] = value;
        all_whole = all_whole && value == floor(value) && fabs(value) <= (double)DESIGN_INTEGER_MOST;
    }
    design->column_count++;
    if (r == 0 && all_whole) {
        for (size_t row = 0; row < design->row_count; row++)
            column->integers[row] = (int64_t)column->numbers[row];
        column->type = DESIGN_INTEGER;
    }
    return r;
}

/* "m 1, n 2, k 3", for messages; what does not fit is left out. */
static void describe_row(const struct design *design, size_t row, char *buffer, size_t size) {
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < design->column_count && used < size; i++) {
        char number[NUMBER_TEXT_SIZE];
        int length = snprintf(buffer + used, size - used, "%s%s %.64s", i ? ", " : "",
                              design->columns[i].name, design_value(design, row, i, number));
        used += length > 0 ? (size_t)length : 0;
    }
}

int design_require(const struct design *design, const struct expression *condition, struct failure *failure) {
    cleanup_free double *values = calloc(design->column_count + 1, sizeof *values);
    if (!values)
        return failure_memory(failure);
    for (size_t row = 0; row < design->row_count; row++) {
        double value = 0;
        int r = finite_value(design, row, condition, values, &value, failure);
        if (r < 0)
            return r;
        if (value != 0)
            continue;
        char described[512];
        describe_row(design, row, described, sizeof described);
        return design_failure(design, row, failure, "%s%sexpected %.256s", described,
                              described[0] ? "; " : "", expression_text(condition));
    }
    return 0;
}

int design_maximum(const struct design *design, const struct expression *expression, double *ret,
                   struct failure *failure) {
    cleanup_free double *values = calloc(design->column_count + 1, sizeof *values);
    if (!values)
        return failure_memory(failure);
    double most = -INFINITY;
    for (size_t row = 0; row < design->row_count; row++) {
        double value = 0;
        int r = finite_value(design, row, expression, values, &value, failure);
        if (r < 0)
            return r;
        if (value > most)
            most = value;
    }
    *ret = most;
    return 0;
}
