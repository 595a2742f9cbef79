/* The plugin fit-smpi: see README.md for what it computes. */
#include "plugins/fit-smpi/smpi.h"

#include <stdlib.h>
#include <string.h>

static const char *const operations[] = {"operation", "op", "function", NULL};
static const char *const sizes[] = {"size", "msg_size", "bytes", NULL};
static const char *const founds[] = {"found", NULL};
static const char *const rules[] = {"2016-07", "2016-06", NULL};
static const char *const pers[] = {"auto", "rows", "size", NULL};
static const char *const noes[] = {"no", "yes", NULL};
static const char *const times[] = {"s", NULL};

static const struct plugin_parameter parameters[] = {
    [OPERATION] = {"operation", PLUGIN_CATEGORY, .words = operations, .required = true,
                   .help = "the call of MPI"},
    [SIZE] = {"size", PLUGIN_COLUMN, "By", .words = sizes, .required = true, .help = "of the message"},
    [FOUND] = {"found", PLUGIN_CATEGORY, .words = founds,
               .help = "whether a probe found something: left out then"},
    [LATENCY] = {"latency", PLUGIN_NUMBER, "s", .minimum = 1e-12, .maximum = 1e3, .required = true,
                 .help = "between two hosts of the platform; factors are relative to it"},
    [BANDWIDTH] = {"bandwidth", PLUGIN_NUMBER, "By/s", .minimum = 1, .maximum = 1e15, .required = true,
                   .help = "of the platform's links; factors are relative to it"},
    [BREAKS] = {"breaks", PLUGIN_NUMBERS, "By", .minimum = 1, .maximum = INT32_MAX,
                .help = "sizes from which on the next segment holds, ascending"},
    [FIND_BREAKS] = {"find-breaks", PLUGIN_WORD, .words = noes, .fallback = "yes",
                     .help = "whether they are found in PingPong where none are given; no: one segment"},
    [ASYNC] =
        {"async-small-thresh", PLUGIN_NUMBER, "By", .minimum = 0, .maximum = INT32_MAX, .whole = true,
         .help = "smaller messages go to the receiver without waiting for it; not set: the least size of the "
                 "rows Asynchronous, or 0"},
    [DETACHED] =
        {"send-is-detached-thresh", PLUGIN_NUMBER, "By", .minimum = 0, .maximum = INT32_MAX, .whole = true,
         .help = "MPI_Send of smaller messages returns before they are received; not set: the least size "
                 "of the rows Detached, or 65536"},
    [RULES] = {"rules", PLUGIN_WORD, .words = rules, .fallback = "2016-07",
               .help =
                   "of SimGrid's calibration: those since July 2016, or those of tables published in June"},
    [CLAMP] = {"clamp", PLUGIN_WORD, .words = noes, .fallback = "no",
               .help = "lat-factor at least 1 and bw-factor at most 1, as in some published tables"},
    [TRIM] = {"trim", PLUGIN_NUMBER, "1", .fallback = "0.1", .minimum = 0, .maximum = 0.49,
              .help = "share of durations that is cut off at either end; 0: none"},
    [TRIM_PER] =
        {"trim-per", PLUGIN_WORD, .words = pers, .fallback = "auto",
         .help = "rows: of each block of rows; size: of all rows of a size; auto: rows, unless most blocks "
                 "hold several sizes"},
    [BLOCK] = {"block", PLUGIN_NUMBER, "1", .fallback = "10", .minimum = 3, .maximum = 1e6, .whole = true,
               .help = "rows of a block"},
    [TRIM_PING_PONG] = {"trim-ping-pong", PLUGIN_NUMBER, "1", .fallback = "0", .minimum = 0, .maximum = 0.49,
                        .help = "share of the PingPongs of a size that is cut off at either end"},
    [WTIME_CALLS] = {"wtime-calls", PLUGIN_NUMBER, "1", .fallback = "10000000", .minimum = 1, .maximum = 1e15,
                     .help = "calls of MPI_Wtime that one Wtime row timed together"},
    {0},
};

static int check_smpi(const struct fit_request *request, struct plugin_message *message) {
    const struct plugin_value *breaks = &request->values[BREAKS];
    const struct fit_levels *levels = &request->levels[request->values[OPERATION].first];
    size_t known = 0;
    for (size_t i = 1; i < breaks->count; i++)
        if (breaks->numbers[i] <= breaks->numbers[i - 1])
            return plugin_refuse(message, -EINVAL,
                                 "the break %.15g comes after %.15g; expected one that is larger",
                                 breaks->numbers[i], breaks->numbers[i - 1]);
    if (breaks->count > SMPI_BREAKS_MAX)
        return plugin_refuse(message, -EINVAL, "%zu breaks; expected at most %d", breaks->count,
                             SMPI_BREAKS_MAX);
    for (size_t i = 0; i < levels->count; i++)
        known += operation_find(levels->texts[i]) != OPERATIONS;
    return known > 0
               ? 0
               : plugin_refuse(
                     message, -EINVAL,
                     "the column '%.100s' has no operation of MPI, the first of %zu is '%.100s'; expected "
                     "Isend, Send, Recv, PingPong, Iprobe, Test or Wtime",
                     request->values[OPERATION].text, levels->count,
                     levels->count > 0 ? levels->texts[0] : "");
}

/* ---- Results */

static void give_noise(struct fit_result *result, double sigma) {
    static char method[] = "least-squares";
    if (isfinite(sigma))
        fit_result_noise_model(
            result,
            &(struct model_noise){.kind = MODEL_NOISE_HOMOSCEDASTIC, .constant = sigma, .method = method});
}

/* lat-factor = (a - a of or) / 2 / latency, bw-factor = 2 / (bandwidth (b - b of or)); their errors to first
 * order, the lines independent. */
static void give_factors(const struct tables *tables, size_t segment, const double *variances,
                         struct fit_result *result) {
    const struct fit_request *request = tables->request;
    const struct segment *ping_pong = tables_line(tables, PING_PONG, segment);
    static const struct segment nothing;
    bool has_receive = tables_is_charged(tables, RECV, segment);
    const struct segment *receive = has_receive ? tables_line(tables, RECV, segment) : &nothing;
    double latency = smpi_number(request, LATENCY), bandwidth = smpi_number(request, BANDWIDTH);
    double delay = (ping_pong->intercept - receive->intercept) / 2,
           pace = (ping_pong->slope - receive->slope) / 2;
    double lat_factor = delay / latency, bw_factor = 1 / (pace * bandwidth);
    bool is_clamped = smpi_number(request, CLAMP) > 0;
    fit_result_value(result, "lat_factor", is_clamped ? fmax(lat_factor, 1) : lat_factor, "1");
    fit_result_value(result, "lat_factor_error", sqrt(variances[0]) / 2 / latency, "1");
    fit_result_value(result, "bw_factor", is_clamped ? fmin(bw_factor, 1) : bw_factor, "1");
    fit_result_value(result, "bw_factor_error", fabs(sqrt(variances[1]) / 2 / pace * bw_factor), "1");
    if (!(delay >= 0))
        fit_result_note(result, "PingPong has a negative latency from %.15g byte on",
                        tables_from(tables, segment));
    if (!(pace > 0))
        fit_result_note(result,
                        "PingPong has no bandwidth from %.15g byte on: its time does not grow with the size",
                        tables_from(tables, segment));
}

/* Of the line: the variances of intercept and slope, and their covariance; NaN with two calls. */
static void find_variances(const struct segment *line, double ret[static 3]) {
    double n = (double)(line->end - line->begin), variance = n > 2 ? line->rss / (n - 2) : NAN;
    ret[0] = variance * (1 / line->weight + line->mean * line->mean / line->spread);
    ret[1] = variance / line->spread;
    ret[2] = -variance * line->mean / line->spread;
}

static void give_line(const struct tables *tables, enum operation operation, size_t segment,
                      struct fit_result *result) {
    const struct segment *line = tables_line(tables, operation, segment);
    double v[3], n = (double)(line->end - line->begin), sigma = sqrt(line->rss / (n - 2)), receive[3] = {0};
    double explained = line->slope * line->slope * line->spread;
    char size[512];
    snprintf(size, sizeof size, "`%.500s`", tables->request->values[SIZE].text);
    find_variances(line, v);
    fit_result_part(result, "segment", operation_names[operation], tables_from(tables, segment),
                    tables_to(tables, segment));
    fit_result_term(result, "1", line->intercept, sqrt(v[0]));
    fit_result_term(result, size, line->slope, sqrt(v[1]));
    if (n > 2) {
        fit_result_covariance(result, (const double[]){v[0], v[2], v[2], v[1]});
        give_noise(result, sigma);
    }
    if (operation == PING_PONG) {
        if (tables_is_charged(tables, RECV, segment))
            find_variances(tables_line(tables, RECV, segment), receive);
        give_factors(tables, segment, (const double[]){v[0] + receive[0], v[1] + receive[1]}, result);
    } else {
        fit_result_value(result, "charged", tables_is_charged(tables, operation, segment), "1");
    }
    fit_result_value(result, "rows", n, "1");
    fit_result_value(result, "degrees_of_freedom", n - 2, "1");
    fit_result_value(result, "sigma", n > 2 ? sigma : NAN, NULL);
    fit_result_value(result, "rss", line->rss, NULL);
    fit_result_value(result, "r2", explained / (explained + line->rss), "1");
    double log_likelihood = line->rss > 0 ? -n * (log(2 * M_PI) + 1 + log(line->rss / n)) / 2 : NAN;
    fit_result_value(result, "bic", 3 * log(n) - 2 * log_likelihood, "1");
}

/* What a call costs whatever its size. */
static void give_cost(const struct tables *tables, enum operation operation, size_t rows,
                      struct fit_result *result) {
    const struct cost *cost = &tables->costs[operation - LINES];
    fit_result_part(result, "whole", operation_names[operation], -INFINITY, INFINITY);
    fit_result_term(result, "1", cost->mean, NAN);
    give_noise(result, cost->sigma);
    fit_result_value(result, "rows", (double)rows, "1");
    fit_result_value(result, "sigma", cost->sigma, NULL);
}

static void note(const struct group *group, struct fit_result *result) {
    static const char *const of[LINES + 3] = {
        "smpi/ois is",    "smpi/os is",   "smpi/or is",   "smpi/lat-factor and smpi/bw-factor are",
        "smpi/iprobe is", "smpi/test is", "smpi/wtime is"};
    bool is_named = group->stranger[0] != '\0';
    if (group->negative > 0)
        fit_result_note(result, "rows left out, with a negative size or duration: %zu", group->negative);
    if (group->other > 0)
        fit_result_note(result, "rows left out, of other operations%s%s%s: %zu", is_named ? " such as '" : "",
                        group->stranger, is_named ? "'" : " or of probes that found something", group->other);
    for (size_t o = 0; o < LINES + 3; o++)
        if (group->calls[o].count == 0)
            fit_result_note(result, "no %s: %s not known", operation_names[o], of[o]);
}

static int fit_smpi(const struct fit_rows *rows, const struct fit_request *request, struct fit_result *result,
                    struct plugin_message *message) {
    struct tables tables = {.request = request, .result = result};
    struct group group;
    int r = group_read(rows, request, &group);
    if (r == 0 && rows->weights)
        r = plugin_refuse(message, -EINVAL, "weights are not used by this method");
    if (r == 0)
        note(&group, result);
    r = r < 0 ? r : tables_make(&group, &tables, message);
    if (r == 0) {
        fit_result_kind(result, "smpi", request->values[SIZE].text, request->values[OPERATION].text);
        for (enum operation o = 0; o < LINES; o++)
            for (size_t s = 0; s <= tables.break_count; s++)
                if (is_line(tables_line(&tables, o, s)))
                    give_line(&tables, o, s, result);
        for (enum operation o = IPROBE; o <= WTIME; o++)
            if (group.calls[o].count > 0)
                give_cost(&tables, o, group.calls[o].count, result);
        fit_result_part(result, "protocol", "protocol", -INFINITY, INFINITY);
        fit_result_value(result, "latency", smpi_number(request, LATENCY), "s");
        fit_result_value(result, "bandwidth", smpi_number(request, BANDWIDTH), "By/s");
        fit_result_value(result, "async_small_thresh", tables.async_threshold, "By");
        fit_result_value(result, "send_is_detached_thresh", tables.detached_threshold, "By");
        fit_result_rows(result, tables.rows);
    }
    tables_clear(&tables);
    group_clear(&group);
    return r;
}

/* ---- What the model says of rows */

static const struct model_part *find_part(const struct model_group *group, enum operation operation,
                                          double size) {
    for (size_t i = 0; operation < OPERATIONS && i < group->part_count; i++) {
        const struct model_part *part = &group->parts[i];
        if (strcmp(part->name, operation_names[operation]) == 0 && size >= part->from && size < part->to)
            return part;
    }
    return NULL;
}

/* The Recv of a raw ping-pong is what its Send leaves of it; a Wtime row is many calls. */
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
        sigma[i] = part && part->noise.kind == MODEL_NOISE_HOMOSCEDASTIC ? calls * part->noise.constant : NAN;
        mean[i] -= each[i] == PAIRED ? rows->response[i - 1] : 0;
    }
    free(each);
    return 0;
}

ASSAY_FIT_PLUGIN("smpi", "0.2.0", "SMPI's factor tables from point-to-point calls of MPI", .fit = fit_smpi,
                 .predict = predict_smpi, .check = check_smpi, .parameters = parameters,
                 .response_units = times, .rows_min = 1, .whole = true);
