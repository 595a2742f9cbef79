/* Levels: the values that a generator may give to a factor. Either a range, with or without a step, or a
 * list; the latter may be so many steps of a range. */
#ifndef ASSAY_DESIGN_LEVELS_H
#define ASSAY_DESIGN_LEVELS_H

#include "engine/design/factor.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { LEVELS_MAX = 1 << 20 }; /* of a list */

struct levels {
    char *name; /* of the factor; owned */
    enum column_type type;
    bool is_range;
    double low, high; /* of a range: both may be taken, low <= high */
    double step;      /* of a range: 0 for none */
    size_t steps;     /* the number of values from low to high, both included; 0: no steps */
    bool logarithmic; /* steps have equal ratios instead of equal distances */
    char **texts;     /* of a list: as written; owned; NULL where it is of steps */
    double *numbers;  /* of a list: their values, nan for what is no number; owned */
    size_t count;     /* of a list */
    char *file;       /* where they were written, for messages; owned, or NULL */
    size_t line, column;
};

/* Where levels are written, for messages. */
struct levels_place {
    const char *file; /* or NULL */
    size_t line, column;
};

/* The range from LOW to HIGH, literals such as 1, 0.5, 1e9 or 64MiB; STEP is one too, above 0, or NULL. A
 * range whose literals are whole numbers without a decimal point is one of integers, otherwise of numbers:
 * "0..1" is the two integers, "0.0..1.0" what lies between them. */
int levels_from_range(const char *name, const char *low, const char *high, const char *step,
                      struct levels_place place, struct levels *ret, struct failure *failure);
/* STEPS values from LOW to HIGH, as a list: at equal distances, or with LOGARITHMIC (both ends above 0) in
 * equal ratios. Integers are rounded to the nearest; duplicates are removed. */
int levels_from_steps(const char *name, const char *low, const char *high, const char *steps,
                      bool logarithmic, struct levels_place place, struct levels *ret,
                      struct failure *failure);
/* A list: of integers if all are written as whole numbers, of numbers if all are numbers, or else of
 * texts. Duplicates are refused. Levels of a control are always texts, and have no range. */
int levels_from_list(const char *name, const char *const *texts, size_t count, struct levels_place place,
                     struct levels *ret, struct failure *failure);
void levels_clear(struct levels *levels);

/* Converts the levels to the type of FACTOR; refuses levels outside its bounds. If some are shares or
 * times all become texts, which design_conform() converts. */
int levels_adopt(struct levels *levels, const struct design_factor *factor, struct failure *failure);

/* The number of levels: of a list, a range with a step, or a range of integers (whose step is 1 by
 * default); 0 for a range of numbers without a step. */
uint64_t levels_count(const struct levels *levels);
/* The number of level INDEX. */
double levels_number(const struct levels *levels, uint64_t index);

/* Fails with -EINVAL at the place of the levels, with the given sentence. */
int levels_failure(const struct levels *levels, struct failure *failure, const char *format, ...)
    __attribute__((format(printf, 3, 4)));

#endif
