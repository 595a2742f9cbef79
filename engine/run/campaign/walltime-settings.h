/*
 * What a campaign says of the time that it may take: `walltime:`, and what the command line says of it.
 *
 *     walltime: 2h                    # from the beginning of each part of the run, restoring and sealing
 * included walltime: limit: 2h margin: 30 s                  # kept beside what restoring and sealing are
 * measured to take; # default: a tenth of that, at least 5 s model: model.json             # of `assay fit`,
 * to tell how long units take; relative to the campaign
 *
 * Without `limit` the rest still holds for a deadline from elsewhere (deadline.h).
 */
#ifndef ASSAY_CAMPAIGN_WALLTIME_SETTINGS_H
#define ASSAY_CAMPAIGN_WALLTIME_SETTINGS_H

#include "engine/documents/document.h"
#include "engine/documents/json.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stdint.h>

struct walltime_settings {
    double limit_seconds;  /* 0: none */
    double margin_seconds; /* negative: the default */
    char *model;           /* path; NULL: none */
};

/* NODE: what `walltime` is, or NULL: no limit. FOLDER: that the model's path is relative to. */
int walltime_settings_bind(const struct document *document, const struct document_node *node,
                           const char *folder, struct walltime_settings *ret, struct failure *failure);
void walltime_settings_clear(struct walltime_settings *settings);

/* For people: nothing, or a paragraph's line. For programs: members of OBJECT. */
void walltime_settings_describe(const struct walltime_settings *settings, struct text *ret);
void walltime_settings_resolve(const struct walltime_settings *settings, cJSON *object);

/*
 * "--until TEXT": a duration from now with its unit (90min), a clock time (18:30, 18:30:15: the next such
 * time, local), or a date and time (2026-11-22T18:30, local, or with Z, +01:00 or -0500 behind it; seconds
 * may follow, and a blank may stand for the T). *RET is ns since 1970, after NOW_NS.
 */
int walltime_parse_until(const char *text, int64_t now_ns, int64_t *ret, struct failure *failure);

/* The longest that is taken: of limits and of --until from now. */
#define WALLTIME_SECONDS_MOST (400 * 86400.0)

#endif
