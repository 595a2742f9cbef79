/* Whole files, durable files, folders. Every name in a message is quoted; every limit is stated. */
#ifndef ASSAY_FOUNDATION_FILE_H
#define ASSAY_FOUNDATION_FILE_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/*
 * Opens the inputs of commands. Regular files and /dev/null are accepted; folders and other devices are
 * refused at once. FILE_REGULAR refuses pipes. FILE_OR_PIPE reads a pipe (a FIFO, <(...) of a shell, "-" for
 * standard input) to its end, at most FILE_PIPE_BYTES_MAX bytes, and returns a descriptor of a file in memory
 * with the same content. It refuses a pipe without a writer for FILE_WRITER_WAIT_S seconds, and an empty
 * one; an empty standard input is an empty file.
 */
enum file_kinds { FILE_REGULAR, FILE_OR_PIPE };
enum { FILE_PIPE_BYTES_MAX = 256 << 20, FILE_WRITER_WAIT_S = 5 };
/* A descriptor to read PATH, or a negative errno. A missing file is FAILURE_INPUT. */
int file_open(const char *path, enum file_kinds kinds, struct failure *failure);

/* Appends the content of PATH to RET; a file larger than ret->limit is refused by name. Works for /proc and
 * /sys, whose files say that they are empty. */
int file_read(const char *path, struct text *ret, struct failure *failure);
int file_read_or_pipe(const char *path, struct text *ret, struct failure *failure);

/* Writes all of BYTES to DESCRIPTOR, over short writes and EINTR. 0 or a negative errno. */
int file_write_all(int descriptor, const void *bytes, size_t length);

/* PATH has exactly these bytes, or what it had before, whatever dies: written beside it, synced, renamed,
 * folder synced. MODE as for open(2). For files of our own: whatever else has the name, a link for one, is
 * replaced and not followed. */
int file_replace(const char *path, const void *bytes, size_t length, unsigned mode, struct failure *failure);

/*
 * A file that the user named to be written. What is a file, or is not there yet, has all of the bytes after
 * commit and is untouched before: written beside it and renamed. Links are followed first, so that a link
 * stays one. Anything else (a FIFO, a terminal, a device) is never replaced: the bytes go straight into it,
 * as they are written; so does whatever standard output is, which may be a file, at its present end.
 */
struct file_output {
    char *path;       /* as the user named it; for messages */
    char *target;     /* what is replaced; NULL when bytes go straight in */
    char *staged;     /* the name beside it; NULL when there is none */
    int descriptor;   /* to write to */
    bool made_target; /* the target was made for a link to nothing */
};

#define FILE_OUTPUT_NONE ((struct file_output){.descriptor = -1})

int file_output_open(const char *path, unsigned mode, struct file_output *ret, struct failure *failure);
int file_output_write(struct file_output *output, const void *bytes, size_t length, struct failure *failure);
int file_output_commit(struct file_output *output, struct failure *failure);
/* Whether it is a file that has a folder, where something may be put beside it. */
bool file_output_is_file(const struct file_output *output);
/* What was not committed is taken back as far as it can be. */
void file_output_clear(struct file_output *output);
/* All of it at once, with the usual mode. */
int file_write_output(const char *path, const void *bytes, size_t length, struct failure *failure);

/* Copies the content of FROM, one of KINDS, to TO, by the rules of file_output. */
int file_copy(const char *from, enum file_kinds kinds, const char *to, struct failure *failure);

/* Whether A and B, links followed, are the same file; "-" is standard input. Only for files with content to
 * lose: false for devices, pipes and what is not there. */
bool file_is_same(const char *a, const char *b);

/* fsync of the folder that holds PATH, so that a rename or a new name survives. */
int file_sync_folder_of(const char *path, struct failure *failure);

/* mkdir -p, mode 0777, of root 0755, less the umask. Parts of the path that are other users' are refused to
 * root (path.h). */
int file_make_folders(const char *path, struct failure *failure);

/* A new folder in $TMPDIR, or /tmp; the caller frees *RET. */
int file_make_temporary(char **ret, struct failure *failure);

/* rm -rf that never follows a link out of the tree. A missing PATH is fine. Folders that their owner may not
 * write (a Go module cache has mode 0555) are made writable first. */
int file_remove_tree(const char *path, struct failure *failure);
/* Removes what is in the folder, a descriptor, following no link. 0 or a negative errno. */
int file_empty_folder(int folder);

bool file_exists(const char *path);
bool file_is_folder(const char *path);
int file_size(const char *path, uint64_t *ret, struct failure *failure);

/* "a/b" from "a" and "b", one slash between; NULL when out of memory. The caller frees. */
char *file_join(const char *folder, const char *name);
/* The part after the last slash; a pointer into PATH. */
const char *file_base_name(const char *path);

#endif
