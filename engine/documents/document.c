#include "engine/documents/document.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"

#include <obstack.h>
#include <stdlib.h>
#include <string.h>

typedef int (*parse_function)(const char *name, const char *bytes, size_t length, struct document **ret,
                              struct failure *failure);

typedef int (*read_function)(const char *path, struct text *ret, struct failure *failure);

static int read_document(const char *path, size_t most, read_function read, parse_function parse,
                         struct document **ret, struct failure *failure) {
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, most);
    int r = read(path, &bytes, failure);
    return r < 0 ? r : parse(path, bytes.bytes, bytes.length, ret, failure);
}

int document_read_yaml(const char *path, struct document **ret, struct failure *failure) {
    return read_document(path, DOCUMENT_BYTES_MAX, file_read, document_parse_yaml, ret, failure);
}

int document_read_json(const char *path, struct document **ret, struct failure *failure) {
    return read_document(path, DOCUMENT_JSON_BYTES_MAX, file_read, document_parse_json, ret, failure);
}

int document_read_json_or_pipe(const char *path, struct document **ret, struct failure *failure) {
    return read_document(path, DOCUMENT_JSON_BYTES_MAX, file_read_or_pipe, document_parse_json, ret, failure);
}

void document_free(struct document *document) {
    if (!document)
        return;
    obstack_free(document->memory, NULL);
    free(document->memory);
    free(document->file);
    free(document);
}

void document_cleanup(struct document **document) {
    document_free(*document);
}

const struct document_node *document_get(const struct document_node *node, const char *key) {
    if (!node || node->kind != DOCUMENT_MAPPING)
        return NULL;
    for (size_t i = 0; i < node->count; i++)
        if (strcmp(node->keys[i]->text, key) == 0)
            return node->items[i];
    return NULL;
}

/* The kind of a node in words, for messages. */
const char *document_kind_name(enum document_kind kind) {
    switch (kind) {
    case DOCUMENT_NULL:
        return "nothing";
    case DOCUMENT_BOOLEAN:
        return "true or false";
    case DOCUMENT_NUMBER:
        return "a number";
    case DOCUMENT_TEXT:
        return "text";
    case DOCUMENT_SEQUENCE:
        return "a sequence";
    case DOCUMENT_MAPPING:
        return "a mapping";
    }
    return "a value";
}
