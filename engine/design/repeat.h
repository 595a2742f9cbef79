/*
 * What a design says about stopping when a row is known well enough:
 *
 *     repeat: {until: {ci: 2%, at-most: 50}}
 *     repeat:
 *       until:
 *         ci: 2%                  # half width of the confidence interval of the row's mean, relative to it
 *         confidence: 95%         # default
 *         at-least: 2             # repetitions before that is asked; default 2
 *         at-most: 50             # repetitions, whatever the interval is
 *         between: [node, block]  # what the mean is taken over; default
 *         response: duration      # default: that of the experiment's model, or else its first
 *
 * Repetitions within one process are not independent of each other: what the process was given (its pages,
 * its place in memory, how the machine stood) moves them all. So the mean of a row is one over groups, each
 * of which is the mean of its measurements: `between: [block]` has a group a repetition, all nodes together;
 * `[node]` one a node, all repetitions together; `[node, block]` one for each node in each repetition. Every
 * repetition is a round of blocks of its own (order.h), for which all processes are started anew.
 */
#ifndef ASSAY_DESIGN_REPEAT_H
#define ASSAY_DESIGN_REPEAT_H

#include "engine/documents/document.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { DESIGN_BETWEEN_NODE = 1, DESIGN_BETWEEN_BLOCK = 2 };

struct design_repeat_place {
    size_t line, column;
};

/* `wanted` is false in zeroed memory: the design has no `repeat`. */
struct design_repeat {
    bool wanted;
    double ci, confidence; /* fractions */
    uint64_t at_least, at_most;
    unsigned between; /* DESIGN_BETWEEN_NODE | DESIGN_BETWEEN_BLOCK */
    char *response;   /* owned; NULL: not said */
    /* Places in the document, for messages: of `repeat` and of three members (of `repeat` where a member
     * is left out). */
    struct design_repeat_place place, at_most_place, between_place, response_place;
};

/* Reads NODE, the value of `repeat:`. Refused, with the place: members that are unknown, missing, of the
 * wrong type or out of range. */
int design_repeat_bind(const struct document *document, const struct document_node *node,
                       struct design_repeat *ret, struct failure *failure);
void design_repeat_clear(struct design_repeat *repeat);

#endif
