#include "engine/documents/json.h"

#include "engine/documents/number-literal.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* Most bytes of one string or literal that is made here. */
enum { STRING_BYTES_MOST = 1 << 30 };

/* ---- Adding ------------------------------------------------------------------------------------ */

/* BYTES as a C string of valid UTF-8, each byte that cannot stand replaced by U+FFFD; NULL when out of
 * memory. */
static char *clean_string(const char *bytes, size_t length) {
    cleanup(text_clear) struct text clean;
    text_init(&clean, STRING_BYTES_MOST);
    int r = 0;
    while (r == 0 && length > 0) {
        const char *nul = memchr(bytes, '\0', length);
        size_t before = nul ? (size_t)(nul - bytes) : length;
        size_t good = text_invalid_utf8(bytes, before);
        r = text_append(&clean, bytes, good);
        if (r == 0 && good < length) {
            r = text_append(&clean, "\xef\xbf\xbd", 3);
            good++;
        }
        bytes += good;
        length -= good;
    }
    return r < 0 ? NULL : text_take(&clean);
}

/* Adds ITEM, which is deleted when that fails. */
static bool add(cJSON *object, const char *key, cJSON *item) {
    if (!item)
        return false;
    cleanup_free char *clean = key ? clean_string(key, strlen(key)) : NULL;
    if (key ? clean && cJSON_AddItemToObject(object, clean, item) : cJSON_AddItemToArray(object, item))
        return true;
    cJSON_Delete(item);
    return false;
}

static cJSON *create_string(const char *bytes, size_t length) {
    cleanup_free char *clean = clean_string(bytes, length);
    return clean ? cJSON_CreateString(clean) : NULL;
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

bool json_add_boolean(cJSON *object, const char *key, bool value) {
    return add(object, key, cJSON_CreateBool(value));
}

bool json_add_string(cJSON *object, const char *key, const char *string) {
    return add(object, key, string ? create_string(string, strlen(string)) : cJSON_CreateNull());
}

bool json_add_bytes(cJSON *object, const char *key, const char *bytes, size_t length) {
    return add(object, key, create_string(bytes, length));
}

void json_cleanup(cJSON **value) {
    cJSON_Delete(*value);
}

cJSON *json_add_object(cJSON *object, const char *key) {
    cJSON *item = cJSON_CreateObject();
    return add(object, key, item) ? item : NULL;
}

cJSON *json_add_array(cJSON *object, const char *key) {
    cJSON *item = cJSON_CreateArray();
    return add(object, key, item) ? item : NULL;
}

/* ---- Printing ---------------------------------------------------------------------------------- */

/* How many of BYTES need no escape, valid UTF-8 being taken for granted. */
static size_t plain_length(const char *bytes, size_t length) {
    size_t count = 0;
    while (count < length && (unsigned char)bytes[count] >= ' ' && bytes[count] != '"' &&
           bytes[count] != '\\')
        count++;
    return count;
}

static int append_escaped(struct text *text, unsigned char character) {
    static const char letters[] = {
        ['\b'] = 'b', ['\t'] = 't', ['\n'] = 'n', ['\f'] = 'f', ['\r'] = 'r', ['"'] = '"', ['\\'] = '\\'};
    if (character == '\0')
        return text_append(text, "\xef\xbf\xbd", 3);
    if (character < sizeof letters && letters[character]) {
        char escape[2] = {'\\', letters[character]};
        return text_append(text, escape, 2);
    }
    return text_printf(text, "\\u%04x", (unsigned)character);
}

/* The inside of a string literal. */
static int append_content(struct text *text, const char *bytes, size_t length) {
    int r = 0;
    while (r == 0 && length > 0) {
        size_t good = text_invalid_utf8(bytes, length);
        for (size_t at = 0; r == 0 && at < good;) {
            size_t plain = plain_length(bytes + at, good - at);
            r = text_append(text, bytes + at, plain);
            at += plain;
            if (r == 0 && at < good)
                r = append_escaped(text, (unsigned char)bytes[at++]);
        }
        if (r == 0 && good < length) {
            r = text_append(text, "\xef\xbf\xbd", 3);
            good++;
        }
        bytes += good;
        length -= good;
    }
    return r;
}

/* What was appended after LENGTH is taken back when R says that something failed. */
static int keep_or_cut(struct text *text, size_t length, int r) {
    if (r < 0 && text->length > length) {
        text->length = length;
        text->bytes[length] = '\0';
    }
    return r;
}

/* Nothing but ASCII that stands for itself, as nearly all is: copied at once. */
static bool is_simple(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (bytes[i] < ' ' || bytes[i] == '"' || bytes[i] == '\\' || (unsigned char)bytes[i] > '~')
            return false;
    return true;
}

static int append_simple(struct text *text, const char *bytes, size_t length) {
    char *at;
    int r = length > SIZE_MAX - 2 ? -EFBIG : text_reserve(text, length + 2, &at);
    if (r < 0)
        return r;
    at[0] = '"';
    memcpy(at + 1, bytes, length);
    memcpy(at + 1 + length, "\"", 2);
    text->length += length + 2;
    return 0;
}

int json_append_string(struct text *text, const char *bytes, size_t length) {
    if (length > 0 && is_simple(bytes, length))
        return append_simple(text, bytes, length);
    size_t before = text->length;
    int r = text_append_character(text, '"');
    if (r == 0)
        r = append_content(text, bytes, length);
    if (r == 0)
        r = text_append_character(text, '"');
    return keep_or_cut(text, before, r);
}

static int append_line_break(struct text *text, bool pretty, size_t level) {
    int r = pretty ? text_append_character(text, '\n') : 0;
    for (size_t i = 0; r == 0 && pretty && i < level; i++)
        r = text_append(text, "  ", 2);
    return r;
}

static int append_value(struct text *text, const cJSON *value, bool pretty, size_t level);

static int append_collection(struct text *text, const cJSON *value, bool pretty, size_t level) {
    bool is_object = cJSON_IsObject(value);
    if (level == CJSON_NESTING_LIMIT)
        return -ELOOP;
    int r = text_append_character(text, is_object ? '{' : '[');
    for (const cJSON *child = value->child; r == 0 && child; child = child->next) {
        r = append_line_break(text, pretty, level + 1);
        if (r == 0 && is_object) {
            r = json_append_string(text, child->string, strlen(child->string));
            if (r == 0)
                r = pretty ? text_append(text, ": ", 2) : text_append_character(text, ':');
        }
        if (r == 0)
            r = append_value(text, child, pretty, level + 1);
        if (r == 0 && child->next)
            r = text_append_character(text, ',');
    }
    if (r == 0 && value->child)
        r = append_line_break(text, pretty, level);
    return r == 0 ? text_append_character(text, is_object ? '}' : ']') : r;
}

static int append_number(struct text *text, double value) {
    char literal[NUMBER_TEXT_SIZE];
    size_t length = number_format_double(value, literal);
    return isfinite(value) ? text_append(text, literal, length) : text_append(text, "null", 4);
}

static int append_value(struct text *text, const cJSON *value, bool pretty, size_t level) {
    switch (value->type & 0xff) {
    case cJSON_NULL:
        return text_append(text, "null", 4);
    case cJSON_False:
        return text_append(text, "false", 5);
    case cJSON_True:
        return text_append(text, "true", 4);
    case cJSON_Number:
        return append_number(text, value->valuedouble);
    case cJSON_String:
        return json_append_string(text, value->valuestring, strlen(value->valuestring));
    case cJSON_Raw:
        return value->valuestring ? text_append_string(text, value->valuestring) : -EINVAL;
    case cJSON_Array:
    case cJSON_Object:
        return append_collection(text, value, pretty, level);
    default:
        return -EINVAL;
    }
}

int json_print(const cJSON *value, bool pretty, struct text *ret) {
    size_t before = ret->length;
    return keep_or_cut(ret, before, append_value(ret, value, pretty, 0));
}

/* ---- From documents ---------------------------------------------------------------------------- */

static cJSON *from_number(const struct document_node *node) {
    cleanup(text_clear) struct text literal;
    text_init(&literal, STRING_BYTES_MOST);
    return number_literal_append_json(&literal, node->text, strlen(node->text)) < 0
               ? NULL
               : cJSON_CreateRaw(literal.bytes);
}

static cJSON *from_collection(const struct document_node *node) {
    cJSON *collection =
        node->keys || node->kind == DOCUMENT_MAPPING ? cJSON_CreateObject() : cJSON_CreateArray();
    for (size_t i = 0; collection && i < node->count; i++)
        if (!add(collection, node->keys ? node->keys[i]->text : NULL, json_from_node(node->items[i]))) {
            cJSON_Delete(collection);
            return NULL;
        }
    return collection;
}

cJSON *json_from_node(const struct document_node *node) {
    switch (node->kind) {
    case DOCUMENT_NULL:
        return cJSON_CreateNull();
    case DOCUMENT_BOOLEAN: /* "true", "True" or "TRUE", or one of the three for false */
        return cJSON_CreateBool(node->text[0] == 't' || node->text[0] == 'T');
    case DOCUMENT_NUMBER:
        return from_number(node);
    case DOCUMENT_TEXT:
        return create_string(node->text, strlen(node->text));
    case DOCUMENT_SEQUENCE:
    case DOCUMENT_MAPPING:
        return from_collection(node);
    }
    return NULL;
}
