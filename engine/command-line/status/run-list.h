/* The runs that are in a folder, such as runs/: those that have their folder there, and archives whose folder
 * is gone. */
#ifndef ASSAY_COMMAND_LINE_STATUS_RUN_LIST_H
#define ASSAY_COMMAND_LINE_STATUS_RUN_LIST_H

#include "engine/foundation/failure.h"

#include <stddef.h>

struct run_list {
    char **paths; /* of folders and archives, sorted */
    size_t count, capacity;
};

/* Adds what is in FOLDER, or FOLDER itself when it is a run's. FAILURE_INPUT when it is no folder. */
int run_list_add(struct run_list *list, const char *folder, struct failure *failure);
void run_list_clear(struct run_list *list);

/* The path of the run in FOLDER that began last; the caller frees. FAILURE_INPUT when there is none. */
int run_list_newest(const char *folder, char **ret, struct failure *failure);

#endif
