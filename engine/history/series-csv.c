#include "engine/history/series-csv.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/history/filter.h"
#include "engine/table/groups.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { CAMPAIGN, EXPERIMENT, RESPONSE, UNIT, SETTING, NODE, TEXTS };
enum { VALUE, STARTED, CUT, OUTLIER, NUMBERS };
static const double STARTED_MOST = 253402300799; /* s: the end of the year 9999 */
static const char *const text_names[TEXTS] = {"campaign", "experiment", "response",
                                              "unit",     "setting",    "node"};
static const char *const number_names[NUMBERS] = {"value", "started", "cut", "outlier"};

struct csv_rows {
    struct table *table;
    const struct table_category *texts[TEXTS]; /* NULL: there is no such column */
    const double *numbers[NUMBERS];
    double *times, *values;
    int64_t *archives;
    bool *is_cut, *is_outlier;
};

static void csv_rows_clear(struct csv_rows *rows) {
    table_free(rows->table);
    free(rows->times), free(rows->values), free(rows->archives), free(rows->is_cut), free(rows->is_outlier);
}

/* Puts into LIST those of the COUNT names of which the table has a column; returns how many. */
static size_t choose_columns(const struct table *table, const char *const *names, size_t count,
                             const char **list) {
    size_t chosen = 0;
    for (size_t i = 0; i < count; i++)
        if (table_find(table, names[i]))
            list[chosen++] = names[i];
    return chosen;
}

/* Loads the files. Refused: an archive, no column `value`, times out of range. */
static int load_rows(struct csv_rows *rows, const char *const *paths, size_t count, struct failure *failure) {
    const char *texts[TEXTS], *numbers[NUMBERS];
    int r = table_open(paths, count, NULL, &rows->table, failure);
    if (r < 0)
        return r;
    struct table *table = rows->table;
    for (size_t i = 0; i < table->input_count; i++)
        if (table->inputs[i].archive)
            return failure_input(failure, table->inputs[i].path, 0, 0,
                                 "this is an archive; add it to a history with 'assay history add', "
                                 "then run 'assay history check' without a file");
    if (!table_find(table, number_names[VALUE]))
        return table_no_column(table, "number", number_names[VALUE], failure);
    struct table_selection selection = {.numbers = numbers, .categories = texts};
    selection.number_count = choose_columns(table, number_names, NUMBERS, numbers);
    selection.category_count = choose_columns(table, text_names, TEXTS, texts);
    r = table_load(table, &selection, failure);
    if (r < 0)
        return r;
    for (size_t i = 0, next = 0; i < TEXTS; i++)
        if (next < selection.category_count && texts[next] == text_names[i])
            rows->texts[i] = &table->categories[next++];
    for (size_t i = 0, next = 0; i < NUMBERS; i++)
        if (next < selection.number_count && numbers[next] == number_names[i])
            rows->numbers[i] = table->numbers[next++].values;
    rows->times = xcalloc(table->rows, sizeof *rows->times);
    rows->values = xcalloc(table->rows, sizeof *rows->values);
    rows->archives = xcalloc(table->rows, sizeof *rows->archives);
    rows->is_cut = xcalloc(table->rows, sizeof *rows->is_cut);
    rows->is_outlier = xcalloc(table->rows, sizeof *rows->is_outlier);
    for (size_t i = 0; rows->numbers[STARTED] && i < table->rows; i++)
        if (!(rows->numbers[STARTED][i] >= 0 && rows->numbers[STARTED][i] <= STARTED_MOST))
            return failure_input(failure, table->inputs[0].path, 0, 0,
                                 "row %zu has the time %.12g in the column 'started'; expected seconds "
                                 "since 1970, from 0 to %.0f (the year 9999)",
                                 i + 1, rows->numbers[STARTED][i], STARTED_MOST);
    return 0;
}

/* Refuses a name of FILTER that no row has. */
static int check_filter(const struct csv_rows *rows, const struct history_filter *filter,
                        struct failure *failure) {
    const struct table_category *const of[HISTORY_FILTERS] = {rows->texts[CAMPAIGN], rows->texts[RESPONSE],
                                                              rows->texts[NODE]};
    int r = 0;
    for (size_t i = 0; r == 0 && i < HISTORY_FILTERS; i++)
        if (filter->names[i])
            r = history_filter_check(filter, i, of[i] ? (const char *const *)of[i]->levels : NULL,
                                     of[i] ? of[i]->level_count : 0, rows->table->inputs[0].path, failure);
    return r;
}

static int compare_started(const void *left, const void *right, void *context) {
    const uint32_t *a = left, *b = right;
    const double *started = context;
    if (started && started[*a] != started[*b])
        return started[*a] < started[*b] ? -1 : 1;
    return *a < *b ? -1 : *a > *b;
}

/* Fills SERIES with the rows of ORDER that have a value, sorted by time. The cut of a row without a value
 * counts for the next row. */
static void fill_series(struct csv_rows *rows, uint32_t *order, size_t count, struct history_series *series) {
    const double *const *numbers = rows->numbers;
    const char *texts[TEXTS];
    bool is_cut = false;
    qsort_r(order, count, sizeof *order, compare_started, (void *)numbers[STARTED]);
    series->count = 0;
    for (size_t i = 0; i < count; i++) {
        size_t row = order[i], at = series->count;
        is_cut = is_cut || (numbers[CUT] && numbers[CUT][row] == 1);
        if (!isfinite(numbers[VALUE][row]))
            continue;
        rows->times[at] = numbers[STARTED] ? numbers[STARTED][row] : NAN;
        rows->values[at] = numbers[VALUE][row];
        rows->archives[at] = (int64_t)row + 1;
        rows->is_cut[at] = is_cut;
        is_cut = false;
        rows->is_outlier[at] = numbers[OUTLIER] && numbers[OUTLIER][row] == 1;
        series->count++;
    }
    for (size_t i = 0; i < TEXTS; i++)
        texts[i] = rows->texts[i] ? rows->texts[i]->levels[rows->texts[i]->codes[order[0]]] : "";
    series->campaign = texts[CAMPAIGN], series->experiment = texts[EXPERIMENT];
    series->response = texts[RESPONSE], series->unit = texts[UNIT];
    series->setting = texts[SETTING], series->node = texts[NODE];
}

int history_csv_read(const char *const *paths, size_t count, const struct history_filter *filter,
                     history_series_handler *handle, void *context, struct failure *failure) {
    cleanup(csv_rows_clear) struct csv_rows rows = {0};
    cleanup(groups_clear) struct groups groups = {0};
    int r = load_rows(&rows, paths, count, failure);
    r = r < 0 ? r : check_filter(&rows, filter, failure);
    if (r < 0)
        return r;
    size_t by[TEXTS], handled = 0;
    for (size_t i = 0; i < rows.table->category_count; i++)
        by[i] = i;
    groups_make(&groups, rows.table, by, rows.table->category_count);
    struct history_series series = {.times = rows.times,
                                    .values = rows.values,
                                    .archives = rows.archives,
                                    .is_cut = rows.is_cut,
                                    .is_outlier = rows.is_outlier};
    for (size_t g = 0; r == 0 && g < groups.count; g++) {
        fill_series(&rows, groups.rows + groups.first[g], groups.first[g + 1] - groups.first[g], &series);
        if (series.count == 0 || !history_filter_matches(filter, &series))
            continue;
        r = handle(context, &series);
        handled++;
    }
    return r == 0 && handled == 0
               ? history_filter_refuse(filter, rows.table->inputs[0].path,
                                       "no row has a number in the column 'value'", failure)
               : r;
}
