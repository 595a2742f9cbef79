/*
 * Robust weights of one group: iterated weighted least squares in double precision, in coordinates that make
 * that exact enough, on columns that stay near the processor.
 *
 * The columns are those of the plain fit made orthonormal (least_squares_coordinates), each row times the
 * root of its weight, and the response is the plain fit's residuals. So the normal equations of every
 * iteration are near the unit matrix, a step in the coordinates is as long as the change of the residuals,
 * and the only rounding is that of residuals in double precision. Steps go by Anderson's acceleration (D.
 * Anderson, J. ACM 12 (1965), 547; H. Walker, P. Ni, SIAM J. Numer. Anal. 49 (2011), 1715) where they are
 * small. What comes of it are weights; the estimates are made from them by whoever asked, in double-double.
 */
#ifndef ASSAY_FIT_LINEAR_REWEIGHTING_H
#define ASSAY_FIT_LINEAR_REWEIGHTING_H

#include "plugins/fit-linear/linear.h"

enum {
    REWEIGHTING_ITERATIONS_MAX = 200,
    REWEIGHTING_COLUMNS_MAX = EXPANSION_TERMS_MAX,
    REWEIGHTING_MEMORY = 5, /* steps that the acceleration looks at */
};

struct reweighting {
    size_t rows, padded, width;
    double *memory;     /* what the next point into */
    double *columns;    /* width times padded */
    double *start;      /* residuals of the plain fit */
    double *residuals;  /* at the point in hand */
    double *factors;    /* psi(u)/u of each of them */
    double *magnitudes; /* room for a median */
    size_t capacity;
    double *gram; /* width squared, and as much for its factor */
};

struct reweighting_outcome {
    double scale; /* median of the residuals' magnitudes / 0.6745; 0: more than half of them are 0 */
    uint32_t iterations;
    bool settled;
};

/* The tuning is that which is 95 % efficient where errors are normal. */
double robust_weight(enum robust robust, double u); /* psi(u) / u */
double robust_slope(enum robust robust, double u);  /* psi'(u) */

/* Makes room. 0 or -ENOMEM. All zeros is an empty one; to be cleared after failures too. */
int reweighting_begin(struct reweighting *reweighting, size_t rows, size_t width);
void reweighting_clear(struct reweighting *reweighting);
/* Row I: its WIDTH coordinates and what the plain fit leaves of it, all times ROOT. */
void reweighting_set_row(struct reweighting *reweighting, size_t i, const double *coordinates,
                         double residual, double root);

/* Until residuals change by less than 1e-12 of their own length and FLOOR, which is what rounding makes of
 * them. The factors are then those of the last residuals. Where factors leave no fit it ends early, not
 * settled. */
struct reweighting_outcome reweighting_run(struct reweighting *reweighting, enum robust robust, double floor);

#endif
