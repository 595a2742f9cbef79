/*
 * An archive as folders that programs without assay take:
 *
 *     BagIt          a bag (RFC 8493) with the whole archive as its payload, data/, and SHA-512 and SHA-256
 * of each file frictionless   a Data Package 2.0 alone: every table that the archive describes, and one
 * datapackage.json with their sizes and hashes folder         the files of the archive
 */
#ifndef ASSAY_ARCHIVE_FORMAT_EXPORT_H
#define ASSAY_ARCHIVE_FORMAT_EXPORT_H

#include "archive-format/reader.h"
#include "engine/foundation/failure.h"

enum export_form { EXPORT_BAGIT, EXPORT_FRICTIONLESS, EXPORT_FOLDER };

/* Verifies all of ARCHIVE and writes the folder TARGET, which must not exist. After a failure there is no
 * TARGET. The folder of a run, and for EXPORT_FRICTIONLESS an archive that describes no tables, are
 * FAILURE_INPUT. */
int archive_export(struct archive_reader *archive, enum export_form form, const char *target,
                   struct failure *failure);

/* A new folder that has its name when all is in it. Until then it is PATH, .NAME.PID.part beside it. */
struct export_folder {
    char *path, *target;
};
/* Refuses a TARGET that exists. Removes what a process that was killed has left of it. */
int export_folder_begin(const char *target, struct export_folder *ret, struct failure *failure);
/* Writes the file NAME in it. */
int export_folder_write(const struct export_folder *folder, const char *name, const char *bytes,
                        size_t length, struct failure *failure);
/* Syncs what is in it, and renames it. */
int export_folder_commit(struct export_folder *folder, struct failure *failure);
/* Removes what was not committed. */
void export_folder_clear(struct export_folder *folder);

#endif
