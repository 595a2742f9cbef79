/* What is journalled of a run that no engine works on: "engine-submitted", by which it is queued until the
 * job's engine begins, or "engine-withdrawn"; and "reservation-released". */
#ifndef ASSAY_RECORD_SUBMISSION_H
#define ASSAY_RECORD_SUBMISSION_H

#include "engine/foundation/failure.h"

/* Adds EVENT to the journal of the run in FOLDER, whose lock the caller has; where a job is asked for,
 * before. SENTENCE says for what the run waits, or is NULL. A journal with a torn end stays as it is: who
 * resumes keeps that end first. */
int submission_journal(const char *folder, const char *event, const char *sentence, struct failure *failure);

#endif
