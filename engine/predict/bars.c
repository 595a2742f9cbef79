#include "engine/predict/bars.h"

#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/report/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { TEXT_WIDTH = 48, LEFT = 200, TOP = 30, WIDTH = 640, RIGHT = 220, HEIGHT = 20, DIGITS = 4 };

struct bar {
    const char *name;
    double value;
    size_t place; /* among the rows */
};

struct bars {
    struct bar *items;
    size_t count, left_out;
    double from, to; /* the range of the numbers, and 0 */
};

static int compare(const void *a, const void *b) {
    const struct bar *x = a, *y = b;
    if (fabs(x->value) != fabs(y->value))
        return fabs(x->value) > fabs(y->value) ? -1 : 1;
    return x->place < y->place ? -1 : 1;
}

static void bars_clear(struct bars *bars) {
    free(bars->items);
}

/* The two numbers after that of a bar, if these are the ends of its interval; or NULL. */
static const double *interval_of(const struct prediction_rows *rows, const struct column *columns,
                                 const struct bar *bar) {
    bool has_interval = columns[2].name && text_ends_in(columns[2].name, "_low");
    return has_interval ? &rows->items[bar->place].values[2] : NULL;
}

static struct bars bars_of(const struct prediction_rows *rows, const struct column *columns) {
    struct bars bars = {.items = xcalloc(rows->count + 1, sizeof *bars.items)};
    for (size_t i = 0; i < rows->count; i++)
        if (isfinite(rows->items[i].values[1]))
            bars.items[bars.count++] = (struct bar){rows->items[i].texts[0], rows->items[i].values[1], i};
    qsort(bars.items, bars.count, sizeof *bars.items, compare);
    bars.left_out = bars.count > BARS_MAX ? bars.count - BARS_MAX : 0;
    bars.count -= bars.left_out;
    for (size_t i = 0; i < bars.count; i++) {
        const double *interval = interval_of(rows, columns, &bars.items[i]);
        bars.from = fmin(bars.from, interval ? interval[0] : bars.items[i].value);
        bars.to = fmax(bars.to, interval ? interval[1] : bars.items[i].value);
    }
    return bars;
}

/* Where VALUE is in the range, 0 to 1. */
static double place_of(const struct bars *bars, double value) {
    return bars->to > bars->from ? (value - bars->from) / (bars->to - bars->from) : 0;
}

/* "11.8 % (9.1 to 14)". The caller frees. */
static char *number_of(const struct prediction_rows *rows, const struct column *columns,
                       const struct bar *bar) {
    const double *interval = interval_of(rows, columns, bar);
    cleanup_free char *number = report_format(bar->value, columns[1].unit, DIGITS);
    return interval ? xformat("%s (%.3g to %.3g)", number, interval[0], interval[1]) : xformat("%s", number);
}

void bars_report(const struct prediction_rows *rows, const struct column *columns,
                 struct report_section *in) {
    const struct column shown[] = {{.label = columns[0].name}, {.label = columns[1].name}, {.label = " "}};
    cleanup(bars_clear) struct bars bars = bars_of(rows, columns);
    struct report_table *table = report_table(in, NULL, NULL, shown, 3);
    for (size_t i = 0; i < bars.count; i++) {
        const struct bar *bar = &bars.items[i];
        double zero = place_of(&bars, 0), end = place_of(&bars, bar->value);
        size_t from = (size_t)lround(TEXT_WIDTH * fmin(zero, end)),
               to = (size_t)lround(TEXT_WIDTH * fmax(zero, end));
        char drawn[TEXT_WIDTH + 1] = "";
        memset(drawn, ' ', from);
        memset(drawn + from, '#', to - from);
        cleanup_free char *number = number_of(rows, columns, bar);
        report_cell_text(table, bar->name);
        report_cell_text(table, number);
        report_cell_text(table, drawn);
    }
    if (bars.left_out > 0)
        report_note(in, REPORT_NOTE, "%zu smaller ones are left out; NAME=FILE.csv has all", bars.left_out);
}

void bars_append_svg(const struct prediction_rows *rows, const struct column *columns, const char *title,
                     struct text *ret) {
    cleanup(bars_clear) struct bars bars = bars_of(rows, columns);
    double zero = LEFT + WIDTH * place_of(&bars, 0);
    size_t bottom = TOP + HEIGHT * bars.count;
    chart_append_head(ret, LEFT + WIDTH + RIGHT, bottom + 30);
    cleanup_free char *heading = xformat("%s: %s, %s", title, columns[1].name, unit_label(columns[1].unit));
    chart_append_words(ret, 10, TOP - 10, "", heading, false);
    for (size_t i = 0; i < bars.count; i++) {
        const struct bar *bar = &bars.items[i];
        double end = LEFT + WIDTH * place_of(&bars, bar->value), y = (double)(TOP + HEIGHT * i);
        cleanup_free char *number = number_of(rows, columns, bar);
        chart_append_words(ret, LEFT - 6, y + 14, "text-anchor=\"end\"", bar->name, false);
        text_printf(ret, "<rect x=\"%.2f\" y=\"%.0f\" width=\"%.2f\" height=\"%d\" fill=\"%s\"/>\n",
                    fmin(zero, end), y + 2, fabs(end - zero), HEIGHT - 4,
                    bar->value < 0 ? "#0072b2" : "#d55e00");
        const double *interval = interval_of(rows, columns, bar);
        if (interval)
            text_printf(ret,
                        "<line x1=\"%.2f\" y1=\"%.0f\" x2=\"%.2f\" y2=\"%.0f\" stroke=\"currentColor\"/>\n",
                        LEFT + WIDTH * place_of(&bars, interval[0]), y + HEIGHT / 2.0,
                        LEFT + WIDTH * place_of(&bars, interval[1]), y + HEIGHT / 2.0);
        chart_append_words(ret, LEFT + WIDTH + 6, y + 14, "", number, false);
    }
    text_printf(ret, "<line x1=\"%.2f\" y1=\"%d\" x2=\"%.2f\" y2=\"%zu\" stroke=\"currentColor\"/>\n", zero,
                TOP, zero, bottom);
    if (bars.left_out > 0) {
        cleanup_free char *rest = xformat("%zu smaller ones are left out", bars.left_out);
        chart_append_words(ret, LEFT, (double)bottom + 18, "", rest, false);
    }
    text_append_string(ret, "</svg>\n");
}
