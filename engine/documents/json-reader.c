/*
 * JSON into a document, by the letter of RFC 8259: literals of numbers are kept, and places; leading zeros,
 * control characters in strings and duplicate keys are refused. (cJSON keeps neither places nor digits.)
 */
#include "engine/documents/document-builder.h"
#include "engine/documents/number-literal.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum { NUMBER_LENGTH_MAX = 63 };

struct walk {
    struct document_builder builder;
    const char *at, *end;
    struct document_place place; /* of the last node: places are asked for in rising order */
};

/* Sets the error: at walk->at something else was EXPECTED. Reading stops. */
static void unexpected(struct walk *walk, const char *expected) {
    struct failure *failure = walk->builder.failure;
    const char *file = walk->builder.file;
    if (walk->builder.error < 0)
        return;
    document_place_move(&walk->place, walk->at);
    size_t line = walk->place.line, column = walk->place.column;
    unsigned char byte = walk->at < walk->end ? (unsigned char)*walk->at : 0;
    int length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4; /* the text is known to be UTF-8 */
    if (walk->at == walk->end)
        failure_input(failure, file, line, column, "the text ends here, expected %s", expected);
    else if (byte < ' ' || byte == 0x7f)
        failure_input(failure, file, line, column, "control character 0x%02x, expected %s", byte, expected);
    else
        failure_input(failure, file, line, column, "'%.*s', expected %s", length, walk->at, expected);
    walk->builder.error = -EINVAL;
    walk->at = walk->end;
}

static bool is_at(const struct walk *walk, const char *characters) {
    return walk->at < walk->end && strchr(characters, *walk->at); /* no byte is a NUL */
}

static void skip_blanks(struct walk *walk) {
    while (is_at(walk, " \n\t\r"))
        walk->at++;
}

/* ---- Strings */

/* The number that the escape "\uXXXX" at AT stands for; -1 if there is none. */
static int unicode_escape(const struct walk *walk, const char *at) {
    char digits[5] = "";
    if (walk->end - at < 6 || at[0] != '\\' || at[1] != 'u')
        return -1;
    memcpy(digits, at + 2, 4);
    return strspn(digits, "0123456789abcdefABCDEF") == 4 ? (int)strtol(digits, NULL, 16) : -1;
}

/* Adds a character as UTF-8 to the text that is being made. */
static void add_character(struct obstack *text, int character) {
    if (character < 0x80) {
        obstack_1grow(text, (char)character);
        return;
    }
    int more = character < 0x800 ? 1 : character < 0x10000 ? 2 : 3; /* bytes after the first */
    obstack_1grow(text, (char)(0xff << (7 - more) | character >> 6 * more));
    while (more-- > 0)
        obstack_1grow(text, (char)(0x80 | (character >> 6 * more & 0x3f)));
}

/* Reads the escape at walk->at and appends the character that it stands for. */
static void walk_escape(struct walk *walk) {
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *backslash = walk->at++;
    if (is_at(walk, names)) {
        obstack_1grow(walk->builder.memory, meant[strchr(names, *walk->at++) - names]);
        return;
    }
    int character = unicode_escape(walk, backslash), second = 0xdc00;
    if (!is_at(walk, "u")) {
        unexpected(walk, "one of the escapes \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
        return;
    }
    walk->at = character < 0 ? walk->at + 1 : backslash;
    if (character < 0)
        unexpected(walk, "four hexadecimal digits");
    if (character == 0)
        unexpected(walk, "text without NULs (\\u0000)");
    if (character >= 0xdc00 && character <= 0xdfff)
        unexpected(walk, "the first half of a surrogate pair before the second");
    if (walk->builder.error < 0)
        return;
    walk->at += 6;
    if (character >= 0xd800 && character <= 0xdbff) {
        second = unicode_escape(walk, walk->at);
        if (second < 0xdc00 || second > 0xdfff) {
            unexpected(walk, "the second half of a surrogate pair");
            return;
        }
        walk->at += 6;
        character = 0x10000 + ((character - 0xd800) << 10) + (second - 0xdc00);
    }
    add_character(walk->builder.memory, character);
}

static struct document_node *start_node(struct walk *walk, enum document_kind kind, size_t level) {
    document_place_move(&walk->place, walk->at);
    struct document_node *node =
        document_builder_node(&walk->builder, kind, level, walk->place.line, walk->place.column);
    if (walk->builder.error < 0)
        walk->at = walk->end;
    return node;
}

/* Reads the string at walk->at. */
static struct document_node *walk_string(struct walk *walk, size_t level) {
    struct document_node *node = start_node(walk, DOCUMENT_TEXT, level);
    struct obstack *memory = walk->builder.memory;
    for (walk->at += walk->at < walk->end; walk->builder.error == 0 && !is_at(walk, "\"");) {
        const char *start = walk->at;
        while (walk->at < walk->end && *walk->at != '"' && *walk->at != '\\' &&
               (unsigned char)*walk->at >= ' ')
            walk->at++;
        obstack_grow(memory, start, (int)(walk->at - start));
        if (is_at(walk, "\\"))
            walk_escape(walk);
        else if (!is_at(walk, "\""))
            unexpected(walk, "'\"' at the end of the string");
    }
    walk->at += walk->at < walk->end;
    obstack_1grow(memory, '\0');
    node->text = obstack_finish(memory);
    return node;
}

/* ---- Values */

/* LENGTH bytes that are a scalar. */
static struct document_node *walk_literal(struct walk *walk, enum document_kind kind, size_t level,
                                          size_t length) {
    const char *literal = walk->at;
    struct document_node *node = start_node(walk, kind, level);
    document_builder_text(&walk->builder, node, literal, length);
    walk->at += walk->builder.error < 0 ? 0 : length;
    return node;
}

/* Reads a number, true, false or null at walk->at. */
static struct document_node *walk_scalar(struct walk *walk, size_t level) {
    static const struct {
        const char *word;
        enum document_kind kind;
    } words[] = {{"null", DOCUMENT_NULL}, {"true", DOCUMENT_BOOLEAN}, {"false", DOCUMENT_BOOLEAN}};
    size_t left = (size_t)(walk->end - walk->at), length = number_literal_json_length(walk->at, left);
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (left >= strlen(words[i].word) && memcmp(walk->at, words[i].word, strlen(words[i].word)) == 0)
            return walk_literal(walk, words[i].kind, level, strlen(words[i].word));
    if (length > 0 && length <= NUMBER_LENGTH_MAX)
        return walk_literal(walk, DOCUMENT_NUMBER, level, length);
    unexpected(walk, length > 0                     ? "a number of at most 63 characters"
                     : is_at(walk, "-+.0123456789") ? "a number as JSON writes it, such as -1.5e3"
                                                    : "a JSON value");
    return walk_literal(walk, DOCUMENT_NULL, level, 0);
}

static struct document_node *walk_value(struct walk *walk, size_t level);

/* Reads a member of an object, with its key, or an item of an array. */
static void walk_child(struct walk *walk, size_t level, bool is_object) {
    if (is_object) {
        if (!is_at(walk, "\""))
            unexpected(walk, "a key in double quotes");
        document_builder_push(&walk->builder, walk_string(walk, level));
        skip_blanks(walk);
        if (!is_at(walk, ":"))
            unexpected(walk, "':' after the key");
        walk->at += walk->at < walk->end;
        skip_blanks(walk);
    }
    document_builder_push(&walk->builder, walk_value(walk, level));
    skip_blanks(walk);
}

/* Reads an object or array with all that is in it. */
static struct document_node *walk_collection(struct walk *walk, size_t level) {
    bool is_object = *walk->at == '{';
    const char *close = is_object ? "}" : "]";
    size_t first = walk->builder.open_count;
    struct document_node *node = start_node(walk, is_object ? DOCUMENT_MAPPING : DOCUMENT_SEQUENCE, level);
    bool more = walk->builder.error == 0;
    walk->at += more;
    skip_blanks(walk);
    more = more && !is_at(walk, close);
    while (more) {
        walk_child(walk, level + 1, is_object);
        more = is_at(walk, ",");
        if (!more && !is_at(walk, close))
            unexpected(walk, is_object ? "',' or '}'" : "',' or ']'");
        walk->at += more;
        skip_blanks(walk);
    }
    walk->at += walk->at < walk->end;
    document_builder_close(&walk->builder, node, first);
    return node;
}

/* The value at walk->at, at LEVEL; recursion ends with DOCUMENT_DEPTH_MAX. */
static struct document_node *walk_value(struct walk *walk, size_t level) {
    if (is_at(walk, "{["))
        return walk_collection(walk, level);
    return is_at(walk, "\"") ? walk_string(walk, level) : walk_scalar(walk, level);
}

/* Parses JSON by RFC 8259 (document.h), with limits of size and depth. */
int document_parse_json(const char *name, const char *bytes, size_t length, struct document **ret,
                        struct failure *failure) {
    int r = document_check_bytes(name, bytes, length, DOCUMENT_JSON_BYTES_MAX, failure);
    if (r < 0)
        return r;
    const char *start = bytes + document_byte_order_mark(bytes, length);
    struct walk walk = {
        document_builder_begin(name, DOCUMENT_JSON_NODES_MAX, failure), start, bytes + length, {start, 1, 1}};
    skip_blanks(&walk);
    struct document_node *root = walk_value(&walk, 1);
    skip_blanks(&walk);
    if (walk.at < walk.end)
        unexpected(&walk, "nothing after the value");
    return document_builder_finish(&walk.builder, root, ret);
}
