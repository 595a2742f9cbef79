/* Runs of a campaign that ended before all was measured, or did not end. */
#ifndef ASSAY_RUN_UNFINISHED_H
#define ASSAY_RUN_UNFINISHED_H

#include "engine/foundation/failure.h"
#include "engine/run/inputs.h"

#include <stdbool.h>

/* Looks in FOLDER, which need not be there, for the last run (by name) that was made from the same campaign
 * with the same overrides, is not completed, and nobody works on. RET is the caller's where there is one. */
int unfinished_find(const char *folder, const struct campaign *campaign,
                    const struct campaign_overrides *overrides, struct inputs *ret, bool *ret_found,
                    struct failure *failure);

#endif
