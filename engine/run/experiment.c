#include "engine/run/experiment.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <limits.h>
#include <regex.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The mapping as bound, before it becomes a struct experiment. */
struct written {
    char *name, *summary;
    const struct document_node *factors, *require, *responses, *options, *packages, *source, *setup, *run,
        *teardown, *maxima, *memory, *estimate, *model, *design;
};

#define NODE(name_, member)                                                                                  \
    { .key = name_, .type = BIND_NODE, .offset = offsetof(struct written, member) }
#define MAPPING(name_, member)                                                                               \
    {                                                                                                        \
        .key = name_, .type = BIND_NODE, .offset = offsetof(struct written, member),                         \
        .kinds = 1 << DOCUMENT_MAPPING                                                                       \
    }

static const struct bind_field written_fields[] = {
    {.key = "name", .type = BIND_TEXT, .offset = offsetof(struct written, name), .required = true},
    {.key = "summary", .type = BIND_TEXT, .offset = offsetof(struct written, summary)},
    MAPPING("factors", factors),
    {.key = "require",
     .type = BIND_NODE,
     .offset = offsetof(struct written, require),
     .kinds = 1 << DOCUMENT_SEQUENCE},
    {.key = "responses",
     .type = BIND_NODE,
     .offset = offsetof(struct written, responses),
     .kinds = 1 << DOCUMENT_MAPPING,
     .required = true},
    MAPPING("options", options),
    NODE("packages", packages),
    MAPPING("source", source),
    NODE("setup", setup),
    {.key = "run", .type = BIND_NODE, .offset = offsetof(struct written, run), .required = true},
    NODE("teardown", teardown),
    MAPPING("maxima", maxima),
    NODE("memory", memory),
    NODE("estimate", estimate),
    MAPPING("model", model),
    NODE("design", design),
};
enum { WRITTEN_FIELD_COUNT = sizeof written_fields / sizeof *written_fields };

/* Names become environment variables and parts of file names: a letter, then letters, digits and underscores,
 * all lower case, so that they cannot meet PATH, LD_PRELOAD and their kind. */
static int check_name(const struct document *document, const struct document_node *key, const char *what,
                      struct failure *failure) {
    size_t length = strspn(key->text, "abcdefghijklmnopqrstuvwxyz0123456789_");
    if (key->text[0] >= 'a' && key->text[0] <= 'z' && key->text[length] == '\0' && length <= 64)
        return 0;
    return failure_input(
        failure, document->file, key->line, key->column,
        "'%s' cannot name %s, expected up to 64 lower-case letters, digits and underscores, a letter first",
        key->text, what);
}

static int check_count(const struct document *document, const struct document_node *node, const char *what,
                       struct failure *failure) {
    if (node->count <= EXPERIMENT_NAMES_MOST)
        return 0;
    return failure_input(failure, document->file, node->line, node->column, "%zu %s, expected at most %d",
                         node->count, what, EXPERIMENT_NAMES_MOST);
}

/* ---- Factors */

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

/* The names that every experiment has: columns of results.csv, and values of its commands. */
static const char *const reserved_names[] = {"unit", "row",  "repetition", "order",
                                             "node", "core", "start",      "cpus"};

/* Factors, responses, options and maxima share one space of names: they are columns, and what {name} and
 * $name mean. */
static int check_name_is_free(const struct experiment *experiment, const struct document *document,
                              const struct document_node *key, struct failure *failure) {
    const char *what = NULL;
    for (size_t i = 0; i < sizeof reserved_names / sizeof *reserved_names; i++)
        if (strcmp(reserved_names[i], key->text) == 0)
            what = "a name that every experiment has";
    for (size_t i = 0; i < experiment->factor_count; i++)
        if (experiment->factors[i].name && strcmp(experiment->factors[i].name, key->text) == 0)
            what = "a factor";
    for (size_t i = 0; i < experiment->response_count; i++)
        if (experiment->responses[i].name && strcmp(experiment->responses[i].name, key->text) == 0)
            what = "a response";
    if (experiment_option_value(experiment, key->text))
        what = "an option";
    if (!what)
        return 0;
    return failure_input(failure, document->file, key->line, key->column,
                         "'%s' is %s already, expected another name", key->text, what);
}

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

static int bind_factors(struct experiment *experiment, const struct document *document,
                        const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    int r = check_count(document, node, "factors", failure);
    if (r < 0)
        return r;
    experiment->factors = calloc(node->count ? node->count : 1, sizeof *experiment->factors);
    if (!experiment->factors)
        return failure_memory(failure);
    for (size_t i = 0; r == 0 && i < node->count; i++) {
        r = check_name(document, node->keys[i], "a factor", failure);
        if (r == 0)
            r = check_name_is_free(experiment, document, node->keys[i], failure);
        if (r == 0)
            r = bind_factor(document, node->keys[i], node->items[i],
                            &experiment->factors[experiment->factor_count++], failure);
    }
    return r;
}

/* ---- Responses ------------------------------------------------------------------------------------------
 */

static const struct bind_field response_fields[] = {
    {.key = "unit", .type = BIND_TEXT, .offset = offsetof(struct experiment_response, unit)},
    {.key = "description", .type = BIND_TEXT, .offset = offsetof(struct experiment_response, description)},
    {.key = "pattern", .type = BIND_TEXT, .offset = offsetof(struct experiment_response, pattern)},
};

/* A pattern must compile and have a group: the number. */
static int check_pattern(const struct document *document, const struct document_node *node,
                         const char *pattern, struct failure *failure) {
    regex_t compiled;
    int code = regcomp(&compiled, pattern, REG_EXTENDED | REG_NEWLINE);
    if (code != 0) {
        char reason[256];
        regerror(code, &compiled, reason, sizeof reason);
        return failure_input(failure, document->file, node->line, node->column,
                             "'%s' is not an extended regular expression: %s", pattern, reason);
    }
    size_t groups = compiled.re_nsub;
    regfree(&compiled);
    if (groups < 1)
        return failure_input(failure, document->file, node->line, node->column,
                             "pattern '%s' has no group, expected parentheses around the number", pattern);
    return 0;
}

static int bind_responses(struct experiment *experiment, const struct document *document,
                          const struct document_node *node, struct failure *failure) {
    int r = check_count(document, node, "responses", failure);
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
        r = check_name(document, key, "a response", failure);
        if (r == 0)
            r = check_name_is_free(experiment, document, key, failure);
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
            r = check_pattern(document, document_get(value, "pattern"), response->pattern, failure);
        if (r == 0 && !response->pattern && !experiment->streamed)
            r = failure_input(
                failure, document->file, value->line, value->column,
                "response '%s' has no pattern, expected one, since the run command is not streamed",
                response->name);
    }
    return r;
}

/* ---- Options --------------------------------------------------------------------------------------------
 */

struct written_option {
    int type;
    struct bind_texts choices;
    double minimum, maximum;
    char *description, *default_text;
};
static const char *const option_types[] = {"text", "integer", "number", NULL};
static const struct bind_field option_fields[] = {
    {.key = "type",
     .type = BIND_CHOICE,
     .offset = offsetof(struct written_option, type),
     .choices = option_types},
    {.key = "choices", .type = BIND_TEXTS, .offset = offsetof(struct written_option, choices)},
    {.key = "minimum", .type = BIND_NUMBER, .offset = offsetof(struct written_option, minimum)},
    {.key = "maximum", .type = BIND_NUMBER, .offset = offsetof(struct written_option, maximum)},
    {.key = "description", .type = BIND_TEXT, .offset = offsetof(struct written_option, description)},
    {.key = "default",
     .type = BIND_TEXT,
     .offset = offsetof(struct written_option, default_text),
     .required = true},
};
enum { OPTION_FIELD_COUNT = sizeof option_fields / sizeof *option_fields };

static int bind_option(struct experiment *experiment, const struct document *document,
                       const struct document_node *key, const struct document_node *value,
                       struct failure *failure) {
    struct written_option written = {.minimum = -1e300, .maximum = 1e300};
    struct experiment_option *option = &experiment->options[experiment->option_count++];
    int r = bind_mapping(document, value, key->text, option_fields, OPTION_FIELD_COUNT, &written, failure);
    if (r == 0) {
        option->name = strdup(key->text);
        option->type =
            written.choices.count
                ? EXPERIMENT_OPTION_CHOICE
                : (enum experiment_option_type[]){EXPERIMENT_OPTION_TEXT, EXPERIMENT_OPTION_INTEGER,
                                                  EXPERIMENT_OPTION_NUMBER}[written.type];
        option->choices = written.choices;
        written.choices = (struct bind_texts){0};
        option->minimum = written.minimum;
        option->maximum = written.maximum;
        option->description = take_pointer(written.description);
        const struct document_node *at = document_get(value, "default");
        r = option->name ? experiment_set_option(experiment, key->text, written.default_text, document->file,
                                                 at->line, at->column, failure)
                         : failure_memory(failure);
        option->given = false;
    }
    bind_clear(option_fields, OPTION_FIELD_COUNT, &written);
    return r;
}

static int bind_options(struct experiment *experiment, const struct document *document,
                        const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    int r = check_count(document, node, "options", failure);
    if (r < 0)
        return r;
    experiment->options = calloc(node->count ? node->count : 1, sizeof *experiment->options);
    if (!experiment->options)
        return failure_memory(failure);
    for (size_t i = 0; r == 0 && i < node->count; i++) {
        r = check_name(document, node->keys[i], "an option", failure);
        if (r == 0)
            r = check_name_is_free(experiment, document, node->keys[i], failure);
        if (r == 0)
            r = bind_option(experiment, document, node->keys[i], node->items[i], failure);
    }
    return r;
}

static struct experiment_option *find_option(const struct experiment *experiment, const char *name) {
    for (size_t i = 0; i < experiment->option_count; i++)
        if (experiment->options[i].name && strcmp(experiment->options[i].name, name) == 0)
            return &experiment->options[i];
    return NULL;
}

const char *experiment_option_value(const struct experiment *experiment, const char *name) {
    const struct experiment_option *option = find_option(experiment, name);
    return option ? option->value : NULL;
}

static int refuse_option(const struct experiment *experiment, const char *name, const char *file, size_t line,
                         size_t column, struct failure *failure) {
    const char *names[EXPERIMENT_NAMES_MOST];
    struct text known;
    text_init(&known, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < experiment->option_count; i++) {
        names[i] = experiment->options[i].name;
        text_printf(&known, "%s%s", i ? ", " : "", names[i]);
    }
    const char *nearest = text_nearest(name, names, experiment->option_count);
    if (nearest)
        failure_input(failure, file, line, column, "experiment '%s' has no option '%s'; did you mean '%s'?",
                      experiment->name, name, nearest);
    else
        failure_input(failure, file, line, column, "experiment '%s' has no option '%s'; it has: %s",
                      experiment->name, name, known.length ? known.bytes : "none");
    text_clear(&known);
    return -EINVAL;
}

static int check_option_number(const struct experiment_option *option, const char *value, const char *file,
                               size_t line, size_t column, struct failure *failure) {
    bool whole = option->type == EXPERIMENT_OPTION_INTEGER;
    double number;
    int64_t integer;
    if (number_parse_double(value, strlen(value), &number) &&
        (!whole || number_parse_int64(value, strlen(value), &integer)) && number >= option->minimum &&
        number <= option->maximum)
        return 0;
    char low[NUMBER_TEXT_SIZE], high[NUMBER_TEXT_SIZE], range[2 * NUMBER_TEXT_SIZE + 16] = "";
    number_format_double(option->minimum, low);
    number_format_double(option->maximum, high);
    if (option->minimum > -1e300 && option->maximum < 1e300)
        snprintf(range, sizeof range, " from %s to %s", low, high);
    else if (option->minimum > -1e300)
        snprintf(range, sizeof range, " of at least %s", low);
    else if (option->maximum < 1e300)
        snprintf(range, sizeof range, " of at most %s", high);
    return failure_input(failure, file, line, column, "option '%s' is '%s', expected a %snumber%s",
                         option->name, value, whole ? "whole " : "", range);
}

int experiment_set_option(struct experiment *experiment, const char *name, const char *value,
                          const char *file, size_t line, size_t column, struct failure *failure) {
    struct experiment_option *option = find_option(experiment, name);
    if (!option)
        return refuse_option(experiment, name, file, line, column, failure);
    int r = 0;
    if (option->type == EXPERIMENT_OPTION_CHOICE) {
        struct text choices;
        text_init(&choices, FAILURE_TEXT_SIZE / 2);
        bool known = false;
        for (size_t i = 0; i < option->choices.count; i++) {
            known |= strcmp(option->choices.items[i], value) == 0;
            text_printf(&choices, "%s%s", i ? ", " : "", option->choices.items[i]);
        }
        if (!known)
            r = failure_input(failure, file, line, column, "option '%s' is '%s', expected one of: %s", name,
                              value, choices.bytes);
        text_clear(&choices);
    } else if (option->type != EXPERIMENT_OPTION_TEXT) {
        r = check_option_number(option, value, file, line, column, failure);
    }
    if (r < 0)
        return r;
    /* "+5" and "5" are the same number, but not to every program. */
    int64_t integer;
    char canonical[NUMBER_TEXT_SIZE];
    if (option->type == EXPERIMENT_OPTION_INTEGER && number_parse_int64(value, strlen(value), &integer)) {
        number_format_int64(integer, canonical);
        value = canonical;
    }
    char *copy = strdup(value);
    if (!copy)
        return failure_memory(failure);
    free(option->value);
    option->value = copy;
    option->given = true;
    return 0;
}

/* ---- Expressions ----------------------------------------------------------------------------------------
 */

/* The names of the factors. The caller frees the array only. */
static const char **factor_names(const struct experiment *experiment) {
    const char **names = calloc(experiment->factor_count + 1, sizeof *names);
    for (size_t i = 0; names && i < experiment->factor_count; i++)
        names[i] = experiment->factors[i].name;
    return names;
}

static int parse_expression(const struct document *document, const struct document_node *node,
                            const char *what, const char *const *names, size_t count, struct expression **ret,
                            struct failure *failure) {
    if (node->kind != DOCUMENT_TEXT && node->kind != DOCUMENT_NUMBER)
        return failure_input(failure, document->file, node->line, node->column,
                             "'%s' is %s, expected an expression", what, document_kind_name(node->kind));
    return expression_parse(node->text, names, count, document->file, node->line, node->column, ret, failure);
}

static int bind_conditions(struct experiment *experiment, const struct document *document,
                           const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    int r = check_count(document, node, "conditions", failure);
    if (r < 0)
        return r;
    cleanup_free const char **names = factor_names(experiment);
    experiment->conditions = calloc(node->count ? node->count : 1, sizeof *experiment->conditions);
    if (!names || !experiment->conditions)
        return failure_memory(failure);
    for (size_t i = 0; r == 0 && i < node->count; i++)
        r = parse_expression(document, node->items[i], "require", names, experiment->factor_count,
                             &experiment->conditions[experiment->condition_count++], failure);
    return r;
}

static int bind_maxima(struct experiment *experiment, const struct document *document,
                       const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    int r = check_count(document, node, "maxima", failure);
    if (r < 0)
        return r;
    cleanup_free const char **names = factor_names(experiment);
    experiment->maxima = calloc(node->count ? node->count : 1, sizeof *experiment->maxima);
    if (!names || !experiment->maxima)
        return failure_memory(failure);
    for (size_t i = 0; r == 0 && i < node->count; i++) {
        struct experiment_maximum *maximum = &experiment->maxima[experiment->maximum_count++];
        r = check_name(document, node->keys[i], "a maximum", failure);
        if (r == 0)
            r = check_name_is_free(experiment, document, node->keys[i], failure);
        if (r == 0 && !(maximum->name = strdup(node->keys[i]->text)))
            r = failure_memory(failure);
        if (r == 0)
            r = parse_expression(document, node->items[i], maximum->name, names, experiment->factor_count,
                                 &maximum->expression, failure);
    }
    return r;
}

static int bind_costs(struct experiment *experiment, const struct document *document,
                      const struct written *written, struct failure *failure) {
    int r = 0;
    if (written->estimate) {
        cleanup_free const char **names = factor_names(experiment);
        if (!names)
            return failure_memory(failure);
        r = parse_expression(document, written->estimate, "estimate", names, experiment->factor_count,
                             &experiment->estimate, failure);
    }
    if (r == 0 && written->memory) {
        cleanup_free const char **names = calloc(experiment->maximum_count + 1, sizeof *names);
        if (!names)
            return failure_memory(failure);
        for (size_t i = 0; i < experiment->maximum_count; i++)
            names[i] = experiment->maxima[i].name;
        r = parse_expression(document, written->memory, "memory", names, experiment->maximum_count,
                             &experiment->memory, failure);
    }
    return r;
}

/* ---- Run, source, model ---------------------------------------------------------------------------------
 */

struct written_run {
    const struct document_node *streamed, *command;
    char *placement;
    double timeout;
};
static const struct bind_field run_fields[] = {
    {.key = "streamed", .type = BIND_NODE, .offset = offsetof(struct written_run, streamed)},
    {.key = "command", .type = BIND_NODE, .offset = offsetof(struct written_run, command)},
    {.key = "placement", .type = BIND_TEXT, .offset = offsetof(struct written_run, placement)},
    {.key = "timeout",
     .type = BIND_QUANTITY,
     .offset = offsetof(struct written_run, timeout),
     .dimension = UNIT_TIME,
     .minimum = 1e-3,
     .maximum = 1e8},
};
enum { RUN_FIELD_COUNT = sizeof run_fields / sizeof *run_fields };

static int bind_run(struct experiment *experiment, const struct document *document,
                    const struct document_node *node, struct failure *failure) {
    if (node->kind != DOCUMENT_MAPPING)
        return experiment_command_bind(document, node, "run", &experiment->run, failure);
    struct written_run written = {0};
    int r = bind_mapping(document, node, "run", run_fields, RUN_FIELD_COUNT, &written, failure);
    if (r == 0 && !written.streamed == !written.command)
        r = failure_input(failure, document->file, node->line, node->column,
                          "'run' has %s, expected one of 'streamed' and 'command'",
                          written.command ? "both" : "neither");
    if (r == 0 && written.streamed && written.timeout > 0) {
        const struct document_node *at = document_get(node, "timeout");
        r = failure_input(failure, document->file, at->line, at->column,
                          "'timeout' is for a command a unit; a streamed kernel has none");
    }
    if (r == 0) {
        experiment->streamed = written.streamed;
        r = experiment_command_bind(document, written.streamed ? written.streamed : written.command, "run",
                                    &experiment->run, failure);
    }
    experiment->timeout = written.timeout;
    experiment->placement_text = take_pointer(written.placement);
    const struct document_node *at = document_get(node, "placement");
    experiment->placement_line = at ? at->line : 0;
    experiment->placement_column = at ? at->column : 0;
    return r;
}

static const struct bind_field source_fields[] = {
    {.key = "git", .type = BIND_TEXT, .offset = offsetof(struct experiment_source, git)},
    {.key = "at", .type = BIND_TEXT, .offset = offsetof(struct experiment_source, at)},
    {.key = "folder", .type = BIND_TEXT, .offset = offsetof(struct experiment_source, folder)},
};

/* "https://name:token@host/...", "https://token@host/...": the campaign goes into the archive byte for byte,
 * and secrets never do. In ssh URLs the part before the @ is a user's name. */
static bool has_secret(const char *url) {
    const char *authority = strstr(url, "://");
    if (!authority)
        return false;
    bool http = strncmp(url, "http", 4) == 0;
    authority += 3;
    size_t length = strcspn(authority, "/?#");
    const char *at = memchr(authority, '@', length);
    return at && (http || memchr(authority, ':', (size_t)(at - authority)));
}

static int bind_source(struct experiment *experiment, const struct document *document,
                       const struct document_node *node, const char *base_folder, struct failure *failure) {
    if (!node)
        return 0;
    struct experiment_source *source = &experiment->source;
    int r = bind_mapping(document, node, "source", source_fields, 3, source, failure);
    if (r < 0)
        return r;
    if (!source->git == !source->folder || (source->at && !source->git))
        return failure_input(failure, document->file, node->line, node->column,
                             "'source' expects either 'git' (with 'at' if wanted) or 'folder'");
    /* git would take these for options. */
    for (int i = 0; i < 2; i++) {
        const char *key = i == 0 ? "git" : "at", *value = i == 0 ? source->git : source->at;
        const struct document_node *at = document_get(node, key);
        if (value && (value[0] == '-' || value[0] == '\0'))
            return failure_input(failure, document->file, at->line, at->column,
                                 "'%s' is '%s', expected a name", key, value);
    }
    if (source->git && has_secret(source->git)) {
        const struct document_node *at = document_get(node, "git");
        return failure_input(
            failure, document->file, at->line, at->column,
            "the URL has a user's secret in it, which would be kept in the archive; expected one "
            "without (git's credential helpers keep secrets)");
    }
    if (source->folder && source->folder[0] != '/') {
        char *absolute = file_join(base_folder, source->folder);
        if (!absolute)
            return failure_memory(failure);
        free(source->folder);
        source->folder = absolute;
    }
    if (source->folder && !file_is_folder(source->folder)) {
        const struct document_node *at = document_get(node, "folder");
        return failure_input(failure, document->file, at->line, at->column,
                             "'%s' is not a folder that is there", source->folder);
    }
    return 0;
}

static const struct bind_field model_fields[] = {
    {.key = "method",
     .type = BIND_TEXT,
     .offset = offsetof(struct experiment_model, method),
     .required = true},
    {.key = "response",
     .type = BIND_TEXT,
     .offset = offsetof(struct experiment_model, response),
     .required = true},
    {.key = "terms", .type = BIND_TEXT, .offset = offsetof(struct experiment_model, terms)},
    {.key = "sizes", .type = BIND_TEXTS, .offset = offsetof(struct experiment_model, sizes)},
    {.key = "by", .type = BIND_TEXTS, .offset = offsetof(struct experiment_model, by)},
};
enum { MODEL_FIELD_COUNT = sizeof model_fields / sizeof *model_fields };

static int bind_model(struct experiment *experiment, const struct document *document,
                      const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    experiment->model = calloc(1, sizeof *experiment->model);
    if (!experiment->model)
        return failure_memory(failure);
    int r =
        bind_mapping(document, node, "model", model_fields, MODEL_FIELD_COUNT, experiment->model, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < experiment->response_count; i++)
        if (strcmp(experiment->responses[i].name, experiment->model->response) == 0)
            return 0;
    const struct document_node *at = document_get(node, "response");
    return failure_input(failure, document->file, at->line, at->column,
                         "'%s' is not a response of this experiment", experiment->model->response);
}

static int bind_packages(struct experiment *experiment, const struct document *document,
                         const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    struct bind_field field = {.key = "packages", .type = BIND_TEXTS};
    int r = bind_value(document, node, &field, &experiment->packages, failure);
    for (size_t i = 0; r == 0 && i < experiment->packages.count; i++) {
        const char *name = experiment->packages.items[i];
        size_t length = strlen(name);
        /* Debian Policy 5.6.1; apt would take a dash at the end for "remove". */
        if (strspn(name, "abcdefghijklmnopqrstuvwxyz0123456789+-.") != length || length < 2 ||
            name[length - 1] == '-' || strchr("+-.", name[0]))
            r = failure_input(failure, document->file, node->line, node->column,
                              "'%s' is not the name of a Debian package", name);
    }
    return r;
}

/* ---- The whole -------------------------------------------------------------------------------------------
 */

int experiment_from_node(const struct document *document, const struct document_node *node,
                         const char *base_folder, struct experiment **ret, struct failure *failure) {
    struct experiment *experiment = calloc(1, sizeof *experiment);
    if (!experiment)
        return failure_memory(failure);
    experiment->file = document->file;
    experiment->source_document = document;
    struct written written = {0};
    int r =
        bind_mapping(document, node, "experiment", written_fields, WRITTEN_FIELD_COUNT, &written, failure);
    if (r == 0 && (strspn(written.name, "abcdefghijklmnopqrstuvwxyz0123456789-_") != strlen(written.name) ||
                   !written.name[0] || strlen(written.name) > 64)) {
        const struct document_node *at = document_get(node, "name");
        r = failure_input(
            failure, document->file, at->line, at->column,
            "'%s' cannot name an experiment, expected up to 64 lower-case letters, digits, - and _",
            written.name);
    }
    experiment->name = take_pointer(written.name);
    experiment->summary = take_pointer(written.summary);
    experiment->design_node = written.design;
    if (r == 0)
        r = bind_factors(experiment, document, written.factors, failure);
    if (r == 0)
        r = bind_run(experiment, document, written.run, failure);
    if (r == 0)
        r = bind_responses(experiment, document, written.responses, failure);
    if (r == 0)
        r = bind_options(experiment, document, written.options, failure);
    if (r == 0)
        r = bind_conditions(experiment, document, written.require, failure);
    if (r == 0)
        r = bind_maxima(experiment, document, written.maxima, failure);
    if (r == 0)
        r = bind_costs(experiment, document, &written, failure);
    if (r == 0)
        r = bind_packages(experiment, document, written.packages, failure);
    if (r == 0)
        r = bind_source(experiment, document, written.source, base_folder, failure);
    if (r == 0)
        r = experiment_commands_bind(document, written.setup, "setup", &experiment->setup,
                                     &experiment->setup_count, failure);
    if (r == 0)
        r = experiment_commands_bind(document, written.teardown, "teardown", &experiment->teardown,
                                     &experiment->teardown_count, failure);
    if (r == 0)
        r = bind_model(experiment, document, written.model, failure);
    bind_clear(written_fields, WRITTEN_FIELD_COUNT, &written);
    if (r < 0) {
        experiment_free(experiment);
        return r;
    }
    *ret = experiment;
    return 0;
}

int experiment_resolve(struct experiment *experiment, struct failure *failure) {
    experiment->placement = EXPERIMENT_PLACEMENT_NODE;
    const char *text = experiment->placement_text;
    if (!text)
        return 0;
    size_t length = strlen(text);
    if (length > 2 && text[0] == '{' && text[length - 1] == '}') {
        cleanup_free char *name = strndup(text + 1, length - 2);
        text = name ? experiment_option_value(experiment, name) : NULL;
    }
    if (text && strcmp(text, "core") == 0)
        experiment->placement = EXPERIMENT_PLACEMENT_CORE;
    else if (!text || strcmp(text, "node") != 0)
        return failure_input(failure, experiment->file, experiment->placement_line,
                             experiment->placement_column,
                             "'placement' is '%s', expected core, node, or an option that is one of them",
                             experiment->placement_text);
    return 0;
}

void experiment_free(struct experiment *experiment) {
    if (!experiment)
        return;
    for (size_t i = 0; i < experiment->factor_count; i++)
        design_factor_clear(&experiment->factors[i]);
    free(experiment->factors);
    for (size_t i = 0; i < experiment->condition_count; i++)
        expression_free(experiment->conditions[i]);
    free(experiment->conditions);
    for (size_t i = 0; i < experiment->response_count; i++) {
        free(experiment->responses[i].name);
        bind_clear(response_fields, 3, &experiment->responses[i]);
    }
    free(experiment->responses);
    for (size_t i = 0; i < experiment->option_count; i++) {
        struct experiment_option *option = &experiment->options[i];
        for (size_t j = 0; j < option->choices.count; j++)
            free(option->choices.items[j]);
        free(option->choices.items);
        free(option->name);
        free(option->description);
        free(option->value);
    }
    free(experiment->options);
    for (size_t i = 0; i < experiment->maximum_count; i++) {
        free(experiment->maxima[i].name);
        expression_free(experiment->maxima[i].expression);
    }
    free(experiment->maxima);
    expression_free(experiment->memory);
    expression_free(experiment->estimate);
    for (size_t i = 0; i < experiment->packages.count; i++)
        free(experiment->packages.items[i]);
    free(experiment->packages.items);
    bind_clear(source_fields, 3, &experiment->source);
    experiment_commands_free(experiment->setup, experiment->setup_count);
    experiment_commands_free(experiment->teardown, experiment->teardown_count);
    experiment_command_clear(&experiment->run);
    if (experiment->model)
        bind_clear(model_fields, MODEL_FIELD_COUNT, experiment->model);
    free(experiment->model);
    free(experiment->placement_text);
    free(experiment->name);
    free(experiment->summary);
    free(experiment->folder);
    document_free(experiment->document);
    free(experiment);
}
