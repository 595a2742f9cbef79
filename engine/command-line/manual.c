#include "engine/command-line/manual.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

/* The next line of *AT without its newline; *AT is moved past it. False at the end. */
static bool next_line(const char **at, const char **ret_line, size_t *ret_length) {
    if (**at == '\0')
        return false;
    *ret_line = *at;
    *ret_length = strcspn(*at, "\n");
    *at += *ret_length + ((*at)[*ret_length] == '\n');
    return true;
}

/* Columns that LENGTH bytes of UTF-8 take, at one a character. */
static size_t columns_of(const char *bytes, size_t length) {
    size_t columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)bytes[i] & 0xc0) != 0x80;
    return columns;
}

/* Appends words from column *COLUMN on, with line breaks before WIDTH and lines indented by INDENT. */
static void append_words(struct text *text, const char *bytes, size_t length, size_t indent, size_t width,
                         size_t *column) {
    for (size_t at = 0; at < length;) {
        size_t end = at;
        while (end < length && bytes[end] != ' ')
            end++;
        size_t columns = columns_of(bytes + at, end - at);
        if (columns > 0) {
            bool first = *column <= indent;
            if (!first && *column + 1 + columns > width) {
                text_append_character(text, '\n');
                *column = 0;
                first = true;
            }
            size_t blanks = *column < indent ? indent - *column : !first;
            text_printf(text, "%*s%.*s", (int)blanks, "", (int)(end - at), bytes + at);
            *column += blanks + columns;
        }
        at = end + 1;
    }
}

void manual_append_entry(struct text *text, const char *term, const char *meaning, size_t indent,
                         size_t width) {
    text_printf(text, "  %s", term);
    size_t column = 2 + columns_of(term, strlen(term));
    if (column + 2 > indent) {
        text_append_character(text, '\n');
        column = 0;
    }
    append_words(text, meaning, strlen(meaning), indent, width, &column);
    text_append_character(text, '\n');
}

/* Joins and wraps lines; lines that begin with a blank are kept as they are. */
static void append_description(struct text *text, const char *description, size_t width) {
    const char *line;
    size_t length, column = 0;
    while (next_line(&description, &line, &length)) {
        bool keep = length == 0 || line[0] == ' ';
        if (keep && column > 0)
            text_append_character(text, '\n');
        if (keep)
            text_printf(text, "%.*s\n", (int)length, line);
        else
            append_words(text, line, length, 0, width, &column);
        column = keep ? 0 : column;
    }
    if (column > 0)
        text_append_character(text, '\n');
}

static void append_item(struct text *text, const struct verb_option *item, size_t width) {
    enum { INDENT = 26, INDENT_NARROW = 10, NARROW_WIDTH = 60 };
    char words[128], letter[] = "    ";
    if (item->letter)
        snprintf(letter, sizeof letter, "-%c, ", item->letter);
    snprintf(words, sizeof words, "%s%s%s%s", item->name[0] == '-' ? letter : "", item->name,
             item->argument && item->argument[0] != '[' ? " " : "", item->argument ? item->argument : "");
    manual_append_entry(text, words, item->help, width < NARROW_WIDTH ? INDENT_NARROW : INDENT, width);
}

static void append_list(struct text *text, const char *title, const struct verb_option *items, size_t width) {
    text_printf(text, "\n%s:\n", title);
    for (; items && items->name; items++)
        append_item(text, items, width);
}

static bool is_letter_free(const struct verb_option *options, char letter) {
    while (options && options->name && options->letter != letter)
        options++;
    return !options || !options->name;
}

/* The title of the group that begins with COMMAND, or NULL. */
static const char *find_group(const char *command) {
    static const char *const groups[][2] = {{"run", "Measuring"},        {"nodes", "Nodes"},
                                            {"experiments", "Planning"}, {"fit", "Models"},
                                            {"archive", "Results"},      {"help", "Help"}};
    for (size_t i = 0; i < sizeof groups / sizeof *groups; i++)
        if (strcmp(groups[i][0], command) == 0)
            return groups[i][1];
    return NULL;
}

/* The page of VERB as text for the terminal; NULL: the page of the program. The caller frees. */
char *manual_text(const struct verb *verb, size_t width) {
    static const char usage[] = "Usage:", more[] = "'assay COMMAND --help' says more about a command.\n";
    const struct verb *page = verb ? verb : &verb_assay;
    const char help_letter = is_letter_free(page->options, 'h') ? 'h' : '\0';
    char title[256];
    size_t column = 0;
    struct text text;
    text_init(&text, SIZE_MAX / 2);
    snprintf(title, sizeof title, "assay %s - %s", verb ? verb->name : ASSAY_VERSION, page->summary);
    append_words(&text, title, strlen(title), 0, width, &column);
    text_printf(&text, "\n\n%s", usage);
    column = strlen(usage);
    append_words(&text, page->synopsis, strlen(page->synopsis), strlen(usage) + 1, width, &column);
    text_append_string(&text, "\n\n");
    append_description(&text, page->description, width);
    for (const struct verb *const *at = verb_table; !verb && *at; at++) {
        const char *title_of_group = find_group((*at)->name);
        if (title_of_group)
            append_list(&text, title_of_group, NULL, width);
        append_item(&text, &(struct verb_option){.name = (*at)->name, .help = (*at)->summary}, width);
    }
    append_list(&text, "Options", page->options, width);
    append_item(&text, &(struct verb_option){"--help", help_letter, NULL, "Print this help."}, width);
    if (!verb)
        append_list(&text, "Environment", verb_environment, width);
    append_list(&text, "Exit codes", verb_exit_codes, width);
    if (!verb) {
        text_append_character(&text, '\n');
        append_description(&text, more, width);
    }
    return text_take(&text);
}

size_t manual_width(int descriptor) {
    struct winsize size;
    if (ioctl(descriptor, TIOCGWINSZ, &size) < 0 || size.ws_col == 0)
        return 80;
    size_t width = size.ws_col;
    return width < MANUAL_WIDTH_LEAST ? MANUAL_WIDTH_LEAST
           : width > MANUAL_WIDTH_MAX ? MANUAL_WIDTH_MAX
                                      : width;
}
