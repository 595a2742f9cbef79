/* Adjusts the probabilities of several tests for their number, so that all of them together err as seldom as
 * one would (S. Holm, Scandinavian Journal of Statistics 6, 1979). */
#ifndef ASSAY_NUMERICS_HOLM_H
#define ASSAY_NUMERICS_HOLM_H

#include <stddef.h>

/* Replaces the COUNT probabilities P; NaN stands for a test that was not made. */
void holm_adjust(double *p, size_t count);

#endif
