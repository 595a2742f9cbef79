/*
 * JSON into a document. cJSON parses and decodes the strings; beside it the text itself is walked by the
 * letter of RFC 8259, for three things that cJSON does not give: places, the literals of numbers, and
 * strictness (it takes leading zeros, control characters in strings and duplicate keys).
 */
#include "engine/documents/document-builder.h"
#include "engine/documents/number-literal.h"

#include <cjson/cJSON.h>
#include <stdlib.h>
#include <string.h>

/* cJSON copies a number into 64 bytes before it reads it. */
enum { NUMBER_LENGTH_MOST = 63 };

struct walk {
    struct document_builder builder;
    const char *at, *end;
    /* The last place asked for: places are asked for in rising order, so each byte is counted once. */
    const char *placed;
    size_t line, column;
};

static void place(struct walk *walk, const char *at) {
    for (; walk->placed < at; walk->placed++) {
        if (*walk->placed == '\n') {
            walk->line++;
            walk->column = 1;
        } else {
            walk->column += ((unsigned char)*walk->placed & 0xc0) != 0x80;
        }
    }
}

/* What stands at walk->at is not what was EXPECTED. */
static int unexpected(struct walk *walk, const char *expected) {
    struct failure *failure = walk->builder.failure;
    const char *file = walk->builder.file;
    place(walk, walk->at);
    if (walk->at == walk->end)
        return failure_input(failure, file, walk->line, walk->column, "the text ends here, expected %s",
                             expected);
    unsigned char byte = (unsigned char)*walk->at;
    if (byte < ' ' || byte == 0x7f)
        return failure_input(failure, file, walk->line, walk->column, "control character 0x%02x, expected %s",
                             byte, expected);
    int length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4; /* the text is known to be UTF-8 */
    return failure_input(failure, file, walk->line, walk->column, "'%.*s', expected %s", length, walk->at,
                         expected);
}

static void skip_blanks(struct walk *walk) {
    while (walk->at < walk->end &&
           (*walk->at == ' ' || *walk->at == '\n' || *walk->at == '\t' || *walk->at == '\r'))
        walk->at++;
}

static bool take(struct walk *walk, char character) {
    if (walk->at == walk->end || *walk->at != character)
        return false;
    walk->at++;
    return true;
}

/* ---- Strings ----------------------------------------------------------------------------------- */

/* The four hexadecimal digits at AT, or -1. */
static int hexadecimal(const struct walk *walk, const char *at) {
    int value = 0;
    if (walk->end - at < 4)
        return -1;
    for (int i = 0; i < 4; i++) {
        char c = at[i];
        int digit = c >= '0' && c <= '9'   ? c - '0'
                    : c >= 'a' && c <= 'f' ? c - 'a' + 10
                    : c >= 'A' && c <= 'F' ? c - 'A' + 10
                                           : -1;
        if (digit < 0)
            return -1;
        value = 16 * value + digit;
    }
    return value;
}

/* Over an escape; walk->at is at the backslash. */
static int skip_escape(struct walk *walk) {
    const char *backslash = walk->at++;
    if (walk->at == walk->end || !strchr("\"\\/bfnrtu", *walk->at))
        return unexpected(walk, "one of the escapes \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    if (*walk->at++ != 'u')
        return 0;
    int unit = hexadecimal(walk, walk->at);
    if (unit < 0)
        return unexpected(walk, "four hexadecimal digits");
    walk->at = backslash;
    if (unit == 0)
        return unexpected(walk, "text without NULs (\\u0000)");
    if (unit >= 0xdc00 && unit <= 0xdfff)
        return unexpected(walk, "the first half of a surrogate pair before the second");
    walk->at += 6;
    if (unit < 0xd800 || unit > 0xdbff)
        return 0;
    int second = walk->end - walk->at >= 2 && walk->at[0] == '\\' && walk->at[1] == 'u'
                     ? hexadecimal(walk, walk->at + 2)
                     : -1;
    if (second < 0xdc00 || second > 0xdfff)
        return unexpected(walk, "the second half of a surrogate pair");
    walk->at += 6;
    return 0;
}

/* Over a string; walk->at is at its quote. */
static int skip_string(struct walk *walk) {
    walk->at++;
    for (;;) {
        while (walk->at < walk->end && *walk->at != '"' && *walk->at != '\\' &&
               (unsigned char)*walk->at >= ' ')
            walk->at++;
        if (take(walk, '"'))
            return 0;
        if (walk->at == walk->end || *walk->at != '\\')
            return unexpected(walk, "'\"' at the end of the string");
        int r = skip_escape(walk);
        if (r < 0)
            return r;
    }
}

/* ---- Values ------------------------------------------------------------------------------------ */

static int walk_value(struct walk *walk, const cJSON *item, size_t level, struct document_node **ret);

static int start_node(struct walk *walk, enum document_kind kind, struct document_node **ret) {
    place(walk, walk->at);
    return document_builder_node(&walk->builder, kind, walk->line, walk->column, ret);
}

/* A string as a node. DECODED is cJSON's reading of it, NULL when it could not read the text. */
static int walk_string(struct walk *walk, const char *decoded, struct document_node **ret) {
    cleanup_document_node struct document_node *node = NULL;
    int r = start_node(walk, DOCUMENT_TEXT, &node);
    if (r == 0)
        r = skip_string(walk);
    if (r == 0)
        r = document_builder_text(&walk->builder, node, decoded ? decoded : "",
                                  decoded ? strlen(decoded) : 0);
    if (r < 0)
        return r;
    *ret = take_pointer(node);
    return 0;
}

static int walk_number(struct walk *walk, struct document_node **ret) {
    size_t length = number_literal_json_length(walk->at, (size_t)(walk->end - walk->at));
    if (length == 0)
        return unexpected(walk, "a number as JSON writes it, such as -1.5e3");
    if (length > NUMBER_LENGTH_MOST)
        return unexpected(walk, "a number of at most 63 characters");
    cleanup_document_node struct document_node *node = NULL;
    int r = start_node(walk, DOCUMENT_NUMBER, &node);
    if (r == 0)
        r = document_builder_text(&walk->builder, node, walk->at, length);
    if (r < 0)
        return r;
    walk->at += length;
    *ret = take_pointer(node);
    return 0;
}

static int walk_word(struct walk *walk, struct document_node **ret) {
    static const struct {
        const char *word;
        enum document_kind kind;
    } words[] = {{"null", DOCUMENT_NULL}, {"true", DOCUMENT_BOOLEAN}, {"false", DOCUMENT_BOOLEAN}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].word);
        if ((size_t)(walk->end - walk->at) < length || memcmp(walk->at, words[i].word, length) != 0)
            continue;
        cleanup_document_node struct document_node *node = NULL;
        int r = start_node(walk, words[i].kind, &node);
        if (r == 0)
            r = document_builder_text(&walk->builder, node, words[i].word, length);
        if (r < 0)
            return r;
        walk->at += length;
        *ret = take_pointer(node);
        return 0;
    }
    return unexpected(walk, "a value");
}

/* A member of an object, or an item of an array. */
static int walk_child(struct walk *walk, const cJSON *item, size_t level, struct document_node *collection) {
    cleanup_document_node struct document_node *key = NULL, *value = NULL;
    int r = 0;
    if (collection->kind == DOCUMENT_MAPPING) {
        if (walk->at == walk->end || *walk->at != '"')
            return unexpected(walk, "a key in double quotes");
        r = walk_string(walk, item ? item->string : NULL, &key);
        if (r < 0)
            return r;
        skip_blanks(walk);
        if (!take(walk, ':'))
            return unexpected(walk, "':' after the key");
        skip_blanks(walk);
    }
    r = walk_value(walk, item, level + 1, &value);
    if (r == 0)
        r = document_builder_add(&walk->builder, collection, key, value);
    if (r == 0)
        key = value = NULL;
    return r;
}

static int walk_collection(struct walk *walk, const cJSON *item, size_t level, struct document_node **ret) {
    bool is_object = *walk->at == '{';
    char close = is_object ? '}' : ']';
    cleanup_document_node struct document_node *node = NULL;
    int r = start_node(walk, is_object ? DOCUMENT_MAPPING : DOCUMENT_SEQUENCE, &node);
    if (r == 0)
        r = document_builder_check_depth(&walk->builder, level, walk->line, walk->column);
    if (r < 0)
        return r;
    walk->at++;
    skip_blanks(walk);
    const cJSON *child = item ? item->child : NULL;
    for (bool more = !take(walk, close); more;) {
        r = walk_child(walk, child, level, node);
        if (r < 0)
            return r;
        child = child ? child->next : NULL;
        skip_blanks(walk);
        if (take(walk, close))
            more = false;
        else if (!take(walk, ','))
            return unexpected(walk, is_object ? "',' or '}'" : "',' or ']'");
        else
            skip_blanks(walk);
    }
    r = is_object ? document_builder_check_keys(&walk->builder, node) : 0;
    if (r < 0)
        return r;
    *ret = take_pointer(node);
    return 0;
}

/* The value at walk->at, which cJSON read as ITEM, at LEVEL; recursion ends with DOCUMENT_DEPTH_MOST. */
static int walk_value(struct walk *walk, const cJSON *item, size_t level, struct document_node **ret) {
    if (walk->at == walk->end)
        return unexpected(walk, "a value");
    switch (*walk->at) {
    case '{':
    case '[':
        return walk_collection(walk, item, level, ret);
    case '"':
        return walk_string(walk, item ? item->valuestring : NULL, ret);
    case '-':
    case '+':
    case '.':
        return walk_number(walk, ret);
    default:
        return *walk->at >= '0' && *walk->at <= '9' ? walk_number(walk, ret) : walk_word(walk, ret);
    }
}

static int walk_text(struct walk *walk, const cJSON *tree, struct document_node **ret) {
    skip_blanks(walk);
    cleanup_document_node struct document_node *root = NULL;
    int r = walk_value(walk, tree, 1, &root);
    if (r < 0)
        return r;
    skip_blanks(walk);
    if (walk->at < walk->end)
        return unexpected(walk, "nothing after the value");
    /* The walk refuses all that cJSON refuses, so that only memory is left. */
    if (!tree)
        return failure_memory(walk->builder.failure);
    *ret = take_pointer(root);
    return 0;
}

int document_parse_json(const char *name, const char *bytes, size_t length, struct document **ret,
                        struct failure *failure) {
    int r = document_check_bytes(name, bytes, length, failure);
    if (r < 0)
        return r;
    size_t mark = document_byte_order_mark(bytes, length);
    /* cJSON finds the end of the text by a NUL inside the length that it is told. */
    cleanup_free char *copy = malloc(length - mark + 1);
    if (!copy)
        return failure_memory(failure);
    memcpy(copy, bytes + mark, length - mark);
    copy[length - mark] = '\0';
    cJSON *tree = cJSON_ParseWithLengthOpts(copy, length - mark + 1, NULL, 1);
    struct walk walk = {.builder = {.file = name, .failure = failure},
                        .at = copy,
                        .end = copy + length - mark,
                        .placed = copy,
                        .line = 1,
                        .column = 1};
    struct document_node *root = NULL;
    r = walk_text(&walk, tree, &root);
    cJSON_Delete(tree);
    return r < 0 ? r : document_new(name, root, ret, failure);
}
