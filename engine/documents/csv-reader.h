/* What reading by rows and by columns share. Internal to this room. */
#ifndef ASSAY_DOCUMENTS_CSV_READER_H
#define ASSAY_DOCUMENTS_CSV_READER_H

#include "engine/documents/csv.h"
#include "engine/foundation/text-set.h"

#include <stdbool.h>

/* The buffer's first size; it grows for rows that are longer, up to CSV_ROW_MOST. */
enum { CSV_READER_BUFFER = 256 << 10 };

struct csv_reader {
    char *name;
    csv_read_function read;
    void *context;
    struct csv_source *source; /* what csv_open and csv_open_memory read from; NULL for others */
    char *buffer;
    size_t capacity;
    size_t begin, end;        /* bytes that no row has taken yet */
    bool ended;               /* the input has no more */
    bool broken;              /* a failure was reported: no row can be read any more */
    bool started;             /* a row was asked for */
    size_t line;              /* of buffer[begin] */
    size_t row_line;          /* where the last row began */
    struct csv_field *fields; /* of the last row */
    size_t field_capacity, field_count;
    struct text_set names; /* of the columns */
    size_t column_count;   /* 0 until the header is read */
};

/* Opens with a buffer of CAPACITY bytes, for tests of what happens at its end. */
int csv_reader_open(const char *name, csv_read_function read, void *context, size_t capacity,
                    struct csv_reader **ret, struct failure *failure);
void csv_reader_cleanup(struct csv_reader **reader);

#endif
