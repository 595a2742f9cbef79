/*
 * Writes a struct model as a model file (MODEL.md of the interface, format 2), one line a group, so that
 * files can be compared and searched line by line. A file that was written and is read has the same bytes
 * when it is written again: doubles have the fewest digits that read back the same.
 *
 * A value has one unit in all parts and groups: -EINVAL for a model in which it has two.
 */
#ifndef ASSAY_MODEL_WRITE_H
#define ASSAY_MODEL_WRITE_H

#include "engine/foundation/text.h"
#include "engine/model/model.h"

/* PATH has the whole model, or what it had before, whatever dies (foundation/file.h, struct file_output). */
int model_file_write(const struct model *model, const char *path, struct failure *failure);
/* Appends the same bytes to TEXT. */
int model_file_append(const struct model *model, struct text *text, struct failure *failure);

#endif
