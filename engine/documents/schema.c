#include "engine/documents/schema.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <math.h>
#include <regex.h>
#include <stdlib.h>
#include <string.h>

enum { EXPECTED_SIZE = 256 };

/* One schema and the value that it is for. */
struct rule {
    const struct document_node *root, *schema; /* of the whole schema; this one */
    const struct document *document;
    const struct document_node *node;
    const char *name; /* of the member whose value NODE is */
    struct failure *failure;
};

static int check(const struct rule *rule);

static int check_other(const struct rule *rule, const struct document_node *schema,
                       const struct document_node *node, const char *name) {
    struct rule other = *rule;
    other.schema = schema;
    other.node = node;
    other.name = name;
    return check(&other);
}

/* Expected was WHAT and VALUE, a text or a list of texts; NULL: WHAT alone. */
static int refuse(const struct rule *rule, const char *what, const struct document_node *value) {
    const struct document_node *node = rule->node;
    const char *quote = node->text ? "'" : "";
    cleanup(text_clear) struct text expected;
    text_init(&expected, EXPECTED_SIZE);
    text_append_string(&expected, value && value->text ? value->text : "");
    for (size_t i = 0; value && i < value->count; i++) /* a list that is too long just ends */
        text_printf(&expected, "%s%s", i ? ", " : "", value->items[i]->text ? value->items[i]->text : "");
    return failure_input(rule->failure, rule->document->file, node->line, node->column,
                         "'%.64s' is %s%.64s%s; expected %s%s", rule->name, quote,
                         node->text ? node->text : document_kind_name(node->kind), quote, what,
                         expected.bytes);
}

/* ---- Keywords whose VALUE says what NODE is to be */

static double number_of(const struct document_node *node) {
    double number;
    bool is_number =
        node->kind == DOCUMENT_NUMBER && number_parse_double(node->text, strlen(node->text), &number);
    return is_number ? number : NAN;
}

static bool has_type(const struct document_node *node, const struct document_node *value) {
    static const char *const names[] = {
        [DOCUMENT_NULL] = "null",   [DOCUMENT_BOOLEAN] = "boolean", [DOCUMENT_NUMBER] = "number",
        [DOCUMENT_TEXT] = "string", [DOCUMENT_SEQUENCE] = "array",  [DOCUMENT_MAPPING] = "object"};
    bool fits = false;
    for (size_t i = 0; i < value->count; i++)
        fits |= has_type(node, value->items[i]);
    if (value->text && strcmp(value->text, "integer") == 0)
        return number_of(node) == floor(number_of(node));
    return fits || (value->text && strcmp(names[node->kind], value->text) == 0);
}

static bool is_equal(const struct document_node *node, const struct document_node *value) {
    bool equal = node->kind == value->kind && node->count == value->count && node->kind != DOCUMENT_MAPPING &&
                 (!node->text || strcmp(node->text, value->text) == 0);
    for (size_t i = 0; equal && i < node->count; i++)
        equal = is_equal(node->items[i], value->items[i]);
    return equal;
}

static bool is_one_of(const struct document_node *node, const struct document_node *value) {
    bool found = false;
    for (size_t i = 0; i < value->count; i++)
        found |= is_equal(node, value->items[i]);
    return found;
}

static bool has_pattern(const struct document_node *node, const struct document_node *value) {
    regex_t pattern;
    if (node->kind != DOCUMENT_TEXT)
        return true;
    if (regcomp(&pattern, value->text, REG_EXTENDED | REG_NOSUB) != 0)
        memory_exhausted();
    bool matches = regexec(&pattern, node->text, 0, NULL, 0) == 0;
    regfree(&pattern);
    return matches;
}

static bool has_size(const struct document_node *node, const struct document_node *value) {
    return (double)(node->text ? strlen(node->text) : node->count) >= number_of(value);
}

/* Values that are no numbers pass. */
static bool is_at_least(const struct document_node *node, const struct document_node *value) {
    return !(number_of(node) < number_of(value));
}

static bool is_above(const struct document_node *node, const struct document_node *value) {
    return !(number_of(node) <= number_of(value));
}

static bool is_below(const struct document_node *node, const struct document_node *value) {
    return !(number_of(node) >= number_of(value));
}

/* ---- Keywords that lead to other schemas */

static int check_required(const struct rule *rule, const struct document_node *value) {
    for (size_t i = 0; rule->node->kind == DOCUMENT_MAPPING && i < value->count; i++)
        if (!document_get(rule->node, value->items[i]->text))
            return refuse(rule, "one with the member ", value->items[i]);
    return 0;
}

/* `properties`, or `additionalProperties` for members that these do not name. */
static int check_members(const struct rule *rule, const struct document_node *value) {
    const struct document_node *properties = document_get(rule->schema, "properties");
    int r = 0;
    for (size_t i = 0; r == 0 && rule->node->kind == DOCUMENT_MAPPING && i < rule->node->count; i++) {
        const char *name = rule->node->keys[i]->text;
        const struct document_node *own = document_get(properties, name), *schema = value == properties ? own
                                                                                    : own               ? NULL
                                                                                          : value;
        if (schema && rule->node->items[i]->kind != DOCUMENT_NULL)
            r = check_other(rule, schema, rule->node->items[i], name);
    }
    return r;
}

static int check_items(const struct rule *rule, const struct document_node *value) {
    int r = 0;
    for (size_t i = 0; r == 0 && rule->node->kind == DOCUMENT_SEQUENCE && i < rule->node->count; i++)
        r = check_other(rule, value, rule->node->items[i], rule->name);
    return r;
}

static int check_reference(const struct rule *rule, const struct document_node *value) {
    const struct document_node *definitions = document_get(rule->root, "$defs");
    return check_other(rule, document_get(definitions, value->text + strlen("#/$defs/")), rule->node,
                       rule->name);
}

static bool matches(const struct rule *rule, const struct document_node *schema) {
    struct rule silent = *rule;
    silent.failure = NULL;
    return check_other(&silent, schema, rule->node, rule->name) == 0;
}

/* One at least: the schemas exclude each other. What is wrong is said of the last one. */
static int check_one_of(const struct rule *rule, const struct document_node *value) {
    for (size_t i = 0; i + 1 < value->count; i++)
        if (matches(rule, value->items[i]))
            return 0;
    return check_other(rule, value->items[value->count - 1], rule->node, rule->name);
}

static int check_if(const struct rule *rule, const struct document_node *value) {
    const struct document_node *schema = document_get(rule->schema, matches(rule, value) ? "then" : "else");
    return schema ? check_other(rule, schema, rule->node, rule->name) : 0;
}

/* ---- All of them */

static const struct {
    const char *name, *expected;
    bool (*fits)(const struct document_node *node, const struct document_node *value);
    int (*check)(const struct rule *rule, const struct document_node *value);
} keywords[] = {
    {"type", "the type ", has_type, NULL},
    {"const", "", is_equal, NULL},
    {"enum", "one of ", is_one_of, NULL},
    {"pattern", "a text that matches ", has_pattern, NULL},
    {"minLength", "a length of at least ", has_size, NULL},
    {"minItems", "a length of at least ", has_size, NULL},
    {"minimum", "at least ", is_at_least, NULL},
    {"exclusiveMinimum", "more than ", is_above, NULL},
    {"exclusiveMaximum", "less than ", is_below, NULL},
    {"required", NULL, NULL, check_required},
    {"properties", NULL, NULL, check_members},
    {"additionalProperties", NULL, NULL, check_members},
    {"items", NULL, NULL, check_items},
    {"$ref", NULL, NULL, check_reference},
    {"oneOf", NULL, NULL, check_one_of},
    {"if", NULL, NULL, check_if},
};

static int check(const struct rule *rule) {
    int r = rule->schema->kind == DOCUMENT_BOOLEAN && strcmp(rule->schema->text, "false") == 0
                ? refuse(rule, "no such member", NULL)
                : 0;
    for (size_t i = 0; r == 0 && i < sizeof keywords / sizeof *keywords; i++) {
        const struct document_node *value = document_get(rule->schema, keywords[i].name);
        if (value && keywords[i].check)
            r = keywords[i].check(rule, value);
        else if (value && !keywords[i].fits(rule->node, value))
            r = refuse(rule, keywords[i].expected, value);
    }
    return r;
}

int schema_check(const struct document *schema, const struct document *document, struct failure *failure) {
    return check(&(struct rule){.root = schema->root,
                                .schema = schema->root,
                                .document = document,
                                .node = document->root,
                                .name = "the document",
                                .failure = failure});
}
