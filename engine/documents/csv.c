#include "engine/documents/csv.h"

#include "engine/documents/csv-reader.h"
#include "engine/documents/shown-value.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <unistd.h>
#include <zlib.h>

/* ---- Opening */

struct csv_source {
    gzFile file; /* owned; reads what is not compressed, too. NULL when the bytes are in memory */
    const char *bytes;
    size_t left;
};

static int64_t read_file(struct csv_source *source, char *buffer, size_t size) {
    errno = EIO;
    int got = gzread(source->file, buffer, (unsigned)size), code = errno,
        status = Z_OK; /* at most CSV_ROW_MAX */
    if (got > 0)
        return got;
    gzerror(source->file, &status);
    return status == Z_OK ? 0 : status == Z_ERRNO ? -code : status == Z_MEM_ERROR ? -ENOMEM : -EBADMSG;
}

/* Reads from the file or the memory of a source; for csv_reader_open_named(). */
static int64_t read_source(void *context, char *buffer, size_t size) {
    struct csv_source *source = context;
    if (source->file)
        return read_file(source, buffer, size);
    size_t step = size < source->left ? size : source->left;
    if (step > 0)
        memcpy(buffer, source->bytes, step);
    source->bytes += step;
    source->left -= step;
    return (int64_t)step;
}

static void free_source(struct csv_source *source) {
    if (source && source->file)
        gzclose_r(source->file);
    free(source);
}

/* Opens a reader on SOURCE, which the reader owns from now on; on failure it is freed. */
static int open_source(const char *name, struct csv_source source, int separator, const char *const *columns,
                       size_t count, struct csv_reader **ret, struct failure *failure) {
    struct csv_source *kept = xmalloc(sizeof *kept);
    *kept = source;
    int r = csv_reader_open_named(name, read_source, kept, CSV_READER_BUFFER, separator, columns, count, ret,
                                  failure);
    if (r < 0)
        free_source(kept);
    else
        (*ret)->source = kept;
    return r;
}

/* Takes DESCRIPTOR over. */
static int open_descriptor(int descriptor, const char *name, int separator, const char *const *columns,
                           size_t count, struct csv_reader **ret, struct failure *failure) {
    gzFile file = gzdopen(descriptor, "r");
    if (!file)
        memory_exhausted(); /* zlib fails for no other reason here */
    return open_source(name, (struct csv_source){.file = file}, separator, columns, count, ret, failure);
}

int csv_open_descriptor(int descriptor, const char *name, int separator, const char *const *columns,
                        size_t count, struct csv_reader **ret, struct failure *failure) {
    return open_descriptor(fcntl(descriptor, F_DUPFD_CLOEXEC, 0), name, separator, columns, count, ret,
                           failure);
}

int csv_open_foreign(const char *path, int separator, struct csv_reader **ret, struct failure *failure) {
    int descriptor = file_open(path, FILE_OR_PIPE, failure);
    if (descriptor < 0)
        return descriptor;
    return open_descriptor(descriptor, strcmp(path, "-") == 0 ? "standard input" : path, separator, NULL, 0,
                           ret, failure);
}

int csv_open(const char *path, struct csv_reader **ret, struct failure *failure) {
    return csv_open_foreign(path, CSV_STRICT, ret, failure);
}

int csv_open_memory(const char *name, const char *bytes, size_t length, struct csv_reader **ret,
                    struct failure *failure) {
    return open_source(name, (struct csv_source){.bytes = bytes, .left = length}, CSV_STRICT, NULL, 0, ret,
                       failure);
}

int csv_open_function(const char *name, csv_read_function read_more, void *context, struct csv_reader **ret,
                      struct failure *failure) {
    return csv_reader_open(name, read_more, context, CSV_READER_BUFFER, CSV_STRICT, ret, failure);
}

void csv_close(struct csv_reader *reader) {
    if (!reader)
        return;
    text_set_clear(&reader->names);
    free(reader->units);
    free(reader->comment);
    free(reader->fields);
    free(reader->buffer);
    free_source(reader->source);
    free(reader->name);
    free(reader);
}

void csv_reader_cleanup(struct csv_reader **reader) {
    csv_close(*reader);
}

/* ---- Columns */

size_t csv_column_count(const struct csv_reader *reader) {
    return reader->column_count;
}

const char *csv_column_name(const struct csv_reader *reader, size_t column) {
    return reader->names.texts[column];
}

const char *csv_column_unit(const struct csv_reader *reader, size_t column) {
    return reader->units && reader->units[column] ? reader->units[column]->code : NULL;
}

const char *csv_file(const struct csv_reader *reader) {
    return reader->name;
}

/* The index of the column NAME into *RET. -EINVAL: there is none; the message suggests the nearest. */
int csv_find_column(const struct csv_reader *reader, const char *name, size_t *ret, struct failure *failure) {
    const struct text_set *names = &reader->names;
    uint32_t column;
    if (text_set_find(names, name, strlen(name), &column)) {
        *ret = column;
        return 0;
    }
    cleanup(text_clear) struct text listed;
    text_init(&listed, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < names->count; i++)
        if (text_printf(&listed, "%s%s", i ? ", " : "",
                        shown_value(names->texts[i], strlen(names->texts[i])).text) < 0) {
            text_append_string(&listed, ", ...");
            break;
        }
    const char *nearest = text_nearest(name, (const char *const *)names->texts, names->count);
    if (nearest)
        return failure_input(failure, reader->name, 0, 0,
                             "no column '%s'; did you mean '%s'? (the columns are %s)", name, nearest,
                             listed.bytes);
    return failure_input(failure, reader->name, 0, 0, "no column '%s', expected one of %s", name,
                         listed.bytes);
}

/* ---- Fields of the last row */

size_t csv_line(const struct csv_reader *reader) {
    return reader->row_line;
}

/* Fails with a sentence about the field COLUMN of the last row. Returns -EINVAL. */
int csv_failure(const struct csv_reader *reader, size_t column, struct failure *failure, const char *format,
                ...) {
    /* Newlines in quotes put a field on a later line than its row. */
    size_t line = reader->row_line;
    for (size_t i = 0; i < column; i++)
        for (size_t j = 0; j < reader->fields[i].length; j++)
            line += reader->fields[i].bytes[j] == '\n';
    char sentence[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(sentence, sizeof sentence, format, arguments);
    va_end(arguments);
    return failure_input(failure, reader->name, line, reader->fields[column].column, "%s", sentence);
}

bool csv_is_missing(const char *bytes, size_t length) {
    static const char *const words[] = {"", "NA", "N/A", "NaN", "null", "-", "None"};
    for (size_t i = 0; i < sizeof words / sizeof *words; i++)
        if (length == strlen(words[i]) && strncasecmp(bytes, words[i], length) == 0)
            return true;
    return false;
}

/* The number in the field COLUMN of the last row. -EINVAL with the place: it is no number. */
int csv_number(const struct csv_reader *reader, size_t column, double *ret, struct failure *failure) {
    const struct csv_field *field = &reader->fields[column];
    const char *name = csv_column_name(reader, column);
    if (number_parse_double(field->bytes, field->length, ret))
        return 0;
    if (field->length == 0)
        return csv_failure(reader, column, failure, "column '%s' is empty, expected a number", name);
    bool has_comma =
        memchr(field->bytes, ',', field->length) != NULL; /* as spreadsheets write it in Europe */
    return csv_failure(reader, column, failure, "column '%s' is %s, expected a number%s", name,
                       shown_value(field->bytes, field->length).text,
                       has_comma ? " with a decimal point" : "");
}
