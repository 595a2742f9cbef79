#include "engine/documents/document-builder.h"

#include "engine/documents/shown-value.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"
#include "engine/foundation/text.h"

#include <stdlib.h>
#include <string.h>

#define obstack_chunk_alloc xmalloc
#define obstack_chunk_free free

struct document_builder document_builder_begin(const char *file, size_t nodes_max, struct failure *failure) {
    struct document_builder builder = {.file = file, .failure = failure, .nodes_max = nodes_max};
    builder.memory = xmalloc(sizeof *builder.memory);
    obstack_init(builder.memory);
    return builder;
}

/* Ends the document: 0 and *RET, or the error, and all is freed. */
int document_builder_finish(struct document_builder *builder, struct document_node *root,
                            struct document **ret) {
    struct document *document = xmalloc(sizeof *document);
    *document = (struct document){xstrdup(builder->file), root, builder->memory};
    free(builder->open);
    if (builder->error < 0)
        document_free(document);
    else
        *ret = document;
    return builder->error;
}

/* ---- Nodes */

/* Counts a node, an error if there are too many or they are nested too deeply. */
static void count_node(struct document_builder *builder, size_t level, size_t line, size_t column) {
    if (builder->error < 0)
        return;
    if (level > DOCUMENT_DEPTH_MAX)
        builder->error = failure_input(builder->failure, builder->file, line, column,
                                       "nested deeper than %d levels", DOCUMENT_DEPTH_MAX);
    else if (builder->node_count >= builder->nodes_max)
        builder->error =
            failure_input(builder->failure, builder->file, line, column,
                          "more than %zu values (aliases count as what they stand for)", builder->nodes_max);
    builder->node_count++;
}

struct document_node *document_builder_node(struct document_builder *builder, enum document_kind kind,
                                            size_t level, size_t line, size_t column) {
    count_node(builder, level, line, column);
    struct document_node *node = obstack_alloc(builder->memory, sizeof *node);
    *node = (struct document_node){.kind = kind, .line = (uint32_t)line, .column = (uint32_t)column};
    return node;
}

void document_builder_text(struct document_builder *builder, struct document_node *node, const char *bytes,
                           size_t length) {
    node->text = obstack_copy0(builder->memory, bytes, (int)length); /* documents are far smaller */
}

/* Counts the nodes below NODE once more, for an alias of it at LEVEL: what an alias stands for counts against
 * the limits. */
void document_builder_count_again(struct document_builder *builder, const struct document_node *node,
                                  size_t level) {
    builder->node_count += node->keys ? node->count : 0;
    for (size_t i = 0; builder->error == 0 && i < node->count; i++) {
        const struct document_node *item = node->items[i];
        count_node(builder, level + 1, item->line, item->column);
        if (builder->error == 0)
            document_builder_count_again(builder, item, level + 1);
    }
}

void document_builder_push(struct document_builder *builder, struct document_node *node) {
    if (builder->open_count == builder->open_capacity) {
        builder->open_capacity = builder->open_capacity > 0 ? 2 * builder->open_capacity : 64;
        builder->open = xrealloc(builder->open, builder->open_capacity * sizeof(struct document_node *));
    }
    builder->open[builder->open_count++] = node;
}

/* Refuses a key that is written twice. */
static void check_keys(struct document_builder *builder, const struct document_node *mapping) {
    cleanup(text_set_clear) struct text_set keys = {0};
    for (size_t i = 0; builder->error == 0 && i < mapping->count; i++) {
        const struct document_node *key = mapping->keys[i];
        uint32_t first = text_set_add(&keys, key->text, strlen(key->text));
        if (first < i)
            builder->error =
                failure_input(builder->failure, builder->file, key->line, key->column,
                              "key %s is written twice, the first time in line %u",
                              shown_value(key->text, strlen(key->text)).text, mapping->keys[first]->line);
    }
}

/* Moves the nodes pushed since FIRST into COLLECTION, as its items, with keys in turn for a mapping. */
void document_builder_close(struct document_builder *builder, struct document_node *collection,
                            size_t first) {
    size_t pushed = builder->open_count - first, stride = collection->kind == DOCUMENT_MAPPING ? 2 : 1;
    struct document_node **children = builder->open + first;
    builder->open_count = first;
    if (pushed == 0 || builder->error < 0)
        return;
    struct document_node **lists =
        obstack_alloc(builder->memory, (int)(pushed * sizeof(struct document_node *)));
    collection->count = pushed / stride;
    collection->items = lists;
    collection->keys = stride == 2 ? lists + collection->count : NULL;
    for (size_t i = 0; i < collection->count; i++) {
        collection->items[i] = children[stride * i + stride - 1];
        if (collection->keys)
            collection->keys[i] = children[stride * i];
    }
    if (collection->keys)
        check_keys(builder, collection);
}

/* ---- Bytes */

/* Moves PLACE on to TO, counting lines and columns. */
void document_place_move(struct document_place *place, const char *to) {
    for (; place->at < to; place->at++) {
        if (*place->at == '\n') {
            place->line++;
            place->column = 1;
        } else {
            place->column += ((unsigned char)*place->at & 0xc0) != 0x80;
        }
    }
}

/* -EINVAL if the bytes are too many, have a NUL, or are not UTF-8. */
int document_check_bytes(const char *file, const char *bytes, size_t length, size_t most,
                         struct failure *failure) {
    if (length > most)
        return failure_input(failure, file, 0, 0, "%zu bytes, expected at most %zu", length, most);
    size_t invalid = text_invalid_utf8(bytes, length);
    const char *nul = invalid ? memchr(bytes, '\0', invalid) : NULL;
    if (!nul && invalid == length)
        return 0;
    struct document_place place = {bytes, 1, 1};
    document_place_move(&place, nul ? nul : bytes + invalid);
    if (nul)
        return failure_input(failure, file, place.line, place.column, "a NUL byte, expected text");
    return failure_input(failure, file, place.line, place.column,
                         "byte 0x%02x is not UTF-8, expected UTF-8 text",
                         (unsigned)(unsigned char)bytes[invalid]);
}

size_t document_byte_order_mark(const char *bytes, size_t length) {
    return length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}
