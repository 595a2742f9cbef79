#include "plugins/fit-transfer/transfer.h"

#include <float.h>
#include <stdio.h>
#include <string.h>

/* A Newton step below this share of the estimates leaves an error of its square. */
static const double small_step = 1e-9;
/* Of the way to where a duration becomes 0, that a step may go. */
static const double greatest_share = 0.9;
/* Weights of the linear start that add up to less have lost their digits. */
static const double vanishing = 0x1p-960;
/* Of every duration: a step that changes none by more is nothing but rounding. */
static const double no_step = 1e-14;
/* The criterion is told to its rounding: what is above the least by less than this may be the same. */
static const double same_criterion = 1e-13;

void transfer_begin(struct transfer *transfer) {
    *transfer = (struct transfer){.size_minimum = INFINITY, .size_maximum = -INFINITY};
}

/* ---- Rows */

/* What the criterion compares, of a duration. */
static double response_of(enum transfer_criterion criterion, double size, double duration) {
    if (criterion == TRANSFER_BANDWIDTH)
        return size / duration;
    return criterion == TRANSFER_LOG ? log(duration) : duration;
}

static void add_first(struct transfer *transfer, enum transfer_criterion criterion, double size,
                      double duration, double w) {
    const double columns[] = {1, size};
    double response = response_of(criterion, size, duration), share = 1;
    if (criterion == TRANSFER_BANDWIDTH)
        share = response / duration; /* s/T - s/m is about (m - T) s/T^2 */
    else if (criterion == TRANSFER_LOG)
        share = 1 / duration;
    normal_sums_add(&transfer->start, 2, columns, duration, w * share * share);
    transfer->rows++;
    transfer->negative += duration < 0;
    transfer->size_minimum = fmin(transfer->size_minimum, size);
    transfer->size_maximum = fmax(transfer->size_maximum, size);
    struct dd weighted = dd_two_product(w, response);
    transfer->weight = dd_add(transfer->weight, dd_from(w));
    transfer->sum = dd_add(transfer->sum, weighted);
    transfer->squares = dd_add(transfer->squares, dd_multiply(weighted, dd_from(response)));
    transfer->log_weights = dd_add(transfer->log_weights, dd_from(w == 1 ? 0 : log(w)));
    if (criterion != TRANSFER_TIME)
        transfer->log_densities = dd_add(transfer->log_densities, dd_from(log(share)));
}

/* Residual r and the derivatives of the criterion at the estimates: with m = t0 + s b and v = (1, s),
 *     bandwidth   r = s/T - s/m        dr = s/m^2 v   ddr = -2 s/m^3 v v'
 *     log         r = log T - log m    dr = -1/m v    ddr = 1/m^2 v v'
 * half the gradient is sum w r dr, half the second derivatives sum w (dr dr' + r ddr). With b held and the
 * mean duration at the centre as the other parameter, v = (1, s - centre). */
static void add_further(struct transfer *transfer, enum transfer_criterion criterion, double size,
                        double duration, double w) {
    struct dd mean = dd_add(dd_from(transfer->latency), dd_two_product(size, transfer->inverse));
    struct dd residual;
    double slope, bend;
    if (criterion == TRANSFER_BANDWIDTH) {
        residual = dd_subtract(dd_divide(dd_from(size), dd_from(duration)), dd_divide(dd_from(size), mean));
        slope = size / mean.high / mean.high;
        bend = -2 * slope / mean.high;
    } else {
        struct dd ratio = dd_divide(dd_from(duration), mean);
        residual = dd_fast_two_sum(log(ratio.high), ratio.low / ratio.high);
        slope = -1 / mean.high;
        bend = slope * slope;
    }
    if (transfer->scout)
        scout_add(transfer->scout, size, duration, w);
    struct dd weighted = dd_multiply(dd_from(w), residual);
    double distance = size - transfer->center;
    struct dd pull = dd_multiply(weighted, dd_from(slope));
    transfer->rss = dd_add(transfer->rss, dd_multiply(weighted, residual));
    transfer->gradient[0] = dd_add(transfer->gradient[0], pull);
    transfer->gradient[1] = dd_add(transfer->gradient[1], dd_multiply(pull, dd_from(distance)));
    double square = w * slope * slope, curvature = square + weighted.high * bend;
    const double products[] = {1, distance, distance * distance};
    for (size_t i = 0; i < 3; i++) {
        transfer->jacobian[i] += square * products[i];
        transfer->curvature[i] += curvature * products[i];
    }
}

bool transfer_add(struct transfer *transfer, enum transfer_criterion criterion, double size, double duration,
                  double w) {
    bool first = transfer->state == TRANSFER_LOOKING;
    if (!isfinite(size) || !isfinite(duration) || !isfinite(w)) {
        transfer->empty += first;
        return false;
    }
    if (size < 0 || (criterion == TRANSFER_BANDWIDTH && size == 0) ||
        (criterion != TRANSFER_TIME && duration <= 0)) {
        transfer->outside += first;
        return false;
    }
    if (w == 0) /* as if it were not there */
        return false;
    if (first)
        add_first(transfer, criterion, size, duration, w);
    else if (transfer_wants(transfer))
        add_further(transfer, criterion, size, duration, w);
    return true;
}

/* ---- Steps */

bool transfer_wants(const struct transfer *transfer) {
    return transfer->state == TRANSFER_LOOKING || transfer->state == TRANSFER_STEPPING ||
           transfer->state == TRANSFER_JUDGING;
}

/* The least mean duration over the sizes that there are: it is at one of the ends. */
static double least_mean(const struct transfer *transfer, double latency, double inverse) {
    return fmin(latency + transfer->size_minimum * inverse, latency + transfer->size_maximum * inverse);
}

static void clear_sums(struct transfer *transfer) {
    transfer->rss = transfer->gradient[0] = transfer->gradient[1] = dd_from(0);
    memset(transfer->curvature, 0, sizeof transfer->curvature);
    memset(transfer->jacobian, 0, sizeof transfer->jacobian);
}

/* Estimates to begin with, whose durations are all above 0. */
static bool start(struct transfer *transfer) {
    struct normal_fit fit;
    size_t column;
    if (normal_solve(&transfer->start, 2, 3, &fit, &column) != NORMAL_FITTED)
        return false;
    transfer->center =
        normal_sum(&transfer->start, 2, 0, 1).high / normal_sum(&transfer->start, 2, 0, 0).high;
    transfer->latency = fit.estimates[0];
    transfer->inverse = fit.estimates[1];
    if (least_mean(transfer, transfer->latency, transfer->inverse) > 0)
        return true;
    /* The weighted means of sizes and durations are above 0, and so is a line from the origin to them, but
     * for a size of 0. */
    double weight = normal_sum(&transfer->start, 2, 0, 0).high;
    double size = normal_sum(&transfer->start, 2, 0, 1).high / weight;
    double duration = normal_sum(&transfer->start, 2, 0, 2).high / weight;
    transfer->latency = duration / 2;
    transfer->inverse = duration / 2 / size;
    return duration > 0 && isfinite(transfer->inverse);
}

/* RET = -H^-1 GRADIENT for a symmetric H, if it is positive definite. */
static bool descend(const double h[static 3], const struct dd gradient[static 2], double ret[static 2]) {
    if (!(h[0] > 0) || !(h[2] > 0))
        return false;
    /* Scaled to a diagonal of 1, so that neither size nor duration decide. */
    double root[2] = {sqrt(h[0]), sqrt(h[2])};
    double correlation = h[1] / root[0] / root[1];
    double rest = (1 - correlation) * (1 + correlation);
    if (!(rest > 4 * DBL_EPSILON))
        return false;
    double g[2] = {gradient[0].high / root[0], gradient[1].high / root[1]};
    ret[0] = -(g[0] - correlation * g[1]) / rest / root[0];
    ret[1] = -(g[1] - correlation * g[0]) / rest / root[1];
    return isfinite(ret[0]) && isfinite(ret[1]);
}

/* Whether STEP, of the latency and b, changes no duration by more than rounding does. */
static bool is_nothing(const struct transfer *transfer, const double step[static 2]) {
    const double ends[] = {transfer->size_minimum, transfer->size_maximum};
    for (size_t i = 0; i < 2; i++) {
        double mean = transfer->latency + ends[i] * transfer->inverse, change = step[0] + ends[i] * step[1];
        if (fabs(change) > no_step * fabs(mean))
            return false;
    }
    return true;
}

static bool is_small(const struct transfer *transfer, const double step[static 2]) {
    return (fabs(step[0]) <= small_step * fabs(transfer->latency) &&
            fabs(step[1]) <= small_step * fabs(transfer->inverse)) ||
           is_nothing(transfer, step);
}

/* Where to next from what was reached: the gradient and derivatives of this pass are there. */
static void go_on(struct transfer *transfer) {
    double step[2];
    transfer->steps++;
    transfer->reached[0] = transfer->latency;
    transfer->reached[1] = transfer->inverse;
    transfer->reached_rss = transfer->rss.high;
    if (!descend(transfer->curvature, transfer->gradient, step) &&
        !descend(transfer->jacobian, transfer->gradient, step)) {
        transfer->state = TRANSFER_FAILED;
        return;
    }
    step[0] -= transfer->center * step[1]; /* of the latency */
    double share = 1;
    const double ends[] = {transfer->size_minimum, transfer->size_maximum};
    for (size_t i = 0; i < 2; i++) {
        double mean = transfer->latency + ends[i] * transfer->inverse, change = step[0] + ends[i] * step[1];
        if (mean + change < (1 - greatest_share) * mean)
            share = fmin(share, greatest_share * mean / -change);
    }
    bool last = is_small(transfer, step);
    transfer->latency += share * step[0];
    transfer->inverse += share * step[1];
    if (last)
        transfer->state = TRANSFER_JUDGING;
}

/* The last estimates were worse than those before: nearer to these, unless there is no way left. */
static void go_back(struct transfer *transfer) {
    double step[2] = {(transfer->latency - transfer->reached[0]) / 4,
                      (transfer->inverse - transfer->reached[1]) / 4};
    transfer->steps++;
    transfer->latency = transfer->reached[0];
    transfer->inverse = transfer->reached[1];
    if (is_nothing(transfer, step)) {
        transfer->state = TRANSFER_JUDGING;
        return;
    }
    transfer->latency += step[0];
    transfer->inverse += step[1];
}

void transfer_send(struct transfer *transfer, struct scout *scout) {
    if (transfer->state != TRANSFER_STEPPING)
        return;
    scout_begin(scout, transfer->size_minimum, transfer->size_maximum);
    transfer->scout = scout;
}

/* Whether the scout found a better place than where this pass was. */
static bool follow_scout(struct transfer *transfer) {
    if (!transfer->scout)
        return false;
    double latency, inverse;
    double found = scout_best(transfer->scout, transfer->squares.high, &latency, &inverse);
    transfer->scout = NULL;
    if (!(found < transfer->rss.high))
        return false;
    transfer->latency = latency;
    transfer->inverse = inverse;
    return true;
}

bool transfer_step(struct transfer *transfer, enum transfer_criterion criterion) {
    if (transfer->state == TRANSFER_LOOKING) {
        transfer->state = TRANSFER_STEPPING;
        if (criterion == TRANSFER_TIME || transfer->rows < 2)
            transfer->state = TRANSFER_DONE;
        else if (!start(transfer))
            transfer->state = TRANSFER_FAILED;
    } else if (transfer->state == TRANSFER_JUDGING) {
        transfer->state = TRANSFER_DONE;
    } else if (transfer->state == TRANSFER_STEPPING && !follow_scout(transfer)) {
        double same = same_criterion * transfer->reached_rss + normal_perfect * transfer->squares.high;
        bool fell = transfer->steps == 0 || transfer->rss.high <= transfer->reached_rss + same;
        if (transfer->steps == TRANSFER_STEPS_MAX || !isfinite(transfer->rss.high)) {
            transfer->state = TRANSFER_FAILED;
        } else if (fell) {
            go_on(transfer);
        } else {
            go_back(transfer);
        }
    }
    if (!transfer_wants(transfer))
        return false;
    clear_sums(transfer);
    return true;
}

/* ---- Results */

/* J'J inverted, times the variance, of the latency and b. */
static void spread(const struct transfer *transfer, double variance, double ret[static 3]) {
    const double *jacobian = transfer->jacobian;
    double root[2] = {sqrt(jacobian[0]), sqrt(jacobian[2])}, center = transfer->center;
    double correlation = jacobian[1] / root[0] / root[1];
    double rest = (1 - correlation) * (1 + correlation);
    ret[0] = variance / rest / jacobian[0];
    ret[1] = -variance * correlation / rest / root[0] / root[1];
    ret[2] = variance / rest / jacobian[2];
    ret[0] += center * (center * ret[2] - 2 * ret[1]); /* latency = mean at the centre - centre b */
    ret[1] -= center * ret[2];
}

static void judge(const struct transfer *transfer, enum transfer_criterion criterion,
                  const struct normal_fit *linear, struct dd rss, struct transfer_fit *ret) {
    double n = (double)transfer->rows;
    struct dd total = dd_subtract(transfer->squares,
                                  dd_divide(dd_multiply(transfer->sum, transfer->sum), transfer->weight));
    ret->constant = total.high <= normal_perfect * transfer->squares.high;
    ret->saturated = transfer->rows == 2;
    ret->perfect = rss.high <= normal_perfect * transfer->squares.high;
    ret->rss = ret->saturated || ret->perfect ? 0 : dd_to_double(rss);
    if (!ret->constant)
        ret->r2 = 1 - dd_to_double(dd_divide(dd_from(ret->rss), total));
    if (ret->saturated)
        return;
    double variance = ret->rss / (n - 2);
    ret->sigma = sqrt(variance);
    if (criterion == TRANSFER_TIME) {
        ret->covariance[0] = variance * linear->inverse[0];
        ret->covariance[1] = variance * linear->inverse[1];
        ret->covariance[2] = variance * linear->inverse[3];
    } else {
        spread(transfer, variance, ret->covariance);
    }
    if (ret->perfect)
        return;
    ret->log_likelihood =
        0.5 * (dd_to_double(transfer->log_weights) - n * (log(2 * M_PI) + 1 + log(ret->rss / n))) +
        dd_to_double(transfer->log_densities);
    ret->aic = 2 * 3 - 2 * ret->log_likelihood; /* sigma counts as one of the parameters */
    ret->bic = log(n) * 3 - 2 * ret->log_likelihood;
}

bool transfer_finish(const struct transfer *transfer, enum transfer_criterion criterion, const char *size,
                     struct transfer_fit *ret, char reason[static TRANSFER_REASON_SIZE]) {
    struct normal_fit linear = {0};
    size_t column = 0;
    if (transfer->rows < 2) {
        snprintf(reason, TRANSFER_REASON_SIZE, "%llu row%s for 2 terms", (unsigned long long)transfer->rows,
                 transfer->rows == 1 ? "" : "s");
        return false;
    }
    if (transfer->size_minimum == transfer->size_maximum) {
        snprintf(reason, TRANSFER_REASON_SIZE, "rank 1 of 2: %.64s is always %.6g", size,
                 transfer->size_minimum);
        return false;
    }
    enum normal_outcome outcome = normal_solve(&transfer->start, 2, 3, &linear, &column);
    bool good = outcome == NORMAL_FITTED && transfer->state == TRANSFER_DONE;
    *ret = (struct transfer_fit){.covariance = {NAN, NAN, NAN},
                                 .sigma = NAN,
                                 .r2 = NAN,
                                 .log_likelihood = NAN,
                                 .aic = NAN,
                                 .bic = NAN};
    ret->latency = criterion == TRANSFER_TIME ? linear.estimates[0] : transfer->latency;
    ret->inverse = criterion == TRANSFER_TIME ? linear.estimates[1] : transfer->inverse;
    if (good)
        judge(transfer, criterion, &linear, criterion == TRANSFER_TIME ? linear.rss : transfer->rss, ret);
    bool vanished = normal_sum(&transfer->start, 2, 0, 0).high < vanishing;
    if (outcome == NORMAL_DEPENDENT && !vanished)
        snprintf(reason, TRANSFER_REASON_SIZE, "rank 1 of 2: %.64s hardly changes: %.17g to %.17g", size,
                 transfer->size_minimum, transfer->size_maximum);
    else if (outcome != NORMAL_FITTED || (good && !(isfinite(ret->rss) && isfinite(ret->latency))))
        snprintf(reason, TRANSFER_REASON_SIZE, "its sums are beyond the range of a double");
    else if (!good)
        snprintf(reason, TRANSFER_REASON_SIZE, "no least value of the criterion was found in %u steps",
                 transfer->steps);
    else
        return true;
    return false;
}
