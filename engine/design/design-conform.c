/* Makes a design conform to an experiment: types, defaults, conditions, maxima. */
#include "engine/design/design.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Types */

static int refuse_value(const struct design *design, size_t row, const struct design_factor *factor,
                        const char *value, struct failure *failure) {
    char expectation[DESIGN_EXPECTATION_SIZE];
    return design_failure(design, row, failure, "'%s' is %.64s, expected %s", factor->about.name, value,
                          design_factor_expectation(factor, expectation));
}

/* Gives column I the type of FACTOR. -EINVAL: a value is not one of the factor's. */
static int adopt_column(struct design *design, size_t i, const struct design_factor *factor,
                        struct failure *failure) {
    struct design_column *column = &design->columns[i];
    bool is_text = column->about.type == COLUMN_STRING;
    for (size_t row = 0; row < design->row_count; row++) {
        char buffer[NUMBER_TEXT_SIZE];
        const char *value = is_text ? column->labels.texts[column->codes[row]] : NULL;
        bool good = is_text && factor->about.type != COLUMN_STRING
                        ? design_factor_admits_written(factor, value)
                    : is_text ? design_factor_admits_text(factor, value, strlen(value))
                              : factor->about.type != COLUMN_STRING &&
                                    design_factor_admits(factor, design_number(design, row, i));
        if (!good)
            return refuse_value(design, row, factor, design_value(design, row, i, buffer), failure);
    }
    if (column->about.type == factor->about.type || is_text) /* texts become numbers when those are known */
        return 0;
    /* Both kinds of number take eight bytes: converted where they stand. */
    for (size_t row = 0; row < design->row_count; row++) {
        if (factor->about.type == COLUMN_INTEGER)
            column->integers[row] = (int64_t)column->numbers[row];
        else
            column->numbers[row] = (double)column->integers[row];
    }
    column->about.type = factor->about.type;
    return 0;
}

/* ---- Defaults, shares, times */

/* The expressions that give a factor its numbers in rows where the design has none. */
enum source { OF_DEFAULT, OF_SHARE, OF_TIME, SOURCES };
static const char *const source_words[SOURCES] = {"the default", "from-share", "from-time"};
static const char *const source_names[SOURCES] = {NULL, "share", "time"}; /* beside those that all have */

/* The expression that TEXT needs: a share, a time, or the default; a plain number needs none, and is
 * OF_DEFAULT. */
static enum source source_of(const struct design_factor *factor, const char *text) {
    double value;
    enum design_meaning meaning = design_factor_meaning(factor, text, &value);
    return meaning == DESIGN_MEANS_SHARE ? OF_SHARE : meaning == DESIGN_MEANS_TIME ? OF_TIME : OF_DEFAULT;
}

struct unresolved {
    size_t column;                       /* where its numbers are, or SIZE_MAX while there are none */
    size_t written;                      /* the column of the texts that they are made from, or SIZE_MAX */
    struct expression *sources[SOURCES]; /* owned; NULL: no row needs it */
};

struct resolving {
    struct design *design;
    const struct design_factors *factors;
    struct unresolved *items; /* by factor */
    const char **names;       /* of factors, then of what is given, and room for one more */
};

static void resolving_clear(struct resolving *resolving) {
    for (size_t i = 0; i < resolving->factors->count; i++)
        for (size_t source = 0; source < SOURCES; source++)
            expression_free(resolving->items[i].sources[source]);
    free(resolving->items);
    free(resolving->names);
}

/* Parses the factor's expression for SOURCE, once. -EINVAL: malformed, or it uses a text. */
static int parse_source(struct resolving *resolving, size_t i, enum source source, struct failure *failure) {
    const struct design_factors *factors = resolving->factors;
    const struct design_factor *factor = &factors->items[i];
    const char *const texts[] = {factor->default_text, factor->from_share, factor->from_time};
    const size_t lines[] = {factor->default_line, factor->share_line, factor->time_line};
    const size_t columns[] = {factor->default_column, factor->share_column, factor->time_column};
    size_t count = factors->count + factors->given_count;
    const char *own = source_names[source];
    for (size_t j = 0; own && j < count; j++)
        if (strcmp(resolving->names[j], own) == 0)
            return failure_input(
                failure, factors->file, lines[source], columns[source],
                "%s of '%s' uses '%s' for the factor's own value, but this is also the name of %s",
                source_words[source], factor->about.name, own, j < factors->count ? "a factor" : "an option");
    resolving->names[count] = own;
    struct expression **expression = &resolving->items[i].sources[source];
    if (*expression)
        return 0;
    int r = expression_parse(texts[source], resolving->names, count + (own != NULL), factors->file,
                             lines[source], columns[source], expression, failure);
    if (r < 0)
        return failure_prefix(failure, "%s of '%s'", source_words[source], factor->about.name);
    for (size_t j = 0; j < factors->count; j++)
        if (factors->items[j].about.type == COLUMN_STRING && expression_uses(*expression, j))
            return expression_failure(*expression, failure, "%s of '%s' uses '%s', which is a text",
                                      source_words[source], factor->about.name, factors->items[j].about.name);
    return 0;
}

/* Adds a column with the default of factor I in every row, as a text. */
static int add_default(struct resolving *resolving, size_t i, struct failure *failure) {
    const struct design_factor *factor = &resolving->factors->items[i];
    const char *text = factor->default_text;
    char expectation[DESIGN_EXPECTATION_SIZE];
    if (factor->about.type == COLUMN_STRING && !design_factor_admits_text(factor, text, strlen(text)))
        return failure_input(failure, resolving->factors->file, factor->default_line, factor->default_column,
                             "the default of '%s' is '%.64s', expected %s", factor->about.name, text,
                             design_factor_expectation(factor, expectation));
    struct design_column *column;
    int r = design_add_column(resolving->design, factor->about.name, COLUMN_STRING, &column, failure);
    if (r < 0)
        return r;
    resolving->items[i].column = resolving->design->column_count - 1;
    text_set_add(&column->labels, text, strlen(text)); /* number 0, which the new column is full of */
    return 0;
}

/* Finds the expressions that the texts of a factor's column need to become numbers. */
static int find_sources(struct resolving *resolving, size_t i, struct failure *failure) {
    struct unresolved *item = &resolving->items[i];
    const struct text_set *labels = &resolving->design->columns[item->column].labels;
    for (size_t code = 0; code < labels->count; code++) {
        enum source source = source_of(&resolving->factors->items[i], labels->texts[code]);
        int r = source == OF_DEFAULT ? 0 : parse_source(resolving, i, source, failure);
        if (r < 0)
            return r;
    }
    item->written = item->column;
    item->column = SIZE_MAX;
    return 0;
}

/* Adds the factors that the design lacks: texts at once; for numbers it finds the expressions. -EINVAL: a
 * factor has no default. */
static int find_missing(struct resolving *resolving, struct failure *failure) {
    const struct design *design = resolving->design;
    for (size_t i = 0; i < resolving->factors->count; i++) {
        const struct design_factor *factor = &resolving->factors->items[i];
        struct unresolved *item = &resolving->items[i];
        item->written = SIZE_MAX;
        item->column = design_find(design, factor->about.name);
        bool is_missing = item->column == SIZE_MAX;
        if (is_missing && !factor->default_text)
            return failure_input(failure, design->file, design->lines ? 1 : design->line, design->column,
                                 "no column '%s', expected one, since this factor has no default",
                                 factor->about.name);
        bool is_computed = is_missing && factor->about.type != COLUMN_STRING &&
                           source_of(factor, factor->default_text) == OF_DEFAULT;
        int r = is_computed  ? parse_source(resolving, i, OF_DEFAULT, failure)
                : is_missing ? add_default(resolving, i, failure)
                             : 0;
        if (r == 0 && item->column != SIZE_MAX && factor->about.type != COLUMN_STRING &&
            design->columns[item->column].about.type == COLUMN_STRING)
            r = find_sources(resolving, i, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

static bool item_uses(const struct unresolved *item, size_t name) {
    for (size_t source = 0; source < SOURCES; source++)
        if (item->sources[source] && expression_uses(item->sources[source], name))
            return true;
    return false;
}

/* Whether all factors that the expressions of factor I use have numbers. */
static bool is_ready(const struct resolving *resolving, size_t i) {
    for (size_t j = 0; j < resolving->factors->count; j++)
        if (resolving->items[j].column == SIZE_MAX && item_uses(&resolving->items[i], j))
            return false;
    return true;
}

/* Whether the expressions of a factor use facts of the machine, directly or through other factors. */
static bool is_of_facts(const struct resolving *resolving, const struct unresolved *item) {
    const struct design_factors *factors = resolving->factors;
    for (size_t j = 0; j < factors->count; j++)
        if (item_uses(item, j) && resolving->design->columns[resolving->items[j].column].of_facts)
            return true;
    for (size_t j = 0; j < factors->given_count; j++)
        if (factors->given[j].is_fact && item_uses(item, factors->count + j))
            return true;
    return false;
}

static double nearest_admitted(const struct design_factor *factor, double value) {
    double low = factor->minimum, high = factor->maximum;
    if (factor->about.type == COLUMN_INTEGER) {
        low = ceil(fmax(low, -(double)DESIGN_INTEGER_MAX));
        high = floor(fmin(high, (double)DESIGN_INTEGER_MAX));
        value = floor(value);
    }
    return value > low ? fmin(value, high) : low; /* of nan, too */
}

/* The value of factor I in ROW. TEXT, if not NULL, is a number, a share or a time; otherwise it is the
 * default. VALUES is scratch. -EINVAL: the factor does not admit it. */
static int resolve_value(const struct resolving *resolving, size_t i, size_t row, const char *text,
                         double *values, double *ret, struct failure *failure) {
    const struct design *design = resolving->design;
    const struct design_factors *factors = resolving->factors;
    const struct design_factor *factor = &factors->items[i];
    double own = NAN;
    if (text && design_factor_meaning(factor, text, &own) == DESIGN_MEANS_NUMBER) {
        *ret = own; /* it was checked when the column was adopted */
        return 0;
    }
    enum source source = text ? source_of(factor, text) : OF_DEFAULT;
    const struct expression *expression = resolving->items[i].sources[source];
    for (size_t j = 0; j < factors->count; j++)
        values[j] = resolving->items[j].column == SIZE_MAX
                        ? NAN
                        : design_number(design, row, resolving->items[j].column);
    for (size_t j = 0; j < factors->given_count; j++)
        values[factors->count + j] = factors->given[j].value;
    values[factors->count + factors->given_count] = own;
    *ret = expression_value(expression, values);
    if (design_factor_admits(factor, *ret))
        return 0;
    if (factors->facts_are_guessed && design->columns[resolving->items[i].column].of_facts) {
        *ret = nearest_admitted(factor, *ret);
        return 0;
    }
    char number[NUMBER_TEXT_SIZE], expectation[DESIGN_EXPECTATION_SIZE];
    number_format_double(*ret, number);
    return design_failure(design, row, failure, "%s of '%s', %.128s, is %s in this row, expected %s",
                          source_words[source], factor->about.name, expression_text(expression), number,
                          design_factor_expectation(factor, expectation));
}

/* Computes the numbers of factor I, in a new column or in place of its texts. */
static int resolve_numbers(struct resolving *resolving, size_t i, struct failure *failure) {
    const struct design_factors *factors = resolving->factors;
    const struct design_factor *factor = &factors->items[i];
    struct design *design = resolving->design;
    struct unresolved *item = &resolving->items[i];
    bool of_facts = is_of_facts(resolving, item);
    cleanup_free double *values = xcalloc(factors->count + factors->given_count + 1, sizeof *values);
    cleanup_free uint32_t *codes = NULL;
    cleanup(text_set_clear) struct text_set labels = {0};
    struct design_column *column = NULL;
    if (item->written == SIZE_MAX) {
        int r = design_add_column(design, factor->about.name, factor->about.type, &column, failure);
        if (r < 0)
            return r;
        item->column = design->column_count - 1;
    } else {
        item->column = item->written;
        column = &design->columns[item->column];
        codes = column->codes;
        labels = column->labels;
        column->integers = xcalloc(design->row_count, sizeof *column->integers);
        column->labels = (struct text_set){0};
        column->capacity = design->row_count;
        column->about.type = factor->about.type;
    }
    column->of_facts = of_facts;
    for (size_t row = 0; row < design->row_count; row++) {
        double value = 0;
        int r = resolve_value(resolving, i, row, codes ? labels.texts[codes[row]] : NULL, values, &value,
                              failure);
        if (r < 0)
            return r;
        if (factor->about.type == COLUMN_NUMBER)
            column->numbers[row] = value;
        else
            column->integers[row] = (int64_t)value;
    }
    return 0;
}

/* Resolves all factors, in the order in which they use each other. -EINVAL: some depend on themselves. */
static int resolve_all(struct resolving *resolving, struct failure *failure) {
    size_t waiting = SIZE_MAX;
    for (bool added = true; added;) {
        added = false;
        waiting = SIZE_MAX;
        for (size_t i = 0; i < resolving->factors->count; i++) {
            if (resolving->items[i].column != SIZE_MAX)
                continue;
            if (!is_ready(resolving, i)) {
                waiting = i;
                continue;
            }
            int r = resolve_numbers(resolving, i, failure);
            if (r < 0)
                return r;
            added = true;
        }
    }
    if (waiting == SIZE_MAX)
        return 0;
    enum source source = OF_DEFAULT; /* the first source that it has, since one of them waits for it */
    while (!resolving->items[waiting].sources[source])
        source++;
    const struct expression *expression = resolving->items[waiting].sources[source];
    return expression_failure(expression, failure,
                              "%s of '%s', %.128s, depends on itself, directly or through other "
                              "defaults",
                              source_words[source], resolving->factors->items[waiting].about.name,
                              expression_text(expression));
}

/* The factor or control that column NAME is; NULL: none. */
static const struct design_factor *factor_of_column(const struct design_factors *factors, const char *name) {
    size_t found = design_factor_find(factors, name);
    return found == SIZE_MAX ? control_factor_find(name) : &factors->items[found];
}

/* Makes the design conform to the factors of an experiment: checks all columns, adds missing ones, and orders
 * them as the factors are, controls last. */
int design_conform(struct design *design, const struct design_factors *factors, struct failure *failure) {
    for (size_t i = 0; i < design->column_count; i++) {
        const char *name = design->columns[i].about.name;
        const struct design_factor *factor = factor_of_column(factors, name);
        int r = factor ? adopt_column(design, i, factor, failure)
                       : design_factor_unknown(factors, name, design->file, design->lines ? 1 : design->line,
                                               design->column, failure);
        if (r < 0)
            return r;
    }
    cleanup(resolving_clear) struct resolving resolving = {
        .design = design,
        .factors = factors,
        .items = xcalloc(factors->count, sizeof *resolving.items),
        .names = xcalloc(factors->count + factors->given_count + 1, sizeof *resolving.names),
    };
    cleanup_free struct design_column *columns =
        xcalloc(factors->count + design->control_count, sizeof *columns);
    for (size_t i = 0; i < factors->count; i++)
        resolving.names[i] = factors->items[i].about.name;
    for (size_t i = 0; i < factors->given_count; i++)
        resolving.names[factors->count + i] = factors->given[i].name;
    int r = find_missing(&resolving, failure);
    r = r < 0 ? r : resolve_all(&resolving, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < factors->count; i++) {
        struct design_column *column = &design->columns[resolving.items[i].column];
        column_clear(&column->about);
        column->about = column_copy(&factors->items[i].about);
        columns[i] = *column;
    }
    for (size_t i = 0, at = factors->count; i < design->column_count; i++)
        if (control_of_column(design->columns[i].about.name))
            columns[at++] = design->columns[i];
    free(design->columns);
    design->columns = take_pointer(columns);
    return 0;
}

/* ---- Expressions over a design */

/* The value of EXPRESSION in ROW into *RET. -EINVAL: it is not finite. VALUES is scratch, a number a
 * column. */
static int finite_value(const struct design *design, size_t row, const struct expression *expression,
                        double *values, double *ret, struct failure *failure) {
    design_numbers(design, row, values);
    double value = expression_value(expression, values);
    if (!isfinite(value)) {
        char text[NUMBER_TEXT_SIZE];
        number_format_double(value, text);
        return design_failure(design, row, failure, "%.256s is %s in this row, expected a finite number",
                              expression_text(expression), text);
    }
    *ret = value;
    return 0;
}

/* Adds the column NAME, computed by the expression TEXT; of integers if all values are whole. -EINVAL with
 * the place. */
int design_compute(struct design *design, const char *name, const char *text, const char *file, size_t line,
                   size_t place, struct failure *failure) {
    cleanup(expression_cleanup) struct expression *expression = NULL;
    cleanup_free const char **names = xcalloc(design->column_count + 1, sizeof *names);
    cleanup_free double *values = xcalloc(design->column_count + 1, sizeof *values);
    for (size_t i = 0; i < design->column_count; i++)
        names[i] = design->columns[i].about.name;
    int r = expression_parse(text, names, design->column_count, file, line, place, &expression, failure);
    for (size_t i = 0; r == 0 && i < design->column_count; i++)
        if (design->columns[i].about.type == COLUMN_STRING && expression_uses(expression, i))
            r = expression_failure(expression, failure,
                                   "'%s' is computed from '%s', which is a text; expected columns of "
                                   "numbers",
                                   name, names[i]);
    struct design_column *column;
    r = r < 0 ? r : design_add_column(design, name, COLUMN_NUMBER, &column, failure);
    if (r < 0)
        return r;
    design->column_count--; /* the expression is over the columns before it */
    bool all_whole = true;
    for (size_t row = 0; r == 0 && row < design->row_count; row++) {
        double value = 0;
        r = finite_value(design, row, expression, values, &value, failure);
        column->numbers[row] = value;
        all_whole = all_whole && value == floor(value) && fabs(value) <= (double)DESIGN_INTEGER_MAX;
    }
    design->column_count++;
    if (r == 0 && all_whole) {
        for (size_t row = 0; row < design->row_count; row++)
            column->integers[row] = (int64_t)column->numbers[row];
        column->about.type = COLUMN_INTEGER;
    }
    return r;
}

/* Writes a row as "m 1, n 2, k 3" into BUFFER, as far as it fits. */
static void describe_row(const struct design *design, size_t row, char *buffer, size_t size) {
    size_t used = 0;
    buffer[0] = '\0';
    for (size_t i = 0; i < design->column_count && used < size; i++) {
        char number[NUMBER_TEXT_SIZE];
        int length = snprintf(buffer + used, size - used, "%s%s %.64s", i ? ", " : "",
                              design->columns[i].about.name, design_value(design, row, i, number));
        used += length > 0 ? (size_t)length : 0;
    }
}

/* -EINVAL, with the row described, if CONDITION is false in some row. */
int design_require(const struct design *design, const struct expression *condition, struct failure *failure) {
    cleanup_free double *values = xcalloc(design->column_count + 1, sizeof *values);
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

/* The greatest value of EXPRESSION over all rows into *RET. */
int design_maximum(const struct design *design, const struct expression *expression, double *ret,
                   struct failure *failure) {
    cleanup_free double *values = xcalloc(design->column_count + 1, sizeof *values);
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
