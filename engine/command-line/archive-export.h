/* `assay archive export` and `assay archive publish`. */
#ifndef ASSAY_COMMAND_LINE_ARCHIVE_EXPORT_H
#define ASSAY_COMMAND_LINE_ARCHIVE_EXPORT_H

#include "engine/command-line/verb.h"

verb_function archive_export_command, archive_publish;

/* The folder that -o names, or "NAME" and ENDING in the working folder for an archive "runs/NAME.zip". The
 * caller's. */
char *archive_output_folder(const struct verb_arguments *arguments, const char *path, const char *ending);

#endif
