/*
 * The folder that all writing of the agent goes below, and whether it is the agent's to remove at the end.
 *
 * It is when the agent was asked to, and made it or found it empty at its own name (not behind a link), or
 * with nothing but the mark of an agent that was killed. What
 * is removed is that very folder, by descriptor, whatever bears its name by then.
 *
 * One that is to be removed holds the file RUN_DIRECTORY_MARK, which the agent's worker and guardian have
 * locked (flock) as long as they live. If both are killed it stays, and its mark is not locked any more: that
 * is how run_directory_find_abandoned() knows it. Where files cannot be locked there is no mark.
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
    int parent;              /* descriptor of the folder that holds it; -1: it stays */
    int mark;                /* descriptor of its mark, which holds the lock; -1: there is none */
    char name[NAME_MAX + 1]; /* in PARENT */
};

enum {
    RUN_DIRECTORY_REMOVE = 1,  /* it goes at the end, if it is ours */
    RUN_DIRECTORY_PRIVATE = 2, /* its name is of our choice, in a folder where others may write too: what is
                                  there already must be a folder, no link, and belong to us */
};

/* Makes PATH (mode 0700) if it is not there, and opens it. */
int run_directory_open(struct run_directory *ret, const char *path, unsigned flags, struct failure *failure);
void run_directory_clear(struct run_directory *directory);

/* Whether FOLDER is what NAME in PARENT is, and not what a link there leads to. */
bool run_directory_is_named(int folder, int parent, const char *name);

/* Removes it if it is ours to remove, with all that is in it; no link is followed. 0 if it is not ours, too.
 * Nobody should still write there. */
int run_directory_remove(const struct run_directory *directory, struct failure *failure);

/* In WORKSPACE, a descriptor: the run directories of our user whose agents were killed. IS_REMOVED: they are
 * removed, with all that is in them; no link is followed. Each is printed on stdout unless PATH, that of the
 * workspace, is NULL:
 *
 *     folder TAB "abandoned", "removed", or why it cannot be removed TAB its path */
void run_directory_find_abandoned(int workspace, const char *path, bool is_removed);

#endif
