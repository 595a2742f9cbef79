/*
 * A command of assay: a function, and a page that says what it does and which words it takes, pages/VERB.txt.
 * The parser, `assay VERB --help` and the man page assay-VERB(1) all go by the page, so they cannot disagree.
 */
#ifndef ASSAY_COMMAND_LINE_VERB_H
#define ASSAY_COMMAND_LINE_VERB_H

#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Exit codes (README, "Exit codes"): 0, or the failure_kind. Every command also has --help, which main
 * answers. */

struct verb_option {
    const char *name; /* "--output"; NULL ends the table */
    char letter;      /* 'o', or 0 */
    /* "FILE", or NULL for a switch; "[=FILE]": a switch that may have one; "FILE...": may be given several
     * times, which others with an argument must not. */
    const char *argument;
    const char *help;
};

struct verb_arguments {
    const struct verb *verb;
    const struct installation *installation; /* that is running, with ASSAY_PATH */
    const char *const *command;              /* all words of the command line, ended by a NULL */
    const struct verb_option **given;        /* options in the order given */
    const char **values;                     /* their arguments, NULL for switches */
    size_t option_count;
    const char **operands; /* NULL ends them */
    size_t operand_count;
};

/* Prints to stdout (results) and stderr (progress); returns 0 or fills FAILURE, which main prints. */
typedef int verb_function(const struct verb_arguments *arguments, struct failure *failure);

struct verb {
    const char *name;
    const char *summary;     /* one line */
    const char *synopsis;    /* "assay fit [METHOD] INPUT... [OPTIONS]" */
    const char *description; /* lines, which are wrapped when printed: pages/pages.awk */
    const struct verb_option *options;
    size_t operands_least, operands_most; /* SIZE_MAX: any number */
    bool has_plugins; /* the first operand is one, whose models and options --help prints too */
    verb_function *run;
};

/* The value given for an option, or NULL; whether a switch was given; the K-th value of a repeatable
 * one, or NULL when there are not so many. */
const char *verb_value(const struct verb_arguments *arguments, const char *name);
bool verb_switch(const struct verb_arguments *arguments, const char *name);
const char *verb_value_at(const struct verb_arguments *arguments, const char *name, size_t k);
/* All of them, and how many; an array for free(). */
const char **verb_values(const struct verb_arguments *arguments, const char *name, size_t *ret_count);

/* The command that WORDS, the former name of one, such as "fit compare", is now; or NULL. */
const char *verb_new_name(const char *words);

/* The whole number given for option NAME, from LEAST to MOST; *RET is untouched where it is not given. */
int verb_count(const struct verb_arguments *arguments, const char *name, uint64_t least, uint64_t most,
               uint64_t *ret, struct failure *failure);

/* An action of a command that has several: its first operand names one. A table of them ends with NULL. */
struct verb_action {
    const char *name;
    size_t least, most;   /* operands, without the action's own name */
    const char *expected; /* those operands, in words */
    const char *options;  /* those that it takes of the ones that not all actions take: "--json --output" */
    verb_function *run;
};

/* Runs the one of ACTIONS that is called NAME, after checking its operands and options. */
int verb_run_action(const struct verb_arguments *arguments, const struct verb_action *actions,
                    const char *name, struct failure *failure);

/* Refuses a repeatable option NAME=VALUE that sets the same NAME twice. */
int verb_check_settings(const struct verb_arguments *arguments, const char *option, struct failure *failure);

/* The commands, a file each. */
verb_function command_run, command_resume, command_watch, command_stop, command_status, command_list,
    command_nodes, command_reserve, command_release, command_experiments, command_design, command_fit,
    command_predict, command_export, command_model, command_plugins, command_archive, command_report,
    command_compare, command_history, command_help;

/* All of them, in the order in which help lists them, ended by NULL; and the page of the program itself. */
extern const struct verb *const verb_table[];
extern const struct verb verb_assay;
/* Environment variables and exit codes, which belong to all commands, laid out as options; ended by a NULL.
 */
extern const struct verb_option verb_environment[], verb_exit_codes[];

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
