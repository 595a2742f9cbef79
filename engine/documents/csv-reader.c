#include "engine/documents/csv-reader.h"

#include "engine/documents/csv-scan.h"
#include "engine/documents/shown-value.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- The buffer -------------------------------------------------------------------------------- */

static bool set_capacity(struct csv_reader *reader, size_t capacity) {
    char *allocation = calloc(1, capacity + 2 * CSV_SCAN_PADDING);
    if (!allocation)
        return false;
    if (reader->end > reader->begin)
        memcpy(allocation + CSV_SCAN_PADDING, reader->buffer + reader->begin, reader->end - reader->begin);
    free(reader->allocation);
    reader->allocation = allocation;
    reader->buffer = allocation + CSV_SCAN_PADDING;
    reader->capacity = capacity;
    reader->end -= reader->begin;
    reader->begin = 0;
    return true;
}

int csv_reader_fill(struct csv_reader *reader, struct failure *failure) {
    if (reader->ended)
        return 0;
    if (reader->begin > 0) {
        memmove(reader->buffer, reader->buffer + reader->begin, reader->end - reader->begin);
        reader->end -= reader->begin;
        reader->begin = 0;
    }
    if (reader->end == reader->capacity) {
        if (reader->capacity >= CSV_ROW_MOST)
            return failure_input(failure, reader->name, reader->line, 0, "a row of more than %d bytes",
                                 CSV_ROW_MOST);
        size_t capacity = 2 * reader->capacity;
        if (!set_capacity(reader, capacity < CSV_ROW_MOST ? capacity : CSV_ROW_MOST))
            return failure_memory(failure);
    }
    reader->fills++;
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

/* ---- One row ----------------------------------------------------------------------------------- */

/* A row as it is read. Offsets count from its first byte, for the buffer may move under it. */
struct row {
    struct csv_reader *reader;
    struct failure *failure;
    size_t at;         /* the next byte */
    size_t line_start; /* where the line begins that AT is in */
    uint64_t newlines; /* before AT, within quotes */
    /* The field being read. */
    size_t field_at, content;
    uint64_t field_line;
    uint32_t column;
};

enum ending { ENDING_COMMA = 1, ENDING_ROW };

static const char *bytes_at(const struct row *row, size_t offset) {
    return row->reader->buffer + row->reader->begin + offset;
}

static size_t available(const struct row *row) {
    return row->reader->end - row->reader->begin;
}

static int refuse_field(const struct row *row, const char *sentence) {
    return failure_input(row->failure, row->reader->name, row->field_line, row->column, "%s", sentence);
}

static int refuse_here(const struct row *row, const char *sentence) {
    return failure_input(row->failure, row->reader->name, row->reader->line + row->newlines,
                         row->at - row->line_start + 1, "%s", sentence);
}

/* Makes sure that there is a byte at OFFSET. 1, 0 when the input ends before it, negative on failure. */
static int need(struct row *row, size_t offset) {
    while (available(row) <= offset) {
        int r = csv_reader_fill(row->reader, row->failure);
        if (r <= 0)
            return r;
    }
    return 1;
}

/* The place of byte OFFSET of the field's content, which may have had quotes doubled and newlines in it. */
static int refuse_content(const struct row *row, const char *bytes, size_t offset, bool quoted,
                          const char *sentence) {
    uint64_t line = row->field_line;
    size_t column = row->column + quoted;
    for (size_t i = 0; i < offset; i++) {
        column += 1 + (quoted && bytes[i] == '"');
        if (bytes[i] == '\n') {
            line++;
            column = 1;
        }
    }
    return failure_input(row->failure, row->reader->name, line, column, "%s", sentence);
}

/* Notes the field, its content being LENGTH bytes at row->content. */
static int end_field(struct row *row, size_t length, bool quoted) {
    struct csv_reader *reader = row->reader;
    const char *bytes = bytes_at(row, row->content);
    if (length > CSV_FIELD_MOST)
        return failure_input(row->failure, reader->name, row->field_line, row->column,
                             "a field of more than %d bytes", CSV_FIELD_MOST);
    const char *nul = length ? memchr(bytes, '\0', length) : NULL;
    size_t invalid = text_invalid_utf8(bytes, length);
    if (nul && (size_t)(nul - bytes) < invalid)
        return refuse_content(row, bytes, (size_t)(nul - bytes), quoted, "a NUL byte, expected text");
    if (invalid < length)
        return refuse_content(row, bytes, invalid, quoted, "a byte that is not UTF-8, expected UTF-8 text");
    reader->starts[reader->field_count] = row->content;
    reader->fields[reader->field_count++] =
        (struct csv_field){.length = length, .column = row->column, .quoted = quoted};
    return 0;
}

/* What ends a field at row->at: steps over it. 0 when what stands there ends none. */
static int take_ending(struct row *row) {
    int r = need(row, row->at);
    if (r < 0)
        return r;
    if (r == 0)
        return ENDING_ROW;
    char byte = *bytes_at(row, row->at);
    if (byte == ',') {
        row->at++;
        return ENDING_COMMA;
    }
    if (byte == '\r') {
        r = need(row, row->at + 1);
        if (r < 0)
            return r;
        if (r == 0 || *bytes_at(row, row->at + 1) != '\n')
            return refuse_here(row, "a carriage return without a newline behind it, expected LF or CRLF");
        row->at++;
        byte = '\n';
    }
    if (byte != '\n')
        return 0;
    row->at++;
    row->newlines++;
    return ENDING_ROW;
}

/* A field can be refused for its length before its end was seen. */
static int check_length(const struct row *row, size_t length) {
    return length > CSV_FIELD_MOST
               ? failure_input(row->failure, row->reader->name, row->field_line, row->column,
                               "a field of more than %d bytes", CSV_FIELD_MOST)
               : 0;
}

static int read_unquoted(struct row *row) {
    row->content = row->at;
    for (;;) {
        const char *from = bytes_at(row, row->at), *end = row->reader->buffer + row->reader->end;
        row->at += (size_t)(csv_scan_next(from, end) - from);
        size_t length = row->at - row->content;
        if (row->at == available(row)) {
            int r = check_length(row, length);
            if (r == 0)
                r = need(row, row->at);
            if (r < 0)
                return r;
            if (r == 1)
                continue;
        } else if (*bytes_at(row, row->at) == '"') {
            return refuse_here(
                row, "a quote inside a field, expected the whole field in quotes and this one doubled");
        }
        int ending = take_ending(row);
        if (ending < 0)
            return ending;
        if (ending > 0) {
            int r = end_field(row, length, false);
            return r < 0 ? r : ending;
        }
        row->at++; /* not ASCII, or a control character: content, judged at the end */
    }
}

/* Moves LENGTH bytes of content down to offset TO, counting the newlines among them. */
static void move_content(struct row *row, size_t to, size_t length) {
    char *from = row->reader->buffer + row->reader->begin + row->at;
    for (const char *at = from; (at = memchr(at, '\n', (size_t)(from + length - at))); at++) {
        row->newlines++;
        row->line_start = row->at + (size_t)(at - from) + 1;
    }
    if (to != row->at)
        memmove(row->reader->buffer + row->reader->begin + to, from, length);
    row->at += length;
}

static int read_quoted(struct row *row) {
    row->content = ++row->at;
    size_t to = row->content; /* the content's end: behind row->at by the quotes that were doubled */
    for (;;) {
        size_t left = available(row) - row->at;
        const char *from = bytes_at(row, row->at), *quote = left ? memchr(from, '"', left) : NULL;
        size_t length = quote ? (size_t)(quote - from) : left;
        move_content(row, to, length);
        to += length;
        int r = check_length(row, to - row->content);
        if (r == 0)
            r = need(row, row->at);
        if (r < 0)
            return r;
        if (r == 0)
            return refuse_field(row,
                                "a quote that is not closed, expected another before the end of the file");
        if (!quote)
            continue;
        row->at++;
        int ending = take_ending(row);
        if (ending < 0)
            return ending;
        if (ending > 0) {
            /* take_ending counted the row's own newline, which is not this field's. */
            r = end_field(row, to - row->content, true);
            return r < 0 ? r : ending;
        }
        if (*bytes_at(row, row->at) != '"')
            return refuse_here(row, "text after a closing quote, expected a comma or the end of the row");
        row->reader->buffer[row->reader->begin + to++] = '"';
        row->at++;
    }
}

static int read_field(struct row *row) {
    row->field_at = row->at;
    row->field_line = row->reader->line + row->newlines;
    row->column = (uint32_t)(row->at - row->line_start + 1);
    int r = need(row, row->at);
    if (r < 0)
        return r;
    return r == 1 && *bytes_at(row, row->at) == '"' ? read_quoted(row) : read_unquoted(row);
}

static int reserve_fields(struct csv_reader *reader, size_t count, struct failure *failure) {
    size_t field_capacity = reader->field_capacity, start_capacity = reader->field_capacity;
    if (list_reserve(&reader->starts, &start_capacity, count, sizeof *reader->starts, CSV_COLUMNS_MOST) < 0 ||
        list_reserve(&reader->fields, &field_capacity, count, sizeof *reader->fields, CSV_COLUMNS_MOST) < 0)
        return failure_memory(failure);
    reader->field_capacity = field_capacity;
    return 0;
}

/* Refuses a field beyond the last column. The header may have as many as there is room for. */
static int check_field_count(const struct row *row) {
    const struct csv_reader *reader = row->reader;
    uint64_t line = reader->line + row->newlines;
    size_t column = row->at - row->line_start + 1;
    if (reader->column_count && reader->field_count == reader->column_count)
        return failure_input(row->failure, reader->name, line, column,
                             "a row of more than %zu field%s, as many as the header has",
                             reader->column_count, reader->column_count == 1 ? "" : "s");
    if (reader->field_count == CSV_COLUMNS_MOST)
        return failure_input(row->failure, reader->name, line, column, "more than %d columns",
                             CSV_COLUMNS_MOST);
    return 0;
}

static int refuse_short(const struct row *row) {
    const struct csv_reader *reader = row->reader;
    size_t count = reader->field_count;
    if (count == 1 && reader->fields[0].length == 0 && !reader->fields[0].quoted)
        return failure_input(row->failure, reader->name, reader->line, 1,
                             "an empty line, expected %zu fields", reader->column_count);
    const struct csv_field *last = &reader->fields[count - 1];
    return failure_input(row->failure, reader->name, row->field_line, last->column,
                         "a row that ends with field %zu, expected %zu fields", count, reader->column_count);
}

/* 1 for a row in reader->fields, 0 at the end of the input. */
static int read_row(struct csv_reader *reader, struct failure *failure) {
    struct row row = {.reader = reader, .failure = failure};
    int r = need(&row, 0);
    if (r <= 0)
        return r;
    reader->field_count = 0;
    for (r = ENDING_COMMA; r == ENDING_COMMA;) {
        r = check_field_count(&row);
        if (r == 0)
            r = reserve_fields(reader, reader->field_count + 1, failure);
        if (r == 0)
            r = read_field(&row);
    }
    if (r < 0)
        return r;
    if (reader->field_count < reader->column_count)
        return refuse_short(&row);
    for (size_t i = 0; i < reader->field_count; i++)
        reader->fields[i].bytes = bytes_at(&row, reader->starts[i]);
    reader->row_line = reader->line;
    reader->line += row.newlines;
    reader->begin += row.at;
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
    struct row row = {.reader = reader, .failure = failure};
    int r = need(&row, 2);
    if (r == 1 && memcmp(bytes_at(&row, 0), "\xef\xbb\xbf", 3) == 0)
        reader->begin += 3;
    return r < 0 ? r : 0;
}

static int compare_names(const void *a, const void *b) {
    const struct csv_field *const *left = a, *const *right = b;
    size_t shorter = (*left)->length < (*right)->length ? (*left)->length : (*right)->length;
    int order = memcmp((*left)->bytes, (*right)->bytes, shorter);
    if (order == 0 && (*left)->length != (*right)->length)
        order = (*left)->length < (*right)->length ? -1 : 1;
    /* Equal names stay in their order, so that the second is the one complained of. */
    return order ? order : *left < *right ? -1 : *left > *right;
}

static int check_header(const struct csv_reader *reader, struct failure *failure) {
    const struct csv_field *sorted[CSV_COLUMNS_MOST];
    for (size_t i = 0; i < reader->field_count; i++) {
        sorted[i] = &reader->fields[i];
        if (sorted[i]->length == 0)
            return csv_failure(reader, i, failure, "column %zu has no name, expected one", i + 1);
    }
    qsort(sorted, reader->field_count, sizeof *sorted, compare_names);
    for (size_t i = 1; i < reader->field_count; i++) {
        const struct csv_field *before = sorted[i - 1], *field = sorted[i];
        if (before->length == field->length && memcmp(before->bytes, field->bytes, field->length) == 0)
            return csv_failure(reader, (size_t)(field - reader->fields), failure, "two columns are called %s",
                               shown_value(field->bytes, field->length).text);
    }
    return 0;
}

static int read_header(struct csv_reader *reader, struct failure *failure) {
    int r = skip_byte_order_mark(reader, failure);
    if (r == 0)
        r = read_row(reader, failure);
    if (r < 0)
        return r;
    if (r == 0)
        return failure_input(failure, reader->name, 1, 1, "nothing, expected a header row");
    r = check_header(reader, failure);
    if (r < 0)
        return r;
    reader->names = calloc(reader->field_count, sizeof *reader->names);
    for (size_t i = 0; reader->names && i < reader->field_count; i++) {
        reader->names[i] = strndup(reader->fields[i].bytes, reader->fields[i].length);
        if (!reader->names[i])
            break;
        reader->column_count++;
    }
    return reader->column_count == reader->field_count ? 0 : failure_memory(failure);
}

int csv_reader_open(const char *name, csv_read_function read, void *context, size_t capacity,
                    struct csv_reader **ret, struct failure *failure) {
    cleanup(csv_reader_cleanup) struct csv_reader *reader = calloc(1, sizeof *reader);
    if (!reader)
        return failure_memory(failure);
    reader->read = read;
    reader->context = context;
    reader->line = 1;
    reader->name = strdup(name);
    if (!reader->name || !set_capacity(reader, capacity))
        return failure_memory(failure);
    int r = read_header(reader, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(reader);
    return 0;
}
