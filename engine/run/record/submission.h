/* Journals events of a run on which no engine works: "engine-submitted" (it is queued until the job's engine
 * begins), "engine-withdrawn", and "reservation-released". */
#ifndef ASSAY_RECORD_SUBMISSION_H
#define ASSAY_RECORD_SUBMISSION_H

#include "engine/foundation/failure.h"

/* Adds EVENT to the journal of the run in FOLDER, whose lock the caller holds; before a job is submitted.
 * SENTENCE: what the run waits for; or NULL. A torn end of the journal is left to 'assay resume', which keeps
 * it. */
int submission_journal(const char *folder, const char *event, const char *sentence, struct failure *failure);

#endif
