/*
 * What a campaign says about warming its nodes up: `warm-up:`.
 *
 *     warm-up: none                 # the default
 *     warm-up: 2min                 # busy for so long
 *     warm-up: steady               # busy until nothing changes any more
 *     warm-up:
 *       until: steady
 *       window: 1min                # over which temperature and frequency are looked at
 *       at-most: 15min
 *       temperature-slope: 1 Cel    # over one window, of the line of least squares
 *       temperature-spread: 3 Cel   # greatest less least within the window, off that line
 *       frequency-slope: 1%         # of the mean, likewise
 *       frequency-spread: 3%
 *       load: agent                 # agent, stress, stress-ng
 *
 * A node is steady when every temperature of a package that it has, and the mean frequency of its PUs, keep
 * to these limits over the last window (steadiness.h).
 */
#ifndef ASSAY_CAMPAIGN_WARM_UP_SETTINGS_H
#define ASSAY_CAMPAIGN_WARM_UP_SETTINGS_H

#include "engine/documents/document.h"
#include "engine/foundation/failure.h"
#include "engine/run/state/steadiness.h"

enum warm_up_kind { WARM_UP_NONE, WARM_UP_TIME, WARM_UP_STEADY };
enum warm_up_load { WARM_UP_AGENT, WARM_UP_STRESS, WARM_UP_STRESS_NG };

struct warm_up_settings {
    enum warm_up_kind kind;
    enum warm_up_load load;
    double seconds;         /* WARM_UP_TIME */
    double at_most_seconds; /* WARM_UP_STEADY */
    struct steadiness_limits limits;
};

extern const char *const warm_up_load_names[]; /* of programs other than the agent, also of their packages */

/* NODE: what `warm-up` is, or NULL. */
int warm_up_settings_bind(const struct document *document, const struct document_node *node,
                          struct warm_up_settings *ret, struct failure *failure);

#endif
