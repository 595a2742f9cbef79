/* The candidate rows: a grid over the domain of the model, or the rows of a table. */
#include "engine/design/generate.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/model/extrapolation.h"
#include "engine/model/model.h"
#include "engine/next/next.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CROSSED_MAX = 64 };

static size_t find_factor(const struct next_rows *next, const char *name) {
    size_t i = 0;
    while (i < next->evaluator->input_count && strcmp(next->evaluator->inputs[i].name, name) != 0)
        i++;
    return i;
}

/* ---- Ranges */

/* The range of NAME that all groups have in common, into RET, and whether it is of whole numbers. -EINVAL: a
 * group states no range. */
static int intersect_ranges(const struct next_rows *next, const char *name, struct candidate_range *ret,
                            struct failure *failure) {
    const struct model *model = next->request->model;
    const struct model_column *column = model_column_find(model, name);
    *ret = (struct candidate_range){name, true, -INFINITY, INFINITY};
    for (size_t g = 0; g < next->group_count; g++) {
        const struct model_range *range = model_range_find(&model->groups[next->groups[g]].parts[0], name);
        if (!range)
            return failure_input(failure, model->file, 0, 0,
                                 "the model does not state the range of '%s' in 'domain'; fit the model "
                                 "again",
                                 name);
        ret->low = fmax(ret->low, range->minimum);
        ret->high = fmin(ret->high, range->maximum);
        ret->whole =
            ret->whole && range->minimum == floor(range->minimum) && range->maximum == floor(range->maximum);
    }
    if (column && column->about.type != COLUMN_UNKNOWN)
        ret->whole = column->about.type == COLUMN_INTEGER;
    return 0;
}

/* Reads a range of --within, NAME=LOW..HIGH, and notes if it leaves the domain. -EINVAL: it is none, or of no
 * factor. */
static int read_within(struct next_rows *next, const char *text, struct failure *failure) {
    const char *equals = strchr(text, '='), *dots = equals ? strstr(equals, "..") : NULL;
    if (!dots || equals == text)
        return failure_input(failure, NULL, 0, 0,
                             "--within '%.64s' is not a range; expected a range such as n=1..5000", text);
    cleanup_free char *name = xstrndup(text, (size_t)(equals - text));
    cleanup_free char *low = xstrndup(equals + 1, (size_t)(dots - equals - 1));
    cleanup_free const char **names = xcalloc(next->evaluator->input_count + 1, sizeof *names);
    for (size_t i = 0; i < next->evaluator->input_count; i++)
        names[i] = next->evaluator->inputs[i].name;
    size_t i = find_factor(next, name);
    if (i == next->evaluator->input_count) {
        char instead[TEXT_INSTEAD_SIZE];
        return failure_input(failure, NULL, 0, 0, "--within: '%.64s' is no factor of the model; %s", name,
                             text_instead(name, names, i, instead));
    }
    cleanup(levels_clear) struct levels levels = {0};
    int r = levels_from_range(name, low, dots + 2, NULL, (struct levels_place){0}, &levels, failure);
    if (r < 0)
        return r;
    const struct candidate_range *domain = &next->domain[i];
    next->ranges[i].low = levels.low;
    next->ranges[i].high = levels.high;
    if (levels.low < domain->low || levels.high > domain->high)
        xappend(&next->notes, &next->note_count,
                xformat("'%s' from %.6g to %.6g leaves the domain of the model, %.6g to %.6g: "
                        "predictions and their uncertainty are extrapolated there",
                        name, levels.low, levels.high, domain->low, domain->high));
    return 0;
}

/* Limits a range to the bounds of the experiment's factor. -EINVAL: nothing is left, or the experiment has no
 * such factor. */
static int apply_bounds(const struct next_rows *next, struct candidate_range *range,
                        struct failure *failure) {
    const struct design_factors *factors = next->request->factors;
    size_t found = factors ? design_factor_find(factors, range->name) : SIZE_MAX;
    if (factors && found == SIZE_MAX)
        return failure_input(failure, factors->file, 0, 0,
                             "the terms of the model use '%s', which is no factor of the experiment "
                             "and so cannot be set; choose another experiment with --experiment, or "
                             "remove --experiment",
                             range->name);
    if (found != SIZE_MAX) {
        range->whole = factors->items[found].about.type == COLUMN_INTEGER;
        range->low = fmax(range->low, factors->items[found].minimum);
        range->high = fmin(range->high, factors->items[found].maximum);
    }
    range->low = range->whole ? ceil(range->low) : range->low;
    range->high = range->whole ? floor(range->high) : range->high;
    if (range->low <= range->high)
        return 0;
    return failure_input(failure, NULL, 0, 0,
                         "the domain is empty: no %s of '%s' lies within all of the model's groups, the "
                         "experiment's bounds and --within",
                         range->whole ? "whole number" : "value", range->name);
}

/* Finds the range of each factor: domain, --within and the experiment's bounds. */
static int make_ranges(struct next_rows *next, struct failure *failure) {
    size_t count = next->evaluator->input_count;
    int r = 0;
    next->ranges = xcalloc(count + 1, sizeof *next->ranges);
    next->domain = xcalloc(count + 1, sizeof *next->domain);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = intersect_ranges(next, next->evaluator->inputs[i].name, &next->domain[i], failure);
        next->ranges[i] = next->domain[i];
    }
    for (size_t k = 0; r == 0 && k < next->request->within_count; k++)
        r = read_within(next, next->request->within[k], failure);
    for (size_t i = 0; r == 0 && i < count; i++)
        r = apply_bounds(next, &next->ranges[i], failure);
    return r;
}

/* Whether all groups were observed near VALUES (candidate_admits). Where the user widened a range, the end of
 * the domain stands for values beyond it. */
static bool is_in_domain(void *context, const double *values) {
    const struct next_rows *next = context;
    double inputs[CANDIDATES_FACTORS_MAX];
    for (size_t i = 0; i < next->evaluator->input_count; i++)
        inputs[i] = fmin(fmax(values[i], next->domain[i].low), next->domain[i].high);
    for (size_t g = 0; g < next->group_count; g++) {
        struct evaluator_value value = {.extrapolated_by = 1};
        extrapolation_find(next->evaluator, &next->request->model->groups[next->groups[g]], inputs, &value);
        if (extrapolation_is_outside(&value))
            return false;
    }
    return true;
}

/* ---- Columns that the model's terms do not have */

struct crossed {
    struct levels items[CROSSED_MAX];
    size_t count, combinations;
};

static void crossed_clear(struct crossed *crossed) {
    for (size_t i = 0; i < crossed->count; i++)
        levels_clear(&crossed->items[i]);
}

/* Adds a column with COUNT levels that all candidates are crossed with. -EINVAL: too many, or not valid. */
static int add_crossed(struct crossed *crossed, const char *name, const char *const *texts, size_t count,
                       struct failure *failure) {
    if (crossed->count == CROSSED_MAX)
        return failure_input(failure, NULL, 0, 0, "more than %d columns besides the columns of the model",
                             CROSSED_MAX);
    int r = levels_from_list(name, texts, count, (struct levels_place){0}, &crossed->items[crossed->count],
                             failure);
    if (r == 0) {
        crossed->count++;
        crossed->combinations *= count;
    }
    return r;
}

/* Crosses candidates with the labels of groups, for columns that can be set: factors of the experiment and
 * controls. */
static int cross_groups(const struct next_rows *next, struct crossed *crossed, struct failure *failure) {
    const struct model *model = next->request->model;
    const struct design_factors *factors = next->request->factors;
    cleanup_free const char **texts = xcalloc(next->group_count + 1, sizeof *texts);
    int r = 0;
    for (size_t j = 0; r == 0 && j < model->by_count; j++) {
        size_t count = 0;
        if (!(factors && design_factor_find(factors, model->by[j]) != SIZE_MAX) &&
            !control_of_column(model->by[j]))
            continue;
        for (size_t g = 0; g < next->group_count; g++) {
            const char *label = model->groups[next->groups[g]].labels[j];
            size_t seen = text_find(label, texts, count);
            texts[seen] = label;
            count += seen == count;
        }
        r = add_crossed(crossed, model->by[j], texts, count, failure);
    }
    return r;
}

/* Crosses candidates with the settings of --set. -EINVAL: one is malformed or a factor of the model. */
static int cross_settings(const struct next_rows *next, struct crossed *crossed, struct failure *failure) {
    int r = 0;
    for (size_t k = 0; r == 0 && k < next->request->setting_count; k++) {
        const char *text = next->request->settings[k], *equals = strchr(text, '=');
        if (!equals || equals == text)
            return failure_input(failure, NULL, 0, 0, "--set '%.64s', expected NAME=VALUE", text);
        cleanup_free char *name = xstrndup(text, (size_t)(equals - text));
        if (find_factor(next, name) < next->evaluator->input_count)
            return failure_input(failure, NULL, 0, 0,
                                 "--set: '%.64s' is a factor of the model; give its range with --within "
                                 "%.64s=LOW..HIGH",
                                 name, name);
        r = add_crossed(crossed, name, &(const char *){equals + 1}, 1, failure);
    }
    return r;
}

/* ---- The candidates */

/* Makes the candidates as a grid over the domain, crossed with groups and settings. */
static int make_grid(struct next_rows *next, struct failure *failure) {
    cleanup(crossed_clear) struct crossed crossed = {.combinations = 1};
    cleanup(design_cleanup) struct design *spread_out = NULL;
    cleanup_free double *shares = NULL;
    int r = cross_groups(next, &crossed, failure);
    r = r < 0 ? r : cross_settings(next, &crossed, failure);
    if (r < 0)
        return r;
    r = candidates_make(next->ranges, next->evaluator->input_count, is_in_domain, next, &spread_out, &shares,
                        failure);
    if (r < 0)
        return failure->kind == FAILURE_INPUT ? failure_prefix(failure, "the domain is empty") : r;
    r = design_generate_crossed(spread_out, crossed.items, crossed.count, &next->candidates, failure);
    if (r < 0)
        return r;
    next->shares = xcalloc(next->candidates->row_count + 1, sizeof *next->shares);
    for (size_t i = 0; i < next->candidates->row_count; i++)
        next->shares[i] = shares[i / crossed.combinations];
    return 0;
}

/* Reads the candidates from the user's table. */
static int read_table(struct next_rows *next, struct failure *failure) {
    if (next->request->setting_count > 0)
        return failure_input(failure, NULL, 0, 0,
                             "both --candidates and --set are given; remove --set, and add its "
                             "values as a column of the table");
    int r = design_read(next->request->candidates, next->request->factors, &next->candidates, failure);
    if (r < 0)
        return r;
    next->shares = xcalloc(next->candidates->row_count + 1, sizeof *next->shares);
    for (size_t i = 0; i < next->candidates->row_count; i++)
        next->shares[i] = 1;
    return 0;
}

/* Whether a row of VALUES may be measured: it satisfies the experiment's conditions and, for a table's rows,
 * --within. RET_OUTSIDE is set if a table's row is outside the domain. */
static bool is_possible(const struct next_rows *next, const double *values, bool *ret_outside) {
    for (size_t i = 0; i < next->request->condition_count; i++) {
        double holds = expression_value(next->request->conditions[i], values);
        if (!(holds != 0) || isnan(holds))
            return false;
    }
    for (size_t i = 0; next->request->candidates && i < next->evaluator->input_count; i++) {
        const struct candidate_range *range = &next->ranges[i], *domain = &next->domain[i];
        size_t column = design_find(next->candidates, range->name);
        double value = column == SIZE_MAX ? range->low : values[column];
        bool asked = range->low != domain->low || range->high != domain->high;
        if (asked && !(value >= range->low && value <= range->high))
            return false;
        *ret_outside = *ret_outside || value < domain->low || value > domain->high;
    }
    return true;
}

/* Bars candidates that may not be measured, with a share of 0 in averages. -EINVAL: no other is left. */
static int bar_impossible(struct next_rows *next, struct failure *failure) {
    const struct design *design = next->candidates;
    cleanup_free double *values = xcalloc(design->column_count + 1, sizeof *values);
    size_t outside = 0;
    next->barred = xcalloc(design->row_count + 1, sizeof *next->barred);
    for (size_t row = 0; row < design->row_count; row++) {
        bool is_outside = false;
        design_numbers(design, row, values);
        next->barred[row] = !is_possible(next, values, &is_outside);
        next->candidate_count += !next->barred[row];
        next->shares[row] = next->barred[row] ? 0 : next->shares[row];
        outside += is_outside && !next->barred[row];
    }
    if (outside > 0)
        xappend(&next->notes, &next->note_count,
                xformat("%zu of the %zu candidates lie outside the domain of the model, where "
                        "predictions are extrapolated",
                        outside, design->row_count));
    if (next->candidate_count > 0)
        return 0;
    return failure_input(
        failure, NULL, 0, 0, "the domain is empty: none of the %zu candidates satisfies %s",
        design->row_count,
        next->request->condition_count ? "the experiment's conditions ('require') and --within" : "--within");
}

int next_make_candidates(struct next_rows *next, struct failure *failure) {
    int r = make_ranges(next, failure);
    r = r < 0 ? r : next->request->candidates ? read_table(next, failure) : make_grid(next, failure);
    if (r == 0 && next->request->factors)
        r = design_conform(next->candidates, next->request->factors, failure);
    return r < 0 ? r : bar_impossible(next, failure);
}
