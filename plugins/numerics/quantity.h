/*
 * What a column measures, by its unit (UCUM) or its name, and how many SI units one of it is: for plugins
 * whose model is about times, sizes and rates and not about any columns.
 */
#ifndef ASSAY_NUMERICS_QUANTITY_H
#define ASSAY_NUMERICS_QUANTITY_H

#include <stdbool.h>
#include <stddef.h>

enum quantity {
    QUANTITY_UNKNOWN,   /* no unit, or one that is not here */
    QUANTITY_TIME,      /* s: ns, us, ms, s, min, h, d */
    QUANTITY_SIZE,      /* By, with k, M, G, T or Ki, Mi, Gi, Ti before */
    QUANTITY_BANDWIDTH, /* By/s, likewise */
    QUANTITY_FLOPS,     /* flop, {flop}, with k, M, G, T, P, E before */
    QUANTITY_FLOP_RATE, /* flop/s, likewise; 1/s */
};

/* Of UNIT, which may be NULL; *RET_SCALE is one of it in SI units, 1 when it is not known. */
enum quantity quantity_of_unit(const char *unit, double *ret_scale);

/* The column that measures QUANTITY among COUNT (units may be NULL): the first that is called as one of USUAL
 * (ended by NULL), else the only one whose unit says so; COUNT when there is none, or more than one. */
size_t quantity_find(const char *const *names, const char *const *units, size_t count, enum quantity quantity,
                     const char *const *usual);

/* plugin_host.nearest */
typedef const char *(*quantity_nearest)(const char *word, const char *const *names, size_t count);
/* The column called NAME; COUNT when there is none, with a sentence about it in TEXT (SIZE bytes). WHAT says
 * what it was to be: "size". */
size_t quantity_find_named(const char *what, const char *name, const char *const *names, size_t count,
                           quantity_nearest nearest, char *text, size_t size);

#endif
