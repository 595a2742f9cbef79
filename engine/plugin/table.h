/*
 * The table that a fit reads: archives (their results/results.csv, or another table) and plain CSV files, one
 * after the other, as blocks of columns in bounded memory. An archive is known by its first bytes, whatever
 * its name. Every input must have the columns that are used, in units of the same dimension: numbers are
 * given in the unit of the first input that tells one, those of others are converted with exact factors.
 * Other columns may differ.
 *
 *     table_stream_open(paths) ; table_begin(columns) ; while (table_next(&block) > 0) ... ; table_begin
 * again for a second pass ; table_close
 *
 * Archives are verified whole before their first row is used. Plain CSV files are hashed as their bytes pass.
 */
#ifndef ASSAY_PLUGIN_TABLE_H
#define ASSAY_PLUGIN_TABLE_H

#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    TABLE_INPUTS_MAX = 4096,
    TABLE_LABELS_MAX = 8, /* label columns of one pass */
};

#define TABLE_ARCHIVE_MEMBER "results/results.csv"

struct table;

struct table_column {
    const char *name;
    const char *unit; /* UCUM; NULL where it is not known (plain CSV) */
    const char *type; /* "integer", "number", ...; NULL where it is not known */
    bool response;    /* its role in the archive */
};

/* What an archive's experiment suggests (run.json, "model"); members are NULL or 0 where it says nothing. */
struct table_suggestion {
    const char *method, *response, *terms;
    const char *const *sizes, *const *by, *const *set; /* set: parameters of the method, NAME=VALUE */
    size_t size_count, by_count, set_count;
};

struct table_input {
    const char *path; /* as given */
    const char *name; /* base name, for provenance */
    bool archive;
    const char *member;         /* of an archive: its table that is read */
    const char *run_id;         /* of an archive; or NULL */
    const char *experiment;     /* its name, of an archive; or NULL */
    char sha256[HASH_HEX_SIZE]; /* of the file; of a plain CSV "" until it was read to its end with hashing on
                                 */
    uint64_t rows;              /* read in the last whole pass */
};

struct table_block {
    size_t rows;
    const double *const *numbers;  /* empty fields are NaN */
    const uint32_t *const *labels; /* codes from 0 in order of first appearance, the same in all inputs */
};

/* Opens every input once, to see its columns. A file that is given twice, and earlier parts of a run whose
 * later part is given too, are left out, and noted; archives of one run that were resumed apart from each
 * other are refused. HASH: plain CSV files are hashed while they are read first. "-" is standard input, which
 * can be read once only. */
int table_stream_open(const char *const *paths, size_t count, bool hash, struct table **ret,
                      struct failure *failure);
/* The same with another table of the archives, MEMBER, which is borrowed; NULL: the one that the model of
 * their experiment is of, results.csv unless it says another. Of any other what they suggest is not told. */
int table_open_member(const char *const *paths, size_t count, const char *member, bool hash,
                      struct table **ret, struct failure *failure);
void table_close(struct table *table);
void table_stream_cleanup(struct table **table); /* for cleanup() */

size_t table_input_count(const struct table *table);
const struct table_input *table_input(const struct table *table, size_t i);
/* The columns of the first input. The unit of one that it does not tell is that of the first that does. */
size_t table_column_count(const struct table *table);
const struct table_column *table_column(const struct table *table, size_t i);
/* The column called NAME, or FAILURE_INPUT with the nearest one or all that there are. WHAT says what it was
 * to be: "response", "group". */
int table_stream_find(const struct table *table, const char *what, const char *name, size_t *ret,
                      struct failure *failure);
/* Of the first input that is an archive with a suggestion; NULL if there is none. */
const struct table_suggestion *table_suggestion(const struct table *table);

/* Starts a pass over the columns NUMBERS and LABELS (names; the pointers stay in use until the next pass).
 * LABELS must be the same in every pass over a table. */
int table_begin(struct table *table, const char *const *numbers, size_t number_count,
                const char *const *labels, size_t label_count, struct failure *failure);
/* What the user should know: the sentence that follows PREVIOUS, the first for NULL; NULL after the last.
 * After table_stream_open, which inputs are left out; after table_begin also of the pass's units: where
 * inputs are converted, or have no unit beside others that do. */
const char *table_note_after(const struct table *table, const char *previous);
/* 1 and the next block (valid until the next call), 0 at the end, or negative. */
int table_next(struct table *table, struct table_block *ret, struct failure *failure);

/* Where ROW of a pass (0, 1, ... over all inputs) stands: its input and the line of it where the row begins.
 * False where it is not known: of a row that was not read yet, and in tables with a great many rows of more
 * than one line (row-places.h). */
bool table_stream_place(const struct table *table, uint64_t row, const struct table_input **ret_input,
                        uint64_t *ret_line);

/* The text of a code of the J-th label column, and how many there are so far. */
const char *table_label(const struct table *table, size_t j, uint32_t code);
size_t table_label_count(const struct table *table, size_t j);

#endif
