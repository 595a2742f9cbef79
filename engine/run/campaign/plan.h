/*
 * The plan of a run: the design's rows in the order in which they will be measured, checked against the
 * experiment, with what they are expected to cost. Made before a node is touched; `--dry-run` prints it.
 */
#ifndef ASSAY_CAMPAIGN_PLAN_H
#define ASSAY_CAMPAIGN_PLAN_H

#include "engine/design/design.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/campaign.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Facts of the nodes that decide what a plan is: the least over the nodes that the run measures with. */
struct plan_facts {
    double nodes, cores; /* so many nodes; physical cores of one */
    double memory;       /* bytes of one that are available */
    bool known;          /* false: guessed, before the nodes are known */
};

struct plan {
    const struct campaign *campaign;
    struct plan_facts facts;
    bool uses_facts;       /* with other ones it would have other rows */
    bool is_tentative;     /* they are guesses that may be far off: what depends on them is not judged yet */
    struct design *design; /* one row a combination of factors */
    struct design_order *order; /* (row, repetition) of each position */
    size_t repeat_response;     /* which response decides how often a row is repeated (settling.h) */
    double *maxima;             /* of experiment->maxima, over the design */
    double memory;              /* bytes a process; 0: not stated */
    size_t ranks_per_node;      /* of the row that has most; 1 where units have no ranks */
    double *row_seconds; /* expected of one unit of each row; NULL when the experiment has no estimate */
    double seconds;      /* of one placement's whole sequence; negative: unknown */
};

/* Checks every row: ranges, conditions, and that maxima, memory and estimates are finite and not negative.
 * Rows that break a condition are refused with their place. The number of rows, their order and repetitions
 * do not depend on FACTS. While these are guessed, of nodes that are not this machine, values that are
 * computed from them are not judged. */
int plan_new(const struct campaign *campaign, const struct plan_facts *facts, struct plan **ret,
             struct failure *failure);
/* Refuses a plan whose processes on one node need more than AVAILABLE bytes of memory. WHERE: "node x". */
int plan_check_memory(const struct plan *plan, const char *where, double cores, double available,
                      struct failure *failure);
/* Checks a plan that was made with guessed facts as a run would on nodes for which they are true. */
int plan_check_guess(const struct plan *plan, struct failure *failure);
/* The facts of nodes like this machine, as many as the campaign says. */
struct plan_facts plan_guess_facts(const struct campaign *campaign);
enum { PLAN_FACTS = 3 };
extern const struct bind_field plan_fact_fields[PLAN_FACTS]; /* their names and values, in inputs.json too */
void plan_free(struct plan *plan);
void plan_cleanup(struct plan **plan); /* for the cleanup attribute */

size_t plan_positions(const struct plan *plan); /* rows times repetitions, of which there may be fewer */

/* Appends the factors of a row (plan_append_row(): all columns, controls last) as CSV fields, each with a
 * comma before it. */
int plan_append_factors(const struct plan *plan, size_t row, struct text *text);
int plan_append_row(const struct plan *plan, size_t row, struct text *text);

/* The controls that the design has columns of, counted from 0: their names, such as "turbo", and what a row
 * wants of them. All rows of a block (plan->order->blocks) want the same. */
size_t plan_control_count(const struct plan *plan);
const char *plan_control_name(const struct plan *plan, size_t i);
const char *plan_control_value(const struct plan *plan, size_t row, size_t i);
/* The controls of a row in words: "turbo off, governor performance". */
int plan_append_state(const struct plan *plan, size_t row, struct text *text);

/* The values that commands may use, besides those of the unit: options, maxima, and `cpus`, the number of
 * cores a process is given. Strings owned by the caller: plan_values_free. */
struct plan_values {
    char **names, **values;
    size_t count;
    size_t unit_from; /* where those of the block and the unit begin */
};
struct plan_values plan_values_new(const struct plan *plan, size_t cpus);
/* Sets the values of the block (its number, from 1, and its controls) and of the unit at POSITION: factors,
 * row, repetition, order. A streamed kernel measures all units of a block, so only the block's are set. They
 * replace those of an earlier call. */
void plan_values_set(struct plan_values *values, const struct plan *plan, size_t position, size_t block);
void plan_values_clear(struct plan_values *values);
struct experiment_values plan_values_view(const struct plan_values *values); /* borrowed */
/* As environment: "name=value" each, NULL-ended, for experiment_arguments_free. */
char **plan_values_environment(const struct plan_values *values);

#endif
