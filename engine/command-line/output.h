/* Where results go: standard output, and the file of --output. */
#ifndef ASSAY_COMMAND_LINE_OUTPUT_H
#define ASSAY_COMMAND_LINE_OUTPUT_H

#include "engine/documents/json.h"
#include "engine/foundation/failure.h"
#include "engine/report/report.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Refuses an OUTPUT that is one of the COUNT INPUTS, also by another name or link, because it would be
 * overwritten. "-" (standard input) and NULL are never refused. */
int output_check(const char *output, const char *const *inputs, size_t count, struct failure *failure);

/* Refuses two outputs that are one file, by whatever name, whether it is there yet or not. NULL is nothing.
 */
int output_check_apart(const char *one, const char *other, struct failure *failure);

/* Prints REPORT to standard output: as JSON, or as text, VERBOSE with its details. */
void output_report(const struct report *report, bool json, bool verbose);
/* Prints REPORT as JSON on one line; others follow. */
void output_report_line(const struct report *report);
/* Writes BYTES to standard output; to a terminal without control characters. A NUL follows them. */
void output_bytes(const char *bytes, size_t length);
/* Writes TABLE as CSV: to standard output, or, if OUTPUT is a name, to that file, with its units beside it.
 */
int output_table(const struct report_table *table, const char *output, struct failure *failure);

/* Prints VALUE and a newline to standard output, on one line or, PRETTY, on several. */
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

/* Prints FAILURE's sentence to standard error: "assay: ...". */
void output_failure(const struct failure *failure);

/* Flushes standard output. 0, or the negative errno of the first failure that one of these calls met: stdio
 * itself says only once why a write failed. */
int output_flush(void);
/* Is standard output a pipe whose reader has closed it? */
bool output_is_broken_pipe(void);

#endif
