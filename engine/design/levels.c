#include "engine/design/levels.h"

#include "engine/design/control-factors.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/portable-math.h"
#include "engine/foundation/text-set.h"

#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Reads a number, which may have a unit of size; *WHOLE: it is written as a whole number. false: it is
 * none. */
static bool read_literal(const char *text, double *ret, bool *whole) {
    double value;
    if (!number_parse_double(text, strlen(text), &value) &&
        (!unit_parse(text, UNIT_SIZE, &value) || !isfinite(value)))
        return false;
    *whole = value == floor(value) && fabs(value) <= (double)DESIGN_INTEGER_MAX && !strchr(text, '.');
    *ret = value;
    return true;
}

int levels_failure(const struct levels *levels, struct failure *failure, const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return failure_input(failure, levels->file, levels->line, levels->column, "%s", sentence);
}

void levels_clear(struct levels *levels) {
    free(levels->name);
    for (size_t i = 0; levels->texts && i < levels->count; i++)
        free(levels->texts[i]);
    free(levels->texts);
    free(levels->numbers);
    free(levels->file);
    *levels = (struct levels){0};
}

/* Begins levels with a name and place. -EINVAL: no name, or an unknown control. */
static int begin_levels(const char *name, struct levels_place place, struct levels *levels,
                        struct failure *failure) {
    *levels = (struct levels){.name = xstrdup(name),
                              .file = place.file ? xstrdup(place.file) : NULL,
                              .line = place.line,
                              .column = place.column};
    if (name[0] == '\0')
        return levels_failure(levels, failure, "a factor without a name");
    if (control_of_column(name) && !control_factor_find(name))
        return control_factor_unknown(name, levels->file, levels->line, levels->column, failure);
    return 0;
}

/* Moves LEVELS to *RET. */
static int move_levels(struct levels *levels, struct levels *ret) {
    *ret = *levels;
    *levels = (struct levels){0};
    return 0;
}

/* Reads the ends and step (may be NULL) of a range. -EINVAL: no numbers, or no ascending range. */
static int bind_range(struct levels *levels, const char *low, const char *high, const char *step,
                      struct failure *failure) {
    const char *const texts[] = {low, high, step};
    double *const values[] = {&levels->low, &levels->high, &levels->step};
    bool all_whole = true;
    for (size_t i = 0; i < (step ? 3 : 2); i++) {
        bool whole;
        if (!read_literal(texts[i], values[i], &whole))
            return levels_failure(levels, failure, "'%.64s' in the range of '%s' is not a number", texts[i],
                                  levels->name);
        all_whole = all_whole && whole;
    }
    levels->is_range = true;
    levels->type = all_whole ? COLUMN_INTEGER : COLUMN_NUMBER;
    if (levels->low > levels->high)
        return levels_failure(levels, failure,
                              "the range of '%s' goes from %s down to %s, expected low before high",
                              levels->name, low, high);
    if (!isfinite(levels->high - levels->low))
        return levels_failure(levels, failure, "the range of '%s', %s to %s, is too wide", levels->name, low,
                              high);
    if (step && levels->step <= 0)
        return levels_failure(levels, failure, "the step of '%s' is %s, expected a number above 0",
                              levels->name, step);
    return 0;
}

/* Levels of a range (levels.h). RET is unchanged on failure. */
int levels_from_range(const char *name, const char *low, const char *high, const char *step,
                      struct levels_place place, struct levels *ret, struct failure *failure) {
    cleanup(levels_clear) struct levels levels = {0};
    int r = begin_levels(name, place, &levels, failure);
    if (r < 0)
        return r;
    if (control_of_column(name))
        return levels_failure(&levels, failure, "'%s' has a range, expected a list of values", name);
    r = bind_range(&levels, low, high, step, failure);
    return r < 0 ? r : move_levels(&levels, ret);
}

/* Step I from LOW to HIGH, linear or logarithmic; rounded for integers. */
static double step_value(const struct levels *levels, size_t i) {
    double at = (double)i / (double)(levels->steps - 1);
    if (i == 0 || i == levels->steps - 1)
        return i == 0 ? levels->low : levels->high;
    double value = levels->low + at * (levels->high - levels->low);
    if (levels->logarithmic)
        value = levels->low * portable_power(levels->high / levels->low, at);
    double whole = portable_round(value);
    /* 1 to 1e4 in five steps has 10 in it, and not 10.000000000000002. */
    if (levels->type == COLUMN_INTEGER || fabs(value - whole) <= 0x1p-48 * fabs(value))
        value = whole;
    return fmin(fmax(value, levels->low), levels->high);
}

/* Computes the levels of a range in steps, and drops those that are equal after rounding; again whenever the
 * type changes. */
static void fill_steps(struct levels *levels) {
    levels->count = 0;
    for (size_t i = 0; i < levels->steps; i++) {
        double value = step_value(levels, i);
        if (levels->count == 0 || value > levels->numbers[levels->count - 1])
            levels->numbers[levels->count++] = value;
    }
}

/* Levels of a range in a number of STEPS. RET is unchanged on failure. */
int levels_from_steps(const char *name, const char *low, const char *high, const char *steps,
                      bool logarithmic, struct levels_place place, struct levels *ret,
                      struct failure *failure) {
    cleanup(levels_clear) struct levels levels = {0};
    uint64_t count;
    int r = levels_from_range(name, low, high, NULL, place, &levels, failure);
    if (r < 0)
        return r;
    if (!number_parse_uint64(steps, strlen(steps), &count) || count < 2 || count > LEVELS_MAX)
        return levels_failure(&levels, failure,
                              "the steps of '%s' are %.64s, expected a whole number from 2 to %d", name,
                              steps, LEVELS_MAX);
    if (logarithmic && !(levels.low > 0 && isfinite(levels.high / levels.low)))
        return levels_failure(&levels, failure,
                              "the range of '%s' begins at %.64s; a logarithmic scale needs a number "
                              "above 0",
                              name, low);
    levels.is_range = false;
    levels.steps = (size_t)count;
    levels.logarithmic = logarithmic;
    levels.numbers = xcalloc(levels.steps, sizeof *levels.numbers);
    fill_steps(&levels);
    return move_levels(&levels, ret);
}

/* Reads a list of values; their type is the narrowest that all have. -EINVAL: empty or repeated values. */
static int bind_list(struct levels *levels, const char *const *texts, size_t count, struct failure *failure) {
    if (count == 0 || count > LEVELS_MAX)
        return levels_failure(levels, failure, "%zu values of '%s', expected from 1 to %d", count,
                              levels->name, LEVELS_MAX);
    levels->texts = xcalloc(count, sizeof *levels->texts);
    levels->numbers = xcalloc(count, sizeof *levels->numbers);
    cleanup(text_set_clear) struct text_set seen = {0};
    levels->type = COLUMN_INTEGER;
    for (size_t i = 0; i < count; i++) {
        if (texts[i][0] == '\0')
            return levels_failure(levels, failure, "an empty value of '%s'", levels->name);
        if (text_set_add(&seen, texts[i], strlen(texts[i])) != i)
            return levels_failure(levels, failure, "'%.64s' is given twice among the values of '%s'",
                                  texts[i], levels->name);
        bool whole = false;
        if (!read_literal(texts[i], &levels->numbers[i], &whole)) {
            levels->numbers[i] = NAN;
            levels->type = COLUMN_STRING;
        } else if (!whole && levels->type == COLUMN_INTEGER) {
            levels->type = COLUMN_NUMBER;
        }
        levels->texts[i] = xstrdup(texts[i]);
        levels->count = i + 1;
    }
    return 0;
}

int levels_from_list(const char *name, const char *const *texts, size_t count, struct levels_place place,
                     struct levels *ret, struct failure *failure) {
    cleanup(levels_clear) struct levels levels = {0};
    int r = begin_levels(name, place, &levels, failure);
    r = r < 0 ? r : bind_list(&levels, texts, count, failure);
    if (r == 0 && control_of_column(name))
        r = levels_adopt(&levels, control_factor_find(name), failure);
    return r < 0 ? r : move_levels(&levels, ret);
}

/* ---- Types */

static int refuse_value(const struct levels *levels, const struct design_factor *factor, const char *text,
                        struct failure *failure) {
    char expectation[DESIGN_EXPECTATION_SIZE];
    return levels_failure(levels, failure, "'%s' is %.64s, expected %s", levels->name, text,
                          design_factor_expectation(factor, expectation));
}

/* Gives LEVELS the type of FACTOR. -EINVAL: a value is not one of the factor's. */
int levels_adopt(struct levels *levels, const struct design_factor *factor, struct failure *failure) {
    bool has_meanings = design_factor_has_meanings(factor), has_texts = false;
    if (levels->is_range || levels->steps) {
        if (factor->about.type == COLUMN_STRING)
            return refuse_value(levels, factor, "a range", failure);
        double refused = design_factor_admits(factor, levels->low) ? levels->high : levels->low;
        char text[NUMBER_TEXT_SIZE];
        number_format_double(refused, text);
        if (!design_factor_admits(factor, refused))
            return refuse_value(levels, factor, text, failure);
        if (factor->about.type == COLUMN_INTEGER && levels->step != floor(levels->step))
            return levels_failure(levels, failure, "the step of '%s' is not a whole number", levels->name);
    }
    for (size_t i = 0; levels->texts && i < levels->count; i++) {
        const char *text = levels->texts[i];
        bool good = factor->about.type == COLUMN_STRING
                        ? design_factor_admits_text(factor, text, strlen(text))
                    : has_meanings ? design_factor_admits_written(factor, text)
                                   : design_factor_admits(factor, levels->numbers[i]);
        if (!good)
            return refuse_value(levels, factor, text, failure);
        has_texts |= has_meanings && isnan(levels->numbers[i]);
    }
    levels->type = has_texts ? COLUMN_STRING : factor->about.type;
    if (levels->steps)
        fill_steps(levels);
    return 0;
}

/* ---- Counting */

static double step_of(const struct levels *levels) {
    return levels->step > 0 ? levels->step : 1;
}

/* The number of levels; 0: a range of real numbers without a step. */
uint64_t levels_count(const struct levels *levels) {
    if (!levels->is_range)
        return levels->count;
    if (levels->step == 0 && levels->type != COLUMN_INTEGER)
        return 0;
    /* A last step that misses the end by a rounding error is meant to reach it: 0.0 to 1.0 by 0.1 has eleven
     * levels. */
    double steps = floor((levels->high - levels->low) / step_of(levels) * (1 + 0x1p-50));
    return steps < 0x1p62 ? (uint64_t)steps + 1 : UINT64_C(1) << 62;
}

double levels_number(const struct levels *levels, uint64_t index) {
    if (!levels->is_range)
        return levels->numbers[index];
    double value = levels->low + (double)index * step_of(levels);
    return value < levels->high ? value : levels->high;
}
