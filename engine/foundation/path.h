/*
 * Paths, and who may have laid them.
 *
 * Root uses no part of a path that another user owns or may write to: such a user could put a link, a file or
 * a folder of theirs into its place. It is refused (-EXDEV) with its owner, its mode and what to do. Others
 * may add to a sticky folder, such as /tmp: there, what root owns is root's. Trusted beside root are the
 * owner of the folder "/", of our program, and who called sudo (SUDO_UID). The environment variable
 * ASSAY_TRUSTED_FOLDERS names folders, absolute and separated by colons, that are shared on purpose: what is
 * in them is used, whoever owns it.
 *
 * Everybody, root or not, follows links of their own, of root's, and such as the owner of a folder that
 * nobody else may write to has made there. All others are refused, also in ASSAY_TRUSTED_FOLDERS.
 *
 * A path is opened part by part, and what was opened is what is looked at. For root that makes a path that
 * was checked a path that stays: nobody else can change a part of it.
 */
#ifndef ASSAY_FOUNDATION_PATH_H
#define ASSAY_FOUNDATION_PATH_H

#include "engine/foundation/failure.h"

#include <limits.h>
#include <stdbool.h>
#include <stddef.h>
#include <sys/types.h>

#define PATH_TRUST_VARIABLE "ASSAY_TRUSTED_FOLDERS"

/* ---- Paths of the agent. Each returns 0 or a descriptor (O_CLOEXEC), or a negative errno and a sentence
 * that names PATH. DIRECTORY is the run directory. A relative path stays below it: one that is empty, too
 * long, or has a ".." part is refused, and so is a link on its way that leads out (-EXDEV); whose the folders
 * in it are does not matter. An absolute path may lie anywhere. */

/* ROOT (a descriptor) stands for "/", also for that of links; -1: an absolute path is refused. */
int path_open(int directory, int root, const char *path, int flags, struct failure *failure);
/* The folder of the file PATH, and in RET_NAME its name there. A link at the end of an absolute path is
 * followed; one at the end of a relative path is what will be replaced. The file need not exist; what exists
 * under this name must be a regular file or a link. */
int path_open_parent(int directory, const char *path, char ret_name[static NAME_MAX + 1],
                     struct failure *failure);
/* Up to SIZE bytes of FILE into BYTES, fewer only at its end. How many, or a negative errno. */
ssize_t path_read_up_to(int file, void *bytes, size_t size);
/* mkdir -p, mode 0777, of root 0755, less the umask. */
int path_make_folders(int directory, const char *path, struct failure *failure);

/* The path by which the kernel knows FILE, a descriptor, cut at SIZE; OTHERWISE where there is no /proc.
 * Returns BUFFER. */
char *path_of_file(int file, const char *otherwise, char *buffer, size_t size);

/* ---- Paths as the user wrote them, from the working directory. FAILURE_INPUT where the path is at fault. */

/* mkdir -p, and the folder opened. A link to nothing is not a folder to be made. */
int path_make(const char *path, struct failure *failure);

enum path_use {
    PATH_PLACE,  /* a file at the end of the path is replaced, or only looked at: it may be anybody's */
    PATH_SOURCE, /* it is run, loaded or sent on: it is checked too */
};
/* 0: no existing part of PATH belongs to another user. */
int path_check(const char *path, enum path_use use, struct failure *failure);
/* Checks FILE, a descriptor of any kind (O_PATH for one), called PATH, in a folder that was checked, as
 * path_check() checks a path. */
int path_check_file(int file, const char *path, struct failure *failure);
/* Whether we are root, and the file or the folder is another user's or may be written to by one. */
bool path_is_suspect(int file);

/* What lies in FOLDER is used, as if ASSAY_TRUSTED_FOLDERS named it, unless everybody may write there: where
 * assay is installed. The string stays the caller's. */
void path_trust(const char *folder);
/* "ASSAY_TRUSTED_FOLDERS=..." and NULL, as of our environment, for a command's; NULL: it is not set. */
const char *const *path_trust_environment(void);

#endif
