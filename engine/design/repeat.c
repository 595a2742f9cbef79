#include "engine/design/repeat.h"

#include "engine/design/order.h"
#include "engine/documents/bind.h"
#include "engine/foundation/cleanup.h"

#include <stdlib.h>
#include <string.h>

#define ROW(key, type, member) BIND_ROW(key, type, design_repeat, member)

static const struct bind_field fields[] = {
    {ROW("ci", BIND_QUANTITY, ci), .dimension = UNIT_RATIO, .required = true},
    {ROW("confidence", BIND_QUANTITY, confidence), .dimension = UNIT_RATIO},
    {ROW("at-least", BIND_INTEGER, at_least), .minimum = 1, .maximum = DESIGN_BLOCKS_MAX},
    {ROW("at-most", BIND_INTEGER, at_most), .minimum = 2, .maximum = DESIGN_BLOCKS_MAX, .required = true},
    {.key = "between", .type = BIND_LATER, .kinds = 1 << DOCUMENT_SEQUENCE | 1 << DOCUMENT_TEXT},
    {ROW("response", BIND_TEXT, response)},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static const struct bind_field outer_fields[] = {
    {.key = "until", .type = BIND_LATER, .required = true, .kinds = 1 << DOCUMENT_MAPPING},
};

/* The ends of a range that are not in it. */
static int check_ratio(const struct document *document, const struct document_node *until, const char *key,
                       double value, double least, struct failure *failure) {
    const struct document_node *at = document_get(until, key);
    if (!at || (value > least && value < 1))
        return 0;
    return bind_refuse(document, at, failure,
                       "'%s' is '%.64s', expected a ratio above %g%% and below 100%%, such as %s", key,
                       at->text, least * 100, least > 0 ? "95%" : "2%");
}

/* Reads 'between', node, block or both, into the bits of *RET. -EINVAL: it is empty, has one twice, or has
 * another. */
static int bind_between(const struct document *document, const struct document_node *node, unsigned *ret,
                        struct failure *failure) {
    static const char *const names[] = {"node", "block", NULL};
    static const struct bind_field field = {.key = "between", .type = BIND_CHOICE, .choices = names};
    bool is_list = node->kind == DOCUMENT_SEQUENCE;
    *ret = 0;
    for (size_t i = 0; i < (is_list ? node->count : 1); i++) {
        const struct document_node *item = is_list ? node->items[i] : node;
        int choice = 0;
        int r = bind_value(document, item, &field, &choice, failure);
        if (r < 0)
            return r;
        if (*ret & 1u << choice)
            return bind_refuse(document, item, failure, "'between' has '%s' twice", names[choice]);
        *ret |= 1u << choice;
    }
    return *ret ? 0
                : bind_refuse(document, node, failure, "'between' is empty, expected node, block, or both");
}

static struct design_repeat_place place_of(const struct document_node *node, const char *key) {
    const struct document_node *at = key ? document_get(node, key) : NULL;
    at = at ? at : node;
    return (struct design_repeat_place){at->line, at->column};
}

/* Reads 'until', the condition to stop repeating, and checks it. */
static int bind_until(const struct document *document, const struct document_node *until,
                      struct design_repeat *repeat, struct failure *failure) {
    const struct document_node *at_least = document_get(until, "at-least"),
                               *between = document_get(until, "between");
    int r = bind_mapping(document, until, "until", fields, FIELD_COUNT, repeat, failure);
    r = r < 0 ? r : check_ratio(document, until, "ci", repeat->ci, 0, failure);
    r = r < 0 ? r : check_ratio(document, until, "confidence", repeat->confidence, 0.5, failure);
    if (r == 0 && between)
        r = bind_between(document, between, &repeat->between, failure);
    if (r == 0 && at_least && repeat->at_least > repeat->at_most)
        r = bind_refuse(document, at_least, failure,
                        "'at-least' is %lld, but 'at-most' is %lld, expected 'at-least' not "
                        "above 'at-most'",
                        (long long)repeat->at_least, (long long)repeat->at_most);
    repeat->at_most_place = place_of(until, "at-most");
    repeat->between_place = place_of(until, "between");
    repeat->response_place = place_of(until, "response");
    return r;
}

/* Reads the mapping 'repeat' into *RET, with defaults for what it leaves out. *RET changes only on success,
 * and is cleared by design_repeat_clear(). */
int design_repeat_bind(const struct document *document, const struct document_node *node,
                       struct design_repeat *ret, struct failure *failure) {
    cleanup(design_repeat_clear) struct design_repeat repeat = {.wanted = true,
                                                                .confidence = 0.95,
                                                                .at_least = 2,
                                                                .between = DESIGN_BETWEEN_NODE |
                                                                           DESIGN_BETWEEN_BLOCK,
                                                                .place = place_of(node, NULL)};
    int r = bind_mapping(document, node, "repeat", outer_fields, 1, &repeat, failure);
    r = r < 0 ? r : bind_until(document, document_get(node, "until"), &repeat, failure);
    if (r < 0)
        return r;
    *ret = repeat;
    repeat = (struct design_repeat){0};
    return 0;
}

void design_repeat_clear(struct design_repeat *repeat) {
    free(repeat->response);
    *repeat = (struct design_repeat){0};
}
