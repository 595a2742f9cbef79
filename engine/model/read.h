/*
 * Reads a model file (MODEL.md of the interface, format 2) into a struct model. Members that this version
 * does not know are passed over. What is not as MODEL.md has it, or cannot be evaluated (segments out of
 * order, a mixture whose weights do not add up to 1), is refused with its place: FAILURE_INPUT. check.h says
 * what else may be wrong.
 */
#ifndef ASSAY_MODEL_READ_H
#define ASSAY_MODEL_READ_H

#include "engine/documents/document.h"
#include "engine/model/model.h"

int model_file_read(const char *path, struct model **ret, struct failure *failure);
/* The same from memory; NAME is for messages. */
int model_file_parse(const char *name, const char *bytes, size_t length, struct model **ret,
                     struct failure *failure);

/* A finding about a model: an error, or, as a warning, something worth knowing. */
struct model_finding {
    size_t line, column; /* from 1; 0: not known */
    bool warning;
    char *sentence;
};

/* The first 1000 are kept; `error_count` is of all. */
struct model_findings {
    struct model_finding *items;
    size_t count, error_count;
};

/* Adds one, at NODE if that is not NULL. */
void model_findings_add(struct model_findings *findings, const struct document_node *node, bool warning,
                        const char *format, ...) __attribute__((format(printf, 4, 5)));
void model_findings_clear(struct model_findings *findings);

/* The model of a document. With FINDINGS, whatever would be refused is put there instead and reading
 * continues: such a model is to be looked at, not to be evaluated. Only what is no model file of this format
 * is refused then. */
int model_from_document(const struct document *document, struct model_findings *findings, struct model **ret,
                        struct failure *failure);

#endif
