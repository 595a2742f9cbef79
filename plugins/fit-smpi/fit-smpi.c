/* The plugin fit-smpi: see README.md for what it computes. */
#include "plugins/fit-smpi/smpi.h"

#include <stdlib.h>
#include <string.h>

static const char *const operations[] = {"operation", "op", "function", NULL};
static const char *const sizes[] = {"size", "msg_size", "bytes", NULL};
static const char *const founds[] = {"found", NULL};
static const char *const rules[] = {"ping-pong", "2016-07", "2016-06", NULL};
static const char *const quantiles[] = {"auto", "exact", "old-r", NULL};
static const char *const pers[] = {"auto", "rows", "size", NULL};
static const char *const noes[] = {"no", "yes", NULL};
static const char *const times[] = {"s", NULL};

static const struct plugin_parameter parameters[] = {
    [OPERATION] = {"operation", PLUGIN_CATEGORY, .choices = operations, .required = true,
                   .help = "column with the MPI operation"},
    [SIZE] = {"size", PLUGIN_COLUMN, "By", .choices = sizes, .required = true, .help = "size of the message"},
    [FOUND] = {"found", PLUGIN_CATEGORY, .choices = founds,
               .help = "column that says whether a probe found a message; such rows are left "
                       "out"},
    [LATENCY] = {"latency", PLUGIN_NUMBER, "s", .minimum = 1e-12, .maximum = 1e3, .required = true,
                 .help = "latency between two hosts of the platform; factors are relative to it"},
    [BANDWIDTH] = {"bandwidth", PLUGIN_NUMBER, "By/s", .minimum = 1, .maximum = 1e15, .required = true,
                   .help = "bandwidth of the platform's links; factors are relative to it"},
    [BREAKS] = {"breaks", PLUGIN_NUMBERS, "By", .minimum = 1, .maximum = INT32_MAX,
                .help = "message sizes at which the next segment begins, ascending"},
    [FIND_BREAKS] = {"find-breaks", PLUGIN_WORD, .choices = noes, .default_text = "yes",
                     .help = "whether breaks are searched in the PingPong rows where none are "
                             "given; no: one segment"},
    [ASYNC] = {"async-small-thresh", PLUGIN_NUMBER, "By", .minimum = 0, .maximum = INT32_MAX, .integer = true,
               .help = "smaller messages are sent without waiting for the receiver (eager); "
                       "not set: the least size of the rows Asynchronous, or 0"},
    [DETACHED] =
        {"send-is-detached-thresh", PLUGIN_NUMBER, "By", .minimum = 0, .maximum = INT32_MAX, .integer = true,
         .help = "MPI_Send of smaller messages returns before they are received; not set: the least size "
                 "of the rows Detached, or 65536"},
    [RULES] = {"rules", PLUGIN_WORD, .choices = rules, .default_text = "ping-pong",
               .help = "ping-pong: a simulated ping-pong takes the measured time; otherwise "
                       "the rules of SimGrid's calibration since July 2016, or of the tables "
                       "published in June 2016"},
    [QUANTILES] = {"quantiles", PLUGIN_WORD, .choices = quantiles, .default_text = "auto",
                   .help = "how quantiles for trimming are computed; old-r: as in R before 4.0; "
                           "auto: old-r for rules=2016-06"},
    [CLAMP] = {"clamp", PLUGIN_WORD, .choices = noes, .default_text = "no",
               .help = "whether lat-factor is raised to at least 1 and bw-factor lowered to "
                       "at most 1, as in some published tables"},
    [TRIM] = {"trim", PLUGIN_NUMBER, "1", .default_text = "0.1", .minimum = 0, .maximum = 0.49,
              .help = "share of the durations that is trimmed at each end; 0: no trimming"},
    [TRIM_PER] = {"trim-per", PLUGIN_WORD, .choices = pers, .default_text = "auto",
                  .help = "what is trimmed separately: rows: each block of rows; size: all rows "
                          "of a size; auto: rows, unless most blocks hold several sizes"},
    [BLOCK] = {"block", PLUGIN_NUMBER, "1", .default_text = "10", .minimum = 3, .maximum = 1e6,
               .integer = true, .help = "number of rows of a block"},
    [TRIM_PING_PONG] = {"trim-ping-pong", PLUGIN_NUMBER, "1", .minimum = 0, .maximum = 0.49,
                        .help = "share of the PingPong durations of a size that is trimmed at each "
                                "end; not set: 0.25, or 0 with rules=2016-06 and rules=2016-07"},
    [WTIME_CALLS] = {"wtime-calls", PLUGIN_NUMBER, "1", .default_text = "10000000", .minimum = 1,
                     .maximum = 1e15, .help = "number of MPI_Wtime calls that one Wtime row timed together"},
    {0},
};

/* -EINVAL unless breaks ascend and the operation column names known operations. */
static int check_smpi(const struct fit_request *request, struct plugin_message *message) {
    const struct plugin_value *breaks = &request->values[BREAKS];
    const struct fit_levels *levels = &request->levels[request->values[OPERATION].first];
    size_t known = 0;
    for (size_t i = 1; i < breaks->count; i++)
        if (breaks->numbers[i] <= breaks->numbers[i - 1])
            return plugin_refuse(message, -EINVAL,
                                 "the break %.15g follows the break %.15g; expected breaks in ascending "
                                 "order",
                                 breaks->numbers[i], breaks->numbers[i - 1]);
    if (breaks->count > SMPI_BREAKS_MAX)
        return plugin_refuse(message, -EINVAL, "%zu breaks are set; expected at most %d", breaks->count,
                             SMPI_BREAKS_MAX);
    for (size_t i = 0; i < levels->count; i++)
        known += operation_find(levels->texts[i]) != OPERATIONS;
    return known > 0 ? 0
                     : plugin_refuse(message, -EINVAL,
                                     "the column '%.100s' names no known MPI operation: the first of its "
                                     "%zu values is '%.100s'; expected Isend, Send, Recv, PingPong, Iprobe, "
                                     "Test or Wtime",
                                     request->values[OPERATION].text, levels->count,
                                     levels->count > 0 ? levels->texts[0] : "");
}

/* ---- Results */

/* Records the noise SIGMA: relative to LINE, or in s if LINE is NULL. */
static void record_noise(struct fit_result *result, double sigma, const struct segment *line) {
    static char method[] = "least-squares";
    double coefficients[] = {0, line ? sigma * line->slope : 0};
    struct model_noise noise = {.kind = line ? MODEL_NOISE_HETEROSCEDASTIC : MODEL_NOISE_HOMOSCEDASTIC,
                                .constant = sigma * (line ? line->intercept : 1),
                                .coefficients = line ? coefficients : NULL,
                                .method = method};
    if (isfinite(sigma))
        fit_result_noise_model(result, &noise);
}

/* Records lat_factor and bw_factor of a segment, with standard errors. */
static void record_factors(const struct tables *tables, size_t segment, struct fit_result *result) {
    const struct fit_request *request = tables->request;
    struct transfer transfer = tables_transfer(tables, segment);
    double latency = smpi_number(request, LATENCY), bandwidth = smpi_number(request, BANDWIDTH);
    double lat_factor = transfer.delay / latency, bw_factor = 1 / (transfer.pace * bandwidth);
    bool is_clamped = smpi_number(request, CLAMP) > 0;
    fit_result_value(result, "lat_factor", is_clamped ? fmax(lat_factor, 1) : lat_factor, "1");
    fit_result_value(result, "lat_factor_error", sqrt(transfer.delay_variance) / latency, "1");
    fit_result_value(result, "bw_factor", is_clamped ? fmin(bw_factor, 1) : bw_factor, "1");
    fit_result_value(result, "bw_factor_error",
                     fabs(sqrt(transfer.pace_variance) / transfer.pace * bw_factor), "1");
}

/* Counts the segments that SMPI cannot use, and notes the first of these and the remedy. */
static void note_refused(const struct tables *tables, bool has_ping_pong, struct fit_result *result) {
    static const char *const names[] = {[ISEND] = "smpi/ois", [SEND] = "smpi/os", [RECV] = "smpi/or"};
    size_t refused = !has_ping_pong;
    if (!has_ping_pong)
        fit_result_note(result, "SimGrid cannot use this model: there are no rows of the operation "
                                "PingPong; measure them with the experiment mpi-point-to-point");
    for (size_t s = 0; has_ping_pong && s <= tables->break_count; s++) {
        struct transfer transfer = tables_transfer(tables, s);
        const char *name = transfer.delay < 0  ? "smpi/lat-factor"
                           : transfer.pace > 0 ? NULL
                                               : "smpi/bw-factor";
        for (enum operation o = 0; o <= RECV; o++) {
            const struct segment *line = tables_line(tables, o, s);
            if (tables_is_charged(tables, o, s) && (line->intercept < 0 || line->slope < 0))
                name = names[o];
        }
        if (name && refused++ == 0)
            fit_result_note(result,
                            "SimGrid cannot use this model: %s is not positive for messages from "
                            "%.15g byte on; set rules=ping-pong, which bounds it, or other breaks",
                            name, tables_from(tables, s));
    }
    fit_result_group_value(result, "refused_by_simgrid", (double)refused, "1");
}

/* Records the line of an operation in a segment: estimates, covariance, noise, values. */
static void record_line(const struct tables *tables, enum operation operation, size_t segment,
                        struct fit_result *result) {
    const struct segment *line = tables_line(tables, operation, segment);
    double v[3], n = (double)(line->end - line->begin), sigma = sqrt(line->rss / (n - 2));
    double explained = line->slope * line->slope * line->spread;
    bool is_relative = !smpi_is_published(tables->request);
    char size[512];
    snprintf(size, sizeof size, "`%.500s`", tables->request->values[SIZE].text);
    line_variances(line, v);
    fit_result_part(result, "segment", operation_names[operation], tables_from(tables, segment),
                    tables_to(tables, segment));
    fit_result_term(result, "1", line->intercept, sqrt(v[0]));
    fit_result_term(result, size, line->slope, sqrt(v[1]));
    if (n > 2) {
        fit_result_covariance(result, (const double[]){v[0], v[2], v[2], v[1]});
        record_noise(result, sigma, is_relative ? line : NULL);
    }
    if (operation == PING_PONG) {
        record_factors(tables, segment, result);
    } else {
        fit_result_value(result, "charged", tables_is_charged(tables, operation, segment), "1");
    }
    fit_result_value(result, "rows", n, "1");
    fit_result_value(result, "degrees_of_freedom", n - 2, "1");
    fit_result_value(result, is_relative ? "relative_sigma" : "sigma", n > 2 ? sigma : NAN,
                     is_relative ? "1" : NULL);
    fit_result_value(result, is_relative ? "relative_rss" : "rss", line->rss, is_relative ? "1" : NULL);
    fit_result_value(result, "r2", explained / (explained + line->rss), "1");
    double log_likelihood = line->rss > 0 ? -n * (log(2 * M_PI) + 1 + log(line->rss / n)) / 2 : NAN;
    fit_result_value(result, "bic", 3 * log(n) - 2 * log_likelihood, "1");
}

/* Records the cost of a call that does not depend on size. */
static void record_cost(const struct tables *tables, enum operation operation, size_t rows,
                        struct fit_result *result) {
    const struct cost *cost = &tables->costs[operation - LINES];
    fit_result_part(result, "whole", operation_names[operation], -INFINITY, INFINITY);
    fit_result_term(result, "1", cost->mean, NAN);
    record_noise(result, cost->sigma, NULL);
    fit_result_value(result, "rows", (double)rows, "1");
    fit_result_value(result, "sigma", cost->sigma, NULL);
}

/* Notes which rows were left out, and which operations are missing. */
static void note_rows(const struct group *group, struct fit_result *result) {
    static const char *const of[LINES + 3] = {
        "smpi/ois is",    "smpi/os is",   "smpi/or is",   "smpi/lat-factor and smpi/bw-factor are",
        "smpi/iprobe is", "smpi/test is", "smpi/wtime is"};
    bool is_named = group->first_unknown[0] != '\0';
    if (group->negative > 0)
        fit_result_note(result, "rows left out because of a negative size or duration: %zu", group->negative);
    if (group->other > 0)
        fit_result_note(result, "rows left out because they are of operations that are not fitted%s%s%s: %zu",
                        is_named ? " such as '" : "", group->first_unknown,
                        is_named ? "'" : " or probes that found a message", group->other);
    for (size_t o = 0; o < LINES + 3; o++)
        if (group->calls[o].count == 0)
            fit_result_note(result, "there are no rows of %s: %s not known", operation_names[o], of[o]);
}

/* Fits one group: lines of each operation and segment, costs, and the protocol. */
static int fit_smpi(const struct fit_rows *rows, const struct fit_request *request, struct fit_result *result,
                    struct plugin_message *message) {
    struct tables tables = {.request = request, .result = result};
    struct group group;
    int r = group_read(rows, request, &group);
    if (r == 0 && rows->weights)
        r = plugin_refuse(message, -EINVAL, "fit smpi accepts no weights; remove --weights");
    if (r == 0)
        note_rows(&group, result);
    r = r < 0 ? r : tables_make(&group, &tables, message);
    if (r == 0) {
        fit_result_kind(result, "smpi", request->values[SIZE].text, request->values[OPERATION].text);
        for (enum operation o = 0; o < LINES; o++)
            for (size_t s = 0; s <= tables.break_count; s++)
                if (is_line(tables_line(&tables, o, s)))
                    record_line(&tables, o, s, result);
        for (enum operation o = IPROBE; o <= WTIME; o++)
            if (group.calls[o].count > 0)
                record_cost(&tables, o, group.calls[o].count, result);
        fit_result_part(result, "protocol", "protocol", -INFINITY, INFINITY);
        fit_result_value(result, "latency", smpi_number(request, LATENCY), "s");
        fit_result_value(result, "bandwidth", smpi_number(request, BANDWIDTH), "By/s");
        if (!smpi_is_published(request))
            fit_result_value(result, "envelope", SMPI_ENVELOPE, "By");
        fit_result_value(result, "async_small_thresh", tables.async_threshold, "By");
        fit_result_value(result, "send_is_detached_thresh", tables.detached_threshold, "By");
        fit_result_rows(result, tables.rows);
        note_refused(&tables, group.calls[PING_PONG].count > 0, result);
    }
    tables_clear(&tables);
    group_clear(&group);
    return r;
}

/* ---- Predicting rows */

static const struct model_part *find_part(const struct model_group *group, enum operation operation,
                                          double size) {
    for (size_t i = 0; operation < OPERATIONS && i < group->part_count; i++) {
        const struct model_part *part = &group->parts[i];
        if (strcmp(part->name, operation_names[operation]) == 0 && size >= part->from && size < part->to)
            return part;
    }
    return NULL;
}

/* Predicts each row by the line of its operation. The Recv of a raw ping-pong is the predicted PingPong less
 * the measured Send, which is the row before; a Wtime row is WTIME_CALLS calls. NaN: there is no line. */
static int predict_smpi(const struct model *model, const struct model_group *group,
                        const struct fit_rows *rows, const struct fit_request *request, double *mean,
                        double *sigma, struct plugin_message *message) {
    struct group counts = {0};
    enum operation *each = malloc((rows->count + 1) * sizeof *each);
    (void)message;
    if (!each)
        return -ENOMEM;
    calls_classify(rows, request, each, &counts);
    for (size_t i = 0; i < rows->count; i++) {
        enum operation operation = each[i] == PAIRED ? PING_PONG : each[i];
        double size = rows->columns[request->values[SIZE].first][i];
        double calls = operation == WTIME ? smpi_number(request, WTIME_CALLS) : 1;
        const struct model_part *part = find_part(group, operation, size);
        double slope =
            part && model->term_count > 1 ? part->estimates[1].estimate : 0; /* costs alone have none */
        mean[i] = part ? calls * (part->estimates[0].estimate + slope * size) : NAN;
        sigma[i] = part && part->noise.kind != MODEL_NOISE_NONE ? calls * part->noise.constant : NAN;
        if (part && part->noise.kind == MODEL_NOISE_HETEROSCEDASTIC)
            sigma[i] += part->noise.coefficients[1] * size;
        mean[i] -= each[i] == PAIRED ? rows->response[i - 1] : 0;
    }
    free(each);
    return 0;
}

ASSAY_FIT_PLUGIN("smpi", "0.2.0", "SMPI's factor tables from point-to-point calls of MPI", .fit = fit_smpi,
                 .predict = predict_smpi, .check = check_smpi, .parameters = parameters,
                 .response_units = times, .rows_min = 1, .needs_all_rows = true,
                 .main_values = (const char *const[]){"r2", "latency", "bandwidth", "lat_factor", "bw_factor",
                                                      "charged", NULL});
