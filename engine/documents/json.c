#include "engine/documents/json.h"

#include "engine/documents/number-literal.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Where the values of the line in hand lie; NULL: on the heap. */
static _Thread_local struct json_arena *arena;

static void *allocate(size_t size) {
    size = (size + 15) / 16 * 16;
    if (!arena || size > sizeof arena->bytes - arena->used) {
        if (arena)
            arena->spilled = true;
        return xmalloc(size);
    }
    arena->used += size;
    return arena->bytes + arena->used - size;
}

static void release(void *memory) {
    if (!arena || (char *)memory < arena->bytes || (char *)memory >= arena->bytes + sizeof arena->bytes)
        free(memory);
}

/* So that no function of cJSON can fail for want of memory. */
__attribute__((constructor)) static void set_hooks(void) {
    cJSON_InitHooks(&(cJSON_Hooks){allocate, release});
}

/* The text between quotes at *AT, whose last quote becomes a NUL; *AT moves after it. NULL: there is no
 * quote, or no end. */
static char *read_text(char **at, const char *end) {
    char *begin = *at + 1,
         *quote = *at < end && **at == '"' ? memchr(begin, '"', (size_t)(end - begin)) : NULL;
    if (!quote)
        return NULL;
    *quote = '\0';
    *at = quote + 1;
    return begin;
}

/* Reads an integer of at most 15 digits at *AT, exact as a double. false: another value. */
static bool read_integer(char **at, const char *end, cJSON *item) {
    char *first = *at + (*at < end && **at == '-'), *digit = first;
    int64_t value = 0;
    for (; digit < end && *digit >= '0' && *digit <= '9' && digit - first < 15; digit++)
        value = 10 * value + (*digit - '0');
    if (digit == first || digit == end || (*digit != ',' && *digit != '}'))
        return false;
    item->type = cJSON_Number;
    cJSON_SetNumberHelper(item, first == *at ? (double)value : -(double)value);
    *at = digit;
    return true;
}

/* Parses an object of texts and integers without escapes and blanks, as lines of a journal are, in a third of
 * cJSON's time. NULL: the line has another form, or is longer than the arena. */
static cJSON *parse_flat(struct json_arena *in, const char *bytes, size_t length) {
    size_t text_size = (length / 16 + 1) * 16;
    if (length < 2 || text_size > sizeof in->bytes || bytes[0] != '{' || memchr(bytes, '\\', length) ||
        memchr(bytes, '\0', length))
        return NULL;
    cJSON *items = (cJSON *)(void *)(in->bytes + text_size), *previous = NULL;
    size_t room = (sizeof in->bytes - text_size) / sizeof *items, count = 1;
    char *at = memcpy(in->bytes, bytes, length), *end = at + length;
    do {
        if (count >= room)
            return NULL;
        cJSON *member = &items[count++];
        at++;
        *member = (cJSON){.prev = previous, .string = read_text(&at, end)};
        if (!member->string || at == end || *at++ != ':')
            return NULL;
        if ((member->valuestring = read_text(&at, end)))
            member->type = cJSON_String;
        else if (!read_integer(&at, end, member))
            return NULL;
        if (previous)
            previous->next = member;
        previous = member;
    } while (at < end && *at == ',');
    if (at != end - 1 || *at != '}')
        return NULL;
    items[1].prev = previous;
    items[0] = (cJSON){.type = cJSON_Object, .child = &items[1]};
    return items;
}

cJSON *json_arena_parse(struct json_arena *in, const char *bytes, size_t length) {
    in->used = 0;
    in->spilled = false;
    cJSON *value = parse_flat(in, bytes, length);
    if (value)
        return value;
    arena = in;
    value = cJSON_ParseWithLength(bytes, length);
    arena = NULL;
    return value;
}

void json_arena_delete(struct json_arena *in, cJSON *value) {
    if (!value || !in->spilled) /* the next line takes its place; without a value nothing was parsed */
        return;
    arena = in;
    cJSON_Delete(value);
    arena = NULL;
}

/* ---- Adding */

static bool add(cJSON *object, const char *key, cJSON *item) {
    return key ? cJSON_AddItemToObject(object, key, item) : cJSON_AddItemToArray(object, item);
}

bool json_add_double(cJSON *object, const char *key, double value) {
    char text[NUMBER_TEXT_SIZE];
    number_format_double(value, text);
    return add(object, key, isfinite(value) ? cJSON_CreateRaw(text) : cJSON_CreateNull());
}

bool json_add_int64(cJSON *object, const char *key, int64_t value) {
    char text[NUMBER_TEXT_SIZE];
    number_format_int64(value, text);
    return add(object, key, cJSON_CreateRaw(text));
}

bool json_add_uint64(cJSON *object, const char *key, uint64_t value) {
    char text[NUMBER_TEXT_SIZE];
    number_format_uint64(value, text);
    return add(object, key, cJSON_CreateRaw(text));
}

bool json_add_int64_text(cJSON *object, const char *key, int64_t value) {
    char text[NUMBER_TEXT_SIZE];
    number_format_int64(value, text);
    return json_add_string(object, key, text);
}

bool json_add_uint64_text(cJSON *object, const char *key, uint64_t value) {
    char text[NUMBER_TEXT_SIZE];
    number_format_uint64(value, text);
    return json_add_string(object, key, text);
}

bool json_add_boolean(cJSON *object, const char *key, bool value) {
    return add(object, key, cJSON_CreateBool(value));
}

bool json_add_string(cJSON *object, const char *key, const char *string) {
    return add(object, key, string ? cJSON_CreateString(string) : cJSON_CreateNull());
}

bool json_add_bytes(cJSON *object, const char *key, const char *bytes, size_t length) {
    cleanup(text_clear) struct text clean;
    text_init(&clean, SIZE_MAX / 2);
    return text_append_utf8(&clean, bytes, length) == 0 && json_add_string(object, key, clean.bytes);
}

void json_cleanup(cJSON **value) {
    cJSON_Delete(*value);
}

cJSON *json_add_object(cJSON *object, const char *key) {
    cJSON *item = cJSON_CreateObject();
    add(object, key, item);
    return item;
}

cJSON *json_add_array(cJSON *object, const char *key) {
    cJSON *item = cJSON_CreateArray();
    add(object, key, item);
    return item;
}

/* ---- Printing: text_keep() looks at what failed */

static void append_escaped(struct text *text, unsigned character) {
    static const char letters[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};
    if (character == '\0')
        text_append_utf8(text, "", 1);
    else if (character < sizeof letters && letters[character])
        text_append(text, (char[]){'\\', letters[character]}, 2);
    else
        text_printf(text, "\\u%04x", character);
}

/* Appends a JSON string; control characters and bytes that are not UTF-8 are escaped or replaced. */
int json_append_string(struct text *text, const char *bytes, size_t length) {
    struct text_mark mark = text_mark(text);
    text_append_character(text, '"');
    for (size_t at = 0, step; at < length; at += step) {
        size_t start = at;
        unsigned character = 0;
        for (step = 0; at < length && step == 0; at += step == 0)
            if ((unsigned char)bytes[at] < ' ' || (unsigned char)bytes[at] > '~')
                step = text_control(bytes + at, length - at, &character);
            else if (bytes[at] == '"' || bytes[at] == '\\') {
                character = (unsigned char)bytes[at];
                step = 1;
            }
        text_append_utf8(text, bytes + start, at - start);
        if (step > 0)
            append_escaped(text, character);
    }
    text_append_character(text, '"');
    return text_keep(text, mark);
}

static void append_line_break(struct text *text, bool pretty, size_t level) {
    if (pretty)
        text_printf(text, "\n%*s", (int)(2 * level), "");
}

static int append_value(struct text *text, const cJSON *value, bool pretty, size_t level);

/* Appends an array or object. -ELOOP: nested too deeply. */
static int append_collection(struct text *text, const cJSON *value, bool pretty, size_t level) {
    bool is_object = cJSON_IsObject(value);
    if (level == CJSON_NESTING_LIMIT)
        return -ELOOP;
    text_append_character(text, is_object ? '{' : '[');
    for (const cJSON *child = value->child; child; child = child->next) {
        append_line_break(text, pretty, level + 1);
        if (is_object) {
            json_append_string(text, child->string, strlen(child->string));
            text_append_string(text, pretty ? ": " : ":");
        }
        int r = append_value(text, child, pretty, level + 1);
        if (r < 0)
            return r;
        if (child->next)
            text_append_character(text, ',');
    }
    if (value->child)
        append_line_break(text, pretty, level);
    return text_append_character(text, is_object ? '}' : ']');
}

static int append_number(struct text *text, double value) {
    char literal[NUMBER_TEXT_SIZE];
    number_format_double(value, literal);
    return text_append_string(text, isfinite(value) ? literal : "null");
}

/* Appends a value of any kind, indented if PRETTY. -EINVAL: no kind of JSON. */
static int append_value(struct text *text, const cJSON *value, bool pretty, size_t level) {
    switch (value->type & 0xff) {
    case cJSON_NULL:
        return text_append_string(text, "null");
    case cJSON_False:
        return text_append_string(text, "false");
    case cJSON_True:
        return text_append_string(text, "true");
    case cJSON_Number:
        return append_number(text, value->valuedouble);
    case cJSON_String:
        return json_append_string(text, value->valuestring, strlen(value->valuestring));
    case cJSON_Raw:
        return text_append_string(text, value->valuestring);
    case cJSON_Array:
    case cJSON_Object:
        return append_collection(text, value, pretty, level);
    default:
        return -EINVAL;
    }
}

int json_print(const cJSON *value, bool pretty, struct text *ret) {
    struct text_mark mark = text_mark(ret);
    int r = append_value(ret, value, pretty, 0);
    ret->error = ret->error ? ret->error : r;
    return text_keep(ret, mark);
}

/* ---- From documents */

/* A number of YAML as a JSON literal: YAML also allows a plus, leading zeros, and no digits on one side of
 * the point. */
static cJSON *from_number(const char *text) {
    char literal[NUMBER_TEXT_SIZE];
    double value;
    text += text[0] == '+';
    if (number_literal_json_length(text, strlen(text)) == strlen(text))
        return cJSON_CreateRaw(text);
    if (!number_parse_double(text, strlen(text), &value))
        return cJSON_CreateRaw(text[0] == '-' ? "-1e999" : "1e999"); /* too large stays too large */
    number_format_double(value, literal);
    return cJSON_CreateRaw(literal);
}

static cJSON *from_collection(const struct document_node *node) {
    cJSON *collection = node->kind == DOCUMENT_MAPPING ? cJSON_CreateObject() : cJSON_CreateArray();
    for (size_t i = 0; i < node->count; i++)
        add(collection, node->keys ? node->keys[i]->text : NULL, json_from_node(node->items[i]));
    return collection;
}

/* The JSON value of a document's node, which the caller frees; numbers keep their digits. */
cJSON *json_from_node(const struct document_node *node) {
    switch (node->kind) {
    case DOCUMENT_NULL:
        return cJSON_CreateNull();
    case DOCUMENT_BOOLEAN: /* "true", "True" or "TRUE", or one of the three for false */
        return cJSON_CreateBool(node->text[0] == 't' || node->text[0] == 'T');
    case DOCUMENT_NUMBER:
        return from_number(node->text);
    case DOCUMENT_TEXT:
        return cJSON_CreateString(node->text);
    case DOCUMENT_SEQUENCE:
    case DOCUMENT_MAPPING:
        return from_collection(node);
    }
    return NULL;
}

int json_write_file(const char *path, const cJSON *value, struct failure *failure) {
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, 256 << 20);
    if (json_print(value, true, &bytes) < 0 || text_append_character(&bytes, '\n') < 0)
        return failure_memory(failure);
    return file_replace(path, bytes.bytes, bytes.length, 0666, failure);
}
