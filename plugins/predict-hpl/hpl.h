/*
 * How long HPL takes, analytically: the scalability model of HPL's authors
 * (netlib.org/benchmark/hpl/scalability.html: right-looking LU with partial pivoting on a P x Q grid,
 * block-cyclic, increasing-ring broadcast (modified), no look-ahead), with the dgemm of the update taken from
 * a fitted polynomial. Formulas: README.md. Units: seconds, bytes, flop.
 */
#ifndef ASSAY_PREDICT_HPL_HPL_H
#define ASSAY_PREDICT_HPL_HPL_H

#include <stddef.h>

/* A product of powers of the sizes of dgemm: C(m x n) += A(m x k) B(k x n). */
struct hpl_term {
    int m, n, k;
};

struct hpl_dgemm {
    const struct hpl_term *terms;
    size_t term_count;
    const double *coefficients; /* seconds per unit of each term */
    double gamma;               /* seconds per flop of matrix-matrix work: half the coefficient of m*n*k */
};

struct hpl_scenario {
    double n, nb, p, q; /* order, block size, grid */
    double latency;     /* alpha, s */
    double word;        /* beta, s per 8-byte word */
};

struct hpl_time {
    double factorisation, broadcast, update, swap; /* s, summed over the panels */
    double closed;                                 /* s: the closed form, with gamma alone */
    size_t panels, replaced; /* how many panels there are; for how many the polynomial was not positive */
    double hidden;           /* s, positive: what those below would have taken off */
    size_t clamped;          /* for how many the work of the factorisation was negative and is taken as 0 */
};

/* Called for the dgemm of every panel's update, with what it takes. */
typedef void (*hpl_visit)(void *context, double m, double n, double k, double seconds);

/* VISIT may be NULL. */
struct hpl_time hpl_predict(const struct hpl_scenario *scenario, const struct hpl_dgemm *dgemm,
                            hpl_visit visit, void *context);
/* SUMS[t]: term t summed over the updates, so that the polynomial's time for any coefficients is their
 * product. */
void hpl_sum_terms(const struct hpl_scenario *scenario, const struct hpl_term *terms, size_t count,
                   double *sums);
double hpl_evaluate(const struct hpl_term *terms, const double *coefficients, size_t count, double m,
                    double n, double k);
/* What HPL counts when it prints Gflop/s: 2/3 N^3 + 3/2 N^2. */
double hpl_flops(double n);

#endif
