/* Runs of a campaign that ended before all was measured, or did not end. */
#ifndef ASSAY_CAMPAIGN_UNFINISHED_H
#define ASSAY_CAMPAIGN_UNFINISHED_H

#include "engine/run/campaign/inputs.h"

enum unfinished {
    UNFINISHED_NONE,
    UNFINISHED_SAME,    /* made from the same campaign, word for word */
    UNFINISHED_CHANGED, /* the campaign's file has changed since: it cannot be resumed as it is */
};

/* Looks in FOLDER, which need not be there, for the last run (by name) that was made from the same campaign
 * with the same overrides, is not completed, and nobody works on. When there is none, and the very last run
 * of the campaign's file is such a one from before the file was changed, that. RET, which is zeroed, is the
 * caller's where there is one. */
enum unfinished unfinished_find(const char *folder, const struct campaign *campaign,
                                const struct campaign_overrides *overrides, struct inputs *ret);

#endif
