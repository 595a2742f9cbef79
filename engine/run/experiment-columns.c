/* Factors and responses: the columns of an experiment. */
#include "engine/run/experiment-bind.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/run/pattern.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Units go into headers, tables and JSON of others: one word that can be printed. */
static int check_unit(const struct document *document, const struct document_node *mapping, const char *unit,
                      struct failure *failure) {
    size_t length = strlen(unit), printable = 0;
    while (printable < length && unit[printable] > ' ' && unit[printable] < 0x7f && unit[printable] != ',' &&
           unit[printable] != '"')
        printable++;
    if (length > 0 && length <= 32 && printable == length)
        return 0;
    const struct document_node *at = document_get(mapping, "unit");
    return failure_input(
        failure, document->file, at->line, at->column,
        "unit '%.40s' is not a word of up to 32 printable ASCII characters, such as s, By or cycles", unit);
}

struct written_factor {
    int type;
    char *unit, *description, *default_text;
    double minimum, maximum;
    struct bind_texts choices;
};
static const char *const factor_types[] = {"integer", "number", "text", NULL};
static const struct bind_field factor_fields[] = {
    {.key = "type",
     .type = BIND_CHOICE,
     .offset = offsetof(struct written_factor, type),
     .choices = factor_types},
    {.key = "unit", .type = BIND_TEXT, .offset = offsetof(struct written_factor, unit)},
    {.key = "description", .type = BIND_TEXT, .offset = offsetof(struct written_factor, description)},
    {.key = "default", .type = BIND_TEXT, .offset = offsetof(struct written_factor, default_text)},
    {.key = "minimum", .type = BIND_NUMBER, .offset = offsetof(struct written_factor, minimum)},
    {.key = "maximum", .type = BIND_NUMBER, .offset = offsetof(struct written_factor, maximum)},
    {.key = "choices", .type = BIND_TEXTS, .offset = offsetof(struct written_factor, choices)},
};
enum { FACTOR_FIELD_COUNT = sizeof factor_fields / sizeof *factor_fields };

static int bind_factor(const struct document *document, const struct document_node *key,
                       const struct document_node *value, struct design_factor *ret,
                       struct failure *failure) {
    struct written_factor written = {.minimum = -1e300, .maximum = 1e300};
    int r = value->kind == DOCUMENT_NULL ? 0
                                         : bind_mapping(document, value, key->text, factor_fields,
                                                        FACTOR_FIELD_COUNT, &written, failure);
    if (r == 0 && written.minimum > written.maximum)
        r = failure_input(failure, document->file, value->line, value->column,
                          "factor '%s' has a minimum above its maximum", key->text);
    if (r == 0) {
        ret->name = strdup(key->text);
        ret->type = (enum design_type[]){DESIGN_INTEGER, DESIGN_NUMBER, DESIGN_TEXT}[written.type];
        if (written.unit)
            r = check_unit(document, value, written.unit, failure);
        ret->unit = take_pointer(written.unit);
        if (!ret->unit)
            ret->unit = strdup("1");
        ret->description = take_pointer(written.description);
        ret->minimum = written.minimum;
        ret->maximum = written.maximum;
        ret->choices = take_pointer(written.choices.items);
        ret->choice_count = written.choices.count;
        written.choices.count = 0;
        ret->default_text = take_pointer(written.default_text);
        const struct document_node *text_node = document_get(value, "default");
        ret->default_line = text_node ? text_node->line : 0;
        ret->default_column = text_node ? text_node->column : 0;
        if (r == 0 && (!ret->name || !ret->unit))
            r = failure_memory(failure);
    }
    bind_clear(factor_fields, FACTOR_FIELD_COUNT, &written);
    return r;
}

int experiment_bind_factors(struct experiment *experiment, const struct document *document,
                            const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    int r = experiment_check_count(document, node, "factors", failure);
    if (r < 0)
        return r;
    experiment->factors = calloc(node->count ? node->count : 1, sizeof *experiment->factors);
    if (!experiment->factors)
        return failure_memory(failure);
    for (size_t i = 0; r == 0 && i < node->count; i++) {
        r = experiment_check_name(document, node->keys[i], "a factor", failure);
        if (r == 0)
            r = experiment_check_name_is_free(experiment, document, node->keys[i], failure);
        if (r == 0)
            r = bind_factor(document, node->keys[i], node->items[i],
                            &experiment->factors[experiment->factor_count++], failure);
    }
    return r;
}

/* ---- Responses */

static const struct bind_field response_fields[] = {
    {.key = "unit", .type = BIND_TEXT, .offset = offsetof(struct experiment_response, unit)},
    {.key = "description", .type = BIND_TEXT, .offset = offsetof(struct experiment_response, description)},
    {.key = "pattern", .type = BIND_TEXT, .offset = offsetof(struct experiment_response, pattern)},
};

static int check_pattern(const struct document *document, const struct document_node *node,
                         const struct experiment_response *response, struct failure *failure) {
    regex_t compiled;
    char reason[PATTERN_REASON_SIZE];
    int r = pattern_compile(response->pattern, &compiled, reason);
    if (r == -EINVAL)
        return failure_input(failure, document->file, node->line, node->column,
                             "the pattern of '%s', '%.100s%s', %s", response->name, response->pattern,
                             strlen(response->pattern) > 100 ? "..." : "", reason);
    if (r < 0)
        return failure_memory(failure);
    tre_regfree(&compiled);
    return 0;
}

int experiment_bind_responses(struct experiment *experiment, const struct document *document,
                              const struct document_node *node, struct failure *failure) {
    int r = experiment_check_count(document, node, "responses", failure);
    if (r < 0)
        return r;
    if (node->count == 0)
        return failure_input(failure, document->file, node->line, node->column,
                             "no responses, expected at least one");
    experiment->responses = calloc(node->count, sizeof *experiment->responses);
    if (!experiment->responses)
        return failure_memory(failure);
    for (size_t i = 0; r == 0 && i < node->count; i++) {
        const struct document_node *key = node->keys[i], *value = node->items[i];
        struct experiment_response *response = &experiment->responses[experiment->response_count++];
        r = experiment_check_name(document, key, "a response", failure);
        if (r == 0)
            r = experiment_check_name_is_free(experiment, document, key, failure);
        if (r == 0 && !(response->name = strdup(key->text)))
            r = failure_memory(failure);
        if (r == 0 && value->kind != DOCUMENT_NULL)
            r = bind_mapping(document, value, key->text, response_fields, 3, response, failure);
        if (r == 0 && !response->unit && !(response->unit = strdup("1")))
            r = failure_memory(failure);
        if (r == 0 && value->kind != DOCUMENT_NULL && document_get(value, "unit"))
            r = check_unit(document, value, response->unit, failure);
        if (r == 0 && response->pattern && experiment->streamed) {
            const struct document_node *at = document_get(value, "pattern");
            r = failure_input(failure, document->file, at->line, at->column,
                              "response '%s' has a pattern, but a streamed kernel answers with numbers",
                              response->name);
        }
        if (r == 0 && response->pattern)
            r = check_pattern(document, document_get(value, "pattern"), response, failure);
        if (r == 0 && !response->pattern && !experiment->streamed)
            r = failure_input(
                failure, document->file, value->line, value->column,
                "response '%s' has no pattern, expected one, since the run command is not streamed",
                response->name);
    }
    return r;
}

void experiment_responses_clear(struct experiment *experiment) {
    for (size_t i = 0; i < experiment->response_count; i++) {
        free(experiment->responses[i].name);
        bind_clear(response_fields, 3, &experiment->responses[i]);
    }
    free(experiment->responses);
}
