/*
 * JSON into a document, by the letter of RFC 8259: literals of numbers are kept, and places; leading zeros,
 * control characters in strings and duplicate keys are refused. All of the tree is in one arena, since models
 * of many groups have millions of nodes.
 */
#include "engine/documents/document-arena.h"
#include "engine/documents/document-builder.h"
#include "engine/documents/number-literal.h"
#include "engine/foundation/list.h"

#include <stdlib.h>
#include <string.h>

enum {
    NUMBER_LENGTH_MOST = 63,
    KEYS_REMEMBERED = 64, /* a power of two */
    KEY_LENGTH_MOST = 32, /* of those that are */
};

/* A text that was seen as a key. */
struct remembered {
    char *text;
    size_t length;
};

struct walk {
    struct document_builder builder;
    struct document_arena *arena;
    const char *at, *end;
    /* The last place asked for: places are asked for in rising order, so each byte is counted once. */
    const char *placed;
    size_t line, column;
    /* The children of collections that are not complete, those of the innermost last: a key before each value
     * of a mapping. */
    struct document_node **open;
    size_t open_count, open_capacity;
    struct remembered keys[KEYS_REMEMBERED];
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

/* Over a string; walk->at is at its quote. *RET_ESCAPES: whether it has any. */
static int skip_string(struct walk *walk, bool *ret_escapes) {
    walk->at++;
    *ret_escapes = false;
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
        *ret_escapes = true;
    }
}

/* A character as UTF-8 at TO; returns where it ends. */
static char *put_character(char *to, uint32_t character) {
    if (character < 0x80) {
        *to++ = (char)character;
        return to;
    }
    if (character < 0x800) {
        *to++ = (char)(0xc0 | character >> 6);
    } else {
        if (character < 0x10000) {
            *to++ = (char)(0xe0 | character >> 12);
        } else {
            *to++ = (char)(0xf0 | character >> 18);
            *to++ = (char)(0x80 | (character >> 12 & 0x3f));
        }
        *to++ = (char)(0x80 | (character >> 6 & 0x3f));
    }
    *to++ = (char)(0x80 | (character & 0x3f));
    return to;
}

/* The escape at AT, behind its backslash, which skip_escape found good, to *TO; returns where it ends. */
static const char *decode_escape(const struct walk *walk, const char *at, char **to) {
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    if (*at != 'u') {
        *(*to)++ = meant[strchr(names, *at) - names];
        return at + 1;
    }
    uint32_t unit = (uint32_t)hexadecimal(walk, at + 1);
    at += 5;
    if (unit >= 0xd800 && unit <= 0xdbff) {
        unit = 0x10000 + ((unit - 0xd800) << 10) + ((uint32_t)hexadecimal(walk, at + 2) - 0xdc00);
        at += 6;
    }
    *to = put_character(*to, unit);
    return at;
}

/* No escape is shorter than what it stands for. */
static void decode(const struct walk *walk, const char *from, const char *end, char *to) {
    while (from < end)
        if (*from == '\\')
            from = decode_escape(walk, from + 1, &to);
        else
            *to++ = *from++;
    *to = '\0';
}

/* ---- Nodes ------------------------------------------------------------------------------------- */

static int start_node(struct walk *walk, enum document_kind kind, struct document_node **ret) {
    place(walk, walk->at);
    if (walk->builder.node_count == DOCUMENT_JSON_NODES_MOST)
        return failure_input(walk->builder.failure, walk->builder.file, walk->line, walk->column,
                             "more than %d values", DOCUMENT_JSON_NODES_MOST);
    struct document_node *node = document_arena_take(walk->arena, sizeof *node);
    if (!node)
        return failure_memory(walk->builder.failure);
    *node =
        (struct document_node){.kind = kind, .line = (uint32_t)walk->line, .column = (uint32_t)walk->column};
    walk->builder.node_count++;
    *ret = node;
    return 0;
}

static int set_text(struct walk *walk, struct document_node *node, const char *bytes, size_t length) {
    node->text = document_arena_take(walk->arena, length + 1);
    if (!node->text)
        return failure_memory(walk->builder.failure);
    memcpy(node->text, bytes, length);
    node->text[length] = '\0';
    return 0;
}

/* The same few keys come again and again: their text is there once. */
static int set_key(struct walk *walk, struct document_node *node, const char *bytes, size_t length) {
    if (length == 0 || length > KEY_LENGTH_MOST)
        return set_text(walk, node, bytes, length);
    size_t slot = (length * 31 + (unsigned char)bytes[0] * 7 + (unsigned char)bytes[length - 1]) &
                  (KEYS_REMEMBERED - 1);
    struct remembered *known = &walk->keys[slot];
    if (known->length == length && memcmp(known->text, bytes, length) == 0) {
        node->text = known->text;
        return 0;
    }
    int r = set_text(walk, node, bytes, length);
    if (r == 0)
        *known = (struct remembered){node->text, length};
    return r;
}

/* ---- Values ------------------------------------------------------------------------------------ */

static int walk_value(struct walk *walk, size_t level, struct document_node **ret);

static int walk_string(struct walk *walk, bool key, struct document_node **ret) {
    const char *quote = walk->at;
    bool escapes;
    int r = start_node(walk, DOCUMENT_TEXT, ret);
    r = r < 0 ? r : skip_string(walk, &escapes);
    if (r < 0)
        return r;
    size_t length = (size_t)(walk->at - quote) - 2;
    if (!escapes)
        return key ? set_key(walk, *ret, quote + 1, length) : set_text(walk, *ret, quote + 1, length);
    r = set_text(walk, *ret, quote + 1, length);
    if (r == 0)
        decode(walk, quote + 1, quote + 1 + length, (*ret)->text);
    return r;
}

static int walk_number(struct walk *walk, struct document_node **ret) {
    size_t length = number_literal_json_length(walk->at, (size_t)(walk->end - walk->at));
    if (length == 0)
        return unexpected(walk, "a number as JSON writes it, such as -1.5e3");
    if (length > NUMBER_LENGTH_MOST)
        return unexpected(walk, "a number of at most 63 characters");
    int r = start_node(walk, DOCUMENT_NUMBER, ret);
    r = r < 0 ? r : set_text(walk, *ret, walk->at, length);
    walk->at += length;
    return r;
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
        int r = start_node(walk, words[i].kind, ret);
        r = r < 0 ? r : set_key(walk, *ret, words[i].word, length);
        walk->at += length;
        return r;
    }
    return unexpected(walk, "a value");
}

static int push(struct walk *walk, struct document_node *node) {
    if (list_reserve(&walk->open, &walk->open_capacity, walk->open_count + 1, sizeof *walk->open,
                     DOCUMENT_JSON_NODES_MOST) < 0)
        return failure_memory(walk->builder.failure);
    walk->open[walk->open_count++] = node;
    return 0;
}

/* A member of an object, or an item of an array. */
static int walk_child(struct walk *walk, size_t level, bool is_object) {
    struct document_node *key = NULL, *value = NULL;
    int r = 0;
    if (is_object) {
        if (walk->at == walk->end || *walk->at != '"')
            return unexpected(walk, "a key in double quotes");
        r = walk_string(walk, true, &key);
        r = r < 0 ? r : push(walk, key);
        if (r < 0)
            return r;
        skip_blanks(walk);
        if (!take(walk, ':'))
            return unexpected(walk, "':' after the key");
        skip_blanks(walk);
    }
    r = walk_value(walk, level + 1, &value);
    return r < 0 ? r : push(walk, value);
}

/* The children that were pushed since there were FIRST become NODE's. */
static int close_collection(struct walk *walk, struct document_node *node, size_t first) {
    bool is_object = node->kind == DOCUMENT_MAPPING;
    size_t pushed = walk->open_count - first;
    struct document_node **open = walk->open + first;
    walk->open_count = first;
    if (pushed == 0)
        return 0;
    struct document_node **lists = document_arena_take(walk->arena, pushed * sizeof *lists);
    if (!lists)
        return failure_memory(walk->builder.failure);
    node->count = is_object ? pushed / 2 : pushed;
    node->keys = is_object ? lists : NULL;
    node->items = is_object ? lists + node->count : lists;
    for (size_t i = 0; i < node->count; i++) {
        if (is_object)
            node->keys[i] = open[2 * i];
        node->items[i] = is_object ? open[2 * i + 1] : open[i];
    }
    return is_object ? document_builder_check_keys(&walk->builder, node) : 0;
}

static int walk_collection(struct walk *walk, size_t level, struct document_node **ret) {
    bool is_object = *walk->at == '{';
    char close = is_object ? '}' : ']';
    size_t first = walk->open_count;
    int r = start_node(walk, is_object ? DOCUMENT_MAPPING : DOCUMENT_SEQUENCE, ret);
    if (r == 0)
        r = document_builder_check_depth(&walk->builder, level, walk->line, walk->column);
    if (r < 0)
        return r;
    walk->at++;
    skip_blanks(walk);
    for (bool more = !take(walk, close); more;) {
        r = walk_child(walk, level, is_object);
        if (r < 0)
            return r;
        skip_blanks(walk);
        if (take(walk, close))
            more = false;
        else if (!take(walk, ','))
            return unexpected(walk, is_object ? "',' or '}'" : "',' or ']'");
        else
            skip_blanks(walk);
    }
    return close_collection(walk, *ret, first);
}

/* The value at walk->at, at LEVEL; recursion ends with DOCUMENT_DEPTH_MOST. */
static int walk_value(struct walk *walk, size_t level, struct document_node **ret) {
    if (walk->at == walk->end)
        return unexpected(walk, "a value");
    switch (*walk->at) {
    case '{':
    case '[':
        return walk_collection(walk, level, ret);
    case '"':
        return walk_string(walk, false, ret);
    case '-':
    case '+':
    case '.':
        return walk_number(walk, ret);
    default:
        return *walk->at >= '0' && *walk->at <= '9' ? walk_number(walk, ret) : walk_word(walk, ret);
    }
}

static int walk_text(struct walk *walk, struct document_node **ret) {
    skip_blanks(walk);
    int r = walk_value(walk, 1, ret);
    if (r < 0)
        return r;
    skip_blanks(walk);
    return walk->at < walk->end ? unexpected(walk, "nothing after the value") : 0;
}

int document_parse_json(const char *name, const char *bytes, size_t length, struct document **ret,
                        struct failure *failure) {
    int r = document_check_bytes(name, bytes, length, DOCUMENT_JSON_BYTES_MOST, failure);
    if (r < 0)
        return r;
    size_t mark = document_byte_order_mark(bytes, length);
    struct walk walk = {.builder = {.file = name, .failure = failure},
                        .arena = document_arena_new(),
                        .at = bytes + mark,
                        .end = bytes + length,
                        .placed = bytes + mark,
                        .line = 1,
                        .column = 1};
    struct document_node *root = NULL;
    r = walk.arena ? walk_text(&walk, &root) : failure_memory(failure);
    free(walk.open);
    if (r < 0) {
        document_arena_free(walk.arena);
        return r;
    }
    return document_new(name, root, walk.arena, ret, failure);
}
