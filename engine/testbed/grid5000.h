/*
 * Grid'5000 by its REST API: jobs of OAR, deployments of Kadeploy, the description of the hardware, and the
 * metrics of Kwollect. Private to this room. As of g5k-api 3.11 (app/controllers and lib/oar of its source).
 *
 * The stages of a job write files into the run's folder below testbed/job-ID: reference.json,
 * environment.json, deployment-N.json and metrics.csv. Another engine finds a deployment again by its file
 * or, where an engine died before it wrote the file, in the API's list of deployments.
 */
#ifndef ASSAY_TESTBED_GRID5000_H
#define ASSAY_TESTBED_GRID5000_H

#include "engine/testbed/http.h"
#include "engine/testbed/scheduler.h"

/* ---- grid5000-requests.c */

struct grid5000_answer {
    struct http_answer http;
    struct document *document; /* the parsed body */
};

void grid5000_answer_clear(struct grid5000_answer *answer);

enum { GRID5000_ONCE = 1, GRID5000_TRIES = 30 /* requests, over five minutes */ };

/* Sends one request below the API's address and waits for its answer. It is repeated up to TRIES times after
 * temporary failures (no answer, status 429 or 500 and above, no JSON), and fails with -EAGAIN after the
 * last. -EPERM: refused, in the API's words; -EINTR: the loop was stopped. */
int grid5000_request(const struct scheduler_stage *stage, const char *method, const char *path,
                     const char *body, unsigned tries, struct grid5000_answer *ret, struct failure *failure);
/* Finds the item WANTED of the collection PATH by its uid, its name or an alias. *RET_NAME (NULL: not
 * needed), the caller's, gets its name. FAILURE_INPUT where there is no such item: "WHERE has no WHAT
 * 'WANTED'", with the nearest name. */
int grid5000_find_item(const struct scheduler_stage *stage, const char *path, const char *where,
                       const char *what, const char *wanted, char **ret_name, struct failure *failure);
/* Waits before the next request of the same kind: as long as the answer's Retry-After says, or 10 s. */
int grid5000_pause(const struct scheduler_stage *stage, const struct grid5000_answer *answer,
                   struct failure *failure);
void grid5000_report(const struct scheduler_stage *stage, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* The path of the file NAME in the job's folder, which is made; the caller frees. */
char *grid5000_file(const struct scheduler_stage *stage, const char *name);
/* "dahu-3" of "root@dahu-3-kavlan-4.grenoble.grid5000.fr"; the caller frees. */
char *grid5000_short_name(const char *destination);

/* ---- grid5000-deploy.c */

/* Deploys the environment on the job's nodes. Nodes that fail are deployed up to twice more, and then removed
 * from the job's list where 'at-least' nodes are left; else the call fails. */
int grid5000_deploy(const struct scheduler_stage *stage, int64_t version, struct failure *failure);
/* Allows logins as root with the user's keys, by sudo-g5k, on each of the job's nodes. Nodes that fail are
 * removed from the job's list as by grid5000_deploy(). */
int grid5000_open_root(const struct scheduler_stage *stage, struct failure *failure);

/* ---- grid5000-records.c: files for the archive */

/* Checks that the campaign's environment exists. *RET_VERSION: the version that the campaign names, or the
 * newest; 0 for an address, which the API does not list. If IS_RECORDED the description is written into the
 * job's folder. */
int grid5000_find_environment(const struct scheduler_stage *stage, bool is_recorded, int64_t *ret_version,
                              struct failure *failure);
/* Writes the API's description of the nodes at the job's start into the job's folder. A failure is only
 * reported. */
void grid5000_record_reference(const struct scheduler_stage *stage);
/* Writes what Kwollect measured on the nodes since the job's start into metrics.csv. A failure is only
 * reported. */
void grid5000_record_metrics(const struct scheduler_stage *stage);

#endif
