/*
 * ro-crate-metadata.json: what an archive is and how it came about, for programs that know nothing of assay.
 * Process Run Crate 0.5 on RO-Crate 1.1: the action (the run), its instrument (the engine), its objects
 * (campaign, experiment, design) and its results. Profile 0.5 builds on 1.1, so a descriptor of a later
 * RO-Crate would not conform. Source: https://w3id.org/ro/crate/1.1, https://w3id.org/ro/wfrun/process/0.5.
 */
#ifndef ASSAY_ARCHIVE_FORMAT_CRATE_CRATE_H
#define ASSAY_ARCHIVE_FORMAT_CRATE_CRATE_H

#include "archive-format/crate/describe.h"

#define CRATE_SPECIFICATION "https://w3id.org/ro/crate/1.1"
#define CRATE_PROFILE "https://w3id.org/ro/wfrun/process/0.5"
#define CRATE_CONTEXT CRATE_SPECIFICATION "/context"
#define CRATE_RUN_CONTEXT "https://w3id.org/ro/terms/workflow-run/context"

enum {
    CRATE_FOLDER_FILES_MAX = 64, /* a folder with more files is described as a whole */
    CRATE_ENTITIES_MAX =
        4096, /* files and folders described one by one; the others by the folders above them */
};

/* Appends the crate's JSON for CONTENT, whose files are all hashed but ro-crate-metadata.json and
 * manifest-sha256.txt, which may be missing or from an earlier attempt. */
int crate_print(const struct sealed_content *content, struct text *ret, struct failure *failure);

#endif
