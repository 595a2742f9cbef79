/*
 * The agent's tools: what the same program does when it is started as a command of its own, by the engine
 * (RUN of /proc/self/exe) or by hand on the node. TOOLS.md says what each takes and prints; that is the
 * interface between it and the engine.
 *
 * A tool's process ends with its function: nothing is left running or open. Each gets the arguments after its
 * name, and returns an exit status: 0 done, 1 something could not be done (lines or stderr say what), 2 wrong
 * arguments.
 */
#ifndef ASSAY_SERVE_TOOL_H
#define ASSAY_SERVE_TOOL_H

/* An agent that serves a captured machine names it here, absolute, to all that it runs: the tools among that
 * take it where they are given no --root. */
#define TOOL_ROOT_VARIABLE "ASSAY_AGENT_ROOT"

void tool_pass_root(const char *root); /* NULL: none is served */

typedef int tool_function(int count, char **arguments);

/* engine/agent/controls/ */
tool_function tool_controls;          /* --controls: what can be set, and how it stands */
tool_function tool_snapshot_controls; /* --snapshot-controls: kept here, and told, before anything is set */
tool_function tool_set_controls;      /* --set-controls NAME=VALUE... */
tool_function tool_restore_controls;  /* --restore-controls */
/* engine/agent/probes/ */
tool_function tool_probes; /* --probes: what can be sampled */
tool_function tool_sample; /* --sample: does, until it is told to end */
/* engine/agent/load/ */
tool_function tool_stress; /* --stress: all PUs busy, until it is told to end */
tool_function tool_spin;   /* --spin: all PUs busy for a moment, and how fast they were */
/* engine/agent/job/ */
tool_function tool_job;    /* --job: what a node does for programs that run on several nodes */
tool_function tool_launch; /* --launch: ssh's stand-in for MPI libraries */
/* engine/agent/ */
tool_function tool_capture; /* --capture: the machine's files as a tar */
/* engine/agent/files/ */
tool_function tool_pack;   /* --pack PATH...: files and folders as a tar on stdout */
tool_function tool_unpack; /* --unpack DIR: a tar on stdin becomes files and folders */

#endif
