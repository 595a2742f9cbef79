/*
 * What is known of each source that a run builds: software/sources.json and the listings beside it
 * (FORMAT.md, "software/").
 */
#ifndef ASSAY_CAMPAIGN_SOURCES_H
#define ASSAY_CAMPAIGN_SOURCES_H

#include "engine/foundation/failure.h"
#include "engine/run/campaign/source-files.h"

struct source_origin {
    const char *name;    /* ARCHIVE_SOURCE_NAME, or the option's */
    const char *written; /* path or address, as the campaign has it; NULL: the record that is there stays, and
                            only the listing is written */
    const char *copy;    /* what the archive has of it; NULL: it is too large for that */
    const char *node;    /* that the copy came from; NULL: this machine */
    /* Of a source that was cloned; NULL otherwise. */
    const char *url, *commit, *at;
};

/* Replaces the entry ORIGIN->name in sources.json of RUN_FOLDER, and writes the listing of a folder, for
 * which FILES is hashed; if FILES is empty the listing exists already. If a folder of this machine is a git
 * checkout, its commit is recorded. */
int sources_record(const char *run_folder, struct source_files *files, const struct source_origin *origin,
                   struct failure *failure);

#endif
