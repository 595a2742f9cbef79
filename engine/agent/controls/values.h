/* One value of many PUs: a word if all have the same, else "mixed: 800MHz (0-3), 3.5GHz (4)". */
#ifndef ASSAY_CONTROLS_VALUES_H
#define ASSAY_CONTROLS_VALUES_H

#include "engine/agent/machine/pu-set.h"
#include "engine/foundation/text.h"

#include <stddef.h>

struct value;

struct values {
    struct value *items; /* each that differs from the others, in the order they came */
    size_t count, capacity;
};

/* TEXT is that of PUS. 0 or -ENOMEM. */
int values_add(struct values *values, const char *text, const struct pu_set *pus);
/* Of one PU. */
int values_add_pu(struct values *values, const char *text, unsigned pu);
/* Of something else with a name. */
int values_add_named(struct values *values, const char *text, const char *name);
/* Appends what all of them are. */
int values_put(const struct values *values, struct text *ret);
void values_clear(struct values *values);

#endif
