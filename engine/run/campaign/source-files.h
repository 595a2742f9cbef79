/*
 * The files of a folder of the user's, the experiment's own or its source, of which a run takes a copy when
 * it begins. Whatever is built then, in a later part or on other nodes, comes from the copy.
 *
 * Left out are runs and their archives, folders of version control, files that this program itself writes to
 * (its standard output and error), links and special files, and what usually holds secrets (names as .env and
 * id_rsa, and private keys in PEM), by name.
 */
#ifndef ASSAY_CAMPAIGN_SOURCE_FILES_H
#define ASSAY_CAMPAIGN_SOURCE_FILES_H

#include "engine/documents/bind.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "engine/remote/nodes/local-tree.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define SOURCE_BYTES_MAX ((uint64_t)1 << 30) /* of one folder: each archive of the run has them */

enum source_left_out {
    SOURCE_RUNS,
    SOURCE_IGNORED,
    SOURCE_VERSION_CONTROL,
    SOURCE_OUTPUT,
    SOURCE_SECRETS,
    SOURCE_LINKS,
    SOURCE_LEFT_OUT_KINDS,
};

struct source_choice {
    const char *folder;
    /* Patterns of fnmatch(3): of names, or, with a slash, of paths below the folder. NULL: none. */
    const struct bind_texts *ignore;
    bool skip_hidden; /* leave out every name that begins with a dot */
    const char *runs; /* where runs are made: left out unless it is FOLDER itself. May be NULL. */
};

struct source_files {
    struct local_tree tree;
    uint64_t bytes;
    size_t left_out[SOURCE_LEFT_OUT_KINDS];
    struct bind_texts secrets; /* the paths of what may hold secrets: ".env", "keys/id_rsa" */
};

#define SOURCE_FILES_NONE ((struct source_files){.tree = LOCAL_TREE_NONE})

/* RET is SOURCE_FILES_NONE before, and to be cleared after failures too. */
int source_files_read(const struct source_choice *choice, struct source_files *ret, struct failure *failure);
void source_files_clear(struct source_files *files);
/* "3 files, 12.1 KiB; left out: 2 of runs, 1 that may hold secrets (.env)" */
void source_files_describe(const struct source_files *files, struct text *ret);

/* " (.env, keys/id_rsa)": NAMES, as many as fit on a line. */
void source_files_list_secrets(const struct bind_texts *names, struct text *ret);

/* The path of NAME in RUN_FOLDER, or of .NAME where there is only that: a copy that the archive does not
 * keep. The caller frees. */
char *source_copy_path(const char *run_folder, const char *name);

/* Writes FILES as the tar PATH; they are hashed on the way. */
int source_files_pack(struct source_files *files, const char *path, struct failure *failure);
/* Copies FILES into FOLDER, which is ARCHIVE_FOLDER in the archive. A name that no archive member can have is
 * refused. */
int source_files_copy(const struct source_files *files, const char *folder, const char *archive_folder,
                      struct failure *failure);

/* *RET is a sentence about the first difference of two files, which the caller frees: "'NOW' has changed at
 * line 7: was 'seed: 1', is 'seed: 2'"; NULL: they are equal. */
int file_difference(const char *before, const char *now, char **ret, struct failure *failure);
/* As file_difference() for the folder BEFORE, a copy of NOW. Files that only NOW has do not count. */
int tree_difference(const char *before, const char *now, char **ret, struct failure *failure);
/* *RET says which of FOLDER's files in MANIFEST has changed or is gone, "'a.c' has changed", the caller
 * frees; NULL: none. Other files do not count. */
int source_files_difference(const char *manifest, const char *folder, char **ret, struct failure *failure);

#endif
