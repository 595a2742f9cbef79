/* What the row reader and the fast columns share. Internal to this room. */
#ifndef ASSAY_DOCUMENTS_CSV_READER_H
#define ASSAY_DOCUMENTS_CSV_READER_H

#include "engine/documents/csv.h"

#include <stdbool.h>

/* The buffer's first size; it grows for rows that are longer, up to CSV_ROW_MOST. */
enum { CSV_READER_BUFFER = 256 << 10 };

struct csv_reader {
    char *name;
    csv_read_function read;
    void *context;
    struct csv_source *source; /* what csv_open and csv_open_memory read from; NULL for others */
    char *allocation, *buffer; /* buffer is inside the allocation, padding on both sides (csv-scan.h) */
    size_t capacity;           /* of the buffer, padding not counted */
    size_t begin, end;         /* bytes that no row has taken yet */
    bool ended;                /* the input has no more */
    bool broken;               /* a failure was reported: no row can be read any more */
    bool started;              /* a row was asked for */
    uint64_t fills;            /* how often the buffer changed */
    uint64_t line;             /* the line of buffer[begin] */
    uint64_t row_line;         /* where the last row began */
    struct csv_field *fields;  /* of the last row */
    size_t *starts;            /* where their bytes begin, from the row's first byte */
    size_t field_capacity, field_count;
    char **names;
    size_t column_count;
};

/* Opens with a buffer of CAPACITY bytes, for tests of what happens at its end. */
int csv_reader_open(const char *name, csv_read_function read, void *context, size_t capacity,
                    struct csv_reader **ret, struct failure *failure);
/* Reads more into the buffer; what is in it may move. 1, 0 at the end of the input, negative on failure. */
int csv_reader_fill(struct csv_reader *reader, struct failure *failure);
void csv_reader_cleanup(struct csv_reader **reader);

#endif
