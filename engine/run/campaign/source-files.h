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
    char secrets[240]; /* the paths of what holds secrets: ".env, keys/id_rsa", as many as fit */
};

#define SOURCE_FILES_NONE ((struct source_files){.tree = LOCAL_TREE_NONE})

/* RET is SOURCE_FILES_NONE before, and to be cleared after failures too. */
int source_files_read(const struct source_choice *choice, struct source_files *ret, struct failure *failure);
void source_files_clear(struct source_files *files);
/* "3 files, 12.1 KiB; left out: 2 of runs, 1 that may hold secrets (.env)" */
void source_files_describe(const struct source_files *files, struct text *ret);

/* The path of NAME in RUN_FOLDER, or of .NAME where there is only that: a copy that the archive does not
 * keep. The caller frees. */
char *source_copy_path(const char *run_folder, const char *name);

/* As the tar PATH; the files are hashed on the way. */
int source_files_pack(struct source_files *files, const char *path, struct failure *failure);
/* Into FOLDER, which will be ARCHIVE_FOLDER in the archive; a name that no member can have is refused. */
int source_files_copy(const struct source_files *files, const char *folder, const char *archive_folder,
                      struct failure *failure);

/* The first thing in which two files differ, as a sentence that is the caller's: "'NOW' has changed at line
 * 7: was 'seed: 1', is 'seed: 2'"; NULL when they are the same. */
int file_difference(const char *before, const char *now, char **ret, struct failure *failure);
/* The same for what is in the folder BEFORE, a copy of NOW; what NOW has besides does not count. */
int tree_difference(const char *before, const char *now, char **ret, struct failure *failure);
/* What has become of FOLDER's files that the file MANIFEST names: "'a.c' has changed", "'a.c' is gone", the
 * caller's; NULL: all are as they were. Files that it does not name do not count. */
int source_files_difference(const char *manifest, const char *folder, char **ret, struct failure *failure);

#endif
