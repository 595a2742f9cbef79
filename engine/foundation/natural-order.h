/* The order in which people expect labels: numbers by value, and digits inside names by value too (dahu-2
 * before dahu-10). Texts that it holds for equal (1 and 1.0) are ordered by their bytes. */
#ifndef ASSAY_FOUNDATION_NATURAL_ORDER_H
#define ASSAY_FOUNDATION_NATURAL_ORDER_H

#include <stddef.h>
#include <stdint.h>

int natural_order_compare(const char *a, const char *b);
/* The place of each of the COUNT texts in that order, in *RET, which the caller frees. 0 or -ENOMEM. */
int natural_order_ranks(const char *const *texts, size_t count, uint32_t **ret);

#endif
