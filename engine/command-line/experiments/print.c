/* What an experiment declares, for people: sections of entries, each a name and a paragraph beside it. */
#include "engine/command-line/experiments/experiments.h"
#include "engine/command-line/manual.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"
#include "engine/report/shown.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* ---- Pages */

void page_init(struct page *page, size_t indent) {
    *page = (struct page){.indent = indent, .width = manual_width(STDOUT_FILENO)};
    text_init(&page->text, SIZE_MAX / 2);
    text_init(&page->paragraph, SIZE_MAX / 2);
}

void page_clear(struct page *page) {
    text_clear(&page->text);
    text_clear(&page->paragraph);
}

void page_say(struct page *page, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (page->paragraph.length)
        text_append_string(&page->paragraph, "; ");
    text_vprintf(&page->paragraph, format, arguments);
    va_end(arguments);
}

void page_line(struct page *page, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    text_vprintf(&page->text, format, arguments);
    text_append_character(&page->text, '\n');
    va_end(arguments);
}

void page_entry(struct page *page, const char *name) {
    manual_append_entry(&page->text, name, page->paragraph.bytes, page->indent, page->width);
    text_reset(&page->paragraph);
}

void page_print(const struct page *page) {
    shown_print(stdout, page->text.bytes, true);
}

/* ---- Values */

/* " byte", or nothing for plain numbers. */
static const char *unit_text(const char *unit, char buffer[static 64]) {
    const struct unit *known = unit ? unit_find(unit) : NULL;
    const char *label = known ? known->label : unit ? unit : "";
    snprintf(buffer, 64, "%s%.60s", label[0] ? " " : "", label);
    return buffer;
}

/* "a whole number from 1 to 64, in byte". */
static void say_values(struct page *page, const struct design_factor *values) {
    char expectation[DESIGN_EXPECTATION_SIZE], unit[64];
    unit_text(values->about.unit, unit);
    page_say(page, "%s%s%s", design_factor_expectation(values, expectation), unit[0] ? ", in" : "", unit);
}

static void say_description(struct page *page, const char *description) {
    if (description)
        page_say(page, "%s", description);
}

static void print_factor(struct page *page, const struct design_factor *factor) {
    char unit[64];
    double number;
    const char *value = factor->default_text;
    say_description(page, factor->about.help);
    say_values(page, factor);
    if (!value)
        page_say(page, "no default");
    else
        page_say(page, "default: %s%s", value,
                 number_parse_double(value, strlen(value), &number) ? unit_text(factor->about.unit, unit)
                                                                    : "");
    if (factor->from_share)
        page_say(page, "a share means %s", factor->from_share);
    if (factor->from_time)
        page_say(page, "a time means %s", factor->from_time);
    page_entry(page, factor->about.name);
}

static void print_response(struct page *page, const struct experiment_response *response) {
    say_description(page, response->about.help);
    say_values(page, &(struct design_factor){.about = response->about,
                                             .minimum = -DESIGN_UNBOUNDED,
                                             .maximum = DESIGN_UNBOUNDED,
                                             .choices = response->choices.items,
                                             .choice_count = response->choices.count});
    for (size_t i = 0; i < response->pass.count; i++)
        page_say(page, "a unit passes with %s", response->pass.items[i]);
    page_entry(page, response->about.name);
}

static void print_table(struct page *page, const struct experiment_table *table) {
    char unit[64];
    say_description(page, table->description);
    for (size_t i = 0; i < table->column_count; i++) {
        const struct experiment_response *column = &table->columns[i];
        unit_text(column->about.unit, unit);
        if (i == 0)
            page_say(page, "columns");
        text_printf(&page->paragraph, "%s %s%s%s", i ? "," : "", column->about.name, unit[0] ? " in" : "",
                    unit);
    }
    page_entry(page, table->name);
}

static void print_option(struct page *page, const struct experiment_option *option) {
    say_description(page, option->factor.about.help);
    say_values(page, &option->factor);
    page_say(page, "default: %s", option->value[0] ? option->value : "empty");
    page_entry(page, option->factor.about.name);
}

/* ---- How a unit is run, and what it needs, as it was written */

/* Appends NODE as one line of YAML. KEYS: of a mapping only its keys. */
static void append_node(struct page *page, const struct document_node *node, bool keys) {
    bool mapping = node->kind == DOCUMENT_MAPPING;
    if (!mapping && node->kind != DOCUMENT_SEQUENCE) {
        text_append_string(&page->paragraph, node->text ? node->text : "null");
        return;
    }
    text_append_character(&page->paragraph, mapping && !keys ? '{' : '[');
    for (size_t i = 0; i < node->count; i++) {
        text_printf(&page->paragraph, "%s%s%s", i ? ", " : "", mapping ? node->keys[i]->text : "",
                    mapping && !keys ? ": " : "");
        if (!keys)
            append_node(page, node->items[i], false);
    }
    text_append_character(&page->paragraph, mapping && !keys ? '}' : ']');
}

static void print_node(struct page *page, const char *name, const struct document_node *node,
                       const char *unit) {
    if (!node)
        return;
    append_node(page, node, strcmp(name, "files") == 0);
    if (unit)
        page_say(page, "%s", unit);
    page_entry(page, name);
}

/* Prints the placement of units and the keys of `run`. */
static void print_run(struct page *page, const struct experiment *experiment,
                      const struct document_node *run) {
    static const char *const places[] = {"a unit on every core, all at once",
                                         "a unit on every node, all at once",
                                         "one unit at a time, on one or several nodes"};
    bool by_option = experiment->placement_text && experiment->placement_text[0] == '{';
    page_say(page, "%s%s%s, %s", by_option ? experiment->placement_text : "",
             by_option ? ", by default " : "", experiment_placement_name(experiment->placement),
             places[experiment->placement]);
    page_entry(page, "placement");
    if (run->kind != DOCUMENT_MAPPING)
        print_node(page, "command", run, NULL);
    for (size_t i = 0; run->kind == DOCUMENT_MAPPING && i < run->count; i++) {
        const char *key = run->keys[i]->text;
        bool seconds = strstr(key, "timeout") && run->items[i]->kind == DOCUMENT_NUMBER;
        if (strcmp(key, "placement") != 0)
            print_node(page, key, run->items[i], seconds ? "in s" : NULL);
    }
}

static void print_title(struct page *page, const char *title, size_t count) {
    if (count)
        page_line(page, "\n%s:", title);
}

/* Prints all other keys of the experiment as they are written in YAML, under their titles. */
static void print_rest(struct page *page, const struct document_node *root) {
    static const struct {
        const char *title, *key, *unit;
    } rows[] = {
        {"What it needs", "packages", NULL},
        {NULL, "modules", NULL},
        {NULL, "spack", NULL},
        {NULL, "container", NULL},
        {NULL, "prefix", NULL},
        {NULL, "source", NULL},
        {NULL, "setup", NULL},
        {NULL, "teardown", NULL},
        {NULL, "memory", "in bytes a process, over the maxima"},
        {NULL, "maxima", NULL},
        {NULL, "estimate", "in s a unit"},
        {"Defaults", "model", NULL},
        {NULL, "design", NULL},
        {NULL, "answer", NULL},
    };
    const char *title = NULL;
    for (size_t i = 0; i < sizeof rows / sizeof *rows; i++) {
        title = rows[i].title ? rows[i].title : title;
        const struct document_node *node = document_get(root, rows[i].key);
        print_title(page, title, node && title);
        title = node ? NULL : title;
        print_node(page, rows[i].key, node, rows[i].unit);
    }
}

/* ---- The whole */

void experiments_print(const struct experiment *experiment) {
    cleanup(page_clear) struct page page;
    page_init(&page, 18);
    page_line(&page, "%s%s%s", experiment->name, experiment->summary ? ": " : "",
              experiment->summary ? experiment->summary : "");
    page_line(&page, "%s", experiment->folder);
    print_title(&page, "Factors", experiment->factor_count);
    for (size_t i = 0; i < experiment->factor_count; i++)
        print_factor(&page, &experiment->factors[i]);
    for (size_t i = 0; i < experiment->condition_count; i++) {
        page_say(&page, "%s", expression_text(experiment->conditions[i]));
        page_entry(&page, "require");
    }
    print_title(&page, "Responses", experiment->response_count);
    for (size_t i = 0; i < experiment->response_count; i++)
        print_response(&page, &experiment->responses[i]);
    print_title(&page, "Tables", experiment->table_count);
    for (size_t i = 0; i < experiment->table_count; i++)
        print_table(&page, &experiment->tables[i]);
    print_title(&page, "Options", experiment->option_count);
    for (size_t i = 0; i < experiment->option_count; i++)
        print_option(&page, &experiment->options[i]);
    print_title(&page, "A unit", 1);
    print_run(&page, experiment, document_get(experiment->document->root, "run"));
    print_rest(&page, experiment->document->root);
    page_print(&page);
}
