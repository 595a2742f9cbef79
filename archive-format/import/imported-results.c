/* The rows of an import: read twice, so that a table of any length needs a few words of memory a row. */
#include "archive-format/import/imported.h"
#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text-set.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    IMPORT_ROWS_MAX = 1 << 28,
    IMPORT_NODES_MAX = 1 << 16,
    FLUSH_BYTES = 1 << 20,
    BETWEEN = '\x1f', /* the levels of a row of the design, in a key */
};

/* As every run's table begins (FORMAT.md). */
static const struct column leading[] = {
    {.name = "row", .type = COLUMN_INTEGER, .role = COLUMN_ROLE_ID, .help = "row of design.csv, from 1"},
    {.name = "repetition", .type = COLUMN_INTEGER, .role = COLUMN_ROLE_ID},
    {.name = "order",
     .type = COLUMN_INTEGER,
     .role = COLUMN_ROLE_ID,
     .help = "position in the order of measurement"},
    {.name = "block", .type = COLUMN_INTEGER, .role = COLUMN_ROLE_ID},
    {.name = "attempt", .type = COLUMN_INTEGER, .role = COLUMN_ROLE_ID},
    {.name = "node", .type = COLUMN_STRING, .role = COLUMN_ROLE_ID},
    {.name = "core", .type = COLUMN_STRING, .role = COLUMN_ROLE_ID, .help = "logical CPU, or all"},
    {.name = "start", .type = COLUMN_TIME, .role = COLUMN_ROLE_TIME},
    {.name = "start_monotonic", .type = COLUMN_INTEGER, .unit = "ns", .role = COLUMN_ROLE_TIME},
};
enum { LEADING = sizeof leading / sizeof *leading };

struct ordered {
    double key;
    uint32_t row;
};
struct rows {
    struct imported *imported;
    struct import_table *table;
    struct text_set keys, nodes, places; /* of rows of the design; nodes; of row, node and core */
    uint32_t *repetitions;               /* of places, so far */
    size_t repetition_capacity;
    struct ordered *ordered; /* of rows that are kept */
    size_t count, capacity;
    uint32_t *order; /* of a row, from 1 */
    size_t incomplete, incomplete_line;
    struct text out;
    struct file_output output;
};

int import_open(const struct import_file *file, struct csv_reader **ret, struct failure *failure) {
    cleanup_close int descriptor = file_open(file->path, FILE_REGULAR, failure);
    return descriptor < 0 ? descriptor
                          : csv_open_descriptor(descriptor, file->name, file->separator, file->header,
                                                file->header_count, ret, failure);
}

struct import_column *import_table_find(const struct import_table *table, const char *name) {
    for (size_t i = 0; i < table->column_count; i++)
        if (strcmp(table->columns[i].name, name) == 0)
            return &table->columns[i];
    return NULL;
}

void import_table_clear(struct import_table *table) {
    for (size_t i = 0; i < table->file_count; i++)
        free(table->files[i].path), free(table->files[i].name);
    for (size_t i = 0; i < table->column_count; i++)
        free(table->columns[i].name), free(table->columns[i].unit);
    free(table->files), free(table->columns);
    *table = (struct import_table){0};
}

/* ---- One row */

static bool is_missing(const struct csv_field *field) {
    return csv_is_missing(field->bytes, field->length);
}

/* The index of the first column whose use is USE; the number of columns if there is none. */
static size_t column_with(const struct import_table *table, enum import_use use) {
    size_t i = 0;
    while (i < table->column_count && table->columns[i].use != use)
        i++;
    return i;
}

/* The text of the column whose use is USE, or a copy of FALLBACK (which may be NULL) if the row has no value
 * there. The caller frees. */
static char *cell_of(const struct rows *rows, const struct csv_field *fields, enum import_use use,
                     const char *fallback) {
    size_t i = column_with(rows->table, use);
    if (i < rows->table->column_count && !is_missing(&fields[i]))
        return xstrndup(fields[i].bytes, fields[i].length);
    return xstrdup_or_null(fallback);
}

/* Whether the row is left out: a factor has no value, or, of tables with whole rows only, any cell is empty.
 */
static bool is_left_out(const struct rows *rows, const struct csv_field *fields) {
    for (size_t i = 0; i < rows->table->column_count; i++)
        if (rows->table->columns[i].use != IMPORT_LEFT_OUT && is_missing(&fields[i]) &&
            (rows->table->only_whole_rows || rows->table->columns[i].use == IMPORT_FACTOR))
            return true;
    return false;
}

static uint32_t row_of(struct rows *rows, const struct csv_field *fields) {
    cleanup(text_clear) struct text key;
    text_init(&key, CSV_ROW_MAX);
    for (size_t i = 0; i < rows->table->column_count; i++)
        if (rows->table->columns[i].use == IMPORT_FACTOR) {
            (void)text_append(&key, fields[i].bytes, fields[i].length);
            (void)text_append_character(&key, BETWEEN);
        }
    return text_set_add(&rows->keys, key.bytes, key.length) + 1;
}

/* ---- The first pass: types, times, the order */

/* Widens the type of COLUMN from integer to number to text, so that FIELD is of that type. Text in a response
 * that has a unit is refused. */
static int widen_type(const struct csv_reader *csv, size_t i, const struct csv_field *field,
                      struct import_column *column, struct failure *failure) {
    int64_t whole;
    double number;
    if (is_missing(field) || column->use == IMPORT_LEFT_OUT)
        return 0;
    enum column_type type = number_parse_int64(field->bytes, field->length, &whole)     ? COLUMN_INTEGER
                            : number_parse_double(field->bytes, field->length, &number) ? COLUMN_NUMBER
                                                                                        : COLUMN_STRING;
    if (type == COLUMN_STRING && column->use == IMPORT_RESPONSE && column->unit)
        return csv_failure(csv, i, failure, "'%.*s' is no number; the response '%s' is in %s",
                           field->length < 40 ? (int)field->length : 40, field->bytes, column->name,
                           column->unit);
    bool is_first = column->type == COLUMN_UNKNOWN;
    if (is_first || type == COLUMN_STRING || (type == COLUMN_NUMBER && column->type == COLUMN_INTEGER))
        column->type = type;
    return 0;
}

static int read_start(struct rows *rows, const struct csv_reader *csv, const struct csv_field *fields,
                      int64_t *ret, struct failure *failure) {
    struct archive_run *run = &rows->imported->run;
    cleanup_free char *text = cell_of(rows, fields, IMPORT_START, NULL);
    *ret = 0;
    if (!text)
        return 0;
    if (!import_time(&rows->imported->zone, text, ret))
        return csv_failure(
            csv, column_with(rows->table, IMPORT_START), failure,
            "'%.40s' is no time; expected one such as 2026-11-20T10:02:03+01:00, or seconds since "
            "1970. For local times set utc_offset in the mapping",
            text);
    run->started_ns = run->started_ns && run->started_ns < *ret ? run->started_ns : *ret;
    run->ended_ns = run->ended_ns > *ret ? run->ended_ns : *ret;
    return 0;
}

static int add_order(struct rows *rows, const struct csv_reader *csv, const struct csv_field *fields,
                     struct failure *failure) {
    const struct import_column *by =
        rows->table->order_by ? import_table_find(rows->table, rows->table->order_by) : NULL;
    int64_t start;
    double key = 0;
    int r = read_start(rows, csv, fields, &start, failure);
    if (r == 0 && by)
        r = csv_number(csv, (size_t)(by - rows->table->columns), &key, failure);
    if (r == 0 && list_reserve(&rows->ordered, &rows->capacity, rows->count + 1, sizeof *rows->ordered,
                               IMPORT_ROWS_MAX) < 0)
        r = csv_failure(csv, 0, failure, "there are more than %d rows, the most accepted", IMPORT_ROWS_MAX);
    if (r < 0)
        return r;
    rows->ordered[rows->count] = (struct ordered){by ? key : (double)start, (uint32_t)rows->count};
    rows->count++;
    return 0;
}

static int inspect_row(struct rows *rows, struct csv_reader *csv, const struct csv_field *fields,
                       struct failure *failure) {
    int r = 0;
    if (is_left_out(rows, fields)) {
        rows->incomplete_line = rows->incomplete++ ? rows->incomplete_line : csv_line(csv);
        return 0;
    }
    for (size_t i = 0; r == 0 && i < rows->table->column_count; i++)
        r = widen_type(csv, i, &fields[i], &rows->table->columns[i], failure);
    cleanup_free char *node = cell_of(rows, fields, IMPORT_NODE, rows->table->node);
    text_set_add(&rows->nodes, node, strlen(node));
    if (r == 0 && rows->nodes.count > IMPORT_NODES_MAX)
        r = csv_failure(csv, 0, failure, "there are more than %d nodes, the most accepted", IMPORT_NODES_MAX);
    return r < 0 ? r : add_order(rows, csv, fields, failure);
}

static int compare_order(const void *a, const void *b) {
    const struct ordered *x = a, *y = b;
    return x->key != y->key ? (x->key > y->key) - (x->key < y->key) : (x->row > y->row) - (x->row < y->row);
}

static void find_order(struct rows *rows) {
    rows->order = xcalloc(rows->count + 1, sizeof *rows->order);
    if (rows->count > 0)
        qsort(rows->ordered, rows->count, sizeof *rows->ordered, compare_order);
    for (size_t i = 0; i < rows->count; i++)
        rows->order[rows->ordered[i].row] = (uint32_t)i + 1;
    rows->count = 0; /* the second pass counts again */
}

/* ---- The second pass */

static int write_out(struct rows *rows, size_t above, struct failure *failure) {
    if (rows->out.length <= above)
        return 0;
    int r = file_output_write(&rows->output, rows->out.bytes, rows->out.length, failure);
    text_reset(&rows->out);
    return r;
}

static int repetition_of(struct rows *rows, const struct csv_reader *csv, uint32_t row, const char *node,
                         const char *core, const char *given, int64_t *ret, struct failure *failure) {
    cleanup_free char *place = xformat("%u %s %s", row, node, core);
    if (given && (!number_parse_int64(given, strlen(given), ret) || *ret < 1))
        return csv_failure(csv, column_with(rows->table, IMPORT_REPETITION), failure,
                           "the repetition '%.40s' is no whole number of at least 1", given);
    if (given)
        return 0;
    uint32_t number = text_set_add(&rows->places, place, strlen(place));
    size_t before = rows->repetition_capacity;
    if (list_reserve(&rows->repetitions, &rows->repetition_capacity, rows->places.count,
                     sizeof *rows->repetitions, IMPORT_ROWS_MAX) < 0)
        memory_exhausted();
    memset(rows->repetitions + before, 0, (rows->repetition_capacity - before) * sizeof *rows->repetitions);
    *ret = ++rows->repetitions[number];
    return 0;
}

static void append_uses(struct rows *rows, const struct csv_field *fields, enum import_use use) {
    for (size_t i = 0; i < rows->table->column_count; i++)
        if (rows->table->columns[i].use == use)
            (void)csv_append_field(&rows->out, false, fields[i].bytes,
                                   is_missing(&fields[i]) ? 0 : fields[i].length);
}

static int write_row(struct rows *rows, struct csv_reader *csv, const struct csv_field *fields,
                     struct failure *failure) {
    struct text *out = &rows->out;
    if (is_left_out(rows, fields))
        return 0;
    cleanup_free char *node = cell_of(rows, fields, IMPORT_NODE, rows->table->node),
                      *core = cell_of(rows, fields, IMPORT_CORE, rows->table->core),
                      *start = cell_of(rows, fields, IMPORT_START, NULL),
                      *given = cell_of(rows, fields, IMPORT_REPETITION, NULL);
    uint32_t row = row_of(rows, fields);
    int64_t repetition, at;
    char time[CLOCK_TEXT_SIZE] = "";
    int r = repetition_of(rows, csv, row, node, core, given, &repetition, failure);
    if (r < 0)
        return r;
    if (start && import_time(&rows->imported->zone, start, &at))
        clock_format_ns(at, time);
    const int64_t numbers[] = {row, repetition, rows->order[rows->count++], 1, 1}; /* block, attempt */
    struct text_mark mark = text_mark(out);
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        (void)csv_append_int64(out, i == 0, numbers[i]);
    const char *const texts[] = {node, core, time, ""};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        (void)csv_append_field(out, false, texts[i], strlen(texts[i]));
    append_uses(rows, fields, IMPORT_FACTOR);
    append_uses(rows, fields, IMPORT_RESPONSE);
    append_uses(rows, fields, IMPORT_COVARIATE);
    if (rows->table->place) {
        const char *place = rows->table->place(rows->table->context, node, core);
        (void)csv_append_field(out, false, place ? place : "", place ? strlen(place) : 0);
    }
    (void)text_append_character(out, '\n');
    r = text_keep(out, mark);
    return r < 0 ? failure_set(failure, r, "cannot keep a row of '%s': %s", csv_file(csv), strerror(-r))
                 : write_out(rows, FLUSH_BYTES, failure);
}

/* ---- All rows */

static int each_row(struct rows *rows,
                    int (*visit)(struct rows *, struct csv_reader *, const struct csv_field *,
                                 struct failure *),
                    struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < rows->table->file_count; i++) {
        cleanup(csv_reader_cleanup) struct csv_reader *csv = NULL;
        const struct csv_field *fields;
        r = import_open(&rows->table->files[i], &csv, failure);
        if (r == 0 && csv_column_count(csv) != rows->table->column_count)
            r = failure_input(failure, csv_file(csv), 1, 0, "there are %zu columns; expected %zu, as in '%s'",
                              csv_column_count(csv), rows->table->column_count, rows->table->files[0].name);
        while (r == 0 && (r = csv_next(csv, &fields, failure)) > 0)
            r = visit(rows, csv, fields, failure);
    }
    return r;
}

/* The rows of the design come first, by the names of their columns; what else was measured follows. */
static int read_design(struct rows *rows, struct failure *failure) {
    const struct import_file *file = rows->table->design;
    cleanup(csv_reader_cleanup) struct csv_reader *csv = NULL;
    cleanup_free size_t *at = xcalloc(rows->table->column_count + 1, sizeof *at);
    const struct csv_field *fields;
    int r = file ? import_open(file, &csv, failure) : 0;
    for (size_t i = 0; csv && r == 0 && i < rows->table->column_count; i++) {
        if (rows->table->columns[i].use != IMPORT_FACTOR ||
            csv_find_column(csv, rows->table->columns[i].name, &at[i], NULL) == 0)
            continue;
        imported_note(rows->imported,
                      "'%s' has no column '%s': the rows of the design are those that were measured",
                      file->name, rows->table->columns[i].name);
        return 0;
    }
    cleanup_free struct csv_field *row = xcalloc(rows->table->column_count + 1, sizeof *row);
    while (csv && r == 0 && (r = csv_next(csv, &fields, failure)) > 0) {
        for (size_t i = 0; i < rows->table->column_count; i++)
            row[i] = fields[at[i]];
        row_of(rows, row);
        r = rows->keys.count > IMPORT_ROWS_MAX
                ? csv_failure(csv, 0, failure, "there are more than %d rows, the most accepted",
                              IMPORT_ROWS_MAX)
                : 0;
    }
    return r;
}

static int write_design(struct rows *rows, const struct column *columns, size_t count,
                        struct failure *failure) {
    cleanup(text_clear) struct text out;
    text_init(&out, (size_t)1 << 32);
    imported_append_header(&out, columns, count);
    for (size_t k = 0; k < rows->keys.count; k++) {
        const char *level = rows->keys.texts[k];
        for (size_t i = 0; i < count; i++) {
            size_t length = strcspn(level, "\x1f");
            (void)csv_append_field(&out, i == 0, level, length);
            level += length + 1;
        }
        (void)text_append_character(&out, '\n');
    }
    return count == 0 ? 0
                      : imported_add_table(rows->imported, ARCHIVE_DESIGN, "The rows of the design", columns,
                                           count, &out, failure);
}

/* The columns of results.csv in RET; in *RET_FACTORS how many of them, behind the leading ones, are factors.
 */
static size_t list_columns(const struct import_table *table, struct column *ret, size_t *ret_factors) {
    static const struct {
        enum import_use use;
        enum column_role role;
    } parts[] = {{IMPORT_FACTOR, COLUMN_ROLE_FACTOR},
                 {IMPORT_RESPONSE, COLUMN_ROLE_RESPONSE},
                 {IMPORT_COVARIATE, COLUMN_ROLE_COVARIATE}};
    size_t count = LEADING;
    *ret_factors = 0;
    memcpy(ret, leading, sizeof leading);
    for (size_t p = 0; p < sizeof parts / sizeof *parts; p++)
        for (size_t i = 0; i < table->column_count; i++) {
            const struct import_column *from = &table->columns[i];
            if (from->use != parts[p].use)
                continue;
            bool is_text = from->type == COLUMN_STRING || (from->type == COLUMN_UNKNOWN && !from->unit);
            ret[count++] = (struct column){.name = from->name,
                                           .type = is_text                        ? COLUMN_STRING
                                                   : from->type == COLUMN_UNKNOWN ? COLUMN_NUMBER
                                                                                  : from->type,
                                           .unit = is_text || (!from->unit && p > 0) ? NULL
                                                   : from->unit                      ? from->unit
                                                                                     : "1",
                                           .role = parts[p].role};
            *ret_factors += p == 0;
        }
    if (table->place)
        ret[count++] = (struct column){
            .name = "cpu",
            .type = COLUMN_STRING,
            .role = COLUMN_ROLE_ID,
            .help = "processor of the node that the core is of; where it is not known, the core"};
    return count;
}

static int write_table(struct rows *rows, struct failure *failure) {
    const struct import_table *table = rows->table;
    cleanup_free struct column *columns = xcalloc(LEADING + table->column_count + 1, sizeof *columns);
    cleanup_free char *path = imported_path(rows->imported, table->path ? table->path : ARCHIVE_RESULTS);
    size_t factors, count = list_columns(table, columns, &factors);
    int r = imported_add_table(rows->imported, table->path ? table->path : ARCHIVE_RESULTS,
                               table->description, columns, count, NULL, failure);
    r = r < 0 ? r : read_design(rows, failure);
    r = r < 0 ? r : file_output_open(path, 0666, &rows->output, failure);
    imported_append_header(&rows->out, columns, count);
    r = r < 0 ? r : each_row(rows, write_row, failure);
    r = r < 0 ? r : write_out(rows, 0, failure);
    r = r < 0 ? r : file_output_commit(&rows->output, failure);
    return r < 0 || table->path || factors == 0 ? r : write_design(rows, columns + LEADING, factors, failure);
}

static void describe_run(const struct rows *rows) {
    struct archive_run *run = &rows->imported->run;
    bool are_known = run->nodes.count > 0;
    run->counts.rows = (int64_t)rows->keys.count;
    run->counts.planned = run->counts.done = (int64_t)rows->count;
    rows->imported->result->rows = rows->count;
    for (size_t i = 0; !are_known && i < rows->nodes.count; i++)
        bind_texts_add(&run->nodes, rows->nodes.texts[i]);
    if (rows->incomplete > 0)
        imported_note(rows->imported, "%zu of %zu rows are left out, the first on line %zu: %s",
                      rows->incomplete, rows->incomplete + rows->count, rows->incomplete_line,
                      rows->table->only_whole_rows ? "a cell is empty" : "a factor has no value");
}

int imported_add_results(struct imported *imported, struct import_table *table, struct failure *failure) {
    struct rows rows = {.imported = imported, .table = table, .output = FILE_OUTPUT_NONE};
    text_init(&rows.out, FLUSH_BYTES + CSV_ROW_MAX * 2);
    int r = each_row(&rows, inspect_row, failure);
    if (r == 0) {
        find_order(&rows);
        r = write_table(&rows, failure);
    }
    if (!table->path)
        describe_run(&rows);
    text_set_clear(&rows.keys), text_set_clear(&rows.nodes), text_set_clear(&rows.places);
    free(rows.repetitions), free(rows.ordered), free(rows.order);
    text_clear(&rows.out);
    file_output_clear(&rows.output);
    return r;
}
