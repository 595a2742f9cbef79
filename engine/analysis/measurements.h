/*
 * What was measured for each setting of a run, or of several runs of one experiment. A setting is one
 * combination of the levels of the factors.
 *
 *     measurements_read(paths) -> settings, rows, the response ;  ranking_make() ;  answer_report()
 *
 * The response is what the experiment declares as its answer (run.json, "answer"). Rows that a gate flagged
 * are left out of all figures, unless every row was flagged: then all are used, and `all_flagged` says so.
 * Rows without a finite value are left out, too.
 */
#ifndef ASSAY_ANALYSIS_MEASUREMENTS_H
#define ASSAY_ANALYSIS_MEASUREMENTS_H

#include "engine/foundation/failure.h"
#include "engine/table/groups.h"
#include "engine/table/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct measured_factor {
    const struct column *column; /* of the table */
    bool varies;                 /* not all settings have the same level */
};

struct measurements {
    struct table *table;
    /* First the sizes of the problem: the factors that the experiment's model has as `sizes`. They say how
     * much work a unit is, so that settings of different sizes are not alternatives. */
    struct measured_factor *factors;
    size_t factor_count, size_count;
    struct groups settings; /* by the factors, in natural order of their levels; count 0: no rows */

    const char *response, *unit, *lines; /* as in struct archive_answer; borrowed */
    bool most;                           /* more is better */
    bool is_assumed;                     /* neither the experiment nor the caller said so */

    /* An item for each row; nodes as codes. */
    size_t row_count;
    const double *values, *order, *attempt;
    const double *share;                           /* as in struct archive_answer; NULL: there is none */
    const double *block, *frequency, *temperature; /* the last two of state.*; NULL: no such column */
    const uint32_t *nodes;
    uint32_t *runs; /* numbers of the inputs */
    const struct table_category *cores;
    bool *left_out;

    size_t flagged;
    bool all_flagged;
    char *flags;              /* of the rows that are flagged: "load, load;frequency"; "" where none is */
    uint64_t failed, missing; /* units that have no row; 0 until the caller counts them */
};

/* Reads the archives or folders of runs at PATHS. RESPONSE, a response or an expression, of which MOST says
 * whether more is better, replaces what the experiment declares, unless it is NULL. FAILURE_INPUT: an input
 * that is no run; runs of several experiments; an experiment that does not declare its answer and has several
 * responses. */
int measurements_read(const char *const *paths, size_t count, const char *response, bool most,
                      struct measurements *ret, struct failure *failure);
/* Uses rows that a gate flagged as well. */
void measurements_use_flagged(struct measurements *measurements);
/* The level of factor F in SETTING, as results.csv has it; borrowed. */
const char *measurements_level(const struct measurements *measurements, size_t setting, size_t f);
void measurements_clear(struct measurements *measurements);

#endif
