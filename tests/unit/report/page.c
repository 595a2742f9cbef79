/* A report as a page: what is said, and that no text of it is taken for markup or a script. */
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/report/chart.h"
#include "engine/report/report.h"
#include "tests/test.h"

#define EVIL "</script><script>x</script><b title=\"'&"
#define ESCAPED "&lt;/script&gt;&lt;script&gt;x&lt;/script&gt;&lt;b title=&quot;&#39;&amp;"

static const double x[] = {0, 1, 2, 3}, y[] = {1, NAN, 3, 2};

static size_t count(const char *text, const char *word) {
    size_t found = 0;
    for (const char *at = text; (at = strstr(at, word)); at++)
        found++;
    return found;
}

static char *page_of(const struct report *report) {
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 24);
    assert_ok(report_write_page(report, EVIL, test_path("page.html"), &test_failure));
    assert_ok(file_read(test_path("page.html"), &text, &test_failure));
    return text_take(&text);
}

TEST(texts_are_texts) {
    static const struct column columns[] = {{.name = EVIL, .unit = EVIL}, {.name = "b", .detail = true}};
    static const char *const labels[] = {EVIL, "b", "c", "d"};
    const struct chart_series series[] = {{x, y, 4, true, EVIL}, {x, y, 4, false, "other"}};
    const struct chart_span span = {0, 2, EVIL};
    const struct chart chart = {.title = EVIL,
                                .x_name = EVIL,
                                .y_name = EVIL,
                                .x_unit = EVIL,
                                .y_unit = EVIL,
                                .series = series,
                                .series_count = 2,
                                .x_labels = labels,
                                .x_label_count = 4,
                                .spans = &span,
                                .span_count = 1,
                                .events = &span,
                                .event_count = 1,
                                .link = EVIL};
    cleanup(report_cleanup) struct report *report = report_new();
    struct report_section *section = report_section(report->root, EVIL, EVIL, false);
    report_verdict(section, EVIL, REPORT_NOT_USABLE, EVIL);
    report_text(section, EVIL, NULL, EVIL, false);
    report_text(section, EVIL, NULL, EVIL, true);
    report_number(section, EVIL, EVIL, 1, EVIL, 3, false);
    report_note(section, REPORT_WARNING, "%s\n%s", EVIL, EVIL);
    struct report_table *table = report_table(section, EVIL, EVIL, columns, 2);
    report_cell_text(table, EVIL), report_cell(table, 1);
    report_chart(section, EVIL, &chart);
    report_section(section, EVIL, EVIL, true);
    cleanup_free char *page = page_of(report);
    assert_says(page, "<h2>" ESCAPED "</h2>");
    assert_says(page, "<p class=\"verdict not-usable\">&#10007; " ESCAPED "</p>");
    assert_says(page, "<td class=\"w\">" ESCAPED "</td>");
    assert_says(page, "\\u003c/script\\u003e");
    assert_int_equal(count(page, "<script>x"), 0);
    assert_int_equal(count(page, "<b "), 0);
    assert_int_equal(count(page, "<script"), 3); /* the chart's numbers, uPlot, the page's own */
    assert_int_equal(count(page, "</script>"), 3);
}

TEST(what_is_there_without_scripts) {
    static const struct column columns[] = {{.name = "setting"},
                                            {.name = "rate", .unit = "Gflop/s", .digits = 4}};
    const struct chart_series line = {x, y, 4, true, NULL};
    struct chart chart = {
        .title = "by N", .x_name = "N", .y_name = "rate", .series = &line, .series_count = 1};
    cleanup(report_cleanup) struct report *report = report_new();
    struct report_table *table = report_table(report->root, "settings", "Settings", columns, 2);
    report_cell_text(table, "a"), report_cell(table, 12.345);
    report_chart(report->root, "chart", &chart);
    chart.needs_scripts = true;
    report_chart(report_section(report->root, "node", "node-1", true), "chart", &chart);
    report_picture(report->root, "gantt", "<svg><path d=\"M0 0h1\"/></svg>");
    cleanup_free char *page = page_of(report);
    assert_says(page, "<caption>Settings</caption>");
    assert_says(page, "<th class=\"n\">rate (Gflop/s)</th>");
    assert_says(page, "<td class=\"n\">12.35</td>");
    assert_int_equal(count(page, "<svg viewBox"), 1); /* the other one needs scripts */
    assert_says(page, "<details><summary>node-1</summary>\n<figure class=\"chart\">");
    assert_says(page, "This chart is drawn by scripts only.");
    assert_says(page, "<figcaption>gantt</figcaption>\n<svg><path");
    /* The numbers of the chart, as doubles: 0, 1, 2, 3. */
    assert_says(page, "\"x\":\"AAAAAAAAAAAAAAAAAADwPwAAAAAAAABAAAAAAAAACEA=\"");
    cleanup_free char *text = report_render(report, true);
    assert_true(strstr(text, "svg") == NULL);
}

/* Of a line with more points than a picture has columns, the greatest and the least stay. */
TEST(thinned_lines_have_their_peaks) {
    enum { POINTS = 200000 };
    double *at = xcalloc(POINTS, sizeof *at), *value = xcalloc(POINTS, sizeof *value);
    for (int i = 0; i < POINTS; i++)
        at[i] = i, value[i] = i == 123456 ? 1 : i == 150000 ? -1 : 0;
    const struct chart_series line = {at, value, POINTS, true, NULL};
    const struct chart chart = {.title = "", .x_name = "", .y_name = "", .series = &line, .series_count = 1};
    cleanup(text_clear) struct text svg;
    text_init(&svg, 1 << 24);
    chart_append_figure(&chart, &svg);
    assert_true(svg.length < 40000);
    assert_says(svg.bytes, " 40.0");  /* the upper edge */
    assert_says(svg.bytes, " 360.0"); /* the lower one */
    free(at), free(value);
}
