/*
 * Archives of results that assay has not measured, of the kind "import" (FORMAT.md, "Imports"): from an
 * archive of the engine peanut, or from any CSV file. What is imported is in the archive byte for byte, in
 * imported/, but for files of nodes, which have a place of their own.
 *
 * What comes from a stranger is opened by the rules of reader.h. Failures are FAILURE_INPUT with the file,
 * the member, the line and the column, FAILURE_VERIFICATION for a zip that is damaged or hostile; then TARGET
 * is not there.
 */
#ifndef ASSAY_ARCHIVE_FORMAT_IMPORT_IMPORT_H
#define ASSAY_ARCHIVE_FORMAT_IMPORT_IMPORT_H

#include "engine/documents/bind.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/text.h"

#include <stddef.h>

struct import_request {
    const char *file;
    const char *target;  /* the archive to be made; ends in .zip, and is not there yet */
    const char *mapping; /* of a CSV file: a YAML file (FORMAT.md, "Imports"); NULL: columns are guessed */
};

/* Zeroed before, and cleared after, by the caller. */
struct import_result {
    char sha256[HASH_HEX_SIZE]; /* of the archive */
    size_t rows, nodes;
    struct bind_texts notes; /* sentences: what was left out, and what was assumed */
    struct text
        mapping; /* of a CSV file whose columns were guessed, or could not be: a mapping to start from */
};

int import_peanut(const struct import_request *request, struct import_result *ret, struct failure *failure);
int import_csv(const struct import_request *request, struct import_result *ret, struct failure *failure);
void import_result_clear(struct import_result *result);

#endif
