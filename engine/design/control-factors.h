/* Controls as factors: a design may have columns such as `control.turbo` or `control.frequency` beside the
 * factors of its experiment. Their values are texts (engine/agent/TOOLS.md), never numbers: `on` and
 * 2.1GHz stay as they are written. This header declares the list of all controls. */
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
    /* The factor of its column, "control.turbo". Controls with the same values on every machine have
     * choices; values of others are checked by the node, which may refuse them. */
    struct design_factor factor;
    bool (*admits)(const char *value); /* NULL: only the choices are admitted */
    const char *expectation;           /* "on or off" */
};

/* All controls, ended by one without a name. */
extern const struct control_kind control_kinds[CONTROL_FACTORS + 1];

/* Whether VALUE may be a value of the control NAME: NULL if so, or if NAME is unknown; else what was
 * expected ("on or off"). */
const char *control_value_expectation(const char *name, const char *value);

/* The control of a column, known or not: "turbo" for "control.turbo". NULL: the column is of no control. */
const char *control_of_column(const char *column);
/* The factor of a control's column; NULL: the column is of no known control. */
const struct design_factor *control_factor_find(const char *column);
/* "there is no control 'trubo'; did you mean 'control.turbo'?" at a place. Returns -EINVAL. */
int control_factor_unknown(const char *column, const char *file, size_t line, size_t place,
                           struct failure *failure);
/* The name of a control's column in commands, where a variable cannot have a dot: "control_turbo" for
 * "control.turbo". Returns BUFFER. */
const char *control_variable(const char *column, char buffer[static CONTROL_VARIABLE_SIZE]);

#endif
