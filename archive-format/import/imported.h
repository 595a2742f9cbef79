/* Writes an archive of the kind "import" from what peanut.c or csv.c read. Private to this folder. */
#ifndef ASSAY_ARCHIVE_FORMAT_IMPORT_IMPORTED_H
#define ASSAY_ARCHIVE_FORMAT_IMPORT_IMPORTED_H

#include "archive-format/datapackage.h"
#include "archive-format/import/import.h"
#include "archive-format/run.h"
#include "engine/documents/csv.h"

#include <stdbool.h>
#include <stdint.h>

/* What local times mean. */
struct import_zone {
    enum { ZONE_UNKNOWN, ZONE_FIXED, ZONE_FRANCE } kind;
    int64_t offset_ns; /* ZONE_FIXED: of local time, less UTC */
};
/* A time with its offset, seconds since 1970, or a local time such as "2020-05-13 18:37:13.444". */
bool import_time(const struct import_zone *zone, const char *text, int64_t *ret_ns);

struct imported {
    const struct import_request *request;
    struct import_result *result;
    struct import_zone zone;
    char *folder; /* that is sealed */
    struct archive_run run;
    const char *summary;          /* of what it is, in a sentence; borrowed */
    struct archive_table *tables; /* owned, with their columns; the texts in them are borrowed or static */
    size_t table_count;
};

/* Makes the folder; RET->run has what every import has. */
int imported_begin(const struct import_request *request, const char *format, struct import_result *result,
                   struct imported *ret, struct failure *failure);
void imported_clear(struct imported *imported);
void imported_note(struct imported *imported, const char *format, ...) __attribute__((format(printf, 2, 3)));
/* PATH in the folder; the caller frees. */
char *imported_path(const struct imported *imported, const char *path);
/* Writes TEXT as the file PATH, and describes it by COUNT COLUMNS, whose texts are static. */
int imported_add_table(struct imported *imported, const char *path, const char *description,
                       const struct column *columns, size_t count, const struct text *text,
                       struct failure *failure);
/* Appends the line of names. */
void imported_append_header(struct text *to, const struct column *columns, size_t count);
/* Writes run.json and datapackage.json, and seals. */
int imported_seal(struct imported *imported, struct failure *failure);

/* ---- results.csv and design.csv */

enum import_use {
    IMPORT_LEFT_OUT,
    IMPORT_FACTOR,
    IMPORT_RESPONSE,
    IMPORT_COVARIATE,
    IMPORT_NODE,
    IMPORT_CORE,
    IMPORT_START,
    IMPORT_REPETITION,
};
struct import_column {
    char *name, *unit; /* owned; unit may be NULL */
    enum import_use use;
    enum column_type type; /* of what is not a number, COLUMN_STRING; found when the rows are read */
};
/* A file of the folder, as its user knows it; HEADER: names of its columns, or NULL where it has them. */
struct import_file {
    char *path, *name;
    const char *const *header;
    size_t header_count;
    char separator;
};
struct import_table {
    struct import_file *files; /* with the same columns */
    size_t file_count;
    struct import_column *columns;
    size_t column_count;
    const char *node, *core; /* of a table without such a column */
    const char *order_by; /* a column of numbers in whose order rows were measured; NULL: start, or the order
                             of rows */
    const struct import_file *design; /* rows of the design, or NULL; .header has the names of factors */
    bool only_whole_rows;             /* rows with an empty cell are left out */
    const char *path, *description;   /* of a further table; NULL: results.csv */
    /* The value of a column `cpu`, or NULL; of PLACE NULL there is no such column. */
    const char *(*place)(void *context, const char *node, const char *core);
    void *context;
};

int import_open(const struct import_file *file, struct csv_reader **ret, struct failure *failure);
/* Writes the table; of results.csv also design.csv, and the counts, nodes and times of the run. */
int imported_add_results(struct imported *imported, struct import_table *table, struct failure *failure);
void import_table_clear(struct import_table *table);
struct import_column *import_table_find(const struct import_table *table, const char *name);

#endif
