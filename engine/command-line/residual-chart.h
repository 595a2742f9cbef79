/* Residuals as a picture of characters: predicted values from left to right, residuals in sigmas upwards. */
#ifndef ASSAY_COMMAND_LINE_RESIDUAL_CHART_H
#define ASSAY_COMMAND_LINE_RESIDUAL_CHART_H

#include "engine/plugin/residuals.h"

#include <stdio.h>

/* Whether the environment's locale is one of UTF-8, so that dots of braille can be shown. */
bool residual_chart_unicode(void);

/* To STREAM; UNICODE false: nothing but ASCII. RESPONSE is what is predicted, UNIT its unit or NULL. Nothing
 * where no residual has a size. */
void residual_chart_print(FILE *stream, const struct residuals *residuals, bool unicode, const char *response,
                          const char *unit);

#endif
