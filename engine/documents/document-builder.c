#include "engine/documents/document-builder.h"

#include "engine/documents/shown-value.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void document_node_free(struct document_node *node) {
    if (!node)
        return;
    for (size_t i = 0; i < node->count; i++) {
        if (node->keys)
            document_node_free(node->keys[i]);
        document_node_free(node->items[i]);
    }
    free(node->keys);
    free(node->items);
    free(node->text);
    free(node);
}

void document_node_cleanup(struct document_node **node) {
    document_node_free(*node);
}

int document_builder_node(struct document_builder *builder, enum document_kind kind, size_t line,
                          size_t column, struct document_node **ret) {
    if (builder->node_count == DOCUMENT_NODES_MOST)
        return failure_input(builder->failure, builder->file, line, column,
                             "more than %d values (aliases count as what they stand for)",
                             DOCUMENT_NODES_MOST);
    struct document_node *node = xcalloc(1, sizeof *node);
    node->kind = kind;
    node->line = (uint32_t)line;
    node->column = (uint32_t)column;
    builder->node_count++;
    *ret = node;
    return 0;
}

int document_builder_text(struct document_builder *builder, struct document_node *node, const char *bytes,
                          size_t length) {
    if (memchr(bytes, '\0', length))
        return failure_input(builder->failure, builder->file, node->line, node->column,
                             "the text holds a NUL");
    node->text = xstrndup(bytes, length);
    return 0;
}

/* Collections have room for 4, 8, 16, ... children: they are full when they hold just as many. */
static bool is_full(size_t count) {
    return count == 0 || (count >= 4 && (count & (count - 1)) == 0);
}

static bool grow(struct document_node ***list, size_t count) {
    size_t room = count < 4 ? 4 : 2 * count;
    struct document_node **grown = realloc(*list, room * sizeof(struct document_node *));
    if (!grown)
        return false;
    *list = grown;
    return true;
}

int document_builder_add(struct document_builder *builder, struct document_node *collection,
                         struct document_node *key, struct document_node *item) {
    if (is_full(collection->count) && ((key && !grow(&collection->keys, collection->count)) ||
                                       !grow(&collection->items, collection->count)))
        return failure_memory(builder->failure);
    if (key)
        collection->keys[collection->count] = key;
    collection->items[collection->count++] = item;
    return 0;
}

static int refuse_duplicate(struct document_builder *builder, const struct document_node *first,
                            const struct document_node *second) {
    return failure_input(builder->failure, builder->file, second->line, second->column,
                         "key %s is written twice, the first time in line %u",
                         shown_value(second->text, strlen(second->text)).text, first->line);
}

struct keyed {
    const struct document_node *key;
    size_t position;
};

static int compare_keyed(const void *a, const void *b) {
    const struct keyed *left = a, *right = b;
    int order = strcmp(left->key->text, right->key->text);
    if (order != 0)
        return order;
    return left->position < right->position ? -1 : left->position > right->position;
}

/* Sorting, unlike a hash table, cannot be made slow by keys that were chosen for it. */
static int check_many_keys(struct document_builder *builder, const struct document_node *mapping) {
    cleanup_free struct keyed *sorted = xcalloc(mapping->count, sizeof *sorted);
    for (size_t i = 0; i < mapping->count; i++)
        sorted[i] = (struct keyed){mapping->keys[i], i};
    qsort(sorted, mapping->count, sizeof *sorted, compare_keyed);
    size_t first = 0, second = mapping->count;
    for (size_t i = 1; i < mapping->count; i++)
        if (strcmp(sorted[i - 1].key->text, sorted[i].key->text) == 0 && sorted[i].position < second) {
            first = sorted[i - 1].position;
            second = sorted[i].position;
        }
    if (second < mapping->count)
        return refuse_duplicate(builder, mapping->keys[first], mapping->keys[second]);
    return 0;
}

int document_builder_check_keys(struct document_builder *builder, const struct document_node *mapping) {
    if (mapping->count > 8)
        return check_many_keys(builder, mapping);
    for (size_t second = 1; second < mapping->count; second++)
        for (size_t first = 0; first < second; first++)
            if (strcmp(mapping->keys[first]->text, mapping->keys[second]->text) == 0)
                return refuse_duplicate(builder, mapping->keys[first], mapping->keys[second]);
    return 0;
}

int document_builder_check_depth(struct document_builder *builder, size_t level, size_t line, size_t column) {
    if (level <= DOCUMENT_DEPTH_MOST)
        return 0;
    return failure_input(builder->failure, builder->file, line, column, "nested deeper than %d levels",
                         DOCUMENT_DEPTH_MOST);
}

int document_builder_copy(struct document_builder *builder, const struct document_node *source, size_t depth,
                          struct document_node **ret) {
    int r = document_builder_check_depth(builder, depth, source->line, source->column);
    if (r < 0)
        return r;
    cleanup_document_node struct document_node *copy = NULL;
    r = document_builder_node(builder, source->kind, source->line, source->column, &copy);
    if (r == 0 && source->text)
        r = document_builder_text(builder, copy, source->text, strlen(source->text));
    for (size_t i = 0; r == 0 && i < source->count; i++) {
        cleanup_document_node struct document_node *key = NULL, *item = NULL;
        if (source->keys)
            r = document_builder_copy(builder, source->keys[i], depth + 1, &key);
        if (r == 0)
            r = document_builder_copy(builder, source->items[i], depth + 1, &item);
        if (r == 0)
            r = document_builder_add(builder, copy, key, item);
        if (r == 0)
            key = item = NULL;
    }
    if (r < 0)
        return r;
    *ret = take_pointer(copy);
    return 0;
}

void document_place(const char *bytes, size_t offset, size_t *ret_line, size_t *ret_column) {
    size_t line = 1, column = 1;
    for (size_t i = 0; i < offset; i++) {
        if (bytes[i] == '\n') {
            line++;
            column = 1;
        } else {
            column += ((unsigned char)bytes[i] & 0xc0) != 0x80;
        }
    }
    *ret_line = line;
    *ret_column = column;
}

int document_check_bytes(const char *file, const char *bytes, size_t length, size_t most,
                         struct failure *failure) {
    size_t line, column;
    if (length > most)
        return failure_input(failure, file, 0, 0, "%zu bytes, expected at most %zu", length, most);
    const char *nul = length ? memchr(bytes, '\0', length) : NULL;
    size_t invalid = text_invalid_utf8(bytes, length);
    if (nul && (size_t)(nul - bytes) < invalid) {
        document_place(bytes, (size_t)(nul - bytes), &line, &column);
        return failure_input(failure, file, line, column, "a NUL byte, expected text");
    }
    if (invalid < length) {
        document_place(bytes, invalid, &line, &column);
        return failure_input(failure, file, line, column,
                             "byte 0x%02x is not UTF-8 here, expected UTF-8 text",
                             (unsigned)(unsigned char)bytes[invalid]);
    }
    return 0;
}

size_t document_byte_order_mark(const char *bytes, size_t length) {
    return length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0 ? 3 : 0;
}

int document_new(const char *file, struct document_node *root, struct document_arena *arena,
                 struct document **ret, struct failure *failure) {
    struct document *document = calloc(1, sizeof *document);
    char *name = strdup(file);
    if (!document || !name) {
        free(document);
        free(name);
        if (!arena)
            document_node_free(root);
        document_arena_free(arena);
        return failure_memory(failure);
    }
    *document = (struct document){.file = name, .root = root, .arena = arena};
    *ret = document;
    return 0;
}
