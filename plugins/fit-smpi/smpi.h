/*
 * From the calls of MPI of one group to SMPI's factor tables. README.md has every formula and its source.
 */
#ifndef ASSAY_FIT_SMPI_SMPI_H
#define ASSAY_FIT_SMPI_SMPI_H

#include "engine/numerics/segments.h"

#include <assay/fit.h>

enum {
    SMPI_BREAKS_MAX = 255, /* as many segments as a platform file may have, and one less */
    SMPI_ENVELOPE = 16,    /* bytes that SMPI adds to a message before it looks up the network's factors */
};

enum parameter {
    OPERATION,
    SIZE,
    FOUND,
    LATENCY,
    BANDWIDTH,
    BREAKS,
    FIND_BREAKS,
    ASYNC,
    DETACHED,
    RULES,
    QUANTILES,
    CLAMP,
    TRIM,
    TRIM_PER,
    BLOCK,
    TRIM_PING_PONG,
    WTIME_CALLS
};
enum rules { RULES_PING_PONG, RULES_2016_07, RULES_2016_06 };
enum quantiles { QUANTILES_AUTO, QUANTILES_EXACT, QUANTILES_OLD_R };
enum trim_per { TRIM_PER_AUTO, TRIM_PER_ROWS, TRIM_PER_SIZE };

static inline double smpi_number(const struct fit_request *request, enum parameter parameter) {
    return request->values[parameter].number;
}

/* ---- Calls */

enum operation {
    ISEND,
    SEND, /* one end of a ping-pong: the blocking send */
    RECV,
    PING_PONG, /* a message there and back */
    LINES,     /* those before are lines over the size, those behind cost the same whatever it is */
    IPROBE = LINES,
    TEST,
    WTIME,
    ASYNCHRONOUS, /* no call: the size is a threshold that was measured */
    DETACHED_THRESHOLD,
    OPERATIONS,
    PAIRED, /* a Recv that is with the Send before it a PingPong */
};

extern const char *const operation_names[OPERATIONS]; /* "Isend" */

/* The operation that TEXT names, with or without "MPI_" and in any case; OPERATIONS where it names none. */
enum operation operation_find(const char *text);

struct call {
    double size, duration; /* bytes, s */
};

/* Of one operation, in the order of the table. */
struct calls {
    struct call *calls;
    size_t count;
};

struct group {
    struct calls calls[OPERATIONS];
    struct call *memory;
    size_t negative, other; /* rows left out: of negative sizes or durations, of other operations */
    char first_unknown[64]; /* the first of these, "" where they are probes that found something */
};

/* What each of ROWS is, in RET: OPERATIONS where it is to be left out. A group with no PingPong may be raw
 * data of both ends: there a Send whose next row is a Recv of the same size is a ping-pong that took both
 * durations together, and its Recv is PAIRED. */
void calls_classify(const struct fit_rows *rows, const struct fit_request *request, enum operation *ret,
                    struct group *group);
/* 0 or -ENOMEM. */
int group_read(const struct fit_rows *rows, const struct fit_request *request, struct group *ret);
void group_clear(struct group *group);

/* ---- Trimming: by quantiles of type 7 (R. Hyndman, Y. Fan, Amer. Statist. 50 (1996), 361; R's default) */

/* Each keeps those of the calls whose duration is within the quantiles SHARE and 1 - SHARE of their block: of
 * every BLOCK calls in a row (the last may be fewer), or of all of one size, unless these are fewer than 3;
 * the latter sorts the calls. OLD_R: between equal neighbours x a quantile is (1 - h) x + h x, as in R
 * before 4.0, which may be one bit off x, and then all durations that are x are beyond it, or none. SCRATCH
 * has room for as many numbers as there are calls. */
void trim_by_rows(struct calls *calls, size_t block, double share, bool old_r, double *scratch);
void trim_by_size(struct calls *calls, double share, bool old_r, double *scratch);
/* How many blocks of BLOCK calls in a row hold several sizes. */
size_t trim_mixed_blocks(const struct calls *calls, size_t block);
/* Mean and standard deviation of the durations without the floor(SHARE count) shortest and as many longest:
 * R's mean(x, trim = SHARE). NaN where there are none, or fewer than two. */
void trim_mean(const struct calls *calls, double share, double *scratch, double *ret_mean, double *ret_sigma);

/* ---- Tables */

struct cost {
    double mean, sigma; /* s a call; NaN: not known */
};

struct tables {
    const struct fit_request *request;
    struct fit_result *result; /* takes notes */
    double async_threshold, detached_threshold;
    double breaks[SMPI_BREAKS_MAX]; /* ascending */
    size_t break_count;
    bool has_tail; /* the last break is the detached threshold, nothing was measured from there on, and the
                      last two segments have the same lines */
    struct cost costs[WTIME - LINES + 1]; /* of Iprobe, Test, Wtime */
    size_t rows;                          /* that entered a line or a mean */
    struct segment
        *lines; /* of each operation, by segment; begin and end count calls; fewer than 2 sizes: no line */
};

/* Whether the rules are those of tables that SimGrid's calibration published, which knows no bounds. */
static inline bool smpi_is_published(const struct fit_request *request) {
    return smpi_number(request, RULES) != RULES_PING_PONG;
}

/* The line of COUNT durations Y over sizes X: least squares of relative errors with Huber's weights, which
 * go to WEIGHTS. The sums of LINE are weighted. WEIGHTS and ROOM have COUNT numbers. */
void lines_weigh(const double *x, const double *y, size_t count, double *weights, double *room,
                 struct segment *line);
/* Bounds the lines of segment S: none falls or is negative, and what is charged leaves something of the
 * ping-pong to the transfer. 0 or -ENOMEM, -ERANGE, -EAGAIN. */
int lines_bound(struct tables *tables, size_t s);

/* Trims the calls of GROUP and fits. -EDOM with the reason in MESSAGE where there are ping-pongs but a
 * segment has no line of them; -ENOMEM. */
int tables_make(struct group *group, struct tables *tables, struct plugin_message *message);
void tables_clear(struct tables *tables);

static inline const struct segment *tables_line(const struct tables *tables, enum operation operation,
                                                size_t i) {
    return &tables->lines[(size_t)operation * (tables->break_count + 1) + i];
}
static inline bool is_line(const struct segment *line) {
    return line->spread > 0;
}
static inline double tables_from(const struct tables *tables, size_t segment) {
    return segment == 0 ? 0 : tables->breaks[segment - 1];
}
static inline double tables_to(const struct tables *tables, size_t segment) {
    return segment < tables->break_count ? tables->breaks[segment] : INFINITY;
}
/* What the network takes of a message of s + SMPI_ENVELOPE bytes: a delay in s and a pace in s/By. Their
 * variances are to first order, the lines independent. */
struct transfer {
    double delay, pace, delay_variance, pace_variance;
};
/* Of the line: the variances of intercept and slope, and their covariance; NaN with two calls. */
void line_variances(const struct segment *line, double ret[static 3]);
struct transfer tables_transfer(const struct tables *tables, size_t segment);
/* Whether SMPI is to charge the line. */
bool tables_is_charged(const struct tables *tables, enum operation operation, size_t segment);

#endif
