/*
 * A command of assay: one file, one const struct. `assay VERB --help` and the man page assay-VERB(1) are both
 * made from the same table, so they cannot disagree.
 */
#ifndef ASSAY_COMMAND_LINE_VERB_H
#define ASSAY_COMMAND_LINE_VERB_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>

/* Exit codes (README, "Exit codes"): 0, or the failure_kind. */

struct verb_option {
    const char *name;     /* "--output"; NULL ends the table */
    char letter;          /* 'o', or 0 */
    const char *argument; /* "FILE", or NULL for a switch */
    const char *help;
    bool repeatable;
};

struct verb_arguments {
    const struct verb *verb;
    const struct verb_option *const *given; /* options in the order given */
    const char *const *values;              /* their arguments, NULL for switches */
    size_t option_count;
    const char *const *operands;
    size_t operand_count;
};

struct verb {
    const char *name;
    const char *summary;     /* one line */
    const char *synopsis;    /* "assay fit [METHOD] INPUT... [OPTIONS]" */
    const char *description; /* paragraphs, parted by blank lines; wrapped when printed */
    const struct verb_option *options;
    size_t operands_least, operands_most; /* SIZE_MAX: any number */
    /* Prints to stdout (results) and stderr (progress); returns 0 or fills FAILURE, which main prints. */
    int (*run)(const struct verb_arguments *arguments, struct failure *failure);
};

/* The last value given for an option, or NULL; whether a switch was given; the K-th value of a repeatable one. */
const char *verb_value(const struct verb_arguments *arguments, const char *name);
bool verb_switch(const struct verb_arguments *arguments, const char *name);
const char *verb_value_at(const struct verb_arguments *arguments, const char *name, size_t k);

extern const struct verb verb_run, verb_design, verb_fit, verb_predict, verb_archive, verb_help;

#endif
