/* Cutting outliers off measured durations, by quantiles. */
#ifndef ASSAY_FIT_SMPI_TRIM_H
#define ASSAY_FIT_SMPI_TRIM_H

#include <stddef.h>

/* One measured call of MPI. */
struct call {
    double size;     /* bytes */
    double duration; /* in the response's unit */
};

/*
 * Quantiles of type 7 (Hyndman and Fan, 1996; R's default) lie between two neighbours x <= x' of the sorted
 * values. Where these are equal, TRIM_EXACT says x; TRIM_OLD_R computes (1-h)x + hx as R did before 4.0,
 * which may be one bit off x, and then all durations that are x are beyond the quantile, or none.
 */
enum trim_rule { TRIM_EXACT, TRIM_OLD_R };

/* The P-quantile, 0 <= P <= 1, of COUNT > 0 values in ascending order. */
double trim_quantile(const double *sorted, size_t count, double p, enum trim_rule rule);

/* Both keep those of the COUNT calls whose duration is within the quantiles SHARE and 1 - SHARE of their
 * block, and return how many these are; they stand first then. SCRATCH has room for COUNT values.
 *
 * By rows: of every BLOCK consecutive calls (the last ones may be fewer); order is kept.
 * By size: of all calls of the same size; fewer than 3 are kept as they are. Sorts the calls. */
size_t trim_by_rows(struct call *calls, size_t count, size_t block, double share, enum trim_rule rule,
                    double *scratch);
size_t trim_by_size(struct call *calls, size_t count, double share, enum trim_rule rule, double *scratch);

/* How many blocks of BLOCK consecutive calls hold calls of different sizes. */
size_t trim_mixed_blocks(const struct call *calls, size_t count, size_t block);

/* The mean duration without the floor(SHARE count) shortest and as many longest: R's mean(x, trim = SHARE).
 * COUNT > 0, SHARE below 0.5. */
double trim_mean(const struct call *calls, size_t count, double share, double *scratch);
/* The standard deviation of the same; NaN where that is fewer than 2. */
double trim_deviation(const struct call *calls, size_t count, double share, double *scratch);

#endif
