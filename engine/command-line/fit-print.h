/* How a fit is shown to people: its formula, its groups with their parts, and the pieces of that. */
#ifndef ASSAY_COMMAND_LINE_FIT_PRINT_H
#define ASSAY_COMMAND_LINE_FIT_PRINT_H

#include "engine/plugin/fitting.h"

#include <stdio.h>

enum { FIT_PRINT_NAME_MAX = 256, FIT_PRINT_COUNT_MAX = 40 };

/* What the formula says, kept for the groups. */
struct fit_print {
    const struct fitting *fitting;
    char **names, **units; /* of the terms: units are those of their coefficients */
    char **products;       /* units of the terms themselves */
    size_t term_count;
    int width;           /* of the longest term's name */
    char *response_unit; /* or NULL */
    char *over;          /* the column that segments are over, or NULL */
    char *kind;          /* of the model */
};

int fit_print_init(struct fit_print *print, const struct fitting *fitting, const struct fit_formula *formula,
                   struct failure *failure);
void fit_print_clear(struct fit_print *print);

/* What was fitted to how much. */
void fit_print_head(FILE *stream, const struct fit_print *print);
/* All of a group. */
void fit_print_group(FILE *stream, const struct fit_print *print, const struct fit_group *group);

/* What is left out of fits together: "settings", "rows", "values of host, day". */
void fit_print_fold_units(FILE *stream, const struct fitting *fitting);
/* The value NAME of a group: of all of it, or of its only part. NaN where there is none. */
double fit_print_value(const struct fit_group *group, const char *name);
/* The parts of the first one's kind: of a population the days are none of them. */
size_t fit_print_parts(const struct fit_group *group);
/* "node dahu-3, core 7", as it may be shown. Returns NAME. */
const char *fit_print_name(const struct fitting *fitting, uint32_t group,
                           char name[static FIT_PRINT_NAME_MAX]);
/* A whole number with commas between thousands. Returns BUFFER. */
const char *fit_print_count(uint64_t value, char buffer[static FIT_PRINT_COUNT_MAX]);
/* The same with " row" or " rows" behind. Returns BUFFER. */
const char *fit_print_rows(uint64_t rows, char buffer[static FIT_PRINT_COUNT_MAX]);
/* A number in WIDTH columns, or "-" where it is not defined. */
void fit_print_number(FILE *stream, int width, int digits, double value);
/* A p that is too small for a double is not zero. */
void fit_print_p(FILE *stream, double p);
/* Two blanks, the unit or "-", and the line's end. */
void fit_print_unit(FILE *stream, const char *unit);

#endif
