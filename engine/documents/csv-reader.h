/* What reading by rows and by columns share. Internal to this room. */
#ifndef ASSAY_DOCUMENTS_CSV_READER_H
#define ASSAY_DOCUMENTS_CSV_READER_H

#include "engine/documents/csv.h"
#include "engine/documents/unit.h"
#include "engine/foundation/text-set.h"

#include <stdbool.h>

enum {
    CSV_READER_BUFFER = 256 << 10, /* the buffer's first size; it grows for longer rows, up to CSV_ROW_MAX */
    CSV_STRICT = -1,               /* for a separator: RFC 4180 and nothing else */
};

struct csv_reader {
    char *name;
    csv_read_function read;
    void *context;
    struct csv_source *source; /* what csv_open and csv_open_memory read from; NULL for others */
    char *buffer;
    size_t capacity;
    size_t begin, end;        /* bytes that no row has taken yet */
    bool is_plain;            /* those bytes are ASCII without quotes and control characters but tabs */
    bool ended;               /* the input has no more */
    bool broken;              /* a failure was reported: no row can be read any more */
    bool started;             /* a row was asked for */
    size_t line;              /* of buffer[begin] */
    size_t row_line;          /* where the last row began */
    struct csv_field *fields; /* of the last row */
    size_t field_capacity, field_count;
    struct text_set names;     /* of the columns */
    const struct unit **units; /* of the columns, or NULL: none has one */
    size_t column_count;       /* 0 until the header is read */
    bool is_foreign;           /* as csv_open_foreign() says */
    char separator;            /* '\0' until it is found */
    char *comment;             /* the last line of comment before the first row; or NULL */
};

/* Opens with a buffer of CAPACITY bytes, for tests of what happens at its end. SEPARATOR is CSV_STRICT, or
 * what csv_open_foreign() takes. */
int csv_reader_open(const char *name, csv_read_function read, void *context, size_t capacity, int separator,
                    struct csv_reader **ret, struct failure *failure);
/* The same; with COLUMNS the input has no header and these are its COUNT columns. */
int csv_reader_open_named(const char *name, csv_read_function read, void *context, size_t capacity,
                          int separator, const char *const *columns, size_t count, struct csv_reader **ret,
                          struct failure *failure);

#endif
