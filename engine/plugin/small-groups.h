/*
 * Groups of so few rows that some model cannot be fitted to them without one fold: "one machine answered
 * once". Where they are a minority, their rows are left out for all models that are compared, lest they
 * decide which of them can be judged. A minority are, of the groups by each first part of `by`, at most half,
 * and of all rows at most a tenth, together.
 */
#ifndef ASSAY_PLUGIN_SMALL_GROUPS_H
#define ASSAY_PLUGIN_SMALL_GROUPS_H

#include "engine/plugin/fitting.h"

enum { SMALL_GROUPS_NAMED_MAX = 4 };

struct small_groups {
    uint32_t count; /* that were left out */
    uint64_t rows;  /* in them */
    char *names;    /* owned; "node x; node y, core 1" and how many more; NULL: none */
};

/* Sets the FOLDS of their rows to FOLDS_NONE. TERMS: how many the models have, TERM_COUNT of them, from
 * few to many; a group needs one row more than terms outside of each of the FOLD_COUNT folds. Where those too
 * small for the largest model are no minority, those too small for the next are looked at. */
int small_groups_leave_out(const struct fitting *fitting, uint32_t fold_count, const size_t *terms,
                           size_t term_count, uint8_t *folds, struct small_groups *ret,
                           struct failure *failure);
void small_groups_clear(struct small_groups *groups); /* fine on zeroed memory */

#endif
