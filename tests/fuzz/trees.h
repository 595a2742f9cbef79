/* What every tree that a reader made must be, and whether two are the same. */
#ifndef ASSAY_FUZZ_TREES_H
#define ASSAY_FUZZ_TREES_H

#include "engine/documents/document.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"
#include "tests/fuzz/fuzz.h"

static inline void check_failure(const char *name, int r, const struct failure *failure) {
    must(r < 0 && failure->code == r && failure->kind != FAILURE_NONE);
    must(failure->text[0] &&
         text_invalid_utf8(failure->text, strlen(failure->text)) == strlen(failure->text));
    if (failure->kind == FAILURE_INPUT)
        must(strncmp(failure->place, name, strlen(name)) == 0);
}

static inline void check_tree(const struct document_node *node, size_t level) {
    must(level <= DOCUMENT_DEPTH_MAX && node->line > 0 && node->column > 0);
    bool is_collection = node->kind == DOCUMENT_SEQUENCE || node->kind == DOCUMENT_MAPPING;
    must(is_collection == !node->text);
    must(!node->text || text_invalid_utf8(node->text, strlen(node->text)) == strlen(node->text));
    for (size_t i = 0; i < node->count; i++) {
        if (node->kind == DOCUMENT_MAPPING) {
            check_tree(node->keys[i], level + 1);
            must(document_get(node, node->keys[i]->text) == node->items[i]);
        }
        check_tree(node->items[i], level + 1);
    }
}

/* Whether B is A as JSON tells it: the same shape and texts, keys as text, numbers equal in value. */
static inline bool is_same(const struct document_node *a, const struct document_node *b) {
    if (a->kind != b->kind || a->count != b->count)
        return false;
    double x, y;
    if (a->kind == DOCUMENT_NUMBER && strcmp(a->text, b->text) != 0) {
        bool has_x = number_parse_double(a->text, strlen(a->text), &x);
        bool has_y = number_parse_double(b->text, strlen(b->text), &y);
        if (has_x != has_y || (has_x && memcmp(&x, &y, sizeof x) != 0))
            return false;
    }
    if (a->kind == DOCUMENT_TEXT && strcmp(a->text, b->text) != 0)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if ((a->keys && strcmp(a->keys[i]->text, b->keys[i]->text) != 0) ||
            !is_same(a->items[i], b->items[i]))
            return false;
    return true;
}

static inline size_t longest_number(const struct document_node *node) {
    size_t longest = node->kind == DOCUMENT_NUMBER ? strlen(node->text) : 0;
    for (size_t i = 0; i < node->count; i++) {
        size_t length = longest_number(node->items[i]);
        longest = length > longest ? length : longest;
    }
    return longest;
}

/* A tree written as JSON must read back the same. Numbers of more than 60 characters may be refused
 * (document.h). */
static inline void check_json_of(const struct document_node *root, bool pretty) {
    cJSON *tree = json_from_node(root);
    must(tree != NULL);
    struct text text;
    text_init(&text, 256 << 20);
    must(json_print(tree, pretty, &text) == 0);
    must(text_invalid_utf8(text.bytes, text.length) == text.length);
    struct document *again = NULL;
    struct failure failure = {0};
    int r = document_parse_json("again", text.bytes, text.length, &again, &failure);
    must(r == 0 ? is_same(root, again->root) : longest_number(root) > 60);
    document_free(again);
    text_clear(&text);
    cJSON_Delete(tree);
}

#endif
