/*
 * Has a machine changed? Each series of a history is tested, and those that changed are listed with the size
 * of the change, the run since which it is there, and what changed on the node at that run.
 *
 *     HISTORY_SHIFT       one shift of the level, at any run (shift.h): few false alarms, also with outliers
 *     HISTORY_CHEW        the last run against all before it (non-regression.h)
 *     HISTORY_E_DIVISIVE  any number of changes; the last one is reported (change-points.h)
 *
 * Rows before the last change of the log are not used by SHIFT and E_DIVISIVE, and its outliers are left out.
 * A series has changed where p < p_most and p, adjusted for all series that were tested (S. Holm,
 * Scandinavian Journal of Statistics 6, 1979), is below 0.05.
 */
#ifndef ASSAY_HISTORY_CHECK_H
#define ASSAY_HISTORY_CHECK_H

#include "engine/history/store.h"

enum history_method { HISTORY_SHIFT, HISTORY_CHEW, HISTORY_E_DIVISIVE };

struct history_rule {
    enum history_method method;
    double p_most;    /* of one series: 0.0005 */
    bool with_charts; /* of each series (plots.h), in a section for each node */
};

struct history_result {
    size_t series, changed, untested; /* untested: too few runs */
};

/* The series to test: those of STORE, or, if it is NULL, of CSV files (series-csv.h). */
struct history_source {
    struct history_store *store;
    const char *const *paths;
    size_t path_count;
};

/* Adds the verdict and a table of what changed to IN. */
int history_check(const struct history_source *source, const struct history_filter *filter,
                  const struct history_rule *rule, struct report_section *in, struct history_result *ret,
                  struct failure *failure);

#endif
