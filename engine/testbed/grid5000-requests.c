#include "engine/testbed/grid5000.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/testbed/frontend.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Pauses between requests. The API answers from a cache for a minute, so that shorter pauses would bring
 * nothing new. */
static const int64_t usual_pause_ns = 10 * EVENT_SECOND, longest_pause_ns = 300 * EVENT_SECOND;
enum { BODY_MAX = 64 << 20 };

void grid5000_answer_clear(struct grid5000_answer *answer) {
    http_answer_clear(&answer->http);
    document_free(answer->document);
    *answer = (struct grid5000_answer){0};
}

int grid5000_pause(const struct scheduler_stage *stage, const struct grid5000_answer *answer,
                   struct failure *failure) {
    int64_t pause_ns = answer->http.retry_after_ns < 0 ? usual_pause_ns : answer->http.retry_after_ns;
    return frontend_wait(stage->frontend, pause_ns < longest_pause_ns ? pause_ns : longest_pause_ns, failure);
}

/* Sends one request, once. -EAGAIN: a temporary failure; any other failure would be the same if the request
 * were repeated. */
static int request_once(const struct scheduler_stage *stage, const char *method, const char *path,
                        const char *body, struct grid5000_answer *ret, struct failure *failure) {
    int r = http_run(frontend_http(stage->frontend), method, path, body, BODY_MAX, &ret->http, failure);
    if (r == -EINTR || r == -EPERM || r == -EMSGSIZE || r == -EINVAL)
        return r;
    if (r < 0)
        return failure->code = -EAGAIN;
    const struct text *answer = &ret->http.body;
    long status = ret->http.status;
    if (status / 100 != 2) {
        char problem[FAILURE_TEXT_SIZE];
        frontend_describe_answer(&ret->http, problem);
        return failure_set(failure, status >= 500 || status == 429 ? -EAGAIN : -EPERM,
                           "%s %s was answered with status %ld: %.300s", method, path, status, problem);
    }
    if (document_parse_json(path, answer->bytes, answer->length, &ret->document, NULL) < 0)
        return failure_set(failure, -EAGAIN, "the answer to %s %s is not JSON", method, path);
    return 0;
}

/* Sends a request up to TRIES times, with pauses, as long as the API is not available. The caller clears RET.
 */
int grid5000_request(const struct scheduler_stage *stage, const char *method, const char *path,
                     const char *body, unsigned tries, struct grid5000_answer *ret, struct failure *failure) {
    for (unsigned number = 1;; number++) {
        grid5000_answer_clear(ret);
        int r = request_once(stage, method, path, body, ret, failure);
        if (r != -EAGAIN || number >= tries)
            return r;
        if (number == 1)
            grid5000_report(stage, "asking Grid'5000 again: %s", failure->text);
        *failure = (struct failure){0};
        r = grid5000_pause(stage, ret, failure);
        if (r < 0)
            return r;
    }
}

/* Looks for WANTED, a name or an alias, in a list of the API; RET_NAME, which may be NULL, gets its name.
 * FAILURE_INPUT: it is not there. */
int grid5000_find_item(const struct scheduler_stage *stage, const char *path, const char *where,
                       const char *what, const char *wanted, char **ret_name, struct failure *failure) {
    cleanup(grid5000_answer_clear) struct grid5000_answer answer = {0};
    int r = grid5000_request(stage, "GET", path, NULL, GRID5000_TRIES, &answer, failure);
    if (r < 0)
        return r;
    const struct document_node *items = document_get(answer.document->root, "items");
    size_t count = items ? items->count : 0;
    cleanup_free const char **names = xcalloc(count + 1, sizeof *names);
    for (size_t i = 0; i < count; i++) {
        const struct document_node *item = items->items[i];
        names[i] = scheduler_text(item, document_get(item, "uid") ? "uid" : "name");
        if (strcmp(names[i], wanted) != 0 && strcmp(scheduler_text(item, "alias"), wanted) != 0)
            continue;
        if (ret_name)
            *ret_name = xstrdup(names[i]);
        return 0;
    }
    char instead[TEXT_INSTEAD_SIZE];
    return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "%s has no %s '%s'; %s", where, what, wanted,
                            text_instead(wanted, names, count, instead));
}

void grid5000_report(const struct scheduler_stage *stage, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    scheduler_report(stage->request, format, arguments);
    va_end(arguments);
}

char *grid5000_file(const struct scheduler_stage *stage, const char *name) {
    cleanup_free char *folder = xformat("%s/testbed/job-%s", stage->request->folder, stage->job->id);
    (void)file_make_folders(folder, NULL); /* a failure shows when the file is written */
    return file_join(folder, name);
}

char *grid5000_short_name(const char *destination) {
    const char *at = strchr(destination, '@'), *host = at ? at + 1 : destination;
    const char *vlan = strstr(host, "-kavlan-");
    size_t length = strcspn(host, ".");
    return xstrndup(host, vlan && (size_t)(vlan - host) < length ? (size_t)(vlan - host) : length);
}
