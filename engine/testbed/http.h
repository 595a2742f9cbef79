/*
 * Requests over HTTP and HTTPS, by libcurl on the engine's loop: what a scheduler's REST interface and a
 * testbed's monitoring are asked with. Certificates are always checked. Redirections are not followed, so
 * that credentials go to no other host.
 *
 * Credentials are those of a netrc file that only its owner can read; they never are in a campaign, a log or
 * an archive. A URL with a user or a password in it is refused.
 */
#ifndef ASSAY_TESTBED_HTTP_H
#define ASSAY_TESTBED_HTTP_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stddef.h>
#include <stdint.h>

struct http_settings {
    const char *url; /* https://HOST[:PORT][/PATH], what paths are appended to; http:// for this machine only:
                      * 127.0.0.1, [::1] or localhost, the end of a tunnel */
    const char *credentials; /* a netrc file, mode 0600; NULL: ~/.netrc where it is there, else none */
    const char *authority;   /* a file of certificates to trust instead of the system's; NULL: the system's */
};

struct http_answer {
    long status;            /* 200 */
    struct text body;       /* the caller's, also after a failure */
    char *location;         /* of that header; NULL: none; the caller's */
    int64_t retry_after_ns; /* of that header; negative: it says nothing, or names a date */
};

void http_answer_clear(struct http_answer *answer);

/* -EINVAL with FAILURE for a URL that http_open() would refuse; nothing is opened. -ELIBACC: there is no
 * libcurl. */
int http_check_url(const char *url, struct failure *failure);

struct http;

/* Borrows nothing. -EINVAL as above; -EPERM with FAILURE when others can read the credentials, or the file
 * that was named cannot be read. */
int http_open(struct event_loop *loop, const struct http_settings *settings, struct http **ret,
              struct failure *failure);
void http_close(struct http *http); /* NULL is fine */

/* METHOD ("GET", "POST", "DELETE") of PATH, which begins with '/' or is a whole URL below that of the
 * settings; BODY is JSON, or NULL. While the loop turns: 0 with any status; -EINTR when the loop was stopped,
 * -ETIMEDOUT after a minute, -EHOSTUNREACH when the server cannot be reached, -ECONNRESET when it closed the
 * connection before its answer was complete, -EIO for what is not HTTP; -EPERM when its certificate is not to
 * be trusted; -EMSGSIZE beyond LIMIT bytes. FAILURE names the URL of the settings. */
int http_run(struct http *http, const char *method, const char *path, const char *body, size_t limit,
             struct http_answer *ret, struct failure *failure);
/* Begins the same and returns; what was begun before and has not ended is given up. CALLBACK is called at its
 * end, with NULL when there was no answer; not after http_stop() or http_close(), both of which it may call.
 */
void http_start(struct http *http, const char *method, const char *path, const char *body, size_t limit,
                void (*callback)(const struct http_answer *answer, void *context), void *context);
void http_stop(struct http *http);

#endif
