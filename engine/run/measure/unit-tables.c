#include "engine/run/measure/unit-tables.h"

#include "archive-format/layout.h"
#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/campaign/tables.h"
#include "engine/run/measure/lane.h"
#include "engine/run/measure/unit-output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

struct making {
    struct node_set *set;
    const struct experiment_table *table;
    regex_t pattern;
    struct csv_reader *units; /* results.csv */
    struct text unit;         /* the fields that the rows of one unit begin with */
    struct text output;       /* of it */
    struct text rows;
    uint64_t count, empty; /* of rows; of values that were left empty */
    char first_empty[256]; /* where the first is, and why */
    clock_t began;         /* CPU time */
};

static void clear(struct making *making) {
    tre_regfree(&making->pattern);
    csv_close(making->units);
    text_clear(&making->unit);
    text_clear(&making->output);
    text_clear(&making->rows);
}

/* ---- Rows ------------------------------------------------------------------------------------------------
 */

/* Appends a value that was matched. A value that its column does not accept is left empty and counted; a
 * group that took no part in the match is just empty. */
static int append_value(struct making *making, const struct experiment_response *column, const char *bytes,
                        size_t length, const char *name, size_t number) {
    double value;
    if (column->about.type == COLUMN_STRING && unit_output_is_text(bytes, length))
        return csv_append_field(&making->rows, false, bytes, length);
    if (column->about.type == COLUMN_NUMBER && number_parse_double(bytes, length, &value))
        return csv_append_double(&making->rows, false, value);
    if (length > 0 && making->empty++ == 0)
        snprintf(making->first_empty, sizeof making->first_empty,
                 "'%.*s' of column '%.64s' in line %zu of '%.100s'", (int)(length < 40 ? length : 40), bytes,
                 column->about.name, number, name);
    return text_append_character(&making->rows, ',');
}

/* Adds a row for line NUMBER of the file NAME if the pattern matches it. -EFBIG: the table is full. */
static int match_line(struct making *making, const char *name, size_t number, const char *line,
                      size_t length) {
    regmatch_t groups[EXPERIMENT_NAMES_MAX + 1];
    const struct experiment_table *table = making->table;
    if (length > UNIT_TABLE_LINE_MAX ||
        tre_regnexec(&making->pattern, line, length, table->column_count + 1, groups, 0) != REG_OK)
        return 0;
    if (++making->count > UNIT_TABLE_ROWS_MAX)
        return -EFBIG;
    int r = text_append(&making->rows, making->unit.bytes, making->unit.length);
    for (size_t i = 0; r == 0 && i < table->column_count; i++) {
        const regmatch_t *group = &groups[i + 1];
        bool none = group->rm_so < 0;
        r = append_value(making, &table->columns[i], none ? "" : line + group->rm_so,
                         none ? 0 : (size_t)(group->rm_eo - group->rm_so), name, number);
    }
    return r < 0 ? r : text_append_character(&making->rows, '\n');
}

/* Matches all lines of a unit's output. Fails when the table is too large or the pattern takes too long. */
static int match_output(struct making *making, const char *name, struct failure *failure) {
    const char *at = making->output.bytes, *end = at + making->output.length;
    bool cut = making->output.length == LANE_OUTPUT_MAX; /* the last line may have had more behind it */
    for (size_t number = 1; at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        if ((newline || !cut) && match_line(making, name, number, at, (size_t)(stop - at)) < 0)
            return failure_set(failure, -EFBIG,
                               "it would have more than %d rows or more than %d MiB, the most accepted",
                               UNIT_TABLE_ROWS_MAX, UNIT_TABLE_BYTES_MAX >> 20);
        if ((number % 1024 == 0 || !newline) &&
            (clock() - making->began) / CLOCKS_PER_SEC > UNIT_TABLE_CPU_SECONDS_MAX)
            return failure_set(failure, -ETIMEDOUT, "its pattern has taken more than %d s of CPU time",
                               UNIT_TABLE_CPU_SECONDS_MAX);
        at = stop + 1;
    }
    return 0;
}

/* ---- Units -----------------------------------------------------------------------------------------------
 */

/* Matches the output of one unit, a line of results.csv. A unit that printed nothing has no file. */
static int match_unit(struct making *making, const struct csv_field *fields, struct failure *failure) {
    const struct node_set *set = making->set;
    bool job = set->experiment->placement == EXPERIMENT_PLACEMENT_JOB;
    struct results_row row;
    for (enum results_column i = 0; i < RESULTS_FACTORS; i++)
        if (!results_row_parse_field(i, fields[i].bytes, fields[i].length, &row))
            return csv_failure(making->units, i, failure, "this is no unit of a run");
    cleanup_free char *node = job ? xstrdup(PLACEMENT_JOB_NODE) : xstrndup(row.node.bytes, row.node.length),
                      *core = xstrndup(row.core.bytes, row.core.length),
                      *name =
                          archive_output_path((size_t)row.order, node, core, (unsigned)row.attempt, "out"),
                      *path = record_path(set->record, name);
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    text_reset(&making->output);
    text_reset(&making->unit);
    int r = file_read(path, &making->output, failure);
    for (size_t i = 0; r == 0 && i < csv_column_count(making->units); i++)
        if (tables_have(set->plan, i))
            r = csv_append_field(&making->unit, i == 0, fields[i].bytes, fields[i].length);
    return r < 0 ? r : match_output(making, name, failure);
}

/* Appends the header: the columns that say which unit it was, then the table's. */
static int append_header(struct making *making) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < csv_column_count(making->units); i++) {
        const char *name = csv_column_name(making->units, i);
        if (tables_have(making->set->plan, i))
            r = csv_append_field(&making->rows, i == 0, name, strlen(name));
    }
    for (size_t i = 0; r == 0 && i < making->table->column_count; i++)
        r = csv_append_field(&making->rows, false, making->table->columns[i].about.name,
                             strlen(making->table->columns[i].about.name));
    return r < 0 ? r : text_append_character(&making->rows, '\n');
}

/* Makes the table at PATH from the output of all units. There is no file if no line matches. */
static int make_table(struct making *making, const char *path, struct failure *failure) {
    cleanup_free char *results = record_path(making->set->record, ARCHIVE_RESULTS);
    const struct csv_field *fields;
    char reason[PATTERN_REASON_SIZE];
    if (pattern_compile(making->table->pattern, &making->pattern, reason) < 0)
        return failure_memory(failure); /* it compiled when the experiment was read */
    int r = record_make_folder(making->set->record, ARCHIVE_TABLES, failure);
    r = r < 0 ? r : csv_open(results, &making->units, failure);
    if (r < 0)
        return r;
    if (append_header(making) < 0)
        return failure_memory(failure);
    while ((r = csv_next(making->units, &fields, failure)) > 0)
        if ((r = match_unit(making, fields, failure)) < 0)
            return r;
    return r < 0 || making->count == 0
               ? r
               : file_replace(path, making->rows.bytes, making->rows.length, 0666, failure);
}

/* Makes one table. A table that cannot be made is noted and does not fail the run. */
static void make_noted_table(struct node_set *set, const struct experiment_table *table) {
    cleanup(clear) struct making making = {.set = set, .table = table, .began = clock()};
    cleanup_free char *path = record_path(set->record, table->file);
    struct failure failure = {0};
    text_init(&making.unit, CSV_ROW_MAX);
    text_init(&making.output, LANE_OUTPUT_MAX);
    text_init(&making.rows, UNIT_TABLE_BYTES_MAX);
    int r = make_table(&making, path, &failure);
    if (r < 0 || making.count == 0)
        (void)unlink(path); /* of an earlier part */
    if (r < 0)
        return record_note(set->record, "the table '%s' is left out: %s", table->name, failure.text);
    if (making.count == 0)
        record_log(set->record,
                   "the table '%s' has no rows and is left out: its pattern, '%s', matches no line of any "
                   "unit's output",
                   table->name, table->pattern);
    if (making.empty > 0)
        record_note(set->record,
                    "%" PRIu64 " values of the table '%s' are not what their columns say and are left empty, "
                    "such as %s",
                    making.empty, table->name, making.first_empty);
}

void unit_tables_write(struct node_set *set) {
    for (size_t i = 0; set->record->units->done > 0 && i < set->experiment->table_count; i++)
        make_noted_table(set, &set->experiment->tables[i]);
}
