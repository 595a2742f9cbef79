/* The plugin fit-roofline: see README.md for what it computes. */
#include "plugins/fit-roofline/roofline.h"
#include "plugins/interface/fit.h"
#include "plugins/numerics/growth.h"
#include "plugins/numerics/notes.h"
#include "plugins/numerics/quantity.h"
#include "plugins/numerics/student.h"

#include <errno.h>
#include <gsl/gsl_errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = 1 << 24, /* kept by the classical form: 640 MiB */
    TERMS_MAX = 3,
    VALUES_MAX = 24,
};
enum parameter { FORM, CRITERION, OVERHEAD, RESPONSE, PARAMETER_COUNT };
enum { FORM_IMPROVED, FORM_CLASSICAL }; /* words of the parameters */
enum { RESPONSE_AUTO, RESPONSE_TIME, RESPONSE_PERFORMANCE };

struct group {
    struct improved improved;
    uint64_t empty, outside; /* rows left out */
    size_t first, count;     /* of the kept rows, once they are sorted */
    /* In the columns' own units: of flops, bytes, and flops over bytes. */
    double minimum[3], maximum[3];
};

struct fit {
    const struct plugin_host *host;
    const struct fit_request *request;
    enum roofline_criterion criterion;
    bool classical, overhead;
    bool rate;                        /* the response is a performance */
    const char *names[2];             /* of the columns of flops and bytes */
    double scales[2], response_scale; /* of one unit of the column in SI units */
    const char *needs[4];
    size_t need_count, flops_need, bytes_need, response_need, weight_need;
    struct group *groups;
    size_t group_count, group_capacity;
    struct classical_row *rows;
    size_t row_count, row_capacity;
    uint64_t seen;
};

/* ---- Beginning */

/* The two columns of sizes: as they are called, or by their usual names and units. */
static int find_sizes(const struct plugin_host *host, const struct fit_request *request, const char **names,
                      const char **units, size_t ret[static 2], struct plugin_message *message) {
    static const char *const usual[2][4] = {{"flops", "flop", NULL}, {"bytes", NULL}};
    static const enum quantity quantities[2] = {QUANTITY_FLOPS, QUANTITY_SIZE};
    static const char *const words[2] = {"flops", "bytes"};
    size_t count = request->column_count;
    if (request->size_count != 0 && request->size_count != 2) {
        snprintf(message->text, sizeof message->text,
                 "%zu size%s; expected the columns of flops and of bytes, in this order", request->size_count,
                 request->size_count == 1 ? "" : "s");
        return -EINVAL;
    }
    for (size_t i = 0; i < 2; i++) {
        if (request->size_count == 2) {
            ret[i] = quantity_find_named(words[i], request->sizes[i], names, count, host->nearest,
                                         message->text, sizeof message->text);
            if (ret[i] == count)
                return -EINVAL;
            continue;
        }
        ret[i] = quantity_find(names, units, count, quantities[i], usual[i]);
        if (ret[i] == count) {
            snprintf(message->text, sizeof message->text,
                     "which column has the %s? none is called '%s' or alone in its unit; say both with "
                     "--sizes FLOPS,BYTES",
                     words[i], words[i]);
            return -EINVAL;
        }
    }
    return 0;
}

static int refuse_unit(const char *what, const char *name, const char *unit, const char *expected,
                       struct plugin_message *message) {
    snprintf(message->text, sizeof message->text, "the %s '%.200s' is in '%.64s'; expected %s", what, name,
             unit, expected);
    return -EINVAL;
}

/* What the columns measure: by their units, and where there are none by the parameter. */
static int judge_units(struct fit *fit, const char *const sizes[static 2], const char *response,
                       struct plugin_message *message) {
    static const enum quantity expected[2] = {QUANTITY_FLOPS, QUANTITY_SIZE};
    const char *name = fit->request->response;
    for (size_t i = 0; i < 2; i++) {
        enum quantity found = quantity_of_unit(sizes[i], &fit->scales[i]);
        if (sizes[i] && found != expected[i] && strcmp(sizes[i], "1") != 0)
            return refuse_unit("column", fit->names[i], sizes[i], i == 0 ? "flop" : "bytes", message);
    }
    enum quantity found = quantity_of_unit(response, &fit->response_scale);
    size_t asked = (size_t)fit->request->parameters[RESPONSE];
    if (response && found != QUANTITY_TIME && found != QUANTITY_FLOP_RATE)
        return refuse_unit("response", name, response, "a time or flop/s", message);
    fit->rate = found == QUANTITY_FLOP_RATE || (!response && asked == RESPONSE_PERFORMANCE) ||
                (!response && asked == RESPONSE_AUTO && strcmp(name, "performance") == 0);
    if (response && asked != RESPONSE_AUTO && fit->rate != (asked == RESPONSE_PERFORMANCE))
        return refuse_unit("response", name, response, fit->rate ? "a time" : "flop/s", message);
    return 0;
}

static int choose_columns(const struct plugin_host *host, const struct fit_request *request, struct fit *fit,
                          struct plugin_message *message) {
    const char **names = calloc(2 * request->column_count + 1, sizeof *names);
    if (!names)
        return -ENOMEM;
    const char **units = names + request->column_count, *response = NULL;
    for (size_t i = 0; i < request->column_count; i++) {
        names[i] = request->columns[i].name;
        units[i] = request->columns[i].unit;
        response = strcmp(names[i], request->response) == 0 ? units[i] : response;
    }
    size_t found[2];
    int r = find_sizes(host, request, names, units, found, message);
    for (size_t i = 0; r == 0 && i < 2; i++) {
        fit->names[i] = names[found[i]];
        if (found[0] != found[1] && strcmp(fit->names[i], request->response) != 0)
            continue;
        snprintf(message->text, sizeof message->text,
                 "the column '%.200s' is two of flops, bytes and response", fit->names[i]);
        r = -EINVAL;
    }
    if (r == 0) {
        const char *const sizes[] = {units[found[0]], units[found[1]]};
        r = judge_units(fit, sizes, response, message);
    }
    free(names);
    return r;
}

static size_t need(struct fit *fit, const char *column) {
    size_t i = 0;
    while (i < fit->need_count && strcmp(fit->needs[i], column) != 0)
        i++;
    if (i == fit->need_count)
        fit->needs[fit->need_count++] = column;
    return i;
}

static int check_request(const struct fit_request *request, struct plugin_message *message) {
    bool classical = request->parameters[FORM] == FORM_CLASSICAL;
    if (request->terms && !request->suggested)
        snprintf(message->text, sizeof message->text,
                 "terms '%.200s'; this method has its own, flops and bytes; expected none", request->terms);
    else if (!classical && request->parameters[CRITERION] == ROOFLINE_LOG)
        snprintf(message->text, sizeof message->text,
                 "criterion 'log' of the form 'improved'; expected 'relative' or 'time', or form=classical");
    else
        return 0;
    return -EINVAL;
}

static void roofline_close(struct fit *fit) {
    if (!fit)
        return;
    free(fit->groups);
    free(fit->rows);
    free(fit);
}

static int roofline_open(const struct plugin_host *host, const struct fit_request *request, struct fit **ret,
                         struct fit_needs *ret_needs, struct plugin_message *message) {
    gsl_set_error_handler_off();
    int r = check_request(request, message);
    if (r < 0)
        return r;
    struct fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return -ENOMEM;
    fit->host = host;
    fit->request = request;
    fit->criterion = (enum roofline_criterion)request->parameters[CRITERION];
    fit->classical = request->parameters[FORM] == FORM_CLASSICAL;
    fit->overhead = !fit->classical && request->parameters[OVERHEAD] == 0;
    r = choose_columns(host, request, fit, message);
    if (r < 0) {
        roofline_close(fit);
        return r;
    }
    fit->flops_need = need(fit, fit->names[0]);
    fit->bytes_need = need(fit, fit->names[1]);
    fit->response_need = need(fit, request->response);
    fit->weight_need = request->weights ? need(fit, request->weights) : 0;
    *ret = fit;
    *ret_needs =
        (struct fit_needs){.size = sizeof *ret_needs, .columns = fit->needs, .column_count = fit->need_count};
    return 0;
}

/* ---- Rows */

static int reserve_groups(struct fit *fit, size_t count) {
    int r = growth_reserve(&fit->groups, &fit->group_capacity, count, sizeof *fit->groups);
    for (; r == 0 && fit->group_count < count; fit->group_count++)
        for (size_t i = 0; i < 3; i++) {
            fit->groups[fit->group_count].minimum[i] = INFINITY;
            fit->groups[fit->group_count].maximum[i] = -INFINITY;
        }
    return r;
}

static void see(struct group *group, double flops, double bytes) {
    const double values[] = {flops, bytes, flops / bytes};
    for (size_t i = 0; i < 3; i++) {
        group->minimum[i] = fmin(group->minimum[i], values[i]);
        group->maximum[i] = fmax(group->maximum[i], values[i]);
    }
}

/* FLOPS and BYTES in the columns' units; RESPONSE in SI units. */
static int add_row(struct fit *fit, uint32_t code, double flops, double bytes, double response, double w) {
    struct group *group = &fit->groups[code];
    if (!isfinite(flops) || !isfinite(bytes) || !isfinite(response) || !isfinite(w)) {
        group->empty++;
        return 0;
    }
    double f = flops * fit->scales[0], b = bytes * fit->scales[1];
    if (f < 0 || b < 0 || f + b == 0 || response <= 0 || (fit->rate && f == 0)) {
        group->outside++;
        return 0;
    }
    if (w == 0) /* as if it were not there */
        return 0;
    double duration = fit->rate ? f / response : response;
    see(group, flops, bytes);
    if (!fit->classical) {
        improved_add(&group->improved, fit->criterion, fit->overhead, f, b, duration, w);
        return 0;
    }
    if (fit->row_count == ROWS_MAX)
        return -EFBIG;
    int r = growth_reserve(&fit->rows, &fit->row_capacity, fit->row_count + 1, sizeof *fit->rows);
    if (r == 0)
        fit->rows[fit->row_count++] = (struct classical_row){f, b, duration, w, code};
    return r;
}

static int roofline_block(struct fit *fit, const struct fit_block *block, struct plugin_message *message) {
    const double *flops = block->columns[fit->flops_need], *bytes = block->columns[fit->bytes_need];
    const double *responses = block->columns[fit->response_need];
    const double *weights = fit->request->weights ? block->columns[fit->weight_need] : NULL;
    int r = reserve_groups(fit, block->group_count);
    for (size_t i = 0; r == 0 && i < block->rows; i++) {
        double w = weights ? weights[i] : 1;
        if (w < 0) {
            char place[PLUGIN_PLACE_SIZE];
            snprintf(message->text, sizeof message->text,
                     "the weight '%.200s' of %s is %g; expected 0 or more", fit->request->weights,
                     fit->host->place(fit->host->context, block->first_row + i, place, sizeof place), w);
            return -EINVAL;
        }
        r = add_row(fit, block->groups[i], flops[i], bytes[i], responses[i] * fit->response_scale, w);
    }
    fit->seen += block->rows;
    if (r == -EFBIG) {
        snprintf(message->text, sizeof message->text,
                 "more than %d rows; expected fewer, as form=classical keeps them; form=improved does not",
                 (int)ROWS_MAX);
        r = -EINVAL;
    }
    return r;
}

static int roofline_end_of_pass(struct fit *fit, struct plugin_message *message) {
    if (fit->seen == 0) {
        snprintf(message->text, sizeof message->text, "there are no rows to fit");
        return -EINVAL;
    }
    classical_sort(fit->rows, fit->row_count);
    for (size_t i = 0; i < fit->row_count; i++) {
        struct group *group = &fit->groups[fit->rows[i].group];
        if (group->count++ == 0)
            group->first = i;
    }
    return FIT_DONE;
}

/* ---- Results */

static void note_peaks(const struct fit *fit, const struct roofline *result, struct notes *notes) {
    static const char *const words[] = {"flops", "bytes"};
    static const char *const peaks[] = {"peak flop rate", "peak bandwidth"};
    static const char *const units[] = {"flop/s", "By/s"};
    for (size_t i = 0; i < 2; i++) {
        if (result->told[i])
            continue;
        if (isfinite(result->bound[i]))
            notes_add(notes, "no row is bound by %s: of the %s it is only known that it is at least %.6g %s",
                      words[i], peaks[i], result->bound[i], units[i]);
        else
            notes_add(notes, "no time is spent on %s: the %s is not told", words[i], peaks[i]);
    }
    if (fit->overhead && !result->told[ROOFLINE_OVERHEAD])
        notes_add(notes, "no overhead was found: it would be below 0");
    if (result->tied)
        notes_add(notes, "the ridge is at a measured intensity, where one peak tells the other: no standard "
                         "errors");
}

static void make_notes(const struct fit *fit, const struct group *group, const struct roofline *result,
                       struct notes *notes) {
    notes->count = 0;
    notes_add_left_out(notes, group->empty, "a value is empty or not finite");
    notes_add_left_out(notes, group->outside,
                       "flops or bytes are below 0 or both 0, or the response is not above 0");
    note_peaks(fit, result, notes);
    if (result->saturated)
        notes_add(notes, "as many rows as terms: no residuals, so no standard errors");
    else if (result->perfect)
        notes_add(notes,
                  "the terms explain the response to its last digit: standard errors are zero, t and p "
                  "not defined");
}

/* The terms' estimates with their covariance, in the units of the columns. Of a time they are x, y and a; of
 * a performance, which is 1 / (x + y B/F + a/F), their inverses. */
static void tell_estimates(const struct fit *fit, const struct roofline *result, size_t count,
                           struct fit_estimate *estimates, double *covariance) {
    double units[TERMS_MAX], slopes[TERMS_MAX], values[TERMS_MAX];
    for (size_t i = 0; i < count; i++) {
        double estimate = result->estimates[i], own = i < 2 ? fit->scales[i] : 1;
        units[i] = fit->response_scale / own;
        values[i] = estimate;
        slopes[i] = 1;
        if (!fit->rate)
            continue;
        /* Terms 1, flops/bytes and flops. */
        double products[] = {1, fit->scales[0] / fit->scales[1], fit->scales[0]};
        units[i] = fit->response_scale / products[i];
        values[i] = 1 / estimate;
        slopes[i] = -1 / estimate / estimate;
    }
    for (size_t i = 0; i < count; i++) {
        double own = result->covariance[4 * i] * slopes[i] * slopes[i] / units[i] / units[i];
        estimates[i] = (struct fit_estimate){values[i] / units[i], NAN, NAN, NAN, false};
        for (size_t j = 0; j < count; j++)
            covariance[i * count + j] =
                result->told[i] && result->told[j]
                    ? result->covariance[3 * i + j] * slopes[i] * slopes[j] / units[i] / units[j]
                    : 0;
        if (!result->told[i]) {
            estimates[i] = (struct fit_estimate){0, NAN, NAN, NAN, true};
        } else if (result->has_covariance) {
            struct student test = student_test(estimates[i].estimate, own, result->degrees);
            estimates[i].standard_error = test.standard_error;
            estimates[i].t = test.t;
            estimates[i].p = test.p;
        }
    }
}

static size_t tell_values(const struct fit *fit, const struct group *group, const struct roofline *result,
                          struct fit_value *ret) {
    const double *e = result->estimates, *v = result->covariance;
    double none = result->has_covariance ? 0 : NAN, ridge = e[1] / e[0];
    double ridge_share = v[0] / e[0] / e[0] - 2 * v[1] / e[0] / e[1] + v[4] / e[1] / e[1];
    bool own = fit->criterion == ROOFLINE_TIME && !fit->rate; /* the criterion's space is the response's */
    double unit = own ? fit->response_scale : 1;
    const struct fit_value values[] = {
        {"peak_flops", 1 / e[0], 0},
        {"peak_flops_standard_error", none + sqrt(v[0]) / e[0] / e[0], 0},
        {"peak_bandwidth", 1 / e[1], 0},
        {"peak_bandwidth_standard_error", none + sqrt(v[4]) / e[1] / e[1], 0},
        {"ridge_intensity", ridge > 0 ? ridge : NAN, 0},
        {"ridge_intensity_standard_error", none + ridge * sqrt(fmax(ridge_share, 0)), 0},
        {"overhead", fit->overhead ? e[2] : NAN, 0},
        {"overhead_standard_error", fit->overhead ? none + sqrt(v[8]) : NAN, 0},
        {"sigma", own ? result->sigma / unit : NAN, 1},
        {"criterion_sigma", result->sigma, 0},
        {"rss", result->rss / unit / unit, own ? 2 : 0},
        {"degrees_of_freedom", result->degrees, 0},
        {"r2", result->r2, 0},
        {"log_likelihood", result->log_likelihood, 0},
        {"aic", result->aic, 0},
        {"bic", result->bic, 0},
        {"rows_left_out", (double)(group->empty + group->outside), 0},
        {"rows_memory_bound", (double)result->memory_bound, 0},
        {"rows_compute_bound", (double)result->compute_bound, 0},
    };
    size_t count = sizeof values / sizeof *values - (fit->classical ? 0 : 2);
    for (size_t i = 0; i < count; i++) {
        ret[i] = values[i];
        if (!isfinite(ret[i].value))
            ret[i].value = NAN;
    }
    return count;
}

static size_t make_domain(const struct fit *fit, const struct group *group, const char *ratio,
                          struct plugin_range *ret) {
    for (size_t i = 0; i < 2; i++)
        ret[i] = (struct plugin_range){fit->names[i], group->minimum[i], group->maximum[i]};
    if (!fit->rate || !isfinite(group->maximum[2]))
        return 2;
    ret[2] = (struct plugin_range){ratio, group->minimum[2], group->maximum[2]};
    return 3;
}

/* Of times whose model is a sum: a constant, or a share of the mean. False where none is told. */
static bool tell_noise(const struct fit *fit, const struct roofline *result,
                       const struct fit_estimate *estimates, double coefficients[static TERMS_MAX],
                       struct plugin_noise *ret) {
    *ret = (struct plugin_noise){
        .size = sizeof *ret, .kind = "N-1", .distribution = "normal", .method = "least-squares"};
    if (!isfinite(result->sigma) || fit->rate)
        return false;
    if (fit->criterion == ROOFLINE_TIME) {
        ret->constant = result->sigma / fit->response_scale;
        return true;
    }
    if (fit->classical)
        return false;
    ret->kind = "N-2";
    for (size_t i = 0; i < 2; i++)
        coefficients[i] = result->sigma * estimates[i].estimate;
    coefficients[2] = 0;
    ret->constant = fit->overhead ? result->sigma * estimates[2].estimate : 0;
    ret->coefficients = coefficients;
    return true;
}

static bool is_finite(const double *values, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (!isfinite(values[i]))
            return false;
    return true;
}

static int write_group(const struct fit *fit, const struct fit_writer *writer, uint32_t code,
                       const char *ratio, const struct roofline *result) {
    const struct group *group = &fit->groups[code];
    struct fit_estimate estimates[TERMS_MAX];
    double covariance[TERMS_MAX * TERMS_MAX], coefficients[TERMS_MAX];
    struct plugin_range domain[3];
    struct fit_value values[VALUES_MAX];
    struct plugin_noise noise;
    struct notes notes;
    size_t count = fit->overhead ? 3 : 2;
    tell_estimates(fit, result, count, estimates, covariance);
    make_notes(fit, group, result, &notes);
    bool noisy = tell_noise(fit, result, estimates, coefficients, &noise);
    const struct fit_part part = {
        .size = sizeof part,
        .kind = "whole",
        .estimates = estimates,
        .covariance = result->has_covariance && is_finite(covariance, count * count) ? covariance : NULL,
        .values = values,
        .value_count = tell_values(fit, group, result, values),
        .domain = domain,
        .domain_count = make_domain(fit, group, ratio, domain),
        .noise = noisy ? &noise : NULL,
    };
    const struct fit_group written = {
        .size = sizeof written,
        .code = code,
        .rows = result->rows,
        .parts = &part,
        .part_count = 1,
        .notes = notes.pointers,
        .note_count = notes.count,
    };
    return writer->group(writer->context, &written);
}

static int write_skipped(const struct fit *fit, const struct fit_writer *writer, uint32_t code,
                         const char *reason) {
    const struct group *group = &fit->groups[code];
    uint64_t out = group->empty + group->outside;
    char text[ROOFLINE_REASON_SIZE + 96];
    snprintf(text, sizeof text, "%s", reason);
    if (out > 0)
        snprintf(text, sizeof text, "%s (%" PRIu64 " row%s left out: no measurement, or not finite)", reason,
                 out, out == 1 ? "" : "s");
    return writer->skipped(writer->context, code, fit->classical ? group->count : group->improved.rows, text);
}

static int write_formula(const struct fit *fit, const struct fit_writer *writer, const char *ratio) {
    const struct plugin_factor flops = {.name = fit->names[0], .power = 1},
                               bytes = {.name = fit->names[1], .power = 1},
                               intensity[] = {{.name = fit->names[0], .power = 1},
                                              {.name = fit->names[1], .power = -1}};
    const struct plugin_term times[] = {
        {fit->names[0], &flops, 1}, {fit->names[1], &bytes, 1}, {"1", NULL, 0}};
    const struct plugin_term rates[] = {{"1", NULL, 0}, {ratio, intensity, 2}, {fit->names[0], &flops, 1}};
    static const char *const kinds[2][2] = {{"linear", "maximum"}, {"harmonic", "minimum"}};
    const struct fit_formula formula = {sizeof formula,
                                        kinds[fit->rate][fit->classical],
                                        fit->rate ? rates : times,
                                        fit->overhead ? 3 : 2,
                                        NULL,
                                        NULL};
    return writer->formula(writer->context, &formula);
}

static int roofline_finish(struct fit *fit, const struct fit_writer *writer, struct plugin_message *message) {
    (void)message; /* whatever fails here is memory, or the writer, who knows */
    size_t size = strlen(fit->names[0]) + strlen(fit->names[1]) + 8;
    char *ratio = malloc(size);
    if (!ratio)
        return -ENOMEM;
    snprintf(ratio, size, "%s*%s^-1", fit->names[0], fit->names[1]);
    int r = write_formula(fit, writer, ratio);
    for (uint32_t i = 0; r >= 0 && i < writer->group_count; i++) {
        uint32_t code = writer->order[i];
        const struct group *group = &fit->groups[code];
        struct roofline result;
        char reason[ROOFLINE_REASON_SIZE];
        bool good =
            fit->classical
                ? classical_fit(fit->rows + group->first, group->count, fit->criterion, &result, reason)
                : improved_fit(&group->improved, fit->overhead, fit->names, &result, reason);
        r = good ? write_group(fit, writer, code, ratio, &result) : write_skipped(fit, writer, code, reason);
    }
    free(ratio);
    return r;
}

static const char *const forms[] = {"improved", "classical", NULL};
static const char *const criteria[] = {"relative", "time", "log", NULL};
static const char *const overheads[] = {"fitted", "none", NULL};
static const char *const responses[] = {"auto", "time", "performance", NULL};
static const struct plugin_parameter parameters[PARAMETER_COUNT] = {
    [FORM] = {.name = "form",
              .words = forms,
              .help =
                  "improved: time is flops/peak + bytes/bandwidth + overhead; classical: the greater of the "
                  "first two"},
    [CRITERION] =
        {.name = "criterion",
         .words = criteria,
         .help = "whose squared errors are made least: those of the time as a share of it, of the time, "
                 "or of its logarithm (classical)"},
    [OVERHEAD] = {.name = "overhead",
                  .words = overheads,
                  .help = "of the improved form: time that is spent on neither flops nor bytes"},
    [RESPONSE] = {.name = "response",
                  .words = responses,
                  .help =
                      "what the response is where it has no unit: a time (unless it is called performance), "
                      "or flops over time"},
};

static const struct fit_operations operations = {
    .size = sizeof operations,
    .parameter_count = PARAMETER_COUNT,
    .parameters = parameters,
    .open = roofline_open,
    .block = roofline_block,
    .end_of_pass = roofline_end_of_pass,
    .finish = roofline_finish,
    .close = roofline_close,
};

ASSAY_PLUGIN_EXPORT extern const struct assay_plugin assay_plugin;
const struct assay_plugin assay_plugin = {
    .abi = ASSAY_PLUGIN_ABI,
    .size = sizeof assay_plugin,
    .kind = ASSAY_PLUGIN_FIT,
    .name = "fit-roofline",
    .version = ASSAY_VERSION,
    .summary = "peak flop rate and bandwidth from flops, bytes and durations",
    .operations = &operations,
};
