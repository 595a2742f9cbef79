/*
 * The scenarios of a prediction: values for the parameters of the plugin, from NAME=VALUE, of which a number
 * or word may have several, and from a table whose columns are parameters. Every row of the table is combined
 * with every combination of the values. NAME=VALUE may also be an expression over other parameters (Q=64/P;
 * expression.h): a combination where that is no value of the parameter, such as no whole number, is left out.
 * Used by this room alone.
 */
#ifndef ASSAY_PREDICT_SCENARIOS_H
#define ASSAY_PREDICT_SCENARIOS_H

#include "engine/plugin/library.h"
#include "engine/plugin/parameters.h"

enum {
    SCENARIOS_VALUE_MAX = 4096, /* bytes of one field of the table */
};
/* The column of the table that names scenarios. */
#define SCENARIOS_NAME "name"

struct scenario {
    char *name;                   /* NULL: the table has no such column */
    size_t number;                /* from 1 */
    size_t line;                  /* of the table; 0: there is none */
    struct parameters parameters; /* of the plugin, options first */
};

struct scenarios {
    struct plugin_parameter *table; /* options, then parameters */
    size_t option_count, parameter_count;
    struct parameters options; /* all of the table, of which the options are set */
    struct scenario *items;
    size_t count, room;
    size_t left_out;         /* combinations where an expression is no value of its parameter */
    char *left_out_reason;   /* the reason for the first one: a sentence */
    struct reading *reading; /* private */
};

/* FILE: a CSV table, "-" for standard input, or NULL. A name in its header may be followed by the unit of its
 * numbers: "latency [us]". No item is read yet. SCENARIOS is to be cleared after failures too. */
int scenarios_open(struct scenarios *scenarios, const struct predict_plugin *plugin,
                   const char *const *settings, size_t setting_count, const char *file,
                   struct failure *failure);
/* Appends the next MAX items at most. How many; 0: there are no more; a failure, also where there are none at
 * all. */
int scenarios_more(struct scenarios *scenarios, size_t max, struct failure *failure);
/* How many combinations NAME=VALUE gives; 0: there is a table besides. */
size_t scenarios_combinations(const struct scenarios *scenarios);
/* Appends combination NUMBER, below that. 1: it is left out. */
int scenarios_add(struct scenarios *scenarios, size_t number, struct failure *failure);
/* The number of parameters that NAME=VALUE sets. scenarios_sweep() returns how many values parameter I has;
 * *RET_STRIDE is the difference of the numbers of two combinations that differ in the next value of I alone.
 */
size_t scenarios_sweep_count(const struct scenarios *scenarios);
size_t scenarios_sweep(const struct scenarios *scenarios, size_t i, size_t *ret_stride);
/* Forgets the items from FIRST on. */
void scenarios_drop(struct scenarios *scenarios, size_t first);
void scenarios_clear(struct scenarios *scenarios);

#endif
