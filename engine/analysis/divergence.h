/*
 * Where a run of HPL and its replay part, for the setting with the greatest error: times of panels, phases,
 * kernels and processes side by side, and in words where they differ most.
 *
 *     section     run (experiment hpl)           prediction (hpl-replay --plot)
 *     panels      `panels` (panel_times: yes)    `panels`: elapsed time when HPL begins a panel. HPL prints a
 * rate R at column j, whose time is 2/3 (N^3 - (N - j)^3) / R phases      `phases` (panel_times: yes)
 * `ranks`: of the process that spends most in a phase. The replay has the messages of the search for pivots
 * (mxswp), of row swaps and their copies (laswp), and of the solution (up tr sv) kernels     `calls` (trace:
 * yes)           `parts`: mean of the processes nodes,      `calls` (trace: yes)           `ranks`: what
 * processes compute in BLAS, and how long they are in processes                                  calls of
 * MPI; of a node the mean of its processes
 */
#ifndef ASSAY_ANALYSIS_DIVERGENCE_H
#define ASSAY_ANALYSIS_DIVERGENCE_H

#include "engine/analysis/prediction-error.h"

/* PREDICTION is the archive that ERROR is of, RUNS those of MEASUREMENTS. Adds a section `divergence`:
 * tables, charts and sentences; IS_EXPLAINED: also sentences on where the difference comes from and what to
 * measure. Where the two have no table in common it adds nothing, or a note on the tables that are missing.
 * FAILURE_INPUT: a table cannot be read. */
int divergence_report(const char *prediction, const char *const *runs, size_t run_count,
                      const struct measurements *measurements, const struct prediction_error *error,
                      bool is_explained, struct report_section *in, struct failure *failure);

#endif
