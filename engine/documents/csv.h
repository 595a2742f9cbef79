/*
 * CSV by RFC 4180: UTF-8 (a byte order mark is skipped), a header row, quoted fields with doubled quotes and
 * newlines inside, LF or CRLF. Read as a stream in bounded memory, from a file, a descriptor, memory or a
 * callback. A short or long row, a field after a closing quote, a NUL, invalid UTF-8 and a field or row over
 * the limit are refused with file:line:column (a row's line is where it begins; columns count bytes from 1).
 * What other programs write instead is read by csv_open_foreign. Files and descriptors may be compressed by
 * gzip, and may be pipes: they are read once, from where they are.
 */
#ifndef ASSAY_DOCUMENTS_CSV_H
#define ASSAY_DOCUMENTS_CSV_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

enum {
    CSV_FIELD_MAX = 1 << 20, /* bytes of one field */
    CSV_ROW_MAX = 16 << 20,  /* bytes of one row, as written */
    CSV_COLUMNS_MAX = 4096,
    CSV_LABELS_MAX = 1 << 24,      /* different labels of one column */
    CSV_LABEL_BYTES_MAX = 1 << 30, /* bytes of all the labels of one column */
};

struct csv_field {
    const char *bytes; /* not NUL-ended; quotes taken off; valid until the next row is read */
    size_t length;
    uint32_t column; /* byte column in the line where the field begins, from 1 */
    bool quoted;
};

struct csv_reader;

/* Reads up to SIZE bytes into BUFFER; returns how many, 0 at the end, or a negative errno. */
typedef int64_t (*csv_read_function)(void *context, char *buffer, size_t size);

/* Each opens and reads the header; duplicate and empty column names are refused, an empty input too
 * ("expected a header row"). NAME is for messages; "-" as PATH is standard input. */
int csv_open(const char *path, struct csv_reader **ret, struct failure *failure);
int csv_open_memory(const char *name, const char *bytes, size_t length, struct csv_reader **ret,
                    struct failure *failure);
int csv_open_function(const char *name, csv_read_function read, void *context, struct csv_reader **ret,
                      struct failure *failure);
/* A table that another program wrote, such as R, pandas, a spreadsheet or a benchmark. Fields are separated
 * by SEPARATOR; '\0' stands for the comma, semicolon or tab that the header has most often outside quotes,
 * or, where it has none of them, for blanks: any number between two fields. Ignored are blanks around fields
 * (those in quotes stay), empty lines, lines that begin with '#' before the header (where blanks separate,
 * anywhere), and separators behind the last field of a row and of the header. Where the first row is all
 * numbers, the last line before it that begins with '#' is the header if it has as many names ("# Size
 * Latency (us)", OSU); names between blanks may have a blank inside where two blanks or more separate them.
 * The name of the first column may be empty, as where row names are written. Units in names are read by
 * unit_read_name(): "duration [ms]" is the column 'duration' in ms, and "duration_ms" the column of that name
 * in ms. */
int csv_open_foreign(const char *path, int separator, struct csv_reader **ret, struct failure *failure);
/* The same from DESCRIPTOR, which stays the caller's and open. With COLUMNS the table has no header, and
 * these are the names of its COUNT columns. */
int csv_open_descriptor(int descriptor, const char *name, int separator, const char *const *columns,
                        size_t count, struct csv_reader **ret, struct failure *failure);
/* NULL is fine. */
void csv_close(struct csv_reader *reader);
void csv_reader_cleanup(struct csv_reader **reader); /* for cleanup() */

size_t csv_column_count(const struct csv_reader *reader);
const char *csv_column_name(const struct csv_reader *reader, size_t column);
/* The UCUM code of the unit that its name had, or NULL. */
const char *csv_column_unit(const struct csv_reader *reader, size_t column);
/* The column called NAME in *RET; if there is none, a failure that names the nearest one and lists what there
 * is. */
int csv_find_column(const struct csv_reader *reader, const char *name, size_t *ret, struct failure *failure);
const char *csv_file(const struct csv_reader *reader);

/* The next row in *RET_FIELDS (csv_column_count of them, the reader's). 1 for a row, 0 at the end, negative
 * on failure. */
int csv_next(struct csv_reader *reader, const struct csv_field **ret_fields, struct failure *failure);
/* The line where the last row began. */
size_t csv_line(const struct csv_reader *reader);
/* A failure about field COLUMN of the last row: place filled in, sentence given. Returns -EINVAL. */
int csv_failure(const struct csv_reader *reader, size_t column, struct failure *failure, const char *format,
                ...) __attribute__((format(printf, 4, 5)));
/* Field COLUMN of the last row as a number; trailing junk, blanks and emptiness are refused with the
 * place. */
int csv_number(const struct csv_reader *reader, size_t column, double *ret, struct failure *failure);

/* Whether a field says that there is no value: it is empty, NA, N/A, NaN, null, - or None, in any case. */
bool csv_is_missing(const char *bytes, size_t length);

/* ---- Columns ----------------------------------------------------------------------------------- */

/* A block of rows by columns: what models want. NUMBERS[i] has a double a row for the i-th wanted number
 * column, LABELS[j] a code a row for the j-th wanted label column (see csv_label). */
struct csv_block {
    size_t rows;
    const double *const *numbers;
    const uint32_t *const *labels;
    const uint64_t *lines; /* the line where each row begins */
};

/* What to make of a number field that holds none: one that is blank or that csv_is_missing() knows, and nan,
 * inf or infinity with or without a sign, in any case. Where that is NaN, blanks around a number are ignored
 * too. */
enum csv_missing { CSV_MISSING_IS_ERROR, CSV_MISSING_IS_NAN };

struct csv_columns;

/* Wants NUMBER_COUNT columns as doubles and LABEL_COUNT as labels (indices of columns; one may be wanted
 * twice, and as both), from a reader on which csv_next was not yet called. The reader stays the caller's, and
 * must be there until the last csv_columns_next. */
int csv_columns_open(struct csv_reader *reader, const size_t *numbers, size_t number_count,
                     const size_t *labels, size_t label_count, enum csv_missing missing,
                     struct csv_columns **ret, struct failure *failure);
void csv_columns_close(struct csv_columns *columns);
/* The next block (at most a few thousand rows; valid until the next call). 1, 0 at the end, or negative on
 * failure: a row that csv_next would refuse, or a wanted number that csv_number would and that is not taken
 * as missing. */
int csv_columns_next(struct csv_columns *columns, struct csv_block *ret, struct failure *failure);
/* The text of a label code of the j-th label column (codes count from 0 in order of first appearance; the
 * text stays where it is until csv_columns_close), and how many there are so far. */
const char *csv_label(const struct csv_columns *columns, size_t j, uint32_t code);
size_t csv_label_count(const struct csv_columns *columns, size_t j);

/* ---- Writing ----------------------------------------------------------------------------------- */

/* Each appends one field, preceded by a comma unless it is the FIRST of its row; the caller ends rows with a
 * newline. 0, -ENOMEM, or -EFBIG at the text's limit; then nothing was appended. */

/* Any bytes, quoted when they must be. What no CSV can hold (NUL, and what is not UTF-8) becomes U+FFFD. */
int csv_append_field(struct text *text, bool first, const char *bytes, size_t length);
/* With the fewest digits that read back the same; what is not finite is left empty. */
int csv_append_double(struct text *text, bool first, double value);
int csv_append_int64(struct text *text, bool first, int64_t value);

#endif
