#include "engine/run/campaign/experiment-command.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

void experiment_command_clear(struct experiment_command *command) {
    free(command->line);
    bind_texts_clear(&command->arguments);
    *command = (struct experiment_command){0};
}

int experiment_command_bind(const struct document *document, const struct document_node *node,
                            const char *what, struct experiment_command *ret, struct failure *failure) {
    *ret = (struct experiment_command){.where_line = node->line, .where_column = node->column};
    if (node->kind == DOCUMENT_SEQUENCE) {
        struct bind_field field = {.key = what, .type = BIND_TEXTS, .required = true};
        int r = bind_value(document, node, &field, &ret->arguments, failure);
        if (r == 0 && ret->arguments.count == 0)
            r = bind_refuse(document, node, failure,
                            "'%s' has an empty command, expected a program and its arguments", what);
        return r;
    }
    if (node->kind == DOCUMENT_MAPPING || node->kind == DOCUMENT_NULL)
        return bind_refuse(document, node, failure,
                           "'%s' has %s, expected a command: a line for the shell, or a list of arguments",
                           what, document_kind_name(node->kind));
    if (node->text[strspn(node->text, " \t\n")] == '\0')
        return bind_refuse(document, node, failure, "'%s' has an empty command", what);
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
    if (count > EXPERIMENT_COMMANDS_MAX)
        return bind_refuse(document, node, failure, "'%s' has %zu commands, expected at most %d", what, count,
                           EXPERIMENT_COMMANDS_MAX);
    struct experiment_command *commands = xcalloc(count + 1, sizeof *commands);
    *ret = commands;
    for (*ret_count = 0; *ret_count < count;) {
        const struct document_node *item = node->kind == DOCUMENT_SEQUENCE ? node->items[*ret_count] : node;
        int r = experiment_command_bind(document, item, what, &commands[(*ret_count)++], failure);
        if (r < 0)
            return r;
    }
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

static int refuse_unknown(const struct experiment_command *command, const char *file, const char *name,
                          size_t length, const struct experiment_values *values, struct failure *failure) {
    cleanup_free char *word = xstrndup(name, length);
    const char *nearest = text_nearest(word, values->names, values->count);
    return failure_input(failure, file, command->where_line, command->where_column,
                         "'{%s}' names nothing that this command may use%s%s%s", word,
                         nearest ? "; did you mean '{" : "", nearest ? nearest : "", nearest ? "}'?" : "");
}

/* ARGUMENT with every {name} replaced; {{ and }} stand for braces. */
static int fill(const struct experiment_command *command, const char *argument, const char *file,
                const struct experiment_values *values, char **ret, struct failure *failure) {
    cleanup(text_clear) struct text filled;
    text_init(&filled, EXPERIMENT_ARGUMENT_MAX);
    int r = 0;
    for (const char *at = argument; r == 0 && *at; at++) {
        size_t length = strcspn(at + 1, "}");
        if ((*at == '{' || *at == '}') && at[1] == *at) {
            r = text_append_character(&filled, *at++);
        } else if (*at == '{') {
            const char *value = at[1 + length] ? experiment_values_get(values, at + 1, length) : NULL;
            if (!value)
                return refuse_unknown(command, file, at + 1, length, values, failure);
            r = text_append_string(&filled, value);
            at += length + 1;
        } else {
            r = text_append_character(&filled, *at);
        }
    }
    if (r < 0)
        return failure_input(failure, file, command->where_line, command->where_column,
                             "an argument has more than %d bytes when its values are filled in; give the "
                             "content in a file and its name as the argument",
                             (int)EXPERIMENT_ARGUMENT_MAX);
    *ret = text_take(&filled);
    return 0;
}

/* ---- Shells */

/* Programs that execute the text of an option. */
static const struct interpreter {
    const char *name;
    char option;
    size_t operands; /* how many may stand before the option: a user, a file */
} interpreters[] = {{"sh", 'c', 0},      {"bash", 'c', 0},    {"rbash", 'c', 0}, {"dash", 'c', 0},
                    {"ash", 'c', 0},     {"zsh", 'c', 0},     {"ksh", 'c', 0},   {"mksh", 'c', 0},
                    {"csh", 'c', 0},     {"tcsh", 'c', 0},    {"fish", 'c', 0},  {"su", 'c', 1},
                    {"runuser", 'c', 1}, {"sg", 'c', 1},      {"flock", 'c', 1}, {"script", 'c', 1},
                    {"python", 'c', 0},  {"python3", 'c', 0}, {"perl", 'e', 0},  {"ruby", 'e', 0},
                    {"Rscript", 'e', 0}};

static const struct interpreter *find_interpreter(const char *word) {
    const char *slash = strrchr(word, '/'), *name = slash ? slash + 1 : word;
    for (size_t i = 0; i < sizeof interpreters / sizeof *interpreters; i++)
        if (strcmp(name, interpreters[i].name) == 0)
            return &interpreters[i];
    return NULL;
}

/* The index of the word that WORDS[shell] executes as text, as in `bash -eo pipefail -c TEXT`; COUNT or more:
 * there is none. */
static size_t find_shell_text(char *const *words, size_t count, size_t shell) {
    const struct interpreter *interpreter = find_interpreter(words[shell]);
    size_t operands = interpreter ? interpreter->operands : 0;
    bool is_text = false;
    size_t at = shell + 1;
    for (; interpreter && at < count; at++) {
        const char *option = words[at];
        if (!option[0] || !strchr("-+", option[0])) {
            if (is_text || operands-- == 0)
                break;
        } else if (option[1] == '-') {
            is_text |= strcmp(option, "--command") == 0;
            at += strcmp(option, "--rcfile") == 0 || strcmp(option, "--init-file") == 0;
        } else {
            is_text |= strchr(option, interpreter->option) != NULL;
            at += strpbrk(option, "oO") && at + 1 < count && words[at + 1][0] != '-'; /* its value */
        }
    }
    return is_text ? at : count;
}

/* A value in shell text would be executed where it has $(...) or a quote. */
static int refuse_shell_text(const struct experiment_command *command, const char *file, char *const *words,
                             struct failure *failure) {
    size_t count = command->arguments.count;
    for (size_t shell = 0; shell < count; shell++) {
        size_t text = find_shell_text(words, count, shell);
        const char *name = text < count ? strchr(command->arguments.items[text], '{') : NULL;
        while (name && name[1] == '{') /* a brace, written twice */
            name = strchr(name + 2, '{');
        int length = name ? (int)strcspn(name, "}") + 1 : 0;
        if (name)
            return failure_input(
                failure, file, command->where_line, command->where_column,
                "'%.*s' stands in text that '%s' executes: a value such as '$(command)' would be "
                "run; use the environment variable of the value's name, or pass the value as an "
                "argument: [sh, -c, 'echo \"$1\"', sh, '%.*s']",
                length, name, words[shell], length, name);
    }
    return 0;
}

void experiment_arguments_free(char **arguments) {
    for (size_t i = 0; arguments && arguments[i]; i++)
        free(arguments[i]);
    free(arguments);
}

static void free_arguments(char ***arguments) {
    experiment_arguments_free(*arguments);
}

int experiment_command_arguments(const struct experiment_command *command, const char *file,
                                 const struct experiment_values *values, char ***ret,
                                 struct failure *failure) {
    static const char *const shell[] = {"sh", "-c"};
    size_t count = command->line ? 3 : command->arguments.count;
    cleanup(free_arguments) char **arguments = xcalloc(count + 1, sizeof *arguments);
    for (size_t i = 0; i < count; i++) {
        int r = 0;
        if (command->line)
            arguments[i] = xstrdup(i < 2 ? shell[i] : command->line);
        else
            r = fill(command, command->arguments.items[i], file, values, &arguments[i], failure);
        if (r < 0)
            return r;
    }
    int r = command->line ? 0 : refuse_shell_text(command, file, arguments, failure);
    *ret = r < 0 ? NULL : take_pointer(arguments);
    return r;
}
