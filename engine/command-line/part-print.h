/* The parts of a group as tables, those of a fit and those of a model file alike. */
#ifndef ASSAY_COMMAND_LINE_PART_PRINT_H
#define ASSAY_COMMAND_LINE_PART_PRINT_H

#include "plugins/interface/predict.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

/* What all parts have in common. Units are UCUM; NULL where they are not known. */
struct part_heads {
    const char *plugin;       /* that told the values: their units are fixed words of its README; or NULL */
    const char *const *names; /* of the terms */
    const char *const *units; /* of their estimates */
    size_t term_count;
    const char *response_unit;
    const char *over, *over_unit; /* the column that segments are over; NULL: none */
    int width;                    /* of the longest term's name */
};

struct told_part {
    struct predict_part part; /* its names and arrays are the caller's */
    const double *errors;     /* standard errors, one a term, NaN where they are not defined */
};

/* Where a part begins or ends: its bound, or what was observed where there is none; NaN where neither is. */
double part_bound(const struct part_heads *heads, const struct predict_part *part, bool end);

/* Parts of one kind become one table of their estimates and values; what the first part alone tells of all of
 * them comes before it. */
void part_print_tables(FILE *stream, const struct part_heads *heads, const struct told_part *parts,
                       size_t count);
/* How machines and days differ: the parts of a model of kind "population". */
void part_print_population(FILE *stream, const struct part_heads *heads, const struct told_part *parts,
                           size_t count);

/* Whether value I is printed by part_print_own(): it has a standard error, or is one. */
bool part_is_own(const struct predict_part *part, size_t i);
/* The values that a method has standard errors of, a line each. */
void part_print_own(FILE *stream, const struct part_heads *heads, const struct predict_part *part);

/* The value NAME, NaN where there is none. */
double part_value(const struct predict_part *part, const char *name);

#endif
