/* One input of a table: an archive, the folder of a run, or a CSV file. Used by this room alone. */
#ifndef ASSAY_TABLE_INPUT_H
#define ASSAY_TABLE_INPUT_H

#include "archive-format/datapackage.h"
#include "archive-format/reader.h"
#include "engine/documents/csv.h"
#include "engine/table/table.h"

#include <sys/types.h>

struct input {
    struct table_input about;
    struct column *columns; /* texts owned */
    size_t column_count;
    struct archive_model suggestion;
    struct archive_answer answer;
    bool suggests, has_answer;
    uint64_t journal_bytes; /* of an archive; 0: none */
    uint64_t *row_hashes;   /* as duplicate_inputs_hash_rows() fills them; owned */
    size_t row_count;
    bool is_regular; /* a file that its device and inode identify */
    dev_t device;
    ino_t inode;

    /* A file with the bytes read from a pipe or standard input, which cannot be opened twice, from
     * `pipe_start` on. -1: the input is a file. */
    int pipe;
    off_t pipe_start;
    bool is_open;
    struct archive_reader *archive, *opened_by_caller; /* the second: table_options.archive, or NULL */
    struct archive_member *opened;
    struct csv_reader *csv;
};

/* Fills all but the members for reading. On failure INPUT is to be cleared. */
int input_inspect(struct input *input, const char *path, const struct table_options *options,
                  struct failure *failure);
const struct column *input_find(const struct input *input, const char *name);
/* As table_find() does. */
const struct column *input_find_column(const struct column *columns, size_t count, const char *name);
/* Its rows as input->csv, before the first. */
int input_open(struct input *input, const struct table_options *options, struct failure *failure);
void input_close(struct input *input);
/* What stopped the csv_reader: the archive member's own reason where it has one. Returns CODE. */
int input_failure(const struct input *input, int code, struct failure *failure);
void input_clear(struct input *input);

#endif
