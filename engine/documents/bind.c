#include "engine/documents/bind.h"

#include "engine/documents/number-literal.h"
#include "engine/documents/shown-value.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sentences */

enum { EXPECTED_SIZE = 512 };

/* The text of a scalar, quoted, or the kind of another node, for messages. */
static struct shown_value show(const struct document_node *node) {
    if (node->text && node->kind != DOCUMENT_NULL)
        return shown_value(node->text, strlen(node->text));
    struct shown_value shown;
    snprintf(shown.text, sizeof shown.text, "%s", document_kind_name(node->kind));
    return shown;
}

/* Whether NODE is text only because it is quoted ("5", "true"): a message must say so. */
static bool is_text_by_quotes(const struct document_node *node) {
    return node->kind == DOCUMENT_TEXT &&
           (number_literal_is_decimal(node->text, strlen(node->text)) || strcmp(node->text, "true") == 0 ||
            strcmp(node->text, "false") == 0);
}

/* Fails with a sentence about NODE; NULL: about the document. Returns -EINVAL. */
int bind_refuse(const struct document *document, const struct document_node *node, struct failure *failure,
                const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return failure_input(failure, document->file, node ? node->line : 1, node ? node->column : 1, "%s",
                         sentence);
}

static int refuse(const struct document *document, const struct document_node *node,
                  const struct bind_field *field, const char *expected, struct failure *failure) {
    return bind_refuse(document, node, failure, "'%s' is %s%s, expected %s", field->key, show(node).text,
                       is_text_by_quotes(node) ? " in quotes" : "", expected);
}

static bool has_range(const struct bind_field *field) {
    return field->minimum != 0 || field->maximum != 0;
}

/* Appends the field's words to what is expected, as ", or none or steady". Returns BUFFER. */
static const char *append_words(const struct bind_field *field, char buffer[static EXPECTED_SIZE]) {
    for (const struct bind_word *word = field->words; word && word->text; word++) {
        size_t used = strlen(buffer);
        snprintf(buffer + used, EXPECTED_SIZE - used, "%s%s", word == field->words ? ", or " : " or ",
                 word->text);
    }
    return buffer;
}

static bool is_in_range(const struct bind_field *field, double value) {
    return !has_range(field) || (value >= field->minimum && value <= field->maximum);
}

/* ---- Scalars */

/* Copies the text of NODE to *TARGET. -EINVAL: no text, or not one that the field expects. */
static int bind_text(const struct document *document, const struct document_node *node,
                     const struct bind_field *field, char **target, struct failure *failure) {
    if (!node->text || node->kind == DOCUMENT_NULL)
        return refuse(document, node, field, "text", failure);
    const char *expected = field->expect ? field->expect(field->key, node->text) : NULL;
    if (expected)
        return refuse(document, node, field, expected, failure);
    char *copy = xstrdup(node->text);
    free(*target);
    *target = copy;
    return 0;
}

static int bind_boolean(const struct document *document, const struct document_node *node,
                        const struct bind_field *field, bool *target, struct failure *failure) {
    if (node->kind != DOCUMENT_BOOLEAN)
        return refuse(document, node, field, "true or false", failure);
    *target = node->text[0] == 't' || node->text[0] == 'T';
    return 0;
}

/* Parses a whole number, also one written with a point or an exponent, as 1e6, if that is exact. false: it is
 * none. */
static bool parse_whole(const char *text, int64_t *ret) {
    size_t length = strlen(text);
    if (number_parse_int64(text, length, ret))
        return true;
    double value = 0;
    if (!number_parse_double(text, length, &value) || fabs(value) > 9007199254740992.0 ||
        value != trunc(value) || !strpbrk(text, ".eE"))
        return false;
    *ret = (int64_t)value;
    return true;
}

static bool find_word(const struct bind_field *field, const struct document_node *node, double *ret) {
    for (const struct bind_word *word = field->words; word && word->text; word++)
        if (node->kind == DOCUMENT_TEXT && strcmp(node->text, word->text) == 0) {
            *ret = word->value;
            return true;
        }
    return false;
}

/* The number that NODE stands for, in SI units if the field has a dimension; its range is not checked. false:
 * it is no number. */
static bool parse_number(const struct document_node *node, const struct bind_field *field, double *ret,
                         int64_t *ret_whole) {
    if (field->type == BIND_QUANTITY || field->type == BIND_DURATION)
        return (node->kind == DOCUMENT_NUMBER || node->kind == DOCUMENT_TEXT) &&
               unit_parse(node->text, field->dimension, ret);
    if (node->kind != DOCUMENT_NUMBER)
        return false;
    if (field->type == BIND_NUMBER)
        return number_parse_double(node->text, strlen(node->text), ret);
    bool good = parse_whole(node->text, ret_whole);
    *ret = (double)*ret_whole;
    return good;
}

/* Fails because NODE is no number in the range of the field; IS_NUMBER: it is a number, outside the range. */
static int refuse_number(const struct document *document, const struct document_node *node,
                         const struct bind_field *field, bool is_number, struct failure *failure) {
    bool has_unit = field->type == BIND_QUANTITY || field->type == BIND_DURATION;
    char expected[EXPECTED_SIZE], what[EXPECTED_SIZE];
    snprintf(what, sizeof what, "%s",
             has_unit                      ? unit_expectation(field->dimension)
             : field->type == BIND_INTEGER ? "a whole number"
                                           : "a number");
    /* "a time, such as 10min" is not needed by one who wrote a time. */
    if (has_unit && is_number)
        what[strcspn(what, ",")] = '\0';
    if (has_unit && !is_number)
        snprintf(expected, sizeof expected, "%s", what);
    else
        number_describe_range(what, has_range(field) ? field->minimum : -INFINITY,
                              has_range(field) ? field->maximum : INFINITY,
                              has_unit ? unit_symbol(field->dimension) : "", expected, sizeof expected);
    return refuse(document, node, field, append_words(field, expected), failure);
}

/* Stores the number, or one of the field's words, that NODE stands for, at TARGET. */
static int bind_number(const struct document *document, const struct document_node *node,
                       const struct bind_field *field, void *target, struct failure *failure) {
    double value = 0;
    int64_t whole = 0;
    bool is_word = find_word(field, node, &value),
         is_number = !is_word && parse_number(node, field, &value, &whole);
    if (!is_word && !(is_number && is_in_range(field, value)))
        return refuse_number(document, node, field, is_number, failure);
    if (field->type == BIND_INTEGER)
        *(int64_t *)target = is_word ? (int64_t)value : whole;
    else if (field->type == BIND_DURATION)
        *(int64_t *)target = llround(value * 1e9);
    else
        *(double *)target = value;
    return 0;
}

/* Stores the index of the choice that NODE names at *TARGET. -EINVAL: it names none; the message suggests the
 * nearest. */
static int bind_choice(const struct document *document, const struct document_node *node,
                       const struct bind_field *field, int *target, struct failure *failure) {
    bool is_scalar = node->text && node->kind != DOCUMENT_NULL;
    size_t count = 0;
    for (; field->choices[count]; count++)
        if (is_scalar && strcmp(field->choices[count], node->text) == 0) {
            *target = (int)count;
            return 0;
        }
    cleanup(text_clear) struct text expected;
    text_init(&expected, EXPECTED_SIZE);
    text_append_string(&expected, count > 1 ? "one of " : "");
    for (size_t i = 0; i < count; i++)
        if (text_printf(&expected, "%s'%s'", i ? ", " : "", field->choices[i]) < 0)
            break; /* a list as long as that is of no use in a sentence */
    const char *nearest = is_scalar ? text_nearest(node->text, field->choices, count) : NULL;
    if (nearest)
        text_printf(&expected, "; did you mean '%s'?", nearest);
    return refuse(document, node, field, expected.bytes, failure);
}

/* ---- Collections */

bool bind_texts_have(const struct bind_texts *texts, const char *text) {
    for (size_t i = 0; i < texts->count; i++)
        if (strcmp(texts->items[i], text) == 0)
            return true;
    return false;
}

void bind_texts_clear(struct bind_texts *texts) {
    for (size_t i = 0; i < texts->count; i++)
        free(texts->items[i]);
    free(texts->items);
    *texts = (struct bind_texts){0};
}

void bind_texts_add(struct bind_texts *texts, const char *text) {
    texts->items = xrealloc(texts->items, (texts->count + 2) * sizeof *texts->items);
    texts->items[texts->count++] = xstrdup(text);
    texts->items[texts->count] = NULL;
}

/* Stores a text, or a sequence of texts, at TARGET; unchanged on failure. */
static int bind_texts(const struct document *document, const struct document_node *node,
                      const struct bind_field *field, struct bind_texts *target, struct failure *failure) {
    const struct document_node *const *items = (const struct document_node *const *)node->items;
    size_t count = node->count;
    if (node->kind == DOCUMENT_MAPPING || node->kind == DOCUMENT_NULL)
        return refuse(document, node, field, "text or a sequence of texts", failure);
    if (node->kind != DOCUMENT_SEQUENCE) {
        items = &node;
        count = 1;
    }
    cleanup(bind_texts_clear) struct bind_texts texts = {0};
    for (size_t i = 0; i < count; i++) {
        const struct document_node *item = items[i];
        if (!item->text || item->kind == DOCUMENT_NULL)
            return bind_refuse(document, item, failure, "item %zu of '%s' is %s, expected text", i + 1,
                               field->key, document_kind_name(item->kind));
        const char *expected = field->expect ? field->expect(field->key, item->text) : NULL;
        if (expected)
            return refuse(document, item, field, expected, failure);
        bind_texts_add(&texts, item->text);
    }
    bind_texts_clear(target);
    *target = texts;
    texts = (struct bind_texts){0};
    return 0;
}

/* Appends the keys and values of a mapping, in turn, to TARGET. */
static int bind_pairs(const struct document *document, const struct document_node *node,
                      const struct bind_field *field, struct bind_texts *target, struct failure *failure) {
    if (node->kind != DOCUMENT_MAPPING)
        return refuse(document, node, field, "a mapping of texts", failure);
    for (size_t i = 0; i < node->count; i++) {
        bind_texts_add(target, node->keys[i]->text);
        bind_texts_add(target, node->items[i]->text ? node->items[i]->text : "");
    }
    return 0;
}

void *bind_items_add(struct bind_items *items, size_t size) {
    items->items = xrealloc(items->items, (items->count + 1) * size);
    return memset((char *)items->items + items->count++ * size, 0, size);
}

static int bind_items(const struct document *document, const struct document_node *node,
                      const struct bind_field *field, struct bind_items *target, struct failure *failure) {
    int r = node->kind == DOCUMENT_SEQUENCE ? 0 : refuse(document, node, field, "a sequence", failure);
    for (size_t i = 0; r == 0 && i < node->count; i++)
        r = bind_mapping(document, node->items[i], field->is_open ? NULL : field->key, field->fields,
                         field->field_count, bind_items_add(target, field->item_size), failure);
    return r;
}

/* -EINVAL if NODE is of a kind that the field does not accept. */
static int check_kind(const struct document *document, const struct document_node *node,
                      const struct bind_field *field, struct failure *failure) {
    if (!field->kinds || field->kinds & 1U << node->kind)
        return 0;
    cleanup(text_clear) struct text expected;
    text_init(&expected, EXPECTED_SIZE);
    for (enum document_kind kind = DOCUMENT_NULL; kind <= DOCUMENT_MAPPING; kind++)
        if (field->kinds & 1U << kind)
            text_printf(&expected, "%s%s", expected.length ? " or " : "", document_kind_name(kind));
    return refuse(document, node, field, expected.bytes, failure);
}

/* ---- Rows */

/* The size of the struct member that a field of TYPE is read into. */
static size_t member_size(enum bind_type type) {
    static const size_t sizes[] = {
        [BIND_TEXT] = sizeof(char *),
        [BIND_BOOLEAN] = sizeof(bool),
        [BIND_INTEGER] = sizeof(int64_t),
        [BIND_NUMBER] = sizeof(double),
        [BIND_QUANTITY] = sizeof(double),
        [BIND_DURATION] = sizeof(int64_t),
        [BIND_CHOICE] = sizeof(int),
        [BIND_TEXTS] = sizeof(struct bind_texts),
        [BIND_MAPPING] = 0,
        [BIND_OPTIONAL] = sizeof(void *),
        [BIND_ITEMS] = sizeof(struct bind_items),
        [BIND_PAIRS] = sizeof(struct bind_texts),
        [BIND_TIME] = sizeof(int64_t),
    };
    return sizes[type];
}

/* Name number I of a row that stands for an array; NULL behind the last. */
static const char *key_at(const struct bind_field *field, size_t i) {
    size_t stride = field->keys_stride ? field->keys_stride : sizeof *field->keys;
    return *(const char *const *)((const char *)field->keys + i * stride);
}

/* Finds row *INDEX among FIELDS, counting names of arrays and members of groups without a key one by one.
 * false: there are fewer; *INDEX is then less by their number. */
static bool find_row(const struct bind_field *fields, size_t count, size_t offset, size_t *index,
                     struct bind_field *ret) {
    for (const struct bind_field *field = fields; field < fields + count; field++) {
        if (!field->keys && !field->key) {
            if (find_row(field->fields, field->field_count, offset + field->offset, index, ret))
                return true;
            continue;
        }
        for (size_t i = 0; field->keys ? key_at(field, i) != NULL : i == 0; i++)
            if ((*index)-- == 0) {
                *ret = *field;
                ret->key = field->keys ? key_at(field, i) : field->key;
                ret->offset += offset + i * member_size(field->type);
                return true;
            }
    }
    return false;
}

/* Row number INDEX, those of arrays and of groups without a key counted one by one; false behind the last. */
static bool row_at(const struct bind_field *fields, size_t count, size_t index, struct bind_field *ret) {
    return find_row(fields, count, 0, &index, ret);
}

static bool row_of(const struct bind_field *fields, size_t count, const char *key, struct bind_field *ret) {
    for (size_t i = 0; row_at(fields, count, i, ret); i++)
        if (strcmp(ret->key, key) == 0)
            return true;
    return false;
}

/* ---- Mappings */

/* Binds a mapping to the fields of FIELD; a scalar stands for the one member that FIELD names. */
static int bind_inner(const struct document *document, const struct document_node *node,
                      const struct bind_field *field, void *target, struct failure *failure) {
    struct bind_field row;
    if (node->kind == DOCUMENT_MAPPING || !field->scalar ||
        !row_of(field->fields, field->field_count, field->scalar, &row))
        return bind_mapping(document, node, field->is_open ? NULL : field->key, field->fields,
                            field->field_count, target, failure);
    row.key = field->key;
    return bind_value(document, node, &row, target, failure);
}

/* Binds NODE to the member of TARGET that FIELD describes. -EINVAL with FAILURE: it does not fit. */
int bind_value(const struct document *document, const struct document_node *node,
               const struct bind_field *field, void *target, struct failure *failure) {
    void *member = (char *)target + field->offset;
    int r;
    switch (field->type) {
    case BIND_TEXT:
        return bind_text(document, node, field, member, failure);
    case BIND_BOOLEAN:
        return bind_boolean(document, node, field, member, failure);
    case BIND_INTEGER:
    case BIND_NUMBER:
    case BIND_QUANTITY:
    case BIND_DURATION:
        return bind_number(document, node, field, member, failure);
    case BIND_CHOICE:
        return bind_choice(document, node, field, member, failure);
    case BIND_TEXTS:
        return bind_texts(document, node, field, member, failure);
    case BIND_NODE:
        r = check_kind(document, node, field, failure);
        if (r == 0)
            *(const struct document_node **)member = node;
        return r;
    case BIND_LATER:
        return check_kind(document, node, field, failure);
    case BIND_MAPPING:
        return bind_inner(document, node, field, member, failure);
    case BIND_OPTIONAL:
        *(void **)member = xcalloc(1, field->item_size);
        return bind_inner(document, node, field, *(void **)member, failure);
    case BIND_ITEMS:
        return bind_items(document, node, field, member, failure);
    case BIND_PAIRS:
        return bind_pairs(document, node, field, member, failure);
    case BIND_TIME:
        return node->text && clock_parse(node->text, member)
                   ? 0
                   : refuse(document, node, field, "a time, such as 2026-11-20T10:02:03.123+00:00", failure);
    }
    return failure_set(failure, -EINVAL, "field '%s' has no type", field->key);
}

/* Fails because KEY is no key of WHAT; suggests the nearest key, or lists all. */
static int refuse_unknown(const struct document *document, const struct document_node *key, const char *what,
                          const struct bind_field *fields, size_t count, struct failure *failure) {
    struct bind_field row;
    size_t rows = 0;
    cleanup_free const char **names = NULL;
    cleanup(text_clear) struct text known;
    text_init(&known, FAILURE_TEXT_SIZE / 2);
    for (; row_at(fields, count, rows, &row); rows++) {
        names = xrealloc(names, (rows + 1) * sizeof *names);
        names[rows] = row.key;
        text_printf(&known, "%s'%s'", rows ? ", " : "", row.key);
    }
    const char *nearest = text_nearest(key->text, names, rows);
    if (nearest)
        return bind_refuse(document, key, failure, "%s is not a key of %s; did you mean '%s'?",
                           show(key).text, what, nearest);
    return bind_refuse(document, key, failure, "%s is not a key of %s, expected %s%s", show(key).text, what,
                       rows > 1 ? "one of " : "", rows ? known.bytes : "none");
}

/* Binds a mapping to the struct TARGET by its table of fields (bind.h). WHAT names it in messages; NULL: keys
 * that are unknown or null are ignored. */
int bind_mapping(const struct document *document, const struct document_node *node, const char *what,
                 const struct bind_field *fields, size_t count, void *target, struct failure *failure) {
    struct bind_field row;
    if (node->kind != DOCUMENT_MAPPING)
        return bind_refuse(document, node, failure, "%s is %s, expected a mapping", what ? what : "this",
                           show(node).text);
    for (size_t i = 0; i < node->count; i++) {
        bool is_known = row_of(fields, count, node->keys[i]->text, &row);
        if (!what && (!is_known || node->items[i]->kind == DOCUMENT_NULL))
            continue;
        int r = is_known ? bind_value(document, node->items[i], &row, target, failure)
                         : refuse_unknown(document, node->keys[i], what, fields, count, failure);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; row_at(fields, count, i, &row); i++)
        if (row.required && !document_get(node, row.key))
            return bind_refuse(document, node, failure, "%s has no '%s', which it must have", what, row.key);
    return 0;
}

/* Frees all members of TARGET that the fields describe. */
void bind_clear(const struct bind_field *fields, size_t count, void *target) {
    struct bind_field row;
    for (size_t i = 0; row_at(fields, count, i, &row); i++) {
        void *member = (char *)target + row.offset;
        if (row.type == BIND_TEXT) {
            free(*(char **)member);
            *(char **)member = NULL;
        } else if (row.type == BIND_TEXTS || row.type == BIND_PAIRS) {
            bind_texts_clear(member);
        } else if (row.type == BIND_MAPPING) {
            bind_clear(row.fields, row.field_count, member);
        } else if (row.type == BIND_OPTIONAL && *(void **)member) {
            bind_clear(row.fields, row.field_count, *(void **)member);
            free(*(void **)member);
            *(void **)member = NULL;
        } else if (row.type == BIND_ITEMS) {
            struct bind_items *items = member;
            for (size_t k = 0; k < items->count; k++)
                bind_clear(row.fields, row.field_count, (char *)items->items + k * row.item_size);
            free(items->items);
            *items = (struct bind_items){0};
        }
    }
}

/* Copies the members that the fields describe from FROM to TO, texts too. */
void bind_copy(const struct bind_field *fields, size_t count, const void *from, void *to) {
    struct bind_field row;
    for (size_t i = 0; row_at(fields, count, i, &row); i++) {
        const void *member = (const char *)from + row.offset;
        void *copy = (char *)to + row.offset;
        const struct bind_texts *texts = member;
        const char *text = row.type == BIND_TEXT ? *(char *const *)member : NULL;
        if (row.type == BIND_TEXT)
            *(char **)copy = text ? xstrdup(text) : NULL;
        else if (row.type != BIND_TEXTS)
            memcpy(copy, member, member_size(row.type));
        for (size_t k = 0; row.type == BIND_TEXTS && k < texts->count; k++)
            bind_texts_add(copy, texts->items[k]);
    }
}

/* ---- Printing */

/* The value of a scalar member: *RET_TEXT, or, when that is NULL, the number *RET. false: it has no value, or
 * is not a scalar. */
static bool scalar_of(const struct bind_field *row, const void *member, const char **ret_text, double *ret) {
    *ret_text = NULL;
    switch (row->type) {
    case BIND_TEXT:
        *ret_text = *(char *const *)member;
        return *ret_text != NULL;
    case BIND_CHOICE:
        *ret_text = *(const int *)member >= 0 ? row->choices[*(const int *)member] : NULL;
        return *ret_text != NULL;
    case BIND_INTEGER:
        *ret = (double)*(const int64_t *)member;
        break;
    case BIND_DURATION:
        *ret = (double)*(const int64_t *)member * 1e-9;
        break;
    case BIND_NUMBER:
    case BIND_QUANTITY:
        *ret = *(const double *)member;
        break;
    default:
        return false;
    }
    for (const struct bind_word *word = row->words; word && word->text; word++)
        if (*ret == word->value)
            *ret_text = word->text;
    return *ret_text || is_in_range(row, *ret);
}

static void resolve_texts(const struct bind_texts *texts, const char *key, cJSON *object) {
    cJSON *array = json_add_array(object, key);
    for (size_t i = 0; i < texts->count; i++)
        json_add_string(array, NULL, texts->items[i]);
}

static void resolve_items(const struct bind_field *row, const struct bind_items *items, cJSON *object) {
    cJSON *array = items->count ? json_add_array(object, row->key) : NULL;
    for (size_t i = 0; i < items->count; i++)
        bind_resolve(row->fields, row->field_count, (const char *)items->items + i * row->item_size,
                     json_add_object(array, NULL));
}

static void resolve_pairs(const struct bind_texts *pairs, const char *key, cJSON *object) {
    cJSON *inner = json_add_object(object, key);
    for (size_t i = 0; i + 1 < pairs->count; i += 2)
        json_add_string(inner, pairs->items[i], pairs->items[i + 1]);
}

static void resolve_time(int64_t wall_ns, const char *key, cJSON *object) {
    char when[CLOCK_TEXT_SIZE];
    if (wall_ns)
        json_add_string(object, key, clock_format(wall_ns, when));
}

static void resolve_mapping(const struct bind_field *row, const void *member, cJSON *object) {
    cJSON *inner = cJSON_CreateObject();
    bind_resolve(row->fields, row->field_count, member, inner);
    if (inner && inner->child)
        cJSON_AddItemToObject(object, row->key, inner);
    else
        cJSON_Delete(inner);
}

/* Adds the members of TARGET to OBJECT, as a file with all defaults written out would have them. */
void bind_resolve(const struct bind_field *fields, size_t count, const void *target, cJSON *object) {
    struct bind_field row;
    for (size_t i = 0; row_at(fields, count, i, &row); i++) {
        const void *member = (const char *)target + row.offset;
        const char *text;
        double value = 0;
        if (row.alias)
            continue;
        if (row.type == BIND_BOOLEAN)
            json_add_boolean(object, row.key, *(const bool *)member);
        else if (row.type == BIND_TEXTS)
            resolve_texts(member, row.key, object);
        else if (row.type == BIND_MAPPING)
            resolve_mapping(&row, member, object);
        else if (row.type == BIND_OPTIONAL && *(void *const *)member)
            resolve_mapping(&row, *(void *const *)member, object);
        else if (row.type == BIND_ITEMS)
            resolve_items(&row, member, object);
        else if (row.type == BIND_PAIRS)
            resolve_pairs(member, row.key, object);
        else if (row.type == BIND_TIME)
            resolve_time(*(const int64_t *)member, row.key, object);
        else if (!scalar_of(&row, member, &text, &value))
            continue;
        else if (text)
            json_add_string(object, row.key, text);
        else
            json_add_double(object, row.key, value);
    }
}

/* Appends VALUE with its unit, as a person reads it. */
static void describe_number(const struct bind_field *row, double value, struct text *ret) {
    char words[NUMBER_TEXT_SIZE];
    const char *symbol = row->type == BIND_QUANTITY ? unit_symbol(row->dimension) : "";
    if (row->type == BIND_DURATION || (row->type == BIND_QUANTITY && row->dimension == UNIT_TIME))
        text_append_string(ret, number_describe_duration(value, words));
    else if (row->type == BIND_QUANTITY && row->dimension == UNIT_RATIO)
        text_printf(ret, "%g %%", value * 100);
    else
        text_printf(ret, "%g%s%s", value, symbol[0] ? " " : "", symbol);
}

/* Appends the members of TARGET that have a value, as "min 1 s, max 5". */
void bind_describe(const struct bind_field *fields, size_t count, const void *target, struct text *ret) {
    struct bind_field row;
    size_t before = ret->length;
    for (size_t i = 0; row_at(fields, count, i, &row); i++) {
        const char *text;
        double value = 0;
        if (row.alias || !scalar_of(&row, (const char *)target + row.offset, &text, &value))
            continue;
        text_printf(ret, "%s%s ", ret->length > before ? ", " : "", row.key);
        if (text)
            text_append_string(ret, text);
        else
            describe_number(&row, value, ret);
    }
}
