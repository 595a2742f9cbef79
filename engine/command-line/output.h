/* Where results go: standard output, and the file of --output. */
#ifndef ASSAY_COMMAND_LINE_OUTPUT_H
#define ASSAY_COMMAND_LINE_OUTPUT_H

#include "engine/documents/json.h"
#include "engine/foundation/failure.h"
#include "engine/report/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Refuses an OUTPUT that is one of the COUNT INPUTS, by whatever name or link: it would be overwritten. "-"
 * is standard input; NULL, for either, is nothing. */
int output_check(const char *output, const char *const *inputs, size_t count, struct failure *failure);

/* Refuses two outputs that are one file, by whatever name, whether it is there yet or not. NULL is nothing.
 */
int output_check_apart(const char *one, const char *other, struct failure *failure);

/* REPORT on standard output: as text, with VERBOSE all of it, or as JSON. */
void output_report(const struct report *report, bool json, bool verbose);
/* The same as JSON on one line, of which others follow. */
void output_report_line(const struct report *report);
/* BYTES to standard output, as they are; to a terminal without what steers it. A NUL follows them. */
void output_bytes(const char *bytes, size_t length);
/* TABLE as CSV on standard output, or where OUTPUT is a name in that file, with units beside it. */
int output_table(const struct report_table *table, const char *output, struct failure *failure);

/* VALUE and a newline, on one line or, PRETTY, on many, to standard output. */
void output_json(const cJSON *value, bool pretty);

/* How far a command is: a line on standard error, if that is a terminal, once it has taken 2 s. */
struct output_line {
    int64_t began_ns; /* clock_monotonic_ns() */
    int64_t shown_ns;
    bool is_drawn;
};
void output_line_draw(struct output_line *line, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
void output_line_end(struct output_line *line);

/* FAILURE's sentence on standard error: "assay: ...". */
void output_failure(const struct failure *failure);

/* fflush(stdout) that keeps the reason: stdio itself says only once why a write failed. 0, or the negative
 * errno of the first failure that one of these calls met. */
int output_flush(void);
/* Whether standard output is a pipe whose reader has closed it. */
bool output_is_broken_pipe(void);

#endif
