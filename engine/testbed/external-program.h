/*
 * A program that gets requests on its standard input and answers on its output, one JSON object a line
 * (EXTERNAL.md). It is started when it is first needed, gets one request at a time, and may print notes at
 * any time.
 *
 * A process may be ended at any instant and another one started in its place: so does a request that comes
 * while an earlier one is unanswered (interrupted, or timed out).
 */
#ifndef ASSAY_TESTBED_EXTERNAL_PROGRAM_H
#define ASSAY_TESTBED_EXTERNAL_PROGRAM_H

#include "engine/documents/document.h"
#include "engine/documents/json.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"

#include <stdint.h>

#define EXTERNAL_VERSION "1" /* of the protocol */

enum {
    EXTERNAL_LINE_MAX = 4 << 20,   /* bytes of a line of its output: 16384 hosts with their keys */
    EXTERNAL_LOG_LINES_MAX = 10000 /* lines of its stderr that are logged; the others are dropped */
};

struct external_program;

/* Called with what the program prints: sentences in UTF-8, without the program's name, cut where they are too
 * long. */
struct external_listener {
    /* A note of the program, unless it repeats the last one; or that the program ended, or printed an invalid
     * line, while no request was unanswered. */
    void (*note)(void *context, const char *sentence);
    void (*log)(void *context, const char *line);      /* a line of stderr; a long one comes in pieces */
    void (*over)(void *context, const char *sentence); /* the reservation has ended, with the reason */
    void *context;
};

/* Makes a program that is not started yet. WORDS, its command ended by NULL, are borrowed. ANSWER_NS: the
 * time-out of requests. */
struct external_program *external_program_new(struct event_loop *loop, const char *const *words,
                                              int64_t answer_ns, const struct external_listener *listener);
/* Closes the program's input, and kills its process group where it still runs after 5 s. NULL is fine. */
void external_program_free(struct external_program *program);
/* The program's name in messages: its first word, without folders. */
const char *external_program_name(const struct external_program *program);

/* Starts the program and checks the version of its protocol. Does nothing where the program runs and no
 * request is unanswered; one with an unanswered request is ended first. */
int external_program_start(struct external_program *program, struct failure *failure);
/* Sends {"id": N, "do": WHAT, "name": NAME, "request": REQUEST} and waits for the answer while the loop
 * turns; the program is started first where it does not run. TIMEOUT_NS replaces ANSWER_NS; 0: no time-out;
 * negative: ANSWER_NS. *RET_ANSWER, the caller's, has a mapping as its root. -EREMOTEIO: the program answered
 * with an error, which FAILURE quotes; -EINTR: the loop was stopped; -ETIMEDOUT; -EPIPE: the program ended;
 * -EBADMSG or -EMSGSIZE: it printed no valid answer. */
int external_program_ask(struct external_program *program, const char *what, const char *name,
                         const cJSON *request, int64_t timeout_ns, struct document **ret_answer,
                         struct failure *failure);

#endif
