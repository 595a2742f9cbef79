#include "plugins/fit-roofline/roofline.h"

#include <stdio.h>
#include <string.h>

void improved_add(struct improved *improved, enum roofline_criterion criterion, bool overhead, double flops,
                  double bytes, double duration, double w) {
    const double columns[] = {flops, bytes, 1};
    double share = criterion == ROOFLINE_RELATIVE ? w / duration / duration : w;
    normal_sums_add(&improved->sums, overhead ? 3 : 2, columns, duration, share);
    improved->log_weights = dd_add(improved->log_weights, dd_from(share == 1 ? 0 : log(share)));
    improved->rows++;
}

static void say_dependent(const struct normal_sums *sums, size_t columns, size_t column,
                          const char *const names[static 2], char *reason) {
    bool never = normal_sum(sums, columns, column, column).high == 0;
    if (column < ROOFLINE_OVERHEAD && never)
        snprintf(reason, ROOFLINE_REASON_SIZE, "rank %zu of %zu: %.100s is always 0", columns - 1, columns,
                 names[column]);
    else if (column == ROOFLINE_OVERHEAD)
        snprintf(
            reason, ROOFLINE_REASON_SIZE,
            "rank %zu of %zu: %.100s and %.100s leave no overhead to be told; overhead=none fits without",
            columns - 1, columns, names[0], names[1]);
    else
        snprintf(reason, ROOFLINE_REASON_SIZE,
                 "rank %zu of %zu: %.100s is a multiple of %.100s: one intensity does not tell two peaks",
                 columns - 1, columns, names[1], names[0]);
}

/* Non-negative least squares: its solution is the plain one over the columns that it does not set to 0, and
 * every plain one without a negative estimate is within its bounds. So the best of these is exact. Returns
 * the columns of the best as bits, 0 when there is none. */
static unsigned choose(const struct normal_sums *sums, size_t columns, struct normal_fit *ret) {
    unsigned best = 0;
    for (unsigned selected = (1U << columns) - 1; selected > 0; selected--) {
        struct normal_fit fit;
        size_t column;
        if (normal_solve(sums, columns, selected, &fit, &column) != NORMAL_FITTED)
            continue;
        bool inside = true;
        for (size_t i = 0; i < columns; i++)
            inside = inside && (!(selected & 1U << i) || fit.estimates[i] > 0);
        if (!inside || (best && dd_subtract(fit.rss, ret->rss).high >= 0))
            continue;
        best = selected;
        *ret = fit;
    }
    return best;
}

static void judge(const struct improved *improved, size_t columns, unsigned selected,
                  const struct normal_fit *fit, struct roofline *ret) {
    double n = (double)improved->rows;
    size_t count = 0;
    for (size_t i = 0; i < columns; i++) {
        ret->told[i] = selected & 1U << i;
        ret->estimates[i] = fit->estimates[i];
        count += ret->told[i];
    }
    struct dd raw = normal_sum(&improved->sums, columns, columns, columns), total = raw;
    if (columns == 3 && ret->told[ROOFLINE_OVERHEAD]) { /* about the mean, as there is an intercept */
        struct dd sum = normal_sum(&improved->sums, columns, ROOFLINE_OVERHEAD, columns);
        struct dd weight = normal_sum(&improved->sums, columns, ROOFLINE_OVERHEAD, ROOFLINE_OVERHEAD);
        total = dd_subtract(raw, dd_divide(dd_multiply(sum, sum), weight));
    }
    ret->rows = improved->rows;
    ret->degrees = n - (double)count;
    ret->saturated = improved->rows == count;
    ret->perfect = fit->rss.high <= normal_perfect * raw.high;
    ret->rss = ret->saturated || ret->perfect ? 0 : dd_to_double(fit->rss);
    if (total.high > normal_perfect * raw.high)
        ret->r2 = 1 - dd_to_double(dd_divide(dd_from(ret->rss), total));
    if (ret->saturated)
        return;
    double variance = ret->rss / ret->degrees;
    ret->sigma = sqrt(variance);
    ret->has_covariance = true;
    for (size_t i = 0; i < columns; i++)
        for (size_t j = 0; j < columns; j++)
            ret->covariance[3 * i + j] = variance * fit->inverse[i * columns + j];
    if (ret->perfect)
        return;
    ret->log_likelihood =
        0.5 * (dd_to_double(improved->log_weights) - n * (log(2 * M_PI) + 1 + log(ret->rss / n)));
    double parameters = (double)count + 1; /* sigma is one */
    ret->aic = 2 * parameters - 2 * ret->log_likelihood;
    ret->bic = log(n) * parameters - 2 * ret->log_likelihood;
}

bool improved_fit(const struct improved *improved, bool overhead, const char *const names[static 2],
                  struct roofline *ret, char reason[static ROOFLINE_REASON_SIZE]) {
    size_t columns = overhead ? 3 : 2, column = 0;
    struct normal_fit fit;
    *ret = (struct roofline){
        .sigma = NAN, .r2 = NAN, .log_likelihood = NAN, .aic = NAN, .bic = NAN, .bound = {NAN, NAN}};
    if (improved->rows < columns) {
        snprintf(reason, ROOFLINE_REASON_SIZE, "%llu row%s for %zu terms", (unsigned long long)improved->rows,
                 improved->rows == 1 ? "" : "s", columns);
        return false;
    }
    enum normal_outcome outcome = normal_solve(&improved->sums, columns, (1U << columns) - 1, &fit, &column);
    unsigned selected = outcome == NORMAL_FITTED ? choose(&improved->sums, columns, &fit) : 0;
    /* Weights that are too little for a double leave nothing of the durations. */
    bool vanished = normal_sum(&improved->sums, columns, columns, columns).high == 0;
    if (outcome == NORMAL_DEPENDENT && !vanished)
        say_dependent(&improved->sums, columns, column, names, reason);
    else if (selected == 0)
        snprintf(reason, ROOFLINE_REASON_SIZE, "its sums are beyond the range of a double");
    else
        judge(improved, columns, selected, &fit, ret);
    return selected != 0;
}
