/*
 * Sealing: a staging folder becomes one archive (FORMAT.md). The staging folder is not changed but for the
 * four files that sealing makes and leaves there as well: README.md, ro-crate-preview.html,
 * ro-crate-metadata.json, manifest-sha256.txt.
 */
#ifndef ASSAY_ARCHIVE_FORMAT_WRITER_H
#define ASSAY_ARCHIVE_FORMAT_WRITER_H

#include "archive-format/run.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"

#include <stdint.h>

/* What README.md and ro-crate-metadata.json say where no licence was given. */
#define ARCHIVE_NO_LICENSE "no licence was given: all rights stay with the authors"

/* What the archive says about itself in ro-crate-metadata.json and README.md. UTF-8, borrowed. */
struct archive_description {
    enum archive_kind kind;
    /* The run that it repeats; NULL: none. */
    const struct archive_origin *based_on;
    const char *name;           /* a title: "dgemm on paravance-3, 2026-11-20" */
    const char *text;           /* a sentence or more */
    const char *license;        /* URI; NULL: none was given */
    const char *status;         /* "completed", "failed", "interrupted" or "partial" */
    const char *error;          /* why it is not completed; NULL: a sentence made from the status */
    int64_t started_ns;         /* wall clock, since 1970 */
    int64_t ended_ns;           /* also the time stamp of every member */
    const char *run_id;         /* UUID, without "urn:uuid:" */
    const char *engine_version; /* "0.1.0" */
    const char *engine_url;     /* where the engine is to be had; NULL when it has no address */
    const char *command;        /* the command line, for people */
    const char *measured_by; /* of an import: the engine that measured, with its version; NULL: not known */
    const char *agent;       /* who ran it, perhaps with "https://orcid.org/..."; NULL: not to be recorded */
    const char *result;      /* what was found, in lines; NULL: shown are the first lines of results.csv */
};

/*
 * Seals STAGING_FOLDER into TARGET_PATH and writes the sha256 of the zip to SHA256.
 *
 * The zip is written to TARGET_PATH.part, synced, opened again and verified whole by the reader, renamed, and
 * the folder synced: TARGET_PATH is either absent or a whole, verified archive. The same staging files and
 * description give the same bytes, whatever the time zone, the user or the time of day.
 *
 * On failure TARGET_PATH.part is removed and the staging folder still has everything. A full disk is
 * FAILURE_SYSTEM with -ENOSPC. An existing TARGET_PATH is left alone: if it has exactly the bytes that would
 * have been written, that is success (a crash came after the rename); if not, -EEXIST.
 *
 * What goes in: every regular file below STAGING_FOLDER. Files and folders whose names begin with "." are
 * left out, as are folders with no file in them. A link, a device, a socket or a FIFO is refused by name, and
 * so is a name that archive_name_problem refuses: a run says so before it starts rather than when it seals.
 *
 * A file that has what looks like a private key or a token (secrets.h) is refused, with its line.
 *
 * Memory: proportional to the number of files (about 200 bytes each), not to their sizes.
 */
int archive_seal(const char *staging_folder, const char *target_path,
                 const struct archive_description *description, char sha256[static HASH_HEX_SIZE],
                 struct failure *failure);

/* The same of what RUN says; NAME and TEXT as in the description. */
int archive_seal_run(const char *staging_folder, const char *target_path, const struct archive_run *run,
                     const char *name, const char *text, char sha256[static HASH_HEX_SIZE],
                     struct failure *failure);

/* Whether TARGET ends in .zip, is not there yet, and is in a folder that can be written: for a command whose
 * user named it. */
int archive_check_target(const char *target, struct failure *failure);

/* Why NAME (a relative path, without a slash at its end) cannot be a member, or NULL when it can: letters,
 * digits,
 * ".", "_", "-" between single slashes, no part "." or "..", at most ARCHIVE_NAME_MAX bytes. */
const char *archive_name_problem(const char *name);

#endif
