#include "plugins/fit-linear/selection.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

/* The columns of one term of the formula. */
struct unit {
    size_t term;
    size_t columns[SUMS_COLUMNS_MAX];
    size_t count;
};

static const struct formula_term *formula_term(const struct sums_layout *layout, size_t term) {
    return &layout->expansion->formula->terms[term];
}

static bool is_part(const struct formula_term *part, const struct formula_term *whole) {
    size_t found = 0;
    for (size_t i = 0; i < whole->category_count; i++)
        found += found < part->category_count && part->categories[found] == whole->categories[i];
    return part->product == whole->product && found == part->category_count &&
           part->category_count < whole->category_count;
}

static bool list_unit(const struct sums_layout *layout, const bool *kept, size_t term, struct unit *unit) {
    unit->term = term;
    unit->count = 0;
    for (size_t a = 1; a + 1 < layout->width; a++)
        if (kept[a] && layout->expansion->terms[layout->term_of[a]].term == term)
            unit->columns[unit->count++] = a;
    return unit->count > 0;
}

/* Whether a term that is kept has the categories of this one and more. */
static bool is_needed(const struct sums_layout *layout, const bool *kept, size_t term) {
    for (size_t a = 1; a + 1 < layout->width; a++)
        if (kept[a] && is_part(formula_term(layout, term),
                               formula_term(layout, layout->expansion->terms[layout->term_of[a]].term)))
            return true;
    return false;
}

/* b' C^-1 b / q of the unit's estimates b and their covariance C: t^2 of one column, F of several. By
 * Cholesky of the correlations. */
static double statistic(const struct sums_layout *layout, const struct judged *judged,
                        const struct unit *unit) {
    size_t width = layout->width;
    double lower[SUMS_COLUMNS_MAX][SUMS_COLUMNS_MAX], scaled[SUMS_COLUMNS_MAX], sum = 0;
    for (size_t i = 0; i < unit->count; i++) {
        size_t a = unit->columns[i];
        double error = sqrt(judged->covariance[a * width + a]);
        scaled[i] = judged->estimates[a] / error;
        for (size_t j = 0; j <= i; j++) {
            size_t b = unit->columns[j];
            double value =
                judged->covariance[a * width + b] / error / sqrt(judged->covariance[b * width + b]);
            for (size_t k = 0; k < j; k++)
                value -= lower[i][k] * lower[j][k];
            lower[i][j] = i == j ? sqrt(value) : value / lower[j][j];
        }
        for (size_t k = 0; k < i; k++)
            scaled[i] -= lower[i][k] * scaled[k];
        scaled[i] /= lower[i][i];
        sum += scaled[i] * scaled[i];
    }
    return sum / (double)unit->count;
}

/* The larger, the sooner the unit is dropped. */
static double badness(const struct selection *selection, const struct judged *judged, double f, double q) {
    if (selection->rule == SELECT_BIC) {
        double n = (double)judged->rows;
        return q * log(n) - n * log1p(q * f / judged->degrees);
    }
    return q == 1 ? 2 * gsl_cdf_tdist_Q(sqrt(f), judged->degrees) : gsl_cdf_fdist_Q(f, q, judged->degrees);
}

/* The unit that should go first, into WORST, and how bad it is. False when there is none. */
static bool find_worst(const struct selection *selection, const struct judged *judged, const bool *kept,
                       struct unit *worst, double *ret) {
    const struct sums_layout *layout = selection->layout;
    bool found = false;
    size_t units = 0;
    double least = INFINITY; /* statistic of one column: the least is the worst of all such */
    for (size_t term = 0; term < layout->expansion->formula->term_count; term++) {
        struct unit unit;
        if (!list_unit(layout, kept, term, &unit))
            continue;
        units++;
        if (is_needed(layout, kept, term))
            continue;
        double f = statistic(layout, judged, &unit);
        if (!isfinite(f) || (unit.count == 1 && f >= least))
            continue;
        if (unit.count == 1)
            least = f;
        double bad = badness(selection, judged, f, (double)unit.count);
        if (found && bad <= *ret)
            continue;
        found = true;
        *worst = unit;
        *ret = bad;
    }
    return found && (units > 1 || layout->intercept);
}

int selection_run(const struct selection *selection, selection_refit refit, void *context, bool *kept,
                  struct judged *judged, struct selection_path *path) {
    for (;;) {
        struct unit worst;
        double bad = 0;
        int r = refit(context, kept, judged);
        if (r <= 0 || judged->blank || selection->rule == SELECT_NONE ||
            !find_worst(selection, judged, kept, &worst, &bad))
            return r;
        bool dropped = bad > (selection->rule == SELECT_BIC ? 0 : selection->threshold);
        if (path && path->count < SELECTION_STEPS_MAX)
            path->steps[path->count++] =
                (struct selection_step){.round = path->round,
                                        .rows = judged->rows,
                                        .degrees = judged->degrees,
                                        .rss = judged->rss,
                                        .worst = worst.term,
                                        .p = selection->rule == SELECT_BIC ? -bad : bad,
                                        .dropped = dropped};
        if (!dropped)
            return r;
        for (size_t i = 0; i < worst.count; i++)
            kept[worst.columns[i]] = false;
    }
}
