#include "engine/analysis/plots.h"

#include "engine/documents/column.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/numerics/quantile.h"
#include "engine/report/chart.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { PAIRS_MAX = 3, NODE_LINES_MAX = 24 };

/* The data that all charts are made from. */
struct plots {
    const struct measurements *m;
    const double *order; /* of each row */
    double *relative;    /* of each row, %; NaN: not known */
    bool has_relative;   /* a setting was measured at least twice */
    char *response;      /* with its unit */
    const char *unit;    /* as people write it */
    const struct table_category *nodes;
};

static void plots_clear(struct plots *plots) {
    free(plots->relative), free(plots->response);
}

/* Sets each row's difference to the mean of its setting, in %, negative where it is worse. NAN: left out, or
 * the setting was measured once. */
static void find_relative(struct plots *plots) {
    const struct measurements *m = plots->m;
    plots->relative = xcalloc(m->row_count + 1, sizeof *plots->relative);
    for (size_t s = 0; s < m->settings.count; s++) {
        size_t first = m->settings.first[s], end = m->settings.first[s + 1], count = 0;
        double sum = 0;
        for (size_t i = first; i < end; i++) {
            uint32_t row = m->settings.rows[i];
            sum += m->left_out[row] ? 0 : m->values[row];
            count += !m->left_out[row];
        }
        double mean = sum / (double)count;
        plots->has_relative |= count > 1;
        for (size_t i = first; i < end; i++) {
            uint32_t row = m->settings.rows[i];
            double off = 100 * (m->values[row] - mean) / fabs(mean);
            plots->relative[row] = m->left_out[row] || count < 2 ? NAN : m->most ? off : -off;
        }
    }
}

/* A chart's axis over something that has a name and a unit. */
static char *axis_name(const char *name, const char *unit) {
    const char *label = unit_label(unit);
    return label[0] ? xformat("%s, %s", name, label) : xstrdup(name);
}

/* ---- By factor */

/* The levels of a factor as places on an axis: numbers, if all are, else 0, 1, 2, ... */
struct level_axis {
    const struct table_category *category;
    double *places;
    bool is_numeric;
};

/* The places of factor F's levels on an axis: their values if all are numbers, else 0, 1, 2, ... The caller
 * frees `places`. */
static struct level_axis level_axis_of(const struct plots *plots, size_t f) {
    const struct table_category *category = &plots->m->table->categories[f];
    struct level_axis axis = {.category = category,
                              .places = xcalloc(category->level_count + 1, sizeof *axis.places),
                              .is_numeric = plots->m->factors[f].column->type != COLUMN_STRING};
    for (size_t l = 0; axis.is_numeric && l < category->level_count; l++)
        axis.is_numeric =
            number_parse_double(category->levels[l], strlen(category->levels[l]), &axis.places[l]) &&
            isfinite(axis.places[l]);
    for (size_t l = 0; !axis.is_numeric && l < category->level_count; l++)
        axis.places[l] = (double)l;
    return axis;
}

static void set_axis(struct chart *chart, const struct level_axis *axis) {
    chart->x_labels = axis->is_numeric ? NULL : (const char *const *)axis->category->levels;
    chart->x_label_count = axis->is_numeric ? 0 : axis->category->level_count;
}

/* Adds a chart of VALUES, one for each row (NAN: none), over the levels of AXIS: all points, or, if they are
 * too many, the extremes of each level; and the mean of each level. */
static void add_level_chart(const struct plots *plots, const char *name, const struct level_axis *axis,
                            const double *values, struct chart *chart, struct report_section *in) {
    const struct table_category *category = axis->category;
    size_t rows = plots->m->row_count, levels = category->level_count, used = 0, lines = 0;
    cleanup_free double *numbers = xcalloc(2 * rows + 4 * levels + 1, sizeof *numbers);
    cleanup_free size_t *counts = xcalloc(levels + 1, sizeof *counts);
    double *x = numbers, *y = x + rows, *place = y + rows, *mean = place + levels, *least = mean + levels,
           *most = least + levels;
    for (size_t row = 0; row < rows; row++) {
        size_t level = category->codes[row];
        double value = plots->m->left_out[row] ? NAN : values[row];
        if (isnan(value))
            continue;
        x[used] = axis->places[level], y[used++] = value;
        mean[level] += value;
        least[level] = counts[level] == 0 || value < least[level] ? value : least[level];
        most[level] = counts[level] == 0 || value > most[level] ? value : most[level];
        counts[level]++;
    }
    for (size_t l = 0; l < levels; l++) { /* in the natural order of levels, which is that of numbers */
        place[l] = counts[l] ? axis->places[l] : NAN;
        mean[l] = counts[l] ? mean[l] / (double)counts[l] : NAN;
        if (!counts[l])
            least[l] = most[l] = NAN;
    }
    struct chart_series series[3];
    if (used <= PLOTS_POINTS_MAX) {
        series[lines++] = (struct chart_series){x, y, used, false, "measurement"};
    } else {
        series[lines++] = (struct chart_series){place, least, levels, true, "least"};
        series[lines++] = (struct chart_series){place, most, levels, true, "most"};
    }
    series[lines++] = (struct chart_series){place, mean, levels, axis->is_numeric, "mean"};
    chart->series = series;
    chart->series_count = lines;
    set_axis(chart, axis);
    report_chart(in, name, chart);
}

/* Adds a chart of the response over each factor that varies. */
static void report_factors(const struct plots *plots, struct report_section *in) {
    const struct measurements *m = plots->m;
    size_t varying = 0;
    for (size_t f = 0; f < m->factor_count; f++)
        varying += m->factors[f].varies;
    if (varying == 0)
        return;
    struct report_section *section = report_section(in, "by_factor", "Response by factor", false);
    for (size_t f = 0; f < m->factor_count; f++) {
        const struct column *column = m->factors[f].column;
        if (!m->factors[f].varies)
            continue;
        struct level_axis axis = level_axis_of(plots, f);
        cleanup_free char *title = xformat("%s by %s", m->response, column->name),
                          *x_name = axis_name(column->name, column->unit);
        struct chart chart = {.title = title,
                              .x_name = x_name,
                              .y_name = plots->response,
                              .x_unit = unit_label(column->unit),
                              .y_unit = plots->unit};
        add_level_chart(plots, column->name, &axis, m->values, &chart, section);
        free(axis.places);
    }
}

/* ---- Coverage */

/* *RET_NAMES is "1 (12), 2 (12)": the levels of factor F with the number of measurements; the caller frees.
 */
static void count_levels(const struct plots *plots, size_t f, char **ret_names) {
    const struct table_category *category = &plots->m->table->categories[f];
    cleanup_free size_t *counts = xcalloc(category->level_count + 1, sizeof *counts);
    cleanup(text_clear) struct text names;
    text_init(&names, FAILURE_TEXT_SIZE);
    for (size_t row = 0; row < plots->m->row_count; row++)
        counts[category->codes[row]] += !plots->m->left_out[row];
    for (size_t l = 0; l < category->level_count; l++) /* too long a list is cut */
        (void)text_printf(&names, "%s%s (%zu)", names.length ? ", " : "", category->levels[l], counts[l]);
    *ret_names = text_take(&names);
}

/* Adds a chart of the measured settings for each pair of factors that vary, at most PAIRS_MAX. */
static void report_pairs(const struct plots *plots, struct report_section *section) {
    const struct measurements *m = plots->m;
    size_t pairs = 0, settings = m->settings.count;
    cleanup_free double *numbers = xcalloc(2 * settings + 1, sizeof *numbers);
    for (size_t a = 0; a < m->factor_count; a++)
        for (size_t b = a + 1; b < m->factor_count; b++) {
            if (!m->factors[a].varies || !m->factors[b].varies || pairs == PAIRS_MAX)
                continue;
            struct level_axis one = level_axis_of(plots, a), other = level_axis_of(plots, b);
            for (size_t s = 0; s < settings; s++) {
                numbers[s] = one.places[m->settings.labels[s * m->settings.label_count + a]];
                numbers[settings + s] = other.places[m->settings.labels[s * m->settings.label_count + b]];
            }
            const struct column *x = m->factors[a].column, *y = m->factors[b].column;
            cleanup_free char *title = xformat("settings measured: %s and %s", x->name, y->name),
                              *x_name = axis_name(x->name, x->unit), *y_name = axis_name(y->name, y->unit);
            const struct chart_series points = {numbers, numbers + settings, settings, false, NULL};
            struct chart chart = {.title = title,
                                  .x_name = x_name,
                                  .y_name = y_name,
                                  .x_unit = unit_label(x->unit),
                                  .y_unit = unit_label(y->unit),
                                  .series = &points,
                                  .series_count = 1};
            set_axis(&chart, &one);
            if (other.is_numeric && settings <= PLOTS_POINTS_MAX)
                report_chart(section, "pair", &chart), pairs++;
            free(one.places), free(other.places);
        }
}

/* Adds which levels were measured how often, and of how many combinations. */
static void report_coverage(const struct plots *plots, struct report_section *in) {
    static const struct column columns[] = {{.name = "factor"},
                                            {.name = "levels", .digits = 9},
                                            {.name = "measured", .label = "levels (measurements used)"}};
    const struct measurements *m = plots->m;
    struct report_section *section = report_section(in, "coverage", "Design coverage", false);
    size_t least = SIZE_MAX, most = 0;
    double combinations = 1;
    for (size_t s = 0; s < m->settings.count; s++) {
        size_t used = 0;
        for (size_t i = m->settings.first[s]; i < m->settings.first[s + 1]; i++)
            used += !m->left_out[m->settings.rows[i]];
        least = used < least ? used : least;
        most = used > most ? used : most;
    }
    struct report_table *table =
        report_table(section, "levels", NULL, columns, sizeof columns / sizeof *columns);
    for (size_t f = 0; f < m->factor_count; f++) {
        char *names;
        size_t levels = m->table->categories[f].level_count;
        count_levels(plots, f, &names);
        combinations *= m->factors[f].varies ? (double)levels : 1;
        report_cell_text(table, m->factors[f].column->name);
        report_cell(table, (double)levels);
        report_cell_text(table, names);
        free(names);
    }
    report_note(section, REPORT_LINE,
                "%zu settings were measured, of %.9g combinations of these levels; "
                "each was measured %zu to %zu times, not counting flagged rows. Units "
                "failed: %llu, not measured: %llu",
                m->settings.count, combinations, m->settings.count ? least : 0, most,
                (unsigned long long)m->failed, (unsigned long long)m->missing);
    report_pairs(plots, section);
}

/* ---- Order */

/* Adds a chart of VALUES over the order of measurement: a series for each node if they are few, and one for
 * flagged rows. LIKE has the chart's titles. */
static void add_order_chart(const struct plots *plots, const char *name, const double *values,
                            const struct chart *like, bool with_flagged, struct report_section *in) {
    const struct measurements *m = plots->m;
    size_t rows = m->row_count, nodes = plots->nodes->level_count,
           kinds = nodes <= NODE_LINES_MAX ? nodes : 1;
    size_t total = 0, each = 1 + rows / PLOTS_POINTS_MAX, seen = 0;
    cleanup_free double *numbers = xcalloc(2 * rows + 1, sizeof *numbers);
    cleanup_free struct chart_series *series = xcalloc(kinds + 1, sizeof *series);
    struct chart chart = *like;
    for (size_t k = 0; k < kinds + with_flagged; k++) {
        size_t first = total;
        for (size_t row = 0; row < rows; row++) {
            bool is_flagged = m->left_out[row], is_own = kinds == 1 || m->nodes[row] == k;
            if (!isfinite(values[row]) || is_flagged != (k == kinds) || (!is_flagged && !is_own) ||
                seen++ % each != 0)
                continue;
            numbers[total] = plots->order[row], numbers[rows + total++] = values[row];
        }
        if (total > first)
            series[chart.series_count++] =
                (struct chart_series){numbers + first, numbers + rows + first, total - first, false,
                                      k == kinds   ? "flagged"
                                      : kinds == 1 ? "measurement"
                                                   : plots->nodes->levels[k]};
    }
    chart.series = series;
    report_chart(in, name, &chart);
    if (each > 1)
        report_note(in, REPORT_NOTE, "only every %zu-th measurement is drawn", each);
}

/* Adds the charts of the response, and of its difference to the setting's mean, over the order of
 * measurement. */
static void report_order(const struct plots *plots, struct report_section *in) {
    static const double zero = 0;
    struct report_section *section = report_section(in, "order", "Order of measurement", false);
    const struct chart response = {.title = "the response, in the order in which it was measured",
                                   .x_name = "order of measurement",
                                   .y_name = plots->response,
                                   .y_unit = plots->unit,
                                   .link = "order"};
    const struct chart relative = {.title =
                                       "the response relative to the mean of its setting; below 0 is worse",
                                   .x_name = "order of measurement",
                                   .y_name = "difference to the setting's mean, %",
                                   .y_unit = "%",
                                   .y_marks = &zero,
                                   .y_mark_count = 1,
                                   .link = "order"};
    add_order_chart(plots, "response", plots->m->values, &response, true, section);
    if (plots->has_relative)
        add_order_chart(plots, "relative", plots->relative, &relative, false, section);
    else
        report_note(section, REPORT_NOTE,
                    "no setting was measured twice, so that effects of the order and of "
                    "the settings cannot be separated; set 'repetitions' in the design");
}

/* ---- Nodes */

struct node_mean {
    size_t node, count;
    double mean, deviation; /* %; of `relative` */
};

static int compare_means(const void *a, const void *b) {
    double one = ((const struct node_mean *)a)->mean, other = ((const struct node_mean *)b)->mean;
    return isnan(one) || isnan(other) ? isnan(one) - isnan(other) : (one > other) - (one < other);
}

/* Why NODE was found slow in one of the runs; "": it was not. */
static const char *slow_sentence(const struct archive_run *const *runs, size_t run_count, const char *node) {
    for (size_t i = 0; i < run_count; i++) {
        const struct archive_slow_node *slow = runs[i]->slow_nodes.items;
        for (size_t k = 0; k < runs[i]->slow_nodes.count; k++)
            if (strcmp(slow[k].node, node) == 0)
                return slow[k].sentence;
    }
    return "";
}

/* The mean and deviation of the relative response of each node; the caller frees. */
static struct node_mean *find_means(const struct plots *plots) {
    const struct measurements *m = plots->m;
    size_t nodes = plots->nodes->level_count;
    struct node_mean *means = xcalloc(nodes + 1, sizeof *means);
    for (size_t row = 0; row < m->row_count; row++)
        if (!isnan(plots->relative[row])) {
            means[m->nodes[row]].mean += plots->relative[row];
            means[m->nodes[row]].count++;
        }
    for (size_t n = 0; n < nodes; n++)
        means[n].mean /= (double)means[n].count; /* NaN: it has none */
    for (size_t row = 0; row < m->row_count; row++)
        if (!isnan(plots->relative[row]))
            means[m->nodes[row]].deviation += pow(plots->relative[row] - means[m->nodes[row]].mean, 2);
    for (size_t n = 0; n < nodes; n++) {
        means[n].node = n;
        means[n].deviation =
            means[n].count > 1 ? sqrt(means[n].deviation / (double)(means[n].count - 1)) : NAN;
    }
    return means;
}

/* Adds a table and a chart that compare the nodes, worst first; nothing with fewer than two. */
static void report_nodes(const struct plots *plots, const struct archive_run *const *runs, size_t run_count,
                         struct report_section *in) {
    static const struct column columns[] = {
        {.name = "node"},
        {.name = "measurements", .digits = 9},
        {.name = "difference", .label = "to the median node", .unit = "%", .digits = 3},
        {.name = "deviation", .label = "standard deviation", .unit = "%", .digits = 3},
        {.name = "remark", .label = ""}};
    static const double zero = 0;
    size_t nodes = plots->nodes->level_count, known = 0;
    cleanup_free double *sorted = xcalloc(nodes + 1, sizeof *sorted);
    cleanup_free struct node_mean *means = find_means(plots);
    for (size_t n = 0; n < nodes; n++)
        if (means[n].count > 0)
            sorted[known++] = means[n].mean;
    if (known < 2)
        return;
    struct report_section *section = report_section(in, "nodes", "Nodes", false);
    double median = quantile_median(sorted, known);
    qsort(means, nodes, sizeof *means, compare_means);
    struct report_table *table =
        report_table(section, "nodes", "worst first", columns, sizeof columns / sizeof *columns);
    for (size_t n = 0; n < nodes; n++) {
        const char *name = plots->nodes->levels[means[n].node];
        report_cell_text(table, name);
        report_cell(table, (double)means[n].count);
        report_cell(table, means[n].mean - median);
        report_cell(table, means[n].deviation);
        report_cell_text(table, slow_sentence(runs, run_count, name));
    }
    struct level_axis axis = {.category = plots->nodes, .places = xcalloc(nodes + 1, sizeof *axis.places)};
    for (size_t n = 0; n < nodes; n++)
        axis.places[n] = (double)n;
    struct chart chart = {.title = "each node, relative to the mean of the same settings; below 0 is worse",
                          .x_name = "node",
                          .y_name = "difference to the setting's mean, %",
                          .y_unit = "%",
                          .y_marks = &zero,
                          .y_mark_count = 1};
    add_level_chart(plots, "by_node", &axis, plots->relative, &chart, section);
    free(axis.places);
}

void plots_report(struct report_section *in, const struct measurements *measurements,
                  const struct archive_run *const *runs, size_t run_count) {
    const struct table *table = measurements->table;
    cleanup(plots_clear) struct plots plots = {.m = measurements,
                                               .order = table->numbers[1].values,
                                               .response =
                                                   axis_name(measurements->response, measurements->unit),
                                               .unit = unit_label(measurements->unit),
                                               .nodes = &table->categories[measurements->factor_count]};
    if (measurements->row_count == 0)
        return;
    find_relative(&plots);
    report_factors(&plots, in);
    report_coverage(&plots, in);
    report_order(&plots, in);
    report_nodes(&plots, runs, run_count, in);
}
