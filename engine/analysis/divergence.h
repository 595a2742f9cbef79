/*
 * Where a run of HPL and its replay part: of the setting with the greatest error that both have tables of,
 * the times of panels, of phases and of processes side by side, and in words where they differ most. Of the
 * run these are the tables of the experiment hpl, `panels` and `phases` (panel_times: yes) and `calls`
 * (trace: yes); of the prediction `panels` and `ranks` of hpl-replay (--plot).
 *
 *     panels   elapsed time when HPL begins a panel; HPL says it as a rate R at column j, the time of which
 * is 2/3 (N^3 - (N - j)^3) / R phases   of the process that spends most in it, as HPL prints it; the replay
 * has the messages in them: of the search for pivots (mxswp), of row swaps (laswp) and of the back
 * substitution (up tr sv) nodes    what processes compute and how long they wait in MPI, as means over those
 * of each node
 */
#ifndef ASSAY_ANALYSIS_DIVERGENCE_H
#define ASSAY_ANALYSIS_DIVERGENCE_H

#include "engine/analysis/prediction-error.h"

/* PREDICTION is the archive that ERROR is of, RUNS those of MEASUREMENTS. Adds a section `divergence`: its
 * tables, a chart of both curves of panels, and sentences. Where the two have no table in common it adds
 * nothing, or a note with what the other would need. FAILURE_INPUT: a table cannot be read. */
int divergence_report(const char *prediction, const char *const *runs, size_t run_count,
                      const struct measurements *measurements, const struct prediction_error *error,
                      struct report_section *in, struct failure *failure);

#endif
