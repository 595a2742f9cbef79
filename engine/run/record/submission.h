/* An engine that was put into a job: its run is queued until that engine begins, or is withdrawn. */
#ifndef ASSAY_RECORD_SUBMISSION_H
#define ASSAY_RECORD_SUBMISSION_H

#include "engine/foundation/failure.h"

/* Journals it for the run in FOLDER, whose lock the caller has, before the job is asked for. SENTENCE says
 * for what the run waits; NULL: it no longer does. A journal with a torn end stays as it is: who resumes
 * keeps that end first. */
int submission_journal(const char *folder, const char *sentence, struct failure *failure);

#endif
