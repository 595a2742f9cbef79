/* The answer of runs, as `assay report` and the end of a run print it. */
#ifndef ASSAY_COMMAND_LINE_REPORT_H
#define ASSAY_COMMAND_LINE_REPORT_H

/* On standard error: the first settings of the run in FOLDER, which was sealed as ARCHIVE, best first; or the
 * sentence why they are not ranked. */
void report_after_run(const char *folder, const char *archive);
/* The first settings of the run in FOLDER, which goes on, best first, as lines; the caller's. NULL: none has
 * a value yet, or they cannot be ranked. */
char *report_best_settings(const char *folder);

#endif
