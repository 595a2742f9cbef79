/*
 * The run directory, below which the agent writes all its files, and its removal at the end.
 *
 * The agent removes it if it was asked to, and if it made the folder, or found it empty (but for the mark of
 * an agent that was killed) under its own name, not behind a symbolic link. The folder is removed by
 * descriptor: another folder that has its name by then is not touched.
 *
 * A folder to be removed has the file RUN_DIRECTORY_MARK, which worker and guardian have locked (flock) as
 * long as they live. If both are killed the folder stays, and its mark is not locked any more: so
 * run_directory_find_abandoned() recognizes it. Where files cannot be locked there is no mark.
 */
#ifndef ASSAY_MACHINE_RUN_DIRECTORY_H
#define ASSAY_MACHINE_RUN_DIRECTORY_H

#include "engine/foundation/failure.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>

#define RUN_DIRECTORY_MARK ".assay-agent"

struct run_directory {
    int folder;              /* descriptor */
    int parent;              /* descriptor of its parent folder; -1: the directory is not to be removed */
    int mark;                /* descriptor of its locked mark; -1: there is none */
    char name[NAME_MAX + 1]; /* in PARENT */
};

enum {
    RUN_DIRECTORY_REMOVE = 1, /* remove it at the end, if that is allowed (see above) */
    /* Its parent may be writable for other users: a folder that exists must be no link, and belong to us. */
    RUN_DIRECTORY_PRIVATE = 2,
};

/* Opens PATH, and makes it (mode 0700) if it does not exist. */
int run_directory_open(struct run_directory *ret, const char *path, unsigned flags, struct failure *failure);
void run_directory_clear(struct run_directory *directory);

/* True where NAME in PARENT is the folder FOLDER itself, not a link to it. */
bool run_directory_is_named(int folder, int parent, const char *name);

/* Removes the directory with its content, if it is to be removed; no link is followed. 0 also if it is not to
 * be removed. No process may still write there. */
int run_directory_remove(const struct run_directory *directory, struct failure *failure);

/* Finds the run directories of our user in WORKSPACE, a descriptor, whose agents were killed. IS_REMOVED:
 * they are removed with their content; no link is followed. Each is printed on stdout unless PATH, the
 * workspace's path, is NULL:
 *
 *     folder TAB "abandoned", "removed", or why it cannot be removed TAB its path */
void run_directory_find_abandoned(int workspace, const char *path, bool is_removed);

#endif
