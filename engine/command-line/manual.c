#include "engine/command-line/manual.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

/* One row a failure_kind; the README repeats them. */
static const struct {
    enum failure_kind kind;
    const char *meaning;
} exit_codes[] = {
    {FAILURE_NONE, "done"},
    {FAILURE_SYSTEM, "a file, a process or memory failed; also when standard output could not be written"},
    {FAILURE_INPUT,
     "what was given is wrong (command line, campaign, design, ...): nothing has been touched"},
    {FAILURE_EXPERIMENT, "the experiment ran and failed; its archive says so"},
    {FAILURE_INTERRUPTED, "interrupted by the user or a signal; what there was is sealed"},
    {FAILURE_VERIFICATION, "an archive is damaged, hostile, or not what its manifest says"},
    {FAILURE_PARTIAL, "a run ended in good order before every unit was done (its deadline, SIGUSR2, "
                      "SIGTERM); what there is was sealed"},
};

static const struct {
    const char *name;
    const char *meaning;
} environment[] = {
    {"ASSAY_PATH",
     "Folders separated by colons, whose plugins/ and experiments/ are searched before the installed ones."},
    {"ASSAY_NODES", "The nodes of 'assay nodes' where -w does not name them."},
};

/* What a list explains: a command, an option, an exit code or a variable. */
struct term {
    bool is_option;
    char letter; /* of an option, or 0 */
    const char *name, *argument, *meaning;
};

struct page {
    struct text text;
    size_t width;
};

/* How a page is written. */
struct sink {
    void (*begin)(struct page *page, const struct verb *verb, const char *summary, const char *synopsis);
    void (*describe)(struct page *page, const char *paragraphs);
    void (*list)(struct page *page, const char *title);
    void (*item)(struct page *page, const struct term *term);
    void (*end)(struct page *page, const struct verb *verb);
};

/* ---- What a page has */

static void visit_options(struct page *page, const struct sink *sink, const struct verb *verb) {
    bool is_help_letter_free = true;
    sink->list(page, "Options");
    for (const struct verb_option *option = verb ? verb->options : NULL; option && option->name; option++) {
        sink->item(page, &(struct term){true, option->letter, option->name, option->argument, option->help});
        is_help_letter_free = is_help_letter_free && option->letter != 'h';
    }
    char letter = is_help_letter_free ? 'h' : '\0';
    sink->item(page, &(struct term){true, letter, "--help", NULL, "Print this help."});
    if (!verb)
        sink->item(page, &(struct term){true, 0, "--version", NULL, "Print the version."});
}

static void visit_exit_codes(struct page *page, const struct sink *sink) {
    sink->list(page, "Exit codes");
    for (size_t i = 0; i < sizeof exit_codes / sizeof *exit_codes; i++) {
        char code[16];
        snprintf(code, sizeof code, "%d", (int)exit_codes[i].kind);
        sink->item(page, &(struct term){.name = code, .meaning = exit_codes[i].meaning});
    }
}

/* VERB NULL: the program's. */
static char *visit(const struct verb *verb, const struct sink *sink, size_t width) {
    struct page page = {.width = width};
    text_init(&page.text, SIZE_MAX / 2);
    const struct verb *own = verb ? verb : &verb_assay;
    sink->begin(&page, verb, own->summary, own->synopsis);
    sink->describe(&page, own->description);
    if (!verb) {
        sink->list(&page, "Commands");
        for (const struct verb *const *at = verb_table; *at; at++)
            sink->item(&page, &(struct term){.name = (*at)->name, .meaning = (*at)->summary});
    }
    visit_options(&page, sink, verb);
    if (!verb) {
        sink->list(&page, "Environment");
        for (size_t i = 0; i < sizeof environment / sizeof *environment; i++)
            sink->item(&page, &(struct term){.name = environment[i].name, .meaning = environment[i].meaning});
    }
    visit_exit_codes(&page, sink);
    sink->end(&page, verb);
    return text_take(&page.text);
}

/* The next line of *AT without its newline; *AT is moved past it. False at the end. */
static bool next_line(const char **at, const char **ret_line, size_t *ret_length) {
    if (**at == '\0')
        return false;
    *ret_line = *at;
    *ret_length = strcspn(*at, "\n");
    *at += *ret_length + ((*at)[*ret_length] == '\n');
    return true;
}

/* ---- Text ------------------------------------------------------------------------------------------------
 */

/* Columns that LENGTH bytes of UTF-8 take, at one a character. */
static size_t columns_of(const char *bytes, size_t length) {
    size_t columns = 0;
    for (size_t i = 0; i < length; i++)
        columns += ((unsigned char)bytes[i] & 0xc0) != 0x80;
    return columns;
}

/* Writes the words of BYTES[0..LENGTH) at column *COLUMN, breaking before WIDTH to INDENT. */
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

/* Lines are joined and wrapped, those that begin with a blank are kept. */
static void describe_in_text(struct page *page, const char *paragraphs) {
    const char *line;
    size_t length, column = 0;
    while (next_line(&paragraphs, &line, &length)) {
        bool keep = length == 0 || line[0] == ' ';
        if (keep && column > 0)
            text_append_character(&page->text, '\n');
        if (keep)
            text_printf(&page->text, "%.*s\n", (int)length, line);
        else
            append_words(&page->text, line, length, 0, page->width, &column);
        column = keep ? 0 : column;
    }
    if (column > 0)
        text_append_character(&page->text, '\n');
}

static void begin_text(struct page *page, const struct verb *verb, const char *summary,
                       const char *synopsis) {
    static const char usage[] = "Usage:";
    char title[256];
    size_t column = 0;
    snprintf(title, sizeof title, "assay %s - %s", verb ? verb->name : ASSAY_VERSION, summary);
    append_words(&page->text, title, strlen(title), 0, page->width, &column);
    text_printf(&page->text, "\n\n%s", usage);
    column = strlen(usage);
    append_words(&page->text, synopsis, strlen(synopsis), strlen(usage) + 1, page->width, &column);
    text_append_string(&page->text, "\n\n");
}

static void list_in_text(struct page *page, const char *title) {
    text_printf(&page->text, "\n%s:\n", title);
}

static void item_in_text(struct page *page, const struct term *term) {
    enum { INDENT = 26, INDENT_NARROW = 10, NARROW_WIDTH = 60 };
    char words[128], letter[] = "    ";
    if (term->letter)
        snprintf(letter, sizeof letter, "-%c, ", term->letter);
    snprintf(words, sizeof words, "%s%s%s%s", term->is_option ? letter : "", term->name,
             term->argument && term->argument[0] != '[' ? " " : "", term->argument ? term->argument : "");
    manual_append_entry(&page->text, words, term->meaning,
                        page->width < NARROW_WIDTH ? INDENT_NARROW : INDENT, page->width);
}

static void end_text(struct page *page, const struct verb *verb) {
    static const char more[] = "'assay COMMAND --help' says more about a command.";
    size_t column = 0;
    if (verb)
        return;
    text_append_character(&page->text, '\n');
    append_words(&page->text, more, strlen(more), 0, page->width, &column);
    text_append_character(&page->text, '\n');
}

char *manual_text(const struct verb *verb, size_t width) {
    static const struct sink sink = {begin_text, describe_in_text, list_in_text, item_in_text, end_text};
    return visit(verb, &sink, width);
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

/* ---- Roff ------------------------------------------------------------------------------------------------
 */

/* BYTES as they are to be read: hyphens stay hyphens that can be copied, backslashes are none of roff's, and
 * a point or quote at the start of a line is no request. */
static void append_escaped(struct text *text, const char *bytes, size_t length) {
    bool at_start = text->length == 0 || text->bytes[text->length - 1] == '\n';
    if (at_start && length > 0 && (bytes[0] == '.' || bytes[0] == '\''))
        text_append_string(text, "\\&");
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\\')
            text_append_string(text, "\\e");
        else if (bytes[i] == '-')
            text_append_string(text, "\\-");
        else
            text_append_character(text, bytes[i]);
    }
}

/* STRING escaped, between two that are roff. */
static void append_field(struct page *page, const char *before, const char *string, const char *after) {
    text_append_string(&page->text, before);
    append_escaped(&page->text, string, strlen(string));
    text_append_string(&page->text, after);
}

static void describe_in_roff(struct page *page, const char *paragraphs) {
    const char *line;
    size_t length;
    bool is_example = false;
    text_append_string(&page->text, ".SH DESCRIPTION\n");
    while (next_line(&paragraphs, &line, &length)) {
        bool keep = length > 0 && line[0] == ' ';
        if (keep != is_example)
            text_append_string(&page->text, keep ? ".PP\n.EX\n" : ".EE\n");
        is_example = keep;
        if (length == 0)
            text_append_string(&page->text, ".PP");
        append_escaped(&page->text, line, length);
        text_append_character(&page->text, '\n');
    }
    if (is_example)
        text_append_string(&page->text, ".EE\n");
}

/* .TH has no date: the same sources give the same page. */
static void begin_roff(struct page *page, const struct verb *verb, const char *summary,
                       const char *synopsis) {
    text_append_string(&page->text, ".TH ASSAY");
    for (const char *at = verb ? verb->name : ""; *at; at++)
        text_printf(&page->text, "%s%c", at == verb->name ? "\\-" : "", toupper((unsigned char)*at));
    text_printf(&page->text, " 1 \"\" \"assay %s\" \"User Commands\"\n.SH NAME\nassay%s%s \\- ",
                ASSAY_VERSION, verb ? "\\-" : "", verb ? verb->name : "");
    append_field(page, "", summary, "\n");
    append_field(page, ".SH SYNOPSIS\n", synopsis, "\n");
}

static void list_in_roff(struct page *page, const char *title) {
    text_append_string(&page->text, ".SH ");
    for (const char *at = strcmp(title, "Exit codes") == 0 ? "Exit status" : title; *at; at++)
        text_append_character(&page->text, (char)toupper((unsigned char)*at));
    text_append_character(&page->text, '\n');
}

static void item_in_roff(struct page *page, const struct term *term) {
    text_append_string(&page->text, ".TP\n");
    if (term->letter)
        text_printf(&page->text, "\\fB\\-%c\\fR, ", term->letter);
    append_field(page, "\\fB", term->name, "\\fR");
    if (term->argument)
        append_field(page, term->argument[0] == '[' ? "\\fI" : " \\fI", term->argument, "\\fR");
    append_field(page, "\n", term->meaning, "\n");
}

static void end_roff(struct page *page, const struct verb *verb) {
    text_append_string(&page->text, verb ? ".SH SEE ALSO\n.BR assay (1)\n" : ".SH SEE ALSO\n");
    for (const struct verb *const *at = verb_table; !verb && *at; at++)
        text_printf(&page->text, ".BR assay\\-%s (1)%s\n", (*at)->name, at[1] ? "," : "");
}

char *manual_roff(const struct verb *verb) {
    static const struct sink sink = {begin_roff, describe_in_roff, list_in_roff, item_in_roff, end_roff};
    return visit(verb, &sink, 0);
}
