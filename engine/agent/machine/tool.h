/*
 * The agent's tools: what the same program does when it is started as a command of its own, by the engine
 * (RUN of /proc/self/exe) or by hand on the node. TOOLS.md says what each takes and prints; that is the
 * interface between it and the engine.
 *
 * A tool's process ends with its function: nothing is left running or open. Each gets the arguments after its
 * name, and returns an exit status: 0 done, 1 something could not be done (lines or stderr say what), 2 wrong
 * arguments.
 */
#ifndef ASSAY_MACHINE_TOOL_H
#define ASSAY_MACHINE_TOOL_H

#include "engine/agent/machine/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int tool_function(int count, char **arguments);

/* engine/agent/controls/ */
tool_function tool_controls;          /* --controls: what can be set, and how it stands */
tool_function tool_snapshot_controls; /* --snapshot-controls: saved and printed before anything is set */
tool_function tool_set_controls;      /* --set-controls NAME=VALUE... */
tool_function tool_restore_controls;  /* --restore-controls */
/* engine/agent/probes/ */
tool_function tool_probes; /* --probes: what can be sampled */
tool_function tool_sample; /* --sample: samples until a signal ends it */
/* engine/agent/load/ */
tool_function tool_stress; /* --stress: all PUs busy until a signal ends it */
tool_function tool_spin;   /* --spin: all PUs busy for a moment, and how fast they were */
/* engine/agent/job/ */
tool_function tool_job;    /* --job: what a node does for programs that run on several nodes */
tool_function tool_launch; /* --launch: ssh's stand-in for MPI libraries */
/* engine/agent/files/ */
tool_function tool_capture; /* --capture: the machine's files as a tar */
tool_function tool_pack;    /* --pack PATH...: files and folders as a tar on stdout */
tool_function tool_unpack;  /* --unpack DIR: a tar on stdin becomes files and folders */

/* An option that takes a value in its list, once or more often. */
struct tool_list {
    const char **items; /* room for as many as there are arguments */
    size_t count;
};

/* An option: its name, and one of the places where its value goes. */
struct tool_option {
    const char *name; /* "--root"; NULL after the last */
    const char **text;
    bool *flag; /* it has no value */
    struct tool_list *list;
    int64_t *number, min, max;
};

/* Reads the options among ARGUMENTS. The other words, WORDS_MAX at most, move to its beginning: returns how
 * many, or -EINVAL after a sentence on stderr. */
int tool_parse(int count, char **arguments, const struct tool_option *options, int words_max);

/* Prints "assay-agent: ", the sentence and a newline on stderr. Returns STATUS. */
int tool_complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* An agent that serves a captured machine passes its absolute path on to all that it runs; NULL: none. */
void tool_pass_root(const char *root);
bool tool_passed_root(void);
/* The machine of `--root ROOT`; of none (NULL), the one that was passed on. 0, or 2 after a sentence. */
int tool_open_machine(const char *root, struct machine *ret);

#endif
