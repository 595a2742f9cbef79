/*
 * Writing JSON with cJSON without losing digits: 64-bit integers and doubles are emitted as exact literals.
 * Reading is document_read_json, which keeps literals. Memory of cJSON is xmalloc()'s: what makes or adds an
 * item, cJSON's own functions included, cannot fail, and its result needs no check.
 */
#ifndef ASSAY_DOCUMENTS_JSON_H
#define ASSAY_DOCUMENTS_JSON_H

#include "engine/documents/document.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <cjson/cJSON.h>
#include <stdint.h>

/* Each adds a member to OBJECT (or, with KEY NULL, an item to an array) and returns true. Doubles are written
 * with the fewest digits that read back the same; what is not finite becomes null. */
bool json_add_double(cJSON *object, const char *key, double value);
bool json_add_int64(cJSON *object, const char *key, int64_t value);
bool json_add_uint64(cJSON *object, const char *key, uint64_t value);
/* As texts: for what may exceed 2^53 (seeds, times in nanoseconds), of which many readers lose digits. */
bool json_add_int64_text(cJSON *object, const char *key, int64_t value);
bool json_add_uint64_text(cJSON *object, const char *key, uint64_t value);
bool json_add_boolean(cJSON *object, const char *key, bool value);
/* STRING is any bytes: what is not UTF-8 is printed as U+FFFD, NULs too. NULL gives null. */
bool json_add_string(cJSON *object, const char *key, const char *string);
bool json_add_bytes(cJSON *object, const char *key, const char *bytes, size_t length);
/* Parses one line of JSON after the other without an allocation for each value: values lie in the arena,
 * or on the heap where they do not fit, and are valid until the line is deleted, which must precede the
 * next parse. */
struct json_arena {
    size_t used;
    bool spilled; /* something lies on the heap */
    _Alignas(16) char bytes[64 << 10];
};
cJSON *json_arena_parse(struct json_arena *in, const char *bytes, size_t length);
void json_arena_delete(struct json_arena *in, cJSON *value);
/* For the cleanup attribute: deletes what the variable points to. */
void json_cleanup(cJSON **value);
/* A new object or array inside, owned by OBJECT. */
cJSON *json_add_object(cJSON *object, const char *key);
cJSON *json_add_array(cJSON *object, const char *key);

/* Appends the value as text, pretty (two spaces) or on one line, without a newline at the end. 0, -ENOMEM,
 * -EFBIG at RET's limit, -ELOOP when nested deeper than CJSON_NESTING_LIMIT, -EINVAL for an item of no type;
 * then nothing was appended. The text is valid UTF-8 and reads back with document_parse_json, literals that a
 * caller made by cJSON_CreateRaw being the caller's to get right. */
int json_print(const cJSON *value, bool pretty, struct text *ret);
/* Writes VALUE, pretty, as the whole of the file PATH, durably and at once. */
int json_write_file(const char *path, const cJSON *value, struct failure *failure);
/* A document's node as cJSON. Numbers stay as they are written where JSON allows that; others keep what a
 * double can: YAML's +.5 becomes 0.5. */
cJSON *json_from_node(const struct document_node *node);
/* Appends any bytes as a JSON string literal with its quotes, by the rules of json_add_bytes: for lines
 * written by hand at speed. */
int json_append_string(struct text *text, const char *bytes, size_t length);

#endif
