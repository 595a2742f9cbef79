/* The least and the greatest of many numbers, in less time than fmin() and fmax() take. */
#ifndef ASSAY_NUMERICS_RANGE_H
#define ASSAY_NUMERICS_RANGE_H

#include <stddef.h>

/* Of those COUNT values that are no NaN; where there is none, *RET_LEAST is infinite and *RET_MOST minus
 * that. */
void range_find(const double *values, size_t count, double *ret_least, double *ret_most);

#endif
