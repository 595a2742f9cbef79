/*
 * The page of a run, or of several runs of one experiment: `assay report RUN... -o FILE.html`. What a run
 * was, whether it can be trusted, its answer, what the response depends on, its design and order, its nodes,
 * and what their sensors saw.
 */
#ifndef ASSAY_ANALYSIS_RUN_PAGE_H
#define ASSAY_ANALYSIS_RUN_PAGE_H

#include "engine/analysis/ranking.h"
#include "engine/report/report.h"

/* Adds all of it to IN; opens the inputs of MEASUREMENTS again, for their samples. */
int run_page_report(struct report_section *in, const struct measurements *measurements,
                    const struct ranking *ranking, struct failure *failure);
/* The title of the page; the caller frees. */
char *run_page_title(const struct measurements *measurements);

#endif
