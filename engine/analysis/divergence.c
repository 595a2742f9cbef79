#include "engine/analysis/divergence.h"

#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/report/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    STRETCHES = 10,  /* of the columns of the matrix */
    NUMBERS_MAX = 9, /* of a row */
};

/* Means of values by a whole number, such as a rank, in its order. */
struct mean {
    double key, sum, count;
};
struct means {
    struct mean *at;
    size_t count, size;
};

/* The first place whose key is at least KEY. */
static size_t find_place(const struct means *means, double key) {
    size_t low = 0, high = means->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        *(means->at[middle].key < key ? &low : &high) = means->at[middle].key < key ? middle + 1 : middle;
    }
    return low;
}

static void add_value(struct means *means, double key, double value) {
    size_t place = find_place(means, key);
    if (!isfinite(value) || !(key >= 0))
        return;
    if (place == means->count || means->at[place].key != key) {
        means->size = means->count == means->size ? 2 * means->size + 64 : means->size;
        means->at = xrealloc(means->at, means->size * sizeof *means->at);
        memmove(means->at + place + 1, means->at + place, (means->count++ - place) * sizeof *means->at);
        means->at[place] = (struct mean){.key = key};
    }
    means->at[place].sum += value;
    means->at[place].count++;
}

/* The mean at KEY, or between its two neighbours in proportion; NaN: KEY is outside of them. */
static double mean_near(const struct means *means, double key) {
    size_t place = find_place(means, key);
    if (place == means->count || (place == 0 && means->at[0].key > key))
        return NAN;
    const struct mean *above = &means->at[place], *below = above->key > key ? above - 1 : above;
    double share = (key - below->key) / fmax(1, above->key - below->key);
    return (1 - share) * below->sum / below->count + share * above->sum / above->count;
}

/* The mean of the means of keys FROM to below END; NaN: there is none. */
static double mean_over(const struct means *means, double from, double end) {
    double sum = 0, count = 0;
    for (size_t i = find_place(means, from); i < means->count && means->at[i].key < end; i++, count++)
        sum += means->at[i].sum / means->at[i].count;
    return count > 0 ? sum / count : NAN;
}

/* ---- Reading */

/* Seconds: elapsed by column of the matrix; by number of `phases` and of `kernels`; by rank, in BLAS and in
 * calls of MPI. */
enum quantity { PANELS, PHASES, KERNELS, COMPUTING, WAITING, QUANTITIES };
enum side { RUN, REPLAY, SIDES };

/* Names that HPL and the tracing library print; the replay has `rank_pivots`, `rank_swaps`, `rank_solve`. */
static const char *const phases[] = {"mxswp", "laswp", "up tr sv", NULL};
static const char *const kernels[] = {"dgemm", "dtrsm", "dgemv",  "dger",  "dtrsv", "dscal",
                                      "daxpy", "dcopy", "idamax", "dswap", NULL};
enum { LASWP = 1, PHASE_COUNT = 3 };

static const struct source {
    const char *name, *numbers[NUMBERS_MAX], *text;
} sources[] = {
    {"panels", {"column", "gflops"}, NULL},
    {"phases", {"seconds"}, "phase"},
    {"calls", {"rank", "duration"}, "call"},
    {"panels", {"panel", "panel_begun"}, NULL},
    {"ranks",
     {"rank", "computing", "rank_copies", "rank_pivots", "rank_swaps", "rank_solve", "rank_panels",
      "rank_panel_wait", "rank_probes"},
     NULL},
    {"parts", {"part_mean"}, "part"},
};
enum { RUN_PANELS, RUN_PHASES, RUN_CALLS, REPLAY_PANELS, REPLAY_RANKS, REPLAY_PARTS, SOURCES };

struct sides {
    const struct measurements *measurements;
    size_t setting;
    const char *scenario;
    double order; /* N */
    struct means means[SIDES][QUANTITIES];
    struct means units; /* of the run: rows of rank 0 by call, the greatest count is that of units */
};

static void sides_clear(struct sides *sides) {
    for (int i = 0; i < SIDES * QUANTITIES; i++)
        free(sides->means[i / QUANTITIES][i % QUANTITIES].at);
    free(sides->units.at);
}

/* A number of the setting, such as N; NaN: no factor is called so. */
static double setting_number(const struct sides *sides, const char *name) {
    const struct measurements *m = sides->measurements;
    for (size_t f = 0; f < m->factor_count; f++)
        if (strcmp(m->factors[f].column->name, name) == 0)
            return strtod(measurements_level(m, sides->setting, f), NULL);
    return NAN;
}

/* The place of NAME, or -1. */
static int find_name(const char *const *names, const char *name) {
    for (int i = 0; names[i]; i++)
        if (strcmp(names[i], name) == 0)
            return i;
    return -1;
}

/* Adds a row of table SOURCE: its numbers, and its text with the code of that. */
static void add_row(struct sides *sides, int source, const double *x, const char *text, uint32_t code) {
    struct means *run = sides->means[RUN], *replay = sides->means[REPLAY];
    double n = sides->order, left = n - x[0], waiting = 0;
    int kernel = text ? find_name(kernels, text) : -1;
    switch (source) {
    case RUN_PANELS:
        add_value(&run[PANELS], x[0], 2.0 / 3 * (n * n * n - left * left * left) / x[1] / 1e9);
        break;
    case RUN_PHASES:
        add_value(&run[PHASES], find_name(phases, text), x[0]);
        break;
    case RUN_CALLS: /* operations of MPI begin with a capital */
        add_value(&run[KERNELS], kernel, x[1]);
        if (kernel >= 0 || (text[0] >= 'A' && text[0] <= 'Z'))
            add_value(&run[kernel >= 0 ? COMPUTING : WAITING], x[0], x[1]);
        if (x[0] == 0)
            add_value(&sides->units, code, 0);
        break;
    case REPLAY_PANELS:
        add_value(&replay[PANELS], x[0], x[1]);
        break;
    case REPLAY_RANKS:
        for (int i = 3; i < NUMBERS_MAX; i++)
            waiting += x[i];
        add_value(&replay[COMPUTING], x[0], x[1] - x[2]);
        add_value(&replay[WAITING], x[0], waiting);
        for (int i = 0; i < PHASE_COUNT; i++) { /* the process that spends most */
            add_value(&replay[PHASES], i, 0);
            replay[PHASES].at[i].count = 1;
            replay[PHASES].at[i].sum = fmax(replay[PHASES].at[i].sum, x[3 + i] + (i == LASWP ? x[2] : 0));
        }
        break;
    default:
        add_value(&replay[KERNELS], kernel, x[0]);
    }
}

/* Adds the setting's rows of table SOURCE of the COUNT archives at PATHS; none if one has no such table. */
static int read_source(struct sides *sides, int source, const char *const *paths, size_t count,
                       struct failure *failure) {
    const struct measurements *m = sides->measurements;
    const struct source *of = &sources[source];
    bool is_prediction = source >= REPLAY_PANELS;
    cleanup(table_cleanup) struct table *table = NULL;
    cleanup_free char *member = xformat("%s/%s.csv", ARCHIVE_TABLES, of->name);
    cleanup_free const char **categories = xcalloc(m->factor_count + 2, sizeof *categories);
    cleanup_free const char **levels = xcalloc(m->factor_count + 2, sizeof *levels);
    struct table_selection selection = {.numbers = of->numbers, .categories = categories};
    for (size_t i = 0; i < count; i++) {
        cleanup(archive_cleanup) struct archive_reader *archive = NULL;
        if (archive_open(paths[i], &archive, NULL) < 0 || !archive_find(archive, member, NULL))
            return 0;
    }
    if (is_prediction) {
        categories[0] = "scenario";
        levels[selection.category_count++] = sides->scenario;
    }
    for (size_t f = 0; !is_prediction && f < m->factor_count; f++)
        if (m->factors[f].varies) {
            categories[selection.category_count] = m->factors[f].column->name;
            levels[selection.category_count++] = measurements_level(m, sides->setting, f);
        }
    size_t text = selection.category_count;
    if (of->text)
        categories[selection.category_count++] = of->text;
    int r = table_open(paths, count, &(struct table_options){.member = member, .predictions = is_prediction},
                       &table, failure);
    for (; r == 0 && selection.number_count < NUMBERS_MAX && of->numbers[selection.number_count];
         selection.number_count++)
        if (!table_find(table, of->numbers[selection.number_count])) /* of an older version */
            return 0;
    r = r < 0 ? r : table_load(table, &selection, failure);
    for (size_t row = 0; r == 0 && row < table->rows; row++) {
        const struct table_category *all = table->categories;
        double values[NUMBERS_MAX] = {0};
        size_t c = 0;
        while (c < text && strcmp(all[c].levels[all[c].codes[row]], levels[c]) == 0)
            c++;
        for (size_t i = 0; i < selection.number_count; i++)
            values[i] = table->numbers[i].values[row];
        uint32_t code = of->text ? all[text].codes[row] : 0;
        if (c == text)
            add_row(sides, source, values, of->text ? all[text].levels[code] : NULL, code);
    }
    return r;
}

static int read_sides(struct sides *sides, const char *prediction, const char *const *runs, size_t run_count,
                      struct failure *failure) {
    struct means *run = sides->means[RUN];
    double units = 1;
    int r = 0;
    for (int i = 0; r == 0 && i < SOURCES; i++)
        r = read_source(sides, i, i < REPLAY_PANELS ? runs : &prediction, i < REPLAY_PANELS ? run_count : 1,
                        failure);
    /* A process has a row for each call and unit: its calls are summed, its units averaged. */
    for (size_t i = 0; i < sides->units.count; i++)
        units = fmax(units, sides->units.at[i].count);
    for (int q = KERNELS; q < QUANTITIES; q++)
        for (size_t i = 0; i < run[q].count; i++)
            run[q].at[i].count = units * (q == KERNELS ? (double)run[COMPUTING].count : 1);
    return r;
}

/* ---- The report */

static const char *more_or_less(double difference) {
    return difference < 0 ? "less" : "more";
}

/* Draws both sides' means over their keys. */
static void report_curves(struct report_section *in, const struct sides *sides, enum quantity quantity,
                          const char *name, const char *title, const char *x_name) {
    const struct means *both[] = {&sides->means[RUN][quantity], &sides->means[REPLAY][quantity]};
    cleanup_free double *points = xcalloc(2 * (both[0]->count + both[1]->count), sizeof *points);
    struct chart_series series[SIDES] = {{.name = "measured", .is_line = true},
                                         {.name = "replayed", .is_line = true}};
    for (int side = 0; side < SIDES; side++) {
        double *x = side == RUN ? points : points + 2 * both[RUN]->count, *y = x + both[side]->count;
        for (size_t i = 0; i < both[side]->count; i++) {
            x[i] = both[side]->at[i].key;
            y[i] = both[side]->at[i].sum / both[side]->at[i].count;
        }
        series[side].x = x;
        series[side].y = y;
        series[side].count = both[side]->count;
    }
    report_chart(
        in, name,
        &(struct chart){
            .title = title, .x_name = x_name, .y_name = "time, s", .series = series, .series_count = SIDES});
}

static void report_panels(const struct sides *sides, struct report_section *in) {
    static const struct column columns[] = {
        {.name = "column", .unit = "1", .digits = 6, .help = "of the matrix, at which a panel begins"},
        {.name = "measured", .unit = "s", .digits = 4, .help = "elapsed until then"},
        {.name = "replayed", .unit = "s", .digits = 4, .help = "elapsed until then"},
        {.name = "difference", .unit = "s", .digits = 3, .help = "measured less replayed"},
    };
    const struct means *run = &sides->means[RUN][PANELS], *replay = &sides->means[REPLAY][PANELS];
    double worst = 0, before = 0, from = 0, to = 0, begin = 0;
    struct report_table *table = NULL;
    for (size_t i = 0; i < run->count; i++) {
        double column = run->at[i].key, measured = mean_near(run, column),
               replayed = mean_near(replay, column), difference = measured - replayed;
        if (isnan(difference) || (i + 1) * STRETCHES / run->count == i * STRETCHES / run->count)
            continue;
        table = table ? table : report_table(in, "panels", NULL, columns, 4);
        report_cell(table, column), report_cell(table, measured);
        report_cell(table, replayed), report_cell(table, difference);
        if (fabs(difference - before) >= fabs(worst)) {
            worst = difference - before;
            from = begin;
            to = column;
        }
        before = difference;
        begin = column;
    }
    if (!table && run->count * replay->count > 0)
        report_note(
            in, REPORT_WARNING,
            "the times of panels are not compared: the run has columns %.0f to %.0f, the replay %.0f to %.0f",
            run->at[0].key, run->at[run->count - 1].key, replay->at[0].key,
            replay->at[replay->count - 1].key);
    if (!table)
        return;
    report_curves(in, sides, PANELS, "curve", "elapsed time at each panel", "column");
    report_note(
        in, REPORT_LINE,
        "at column %.0f the run is %.3g s %s than the replay; %.3g s %s come between columns %.0f and %.0f",
        begin, fabs(before), before < 0 ? "earlier" : "later", fabs(worst), worst < 0 ? "earlier" : "later",
        from, to);
}

/* A table of both sides' times by name, and a sentence with the name that differs most. */
static void report_names(const struct sides *sides, struct report_section *in, enum quantity quantity,
                         const char *name, const char *const *names, const char *help) {
    const struct column columns[] = {
        {.name = name, .help = "of HPL"},
        {.name = "measured", .unit = "s", .digits = 4, .help = help},
        {.name = "replayed", .unit = "s", .digits = 4, .help = help},
    };
    cleanup_free char *plural = xformat("%ss", name);
    struct report_table *table = NULL;
    double worst[SIDES] = {0};
    const char *of_worst = NULL;
    for (int i = 0; names[i]; i++) {
        double times[] = {mean_over(&sides->means[RUN][quantity], i, i + 1),
                          mean_over(&sides->means[REPLAY][quantity], i, i + 1)};
        if (isnan(times[RUN] - times[REPLAY]))
            continue;
        table = table ? table : report_table(in, plural, NULL, columns, 3);
        report_cell_text(table, names[i]), report_cell(table, times[RUN]), report_cell(table, times[REPLAY]);
        if (!of_worst || fabs(times[RUN] - times[REPLAY]) > fabs(worst[RUN] - worst[REPLAY])) {
            memcpy(worst, times, sizeof worst);
            of_worst = names[i];
        }
    }
    if (of_worst)
        report_note(in, REPORT_LINE,
                    "the %s that differs most is %s: %.3g s in the run, %.3g s in the replay", name, of_worst,
                    worst[RUN], worst[REPLAY]);
}

/* Means of the processes of each node, EACH of them on one, or with EACH 1 of each process. */
static void report_processes(const struct sides *sides, struct report_section *in, const char *name,
                             double each) {
    const struct means *run = &sides->means[RUN][COMPUTING];
    const struct column columns[] = {
        {.name = name, .unit = "1", .digits = 8, .help = "from 0, in the order of ranks"},
        {.name = "computing", .unit = "s", .digits = 4, .help = "in BLAS"},
        {.name = "replayed_computing", .label = "replayed", .unit = "s", .digits = 4, .help = "in BLAS"},
        {.name = "waiting", .unit = "s", .digits = 4, .help = "in calls of MPI, idle or not"},
        {.name = "replayed_waiting", .label = "replayed", .unit = "s", .digits = 4, .help = "likewise"},
    };
    cleanup_free char *plural = xformat("%s%s", name, each > 1 ? "s" : "es");
    struct report_table *table = NULL;
    double worst[2] = {0}, share = 0, sum = 0;
    double worst_node = 0, count = 0;
    for (double node = 0, last = run->count > 0 ? run->at[run->count - 1].key : -1; node * each <= last;
         node++) {
        double values[4], differences[2];
        for (int i = 0; i < 4; i++)
            values[i] = mean_over(&sides->means[i % 2][COMPUTING + i / 2], node * each, (node + 1) * each);
        for (int i = 0; i < 2; i++)
            differences[i] = values[2 * i] - values[2 * i + 1];
        if (isnan(differences[0]))
            continue;
        table = table ? table : report_table(in, plural, NULL, columns, 5);
        report_cell(table, node);
        for (int i = 0; i < 4; i++)
            report_cell(table, values[i]);
        sum += differences[0];
        if (count++ == 0 || fabs(differences[0]) > fabs(worst[0])) {
            memcpy(worst, differences, sizeof worst);
            share = differences[0] / values[1];
            worst_node = node;
        }
    }
    double others = (sum - worst[0]) / (count - 1);
    if (count > 1)
        report_note(in, REPORT_LINE,
                    "%s %.0f differs most: it computes %.3g s (%.3g %%) %s than in the replay, and is in "
                    "calls of MPI "
                    "%.3g s %s; the other %s compute %.3g s %s",
                    name, worst_node, fabs(worst[0]), 100 * fabs(share), more_or_less(worst[0]),
                    fabs(worst[1]), more_or_less(worst[1]), plural, fabs(others), more_or_less(others));
}

/* Where the difference comes from, and what to measure next, beside the phase and kernel that differ most. */
static void explain(const struct sides *sides, struct report_section *in) {
    double more[2]; /* computing, waiting: s of a process */
    for (int i = 0; i < 2; i++)
        more[i] = mean_over(&sides->means[RUN][COMPUTING + i], 0, INFINITY) -
                  mean_over(&sides->means[REPLAY][COMPUTING + i], 0, INFINITY);
    if (isnan(more[0]))
        report_note(
            in, REPORT_LINE,
            "how long processes compute and wait is not known; run HPL with 'trace: yes', and predict with "
            "--plot ranks=ranks.csv --plot parts=parts.csv");
    else
        report_note(
            in, REPORT_LINE,
            "a process computes %.3g s %s than in the replay, and is in calls of MPI %.3g s %s (means): most "
            "of the difference is in %s",
            fabs(more[0]), more_or_less(more[0]), fabs(more[1]), more_or_less(more[1]),
            fabs(more[0]) >= fabs(more[1])
                ? "kernels; measure those that differ again, with the clock, threads and neighbours that "
                  "they have in HPL"
                : "messages, or in waiting for processes that compute longer than others");
    report_note(
        in, REPORT_LINE,
        "mxswp and 'up tr sv' are small messages: the latency and the cost of calls; laswp is large "
        "messages of many processes at once, and copies: the bandwidth of the card, dlaswp, dlacpy, dlatcpy");
}

int divergence_report(const char *prediction, const char *const *runs, size_t run_count,
                      const struct measurements *measurements, const struct prediction_error *error,
                      bool is_explained, struct report_section *in, struct failure *failure) {
    cleanup_free char *scenario = xformat("%zu", error->worst->scenario + 1);
    cleanup(sides_clear) struct sides sides = {
        .measurements = measurements, .setting = error->worst->measured->setting, .scenario = scenario};
    const struct means *run = sides.means[RUN], *replay = sides.means[REPLAY];
    sides.order = setting_number(&sides, "N");
    double nodes = setting_number(&sides, "nodes"), each = ceil(setting_number(&sides, "ranks") / nodes);
    int r = read_sides(&sides, prediction, runs, run_count, failure);
    if (r < 0)
        return r;
    if ((run[PANELS].count > 0 && replay[PANELS].count == 0) ||
        (run[PHASES].count + run[WAITING].count > 0 && replay[COMPUTING].count == 0) ||
        (run[KERNELS].count > 0 && replay[KERNELS].count == 0))
        report_note(
            in, REPORT_NOTE,
            "the run has tables that say where the two part; predict with --plot panels=panels.csv --plot "
            "ranks=ranks.csv --plot parts=parts.csv, too, to see it");
    if (run[PANELS].count * replay[PANELS].count == 0 && replay[COMPUTING].count == 0)
        return 0;
    struct report_section *section =
        report_section(in, "divergence", "where the run and the replay part", false);
    report_panels(&sides, section);
    report_names(&sides, section, PHASES, "phase", phases, "of the process that spends most in it");
    report_names(&sides, section, KERNELS, "kernel", kernels, "mean of the processes");
    report_processes(&sides, section, nodes > 1 && each > 1 ? "node" : "process", nodes > 1 ? each : 1);
    if (run[WAITING].count > 1 && replay[WAITING].count > 1)
        report_curves(section, &sides, WAITING, "idle", "time in calls of MPI of each process", "rank");
    if (is_explained)
        explain(&sides, section);
    return 0;
}
