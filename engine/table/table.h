/*
 * Measurements in memory, column by column. A table is read from archives (results/results.csv or the table
 * that their experiment's model is of), folders of runs, and CSV files as R, pandas and spreadsheets write
 * them, one after the other. All inputs have the columns that are used, in units of the same dimension:
 * numbers are converted to the unit of the first input that has one. Only columns that are asked for are
 * kept: 8 bytes a number, 4 a category.
 *
 *     table_open(paths) -> columns, suggestion ;  table_load(selection) -> numbers, categories ;  table_free
 *
 * What is read of an archive is checked while it is read, by its size, CRC-32 and SHA-256: a damaged table
 * fails table_load(). Members that are not read are not checked ('assay archive verify' checks them). A pipe
 * is read once, as it comes, and has no hash.
 */
#ifndef ASSAY_TABLE_TABLE_H
#define ASSAY_TABLE_TABLE_H

#include "archive-format/datapackage.h"
#include "archive-format/layout.h"
#include "archive-format/run.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct archive_reader;

enum {
    TABLE_INPUTS_MAX = 4096,
    TABLE_LEVELS_MAX = 1 << 24, /* different texts of one column */
};
#define TABLE_ROWS_MAX ((size_t)1 << 31)
/* The column that a table of several inputs has besides: the base name of each row's file. */
#define TABLE_FILE_COLUMN "file"

struct table_input {
    char *path, *name; /* as given; its base name */
    bool archive;      /* a zip, or the folder of a run */
    char *member;      /* of an archive: its table that is read */
    char *run_id, *experiment;
    char sha256[HASH_HEX_SIZE]; /* of the file; of a CSV "" until it was read, and of a pipe */
    uint64_t rows;              /* that were read */
};

/* A column of numbers in memory. */
struct table_numbers {
    char *name;     /* a column, or an expression over columns: "1/(m*n*k)" */
    char *unit;     /* UCUM; NULL: not known, or of an expression */
    double *values; /* NaN: missing */
};

struct table_category {
    char *name;
    uint32_t *codes; /* of the levels; the empty text is a level like any other */
    /* In natural order: dahu-2 before dahu-10. Of a column that is all numbers these are values, each in one
     * spelling: 1e+05 and 100000 are the level "100000", 007 and 7 "7". Of others they are texts. */
    char **levels;
    size_t level_count;
};

struct table_options {
    char separator;             /* 0: found in the first lines */
    const char *const *columns; /* names of the columns of files without a header; NULL: they have one */
    size_t column_count;
    const char *member; /* of archives: the table to read instead of that of their model; or NULL */
    bool hash;          /* CSV files too */
    struct archive_reader *archive; /* of the only input, opened by the caller, who closes it after the table;
                                       or NULL */
    bool predictions;               /* take archives of predictions, too */
};

struct table_selection {
    const char *const *numbers, *const *categories; /* columns; numbers may be expressions */
    size_t number_count, category_count;
    /* Only rows for which this expression is true, which may compare columns with texts; NULL: all. */
    const char *where;
    bool with_flagged;                              /* rows of archives that a gate flagged too */
    void (*progress)(void *context, uint64_t rows); /* now and then; or NULL */
    void *progress_context;
};

struct table_private;

struct table {
    struct column *columns; /* that the first input has; texts owned */
    size_t column_count;
    struct table_input *inputs;
    size_t input_count;
    const struct archive_model *suggestion; /* the model that an experiment suggests for this table: of the
                                               first input with one; or NULL */
    const struct archive_answer
        *answer;        /* the first input's answer: the column by which settings are ranked; or NULL */
    bool ranks_nothing; /* an experiment of an input has "none" as its answer */
    /* After table_load: */
    size_t rows;
    uint64_t rows_flagged, rows_not_matching; /* left out: by gates, by the condition */
    bool
        ignores_flags; /* every row was flagged, which leaves nothing to choose by: all are used, and noted */
    struct table_numbers *numbers; /* of the selection, in its order */
    size_t number_count;
    struct table_category *categories;
    size_t category_count;
    char **notes; /* what the user should know: inputs left out, units converted */
    size_t note_count;
    struct table_private *private;
};

/* Opens every input: reads its columns, units and suggestion. A file that is given twice, and earlier
 * parts of a run whose later part is given too, are left out with a note; archives of one run that were
 * resumed independently are refused. "-" is standard input. */
int table_open(const char *const *paths, size_t count, const struct table_options *options,
               struct table **ret, struct failure *failure);
/* Reads all rows, once. */
int table_load(struct table *table, const struct table_selection *selection, struct failure *failure);
/* Moves the numbers and categories of SELECTION to the front, in its order; the others follow unchanged.
 * False: one was not loaded. */
bool table_arrange(struct table *table, const struct table_selection *selection);
void table_free(struct table *table);     /* NULL is fine */
void table_cleanup(struct table **table); /* for cleanup() */

/* The column called NAME, or else the only one that is so called with or without its unit: "duration" and
 * "duration (us)" are both 'duration' in us, and 'duration_us'. NULL: there is none. */
const struct column *table_find(const struct table *table, const char *name);
/* The name of the column that table_find() finds; else NAME itself. */
const char *table_column_name(const struct table *table, const char *name);
/* FAILURE_INPUT: no WHAT ("response", "group") column is called NAME; with the nearest one or all that there
 * are. Returns -EINVAL. */
int table_no_column(const struct table *table, const char *what, const char *name, struct failure *failure);
/* Where ROW (0 to rows - 1) stands: its input, and the line on which it begins. False where that is not
 * known: in tables with a great many rows of more than one line. */
bool table_place(const struct table *table, size_t row, const struct table_input **ret_input,
                 uint64_t *ret_line);

#endif
