/* One tree, printed for people and for programs. */
#include "engine/report/report.h"
#include "engine/documents/json.h"
#include "engine/report/chart.h"
#include "tests/test.h"

static struct report *make(void) {
    struct report *report = report_new();
    report_verdict(report->root, "verdict", REPORT_NOT_USABLE, "not usable: error 1.9 %");
    report_number(report->root, "peak", "asymptotic speed", 57.12345e9, "flop/s", 3, false);
    report_number(report->root, "aic", "AIC", -12.5, NULL, 6, true);
    report_text(report->root, "group", NULL, "dahu-3/0", false);
    static const struct column columns[] = {{.name = "term"},
                                            {.name = "estimate", .unit = "s", .digits = 3},
                                            {.name = "p", .digits = 2, .detail = true}};
    struct report_table *table = report_table(report->root, "terms", NULL, columns, 3);
    report_cell_text(table, "1"), report_cell(table, 1.23456e-6), report_cell(table, 0.001);
    report_cell_text(table, "m*n*k"), report_cell(table, NAN), report_cell(table, 1);
    struct report_section *section = report_section(report->root, "domain", "Domain", false);
    report_note(section, REPORT_WARNING, "nothing is known");
    return report;
}

TEST(as_text) {
    cleanup(report_cleanup) struct report *report = make();
    cleanup_free char *brief = report_render(report, false), *all = report_render(report, true);
    assert_string_equal(brief, "not usable: error 1.9 %\n"
                               "asymptotic speed  57.1 Gflop/s\n"
                               "group             dahu-3/0\n"
                               "term   estimate (s)\n"
                               "1          1.23e-06\n"
                               "m*n*k             -\n"
                               "\nDomain\n"
                               "warning: nothing is known\n");
    assert_says(all, "AIC               -12.5\n");
    assert_says(all, "1          1.23e-06  0.001\n");
}

TEST(as_json) {
    cleanup(report_cleanup) struct report *report = make();
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 16);
    cleanup(json_cleanup) cJSON *root = report_json(report);
    assert_int_equal(json_print(root, true, &text), 0);
    assert_says(text.bytes, "\"peak\": 57123450000");
    assert_says(text.bytes, "\"aic\": -12.5");
    assert_says(text.bytes, "\"verdict\": \"not usable: error 1.9 %\"");
    assert_says(text.bytes, "\"grade\": \"not usable\"");
    assert_says(text.bytes, "\"terms.estimate\": \"s\"");
    assert_says(text.bytes, "null");
    assert_says(text.bytes, "\"warnings\"");
}

/* The tree has a copy of all that a chart points to. */
TEST(charts_are_numbers) {
    cleanup(report_cleanup) struct report *report = report_new();
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 16);
    {
        double x[] = {1, 2}, y[] = {3, NAN}, mark = 1.5;
        char title[] = "curve of a";
        const struct chart_series series = {x, y, 2, true, NULL};
        const struct chart chart = {.title = title,
                                    .x_name = "n",
                                    .y_name = "duration (s)",
                                    .series = &series,
                                    .series_count = 1,
                                    .x_marks = &mark,
                                    .x_mark_count = 1};
        report_chart(report->root, "curve", &chart);
        x[0] = y[0] = mark = 77, title[0] = '-';
    }
    cleanup(json_cleanup) cJSON *root = report_json(report);
    assert_int_equal(json_print(root, true, &text), 0);
    cleanup_free char *page = report_render(report, false);
    assert_says(page, "duration (s)\n");
    const char *words[] = {"\"curve\": {", "\"title\": \"curve of a\"", "\"y\": \"duration (s)\"",
                           "1.5",          "\"is_line\": true",         "null"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        assert_says(text.bytes, words[i]);
    assert_null(strstr(text.bytes, "77"));
}

TEST(tables_as_csv_and_without_a_head) {
    static const struct column columns[] = {{.name = "place", .label = ""},
                                            {.name = "nothing", .label = ""},
                                            {.name = "n", .label = "", .unit = "s", .detail = true}};
    cleanup(report_cleanup) struct report *report = report_new();
    struct report_table *table = report_table(report->root, "rows", NULL, columns, 3);
    report_cell_text(table, "a,\033b"), report_cell_text(table, ""), report_cell(table, 0.1);
    cleanup(text_clear) struct text csv;
    text_init(&csv, 1 << 16);
    assert_int_equal(report_table_append_csv(table, &csv, NULL), 0);
    assert_string_equal(csv.bytes, "place,nothing,n\n\"a,\033b\",,0.1\n");
    cleanup_free char *text = report_render(report, false);
    assert_string_equal(text, "a,\\x1bb\n");
}

TEST(numbers_with_prefixes) {
    static const struct {
        double value;
        const char *unit, *expected;
    } cases[] = {{0.0025, "s", "2.5 ms"},  {90, "s", "90 s"},       {65536, "By", "65.5 kB"},
                 {0.5, "By/s", "0.5 B/s"}, {1e9, "Hz", "1 GHz"},    {12, "1", "12"},
                 {INFINITY, "s", "-"},     {3.14159, NULL, "3.14"}, {14733.2, NULL, "14733"},
                 {999.7, NULL, "1000"},    {2e7, NULL, "2e+07"}};
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_free char *text = report_format(cases[i].value, cases[i].unit, 3);
        assert_string_equal(text, cases[i].expected);
    }
}
