/* The tables of a prediction's archive as pictures of a page. */
#include "engine/predict/prediction-archive.h"

#include "archive-format/datapackage.h"
#include "engine/documents/column.h"
#include "engine/documents/csv.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/predict/bars.h"
#include "engine/predict/gantt.h"
#include "engine/report/chart.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    ROWS_MAX = 100000,
    SCENARIOS_MAX = 64,
    GANTTS_MAX = 4,
    DIGITS = 5,
    CURVE_ROWS_LEAST = 3,
    FIRST = 1 /* column behind the scenario */
};

/* A table, column by column; of columns of texts, `texts`. */
struct drawn_table {
    struct archive_columns columns;
    double **numbers;
    char ***texts;
    size_t rows;
    bool is_cut; /* it has more than ROWS_MAX */
};

static bool is_text(const struct drawn_table *table, size_t c) {
    return !table->columns.items[c].unit || table->columns.items[c].type == COLUMN_STRING;
}

static void drawn_table_clear(struct drawn_table *table) {
    for (size_t c = 0; table->numbers && c < table->columns.count; c++) {
        for (size_t i = 0; i < table->rows; i++)
            free(table->texts[c][i]);
        free(table->numbers[c]), free(table->texts[c]);
    }
    free(table->numbers), free(table->texts);
    archive_columns_clear(&table->columns);
}

/* Reads at most ROWS_MAX rows, each field as a text and a number (NaN: none). */
static int read_rows(struct csv_reader *csv, struct drawn_table *table, struct failure *failure) {
    size_t count = table->columns.count;
    const struct csv_field *fields;
    table->numbers = xcalloc(count + 1, sizeof *table->numbers);
    table->texts = xcalloc(count + 1, sizeof *table->texts);
    for (size_t c = 0; c < count; c++) {
        table->numbers[c] = xcalloc(ROWS_MAX, sizeof **table->numbers);
        table->texts[c] = xcalloc(ROWS_MAX, sizeof **table->texts);
    }
    int r;
    while ((r = csv_next(csv, &fields, failure)) > 0) {
        table->is_cut = table->rows == ROWS_MAX;
        if (table->is_cut)
            return 0;
        for (size_t c = 0; c < count; c++) {
            double number;
            char *text = xstrndup(fields[c].bytes, fields[c].length);
            table->texts[c][table->rows] = text;
            table->numbers[c][table->rows] = number_parse_double(text, strlen(text), &number) ? number : NAN;
        }
        table->rows++;
    }
    return r;
}

/* Reads a table of an archive. Negative with FAILURE: it is damaged. */
static int read_table(struct archive_reader *archive, const char *name, struct drawn_table *table,
                      struct failure *failure) {
    cleanup(archive_member_cleanup) struct archive_member *member = NULL;
    struct csv_reader *csv = NULL;
    cleanup_free char *place = xformat("%s:%s", archive_path(archive), name);
    int r = archive_table_columns(archive, name, &table->columns, failure);
    r = r < 0 ? r : archive_member_open(archive, name, &member, failure);
    r = r < 0 ? r : csv_open_function(place, archive_member_read, member, &csv, failure);
    if (r == 0 && csv_column_count(csv) != table->columns.count)
        r = failure_set(failure, -EBADMSG,
                        "%s: the number of columns differs from that in datapackage.json; "
                        "verify the archive with 'assay archive verify'",
                        place);
    r = r < 0 ? r : read_rows(csv, table, failure);
    if (member && archive_member_status(member, NULL) < 0)
        r = archive_member_status(member, failure);
    csv_close(csv);
    return r;
}

/* The row after the last row of the scenario that begins in row FIRST; rows of a scenario follow one
 * another. */
static size_t scenario_end(const struct drawn_table *table, size_t first) {
    size_t end = first + 1;
    while (end < table->rows && table->numbers[0][end] == table->numbers[0][first])
        end++;
    return end;
}

/* Whether the columns are those of PREDICT_INTERVALS: lane, from, to, word. */
static bool is_intervals(const struct drawn_table *table) {
    return table->columns.count == FIRST + 4 && is_text(table, FIRST) && !is_text(table, FIRST + 1) &&
           !is_text(table, FIRST + 2) && is_text(table, FIRST + 3);
}

/* Whether the columns are those of PREDICT_BARS: a name, a share, and more numbers. */
static bool are_bars(const struct drawn_table *table) {
    const struct archive_columns *columns = &table->columns;
    return columns->count > FIRST + 1 && is_text(table, FIRST) && !is_text(table, FIRST + 1) &&
           strcmp(columns->items[FIRST + 1].unit, "%") == 0;
}

/* Whether all columns are numbers, and the first increases within a scenario of at least CURVE_ROWS_LEAST
 * rows. */
static bool is_curve(const struct drawn_table *table) {
    for (size_t c = FIRST; c < table->columns.count; c++)
        if (is_text(table, c))
            return false;
    for (size_t i = 1; i < table->rows; i++)
        if (table->numbers[0][i] == table->numbers[0][i - 1] &&
            !(table->numbers[FIRST][i] > table->numbers[FIRST][i - 1]))
            return false;
    return table->columns.count > FIRST + 1 && table->rows > 0 && scenario_end(table, 0) >= CURVE_ROWS_LEAST;
}

/* The rows FIRST to END - 1 as rows of a prediction. ITEMS, VALUES and TEXTS are their memory, which the
 * caller frees. */
static struct prediction_rows rows_of(const struct drawn_table *table, size_t first, size_t end,
                                      struct prediction_row **items, double **values, char ***texts) {
    size_t count = table->columns.count - FIRST;
    *items = xcalloc(end - first, sizeof **items);
    *values = xcalloc(count * (end - first), sizeof **values);
    *texts = xcalloc(count * (end - first), sizeof **texts);
    for (size_t i = 0; i < end - first; i++) {
        (*items)[i] = (struct prediction_row){.values = *values + count * i, .texts = *texts + count * i};
        for (size_t c = 0; c < count; c++) {
            (*items)[i].values[c] = table->numbers[FIRST + c][first + i];
            (*items)[i].texts[c] = table->texts[FIRST + c][first + i];
        }
    }
    return (struct prediction_rows){*items, end - first};
}

/* Draws intervals or bars of the first GANTTS_MAX scenarios. */
static int draw_rows(const struct drawn_table *table, const char *name, bool is_bars,
                     struct report_section *in, struct failure *failure) {
    size_t drawn = 0;
    for (size_t first = 0, end; first < table->rows && drawn < GANTTS_MAX; first = end, drawn++) {
        end = scenario_end(table, first);
        cleanup_free struct prediction_row *items = NULL;
        cleanup_free double *values = NULL;
        cleanup_free char **texts = NULL;
        const struct prediction_rows rows = rows_of(table, first, end, &items, &values, &texts);
        cleanup(text_clear) struct text svg;
        text_init(&svg, SIZE_MAX / 4);
        cleanup_free char *title = xformat("%s of scenario %.0f", name, table->numbers[0][first]);
        if (is_bars)
            bars_append_svg(&rows, table->columns.items + FIRST, title, &svg);
        int r = is_bars ? 0 : gantt_append_svg(&rows, title, &svg, failure);
        if (r < 0)
            return r;
        report_picture(in, title, svg.bytes);
    }
    return 0;
}

/* Draws each column over the first one, with a line per scenario. */
static void draw_curves(const struct drawn_table *table, const char *name, struct report_section *in) {
    cleanup_free struct chart_series *series = xcalloc(SCENARIOS_MAX, sizeof *series);
    struct column x = table->columns.items[FIRST];
    x.label = NULL;
    cleanup_free char *x_name = column_heading(&x);
    char names[SCENARIOS_MAX][32];
    for (size_t c = FIRST + 1; c < table->columns.count; c++) {
        struct column y = table->columns.items[c];
        y.label = NULL;
        cleanup_free char *y_name = column_heading(&y), *title = xformat("%s: %s", name, y.name);
        size_t count = 0;
        for (size_t first = 0, end; first < table->rows && count < SCENARIOS_MAX; first = end, count++) {
            end = scenario_end(table, first);
            snprintf(names[count], sizeof names[count], "scenario %.0f", table->numbers[0][first]);
            series[count] = (struct chart_series){table->numbers[FIRST] + first, table->numbers[c] + first,
                                                  end - first, true, names[count]};
        }
        const struct chart chart = {.title = title,
                                    .x_name = x_name,
                                    .y_name = y_name,
                                    .x_unit = unit_label(x.unit),
                                    .y_unit = unit_label(y.unit),
                                    .series = series,
                                    .series_count = count};
        report_chart(in, y.name, &chart);
    }
}

/* Adds all rows as a table. */
static void list_rows(const struct drawn_table *table, struct report_section *in) {
    size_t count = table->columns.count;
    cleanup_free struct column *columns = xcalloc(count, sizeof *columns);
    for (size_t c = 0; c < count; c++) {
        columns[c] = table->columns.items[c];
        columns[c].label = NULL;
        columns[c].digits = c < FIRST ? 0 : DIGITS;
    }
    struct report_table *into = report_table(in, "rows", NULL, columns, count);
    for (size_t i = 0; i < table->rows * count; i++)
        if (is_text(table, i % count) && i % count > 0)
            report_cell_text(into, table->texts[i % count][i / count]);
        else
            report_cell(into, table->numbers[i % count][i / count]);
}

/* Adds a table of the archive as a picture, a list of rows, or both. */
static int draw_table(struct archive_reader *archive, const char *member, struct report_section *in,
                      struct failure *failure) {
    cleanup(drawn_table_clear) struct drawn_table table = {0};
    const char *base = member + sizeof ARCHIVE_TABLES;
    cleanup_free char *name = xstrndup(base, strcspn(base, "."));
    int r = read_table(archive, member, &table, failure);
    if (r < 0 || table.columns.count <= FIRST)
        return r;
    struct report_section *section = report_section(in, "picture", name, false);
    if (is_intervals(&table) || are_bars(&table))
        r = draw_rows(&table, name, are_bars(&table), section, failure);
    else if (is_curve(&table))
        draw_curves(&table, name, section);
    if (!is_intervals(&table) && !is_curve(&table))
        list_rows(&table, section);
    if (table.is_cut)
        report_note(section, REPORT_NOTE, "only the first %d rows are shown; the archive has all rows",
                    ROWS_MAX);
    return r;
}

/* Adds pictures of all tables of a prediction's archive. */
int prediction_archive_charts(struct archive_reader *archive, struct report_section *in,
                              struct failure *failure) {
    int r = archive_is_folder(archive) ? archive_list(archive, failure) : 0;
    size_t count = r < 0 ? 0 : archive_member_count(archive);
    for (size_t i = 0; r == 0 && i < count; i++) {
        const char *member = archive_member_name(archive, i);
        if (strncmp(member, ARCHIVE_TABLES "/", sizeof ARCHIVE_TABLES) == 0 && text_ends_in(member, ".csv"))
            r = draw_table(archive, member, in, failure);
    }
    return r;
}
