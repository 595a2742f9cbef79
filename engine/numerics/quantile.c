#include "engine/numerics/quantile.h"

#include <gsl/gsl_sort.h>
#include <gsl/gsl_statistics_double.h>
#include <math.h>

void quantile_sort(double *values, size_t count) {
    gsl_sort(values, 1, count);
}

double quantile(const double *sorted, size_t count, double share) {
    return count == 0 ? NAN : gsl_stats_quantile_from_sorted_data(sorted, 1, count, share);
}

double quantile_median(double *values, size_t count) {
    return count == 0 ? NAN : gsl_stats_median(values, 1, count);
}
