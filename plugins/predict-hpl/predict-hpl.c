/* The plugin predict-hpl: see README.md for what it computes. */
#include "plugins/interface/predict.h"
#include "plugins/predict-hpl/hpl.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum parameter { N, NB, P, Q, LATENCY, BANDWIDTH, SPEED, PARAMETER_COUNT };

static const char *const speed_words[] = {"mean", "slowest", NULL};
enum { SPEED_MEAN, SPEED_SLOWEST };

static const struct plugin_parameter parameters[PARAMETER_COUNT] = {
    [N] = {.name = "N",
           .unit = "1",
           .minimum = 1,
           .maximum = 1e9,
           .whole = true,
           .required = true,
           .help = "order of the matrix"},
    [NB] = {.name = "NB",
            .unit = "1",
            .minimum = 1,
            .maximum = 1e6,
            .whole = true,
            .required = true,
            .help = "block size"},
    [P] = {.name = "P",
           .unit = "1",
           .minimum = 1,
           .maximum = 1e6,
           .whole = true,
           .required = true,
           .help = "rows of the process grid"},
    [Q] = {.name = "Q",
           .unit = "1",
           .minimum = 1,
           .maximum = 1e6,
           .whole = true,
           .required = true,
           .help = "columns of the process grid"},
    [LATENCY] = {.name = "latency",
                 .unit = "s",
                 .fallback = NAN,
                 .minimum = 0,
                 .maximum = 1e3,
                 .help = "of a message between two processes; needed unless P = Q = 1"},
    [BANDWIDTH] = {.name = "bandwidth",
                   .unit = "By/s",
                   .fallback = NAN,
                   .minimum = 1,
                   .maximum = 1e15,
                   .help = "between two processes; needed unless P = Q = 1"},
    [SPEED] = {.name = "speed",
               .words = speed_words,
               .fallback = SPEED_MEAN,
               .help = "which of the model's groups the processes are like: their mean, or the slowest"},
};

enum column {
    TIME,
    GFLOPS,
    FACTORISATION,
    BROADCAST,
    UPDATE,
    SWAP,
    TIME_CLOSED,
    GAMMA,
    MEMORY,
    OUTSIDE,
    COLUMN_COUNT
};

static const struct predict_column columns[COLUMN_COUNT] = {
    [TIME] = {"time", "s", "s", "sum over the panels: factorisation + broadcast + update + swap", false},
    [GFLOPS] = {"gflops", "10*9/s", "Gflop/s", "(2/3 N^3 + 3/2 N^2) / time, as HPL counts", false},
    [FACTORISATION] = {"factorisation", "s", "s", "of the panels", false},
    [BROADCAST] = {"broadcast", "s", "s", "of the panels along the rows of the grid", false},
    [UPDATE] = {"update", "s", "s", "of the trailing matrix: dgemm by the model, and dtrsm", false},
    [SWAP] = {"swap", "s", "s", "of rows, and broadcast of U along the columns of the grid", false},
    [TIME_CLOSED] = {"time_closed", "s", "s", "the closed form, with gamma3 for all computing", true},
    [GAMMA] = {"gamma3", "s/{flop}", "s/flop", "half the model's coefficient of m*n*k", true},
    [MEMORY] = {"memory", "By", "byte", "of the matrix in one process: 8 N (N + 1) / (P Q)", true},
    [OUTSIDE] = {"outside", "1", "", "share of the dgemm time that lies outside the model's domain", false},
};

struct predict {
    const struct predict_model *model;
    struct hpl_term *terms;
    double *coefficients; /* of the mean over the groups, then of each group; seconds */
    double *sums;
    size_t product;              /* which term is m*n*k */
    struct plugin_range *domain; /* of all groups together */
    size_t domain_count;
};

static void hpl_close(struct predict *predict) {
    if (!predict)
        return;
    free(predict->terms);
    free(predict->coefficients);
    free(predict->sums);
    free(predict->domain);
    free(predict);
}

/* ---- The model */

__attribute__((format(printf, 2, 3))) static int refuse(struct plugin_message *message, const char *format,
                                                        ...) {
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(message->text, sizeof message->text, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

/* Every factor must be one of dgemm's three sizes, to a power that panels of no rows have a value of, and
 * m*n*k one of the terms. */
static int read_terms(struct predict *predict, struct plugin_message *message) {
    const struct predict_model *model = predict->model;
    predict->product = model->term_count;
    for (size_t t = 0; t < model->term_count; t++) {
        struct hpl_term *term = &predict->terms[t];
        for (size_t f = 0; f < model->terms[t].factor_count; f++) {
            const struct plugin_factor *factor = &model->terms[t].factors[f];
            int *size = strcmp(factor->name, "m") == 0   ? &term->m
                        : strcmp(factor->name, "n") == 0 ? &term->n
                        : strcmp(factor->name, "k") == 0 ? &term->k
                                                         : NULL;
            if (!size)
                return refuse(message,
                              "the model '%s' has the factor '%s'; expected a model of dgemm in m, n and k",
                              model->name, factor->name);
            if (factor->function || factor->level || factor->power < 0)
                return refuse(message, "the model '%s' has the term '%s'; expected products of m, n and k",
                              model->name, model->terms[t].name);
            *size += factor->power;
        }
        if (term->m == 1 && term->n == 1 && term->k == 1)
            predict->product = t;
    }
    if (predict->product == model->term_count)
        return refuse(message, "the model '%s' has no term m*n*k; expected a model of dgemm such as M-2",
                      model->name);
    return 0;
}

static int read_coefficients(struct predict *predict, double seconds, struct plugin_message *message) {
    const struct predict_model *model = predict->model;
    size_t count = model->term_count;
    for (size_t g = 0; g < model->group_count; g++)
        for (size_t t = 0; t < count; t++) {
            double value = model->groups[g].parts[0].estimates[t] * seconds;
            predict->coefficients[(g + 1) * count + t] = value;
            predict->coefficients[t] += value / (double)model->group_count;
        }
    for (size_t g = 0; g < model->group_count; g++)
        if (!(predict->coefficients[(g + 1) * count + predict->product] > 0))
            return refuse(
                message,
                "the coefficient of m*n*k of the group '%s' in '%s' is %g; expected a positive time per "
                "multiplication",
                model->groups[g].name, model->name, model->groups[g].parts[0].estimates[predict->product]);
    return 0;
}

static struct plugin_range *find_range(const struct predict *predict, const char *name) {
    for (size_t i = 0; i < predict->domain_count; i++)
        if (strcmp(predict->domain[i].name, name) == 0)
            return &predict->domain[i];
    return NULL;
}

/* The domain of all groups together: from the least to the greatest of each factor and term. */
static void join_domains(struct predict *predict) {
    const struct predict_model *model = predict->model;
    for (size_t g = 0; g < model->group_count; g++)
        for (size_t i = 0; i < model->groups[g].parts[0].domain_count; i++) {
            const struct plugin_range *range = &model->groups[g].parts[0].domain[i];
            struct plugin_range *joint = find_range(predict, range->name);
            if (!joint) {
                predict->domain[predict->domain_count++] = *range;
                continue;
            }
            joint->minimum = fmin(joint->minimum, range->minimum);
            joint->maximum = fmax(joint->maximum, range->maximum);
        }
}

static int allocate(struct predict *predict) {
    const struct predict_model *model = predict->model;
    size_t ranges = 1;
    for (size_t g = 0; g < model->group_count; g++)
        ranges += model->groups[g].parts[0].domain_count;
    predict->terms = calloc(model->term_count + 1, sizeof *predict->terms);
    predict->coefficients =
        calloc((model->group_count + 1) * model->term_count + 1, sizeof *predict->coefficients);
    predict->sums = calloc(model->term_count + 1, sizeof *predict->sums);
    predict->domain = calloc(ranges, sizeof *predict->domain);
    return predict->terms && predict->coefficients && predict->sums && predict->domain ? 0 : -ENOMEM;
}

static int hpl_open(const struct plugin_host *host, const struct predict_model *model, struct predict **ret,
                    struct plugin_message *message) {
    if (strcmp(model->kind, "linear") != 0)
        return refuse(message, "the model '%s' is of the kind '%s'; expected 'linear'", model->name,
                      model->kind);
    if (isnan(model->response_seconds))
        return refuse(message, "the response '%s' of the model '%s' is in '%s'; expected a time",
                      model->response, model->name, model->response_unit ? model->response_unit : "?");
    struct predict *predict = calloc(1, sizeof *predict);
    if (!predict)
        return -ENOMEM;
    predict->model = model;
    if (model->response_seconds == 0) {
        char note[256];
        snprintf(note, sizeof note, "the model does not say the unit of '%.100s': taken for seconds",
                 model->response);
        host->note(host->context, note);
    }
    int r = allocate(predict);
    r = r < 0 ? r : read_terms(predict, message);
    r = r < 0
            ? r
            : read_coefficients(predict, model->response_seconds == 0 ? 1 : model->response_seconds, message);
    if (r < 0) {
        hpl_close(predict);
        return r;
    }
    join_domains(predict);
    *ret = predict;
    return 0;
}

/* ---- Leaving the domain */

enum { RANGES_MAX = 128 };

/* What the dgemm calls of one scenario do to the domain. */
struct watch {
    const struct plugin_range *domain;
    size_t domain_count;
    int exponents[RANGES_MAX][3]; /* of m, n, k in each range */
    double least[RANGES_MAX], greatest[RANGES_MAX];
    double below[RANGES_MAX]; /* seconds of the calls below the minimum */
    double outside, all;      /* seconds */
};

/* "m*n^2" -> the powers of m, n, k; domain names are the terms' names or the sizes. */
static void read_range_name(const struct predict *predict, const char *name, int exponents[3]) {
    for (size_t t = 0; t < predict->model->term_count; t++)
        if (strcmp(predict->model->terms[t].name, name) == 0) {
            exponents[0] = predict->terms[t].m;
            exponents[1] = predict->terms[t].n;
            exponents[2] = predict->terms[t].k;
            return;
        }
    for (int i = 0; i < 3; i++)
        exponents[i] = name[0] == "mnk"[i] && name[1] == '\0';
}

static void start_watch(const struct predict *predict, const struct plugin_range *domain, size_t count,
                        struct watch *watch) {
    *watch = (struct watch){.domain = domain, .domain_count = count < RANGES_MAX ? count : RANGES_MAX};
    for (size_t i = 0; i < watch->domain_count; i++) {
        read_range_name(predict, domain[i].name, watch->exponents[i]);
        watch->least[i] = INFINITY;
        watch->greatest[i] = -INFINITY;
    }
}

static void see(void *context, double m, double n, double k, double seconds) {
    struct watch *watch = context;
    bool outside = false;
    for (size_t i = 0; i < watch->domain_count; i++) {
        const struct hpl_term term = {watch->exponents[i][0], watch->exponents[i][1], watch->exponents[i][2]};
        double value = hpl_evaluate(&term, (const double[]){1}, 1, m, n, k);
        watch->least[i] = fmin(watch->least[i], value);
        watch->greatest[i] = fmax(watch->greatest[i], value);
        if (value < watch->domain[i].minimum)
            watch->below[i] += seconds;
        outside |= value < watch->domain[i].minimum || value > watch->domain[i].maximum;
    }
    watch->all += seconds;
    watch->outside += outside ? seconds : 0;
}

__attribute__((format(printf, 3, 4))) static void remark(const struct predict_remarks *remarks,
                                                         enum predict_remark kind, const char *format, ...) {
    char sentence[512];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    remarks->add(remarks->context, kind, sentence);
}

/* Every scenario ends with a trailing matrix smaller than any that was calibrated; that is worth a word only
 * where the time spent there is. */
static const double noteworthy = 0.01;

static void warn_of_domain(const struct watch *watch, const struct predict_remarks *remarks) {
    if (watch->domain_count == 0)
        remark(remarks, PREDICT_NOTE,
               "the model tells no domain, so nothing says whether it was calibrated for these sizes");
    for (size_t i = 0; i < watch->domain_count; i++) {
        const struct plugin_range *range = &watch->domain[i];
        if (watch->greatest[i] > range->maximum)
            remark(remarks, PREDICT_WARNING, "%s reaches %.6g, %.3g times the largest calibrated (%.6g)",
                   range->name, watch->greatest[i], watch->greatest[i] / range->maximum, range->maximum);
        if (watch->below[i] > noteworthy * watch->all)
            remark(remarks, PREDICT_WARNING,
                   "%s falls to %.6g, %.3g times below the smallest calibrated (%.6g), and %.0f %% of the "
                   "dgemm time "
                   "is below it",
                   range->name, watch->least[i], range->minimum / watch->least[i], range->minimum,
                   100 * watch->below[i] / watch->all);
    }
}

/* ---- A scenario */

static int read_scenario(const double *values, struct hpl_scenario *ret, struct plugin_message *message) {
    bool alone = values[P] == 1 && values[Q] == 1;
    if (!alone && (isnan(values[LATENCY]) || isnan(values[BANDWIDTH])))
        return refuse(message, "the %s is not given; a grid of %g x %g processes needs latency and bandwidth",
                      isnan(values[LATENCY]) ? "latency" : "bandwidth", values[P], values[Q]);
    if (values[NB] > values[N])
        return refuse(message, "NB = %g is larger than N = %g", values[NB], values[N]);
    *ret = (struct hpl_scenario){
        .n = values[N],
        .nb = values[NB],
        .p = values[P],
        .q = values[Q],
        .latency = isnan(values[LATENCY]) ? 0 : values[LATENCY],
        .word = isnan(values[BANDWIDTH]) ? 0 : 8 / values[BANDWIDTH],
    };
    return 0;
}

/* Which group takes longest for the dgemm calls of this scenario. */
static size_t find_slowest(const struct predict *predict, const struct hpl_scenario *scenario) {
    size_t count = predict->model->term_count, slowest = 0;
    double most = -INFINITY;
    hpl_sum_terms(scenario, predict->terms, count, predict->sums);
    for (size_t g = 0; g < predict->model->group_count; g++) {
        double seconds = 0;
        for (size_t t = 0; t < count; t++)
            seconds += predict->coefficients[(g + 1) * count + t] * predict->sums[t];
        if (seconds > most) {
            most = seconds;
            slowest = g;
        }
    }
    return slowest;
}

static void fill(const struct hpl_scenario *s, const struct hpl_time *time, double gamma,
                 const struct watch *watch, double *ret) {
    ret[TIME] = time->factorisation + time->broadcast + time->update + time->swap;
    ret[GFLOPS] = hpl_flops(s->n) / ret[TIME] / 1e9;
    ret[FACTORISATION] = time->factorisation;
    ret[BROADCAST] = time->broadcast;
    ret[UPDATE] = time->update;
    ret[SWAP] = time->swap;
    ret[TIME_CLOSED] = time->closed;
    ret[GAMMA] = gamma;
    ret[MEMORY] = 8 * s->n * (s->n + 1) / (s->p * s->q);
    ret[OUTSIDE] = watch->all > 0 ? watch->outside / watch->all : 0;
}

static void warn_of_grid(const struct hpl_scenario *s, const struct hpl_time *time,
                         const struct predict_remarks *remarks) {
    double blocks = ceil(s->n / s->nb); /* the last may be narrow, but whoever has it is not idle */
    if (s->p > blocks || s->q > blocks)
        remark(remarks, PREDICT_WARNING,
               "some processes have no rows or columns: the matrix has %g x %g blocks, the grid %g x %g "
               "processes",
               blocks, blocks, s->p, s->q);
    /* A narrow last panel is nearly always among them, and weighs nothing. */
    if (time->hidden > noteworthy * time->factorisation)
        remark(remarks, PREDICT_WARNING,
               "the published factorisation term is negative for %zu of %zu panels: the grid is too tall for "
               "these panels; taken as 0",
               time->clamped, time->panels);
}

static int hpl_scenario(struct predict *predict, const double *values, double *ret_values,
                        const struct predict_remarks *remarks, struct plugin_message *message) {
    struct hpl_scenario scenario;
    int r = read_scenario(values, &scenario, message);
    if (r < 0)
        return r;
    const struct predict_model *model = predict->model;
    size_t count = model->term_count;
    const double *coefficients = predict->coefficients;
    struct watch watch;
    start_watch(predict, predict->domain, predict->domain_count, &watch);
    if (values[SPEED] == SPEED_SLOWEST) {
        size_t slowest = find_slowest(predict, &scenario);
        coefficients += (slowest + 1) * count;
        start_watch(predict, model->groups[slowest].parts[0].domain,
                    model->groups[slowest].parts[0].domain_count, &watch);
        remark(remarks, PREDICT_NOTE, "every process is as slow as '%s', the slowest of %zu group%s",
               model->groups[slowest].name, model->group_count, model->group_count == 1 ? "" : "s");
    } else if (model->group_count > 1) {
        remark(remarks, PREDICT_NOTE, "every process is the mean of %zu groups", model->group_count);
    }
    const struct hpl_dgemm dgemm = {predict->terms, count, coefficients, coefficients[predict->product] / 2};
    struct hpl_time time = hpl_predict(&scenario, &dgemm, see, &watch);
    fill(&scenario, &time, dgemm.gamma, &watch, ret_values);
    warn_of_domain(&watch, remarks);
    warn_of_grid(&scenario, &time, remarks);
    if (time.replaced > 0)
        remark(remarks, PREDICT_WARNING,
               "the model's dgemm time is not positive for %zu of %zu panels, where 2mnk gamma3 was used "
               "instead",
               time.replaced, time.panels);
    return 0;
}

static const struct predict_operations operations = {
    .size = sizeof operations,
    .parameter_count = PARAMETER_COUNT,
    .parameters = parameters,
    .column_count = COLUMN_COUNT,
    .columns = columns,
    .open = hpl_open,
    .scenario = hpl_scenario,
    .close = hpl_close,
};

ASSAY_PLUGIN_EXPORT extern const struct assay_plugin assay_plugin;
const struct assay_plugin assay_plugin = {
    .abi = ASSAY_PLUGIN_ABI,
    .size = sizeof assay_plugin,
    .kind = ASSAY_PLUGIN_PREDICT,
    .name = "predict-hpl",
    .version = ASSAY_VERSION,
    .summary = "HPL's time by its authors' analytic model and a dgemm model",
    .operations = &operations,
};
