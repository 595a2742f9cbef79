/* Columns as <assay/column.h> describes them: their words in files, their headings, copies. */
#ifndef ASSAY_DOCUMENTS_COLUMN_H
#define ASSAY_DOCUMENTS_COLUMN_H

#include <assay/column.h>

/* "number", "integer", "string", "boolean", "datetime"; NULL: not known. */
const char *column_type_name(enum column_type type);
/* What column_type_name() calls NAME; COLUMN_UNKNOWN: nothing, or NAME is NULL. */
enum column_type column_type_find(const char *name);

/* "duration (s)": the label, and the unit as people write it. The caller frees. */
char *column_heading(const struct column *column);

/* The copy owns its texts, which column_clear() frees. */
struct column column_copy(const struct column *column);
void column_clear(struct column *column);

#endif
