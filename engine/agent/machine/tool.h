/*
 * The agent's tools: commands of the agent's program, started by the engine (RUN of /proc/self/exe) or by
 * hand on the node. TOOLS.md has the arguments and the output of each, which are the interface to the engine.
 *
 * A tool's process ends with its function, and leaves nothing running. Each gets the arguments after its
 * name, and returns an exit status: 0 done, 1 something failed (the reason is in its lines or on stderr), 2
 * wrong arguments.
 */
#ifndef ASSAY_MACHINE_TOOL_H
#define ASSAY_MACHINE_TOOL_H

#include "engine/agent/machine/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef int tool_function(int count, char **arguments);

/* engine/agent/controls/ */
tool_function tool_controls;          /* --controls: lists the controls, their status and values */
tool_function tool_snapshot_controls; /* --snapshot-controls: saves and prints them before any is set */
tool_function tool_set_controls;      /* --set-controls NAME=VALUE... */
tool_function tool_restore_controls;  /* --restore-controls */
/* engine/agent/probes/ */
tool_function tool_probes; /* --probes: lists what can be sampled */
tool_function tool_sample; /* --sample: samples until a signal ends it */
/* engine/agent/load/ */
tool_function tool_stress; /* --stress: keeps all PUs busy until a signal ends it */
tool_function tool_spin;   /* --spin: keeps all PUs busy for a moment and prints their frequencies */
/* engine/agent/job/ */
tool_function tool_job;    /* --job: serves programs that run on several nodes */
tool_function tool_launch; /* --launch: replaces ssh for MPI libraries */
/* engine/agent/files/ */
tool_function tool_capture; /* --capture: writes the machine's files as a tar */
tool_function tool_pack;    /* --pack PATH...: writes files and folders as a tar to stdout */
tool_function tool_unpack;  /* --unpack DIR: unpacks a tar from stdin */

/* The values of an option that may be given more than once. */
struct tool_list {
    const char **items; /* the caller's, with room for as many as there are arguments */
    size_t count;
};

/* An option: its name, and a pointer to where its value is stored; exactly one of the pointers is set. */
struct tool_option {
    const char *name; /* "--root"; NULL after the last */
    const char **text;
    bool *flag; /* for an option without a value: set to true */
    struct tool_list *list;
    int64_t *number, min, max;
};

/* Reads the options among ARGUMENTS. The other words, at most WORDS_MAX, are moved to its beginning. Returns
 * their number, or -EINVAL after a sentence on stderr. */
int tool_parse(int count, char **arguments, const struct tool_option *options, int words_max);

/* Prints "assay-agent: ", the sentence and a newline on stderr. Returns STATUS. */
int tool_complain(int status, const char *format, ...) __attribute__((format(printf, 2, 3)));

/* Passes the root of a captured machine, an absolute path, to all processes that this one starts; NULL: none.
 */
void tool_pass_root(const char *root);
bool tool_passed_root(void);
/* Opens the machine of `--root ROOT`; NULL: the root that was passed, or "/". Returns 0, or 2 after a
 * sentence. */
int tool_open_machine(const char *root, struct machine *ret);

#endif
