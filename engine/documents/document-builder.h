/*
 * Building a document's tree, shared by the readers of YAML and JSON: limits, collections, duplicate keys,
 * and the checks on raw bytes. Internal to this room.
 */
#ifndef ASSAY_DOCUMENTS_DOCUMENT_BUILDER_H
#define ASSAY_DOCUMENTS_DOCUMENT_BUILDER_H

#include "engine/documents/document.h"
#include "engine/foundation/failure.h"

#include <obstack.h>

struct document_builder {
    const char *file;
    struct failure *failure;
    struct obstack *memory; /* the document's: what is made is freed with it */
    int error;              /* the first one: what is built after it is not used */
    size_t node_count, nodes_max;
    /* The children of collections that are not complete, those of the innermost last: a key before each value
     * of a mapping. */
    struct document_node **open;
    size_t open_count, open_capacity;
};

/* FILE must outlive the builder. End it with document_builder_finish(). */
struct document_builder document_builder_begin(const char *file, size_t nodes_max, struct failure *failure);
/* Returns the builder's error, with the document in *RET if that is 0, and everything freed if not. */
int document_builder_finish(struct document_builder *builder, struct document_node *root,
                            struct document **ret);

/* A new node; beyond the limits on nodes and on depth it is refused at its place. LEVEL is 1 for the root,
 * and one more for each collection that it is in. */
struct document_node *document_builder_node(struct document_builder *builder, enum document_kind kind,
                                            size_t level, size_t line, size_t column);
/* Gives a scalar its text. */
void document_builder_text(struct document_builder *builder, struct document_node *node, const char *bytes,
                           size_t length);
/* Adds a child, or a key, to the innermost collection. */
void document_builder_push(struct document_builder *builder, struct document_node *node);
/* What was pushed since open_count was FIRST becomes the children of COLLECTION. Refuses the first key of a
 * mapping that is written twice. */
void document_builder_close(struct document_builder *builder, struct document_node *collection, size_t first);
/* Counts what is in NODE once more, for the same will also be in a node at LEVEL. */
void document_builder_count_again(struct document_builder *builder, const struct document_node *node,
                                  size_t level);

/* Refuses more than MOST bytes, NULs and invalid UTF-8, with the place. */
int document_check_bytes(const char *file, const char *bytes, size_t length, size_t most,
                         struct failure *failure);
/* Length of a byte order mark that BYTES begin with: 3 or 0. */
size_t document_byte_order_mark(const char *bytes, size_t length);

/* Where a byte is: lines end at a newline, columns count characters, both from 1. */
struct document_place {
    const char *at;
    size_t line, column;
};
/* From the first byte of a text, {bytes, 1, 1}, or from a byte before TO. */
void document_place_move(struct document_place *place, const char *to);

#endif
