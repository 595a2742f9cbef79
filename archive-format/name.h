/*
 * Names of members: which are taken, and which cannot stand beside each other. The rules are narrow on
 * purpose: a name means the same file on every system, needs no quoting in a shell and no escape in a URI.
 */
#ifndef ASSAY_ARCHIVE_FORMAT_NAME_H
#define ASSAY_ARCHIVE_FORMAT_NAME_H

#include <stdbool.h>
#include <stddef.h>

/* Why NAME would be dangerous to write below a folder, or NULL: absolute, a drive letter, a backslash, "..",
 * an empty or "." part, a control character. A subset of what archive_name_problem (writer.h) refuses. */
const char *archive_name_danger(const char *name);

/* Order by bytes, upper and lower case as equal, "/" before all else: what is in a folder follows it at once.
 */
int archive_name_compare(const char *a, const char *b);

/* Why A and B, neighbours in that order, cannot both be there: the same name, names that differ in case only
 * (anywhere in their common path), a file that is also a folder. NULL if they can. */
const char *archive_name_conflict(const char *a, bool a_is_folder, const char *b);

enum { ARCHIVE_NAME_SHOWN_SIZE = 128 };
/* NAME for a message: what is not printable ASCII becomes "?", what is too long is cut. Returns BUFFER. */
const char *archive_name_show(const char *name, char buffer[static ARCHIVE_NAME_SHOWN_SIZE]);

#endif
