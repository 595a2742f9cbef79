#include "engine/numerics/curve.h"

#include "engine/foundation/cleanup.h"
#include "engine/numerics/gsl.h"
#include "engine/numerics/segments.h"

#include <errno.h>
#include <gsl/gsl_roots.h>
#include <math.h>
#include <stdbool.h>
#include <stdlib.h>

enum { DIRECTIONS_MAX = 4096, ROOT_STEPS_MAX = 200 };

/* The sums are made of logistic functions of log h, h the half size, of width 1 or more: steps of this length
 * pass over no minimum. */
static const double log_step = 0.25;
/* The grid reaches from the least size divided by this to the greatest size times this. */
static const double margin = 100;

struct direction {
    double c, d;
};

/* Directions between FROM (at 0) and TO (at 1). */
struct bracket {
    const struct curve_problem *problem;
    struct direction from, to;
};

static struct direction between(const struct bracket *bracket, double at) {
    return (struct direction){(1 - at) * bracket->from.c + at * bracket->to.c,
                              (1 - at) * bracket->from.d + at * bracket->to.d};
}

/* The sum of squares along a direction with its best factor, rounded as differences of sums are. */
static double profile(const struct curve_problem *problem, struct direction way) {
    double products = 0, squares = 0, total = 0;
    for (size_t i = 0; i < problem->rows; i++) {
        double s = problem->size[i], t = problem->duration[i], w = problem->weight[i];
        double shape = way.c + way.d * s, x = problem->criterion == CURVE_LOG ? 1 : s / shape;
        double u = problem->criterion == CURVE_LOG ? log(t / shape) : s / t;
        products += w * x * u;
        squares += w * x * x;
        total += w * u * u;
    }
    return total - products / squares * products;
}

/* The curve along a direction, with all digits, into RET. Returns half the derivative of the sum of squares
 * by AT, up to a positive factor: its sign and zeros count. */
static double derivative(const struct bracket *bracket, double at, struct curve *ret) {
    const struct curve_problem *problem = bracket->problem;
    const struct direction way = between(bracket, at);
    bool is_log = problem->criterion == CURVE_LOG;
    long double c = way.c, d = way.d, products = 0, squares = 0, rss = 0, slope = 0;
    long double dc = (long double)bracket->to.c - bracket->from.c;
    long double dd = (long double)bracket->to.d - bracket->from.d;
    for (size_t i = 0; i < problem->rows; i++) {
        long double s = problem->size[i], t = problem->duration[i], w = problem->weight[i];
        long double shape = c + d * s, x = is_log ? 1 : s / shape;
        products += w * x * (is_log ? logl(t / shape) : s / t);
        squares += w * x * x;
    }
    long double fitted = products / squares; /* log k, or 1/k */
    for (size_t i = 0; i < problem->rows; i++) {
        long double s = problem->size[i], t = problem->duration[i], w = problem->weight[i];
        long double shape = c + d * s, x = is_log ? 1 : s / shape;
        long double residual = (is_log ? logl(t / shape) : s / t) - fitted * x;
        rss += w * residual * residual;
        slope += w * residual * (is_log ? -1 : x) / shape * (dc + dd * s);
    }
    double factor = (double)(is_log ? expl(fitted) : 1 / fitted);
    *ret = (struct curve){way.c > 0 ? factor * way.c : 0, way.d > 0 ? factor * way.d : 0, (double)rss};
    return (double)slope;
}

static double derivative_at(double at, void *context) {
    struct curve curve;
    return derivative(context, at, &curve);
}

/* Finds the minimum inside a bracket by Brent's method, or the end towards which the sum falls. */
static void refine(struct bracket *bracket, gsl_root_fsolver *solver, struct curve *ret) {
    gsl_function function = {derivative_at, bracket};
    double at = derivative_at(0, bracket) < 0 ? 1 : 0;
    if (at == 1 && derivative_at(1, bracket) > 0 && gsl_root_fsolver_set(solver, &function, 0, 1) == 0)
        for (int i = 0; i < ROOT_STEPS_MAX && gsl_root_fsolver_iterate(solver) == 0; i++) {
            double low = gsl_root_fsolver_x_lower(solver), high = gsl_root_fsolver_x_upper(solver);
            at = gsl_root_fsolver_root(solver);
            if (high - low <= 4e-16 * high)
                break;
        }
    derivative(bracket, at, ret);
}

/* Lists directions from t0 = 0 to b = 0 in logarithmic steps. Returns their number. */
static size_t make_directions(const struct curve_problem *problem, struct direction *ret) {
    double least = INFINITY, greatest = 0, short_time = INFINITY, long_time = 0;
    bool has_zero = false;
    for (size_t i = 0; i < problem->rows; i++) {
        double s = problem->size[i];
        has_zero |= s == 0;
        least = s > 0 ? fmin(least, s) : least;
        greatest = fmax(greatest, s);
        short_time = fmin(short_time, problem->duration[i]);
        long_time = fmax(long_time, problem->duration[i]);
    }
    size_t count = 0;
    double low = least / margin, high = greatest * margin;
    if (has_zero)
        low *= short_time / long_time; /* size 0 takes t0, which may be far below b times the least size */
    else
        ret[count++] = (struct direction){0, 1};
    double step = fmax(log_step, log(high / low) / (DIRECTIONS_MAX - 4));
    for (double h = low; count < DIRECTIONS_MAX - 1 && h < high * exp(step); h *= exp(step))
        ret[count++] = (struct direction){h, 1};
    ret[count] = (struct direction){count > 0 ? ret[count - 1].c : 1, 0};
    return count + 1;
}

/* Refines every minimum of the grid of directions; the lowest is the result. -ENOMEM. */
static int find_projected(const struct curve_problem *problem, gsl_root_fsolver *solver, struct curve *ret) {
    cleanup_free struct direction *ways = malloc(DIRECTIONS_MAX * sizeof *ways);
    cleanup_free double *values = malloc(DIRECTIONS_MAX * sizeof *values);
    if (!ways || !values || !solver)
        return -ENOMEM;
    size_t count = make_directions(problem, ways);
    for (size_t i = 0; i < count; i++)
        values[i] = profile(problem, ways[i]);
    for (size_t i = 0; i < count; i++) {
        size_t before = i > 0 ? i - 1 : 0, after = i + 1 < count ? i + 1 : i;
        struct bracket bracket = {problem, ways[before], ways[after]};
        struct curve found;
        if (!(values[i] <= values[before] && values[i] <= values[after]))
            continue;
        refine(&bracket, solver, &found);
        if (found.rss < ret->rss)
            *ret = found;
    }
    return 0;
}

/* Finds the curve t0 + b s by the problem's criterion (curve.h). -ENOMEM. */
int curve_find(const struct curve_problem *problem, struct curve *ret) {
    *ret = (struct curve){NAN, NAN, INFINITY};
    if (problem->criterion != CURVE_TIME) {
        gsl_root_fsolver *solver = gsl_root_fsolver_alloc(gsl_root_fsolver_brent);
        int code = find_projected(problem, solver, ret);
        if (solver)
            gsl_root_fsolver_free(solver);
        return code;
    }
    const struct segments_problem straight = {
        .points = problem->rows, .x = problem->size, .y = problem->duration, .weights = problem->weight};
    struct segment line;
    segments_line(&straight, 0, problem->rows, &line);
    *ret = (struct curve){line.intercept, line.slope, line.rss};
    return 0;
}
