#include "plugins/fit-linear/shifted.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

int solution_init(struct solution *solution, size_t width) {
    *solution = (struct solution){.width = width};
    solution->inverse = calloc(width * width, sizeof *solution->inverse);
    solution->lower = calloc(width * width, sizeof *solution->lower);
    if (solution->inverse && solution->lower)
        return 0;
    solution_clear(solution);
    return -ENOMEM;
}

void solution_clear(struct solution *solution) {
    free(solution->inverse);
    free(solution->lower);
    solution->inverse = solution->lower = NULL;
}

/* Sum of w (za - oa) (zb - ob), in double-double until it is done. */
static double about_origin(const struct shift *shift, const struct sums *sums, size_t a, size_t b) {
    struct dd sum = sums_at(sums, a, b);
    struct dd x = dd_from(shift->origin[a]), y = dd_from(shift->origin[b]);
    if (shift->origin[b] != 0)
        sum = dd_subtract(sum, dd_multiply(sums_at(sums, 0, a), y));
    if (shift->origin[a] != 0) {
        struct dd rest = sums_at(sums, 0, b);
        if (shift->origin[b] != 0)
            rest = dd_subtract(rest, dd_multiply(sums_at(sums, 0, 0), y));
        sum = dd_subtract(sum, dd_multiply(x, rest));
    }
    return dd_to_double(sum);
}

void shift_init(struct shift *shift, const struct sums *all) {
    size_t width = all->layout->width;
    double weight = sums_at(all, 0, 0).high;
    shift->usable = weight > 0;
    shift->origin[0] = 0;
    shift->scale[0] = 1 / sqrt(weight);
    for (size_t a = 1; a < width; a++) {
        shift->origin[a] = all->layout->intercept ? sums_at(all, 0, a).high / weight : 0;
        double square = about_origin(shift, all, a, a);
        shift->scale[a] = 1 / sqrt(square);
        shift->usable = shift->usable && square > 0x1p-90 * sums_at(all, a, a).high && isfinite(square);
    }
}

void shift_sums(const struct shift *shift, const struct sums *sums, double *ret) {
    size_t width = sums->layout->width;
    for (size_t a = 0; a < width; a++)
        for (size_t b = a; b < width; b++)
            ret[a * width + b] = ret[b * width + a] =
                about_origin(shift, sums, a, b) * shift->scale[a] * shift->scale[b];
}

/* Cholesky of the COUNT columns LISTED of SUMS, the response last, of which the pivot alone is had. */
static bool factorise(const double *sums, size_t width, const size_t *listed, size_t count, double *lower) {
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j <= i; j++) {
            double own = sums[listed[i] * width + listed[j]], sum = own;
            for (size_t k = 0; k < j; k++)
                sum -= lower[i * width + k] * lower[j * width + k];
            if (i != j) {
                lower[i * width + j] = sum / lower[j * width + j];
                continue;
            }
            if (!(sum > SHIFTED_PIVOT * own))
                return false;
            lower[i * width + i] = sqrt(sum);
        }
    return true;
}

/* inverse = (L L')^-1, by the inverse of L. */
static void invert(const size_t *listed, size_t count, struct solution *solution) {
    size_t width = solution->width;
    double *lower = solution->lower, *inverse = solution->inverse;
    for (size_t j = 0; j < count; j++) {
        lower[j * width + j] = 1 / lower[j * width + j];
        for (size_t i = j + 1; i < count; i++) {
            double sum = 0;
            for (size_t k = j; k < i; k++)
                sum -= lower[i * width + k] * lower[k * width + j];
            lower[i * width + j] = sum / lower[i * width + i];
        }
    }
    for (size_t i = 0; i < count; i++)
        for (size_t j = i; j < count; j++) {
            double sum = 0;
            for (size_t k = j; k < count; k++)
                sum += lower[k * width + i] * lower[k * width + j];
            inverse[listed[i] * width + listed[j]] = inverse[listed[j] * width + listed[i]] = sum;
        }
}

bool shifted_solve(const struct sums_layout *layout, const double *sums, const bool *kept, bool inverted,
                   struct solution *ret) {
    size_t width = layout->width, listed[SUMS_COLUMNS_MAX], count = 0;
    for (size_t a = 0; a < width; a++) {
        ret->estimates[a] = 0;
        ret->kept[a] = a == 0 ? layout->intercept : a + 1 == width || !kept || kept[a];
        if (ret->kept[a])
            listed[count++] = a;
    }
    if (!factorise(sums, width, listed, count, ret->lower))
        return false;
    const double *response = ret->lower + --count * width;
    ret->rss = response[count] * response[count];
    for (size_t i = count; i-- > 0;) {
        double sum = response[i];
        for (size_t k = i + 1; k < count; k++)
            sum -= ret->lower[k * width + i] * ret->estimates[listed[k]];
        ret->estimates[listed[i]] = sum / ret->lower[i * width + i];
    }
    if (inverted)
        invert(listed, count, ret);
    return true;
}

double shifted_error(const struct solution *solution, const double *sums) {
    size_t width = solution->width, y = width - 1;
    double error = sums[y * width + y], largest = error;
    for (size_t a = 0; a < y; a++) {
        if (!solution->kept[a])
            continue;
        double gradient = -2 * sums[a * width + y];
        for (size_t b = 0; b < y; b++)
            if (solution->kept[b])
                gradient += sums[a * width + b] * solution->estimates[b];
        error += solution->estimates[a] * gradient;
        largest = fmax(largest, fabs(solution->estimates[a] * gradient));
    }
    return error > SHIFTED_PIVOT * largest ? error : -1;
}
