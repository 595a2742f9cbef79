/* Options: settings of a whole campaign. */
#include "engine/run/campaign/experiment-bind.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

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

int experiment_bind_options(struct experiment *experiment, const struct document *document,
                            const struct document_node *node, struct failure *failure) {
    if (!node)
        return 0;
    int r = experiment_check_count(document, node, "options", failure);
    if (r < 0)
        return r;
    experiment->options = xcalloc(node->count ? node->count : 1, sizeof *experiment->options);
    for (size_t i = 0; r == 0 && i < node->count; i++) {
        r = experiment_check_name(document, node->keys[i], "an option", failure);
        if (r == 0)
            r = experiment_check_name_is_free(experiment, document, node->keys[i], failure);
        if (r == 0)
            r = bind_option(experiment, document, node->keys[i], node->items[i], failure);
    }
    return r;
}

struct experiment_option *experiment_find_option(const struct experiment *experiment, const char *name) {
    for (size_t i = 0; i < experiment->option_count; i++)
        if (experiment->options[i].name && strcmp(experiment->options[i].name, name) == 0)
            return &experiment->options[i];
    return NULL;
}

const char *experiment_option_value(const struct experiment *experiment, const char *name) {
    const struct experiment_option *option = experiment_find_option(experiment, name);
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
    struct experiment_option *option = experiment_find_option(experiment, name);
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
    char *copy = xstrdup(value);
    free(option->value);
    option->value = copy;
    option->given = true;
    return 0;
}

void experiment_options_clear(struct experiment *experiment) {
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
}
