/*
 * The parts of binding an experiment, one file each. Private to this room; experiment.h is what others see.
 */
#ifndef ASSAY_CAMPAIGN_EXPERIMENT_BIND_H
#define ASSAY_CAMPAIGN_EXPERIMENT_BIND_H

#include "engine/run/campaign/experiment.h"

/* Whether KEY may name WHAT ("a factor"), and whether nothing else of the experiment has that name yet. */
int experiment_check_name(const struct document *document, const struct document_node *key, const char *what,
                          struct failure *failure);
int experiment_check_name_is_free(const struct experiment *experiment, const struct document *document,
                                  const struct document_node *key, struct failure *failure);
/* At most EXPERIMENT_NAMES_MOST of WHAT ("factors") in NODE. */
int experiment_check_count(const struct document *document, const struct document_node *node,
                           const char *what, struct failure *failure);

/* Each binds one key of an experiment, in this order (later ones look at earlier ones); NODE may be NULL, but
 * not that of the responses. Tables may have columns that are called as responses and options are. What was
 * bound before a failure is experiment_free's. */
int experiment_bind_factors(struct experiment *experiment, const struct document *document,
                            const struct document_node *node, struct failure *failure);
int experiment_bind_tables(struct experiment *experiment, const struct document *document,
                           const struct document_node *node, struct failure *failure);
int experiment_bind_responses(struct experiment *experiment, const struct document *document,
                              const struct document_node *node, struct failure *failure);
/* The `pass` of `run`. */
int experiment_bind_pass(struct experiment *experiment, const struct document *document,
                         const struct document_node *node, struct failure *failure);
int experiment_bind_options(struct experiment *experiment, const struct document *document,
                            const struct document_node *node, struct failure *failure);

/* One response, or one column of a table, called KEY. */
int experiment_bind_response(const struct document *document, const struct document_node *key,
                             const struct document_node *value, bool column, struct experiment_response *ret,
                             struct failure *failure);
void experiment_response_clear(struct experiment_response *response);

/* PATTERN, which stands at NODE and is that of NAME, compiles; *RET_GROUPS is how many groups it has. */
int experiment_check_pattern(const struct document *document, const struct document_node *node,
                             const char *name, const char *pattern, size_t *ret_groups,
                             struct failure *failure);

struct experiment_option *experiment_find_option(const struct experiment *experiment, const char *name);
/* Frees what they hold. */
void experiment_responses_clear(struct experiment *experiment);
void experiment_tables_clear(struct experiment *experiment);
void experiment_options_clear(struct experiment *experiment);

#endif
