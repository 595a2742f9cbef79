#include "plugins/numerics/student.h"

#include <gsl/gsl_cdf.h>
#include <math.h>

struct student student_test(double estimate, double variance, double degrees_of_freedom) {
    struct student ret = {sqrt(variance), NAN, NAN};
    if (ret.standard_error > 0) {
        ret.t = estimate / ret.standard_error;
        ret.p = 2 * gsl_cdf_tdist_Q(fabs(ret.t), degrees_of_freedom);
    }
    return ret;
}
