#include "engine/numerics/distribution.h"

#include "engine/numerics/gsl.h"

#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdbool.h>

static const double log_root_2pi = 0.91893853320467274178;
static const double k = 0.79788456080286535588;             /* sqrt(2 / pi) */
static const double root_variance = 0.60281027498908697428; /* sqrt(1 - 2 / pi) */

/* From 0 to what GSL can tell from infinity; NaN stays. */
static double positive(double x) {
    return isnan(x) ? x : fmin(fmax(x, 0), 1e300);
}

double distribution_normal_upper(double z) {
    return gsl_cdf_ugaussian_Q(z);
}

double distribution_student_two_sided(double t, double freedom) {
    return freedom > 0 ? 2 * gsl_cdf_tdist_Q(positive(fabs(t)), freedom) : NAN;
}

double distribution_student_two_sided_quantile(double probability, double freedom) {
    bool is_possible = freedom > 0 && probability > 0 && probability <= 1;
    return is_possible ? gsl_cdf_tdist_Qinv(probability / 2, freedom) : NAN;
}

double distribution_student_quantile(double two_sided, double freedom) {
    return freedom == 0 && two_sided > 0 && two_sided <= 1
               ? gsl_cdf_ugaussian_Qinv(two_sided / 2)
               : distribution_student_two_sided_quantile(two_sided, freedom);
}

double distribution_student_lower(double t, double freedom) {
    if (!(freedom >= 0) || isnan(t))
        return NAN;
    double limited = fmin(fmax(t, -1e300), 1e300);
    return freedom > 0 ? gsl_cdf_tdist_P(limited, freedom) : gsl_cdf_ugaussian_P(limited);
}

double distribution_f_upper(double f, double above, double below) {
    return above > 0 && below > 0 ? gsl_cdf_fdist_Q(positive(f), above, below) : NAN;
}

double distribution_chi_squared_upper(double x, double freedom) {
    return freedom > 0 ? gsl_cdf_chisq_Q(positive(x), freedom) : NAN;
}

double distribution_chi_squared_quantile(double upper, double freedom) {
    return freedom > 0 && upper > 0 && upper < 1 ? gsl_cdf_chisq_Qinv(upper, freedom) : NAN;
}

double distribution_normal_log_density(double x, double mean, double sigma) {
    double z = (x - mean) / sigma;
    return sigma > 0 ? -log_root_2pi - log(sigma) - z * z / 2 : NAN;
}

double distribution_half_normal_log_density(double x, double mean, double sigma) {
    double s = sigma / root_variance, z = (x - mean) / s + k;
    if (z < 0 && sigma > 0)
        return -INFINITY;
    return distribution_normal_log_density(z, 0, 1) + log(2 / s);
}

double distribution_half_normal_factor(double count, double sum, double squares, double least) {
    double a = (sqrt(k * k * sum * sum + 4 * count * squares) - k * sum) / (2 * squares);
    if (least < 0)
        a = fmin(a, -k / least);
    return root_variance / a;
}
