/*
 * The keeper: the process that a bed lives and dies with. It is the parent of all nodes, watches the bed's
 * owner, and does what `bed` commands ask over the socket CONTROL in the bed's folder.
 */
#ifndef ASSAY_TEST_BED_KEEPER_H
#define ASSAY_TEST_BED_KEEPER_H

#include "engine/foundation/text.h"
#include "tests/test-bed/node.h"

/* Makes the folder and the bed and starts the keeper as a process of its own. On success the bed's nodes all
 * answer, and FOLDER is where its files are. */
int keeper_start(const struct settings *settings, char folder[BED_PATH_SIZE], struct failure *failure);

/* Asks the keeper of the bed in FOLDER to do a command (COUNT words) and appends what it answers. 0, or -EIO
 * with the keeper's own sentence. After "down" the bed is gone. */
int keeper_ask(const char *folder, int count, const char *const *words, struct text *answer,
               struct failure *failure);

/* The keeper's process id. */
int keeper_process(const char *folder, pid_t *ret, struct failure *failure);

#endif
