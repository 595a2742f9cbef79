/* What `assay fit` prints for people: every group where there are few, otherwise how they spread and which
 * are worst. */
#ifndef ASSAY_COMMAND_LINE_FIT_REPORT_H
#define ASSAY_COMMAND_LINE_FIT_REPORT_H

#include "engine/plugin/fitting.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

struct fit_report;

/* Prints to STREAM as it hears. STREAM NULL: only counts. */
int fit_report_new(const struct fitting *fitting, FILE *stream, struct fit_report **ret);
void fit_report_free(struct fit_report *report);
void fit_report_cleanup(struct fit_report **report); /* for cleanup() */
const struct fitting_listener *fit_report_listener(const struct fit_report *report);

/* After everything was heard: how many groups spread, and which were skipped. */
void fit_report_spread(struct fit_report *report);
/* And where the whole is (MODEL_PATH, or NULL). */
void fit_report_end(const struct fit_report *report, const char *model_path);

size_t fit_report_fitted(const struct fit_report *report);
/* Why the first group was skipped; NULL when none was. */
const char *fit_report_first_reason(const struct fit_report *report);

#endif
