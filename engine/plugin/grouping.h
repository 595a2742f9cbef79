/*
 * Which group a row is in: the combination of its labels, numbered 0, 1, 2 ... in order of first appearance.
 * Without label columns all rows are group 0.
 */
#ifndef ASSAY_PLUGIN_GROUPING_H
#define ASSAY_PLUGIN_GROUPING_H

#include "engine/foundation/failure.h"

#include <stddef.h>
#include <stdint.h>

enum { GROUPING_MAX = 1 << 26 }; /* groups */

struct grouping;

int grouping_new(size_t label_count, struct grouping **ret, struct failure *failure);
void grouping_free(struct grouping *grouping);
void grouping_cleanup(struct grouping **grouping); /* for cleanup() */

/* The groups of ROWS rows in *RET, which stays the grouping's until the next call. LABELS: an array of codes
 * for each label column. */
int grouping_assign(struct grouping *grouping, size_t rows, const uint32_t *const *labels,
                    const uint32_t **ret, struct failure *failure);
uint32_t grouping_count(const struct grouping *grouping);
/* The code of label column J in GROUP. */
uint32_t grouping_label(const struct grouping *grouping, uint32_t group, size_t j);

#endif
