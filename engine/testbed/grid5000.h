/*
 * Grid'5000 by its REST API: jobs of OAR, deployments of Kadeploy, the description of the hardware, and the
 * metrics of Kwollect. Private to this room. As of g5k-api 3.11 (app/controllers and lib/oar of its source).
 *
 * What a job's stages write lies in the run's folder below testbed/job-ID: reference.json, environment.json,
 * deployment-N.json and metrics.csv. A deployment is found again by its file, or, where an engine died before
 * it was written, among those that the API lists.
 */
#ifndef ASSAY_TESTBED_GRID5000_H
#define ASSAY_TESTBED_GRID5000_H

#include "engine/testbed/http.h"
#include "engine/testbed/scheduler.h"

/* ---- grid5000-requests.c */

struct grid5000_answer {
    struct http_answer http;
    struct document *document; /* its body */
};

void grid5000_answer_clear(struct grid5000_answer *answer);

enum { GRID5000_ONCE = 1, GRID5000_PATIENCE = 30 /* tries, which are five minutes */ };

/* One request below the API's address. What may pass (no answer, status 429 or 500 and above, no JSON) is
 * asked up to TRIES times, and is -EAGAIN then; -EPERM is what was refused, in the API's words; -EINTR
 * when the loop was stopped. */
int grid5000_ask(const struct scheduler_stage *stage, const char *method, const char *path, const char *body,
                 unsigned tries, struct grid5000_answer *ret, struct failure *failure);
/* The item WANTED of the collection PATH, by its uid, its name or an alias: *RET_NAME (NULL: not wanted), the
 * caller's, is what it is called. FAILURE_INPUT that names the nearest, when WHERE has no such WHAT. */
int grid5000_find_item(const struct scheduler_stage *stage, const char *path, const char *where,
                       const char *what, const char *wanted, char **ret_name, struct failure *failure);
/* Waits before the next request of the same kind: as long as the answer's Retry-After says, or 10 s. */
int grid5000_pause(const struct scheduler_stage *stage, const struct grid5000_answer *answer,
                   struct failure *failure);
void grid5000_report(const struct scheduler_stage *stage, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* NAME in the job's folder, which is made; the caller frees. */
char *grid5000_file(const struct scheduler_stage *stage, const char *name);
/* "dahu-3" of "root@dahu-3-kavlan-4.grenoble.grid5000.fr"; the caller frees. */
char *grid5000_short_name(const char *destination);

/* ---- grid5000-deploy.c */

/* Deploys the job's nodes, those that fail again up to twice. Those that failed to the end are left out of
 * the job's, where enough are left. */
int grid5000_deploy(const struct scheduler_stage *stage, int64_t version, struct failure *failure);
/* Lets the user's keys in as root by sudo-g5k on each of the job's nodes; those that fail likewise. */
int grid5000_open_root(const struct scheduler_stage *stage, struct failure *failure);

/* ---- grid5000-records.c: what the archive gets */

/* Is there such an environment? *RET_VERSION: the one that the campaign names, or the newest; 0: an address,
 * whose environment is not listed. Its description is written into the job's folder if IS_RECORDED. */
int grid5000_find_environment(const struct scheduler_stage *stage, bool is_recorded, int64_t *ret_version,
                              struct failure *failure);
/* The description of the nodes as of the job's start, as the API gives it. A failure is reported. */
void grid5000_record_reference(const struct scheduler_stage *stage);
/* What Kwollect measured on the nodes since the job's start. A failure is reported. */
void grid5000_record_metrics(const struct scheduler_stage *stage);

#endif
