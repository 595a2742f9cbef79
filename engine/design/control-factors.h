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

struct control_kind {
    const char *name; /* "turbo" */
    /* Of its column, "control.turbo". Those whose values every machine knows have choices; of the others the
     * node knows more, and may still refuse what is written. */
    struct design_factor factor;
    bool (*admits)(const char *value); /* NULL: the choices are all that there is to it */
    const char *expectation;           /* "on or off" */
};

/* The one list of them; behind it is one without a name. */
extern const struct control_kind control_kinds[CONTROL_FACTORS + 1];

/* Could VALUE be one of the control called NAME? NULL, or what was expected ("on or off"). An unknown NAME
 * expects nothing. */
const char *control_value_expectation(const char *name, const char *value);

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
