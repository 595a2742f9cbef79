/*
 * Writes a model file (plugins/interface/MODEL.md, model.schema.json) while a fitting tells its results: one
 * line a group, so that files can be compared and searched line by line, and memory does not grow with the
 * groups.
 *
 *     model_writer_open(path) ; fitting_finish(..., model_writer_listener(writer)) ; model_writer_commit
 *
 * The path has the whole model, or what it had before (foundation/file.h, struct file_output); what is no
 * file, such as a FIFO, is written straight into.
 */
#ifndef ASSAY_PLUGIN_MODEL_WRITER_H
#define ASSAY_PLUGIN_MODEL_WRITER_H

#include "engine/plugin/fitting.h"

enum { MODEL_FORMAT = 1 }; /* the member "assay_model" */

struct model_writer;

int model_writer_open(const char *path, const struct fitting *fitting, struct model_writer **ret,
                      struct failure *failure);
/* To an open descriptor, which stays the caller's; nothing is renamed. */
int model_writer_open_descriptor(int descriptor, const struct fitting *fitting, struct model_writer **ret,
                                 struct failure *failure);
const struct fitting_listener *model_writer_listener(const struct model_writer *writer);
/* Ends the file. Needs the formula to have been heard. */
int model_writer_commit(struct model_writer *writer, struct failure *failure);
/* What was not committed is removed. NULL is fine. */
void model_writer_free(struct model_writer *writer);
void model_writer_cleanup(struct model_writer **writer); /* for cleanup() */

#endif
