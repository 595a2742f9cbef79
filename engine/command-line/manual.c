#include "engine/command-line/manual.h"

#include <ctype.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>

static const char program_summary[] = "reproducible calibration campaigns for HPC machines";

static const char program_description[] =
    "assay runs calibration campaigns. One command prepares an experiment on the nodes of a testbed, records "
    "what they are, measures in randomised order from a design, and seals everything that is needed to trust "
    "and repeat the result into one archive. Fit plugins turn archives into models, and prediction plugins "
    "turn models into predicted times.\n"
    "\n"
    "    assay run campaign.yaml        runs a campaign and seals its archive\n"
    "    assay nodes run -w LIST -- ... runs a command on many nodes\n"
    "    assay archive verify X.zip     checks that an archive is whole\n"
    "    assay fit X.zip -o M.json      fits the model that the experiment suggests\n"
    "    assay predict hpl M.json       predicts with it\n";

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
     "Folders, parted by colons, whose plugins/ and experiments/ are searched before the installed ones."},
    {"ASSAY_NODES", "The nodes of 'assay nodes' where -w does not name them."},
};

static const struct verb_option help_option = {"--help", 'h', NULL, "Print this help.", false};

static bool has_help_letter(const struct verb *verb) {
    for (const struct verb_option *option = verb->options; option && option->name; option++)
        if (option->letter == 'h')
            return true;
    return false;
}

/* A page in the making. The first append that fails is kept, and all later ones do nothing. */
struct page {
    struct text *text;
    size_t width;
    int status;
};

__attribute__((format(printf, 2, 3))) static void put(struct page *page, const char *format, ...) {
    if (page->status < 0)
        return;
    va_list arguments;
    va_start(arguments, format);
    page->status = text_vprintf(page->text, format, arguments);
    va_end(arguments);
}

static int page_finish(const struct page *page, struct failure *failure) {
    if (page->status == 0)
        return 0;
    return failure_set(failure, page->status, "cannot compose the manual: %s", strerror(-page->status));
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

/* Writes the words of BYTES[0..LENGTH) at column *COLUMN, breaking before the page's width to INDENT. */
static void put_words(struct page *page, const char *bytes, size_t length, size_t indent, size_t *column) {
    for (size_t at = 0; at < length;) {
        size_t end = at;
        while (end < length && bytes[end] != ' ')
            end++;
        size_t columns = columns_of(bytes + at, end - at);
        if (columns > 0) {
            bool first = *column <= indent;
            if (!first && *column + 1 + columns > page->width) {
                put(page, "\n");
                *column = 0;
                first = true;
            }
            size_t blanks = *column < indent ? indent - *column : !first;
            put(page, "%*s%.*s", (int)blanks, "", (int)(end - at), bytes + at);
            *column += blanks + columns;
        }
        at = end + 1;
    }
}

/* Paragraphs at INDENT: lines are joined and wrapped, those that begin with a blank are kept. */
static void put_paragraphs(struct page *page, const char *text, size_t indent) {
    const char *line;
    size_t length, column = 0;
    while (next_line(&text, &line, &length)) {
        bool keep = length > 0 && line[0] == ' ';
        if ((keep || length == 0) && column > 0) {
            put(page, "\n");
            column = 0;
        }
        if (keep)
            put(page, "%*s%.*s\n", (int)indent, "", (int)length, line);
        else if (length == 0)
            put(page, "\n");
        else
            put_words(page, line, length, indent, &column);
    }
    if (column > 0)
        put(page, "\n");
}

enum { TERM_INDENT = 2, MEANING_INDENT = 26, MEANING_INDENT_NARROW = 10, NARROW_WIDTH = 60 };

/* "  TERM      what it means, wrapped"; a long term has its line to itself. */
static void put_item(struct page *page, const char *term, const char *meaning) {
    size_t indent = page->width < NARROW_WIDTH ? MEANING_INDENT_NARROW : MEANING_INDENT;
    put(page, "%*s%s", TERM_INDENT, "", term);
    size_t column = TERM_INDENT + columns_of(term, strlen(term));
    if (column + 2 > indent) {
        put(page, "\n");
        column = 0;
    }
    put_words(page, meaning, strlen(meaning), indent, &column);
    put(page, "\n");
}

static void put_option(struct page *page, const struct verb_option *option, bool with_letter) {
    char term[128];
    char letter[] = "    ";
    if (option->letter && with_letter)
        snprintf(letter, sizeof letter, "-%c, ", option->letter);
    snprintf(term, sizeof term, "%s%s%s%s", letter, option->name, option->argument ? " " : "",
             option->argument ? option->argument : "");
    put_item(page, term, option->help);
}

static void put_exit_codes(struct page *page) {
    put(page, "\nExit codes:\n");
    for (size_t i = 0; i < sizeof exit_codes / sizeof *exit_codes; i++) {
        char code[16];
        snprintf(code, sizeof code, "%d", (int)exit_codes[i].kind);
        put_item(page, code, exit_codes[i].meaning);
    }
}

static void put_title(struct page *page, const char *what, const char *summary) {
    size_t column = 0;
    put_words(page, "assay", strlen("assay"), 0, &column);
    put_words(page, what, strlen(what), 0, &column);
    put_words(page, "-", 1, 0, &column);
    put_words(page, summary, strlen(summary), 0, &column);
    put(page, "\n\n");
}

static void put_program(struct page *page) {
    put_title(page, ASSAY_VERSION, program_summary);
    put(page, "Usage: assay COMMAND [ARGUMENTS]\n\n");
    put_paragraphs(page, program_description, 0);
    put(page, "\nCommands:\n");
    for (const struct verb *const *at = verb_table; *at; at++)
        put_item(page, (*at)->name, (*at)->summary);
    put(page, "\nOptions:\n");
    put_option(page, &help_option, true);
    put_item(page, "    --version", "Print the version.");
    put(page, "\nEnvironment:\n");
    for (size_t i = 0; i < sizeof environment / sizeof *environment; i++)
        put_item(page, environment[i].name, environment[i].meaning);
    put_exit_codes(page);
    put(page, "\n");
    size_t column = 0;
    static const char more[] = "'assay COMMAND --help' tells more about a command.";
    put_words(page, more, strlen(more), 0, &column);
    put(page, "\n");
}

static void put_verb(struct page *page, const struct verb *verb) {
    put_title(page, verb->name, verb->summary);
    static const char usage[] = "Usage:";
    put(page, "%s", usage);
    size_t column = strlen(usage);
    put_words(page, verb->synopsis, strlen(verb->synopsis), strlen(usage) + 1, &column);
    put(page, "\n\n");
    put_paragraphs(page, verb->description, 0);
    put(page, "\nOptions:\n");
    for (const struct verb_option *option = verb->options; option && option->name; option++)
        put_option(page, option, true);
    put_option(page, &help_option, !has_help_letter(verb));
    put_exit_codes(page);
}

int manual_text(const struct verb *verb, size_t width, struct text *ret, struct failure *failure) {
    struct page page = {.text = ret, .width = width};
    if (verb)
        put_verb(&page, verb);
    else
        put_program(&page);
    return page_finish(&page, failure);
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
static void put_escaped(struct page *page, const char *bytes, size_t length) {
    bool at_start = page->text->length == 0 || page->text->bytes[page->text->length - 1] == '\n';
    if (at_start && length > 0 && (bytes[0] == '.' || bytes[0] == '\''))
        put(page, "\\&");
    for (size_t i = 0; i < length; i++) {
        if (bytes[i] == '\\')
            put(page, "\\e");
        else if (bytes[i] == '-')
            put(page, "\\-");
        else
            put(page, "%c", bytes[i]);
    }
}

static void put_escaped_string(struct page *page, const char *string) {
    put_escaped(page, string, strlen(string));
}

static void put_roff_paragraphs(struct page *page, const char *text) {
    const char *line;
    size_t length;
    bool example = false;
    while (next_line(&text, &line, &length)) {
        bool keep = length > 0 && line[0] == ' ';
        if (keep && !example)
            put(page, ".PP\n.EX\n");
        else if (!keep && example)
            put(page, ".EE\n");
        example = keep;
        if (length == 0)
            put(page, ".PP\n");
        else
            put_escaped(page, line, length), put(page, "\n");
    }
    if (example)
        put(page, ".EE\n");
}

static void put_roff_option(struct page *page, const struct verb_option *option, bool with_letter) {
    put(page, ".TP\n");
    if (option->letter && with_letter)
        put(page, "\\fB\\-%c\\fR, ", option->letter);
    put(page, "\\fB");
    put_escaped_string(page, option->name);
    put(page, "\\fR");
    if (option->argument) {
        put(page, " \\fI");
        put_escaped_string(page, option->argument);
        put(page, "\\fR");
    }
    put(page, "\n");
    put_escaped_string(page, option->help);
    put(page, "\n");
}

static void put_roff_item(struct page *page, const char *term, const char *meaning) {
    put(page, ".TP\n\\fB");
    put_escaped_string(page, term);
    put(page, "\\fR\n");
    put_escaped_string(page, meaning);
    put(page, "\n");
}

/* .TH and .SH NAME. No date: the same sources give the same page. */
static void put_roff_head(struct page *page, const char *verb, const char *summary) {
    put(page, ".TH ASSAY");
    for (const char *at = verb; at && *at; at++)
        put(page, "%s%c", at == verb ? "\\-" : "", toupper((unsigned char)*at));
    put(page, " 1 \"\" \"assay %s\" \"User Commands\"\n.SH NAME\nassay%s%s \\- ", ASSAY_VERSION,
        verb ? "\\-" : "", verb ? verb : "");
    put_escaped_string(page, summary);
    put(page, "\n");
}

static void put_roff_tail(struct page *page, const char *verb) {
    put(page, ".SH EXIT STATUS\n");
    for (size_t i = 0; i < sizeof exit_codes / sizeof *exit_codes; i++) {
        char code[16];
        snprintf(code, sizeof code, "%d", (int)exit_codes[i].kind);
        put_roff_item(page, code, exit_codes[i].meaning);
    }
    put(page, ".SH ENVIRONMENT\n");
    for (size_t i = 0; i < sizeof environment / sizeof *environment; i++)
        put_roff_item(page, environment[i].name, environment[i].meaning);
    put(page, ".SH SEE ALSO\n");
    if (verb) {
        put(page, ".BR assay (1)\n");
        return;
    }
    for (const struct verb *const *at = verb_table; *at; at++)
        put(page, ".BR assay\\-%s (1)%s\n", (*at)->name, at[1] ? "," : "");
}

static void put_roff_program(struct page *page) {
    put_roff_head(page, NULL, program_summary);
    put(page, ".SH SYNOPSIS\n.B assay\n.I COMMAND\n.RI [ ARGUMENTS ]\n.SH DESCRIPTION\n");
    put_roff_paragraphs(page, program_description);
    put(page, ".SH COMMANDS\n");
    for (const struct verb *const *at = verb_table; *at; at++)
        put_roff_item(page, (*at)->name, (*at)->summary);
    put(page, ".SH OPTIONS\n");
    put_roff_option(page, &help_option, true);
    put_roff_item(page, "--version", "Print the version.");
}

static void put_roff_verb(struct page *page, const struct verb *verb) {
    put_roff_head(page, verb->name, verb->summary);
    put(page, ".SH SYNOPSIS\n");
    put_escaped_string(page, verb->synopsis);
    put(page, "\n.SH DESCRIPTION\n");
    put_roff_paragraphs(page, verb->description);
    put(page, ".SH OPTIONS\n");
    for (const struct verb_option *option = verb->options; option && option->name; option++)
        put_roff_option(page, option, true);
    put_roff_option(page, &help_option, !has_help_letter(verb));
}

int manual_roff(const struct verb *verb, struct text *ret, struct failure *failure) {
    struct page page = {.text = ret};
    if (verb)
        put_roff_verb(&page, verb);
    else
        put_roff_program(&page);
    put_roff_tail(&page, verb ? verb->name : NULL);
    return page_finish(&page, failure);
}
