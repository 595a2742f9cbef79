/*
 * ro-crate-metadata.json: what an archive is and how it came about, for programs that know nothing of assay.
 * Process Run Crate 0.5 on RO-Crate 1.1: the action (the run), its instrument (the engine), its objects
 * (campaign, experiment, design) and its results. Profile 0.5 builds on 1.1, so a descriptor of a later
 * RO-Crate would not conform. Source: https://w3id.org/ro/crate/1.1, https://w3id.org/ro/wfrun/process/0.5.
 */
#ifndef ASSAY_ARCHIVE_FORMAT_CRATE_H
#define ASSAY_ARCHIVE_FORMAT_CRATE_H

#include "archive-format/staging.h"
#include "archive-format/writer.h"
#include "engine/foundation/text.h"

enum {
    CRATE_BYTES_MAX = 64 << 20,
    CRATE_FOLDER_FILES_MAX = 64, /* a folder with more files is described as a whole */
    CRATE_ENTITIES_MAX =
        4096, /* files and folders described one by one; the others by the folders above them */
};

/* Appends the crate's JSON for STAGING, whose files are all hashed but ro-crate-metadata.json and
 * manifest-sha256.txt, which may be missing or from an earlier attempt. */
int crate_print(const struct staging *staging, const struct archive_description *description,
                struct text *ret, struct failure *failure);

#endif
