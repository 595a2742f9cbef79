/* Lines of relative errors in the bounds of what SMPI can charge: README.md, "Lines". */
#include "plugins/fit-smpi/smpi.h"

#include "engine/numerics/least-squares.h"
#include "engine/numerics/quantile.h"

#include <string.h>

enum {
    PASSES = 20,              /* of reweighting; weights hardly change after ten */
    COLUMNS = 2 * LINES,      /* of the bounded problem: intercept and slope of each operation */
    TRANSFER = 2 * PING_PONG, /* that of PingPong is the transfer's, which the network takes */
};

static const double huber = 1.345, normal_quartile = 0.674489750196082;
static const double least_share =
    1e-4;                        /* of a ping-pong: the least delay and the least pace of its transfer */
static const double tick = 1e-9; /* s: shorter durations weigh no more, either */
static const double negligible = 0.01; /* durations below this share of their mean weigh no more than at it */
static const double noteworthy = 0.1;  /* a share by which a bound lowers a cost */
static const double exact = 1e4; /* weight of the ping-pong, large enough that its line hardly changes */

/* Fits a line by relative errors with Huber's weights, iteratively reweighted. WEIGHTS and ROOM are scratch,
 * a number a row. */
void lines_weigh(const double *x, const double *y, size_t count, double *weights, double *room,
                 struct segment *line) {
    struct segments_problem problem = {.x = x, .y = y, .weights = weights};
    double mean = 0;
    for (size_t i = 0; i < count; i++)
        mean += y[i] / (double)count;
    double least = fmax(negligible * mean, tick);
    for (size_t i = 0; i < count; i++)
        weights[i] = 1 / pow(fmax(y[i], least), 2);
    for (int pass = 0; pass < PASSES; pass++) {
        segments_line(&problem, 0, count, line);
        for (size_t i = 0; i < count; i++) {
            double fitted = line->intercept + line->slope * x[i];
            weights[i] = 1 / pow(fmax(fitted, least), 2);
            room[i] = fabs(y[i] - fitted) * sqrt(weights[i]);
        }
        double scale = quantile_median(room, count) / normal_quartile; /* sorts them */
        for (size_t i = 0; i < count; i++) {
            double residual = fabs(y[i] - line->intercept - line->slope * x[i]) * sqrt(weights[i]);
            weights[i] *= scale > 0 ? fmin(1, huber * scale / residual) : 1;
        }
    }
    segments_line(&problem, 0, count, line);
}

/* ---- Bounds: all operations of a segment together, as non-negative least squares. The sum of squares of a
 * line is its least one and those of two rows, of the difference at the mean size and of that of the slopes.
 */

struct bounded {
    double x[COLUMNS * COLUMNS], y[COLUMNS], found[COLUMNS];
    enum least_squares_role roles[COLUMNS];
};

/* Solves the bounded problem, into `found`. */
static int solve_bounded(struct bounded *problem) {
    struct least_squares sums;
    struct least_squares_fit fit = {0};
    int r = least_squares_init(&sums, COLUMNS);
    r = r < 0 ? r : least_squares_append(&sums, COLUMNS, problem->x, COLUMNS, problem->y, NULL);
    r = r < 0 ? r : least_squares_solve(&sums, problem->roles, &fit);
    if (r == 0)
        memcpy(problem->found, fit.estimate, sizeof problem->found);
    least_squares_fit_clear(&fit);
    least_squares_clear(&sums);
    return r;
}

/* Whether PART is a part of what OPERATION takes. */
static bool is_part(const struct tables *tables, enum operation part, enum operation operation, size_t s) {
    return part == operation ||
           (operation == PING_PONG && part != ISEND && tables_is_charged(tables, part, s));
}

/* Fits the lines of segment S again, by one non-negative least squares problem, so that SMPI can charge every
 * operation a cost of 0 or more. Notes each cost that this lowers much. A negative errno: the problem cannot
 * be solved. */
int lines_bound(struct tables *tables, size_t s) {
    struct bounded problem = {.roles = {0}};
    const struct segment *ping_pong = tables_line(tables, PING_PONG, s);
    double half = (ping_pong->intercept + ping_pong->slope * ping_pong->mean) / 2;
    double delay = least_share * half, pace = delay / (ping_pong->mean + SMPI_ENVELOPE);
    for (enum operation o = 0; o < LINES; o++) {
        const struct segment *line = tables_line(tables, o, s);
        bool is_both = o == PING_PONG; /* there and back */
        double share = is_both ? 2 : 1, scale = is_both ? exact : 1, mean = line->mean;
        double weight = scale * sqrt(line->weight), spread = scale * sqrt(line->spread);
        double *rows = problem.x + 2 * o;
        problem.roles[2 * o] = problem.roles[2 * o + 1] =
            is_line(line) ? LEAST_SQUARES_NONNEGATIVE : LEAST_SQUARES_LEFT_OUT;
        for (enum operation p = 0; is_line(line) && p <= o; p++)
            if (is_part(tables, p, o, s)) {
                rows[COLUMNS * 2 * p] = share * weight;
                rows[COLUMNS * (2 * p + 1)] = share * weight * (mean + (p == PING_PONG ? SMPI_ENVELOPE : 0));
                rows[COLUMNS * (2 * p + 1) + 1] = share * spread;
            }
        problem.y[2 * o] = weight * (line->intercept + line->slope * mean -
                                     (is_both ? 2 * (delay + pace * (mean + SMPI_ENVELOPE)) : 0));
        problem.y[2 * o + 1] = spread * (line->slope - (is_both ? 2 * pace : 0));
    }
    int r = solve_bounded(&problem);
    problem.found[TRANSFER] += delay + SMPI_ENVELOPE * (problem.found[TRANSFER + 1] + pace);
    problem.found[TRANSFER + 1] += pace;
    for (enum operation o = 0; r == 0 && o < LINES; o++) {
        struct segment *line = &tables->lines[(size_t)o * (tables->break_count + 1) + s];
        double intercept = 0, slope = 0, turn, shift;
        for (enum operation p = 0; p <= o; p++)
            if (is_part(tables, p, o, s)) {
                intercept += (o == PING_PONG ? 2 : 1) * problem.found[2 * p];
                slope += (o == PING_PONG ? 2 : 1) * problem.found[2 * p + 1];
            }
        turn = slope - line->slope;
        shift = intercept - line->intercept + turn * line->mean;
        double before = line->intercept + line->slope * line->mean;
        if (-shift > noteworthy * before && o != PING_PONG && tables_is_charged(tables, o, s))
            fit_result_note(tables->result,
                            "the model charges %s %.2g %% less than was measured, from %.15g byte "
                            "on: the measured Send and Recv take longer than half of a PingPong",
                            operation_names[o], -100 * shift / before, tables_from(tables, s));
        line->rss += line->weight * shift * shift + line->spread * turn * turn;
        line->intercept = intercept;
        line->slope = slope;
    }
    return r;
}
