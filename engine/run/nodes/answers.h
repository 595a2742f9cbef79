/*
 * Answers of many nodes, waited for together: asking a hundred nodes one after the other would take a
 * hundred round trips.
 *
 *     answers_init(&answers, set->loop, most, failure);
 *     for (...) {
 *         struct answer *answer = answers_ask(&answers, link, node, item);
 *         if (agent_link_inspect(link, on_facts, answer, &why) < 0)
 *             answers_take(answer);
 *     }
 *     r = answers_wait(&answers, failure);            on_facts() calls answers_take(answer)
 *     answers_clear(&answers);
 *
 * Private to this room.
 */
#ifndef ASSAY_NODES_ANSWERS_H
#define ASSAY_NODES_ANSWERS_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"
#include "engine/remote/link/link.h"

#include <stdbool.h>
#include <stddef.h>

struct answers;

struct answer {
    struct answers *answers;
    struct agent_link *link;
    size_t node, item; /* whatever the asker wants to know when it comes */
    bool open;
};

struct answers {
    struct event_loop *loop;
    struct answer *items;
    size_t count, open;
    void *context; /* the asker's */
};

/* For MOST questions. */
void answers_init(struct answers *answers, struct event_loop *loop, size_t most, void *context);
/* The next question, to LINK: its address is the context of the request. */
struct answer *answers_ask(struct answers *answers, struct agent_link *link, size_t node, size_t item);
/* The answer has come, or will not come. */
void answers_take(struct answer *answer);
/* Turns the loop until all have come; -EINTR, FAILURE_INTERRUPTED, when the loop is stopped. */
int answers_wait(struct answers *answers, struct failure *failure);
/* Answers that are still to come are ignored. Fine on zeroed memory. */
void answers_clear(struct answers *answers);

#endif
