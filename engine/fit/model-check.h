/* Checks whether a model file is consistent (engine/model/check.h), and whether the model is valid for
 * measurements: whether its errors are not far above its noise. */
#ifndef ASSAY_FIT_MODEL_CHECK_H
#define ASSAY_FIT_MODEL_CHECK_H

#include "engine/fit/measured.h"
#include "engine/report/report.h"

/* Borrowed. */
struct model_check {
    const char *const *inputs; /* measurements to compare with */
    size_t input_count;
    struct measured_options how;
    double most; /* root mean squared error over the noise, the greatest that is accepted */
};

/* Reports findings, scores and the verdict on the file PATH. REASON says why the model is refused, "" where
 * it is good. *RET is the caller's: the model, also after a failure; NULL where PATH is none. */
int model_check_file(const struct model_check *check, const char *path, struct report_section *in,
                     struct model **ret, char reason[static FAILURE_TEXT_SIZE], struct failure *failure);

#endif
