/* Intervals of time as lines for a terminal. */
#include "engine/predict/gantt.h"

#include "tests/test.h"

#include <math.h>

enum { COUNT = 50 };

/* A lane and a word for each of COUNT intervals; one of the last two begins at NaN, the other takes longer
 * than a number can say. */
TEST(what_lines_do_not_show_is_said) {
    char names[COUNT][8], *texts[COUNT][4];
    double values[COUNT][4];
    struct prediction_row items[COUNT];
    for (int i = 0; i < COUNT; i++) {
        snprintf(names[i], sizeof names[i], "n%d", i);
        memcpy(texts[i], (char *[]){names[i], NULL, NULL, names[i]}, sizeof texts[i]);
        memcpy(values[i], (double[]){0, i, i + 1, 0}, sizeof values[i]);
        items[i] = (struct prediction_row){.values = values[i], .texts = texts[i]};
    }
    values[COUNT - 2][1] = NAN;
    values[COUNT - 1][1] = -1.7e308, values[COUNT - 1][2] = 1.7e308;
    struct report *report = report_new();
    gantt_report(&(struct prediction_rows){.items = items, .count = COUNT}, report->root);
    char *text = NULL;
    size_t length = 0;
    FILE *file = open_memstream(&text, &length);
    report_print(report, file, false);
    fclose(file);
    assert_says(text, "'*' stands for 22 further words");
    assert_says(text, "the first 40 of 48 lanes are shown; ");
    assert_says(text, "2 of 50 intervals are not drawn");
    free(text);
    report_free(report);
}
