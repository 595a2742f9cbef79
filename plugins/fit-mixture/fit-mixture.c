/* The plugin fit-mixture: see README.md for what it computes. */
#include "plugins/fit-mixture/held-out.h"
#include "plugins/fit-mixture/search.h"
#include "plugins/interface/fit.h"
#include "plugins/numerics/grouped-rows.h"
#include "plugins/numerics/notes.h"

#include <errno.h>
#include <gsl/gsl_errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BREAKS_MAX = 8,
    PARTS_MAX = BREAKS_MAX + 1,
    NEEDS_MAX = 3, /* the response, what the segments are of, the weights */
    REASON_SIZE = 320,
    PIECE = 1024, /* rows */
    VALUES_MAX = 16,
    /* Values that a component must have for BIC to be asked about it: with fewer it says nothing. */
    ASKED_LEAST = 10,
};

enum parameter {
    COMPONENTS,
    MOST,
    STARTS,
    FLOOR,
    LEAST,
    FOLDS,
    BREAK1,
    PARAMETER_COUNT = BREAK1 + BREAKS_MAX
};

#define BREAK(number)                                                                                        \
    {                                                                                                        \
        .name = "break" #number, .unit = "1", .fallback = NAN, .minimum = -1e300, .maximum = 1e300,          \
        .help = "where a segment of the column of --sizes ends and the next begins"                          \
    }

static const struct plugin_parameter parameters[PARAMETER_COUNT] = {
    [COMPONENTS] = {.name = "components",
                    .unit = "1",
                    .fallback = 0,
                    .minimum = 0,
                    .maximum = COMPONENTS_MAX,
                    .whole = true,
                    .help = "how many normals; 0: as many as BIC says"},
    [MOST] = {.name = "most",
              .unit = "1",
              .fallback = COMPONENTS_MAX,
              .minimum = 1,
              .maximum = COMPONENTS_MAX,
              .whole = true,
              .help = "how many normals BIC is asked about"},
    [STARTS] = {.name = "starts",
                .unit = "1",
                .fallback = 10,
                .minimum = 0,
                .maximum = 1000,
                .whole = true,
                .help = "drawn places to begin the search at, besides those that are not drawn"},
    [FLOOR] = {.name = "floor",
               .unit = "1",
               .fallback = 1e-3,
               .minimum = 1e-6,
               .maximum = 1,
               .help = "the least standard deviation of a component, relative to that of all values"},
    [LEAST] = {.name = "least",
               .unit = "1",
               .fallback = 3,
               .minimum = 1,
               .maximum = 1e9,
               .help = "the least sum of weights of the values of a component"},
    [FOLDS] = {.name = "folds",
               .unit = "1",
               .fallback = 5,
               .minimum = 0,
               .maximum = 100,
               .whole = true,
               .help =
                   "parts of the values that are left out in turn, to tell what the mixture says of values "
                   "that it was not fitted to; 0: none"},
    [BREAK1] = BREAK(1),
    BREAK(2),
    BREAK(3),
    BREAK(4),
    BREAK(5),
    BREAK(6),
    BREAK(7),
    BREAK(8),
};

struct fit {
    const struct plugin_host *host;
    const struct fit_request *request;
    const char *over; /* the column of the segments, or NULL */
    double breaks[BREAKS_MAX];
    size_t break_count;
    const char *needs[NEEDS_MAX];
    size_t need_count, over_input, weights_input; /* the response is input 0 */
    struct grouped_rows rows;                     /* the needs, and with folds each row's */
    double *folds;                                /* room for a piece */
    uint64_t row_count;
};

__attribute__((format(printf, 2, 3))) static int refuse(struct plugin_message *message, const char *format,
                                                        ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message->text, sizeof message->text, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

/* ---- Beginning */

static int read_breaks(struct fit *fit, struct plugin_message *message) {
    const struct fit_request *request = fit->request;
    for (int i = 0; i < BREAKS_MAX; i++) {
        double at = request->parameters[BREAK1 + i];
        if (isnan(at))
            continue;
        if (fit->break_count > 0 && at <= fit->breaks[fit->break_count - 1])
            return refuse(message, "break%d=%g comes after a break at %g; expected breaks that ascend", i + 1,
                          at, fit->breaks[fit->break_count - 1]);
        fit->breaks[fit->break_count++] = at;
    }
    if (fit->break_count == 0)
        return 0;
    if (request->size_count != 1)
        return refuse(message,
                      "breaks are given, and %zu columns that they might be of; expected one, with --sizes",
                      request->size_count);
    fit->over = request->sizes[0];
    return 0;
}

static size_t add_need(struct fit *fit, const char *column) {
    size_t need = 0;
    while (need < fit->need_count && strcmp(fit->needs[need], column) != 0)
        need++;
    if (need == fit->need_count)
        fit->needs[fit->need_count++] = column;
    return need;
}

static int check_column(const struct plugin_host *host, const struct fit_request *request, const char *name,
                        struct plugin_message *message) {
    const char **names = calloc(request->column_count + 1, sizeof *names);
    if (!names)
        return -ENOMEM;
    bool exists = false;
    for (size_t i = 0; i < request->column_count; i++) {
        names[i] = request->columns[i].name;
        exists |= strcmp(names[i], name) == 0;
    }
    const char *nearest = exists ? NULL : host->nearest(name, names, request->column_count);
    free(names);
    if (exists)
        return 0;
    return nearest ? refuse(message, "there is no column '%s'; did you mean '%s'?", name, nearest)
                   : refuse(message, "there is no column '%s'", name);
}

static bool validates(const struct fit *fit) {
    return fit->request->parameters[FOLDS] >= 2;
}

static void mixture_close(struct fit *fit) {
    if (!fit)
        return;
    grouped_rows_clear(&fit->rows);
    free(fit->folds);
    free(fit);
}

static int mixture_open(const struct plugin_host *host, const struct fit_request *request, struct fit **ret,
                        struct fit_needs *ret_needs, struct plugin_message *message) {
    gsl_set_error_handler_off(); /* a matrix that is not positive definite is no reason to abort */
    if (request->terms && strcmp(request->terms, "1") != 0)
        return refuse(message,
                      "the terms are '%s'; a mixture is of the response itself, without terms, or with 1",
                      request->terms);
    struct fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return -ENOMEM;
    fit->host = host;
    fit->request = request;
    int r = read_breaks(fit, message);
    if (r == 0 && fit->over)
        r = check_column(host, request, fit->over, message);
    if (r < 0) {
        mixture_close(fit);
        return r;
    }
    add_need(fit, request->response);
    fit->over_input = fit->over ? add_need(fit, fit->over) : 0;
    fit->weights_input = request->weights ? add_need(fit, request->weights) : 0;
    grouped_rows_init(&fit->rows, fit->need_count + validates(fit));
    fit->folds = calloc(PIECE, sizeof *fit->folds);
    if (!fit->folds) {
        mixture_close(fit);
        return -ENOMEM;
    }
    *ret = fit;
    *ret_needs =
        (struct fit_needs){.size = sizeof *ret_needs, .columns = fit->needs, .column_count = fit->need_count};
    return 0;
}

/* ---- Rows */

static int keep_rows(struct fit *fit, const struct fit_block *block) {
    const uint8_t *folds = PLUGIN_HAS(block, folds) ? block->folds : NULL;
    int r = 0;
    for (size_t start = 0, rows; r == 0 && start < block->rows; start += rows) {
        const double *columns[NEEDS_MAX + 1];
        rows = block->rows - start < PIECE ? block->rows - start : PIECE;
        for (size_t i = 0; i < fit->need_count; i++)
            columns[i] = block->columns[i] + start;
        for (size_t i = 0; i < rows; i++)
            fit->folds[i] = folds ? folds[start + i] : 0;
        columns[fit->need_count] = fit->folds;
        r = grouped_rows_add(&fit->rows, rows, columns, block->groups + start, block->group_count);
    }
    return r;
}

static int mixture_block(struct fit *fit, const struct fit_block *block, struct plugin_message *message) {
    const double *weights = fit->request->weights ? block->columns[fit->weights_input] : NULL;
    for (size_t i = 0; weights && i < block->rows; i++)
        if (weights[i] < 0) {
            char place[PLUGIN_PLACE_SIZE];
            return refuse(message, "the weight '%s' of %s is %g; expected 0 or more", fit->request->weights,
                          fit->host->place(fit->host->context, block->first_row + i, place, sizeof place),
                          weights[i]);
        }
    fit->row_count += block->rows;
    int r = keep_rows(fit, block);
    if (r == -EFBIG) {
        snprintf(message->text, sizeof message->text, "there are more than %d rows, the most that are kept",
                 (int)GROUPED_ROWS_MAX);
        return -EINVAL;
    }
    return r;
}

static int mixture_end_of_pass(struct fit *fit, struct plugin_message *message) {
    return fit->row_count > 0 ? FIT_DONE : refuse(message, "there are no rows to fit");
}

/* ---- One segment */

/* What is told of one part of a group. */
struct part {
    double from, to;
    size_t rows, floored; /* components at the floor */
    struct fit_estimate estimate;
    double covariance;
    struct fit_value values[VALUES_MAX];
    size_t value_count;
    struct plugin_component components[COMPONENTS_MAX];
    struct plugin_noise noise;
    struct plugin_range domain;
};

static double bic_of(const struct mixture *mixture, double log_likelihood, double weight) {
    return -2 * log_likelihood + (3 * (double)mixture->count - 1) * log(weight);
}

/* How many components: as asked, or those of the least BIC. */
static struct mixture *choose(struct search_result *result, size_t most, bool by_bic, double weight) {
    struct mixture *best = &result->mixtures[by_bic ? 0 : most - 1];
    for (size_t k = 1; by_bic && k < most; k++) {
        struct mixture *mixture = &result->mixtures[k];
        if (bic_of(mixture, mixture->log_likelihood, weight) < bic_of(best, best->log_likelihood, weight))
            best = mixture;
    }
    return best;
}

static void tell_mixture(const struct sample *sample, const struct mixture *mixture,
                         const struct floor *floor, size_t starts, struct part *part) {
    double log_likelihood = mixture->log_likelihood - sample->weight * log(sample->deviation);
    for (size_t k = 0; k < mixture->count; k++) {
        part->floored += mixture->sigma[k] <= floor->sigma;
        part->components[k] = (struct plugin_component){
            mixture->weight[k], sample->deviation * mixture->mean[k], sample->deviation * mixture->sigma[k]};
    }
    part->noise = (struct plugin_noise){
        .size = sizeof part->noise,
        .kind = "mixture",
        .distribution = "normal",
        .method = "maximum-likelihood",
        .components = part->components,
        .component_count = mixture->count,
    };
    if (sample->deviation == 0) /* a likelihood without bound */
        log_likelihood = NAN;
    double parameter_count = 3 * (double)mixture->count - 1;
    const struct fit_value values[] = {
        {"log_likelihood", log_likelihood, 0},
        {"aic", -2 * log_likelihood + 2 * parameter_count, 0},
        {"bic", bic_of(mixture, log_likelihood, sample->weight), 0},
        {"components", (double)mixture->count, 0},
        {"starts", (double)starts, 0},
        {"floored", (double)part->floored, 0},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        part->values[part->value_count++] = values[i];
}

/* Mean, its standard error, and the deviation of all values. */
static void tell_mean(const struct sample *sample, struct part *part) {
    double sigma = NAN, error = NAN;
    if (sample->weight > 1) {
        sigma = sample->deviation * sqrt(sample->weight / (sample->weight - 1));
        error = sigma / sqrt(sample->weight);
    }
    part->estimate = (struct fit_estimate){sample->mean, error, NAN, NAN, false};
    part->covariance = error * error;
    part->values[part->value_count++] = (struct fit_value){"sigma", sigma, 1};
}

/* Values of one part, what each weighs (NULL: 1) and the fold that it is in. */
struct column {
    double *values, *weights, *folds;
    size_t count;
};

static int tell_held_out(const struct fit *fit, const struct column *column, const struct sample *sample,
                         const struct mixture *mixture, struct part *part) {
    const double *asked = fit->request->parameters;
    struct held_out held_out;
    if (!validates(fit))
        return 0;
    int r = held_out_score(column->values, column->weights, column->folds, column->count, sample, mixture,
                           asked[FLOOR], (uint32_t)asked[FOLDS], &held_out);
    if (r < 0)
        return r;
    const struct fit_value told[] = {{"cv_rmse", held_out.rmse, 1},
                                     {"cv_relative", held_out.relative, 0},
                                     {"cv_log_score", held_out.log_score, 0},
                                     {"folds", held_out.folds, 0}};
    for (size_t i = 0; i < sizeof told / sizeof *told; i++)
        part->values[part->value_count++] = told[i];
    return 0;
}

/* 0 and RET_REASON empty, or a reason why there is no mixture of the values, or -ENOMEM. */
static int fit_part(const struct fit *fit, const struct column *column, struct part *part,
                    char ret_reason[static REASON_SIZE]) {
    const double *asked = fit->request->parameters;
    struct sample sample;
    int r = sample_init(&sample, column->values, column->weights, column->count);
    if (r < 0)
        return r;
    size_t distinct = sample.points.count, most = (size_t)asked[COMPONENTS];
    bool by_bic = most == 0;
    if (by_bic) {
        most = (size_t)asked[MOST];
        while (most > 1 && (distinct < ASKED_LEAST * most || sample.weight < asked[LEAST] * (double)most))
            most--;
    }
    if (!isfinite(sample.mean) || !isfinite(sample.deviation))
        snprintf(ret_reason, REASON_SIZE, "the values go beyond what a double can hold");
    else if (most > 1 && (distinct < most || sample.weight < asked[LEAST] * (double)most))
        snprintf(ret_reason, REASON_SIZE,
                 "%zu different value%s, with weights of %g in all, for %zu components; expected at least "
                 "%g for each",
                 distinct, distinct == 1 ? "" : "s", sample.weight, most, asked[LEAST]);
    if (*ret_reason) {
        sample_clear(&sample);
        return 0;
    }
    struct search_settings settings = {most,
                                       !by_bic,
                                       (size_t)asked[STARTS],
                                       {fmax(asked[FLOOR], sample.resolution / sqrt(12))},
                                       asked[LEAST],
                                       fit->request->seed};
    struct search_result result;
    search_run(&sample, &settings, &result);
    struct mixture *mixture = choose(&result, most, by_bic, sample.weight);
    if (isfinite(mixture->log_likelihood)) {
        search_finish(&sample, &settings, mixture);
        tell_mean(&sample, part);
        tell_mixture(&sample, mixture, &settings.floor, result.starts[mixture->count - 1], part);
        r = tell_held_out(fit, column, &sample, mixture, part);
    } else {
        snprintf(ret_reason, REASON_SIZE,
                 "no mixture of %zu components was found in which each has %g values", most, asked[LEAST]);
    }
    sample_clear(&sample);
    return r;
}

/* ---- One group */

/* The rows of one group, those that weigh something, sorted into segments. */
struct group {
    size_t count;
    double *values, *weights; /* weights NULL: 1 each */
    double *over, *folds;
    size_t starts[PARTS_MAX + 1];
    double *memory;
};

static size_t segment_of(const struct fit *fit, double x) {
    size_t segment = 0;
    while (segment < fit->break_count && x >= fit->breaks[segment])
        segment++;
    return segment;
}

static int group_init(const struct fit *fit, uint32_t code, struct group *ret) {
    size_t first = fit->rows.starts[code], end = fit->rows.starts[code + 1];
    const double *values = fit->rows.values[0];
    const double *over = fit->over ? fit->rows.values[fit->over_input] : NULL;
    const double *weights = fit->request->weights ? fit->rows.values[fit->weights_input] : NULL;
    const double *folds = validates(fit) ? fit->rows.values[fit->need_count] : NULL;
    *ret = (struct group){.memory = malloc((4 * (end - first) + 1) * sizeof(double))};
    if (!ret->memory)
        return -ENOMEM;
    ret->values = ret->memory;
    ret->weights = weights ? ret->memory + (end - first) : NULL;
    ret->over = over ? ret->memory + 2 * (end - first) : NULL;
    ret->folds = folds ? ret->memory + 3 * (end - first) : NULL;
    for (size_t s = 0; s <= fit->break_count; s++) {
        ret->starts[s] = ret->count;
        for (size_t i = first; i < end; i++) {
            if ((over && segment_of(fit, over[i]) != s) || (weights && weights[i] == 0))
                continue;
            ret->values[ret->count] = values[i];
            if (weights)
                ret->weights[ret->count] = weights[i];
            if (over)
                ret->over[ret->count] = over[i];
            if (folds)
                ret->folds[ret->count] = folds[i];
            ret->count++;
        }
    }
    ret->starts[fit->break_count + 1] = ret->count;
    return 0;
}

static void describe_segment(const struct fit *fit, size_t segment, char *ret, size_t size) {
    const char *over = fit->over;
    if (segment == 0)
        snprintf(ret, size, "%s < %g", over, fit->breaks[0]);
    else if (segment == fit->break_count)
        snprintf(ret, size, "%s >= %g", over, fit->breaks[segment - 1]);
    else
        snprintf(ret, size, "%g <= %s < %g", fit->breaks[segment - 1], over, fit->breaks[segment]);
}

static void note_part(const struct fit *fit, const struct part *part, const char *place,
                      struct notes *notes) {
    const char *before = fit->over ? place : "", *colon = fit->over ? ": " : "";
    size_t most = (size_t)fit->request->parameters[MOST];
    if (fit->request->parameters[COMPONENTS] == 0 && most > 1 && part->noise.component_count == most)
        notes_add(notes, "%s%s%zu components, the most that BIC was asked about: more were not tried%s",
                  before, colon, most, most < COMPONENTS_MAX ? " (most=N)" : "");
    if (part->rows == 1)
        notes_add(notes, "%s%sone value: it has no deviation", before, colon);
    else if (part->noise.component_count == 1 && part->components[0].sigma == 0)
        notes_add(notes, "%s%sall values are equal: the likelihood has no bound", before, colon);
    else if (part->floored > 0)
        notes_add(notes,
                  "%s%s%zu of %zu components are as narrow as the floor lets them: their deviations are not "
                  "those of the values",
                  before, colon, part->floored, part->noise.component_count);
}

/* Every segment that has values. RET_REASON empty, or why the group is skipped. */
static int fit_parts(const struct fit *fit, struct group *group, struct part *parts, size_t *ret_count,
                     struct notes *notes, char ret_reason[static REASON_SIZE]) {
    size_t count = 0;
    for (size_t s = 0; s <= fit->break_count; s++) {
        char place[160] = "", reason[REASON_SIZE] = "";
        if (fit->over)
            describe_segment(fit, s, place, sizeof place);
        size_t first = group->starts[s], rows = group->starts[s + 1] - first;
        if (rows == 0) {
            notes_add(notes, "there are no rows in %s", place);
            continue;
        }
        struct part *part = &parts[count++];
        *part = (struct part){.from = s == 0 ? -INFINITY : fit->breaks[s - 1],
                              .to = s == fit->break_count ? INFINITY : fit->breaks[s],
                              .rows = rows,
                              .domain = {fit->over, INFINITY, -INFINITY}};
        for (size_t i = first; fit->over && i < first + rows; i++) {
            part->domain.minimum = fmin(part->domain.minimum, group->over[i]);
            part->domain.maximum = fmax(part->domain.maximum, group->over[i]);
        }
        const struct column column = {group->values + first, group->weights ? group->weights + first : NULL,
                                      group->folds ? group->folds + first : NULL, rows};
        int r = fit_part(fit, &column, part, reason);
        if (r < 0)
            return r;
        if (*reason) {
            snprintf(ret_reason, REASON_SIZE, "%.150s%s%.150s", place, *place ? ": " : "", reason);
            return 0;
        }
        note_part(fit, part, place, notes);
    }
    *ret_count = count;
    return 0;
}

static int write_group(const struct fit *fit, const struct fit_writer *writer, uint32_t code,
                       const struct group *group, struct part *parts, size_t count, struct notes *notes) {
    uint64_t left_out = fit->rows.left_out[code];
    notes_add_left_out(notes, left_out, "a value is empty or not finite");
    struct fit_part written[PARTS_MAX];
    for (size_t i = 0; i < count; i++) {
        struct part *part = &parts[i];
        part->values[part->value_count++] = (struct fit_value){"rows", (double)part->rows, 0};
        part->values[part->value_count++] = (struct fit_value){"rows_left_out", (double)left_out, 0};
        written[i] = (struct fit_part){
            .size = sizeof *written,
            .kind = fit->over ? "segment" : "whole",
            .estimates = &part->estimate,
            .covariance = isfinite(part->covariance) ? &part->covariance : NULL,
            .values = part->values,
            .value_count = part->value_count,
            .domain = &part->domain,
            .domain_count = fit->over ? 1 : 0,
            .from = part->from,
            .to = part->to,
            .noise = part->components[0].sigma > 0 ? &part->noise : NULL,
        };
    }
    const struct fit_group told = {
        .size = sizeof told,
        .code = code,
        .rows = group->count,
        .parts = written,
        .part_count = count,
        .notes = notes->pointers,
        .note_count = notes->count,
    };
    return writer->group(writer->context, &told);
}

/* ---- Results */

static int finish_group(const struct fit *fit, const struct fit_writer *writer, uint32_t code) {
    struct group group;
    int r = group_init(fit, code, &group);
    if (r < 0)
        return r;
    struct part parts[PARTS_MAX];
    struct notes notes = {.count = 0};
    size_t count = 0;
    char reason[REASON_SIZE] = "";
    if (group.count == 0)
        snprintf(reason, sizeof reason, "no rows with a value%s",
                 fit->request->weights ? " and a weight above 0" : "");
    else
        r = fit_parts(fit, &group, parts, &count, &notes, reason);
    if (r == 0)
        r = *reason ? writer->skipped(writer->context, code, group.count, reason)
                    : write_group(fit, writer, code, &group, parts, count, &notes);
    free(group.memory);
    return r;
}

static int mixture_finish(struct fit *fit, const struct fit_writer *writer, struct plugin_message *message) {
    (void)message; /* whatever fails here is memory, or the writer, who knows */
    const struct plugin_term one = {"1", NULL, 0};
    const struct fit_formula formula = {
        sizeof formula, fit->over ? "piecewise" : "linear", &one, 1, fit->over, NULL};
    int r = grouped_rows_sort(&fit->rows);
    r = r < 0 ? r : writer->formula(writer->context, &formula);
    for (uint32_t i = 0; r >= 0 && i < writer->group_count; i++)
        r = finish_group(fit, writer, writer->order[i]);
    return r;
}

static const struct fit_operations operations = {
    .size = sizeof operations,
    .parameter_count = PARAMETER_COUNT,
    .parameters = parameters,
    .open = mixture_open,
    .block = mixture_block,
    .end_of_pass = mixture_end_of_pass,
    .finish = mixture_finish,
    .close = mixture_close,
};

ASSAY_PLUGIN_EXPORT extern const struct assay_plugin assay_plugin;
const struct assay_plugin assay_plugin = {
    .abi = ASSAY_PLUGIN_ABI,
    .size = sizeof assay_plugin,
    .kind = ASSAY_PLUGIN_FIT,
    .name = "fit-mixture",
    .version = ASSAY_VERSION,
    .summary = "mixtures of 1 to 8 normals, by groups and segments",
    .operations = &operations,
};
