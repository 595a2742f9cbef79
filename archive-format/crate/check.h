/*
 * Whether ro-crate-metadata.json keeps to RO-Crate 1.1 and Process Run Crate 0.5. One table (check.c) has
 * what the two say of single entities; the rest holds for the graph: it is flat, each entity has an @id of
 * its own, what is referred to is there, every file and folder is a part of the root, and files are the
 * members that they name.
 */
#ifndef ASSAY_ARCHIVE_FORMAT_CRATE_CHECK_H
#define ASSAY_ARCHIVE_FORMAT_CRATE_CHECK_H

#include "archive-format/reader.h"

/* What the specifications call MUST, and what they call SHOULD besides. */
enum crate_level { CRATE_MUST, CRATE_SHOULD };

/* Checks DOCUMENT as the crate of ARCHIVE, a zip. FAILURE_VERIFICATION names the first entity that breaks a
 * rule of LEVEL, and the rule. */
int crate_check(const struct document *document, const struct archive_reader *archive, enum crate_level level,
                struct failure *failure);

#endif
