/* What a plugin takes: `assay fit METHOD --parameters`, that of predict and export, and their
 * --help. */
#ifndef ASSAY_COMMAND_LINE_PLUGIN_DESCRIBE_H
#define ASSAY_COMMAND_LINE_PLUGIN_DESCRIBE_H

#include "engine/foundation/failure.h"
#include "engine/foundation/installation.h"
#include "engine/report/report.h"

#include <stdbool.h>

/* Adds version, models, parameters and options of the plugin KIND-NAME, such as fit-linear, to TO. */
int plugin_describe_in(struct report_section *to, const struct installation *installation, const char *kind,
                       const char *name, struct failure *failure);
/* Prints them, as text or JSON. */
int plugin_describe(const struct installation *installation, const char *kind, const char *name, bool json,
                    struct failure *failure);

#endif
