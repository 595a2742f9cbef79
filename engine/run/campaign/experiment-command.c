#include "engine/run/campaign/experiment-command.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void experiment_command_clear(struct experiment_command *command) {
    free(command->line);
    for (size_t i = 0; i < command->arguments.count; i++)
        free(command->arguments.items[i]);
    free(command->arguments.items);
    *command = (struct experiment_command){0};
}

int experiment_command_bind(const struct document *document, const struct document_node *node,
                            const char *what, struct experiment_command *ret, struct failure *failure) {
    *ret = (struct experiment_command){.where_line = node->line, .where_column = node->column};
    if (node->kind == DOCUMENT_SEQUENCE) {
        struct bind_field field = {.key = what, .type = BIND_TEXTS, .required = true};
        int r = bind_value(document, node, &field, &ret->arguments, failure);
        if (r == 0 && ret->arguments.count == 0)
            r = failure_input(failure, document->file, node->line, node->column,
                              "'%s' has an empty command, expected a program and its arguments", what);
        return r;
    }
    if (node->kind == DOCUMENT_MAPPING || node->kind == DOCUMENT_NULL)
        return failure_input(failure, document->file, node->line, node->column,
                             "'%s' has %s, expected a command: a line for the shell, or a list of arguments",
                             what, document_kind_name(node->kind));
    if (node->text[strspn(node->text, " \t\n")] == '\0')
        return failure_input(failure, document->file, node->line, node->column, "'%s' has an empty command",
                             what);
    ret->line = xstrdup(node->text);
    return 0;
}

int experiment_commands_bind(const struct document *document, const struct document_node *node,
                             const char *what, struct experiment_command **ret, size_t *ret_count,
                             struct failure *failure) {
    if (!node || node->kind == DOCUMENT_NULL)
        return 0;
    /* One line may stand alone; a sequence is a sequence of commands. */
    size_t count = node->kind == DOCUMENT_SEQUENCE ? node->count : 1;
    if (count > EXPERIMENT_COMMANDS_MOST)
        return failure_input(failure, document->file, node->line, node->column,
                             "'%s' has %zu commands, expected at most %d", what, count,
                             EXPERIMENT_COMMANDS_MOST);
    struct experiment_command *commands = xcalloc(count ? count : 1, sizeof *commands);
    int r = 0;
    size_t done = 0;
    for (; r == 0 && done < count; done++) {
        const struct document_node *item = node->kind == DOCUMENT_SEQUENCE ? node->items[done] : node;
        r = experiment_command_bind(document, item, what, &commands[done], failure);
    }
    if (r < 0) {
        experiment_commands_free(commands, done);
        return r;
    }
    *ret = commands;
    *ret_count = count;
    return 0;
}

void experiment_commands_free(struct experiment_command *commands, size_t count) {
    for (size_t i = 0; commands && i < count; i++)
        experiment_command_clear(&commands[i]);
    free(commands);
}

const char *experiment_values_get(const struct experiment_values *values, const char *name, size_t length) {
    for (size_t i = 0; i < values->count; i++)
        if (strlen(values->names[i]) == length && memcmp(values->names[i], name, length) == 0)
            return values->values[i];
    return NULL;
}

/* Appends ARGUMENT with every {name} replaced; {{ and }} stand for braces. */
static int fill(const char *argument, const struct experiment_values *values, const char **ret_unknown,
                size_t *ret_length, struct text *ret) {
    for (const char *at = argument; *at; at++) {
        int r;
        if ((*at == '{' || *at == '}') && at[1] == *at) {
            r = text_append_character(ret, *at++);
        } else if (*at == '{') {
            size_t length = strcspn(at + 1, "}");
            const char *value = at[1 + length] ? experiment_values_get(values, at + 1, length) : NULL;
            if (!value) {
                *ret_unknown = at + 1;
                *ret_length = length;
                return -ENOENT;
            }
            r = text_append_string(ret, value);
            at += length + 1;
        } else {
            r = text_append_character(ret, *at);
        }
        if (r < 0)
            return r;
    }
    return 0;
}

static void describe_unknown(const char *name, size_t length, const struct experiment_values *values,
                             struct text *ret) {
    char *word = strndup(name, length);
    const char *nearest = word ? text_nearest(word, values->names, values->count) : NULL;
    text_printf(ret, "'{%.*s}' names nothing that this command may use", (int)length, name);
    if (nearest)
        text_printf(ret, "; did you mean '{%s}'?", nearest);
    free(word);
}

void experiment_arguments_free(char **arguments) {
    for (size_t i = 0; arguments && arguments[i]; i++)
        free(arguments[i]);
    free(arguments);
}

int experiment_command_arguments(const struct experiment_command *command, const char *file,
                                 const struct experiment_values *values, char ***ret,
                                 struct failure *failure) {
    size_t count = command->line ? 3 : command->arguments.count;
    char **arguments = xcalloc(count + 1, sizeof *arguments);
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct text argument;
        text_init(&argument, EXPERIMENT_ARGUMENT_MOST);
        const char *unknown = NULL;
        size_t length = 0;
        if (command->line)
            r = text_append_string(&argument, i == 0 ? "sh" : i == 1 ? "-c" : command->line);
        else
            r = fill(command->arguments.items[i], values, &unknown, &length, &argument);
        if (r == -ENOENT) {
            struct text sentence;
            text_init(&sentence, FAILURE_TEXT_SIZE);
            describe_unknown(unknown, length, values, &sentence);
            failure_input(failure, file, command->where_line, command->where_column, "%s", sentence.bytes);
            text_clear(&sentence);
            r = -EINVAL;
        } else if (r < 0) {
            failure_set(failure, r, "an argument is too long: %s", strerror(-r));
        } else if (!(arguments[i] = text_take(&argument))) {
            r = failure_memory(failure);
        }
        text_clear(&argument);
    }
    if (r < 0) {
        experiment_arguments_free(arguments);
        return r;
    }
    *ret = arguments;
    return 0;
}

int experiment_command_check(const struct experiment_command *command, const char *file,
                             struct experiment_values values, struct failure *failure) {
    char **arguments;
    int r = experiment_command_arguments(command, file, &values, &arguments, failure);
    if (r == 0)
        experiment_arguments_free(arguments);
    return r;
}

int experiment_command_describe(char *const *arguments, struct text *ret) {
    int r = 0;
    for (size_t i = 0; r == 0 && arguments[i]; i++) {
        bool plain = arguments[i][0] != '\0' &&
                     strspn(arguments[i], "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789"
                                          "-_./=:,+@%") == strlen(arguments[i]);
        if (i > 0)
            r = text_append_character(ret, ' ');
        if (r == 0 && !plain)
            r = text_append_character(ret, '\'');
        for (const char *at = arguments[i]; r == 0 && *at; at++)
            r = *at == '\'' ? text_append_string(ret, "'\\''") : text_append_character(ret, *at);
        if (r == 0 && !plain)
            r = text_append_character(ret, '\'');
    }
    return r;
}
