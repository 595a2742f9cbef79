/*
 * A command of assay: one file, one const struct. `assay VERB --help` and the man page assay-VERB(1) are both
 * made from the same table, so they cannot disagree.
 */
#ifndef ASSAY_COMMAND_LINE_VERB_H
#define ASSAY_COMMAND_LINE_VERB_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes (README, "Exit codes"): 0, or the failure_kind. Every command also has --help, which main
 * answers. */

struct verb_option {
    const char *name;     /* "--output"; NULL ends the table */
    char letter;          /* 'o', or 0 */
    const char *argument; /* "FILE", or NULL for a switch; "[=FILE]": a switch that may have one */
    const char *help;
    bool repeatable; /* one with an argument that is not must not be given twice */
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
    const char *summary;  /* one line */
    const char *synopsis; /* "assay fit [METHOD] INPUT... [OPTIONS]" */
    /* Paragraphs, separated by blank lines and wrapped when printed; a line that begins with a blank is an
     * example and stays as it is. */
    const char *description;
    const struct verb_option *options;
    size_t operands_least, operands_most; /* SIZE_MAX: any number */
    /* Prints to stdout (results) and stderr (progress); returns 0 or fills FAILURE, which main prints. */
    int (*run)(const struct verb_arguments *arguments, struct failure *failure);
    /* Optional: prints what the --help of command VERB has to say of OPERAND, the first of the words before
     * it: of a plugin. */
    void (*help)(const char *verb, const char *operand);
};

/* The value given for an option, or NULL; whether a switch was given; the K-th value of a repeatable
 * one, or NULL when there are not so many. */
const char *verb_value(const struct verb_arguments *arguments, const char *name);
bool verb_switch(const struct verb_arguments *arguments, const char *name);
const char *verb_value_at(const struct verb_arguments *arguments, const char *name, size_t k);
/* All of them, and how many; an array for free(). */
const char **verb_values(const struct verb_arguments *arguments, const char *name, size_t *ret_count);

/* The whole number given for option NAME, from LEAST to MOST; *RET is untouched where it is not given. */
int verb_count(const struct verb_arguments *arguments, const char *name, uint64_t least, uint64_t most,
               uint64_t *ret, struct failure *failure);

/* An action of a command that has several: its first operand names one. A table of them ends with NULL. */
struct verb_action {
    const char *name;
    size_t least, most;   /* operands, without the action's own name */
    const char *expected; /* those operands, in words */
    const char *options;  /* those that it takes of the ones that not all actions take: "--json --output" */
    int (*run)(const struct verb_arguments *arguments, struct failure *failure);
};

/* Runs the one of ACTIONS that is called NAME, after checking its operands and options. */
int verb_act(const struct verb_arguments *arguments, const struct verb_action *actions, const char *name,
             struct failure *failure);

/* Refuses a repeatable option NAME=VALUE that sets the same NAME twice. */
int verb_check_settings(const struct verb_arguments *arguments, const char *option, struct failure *failure);

extern const struct verb verb_run, verb_reserve, verb_resume, verb_attach, verb_stop, verb_release,
    verb_fetch, verb_list, verb_status, verb_experiments, verb_design, verb_fit, verb_predict, verb_model,
    verb_generate, verb_export, verb_archive, verb_nodes, verb_help;

/* All of them, in the order in which help lists them, ended by NULL. */
extern const struct verb *const verb_table[];

/* The command called NAME in *RET, or FAILURE_INPUT with the nearest name. */
int verb_find(const char *name, const struct verb **ret, struct failure *failure);

/* Sorts the COUNT words after the command's name into options and operands, which may be mixed: --name VALUE,
 * --name=VALUE, -n VALUE, -nVALUE, switches in one word (-ab), and "--", after which all are operands; "-"
 * alone is an operand. The values point into WORDS. Returns 1 as soon as --help (or -h, unless the command
 * has its own) is met, then *RET is untouched; FAILURE_INPUT for what the table does not allow. */
int verb_parse(const struct verb *verb, size_t count, const char *const *words, struct verb_arguments *ret,
               struct failure *failure);
void verb_arguments_clear(struct verb_arguments *arguments);

#endif
