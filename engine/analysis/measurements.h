/*
 * What was measured for each setting of a run, or of several runs of one experiment. A setting is one
 * combination of the levels of the factors. All analyses of measurements begin here.
 *
 *     measurements_read(paths) -> settings, rows, the response ;  ranking_make() ;  answer_report()
 *
 * The response is what the experiment declares as its answer (run.json, "answer"). Rows that a gate flagged
 * are left out of all figures, unless every row was flagged: then all are used, and `all_flagged` says so.
 * Rows without a finite value are left out, too. Units that failed, or were not measured, are counted by
 * results/missing.csv, which a run has once it is sealed.
 */
#ifndef ASSAY_ANALYSIS_MEASUREMENTS_H
#define ASSAY_ANALYSIS_MEASUREMENTS_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text-set.h"
#include "engine/table/groups.h"
#include "engine/table/table.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct setting {
    const char **levels;  /* one a factor, as results.csv has them; the texts are borrowed */
    const uint32_t *rows; /* of the table; borrowed */
    size_t row_count;
    uint64_t flagged; /* of these rows */
    uint64_t failed,
        missing; /* units without a row: that failed; that were not measured for another reason */
};

struct measurements {
    struct table *table;
    struct groups groups;
    struct text_set further_levels; /* of settings that have no row */
    const char **factors, **units;  /* names and UCUM units (or NULL), borrowed */
    bool *varies;                   /* of each factor: not all settings have the same level */
    size_t factor_count;
    struct setting *settings;
    size_t setting_count;

    const char *response, *unit, *lines; /* as in struct table_answer; borrowed */
    bool most;                           /* more is better */
    bool is_assumed;                     /* nobody said so */

    /* Of each row; nodes and cores as codes. */
    size_t row_count;
    const double *values;
    const uint32_t *nodes, *cores;
    bool *left_out;

    uint64_t flagged, failed, missing;
    bool all_flagged;
    char *flags; /* the gates that flagged rows: "load, frequency"; "" where none did */
};

/* Reads the archives or folders of runs at PATHS. RESPONSE, a response or an expression, of which MOST says
 * whether more is better, replaces what the experiment declares, unless it is NULL. FAILURE_INPUT: an input
 * that is no run; runs of several experiments; an experiment that does not declare its answer and has several
 * responses. */
int measurements_read(const char *const *paths, size_t count, const char *response, bool most,
                      struct measurements *ret, struct failure *failure);
/* The category NAME of a table that was loaded, or NULL. */
const struct table_category *measurements_category(const struct table *table, const char *name);
void measurements_clear(struct measurements *measurements);

#endif
