/*
 * Where a scheduler's commands run: this machine, a login node that ssh reaches, or a REST interface. A
 * command is a list of words that no shell interprets; on a login node, whose shell it must pass, each word
 * is quoted. For a REST interface the words are METHOD, PATH and, where there is one, BODY, which is JSON:
 * {"GET", "/jobs/12.json", NULL}.
 */
#ifndef ASSAY_TESTBED_FRONTEND_H
#define ASSAY_TESTBED_FRONTEND_H

#include "engine/foundation/text.h"
#include "engine/testbed/access.h"
#include "engine/testbed/http.h"

struct frontend;

/* API: the REST interface; else NULL. LOGIN: [user@]host[:port], or a node of a job, which is connected at
 * once, while the loop turns; NULL: this machine. Its host key, if unknown, is noted in the file
 * ACCEPTED_HOSTS; NULL: it is refused. */
int frontend_open(struct event_loop *loop, const struct access_settings *access, const char *accepted_hosts,
                  const char *login, const struct http_settings *api, struct frontend **ret,
                  struct failure *failure);
/* What requests are made with; NULL: it is no REST interface. */
struct http *frontend_http(struct frontend *frontend);
void frontend_close(struct frontend *frontend); /* NULL is fine */

/* Runs WORDS, ended by NULL, while the loop turns, and appends what it prints to OUTPUT. Its exit status, or
 * negative with FAILURE: -EINTR when the loop was stopped, -ETIMEDOUT after a minute, -ENOENT when there is
 * no such program. PROBLEM gets the first line that it printed to stderr, or "".
 *
 * Of a REST interface: 0 with the body when the status is 2xx, else the status, PROBLEM being what the
 * interface says about it, or what the status means; or what http_run() returns when there is no answer. */
int frontend_run(struct frontend *frontend, const char *const *words, struct text *output,
                 char problem[static FAILURE_TEXT_SIZE], struct failure *failure);
/* Why a request was refused: the first line of a plain text, or the "message" of an object, on one line; of a
 * page for browsers, and of nothing, the meaning of the status. */
void frontend_describe_answer(const struct http_answer *answer, char problem[static FAILURE_TEXT_SIZE]);
/* Begins to run WORDS and returns; what was begun before and has not ended is given up. CALLBACK is called at
 * its end, with what it printed when its exit status was 0 (of a REST interface: 2xx), and else with NULL;
 * not after frontend_stop() or frontend_close(). Nothing is begun while a login node has to be connected
 * again, which then begins. */
void frontend_start(struct frontend *frontend, const char *const *words, size_t limit,
                    void (*callback)(const char *output, size_t length, void *context), void *context);
void frontend_stop(struct frontend *frontend);
/* Lets the loop turn for so long: 0, or -EINTR with FAILURE. */
int frontend_wait(struct frontend *frontend, int64_t ns, struct failure *failure);

#endif
