/* What README.md, ro-crate-preview.html and ro-crate-metadata.json say in words of one archive. */
#ifndef ASSAY_ARCHIVE_FORMAT_CRATE_DESCRIBE_H
#define ASSAY_ARCHIVE_FORMAT_CRATE_DESCRIBE_H

#include "archive-format/staging.h"
#include "archive-format/writer.h"
#include "engine/documents/document.h"
#include "engine/foundation/text.h"

/* The files of an archive that is being sealed, and what is known of it. All borrowed. */
struct sealed_content {
    const struct staging *staging;
    const struct archive_description *description;
    const struct archive_run *run; /* run.json of the staging folder */
};

/* Whether the file NAME is made by sealing after README.md: the preview, the crate or the manifest, which may
 * lie in the staging folder from an earlier attempt. */
bool describe_is_made_last(const char *name);

/* Appends what was found: the description's result, or else the first lines of results/results.csv; nothing
 * where there are no results. 0, or text_append()'s error. */
int describe_result(const struct sealed_content *content, struct text *ret);
/* Appends a line each on status, flags and failures, for people. 0, or text_append()'s error. */
int describe_outcome(const struct sealed_content *content, struct text *ret);

/* The JSON file NAME of the staging folder; NULL where it is not there or cannot be read. The caller frees.
 */
struct document *describe_read(const struct staging *staging, const char *name);
/* Whether NAME is nodes/NODE/facts.json, and not that of a later part. */
bool describe_is_facts(const char *name);
/* "AMD EPYC, 2 physical cores, 23.5 GiB of memory, Linux 6.1.0", of the staged file NAME that is a node's
 * facts.json; NULL where it cannot be read. The caller frees. */
char *describe_machine(const struct staging *staging, const char *name);

#endif
