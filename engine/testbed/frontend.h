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

/* Opens the place where commands run: the REST interface API; or else, with API NULL, the machine LOGIN
 * ([user@]host[:port], or a node of a job), to which it connects while the loop turns; or else this machine.
 * An unknown host key of LOGIN is added to the file ACCEPTED_HOSTS; with NULL it is refused. */
int frontend_open(struct event_loop *loop, const struct access_settings *access, const char *accepted_hosts,
                  const char *login, const struct http_settings *api, struct frontend **ret,
                  struct failure *failure);
/* The HTTP client of a REST interface; NULL for commands. */
struct http *frontend_http(struct frontend *frontend);
void frontend_close(struct frontend *frontend); /* NULL is fine */

/* Runs the command WORDS, ended by NULL, while the loop turns, and appends its output to OUTPUT. Returns its
 * exit status, or fails: -EINTR when the loop was stopped, -ETIMEDOUT after a minute, -ENOENT when there is
 * no such program. PROBLEM gets the first line of its stderr, or "".
 *
 * For a REST interface: returns 0 and the body for a status 2xx; else the status, with the interface's
 * explanation, or the status's meaning, in PROBLEM; or the failure of http_run(). */
int frontend_run(struct frontend *frontend, const char *const *words, struct text *output,
                 char problem[static FAILURE_TEXT_SIZE], struct failure *failure);
/* Writes why a request was refused into PROBLEM, on one line: the first line of a plain text, or the member
 * "message" of an object. For an HTML page or an empty body it is the meaning of the status. */
void frontend_describe_answer(const struct http_answer *answer, char problem[static FAILURE_TEXT_SIZE]);
/* Starts the command WORDS and returns; an earlier command that has not ended is aborted. CALLBACK is called
 * at its end, with its output when the exit status was 0 (REST interface: 2xx), else with NULL; never after
 * frontend_stop() or frontend_close(). While the connection to a login node is lost, reconnecting is started
 * instead of the command, and CALLBACK is not called. */
void frontend_start(struct frontend *frontend, const char *const *words, size_t limit,
                    void (*callback)(const char *output, size_t length, void *context), void *context);
/* Aborts the command of frontend_start(), if one runs. */
void frontend_stop(struct frontend *frontend);
/* Turns the loop for NS nanoseconds. Returns 0, or -EINTR with FAILURE when the loop was stopped. */
int frontend_wait(struct frontend *frontend, int64_t ns, struct failure *failure);

#endif
