/*
 * What an experiment declares by name: its factors, responses, tables, options and maxima. Private to this
 * room; experiment.h is what others see.
 */
#ifndef ASSAY_CAMPAIGN_EXPERIMENT_COLUMNS_H
#define ASSAY_CAMPAIGN_EXPERIMENT_COLUMNS_H

#include "engine/run/campaign/experiment.h"

/* An experiment that is being bound, from DOCUMENT. */
struct experiment_binding {
    struct experiment *experiment;
    const struct document *document;
    const char *base_folder; /* that paths are relative to */
    struct failure *failure;
};

/* Refuses NODE, of what is bound, with a sentence. */
#define experiment_refuse(binding, node, ...)                                                                \
    bind_refuse((binding)->document, node, (binding)->failure, __VA_ARGS__)
/* Binds NODE as an expression over NAMES; WHAT is its name in messages. */
int experiment_bind_expression(const struct experiment_binding *binding, const struct document_node *node,
                               const char *what, const char *const *names, size_t count,
                               struct expression **ret);
/* The .expect of a bind_field for units. */
const char *experiment_expect_unit(const char *key, const char *unit);
/* Replaces UNIT, as people write it, by its UCUM code; NULL becomes FALLBACK. */
void experiment_use_unit_code(const char **unit, const char *fallback);
/* The names of the factors, and room for MORE; the caller frees the array only. */
const char **experiment_factor_names(const struct experiment *experiment, size_t more);

/* The kinds of items, in the order in which they are bound: later kinds are checked against earlier ones.
 * Columns of tables may have names of responses and options. */
enum experiment_items {
    EXPERIMENT_FACTORS,
    EXPERIMENT_TABLES,
    EXPERIMENT_RESPONSES,
    EXPERIMENT_OPTIONS,
    EXPERIMENT_MAXIMA,
};
/* Binds one kind of items of an experiment, ROOT. After a failure experiment_columns_clear() frees what was
 * bound. */
int experiment_bind_items(const struct experiment_binding *binding, enum experiment_items items,
                          const struct document_node *root);
void experiment_columns_clear(struct experiment *experiment);

#endif
