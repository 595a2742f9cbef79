#include "engine/run/measure/unit-tables.h"

#include "engine/documents/csv.h"
#include "engine/foundation/append-file.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"
#include "engine/run/measure/lane.h"
#include "engine/run/measure/unit-output.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PENDING_MOST = 1 << 20 }; /* bytes that wait in memory */

struct writing {
    struct run *run;
    const struct experiment_table *table;
    regex_t pattern;
    struct append_file *file;
    struct csv_reader *units; /* results.csv */
    struct text unit;         /* the fields that the rows of one unit begin with */
    struct text output;       /* of it */
    uint64_t rows, empty;     /* values that were left empty */
    char first_empty[256];    /* where the first is, and why */
    clock_t began;            /* CPU time */
};

static void clear(struct writing *writing) {
    tre_regfree(&writing->pattern);
    append_file_close(writing->file);
    csv_close(writing->units);
    text_clear(&writing->unit);
    text_clear(&writing->output);
}

/* The columns of results.csv before the factors, and those of them that every row begins with. */
enum { ROW, REPETITION, ORDER, BLOCK, ATTEMPT, NODE, CORE, START, START_MONOTONIC, FACTORS };

bool unit_tables_has(const struct run *run, size_t column) {
    return column < FACTORS + run->plan->design->column_count && column != BLOCK && column != START &&
           column != START_MONOTONIC;
}

/* ---- Rows ------------------------------------------------------------------------------------------------
 */

static void note_empty(struct writing *writing, const char *name, size_t line, const char *column,
                       const char *bytes, size_t length) {
    if (writing->empty++ == 0)
        snprintf(writing->first_empty, sizeof writing->first_empty,
                 "'%.*s' of column '%.64s' in line %zu of '%.100s'", (int)(length < 40 ? length : 40), bytes,
                 column, line, name);
}

/* A group that took no part in the match leaves its value empty, which is no surprise. */
static int append_row(struct writing *writing, const char *name, size_t number, const char *line,
                      const regmatch_t *groups) {
    struct text *text = &writing->file->pending;
    int r = text_append(text, writing->unit.bytes, writing->unit.length);
    for (size_t i = 0; r == 0 && i < writing->table->column_count; i++) {
        const struct experiment_response *column = &writing->table->columns[i];
        const regmatch_t *group = &groups[i + 1];
        const char *bytes = group->rm_so < 0 ? "" : line + group->rm_so;
        size_t length = group->rm_so < 0 ? 0 : (size_t)(group->rm_eo - group->rm_so);
        double value;
        if (column->type == EXPERIMENT_RESPONSE_TEXT && unit_output_is_text(bytes, length)) {
            r = csv_append_field(text, false, bytes, length);
        } else if (column->type == EXPERIMENT_RESPONSE_NUMBER && number_parse_double(bytes, length, &value)) {
            r = csv_append_double(text, false, value);
        } else {
            if (length > 0)
                note_empty(writing, name, number, column->name, bytes, length);
            r = text_append_character(text, ',');
        }
    }
    return r < 0 ? r : text_append_character(text, '\n');
}

static int check_limits(const struct writing *writing, struct failure *failure) {
    if (writing->rows > UNIT_TABLE_ROWS_MOST)
        return failure_set(failure, -EFBIG, "it would have more than %d rows", UNIT_TABLE_ROWS_MOST);
    if (writing->file->committed + writing->file->pending.length > UNIT_TABLE_BYTES_MOST)
        return failure_set(failure, -EFBIG, "it would have more than %d MiB", UNIT_TABLE_BYTES_MOST >> 20);
    if ((clock() - writing->began) / CLOCKS_PER_SEC > UNIT_TABLE_CPU_SECONDS_MOST)
        return failure_set(failure, -ETIMEDOUT, "its pattern has taken more than %d s of CPU time",
                           UNIT_TABLE_CPU_SECONDS_MOST);
    return 0;
}

/* Of an output that was cut, the last line may have had more behind it. */
static int take_output(struct writing *writing, const char *name, struct failure *failure) {
    regmatch_t groups[EXPERIMENT_NAMES_MOST + 1];
    const char *at = writing->output.bytes, *end = at + writing->output.length;
    bool cut = writing->output.length == LANE_OUTPUT_MOST;
    int r = 0;
    for (size_t number = 1; r == 0 && at < end; number++) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *stop = newline ? newline : end;
        size_t length = (size_t)(stop - at);
        if ((newline || !cut) && length <= UNIT_TABLE_LINE_MOST &&
            tre_regnexec(&writing->pattern, at, length, writing->table->column_count + 1, groups, 0) ==
                REG_OK) {
            writing->rows++;
            r = append_row(writing, name, number, at, groups) < 0 ? failure_memory(failure) : 0;
        }
        if (r == 0 && number % 1024 == 0)
            r = check_limits(writing, failure);
        if (r == 0 && writing->file->pending.length > PENDING_MOST)
            r = append_file_commit(writing->file, failure);
        at = newline ? newline + 1 : end;
    }
    return r < 0 ? r : check_limits(writing, failure);
}

/* ---- Units -----------------------------------------------------------------------------------------------
 */

static char *text_of(const struct csv_field *field) {
    return strndup(field->bytes, field->length);
}

/* One line of results.csv. A unit that has no file has written nothing. */
static int take_unit(struct writing *writing, const struct csv_field *fields, struct failure *failure) {
    const struct run *run = writing->run;
    cleanup_free char *node = text_of(&fields[NODE]), *core = text_of(&fields[CORE]);
    uint64_t order = 0, attempt = 0;
    if (!number_parse_uint64(fields[ORDER].bytes, fields[ORDER].length, &order) ||
        !number_parse_uint64(fields[ATTEMPT].bytes, fields[ATTEMPT].length, &attempt))
        return csv_failure(writing->units, ORDER, failure, "this is no unit of a run");
    bool job = run->experiment->placement == EXPERIMENT_PLACEMENT_JOB;
    cleanup_free char *name = node && core ? unit_output_name((size_t)order, job ? PLACEMENT_JOB_NODE : node,
                                                              core, (unsigned)attempt, "out")
                                           : NULL;
    cleanup_free char *path = name ? run_path(run, name) : NULL;
    if (!path)
        return failure_memory(failure);
    if (access(path, F_OK) < 0 && errno == ENOENT)
        return 0;
    text_reset(&writing->output);
    text_reset(&writing->unit);
    int r = file_read(path, &writing->output, failure);
    for (size_t i = 0; r == 0 && i < csv_column_count(writing->units); i++)
        if (unit_tables_has(run, i) &&
            csv_append_field(&writing->unit, i == 0, fields[i].bytes, fields[i].length) < 0)
            r = failure_memory(failure);
    return r < 0 ? r : take_output(writing, name, failure);
}

static int write_header(struct writing *writing, struct failure *failure) {
    struct text *text = &writing->file->pending;
    int r = 0;
    for (size_t i = 0; r == 0 && i < csv_column_count(writing->units); i++) {
        const char *name = csv_column_name(writing->units, i);
        if (unit_tables_has(writing->run, i))
            r = csv_append_field(text, i == 0, name, strlen(name));
    }
    for (size_t i = 0; r == 0 && i < writing->table->column_count; i++)
        r = csv_append_field(text, false, writing->table->columns[i].name,
                             strlen(writing->table->columns[i].name));
    r = r < 0 ? r : text_append_character(text, '\n');
    return r < 0 ? failure_memory(failure) : 0;
}

static int write_table(struct writing *writing, const char *path, struct failure *failure) {
    cleanup_free char *results = run_path(writing->run, "results/results.csv");
    if (!results)
        return failure_memory(failure);
    int r = run_make_folder(writing->run, "results/tables", failure);
    r = r < 0 ? r : csv_open(results, &writing->units, failure);
    r = r < 0 ? r : append_file_create(path, &writing->file, failure);
    r = r < 0 ? r : write_header(writing, failure);
    const struct csv_field *fields;
    while (r == 0 && (r = csv_next(writing->units, &fields, failure)) > 0)
        r = take_unit(writing, fields, failure);
    return r < 0 ? r : append_file_commit(writing->file, failure);
}

static void write_and_tell(struct run *run, const struct experiment_table *table) {
    cleanup(clear) struct writing writing = {.run = run, .table = table, .began = clock()};
    struct failure failure = {0};
    char reason[PATTERN_REASON_SIZE];
    text_init(&writing.unit, CSV_ROW_MOST);
    text_init(&writing.output, LANE_OUTPUT_MOST);
    cleanup_free char *path = run_path(run, table->file);
    if (!path || pattern_compile(table->pattern, &writing.pattern, reason) < 0)
        return run_note(run, "the table '%s' is left out: out of memory", table->name);
    (void)unlink(path); /* of an earlier part, or try: it cannot be created then */
    if (write_table(&writing, path, &failure) < 0) {
        (void)unlink(path);
        return run_note(run, "the table '%s' is left out: %s", table->name, failure.text);
    }
    if (writing.rows == 0)
        run_log(run, "the table '%s' has no rows: its pattern, '%s', matches no line of any unit's output",
                table->name, table->pattern);
    if (writing.empty > 0)
        run_note(run,
                 "%" PRIu64 " values of the table '%s' are not what their columns say and are left empty, "
                 "such as %s",
                 writing.empty, table->name, writing.first_empty);
}

void unit_tables_write(struct run *run) {
    for (size_t i = 0; run->units->done > 0 && i < run->experiment->table_count; i++)
        write_and_tell(run, &run->experiment->tables[i]);
}
