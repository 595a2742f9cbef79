#include "engine/design/repeat.h"

#include "engine/design/order.h"
#include "engine/documents/bind.h"
#include "engine/foundation/cleanup.h"

#include <stdlib.h>
#include <string.h>

struct written {
    double ci, confidence;
    int64_t at_least, at_most;
    char *response;
    const struct document_node *between;
};

#define WRITTEN(key_, type_, member) .key = key_, .type = type_, .offset = offsetof(struct written, member)

static const struct bind_field fields[] = {
    {WRITTEN("ci", BIND_QUANTITY, ci), .dimension = UNIT_RATIO, .required = true},
    {WRITTEN("confidence", BIND_QUANTITY, confidence), .dimension = UNIT_RATIO},
    {WRITTEN("at-least", BIND_INTEGER, at_least), .minimum = 1, .maximum = DESIGN_BLOCKS_MOST},
    {WRITTEN("at-most", BIND_INTEGER, at_most), .minimum = 2, .maximum = DESIGN_BLOCKS_MOST,
     .required = true},
    {WRITTEN("between", BIND_NODE, between), .kinds = 1 << DOCUMENT_SEQUENCE | 1 << DOCUMENT_TEXT},
    {WRITTEN("response", BIND_TEXT, response)},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

struct outer {
    const struct document_node *until;
};
static const struct bind_field outer_fields[] = {
    {.key = "until",
     .type = BIND_NODE,
     .offset = offsetof(struct outer, until),
     .required = true,
     .kinds = 1 << DOCUMENT_MAPPING},
};

/* The ends of a range that are not in it. */
static int check_ratio(const struct document *document, const struct document_node *until, const char *key,
                       double value, double least, struct failure *failure) {
    const struct document_node *at = document_get(until, key);
    if (!at || (value > least && value < 1))
        return 0;
    return failure_input(failure, document->file, at->line, at->column,
                         "'%s' is '%.64s', expected a ratio above %g%% and below 100%%, such as %s", key,
                         at->text, least * 100, least > 0 ? "95%" : "2%");
}

static int bind_between(const struct document *document, const struct document_node *node, unsigned *ret,
                        struct failure *failure) {
    static const char *const names[] = {"node", "block", NULL};
    static const struct bind_field field = {.key = "between", .type = BIND_CHOICE, .choices = names};
    const struct document_node *const *items = (const struct document_node *const *)node->items;
    size_t count = node->count;
    if (node->kind != DOCUMENT_SEQUENCE) {
        items = &node;
        count = 1;
    }
    unsigned between = 0;
    for (size_t i = 0; i < count; i++) {
        int choice = 0;
        int r = bind_value(document, items[i], &field, &choice, failure);
        if (r < 0)
            return r;
        if (between & 1u << choice)
            return failure_input(failure, document->file, items[i]->line, items[i]->column,
                                 "'between' has '%s' twice", names[choice]);
        between |= 1u << choice;
    }
    if (!between)
        return failure_input(failure, document->file, node->line, node->column,
                             "'between' is empty, expected node, block, or both");
    *ret = between;
    return 0;
}

static struct design_repeat_place place_of(const struct document_node *node, const char *key) {
    const struct document_node *at = key ? document_get(node, key) : NULL;
    at = at ? at : node;
    return (struct design_repeat_place){at->line, at->column};
}

static int bind_until(const struct document *document, const struct document_node *until,
                      struct written *written, struct design_repeat *repeat, struct failure *failure) {
    int r = bind_mapping(document, until, "until", fields, FIELD_COUNT, written, failure);
    if (r == 0)
        r = check_ratio(document, until, "ci", written->ci, 0, failure);
    if (r == 0)
        r = check_ratio(document, until, "confidence", written->confidence, 0.5, failure);
    if (r == 0 && written->between)
        r = bind_between(document, written->between, &repeat->between, failure);
    const struct document_node *at_least = document_get(until, "at-least");
    if (r == 0 && at_least && written->at_least > written->at_most)
        r = failure_input(failure, document->file, at_least->line, at_least->column,
                          "'at-least' is %lld and 'at-most' %lld, expected no more than that",
                          (long long)written->at_least, (long long)written->at_most);
    if (r < 0)
        return r;
    repeat->ci = written->ci;
    repeat->confidence = written->confidence;
    repeat->at_least = (uint64_t)written->at_least;
    repeat->at_most = (uint64_t)written->at_most;
    repeat->response = take_pointer(written->response);
    repeat->at_most_place = place_of(until, "at-most");
    repeat->between_place = place_of(until, "between");
    repeat->response_place = place_of(until, "response");
    return 0;
}

int design_repeat_bind(const struct document *document, const struct document_node *node,
                       struct design_repeat *ret, struct failure *failure) {
    struct outer outer = {0};
    int r = bind_mapping(document, node, "repeat", outer_fields, 1, &outer, failure);
    if (r < 0)
        return r;
    struct design_repeat repeat = {
        .wanted = true, .between = DESIGN_BETWEEN_NODE | DESIGN_BETWEEN_BLOCK, .place = place_of(node, NULL)};
    struct written written = {.confidence = 0.95, .at_least = 2};
    r = bind_until(document, outer.until, &written, &repeat, failure);
    bind_clear(fields, FIELD_COUNT, &written);
    if (r == 0)
        *ret = repeat;
    return r;
}

void design_repeat_clear(struct design_repeat *repeat) {
    free(repeat->response);
    *repeat = (struct design_repeat){0};
}

const char *design_repeat_between(const struct design_repeat *repeat) {
    static const char *const words[] = {
        [DESIGN_BETWEEN_NODE] = "node",
        [DESIGN_BETWEEN_BLOCK] = "block",
        [DESIGN_BETWEEN_NODE | DESIGN_BETWEEN_BLOCK] = "node, block",
    };
    return words[repeat->between];
}
