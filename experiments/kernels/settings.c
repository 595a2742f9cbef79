#include "settings.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const char *program = "kernel";

void die(int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fprintf(stderr, "%s: ", program);
    vfprintf(stderr, format, arguments);
    fputc('\n', stderr);
    va_end(arguments);
    exit(code);
}

/* Sets *RET to the decimal number that TEXT consists of. False if it is none, or exceeds MOST. */
static bool read_whole(const char *text, uint64_t most, uint64_t *ret) {
    uint64_t value = 0;
    if (*text == '\0')
        return false;
    for (const char *at = text; *at; at++) {
        if (*at < '0' || *at > '9')
            return false;
        uint64_t digit = (uint64_t)(*at - '0');
        if (value > (most - digit) / 10)
            return false;
        value = 10 * value + digit;
    }
    *ret = value;
    return true;
}

/* The index of TEXT among the setting's words; ends the program, with all words in the message, if it is
 * none. */
static int find_word(const struct setting *setting, const char *text, const char *where) {
    for (int i = 0; setting->words[i]; i++)
        if (strcmp(setting->words[i], text) == 0)
            return i;
    fprintf(stderr, "%s: %s%s '%.64s' is not known; expected", program, where, setting->name, text);
    for (int i = 0; setting->words[i]; i++)
        fprintf(stderr, "%s %s", i > 0 ? " or" : "", setting->words[i]);
    fputc('\n', stderr);
    exit(EXIT_INPUT);
}

/* Sets *RET to the value of TEXT; ends the program, with WHERE and the setting in the message, if it is out
 * of range. */
void setting_set(const struct setting *setting, const char *text, const char *where, struct value *ret) {
    char *end;
    switch (setting->kind) {
    case SETTING_WHOLE:
        if (!read_whole(text, setting->most, &ret->whole) || ret->whole < setting->least)
            die(EXIT_INPUT, "%s%s '%.64s' is not a whole number from %llu to %llu", where, setting->name,
                text, (unsigned long long)setting->least, (unsigned long long)setting->most);
        break;
    case SETTING_NUMBER:
        ret->number = strtod(text, &end);
        if (end == text || *end || !(ret->number >= setting->low && ret->number <= setting->high))
            die(EXIT_INPUT, "%s%s '%.64s' is not a number from %g to %g", where, setting->name, text,
                setting->low, setting->high);
        break;
    case SETTING_WORD:
        ret->word = find_word(setting, text, where);
        break;
    case SETTING_TEXT:
    case SETTING_FLAG:
        break;
    }
    ret->text = text;
    ret->known = true;
}

/* Prints the usage and a line for each setting, and exits with 0. */
static void print_help(const char *usage, const struct setting *settings, size_t count) {
    printf("usage: %s [OPTIONS]   %s\n", program, usage);
    for (size_t i = 0; i < count; i++) {
        const struct setting *setting = &settings[i];
        printf("  --%-18s %s", setting->name, setting->help);
        for (size_t k = 0; setting->words && setting->words[k]; k++)
            printf("%s %s", k > 0 ? "," : ":", setting->words[k]);
        if (setting->fallback && setting->fallback[0])
            printf(" (%s)", setting->fallback);
        printf("%s\n", setting->in_rows ? "; or a column" : "");
    }
    exit(0);
}

/* The index of the setting whose option is WORD; ends the program if there is none. */
static size_t find_setting(const char *word, const struct setting *settings, size_t count) {
    size_t i = 0;
    while (i < count && (strncmp(word, "--", 2) != 0 || strcmp(word + 2, settings[i].name) != 0))
        i++;
    if (i == count)
        die(EXIT_INPUT, "unknown option '%s'; '%s --help' lists the options", word, program);
    return i;
}

/* Sets the values to the defaults, then to the options of the command line; ends the program if one is
 * unknown or wrong. */
void settings_read(int argc, char **argv, const char *usage, const struct setting *settings, size_t count,
                   struct value *values) {
    const char *slash = argc > 0 ? strrchr(argv[0], '/') : NULL;
    program = slash ? slash + 1 : argc > 0 ? argv[0] : program;
    for (size_t i = 0; i < count; i++) {
        values[i] = (struct value){0};
        if (settings[i].fallback)
            setting_set(&settings[i], settings[i].fallback, "--", &values[i]);
    }
    for (int i = 1; i < argc; i++) {
        if (strcmp(argv[i], "--help") == 0)
            print_help(usage, settings, count);
        size_t k = find_setting(argv[i], settings, count);
        if (settings[k].kind != SETTING_FLAG && ++i == argc)
            die(EXIT_INPUT, "the option '%s' needs a value; '%s --help' lists the options", argv[i - 1],
                program);
        setting_set(&settings[k], argv[i], "--", &values[k]);
        values[k].given = true;
    }
}

void settings_require(const struct setting *settings, size_t count, const struct value *values) {
    for (size_t i = 0; i < count; i++)
        if (!values[i].known && !settings[i].in_rows && settings[i].kind != SETTING_FLAG)
            die(EXIT_INPUT, "--%s is missing; expected the %s", settings[i].name, settings[i].help);
}
