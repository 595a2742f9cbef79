/* Runs of a campaign that ended before all was measured, or did not end. */
#ifndef ASSAY_CAMPAIGN_UNFINISHED_H
#define ASSAY_CAMPAIGN_UNFINISHED_H

#include "engine/run/campaign/inputs.h"

/* Looks in FOLDER, which need not be there, for the last run (by name) that was made from the same campaign
 * with the same overrides, is not completed, and has no engine working on it: INPUTS_SAME. If there is none,
 * and the very last run of the campaign's file is one from before the file was changed, that:
 * INPUTS_CHANGED. RET, which is zeroed, is the caller's where there is one. */
enum inputs_match unfinished_find(const char *folder, const struct campaign *campaign,
                                  const struct campaign_overrides *overrides, struct inputs *ret);

#endif
