#include "engine/analysis/divergence.h"

#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/report/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { STRETCHES = 10 /* of the columns of the matrix */ };

/* Means of values by a number, in its order. */
struct means {
    double *keys, *sums, *counts;
    size_t count, size;
};

static void means_clear(struct means *means) {
    free(means->keys), free(means->sums), free(means->counts);
}

/* The first place whose key is at least KEY. */
static size_t means_place(const struct means *means, double key) {
    size_t low = 0, high = means->count;
    while (low < high) {
        size_t middle = (low + high) / 2;
        *(means->keys[middle] < key ? &low : &high) = means->keys[middle] < key ? middle + 1 : middle;
    }
    return low;
}

static void means_add(struct means *means, double key, double value) {
    size_t place = means_place(means, key);
    if (!isfinite(value) || !isfinite(key))
        return;
    if (place == means->count || means->keys[place] != key) {
        double **arrays[] = {&means->keys, &means->sums, &means->counts};
        means->size = means->count == means->size ? 2 * means->size + 64 : means->size;
        for (size_t i = 0; i < 3; i++) {
            *arrays[i] = xrealloc(*arrays[i], means->size * sizeof **arrays[i]);
            memmove(*arrays[i] + place + 1, *arrays[i] + place, (means->count - place) * sizeof(double));
            (*arrays[i])[place] = 0;
        }
        means->keys[place] = key;
        means->count++;
    }
    means->sums[place] += value;
    means->counts[place]++;
}

static double mean_at(const struct means *means, size_t place) {
    return means->sums[place] / means->counts[place];
}

/* The mean at KEY, between two neighbours in proportion; NaN: KEY is outside of them. */
static double mean_of(const struct means *means, double key) {
    size_t place = means_place(means, key);
    if (place == means->count || (place == 0 && means->keys[0] > key))
        return NAN;
    if (means->keys[place] == key)
        return mean_at(means, place);
    double share = (key - means->keys[place - 1]) / (means->keys[place] - means->keys[place - 1]);
    return mean_at(means, place - 1) + share * (mean_at(means, place) - mean_at(means, place - 1));
}

/* ---- Reading */

/* What the two have of one setting, in means over its units. */
struct sides {
    const struct measurements *measurements;
    size_t setting, scenario;
    double order; /* N */
    double per_node;
    struct means panels[2];                   /* the run's, the replay's: seconds by column */
    struct means computing[2], waiting[2];    /* seconds by rank */
    struct means phases[2];                   /* seconds by number of `phases` */
    const char *run_lacks, *prediction_lacks; /* what has to be set for tables that are not there, or NULL */
};

/* Phases as HPL prints them, and what the replay calls its messages in them. */
static const struct {
    const char *name, *column;
} phases[] = {{"mxswp", "rank_pivots"}, {"laswp", "rank_swaps"}, {"up tr sv", "rank_solve"}};
enum { PHASES = sizeof phases / sizeof *phases };

static void sides_clear(struct sides *sides) {
    for (int i = 0; i < 2; i++) {
        means_clear(&sides->panels[i]), means_clear(&sides->phases[i]);
        means_clear(&sides->computing[i]), means_clear(&sides->waiting[i]);
    }
}

/* A number of the setting, such as N; NaN: no factor is called so. */
static double setting_number(const struct sides *sides, const char *name) {
    const struct measurements *m = sides->measurements;
    for (size_t f = 0; f < m->factor_count; f++)
        if (strcmp(m->factors[f].column->name, name) == 0)
            return strtod(measurements_level(m, sides->setting, f), NULL);
    return NAN;
}

static bool has_member(const char *path, const char *member) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    return archive_open(path, &archive, NULL) == 0 && archive_find(archive, member, NULL);
}

/* Whether ROW, whose first categories are the factors that vary, is of the setting. */
static bool is_of_setting(const struct sides *sides, const struct table *table, size_t row) {
    const struct measurements *m = sides->measurements;
    for (size_t f = 0, c = 0; f < m->factor_count; f++) {
        if (!m->factors[f].varies)
            continue;
        const struct table_category *category = &table->categories[c++];
        if (strcmp(category->levels[category->codes[row]], measurements_level(m, sides->setting, f)) != 0)
            return false;
    }
    return true;
}

/* Calls ADD for each row of the setting in table NAME of the COUNT archives at PATHS, of runs or a
 * prediction: with its numbers, and its text, of the column TEXT. *RET_HAS: there is such a table. */
static int read_rows(struct sides *sides, const char *const *paths, size_t count, const char *name,
                     bool is_prediction, const char *const *numbers, size_t number_count, const char *text,
                     void (*add)(struct sides *sides, const double *numbers, const char *text), bool *ret_has,
                     struct failure *failure) {
    enum { NUMBERS_MAX = 10 };
    const struct measurements *m = sides->measurements;
    cleanup(table_cleanup) struct table *table = NULL;
    cleanup_free char *member = xformat("%s/%s.csv", ARCHIVE_TABLES, name);
    cleanup_free const char **categories = xcalloc(m->factor_count + 1, sizeof *categories);
    const char *read[NUMBERS_MAX] = {is_prediction ? "scenario" : NULL};
    size_t category_count = 0, first = is_prediction;
    *ret_has = true;
    for (size_t i = 0; i < count; i++)
        *ret_has = *ret_has && has_member(paths[i], member);
    if (!*ret_has)
        return 0;
    for (size_t f = 0; !is_prediction && f < m->factor_count; f++)
        if (m->factors[f].varies)
            categories[category_count++] = m->factors[f].column->name;
    if (text)
        categories[category_count++] = text;
    for (size_t i = 0; i < number_count; i++)
        read[first + i] = numbers[i];
    const struct table_selection selection = {.numbers = read,
                                              .number_count = first + number_count,
                                              .categories = categories,
                                              .category_count = category_count};
    int r = table_open(paths, count, &(struct table_options){.member = member, .predictions = is_prediction},
                       &table, failure);
    r = r < 0 ? r : table_load(table, &selection, failure);
    for (size_t row = 0; r == 0 && row < table->rows; row++) {
        double values[NUMBERS_MAX];
        if (is_prediction ? table->numbers[0].values[row] != (double)sides->scenario
                          : !is_of_setting(sides, table, row))
            continue;
        for (size_t i = 0; i < number_count; i++)
            values[i] = table->numbers[first + i].values[row];
        const struct table_category *last = text ? &table->categories[category_count - 1] : NULL;
        add(sides, values, last ? last->levels[last->codes[row]] : NULL);
    }
    return r;
}

static void add_run_panel(struct sides *sides, const double *numbers,
                          __attribute__((unused)) const char *text) {
    double n = sides->order, left = n - numbers[0];
    means_add(&sides->panels[0], numbers[0], 2.0 / 3 * (n * n * n - left * left * left) / numbers[1] / 1e9);
}

static void add_replayed_panel(struct sides *sides, const double *numbers,
                               __attribute__((unused)) const char *text) {
    means_add(&sides->panels[1], numbers[0], numbers[1]);
}

static void add_run_phase(struct sides *sides, const double *numbers, const char *text) {
    for (int i = 0; i < PHASES; i++)
        if (strcmp(text, phases[i].name) == 0)
            means_add(&sides->phases[0], i, numbers[0]);
}

/* Operations of MPI begin with a capital, kernels do not. Of each call the mean over units is taken apart. */
static void add_run_call(struct sides *sides, const double *numbers, const char *text) {
    struct means *means = text[0] >= 'A' && text[0] <= 'Z' ? sides->waiting : sides->computing;
    uint32_t hash = 0;
    for (const char *at = text; *at; at++)
        hash = hash * 31 + (unsigned char)*at;
    means_add(means, numbers[0] + hash % (1u << 20) / (double)(1 << 21), numbers[1]);
}

/* Sums what add_run_call() has kept apart. */
static void sum_calls(struct means *means) {
    struct means sums = {0};
    for (size_t first = 0, i = 0; i < means->count; first = i) {
        double sum = 0;
        for (; i < means->count && floor(means->keys[i]) == floor(means->keys[first]); i++)
            sum += mean_at(means, i);
        means_add(&sums, floor(means->keys[first]), sum);
    }
    means_clear(means);
    *means = sums;
}

static void add_replayed_rank(struct sides *sides, const double *numbers,
                              __attribute__((unused)) const char *text) {
    double idle = 0;
    for (int i = 2; i < 7; i++)
        idle += numbers[i];
    means_add(&sides->computing[1], numbers[0], numbers[1]);
    means_add(&sides->waiting[1], numbers[0], idle);
    for (int i = 0; i < PHASES; i++) {
        struct means *most = &sides->phases[1];
        means_add(most, i, 0);
        most->counts[i] = 1;
        most->sums[i] = fmax(most->sums[i], numbers[2 + i]);
    }
}

static int read_sides(struct sides *sides, const char *prediction, const char *const *runs, size_t run_count,
                      struct failure *failure) {
    static const char *const panel[] = {"column", "gflops"}, *const replayed[] = {"panel", "panel_begun"},
                             *const phase[] = {"seconds"}, *const call[] = {"rank", "duration"},
                             *const rank[] = {"rank",           "computing",      phases[0].column,
                                              phases[1].column, phases[2].column, "rank_panels",
                                              "rank_panel_wait"};
    bool has_panels = false, has_phases = false, has_calls = false, has_curve = false, has_ranks = false;
    int r = 0;
    if (sides->order > 0)
        r = read_rows(sides, runs, run_count, "panels", false, panel, 2, NULL, add_run_panel, &has_panels,
                      failure);
    if (r == 0)
        r = read_rows(sides, runs, run_count, "phases", false, phase, 1, "phase", add_run_phase, &has_phases,
                      failure);
    if (r == 0)
        r = read_rows(sides, runs, run_count, "calls", false, call, 2, "call", add_run_call, &has_calls,
                      failure);
    if (r < 0 || !(has_panels || has_phases || has_calls))
        return r;
    r = read_rows(sides, &prediction, 1, "panels", true, replayed, 2, NULL, add_replayed_panel, &has_curve,
                  failure);
    if (r == 0)
        r = read_rows(sides, &prediction, 1, "ranks", true, rank, 7, NULL, add_replayed_rank, &has_ranks,
                      failure);
    sum_calls(&sides->computing[0]);
    sum_calls(&sides->waiting[0]);
    sides->prediction_lacks = !has_curve && has_panels ? "--plot panels=panels.csv --plot ranks=ranks.csv"
                              : !has_ranks             ? "--plot ranks=ranks.csv"
                                                       : NULL;
    return r;
}

/* ---- The report */

static void report_panels(const struct sides *sides, struct report_section *in) {
    static const struct column columns[] = {
        {.name = "column", .unit = "1", .digits = 6, .help = "of the matrix, at which a panel begins"},
        {.name = "measured", .unit = "s", .digits = 4, .help = "elapsed until then"},
        {.name = "replayed", .unit = "s", .digits = 4, .help = "elapsed until then"},
        {.name = "difference", .unit = "s", .digits = 3, .help = "measured less replayed"},
    };
    const struct means *run = &sides->panels[0], *replay = &sides->panels[1];
    double worst = 0, from = 0, to = 0, before = 0, begin = 0, all = 0;
    if (run->count < 2 || replay->count < 2)
        return;
    struct report_table *table = report_table(in, "panels", NULL, columns, 4);
    for (size_t i = 1; i <= STRETCHES; i++) {
        size_t place = i * run->count / STRETCHES;
        if (place == 0 || run->keys[place - 1] == begin)
            continue;
        double column = run->keys[place - 1], measured = mean_at(run, place - 1),
               replayed = mean_of(replay, column), difference = measured - replayed;
        if (isnan(replayed))
            continue;
        report_cell(table, column), report_cell(table, measured);
        report_cell(table, replayed), report_cell(table, difference);
        if (fabs(difference - before) > fabs(worst)) {
            worst = difference - before;
            from = begin;
            to = column;
        }
        before = all = difference;
        begin = column;
    }
    double *values = xcalloc(run->count + replay->count, sizeof *values);
    cleanup_free double *ys = values;
    for (size_t i = 0; i < run->count; i++)
        ys[i] = mean_at(run, i);
    for (size_t i = 0; i < replay->count; i++)
        ys[run->count + i] = mean_at(replay, i);
    const struct chart_series series[] = {{run->keys, ys, run->count, true, "measured"},
                                          {replay->keys, ys + run->count, replay->count, true, "replayed"}};
    report_chart(in, "curve",
                 &(struct chart){.title = "elapsed time at each panel",
                                 .x_name = "column",
                                 .y_name = "time, s",
                                 .series = series,
                                 .series_count = 2});
    report_note(in, REPORT_LINE,
                "at its last panel the run is %.3g s %s than the replay; %.3g s of that come between columns "
                "%.0f and "
                "%.0f",
                fabs(all), all < 0 ? "earlier" : "later", all < 0 ? -worst : worst, from, to);
}

static void report_phases(const struct sides *sides, struct report_section *in) {
    static const struct column columns[] = {
        {.name = "phase", .help = "of HPL"},
        {.name = "measured", .unit = "s", .digits = 4, .help = "of the process that spends most in it"},
        {.name = "replayed", .unit = "s", .digits = 4, .help = "in its messages, likewise"},
    };
    const struct means *run = &sides->phases[0], *replay = &sides->phases[1];
    size_t worst = SIZE_MAX;
    if (run->count == 0 || replay->count == 0)
        return;
    struct report_table *table = report_table(in, "phases", NULL, columns, 3);
    for (size_t i = 0; i < run->count; i++) {
        double replayed = mean_of(replay, run->keys[i]);
        report_cell_text(table, phases[(int)run->keys[i]].name);
        report_cell(table, mean_at(run, i)), report_cell(table, replayed);
        if (worst == SIZE_MAX ||
            fabs(mean_at(run, i) - replayed) > fabs(mean_at(run, worst) - mean_of(replay, run->keys[worst])))
            worst = i;
    }
    report_note(in, REPORT_LINE, "the phase that differs most is %s: %.3g s, and %.3g s in the replay",
                phases[(int)run->keys[worst]].name, mean_at(run, worst), mean_of(replay, run->keys[worst]));
}

/* The mean over the processes of NODE; NaN: it has none. */
static double node_mean(const struct sides *sides, const struct means *means, size_t node) {
    double sum = 0;
    size_t place = means_place(means, (double)node * sides->per_node), count = 0;
    for (; place < means->count && means->keys[place] < (double)(node + 1) * sides->per_node;
         place++, count++)
        sum += mean_at(means, place);
    return sum / (double)count;
}

static void report_nodes(const struct sides *sides, struct report_section *in) {
    static const struct column columns[] = {
        {.name = "node", .unit = "1", .help = "from 0, in the order of ranks"},
        {.name = "computing", .unit = "s", .digits = 4, .help = "in BLAS"},
        {.name = "replayed_computing", .label = "replayed", .unit = "s", .digits = 4, .help = "in kernels"},
        {.name = "waiting", .unit = "s", .digits = 4, .help = "in calls of MPI"},
        {.name = "replayed_waiting", .label = "replayed", .unit = "s", .digits = 4, .help = "in messages"},
    };
    const struct means *run = &sides->computing[0], *replay = &sides->computing[1];
    if (run->count == 0 || replay->count == 0)
        return;
    size_t count = (size_t)(run->keys[run->count - 1] / sides->per_node) + 1, worst = 0;
    double most = -1, sum = 0, of_worst = 0;
    struct report_table *table = report_table(in, "nodes", NULL, columns, 5);
    for (size_t node = 0; node < count; node++) {
        double measured = node_mean(sides, run, node), replayed = node_mean(sides, replay, node),
               error = measured / replayed - 1;
        report_cell(table, (double)node), report_cell(table, measured), report_cell(table, replayed);
        report_cell(table, node_mean(sides, &sides->waiting[0], node));
        report_cell(table, node_mean(sides, &sides->waiting[1], node));
        sum += error;
        if (fabs(error) > most) {
            most = fabs(error);
            of_worst = error;
            worst = node;
        }
    }
    const char *more = of_worst < 0 ? "shorter" : "longer";
    if (count == 1)
        report_note(in, REPORT_LINE, "its processes compute %.3g %% %s than in the replay", 100 * most, more);
    else
        report_note(
            in, REPORT_LINE,
            "node %zu differs most: its processes compute %.3g %% %s than in the replay; the mean of the "
            "other nodes differs by %+.3g %%",
            worst, 100 * most, more, 100 * (sum - of_worst) / (double)(count - 1));
}

int divergence_report(const char *prediction, const char *const *runs, size_t run_count,
                      const struct measurements *measurements, const struct prediction_error *error,
                      struct report_section *in, struct failure *failure) {
    cleanup(sides_clear) struct sides sides = {.measurements = measurements,
                                               .setting = error->worst->measured->setting,
                                               .scenario = error->worst->scenario + 1};
    double ranks, nodes;
    sides.order = setting_number(&sides, "N");
    ranks = setting_number(&sides, "ranks");
    nodes = setting_number(&sides, "nodes");
    sides.per_node = ranks > 0 && nodes > 0 ? fmax(1, floor(ranks / nodes)) : 1;
    int r = read_sides(&sides, prediction, runs, run_count, failure);
    if (r < 0)
        return r;
    if (sides.prediction_lacks)
        report_note(in, REPORT_NOTE,
                    "the run has tables that say where the two part; predict with %s, as well, to see it",
                    sides.prediction_lacks);
    if (sides.panels[1].count == 0 && sides.computing[1].count == 0)
        return 0;
    struct report_section *section =
        report_section(in, "divergence", "where the run and the replay part", false);
    report_panels(&sides, section);
    report_phases(&sides, section);
    report_nodes(&sides, section);
    return 0;
}
