/* One group, from its sums to all that is told of it. */
#ifndef ASSAY_FIT_LINEAR_SETTLE_H
#define ASSAY_FIT_LINEAR_SETTLE_H

#include "plugins/fit-linear/least-squares.h"
#include "plugins/fit-linear/linear.h"
#include "plugins/fit-linear/row-fit.h"
#include "plugins/fit-linear/sum-fit.h"

#include <stdbool.h>

struct settled {
    bool fitted;
    char reason[LEAST_SQUARES_REASON_SIZE]; /* why not */
    uint64_t rows, incomplete;   /* that could be used; left out because a value is empty or not finite */
    struct least_squares result; /* where it is fitted */
    struct selection_path path;  /* of selection; empty where there was none */
    struct row_outcome outcome;  /* of outliers or robust weights */
    struct validation validation;
    /* Of the rows that could be used: by formula input, unscaled; then of the columns' products. */
    double input_minimum[LINEAR_INPUTS_MAX], input_maximum[LINEAR_INPUTS_MAX];
    double minimum[SUMS_COLUMNS_MAX], maximum[SUMS_COLUMNS_MAX];
    const struct sums_layout *layout;
};

/* What settling needs besides the sums: large, one for all groups. */
struct settling;

/* When all rows were seen. NULL when out of memory. */
struct settling *settling_new(const struct fit *fit);
void settling_free(struct settling *settling);

/* The same for the same group each time. Returns 0 or a negative errno. */
int settle(struct settling *settling, uint32_t group, struct settled *ret);

#endif
