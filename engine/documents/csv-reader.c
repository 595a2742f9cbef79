/* Rows: each is brought into the buffer whole, then split there; quotes are taken off in place. */
#include "engine/documents/csv-reader.h"

#include "engine/documents/shown-value.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- The buffer -------------------------------------------------------------------------------- */

/* Reads more into the buffer; what is in it may move. 1, 0 at the end of the input, negative on failure. */
static int fill(struct csv_reader *reader, struct failure *failure) {
    if (reader->ended)
        return 0;
    if (reader->begin > 0) {
        memmove(reader->buffer, reader->buffer + reader->begin, reader->end - reader->begin);
        reader->end -= reader->begin;
        reader->begin = 0;
    }
    if (reader->end == reader->capacity) {
        size_t capacity = 2 * reader->capacity;
        reader->capacity = capacity < CSV_ROW_MOST ? capacity : CSV_ROW_MOST;
        reader->buffer = xrealloc(reader->buffer, reader->capacity);
    }
    size_t room = reader->capacity - reader->end;
    int64_t got = reader->read(reader->context, reader->buffer + reader->end, room);
    if (got < 0 || (uint64_t)got > room) {
        int code = got < 0 ? (int)got : -EIO;
        enum failure_kind kind = code == -EISDIR ? FAILURE_INPUT : FAILURE_SYSTEM;
        return failure_set_kind(failure, kind, code, "cannot read '%s': %s", reader->name, strerror(-code));
    }
    reader->end += (size_t)got;
    reader->ended = got == 0;
    return got > 0;
}

/* Reads until the row at reader->begin is whole: up to the first newline that is not within quotes, or to the
 * end of the input. Its length with its newline in *RET; CSV_ROW_MOST for one that may be longer. 1, 0 when
 * there is no row, negative on failure. */
static int find_row(struct csv_reader *reader, size_t *ret, struct failure *failure) {
    size_t scanned = 0;
    bool quoted = false;
    for (;;) {
        const char *row = reader->buffer + reader->begin;
        size_t available = reader->end - reader->begin;
        while (scanned < available) {
            const char *newline = memchr(row + scanned, '\n', available - scanned);
            const char *stop = newline ? newline + 1 : row + available, *quote = row + scanned;
            for (; (quote = memchr(quote, '"', (size_t)(stop - quote))); quote++)
                quoted = !quoted;
            scanned = (size_t)(stop - row);
            if (newline && !quoted) {
                *ret = scanned;
                return 1;
            }
        }
        int r = available < CSV_ROW_MOST ? fill(reader, failure) : 0;
        if (r < 0)
            return r;
        if (r == 0) {
            *ret = available;
            return available > 0;
        }
    }
}

/* ---- One row ----------------------------------------------------------------------------------- */

struct row {
    struct csv_reader *reader;
    struct failure *failure;
    char *at, *end;         /* what is left of it, without its newline */
    const char *line_start; /* of the line that AT is in */
    size_t line;            /* of AT */
    size_t field_line;      /* where the field begins that is being read */
    bool is_plain;          /* ASCII, no quotes, no control characters but tabs */
    bool is_cut;            /* it is longer than the buffer may be */
};

static size_t column_of(const struct row *row) {
    return (size_t)(row->at - row->line_start) + 1;
}

static int refuse_here(const struct row *row, const char *sentence) {
    return failure_input(row->failure, row->reader->name, row->line, column_of(row), "%s", sentence);
}

static int refuse_field(const struct row *row, const struct csv_field *field, const char *sentence) {
    return failure_input(row->failure, row->reader->name, row->field_line, field->column, "%s", sentence);
}

static int refuse_length(const struct row *row) {
    return failure_input(row->failure, row->reader->name, row->reader->line, 0, "a row of more than %d bytes",
                         CSV_ROW_MOST);
}

static int check_length(const struct row *row, const struct csv_field *field) {
    return field->length > CSV_FIELD_MOST
               ? failure_input(row->failure, row->reader->name, row->field_line, field->column,
                               "a field of more than %d bytes", CSV_FIELD_MOST)
               : 0;
}

/* Moves on to TO, counting lines. */
static void pass(struct row *row, char *to) {
    for (char *newline = row->at; (newline = memchr(newline, '\n', (size_t)(to - newline))); newline++) {
        row->line++;
        row->line_start = newline + 1;
    }
    row->at = to;
}

/* Finds out whether the row is plain, and refuses NULs and what is not UTF-8. */
static int check_bytes(struct row *row) {
    bool odd = false;
    for (const char *at = row->at; at < row->end; at++) {
        unsigned char byte = (unsigned char)*at;
        odd |= ((byte < ' ') & (byte != '\t')) | (byte > '~') | (byte == '"');
    }
    row->is_plain = !odd;
    if (row->is_plain || row->is_cut)
        return 0;
    size_t length = (size_t)(row->end - row->at), invalid = text_invalid_utf8(row->at, length);
    char *nul = memchr(row->at, '\0', invalid);
    if (!nul && invalid == length)
        return 0;
    pass(row, nul ? nul : row->at + invalid);
    return refuse_here(row,
                       nul ? "a NUL byte, expected text" : "a byte that is not UTF-8, expected UTF-8 text");
}

static const char lone_return[] = "a carriage return without a newline behind it, expected LF or CRLF";

static int read_unquoted(struct row *row, struct csv_field *field) {
    char *comma = memchr(row->at, ',', (size_t)(row->end - row->at)), *end = comma ? comma : row->end;
    field->bytes = row->at;
    field->length = (size_t)(end - row->at);
    for (; !row->is_plain && row->at < end; row->at++)
        if (*row->at == '"')
            return refuse_here(
                row, "a quote inside a field, expected the whole field in quotes and this one doubled");
        else if (*row->at == '\r')
            return refuse_here(row, lone_return);
    row->at = end;
    return check_length(row, field);
}

static int read_quoted(struct row *row, struct csv_field *field) {
    char *to = ++row->at; /* the content's end: behind row->at by the quotes that were doubled */
    field->bytes = to;
    field->quoted = true;
    for (;;) {
        char *from = row->at, *quote = memchr(from, '"', (size_t)(row->end - from));
        char *stop = quote ? quote : row->end;
        pass(row, stop);
        memmove(to, from, (size_t)(stop - from));
        to += stop - from;
        field->length = (size_t)(to - field->bytes);
        int r = check_length(row, field);
        if (r < 0)
            return r;
        if (!quote)
            return row->is_cut ? refuse_length(row)
                               : refuse_field(row, field,
                                              "a quote that is not closed, expected another before the end "
                                              "of the file");
        row->at++;
        if (row->at == row->end || *row->at == ',')
            return 0;
        if (*row->at == '\r')
            return refuse_here(row, lone_return);
        if (*row->at != '"')
            return refuse_here(row, "text after a closing quote, expected a comma or the end of the row");
        *to++ = '"';
        row->at++;
    }
}

/* The place for one field more. The header may have as many as there is room for. */
static int add_field(const struct row *row, struct csv_field **ret) {
    struct csv_reader *reader = row->reader;
    if (reader->column_count > 0 && reader->field_count == reader->column_count)
        return failure_input(row->failure, reader->name, row->line, column_of(row),
                             "a row of more than %zu field%s, as many as the header has",
                             reader->column_count, reader->column_count == 1 ? "" : "s");
    if (reader->field_count == CSV_COLUMNS_MOST)
        return failure_input(row->failure, reader->name, row->line, column_of(row), "more than %d columns",
                             CSV_COLUMNS_MOST);
    if (reader->field_count == reader->field_capacity) {
        reader->field_capacity = reader->field_capacity > 0 ? 2 * reader->field_capacity : 16;
        reader->fields = xrealloc(reader->fields, reader->field_capacity * sizeof *reader->fields);
    }
    *ret = &reader->fields[reader->field_count++];
    **ret = (struct csv_field){.column = (uint32_t)column_of(row)};
    return 0;
}

static int refuse_short(const struct row *row) {
    const struct csv_reader *reader = row->reader;
    size_t count = reader->field_count;
    if (count == 1 && reader->fields[0].length == 0 && !reader->fields[0].quoted)
        return failure_input(row->failure, reader->name, reader->line, 1,
                             "an empty line, expected %zu fields", reader->column_count);
    return failure_input(row->failure, reader->name, row->field_line, reader->fields[count - 1].column,
                         "a row that ends with field %zu, expected %zu fields", count, reader->column_count);
}

static int split(struct row *row) {
    struct csv_reader *reader = row->reader;
    int r = check_bytes(row);
    if (r < 0)
        return r;
    for (reader->field_count = 0;; row->at++) {
        struct csv_field *field = NULL;
        r = add_field(row, &field);
        if (r < 0)
            return r;
        row->field_line = row->line;
        r = row->at < row->end && *row->at == '"' ? read_quoted(row, field) : read_unquoted(row, field);
        if (r < 0)
            return r;
        if (row->at == row->end)
            break;
    }
    if (row->is_cut)
        return refuse_length(row);
    return reader->field_count < reader->column_count ? refuse_short(row) : 0;
}

/* 1 for a row in reader->fields, 0 at the end of the input. */
static int read_row(struct csv_reader *reader, struct failure *failure) {
    size_t length;
    int r = find_row(reader, &length, failure);
    if (r <= 0)
        return r;
    char *start = reader->buffer + reader->begin, *end = start + length;
    if (end[-1] == '\n')
        end--;
    if (end > start && end < start + length && end[-1] == '\r')
        end--;
    struct row row = {reader, failure, start, end, start, reader->line, reader->line, false, false};
    row.is_cut = length == CSV_ROW_MOST && end == start + length;
    r = split(&row);
    if (r < 0)
        return r;
    reader->row_line = reader->line;
    reader->line = row.line + 1;
    reader->begin += length;
    return 1;
}

int csv_next(struct csv_reader *reader, const struct csv_field **ret_fields, struct failure *failure) {
    reader->started = true;
    if (reader->broken)
        return failure_set(failure, -EINVAL, "'%s' was given up after an earlier failure", reader->name);
    int r = read_row(reader, failure);
    reader->broken = r < 0;
    if (r == 1)
        *ret_fields = reader->fields;
    return r;
}

/* ---- Opening ----------------------------------------------------------------------------------- */

static int skip_byte_order_mark(struct csv_reader *reader, struct failure *failure) {
    int r = 1;
    while (r == 1 && reader->end - reader->begin < 3)
        r = fill(reader, failure);
    if (r == 1 && memcmp(reader->buffer + reader->begin, "\xef\xbb\xbf", 3) == 0)
        reader->begin += 3;
    return r < 0 ? r : 0;
}

static int read_header(struct csv_reader *reader, struct failure *failure) {
    int r = skip_byte_order_mark(reader, failure);
    if (r < 0)
        return r;
    r = read_row(reader, failure);
    if (r < 0)
        return r;
    if (r == 0)
        return failure_input(failure, reader->name, 1, 1, "nothing, expected a header row");
    for (size_t i = 0; i < reader->field_count; i++) {
        const struct csv_field *field = &reader->fields[i];
        if (field->length == 0)
            return csv_failure(reader, i, failure, "column %zu has no name, expected one", i + 1);
        if (text_set_add(&reader->names, field->bytes, field->length) < i)
            return csv_failure(reader, i, failure, "two columns are called %s",
                               shown_value(field->bytes, field->length).text);
    }
    reader->column_count = reader->field_count;
    return 0;
}

int csv_reader_open(const char *name, csv_read_function read, void *context, size_t capacity,
                    struct csv_reader **ret, struct failure *failure) {
    cleanup(csv_reader_cleanup) struct csv_reader *reader = xcalloc(1, sizeof *reader);
    reader->read = read;
    reader->context = context;
    reader->line = 1;
    reader->name = xstrdup(name);
    reader->capacity = capacity;
    reader->buffer = xmalloc(capacity);
    int r = read_header(reader, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(reader);
    return 0;
}
