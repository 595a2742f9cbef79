/* What a normal estimate says of itself, by its variance: standard error, t and p of Student's test of 0. */
#ifndef ASSAY_NUMERICS_STUDENT_H
#define ASSAY_NUMERICS_STUDENT_H

struct student {
    double standard_error;
    double t, p; /* p two-sided; both NaN where the standard error is not above 0 */
};

struct student student_test(double estimate, double variance, double degrees_of_freedom);

#endif
