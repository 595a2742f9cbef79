#ifndef ASSAY_COMMAND_LINE_STATUS_PRUNE_H
#define ASSAY_COMMAND_LINE_STATUS_PRUNE_H

#include "engine/command-line/status/run-list.h"

enum prune_consent { PRUNE_ASKS, PRUNE_AGREED };

/* Shows which of the runs in LIST can be removed, and why the others stay; then removes them, if CONSENT is
 * PRUNE_AGREED or the user at the terminal says yes. A folder is removed where nothing was measured, with its
 * archive if there is one, or where the run is complete and its archive is as it was sealed. */
int prune_runs(const struct run_list *list, enum prune_consent consent, struct failure *failure);

#endif
