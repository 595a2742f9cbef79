/*
 * Controls as factors: a design may have columns such as `control.turbo` or `control.frequency` beside the
 * factors of its experiment. Their values are texts (engine/agent/TOOLS.md says which), never numbers: `on`
 * stays `on`, and 2.1GHz what it is. Here stands which controls there are.
 */
#ifndef ASSAY_DESIGN_CONTROL_FACTORS_H
#define ASSAY_DESIGN_CONTROL_FACTORS_H

#include "engine/design/factor.h"
#include "engine/foundation/failure.h"

#include <stddef.h>

#define CONTROL_PREFIX "control."

enum {
    CONTROL_FACTORS = 10,
    CONTROL_VARIABLE_SIZE = 64,
};

/* By name: "control.turbo", ... Those whose values every machine knows have choices; of the others the node
 * knows more, and may still refuse what is written. */
extern const struct design_factor control_factors[CONTROL_FACTORS];
/* Without the prefix, in the same order, ended by NULL. */
extern const char *const control_kind_names[CONTROL_FACTORS + 1];

/* Whether a column is one of a control, known or not: "control.turbo" is "turbo". NULL for any other. */
const char *control_of_column(const char *column);
/* The factor of a column, or NULL when it is not one of a control that is known. */
const struct design_factor *control_factor_find(const char *column);
/* "there is no control 'trubo'; did you mean 'control.turbo'?" at a place. Returns -EINVAL. */
int control_factor_unknown(const char *column, const char *file, size_t line, size_t place,
                           struct failure *failure);
/* What a command knows a control's column by, since a dot is no part of a variable's name: "control_turbo" of
 * "control.turbo". Returns BUFFER. */
const char *control_variable(const char *column, char buffer[static CONTROL_VARIABLE_SIZE]);

#endif
