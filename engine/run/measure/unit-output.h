/*
 * What a unit wrote: the responses that are read from it.
 */
#ifndef ASSAY_MEASURE_UNIT_OUTPUT_H
#define ASSAY_MEASURE_UNIT_OUTPUT_H

#include "archive-format/layout.h"
#include "engine/foundation/text-set.h"
#include "engine/foundation/text.h"
#include "engine/run/campaign/experiment.h"
#include "engine/run/campaign/pattern.h"

#include <stdbool.h>
#include <stddef.h>

enum { UNIT_OUTPUT_WHY_MAX = 1024 }; /* bytes of a sentence about a unit */

/* Reads the responses of EXPERIMENT, whose PATTERNS are compiled, from OUTPUT: the first group of each
 * pattern's first match. A match that ends where the output was CUT may have had more behind it, and does not
 * count. RESPONSES: a text is the code of its label in TEXTS. False, with the sentence in WHY, where one of
 * them is not found, is not what it is said to be, or when the unit does not pass. */
bool unit_output_read(const struct experiment *experiment, const regex_t *patterns, struct text_set *texts,
                      const struct text *output, bool cut, double *responses, struct text *why);

/* Whether BYTES may be a response that is a text: one line, of EXPERIMENT_TEXT_MAX bytes at most. */
bool unit_output_is_text(const char *bytes, size_t length);

#endif
