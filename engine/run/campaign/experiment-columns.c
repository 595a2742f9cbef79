/* Factors and responses: the columns of an experiment. */
#include "engine/run/campaign/experiment-bind.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/pattern.h"

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
    char *unit, *description, *default_text, *from_share, *from_time;
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
    {.key = "from-share", .type = BIND_TEXT, .offset = offsetof(struct written_factor, from_share)},
    {.key = "from-time", .type = BIND_TEXT, .offset = offsetof(struct written_factor, from_time)},
    {.key = "minimum", .type = BIND_NUMBER, .offset = offsetof(struct written_factor, minimum)},
    {.key = "maximum", .type = BIND_NUMBER, .offset = offsetof(struct written_factor, maximum)},
    {.key = "choices", .type = BIND_TEXTS, .offset = offsetof(struct written_factor, choices)},
};
enum { FACTOR_FIELD_COUNT = sizeof factor_fields / sizeof *factor_fields };

/* What shares and times mean is a number. */
static int bind_meanings(const struct document *document, const struct document_node *value,
                         struct written_factor *written, struct design_factor *ret, struct failure *failure) {
    static const char *const keys[] = {"from-share", "from-time"};
    const struct document_node *at[2];
    for (size_t i = 0; i < 2; i++) {
        at[i] = document_get(value, keys[i]);
        if (at[i] && ret->type == DESIGN_TEXT)
            return failure_input(failure, document->file, at[i]->line, at[i]->column,
                                 "factor '%s' is a text and has '%s', expected that of a number", ret->name,
                                 keys[i]);
    }
    ret->from_share = take_pointer(written->from_share);
    ret->from_time = take_pointer(written->from_time);
    ret->share_line = at[0] ? at[0]->line : 0;
    ret->share_column = at[0] ? at[0]->column : 0;
    ret->time_line = at[1] ? at[1]->line : 0;
    ret->time_column = at[1] ? at[1]->column : 0;
    return 0;
}

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
        if (r == 0)
            r = bind_meanings(document, value, &written, ret, failure);
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
    experiment->factors = xcalloc(node->count ? node->count : 1, sizeof *experiment->factors);
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

static const char *const response_types[] = {"number", "text", NULL};
static const struct bind_field response_fields[] = {
    {.key = "type",
     .type = BIND_CHOICE,
     .offset = offsetof(struct experiment_response, type),
     .choices = response_types},
    {.key = "unit", .type = BIND_TEXT, .offset = offsetof(struct experiment_response, unit)},
    {.key = "description", .type = BIND_TEXT, .offset = offsetof(struct experiment_response, description)},
    {.key = "pattern", .type = BIND_TEXT, .offset = offsetof(struct experiment_response, pattern)},
    {.key = "choices", .type = BIND_TEXTS, .offset = offsetof(struct experiment_response, choices)},
    {.key = "pass", .type = BIND_TEXTS, .offset = offsetof(struct experiment_response, pass)},
};
enum {
    RESPONSE_FIELD_COUNT = sizeof response_fields / sizeof *response_fields,
    COLUMN_FIELD_COUNT = 3, /* of them, those that a column of a table has too */
};

int experiment_bind_response(const struct document *document, const struct document_node *key,
                             const struct document_node *value, bool column, struct experiment_response *ret,
                             struct failure *failure) {
    if (!(ret->name = strdup(key->text)))
        return failure_memory(failure);
    int r = value->kind == DOCUMENT_NULL
                ? 0
                : bind_mapping(document, value, key->text, response_fields,
                               column ? COLUMN_FIELD_COUNT : RESPONSE_FIELD_COUNT, ret, failure);
    if (r < 0)
        return r;
    bool text = ret->type == EXPERIMENT_RESPONSE_TEXT;
    if (ret->unit && text) {
        const struct document_node *at = document_get(value, "unit");
        return failure_input(failure, document->file, at->line, at->column,
                             "'%s' is a text, which has no unit", ret->name);
    }
    if (ret->unit)
        return check_unit(document, value, ret->unit, failure);
    return (ret->unit = strdup(text ? "" : "1")) ? 0 : failure_memory(failure);
}

void experiment_response_clear(struct experiment_response *response) {
    free(response->name);
    bind_clear(response_fields, RESPONSE_FIELD_COUNT, response);
}

int experiment_check_pattern(const struct document *document, const struct document_node *node,
                             const char *name, const char *pattern, size_t *ret_groups,
                             struct failure *failure) {
    regex_t compiled;
    char reason[PATTERN_REASON_SIZE];
    int r = pattern_compile(pattern, &compiled, reason);
    if (r == -EINVAL)
        return failure_input(failure, document->file, node->line, node->column,
                             "the pattern of '%s', '%.100s%s', %s", name, pattern,
                             strlen(pattern) > 100 ? "..." : "", reason);
    if (r < 0)
        return failure_memory(failure);
    *ret_groups = compiled.re_nsub;
    tre_regfree(&compiled);
    return 0;
}

static bool is_choice(const struct experiment_response *response, const char *text) {
    for (size_t i = 0; i < response->choices.count; i++)
        if (strcmp(response->choices.items[i], text) == 0)
            return true;
    return false;
}

static int check_response(const struct document *document, const struct document_node *value, bool streamed,
                          const struct experiment_response *response, struct failure *failure) {
    const char *key = NULL, *wrong = NULL;
    if (streamed && response->pattern)
        key = "pattern", wrong = "has a pattern, but a streamed kernel answers with numbers";
    else if (streamed && response->type == EXPERIMENT_RESPONSE_TEXT)
        key = "type", wrong = "is a text, but a streamed kernel answers with numbers";
    else if (response->choices.count > 0 && response->type != EXPERIMENT_RESPONSE_TEXT)
        key = "choices", wrong = "has choices, but is a number, expected 'type: text'";
    for (size_t i = 0; !wrong && i < response->pass.count; i++)
        if (!is_choice(response, response->pass.items[i]))
            key = "pass", wrong = "is to pass with a text that is none of its choices";
    if (wrong) {
        const struct document_node *at = document_get(value, key);
        return failure_input(failure, document->file, at->line, at->column, "response '%s' %s",
                             response->name, wrong);
    }
    if (!response->pattern && !streamed)
        return failure_input(
            failure, document->file, value->line, value->column,
            "response '%s' has no pattern, expected one, since the run command is not streamed",
            response->name);
    size_t groups;
    return !response->pattern ? 0
                              : experiment_check_pattern(document, document_get(value, "pattern"),
                                                         response->name, response->pattern, &groups, failure);
}

int experiment_bind_responses(struct experiment *experiment, const struct document *document,
                              const struct document_node *node, struct failure *failure) {
    int r = experiment_check_count(document, node, "responses", failure);
    if (r < 0)
        return r;
    if (node->count == 0)
        return failure_input(failure, document->file, node->line, node->column,
                             "no responses, expected at least one");
    experiment->responses = xcalloc(node->count, sizeof *experiment->responses);
    for (size_t i = 0; r == 0 && i < node->count; i++) {
        const struct document_node *key = node->keys[i], *value = node->items[i];
        struct experiment_response *response = &experiment->responses[experiment->response_count++];
        r = experiment_check_name(document, key, "a response", failure);
        if (r == 0)
            r = experiment_check_name_is_free(experiment, document, key, failure);
        if (r == 0)
            r = experiment_bind_response(document, key, value, false, response, failure);
        if (r == 0)
            r = check_response(document, value, experiment->streamed, response, failure);
    }
    return r;
}

void experiment_responses_clear(struct experiment *experiment) {
    for (size_t i = 0; i < experiment->response_count; i++)
        experiment_response_clear(&experiment->responses[i]);
    free(experiment->responses);
}

int experiment_bind_pass(struct experiment *experiment, const struct document *document,
                         const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    if (experiment->streamed)
        return failure_input(
            failure, document->file, node->line, node->column,
            "a streamed kernel has no 'pass', expected one that ends when its results are wrong");
    if (node->kind != DOCUMENT_TEXT && node->kind != DOCUMENT_NUMBER)
        return failure_input(failure, document->file, node->line, node->column,
                             "'pass' is %s, expected an expression over the responses",
                             document_kind_name(node->kind));
    cleanup_free const char **names = xcalloc(experiment->response_count, sizeof *names);
    for (size_t i = 0; i < experiment->response_count; i++)
        names[i] = experiment->responses[i].name;
    int r = expression_parse(node->text, names, experiment->response_count, document->file, node->line,
                             node->column, &experiment->pass, failure);
    for (size_t i = 0; r == 0 && i < experiment->response_count; i++)
        if (experiment->responses[i].type == EXPERIMENT_RESPONSE_TEXT && expression_uses(experiment->pass, i))
            r = failure_input(failure, document->file, node->line, node->column,
                              "'%s' is a text; expected numbers here, and 'pass: [...]' of the response "
                              "itself with those of its choices that pass",
                              names[i]);
    return r;
}
