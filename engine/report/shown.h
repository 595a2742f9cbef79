/*
 * Text from files, archives and plugins as people get to see it: names there can hold anything, and nothing
 * of it may steer the terminal, break a table's lines, or turn the direction of reading around.
 */
#ifndef ASSAY_REPORT_SHOWN_H
#define ASSAY_REPORT_SHOWN_H

#include <stdbool.h>
#include <stdio.h>

enum { SHOWN_MAX = 1024 };

struct shown {
    char text[SHOWN_MAX];
};

/* TEXT with every byte of a control character (text_control()) and of what is not UTF-8 as \x1b; cut, with
 * "...", where it is too long for the structure. shown(name).text lives until the statement ends. */
struct shown shown(const char *text);

/* Prints TEXT to STREAM, made safe. LINES: newlines and tabs stay. */
void shown_print(FILE *stream, const char *text, bool lines);
/* Prints LENGTH bytes, which a NUL follows, made safe; newlines and tabs stay. */
void shown_write(FILE *stream, const char *bytes, size_t length);
/* TEXT made safe, on one line, in fresh memory; the caller frees. */
char *shown_copy(const char *text);

/* Does the locale of the environment have more characters than ASCII? */
bool shown_is_unicode(void);

#endif
