/* `assay archive import`. */
#ifndef ASSAY_COMMAND_LINE_ARCHIVE_IMPORT_H
#define ASSAY_COMMAND_LINE_ARCHIVE_IMPORT_H

#include "engine/command-line/verb.h"

verb_function archive_import;

#endif
