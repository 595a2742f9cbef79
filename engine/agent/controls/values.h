/* One value of many PUs: a word if all have the same, else "mixed: 800MHz (0-3), 3.5GHz (4)". */
#ifndef ASSAY_CONTROLS_VALUES_H
#define ASSAY_CONTROLS_VALUES_H

#include "engine/agent/machine/pu-set.h"
#include "engine/foundation/text.h"

#include <stddef.h>

struct value;

struct values {
    struct value *items; /* each that differs from the others, in the order in which they came */
    size_t count, capacity;
    int error; /* the first, negative: not all are in it */
};

/* PUS have TEXT. */
void values_add(struct values *values, const char *text, const struct pu_set *pus);
/* So has something else, which has a name. */
void values_add_named(struct values *values, const char *text, const char *name);
/* Appends all of them. 0 or a negative errno; the first error of all, too. */
int values_put(const struct values *values, struct text *ret);
void values_clear(struct values *values);

#endif
