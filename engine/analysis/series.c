#include "engine/analysis/series.h"

#include "engine/analysis/sample-fold.h"
#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/natural-order.h"
#include "engine/foundation/number.h"
#include "engine/report/chart.h"

#include <math.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { TIME_COLUMNS = 4, LINK_BYTES = 32 }; /* of a file of samples: time, monotonic, late, missed */

static const double ns_per_s = 1e9;

/* A file of samples, and what is made of it. A counter is shown as its increase: per second, or from sample
 * to sample. */
struct quantity {
    const char *probe, *column; /* NULL: all columns */
    const char *title, *unit;
    double scale;
    enum { SAMPLED, RATE, INCREASE } kind;
    enum { MEAN, MOST, SUM } overview; /* what the line of a node is, over its columns */
    const char *of;                    /* the overview in words */
};

static const struct quantity quantities[] = {
    {"frequency", NULL, "Frequency", "GHz", 1e-9, SAMPLED, MEAN, "mean of a node's CPUs"},
    {"temperature", NULL, "Temperature", "\302\260C", 1, SAMPLED, MOST, "hottest sensor of a node"},
    {"energy", NULL, "Power", "W", 1e-6, RATE, SUM, "sum of a node's RAPL zones"},
    {"power", NULL, "Power", "W", 1e-6, SAMPLED, SUM, "sum of a node's sensors"},
    {"load", "foreign", "Foreign load", "CPUs", 1, SAMPLED, MOST, "busy with other programs"},
    {"throttle", NULL, "Throttling", "events", 1, INCREASE, SUM, "sum of a node's sensors"},
};
enum { QUANTITIES = sizeof quantities / sizeof *quantities };

struct sample_file {
    const char *member; /* the archive's */
    char *node;
    size_t quantity;
    uint64_t part, number, bytes;
};

/* A unit, when it began. */
struct unit_start {
    double at; /* s since the run began */
    char *node, *name;
};

/* A line of an overview. */
struct overview_line {
    size_t quantity;
    double *x, *y;
    size_t count;
    char *name;
};

struct series {
    struct archive_reader *archive;
    const struct archive_run *run;
    struct sample_file *files; /* by node, quantity, part and number */
    size_t file_count;
    uint64_t bytes_left; /* of files that were not read yet */
    size_t points_left, overview_points;
    bool is_thinned;
    struct unit_start *units;
    size_t unit_count;
    struct chart_span *phases;
    size_t phase_count;
    struct overview_line *lines;
    size_t line_count;
    char link[LINK_BYTES];
};

static void series_clear(struct series *series) {
    for (size_t i = 0; i < series->file_count; i++)
        free(series->files[i].node);
    for (size_t i = 0; i < series->unit_count; i++)
        free(series->units[i].node), free(series->units[i].name);
    for (size_t i = 0; i < series->line_count; i++)
        free(series->lines[i].x), free(series->lines[i].y), free(series->lines[i].name);
    free(series->files), free(series->units), free(series->phases), free(series->lines);
}

/* ---- Which files there are */

/* Parses "nodes/NODE/probes/KIND.csv" or "nodes/NODE/part-K/probes/KIND-N.csv". False: MEMBER is no file of
 * samples that are shown. */
static bool parse_sample_name(const char *member, struct sample_file *ret) {
    static const char before[] = ARCHIVE_NODES "/", folder[] = "/probes/", part[] = "/part-";
    if (strncmp(member, before, sizeof before - 1) != 0 || !text_ends_in(member, ".csv"))
        return false;
    const char *node = member + sizeof before - 1, *node_end = strchrnul(node, '/'),
               *probes = strstr(node_end, folder);
    *ret = (struct sample_file){.member = member, .part = 1, .number = 1};
    if (!probes || strchr(probes + sizeof folder - 1, '/'))
        return false;
    if (probes != node_end &&
        (strncmp(node_end, part, sizeof part - 1) != 0 ||
         !number_parse_uint64(node_end + sizeof part - 1, (size_t)(probes - node_end) - sizeof part + 1,
                              &ret->part)))
        return false;
    const char *kind = probes + sizeof folder - 1;
    size_t length = strcspn(kind, "-."), rest = strcspn(kind, ".");
    if (length < rest && !number_parse_uint64(kind + length + 1, rest - length - 1, &ret->number))
        return false;
    for (size_t q = 0; q < QUANTITIES; q++)
        if (strncmp(quantities[q].probe, kind, length) == 0 && !quantities[q].probe[length]) {
            ret->quantity = q;
            ret->node = xstrndup(node, (size_t)(node_end - node));
            return true;
        }
    return false;
}

/* By node, quantity, part and number, so that the files of one node and quantity are neighbours. */
static int compare_files(const void *a, const void *b) {
    const struct sample_file *one = a, *other = b;
    int order = natural_order_compare(one->node, other->node);
    return order                              ? order
           : one->quantity != other->quantity ? (one->quantity < other->quantity ? -1 : 1)
           : one->part != other->part         ? (one->part < other->part ? -1 : 1)
                                              : (one->number > other->number) - (one->number < other->number);
}

/* Finds all files of samples in the archive and sorts them. */
static int find_files(struct series *series, struct failure *failure) {
    struct archive_reader *archive = series->archive;
    int r = archive_is_folder(archive) ? archive_list(archive, failure) : 0;
    size_t count = r < 0 ? 0 : archive_member_count(archive);
    series->files = xcalloc(count + 1, sizeof *series->files);
    for (size_t i = 0; i < count; i++) {
        struct sample_file *file = &series->files[series->file_count];
        if (!parse_sample_name(archive_member_name(archive, i), file))
            continue;
        file->bytes = archive_member_size(archive, i);
        series->bytes_left += file->bytes;
        series->file_count++;
    }
    qsort(series->files, series->file_count, sizeof *series->files, compare_files);
    return r;
}

/* ---- Phases and units */

static double since_start(const struct series *series, int64_t ns) {
    return (double)(ns - series->run->started_ns) / ns_per_s;
}

/* Finds the phases that have a begin and an end, as shaded spans of the charts. */
static void find_phases(struct series *series) {
    const struct archive_phase *phases = series->run->phases.items;
    series->phases = xcalloc(series->run->phases.count + 1, sizeof *series->phases);
    for (size_t i = 0; i < series->run->phases.count; i++)
        if (phases[i].started_ns > 0 && phases[i].ended_ns > phases[i].started_ns)
            series->phases[series->phase_count++] =
                (struct chart_span){since_start(series, phases[i].started_ns),
                                    since_start(series, phases[i].ended_ns), phases[i].name};
}

static char *field_text(const struct csv_field *field) {
    return xstrndup(field->bytes, field->length);
}

/* Reads when and where units started, from results.csv, at most SERIES_UNITS_MAX. Without the columns of a
 * run nothing is marked. */
static int read_unit_rows(struct series *series, struct csv_reader *csv, struct failure *failure) {
    static const char *const names[] = {"start", "node", "core", "row", "order"};
    enum { START, NODE, CORE, ROW, ORDER, NAMES };
    size_t columns[NAMES], capacity = 0;
    const struct csv_field *fields;
    for (size_t i = 0; i < NAMES; i++)
        if (csv_find_column(csv, names[i], &columns[i], NULL) < 0)
            return 0; /* no results of a run: nothing is marked */
    int r = 0;
    while (series->unit_count < SERIES_UNITS_MAX && (r = csv_next(csv, &fields, failure)) > 0) {
        int64_t start_ns;
        cleanup_free char *start = field_text(&fields[columns[START]]),
                          *core = field_text(&fields[columns[CORE]]),
                          *row = field_text(&fields[columns[ROW]]),
                          *order = field_text(&fields[columns[ORDER]]);
        if (!clock_parse(start, &start_ns))
            continue;
        if (series->unit_count == capacity) {
            capacity = capacity ? 2 * capacity : 64;
            series->units = xrealloc(series->units, capacity * sizeof *series->units);
        }
        struct unit_start *unit = &series->units[series->unit_count++];
        unit->at = since_start(series, start_ns);
        unit->node = field_text(&fields[columns[NODE]]);
        unit->name = xformat("unit %s starts: row %s, %s/%s", order, row, unit->node, core);
    }
    return r < 0 ? r : 0;
}

/* Calls READ with a CSV reader on the member NAME. 0, without a call, if the archive does not have the
 * member. */
static int read_table(struct series *series, const char *name,
                      int (*read)(struct series *series, struct csv_reader *csv, struct failure *failure),
                      struct failure *failure) {
    cleanup(archive_member_cleanup) struct archive_member *member = NULL;
    struct csv_reader *csv = NULL;
    cleanup_free char *place = xformat("%s:%s", archive_path(series->archive), name);
    if (!archive_find(series->archive, name, NULL))
        return 0;
    int r = archive_member_open(series->archive, name, &member, failure);
    r = r < 0 ? r : csv_open_function(place, archive_member_read, member, &csv, failure);
    r = r < 0 ? r : read(series, csv, failure);
    if (member && archive_member_status(member, NULL) < 0)
        r = archive_member_status(member, failure);
    csv_close(csv);
    return r;
}

/* Adds the chart of LINES, with marks at the starts of units on NODE; NULL: on all nodes. Of too many units
 * only every k-th is marked. */
static void add_chart(const struct series *series, const struct quantity *quantity, const char *title,
                      const char *node, const struct chart_series *lines, size_t count,
                      struct report_section *in) {
    size_t of_node = 0, used = 0;
    for (size_t i = 0; i < series->unit_count; i++)
        of_node += !node || strcmp(series->units[i].node, node) == 0;
    size_t each = 1 + of_node / SERIES_EVENTS_MAX, seen = 0;
    cleanup_free struct chart_span *events = xcalloc(of_node + 1, sizeof *events);
    for (size_t i = 0; i < series->unit_count; i++) {
        const struct unit_start *unit = &series->units[i];
        if ((!node || strcmp(unit->node, node) == 0) && seen++ % each == 0)
            events[used++] = (struct chart_span){unit->at, unit->at, unit->name};
    }
    cleanup_free char *y_name = xformat("%s, %s", quantity->title, quantity->unit);
    const struct chart chart = {.title = title,
                                .x_name = "time since the run began, s",
                                .y_name = y_name,
                                .x_unit = "s",
                                .y_unit = quantity->unit,
                                .series = lines,
                                .series_count = count,
                                .spans = series->phases,
                                .span_count = series->phase_count,
                                .events = events,
                                .event_count = used,
                                .link = series->link,
                                .needs_scripts = node != NULL};
    report_chart(in, quantity->probe, &chart);
}

/* ---- Samples */

/* The last value of a counter. */
struct reading {
    double value, at;
};

/* The samples of one quantity of one node, over all its files. */
struct node_samples {
    const struct quantity *quantity;
    char **names; /* of the columns of the first file that are shown */
    size_t count;
    struct sample_fold columns, overview;
    struct reading *last; /* of each column of the file that is read */
    double *values;       /* of a sample, as shown */
    double last_time;
};

static void node_samples_clear(struct node_samples *samples) {
    for (size_t c = 0; c < samples->count; c++)
        free(samples->names[c]);
    free(samples->names), free(samples->last), free(samples->values);
    sample_fold_clear(&samples->columns);
    sample_fold_clear(&samples->overview);
}

static bool has_values(const double *y, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (isfinite(y[i]))
            return true;
    return false;
}

static bool is_shown(const struct quantity *quantity, const char *column) {
    return !quantity->column || strcmp(quantity->column, column) == 0;
}

/* Chooses the shown columns from the node's first file and sets up the folds: POINTS is the number of points
 * for all columns. */
static void begin_node(struct node_samples *samples, const struct csv_reader *csv, size_t points,
                       size_t overview_points) {
    size_t columns = csv_column_count(csv);
    samples->names = xcalloc(columns + 1, sizeof *samples->names);
    for (size_t c = TIME_COLUMNS; c < columns; c++)
        if (is_shown(samples->quantity, csv_column_name(csv, c)))
            samples->names[samples->count++] = xstrdup(csv_column_name(csv, c));
    sample_fold_init(&samples->columns, samples->count, points / (samples->count + 1));
    sample_fold_init(&samples->overview, 1, overview_points);
    samples->values = xcalloc(samples->count + 1, sizeof *samples->values);
}

/* VALUE in the unit of the chart: as it is, as a counter's increase since LAST, or as the rate of increase.
 * NAN where the counter was reset. */
static double shown_value(const struct quantity *quantity, double value, double at,
                          const struct reading *last) {
    if (quantity->kind == SAMPLED)
        return value * quantity->scale;
    double increase = value < last->value ? NAN : value - last->value; /* a counter that began anew */
    return quantity->scale * (quantity->kind == RATE ? increase / (at - last->at) : increase);
}

static double overview_of(const struct quantity *quantity, double sum, double most, size_t count) {
    return count == 0                   ? NAN
           : quantity->overview == SUM  ? sum
           : quantity->overview == MOST ? most
                                        : sum / (double)count;
}

/* How a column of a file is used. */
struct file_column {
    bool is_shown, counts; /* counts: in the line of the node */
    size_t place;          /* of the columns of the first file; SIZE_MAX: it is none of these */
};

/* For each column of the file: is it shown, does it count for the overview, and which of SAMPLES' columns is
 * it? The caller frees. The RAPL domain psys includes the packages, so it does not count. */
static struct file_column *match_columns(const struct node_samples *samples, const struct csv_reader *csv) {
    size_t columns = csv_column_count(csv);
    /* RAPL has the packages in psys, too. */
    struct file_column *found = xcalloc(columns + 1, sizeof *found);
    for (size_t c = TIME_COLUMNS, next = 0; c < columns; c++) {
        const char *name = csv_column_name(csv, c);
        size_t tried = 0;
        while (tried < samples->count && strcmp(samples->names[(next + tried) % samples->count], name) != 0)
            tried++;
        bool is_found = tried < samples->count, is_wanted = is_shown(samples->quantity, name);
        found[c] = (struct file_column){
            .is_shown = is_wanted,
            .counts = is_wanted && !(samples->quantity->overview == SUM && strcmp(name, "psys") == 0),
            .place = is_found ? (next + tried) % samples->count : SIZE_MAX};
        next = is_found ? found[c].place + 1 : next;
    }
    return found;
}

/* Adds one row of a file to the folds of the node's columns and of its overview. */
static void add_sample(struct node_samples *samples, const struct csv_reader *csv,
                       const struct csv_block *block, size_t row, double at, const struct file_column *file) {
    const struct quantity *quantity = samples->quantity;
    size_t columns = csv_column_count(csv), used = 0;
    double sum = 0, most = -INFINITY;
    for (size_t c = 0; c < samples->count; c++)
        samples->values[c] = NAN;
    for (size_t c = TIME_COLUMNS; c < columns; c++) {
        double value = block->numbers[c][row], shown = shown_value(quantity, value, at, &samples->last[c]);
        if (!isnan(value))
            samples->last[c] = (struct reading){value, at};
        if (!file[c].is_shown || !isfinite(shown))
            continue;
        if (file[c].place != SIZE_MAX)
            samples->values[file[c].place] = shown;
        if (!file[c].counts)
            continue;
        sum += shown;
        most = shown > most ? shown : most;
        used++;
    }
    samples->last_time = at;
    if (!has_values(samples->values, samples->count) && used == 0)
        return; /* nothing that is shown was read again yet */
    const double overview = overview_of(quantity, sum, most, used);
    sample_fold_add(&samples->columns, at, samples->values);
    sample_fold_add(&samples->overview, at, &overview);
}

/* Reads all samples of a file. Samples that are older than the last one are skipped. */
static int read_blocks(const struct series *series, struct csv_reader *csv, struct node_samples *samples,
                       struct failure *failure) {
    size_t columns = csv_column_count(csv);
    cleanup_free size_t *numbers = xcalloc(columns + 1, sizeof *numbers);
    cleanup_free struct file_column *file = match_columns(samples, csv);
    struct csv_columns *reading = NULL;
    struct csv_block block;
    for (size_t c = 0; c < columns; c++)
        numbers[c] = c;
    free(samples->last);
    samples->last = xcalloc(columns + 1, sizeof *samples->last);
    for (size_t c = 0; c < columns; c++)
        samples->last[c].value = NAN; /* the counters of each file are their own */
    int r = csv_columns_open(csv, numbers, columns, NULL, 0, CSV_MISSING_IS_NAN, &reading, failure);
    while (r >= 0 && (r = csv_columns_next(reading, &block, failure)) > 0)
        for (size_t row = 0; row < block.rows; row++) {
            double at = (block.numbers[0][row] - (double)series->run->started_ns) / ns_per_s;
            if (isfinite(at) && at >= samples->last_time)
                add_sample(samples, csv, &block, row, at, file);
        }
    csv_columns_close(reading);
    return r;
}

/* Reads one file of samples. The node's first file also decides the columns and their share of the points. */
static int read_file(struct series *series, const struct sample_file *file, struct node_samples *samples,
                     struct failure *failure) {
    cleanup(archive_member_cleanup) struct archive_member *member = NULL;
    struct csv_reader *csv = NULL;
    cleanup_free char *place = xformat("%s:%s", archive_path(series->archive), file->member);
    int r = archive_member_open(series->archive, file->member, &member, failure);
    r = r < 0 ? r : csv_open_function(place, archive_member_read, member, &csv, failure);
    if (r == 0 && !samples->names) {
        double share = (double)file->bytes / (double)(series->bytes_left + 1);
        begin_node(samples, csv, (size_t)((double)series->points_left * share), series->overview_points);
    }
    r = r < 0 || csv_column_count(csv) <= TIME_COLUMNS ? r : read_blocks(series, csv, samples, failure);
    if (member && archive_member_status(member, NULL) < 0)
        r = archive_member_status(member, failure);
    csv_close(csv);
    series->bytes_left -= file->bytes;
    return r;
}

/* Adds the node's line to the overview of all nodes. A node that the run found slow is named so. */
static void add_overview(struct series *series, const struct sample_file *file,
                         const struct sample_fold *fold) {
    size_t count = sample_fold_points(fold);
    struct overview_line line = {.quantity = file->quantity,
                                 .x = xcalloc(count + 1, sizeof *line.x),
                                 .y = xcalloc(count + 1, sizeof *line.y),
                                 .count = count,
                                 .name = xstrdup(file->node)};
    const struct archive_slow_node *slow = series->run->slow_nodes.items;
    for (size_t i = 0; i < series->run->slow_nodes.count; i++)
        if (strcmp(slow[i].node, file->node) == 0) {
            free(line.name);
            line.name = xformat("%s (slow)", file->node);
            break;
        }
    sample_fold_read(fold, 0, line.x, line.y);
    series->lines = xrealloc(series->lines, (series->line_count + 1) * sizeof *series->lines);
    series->lines[series->line_count++] = line;
}

/* Adds the chart of all columns of one quantity of one node; none if no column has a value. */
static void add_columns(struct series *series, const struct sample_file *file,
                        const struct node_samples *samples, struct report_section *in) {
    const struct sample_fold *fold = &samples->columns;
    size_t points = sample_fold_points(fold), used = 0;
    cleanup_free double *numbers = xcalloc(points * (samples->count + 1) + 1, sizeof *numbers);
    cleanup_free struct chart_series *lines = xcalloc(samples->count + 1, sizeof *lines);
    sample_fold_read(fold, 0, numbers, NULL);
    for (size_t c = 0; c < samples->count; c++) {
        double *y = numbers + (c + 1) * points;
        sample_fold_read(fold, c, NULL, y);
        if (has_values(y, points))
            lines[used++] = (struct chart_series){numbers, y, points, true, samples->names[c]};
    }
    size_t spent = points * (samples->count + 1);
    series->points_left -= spent < series->points_left ? spent : series->points_left;
    series->is_thinned |= fold->per_bucket > 1;
    if (used > 0)
        add_chart(series, samples->quantity, samples->quantity->title, file->node, lines, used, in);
}

/* ---- The whole */

/* Reads the files of one quantity of one node, from number I on, and adds their chart. *RET_NEXT is the
 * number after the last one. */
static int read_node_quantity(struct series *series, size_t i, struct report_section *in, size_t *ret_next,
                              struct failure *failure) {
    const struct sample_file *file = &series->files[i];
    cleanup(node_samples_clear) struct node_samples samples = {.quantity = &quantities[file->quantity],
                                                               .last_time = -INFINITY};
    int r = 0;
    for (; r == 0 && i < series->file_count && series->files[i].quantity == file->quantity &&
           strcmp(series->files[i].node, file->node) == 0;
         i++)
        r = read_file(series, &series->files[i], &samples, failure);
    *ret_next = i;
    if (r == 0 && samples.count > 0) {
        add_overview(series, file, &samples.overview);
        add_columns(series, file, &samples, in);
    }
    return r;
}

/* Adds a section with charts for each node to IN. */
static int read_nodes(struct series *series, struct report_section *in, struct failure *failure) {
    struct report_section *node = NULL;
    int r = 0;
    for (size_t i = 0; r == 0 && i < series->file_count;) {
        if (i == 0 || strcmp(series->files[i].node, series->files[i - 1].node) != 0)
            node = report_section(in, "node", series->files[i].node, true);
        r = read_node_quantity(series, i, node, &i, failure);
    }
    return r;
}

/* Adds, for each quantity, the chart with a line for each node. */
static void add_overviews(const struct series *series, struct report_section *in) {
    cleanup_free struct chart_series *lines = xcalloc(series->line_count + 1, sizeof *lines);
    for (size_t q = 0; q < QUANTITIES; q++) {
        size_t count = 0;
        for (size_t i = 0; i < series->line_count; i++) {
            const struct overview_line *line = &series->lines[i];
            if (line->quantity == q && has_values(line->y, line->count))
                lines[count++] = (struct chart_series){line->x, line->y, line->count, true, line->name};
        }
        cleanup_free char *title = xformat("%s: %s", quantities[q].title, quantities[q].of);
        if (count > 0)
            add_chart(series, &quantities[q], title, NULL, lines, count, in);
    }
}

/* Adds the charts of all samples of a run: of all nodes together, and of each. Nothing is added for a run
 * without samples. */
int series_report(struct report_section *in, struct archive_reader *archive, struct failure *failure) {
    cleanup(series_clear) struct series series = {
        .archive = archive, .run = archive_run(archive), .points_left = SERIES_POINTS_MAX};
    cleanup(report_cleanup) struct report *nodes = report_new();
    snprintf(series.link, sizeof series.link, "%.*s", LINK_BYTES - 1,
             series.run->run_id ? series.run->run_id : "");
    int r = find_files(&series, failure);
    if (r < 0 || series.file_count == 0)
        return r;
    find_phases(&series);
    series.overview_points = SERIES_OVERVIEW_MAX / series.file_count;
    r = read_table(&series, ARCHIVE_RESULTS, read_unit_rows, failure);
    r = r < 0 ? r : read_nodes(&series, nodes->root, failure);
    if (r < 0 || series.line_count == 0)
        return r;
    struct report_section *section = report_section(in, "series", "Sensors over time", false);
    add_overviews(&series, section);
    report_note(section, REPORT_NOTE,
                "Phases alternate in shade; marks at the lower edge are starts of "
                "units. %s",
                series.is_thinned ? "The samples are too many for a page: of neighbouring samples only the "
                                    "least and the greatest are shown, so that no peak is lost; the "
                                    "archive has all samples"
                                  : "Every sample is shown");
    report_section(section, "nodes", "Each node", false);
    report_move(section, nodes->root);
    return 0;
}
