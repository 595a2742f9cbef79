#include "engine/plugin/evaluation.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

/* How the products of estimates and terms make the mean. */
enum joining {
    JOIN_SUM,
    JOIN_GREATEST,
    JOIN_LEAST,
    JOIN_HARMONIC, /* the reciprocal of the sum of their reciprocals */
};

static const struct {
    const char *name;
    enum joining joining;
} kinds[] = {{"linear", JOIN_SUM},    {"piecewise", JOIN_SUM},     {"maximum", JOIN_GREATEST},
             {"minimum", JOIN_LEAST}, {"harmonic", JOIN_HARMONIC}, {"smpi", JOIN_SUM}};
enum { KIND_COUNT = sizeof kinds / sizeof *kinds };

/* What terms are products of powers of: a column, its logarithm, or whether it has a level. */
struct base {
    size_t column;
    const char *level;
    bool log2;
};

struct step {
    uint32_t base;
    int32_t power;
};

/* Where a range's value is found. */
enum { SOURCE_NONE = -1 }; /* of something that is not evaluated; else a column, or a term from first_term */

/* Where a run of segments saw the column that tells them apart. */
struct bounds {
    double minimum, maximum;
};

struct prepared_part {
    size_t first_range;   /* in sources */
    double mixture;       /* standard deviation of its mixture; NaN where the noise is none */
    struct bounds bounds; /* of the run of parts that begins here */
};

/* Parts of one group that a row may be of: all, or those of one name. */
struct run {
    size_t first, end;
};

struct evaluation {
    const struct predict_model *model;
    enum joining joining;
    struct base *bases;
    size_t base_count;
    struct step *steps;
    size_t *step_ends;   /* of each term, in steps */
    size_t over;         /* column; SIZE_MAX where there are no segments */
    size_t named_by;     /* column; SIZE_MAX where parts are for all rows */
    size_t *first_parts; /* of each group, in parts */
    struct prepared_part *parts;
    int32_t *sources; /* one for each range of each part */
    int32_t first_term;
    bool *term_over;                      /* for each term whether it has no other column than over */
    size_t *hull_columns;                 /* one for each factor of the hull */
    const struct predict_levels **levels; /* by column; NULL where they are not known */
    bool *numbers, *texts;                /* by column: used as what */
};

void evaluation_free(struct evaluation *evaluation) {
    if (!evaluation)
        return;
    free(evaluation->bases);
    free(evaluation->steps);
    free(evaluation->step_ends);
    free(evaluation->first_parts);
    free(evaluation->parts);
    free(evaluation->sources);
    free(evaluation->term_over);
    free(evaluation->hull_columns);
    free((void *)evaluation->levels);
    free(evaluation->numbers);
    free(evaluation->texts);
    free(evaluation);
}

void evaluation_cleanup(struct evaluation **evaluation) {
    evaluation_free(*evaluation);
}

bool evaluation_knows(const char *kind) {
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(kind, kinds[i].name) == 0)
            return true;
    return false;
}

/* Files of the kind smpi told no names at first. */
bool evaluation_is_possible(const struct predict_model *model) {
    return evaluation_knows(model->kind) && (model->named_by || strcmp(model->kind, "smpi") != 0);
}

/* ---- Preparing -------------------------------------------------------------------------------------------
 */

struct columns {
    const char *const *names;
    size_t count;
};

static size_t find_name(const char *const *names, size_t count, const char *name) {
    size_t i = 0;
    while (i < count && strcmp(names[i], name) != 0)
        i++;
    return i;
}

int evaluation_columns(const struct predict_model *model, const char ***ret, size_t *ret_count) {
    size_t most = 2, count = 0;
    for (size_t t = 0; t < model->term_count; t++)
        most += model->terms[t].factor_count;
    const char **names = xcalloc(most, sizeof *names);
    if (model->over)
        names[count++] = model->over;
    if (model->named_by && find_name(names, count, model->named_by) == count)
        names[count++] = model->named_by;
    for (size_t t = 0; t < model->term_count; t++)
        for (size_t f = 0; f < model->terms[t].factor_count; f++) {
            const char *name = model->terms[t].factors[f].name;
            if (find_name(names, count, name) == count)
                names[count++] = name;
        }
    *ret = names;
    *ret_count = count;
    return 0;
}

static int need_column(const struct predict_model *model, const struct columns *columns, const char *name,
                       size_t *ret, struct failure *failure) {
    size_t i = find_name(columns->names, columns->count, name);
    if (i < columns->count) {
        *ret = i;
        return 0;
    }
    const char *nearest = text_nearest(name, columns->names, columns->count);
    return failure_input(failure, model->name, 0, 0,
                         "the model needs the column '%s', which is not there%s%s%s", name,
                         nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
}

static int check_model(const struct predict_model *model, struct failure *failure) {
    if (!evaluation_knows(model->kind))
        return failure_input(failure, model->name, 0, 0,
                             "the model is of the kind '%.64s', which is not evaluated row by row; expected "
                             "'linear', 'piecewise', 'maximum', 'minimum', 'harmonic' or 'smpi'",
                             model->kind);
    if (!evaluation_is_possible(model))
        return failure_input(failure, model->name, 0, 0,
                             "the model does not tell which column names the operation ('named_by'), so it "
                             "is not evaluated row by row; fit it again with this version");
    size_t factors = 0;
    for (size_t t = 0; t < model->term_count; t++)
        factors += model->terms[t].factor_count;
    if (model->term_count > EVALUATION_TERMS_MAX || factors > (size_t)EVALUATION_TERMS_MAX * 64)
        return failure_input(failure, model->name, 0, 0,
                             "the model has %zu terms with %zu factors; expected at most %d terms",
                             model->term_count, factors, (int)EVALUATION_TERMS_MAX);
    return 0;
}

static bool same_base(const struct base *a, const struct base *b) {
    return a->column == b->column && a->log2 == b->log2 && !a->level == !b->level &&
           (!a->level || strcmp(a->level, b->level) == 0);
}

static int add_base(struct evaluation *evaluation, const struct base *base, uint32_t *ret,
                    struct failure *failure) {
    for (size_t i = 0; i < evaluation->base_count; i++)
        if (same_base(&evaluation->bases[i], base)) {
            *ret = (uint32_t)i;
            return 0;
        }
    if (evaluation->base_count == EVALUATION_FACTORS_MAX)
        return failure_input(failure, evaluation->model->name, 0, 0,
                             "the model's terms have more than %d different factors",
                             (int)EVALUATION_FACTORS_MAX);
    *ret = (uint32_t)evaluation->base_count;
    evaluation->bases[evaluation->base_count++] = *base;
    return 0;
}

static int prepare_terms(struct evaluation *evaluation, const struct columns *columns,
                         struct failure *failure) {
    const struct predict_model *model = evaluation->model;
    size_t steps = 0;
    for (size_t t = 0; t < model->term_count; t++)
        steps += model->terms[t].factor_count;
    evaluation->bases = xcalloc(EVALUATION_FACTORS_MAX, sizeof *evaluation->bases);
    evaluation->steps = xcalloc(steps + 1, sizeof *evaluation->steps);
    evaluation->step_ends = xcalloc(model->term_count + 1, sizeof *evaluation->step_ends);
    evaluation->term_over = xcalloc(model->term_count + 1, sizeof *evaluation->term_over);
    steps = 0;
    for (size_t t = 0; t < model->term_count; t++) {
        evaluation->term_over[t] = model->over != NULL;
        for (size_t f = 0; f < model->terms[t].factor_count; f++) {
            const struct plugin_factor *factor = &model->terms[t].factors[f];
            struct base base = {.level = factor->level, .log2 = factor->function != NULL};
            int r = need_column(model, columns, factor->name, &base.column, failure);
            r = r < 0 ? r : add_base(evaluation, &base, &evaluation->steps[steps].base, failure);
            if (r < 0)
                return r;
            evaluation->steps[steps++].power = factor->power;
            evaluation->term_over[t] &= model->over && strcmp(model->over, factor->name) == 0;
            (factor->level ? evaluation->texts : evaluation->numbers)[base.column] = true;
        }
        evaluation->step_ends[t] = steps;
    }
    return 0;
}

/* Of a mixture about its own mean. */
static double mixture_sigma(const struct plugin_noise *noise) {
    double mean = 0, variance = 0;
    for (size_t i = 0; i < noise->component_count; i++)
        mean += noise->components[i].weight * noise->components[i].mean;
    for (size_t i = 0; i < noise->component_count; i++) {
        const struct plugin_component *component = &noise->components[i];
        double off = component->mean - mean;
        variance += component->weight * (component->sigma * component->sigma + off * off);
    }
    return sqrt(variance);
}

static bool same_name(const char *a, const char *b) {
    return a && b ? strcmp(a, b) == 0 : a == b;
}

/* Whether the part at P is for other rows than the one before it. */
static bool begins_run(const struct predict_model *model, const struct predict_group *group, size_t p) {
    return p == 0 || (model->named_by && !same_name(group->parts[p].name, group->parts[p - 1].name));
}

/* The parts that are for the same rows as the one at FIRST: what lies between two of them is the nearer
 * one's. */
static struct run run_from(const struct predict_model *model, const struct predict_group *group,
                           size_t first) {
    struct run run = {first, first + 1};
    while (run.end < group->part_count && !begins_run(model, group, run.end))
        run.end++;
    return run;
}

/* Segments of one run must come in order, without common ground. */
static int check_segments(const struct predict_model *model, const struct predict_group *group,
                          struct failure *failure) {
    if (group->part_count == 0 || (!model->over && !model->named_by && group->part_count > 1))
        return failure_input(failure, model->name, 0, 0,
                             "the group '%.128s' has %zu parts, and the model is over no column that would "
                             "tell which of them holds; expected 1",
                             group->name, group->part_count);
    for (size_t i = 0; model->over && i < group->part_count; i++) {
        const struct predict_part *part = &group->parts[i];
        bool first = begins_run(model, group, i);
        if (!(part->from < part->to) || (!first && part->from < part[-1].to))
            return failure_input(
                failure, model->name, 0, 0,
                "segment %zu of the group '%.128s' goes from %.9g to %.9g; expected segments "
                "in order that do not overlap",
                i + 1, group->name, part->from, part->to);
    }
    return 0;
}

static int32_t find_source(const struct evaluation *evaluation, const struct columns *columns,
                           const char *name) {
    size_t c = find_name(columns->names, columns->count, name);
    if (c < columns->count)
        return evaluation->numbers[c] ? (int32_t)c : SOURCE_NONE;
    const struct predict_model *model = evaluation->model;
    for (size_t t = 0; t < model->term_count; t++)
        if (strcmp(model->terms[t].name, name) == 0)
            return evaluation->first_term + (int32_t)t;
    return SOURCE_NONE;
}

/* Groups nearly always have the same ranges in the same order: LIKE is one whose sources are known. */
static void find_sources(const struct evaluation *evaluation, const struct columns *columns,
                         const struct predict_part *part, int32_t *sources, const struct predict_part *like,
                         const int32_t *like_sources) {
    for (size_t i = 0; i < part->domain_count; i++) {
        bool same = like && i < like->domain_count && strcmp(like->domain[i].name, part->domain[i].name) == 0;
        sources[i] = same ? like_sources[i] : find_source(evaluation, columns, part->domain[i].name);
    }
}

static struct bounds run_bounds(const struct predict_model *model, const struct predict_group *group,
                                size_t begin) {
    struct run run = run_from(model, group, begin);
    const struct predict_part *first = &group->parts[run.first], *last = &group->parts[run.end - 1];
    struct bounds bounds = {first->from, last->to};
    for (size_t i = 0; model->over && i < first->domain_count; i++)
        if (strcmp(first->domain[i].name, model->over) == 0)
            bounds.minimum = first->domain[i].minimum;
    for (size_t i = 0; model->over && i < last->domain_count; i++)
        if (strcmp(last->domain[i].name, model->over) == 0)
            bounds.maximum = last->domain[i].maximum;
    return bounds;
}

/* How much there is to prepare, after a look at each group. */
static int count_parts(const struct predict_model *model, size_t *ret_parts, size_t *ret_ranges,
                       struct failure *failure) {
    *ret_parts = *ret_ranges = 0;
    for (size_t g = 0; g < model->group_count; g++) {
        int r = check_segments(model, &model->groups[g], failure);
        if (r < 0)
            return r;
        *ret_parts += model->groups[g].part_count;
        for (size_t p = 0; p < model->groups[g].part_count; p++)
            *ret_ranges += model->groups[g].parts[p].domain_count;
    }
    return 0;
}

static int prepare_parts(struct evaluation *evaluation, const struct columns *columns,
                         struct failure *failure) {
    const struct predict_model *model = evaluation->model;
    size_t parts, ranges;
    int r = count_parts(model, &parts, &ranges, failure);
    if (r < 0)
        return r;
    evaluation->first_parts = xcalloc(model->group_count + 1, sizeof *evaluation->first_parts);
    evaluation->parts = xcalloc(parts + 1, sizeof *evaluation->parts);
    evaluation->sources = xcalloc(ranges + 1, sizeof *evaluation->sources);
    const struct predict_part *like = NULL;
    int32_t *like_sources = evaluation->sources;
    parts = ranges = 0;
    for (size_t g = 0; g < model->group_count; g++) {
        evaluation->first_parts[g] = parts;
        for (size_t p = 0; p < model->groups[g].part_count; p++) {
            const struct predict_part *part = &model->groups[g].parts[p];
            bool mixture = part->noise && part->noise->components;
            evaluation->parts[parts] = (struct prepared_part){
                .first_range = ranges, .mixture = mixture ? mixture_sigma(part->noise) : NAN};
            if (begins_run(model, &model->groups[g], p))
                evaluation->parts[parts].bounds = run_bounds(model, &model->groups[g], p);
            parts++;
            find_sources(evaluation, columns, part, &evaluation->sources[ranges], like, like_sources);
            like = part;
            like_sources = &evaluation->sources[ranges];
            ranges += part->domain_count;
        }
    }
    return 0;
}

/* A hull over something that is no factor here says nothing. */
static int prepare_hull(struct evaluation *evaluation, const struct columns *columns) {
    const struct predict_hull *hull = evaluation->model->hull;
    if (!hull)
        return 0;
    cleanup_free size_t *found = xcalloc(hull->factor_count + 1, sizeof *found);
    for (size_t i = 0; i < hull->factor_count; i++) {
        found[i] = find_name(columns->names, columns->count, hull->factors[i]);
        if (found[i] == columns->count || !evaluation->numbers[found[i]])
            return 0;
    }
    evaluation->hull_columns = take_pointer(found);
    return 0;
}

static void prepare_levels(struct evaluation *evaluation, const struct columns *columns) {
    const struct predict_model *model = evaluation->model;
    for (size_t i = 0; i < model->level_count; i++) {
        size_t c = find_name(columns->names, columns->count, model->levels[i].column);
        if (c < columns->count && evaluation->texts[c])
            evaluation->levels[c] = &model->levels[i];
    }
}

int evaluation_new(const struct predict_model *model, const char *const *columns, size_t column_count,
                   struct evaluation **ret, struct failure *failure) {
    int r = check_model(model, failure);
    if (r < 0)
        return r;
    cleanup(evaluation_cleanup) struct evaluation *evaluation = calloc(1, sizeof *evaluation);
    if (!evaluation)
        return failure_memory(failure);
    const struct columns names = {columns, column_count};
    evaluation->model = model;
    for (size_t i = 0; i < KIND_COUNT; i++)
        if (strcmp(model->kind, kinds[i].name) == 0)
            evaluation->joining = kinds[i].joining;
    evaluation->over = evaluation->named_by = SIZE_MAX;
    evaluation->first_term = (int32_t)column_count;
    evaluation->numbers = xcalloc(column_count + 1, sizeof *evaluation->numbers);
    evaluation->texts = xcalloc(column_count + 1, sizeof *evaluation->texts);
    evaluation->levels = xcalloc(column_count + 1, sizeof *evaluation->levels);
    if (model->over && (r = need_column(model, &names, model->over, &evaluation->over, failure)) < 0)
        return r;
    if (model->over)
        evaluation->numbers[evaluation->over] = true;
    if (model->named_by &&
        (r = need_column(model, &names, model->named_by, &evaluation->named_by, failure)) < 0)
        return r;
    if (model->named_by)
        evaluation->texts[evaluation->named_by] = true;
    r = prepare_terms(evaluation, &names, failure);
    r = r < 0 ? r : prepare_parts(evaluation, &names, failure);
    r = r < 0 ? r : prepare_hull(evaluation, &names);
    if (r < 0)
        return r;
    prepare_levels(evaluation, &names);
    *ret = take_pointer(evaluation);
    return 0;
}

bool evaluation_uses_number(const struct evaluation *evaluation, size_t column) {
    return evaluation->numbers[column];
}

bool evaluation_uses_text(const struct evaluation *evaluation, size_t column) {
    return evaluation->texts[column];
}

/* ---- A row -----------------------------------------------------------------------------------------------
 */

static double raise_whole(double value, int32_t power) {
    uint32_t left = power < 0 ? -(uint32_t)power : (uint32_t)power;
    double square = value, product = 1;
    for (; left; left >>= 1) {
        if (left & 1)
            product *= square;
        square *= square;
    }
    return power < 0 ? 1 / product : product;
}

static double base_value(const struct base *base, const double *values, const char *const *texts) {
    if (base->level) {
        const char *text = texts ? texts[base->column] : NULL;
        return text ? strcmp(text, base->level) == 0 : NAN;
    }
    double value = values[base->column];
    return base->log2 ? log2(value) : value;
}

void evaluation_terms(const struct evaluation *evaluation, const double *values, const char *const *texts,
                      double *ret_terms) {
    double bases[EVALUATION_FACTORS_MAX];
    for (size_t i = 0; i < evaluation->base_count; i++)
        bases[i] = base_value(&evaluation->bases[i], values, texts);
    size_t step = 0;
    for (size_t t = 0; t < evaluation->model->term_count; t++) {
        double product = 1;
        for (; step < evaluation->step_ends[t]; step++) {
            const struct step *at = &evaluation->steps[step];
            product *= at->power == 1 ? bases[at->base] : raise_whole(bases[at->base], at->power);
        }
        ret_terms[t] = product;
    }
}

/* The part of RUN that holds X, or the nearest. */
static size_t find_segment(const struct predict_group *group, struct run run, double x) {
    size_t low = run.first, high = run.end; /* parts below low begin at or below x, from high on above it */
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (group->parts[middle].from <= x)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == run.first)
        return low;
    if (low == run.end || x < group->parts[low - 1].to)
        return low - 1;
    return x - group->parts[low - 1].to <= group->parts[low].from - x ? low - 1 : low;
}

/* "MPI_Isend" and "isend" are Isend. */
static bool names_part(const char *text, const char *name) {
    static const char prefix[] = "MPI_";
    size_t skipped = strncasecmp(text, prefix, sizeof prefix - 1) == 0 ? sizeof prefix - 1 : 0;
    return name && strcasecmp(text + skipped, name) == 0;
}

/* What a row may be of; false where no part has the name that it gives. */
static bool find_run(const struct evaluation *evaluation, size_t group, const char *const *texts,
                     struct run *ret) {
    const struct predict_group *of = &evaluation->model->groups[group];
    *ret = (struct run){0, of->part_count};
    if (evaluation->named_by == SIZE_MAX)
        return true;
    const char *text = texts ? texts[evaluation->named_by] : NULL;
    for (size_t p = 0; text && p < of->part_count; p = ret->end) {
        *ret = run_from(evaluation->model, of, p);
        if (names_part(text, of->parts[p].name) && strcmp(of->parts[p].kind, "protocol") != 0)
            return true;
    }
    return false;
}

/* SIZE_MAX: none. */
static size_t part_index(const struct evaluation *evaluation, size_t group, const double *values,
                         const char *const *texts, struct run *ret_run) {
    if (!find_run(evaluation, group, texts, ret_run))
        return SIZE_MAX;
    if (evaluation->over == SIZE_MAX || ret_run->end - ret_run->first == 1)
        return ret_run->first;
    return find_segment(&evaluation->model->groups[group], *ret_run, values[evaluation->over]);
}

const struct predict_part *evaluation_part(const struct evaluation *evaluation, size_t group,
                                           const double *values, const char *const *texts) {
    struct run run;
    size_t p = part_index(evaluation, group, values, texts, &run);
    return p == SIZE_MAX ? NULL : &evaluation->model->groups[group].parts[p];
}

bool evaluation_is_of_row(const struct evaluation *evaluation, const struct predict_part *part) {
    return evaluation->named_by == SIZE_MAX || strcmp(part->kind, "segment") == 0;
}

/* The greatest (or the least) of the terms that the part has; which one in *RET_TERM. */
static double extreme_term(const struct evaluation *evaluation, const struct predict_part *part,
                           const double *terms, size_t *ret_term) {
    double extreme = NAN, sign = evaluation->joining == JOIN_LEAST ? -1 : 1;
    *ret_term = 0;
    for (size_t t = 0; t < evaluation->model->term_count; t++) {
        if (part->dropped && part->dropped[t])
            continue;
        double value = part->estimates[t] * terms[t];
        if (isnan(value))
            return NAN;
        if (isnan(extreme) || sign * value > sign * extreme) {
            extreme = value;
            *ret_term = t;
        }
    }
    return extreme;
}

/* A term that the part leaves out has no say, whatever its value. */
static double mean_of(const struct evaluation *evaluation, const struct predict_part *part,
                      const double *terms) {
    size_t term;
    if (evaluation->joining == JOIN_GREATEST || evaluation->joining == JOIN_LEAST)
        return extreme_term(evaluation, part, terms, &term);
    bool harmonic = evaluation->joining == JOIN_HARMONIC;
    double sum = 0;
    for (size_t t = 0; t < evaluation->model->term_count; t++) {
        if (part->dropped && part->dropped[t])
            continue;
        double product = part->estimates[t] * terms[t];
        sum += harmonic ? 1 / product : product;
    }
    return harmonic ? 1 / sum : sum;
}

static double sigma_of(const struct predict_model *model, const struct plugin_noise *noise, double mixture,
                       const double *terms) {
    if (!noise)
        return NAN;
    if (noise->components)
        return mixture;
    double sigma = noise->constant;
    for (size_t t = 0; noise->coefficients && t < model->term_count; t++)
        if (noise->coefficients[t] != 0)
            sigma += noise->coefficients[t] * terms[t];
    return sigma < 0 ? 0 : sigma;
}

double evaluation_sigma(const struct predict_model *model, const struct predict_part *part,
                        const double *terms) {
    bool mixture = part->noise && part->noise->components;
    return sigma_of(model, part->noise, mixture ? mixture_sigma(part->noise) : NAN, terms);
}

/* ---- The domain ------------------------------------------------------------------------------------------
 */

/* By which factor VALUE is away from a BOUND that it is beyond. */
static double factor_beyond(double value, double bound) {
    double factor = value > bound ? value / bound : bound / value;
    if (value < 0 && bound < 0)
        factor = 1 / factor;
    return factor >= 1 ? factor : INFINITY;
}

static void leave(struct evaluation_value *ret, const char *name, double value, double minimum,
                  double maximum) {
    if (!(value > maximum) && !(value < minimum))
        return;
    bool above = value > maximum;
    double factor = factor_beyond(value, above ? maximum : minimum);
    if (ret->left_by && factor <= ret->left)
        return;
    ret->left = factor;
    ret->left_by = name;
    ret->left_above = above;
}

/* The range of the segments' column is that of the whole run: a value between what two segments saw is not
 * beyond it. In a gap between segments the bound of the nearest counts. */
static void leave_segments(const struct evaluation *evaluation, size_t group, struct run run, double x,
                           struct evaluation_value *ret) {
    const struct predict_group *of = &evaluation->model->groups[group];
    const struct bounds *bounds = &evaluation->parts[evaluation->first_parts[group] + run.first].bounds;
    size_t p = find_segment(of, run, x);
    leave(ret, evaluation->model->over, x, bounds->minimum, bounds->maximum);
    if (p > run.first && x < of->parts[p].from)
        leave(ret, evaluation->model->over, x, of->parts[p].from, INFINITY);
    if (p + 1 < run.end && x > of->parts[p].to)
        leave(ret, evaluation->model->over, x, -INFINITY, of->parts[p].to);
}

static void leave_columns(const struct evaluation *evaluation, const struct predict_part *part,
                          const int32_t *sources, const double *values, struct evaluation_value *ret) {
    for (size_t i = 0; i < part->domain_count; i++) {
        const struct plugin_range *range = &part->domain[i];
        if (sources[i] >= 0 && sources[i] < evaluation->first_term && (size_t)sources[i] != evaluation->over)
            leave(ret, range->name, values[sources[i]], range->minimum, range->maximum);
    }
}

static void leave_terms(const struct evaluation *evaluation, const struct predict_part *part,
                        const int32_t *sources, const double *terms, struct evaluation_value *ret) {
    for (size_t i = 0; i < part->domain_count; i++) {
        const struct plugin_range *range = &part->domain[i];
        int32_t t = sources[i] - evaluation->first_term;
        if (t >= 0 && !evaluation->term_over[t])
            leave(ret, range->name, terms[t], range->minimum, range->maximum);
    }
}

/* A level that the fit never saw is not the one that the others are compared with, though its terms say so.
 */
static void leave_levels(const struct evaluation *evaluation, const char *const *texts,
                         struct evaluation_value *ret) {
    for (size_t i = 0; i < evaluation->base_count; i++) {
        size_t c = evaluation->bases[i].column;
        const struct predict_levels *levels = evaluation->bases[i].level ? evaluation->levels[c] : NULL;
        if (!levels || !texts || !texts[c] ||
            find_name(levels->texts, levels->count, texts[c]) < levels->count)
            continue;
        ret->left = INFINITY;
        ret->left_by = levels->column;
        ret->left_above = false;
    }
}

static double beyond_hull(const struct evaluation *evaluation, const double *values) {
    const struct predict_hull *hull = evaluation->model->hull;
    double worst = 0;
    for (size_t d = 0; d < hull->direction_count; d++) {
        double sum = 0, size = 0;
        for (size_t i = 0; i < hull->factor_count; i++) {
            double one = hull->directions[d * hull->factor_count + i] * hull->scale[i] *
                         values[evaluation->hull_columns[i]];
            sum += one;
            size += fabs(one);
        }
        double width = hull->maximum[d] - hull->minimum[d];
        double off = fmax(sum - hull->maximum[d], hull->minimum[d] - sum);
        if (off > size * 1e-14) /* what the sum's rounding can be */
            worst = fmax(worst, width > 0 ? off / width : INFINITY);
    }
    return worst;
}

int evaluation_row(const struct evaluation *evaluation, size_t group, const double *values,
                   const char *const *texts, struct evaluation_value *ret) {
    double terms[EVALUATION_TERMS_MAX];
    const struct predict_model *model = evaluation->model;
    struct run run;
    size_t p = part_index(evaluation, group, values, texts, &run);
    *ret = (struct evaluation_value){.mean = NAN, .sigma = NAN, .left = 1};
    if (p == SIZE_MAX)
        return -EDOM;
    const struct predict_part *part = &model->groups[group].parts[p];
    const struct prepared_part *prepared = &evaluation->parts[evaluation->first_parts[group] + p];
    evaluation_terms(evaluation, values, texts, terms);
    ret->mean = mean_of(evaluation, part, terms);
    ret->sigma = sigma_of(model, part->noise, prepared->mixture, terms);
    const int32_t *sources = &evaluation->sources[prepared->first_range];
    leave_columns(evaluation, part, sources, values, ret);
    if (evaluation->over != SIZE_MAX)
        leave_segments(evaluation, group, run, values[evaluation->over], ret);
    if (!ret->left_by)
        leave_terms(evaluation, part, sources, terms, ret);
    leave_levels(evaluation, texts, ret);
    if (evaluation->hull_columns)
        ret->beyond_hull = beyond_hull(evaluation, values);
    if (isfinite(ret->mean) && (evaluation->over == SIZE_MAX || !isnan(values[evaluation->over])))
        return 0;
    ret->mean = NAN;
    return -EDOM;
}

double evaluation_standard_error(const struct evaluation *evaluation, size_t group, const double *values,
                                 const char *const *texts) {
    double terms[EVALUATION_TERMS_MAX];
    size_t count = evaluation->model->term_count, extreme;
    const struct predict_part *part = evaluation_part(evaluation, group, values, texts);
    if (!part || !part->covariance)
        return NAN;
    evaluation_terms(evaluation, values, texts, terms);
    if (evaluation->joining == JOIN_GREATEST || evaluation->joining == JOIN_LEAST) {
        double value = extreme_term(evaluation, part, terms, &extreme);
        return isfinite(value) ? fabs(terms[extreme]) * sqrt(part->covariance[extreme * (count + 1)]) : NAN;
    }
    if (evaluation->joining == JOIN_HARMONIC) { /* to first order: d mean = (mean / (b z))^2 z db */
        double mean = mean_of(evaluation, part, terms);
        for (size_t i = 0; i < count; i++) {
            double share = mean / (part->estimates[i] * terms[i]);
            terms[i] *= share * share;
        }
    }
    double variance = 0;
    for (size_t i = 0; i < count; i++) {
        double row = 0;
        if (part->dropped && part->dropped[i])
            continue;
        for (size_t j = 0; j < count; j++)
            if (!part->dropped || !part->dropped[j])
                row += part->covariance[i * count + j] * terms[j];
        variance += terms[i] * row;
    }
    return variance >= 0 ? sqrt(variance) : 0; /* below zero only by rounding */
}
