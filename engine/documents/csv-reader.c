/* The reader of rows. A row is read whole into the buffer and split there; quotes are removed in place. */
#include "engine/documents/csv-reader.h"

#include "engine/documents/shown-value.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

/* ---- The buffer */

/* ASCII without quotes, and without control characters but tabs and newlines. */
static bool is_plain(const char *bytes, size_t length) {
    unsigned char odd = 0;
    for (size_t i = 0; i < length; i++) { /* without a branch, and in bytes: many at once */
        unsigned char byte = (unsigned char)bytes[i], from_blank = (unsigned char)(byte - ' ');
        odd |= (unsigned char)(((from_blank > '~' - ' ') & (byte != '\t') & (byte != '\n')) | (byte == '"'));
    }
    return !odd;
}

/* Reads more into the buffer, whose content may move. 1, 0 at the end of the input, or negative with
 * FAILURE. */
static int fill_buffer(struct csv_reader *reader, struct failure *failure) {
    if (reader->ended)
        return 0;
    if (reader->begin > 0) {
        reader->end -= reader->begin;
        memmove(reader->buffer, reader->buffer + reader->begin, reader->end);
        reader->begin = 0;
        reader->is_plain = is_plain(reader->buffer, reader->end);
    }
    if (reader->end == reader->capacity) {
        size_t capacity = 2 * reader->capacity;
        reader->capacity = capacity < CSV_ROW_MAX ? capacity : CSV_ROW_MAX;
        reader->buffer = xrealloc(reader->buffer, reader->capacity);
    }
    size_t room = reader->capacity - reader->end;
    int64_t got = reader->read(reader->context, reader->buffer + reader->end, room);
    if (got < 0 || (uint64_t)got > room) {
        int code = got < 0 ? (int)got : -EIO;
        enum failure_kind kind = code == -EISDIR || code == -EBADMSG ? FAILURE_INPUT : FAILURE_SYSTEM;
        return failure_set_kind(failure, kind, code, "cannot read '%s': %s", reader->name,
                                code == -EBADMSG ? "damaged or incomplete gzip data" : strerror(-code));
    }
    reader->is_plain &= is_plain(reader->buffer + reader->end, (size_t)got);
    reader->end += (size_t)got;
    reader->ended = got == 0;
    return got > 0;
}

/* Reads until the next COUNT rows are in the buffer, each up to a newline outside quotes, or the input
 * ends. *RET is their length; CSV_ROW_MAX if they may be longer. 1, 0 if there is no row, or negative
 * with FAILURE. */
static int find_rows(struct csv_reader *reader, size_t count, size_t *ret, struct failure *failure) {
    size_t scanned = 0;
    bool quoted = false;
    for (;;) {
        const char *row = reader->buffer + reader->begin;
        size_t available = reader->end - reader->begin;
        while (scanned < available) {
            const char *newline = memchr(row + scanned, '\n', available - scanned);
            const char *stop = newline ? newline + 1 : row + available, *quote = row + scanned;
            for (; !reader->is_plain && (quote = memchr(quote, '"', (size_t)(stop - quote))); quote++)
                quoted = !quoted;
            scanned = (size_t)(stop - row);
            if (newline && !quoted && --count == 0) {
                *ret = scanned;
                return 1;
            }
        }
        int r = available < CSV_ROW_MAX ? fill_buffer(reader, failure) : 0;
        if (r < 0)
            return r;
        if (r == 0) {
            *ret = available;
            return available > 0;
        }
    }
}

/* ---- One row */

struct row {
    struct csv_reader *reader;
    struct failure *failure;
    char *at, *end;         /* the rest of the row, without its newline */
    const char *line_start; /* of the line that AT is in */
    size_t line;            /* of AT */
    size_t field_line;      /* where the field begins that is being read */
    bool is_plain;          /* ASCII, no quotes, no control characters but tabs */
    bool is_cut;            /* it is longer than the buffer may be */
    int error;              /* the first error, after which nothing is read; 0: none */
};

static bool is_blank(const struct csv_reader *reader, char byte) {
    return byte == ' ' || (byte == '\t' && reader->separator != '\t');
}

/* Moves on to what is not blank; only tables of other programs have blanks around their fields. */
static void skip_blanks(struct row *row) {
    while (row->reader->is_foreign && row->at < row->end && is_blank(row->reader, *row->at))
        row->at++;
}

static size_t column_of(const struct row *row) {
    return (size_t)(row->at - row->line_start) + 1;
}

/* Sets the error of ROW, if it is the first, and skips the rest of the row. */
__attribute__((format(printf, 4, 5))) static void refuse(struct row *row, size_t line, size_t column,
                                                         const char *format, ...) {
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    if (row->error == 0)
        row->error = failure_input(row->failure, row->reader->name, line, column, "%s", sentence);
    row->at = row->end;
}

static void refuse_here(struct row *row, const char *sentence) {
    refuse(row, row->line, column_of(row), "%s", sentence);
}

static void check_length(struct row *row, const struct csv_field *field) {
    if (field->length > CSV_FIELD_MAX)
        refuse(row, row->field_line, field->column, "a field of more than %d bytes", CSV_FIELD_MAX);
}

/* Moves on to TO, counting lines. */
static void pass(struct row *row, char *to) {
    for (char *newline = row->at; (newline = memchr(newline, '\n', (size_t)(to - newline))); newline++) {
        row->line++;
        row->line_start = newline + 1;
    }
    row->at = to;
}

/* Refuses a row with a NUL or with bytes that are not UTF-8. */
static void check_bytes(struct row *row) {
    size_t length = (size_t)(row->end - row->at);
    if (row->is_plain || row->is_cut)
        return;
    size_t invalid = text_invalid_utf8(row->at, length);
    char *nul = memchr(row->at, '\0', invalid);
    if (!nul && invalid == length)
        return;
    pass(row, nul ? nul : row->at + invalid);
    refuse_here(row, nul ? "a NUL byte, expected text" : "a byte that is not UTF-8, expected UTF-8 text");
}

static const char lone_return[] = "a carriage return without a newline behind it, expected LF or CRLF";

/* Reads a field without quotes, up to the next separator. An error goes to row->error. */
static void read_unquoted(struct row *row, struct csv_field *field) {
    const struct csv_reader *reader = row->reader;
    char *end = row->at;
    while (end < row->end && *end != reader->separator && !(reader->separator == ' ' && *end == '\t'))
        end++;
    field->bytes = row->at;
    field->length = (size_t)(end - row->at);
    while (reader->is_foreign && field->length > 0 && is_blank(reader, field->bytes[field->length - 1]))
        field->length--;
    for (; !row->is_plain && row->at < end; row->at++)
        if (*row->at == '"' || *row->at == '\r') {
            refuse_here(row, *row->at == '\r' ? lone_return
                                              : "a quote inside a field, expected the whole field in quotes "
                                                "and this one doubled");
            return;
        }
    row->at = end;
    check_length(row, field);
}

/* Reads a field in quotes, removing them in place. An error goes to row->error. */
static void read_quoted(struct row *row, struct csv_field *field) {
    char *to = ++row->at; /* the content's end: behind row->at by the quotes that were doubled */
    field->bytes = to;
    field->quoted = true;
    for (bool closed = false; !closed && row->error == 0;) {
        char *from = row->at, *quote = memchr(from, '"', (size_t)(row->end - from));
        char *stop = quote ? quote : row->end;
        pass(row, stop);
        memmove(to, from, (size_t)(stop - from));
        to += stop - from;
        field->length = (size_t)(to - field->bytes);
        check_length(row, field);
        if (!quote && !row->is_cut)
            refuse(row, row->field_line, field->column,
                   "a quote that is not closed, expected another before the end of the file");
        row->at += row->at < row->end;
        closed = row->at == row->end || *row->at != '"';
        if (!closed)
            *to++ = *row->at++;
    }
    if (row->reader->separator == ' ' && row->at < row->end && is_blank(row->reader, *row->at))
        return;
    skip_blanks(row);
    if (row->at == row->end || *row->at == row->reader->separator)
        return;
    refuse_here(row, *row->at == '\r' ? lone_return
                     : row->reader->separator == ','
                         ? "text after a closing quote, expected a comma or the end of the row"
                         : "text after a closing quote, expected a separator or the end of the row");
}

/* Adds a field to the row; an error if it has more than the header. */
static struct csv_field *add_field(struct row *row) {
    struct csv_reader *reader = row->reader;
    size_t column = column_of(row);
    if (reader->column_count > 0 && reader->field_count == reader->column_count)
        refuse(row, row->line, column, "a row of more than %zu field%s, as many as the header has",
               reader->column_count, reader->column_count == 1 ? "" : "s");
    else if (reader->field_count == CSV_COLUMNS_MAX)
        refuse(row, row->line, column, "more than %d columns", CSV_COLUMNS_MAX);
    if (reader->field_count == reader->field_capacity) {
        reader->field_capacity = reader->field_capacity > 0 ? 2 * reader->field_capacity : 16;
        reader->fields = xrealloc(reader->fields, reader->field_capacity * sizeof *reader->fields);
    }
    struct csv_field *field = &reader->fields[reader->field_count++];
    *field = (struct csv_field){.column = (uint32_t)column};
    return field;
}

static void refuse_short(struct row *row) {
    const struct csv_reader *reader = row->reader;
    size_t count = reader->field_count;
    if (count == 1 && reader->fields[0].length == 0 && !reader->fields[0].quoted)
        refuse(row, reader->line, 1, "an empty line, expected %zu fields", reader->column_count);
    else
        refuse(row, row->field_line, reader->fields[count - 1].column,
               "a row that ends with field %zu, expected %zu fields", count, reader->column_count);
}

/* Whether the row has all its fields and only separators follow, as spreadsheets write them. */
static bool is_filled_up(const struct row *row) {
    const struct csv_reader *reader = row->reader;
    if (!reader->is_foreign || reader->column_count == 0 || reader->field_count < reader->column_count)
        return false;
    for (const char *at = row->at; at < row->end; at++)
        if (*at != reader->separator && !is_blank(reader, *at))
            return false;
    return true;
}

/* Splits a row of the usual form, plain fields as many as the header has. false: the row has another form;
 * split() reads it. */
static bool split_plain(struct csv_reader *reader, char *start, const char *end) {
    size_t count = reader->column_count;
    if (!reader->is_plain || count == 0 || reader->separator == ' ' || reader->field_capacity < count ||
        end - start > CSV_FIELD_MAX)
        return false;
    char *at = start;
    for (size_t i = 0; i < count; i++) {
        char *stop = memchr(at, reader->separator, (size_t)(end - at));
        size_t length = (size_t)((stop ? stop : end) - at);
        if (!stop != (i + 1 == count) ||
            (reader->is_foreign && length > 0 && (is_blank(reader, *at) || is_blank(reader, at[length - 1]))))
            return false;
        reader->fields[i] = (struct csv_field){at, length, (uint32_t)(at - start) + 1, false};
        at += length + (stop != NULL);
    }
    reader->field_count = count;
    return true;
}

/* Splits any row into reader->fields; an error goes to row->error. */
static void split(struct row *row) {
    struct csv_reader *reader = row->reader;
    check_bytes(row);
    for (reader->field_count = 0; row->error == 0 && !is_filled_up(row); row->at++) {
        skip_blanks(row);
        struct csv_field *field = add_field(row);
        row->field_line = row->line;
        if (row->at < row->end && *row->at == '"')
            read_quoted(row, field);
        else
            read_unquoted(row, field);
        if (row->at == row->end)
            break;
    }
    if (row->is_cut)
        refuse(row, reader->line, 0, "a row of more than %d bytes", CSV_ROW_MAX);
    else if (row->error == 0 && reader->field_count < reader->column_count)
        refuse_short(row);
}

/* ---- What other programs write besides rows */

/* Skips lines that begin with '#'. The last one is kept, as it may be the header. 1, 0 at the end of the
 * input, or negative. */
static int skip_comments(struct csv_reader *reader, struct failure *failure) {
    for (bool inside = false;;) {
        int r = reader->begin < reader->end ? 1 : fill_buffer(reader, failure);
        if (r <= 0)
            return r;
        const char *at = reader->buffer + reader->begin;
        if (!inside && *at != '#')
            return 0;
        const char *newline = memchr(at, '\n', reader->end - reader->begin);
        size_t length = newline ? (size_t)(newline - at) : reader->end - reader->begin;
        size_t before = inside && reader->comment ? strlen(reader->comment) : 0;
        if (before + length < CSV_FIELD_MAX) { /* no header is longer */
            reader->comment = xrealloc(reader->comment, before + length + 1);
            memcpy(reader->comment + before, at, length);
            reader->comment[before + length] = '\0';
        }
        reader->begin = newline ? (size_t)(newline + 1 - reader->buffer) : reader->end;
        reader->line += newline != NULL;
        inside = !newline;
    }
}

/* Finds the separator of a table: the one most frequent in the header outside quotes, preferring one that is
 * as frequent in the next row; blanks if there is none and both rows have gaps. */
static int find_separator(struct csv_reader *reader, struct failure *failure) {
    static const char separators[] = {',', ';', '\t'};
    size_t counts[2][sizeof separators] = {0}, gaps[2] = {0}, length, row = 0, best = 0, most = 0;
    int r = find_rows(reader, 2, &length, failure);
    if (r < 0)
        return r;
    bool quoted = false;
    char before = '\n';
    for (size_t i = 0; i < length && row < 2; i++) {
        char byte = reader->buffer[reader->begin + i];
        gaps[row] += !quoted && byte > ' ' && before == ' ';
        before = before == '\n' && byte == ' ' ? '\n' : byte; /* blanks before the first field are no gap */
        quoted ^= byte == '"';
        row += byte == '\n' && !quoted;
        for (size_t j = 0; !quoted && j < sizeof separators && row < 2; j++)
            counts[row][j] += byte == separators[j];
    }
    for (size_t j = 0; j < sizeof separators; j++) {
        size_t weight = counts[0][j] * (counts[0][j] == counts[1][j] ? CSV_ROW_MAX : 1);
        if (weight > most) {
            most = weight;
            best = j;
        }
    }
    reader->separator = most == 0 && gaps[0] > 0 && gaps[1] > 0 ? ' ' : separators[best];
    return 0;
}

static bool is_blank_line(const struct csv_reader *reader, const char *from, const char *end) {
    while (from < end && is_blank(reader, *from))
        from++;
    return from == end;
}

/* ---- Rows */

/* Reads the next row into reader->fields. 1, 0 at the end of the input, or negative with FAILURE. */
static int read_row(struct csv_reader *reader, struct failure *failure) {
    for (;;) {
        size_t length;
        bool preamble = reader->is_foreign && (reader->column_count == 0 || reader->separator == ' ');
        int r = preamble ? skip_comments(reader, failure) : 0;
        r = r < 0 ? r : find_rows(reader, 1, &length, failure);
        if (r <= 0)
            return r;
        char *start = reader->buffer + reader->begin, *end = start + length;
        if (end[-1] == '\n')
            end--;
        if (end > start && end < start + length && end[-1] == '\r')
            end--;
        if (reader->is_foreign && is_blank_line(reader, start, end)) {
            reader->begin += length;
            reader->line++;
            continue;
        }
        if (!reader->separator) {
            r = find_separator(reader, failure);
            if (r < 0)
                return r;
            continue; /* the buffer may have moved */
        }
        if (split_plain(reader, start, end)) {
            reader->row_line = reader->line++;
            reader->begin += length;
            return 1;
        }
        struct row row = {.reader = reader,
                          .failure = failure,
                          .at = start,
                          .end = end,
                          .line_start = start,
                          .line = reader->line,
                          .is_plain = reader->is_plain || is_plain(start, (size_t)(end - start)),
                          .is_cut = length == CSV_ROW_MAX && end == start + length};
        split(&row);
        if (row.error < 0)
            return row.error;
        reader->row_line = reader->line;
        reader->line = row.line + 1;
        reader->begin += length;
        return 1;
    }
}

/* The next row (csv.h). 1, 0 at the end, or negative with FAILURE; after a failure nothing more can be
 * read. */
int csv_next(struct csv_reader *reader, const struct csv_field **ret_fields, struct failure *failure) {
    reader->started = true;
    if (reader->broken)
        return failure_set(failure, -EINVAL, "'%s' cannot be read further after an earlier failure",
                           reader->name);
    int r = read_row(reader, failure);
    reader->broken = r < 0;
    if (r == 1)
        *ret_fields = reader->fields;
    return r;
}

/* ---- Opening */

static int skip_byte_order_mark(struct csv_reader *reader, struct failure *failure) {
    int r = 1;
    while (r == 1 && reader->end - reader->begin < 3)
        r = fill_buffer(reader, failure);
    if (r == 1 && memcmp(reader->buffer + reader->begin, "\xef\xbb\xbf", 3) == 0)
        reader->begin += 3;
    return r < 0 ? r : 0;
}

/* Adds the name of COLUMN, without a unit in brackets: "duration [ms]" is 'duration' in ms, unless an earlier
 * column has that name. A suffix such as _ms stays in the name. false: an earlier column has the name. */
static bool add_column(struct csv_reader *reader, size_t column, const char *name, size_t length) {
    size_t stem = length;
    uint32_t known;
    enum unit_place place = UNIT_PLACE_NONE;
    if (reader->is_foreign)
        place = unit_read_name(name, length, &stem, &reader->units[column]);
    if (!reader->units[column] || place == UNIT_PLACE_SUFFIX ||
        text_set_find(&reader->names, name, stem, &known))
        stem = length;
    return text_set_add(&reader->names, name, stem) == column;
}

/* Names the columns of a table without a header. -EINVAL: two have one name. */
static int set_names(struct csv_reader *reader, const char *const *columns, size_t count,
                     struct failure *failure) {
    int r = skip_byte_order_mark(reader, failure);
    r = r < 0 ? r : skip_comments(reader, failure);
    reader->units = xcalloc(count + 1, sizeof *reader->units);
    for (size_t i = 0; r >= 0 && i < count; i++)
        if (!add_column(reader, i, columns[i], strlen(columns[i])))
            return failure_input(failure, NULL, 0, 0, "two columns are called '%.64s'", columns[i]);
    reader->column_count = count;
    return r < 0 ? r : 0;
}

/* The last row, which has no doubled quotes, is read again. */
static void unread_row(struct csv_reader *reader) {
    const struct csv_field *first = reader->fields;
    reader->begin = (size_t)(first->bytes - reader->buffer) - first->quoted - (first->column - 1);
    reader->line = reader->row_line;
}

static void drop_empty_end(struct csv_reader *reader) {
    while (reader->field_count > 1 && reader->fields[reader->field_count - 1].length == 0)
        reader->field_count--;
}

/* Splits LINE into as many names as the last row has fields. Blanks separate names only if they are GAP or
 * more (a tab counts as two), and not before a bracket. false: the number of names differs. */
static bool split_names(struct csv_reader *reader, char *line, size_t gap) {
    size_t found = 0;
    for (char *at = line + strspn(line, " \t"); *at && found < reader->field_count; at += strspn(at, " \t")) {
        char *end = at, *next = at;
        for (bool is_end = false; *next && !is_end;) {
            size_t blanks = strspn(next, " \t"), width = blanks + (memchr(next, '\t', blanks) != NULL);
            is_end = reader->separator == ' ' ? width >= gap && !strchr("([", next[blanks])
                                              : *next == reader->separator;
            next += is_end || blanks == 0 ? 1 : blanks;
            end = is_end || blanks > 0 ? end : next;
        }
        reader->fields[found++] = (struct csv_field){at, (size_t)(end - at), 1, false};
        at = next;
        if (found == reader->field_count)
            return !*at;
    }
    return false;
}

/* Finds a header that is no row of the table: a comment before a first row of numbers, or names separated by
 * blanks that have blanks inside ("Size Latency (us)"). If there is none, the last row read stays the header.
 * Negative with FAILURE. */
static int find_header_line(struct csv_reader *reader, struct failure *failure) {
    bool is_data = reader->comment != NULL, is_quoted = false;
    double value;
    for (size_t i = 0; i < reader->field_count; i++) {
        is_data = is_data && number_parse_double(reader->fields[i].bytes, reader->fields[i].length, &value);
        is_quoted |= reader->fields[i].quoted;
    }
    if (!is_data && (reader->separator != ' ' || is_quoted))
        return 0;
    int r = 1;
    size_t begin = reader->begin;
    unread_row(reader);
    if (!is_data) {
        char *line = xstrndup(reader->buffer + reader->begin, begin - reader->begin);
        reader->begin = begin;
        reader->line++;
        r = read_row(reader, failure);
        if (r > 0)
            unread_row(reader);
        drop_empty_end(reader);
        free(reader->comment); /* there may be one between the header and the first row */
        reader->comment = line;
    }
    if (r <= 0)
        return r;
    reader->comment[strcspn(reader->comment, "\r\n")] = '\0';
    if (split_names(reader, reader->comment + is_data, 1) ||
        split_names(reader, reader->comment + is_data, 2) /* behind the '#' */)
        return 0;
    if (!is_data)
        return failure_input(
            failure, reader->name, reader->line - 1, 1,
            "'%.200s' is not a name for each of %zu columns; expected names without blanks, or "
            "two blanks between names",
            reader->comment, reader->field_count);
    return read_row(reader, failure);
}

/* Reads the header: names and units of all columns. -EINVAL: a column has no name, or that of another. */
static int read_header(struct csv_reader *reader, struct failure *failure) {
    int r = skip_byte_order_mark(reader, failure);
    if (r < 0)
        return r;
    r = read_row(reader, failure);
    if (r < 0)
        return r;
    if (r == 0)
        return failure_input(failure, reader->name, 1, 1, "the table is empty; expected a header row");
    if (reader->is_foreign) {
        drop_empty_end(reader);
        r = find_header_line(reader, failure);
        if (r < 0)
            return r;
    }
    reader->units = xcalloc(reader->field_count + 1, sizeof *reader->units);
    for (size_t i = 0; i < reader->field_count; i++) {
        const struct csv_field *field = &reader->fields[i];
        if (field->length == 0 && (i > 0 || !reader->is_foreign))
            return csv_failure(reader, i, failure, "column %zu has no name, expected one", i + 1);
        if (!add_column(reader, i, field->bytes, field->length))
            return csv_failure(reader, i, failure, "two columns are called %s",
                               shown_value(field->bytes, field->length).text);
    }
    reader->column_count = reader->field_count;
    return 0;
}

/* Opens a table whose bytes READ gives; with COLUMNS for one without a header (csv-reader.h). */
int csv_reader_open_named(const char *name, csv_read_function read, void *context, size_t capacity,
                          int separator, const char *const *columns, size_t count, struct csv_reader **ret,
                          struct failure *failure) {
    cleanup(csv_reader_cleanup) struct csv_reader *reader = xmalloc(sizeof *reader);
    *reader = (struct csv_reader){.name = xstrdup(name),
                                  .read = read,
                                  .context = context,
                                  .buffer = xmalloc(capacity),
                                  .capacity = capacity,
                                  .is_plain = true,
                                  .line = 1,
                                  .is_foreign = separator != CSV_STRICT,
                                  .separator = separator == CSV_STRICT ? ',' : (char)separator};
    int r = columns ? set_names(reader, columns, count, failure) : read_header(reader, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(reader);
    return 0;
}

int csv_reader_open(const char *name, csv_read_function read, void *context, size_t capacity, int separator,
                    struct csv_reader **ret, struct failure *failure) {
    return csv_reader_open_named(name, read, context, capacity, separator, NULL, 0, ret, failure);
}
