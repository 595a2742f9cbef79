/*
 * The parts of binding an experiment, one file each. Private to this room; experiment.h is what others see.
 */
#ifndef ASSAY_RUN_EXPERIMENT_BIND_H
#define ASSAY_RUN_EXPERIMENT_BIND_H

#include "engine/run/experiment.h"

/* Whether KEY may name WHAT ("a factor"), and whether nothing else of the experiment has that name yet. */
int experiment_check_name(const struct document *document, const struct document_node *key, const char *what,
                          struct failure *failure);
int experiment_check_name_is_free(const struct experiment *experiment, const struct document *document,
                                  const struct document_node *key, struct failure *failure);
/* At most EXPERIMENT_NAMES_MOST of WHAT ("factors") in NODE. */
int experiment_check_count(const struct document *document, const struct document_node *node,
                           const char *what, struct failure *failure);

/* Each binds one key of an experiment, in this order (later ones look at earlier ones); NODE may be NULL, but
 * not that of the responses. What was bound before a failure is experiment_free's. */
int experiment_bind_factors(struct experiment *experiment, const struct document *document,
                            const struct document_node *node, struct failure *failure);
int experiment_bind_responses(struct experiment *experiment, const struct document *document,
                              const struct document_node *node, struct failure *failure);
int experiment_bind_options(struct experiment *experiment, const struct document *document,
                            const struct document_node *node, struct failure *failure);

struct experiment_option *experiment_find_option(const struct experiment *experiment, const char *name);
/* Frees what they hold. */
void experiment_responses_clear(struct experiment *experiment);
void experiment_options_clear(struct experiment *experiment);

#endif
