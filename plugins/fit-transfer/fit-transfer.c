/* The plugin fit-transfer: see README.md for what it computes. */
#include "plugins/fit-transfer/transfer.h"
#include "plugins/interface/fit.h"
#include "plugins/numerics/growth.h"
#include "plugins/numerics/notes.h"
#include "plugins/numerics/quantity.h"
#include "plugins/numerics/student.h"

#include <errno.h>
#include <gsl/gsl_errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    SCOUTED_GROUPS_MAX = 1 << 14, /* 13 MiB of scouts */
    KEPT_ROWS_MAX = 1 << 22,      /* 128 MiB */
};
enum parameter { CRITERION, RESPONSE, PARAMETER_COUNT };
enum { RESPONSE_AUTO, RESPONSE_TIME, RESPONSE_BANDWIDTH }; /* words of the parameter */

struct group {
    struct transfer transfer;
    double minimum, maximum; /* of the size column, in its own unit */
};

/* A row of a group that is not done. */
struct kept_row {
    double size, duration, w;
    uint32_t group;
};

struct fit {
    const struct plugin_host *host;
    const struct fit_request *request;
    enum transfer_criterion criterion;
    const char *size;                  /* column */
    bool rate;                         /* the response is a bandwidth */
    double size_scale, response_scale; /* of one unit of the column in SI units */
    const char *needs[3];
    size_t need_count;
    size_t size_need, response_need, weight_need;
    struct group *groups;
    size_t group_count, group_capacity;
    struct scout *scouts; /* one for each group during the second pass; or NULL */
    /* Rows of this pass, so that further ones need not be read: while they are few enough. */
    struct kept_row *kept;
    size_t kept_count, kept_capacity;
    bool keeping;
    uint64_t rows, passes;
};

/* ---- Beginning */

static int find_size(const struct plugin_host *host, const struct fit_request *request, const char **names,
                     const char **units, size_t *ret, struct plugin_message *message) {
    static const char *const usual[] = {"size", "msg_size", "message_size", "bytes", NULL};
    size_t count = request->column_count;
    if (request->size_count > 1) {
        snprintf(message->text, sizeof message->text, "%zu sizes ('%.64s', '%.64s'%s); expected one column",
                 request->size_count, request->sizes[0], request->sizes[1],
                 request->size_count > 2 ? ", ..." : "");
        return -EINVAL;
    }
    if (request->size_count == 0) {
        *ret = quantity_find(names, units, count, QUANTITY_SIZE, usual);
        if (*ret < count)
            return 0;
        snprintf(
            message->text, sizeof message->text,
            "which column is the size? there is no 'size', 'msg_size', 'message_size' or 'bytes', and not "
            "one that alone is in bytes; say it with --sizes");
        return -EINVAL;
    }
    *ret = quantity_find_named("size", request->sizes[0], names, count, host->nearest, message->text,
                               sizeof message->text);
    return *ret < count ? 0 : -EINVAL;
}

/* What the columns measure: by their units, and where there are none by the parameter. */
static int judge_units(struct fit *fit, const char *size_unit, const char *response_unit,
                       struct plugin_message *message) {
    enum quantity size = quantity_of_unit(size_unit, &fit->size_scale);
    enum quantity response = quantity_of_unit(response_unit, &fit->response_scale);
    size_t asked = (size_t)fit->request->parameters[RESPONSE];
    if (size_unit && size != QUANTITY_SIZE && strcmp(size_unit, "1") != 0) {
        snprintf(message->text, sizeof message->text, "the size '%.200s' is in '%.64s'; expected bytes",
                 fit->size, size_unit);
        return -EINVAL;
    }
    if (response_unit && response != QUANTITY_TIME && response != QUANTITY_BANDWIDTH) {
        snprintf(message->text, sizeof message->text,
                 "the response '%.200s' is in '%.64s'; expected a time or a bandwidth",
                 fit->request->response, response_unit);
        return -EINVAL;
    }
    fit->rate =
        response == QUANTITY_BANDWIDTH || (!response_unit && asked == RESPONSE_BANDWIDTH) ||
        (!response_unit && asked == RESPONSE_AUTO && strcmp(fit->request->response, "bandwidth") == 0);
    if (response_unit && asked != RESPONSE_AUTO && fit->rate != (asked == RESPONSE_BANDWIDTH)) {
        snprintf(message->text, sizeof message->text,
                 "the response '%.200s' is in '%.64s', which is no %s; expected response=auto",
                 fit->request->response, response_unit, fit->rate ? "time" : "bandwidth");
        return -EINVAL;
    }
    return 0;
}

static size_t need(struct fit *fit, const char *column) {
    size_t i = 0;
    while (i < fit->need_count && strcmp(fit->needs[i], column) != 0)
        i++;
    if (i == fit->need_count)
        fit->needs[fit->need_count++] = column;
    return i;
}

static int choose_columns(const struct plugin_host *host, const struct fit_request *request, struct fit *fit,
                          struct plugin_message *message) {
    const char **names = calloc(2 * request->column_count + 1, sizeof *names);
    if (!names)
        return -ENOMEM;
    const char **units = names + request->column_count, *response_unit = NULL;
    for (size_t i = 0; i < request->column_count; i++) {
        names[i] = request->columns[i].name;
        units[i] = request->columns[i].unit;
        if (strcmp(names[i], request->response) == 0)
            response_unit = units[i];
    }
    size_t size = 0;
    int r = find_size(host, request, names, units, &size, message);
    if (r == 0) {
        fit->size = names[size];
        r = judge_units(fit, units[size], response_unit, message);
    }
    free(names);
    if (r == 0 && strcmp(fit->size, request->response) == 0) {
        snprintf(message->text, sizeof message->text, "'%.200s' is both the size and the response",
                 fit->size);
        r = -EINVAL;
    }
    return r;
}

static void transfer_close(struct fit *fit) {
    if (!fit)
        return;
    free(fit->groups);
    free(fit->scouts);
    free(fit->kept);
    free(fit);
}

static int transfer_open(const struct plugin_host *host, const struct fit_request *request, struct fit **ret,
                         struct fit_needs *ret_needs, struct plugin_message *message) {
    gsl_set_error_handler_off();
    if (request->terms && !request->suggested) {
        snprintf(message->text, sizeof message->text,
                 "terms '%.200s'; this method has its own, 1 and the size; expected none", request->terms);
        return -EINVAL;
    }
    struct fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return -ENOMEM;
    fit->host = host;
    fit->request = request;
    fit->criterion = (enum transfer_criterion)request->parameters[CRITERION];
    fit->keeping = fit->criterion != TRANSFER_TIME;
    int r = choose_columns(host, request, fit, message);
    if (r < 0) {
        transfer_close(fit);
        return r;
    }
    fit->size_need = need(fit, fit->size);
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
    for (; r == 0 && fit->group_count < count; fit->group_count++) {
        struct group *group = &fit->groups[fit->group_count];
        transfer_begin(&group->transfer);
        group->minimum = INFINITY;
        group->maximum = -INFINITY;
    }
    return r;
}

static void forget_rows(struct fit *fit) {
    free(fit->kept);
    fit->kept = NULL;
    fit->kept_count = fit->kept_capacity = 0;
}

/* Keeps a row that a further pass wants; gives up keeping when there are too many. */
static int keep_row(struct fit *fit, const struct kept_row *row) {
    if (!fit->keeping || !transfer_wants(&fit->groups[row->group].transfer))
        return 0;
    if (fit->kept_count == KEPT_ROWS_MAX) {
        forget_rows(fit);
        fit->keeping = false;
        return 0;
    }
    int r = growth_reserve(&fit->kept, &fit->kept_capacity, fit->kept_count + 1, sizeof *fit->kept);
    if (r == 0)
        fit->kept[fit->kept_count++] = *row;
    return r;
}

static int transfer_block(struct fit *fit, const struct fit_block *block, struct plugin_message *message) {
    const double *sizes = block->columns[fit->size_need], *responses = block->columns[fit->response_need];
    const double *weights = fit->request->weights ? block->columns[fit->weight_need] : NULL;
    int r = reserve_groups(fit, block->group_count);
    for (size_t i = 0; r == 0 && i < block->rows; i++) {
        struct group *group = &fit->groups[block->groups[i]];
        double w = weights ? weights[i] : 1, size = sizes[i] * fit->size_scale;
        double duration = responses[i] * fit->response_scale;
        if (w < 0) {
            char place[PLUGIN_PLACE_SIZE];
            snprintf(message->text, sizeof message->text,
                     "the weight '%.200s' of %s is %g; expected 0 or more", fit->request->weights,
                     fit->host->place(fit->host->context, block->first_row + i, place, sizeof place), w);
            return -EINVAL;
        }
        if (fit->rate && isfinite(duration) && isfinite(size) && (duration <= 0 || size <= 0)) {
            group->transfer.outside += group->transfer.state == TRANSFER_LOOKING;
            continue;
        }
        if (fit->rate)
            duration = isfinite(duration) ? size / duration : NAN;
        if (!transfer_add(&group->transfer, fit->criterion, size, duration, w))
            continue;
        group->minimum = fmin(group->minimum, sizes[i]);
        group->maximum = fmax(group->maximum, sizes[i]);
        r = keep_row(fit, &(struct kept_row){size, duration, w, block->groups[i]});
    }
    fit->rows += block->rows;
    return r;
}

/* After a pass over rows: 1 when they are wanted again, 0, or -ENOMEM. */
static int step_groups(struct fit *fit) {
    bool again = false, first = fit->passes++ == 0;
    for (size_t i = 0; i < fit->group_count; i++)
        again |= transfer_step(&fit->groups[i].transfer, fit->criterion);
    if (!first) {
        free(fit->scouts);
        fit->scouts = NULL;
    }
    if (first && again && fit->criterion == TRANSFER_BANDWIDTH && fit->group_count <= SCOUTED_GROUPS_MAX) {
        fit->scouts = calloc(fit->group_count, sizeof *fit->scouts);
        if (!fit->scouts)
            return -ENOMEM;
        for (size_t i = 0; i < fit->group_count; i++)
            transfer_send(&fit->groups[i].transfer, &fit->scouts[i]);
    }
    return again;
}

/* Whether the rows of the groups that are not done are few enough to be kept in the next pass. */
static bool can_keep(const struct fit *fit) {
    uint64_t rows = 0;
    for (size_t i = 0; i < fit->group_count; i++)
        rows += transfer_wants(&fit->groups[i].transfer) ? fit->groups[i].transfer.rows : 0;
    return rows <= KEPT_ROWS_MAX;
}

static int transfer_end_of_pass(struct fit *fit, struct plugin_message *message) {
    if (fit->rows == 0) {
        snprintf(message->text, sizeof message->text, "there are no rows to fit");
        return -EINVAL;
    }
    int again = step_groups(fit);
    while (again > 0 && fit->keeping) {
        for (size_t i = 0; i < fit->kept_count; i++) {
            const struct kept_row *row = &fit->kept[i];
            transfer_add(&fit->groups[row->group].transfer, fit->criterion, row->size, row->duration, row->w);
        }
        again = step_groups(fit);
    }
    if (again <= 0) {
        forget_rows(fit);
        return again < 0 ? again : FIT_DONE;
    }
    fit->keeping = can_keep(fit);
    return FIT_AGAIN;
}

/* ---- Results */

static void make_notes(const struct fit *fit, const struct transfer *transfer,
                       const struct transfer_fit *result, struct notes *notes) {
    notes->count = 0;
    notes_add_left_out(notes, transfer->empty, "a value is empty or not finite");
    notes_add_left_out(notes, transfer->outside,
                       fit->rate                              ? "a size or a bandwidth is not above 0"
                       : fit->criterion == TRANSFER_BANDWIDTH ? "a size or a duration is not above 0"
                       : fit->criterion == TRANSFER_LOG       ? "a duration is not above 0, or a size below 0"
                                                              : "a size is below 0");
    if (transfer->negative > 0)
        notes_add(notes, "%" PRIu64 " duration%s below 0", transfer->negative,
                  transfer->negative == 1 ? " is" : "s are");
    if (result->inverse <= 0)
        notes_add(notes, "the bandwidth is not above 0: durations do not grow with the size");
    if (result->latency < 0)
        notes_add(notes, "the latency is below 0: durations of small sizes are beyond the model");
    if (result->constant)
        notes_add(notes, "the %s is constant: R2 is not defined",
                  fit->criterion == TRANSFER_BANDWIDTH ? "bandwidth" : "duration");
    if (result->saturated)
        notes_add(notes, "as many rows as terms: no residuals, so no standard errors");
    else if (result->perfect)
        notes_add(notes,
                  "the terms explain the response to its last digit: standard errors are zero, t and p "
                  "not defined");
}

static struct fit_estimate estimate_of(double estimate, double variance, double degrees) {
    struct student test = student_test(estimate, variance, degrees);
    return (struct fit_estimate){estimate, test.standard_error, test.t, test.p, false};
}

/* Estimates of the formula's two terms with their covariance, in the units of the columns. */
static void tell_estimates(const struct fit *fit, const struct transfer_fit *result, double degrees,
                           struct fit_estimate estimates[static 2], double covariance[static 4]) {
    double values[2] = {result->latency, result->inverse};
    double units[2] = {fit->response_scale, fit->response_scale / fit->size_scale};
    double v[3] = {result->covariance[0], result->covariance[1], result->covariance[2]};
    if (fit->rate) { /* response = 1 / (1 / B0 + 1 / (size / t0)): the terms are B0 and 1/t0 */
        double slopes[2] = {-1 / result->inverse / result->inverse, -1 / result->latency / result->latency};
        values[0] = 1 / result->inverse;
        values[1] = 1 / result->latency;
        double first = v[2] * slopes[0] * slopes[0];
        v[2] = v[0] * slopes[1] * slopes[1];
        v[1] *= slopes[0] * slopes[1];
        v[0] = first;
    }
    estimates[0] = estimate_of(values[0] / units[0], v[0] / units[0] / units[0], degrees);
    estimates[1] = estimate_of(values[1] / units[1], v[2] / units[1] / units[1], degrees);
    covariance[0] = v[0] / units[0] / units[0];
    covariance[1] = covariance[2] = v[1] / units[0] / units[1];
    covariance[3] = v[2] / units[1] / units[1];
    for (size_t i = 0; i < 2; i++)
        if (!isfinite(estimates[i].estimate)) { /* a latency of 0, say: the term is nothing */
            estimates[i] = (struct fit_estimate){0, NAN, NAN, NAN, true};
            covariance[1] = covariance[2] = covariance[3 * i] = 0;
        }
}

static size_t tell_values(const struct fit *fit, const struct transfer *transfer,
                          const struct transfer_fit *result, struct fit_value *ret) {
    double t0 = result->latency, b = result->inverse;
    const double *v = result->covariance;
    double half = t0 / b;
    double half_variance = (v[0] - 2 * half * v[1] + half * half * v[2]) / b / b;
    /* Whether the criterion's own space is that of the response. */
    bool own = fit->criterion == (fit->rate ? TRANSFER_BANDWIDTH : TRANSFER_TIME);
    double unit = own ? fit->response_scale : 1;
    const struct fit_value values[] = {
        {"bandwidth", b == 0 ? NAN : 1 / b, 0},
        {"bandwidth_standard_error", sqrt(v[2]) / b / b, 0},
        {"latency", t0, 0},
        {"latency_standard_error", sqrt(v[0]), 0},
        {"half_size", half, 0},
        {"half_size_standard_error", half_variance < 0 ? 0 : sqrt(half_variance), 0},
        {"sigma", own ? result->sigma / unit : NAN, 1},
        {"criterion_sigma", result->sigma, 0},
        {"rss", result->rss / unit / unit, own ? 2 : 0},
        {"degrees_of_freedom", (double)transfer->rows - 2, 0},
        {"r2", result->r2, 0},
        {"log_likelihood", result->log_likelihood, 0},
        {"aic", result->aic, 0},
        {"bic", result->bic, 0},
        {"rows_left_out", (double)(transfer->empty + transfer->outside), 0},
    };
    for (size_t i = 0; i < sizeof values / sizeof *values; i++) {
        ret[i] = values[i];
        if (!isfinite(ret[i].value))
            ret[i].value = NAN;
    }
    return sizeof values / sizeof *values;
}

/* Of times alone: a bandwidth's is no sum of its terms. False where none is told. */
static bool tell_noise(const struct fit *fit, const struct transfer_fit *result,
                       const struct fit_estimate *estimates, double coefficients[static 2],
                       struct plugin_noise *ret) {
    *ret = (struct plugin_noise){.size = sizeof *ret, .kind = "N-1", .distribution = "normal"};
    if (!isfinite(result->sigma))
        return false;
    if (fit->criterion == (fit->rate ? TRANSFER_BANDWIDTH : TRANSFER_TIME)) {
        ret->method = "least-squares";
        ret->constant = result->sigma / fit->response_scale;
        return true;
    }
    if (fit->rate || fit->criterion != TRANSFER_LOG)
        return false;
    ret->kind = "N-2"; /* a share of the mean */
    ret->method = "least-squares";
    ret->constant = result->sigma * estimates[0].estimate;
    coefficients[0] = 0;
    coefficients[1] = result->sigma * estimates[1].estimate;
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
                       const struct transfer_fit *result) {
    const struct group *group = &fit->groups[code];
    struct fit_estimate estimates[2];
    double covariance[4], coefficients[2];
    struct fit_value values[16];
    struct plugin_noise noise;
    struct notes notes;
    tell_estimates(fit, result, (double)group->transfer.rows - 2, estimates, covariance);
    make_notes(fit, &group->transfer, result, &notes);
    bool noisy = tell_noise(fit, result, estimates, coefficients, &noise);
    const struct plugin_range domain = {fit->size, group->minimum, group->maximum};
    const struct fit_part part = {
        .size = sizeof part,
        .kind = "whole",
        .estimates = estimates,
        .covariance = is_finite(covariance, 4) ? covariance : NULL,
        .values = values,
        .value_count = tell_values(fit, &group->transfer, result, values),
        .domain = &domain,
        .domain_count = 1,
        .noise = noisy ? &noise : NULL,
    };
    const struct fit_group written = {
        .size = sizeof written,
        .code = code,
        .rows = group->transfer.rows,
        .parts = &part,
        .part_count = 1,
        .notes = notes.pointers,
        .note_count = notes.count,
    };
    return writer->group(writer->context, &written);
}

static int write_skipped(const struct fit *fit, const struct fit_writer *writer, uint32_t code,
                         const char *reason) {
    const struct transfer *transfer = &fit->groups[code].transfer;
    uint64_t out = transfer->empty + transfer->outside;
    char text[TRANSFER_REASON_SIZE + 96];
    snprintf(text, sizeof text, "%s", reason);
    if (out > 0)
        snprintf(text, sizeof text, "%s (%" PRIu64 " row%s left out: no transfer, or not finite)", reason,
                 out, out == 1 ? "" : "s");
    return writer->skipped(writer->context, code, transfer->rows, text);
}

static int transfer_finish_all(struct fit *fit, const struct fit_writer *writer,
                               struct plugin_message *message) {
    (void)message; /* whatever fails here is memory, or the writer, who knows */
    const struct plugin_factor factor = {.name = fit->size, .power = 1};
    const struct plugin_term terms[] = {{"1", NULL, 0}, {fit->size, &factor, 1}};
    const struct fit_formula formula = {
        sizeof formula, fit->rate ? "harmonic" : "linear", terms, 2, NULL, NULL};
    int r = writer->formula(writer->context, &formula);
    for (uint32_t i = 0; r >= 0 && i < writer->group_count; i++) {
        struct transfer_fit result;
        char reason[TRANSFER_REASON_SIZE];
        uint32_t code = writer->order[i];
        if (transfer_finish(&fit->groups[code].transfer, fit->criterion, fit->size, &result, reason))
            r = write_group(fit, writer, code, &result);
        else
            r = write_skipped(fit, writer, code, reason);
    }
    return r;
}

static const char *const criteria[] = {"time", "bandwidth", "log", NULL};
static const char *const responses[] = {"auto", "time", "bandwidth", NULL};
static const struct plugin_parameter parameters[PARAMETER_COUNT] = {
    [CRITERION] = {.name = "criterion",
                   .words = criteria,
                   .fallback = TRANSFER_BANDWIDTH,
                   .help = "whose squared errors are made least: those of the time, the bandwidth, or the "
                           "logarithm of the time"},
    [RESPONSE] = {.name = "response",
                  .words = responses,
                  .fallback = RESPONSE_AUTO,
                  .help =
                      "what the response is where it has no unit: a time (unless it is called bandwidth), or "
                      "size over time"},
};

static const struct fit_operations operations = {
    .size = sizeof operations,
    .parameter_count = PARAMETER_COUNT,
    .parameters = parameters,
    .open = transfer_open,
    .block = transfer_block,
    .end_of_pass = transfer_end_of_pass,
    .finish = transfer_finish_all,
    .close = transfer_close,
};

ASSAY_PLUGIN_EXPORT extern const struct assay_plugin assay_plugin;
const struct assay_plugin assay_plugin = {
    .abi = ASSAY_PLUGIN_ABI,
    .size = sizeof assay_plugin,
    .kind = ASSAY_PLUGIN_FIT,
    .name = "fit-transfer",
    .version = ASSAY_VERSION,
    .summary = "latency and bandwidth of transfers from their sizes and durations",
    .operations = &operations,
};
