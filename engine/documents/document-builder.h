/*
 * Building a document's tree, shared by the readers of YAML and JSON: node counting, growth of collections,
 * duplicate keys, deep copies, and the checks on raw bytes. Internal to this room.
 */
#ifndef ASSAY_DOCUMENTS_DOCUMENT_BUILDER_H
#define ASSAY_DOCUMENTS_DOCUMENT_BUILDER_H

#include "engine/documents/document-arena.h"
#include "engine/documents/document.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/failure.h"

struct document_builder {
    const char *file;
    size_t node_count;
    struct failure *failure;
};

/* A new node in *RET; over DOCUMENT_NODES_MOST is refused at its place. */
int document_builder_node(struct document_builder *builder, enum document_kind kind, size_t line,
                          size_t column, struct document_node **ret);
/* Gives a scalar its text. A NUL inside is refused at the node's place. */
int document_builder_text(struct document_builder *builder, struct document_node *node, const char *bytes,
                          size_t length);
/* Adds an item to a sequence (KEY NULL) or a pair to a mapping; on success they are the collection's. */
int document_builder_add(struct document_builder *builder, struct document_node *collection,
                         struct document_node *key, struct document_node *item);
/* Refuses the first key of a mapping that is written twice. Call it once, when the mapping is complete. */
int document_builder_check_keys(struct document_builder *builder, const struct document_node *mapping);
/* A deep copy in *RET, every node of it counted; DEPTH is the level at which it will hang, the root's
 * being 1. */
int document_builder_copy(struct document_builder *builder, const struct document_node *source, size_t depth,
                          struct document_node **ret);
/* Refuses a node at a LEVEL beyond DOCUMENT_DEPTH_MOST. */
int document_builder_check_depth(struct document_builder *builder, size_t level, size_t line, size_t column);

/* Refuses more than MOST bytes, NULs and invalid UTF-8, with the place. */
int document_check_bytes(const char *file, const char *bytes, size_t length, size_t most,
                         struct failure *failure);
/* Where the byte at OFFSET is: lines end at a newline, columns count characters, both from 1. */
void document_place(const char *bytes, size_t offset, size_t *ret_line, size_t *ret_column);
/* Length of a byte order mark that BYTES begin with: 3 or 0. */
size_t document_byte_order_mark(const char *bytes, size_t length);
/* Wraps ROOT, which becomes the document's, also when this fails; ARENA has all of it, or is NULL when each
 * node is by itself. */
int document_new(const char *file, struct document_node *root, struct document_arena *arena,
                 struct document **ret, struct failure *failure);

void document_node_free(struct document_node *node);
void document_node_cleanup(struct document_node **node);
#define cleanup_document_node cleanup(document_node_cleanup)

#endif
