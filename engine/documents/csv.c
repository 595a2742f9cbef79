#include "engine/documents/csv.h"

#include "engine/documents/csv-reader.h"
#include "engine/documents/shown-value.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- Opening ----------------------------------------------------------------------------------- */

struct csv_source {
    int descriptor; /* -1 when the bytes are in memory */
    bool owned;     /* close the descriptor */
    const char *bytes;
    size_t left;
};

static int64_t read_source(void *context, char *buffer, size_t size) {
    struct csv_source *source = context;
    if (source->descriptor < 0) {
        size_t step = size < source->left ? size : source->left;
        if (step > 0)
            memcpy(buffer, source->bytes, step);
        source->bytes += step;
        source->left -= step;
        return (int64_t)step;
    }
    ssize_t got;
    do
        got = read(source->descriptor, buffer, size);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

static void free_source(struct csv_source *source) {
    if (source && source->owned)
        close(source->descriptor);
    free(source);
}

/* Takes over what SOURCE has. */
static int open_source(const char *name, struct csv_source source, struct csv_reader **ret,
                       struct failure *failure) {
    struct csv_source *kept = xmalloc(sizeof *kept);
    *kept = source;
    int r = csv_reader_open(name, read_source, kept, CSV_READER_BUFFER, ret, failure);
    if (r < 0)
        free_source(kept);
    else
        (*ret)->source = kept;
    return r;
}

int csv_open(const char *path, struct csv_reader **ret, struct failure *failure) {
    if (strcmp(path, "-") == 0)
        return open_source("standard input", (struct csv_source){.descriptor = STDIN_FILENO}, ret, failure);
    int descriptor = open(path, O_RDONLY | O_CLOEXEC);
    if (descriptor < 0) {
        int code = -errno;
        enum failure_kind kind = code == -ENOENT || code == -ENOTDIR ? FAILURE_INPUT : FAILURE_SYSTEM;
        return failure_set_kind(failure, kind, code, "cannot open '%s': %s", path, strerror(-code));
    }
    return open_source(path, (struct csv_source){descriptor, .owned = true}, ret, failure);
}

int csv_open_memory(const char *name, const char *bytes, size_t length, struct csv_reader **ret,
                    struct failure *failure) {
    return open_source(name, (struct csv_source){-1, false, bytes, length}, ret, failure);
}

int csv_open_function(const char *name, csv_read_function read_more, void *context, struct csv_reader **ret,
                      struct failure *failure) {
    return csv_reader_open(name, read_more, context, CSV_READER_BUFFER, ret, failure);
}

void csv_close(struct csv_reader *reader) {
    if (!reader)
        return;
    text_set_clear(&reader->names);
    free(reader->fields);
    free(reader->buffer);
    free_source(reader->source);
    free(reader->name);
    free(reader);
}

void csv_reader_cleanup(struct csv_reader **reader) {
    csv_close(*reader);
}

/* ---- Columns ----------------------------------------------------------------------------------- */

size_t csv_column_count(const struct csv_reader *reader) {
    return reader->column_count;
}

const char *csv_column_name(const struct csv_reader *reader, size_t column) {
    return reader->names.texts[column];
}

const char *csv_file(const struct csv_reader *reader) {
    return reader->name;
}

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

/* ---- Fields of the last row -------------------------------------------------------------------- */

size_t csv_line(const struct csv_reader *reader) {
    return reader->row_line;
}

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

int csv_number(const struct csv_reader *reader, size_t column, double *ret, struct failure *failure) {
    const struct csv_field *field = &reader->fields[column];
    const char *name = csv_column_name(reader, column);
    if (number_parse_double(field->bytes, field->length, ret))
        return 0;
    if (field->length == 0)
        return csv_failure(reader, column, failure, "column '%s' is empty, expected a number", name);
    return csv_failure(reader, column, failure, "column '%s' is %s, expected a number", name,
                       shown_value(field->bytes, field->length).text);
}
