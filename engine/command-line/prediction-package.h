/* What the columns of a predicted table mean, for a file beside it. */
#ifndef ASSAY_COMMAND_LINE_PREDICTION_PACKAGE_H
#define ASSAY_COMMAND_LINE_PREDICTION_PACKAGE_H

#include "engine/plugin/prediction.h"

/* Writes TABLE.datapackage.json (archive-format/datapackage.h): type, unit and role of every column of the
 * CSV file TABLE that PREDICTION wrote. */
int prediction_package_write(const struct prediction *prediction, const char *table, struct failure *failure);

#endif
