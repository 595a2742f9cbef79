#include "engine/documents/bind.h"

#include "engine/documents/number-literal.h"
#include "engine/documents/shown-value.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sentences --------------------------------------------------------------------------------- */

enum { EXPECTED_SIZE = 512 };

/* A scalar's text, or what kind of thing the node is. */
static struct shown_value show(const struct document_node *node) {
    if (node->text && node->kind != DOCUMENT_NULL)
        return shown_value(node->text, strlen(node->text));
    struct shown_value shown;
    snprintf(shown.text, sizeof shown.text, "%s", document_kind_name(node->kind));
    return shown;
}

/* Text that would be another kind of scalar without its quotes, which the reader of a message must be told
 * of. */
static bool is_text_by_quotes(const struct document_node *node) {
    return node->kind == DOCUMENT_TEXT &&
           (number_literal_is_decimal(node->text, strlen(node->text)) || strcmp(node->text, "true") == 0 ||
            strcmp(node->text, "false") == 0);
}

static int refuse(const struct document *document, const struct document_node *node,
                  const struct bind_field *field, const char *expected, struct failure *failure) {
    return failure_input(failure, document->file, node->line, node->column, "'%s' is %s%s, expected %s",
                         field->key, show(node).text, is_text_by_quotes(node) ? " in quotes" : "", expected);
}

static bool has_range(const struct bind_field *field) {
    return field->minimum != 0 || field->maximum != 0;
}

/* "a number from 1 to 10", "a number of at least 1": WHAT and the range of FIELD. */
static const char *describe_range(const struct bind_field *field, const char *what, const char *symbol,
                                  char buffer[static EXPECTED_SIZE]) {
    char low[NUMBER_TEXT_SIZE], high[NUMBER_TEXT_SIZE];
    number_format_double(field->minimum, low);
    number_format_double(field->maximum, high);
    const char *space = symbol[0] ? " " : "";
    bool bounded_below = isfinite(field->minimum), bounded_above = isfinite(field->maximum);
    if (!has_range(field) || (!bounded_below && !bounded_above))
        snprintf(buffer, EXPECTED_SIZE, "%s", what);
    else if (!bounded_above)
        snprintf(buffer, EXPECTED_SIZE, "%s of at least %s%s%s", what, low, space, symbol);
    else if (!bounded_below)
        snprintf(buffer, EXPECTED_SIZE, "%s of at most %s%s%s", what, high, space, symbol);
    else
        snprintf(buffer, EXPECTED_SIZE, "%s from %s to %s%s%s", what, low, high, space, symbol);
    return buffer;
}

static bool is_in_range(const struct bind_field *field, double value) {
    return !has_range(field) || (value >= field->minimum && value <= field->maximum);
}

/* ---- Scalars ----------------------------------------------------------------------------------- */

static int bind_text(const struct document *document, const struct document_node *node,
                     const struct bind_field *field, char **target, struct failure *failure) {
    if (!node->text || node->kind == DOCUMENT_NULL)
        return refuse(document, node, field, "text", failure);
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

/* A whole number, also one that is written with a point or an exponent, as long as that is exact. */
static bool parse_whole(const char *text, int64_t *ret) {
    size_t length = strlen(text);
    if (number_parse_int64(text, length, ret))
        return true;
    double value;
    if (!number_parse_double(text, length, &value) || fabs(value) > 9007199254740992.0 ||
        value != trunc(value) || !strpbrk(text, ".eE"))
        return false;
    *ret = (int64_t)value;
    return true;
}

static int bind_integer(const struct document *document, const struct document_node *node,
                        const struct bind_field *field, int64_t *target, struct failure *failure) {
    char expected[EXPECTED_SIZE];
    int64_t value;
    if (node->kind != DOCUMENT_NUMBER || !parse_whole(node->text, &value) ||
        !is_in_range(field, (double)value))
        return refuse(document, node, field, describe_range(field, "a whole number", "", expected), failure);
    *target = value;
    return 0;
}

static int bind_number(const struct document *document, const struct document_node *node,
                       const struct bind_field *field, double *target, struct failure *failure) {
    char expected[EXPECTED_SIZE];
    double value;
    if (node->kind != DOCUMENT_NUMBER || !number_parse_double(node->text, strlen(node->text), &value) ||
        !is_in_range(field, value))
        return refuse(document, node, field, describe_range(field, "a number", "", expected), failure);
    *target = value;
    return 0;
}

static int bind_quantity(const struct document *document, const struct document_node *node,
                         const struct bind_field *field, double *target, struct failure *failure) {
    char expected[EXPECTED_SIZE];
    double value;
    bool is_scalar = node->kind == DOCUMENT_NUMBER || node->kind == DOCUMENT_TEXT;
    if (!is_scalar || !unit_parse(node->text, field->dimension, &value))
        return refuse(document, node, field, unit_expectation(field->dimension), failure);
    if (!is_in_range(field, value)) {
        /* "a time, such as 10min" is not needed by one who wrote a time. */
        const char *what = unit_expectation(field->dimension);
        char noun[32];
        snprintf(noun, sizeof noun, "%.*s", (int)strcspn(what, ","), what);
        return refuse(document, node, field,
                      describe_range(field, noun, unit_symbol(field->dimension), expected), failure);
    }
    *target = value;
    return 0;
}

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

/* ---- Collections ------------------------------------------------------------------------------- */

static void clear_texts(struct bind_texts *texts) {
    for (size_t i = 0; i < texts->count; i++)
        free(texts->items[i]);
    free(texts->items);
    *texts = (struct bind_texts){0};
}

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
    cleanup(clear_texts) struct bind_texts texts = {.items = calloc(count ? count : 1, sizeof(char *))};
    if (!texts.items)
        return failure_memory(failure);
    for (; texts.count < count; texts.count++) {
        const struct document_node *item = items[texts.count];
        if (!item->text || item->kind == DOCUMENT_NULL)
            return failure_input(failure, document->file, item->line, item->column,
                                 "item %zu of '%s' is %s, expected text", texts.count + 1, field->key,
                                 document_kind_name(item->kind));
        texts.items[texts.count] = xstrdup(item->text);
    }
    clear_texts(target);
    *target = texts;
    texts = (struct bind_texts){0};
    return 0;
}

static int bind_node(const struct document *document, const struct document_node *node,
                     const struct bind_field *field, const struct document_node **target,
                     struct failure *failure) {
    if (field->kinds && !(field->kinds & 1U << node->kind)) {
        cleanup(text_clear) struct text expected;
        text_init(&expected, EXPECTED_SIZE);
        for (enum document_kind kind = DOCUMENT_NULL; kind <= DOCUMENT_MAPPING; kind++)
            if (field->kinds & 1U << kind)
                text_printf(&expected, "%s%s", expected.length ? " or " : "", document_kind_name(kind));
        return refuse(document, node, field, expected.bytes, failure);
    }
    *target = node;
    return 0;
}

/* ---- Mappings ---------------------------------------------------------------------------------- */

int bind_value(const struct document *document, const struct document_node *node,
               const struct bind_field *field, void *target, struct failure *failure) {
    void *member = (char *)target + field->offset;
    switch (field->type) {
    case BIND_TEXT:
        return bind_text(document, node, field, member, failure);
    case BIND_BOOLEAN:
        return bind_boolean(document, node, field, member, failure);
    case BIND_INTEGER:
        return bind_integer(document, node, field, member, failure);
    case BIND_NUMBER:
        return bind_number(document, node, field, member, failure);
    case BIND_QUANTITY:
        return bind_quantity(document, node, field, member, failure);
    case BIND_CHOICE:
        return bind_choice(document, node, field, member, failure);
    case BIND_TEXTS:
        return bind_texts(document, node, field, member, failure);
    case BIND_NODE:
        return bind_node(document, node, field, member, failure);
    }
    return failure_set(failure, -EINVAL, "field '%s' has no type", field->key);
}

static int refuse_unknown(const struct document *document, const struct document_node *key, const char *what,
                          const struct bind_field *fields, size_t count, struct failure *failure) {
    cleanup_free const char **names = xcalloc(count ? count : 1, sizeof *names);
    cleanup(text_clear) struct text known;
    text_init(&known, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < count; i++) {
        names[i] = fields[i].key;
        text_printf(&known, "%s'%s'", i ? ", " : "", names[i]);
    }
    const char *nearest = text_nearest(key->text, names, count);
    if (nearest)
        return failure_input(failure, document->file, key->line, key->column,
                             "%s is not a key of %s; did you mean '%s'?", show(key).text, what, nearest);
    return failure_input(failure, document->file, key->line, key->column,
                         "%s is not a key of %s, expected %s%s", show(key).text, what,
                         count > 1 ? "one of " : "", count ? known.bytes : "none");
}

static const struct bind_field *find_field(const struct bind_field *fields, size_t count, const char *key) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(fields[i].key, key) == 0)
            return &fields[i];
    return NULL;
}

int bind_mapping(const struct document *document, const struct document_node *node, const char *what,
                 const struct bind_field *fields, size_t count, void *target, struct failure *failure) {
    if (node->kind != DOCUMENT_MAPPING)
        return failure_input(failure, document->file, node->line, node->column,
                             "%s is %s, expected a mapping", what, show(node).text);
    for (size_t i = 0; i < node->count; i++) {
        const struct bind_field *field = find_field(fields, count, node->keys[i]->text);
        int r = field ? bind_value(document, node->items[i], field, target, failure)
                      : refuse_unknown(document, node->keys[i], what, fields, count, failure);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < count; i++)
        if (fields[i].required && !document_get(node, fields[i].key))
            return failure_input(failure, document->file, node->line, node->column,
                                 "%s has no '%s', which it must have", what, fields[i].key);
    return 0;
}

void bind_clear(const struct bind_field *fields, size_t count, void *target) {
    for (size_t i = 0; i < count; i++) {
        void *member = (char *)target + fields[i].offset;
        if (fields[i].type == BIND_TEXT) {
            free(*(char **)member);
            *(char **)member = NULL;
        } else if (fields[i].type == BIND_TEXTS)
            clear_texts(member);
    }
}
