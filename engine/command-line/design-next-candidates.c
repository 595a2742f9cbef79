/* assay design next: the rows from which is chosen, drawn within the domain of the model or read from a
 * table. */
#include "engine/command-line/design-next.h"

#include "engine/design/generate.h"
#include "engine/design/levels.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/portable-math.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    POINTS = 4096, /* drawn; of each state and the like, no fewer than POINTS_LEAST */
    POINTS_LEAST = 512,
    LEVELS_MOST_CROSSED = 64,
};

/* What the terms of several factors were fitted on: the box of the factors has corners far out of it. */
struct limits {
    const struct next_design *next;
    double *minimums, *maximums, *terms; /* by term */
    double *values;                      /* by factor */
};

static void limits_clear(struct limits *limits) {
    free(limits->minimums);
    free(limits->maximums);
    free(limits->terms);
    free(limits->values);
}

static size_t factor_index(const struct model_fit *fit, const char *name, size_t length) {
    size_t i = 0;
    while (i < fit->factor_count &&
           (strlen(fit->factors[i].name) != length || memcmp(fit->factors[i].name, name, length) != 0))
        i++;
    return i;
}

/* ---- Ranges */

static int unknown_factor(const struct model_fit *fit, const char *name, struct failure *failure) {
    cleanup_free const char **names = xcalloc(fit->factor_count + 1, sizeof *names);
    for (size_t i = 0; i < fit->factor_count; i++)
        names[i] = fit->factors[i].name;
    const char *nearest = text_nearest(name, names, fit->factor_count);
    return failure_input(failure, NULL, 0, 0, "--within: '%.64s' is no factor of the model%s%s%s", name,
                         nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

/* NAME=LOW..HIGH */
static int read_within(struct next_design *next, const char *text, struct failure *failure) {
    const char *equals = strchr(text, '='), *dots = equals ? strstr(equals, "..") : NULL;
    if (!dots || equals == text)
        return failure_input(failure, NULL, 0, 0, "--within '%.64s', expected a range such as n=1..5000",
                             text);
    cleanup_free char *name = strndup(text, (size_t)(equals - text)),
                      *low = strndup(equals + 1, (size_t)(dots - equals - 1)), *high = strdup(dots + 2);
    if (!name || !low || !high)
        return failure_memory(failure);
    size_t i = factor_index(next->fit, name, strlen(name));
    if (i == next->fit->factor_count)
        return unknown_factor(next->fit, name, failure);
    cleanup(levels_clear) struct levels levels = {0};
    const struct levels_place nowhere = {0};
    int r = levels_from_range(name, low, high, NULL, nowhere, &levels, failure);
    if (r < 0)
        return r;
    const struct plugin_range *domain = &next->domain[i];
    next->ranges[i].low = levels.low;
    next->ranges[i].high = levels.high;
    if (levels.low >= domain->minimum && levels.high <= domain->maximum)
        return 0;
    r = next_design_note(
        next,
        "warning: '%s' from %.6g to %.6g leaves the domain of the model, %.6g to %.6g: there "
        "its prediction is an extrapolation, and so is its uncertainty",
        name, levels.low, levels.high, domain->minimum, domain->maximum);
    return r < 0 ? failure_memory(failure) : 0;
}

/* What the experiment allows of a factor. */
static int apply_bounds(struct next_design *next, size_t i, struct failure *failure) {
    struct candidate_range *range = &next->ranges[i];
    size_t found = next->factors.items ? design_factor_find(&next->factors, range->name) : SIZE_MAX;
    if (next->factors.items && found == SIZE_MAX)
        return failure_input(failure, NULL, 0, 0,
                             "the model's terms use '%s', which is no factor of the experiment '%s' and so "
                             "cannot be set; choose another one with --experiment, or none",
                             range->name, next->experiment->name);
    if (found != SIZE_MAX) {
        const struct design_factor *factor = &next->factors.items[found];
        range->whole = factor->type == DESIGN_INTEGER;
        range->low = fmax(range->low, factor->minimum);
        range->high = fmin(range->high, factor->maximum);
    }
    if (range->whole) {
        range->low = ceil(range->low);
        range->high = floor(range->high);
    }
    if (range->low <= range->high)
        return 0;
    return failure_input(failure, NULL, 0, 0,
                         "the domain is empty: no %s of '%s' lies within all of the model's groups, the "
                         "experiment's bounds and --within",
                         range->whole ? "whole number" : "value", range->name);
}

static int make_ranges(struct next_design *next, struct failure *failure) {
    const struct model_fit *fit = next->fit;
    next->ranges = xcalloc(fit->factor_count + 1, sizeof *next->ranges);
    next->domain = xcalloc(fit->factor_count + 1, sizeof *next->domain);
    for (size_t i = 0; i < fit->factor_count; i++) {
        const char *name = fit->factors[i].name;
        double low, high;
        if (!model_fit_domain(fit, next->groups, next->group_count, name, &low, &high))
            return failure_input(
                failure, next->model_path, 0, 0,
                "the model does not say where '%s' was observed: it is no member of 'domain'", name);
        next->ranges[i] = (struct candidate_range){name, fit->factors[i].whole, low, high};
        next->domain[i] = (struct plugin_range){name, low, high};
    }
    int r = verb_check_settings(next->arguments, "--within", failure);
    const char *text;
    for (size_t k = 0; r == 0 && (text = verb_value_at(next->arguments, "--within", k)); k++)
        r = read_within(next, text, failure);
    for (size_t i = 0; r == 0 && i < fit->factor_count; i++)
        r = apply_bounds(next, i, failure);
    return r;
}

/* ---- Limits of terms */

/* A term may go as much further as the user lets its factors go. */
static void limit_term(struct limits *limits, size_t t) {
    const struct next_design *next = limits->next;
    const struct model_fit *fit = next->fit;
    const struct plugin_term *term = &fit->view->terms[t];
    double *minimum = &limits->minimums[t], *maximum = &limits->maximums[t];
    bool single = term->factor_count == 1 && term->factors[0].power == 1 && !term->factors[0].function;
    *minimum = -INFINITY;
    *maximum = INFINITY;
    if (term->factor_count == 0 || single)
        return;
    model_fit_domain(fit, next->groups, next->group_count, term->name, minimum, maximum);
    for (size_t f = 0; f < term->factor_count; f++) {
        size_t i = factor_index(fit, term->factors[f].name, strlen(term->factors[f].name));
        const struct candidate_range *range = &next->ranges[i];
        const struct plugin_range *domain = &next->domain[i];
        bool wider = range->high > domain->maximum, deeper = range->low < domain->minimum;
        bool positive = domain->minimum > 0 && range->low > 0 && !term->factors[f].function;
        int32_t power = term->factors[f].power;
        if (wider && positive) /* of a negative power it is the least that goes further */
            *(power > 0 ? maximum : minimum) *= portable_power(range->high / domain->maximum, power);
        if (deeper && positive)
            *(power > 0 ? minimum : maximum) *= portable_power(range->low / domain->minimum, power);
        if ((wider || deeper) && !positive) {
            *minimum = -INFINITY;
            *maximum = INFINITY;
            return;
        }
    }
}

static int limits_init(struct limits *limits, const struct next_design *next, struct failure *failure) {
    size_t count = next->fit->view->term_count;
    *limits =
        (struct limits){next, calloc(count, sizeof(double)), calloc(count, sizeof(double)),
                        calloc(count, sizeof(double)), calloc(next->fit->factor_count + 1, sizeof(double))};
    if (!limits->minimums || !limits->maximums || !limits->terms || !limits->values)
        return failure_memory(failure);
    for (size_t t = 0; t < count; t++)
        limit_term(limits, t);
    return 0;
}

/* A candidate_admits. */
static bool is_within(void *context, const double *values) {
    static const double rounding = 1e-9;
    const struct limits *limits = context;
    model_fit_row(limits->next->fit, values, limits->terms);
    for (size_t t = 0; t < limits->next->fit->view->term_count; t++) {
        double term = limits->terms[t];
        if (!(term >= limits->minimums[t] - rounding * fabs(limits->minimums[t]) ||
              isinf(limits->minimums[t])) ||
            !(term <= limits->maximums[t] + rounding * fabs(limits->maximums[t]) ||
              isinf(limits->maximums[t])))
            return false;
    }
    return true;
}

/* ---- Columns that the model's terms do not have */

struct crossed {
    struct levels items[LEVELS_MOST_CROSSED];
    size_t count, combinations;
};

static void crossed_clear(struct crossed *crossed) {
    for (size_t i = 0; i < crossed->count; i++)
        levels_clear(&crossed->items[i]);
}

static int add_crossed(struct crossed *crossed, const char *name, const char *const *texts, size_t count,
                       struct failure *failure) {
    if (crossed->count == LEVELS_MOST_CROSSED)
        return failure_input(failure, NULL, 0, 0, "more than %d columns beside the model's",
                             LEVELS_MOST_CROSSED);
    const struct levels_place nowhere = {0};
    int r = levels_from_list(name, texts, count, nowhere, &crossed->items[crossed->count], failure);
    if (r == 0) {
        crossed->count++;
        crossed->combinations *= count;
    }
    return r;
}

/* A factor or control that makes groups: each value that groups have. */
static int cross_groups(const struct next_design *next, struct crossed *crossed, struct failure *failure) {
    const struct model_fit *fit = next->fit;
    cleanup_free const char **texts = xcalloc(next->group_count + 1, sizeof *texts);
    int r = 0;
    for (size_t j = 0; r == 0 && j < fit->by_count; j++) {
        bool is_factor = next->factors.items && design_factor_find(&next->factors, fit->by[j]) != SIZE_MAX;
        size_t count = 0;
        for (size_t g = 0; (is_factor || control_of_column(fit->by[j])) && g < next->group_count; g++) {
            const char *label = fit->groups[next->groups[g]].labels[j];
            size_t seen = 0;
            while (seen < count && strcmp(texts[seen], label) != 0)
                seen++;
            texts[seen] = label;
            count += seen == count;
        }
        if (count)
            r = add_crossed(crossed, fit->by[j], texts, count, failure);
    }
    return r;
}

static int cross_settings(const struct next_design *next, struct crossed *crossed, struct failure *failure) {
    int r = verb_check_settings(next->arguments, "--set", failure);
    const char *text;
    for (size_t k = 0; r == 0 && (text = verb_value_at(next->arguments, "--set", k)); k++) {
        const char *equals = strchr(text, '=');
        if (!equals || equals == text)
            return failure_input(failure, NULL, 0, 0, "--set '%.64s', expected NAME=VALUE", text);
        cleanup_free char *name = xstrndup(text, (size_t)(equals - text));
        if (factor_index(next->fit, name, strlen(name)) < next->fit->factor_count)
            return failure_input(
                failure, NULL, 0, 0,
                "--set: '%.64s' is a factor of the model; say where with --within %.64s=LOW..HIGH", name,
                name);
        r = add_crossed(crossed, name, &(const char *){equals + 1}, 1, failure);
    }
    return r;
}

/* What the experiment needs and nobody says. */
static int check_missing(const struct next_design *next, const struct crossed *crossed,
                         struct failure *failure) {
    for (size_t i = 0; i < next->factors.count; i++) {
        const char *name = next->factors.items[i].name;
        bool there = next->factors.items[i].default_text ||
                     factor_index(next->fit, name, strlen(name)) < next->fit->factor_count;
        for (size_t j = 0; !there && j < crossed->count; j++)
            there = strcmp(crossed->items[j].name, name) == 0;
        if (!there)
            return failure_input(
                failure, NULL, 0, 0,
                "the experiment '%s' has a factor '%s', which is not in the model and has no "
                "default; give it with --set %s=VALUE",
                next->experiment->name, name, name);
    }
    return 0;
}

/* ---- Putting them together */

static int draw(struct next_design *next, struct failure *failure) {
    cleanup(crossed_clear) struct crossed crossed = {.combinations = 1};
    cleanup(limits_clear) struct limits limits = {0};
    int r = cross_groups(next, &crossed, failure);
    r = r < 0 ? r : cross_settings(next, &crossed, failure);
    r = r < 0 ? r : check_missing(next, &crossed, failure);
    r = r < 0 ? r : limits_init(&limits, next, failure);
    if (r < 0)
        return r;
    size_t points = POINTS / crossed.combinations;
    cleanup(candidates_clear) struct candidates drawn = {0};
    r = candidates_draw(next->ranges, next->fit->factor_count, points > POINTS_LEAST ? points : POINTS_LEAST,
                        next->seed, is_within, &limits, &drawn, failure);
    if (r < 0 && failure->kind == FAILURE_INPUT)
        return failure_prefix(failure, "the domain is empty");
    if (r < 0 || crossed.count == 0) {
        if (r == 0) {
            next->candidates = drawn;
            drawn = (struct candidates){0};
        }
        return r;
    }
    r = design_generate_crossed(drawn.design, crossed.items, crossed.count, &next->candidates.design,
                                failure);
    if (r < 0)
        return r;
    size_t rows = next->candidates.design->row_count;
    next->candidates.shares = xcalloc(rows, sizeof *next->candidates.shares);
    for (size_t i = 0; i < rows; i++)
        next->candidates.shares[i] = drawn.shares[i / crossed.combinations];
    return 0;
}

/* Rows that leave the model's domain are the user's choice; each factor is named once. */
static int warn_outside(struct next_design *next, struct failure *failure) {
    const struct design *design = next->candidates.design;
    for (size_t i = 0; i < next->fit->factor_count; i++) {
        size_t column = design_find(design, next->fit->factors[i].name), count = 0;
        const struct plugin_range *domain = &next->domain[i];
        for (size_t row = 0; column != SIZE_MAX && row < design->row_count; row++) {
            double value = design_number(design, row, column);
            count += value < domain->minimum || value > domain->maximum;
        }
        if (count &&
            next_design_note(
                next,
                "warning: %zu of the %zu candidates leave the domain of the model by '%s', which was "
                "observed from %.6g to %.6g",
                count, design->row_count, domain->name, domain->minimum, domain->maximum) < 0)
            return failure_memory(failure);
    }
    return 0;
}

static int read_table(struct next_design *next, const char *path, struct failure *failure) {
    if (verb_value(next->arguments, "--set"))
        return failure_input(failure, NULL, 0, 0,
                             "both --candidates and --set; expected the values as a column of the table");
    int r = design_read(path, next->factors.items ? &next->factors : NULL, &next->candidates.design, failure);
    return r < 0 ? r : warn_outside(next, failure);
}

/* Whether a row is one that may be measured: the experiment's conditions, --within of a table's rows, and
 * a group that there is. */
static bool may_be(const struct next_design *next, size_t row, double *values, bool drawn) {
    const struct design *design = next->candidates.design;
    design_numbers(design, row, values);
    for (size_t i = 0; next->experiment && i < next->experiment->condition_count; i++) {
        double holds = expression_value(next->experiment->conditions[i], values);
        if (!(holds != 0) || isnan(holds))
            return false;
    }
    for (size_t i = 0; !drawn && i < next->fit->factor_count; i++) {
        size_t column = design_find(design, next->fit->factors[i].name);
        const struct candidate_range *range = &next->ranges[i];
        bool asked = range->low != next->domain[i].minimum || range->high != next->domain[i].maximum;
        if (asked && column != SIZE_MAX && !(values[column] >= range->low && values[column] <= range->high))
            return false;
    }
    return !drawn || next_rows_has_group(next->fit, next->groups, next->group_count, design, row);
}

/* Leaves out the candidates that cannot be. */
static int keep_possible(struct next_design *next, bool drawn, struct failure *failure) {
    const struct design *design = next->candidates.design;
    cleanup_free size_t *rows = xcalloc(design->row_count + 1, sizeof *rows);
    cleanup_free double *values = xcalloc(design->column_count + 1, sizeof *values);
    size_t count = 0;
    for (size_t row = 0; row < design->row_count; row++)
        if (may_be(next, row, values, drawn))
            rows[count++] = row;
    if (count == design->row_count)
        return 0;
    if (count == 0)
        return failure_input(failure, NULL, 0, 0,
                             "the domain is empty: not one of %zu candidates is within %s", design->row_count,
                             next->experiment && next->experiment->condition_count
                                 ? "the experiment's conditions ('require') and --within"
                                 : "--within");
    struct design *kept = NULL;
    int r = design_pick(design, rows, count, &kept, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; next->candidates.shares && i < count; i++)
        next->candidates.shares[i] = next->candidates.shares[rows[i]];
    design_free(next->candidates.design);
    next->candidates.design = kept;
    return 0;
}

int next_design_make_candidates(struct next_design *next, struct failure *failure) {
    const char *table = verb_value(next->arguments, "--candidates");
    int r = make_ranges(next, failure);
    r = r < 0 ? r : table ? read_table(next, table, failure) : draw(next, failure);
    if (r == 0 && next->factors.items)
        r = design_conform(next->candidates.design, &next->factors, failure);
    r = r < 0 ? r : keep_possible(next, !table, failure);
    next->request.candidates = next->candidates.design;
    next->request.shares = next->candidates.shares;
    next->seeded = !table;
    return r;
}
