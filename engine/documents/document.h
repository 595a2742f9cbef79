/*
 * A document: YAML or JSON as a tree of nodes, each with its place, so that every complaint about a value
 * can say file:line:column. Scalars keep their literal text; bind.h turns them into typed values.
 *
 * Refused while reading, with the place: duplicate keys, keys that are not plain scalars, an alias inside
 * the node that it names, more than DOCUMENT_NODES_MAX nodes (after aliases are copied), nesting deeper
 * than DOCUMENT_DEPTH_MAX, NUL bytes, invalid UTF-8, more than DOCUMENT_BYTES_MAX bytes, more than one
 * document in a file, an empty file (JSON has limits of its own, DOCUMENT_JSON_...). Of YAML also: merge keys
 * ('<<'), tags other than the core schema's, more than DOCUMENT_ANCHORS_MAX anchors. Of JSON also: whatever
 * RFC 8259 does not allow, and numbers longer than 63 characters. A byte order mark is skipped.
 *
 * An alias becomes a copy of the node that it names: the copy's place is the alias's, those of the nodes in
 * it are where they were written.
 */
#ifndef ASSAY_DOCUMENTS_DOCUMENT_H
#define ASSAY_DOCUMENTS_DOCUMENT_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    DOCUMENT_BYTES_MAX = 64 << 20,
    DOCUMENT_NODES_MAX = 4 << 20,
    DOCUMENT_DEPTH_MAX = 64, /* the root is level 1 */
    DOCUMENT_ANCHORS_MAX = 1024,
    DOCUMENT_JSON_BYTES_MAX = 128 << 20, /* models of many groups are large */
    DOCUMENT_JSON_NODES_MAX = 8 << 20,
};

enum document_kind {
    DOCUMENT_NULL,    /* null, ~ or nothing */
    DOCUMENT_BOOLEAN, /* true or false (YAML 1.2 core: yes, no, on, off are text) */
    DOCUMENT_NUMBER,  /* a decimal number; its literal is in text */
    DOCUMENT_TEXT,    /* anything else, and every quoted scalar */
    DOCUMENT_SEQUENCE,
    DOCUMENT_MAPPING,
};

struct document_node {
    enum document_kind kind;
    uint32_t line, column;        /* from 1; columns count characters */
    char *text;                   /* scalars: the literal, NUL-ended, no NUL inside; NULL for collections */
    size_t count;                 /* of items (sequence) or of pairs (mapping) */
    struct document_node **keys;  /* mapping: DOCUMENT_TEXT or other scalar nodes, in written order */
    struct document_node **items; /* sequence: the items; mapping: the values */
};

struct document {
    char *file; /* as given, for messages */
    struct document_node *root;
    struct obstack *memory; /* has all nodes and their texts */
};

/* Read from a file, or parse LENGTH bytes known to the user as NAME. On success *RET is the caller's. */
int document_read_yaml(const char *path, struct document **ret, struct failure *failure);
int document_parse_yaml(const char *name, const char *bytes, size_t length, struct document **ret,
                        struct failure *failure);
int document_read_json(const char *path, struct document **ret, struct failure *failure);
int document_read_json_or_pipe(const char *path, struct document **ret, struct failure *failure); /* file.h */
int document_parse_json(const char *name, const char *bytes, size_t length, struct document **ret,
                        struct failure *failure);
void document_free(struct document *document);
void document_cleanup(struct document **document); /* the same, for cleanup() */

/* The value of KEY (case counts) in a mapping, or NULL; NULL for a node that is NULL or no mapping. */
const struct document_node *document_get(const struct document_node *node, const char *key);
/* "a mapping", "a number", ... for messages: "X is %s", "expected %s". */
const char *document_kind_name(enum document_kind kind);

#endif
