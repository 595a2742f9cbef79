#include "engine/numerics/ranks.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/numerics/distribution.h"

#include <math.h>
#include <stdlib.h>

struct ranked {
    double value;
    size_t row;
};

static int compare_ranked(const void *left, const void *right) {
    const struct ranked *a = left, *b = right;
    if (a->value != b->value)
        return a->value < b->value ? -1 : 1;
    return a->row < b->row ? -1 : a->row > b->row;
}

static double plain_score(double rank, double count) {
    (void)count;
    return rank;
}

static double normal_score(double rank, double count) {
    double upper = 1 - rank / (count + 1);
    double z = distribution_student_quantile(2 * fmin(upper, 1 - upper), 0);
    return upper <= 0.5 ? z : -z;
}

/* Gives each value the score of its rank; equal values get the mean of their scores. */
static void score_all(const double *values, size_t count, double (*score)(double rank, double count),
                      double *ret) {
    cleanup_free struct ranked *sorted = xcalloc(count + 1, sizeof *sorted);
    for (size_t i = 0; i < count; i++)
        sorted[i] = (struct ranked){values[i], i};
    qsort(sorted, count, sizeof *sorted, compare_ranked);
    for (size_t i = 0, end; i < count; i = end) {
        double sum = 0;
        for (end = i; end < count && sorted[end].value == sorted[i].value; end++)
            sum += score((double)(end + 1), (double)count);
        for (size_t k = i; k < end; k++)
            ret[sorted[k].row] = sum / (double)(end - i);
    }
}

void ranks(const double *values, size_t count, double *ret) {
    score_all(values, count, plain_score, ret);
}

void ranks_normal_scores(const double *values, size_t count, double *ret) {
    score_all(values, count, normal_score, ret);
}

/* Spearman's rank correlation. */
double ranks_correlation(const double *left, const double *right, size_t count) {
    cleanup_free double *a = xcalloc(2 * count + 1, sizeof *a);
    double *b = a + count, mean = (double)(count + 1) / 2, products = 0, of_a = 0, of_b = 0;
    ranks(left, count, a);
    ranks(right, count, b);
    for (size_t i = 0; i < count; i++) {
        products += (a[i] - mean) * (b[i] - mean);
        of_a += (a[i] - mean) * (a[i] - mean);
        of_b += (b[i] - mean) * (b[i] - mean);
    }
    return products / sqrt(of_a * of_b);
}
