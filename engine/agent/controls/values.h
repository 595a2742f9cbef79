/* The value of a control over many PUs: one word if all have the same, else "mixed: 800MHz (0-3), 3.5GHz
 * (4)". */
#ifndef ASSAY_CONTROLS_VALUES_H
#define ASSAY_CONTROLS_VALUES_H

#include "engine/agent/machine/pu-set.h"
#include "engine/foundation/text.h"

#include <stddef.h>

struct value;

struct values {
    struct value *items; /* the different values, in the order in which they were added */
    size_t count, capacity;
    int error; /* 0, or the first error, negative: some values are missing */
};

/* Adds that PUS have the value TEXT. */
void values_add(struct values *values, const char *text, const struct pu_set *pus);
/* Adds that a part of the machine called NAME has the value TEXT. */
void values_add_named(struct values *values, const char *text, const char *name);
/* Appends the values to RET. Returns 0 or a negative errno, also that of an earlier call. */
int values_put(const struct values *values, struct text *ret);
void values_clear(struct values *values);

#endif
