/* Rows to columns, a block at a time. */
#include "engine/documents/csv-reader.h"
#include "engine/documents/shown-value.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum { BLOCK_ROWS = 2048 };

struct csv_columns {
    struct csv_reader *reader;
    enum csv_missing missing;
    size_t number_count, label_count;
    size_t *number_columns, *label_columns; /* in the table */
    double **numbers;                       /* BLOCK_ROWS of each */
    uint32_t **codes;                       /* BLOCK_ROWS of each */
    struct text_set *labels;                /* by code */
    size_t *label_bytes;                    /* the sum of their lengths */
    uint64_t *lines;
};

/* Of a number that no table can hold. */
static bool is_infinite_or_signed(const char *bytes, size_t length) {
    static const char *const words[] = {"nan", "inf", "infinity"};
    size_t sign = *bytes == '+' || *bytes == '-';
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (length - sign == strlen(words[i]) && strncasecmp(bytes + sign, words[i], length - sign) == 0)
            return true;
    return false;
}

/* Parses a number; missing values and infinities become NaN. false: it is neither. */
static bool parse_or_missing(const char *bytes, size_t length, double *ret) {
    for (; length > 0 && (*bytes == ' ' || *bytes == '\t'); bytes++)
        length--;
    while (length > 0 && (bytes[length - 1] == ' ' || bytes[length - 1] == '\t'))
        length--;
    if (!csv_is_missing(bytes, length) && !is_infinite_or_signed(bytes, length))
        return number_parse_double(bytes, length, ret);
    *ret = NAN;
    return true;
}

static int store_number(const struct csv_columns *columns, size_t i, size_t row, struct failure *failure) {
    const struct csv_field *field = &columns->reader->fields[columns->number_columns[i]];
    double *value = &columns->numbers[i][row];
    if (number_parse_double(field->bytes, field->length, value) ||
        (columns->missing == CSV_MISSING_IS_NAN && parse_or_missing(field->bytes, field->length, value)))
        return 0;
    return csv_number(columns->reader, columns->number_columns[i], value,
                      failure); /* says why it is not a number */
}

/* Stores the code of the label in row ROW of column J. -EINVAL: the column has too many different labels. */
static int store_label(const struct csv_columns *columns, size_t j, size_t row, struct failure *failure) {
    size_t column = columns->label_columns[j];
    const struct csv_field *field = &columns->reader->fields[column];
    struct text_set *labels = &columns->labels[j];
    size_t before = labels->count;
    columns->codes[j][row] = text_set_add(labels, field->bytes, field->length);
    if (labels->count > before)
        columns->label_bytes[j] += field->length + 1;
    if (labels->count <= CSV_LABELS_MAX && columns->label_bytes[j] <= CSV_LABEL_BYTES_MAX)
        return 0;
    const char *name = csv_column_name(columns->reader, column);
    return csv_failure(columns->reader, column, failure,
                       "column %s has too many different values, expected at most %d",
                       shown_value(name, strlen(name)).text, CSV_LABELS_MAX);
}

/* Reads the next row into ROW of the block. 1, 0 at the end, or negative with FAILURE. */
static int read_row(const struct csv_columns *columns, size_t row, struct failure *failure) {
    const struct csv_field *fields;
    int r = csv_next(columns->reader, &fields, failure);
    if (r <= 0)
        return r;
    for (size_t i = 0; i < columns->number_count; i++)
        if ((r = store_number(columns, i, row, failure)) < 0)
            return r;
    for (size_t j = 0; j < columns->label_count; j++)
        if ((r = store_label(columns, j, row, failure)) < 0)
            return r;
    columns->lines[row] = columns->reader->row_line;
    return 1;
}

/* The next block of rows (csv-columns.h). 1, 0 at the end, or negative with FAILURE. */
int csv_columns_next(struct csv_columns *columns, struct csv_block *ret, struct failure *failure) {
    size_t rows = 0;
    int r = 1;
    while (rows < BLOCK_ROWS && (r = read_row(columns, rows, failure)) == 1)
        rows++;
    if (r < 0) {
        columns->reader->broken = true;
        return r;
    }
    *ret = (struct csv_block){rows, (const double *const *)columns->numbers,
                              (const uint32_t *const *)columns->codes, columns->lines};
    return rows > 0;
}

/* ---- Opening */

/* Frees the columns; NULL is allowed. The reader stays open. */
void csv_columns_close(struct csv_columns *columns) {
    if (!columns)
        return;
    for (size_t i = 0; i < columns->number_count; i++)
        free(columns->numbers[i]);
    for (size_t j = 0; j < columns->label_count; j++) {
        free(columns->codes[j]);
        text_set_clear(&columns->labels[j]);
    }
    free(columns->number_columns);
    free(columns->label_columns);
    free(columns->numbers);
    free(columns->codes);
    free(columns->labels);
    free(columns->label_bytes);
    free(columns->lines);
    free(columns);
}

/* Reads columns of a table as numbers or labels, block by block. The caller closes *RET before READER. */
int csv_columns_open(struct csv_reader *reader, const size_t *numbers, size_t number_count,
                     const size_t *labels, size_t label_count, enum csv_missing missing,
                     struct csv_columns **ret, struct failure *failure) {
    if (reader->started)
        return failure_set(failure, -EINVAL, "rows of '%s' were read already", reader->name);
    struct csv_columns *columns = xcalloc(1, sizeof *columns);
    *columns = (struct csv_columns){
        .reader = reader,
        .missing = missing,
        .number_count = number_count,
        .label_count = label_count,
        .number_columns = xcalloc(number_count, sizeof(size_t)),
        .label_columns = xcalloc(label_count, sizeof(size_t)),
        .numbers = xcalloc(number_count, sizeof(double *)),
        .codes = xcalloc(label_count, sizeof(uint32_t *)),
        .labels = xcalloc(label_count, sizeof(struct text_set)),
        .label_bytes = xcalloc(label_count, sizeof(size_t)),
        .lines = xcalloc(BLOCK_ROWS, sizeof(uint64_t)),
    };
    for (size_t i = 0; i < number_count; i++) {
        columns->number_columns[i] = numbers[i];
        columns->numbers[i] = xcalloc(BLOCK_ROWS, sizeof(double));
    }
    for (size_t j = 0; j < label_count; j++) {
        columns->label_columns[j] = labels[j];
        columns->codes[j] = xcalloc(BLOCK_ROWS, sizeof(uint32_t));
    }
    *ret = columns;
    return 0;
}

const char *csv_label(const struct csv_columns *columns, size_t j, uint32_t code) {
    return columns->labels[j].texts[code];
}

size_t csv_label_count(const struct csv_columns *columns, size_t j) {
    return columns->labels[j].count;
}
