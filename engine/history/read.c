/* Series, archives and the log of a history. */
#include "engine/history/store.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/history/database.h"
#include "engine/history/filter.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

/* ---- The log */

/* Parses a time in UTC, "2026-10-12" or "2026-10-12T08:30", as s since 1970. */
static int read_time(const char *text, double *ret, struct failure *failure) {
    struct tm parts = {0};
    const char *end = strptime(text, "%Y-%m-%d", &parts);
    if (end && *end == 'T') {
        end = strptime(end + 1, "%H:%M", &parts);
        if (end && *end == ':')
            end = strptime(end + 1, "%S", &parts);
    }
    end = end && *end == 'Z' ? end + 1 : end;
    if (!end || *end)
        return failure_input(failure, NULL, 0, 0,
                             "'%.64s' is not a time; expected a time in UTC such as 2026-10-12 or "
                             "2026-10-12T08:30",
                             text);
    int day = parts.tm_mday;
    *ret = (double)timegm(&parts);
    if (parts.tm_mday != day)
        return failure_input(failure, NULL, 0, 0,
                             "'%.64s' is not a day of its month; expected a date that exists", text);
    return 0;
}

/* Finds the id of the run that begins with RUN; the caller frees. Refused: no run, or several. */
static int find_run(struct history_store *store, const char *run, char **ret, struct failure *failure) {
    cleanup(database_release) sqlite3_stmt *statement = NULL;
    int r =
        database_prepare(store, &statement, failure,
                         "SELECT run FROM archive WHERE substr(run, 1, length(?1)) = ?1 LIMIT 2", "t", run);
    r = r < 0 ? r : database_step(store, statement, failure);
    if (r < 0)
        return r;
    if (r == 0 || !run[0])
        return failure_input(failure, store->path, 0, 0,
                             "no run has an id that begins with '%.64s'; 'assay history list' shows "
                             "the ids in the column 'run'",
                             run);
    cleanup_free char *found = xstrdup(database_text(statement, 0));
    r = database_step(store, statement, failure);
    if (r == 1)
        return failure_input(failure, store->path, 0, 0,
                             "several runs have ids that begin with '%.64s'; give more characters "
                             "of the id",
                             run);
    if (r < 0)
        return r;
    *ret = found;
    found = NULL;
    return 0;
}

/* Adds a line to the log: a change at a time, or a run that is wrong. FAILURE_INPUT: the time, run or nodes
 * are not valid. */
int history_store_note(struct history_store *store, const struct history_note *note,
                       struct failure *failure) {
    cleanup(host_list_clear) struct host_list nodes = {0};
    cleanup_free char *run = NULL;
    double time = NAN;
    int r = note->nodes ? host_list_parse(&nodes, note->nodes, failure) : 0;
    if (r == 0 && note->kind == HISTORY_CHANGE)
        r = read_time(note->time, &time, failure);
    if (r == 0 && note->kind == HISTORY_OUTLIER)
        r = find_run(store, note->run, &run, failure);
    if (r < 0)
        return r;
    sqlite3_stmt *statement = NULL;
    r = database_prepare(store, &statement, failure,
                         "INSERT INTO log (kind, time, run, nodes, author, reason, added)"
                         " VALUES (?, ?, ?, ?, ?, ?,"
                         " strftime('%Y-%m-%dT%H:%M:%SZ', ?, 'unixepoch'))",
                         "tdtttti", note->kind == HISTORY_CHANGE ? "change" : "outlier", time, run,
                         note->nodes, note->author, note->reason, clock_wall_ns() / 1000000000);
    return database_run(store, r, statement, failure);
}

/* ---- Tables */

/* Reports the rows of STATEMENT, which is released, as the table NAME with COLUMNS, which are texts or
 * numbers. R: what preparing the statement returned; when negative it is returned and nothing is done. */
static int report_rows(struct history_store *store, int r, sqlite3_stmt *statement, const char *name,
                       const char *title, const struct column *columns, size_t count,
                       struct report_section *in, struct failure *failure) {
    cleanup(database_release) sqlite3_stmt *released = statement;
    struct report_table *table = r < 0 ? NULL : report_table(in, name, title, columns, count);
    while (r >= 0 && (r = database_step(store, released, failure)) == 1)
        for (int i = 0; i < (int)count; i++) {
            bool is_null = sqlite3_column_type(released, i) == SQLITE_NULL;
            if (columns[i].type != COLUMN_UNKNOWN)
                report_cell_text(table, is_null ? NULL : database_text(released, i));
            else
                report_cell(table, is_null ? NAN : sqlite3_column_double(released, i));
        }
    return r;
}

int history_store_report_archives(struct history_store *store, const char *run, struct report_section *in,
                                  struct failure *failure) {
    (void)run;
    static const struct column columns[] = {
        {.name = "archive", .digits = 9, .help = "number of the run, as in 'assay history export'"},
        {.name = "started", .type = COLUMN_TIME},
        {.name = "campaign", .type = COLUMN_STRING},
        {.name = "experiment", .type = COLUMN_STRING},
        {.name = "run", .type = COLUMN_STRING},
        {.name = "values", .digits = 9, .help = "means of settings, nodes and responses"},
        {.name = "file", .type = COLUMN_STRING},
        {.name = "sha256", .type = COLUMN_STRING, .detail = true},
    };
    sqlite3_stmt *statement = NULL;
    int r =
        database_prepare(store, &statement, failure,
                         "SELECT id, strftime('%Y-%m-%dT%H:%M:%SZ', CAST(started AS INTEGER), 'unixepoch'),"
                         " campaign, experiment, run,"
                         " (SELECT count(*) FROM value WHERE archive = id), file, sha256 FROM archive"
                         " ORDER BY archive.started, id",
                         "");
    return report_rows(store, r, statement, "archives", NULL, columns, sizeof columns / sizeof *columns, in,
                       failure);
}

int history_store_report_run(struct history_store *store, const char *run, struct report_section *in,
                             struct failure *failure) {
    static const struct column facts[] = {{.name = "node", .type = COLUMN_STRING},
                                          {.name = "name", .type = COLUMN_STRING},
                                          {.name = "value", .type = COLUMN_STRING}};
    static const struct column values[] = {
        {.name = "node", .type = COLUMN_STRING},
        {.name = "setting", .type = COLUMN_STRING},
        {.name = "response", .type = COLUMN_STRING},
        {.name = "unit", .type = COLUMN_STRING},
        {.name = "rows", .digits = 9},
        {.name = "mean", .digits = 6},
        {.name = "deviation", .digits = 3, .help = "standard deviation over the rows"}};
    sqlite3_stmt *statement = NULL;
    cleanup_free char *id = NULL;
    int r = find_run(store, run, &id, failure);
    if (r < 0)
        return r;
    report_text(in, "run", NULL, id, false);
    r = database_prepare(store, &statement, failure,
                         "SELECT node, name, value FROM fact JOIN archive ON archive.id = archive"
                         " WHERE run = ? ORDER BY node, name",
                         "t", id);
    r = report_rows(store, r, statement, "facts", "", facts, 3, in, failure);
    if (r < 0)
        return r;
    r = database_prepare(store, &statement, failure,
                         "SELECT node, setting, response, unit, count, mean, deviation FROM value"
                         " JOIN archive ON archive.id = archive JOIN series ON series.id = series"
                         " WHERE run = ? ORDER BY node, setting, response",
                         "t", id);
    return report_rows(store, r, statement, "values", "", values, 7, in, failure);
}

int history_store_report_log(struct history_store *store, const char *run, struct report_section *in,
                             struct failure *failure) {
    (void)run;
    static const struct column columns[] = {
        {.name = "kind", .type = COLUMN_STRING},
        {.name = "time", .type = COLUMN_TIME},
        {.name = "run", .type = COLUMN_STRING},
        {.name = "nodes", .type = COLUMN_STRING},
        {.name = "author", .type = COLUMN_STRING},
        {.name = "reason", .type = COLUMN_STRING},
        {.name = "added", .type = COLUMN_TIME, .detail = true},
    };
    sqlite3_stmt *statement = NULL;
    int r =
        database_prepare(store, &statement, failure,
                         "SELECT kind, strftime('%Y-%m-%dT%H:%M:%SZ', CAST(time AS INTEGER), 'unixepoch'),"
                         " CASE WHEN time IS NULL THEN run END, ifnull(nodes, 'all'), author, reason, added "
                         "FROM log ORDER BY id",
                         "");
    return report_rows(store, r, statement, "log", NULL, columns, sizeof columns / sizeof *columns, in,
                       failure);
}

/* ---- Series */

/* The log in memory: of a change its time, of an outlier the archive. */
struct entry {
    double time; /* NaN: an outlier */
    int64_t archive;
    bool of_all;
    struct host_list nodes;
};

struct reading {
    struct entry *entries;
    size_t entry_count;
    double *times, *values;
    int64_t *archives;
    bool *is_cut, *is_outlier;
    size_t count, room;
};

/* Reads the log: changes with their time, and runs that are outliers. Lines on runs that the history does not
 * have are skipped. */
static int read_log(struct history_store *store, struct reading *reading, struct failure *failure) {
    cleanup(database_release) sqlite3_stmt *statement = NULL;
    int r = database_prepare(store, &statement, failure,
                             "SELECT log.time, archive.id, log.nodes FROM log LEFT JOIN archive"
                             " ON archive.run = log.run WHERE log.time NOT NULL OR archive.id NOT NULL",
                             "");
    while (r == 0 && (r = database_step(store, statement, failure)) == 1) {
        reading->entries = xrealloc(reading->entries, (reading->entry_count + 1) * sizeof *reading->entries);
        struct entry *entry = &reading->entries[reading->entry_count++];
        *entry = (struct entry){.time = NAN, .of_all = true};
        if (sqlite3_column_type(statement, 0) != SQLITE_NULL)
            entry->time = sqlite3_column_double(statement, 0);
        entry->archive = sqlite3_column_int64(statement, 1);
        entry->of_all = sqlite3_column_type(statement, 2) == SQLITE_NULL;
        r = entry->of_all ? 0 : host_list_parse(&entry->nodes, database_text(statement, 2), failure);
    }
    return r;
}

static void reading_clear(struct reading *reading) {
    for (size_t i = 0; i < reading->entry_count; i++)
        host_list_clear(&reading->entries[i].nodes);
    free(reading->entries), free(reading->times), free(reading->values), free(reading->archives);
    free(reading->is_cut), free(reading->is_outlier);
}

static bool concerns(const struct entry *entry, const char *node) {
    for (size_t i = 0; !entry->of_all && i < entry->nodes.count; i++)
        if (strcmp(entry->nodes.names[i], node) == 0)
            return true;
    return entry->of_all;
}

/* Marks, for a series of NODE, the first run after each change of the log (cut), and the runs that the log
 * calls wrong. */
static void mark_cuts_and_outliers(struct reading *reading, const char *node) {
    for (size_t i = 0; i < reading->count; i++)
        reading->is_cut[i] = reading->is_outlier[i] = false;
    for (size_t e = 0; e < reading->entry_count; e++) {
        const struct entry *entry = &reading->entries[e];
        if (!concerns(entry, node))
            continue;
        for (size_t i = 0; i < reading->count; i++)
            if (isnan(entry->time))
                reading->is_outlier[i] = reading->is_outlier[i] || reading->archives[i] == entry->archive;
            else if (i > 0 && reading->times[i - 1] < entry->time && entry->time <= reading->times[i])
                reading->is_cut[i] = true;
    }
}

/* Appends the run in the current row of STATEMENT to the series. */
static void append_value(struct reading *reading, sqlite3_stmt *statement) {
    if (reading->count == reading->room) {
        size_t room = reading->room = reading->room > 0 ? 2 * reading->room : 64;
        reading->times = xrealloc(reading->times, room * sizeof *reading->times);
        reading->values = xrealloc(reading->values, room * sizeof *reading->values);
        reading->archives = xrealloc(reading->archives, room * sizeof *reading->archives);
        reading->is_cut = xrealloc(reading->is_cut, room * sizeof *reading->is_cut);
        reading->is_outlier = xrealloc(reading->is_outlier, room * sizeof *reading->is_outlier);
    }
    reading->archives[reading->count] = sqlite3_column_int64(statement, 0);
    reading->times[reading->count] = sqlite3_column_double(statement, 1);
    reading->values[reading->count++] = sqlite3_column_double(statement, 2);
}

/* Reads the values of SERIES in order of time. */
static int read_values(struct history_store *store, struct reading *reading, int64_t series,
                       sqlite3_stmt *statement, struct failure *failure) {
    int r;
    reading->count = 0;
    sqlite3_reset(statement);
    sqlite3_bind_int64(statement, 1, series);
    while ((r = database_step(store, statement, failure)) == 1)
        append_value(reading, statement);
    return r;
}

/* Refuses a name of FILTER that no series has. */
static int check_filter(struct history_store *store, const struct history_filter *filter,
                        struct failure *failure) {
    static const char *const distinct[HISTORY_FILTERS] = {
        "SELECT DISTINCT campaign FROM series ORDER BY 1",
        "SELECT DISTINCT response FROM series ORDER BY 1",
        "SELECT DISTINCT node FROM series ORDER BY length(node), node",
    };
    int r = 0;
    for (size_t i = 0; r == 0 && i < HISTORY_FILTERS; i++) {
        cleanup(database_release) sqlite3_stmt *statement = NULL;
        char **names = NULL;
        size_t count = 0;
        if (!filter->names[i])
            continue;
        r = database_prepare(store, &statement, failure, distinct[i], "");
        for (; r == 0 && (r = database_step(store, statement, failure)) == 1; r = 0)
            xappend(&names, &count, xstrdup(database_text(statement, 0)));
        r = r < 0 ? r
                  : history_filter_check(filter, i, (const char *const *)names, count, store->path, failure);
        for (size_t k = 0; k < count; k++)
            free(names[k]);
        free(names);
    }
    return r;
}

int history_store_read(struct history_store *store, const struct history_filter *filter,
                       history_series_handler *handle, void *context, struct failure *failure) {
    cleanup(reading_clear) struct reading reading = {0};
    cleanup(database_release) sqlite3_stmt *all = NULL, *values = NULL;
    size_t handled = 0;
    int r = check_filter(store, filter, failure);
    r = r < 0 ? r : read_log(store, &reading, failure);
    r = r < 0 ? r
              : database_prepare(store, &all, failure,
                                 "SELECT id, campaign, experiment, response, unit, setting, node FROM series"
                                 " ORDER BY campaign, experiment, response, unit, setting, node",
                                 "");
    r = r < 0
            ? r
            : database_prepare(store, &values, failure,
                               "SELECT archive, started, mean FROM value JOIN archive ON archive.id = archive"
                               " WHERE series = ? ORDER BY started, archive",
                               "");
    while (r == 0 && (r = database_step(store, all, failure)) == 1) {
        struct history_series series = {.campaign = database_text(all, 1),
                                        .experiment = database_text(all, 2),
                                        .response = database_text(all, 3),
                                        .unit = database_text(all, 4),
                                        .setting = database_text(all, 5),
                                        .node = database_text(all, 6)};
        r = 0;
        if (!history_filter_matches(filter, &series))
            continue;
        r = read_values(store, &reading, sqlite3_column_int64(all, 0), values, failure);
        mark_cuts_and_outliers(&reading, series.node);
        series.count = reading.count;
        series.times = reading.times;
        series.values = reading.values;
        series.archives = reading.archives;
        series.is_cut = reading.is_cut;
        series.is_outlier = reading.is_outlier;
        if (r < 0 || series.count == 0)
            continue;
        r = handle(context, &series);
        handled++;
    }
    return r == 0 && handled == 0
               ? history_filter_refuse(filter, store->path,
                                       "the history has no values; add runs with 'assay history add "
                                       "ARCHIVE...'",
                                       failure)
               : r;
}

/* Appends which recorded facts of NODE differ between two archives. A list that is too long for RET is cut.
 */
int history_store_describe_changes(struct history_store *store, const char *node, int64_t before, int64_t now,
                                   struct text *ret, struct failure *failure) {
    cleanup(database_release) sqlite3_stmt *statement = NULL;
    int r = database_prepare(store, &statement, failure,
                             "SELECT name, max(CASE archive WHEN ?2 THEN value END) AS old,"
                             " max(CASE archive WHEN ?3 THEN value END) AS new FROM fact"
                             " WHERE node = ?1 AND archive IN (?2, ?3) GROUP BY name"
                             " HAVING old IS NOT new ORDER BY name",
                             "tii", node, before, now);
    for (size_t i = 0; r == 0 && (r = database_step(store, statement, failure)) == 1; i++) {
        const char *name = database_text(statement, 0), *comma = i > 0 ? ", " : "";
        bool had = sqlite3_column_type(statement, 1) != SQLITE_NULL;
        bool has = sqlite3_column_type(statement, 2) != SQLITE_NULL;
        const char *old = database_text(statement, 1), *new = database_text(statement, 2);
        r = had && has ? text_printf(ret, "%s%s changed from %s to %s", comma, name, old, new)
                       : text_printf(ret, "%s%s %s %s", comma, name, had ? old : new,
                                     had ? "is recorded no longer" : "is recorded for the first time");
        r = r == -EFBIG;
    }
    return r < 0 ? r : 0; /* a list that is too long is cut */
}
