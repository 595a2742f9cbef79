/*
 * A program that is asked over its standard input and output, one JSON object a line (EXTERNAL.md): started
 * when it is needed, asked one request at a time, heard whenever it says something.
 *
 * It may be ended at any instant, and another one be started in its place: a request that comes while an
 * earlier one is unanswered (it was interrupted, or took too long) does that.
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
    EXTERNAL_LINE_MAX = 4 << 20,   /* bytes of a line that it prints: 16384 hosts with their keys */
    EXTERNAL_LOG_LINES_MAX = 10000 /* of its stderr that are logged */
};

struct external_program;

/* Sentences in UTF-8, without the program's name, cut where they are too long. */
struct external_listener {
    /* Not the same twice in a row. Also that it ended, or printed what nobody understands, while it owed no
     * answer. */
    void (*note)(void *context, const char *sentence);
    void (*log)(void *context, const char *line);      /* of its stderr; a long one comes in pieces */
    void (*over)(void *context, const char *sentence); /* the nodes are no longer ours */
    void *context;
};

/* WORDS, ended by NULL, are borrowed. Nothing is started yet. ANSWER_NS: how long an answer may take. */
struct external_program *external_program_new(struct event_loop *loop, const char *const *words,
                                              int64_t answer_ns, const struct external_listener *listener);
/* Ends its input; where it has not ended after 5 s, its process group is killed. NULL is fine. */
void external_program_free(struct external_program *program);
/* What it is called for people: its first word, without folders. */
const char *external_program_name(const struct external_program *program);

/* Starts it, unless it is there and owes no answer, and greets it. */
int external_program_start(struct external_program *program, struct failure *failure);
/* Sends {"id": N, "do": WHAT, "name": NAME, "request": REQUEST} and waits for the answer while the loop
 * turns. It is started before, where need be. PATIENCE_NS instead of ANSWER_NS; 0: as long as it takes;
 * negative: ANSWER_NS. *RET_ANSWER, the caller's, has a mapping as its root. -EREMOTEIO when it answered that
 * it cannot, which says why; -EINTR when the loop was stopped, -ETIMEDOUT; -EPIPE when it ended, -EBADMSG or
 * -EMSGSIZE when it printed what is no answer. */
int external_program_ask(struct external_program *program, const char *what, const char *name,
                         const cJSON *request, int64_t patience_ns, struct document **ret_answer,
                         struct failure *failure);

#endif
