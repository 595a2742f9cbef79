/*
 * Members of a model file while it is read: each as what it must be, or a refusal with its place. Used by
 * model.c and model-part.c alone.
 */
#ifndef ASSAY_PLUGIN_MODEL_READING_H
#define ASSAY_PLUGIN_MODEL_READING_H

#include "engine/documents/document.h"
#include "engine/foundation/failure.h"

#include <stdint.h>

struct reading {
    const struct document *document;
    struct failure *failure;
    /* Hears what is inconsistent but can be read, instead of refusing it; NULL: it is refused. */
    int (*doubt)(void *context, size_t line, size_t column, const char *sentence);
    void *context;
};

/* "'KEY' is missing or is not EXPECTED", at NODE. */
int reading_refuse(const struct reading *reading, const struct document_node *node, const char *key,
                   const char *expected);
/* The same of a member that is there and of the right shape: what reading goes on from when somebody hears
 * doubts. */
int reading_doubt(const struct reading *reading, const struct document_node *node, const char *key,
                  const char *expected);
int reading_need(const struct reading *reading, const struct document_node *node, const char *key,
                 enum document_kind kind, const struct document_node **ret);
int reading_text(const struct reading *reading, const struct document_node *node, const char *key,
                 const char **ret);
int reading_number(const struct reading *reading, const struct document_node *node, const char *key,
                   double *ret);
int reading_whole(const struct reading *reading, const struct document_node *node, const char *key,
                  int64_t minimum, int64_t maximum, int64_t *ret);
/* NULL where it is missing or null. */
int reading_may_text(const struct reading *reading, const struct document_node *node, const char *key,
                     const char **ret);
/* NaN where it is null. */
int reading_may_number(const struct reading *reading, const struct document_node *node, const char *key,
                       double *ret);
/* NODE itself, an entry of the list KEY, as a number. */
int reading_entry(const struct reading *reading, const struct document_node *node, const char *key,
                  double *ret);
/* The list of COUNT numbers at KEY; the caller frees. */
int reading_numbers(const struct reading *reading, const struct document_node *node, const char *key,
                    size_t count, double **ret);

#endif
