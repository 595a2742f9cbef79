/* Designs from CSV files. */
#include "engine/design/design.h"
#include "engine/documents/csv.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A table that is being read. */
struct table {
    struct csv_reader *reader;
    struct design *design;
    struct design_factor *expected; /* by column; borrowed members, only the array is owned */
    size_t line_capacity;
};

/* Fails because a field does not hold what its column expects. Returns -EINVAL. */
static int refuse_field(const struct table *table, size_t column, const struct csv_field *field,
                        struct failure *failure) {
    const struct design_factor *expected = &table->expected[column];
    char expectation[DESIGN_EXPECTATION_SIZE];
    design_factor_expectation(expected, expectation);
    if (field->length == 0)
        return csv_failure(table->reader, column, failure, "'%s' is empty, expected %s", expected->about.name,
                           expectation);
    return csv_failure(table->reader, column, failure, "'%s' is '%.*s', expected %s", expected->about.name,
                       (int)(field->length < 64 ? field->length : 64), field->bytes, expectation);
}

static bool admits_field(const struct design_factor *expected, const struct csv_field *field) {
    if (expected->about.type == COLUMN_STRING)
        return design_factor_admits_text(expected, field->bytes, field->length);
    cleanup_free char *text = xstrndup(field->bytes, field->length);
    return design_factor_admits_written(expected, text);
}

/* Stores a field in ROW of its column. -EINVAL: the factor does not admit it. */
static int read_field(const struct table *table, size_t column, const struct csv_field *field, size_t row,
                      struct failure *failure) {
    const struct design_factor *expected = &table->expected[column];
    struct design_column *target = &table->design->columns[column];
    if (target->about.type == COLUMN_STRING) {
        if (!admits_field(expected, field))
            return refuse_field(table, column, field, failure);
        target->codes[row] = text_set_add(&target->labels, field->bytes, field->length);
        if (target->labels.count > DESIGN_LABELS_MAX)
            return csv_failure(table->reader, column, failure, "more than %d different values of '%s'",
                               DESIGN_LABELS_MAX, expected->about.name);
        return 0;
    }
    double value;
    if (!number_parse_double(field->bytes, field->length, &value) || !design_factor_admits(expected, value))
        return refuse_field(table, column, field, failure);
    if (expected->about.type == COLUMN_INTEGER)
        target->integers[row] = (int64_t)value;
    else
        target->numbers[row] = value;
    return 0;
}

/* Makes room for one row more in every column. */
static int reserve_row(struct table *table, struct failure *failure) {
    struct design *design = table->design;
    size_t count = design->row_count + 1;
    if (count > DESIGN_ROWS_MAX)
        return failure_input(failure, csv_file(table->reader), csv_line(table->reader), 0,
                             "more rows than the limit of %d", DESIGN_ROWS_MAX);
    int r =
        list_reserve(&design->lines, &table->line_capacity, count, sizeof *design->lines, DESIGN_ROWS_MAX);
    for (size_t i = 0; r == 0 && i < design->column_count; i++) {
        struct design_column *column = &design->columns[i];
        size_t size = column->about.type == COLUMN_STRING ? sizeof *column->codes : sizeof *column->integers;
        r = list_reserve(&column->items, &column->capacity, count, size, DESIGN_ROWS_MAX);
    }
    return r < 0 ? failure_memory(failure) : 0;
}

/* Reads all rows. -EINVAL with the place: a value does not fit, or there are none. */
static int read_rows(struct table *table, struct failure *failure) {
    struct design *design = table->design;
    const struct csv_field *fields;
    int got;
    while ((got = csv_next(table->reader, &fields, failure)) > 0) {
        int r = reserve_row(table, failure);
        size_t row = design->row_count, line = csv_line(table->reader);
        for (size_t i = 0; r == 0 && i < design->column_count; i++)
            r = read_field(table, i, &fields[i], row, failure);
        if (r < 0)
            return r;
        design->lines[row] = line <= UINT32_MAX ? (uint32_t)line : 0;
        design->row_count++;
    }
    if (got == 0 && design->row_count == 0)
        return failure_input(failure, csv_file(table->reader), 1, 0,
                             "no rows after the header, expected at least one");
    return got;
}

/* Reads the whole of READER into a design; EXPECTED has an entry for each column. */
static int read_table(struct csv_reader *reader, struct design_factor *expected, struct design **ret,
                      struct failure *failure) {
    cleanup(design_cleanup) struct design *design = NULL;
    int r = design_new(0, &design, failure);
    if (r < 0)
        return r;
    design->file = xstrdup(csv_file(reader));
    for (size_t i = 0; i < csv_column_count(reader); i++) {
        struct design_column *column;
        /* Shares stay texts here: design_conform() computes their numbers from the row. */
        enum column_type type =
            design_factor_has_meanings(&expected[i]) ? COLUMN_STRING : expected[i].about.type;
        r = design_add_column(design, csv_column_name(reader, i), type, &column, failure);
        if (r < 0)
            return r;
    }
    struct table table = {.reader = reader, .design = design, .expected = expected};
    r = read_rows(&table, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(design);
    return 0;
}

/* What each column must hold, into *RET, which the caller frees. Without FACTORS controls are known, and
 * other columns may hold anything. -EINVAL: a column is unknown. */
static int expect_columns(struct csv_reader *reader, const struct design_factors *factors,
                          struct design_factor **ret, struct failure *failure) {
    size_t count = csv_column_count(reader);
    cleanup_free struct design_factor *expected = xcalloc(count, sizeof *expected);
    for (size_t i = 0; i < count; i++) {
        const char *name = csv_column_name(reader, i);
        const struct design_factor *control = control_factor_find(name);
        size_t found = factors ? design_factor_find(factors, name) : SIZE_MAX;
        bool is_free = !factors && !control_of_column(name);
        if (!control && !is_free && found == SIZE_MAX) {
            struct failure unknown = {0};
            design_factor_unknown(factors, name, NULL, 0, 0, &unknown);
            return csv_failure(reader, i, failure, "%s", unknown.text); /* the header is the last row read */
        }
        expected[i] = control   ? *control
                      : is_free ? (struct design_factor){.about = {.name = name, .type = COLUMN_INTEGER},
                                                         .minimum = -DESIGN_UNBOUNDED,
                                                         .maximum = DESIGN_UNBOUNDED}
                                : factors->items[found];
    }
    *ret = take_pointer(expected);
    return 0;
}

/* Reads through all rows to find the narrowest type that all values of a column have. */
static int find_types(struct csv_reader *reader, struct design_factor *expected, struct failure *failure) {
    const struct csv_field *fields;
    int got;
    while ((got = csv_next(reader, &fields, failure)) > 0)
        for (size_t i = 0; i < csv_column_count(reader); i++) {
            double value;
            if (expected[i].about.type == COLUMN_STRING)
                continue;
            if (!number_parse_double(fields[i].bytes, fields[i].length, &value))
                expected[i].about.type = COLUMN_STRING;
            else if (!design_factor_admits(&expected[i], value))
                expected[i].about.type = fabs(value) <= DESIGN_UNBOUNDED ? COLUMN_NUMBER : COLUMN_STRING;
        }
    return got;
}

/* Reads a design from a CSV file, pipe or standard input, and checks it against FACTORS (may be NULL). */
int design_read(const char *path, const struct design_factors *factors, struct design **ret,
                struct failure *failure) {
    cleanup(csv_reader_cleanup) struct csv_reader *first = NULL, *second = NULL;
    cleanup_free struct design_factor *expected = NULL;
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, DESIGN_FILE_MAX);
    /* Without factors it is read twice, so kept in memory: standard input comes only once. */
    int r = factors ? csv_open(path, &first, failure) : file_read_or_pipe(path, &bytes, failure);
    if (r == 0 && !factors)
        r = csv_open_memory(path, bytes.bytes, bytes.length, &first, failure);
    if (r < 0)
        return r;
    r = expect_columns(first, factors, &expected, failure);
    if (r < 0 || factors)
        return r < 0 ? r : read_table(first, expected, ret, failure);
    r = find_types(first, expected, failure);
    r = r < 0 ? r : csv_open_memory(path, bytes.bytes, bytes.length, &second, failure);
    return r < 0 ? r : read_table(second, expected, ret, failure);
}
