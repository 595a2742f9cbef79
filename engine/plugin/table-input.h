/*
 * One input of a table: an archive or a CSV file. What it is, which columns it has, and its rows as a
 * csv_reader. Used by table.c alone.
 */
#ifndef ASSAY_PLUGIN_TABLE_INPUT_H
#define ASSAY_PLUGIN_TABLE_INPUT_H

#include "archive-format/reader.h"
#include "engine/documents/csv.h"
#include "engine/plugin/table.h"

#include <sys/types.h>

#define TABLE_ARCHIVE_JOURNAL "journal.jsonl"

struct table_source {
    struct table_input input;     /* path, name and run_id are owned */
    struct table_column *columns; /* owned, names and units too */
    size_t column_count;
    struct table_suggestion suggestion; /* owned */
    bool suggests;
    uint64_t journal_bytes; /* of an archive; 0: it has none */
    char journal_sha256[HASH_HEX_SIZE];
    bool is_regular; /* a file that its device and inode identify */
    dev_t device;
    ino_t inode;

    /* While its rows are read. Standard input stays open from the first look to the end. */
    struct archive_reader *archive;
    struct archive_member *member;
    struct csv_reader *csv;
    int descriptor;
    struct hash *hash;
    bool is_standard_input, read_before;
};

/* Opens PATH, of an archive its MEMBER (NULL: the one that its model is of), fills everything but the reading
 * members, and closes it again unless it is standard input. On failure SOURCE is to be cleared. */
int table_source_look(struct table_source *source, const char *path, const char *member, bool hash,
                      struct failure *failure);
/* The column called NAME, or NULL. */
const struct table_column *table_source_find(const struct table_source *source, const char *name);
/* Opens the rows for a pass: source->csv. HASH: of a plain CSV, hash the bytes as they pass. */
int table_source_start(struct table_source *source, bool hash, struct failure *failure);
/* Ends a pass; COMPLETE: all rows were read, so that the hash is that of the whole file. */
void table_source_stop(struct table_source *source, bool complete);
/* What stopped the csv_reader: the archive member's own reason where it has one. Returns CODE. */
int table_source_failure(const struct table_source *source, int code, struct failure *failure);
void table_source_clear(struct table_source *source);

#endif
