/*
 * The streamed protocol (README.md): rows in on standard input, facts and answers out on standard output. One
 * program has one stream of rows, so there is no object for it. Everything here ends the program when it
 * fails, with a sentence on standard error.
 *
 *     rows_begin(settings, count, values);        reads the header: which settings are columns
 *     fact("library", "%s", path);                as many as there are
 *     rows_answers(names, selected);              the header of the answers
 *     while (rows_next()) {                       VALUES are those of the row now
 *         stopwatch_start(&watch);
 *         ...                                     what is timed
 *         stopwatch_stop(&watch);
 *         rows_answer(&watch, responses);
 *     }
 */
#ifndef ASSAY_KERNELS_ROWS_H
#define ASSAY_KERNELS_ROWS_H

#include "settings.h"

#include <time.h>

/* "#NAME: VALUE": something about the program that belongs in the archive. Before the answers' header. */
__attribute__((format(printf, 2, 3))) void fact(const char *name, const char *format, ...);
/* Prints facts: clock, processor, number of processors, size of a page, and the memory POLICY that
 * buffer_keep_local() returned; NULL: without it. */
void fact_process(const char *policy);

/* Reads the header from standard input. Settings that it names are columns; the others must have a value from
 * the options, which holds for all rows. Ends the program if the header is wrong. */
void rows_begin(const struct setting *settings, size_t count, struct value *values);
/* Whether the setting NAME is a column of the rows. */
bool rows_have(const char *name);
/* Chooses the responses that are printed, those of NAMES (NULL at the end) that SELECTED lists, separated by
 * commas; and prints the header of the answers. */
void rows_answers(const char *const *names, const char *selected);
/* Reads the next row into the values; false when the input ends. Ends the program if the row is wrong. */
bool rows_next(void);
/* Ends the program: this row cannot be run. The sentence begins with its line. */
__attribute__((noreturn, format(printf, 1, 2))) void rows_refuse(const char *format, ...);

/* Nothing but the two readings of CLOCK_MONOTONIC lies between start and stop. */
struct stopwatch {
    struct timespec wall, before, after;
};
static inline void stopwatch_start(struct stopwatch *watch) {
    clock_gettime(CLOCK_REALTIME, &watch->wall);
    clock_gettime(CLOCK_MONOTONIC, &watch->before);
}
static inline void stopwatch_stop(struct stopwatch *watch) {
    clock_gettime(CLOCK_MONOTONIC, &watch->after);
}
/* The time between start and stop, in s. */
double stopwatch_read(const struct stopwatch *watch);

/* Answers the row with RESPONSES, of which there is one for each of the names of rows_answers. */
void rows_answer(const struct stopwatch *watch, const double *responses);

#endif
