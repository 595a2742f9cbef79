/* One group, from its sums to all that is told of it. */
#ifndef ASSAY_FIT_LINEAR_SETTLE_H
#define ASSAY_FIT_LINEAR_SETTLE_H

#include "plugins/fit-linear/least-squares.h"
#include "plugins/fit-linear/linear.h"

#include <stdbool.h>

struct settled {
    bool fitted;
    char reason[LEAST_SQUARES_REASON_SIZE]; /* why not */
    uint64_t incomplete;                    /* rows left out because a value is empty or not finite */
    struct least_squares result;            /* where it is fitted */
};

/* What settling needs besides the sums: large, one for all groups. */
struct settling;

struct settling *settling_new(const struct fit *fit); /* NULL when out of memory */
void settling_free(struct settling *settling);

/* After STAGE_SUMS is over. The same for the same group each time. Returns 0 or a negative errno. */
int settle(struct settling *settling, uint32_t group, struct settled *ret);

#endif
