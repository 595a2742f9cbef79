/*
 * Peaks of a machine from what kernels do and how long they take: flops F, bytes B, duration T; x = 1/Fpeak,
 * y = 1/Bpeak, a what is neither.
 *
 *     improved    T = F x + B y + a        sums of products, group by group; x, y, a >= 0
 *     classical   T = max(F x, B y)        the rows of a group by their intensity F/B
 *
 * Both give the least value there is of
 *
 *     ROOFLINE_RELATIVE  sum w ((T - m)/T)^2      ROOFLINE_TIME  sum w (T - m)^2
 *     ROOFLINE_LOG       sum w (log T - log m)^2  (classical)
 */
#ifndef ASSAY_FIT_ROOFLINE_ROOFLINE_H
#define ASSAY_FIT_ROOFLINE_ROOFLINE_H

#include "plugins/numerics/normal-equations.h"

#include <stdint.h>

enum { ROOFLINE_REASON_SIZE = 320, ROOFLINE_FLOPS = 0, ROOFLINE_BYTES = 1, ROOFLINE_OVERHEAD = 2 };

enum roofline_criterion { ROOFLINE_RELATIVE, ROOFLINE_TIME, ROOFLINE_LOG };

/* All in By, s and flop. Values that are not defined are NaN. */
struct roofline {
    double estimates[3]; /* x, y, a; 0 of what is not told */
    bool told[3];
    double covariance[9];
    bool has_covariance;
    uint64_t rows;
    double degrees, rss, sigma, r2, log_likelihood, aic, bic; /* rss in the criterion's own space */
    bool saturated, perfect;
    /* Of the classical form. */
    uint64_t memory_bound, compute_bound; /* rows */
    bool tied;                            /* the ridge is at a measured intensity */
    double bound[2];                      /* of a peak that is not told, what it is at least; NaN otherwise */
};

/* ---- Improved */

struct improved {
    uint64_t rows;
    struct normal_sums sums; /* of F, B and, if wanted, 1 */
    struct dd log_weights;   /* of the weights that the rows have in the sums */
};

void improved_add(struct improved *improved, enum roofline_criterion criterion, bool overhead, double flops,
                  double bytes, double duration, double w);
/* False when it cannot be fitted, and REASON says why; NAMES are the columns of flops and bytes. */
bool improved_fit(const struct improved *improved, bool overhead, const char *const names[static 2],
                  struct roofline *ret, char reason[static ROOFLINE_REASON_SIZE]);

/* ---- Classical */

struct classical_row {
    double flops, bytes, duration, w; /* not both of flops and bytes are 0 */
    uint32_t group;
};

/* By group, then by intensity. */
void classical_sort(struct classical_row *rows, size_t count);
/* The sorted rows of one group; as improved_fit. */
bool classical_fit(const struct classical_row *rows, size_t count, enum roofline_criterion criterion,
                   struct roofline *ret, char reason[static ROOFLINE_REASON_SIZE]);

#endif
