#include "engine/numerics/curve.h"

#include "engine/foundation/cleanup.h"
#include "engine/numerics/least-squares.h"

#include <errno.h>
#include <math.h>
#include <string.h>

enum { CHUNK = 256, STEPS_MAX = 1000, STILL_STEPS_MAX = 50 };

struct problem {
    size_t rows, parameters;
    curve_residual *residual;
    const void *context;
    struct least_squares sums; /* of -r on its derivatives */
};

/* The sum of squares at P, with the derivatives in `sums`. */
static double evaluate(struct problem *problem, const double *p) {
    double x[CURVE_PARAMETERS_MAX * CHUNK], y[CHUNK], gradient[CURVE_PARAMETERS_MAX], rss = 0;
    least_squares_reset(&problem->sums);
    for (size_t begin = 0; begin < problem->rows; begin += CHUNK) {
        size_t count = problem->rows - begin < CHUNK ? problem->rows - begin : CHUNK;
        for (size_t i = 0; i < count; i++) {
            y[i] = -problem->residual(problem->context, p, begin + i, gradient);
            rss += y[i] * y[i];
            for (size_t j = 0; j < problem->parameters; j++)
                x[i + j * CHUNK] = gradient[j];
        }
        if (!isfinite(rss) || least_squares_append(&problem->sums, count, x, CHUNK, y, NULL) < 0)
            return INFINITY;
    }
    return rss;
}

/* The step that DAMPING allows, from what `evaluate` left. */
static int find_step(struct problem *problem, const struct least_squares *sums, double damping,
                     struct least_squares_fit *ret) {
    size_t n = problem->parameters;
    double x[CURVE_PARAMETERS_MAX * CURVE_PARAMETERS_MAX] = {0}, zero[CURVE_PARAMETERS_MAX] = {0};
    least_squares_reset(&problem->sums);
    int code = least_squares_merge(&problem->sums, sums);
    for (size_t j = 0; j < n; j++) { /* a row for each parameter, as long as its column */
        double square = 0;
        for (size_t i = 0; i <= j; i++)
            square += pow(sums->triangle[i + j * (n + 1)], 2);
        x[j + j * n] = sqrt(damping * square);
    }
    if (code == 0 && damping > 0)
        code = least_squares_append(&problem->sums, n, x, n, zero, NULL);
    return code < 0 ? code : least_squares_solve(&problem->sums, NULL, ret);
}

/* How much STEP changes the fitted values, relative to what the parameters P contribute to them. A parameter
 * whose best value is 0 has steps that are never small beside itself. */
static double effect_of(const struct least_squares *sums, size_t n, const double *p, const double *step) {
    double effect = 0, whole = 0;
    for (size_t j = 0; j < n; j++) {
        double square = 0;
        for (size_t i = 0; i <= j; i++)
            square += pow(sums->triangle[i + j * (n + 1)], 2);
        effect = fmax(effect, fabs(step[j]) * sqrt(square));
        whole = fmax(whole, fabs(p[j]) * sqrt(square));
    }
    return effect / whole;
}

int curve_fit(size_t rows, size_t parameters, curve_residual *residual, const void *context,
              const double *start, struct curve *ret) {
    *ret = (struct curve){0};
    if (parameters == 0 || parameters > CURVE_PARAMETERS_MAX || rows < parameters)
        return -EINVAL;
    cleanup(least_squares_clear) struct least_squares here = {0};
    struct problem problem = {
        .rows = rows, .parameters = parameters, .residual = residual, .context = context};
    int code = least_squares_init(&here, parameters);
    if (code < 0)
        return code;
    code = least_squares_init(&problem.sums, parameters);
    if (code < 0)
        return code;
    memcpy(ret->estimate, start, parameters * sizeof *start);
    double damping = 1e-3;
    size_t still = 0; /* steps that changed next to nothing */
    ret->rss = evaluate(&problem, start);
    code = isfinite(ret->rss) ? -EAGAIN : -EINVAL;
    least_squares_reset(&here);
    least_squares_merge(&here, &problem.sums);
    while (code == -EAGAIN && ret->steps++ < STEPS_MAX) {
        struct least_squares_fit step;
        double tried[CURVE_PARAMETERS_MAX], length = 0;
        int solved = find_step(&problem, &here, damping, &step);
        if (solved < 0 || step.rank < parameters) {
            code = solved < 0 ? solved : -EDOM;
        } else {
            for (size_t j = 0; j < parameters; j++) {
                tried[j] = ret->estimate[j] + step.estimate[j];
                length = fmax(length, fabs(step.estimate[j]) / fmax(fabs(tried[j]), fabs(ret->estimate[j])));
            }
            still += effect_of(&here, parameters, ret->estimate, step.estimate) < 1e-12;
            double rss = evaluate(&problem, tried);
            /* Near the minimum the sum tells rounding from progress no more, but the step does. */
            if (rss <= ret->rss * (1 + (length < 1e-6 ? 1e-12 : 0))) {
                memcpy(ret->estimate, tried, parameters * sizeof *tried);
                ret->rss = rss;
                damping = damping < 1e-15 ? 0 : damping / 10;
                least_squares_reset(&here);
                least_squares_merge(&here, &problem.sums);
                code = length < 1e-14 || rss == 0 ? 0 : code;
            } else {
                damping = damping > 0 ? 10 * damping : 1e-12;
                code = length < 1e-14 ? 0 : code;
            }
            code = still > STILL_STEPS_MAX ? 0 : code;
        }
        least_squares_fit_clear(&step);
    }
    struct least_squares_fit end = {0};
    if (code == 0)
        code = find_step(&problem, &here, 0, &end);
    if (code == 0) {
        code = end.rank < parameters ? -EDOM : 0;
        memcpy(ret->covariance, end.covariance, parameters * parameters * sizeof *end.covariance);
    }
    least_squares_fit_clear(&end);
    least_squares_clear(&problem.sums);
    return code;
}
