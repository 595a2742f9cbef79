/* Model files side by side, and on measurements that they have not seen. */
#ifndef ASSAY_FIT_COMPARISON_H
#define ASSAY_FIT_COMPARISON_H

#include "engine/fit/choice.h"
#include "engine/fit/measured.h"

enum { COMPARISON_MODELS_MAX = 16 };

struct comparison {
    struct model *models[COMPARISON_MODELS_MAX];
    size_t count;
    struct contender contenders[COMPARISON_MODELS_MAX];
    /* With --data: a table for each model, which is converted to its units; of the same rows. */
    struct table *tables[COMPARISON_MODELS_MAX];
    struct measured *measured[COMPARISON_MODELS_MAX];
    struct choice choice; /* rows 0: there is no data */
};

/* Reads COUNT model FILES of one response, and judges them on the rows of INPUTS; without inputs none is
 * judged. To be cleared after failures, too. */
int comparison_make(const char *const *files, size_t count, const char *const *inputs, size_t input_count,
                    const struct measured_options *options, struct comparison *ret, struct failure *failure);
void comparison_clear(struct comparison *comparison);
void comparison_report(struct report_section *in, const struct comparison *comparison);

#endif
