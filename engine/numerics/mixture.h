/*
 * Mixtures of normals in p dimensions, p(x) = sum_k weight_k N(x; mean_k, covariance_k), by expectation and
 * maximisation (A. Dempster, N. Laird, D. Rubin, J. R. Stat. Soc. B 39 (1977), 1), with longer steps where
 * these gain (R. Salakhutdinov, S. Roweis, ICML 2003: adaptive overrelaxation).
 *
 * The likelihood has many maxima. The search begins at quantiles and at centres drawn by k-means++ (D.
 * Arthur, S. Vassilvitskii, SODA 2007), and goes on from the best by taking a component away and putting one
 * elsewhere (Q. Zhao et al., IEEE TNNLS 23 (2012), 1190: random swap; at times two at once), from 10 starts
 * on half of it in five chains. A climb that would not reach the best known ends early. Much of that is done
 * on at most 1,024 points which stand for neighbours. The same values, request and seed give the same
 * mixture.
 *
 * Where values are rounded, a component is at least half a step wide: its density times the step is then a
 * probability, and rounding alone makes no component likely. In one dimension the step is that of the values
 * near the mean, in several it is the least difference in each. Values are scaled to mean 0 and covariance 1
 * first, so units do not matter.
 */
#ifndef ASSAY_NUMERICS_MIXTURE_H
#define ASSAY_NUMERICS_MIXTURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { MIXTURE_COMPONENTS_MAX = 16, MIXTURE_DIMENSIONS_MAX = 16 };

struct mixture_request {
    size_t components;
    bool shared;  /* one covariance for all components */
    double floor; /* least deviation of a component in any direction, relative to that of all rows; above 0 */
    double least; /* least sum of the weights of a component */
    /* That are drawn. 20 times as many swaps follow, and more where there are few different values, until 40
     * a start (of a chain: 8) in a row have found nothing better. */
    size_t starts;
    uint64_t seed;
};

/* Components in the order of their means in the first dimension. */
struct mixture {
    size_t components, dimensions;
    double *weight;     /* k; their sum is 1 */
    double *mean;       /* p x k: a column each */
    double *covariance; /* p x p x k */
    double *factor;     /* their Cholesky factors */
    double log_likelihood;
    size_t floored; /* components at the floor, or half a step wide, in some direction */
};

/* X is ROWS x DIMENSIONS, value (i, j) is x[i + j * STRIDE]; a weight counts like as many equal rows, NULL:
 * all are 1. -ENOMEM; -EINVAL; -EDOM where the rows' covariance is singular, or no mixture has the least
 * weights. The caller clears RET, also after an error. */
int mixture_fit(size_t rows, size_t dimensions, const double *x, size_t stride, const double *weights,
                const struct mixture_request *request, struct mixture *ret);
void mixture_clear(struct mixture *mixture);

/* log p(x) of one row; the probabilities of the components, given x, go to POSTERIOR unless that is NULL. */
double mixture_log_density(const struct mixture *mixture, const double *x, double *posterior);

#endif
