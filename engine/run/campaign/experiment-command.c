#include "engine/run/campaign/experiment-command.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <stdlib.h>
#include <string.h>

void experiment_command_clear(struct experiment_command *command) {
    free(command->line);
    bind_texts_clear(&command->arguments);
    *command = (struct experiment_command){0};
}

/* Binds one command of the key WHAT: a line for the shell, or a list of arguments. Empty commands are
 * refused. */
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

/* Binds the commands of the key WHAT: one line, or a sequence of commands. Without NODE there are none. */
int experiment_commands_bind(const struct document *document, const struct document_node *node,
                             const char *what, struct experiment_command **ret, size_t *ret_count,
                             struct failure *failure) {
    if (!node || node->kind == DOCUMENT_NULL)
        return 0;
    /* A single line is one command; a sequence is a sequence of commands. */
    size_t count = node->kind == DOCUMENT_SEQUENCE ? node->count : 1;
    if (count > EXPERIMENT_COMMANDS_MAX)
        return bind_refuse(document, node, failure,
                           "'%s' has %zu commands, expected at most %d; put several into a script", what,
                           count, EXPERIMENT_COMMANDS_MAX);
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
                         "'{%s}' is not a factor, option or other name that this command can "
                         "use%s%s%s",
                         word, nearest ? "; did you mean '{" : "", nearest ? nearest : "",
                         nearest ? "}'?" : "");
}

/* Replaces every {name} in ARGUMENT by its value; {{ and }} stand for braces. *RET is the caller's. Refused:
 * unknown names, and a result above EXPERIMENT_ARGUMENT_MAX bytes. */
static int fill_argument(const struct experiment_command *command, const char *argument, const char *file,
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
                             "an argument is longer than %d bytes with its values filled in; write "
                             "the content to a file and pass its name",
                             (int)EXPERIMENT_ARGUMENT_MAX);
    *ret = text_take(&filled);
    return 0;
}

/* ---- Shells */

/* Programs that execute a text: that of an option, or their operands. */
static const struct interpreter {
    const char *names;
    char option;        /* before its text; 0: all operands behind the first OPERANDS are text */
    size_t operands;    /* how many may stand before the option or the text: a user, a file, a host */
    const char *valued; /* where operands are text: options with a value in the next word */
} interpreters[] = {{" sh bash rbash dash ash zsh ksh mksh csh tcsh fish python ", 'c', 0, ""},
                    {" su runuser flock script ", 'c', 1, ""},
                    {" perl ruby Rscript lua julia ", 'e', 0, ""},
                    {" php ", 'r', 0, ""},
                    {" sg ", 0, 1, ""},
                    {" watch ", 0, 0, "nq"},
                    {" parallel ", 0, 0, "jaS"},
                    {" ssh ", 0, 1, "BbcDEeFIiJLlmOopQRSWw"}};

/* Programs that start the program in one of their arguments. Behind others, such as grep and rsync, a word
 * may be `ssh` or `watch` and start nothing. */
static const char starters[] =
    " env timeout nice nohup sudo doas setsid stdbuf time chrt ionice taskset numactl "
    "setarch chroot unshare xargs perf strace srun mpirun mpiexec ";

/* WORD is a program of NAMES, in whatever folder and version: /usr/bin/python3.11 */
static bool is_program(const char *word, const char *names) {
    const char *slash = strrchr(word, '/'), *base = slash ? slash + 1 : word;
    cleanup_free char *name = xformat(" %.*s ", (int)strcspn(base, "0123456789. "), base);
    return strstr(names, name);
}

static const struct interpreter *find_interpreter(const char *word) {
    for (size_t i = 0; i < sizeof interpreters / sizeof *interpreters; i++)
        if (is_program(word, interpreters[i].names))
            return &interpreters[i];
    return NULL;
}

/* Finds the words that INTERPRETER, which is WORDS[SHELL], executes as text, because they follow its option
 * as in `bash -eo pipefail -c TEXT` and `perl -eTEXT`. They are [*RET_FIRST, *RET_END), an empty range at
 * COUNT when there are none. */
static void find_option_text(const struct interpreter *interpreter, char *const *words, size_t count,
                             size_t shell, size_t *ret_first, size_t *ret_end) {
    size_t operands = interpreter->operands, at = shell + 1;
    *ret_first = *ret_end = count;
    for (; at < count; at++) {
        const char *option = words[at];
        bool is_text = false;
        if (!option[0] || !strchr("-+", option[0])) {
            if (*ret_first < count || operands-- == 0)
                break;
        } else if (option[1] == '-') {
            is_text = strncmp(option, "--command", 9) == 0 || strncmp(option, "--session-command", 17) == 0 ||
                      strncmp(option, "--eval", 6) == 0;
            at += strcmp(option, "--rcfile") == 0 || strcmp(option, "--init-file") == 0;
        } else {
            is_text = strchr(option, interpreter->option) != NULL;
            at += strpbrk(option, "oO") && at + 1 < count && words[at + 1][0] != '-'; /* its value */
        }
        if (is_text && *ret_first == count)
            *ret_first = at;
    }
    if (*ret_first < count)
        *ret_end = at < count ? at + 1 : count;
}

/* As find_option_text() for interpreters that execute their operands, as in `ssh HOST TEXT...` and `watch
 * TEXT...`. */
static void find_operand_text(const struct interpreter *interpreter, char *const *words, size_t count,
                              size_t shell, size_t *ret_first, size_t *ret_end) {
    size_t operands = interpreter->operands, at = shell + 1;
    for (; at < count; at++) {
        const char *word = words[at];
        if (word[0] != '-' && operands-- == 0)
            break;
        if (word[0] == '-' && word[1] && !word[2] && strchr(interpreter->valued, word[1]))
            at++;
    }
    *ret_first = at < count ? at : count;
    *ret_end = count;
}

/* The first {name} in ARGUMENT; NULL: none. */
static const char *find_braced_name(const char *argument) {
    const char *name = strchr(argument, '{');
    while (name && name[1] == '{') /* a brace, written twice */
        name = strchr(name + 2, '{');
    return name;
}

/* Refuses a {name} within text that a shell or interpreter executes: a value such as $(...) would be run. */
static int refuse_shell_text(const struct experiment_command *command, const char *file, char *const *words,
                             struct failure *failure) {
    size_t count = command->arguments.count;
    for (size_t shell = 0; shell < count; shell++) {
        const struct interpreter *interpreter = find_interpreter(words[shell]);
        size_t first = count, end = count;
        if (interpreter && interpreter->option)
            find_option_text(interpreter, words, count, shell, &first, &end);
        else if (interpreter && (shell == 0 || is_program(words[0], starters)))
            find_operand_text(interpreter, words, count, shell, &first, &end);
        for (size_t at = first; at < end; at++) {
            const char *name = find_braced_name(command->arguments.items[at]);
            int length = name ? (int)strcspn(name, "}") + 1 : 0;
            if (name && interpreter->option)
                return failure_input(
                    failure, file, command->where_line, command->where_column,
                    "'%.*s' stands in text that '%s' executes: a value such as '$(command)' would be "
                    "run; use the environment variable of the value's name, or pass the value as an "
                    "argument: [sh, -c, 'echo \"$1\"', sh, '%.*s']",
                    length, name, words[shell], length, name);
            if (name)
                return failure_input(
                    failure, file, command->where_line, command->where_column,
                    "'%.*s' stands in text that '%s' gives to a shell: a value such as '$(command)' would "
                    "be run; run a script of the experiment that reads the environment variable '%.*s'",
                    length, name, words[shell], length > 2 ? length - 2 : 0, name + 1);
        }
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

/* Makes the arguments with VALUES filled in; *RET is the caller's. A line becomes "sh -c LINE" without
 * values: the shell finds them in its environment. */
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
            r = fill_argument(command, command->arguments.items[i], file, values, &arguments[i], failure);
        if (r < 0)
            return r;
    }
    int r = command->line ? 0 : refuse_shell_text(command, file, arguments, failure);
    *ret = r < 0 ? NULL : take_pointer(arguments);
    return r;
}
