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
/* NODE, which WHAT names in messages, is an expression over NAMES. */
int experiment_bind_expression(const struct experiment_binding *binding, const struct document_node *node,
                               const char *what, const char *const *names, size_t count,
                               struct expression **ret);
/* Of a unit, a bind_field's .expect. */
const char *experiment_expect_unit(const char *key, const char *unit);
/* Puts the UCUM code in place of UNIT as people write it, FALLBACK in place of NULL. */
void experiment_use_unit_code(const char **unit, const char *fallback);
/* The names of the factors, and room for MORE; the caller frees the array only. */
const char **experiment_factor_names(const struct experiment *experiment, size_t more);

/* In the order in which they are bound: later ones look at earlier ones. Tables may have columns that are
 * called as responses and options are. */
enum experiment_items {
    EXPERIMENT_FACTORS,
    EXPERIMENT_TABLES,
    EXPERIMENT_RESPONSES,
    EXPERIMENT_OPTIONS,
    EXPERIMENT_MAXIMA,
};
/* Binds that key of an experiment, ROOT. What was bound before a failure is experiment_columns_clear's. */
int experiment_bind_items(const struct experiment_binding *binding, enum experiment_items items,
                          const struct document_node *root);
void experiment_columns_clear(struct experiment *experiment);

#endif
