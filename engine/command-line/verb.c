#include "engine/command-line/verb.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

enum { NAMES_MAX = 64 };

/* Advice on WORD, which is none of the COUNT NAMES: the nearest of these, or OTHERWISE; the caller frees. */
static char *suggest_name(const char *word, const char *const *names, size_t count, const char *otherwise) {
    const char *nearest = text_nearest(word, names, count);
    return nearest ? xformat("did you mean '%s'?", nearest) : xstrdup(otherwise);
}

const char *verb_new_name(const char *words) {
    static const char *const renamed[][2] = {{"attach", "watch"},
                                             {"fetch", "archive fetch"},
                                             {"fit compare", "compare"},
                                             {"generate", "export"},
                                             {"status --follow", "watch"}};
    for (size_t i = 0; i < sizeof renamed / sizeof *renamed; i++)
        if (strcmp(renamed[i][0], words) == 0)
            return renamed[i][1];
    return NULL;
}

/* *RET is the command NAME. FAILURE_INPUT has the nearest name, or the new name of a command that was
 * renamed. */
int verb_find(const char *name, const struct verb **ret, struct failure *failure) {
    const char *names[NAMES_MAX];
    size_t count = 0;
    for (const struct verb *const *at = verb_table; *at && count < NAMES_MAX; at++) {
        if (strcmp((*at)->name, name) == 0) {
            *ret = *at;
            return 0;
        }
        names[count++] = (*at)->name;
    }
    const char *now = verb_new_name(name);
    cleanup_free char *advice = now ? xformat("did you mean '%s'?", now)
                                    : suggest_name(name, names, count, "'assay --help' lists them");
    return failure_input(failure, NULL, 0, 0, "there is no command '%s'; %s", name, advice);
}

/* ---- Reading what was given ------------------------------------------------------------------------------
 */

const char *verb_value(const struct verb_arguments *arguments, const char *name) {
    return verb_value_at(arguments, name, 0);
}

bool verb_switch(const struct verb_arguments *arguments, const char *name) {
    for (size_t i = 0; i < arguments->option_count; i++)
        if (strcmp(arguments->given[i]->name, name) == 0)
            return true;
    return false;
}

const char *verb_value_at(const struct verb_arguments *arguments, const char *name, size_t k) {
    for (size_t i = 0; i < arguments->option_count; i++)
        if (strcmp(arguments->given[i]->name, name) == 0 && k-- == 0)
            return arguments->values[i];
    return NULL;
}

const char **verb_values(const struct verb_arguments *arguments, const char *name, size_t *ret_count) {
    const char **values = xcalloc(arguments->option_count + 1, sizeof *values), *value;
    *ret_count = 0;
    while ((value = verb_value_at(arguments, name, *ret_count)))
        values[(*ret_count)++] = value;
    return values;
}

int verb_count(const struct verb_arguments *arguments, const char *name, uint64_t least, uint64_t most,
               uint64_t *ret, struct failure *failure) {
    const char *text = verb_value(arguments, name);
    uint64_t count;
    if (!text)
        return 0;
    if (!number_parse_uint64(text, strlen(text), &count) || count < least || count > most)
        return failure_input(failure, arguments->verb->name, 0, 0,
                             "%s '%.64s' is not a whole number from %" PRIu64 " to %" PRIu64, name, text,
                             least, most);
    *ret = count;
    return 0;
}

int verb_check_settings(const struct verb_arguments *arguments, const char *option, struct failure *failure) {
    const char *a, *b;
    for (size_t i = 0; (a = verb_value_at(arguments, option, i)); i++) {
        size_t length = strcspn(a, "=");
        for (size_t j = i + 1; (b = verb_value_at(arguments, option, j)); j++)
            if (strcspn(b, "=") == length && memcmp(a, b, length) == 0)
                return failure_input(failure, arguments->verb->name, 0, 0,
                                     "'%.*s' is set twice: '%s' and '%s'; expected one of them", (int)length,
                                     a, a, b);
    }
    return 0;
}

/* ---- Actions ----------------------------------------------------------------------------------------------
 */

static bool has_word(const char *words, const char *word) {
    size_t length = strlen(word);
    for (const char *at = words; at && (at = strstr(at, word)); at += length)
        if (at[length] == ' ' || at[length] == '\0')
            return true;
    return false;
}

/* Fails because VERB has no action NAME, with the nearest one or all of them. */
static int refuse_name(const struct verb *verb, const struct verb_action *actions, const char *name,
                       struct failure *failure) {
    const char *names[NAMES_MAX];
    cleanup(text_clear) struct text all;
    size_t count = 0;
    text_init(&all, FAILURE_TEXT_SIZE);
    for (const struct verb_action *at = actions; at->name && count < NAMES_MAX; at++) {
        text_printf(&all, "%s%s", count == 0 ? "expected " : at[1].name ? ", " : " or ", at->name);
        names[count++] = at->name;
    }
    cleanup_free char *advice = suggest_name(name, names, count, all.bytes);
    return failure_input(failure, NULL, 0, 0, "'assay %s' has no action '%.64s'; %s", verb->name, name,
                         advice);
}

/* Runs the action NAME after checking the number of operands. Options that only other actions have are
 * refused. */
int verb_run_action(const struct verb_arguments *arguments, const struct verb_action *actions,
                    const char *name, struct failure *failure) {
    const char *verb = arguments->verb->name;
    const struct verb_action *chosen = actions;
    while (chosen->name && strcmp(chosen->name, name) != 0)
        chosen++;
    if (!chosen->name)
        return refuse_name(arguments->verb, actions, name, failure);
    size_t count = arguments->operand_count > 0 ? arguments->operand_count - 1 : 0;
    if (count < chosen->least || count > chosen->most)
        return failure_input(failure, NULL, 0, 0, "'assay %s %s' has %zu operand%s; expected %s", verb, name,
                             count, count == 1 ? "" : "s", chosen->expected);
    for (size_t i = 0; i < arguments->option_count; i++) {
        const char *option = arguments->given[i]->name;
        for (const struct verb_action *at = actions; at->name; at++)
            if (has_word(at->options, option) && !has_word(chosen->options, option))
                return failure_input(failure, NULL, 0, 0, "'assay %s %s' has no option '%s'", verb, name,
                                     option);
    }
    return chosen->run(arguments, failure);
}

/* ---- Parsing ---------------------------------------------------------------------------------------------
 */

/* The words still to be read, and what grows from them; each list has room for a word each, and a word of
 * short switches may hold several options. */
struct parser {
    const char *const *words;
    size_t count, next;
    struct verb_arguments arguments;
};

void verb_arguments_clear(struct verb_arguments *arguments) {
    free(arguments->given);
    free(arguments->values);
    free(arguments->operands);
    *arguments = (struct verb_arguments){0};
}

static const struct verb_option *find_long(const struct verb *verb, const char *word, size_t length) {
    for (const struct verb_option *option = verb->options; option && option->name; option++)
        if (strlen(option->name) == length && memcmp(option->name, word, length) == 0)
            return option;
    return NULL;
}

static const struct verb_option *find_letter(const struct verb *verb, char letter) {
    for (const struct verb_option *option = verb->options; option && option->name; option++)
        if (option->letter && option->letter == letter)
            return option;
    return NULL;
}

/* Fails because VERB has no option WORD, with the nearest one. */
static int unknown_option(const struct verb *verb, const char *word, struct failure *failure) {
    const char *names[NAMES_MAX] = {"--help"};
    size_t count = 1;
    for (const struct verb_option *option = verb->options; option && option->name && count < NAMES_MAX;
         option++)
        names[count++] = option->name;
    cleanup_free char *words = xformat("%s %s", verb->name, word);
    cleanup_free char *otherwise = xformat("'assay %s --help' lists them", verb->name);
    const char *now = verb_new_name(words);
    cleanup_free char *advice =
        now ? xformat("did you mean 'assay %s'?", now) : suggest_name(word, names, count, otherwise);
    return failure_input(failure, verb->name, 0, 0, "unknown option '%s'; %s", word, advice);
}

/* Adds OPTION with VALUE, which came in the same word, or else with the next word if it needs one. */
static int add_option(struct parser *parser, const struct verb_option *option, const char *value,
                      struct failure *failure) {
    bool must_have_value = option->argument && option->argument[0] != '[';
    if (must_have_value && !value) {
        if (parser->next == parser->count)
            return failure_input(failure, parser->arguments.verb->name, 0, 0,
                                 "option '%s' needs an argument: %s %s", option->name, option->name,
                                 option->argument);
        value = parser->words[parser->next++];
    }
    bool is_single = option->argument && !text_ends_in(option->argument, "...");
    for (size_t i = 0; is_single && i < parser->arguments.option_count; i++)
        if (parser->arguments.given[i] == option)
            return failure_input(failure, parser->arguments.verb->name, 0, 0,
                                 "option '%s' is given twice; expected it once", option->name);
    parser->arguments.given[parser->arguments.option_count] = option;
    parser->arguments.values[parser->arguments.option_count++] = value;
    return 0;
}

/* Parses "--name" or "--name=VALUE". 1: it is --help. */
static int parse_long_option(struct parser *parser, const char *word, struct failure *failure) {
    const char *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    const struct verb_option *option = find_long(parser->arguments.verb, word, length);
    if (!option) {
        if (strcmp(word, "--help") == 0)
            return 1;
        cleanup_free char *name = xstrndup(word, length);
        return unknown_option(parser->arguments.verb, name, failure);
    }
    if (equals && !option->argument)
        return failure_input(failure, parser->arguments.verb->name, 0, 0,
                             "option '%s' takes no argument; found '%s'", option->name, equals + 1);
    return add_option(parser, option, equals ? equals + 1 : NULL, failure);
}

/* Parses letters in one word, "-ab" or "-nVALUE". 1: -h, which asks for help. */
static int parse_letters(struct parser *parser, const char *word, struct failure *failure) {
    for (const char *at = word + 1; *at; at++) {
        const struct verb_option *option = find_letter(parser->arguments.verb, *at);
        if (!option && *at == 'h')
            return 1;
        if (!option)
            return failure_input(failure, parser->arguments.verb->name, 0, 0,
                                 "unknown option '-%c'; 'assay %s --help' lists them", *at,
                                 parser->arguments.verb->name);
        bool rest_is_value = option->argument && at[1];
        int r = add_option(parser, option, rest_is_value ? at + 1 : NULL, failure);
        if (r < 0)
            return r;
        if (option->argument)
            break;
    }
    return 0;
}

/* Sorts all words into options and operands. 1: help is asked for. */
static int parse_words(struct parser *parser, struct failure *failure) {
    bool only_operands = false;
    while (parser->next < parser->count) {
        const char *word = parser->words[parser->next++];
        int r = 0;
        if (only_operands || word[0] != '-' || word[1] == '\0')
            parser->arguments.operands[parser->arguments.operand_count++] = word;
        else if (strcmp(word, "--") == 0)
            only_operands = true;
        else
            r = word[1] == '-' ? parse_long_option(parser, word, failure)
                               : parse_letters(parser, word, failure);
        if (r != 0)
            return r;
    }
    return 0;
}

static int check_operands(const struct verb_arguments *arguments, struct failure *failure) {
    const struct verb *verb = arguments->verb;
    if (arguments->operand_count < verb->operands_least)
        return failure_input(failure, verb->name, 0, 0, "too few operands; usage: %s", verb->synopsis);
    if (arguments->operand_count > verb->operands_most)
        return failure_input(failure, verb->name, 0, 0, "unexpected operand '%s'; usage: %s",
                             arguments->operands[verb->operands_most], verb->synopsis);
    return 0;
}

int verb_parse(const struct verb *verb, size_t count, const char *const *words, struct verb_arguments *ret,
               struct failure *failure) {
    struct parser parser = {.words = words, .count = count, .arguments.verb = verb};
    struct verb_arguments *arguments = &parser.arguments;
    size_t room = 1;
    for (size_t i = 0; i < count; i++)
        room += strlen(words[i]) + 1; /* at least the options that the words can hold */
    arguments->given = xcalloc(room, sizeof *arguments->given);
    arguments->values = xcalloc(room, sizeof *arguments->values);
    arguments->operands = xcalloc(count + 1, sizeof *arguments->operands);
    int r = parse_words(&parser, failure);
    if (r == 0)
        r = check_operands(arguments, failure);
    if (r == 0)
        *ret = *arguments;
    else
        verb_arguments_clear(arguments);
    return r;
}
