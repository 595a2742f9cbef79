#include "engine/command-line/run/page.h"

#include "engine/command-line/report.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/report/report.h"
#include "engine/report/shown.h"
#include "engine/run/record/last-units.h"
#include "engine/run/record/sensors.h"
#include "engine/run/record/status-report.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    BAR_WIDTH = 24,
    NODES_A_FRAME = 64, /* whose samples are read: an engine writes them twice a minute */
    BEST_LINES = 5,
    BEST_SHARE = 400,
    MESSAGES_LEAST = 2,
    NAME_WIDTH_MAX = 32,
    FIGURE_SIZE = 32,
};
static const int64_t best_period_ns = 5000000000;

/* ---- Time and units */

static double seconds_since(int64_t wall_ns, int64_t until_ns) {
    return until_ns > wall_ns ? (double)(until_ns - wall_ns) / 1e9 : 0;
}

/* The lines with the run's name and condition, and the time left. */
static void make_title(const struct run_status *status, int64_t now_ns, struct screen *screen) {
    const struct run_history *history = &status->history;
    char took[NUMBER_TEXT_SIZE] = "", left[NUMBER_TEXT_SIZE] = "", end[CLOCK_TEXT_SIZE];
    const char *clock = "";
    if (history->part_count > 0)
        number_describe_duration(
            floor(seconds_since(history->parts[history->part_count - 1].started_ns, now_ns)), took);
    if (status->seconds_left >= 0) {
        number_describe_duration(ceil(status->seconds_left), left);
        clock = status_describe_moment(now_ns + (int64_t)(status->seconds_left * 1e9), end);
        clock += strcspn(clock, " ");
    }
    screen_line(screen, SCREEN_TITLE, "%s  %s%s%s%s", status->name, run_condition_name(status->condition),
                took[0] ? " for " : "", took, status->part > 1 ? ", resumed" : "");
    screen_line(screen, SCREEN_PLAIN, left[0] ? "time left  %s, until%.6s UTC" : "time left  not known yet",
                left, clock);
}

/* The line with the bar and the counts of units. */
static void make_units(const struct run_status *status, struct screen *screen) {
    char bar[BAR_WIDTH + 1] = "", rate[FIGURE_SIZE] = "";
    if (!status->is_planned) {
        screen_line(screen, SCREEN_PLAIN, "units      not counted yet%s%s",
                    status->history.reservation[0] ? "; " : "", status->history.reservation);
        return;
    }
    double share = status->planned > 0 ? fmin(1, (double)status->done / (double)status->planned) : 0;
    memset(bar, '.', BAR_WIDTH);
    memset(bar, '#', (size_t)(share * BAR_WIDTH));
    if (isfinite(status->rate))
        snprintf(rate, sizeof rate, ", %.3g units/s", status->rate);
    screen_line(screen, SCREEN_PLAIN,
                "units      [%s] %.1f %%, %" PRIu64 " of %" PRIu64 ", %" PRIu64 " failed, %" PRIu64
                " flagged%s",
                bar, 100 * share, status->done, status->planned, status->failed, status->flagged, rate);
}

/* The line with the phases and how long each took, the last first, so that a narrow window has it. */
static void make_phases(const struct run_status *status, int64_t now_ns, struct screen *screen) {
    cleanup(text_clear) struct text words;
    text_init(&words, 4096);
    for (size_t i = RUN_PHASES; i-- > 0;) {
        const struct run_history_phase *phase = &status->history.phases[i];
        char took[NUMBER_TEXT_SIZE];
        if (phase->started_ns == 0)
            continue;
        bool goes_on = phase->ended_ns == 0;
        double seconds = seconds_since(phase->started_ns, goes_on ? now_ns : phase->ended_ns);
        number_describe_duration(goes_on ? floor(seconds) : seconds, took);
        (void)text_printf(&words, "%s%s%s %s", words.length > 0 ? ", " : "", run_phase_names[i],
                          goes_on ? " for" : "", took);
    }
    screen_line(screen, SCREEN_PLAIN, "phases     %s", words.length > 0 ? words.bytes : "none yet");
}

/* ---- Nodes */

struct node_line {
    const struct run_history_node *node;
    struct sensors sensors;
    size_t number; /* in the run's order */
};

static int severity(const struct run_history_node *node) {
    return node->condition != RUN_NODE_IN ? 3 : node->slow ? 2 : node->flags[0] != '\0';
}

/* Unreachable nodes first, then slow ones, those with flags, and the others, each in the run's order. */
static int compare_lines(const void *left, const void *right) {
    const struct node_line *a = left, *b = right;
    int order = severity(b->node) - severity(a->node);
    return order ? order : a->number < b->number ? -1 : 1;
}

static const char *state_of(const struct run_history_node *node) {
    static const char *const words[] = {[RUN_NODE_IN] = "in",
                                        [RUN_NODE_OUT_OF_REACH] = "out of reach",
                                        [RUN_NODE_LOST] = "lost",
                                        [RUN_NODE_OUT] = "taken out"};
    return node->condition == RUN_NODE_IN && node->slow ? "slow" : words[node->condition];
}

/* "71.2 °C", without UNICODE "71.2 Cel"; "-": not known. */
static void print_figure(double value, const char *unit, bool unicode, char buffer[static FIGURE_SIZE]) {
    static const char *const symbols[] = {"", "k", "M", "G"};
    size_t scale = 0;
    bool is_temperature = strcmp(unit, "Cel") == 0;
    for (; !is_temperature && fabs(value) >= 1000 && scale < 3; scale++)
        value /= 1000;
    if (isnan(value))
        snprintf(buffer, FIGURE_SIZE, "-");
    else
        snprintf(buffer, FIGURE_SIZE, "%.3g %s%s", value, symbols[scale],
                 is_temperature && unicode ? "°C" : unit);
}

/* Blanks that make TEXT, which has as many bytes as characters or two bytes of a "°" more, WIDTH wide. */
static int pad(const char *text, int width) {
    int length = 0;
    for (const char *at = text; *at; at++)
        length += ((unsigned char)*at & 0xc0) != 0x80;
    return length < width ? width - length : 0;
}

/* The line of one node: state, sensors, its last unit and that unit's flags. */
static void make_node(const struct node_line *line, int name_width, struct screen *screen) {
    char figures[3][FIGURE_SIZE], unit[FIGURE_SIZE] = "-";
    const struct run_history_node *node = line->node;
    print_figure(line->sensors.temperature, "Cel", screen->has_unicode, figures[0]);
    print_figure(line->sensors.frequency, "Hz", screen->has_unicode, figures[1]);
    print_figure(line->sensors.power, "W", screen->has_unicode, figures[2]);
    if (node->unit > 0)
        snprintf(unit, sizeof unit, "%" PRId64, node->unit);
    screen_line(screen,
                node->condition != RUN_NODE_IN ? SCREEN_FAILURE
                : node->slow || node->flags[0] ? SCREEN_WARNING
                                               : SCREEN_PLAIN,
                "%-*.*s  %-12s %s%*s  %s%*s  %s%*s  %-9s %s", name_width, NAME_WIDTH_MAX, node->name,
                state_of(node), figures[0], pad(figures[0], 11), "", figures[1], pad(figures[1], 9), "",
                figures[2], pad(figures[2], 7), "", unit, node->flags);
}

/* The line about all nodes: "all 256 nodes: 254 in, 2 away, ..., 45 to 71 °C". */
static void make_fold(const struct run_status *status, const struct node_line *lines, struct screen *screen) {
    cleanup(text_clear) struct text words;
    size_t away = status->nodes_out_of_reach + status->nodes_lost + status->nodes_out, flagged = 0;
    static const char *const units[] = {"Cel", "Hz", "W"};
    double low[3] = {NAN, NAN, NAN}, high[3] = {NAN, NAN, NAN};
    text_init(&words, 1024);
    for (size_t i = 0; i < status->node_count; i++) {
        const double values[] = {lines[i].sensors.temperature, lines[i].sensors.frequency,
                                 lines[i].sensors.power};
        flagged += lines[i].node->flags[0] != '\0';
        for (size_t k = 0; k < 3; k++) {
            low[k] = fmin(low[k], values[k]);
            high[k] = fmax(high[k], values[k]);
        }
    }
    for (size_t k = 0; k < 3; k++) {
        char from[FIGURE_SIZE], to[FIGURE_SIZE];
        print_figure(low[k], units[k], screen->has_unicode, from);
        print_figure(high[k], units[k], screen->has_unicode, to);
        if (!isnan(low[k]))
            (void)text_printf(&words, ", %s to %s", from, to);
    }
    screen_line(screen, SCREEN_PLAIN, "all %zu nodes: %zu in, %zu away, %zu slow, %zu with flags%s",
                status->node_count, status->node_count - away, away, status->nodes_slow, flagged,
                words.length > 0 ? words.bytes : "");
}

/* The nodes in at most ROOM lines. If they do not fit: a line about all, then those that are away or slow. */
static void make_nodes(const struct run_status *status, size_t room, struct screen *screen) {
    cleanup_free struct node_line *lines = xcalloc(status->node_count + 1, sizeof *lines);
    bool folds = status->node_count + 1 > room;
    int width = (int)strlen("node");
    for (size_t i = 0; i < status->node_count; i++) {
        const struct run_history_node *node = status->nodes[i];
        int length = (int)strlen(node->name);
        lines[i] = (struct node_line){node, sensors_find(&node->samples), i};
        width = length > NAME_WIDTH_MAX ? NAME_WIDTH_MAX : length > width ? length : width;
    }
    if (status->node_count == 0 || room < 3)
        return;
    screen_line(screen, SCREEN_DIM, "%-*s  %-12s %-11s  %-9s  %-7s  %-9s %s", width, "node", "state",
                "temperature", "frequency", "power", "last unit", "flags");
    size_t shown = folds ? room - 2 : status->node_count;
    if (folds) {
        make_fold(status, lines, screen);
        qsort(lines, status->node_count, sizeof *lines, compare_lines);
        shown -= room > 3; /* for the line below */
    }
    for (size_t i = 0; i < shown; i++)
        make_node(&lines[i], width, screen);
    if (folds && room > 3)
        screen_line(screen, SCREEN_DIM, "... and %zu more nodes", status->node_count - shown);
}

/* ---- Settings and messages */

/* Ranks the settings again if units have ended, but seldom enough that ranking takes a small share of the
 * time. */
static void find_best(struct run_page *page, const struct run_status *status) {
    int64_t now_ns = clock_monotonic_ns();
    int64_t period_ns = page->best_took_ns * BEST_SHARE;
    period_ns = period_ns > best_period_ns ? period_ns : best_period_ns;
    if ((int64_t)status->done == page->best_units || status->done == 0 ||
        (page->best_at_ns && now_ns - page->best_at_ns < period_ns))
        return;
    free(page->best);
    page->best = report_best_settings(status->folder);
    page->best_units = (int64_t)status->done;
    page->best_at_ns = clock_monotonic_ns();
    page->best_took_ns = page->best_at_ns - now_ns;
}

static size_t count_lines(const char *text, size_t most) {
    size_t count = 0;
    for (const char *at = text; at && *at && count < most; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : "")
        count++;
    return count;
}

static void make_best(const struct run_page *page, size_t count, struct screen *screen) {
    const char *at = page->best;
    for (size_t i = 0; i < count; i++) {
        size_t length = strcspn(at, "\n");
        screen_line(screen, i == 0 ? SCREEN_DIM : SCREEN_PLAIN, "%.*s", (int)length, at);
        at += length + (at[length] == '\n');
    }
}

static void make_messages(const struct run_history *history, size_t count, struct screen *screen) {
    for (size_t i = history->message_count - count; i < history->message_count; i++) {
        const struct run_history_message *message = &history->messages[i % RUN_HISTORY_MESSAGES];
        char time[CLOCK_TEXT_SIZE];
        const char *clock = status_describe_moment(message->wall_ns, time);
        screen_line(screen, message->is_failure ? SCREEN_FAILURE : SCREEN_PLAIN, "%s  %s",
                    clock + strcspn(clock, " ") + (strchr(clock, ' ') != NULL), message->text);
    }
}

static void read_samples(struct run_page *page, const struct run_status *status) {
    size_t count = status->node_count < NODES_A_FRAME ? status->node_count : NODES_A_FRAME;
    for (size_t i = 0; i < count; i++) {
        struct run_history_node *node = status->nodes[page->next_node++ % status->node_count];
        samples_read(&node->samples, status->folder, node->name, (unsigned)node->part);
    }
}

/* Makes all lines of the page. Nodes have at least half of the room, or all that they need; then come the
 * best settings, then messages. */
void run_page_make(struct run_page *page, struct run_status *status, struct screen *screen) {
    const struct run_history *history = &status->history;
    int64_t now_ns = clock_wall_ns();
    if (status->folder) {
        read_samples(page, status);
        last_units_read(&status->history, status->folder);
        find_best(page, status);
    }
    screen_measure(screen);
    size_t messages =
        history->message_count < RUN_HISTORY_MESSAGES ? history->message_count : RUN_HISTORY_MESSAGES;
    size_t best = count_lines(page->best, BEST_LINES), room = screen->height > 5 ? screen->height - 5 : 0;
    /* Nodes have half of the room at least, or as much of it as they need. */
    size_t nodes = status->node_count + 1 < room / 2 ? status->node_count + 1 : room / 2;
    size_t rest = room - nodes;
    if (best + 1 + MESSAGES_LEAST + 1 > rest)
        best = 0;
    size_t free_lines = rest - (best > 0 ? best + 1 : 0);
    messages = messages + 1 > free_lines ? (free_lines > 0 ? free_lines - 1 : 0) : messages;
    nodes = room - (best > 0 ? best + 1 : 0) - (messages > 0 ? messages + 1 : 0);
    make_title(status, now_ns, screen);
    make_units(status, screen);
    make_phases(status, now_ns, screen);
    screen_line(screen, SCREEN_PLAIN, "%s", "");
    make_nodes(status, nodes, screen);
    if (best > 0)
        screen_line(screen, SCREEN_PLAIN, "%s", ""), make_best(page, best, screen);
    if (messages > 0)
        screen_line(screen, SCREEN_PLAIN, "%s", ""), make_messages(history, messages, screen);
}

void run_page_clear(struct run_page *page) {
    free(page->best);
    *page = (struct run_page){0};
}
