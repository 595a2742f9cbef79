/* Charts: where points fall, axes that are logarithmic, numbers at the ends of doubles, SVG that is whole. */
#include "engine/report/chart.h"
#include "engine/foundation/file.h"
#include "engine/report/report.h"
#include "tests/test.h"

#include <unistd.h>

static const double zero = 0;

static struct chart make(const struct chart_series *series) {
    return (struct chart){.title = "a < b",
                          .x_name = "x",
                          .y_name = "y\n",
                          .series = series,
                          .series_count = 1,
                          .y_marks = &zero,
                          .y_mark_count = 1,
                          .y_reach = 8};
}

TEST(as_text) {
    const double x[] = {1, 10, 1000, NAN, 100}, y[] = {-1, 0, 1, 5, 1e9};
    const struct chart_series series = {x, y, 5, false, NULL};
    const struct chart chart = make(&series);
    cleanup(text_clear) struct text ascii, braille;
    text_init(&ascii, 1 << 20);
    text_init(&braille, 1 << 20);
    chart_append_text(&chart, false, &ascii);
    chart_append_text(&chart, true, &braille);
    assert_says(ascii.bytes, "y\\n\n");
    assert_says(ascii.bytes, "        8 |                                          *\n"); /* at the edge */
    assert_says(ascii.bytes, "x, logarithmic\n");
    assert_says(ascii.bytes, "       -1 |*\n");
    for (size_t i = 0; i < ascii.length; i++)
        assert_true((unsigned char)ascii.bytes[i] < 0x80);
    assert_true(strstr(braille.bytes, "\u2502") != NULL);
}

TEST(legend) {
    const double x[] = {1, 2, 3}, y[] = {1, 2, 3}, other[] = {3, 2, 1};
    const struct chart_series series[] = {{x, y, 3, true, "NB = 64"}, {x, other, 3, true, "NB = \n128"}};
    struct chart chart = make(series);
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    chart.series_count = 2;
    for (int unicode = 0; unicode < 2; unicode++) {
        text_reset(&text);
        chart_append_text(&chart, unicode, &text);
        assert_says(text.bytes, "           a  NB = 64\n           b  NB = \\n128\n");
        assert_says(text.bytes, "                                a\n"); /* both are 2 at 2 */
        assert_says(text.bytes, unicode ? "\u2502b  " : "|b  ");
        assert_says(text.bytes, " b\n");
    }
    chart.series_count = 1;
    text_reset(&text);
    chart_append_text(&chart, false, &text);
    assert_true(strstr(text.bytes, "NB") == NULL);
}

TEST(nothing_to_draw_and_too_much) {
    static const struct {
        double x[2], y[2];
        bool is_drawn;
    } cases[] = {{{NAN, 1}, {1, INFINITY}, false},
                 {{1, 1}, {2, 2}, true},
                 {{-1.7e308, 1.7e308}, {-1.7e308, 1.7e308}, true},
                 {{5e-324, 1.7e308}, {0, 0}, true}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const struct chart_series series = {cases[i].x, cases[i].y, 2, i % 2, NULL};
        struct chart chart = make(&series);
        char path[] = "/tmp/assay-chart-XXXXXX";
        cleanup(text_clear) struct text text, svg;
        cleanup(report_cleanup) struct report *report = report_new();
        text_init(&text, 1 << 20);
        text_init(&svg, 1 << 20);
        chart.y_reach = 0;
        chart_append_text(&chart, true, &text);
        assert_true(cases[i].is_drawn == (text.length > 0));
        close(mkstemp(path));
        report_chart(report->root, "chart", &chart);
        assert_ok(report_write_svg(report, path, &test_failure));
        assert_ok(file_read(path, &svg, &test_failure));
        assert_says(svg.bytes, "a &lt; b");
        assert_true(strstr(svg.bytes, "nan") == NULL && strstr(svg.bytes, "inf") == NULL);
        assert_string_equal(svg.bytes + svg.length - 7, "</svg>\n");
        unlink(path);
    }
}
