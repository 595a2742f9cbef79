#include "plugins/fit-roofline/roofline.h"

#include "engine/numerics/least-squares.h"

/* Fails because the terms cannot be told apart; the message says why. Returns -EDOM. */
static int refuse_dependent(const struct kernels *kernels, size_t column, struct plugin_message *message) {
    const char *const *names = kernels->names;
    size_t terms = kernels->terms;
    double most = 0;
    for (size_t i = 0; i < kernels->count; i++)
        most = fmax(most, column == FLOPS ? kernels->rows[i].flops : kernels->rows[i].bytes);
    if (column == OVERHEAD)
        return plugin_refuse(message, -EDOM,
                             "only 2 of 3 terms can be estimated: the overhead is a linear "
                             "combination of %.100s and %.100s; set overhead=none",
                             names[FLOPS], names[BYTES]);
    if (most == 0)
        return plugin_refuse(message, -EDOM,
                             "only %zu of %zu terms can be estimated: %.100s is 0 in all rows", terms - 1,
                             terms, names[column]);
    return plugin_refuse(message, -EDOM,
                         "only %zu of %zu terms can be estimated: %.100s is a fixed multiple of "
                         "%.100s; measure kernels of at least two different intensities",
                         terms - 1, terms, names[BYTES], names[FLOPS]);
}

/* Fills in the result from the fit: estimates, residual sums, covariance. */
static void describe_fit(const struct kernels *kernels, const struct least_squares *sums,
                         const struct least_squares_fit *fit, struct roofline *ret) {
    size_t p = kernels->terms;
    for (size_t i = 0; i < p; i++) {
        ret->estimates[i] = fit->estimate[i];
        ret->found[i] = fit->state[i] == LEAST_SQUARES_FREE && fit->estimate[i] > 0;
        for (size_t j = 0; j < p; j++)
            ret->inverse[i * TERMS_MAX + j] = fit->covariance[i + j * p];
    }
    ret->total = p == TERMS_MAX && ret->found[OVERHEAD] ? sums->total : 0;
    for (size_t i = 0; i < kernels->count; i++) {
        const struct kernel *row = &kernels->rows[i];
        double w = kernels->criterion == BY_RELATIVE ? row->w / row->duration / row->duration : row->w;
        double away = row->duration - row->flops * ret->estimates[FLOPS] -
                      row->bytes * ret->estimates[BYTES] - ret->estimates[OVERHEAD];
        ret->rss += w * away * away;
        if (!ret->found[OVERHEAD])
            ret->total += w * row->duration * row->duration;
    }
}

/* Fits time = F x + B y + a with x, y and a of at least 0, by non-negative least squares. -EDOM: too few or
 * dependent rows. */
int improved_fit(const struct kernels *kernels, struct roofline *ret, struct plugin_message *message) {
    static const enum least_squares_role roles[TERMS_MAX] = {
        LEAST_SQUARES_NONNEGATIVE, LEAST_SQUARES_NONNEGATIVE, LEAST_SQUARES_NONNEGATIVE};
    struct least_squares sums = {0};
    struct least_squares_fit fit = {0}, plain = {0};
    *ret = (struct roofline){.bound = NAN};
    if (kernels->count < kernels->terms)
        return plugin_refuse(message, -EDOM, "%zu row%s for %zu terms", kernels->count,
                             kernels->count == 1 ? "" : "s", kernels->terms);
    int r = least_squares_init(&sums, kernels->terms);
    for (size_t i = 0; r == 0 && i < kernels->count; i++) {
        const struct kernel *row = &kernels->rows[i];
        const double x[] = {row->flops, row->bytes, 1};
        double w = kernels->criterion == BY_RELATIVE ? row->w / row->duration / row->duration : row->w;
        r = least_squares_append(&sums, 1, x, 1, &row->duration, &w);
    }
    r = r < 0 ? r : least_squares_solve(&sums, NULL, &plain); /* bounds would hide what cannot be separated */
    if (r == 0 && plain.dependent < kernels->terms)
        r = refuse_dependent(kernels, plain.dependent, message);
    r = r < 0 ? r : least_squares_solve(&sums, roles, &fit);
    if (r == 0)
        describe_fit(kernels, &sums, &fit, ret);
    if (r == -ERANGE || r == -EAGAIN || r == -EINVAL || (r == 0 && !isfinite(ret->rss)))
        r = plugin_refuse(message, -EDOM, "sums over the rows exceed the range of a double");
    least_squares_fit_clear(&plain);
    least_squares_fit_clear(&fit);
    least_squares_clear(&sums);
    return r;
}
