/*
 * Where the rows of a table lie together, in a struct model_hull: the least and the greatest sum of direction
 * x scale x value, in fixed directions. Of 2 or 3 columns in all directions of entries -1, 0 and 1; of up to
 * 6 in those of one or two columns. Scales are powers of two, found in the first rows: any scale gives a true
 * bound, one that makes columns alike a tight one.
 *
 *     model_hull_new(names) ; model_hull_add(rows) ... ; model_hull_is_known
 */
#ifndef ASSAY_MODEL_HULL_H
#define ASSAY_MODEL_HULL_H

#include <assay/model.h>

enum { HULL_COLUMNS_MAX = 6 };

/* NULL with fewer than two columns, of which the ranges say as much, or more than six. model_hull_free() (see
 * model.h) frees it. */
struct model_hull *model_hull_new(const char *const *names, size_t count);
/* COLUMNS: an array of ROWS values each. Rows where one is not finite do not count. */
void model_hull_add(struct model_hull *hull, size_t rows, const double *const *columns);
/* Whether a row was counted: otherwise it says nothing. */
bool model_hull_is_known(const struct model_hull *hull);

#endif
