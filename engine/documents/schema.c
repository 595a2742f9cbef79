#include "engine/documents/schema.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <math.h>
#include <regex.h>
#include <stdio.h>
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

static int refuse(const struct rule *rule, const char *what, const char *expected) {
    const struct document_node *node = rule->node;
    return failure_input(rule->failure, rule->document->file, node->line, node->column,
                         "'%.64s' is %s%.64s%s; expected %s%.256s", rule->name, node->text ? "'" : "",
                         node->text ? node->text : document_kind_name(node->kind), node->text ? "'" : "",
                         what, expected);
}

static bool is_equal(const struct document_node *a, const struct document_node *b) {
    bool equal = a->kind == b->kind && a->count == b->count && (a->text != NULL) == (b->text != NULL) &&
                 (!a->text || strcmp(a->text, b->text) == 0) && a->kind != DOCUMENT_MAPPING;
    for (size_t i = 0; equal && i < a->count; i++)
        equal = is_equal(a->items[i], b->items[i]);
    return equal;
}

/* "a, b, c" of VALUE, a text or a list. */
static const char *join(const struct document_node *value, char joined[static EXPECTED_SIZE]) {
    cleanup(text_clear) struct text text;
    text_init(&text, EXPECTED_SIZE);
    for (size_t i = 0; i < value->count; i++)
        text_printf(&text, "%s%s", i ? ", " : "", value->items[i]->text ? value->items[i]->text : "");
    snprintf(joined, EXPECTED_SIZE, "%s", value->text ? value->text : text.bytes);
    return joined;
}

/* ---- Keywords: VALUE is that of the keyword */

static bool has_type(const struct document_node *node, const char *type) {
    static const char *const names[] = {
        [DOCUMENT_NULL] = "null",   [DOCUMENT_BOOLEAN] = "boolean", [DOCUMENT_NUMBER] = "number",
        [DOCUMENT_TEXT] = "string", [DOCUMENT_SEQUENCE] = "array",  [DOCUMENT_MAPPING] = "object"};
    double number;
    if (strcmp(type, "integer") == 0)
        return node->kind == DOCUMENT_NUMBER &&
               number_parse_double(node->text, strlen(node->text), &number) && number == floor(number);
    return strcmp(names[node->kind], type) == 0;
}

static int check_type(const struct rule *rule, const struct document_node *value) {
    char joined[EXPECTED_SIZE];
    bool fits = value->text && has_type(rule->node, value->text);
    for (size_t i = 0; i < value->count; i++)
        fits |= has_type(rule->node, value->items[i]->text);
    return fits ? 0 : refuse(rule, "the type ", join(value, joined));
}

static int check_const(const struct rule *rule, const struct document_node *value) {
    char joined[EXPECTED_SIZE];
    return is_equal(rule->node, value) ? 0 : refuse(rule, "", join(value, joined));
}

static int check_enum(const struct rule *rule, const struct document_node *value) {
    char joined[EXPECTED_SIZE];
    bool found = false;
    for (size_t i = 0; i < value->count; i++)
        found |= is_equal(rule->node, value->items[i]);
    return found ? 0 : refuse(rule, "one of ", join(value, joined));
}

static int check_pattern(const struct rule *rule, const struct document_node *value) {
    regex_t pattern;
    if (rule->node->kind != DOCUMENT_TEXT)
        return 0;
    if (regcomp(&pattern, value->text, REG_EXTENDED | REG_NOSUB) != 0)
        memory_exhausted();
    bool matches = regexec(&pattern, rule->node->text, 0, NULL, 0) == 0;
    regfree(&pattern);
    return matches ? 0 : refuse(rule, "a text that matches ", value->text);
}

/* The smallest length of a text, or count of a list. */
static int check_size(const struct rule *rule, const struct document_node *value) {
    size_t size = rule->node->text ? strlen(rule->node->text) : rule->node->count;
    return size >= strtoul(value->text, NULL, 10) ? 0 : refuse(rule, "a length of at least ", value->text);
}

static int check_bound(const struct rule *rule, const char *keyword, bool is_minimum, bool excludes) {
    const struct document_node *value = document_get(rule->schema, keyword);
    double number, bound;
    if (!value || rule->node->kind != DOCUMENT_NUMBER ||
        !number_parse_double(rule->node->text, strlen(rule->node->text), &number) ||
        !number_parse_double(value->text, strlen(value->text), &bound))
        return 0;
    bool fits = is_minimum ? number > bound : number < bound;
    return fits || (!excludes && number == bound)
               ? 0
               : refuse(rule, is_minimum ? excludes ? "more than " : "at least " : "less than ", value->text);
}

static int check_bounds(const struct rule *rule, const struct document_node *value) {
    (void)value;
    int r = check_bound(rule, "minimum", true, false);
    r = r < 0 ? r : check_bound(rule, "exclusiveMinimum", true, true);
    return r < 0 ? r : check_bound(rule, "exclusiveMaximum", false, true);
}

static int check_required(const struct rule *rule, const struct document_node *value) {
    for (size_t i = 0; rule->node->kind == DOCUMENT_MAPPING && i < value->count; i++)
        if (!document_get(rule->node, value->items[i]->text))
            return refuse(rule, "one with the member ", value->items[i]->text);
    return 0;
}

/* With `properties`, and `additionalProperties` for members that these do not name. */
static int check_members(const struct rule *rule, const struct document_node *value) {
    const struct document_node *properties = document_get(rule->schema, "properties"),
                               *others = document_get(rule->schema, "additionalProperties");
    (void)value;
    int r = 0;
    for (size_t i = 0; r == 0 && rule->node->kind == DOCUMENT_MAPPING && i < rule->node->count; i++) {
        const char *name = rule->node->keys[i]->text;
        const struct document_node *own = document_get(properties, name), *schema = own ? own : others;
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
    static const char prefix[] = "#/$defs/";
    const struct document_node *definition =
        document_get(document_get(rule->root, "$defs"), value->text + strlen(prefix));
    return check_other(rule, definition, rule->node, rule->name);
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

static int check(const struct rule *rule) {
    static const struct {
        const char *name;
        int (*check)(const struct rule *rule, const struct document_node *value);
    } keywords[] = {
        {"type", check_type},
        {"const", check_const},
        {"enum", check_enum},
        {"pattern", check_pattern},
        {"minLength", check_size},
        {"minItems", check_size},
        {"minimum", check_bounds},
        {"exclusiveMinimum", check_bounds},
        {"required", check_required},
        {"properties", check_members},
        {"additionalProperties", check_members},
        {"items", check_items},
        {"$ref", check_reference},
        {"oneOf", check_one_of},
        {"if", check_if},
    };
    int r = rule->schema->kind == DOCUMENT_BOOLEAN && strcmp(rule->schema->text, "false") == 0
                ? refuse(rule, "", "no such member")
                : 0;
    for (size_t i = 0; r == 0 && i < sizeof keywords / sizeof *keywords; i++) {
        const struct document_node *value = document_get(rule->schema, keywords[i].name);
        r = value ? keywords[i].check(rule, value) : 0;
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
