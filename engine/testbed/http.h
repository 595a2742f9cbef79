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
    /* https://HOST[:PORT][/PATH]; paths of requests are appended to it. http:// is accepted for 127.0.0.1,
     * [::1] and localhost only, the end of a tunnel. */
    const char *url;
    const char *credentials; /* a netrc file, mode 0600; NULL: ~/.netrc if it exists, else none */
    const char *authority;   /* a file of certificates to trust; NULL: the system's certificates */
};

struct http_answer {
    long status; /* 200 */
    struct text body;
    char *location;         /* value of the header Location; NULL: none */
    int64_t retry_after_ns; /* value of the header Retry-After; negative: none, or a date */
};

/* Frees what the members of ANSWER own; the caller calls it after http_run(), also after a failure. */
void http_answer_clear(struct http_answer *answer);

/* Checks URL without connecting. -EINVAL with FAILURE for a URL that http_open() would refuse; -ELIBACC:
 * libcurl cannot be loaded. */
int http_check_url(const char *url, struct failure *failure);

struct http;

/* Prepares requests to the server of SETTINGS, which are copied; nothing is sent yet. -EINVAL as
 * http_check_url(); -EPERM with FAILURE where other users can read the file of credentials, or it cannot be
 * read. */
int http_open(struct event_loop *loop, const struct http_settings *settings, struct http **ret,
              struct failure *failure);
void http_close(struct http *http); /* NULL is fine */

/* Sends the request METHOD ("GET", "POST", "DELETE") for PATH and waits for the answer while the loop turns.
 * PATH begins with '/' or is a whole URL below that of the settings; BODY is JSON, or NULL. Returns 0 with an
 * answer of any status; -EINTR when the loop was stopped, -ETIMEDOUT after a minute, -EHOSTUNREACH when the
 * server cannot be reached, -ECONNRESET when it closed the connection before the answer was complete, -EIO
 * when the answer is not HTTP, -EPERM when its certificate is not trusted, -EMSGSIZE for an answer of more
 * than LIMIT bytes. FAILURE names the URL of the settings. */
int http_run(struct http *http, const char *method, const char *path, const char *body, size_t limit,
             struct http_answer *ret, struct failure *failure);
/* Starts a request as http_run() and returns at once; an earlier request that has not ended is aborted.
 * CALLBACK is called at the request's end, with NULL when there was no answer; never after http_stop() or
 * http_close(), which it may call itself. */
void http_start(struct http *http, const char *method, const char *path, const char *body, size_t limit,
                void (*callback)(const struct http_answer *answer, void *context), void *context);
/* Aborts the request of http_start(), if one runs. */
void http_stop(struct http *http);

#endif
