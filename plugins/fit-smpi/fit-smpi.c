/* The plugin fit-smpi: see README.md for what it computes. */
#include "plugins/fit-smpi/breaks.h"
#include "plugins/fit-smpi/calls.h"
#include "plugins/fit-smpi/tables.h"
#include "plugins/interface/fit.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <gsl/gsl_errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    TERMS = 2, /* 1 and the size */
    VALUES_MAX = 12,
    PARTS_MAX = TABLES_LINES * TABLES_SEGMENTS_MAX + OPERATION_COUNT + 1,
    LEVELS_MAX = 4096,  /* names of operations */
    FOUND = LEVELS_MAX, /* stands for the name where a probe found something */
    DETACHED_DEFAULT = 65536,
};

enum parameter {
    PARAMETER_LATENCY,
    PARAMETER_BANDWIDTH,
    PARAMETER_ASYNC,
    PARAMETER_DETACHED,
    PARAMETER_BREAK, /* the first of TABLES_BREAKS_MAX */
    PARAMETER_TRIM = PARAMETER_BREAK + TABLES_BREAKS_MAX,
    PARAMETER_PER,
    PARAMETER_BLOCK,
    PARAMETER_QUANTILE,
    PARAMETER_CALLS,
    PARAMETER_BREAKS,
    PARAMETER_TRIM_PING_PONG,
    PARAMETER_COUNT,
};

struct fit {
    const struct plugin_host *host;
    const struct fit_request *request;
    struct tables_settings settings; /* the breaks are those of the group in hand */
    struct breaks breaks;
    char operation[BREAKS_COLUMN_SIZE]; /* the column that the terms name, or "" */
    struct calls *calls;
    enum operation operations[LEVELS_MAX + 1]; /* of the levels, and of FOUND */
    const char *needs[3];                      /* size, duration, and `found` where there is such a column */
    const char *category;
};

/* ---- Beginning */

static const struct fit_column *find_column(const struct fit_request *request, const char *name) {
    for (size_t i = 0; i < request->column_count; i++)
        if (strcasecmp(request->columns[i].name, name) == 0)
            return &request->columns[i];
    return NULL;
}

/* The column called GIVEN, or by default the first of NAMES that there is. WHAT and OPTION are for messages.
 */
static const struct fit_column *choose_column(const struct fit_request *request, const char *given,
                                              const char *const *names, const char *what, const char *option,
                                              struct plugin_message *message) {
    const struct fit_column *column = NULL;
    if (given) {
        for (size_t i = 0; !column && i < request->column_count; i++)
            if (strcmp(request->columns[i].name, given) == 0)
                column = &request->columns[i];
        if (!column)
            snprintf(message->text, sizeof message->text, "there is no column '%.200s' for %s", given, what);
        return column;
    }
    for (; !column && *names; names++)
        column = find_column(request, *names);
    if (!column)
        snprintf(message->text, sizeof message->text, "which column is %s? say it with %s", what, option);
    return column;
}

/* Tells the nearest name when a column that was asked for is not there. */
static int missing_column(const struct plugin_host *host, const struct fit_request *request,
                          const char *given, struct plugin_message *message) {
    const char **names = calloc(request->column_count + 1, sizeof *names);
    for (size_t i = 0; names && i < request->column_count; i++)
        names[i] = request->columns[i].name;
    const char *nearest = names && given ? host->nearest(given, names, request->column_count) : NULL;
    size_t length = strlen(message->text);
    if (nearest)
        snprintf(message->text + length, sizeof message->text - length, "; did you mean '%.200s'?", nearest);
    free(names);
    return -EINVAL;
}

static int choose_columns(struct fit *fit, struct plugin_message *message) {
    static const char *const sizes[] = {"size", "msg_size", "bytes", NULL};
    static const char *const operations[] = {"operation", "op", "function", NULL};
    const struct fit_request *request = fit->request;
    if (request->size_count > 1) {
        snprintf(message->text, sizeof message->text,
                 "%zu columns of sizes were given; expected one, the bytes of a message",
                 request->size_count);
        return -EINVAL;
    }
    const char *given = request->size_count ? request->sizes[0] : NULL;
    const struct fit_column *size =
        choose_column(request, given, sizes, "the size of a message", "--sizes", message);
    if (!size)
        return missing_column(fit->host, request, given, message);
    if (size->unit && strcmp(size->unit, "By") != 0) {
        snprintf(message->text, sizeof message->text, "the size '%.200s' is in %.100s; expected bytes (By)",
                 size->name, size->unit);
        return -EINVAL;
    }
    given = fit->operation[0] ? fit->operation : NULL;
    const struct fit_column *operation =
        choose_column(request, given, operations, "the operation", "--terms", message);
    if (!operation)
        return missing_column(fit->host, request, given, message);
    fit->needs[0] = size->name;
    fit->needs[1] = request->response;
    const struct fit_column *found = find_column(request, "found");
    fit->needs[2] = found ? found->name : NULL;
    fit->category = operation->name;
    return 0;
}

static int read_unit(struct fit *fit, struct plugin_message *message) {
    static const struct {
        const char *code;
        double seconds;
    } units[] = {{"s", 1}, {"ms", 1e-3}, {"us", 1e-6}, {"ns", 1e-9}};
    const struct fit_column *response = find_column(fit->request, fit->request->response);
    fit->settings.seconds = 1; /* of plain CSV too: what SMPI has */
    if (!response || !response->unit)
        return 0;
    for (size_t i = 0; i < sizeof units / sizeof *units; i++)
        if (strcmp(units[i].code, response->unit) == 0) {
            fit->settings.seconds = units[i].seconds;
            return 0;
        }
    snprintf(message->text, sizeof message->text, "'%.200s' is in %.100s; expected a time (s, ms, us or ns)",
             response->name, response->unit);
    return -EINVAL;
}

static int read_parameters(struct fit *fit, struct plugin_message *message) {
    const double *parameters = fit->request->parameters;
    struct tables_settings *settings = &fit->settings;
    settings->latency = parameters[PARAMETER_LATENCY];
    settings->bandwidth = parameters[PARAMETER_BANDWIDTH];
    settings->trim = parameters[PARAMETER_TRIM];
    settings->trim_ping_pong = parameters[PARAMETER_TRIM_PING_PONG];
    settings->block = (size_t)parameters[PARAMETER_BLOCK];
    settings->per = (enum trim_per)parameters[PARAMETER_PER];
    settings->rule = (enum trim_rule)parameters[PARAMETER_QUANTILE];
    settings->wtime_calls = parameters[PARAMETER_CALLS];
    if (isnan(settings->latency) || isnan(settings->bandwidth)) {
        snprintf(message->text, sizeof message->text,
                 "the %s of the base link is not set, to which the factors are relative: --set %s",
                 isnan(settings->latency) ? "latency" : "bandwidth",
                 isnan(settings->latency) ? "latency=1us" : "bandwidth=10GB/s");
        return -EINVAL;
    }
    return breaks_choose(fit->request, (enum breaks_choice)parameters[PARAMETER_BREAKS],
                         parameters + PARAMETER_BREAK, &fit->breaks, message);
}

static void smpi_close(struct fit *fit) {
    if (!fit)
        return;
    calls_free(fit->calls);
    free(fit);
}

static int smpi_open(const struct plugin_host *host, const struct fit_request *request, struct fit **ret,
                     struct fit_needs *ret_needs, struct plugin_message *message) {
    gsl_set_error_handler_off(); /* of GSL only distribution functions are used */
    struct fit *fit = calloc(1, sizeof *fit);
    if (!fit)
        return -ENOMEM;
    fit->host = host;
    fit->request = request;
    fit->calls = calls_new();
    int r = fit->calls ? 0 : -ENOMEM;
    if (r == 0 && request->weights) {
        snprintf(message->text, sizeof message->text, "weights are not used by this method");
        r = -EINVAL;
    }
    r = r < 0 ? r : breaks_read_terms(request, fit->operation, &fit->breaks, message);
    r = r < 0 ? r : choose_columns(fit, message);
    r = r < 0 ? r : read_unit(fit, message);
    r = r < 0 ? r : read_parameters(fit, message);
    if (r < 0) {
        smpi_close(fit);
        return r;
    }
    *ret = fit;
    *ret_needs = (struct fit_needs){.size = sizeof *ret_needs,
                                    .columns = fit->needs,
                                    .column_count = fit->needs[2] ? 3 : 2,
                                    .categories = &fit->category,
                                    .category_count = 1};
    return 0;
}

/* ---- Rows */

static int smpi_block(struct fit *fit, const struct fit_block *block, struct plugin_message *message) {
    for (size_t i = 0; i < block->rows; i++) {
        bool found = fit->needs[2] && block->columns[2][i] > 0;
        int r = calls_add(fit->calls, block->groups[i], found ? FOUND : block->categories[0][i],
                          block->columns[0][i], block->columns[1][i]);
        if (r == -EFBIG)
            snprintf(message->text, sizeof message->text, "there are more than %d rows", (int)CALLS_MAX);
        if (r < 0)
            return r == -EFBIG ? -EINVAL : r;
    }
    return 0;
}

/* "there is no operation 'Isned'; did you mean 'Isend'?" */
static void note_unknown(const struct fit *fit, const char *text) {
    char sentence[512];
    const char *nearest = fit->host->nearest(text, operation_names, OPERATION_COUNT);
    snprintf(sentence, sizeof sentence, "rows of '%.100s' are left out%s%s%s", text,
             nearest ? "; did you mean '" : "", nearest ? nearest : "", nearest ? "'?" : "");
    if (fit->host->note)
        fit->host->note(fit->host->context, sentence);
}

static int name_operations(struct fit *fit, struct plugin_message *message) {
    struct plugin_levels levels;
    int r = fit->host->levels(fit->host->context, 0, &levels);
    if (r < 0)
        return r;
    size_t known = 0;
    fit->operations[FOUND] = OPERATION_COUNT;
    if (levels.count > LEVELS_MAX) {
        snprintf(message->text, sizeof message->text,
                 "the column '%.200s' has %u different texts; expected operations of MPI (at most %d)",
                 fit->category, levels.count, (int)LEVELS_MAX);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < levels.count; i++) {
        fit->operations[i] = operation_find(levels.texts[i]);
        known += fit->operations[i] != OPERATION_COUNT;
    }
    if (known == 0) {
        snprintf(message->text, sizeof message->text,
                 "the column '%.200s' has no operation of MPI, the first of %u is '%.100s'; expected Isend, "
                 "Send, Recv, PingPong, Iprobe, Test or Wtime",
                 fit->category, levels.count, levels.texts[0]);
        return -EINVAL;
    }
    for (uint32_t i = 0; i < levels.count; i++)
        if (fit->operations[i] == OPERATION_COUNT)
            note_unknown(fit, levels.texts[i]);
    return 0;
}

static int smpi_end_of_pass(struct fit *fit, struct plugin_message *message) {
    if (calls_count(fit->calls) > 0)
        return name_operations(fit, message);
    snprintf(message->text, sizeof message->text, "there are no rows to fit");
    return -EINVAL;
}

/* ---- Results */

/* What the parts of one group point to while they are written. */
struct parts {
    struct fit_part parts[PARTS_MAX];
    struct fit_estimate estimates[PARTS_MAX][TERMS];
    double covariances[PARTS_MAX][TERMS * TERMS];
    struct fit_value values[PARTS_MAX][VALUES_MAX];
    struct plugin_range domains[PARTS_MAX];
    struct plugin_noise noises[PARTS_MAX];
    size_t count;
    const char *notes[TABLES_NOTES_MAX + 1];
    char breaks[BREAKS_NOTE_SIZE];
};

static const struct fit_estimate dropped = {
    .estimate = 0, .standard_error = NAN, .t = NAN, .p = NAN, .dropped = true};

static struct fit_part *add_part(struct parts *parts, const char *kind, const char *name) {
    size_t i = parts->count++;
    parts->estimates[i][0] = parts->estimates[i][1] = dropped;
    parts->parts[i] = (struct fit_part){.size = sizeof parts->parts[i],
                                        .kind = kind,
                                        .name = name,
                                        .estimates = parts->estimates[i],
                                        .values = parts->values[i],
                                        .from = -INFINITY,
                                        .to = INFINITY};
    return &parts->parts[i];
}

static void add_value(struct parts *parts, const char *name, double value, int32_t response_power) {
    struct fit_part *part = &parts->parts[parts->count - 1];
    parts->values[parts->count - 1][part->value_count++] = (struct fit_value){name, value, response_power};
}

static struct fit_estimate make_estimate(double estimate, double error, uint64_t count) {
    double t = error > 0 ? estimate / error : NAN;
    double p = error > 0 ? 2 * gsl_cdf_tdist_Q(fabs(t), (double)count - TERMS) : NAN;
    return (struct fit_estimate){.estimate = estimate, .standard_error = error, .t = t, .p = p};
}

static void add_line(const struct fit *fit, const struct tables *tables, enum operation operation,
                     size_t segment, struct parts *parts) {
    const struct tables_line *found = &tables->lines[operation][segment];
    const struct straight_line *line = &found->line;
    struct fit_part *part = add_part(parts, "segment", operation_names[operation]);
    size_t i = parts->count - 1;
    part->from = tables_from(&fit->settings, segment);
    part->to = tables_to(&fit->settings, segment);
    parts->estimates[i][0] = make_estimate(line->intercept, line->intercept_error, line->count);
    parts->estimates[i][1] = make_estimate(line->slope, line->slope_error, line->count);
    const double covariance[] = {line->intercept_error * line->intercept_error, line->covariance,
                                 line->covariance, line->slope_error * line->slope_error};
    memcpy(parts->covariances[i], covariance, sizeof covariance);
    parts->domains[i] = (struct plugin_range){fit->needs[0], found->minimum, found->maximum};
    part->covariance = isnan(line->sigma) ? NULL : parts->covariances[i];
    part->domain = &parts->domains[i];
    part->domain_count = 1;
    if (operation == OPERATION_PING_PONG) {
        add_value(parts, "lat_factor", tables->latency_factors[segment], 0);
        add_value(parts, "lat_factor_error", tables->latency_errors[segment], 0);
        add_value(parts, "bw_factor", tables->bandwidth_factors[segment], 0);
        add_value(parts, "bw_factor_error", tables->bandwidth_errors[segment], 0);
    } else {
        add_value(parts, "charged", found->charged, 0);
    }
    add_value(parts, "rows", (double)line->count, 0);
    add_value(parts, "sigma", line->sigma, 1);
    add_value(parts, "rss", line->rss, 2);
    add_value(parts, "r2", line->r2, 0);
    add_value(parts, "log_likelihood", line->log_likelihood, 0);
    add_value(parts, "aic", line->aic, 0);
    add_value(parts, "bic", line->bic, 0);
    if (isnan(line->sigma))
        return;
    parts->noises[i] = (struct plugin_noise){.size = sizeof parts->noises[i],
                                             .kind = "N-1",
                                             .distribution = "normal",
                                             .method = "least-squares",
                                             .constant = line->sigma};
    part->noise = &parts->noises[i];
}

/* What a call costs whatever its size. */
static void add_cost(const struct tables *tables, enum operation operation, struct parts *parts) {
    struct fit_part *part = add_part(parts, "whole", operation_names[operation]);
    size_t i = parts->count - 1;
    double sigma = tables->cost_sigmas[operation];
    parts->estimates[i][0] = (struct fit_estimate){
        .estimate = tables->costs[operation], .standard_error = NAN, .t = NAN, .p = NAN};
    add_value(parts, "rows", (double)tables->cost_rows[operation], 0);
    add_value(parts, "sigma", sigma, 1);
    if (isnan(sigma))
        return;
    parts->noises[i] = (struct plugin_noise){.size = sizeof parts->noises[i],
                                             .kind = "N-1",
                                             .distribution = "normal",
                                             .method = "least-squares",
                                             .constant = sigma};
    part->noise = &parts->noises[i];
}

static void make_parts(const struct fit *fit, const struct tables *tables, struct parts *parts) {
    const struct tables_settings *settings = &fit->settings;
    parts->count = 0;
    for (size_t o = 0; o < TABLES_LINES; o++)
        for (size_t s = 0; s <= settings->break_count; s++)
            if (tables->lines[o][s].fitted)
                add_line(fit, tables, (enum operation)o, s, parts);
    for (size_t o = 0; o < OPERATION_COUNT; o++)
        if (tables->cost_rows[o] > 0)
            add_cost(tables, (enum operation)o, parts);
    add_part(parts, "protocol", "protocol");
    add_value(parts, "latency", settings->latency, 0);
    add_value(parts, "bandwidth", settings->bandwidth, 0);
    add_value(parts, "async_small_thresh", settings->async_threshold, 0);
    add_value(parts, "send_is_detached_thresh", settings->detached_threshold, 0);
}

static int write_group(const struct fit *fit, const struct fit_writer *writer, uint32_t group,
                       const struct tables *tables, struct parts *parts) {
    make_parts(fit, tables, parts);
    parts->notes[0] = parts->breaks;
    for (size_t i = 0; i < tables->note_count; i++)
        parts->notes[i + 1] = tables->notes[i];
    const struct fit_group written = {
        .size = sizeof written,
        .code = group,
        .rows = tables->rows,
        .parts = parts->parts,
        .part_count = parts->count,
        .notes = parts->notes,
        .note_count = tables->note_count + 1,
    };
    return writer->group(writer->context, &written);
}

static uint64_t usable_rows(const struct group_calls *calls) {
    uint64_t rows = 0;
    for (size_t o = 0; o < OPERATION_COUNT; o++)
        rows += calls->counts[o];
    return rows;
}

static int write_formula(const struct fit *fit, const struct fit_writer *writer) {
    const struct plugin_factor size = {.name = fit->needs[0], .power = 1};
    const struct plugin_term terms[TERMS] = {{"1", NULL, 0}, {fit->needs[0], &size, 1}};
    const struct fit_formula formula = {.size = sizeof formula,
                                        .kind = "smpi",
                                        .terms = terms,
                                        .term_count = TERMS,
                                        .over = fit->needs[0],
                                        .named_by = fit->category};
    return writer->formula(writer->context, &formula);
}

/* What is set holds; else what the least of the pairs measured; else what is usual. */
static double choose_threshold(double set, const struct group_calls *calls, enum operation operation,
                               double fallback) {
    double least = INFINITY;
    for (size_t i = 0; i < calls->counts[operation]; i++)
        least = fmin(least, calls->calls[operation][i].size);
    return !isnan(set) ? set : isfinite(least) ? fmin(least, INT32_MAX) : fallback;
}

static int write_groups(struct fit *fit, const struct fit_writer *writer, double *scratch,
                        struct tables *tables, struct parts *parts) {
    int r = write_formula(fit, writer);
    for (uint32_t i = 0; r >= 0 && i < writer->group_count; i++) {
        uint32_t group = writer->order[i];
        struct group_calls calls;
        char reason[TABLES_REASON_SIZE];
        calls_of_group(fit->calls, group, &calls);
        uint64_t usable = usable_rows(&calls);
        fit->settings.async_threshold =
            choose_threshold(fit->request->parameters[PARAMETER_ASYNC], &calls, OPERATION_ASYNCHRONOUS, 0);
        fit->settings.detached_threshold = choose_threshold(fit->request->parameters[PARAMETER_DETACHED],
                                                            &calls, OPERATION_DETACHED, DETACHED_DEFAULT);
        r = breaks_of_group(&fit->breaks, calls.calls[OPERATION_PING_PONG], calls.counts[OPERATION_PING_PONG],
                            &fit->settings, parts->breaks);
        if (r < 0)
            return r;
        if (tables_fit(&fit->settings, &calls, scratch, tables, reason))
            r = write_group(fit, writer, group, tables, parts);
        else
            r = writer->skipped(writer->context, group, usable, reason);
    }
    return r;
}

static int smpi_finish(struct fit *fit, const struct fit_writer *writer, struct plugin_message *message) {
    (void)message; /* whatever fails here is memory, or the writer, who knows */
    int r = calls_sort(fit->calls, writer->group_count, fit->operations);
    double *scratch = calloc(calls_count(fit->calls) + 1, sizeof *scratch);
    struct tables *tables = malloc(sizeof *tables);
    struct parts *parts = malloc(sizeof *parts);
    if (r == 0)
        r = scratch && tables && parts ? write_groups(fit, writer, scratch, tables, parts) : -ENOMEM;
    free(scratch);
    free(tables);
    free(parts);
    return r;
}

/* The Recv of a pair says with its Send what a PingPong would; a Wtime row is many calls. */
static void smpi_compare(const struct fit *fit, uint64_t row, struct fit_comparison *ret) {
    struct call_at at;
    ret->none = !calls_at(fit->calls, row, &at);
    if (ret->none)
        return;
    ret->first = at.send;
    ret->plus = at.sending;
    if (at.paired)
        ret->as = operation_names[OPERATION_PING_PONG];
    if (at.operation == OPERATION_WTIME)
        ret->divisor = fit->settings.wtime_calls;
}

/* ---- What the user may set */

#define BREAK(number, next)                                                                                  \
    {                                                                                                        \
        .name = "break" #number, .unit = "By", .fallback = NAN, .minimum = 1, .maximum = 2147483647,         \
        .whole = true, .help = "size from which on segment " #next " holds"                                  \
    }

static const char *const breaks_words[] = {"auto", "found", "none", NULL};
static const char *const per_words[] = {"auto", "rows", "size", NULL};
static const char *const quantile_words[] = {"exact", "old-r", NULL};

static const struct plugin_parameter parameters[PARAMETER_COUNT] = {
    [PARAMETER_LATENCY] = {.name = "latency",
                           .unit = "s",
                           .fallback = NAN,
                           .minimum = 1e-12,
                           .maximum = 1e3,
                           .required = true,
                           .help = "of the platform's links between two hosts; factors are relative to it"},
    [PARAMETER_BANDWIDTH] = {.name = "bandwidth",
                             .unit = "By/s",
                             .fallback = NAN,
                             .minimum = 1,
                             .maximum = 1e15,
                             .required = true,
                             .help = "of the platform's links; factors are relative to it"},
    [PARAMETER_ASYNC] = {.name = "async-small-thresh",
                         .unit = "By",
                         .fallback = NAN,
                         .minimum = 0,
                         .maximum = 2147483647,
                         .whole = true,
                         .help = "messages below go to the receiver without waiting for it; unset: the least "
                                 "size of the rows Asynchronous, or 0"},
    [PARAMETER_DETACHED] = {.name = "send-is-detached-thresh",
                            .unit = "By",
                            .fallback = NAN,
                            .minimum = 0,
                            .maximum = 2147483647,
                            .whole = true,
                            .help = "MPI_Send of messages below returns before they are received; unset: the "
                                    "least size of the rows Detached, or 65536"},
    BREAK(1, 2),
    BREAK(2, 3),
    BREAK(3, 4),
    BREAK(4, 5),
    BREAK(5, 6),
    BREAK(6, 7),
    BREAK(7, 8),
    BREAK(8, 9),
    [PARAMETER_TRIM] = {.name = "trim",
                        .unit = "1",
                        .fallback = 0.1,
                        .minimum = 0,
                        .maximum = 0.49,
                        .help = "share that is cut off at either end; 0: none"},
    [PARAMETER_PER] = {.name = "trim-per",
                       .words = per_words,
                       .fallback = TRIM_AUTO,
                       .help = "rows: of each block of consecutive rows; size: of all rows of a size; auto: "
                               "rows, unless most blocks hold several sizes"},
    [PARAMETER_BLOCK] = {.name = "block",
                         .unit = "1",
                         .fallback = 10,
                         .minimum = 3,
                         .maximum = 1000000,
                         .whole = true,
                         .help = "rows of a block"},
    [PARAMETER_QUANTILE] = {.name = "quantile",
                            .words = quantile_words,
                            .fallback = TRIM_EXACT,
                            .help = "old-r: with the rounding of R before 4.0, for published tables"},
    [PARAMETER_CALLS] = {.name = "wtime-calls",
                         .unit = "1",
                         .fallback = 1e7,
                         .minimum = 1,
                         .maximum = 1e15,
                         .help = "calls of MPI_Wtime that one Wtime row timed together"},
    [PARAMETER_BREAKS] = {.name = "breaks",
                          .words = breaks_words,
                          .fallback = BREAKS_AUTO,
                          .help =
                              "auto: as they are given (break1 ..., terms, --breaks, the archive's), else "
                              "found in PingPong; found: always; none: one segment"},
    [PARAMETER_TRIM_PING_PONG] = {.name = "trim-ping-pong",
                                  .unit = "1",
                                  .fallback = 0,
                                  .minimum = 0,
                                  .maximum = 0.49,
                                  .help = "share of the PingPongs of a size that is cut off at either end; "
                                          "SimGrid's calibration cuts none"},
};

static const struct fit_operations operations = {
    .size = sizeof operations,
    .parameter_count = PARAMETER_COUNT,
    .parameters = parameters,
    .open = smpi_open,
    .block = smpi_block,
    .end_of_pass = smpi_end_of_pass,
    .finish = smpi_finish,
    .close = smpi_close,
    .compare = smpi_compare,
    .takes = FIT_TAKES_BREAKS,
};

ASSAY_PLUGIN_EXPORT extern const struct assay_plugin assay_plugin;
const struct assay_plugin assay_plugin = {
    .abi = ASSAY_PLUGIN_ABI,
    .size = sizeof assay_plugin,
    .kind = ASSAY_PLUGIN_FIT,
    .name = "fit-smpi",
    .version = ASSAY_VERSION,
    .summary = "SMPI's factor tables from point-to-point calls of MPI",
    .operations = &operations,
};
