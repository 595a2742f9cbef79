/* What the columns of a table are (FORMAT.md, "Imports"). Internal to this room. */
#ifndef ASSAY_ARCHIVE_FORMAT_IMPORT_MAPPING_H
#define ASSAY_ARCHIVE_FORMAT_IMPORT_MAPPING_H

#include "archive-format/import/imported.h"

struct import_mapping {
    char *name, *experiment, *node, *core, *start, *repetition, *node_name, *utc_offset;
    struct bind_texts factors, responses, covariates; /* of the last two, each name is followed by its unit */
    struct archive_model *model;
    struct archive_answer *answer;
};

/* RET is zeroed before, and cleared after, by the caller. */
int import_mapping_read(const struct document *document, struct import_mapping *ret, struct failure *failure);
void import_mapping_clear(struct import_mapping *mapping);

/* Opens the first file of TABLE, and sets its columns, which have no use yet. The caller closes *RET. */
int import_table_open(struct import_table *table, struct csv_reader **ret, struct failure *failure);
/* Sets the uses and units of columns. A column that is not there is FAILURE_INPUT; STRICT_FOR_ALL: of node,
 * core, start and repetition, too. */
enum import_strictness { STRICT_FOR_ALL, STRICT_FOR_VALUES };
int import_mapping_apply(const struct import_mapping *mapping, enum import_strictness strictness,
                         const struct csv_reader *csv, struct import_table *table, struct failure *failure);

#endif
