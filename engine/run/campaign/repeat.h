/*
 * What a plan has of `repeat:` of its design, by which rows are measured until their means are known well
 * enough (engine/design/repeat.h).
 */
#ifndef ASSAY_CAMPAIGN_REPEAT_H
#define ASSAY_CAMPAIGN_REPEAT_H

#include "archive-format/run.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/plan.h"

/* Which of the experiment's responses decides, 0 without `repeat`. Refused with the place: a name that no
 * response has, a response that is a text, and means between nodes where there is only one node. */
int repeat_choose_response(const struct campaign *campaign, size_t *ret, struct failure *failure);
/* The last of these refusals, once the nodes are known. */
int repeat_refuse_one_node(const struct campaign *campaign, struct failure *failure);
/* Appends a line of a plan's description, indented as those are: until when rows are repeated. */
void repeat_describe(const struct plan *plan, struct text *ret);
/* `repeat` as run.json and the resolved campaign have it; the caller's. NULL: there is none. */
struct archive_repeat *repeat_of_plan(const struct plan *plan);

#endif
