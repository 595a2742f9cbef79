/*
 * JSON into a document, by the letter of RFC 8259: literals of numbers are kept, and places; leading zeros,
 * control characters in strings and duplicate keys are refused. (cJSON keeps neither places nor digits.)
 */
#include "engine/documents/document-builder.h"
#include "engine/documents/number-literal.h"

#include <stdlib.h>
#include <string.h>

enum { NUMBER_LENGTH_MAX = 63 };

struct walk {
    struct document_builder builder;
    const char *at, *end;
    struct document_place place; /* of the last node: places are asked for in rising order */
};

/* What stands at walk->at is not what was EXPECTED. */
static int unexpected(struct walk *walk, const char *expected) {
    struct failure *failure = walk->builder.failure;
    const char *file = walk->builder.file;
    document_place_move(&walk->place, walk->at);
    size_t line = walk->place.line, column = walk->place.column;
    if (walk->at == walk->end)
        return failure_input(failure, file, line, column, "the text ends here, expected %s", expected);
    unsigned char byte = (unsigned char)*walk->at;
    if (byte < ' ' || byte == 0x7f)
        return failure_input(failure, file, line, column, "control character 0x%02x, expected %s", byte,
                             expected);
    int length = byte < 0x80 ? 1 : byte < 0xe0 ? 2 : byte < 0xf0 ? 3 : 4; /* the text is known to be UTF-8 */
    return failure_input(failure, file, line, column, "'%.*s', expected %s", length, walk->at, expected);
}

static bool is_at(const struct walk *walk, const char *characters) {
    return walk->at < walk->end && strchr(characters, *walk->at); /* no byte is a NUL */
}

static void skip_blanks(struct walk *walk) {
    while (is_at(walk, " \n\t\r"))
        walk->at++;
}

/* ---- Strings ----------------------------------------------------------------------------------- */

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

/* Adds what the escape at walk->at stands for. */
static int walk_escape(struct walk *walk) {
    static const char names[] = "\"\\/bfnrt", meant[] = "\"\\/\b\f\n\r\t";
    const char *backslash = walk->at++;
    if (!is_at(walk, "\"\\/bfnrtu"))
        return unexpected(walk, "one of the escapes \\\" \\\\ \\/ \\b \\f \\n \\r \\t \\uXXXX");
    char name = *walk->at++;
    if (name != 'u') {
        obstack_1grow(walk->builder.memory, meant[strchr(names, name) - names]);
        return 0;
    }
    int character = unicode_escape(walk, backslash), second;
    if (character < 0)
        return unexpected(walk, "four hexadecimal digits");
    walk->at = backslash;
    if (character == 0)
        return unexpected(walk, "text without NULs (\\u0000)");
    if (character >= 0xdc00 && character <= 0xdfff)
        return unexpected(walk, "the first half of a surrogate pair before the second");
    walk->at += 6;
    if (character >= 0xd800 && character <= 0xdbff) {
        second = unicode_escape(walk, walk->at);
        if (second < 0xdc00 || second > 0xdfff)
            return unexpected(walk, "the second half of a surrogate pair");
        walk->at += 6;
        character = 0x10000 + ((character - 0xd800) << 10) + (second - 0xdc00);
    }
    add_character(walk->builder.memory, character);
    return 0;
}

static int start_node(struct walk *walk, enum document_kind kind, size_t level, struct document_node **ret) {
    document_place_move(&walk->place, walk->at);
    return document_builder_node(&walk->builder, kind, level, walk->place.line, walk->place.column, ret);
}

static int walk_string(struct walk *walk, size_t level, struct document_node **ret) {
    int r = start_node(walk, DOCUMENT_TEXT, level, ret);
    if (r < 0)
        return r;
    struct obstack *memory = walk->builder.memory;
    for (walk->at++; !is_at(walk, "\"");) {
        const char *start = walk->at;
        while (walk->at < walk->end && *walk->at != '"' && *walk->at != '\\' &&
               (unsigned char)*walk->at >= ' ')
            walk->at++;
        obstack_grow(memory, start, (int)(walk->at - start));
        r = is_at(walk, "\\")   ? walk_escape(walk)
            : is_at(walk, "\"") ? 0
                                : unexpected(walk, "'\"' at the end of the string");
        if (r < 0)
            return r;
    }
    walk->at++;
    obstack_1grow(memory, '\0');
    (*ret)->text = obstack_finish(memory);
    return 0;
}

/* ---- Values ------------------------------------------------------------------------------------ */

static int walk_number(struct walk *walk, size_t level, struct document_node **ret) {
    size_t length = number_literal_json_length(walk->at, (size_t)(walk->end - walk->at));
    if (length == 0)
        return unexpected(walk, "a number as JSON writes it, such as -1.5e3");
    if (length > NUMBER_LENGTH_MAX)
        return unexpected(walk, "a number of at most 63 characters");
    int r = start_node(walk, DOCUMENT_NUMBER, level, ret);
    if (r < 0)
        return r;
    document_builder_text(&walk->builder, *ret, walk->at, length);
    walk->at += length;
    return 0;
}

static int walk_word(struct walk *walk, size_t level, struct document_node **ret) {
    static const struct {
        const char *word;
        enum document_kind kind;
    } words[] = {{"null", DOCUMENT_NULL}, {"true", DOCUMENT_BOOLEAN}, {"false", DOCUMENT_BOOLEAN}};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++) {
        size_t length = strlen(words[i].word);
        if ((size_t)(walk->end - walk->at) < length || memcmp(walk->at, words[i].word, length) != 0)
            continue;
        int r = start_node(walk, words[i].kind, level, ret);
        if (r < 0)
            return r;
        document_builder_text(&walk->builder, *ret, words[i].word, length);
        walk->at += length;
        return 0;
    }
    return unexpected(walk, "a value");
}

static int walk_value(struct walk *walk, size_t level, struct document_node **ret);

/* A member of an object, or an item of an array. */
static int walk_child(struct walk *walk, size_t level, bool is_object) {
    struct document_node *child;
    int r;
    if (is_object) {
        if (!is_at(walk, "\""))
            return unexpected(walk, "a key in double quotes");
        r = walk_string(walk, level, &child);
        if (r < 0)
            return r;
        document_builder_push(&walk->builder, child);
        skip_blanks(walk);
        if (!is_at(walk, ":"))
            return unexpected(walk, "':' after the key");
        walk->at++;
        skip_blanks(walk);
    }
    r = walk_value(walk, level, &child);
    if (r == 0)
        document_builder_push(&walk->builder, child);
    return r;
}

static int walk_collection(struct walk *walk, size_t level, struct document_node **ret) {
    bool is_object = *walk->at == '{';
    const char *close = is_object ? "}" : "]";
    size_t first = walk->builder.open_count;
    int r = start_node(walk, is_object ? DOCUMENT_MAPPING : DOCUMENT_SEQUENCE, level, ret);
    if (r < 0)
        return r;
    walk->at++;
    skip_blanks(walk);
    for (bool more = !is_at(walk, close); more;) {
        r = walk_child(walk, level + 1, is_object);
        if (r < 0)
            return r;
        skip_blanks(walk);
        more = is_at(walk, ",");
        if (!more && !is_at(walk, close))
            return unexpected(walk, is_object ? "',' or '}'" : "',' or ']'");
        if (more) {
            walk->at++;
            skip_blanks(walk);
        }
    }
    walk->at++;
    return document_builder_close(&walk->builder, *ret, first);
}

/* The value at walk->at, at LEVEL; recursion ends with DOCUMENT_DEPTH_MOST. */
static int walk_value(struct walk *walk, size_t level, struct document_node **ret) {
    if (is_at(walk, "{["))
        return walk_collection(walk, level, ret);
    if (is_at(walk, "\""))
        return walk_string(walk, level, ret);
    return is_at(walk, "-+.0123456789") ? walk_number(walk, level, ret) : walk_word(walk, level, ret);
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
    const char *start = bytes + document_byte_order_mark(bytes, length);
    struct walk walk = {document_builder_begin(name, DOCUMENT_JSON_NODES_MOST, failure),
                        start,
                        bytes + length,
                        {start, 1, 1}};
    struct document_node *root = NULL;
    r = walk_text(&walk, &root);
    return document_builder_finish(&walk.builder, r, root, ret);
}
