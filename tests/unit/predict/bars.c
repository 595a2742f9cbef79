/* Bars: the greatest first, on both sides of 0, and what is left out. */
#include "engine/predict/bars.h"

#include "tests/test.h"

#include <math.h>

enum { COUNT = 40 };

static const struct column columns[] = {{.name = "cost"}, {.name = "sensitivity", .unit = "%"}, {0}};

/* -1, 2, -3, 4, ..., of which the last is no number. */
static void with_rows(void (*use)(const struct prediction_rows *rows)) {
    char names[COUNT][8], *texts[COUNT][2];
    double values[COUNT][2];
    struct prediction_row items[COUNT];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i + 1);
        texts[i][0] = names[i];
        values[i][1] = i + 1 == COUNT ? NAN : i % 2 == 0 ? -(i + 1) : i + 1;
        items[i] = (struct prediction_row){.values = values[i], .texts = texts[i]};
    }
    use(&(struct prediction_rows){.items = items, .count = COUNT});
}

static void check_text(const struct prediction_rows *rows) {
    struct report *report = report_new();
    bars_report(rows, columns, report->root);
    char *text = report_render(report, false);
    const char *first = strstr(text, "n39 "), *second = strstr(text, "n38 ");
    assert_true(first && second && first < second);
    /* 39 to the left of 0, 38 to the right: 24 of 48 characters each, rounded. */
    assert_says(text, "n39   -39 %        ########################\n");
    assert_says(text, "n38   38 %                                 ########################\n");
    assert_null(strstr(text, "n7 "));
    assert_says(text, "7 smaller ones are left out");
    free(text);
    report_free(report);
}

static void check_svg(const struct prediction_rows *rows) {
    struct text svg;
    text_init(&svg, 1 << 20);
    bars_append_svg(rows, columns, "worth", &svg);
    size_t bars = 0;
    for (const char *at = svg.bytes; (at = strstr(at, "height=\"16\"")); at++)
        bars++;
    assert_int_equal(bars, BARS_MAX);
    assert_says(svg.bytes, ">worth: sensitivity, %</text>");
    assert_says(svg.bytes, "<rect x=\"200.00\" y=\"32\" width=\"324.16\" height=\"16\" fill=\"#0072b2\"/>");
    text_clear(&svg);
}

TEST(bars_are_in_order_of_their_size) {
    with_rows(check_text);
    with_rows(check_svg);
}

static void nothing(const struct prediction_rows *rows) {
    const struct prediction_rows none = {.items = rows->items, .count = 0};
    struct text svg;
    text_init(&svg, 1 << 20);
    bars_append_svg(&none, columns, "worth", &svg);
    assert_says(svg.bytes, "</svg>");
    text_clear(&svg);
}

TEST(a_table_without_rows_has_no_bars) {
    with_rows(nothing);
}
