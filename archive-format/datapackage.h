/*
 * datapackage.json: what every column of every table of an archive means (FORMAT.md, "datapackage.json").
 * A Data Package 2.0 whose fields carry two members of our own, `unit` and `role`.
 * Source: https://datapackage.org/standard/ (Data Package, Data Resource, Table Schema).
 */
#ifndef ASSAY_ARCHIVE_FORMAT_DATAPACKAGE_H
#define ASSAY_ARCHIVE_FORMAT_DATAPACKAGE_H

#include "engine/documents/column.h"
#include "engine/documents/document.h"
#include "engine/foundation/failure.h"

#include <stddef.h>

struct archive_table {
    const char *path; /* relative to datapackage.json, such as "results/results.csv" */
    const char *description;
    const struct column *columns;
    size_t column_count;
};

/* Writes PATH (atomically) for a data package called NAME; nothing without tables, since the standard wants
 * one at least. A column name that is empty or given twice in a
 * table is -EINVAL. Units that unit_find knows also get their QUDT URI. */
int archive_write_datapackage(const char *path, const char *name, const struct archive_table *tables,
                              size_t count, struct failure *failure);

struct archive_columns {
    struct column *items; /* texts owned; in the order of the table's columns */
    size_t count;
};

struct archive_reader;

/* The columns of the table at TABLE_PATH in datapackage.json of ARCHIVE; *RET is the caller's to clear. A
 * table that the package does not describe is FAILURE_INPUT, with the tables that it does; a damaged package
 * is FAILURE_VERIFICATION. */
int archive_table_columns(struct archive_reader *archive, const char *table_path, struct archive_columns *ret,
                          struct failure *failure);
/* The same of a datapackage.json that was read. */
int archive_package_columns(const struct document *document, const char *table_path,
                            struct archive_columns *ret, struct failure *failure);
/* Table number INDEX, from 0: its path, the document's, and its columns, of which those of times are
 * COLUMN_TIME. 1; 0: there are not so many; a package that is not one is FAILURE_VERIFICATION. */
int archive_package_table(const struct document *document, size_t index, const char **ret_path,
                          struct archive_columns *ret, struct failure *failure);
void archive_columns_clear(struct archive_columns *columns);
/* The column called NAME, or NULL. */
const struct column *archive_columns_find(const struct archive_columns *columns, const char *name);

#endif
