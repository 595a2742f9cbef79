#include "engine/predict/gantt.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"
#include "engine/report/chart.h"
#include "engine/report/shown.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    TEXT_LANES_MAX = 40,
    TEXT_WIDTH = 64,
    TEXT_LABEL = 12,
    LETTERS = 26, /* words that have one of their own */
    LEFT = 120,   /* of an SVG, in pixels */
    TOP = 30,
    WIDTH = 800,
    LANE_HEIGHT = 18,
};

static const double time_max = 1e300; /* s: differences of times are finite */

struct bar {
    uint32_t lane, word;
    double from, to;
};

/* Lanes and words are numbered in the order in which they come. */
struct gantt {
    struct bar *bars;
    size_t count;
    struct text_set lanes, words;
    double from, range;
};

static void gantt_clear(struct gantt *gantt) {
    text_set_clear(&gantt->lanes);
    text_set_clear(&gantt->words);
    free(gantt->bars);
}

/* The intervals of ROWS as bars, with lanes and words numbered in order of appearance; intervals that are not
 * valid are left out. The caller clears it. */
static struct gantt gantt_of(const struct prediction_rows *rows) {
    struct gantt gantt = {.bars = xcalloc(rows->count + 1, sizeof *gantt.bars), .from = INFINITY};
    double end = -INFINITY;
    for (size_t i = 0; i < rows->count; i++) {
        const char *const *texts = (const char *const *)rows->items[i].texts;
        const char *lane = texts && texts[0] ? texts[0] : "", *word = texts && texts[3] ? texts[3] : "";
        double from = rows->items[i].values[1], to = rows->items[i].values[2];
        if (!(fabs(from) < time_max && fabs(to) < time_max && from <= to))
            continue;
        gantt.bars[gantt.count++] = (struct bar){text_set_add(&gantt.lanes, lane, strlen(lane)),
                                                 text_set_add(&gantt.words, word, strlen(word)), from, to};
        gantt.from = fmin(gantt.from, from);
        end = fmax(end, to);
    }
    gantt.range = end > gantt.from ? end - gantt.from : 1;
    return gantt;
}

/* Adds the intervals as lines of letters, one lane a line, with notes on what is not shown. */
void gantt_report(const struct prediction_rows *rows, struct report_section *in) {
    static const struct column columns[] = {{.label = ""}, {.label = ""}};
    cleanup(gantt_clear) struct gantt gantt = gantt_of(rows);
    char cells[TEXT_LANES_MAX][TEXT_WIDTH];
    memset(cells, ' ', sizeof cells);
    for (const struct bar *bar = gantt.bars; bar < gantt.bars + gantt.count; bar++) {
        double scale = (TEXT_WIDTH - 1) / gantt.range;
        size_t from = (size_t)lround((bar->from - gantt.from) * scale),
               to = (size_t)lround((bar->to - gantt.from) * scale);
        if (bar->lane < TEXT_LANES_MAX)
            memset(&cells[bar->lane][from], bar->word < LETTERS ? (int)('A' + bar->word) : '*',
                   to - from + 1);
    }
    struct report_table *table = report_table(in, NULL, NULL, columns, 2);
    for (size_t lane = 0; lane < gantt.lanes.count && lane < TEXT_LANES_MAX; lane++) {
        cleanup_free char *bars = xformat("|%.*s|", TEXT_WIDTH, cells[lane]);
        report_cell_text(table, gantt.lanes.texts[lane]);
        report_cell_text(table, bars);
    }
    cleanup_free char *range = xformat("%-*.4g%.4g s", TEXT_WIDTH - 4, gantt.from, gantt.from + gantt.range);
    report_cell_text(table, "");
    report_cell_text(table, range);
    for (size_t word = 0; word < gantt.words.count && word < LETTERS; word++) {
        cleanup_free char *meaning = xformat("%c %s", (int)('A' + word), gantt.words.texts[word]);
        report_cell_text(table, "");
        report_cell_text(table, meaning);
    }
    if (gantt.words.count > LETTERS)
        report_note(in, REPORT_NOTE,
                    "'*' stands for %zu further words, for which there is no letter; a "
                    "picture in a file, such as NAME=FILE.svg, shows all words",
                    gantt.words.count - LETTERS);
    if (gantt.lanes.count > TEXT_LANES_MAX)
        report_note(in, REPORT_NOTE,
                    "only the first %d of %zu lanes are shown; a picture in a file, such "
                    "as NAME=FILE.svg, shows more",
                    (int)TEXT_LANES_MAX, gantt.lanes.count);
    if (gantt.count < rows->count)
        report_note(in, REPORT_WARNING,
                    "%zu of %zu intervals are not drawn, because their end lies before "
                    "their begin or a time is not a number",
                    rows->count - gantt.count, rows->count);
}

/* Colours that the colour-blind tell apart (Okabe and Ito 2008), then the same ones paler. The legend has a
 * square and a word for each of the first LETTERS, LEGEND_COLUMNS in a line; the bars have their words as
 * titles. */
enum { COLOURS = 7, LEGEND_COLUMNS = 4, LEGEND_HEIGHT = 18 };

static const char *colour(size_t word, char ret[static 48]) {
    static const char *const colours[COLOURS] = {"#0072b2", "#d55e00", "#009e73", "#cc79a7",
                                                 "#e69f00", "#56b4e9", "#8c8c8c"};
    snprintf(ret, 48, "fill=\"%s\"%s", colours[word % COLOURS],
             word < COLOURS ? "" : " fill-opacity=\"0.5\"");
    return ret;
}

/* Appends a coloured square and a word for each of the first LETTERS words. */
static void append_legend(const struct gantt *gantt, int top, struct text *ret) {
    char fill[48];
    for (size_t word = 0; word < gantt->words.count && word < LETTERS; word++) {
        int left = LEFT + WIDTH / LEGEND_COLUMNS * (int)(word % LEGEND_COLUMNS),
            y = top + LEGEND_HEIGHT * (int)(word / LEGEND_COLUMNS);
        text_printf(ret, "<rect x=\"%d\" y=\"%d\" width=\"12\" height=\"12\" %s/>\n", left, y,
                    colour(word, fill));
        chart_append_words(ret, left + 18, y + 11, "", gantt->words.texts[word], false);
    }
}

/* Appends the intervals as an element <svg>. -EINVAL: too many. */
int gantt_append_svg(const struct prediction_rows *rows, const char *title, struct text *ret,
                     struct failure *failure) {
    cleanup(gantt_clear) struct gantt gantt = gantt_of(rows);
    if (gantt.lanes.count > GANTT_LANES_MAX || gantt.count > GANTT_INTERVALS_MAX)
        return failure_input(failure, NULL, 0, 0,
                             "cannot draw %zu intervals in %zu lanes; expected at most %d intervals "
                             "in %d lanes: write trace events instead, which have no limit, by a "
                             "file name that ends in .json",
                             gantt.count, gantt.lanes.count, (int)GANTT_INTERVALS_MAX, (int)GANTT_LANES_MAX);
    int bottom = TOP + LANE_HEIGHT * (int)gantt.lanes.count;
    size_t shown = gantt.words.count < LETTERS ? gantt.words.count : LETTERS,
           legend = (shown + LEGEND_COLUMNS - 1) / LEGEND_COLUMNS * LEGEND_HEIGHT;
    chart_append_head(ret, LEFT + WIDTH + 20, (size_t)bottom + 30 + legend);
    chart_append_words(ret, LEFT, TOP - 10, "", title, false);
    for (int lane = 0; lane < (int)gantt.lanes.count; lane++)
        chart_append_words(ret, LEFT - 6, TOP + LANE_HEIGHT * lane + 13, "text-anchor=\"end\"",
                           gantt.lanes.texts[lane], false);
    char fill[48];
    for (const struct bar *bar = gantt.bars; bar < gantt.bars + gantt.count; bar++) {
        cleanup_free char *words =
            xformat("%s: %g s to %g s", gantt.words.texts[bar->word], bar->from, bar->to);
        text_printf(ret, "<rect x=\"%.2f\" y=\"%d\" width=\"%.2f\" height=\"%d\" %s><title>",
                    LEFT + WIDTH * (bar->from - gantt.from) / gantt.range,
                    TOP + LANE_HEIGHT * (int)bar->lane + 1, WIDTH * (bar->to - bar->from) / gantt.range,
                    LANE_HEIGHT - 2, colour(bar->word, fill));
        chart_append_escaped(ret, words);
        text_append_string(ret, "</title></rect>\n");
    }
    cleanup_free char *range = xformat("%.4g s to %.4g s", gantt.from, gantt.from + gantt.range);
    chart_append_words(ret, LEFT, bottom + 16, "", range, false);
    append_legend(&gantt, bottom + 28, ret);
    text_append_string(ret, "</svg>\n");
    return 0;
}

/* Appends the intervals of all scenarios as trace events of Chrome's tracing format. */
void gantt_append_trace(const struct prediction *prediction, size_t table, struct text *ret) {
    const char *before = "\n"; /* before an event */
    text_append_string(ret, "{\"displayTimeUnit\": \"ms\", \"traceEvents\": [");
    for (size_t s = 0; s < prediction->scenarios.count; s++) {
        cleanup(gantt_clear) struct gantt gantt = gantt_of(&prediction->results[s].tables[table]);
        for (size_t lane = 0; lane < gantt.lanes.count; lane++, before = ",\n") {
            text_printf(ret, "%s{\"ph\": \"M\", \"pid\": %zu, \"tid\": %zu, \"name\": \"thread_name\", ",
                        before, prediction->scenarios.items[s].number, lane);
            text_append_string(ret, "\"args\": {\"name\": ");
            json_append_string(ret, gantt.lanes.texts[lane], strlen(gantt.lanes.texts[lane]));
            text_append_string(ret, "}}");
        }
        for (const struct bar *bar = gantt.bars; bar < gantt.bars + gantt.count; bar++) {
            const char *word = gantt.words.texts[bar->word];
            text_printf(ret,
                        "%s{\"ph\": \"X\", \"pid\": %zu, \"tid\": %u, \"ts\": %.3f, \"dur\": %.3f, "
                        "\"name\": ",
                        before, prediction->scenarios.items[s].number, bar->lane, 1e6 * bar->from,
                        1e6 * (bar->to - bar->from));
            json_append_string(ret, word, strlen(word));
            text_append_character(ret, '}');
        }
    }
    text_append_string(ret, "\n]}\n");
}
