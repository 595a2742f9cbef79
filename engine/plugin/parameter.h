/* Values for a plugin's parameters: text with units, words and ranges, checked against what the plugin
 * declares. */
#ifndef ASSAY_PLUGIN_PARAMETER_H
#define ASSAY_PLUGIN_PARAMETER_H

#include "engine/foundation/failure.h"
#include "plugins/interface/plugin.h"

#include <stddef.h>

/* TEXT ("20000", "10GB/s", "slowest") as the value of PARAMETER in *RET. FILE, LINE and COLUMN are where it
 * was written, for the message; NULL and 0 where it was not in a file. */
int parameter_parse(const struct plugin_parameter *parameter, const char *text, const char *file, size_t line,
                    size_t column, double *ret, struct failure *failure);

/* The parameter called NAME (LENGTH bytes) in *RET, or FAILURE_INPUT with the nearest one, or with all. */
int parameter_find(const struct plugin_parameter *parameters, size_t count, const char *name, size_t length,
                   const char *file, size_t line, size_t column, size_t *ret, struct failure *failure);

#endif
