/* A report as a page: one file with all that it needs. All texts are escaped, scripts other than the page's
 * own are not run (Content-Security-Policy, with their hashes), and nothing is requested from anywhere. */
#include "engine/report/report.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/report/chart-axis.h"
#include "engine/report/page.h"
#include "engine/report/report-tree.h"
#include "engine/report/shown.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = 5000,  /* of a table */
    WIDE_MAX = 20000, /* a chart with more numbers has them in single precision */
    COLOURS = 7,      /* as in chart-svg.c */
    DASHES = 3,
    HASH_BYTES = (HASH_HEX_SIZE - 1) / 2,
};

/* The page, and how many sections it has so far, by which they are linked. */
struct page {
    struct text html;
    size_t sections;
};

static void add(struct page *page, const char *markup) {
    text_append_string(&page->html, markup);
}

static void add_text(struct page *page, const char *text) {
    chart_append_escaped(&page->html, text ? text : "-");
}

/* BEFORE and AFTER are markup. */
static void add_element(struct page *page, const char *before, const char *text, const char *after) {
    add(page, before);
    add_text(page, text);
    add(page, after);
}

static void add_base64(struct page *page, const unsigned char *bytes, size_t length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    size_t groups = (length + 2) / 3;
    char *at;
    if (text_reserve(&page->html, 4 * groups, &at) < 0)
        memory_exhausted();
    page->html.length += 4 * groups;
    for (size_t i = 0; i < length; i += 3, at += 4) {
        uint32_t bits = (uint32_t)bytes[i] << 16 | (i + 1 < length ? (uint32_t)bytes[i + 1] << 8 : 0) |
                        (i + 2 < length ? bytes[i + 2] : 0);
        for (int k = 0; k < 4; k++)
            at[k] = i + (size_t)k <= length ? digits[bits >> (18 - 6 * k) & 63] : '=';
    }
}

/* ---- Charts */

/* Adds numbers in base64: as doubles if IS_WIDE, else as floats, which need half the space. */
static void add_numbers(struct page *page, const double *numbers, size_t count, bool is_wide) {
    add(page, "\"");
    if (is_wide) {
        add_base64(page, (const unsigned char *)numbers, count * sizeof *numbers);
    } else {
        cleanup_free float *floats = xcalloc(count + 1, sizeof *floats);
        for (size_t i = 0; i < count; i++)
            floats[i] = (float)numbers[i];
        add_base64(page, (const unsigned char *)floats, count * sizeof *floats);
    }
    add(page, "\"");
}

/* The first of the series before S that have the same x as S; S if there is none. The page has such x only
 * once. */
static size_t find_same_x(const struct chart *chart, size_t s) {
    const struct chart_series *of = &chart->series[s];
    size_t size = of->count * sizeof *of->x, i = s > 0 ? s - 1 : 0;
    while (i > 0 && chart->series[i].count == of->count && memcmp(chart->series[i].x, of->x, size) == 0 &&
           memcmp(chart->series[i - 1].x, of->x, size) == 0 && chart->series[i - 1].count == of->count)
        i--;
    return s > 0 && chart->series[i].count == of->count && memcmp(chart->series[i].x, of->x, size) == 0 ? i
                                                                                                        : s;
}

/* Adds the numbers of all series, in base64. An x that an earlier series has too is the number of that
 * series. */
static void add_series(struct page *page, const struct chart *chart, bool is_wide) {
    for (size_t s = 0; s < chart->series_count; s++) {
        const struct chart_series *series = &chart->series[s];
        size_t same = find_same_x(chart, s);
        cleanup_free double *y = xcalloc(series->count + 1, sizeof *y);
        for (size_t i = 0; i < series->count; i++)
            y[i] = chart_clip(chart, series->y[i]);
        text_printf(&page->html, "%s{\"line\":%s,\"x\":", s ? ",\n" : "", series->is_line ? "true" : "false");
        if (same < s)
            text_printf(&page->html, "%zu", same);
        else
            add_numbers(page, series->x, series->count, is_wide);
        add(page, ",\"y\":");
        add_numbers(page, y, series->count, is_wide);
        add(page, "}");
    }
}

static void add_marks(cJSON *object, const char *name, const double *marks, size_t count) {
    cJSON *list = json_add_array(object, name);
    for (size_t i = 0; i < count; i++)
        json_add_double(list, NULL, marks[i]);
}

static void add_unit(cJSON *object, const char *name, const char *unit) {
    cleanup_free char *after = xformat("%s%s", unit && unit[0] ? " " : "", unit ? unit : "");
    json_add_string(object, name, after);
}

static void add_shown(cJSON *object, const char *name, const char *text) {
    cleanup_free char *shown = shown_copy(text ? text : "");
    json_add_string(object, name, shown);
}

/* Everything but the numbers of the chart, for its script, as JSON; the caller deletes it. */
static cJSON *describe_chart(const struct chart *chart, const struct chart_axes *axes, bool is_wide) {
    cJSON *object = cJSON_CreateObject();
    add_shown(object, "xName", chart->x_name);
    add_shown(object, "yName", chart->y_name);
    add_unit(object, "xUnit", chart->x_unit);
    add_unit(object, "yUnit", chart->y_unit);
    add_shown(object, "link", chart->link);
    json_add_boolean(object, "wide", is_wide);
    cJSON *logarithmic = json_add_array(object, "log");
    json_add_boolean(logarithmic, NULL, axes->x.is_logarithmic);
    json_add_boolean(logarithmic, NULL, axes->y.is_logarithmic);
    add_marks(object, "xMarks", chart->x_marks, chart->x_mark_count);
    add_marks(object, "yMarks", chart->y_marks, chart->y_mark_count);
    cJSON *labels = chart->x_labels ? json_add_array(object, "labels") : NULL;
    for (size_t i = 0; i < chart->x_label_count; i++)
        add_shown(labels, NULL, chart->x_labels[i]);
    cJSON *names = json_add_array(object, "names");
    for (size_t s = 0; s < chart->series_count; s++)
        add_shown(names, NULL, chart->series[s].name);
    cJSON *spans = json_add_array(object, "spans"), *events = json_add_array(object, "events");
    for (size_t i = 0; i < chart->span_count + chart->event_count; i++) {
        bool is_span = i < chart->span_count;
        const struct chart_span *span = is_span ? &chart->spans[i] : &chart->events[i - chart->span_count];
        cJSON *one = json_add_array(is_span ? spans : events, NULL);
        json_add_double(one, NULL, span->from);
        if (is_span)
            json_add_double(one, NULL, span->to);
        add_shown(one, NULL, span->name);
    }
    return object;
}

/* Adds JSON to an element <script>, with the characters escaped that could end it. */
static void add_script_json(struct page *page, const char *json, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (json[i] == '<' || json[i] == '>' || json[i] == '&')
            text_printf(&page->html, "\\u%04x", (unsigned)json[i]);
        else
            text_append_character(&page->html, json[i]);
}

/* Adds the chart's data for the script that zooms it. Few numbers are kept as doubles. */
static void add_data(struct page *page, const struct chart *chart, const struct chart_axes *axes) {
    size_t numbers = 0;
    for (size_t s = 0; s < chart->series_count; s++)
        numbers += chart->series[s].count;
    bool is_wide = numbers <= WIDE_MAX;
    cleanup(json_cleanup) cJSON *object = describe_chart(chart, axes, is_wide);
    cleanup(text_clear) struct text json;
    text_init(&json, SIZE_MAX / 4);
    json_print(object, false, &json);
    add(page, "<script type=\"application/json\">");
    add_script_json(page, json.bytes, json.length - 1); /* without its last brace */
    add(page, ",\"series\":[");
    add_series(page, chart, is_wide);
    add(page, "]}</script>\n");
}

static void add_legend(struct page *page, const struct chart *chart) {
    if (chart->series_count < 2)
        return;
    for (size_t s = 0; s < chart->series_count; s++)
        if (!chart->series[s].name)
            return;
    add(page, "<ul class=\"legend\">\n");
    for (size_t s = 0; s < chart->series_count; s++) {
        text_printf(&page->html, "<li class=\"s%zu k%zu\">", s % COLOURS, s / COLOURS % DASHES);
        add_element(page, "", chart->series[s].name, "</li>\n");
    }
    add(page, "</ul>\n");
}

static void add_chart(struct page *page, const struct chart *chart) {
    struct chart_axes axes = chart_axes_of(chart);
    if (axes.points == 0)
        return;
    add_element(page, "<figure class=\"chart\">\n<figcaption>", chart->title, "</figcaption>\n");
    if (chart->needs_scripts)
        add(page, "<noscript><p class=\"note\">This chart is drawn by scripts only.</p></noscript>\n");
    else
        chart_append_figure(chart, &page->html);
    add_legend(page, chart);
    add_data(page, chart, &axes);
    add(page, "</figure>\n");
}

static void add_picture(struct page *page, const struct item *item) {
    add_element(page, "<figure class=\"picture\">\n<figcaption>", item->label, "</figcaption>\n");
    add(page, item->text);
    add(page, "</figure>\n");
}

/* ---- Tables, numbers and texts */

/* How a column is shown. Details, and columns without any value, are hidden until they are asked for. */
struct column_form {
    bool is_text, is_empty, is_detail;
};

/* Finds for each column whether it has texts, is empty, or is shown as a detail only. */
static void find_forms(const struct report_table *table, size_t rows, struct column_form *forms) {
    for (size_t c = 0; c < table->column_count; c++) {
        bool has_value = false;
        forms[c].is_empty = rows > 0;
        for (size_t row = 0; row < rows; row++) {
            const struct cell *cell = &table->cells[row * table->column_count + c];
            forms[c].is_text |= cell->text != NULL;
            forms[c].is_empty = forms[c].is_empty && cell->text && !cell->text[0];
            has_value = has_value || cell->text || isfinite(cell->number);
        }
        forms[c].is_detail = table->columns[c].detail || (rows > 0 && !has_value);
    }
}

static void add_cell(struct page *page, const char *tag, const struct column_form *form, const char *text) {
    text_printf(&page->html, "<%s class=\"%s%s\">", tag, form->is_text ? "w" : "n",
                form->is_detail ? " d" : "");
    add_text(page, text);
    text_printf(&page->html, "</%s>", tag);
}

/* Adds a row of the table; LINE 0 is the head. */
static void add_line(struct page *page, const struct report_table *table, const struct column_form *forms,
                     size_t line) {
    add(page, "<tr>");
    for (size_t c = 0; c < table->column_count; c++) {
        const struct column *column = &table->columns[c];
        const struct cell *cell = line ? &table->cells[(line - 1) * table->column_count + c] : NULL;
        cleanup_free char *text = cell ? tree_cell_text(column, cell) : column_heading(column);
        if (!forms[c].is_empty)
            add_cell(page, cell ? "td" : "th", &forms[c], text);
    }
    add(page, "</tr>\n");
}

/* Adds a table with at most ROWS_MAX rows. Details are hidden until "all columns" is ticked; empty columns
 * are left out. */
static void add_table(struct page *page, const struct report_table *table) {
    size_t rows = table->cell_count / table->column_count, shown = rows > ROWS_MAX ? ROWS_MAX : rows;
    cleanup_free struct column_form *forms = xcalloc(table->column_count, sizeof *forms);
    bool has_detail = false;
    find_forms(table, shown, forms);
    for (size_t c = 0; c < table->column_count; c++)
        has_detail = has_detail || (forms[c].is_detail && !forms[c].is_empty);
    if (rows == 0)
        return;
    if (has_detail)
        add(page, "<label class=\"all\"><input type=\"checkbox\"> all columns</label>\n");
    add(page, "<div class=\"table\"><table>\n");
    if (table->title && table->title[0])
        add_element(page, "<caption>", table->title, "</caption>\n");
    add(page, "<thead>");
    add_line(page, table, forms, 0);
    add(page, "</thead>\n<tbody>\n");
    for (size_t line = 1; line <= shown; line++)
        add_line(page, table, forms, line);
    add(page, "</tbody></table></div>\n");
    if (shown < rows)
        text_printf(&page->html, "<p class=\"note\">... and %zu more</p>\n", rows - shown);
}

/* By grade; a sign beside the colour. */
static const char *const verdict_markup[] = {[REPORT_UNKNOWN] = "<p class=\"verdict\">",
                                             [REPORT_USABLE] = "<p class=\"verdict usable\">&#10003; ",
                                             [REPORT_NOT_USABLE] =
                                                 "<p class=\"verdict not-usable\">&#10007; "};

static void add_pair(struct page *page, const char *label, const char *text) {
    bool has_label = strcmp(label, " ") != 0; /* else it continues the pair above */
    add_element(page, "<dt>", has_label ? label : "", "</dt>");
    add_element(page, "<dd>", text, "</dd>\n");
}

/* Adds the pairs from FIRST to before END that are DETAIL or not, as one list. A pair without a label is a
 * paragraph. */
static void add_pairs(struct page *page, const struct report_section *section, size_t first, size_t end,
                      bool detail) {
    bool is_open = false;
    for (size_t i = first; i < end; i++) {
        const struct item *item = &section->items[i];
        bool is_line = item->kind == ITEM_VERDICT || !item->label[0];
        cleanup_free char *text = tree_pair_text(item);
        if (item->detail != detail)
            continue;
        if (is_open == is_line) {
            add(page, is_open ? "</dl>\n" : "<dl>\n");
            is_open = !is_open;
        }
        if (item->kind == ITEM_VERDICT)
            add_element(page, verdict_markup[item->grade], text, "</p>\n");
        else if (is_line)
            add_element(page, "<p>", text, "</p>\n");
        else
            add_pair(page, item->label, text);
    }
    if (is_open)
        add(page, "</dl>\n");
}

/* Adds neighbouring pairs from item FIRST on; details come last and are folded. Returns the number of the
 * item after them. */
static size_t add_neighbours(struct page *page, const struct report_section *section, size_t first) {
    size_t end = first;
    bool has_detail = false;
    for (; end < section->count && tree_is_pair(&section->items[end]); end++)
        has_detail = has_detail || section->items[end].detail;
    add_pairs(page, section, first, end, false);
    if (has_detail) {
        add(page, "<details class=\"more\"><summary>details</summary>\n");
        add_pairs(page, section, first, end, true);
        add(page, "</details>\n");
    }
    return end;
}

static void add_note(struct page *page, const struct item *item) {
    static const char *const before[] = {[REPORT_LINE] = "<p class=\"lines\">",
                                         [REPORT_NOTE] = "<p class=\"note\">note: ",
                                         [REPORT_WARNING] = "<p class=\"warning\">warning: "};
    add(page, before[item->severity]);
    for (const char *at = item->text, *end; *at; at = *end ? end + 1 : end) { /* newlines stay */
        end = strchrnul(at, '\n');
        cleanup_free char *line = xstrndup(at, (size_t)(end - at));
        add_text(page, line);
        add(page, *end ? "\n" : "");
    }
    add(page, "</p>\n");
}

/* ---- Sections */

static void add_items(struct page *page, const struct report_section *section, int depth);

/* Adds a section. A DETAIL with a title is folded; a list is left out, because it is for programs. */
static void add_section(struct page *page, const struct item *item, int depth) {
    const struct report_section *section = item->section;
    bool has_title = section->title && section->title[0];
    if (section->is_list)
        return;
    if (has_title && item->detail) {
        add_element(page, "<details><summary>", section->title, "</summary>\n");
        add_items(page, section, depth + 1);
        add(page, "</details>\n");
        return;
    }
    if (has_title && depth == 0)
        text_printf(&page->html, "<section id=\"s%zu\">\n", ++page->sections);
    if (has_title)
        add_element(page, depth == 0 ? "<h2>" : "<h3>", section->title, depth == 0 ? "</h2>\n" : "</h3>\n");
    add_items(page, section, has_title ? depth + 1 : depth);
    add(page, has_title && depth == 0 ? "</section>\n" : "");
}

static void add_items(struct page *page, const struct report_section *section, int depth) {
    for (size_t i = 0; i < section->count; i++) {
        const struct item *item = &section->items[i];
        if (tree_is_pair(item))
            i = add_neighbours(page, section, i) - 1;
        else if (item->kind == ITEM_NOTE)
            add_note(page, item);
        else if (item->kind == ITEM_CHART)
            add_chart(page, item->chart);
        else if (item->kind == ITEM_PICTURE)
            add_picture(page, item);
        else if (item->kind == ITEM_TABLE)
            add_table(page, item->table);
        else
            add_section(page, item, depth);
    }
}

/* Adds links to the sections, with the numbers that add_section() will give them. */
static void add_links(struct page *page, const struct report_section *section, size_t *number) {
    for (size_t i = 0; i < section->count; i++) {
        const struct item *item = &section->items[i];
        if (item->kind != ITEM_SECTION || item->section->is_list)
            continue;
        bool has_title = item->section->title && item->section->title[0];
        if (!has_title) {
            add_links(page, item->section, number);
        } else if (!item->detail) {
            text_printf(&page->html, "<a href=\"#s%zu\">", ++*number);
            add_element(page, "", item->section->title, "</a>\n");
        }
    }
}

/* ---- The page */

/* A source of scripts that the policy allows: this one, by its hash. */
static void add_source(struct page *page, const char *script) {
    char hex[HASH_HEX_SIZE];
    unsigned char bytes[HASH_BYTES];
    hash_bytes(script, strlen(script), hex);
    for (size_t i = 0; i < HASH_BYTES; i++) {
        char digits[] = {hex[2 * i], hex[2 * i + 1], '\0'};
        bytes[i] = (unsigned char)strtoul(digits, NULL, 16);
    }
    add(page, " 'sha256-");
    add_base64(page, bytes, sizeof bytes);
    add(page, "'");
}

static void add_script(struct page *page, const char *script) {
    add(page, "<script>");
    add(page, script);
    add(page, "</script>\n");
}

static void add_head(struct page *page, const char *title) {
    add(page, "<!DOCTYPE html>\n<html lang=\"en\">\n<head>\n<meta charset=\"utf-8\">\n"
              "<meta http-equiv=\"Content-Security-Policy\" content=\"default-src 'none'; base-uri 'none'; "
              "form-action 'none'; style-src 'unsafe-inline'; script-src");
    add_source(page, page_uplot_iife_min_js);
    add_source(page, page_page_js);
    add(page, "\">\n<meta name=\"viewport\" content=\"width=device-width, initial-scale=1\">\n"
              "<meta name=\"color-scheme\" content=\"light dark\">\n"
              "<meta name=\"generator\" content=\"assay " ASSAY_VERSION "\">\n");
    add_element(page, "<title>", title, "</title>\n<style>\n");
    add(page, page_uplot_min_css);
    add(page, page_page_css);
    add(page, "</style>\n</head>\n<body>\n");
    add_element(page, "<h1>", title, "</h1>\n");
}

int report_write_page(const struct report *report, const char *title, const char *path,
                      struct failure *failure) {
    struct page page = {0};
    size_t links = 0;
    text_init(&page.html, SIZE_MAX / 4);
    add_head(&page, title);
    add(&page, "<nav>\n");
    add_links(&page, report->root, &links);
    add(&page, "</nav>\n<main>\n");
    add_items(&page, report->root, 0);
    add(&page,
        "</main>\n<footer><p>Made by assay " ASSAY_VERSION ". The page is whole as it is: it loads nothing. "
        "<span class=\"scripts-only\">Charts are zoomed by dragging, and show values at the pointer; a "
        "double "
        "click shows the whole range.</span></p>\n<details><summary>Licence of uPlot, which is in this "
        "page</summary><pre>");
    for (const char *at = page_license, *end; *at; at = end + 1) {
        end = strchr(at, '\n');
        cleanup_free char *line = xstrndup(at, (size_t)(end - at));
        add_element(&page, "", line, "\n");
    }
    add(&page, "</pre></details></footer>\n");
    add_script(&page, page_uplot_iife_min_js);
    add_script(&page, page_page_js);
    int r = text_append_string(&page.html, "</body>\n</html>\n");
    r = r < 0 ? failure_set(failure, r, "cannot write '%s': %s", path, strerror(-r))
              : file_write_output(path, page.html.bytes, page.html.length, failure);
    text_clear(&page.html);
    return r;
}
