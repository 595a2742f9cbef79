/*
 * How far the rows that a fitting kept are from what its model says: what a statistician asks first. In
 * standard deviations of the model's noise where it tells of one, else of its group's residuals.
 */
#ifndef ASSAY_PLUGIN_RESIDUALS_H
#define ASSAY_PLUGIN_RESIDUALS_H

#include "engine/plugin/fitted-model.h"
#include "engine/plugin/fitting.h"

enum { RESIDUALS_MAX = 1 << 16 }; /* of a table that was not kept whole */

struct residuals {
    size_t count;
    uint32_t *rows;                          /* numbers of kept rows */
    double *predicted;                       /* in the response's unit */
    double *residual;                        /* observed - predicted */
    double *standardised;                    /* in sigmas; NaN where sigma is 0 */
    const struct predict_part **parts;       /* of the model, that hold there */
    uint64_t stride;                         /* those of every so many rows of the table were looked at */
    size_t left_out;                         /* rows with nothing to compare */
    bool noise;                              /* sigma is that of the model's noise */
    double rms;                              /* of the residuals, in the response's unit */
    double minimum, maximum, least_positive; /* of the predicted */
    size_t positive;                         /* how many of them are */
    bool above_zero;                         /* all that was observed is */
};

/* A failure where the model's kind is not evaluated row by row. */
int residuals_init(struct residuals *residuals, const struct fitting *fitting,
                   const struct fitted_model *model, struct failure *failure);
void residuals_clear(struct residuals *residuals);

/* The place of the first row for which 0 or less is predicted; COUNT: there is none. */
size_t residuals_first_not_positive(const struct residuals *residuals);

/* Puts the places of the WANTED greatest residuals (in sigmas, whatever their sign; ties by row) into
 * RET_PLACES, greatest first; returns how many there are. */
size_t residuals_worst(const struct residuals *residuals, size_t wanted, size_t *ret_places);
/* The share of rows whose residual is greater than LIMIT sigmas. */
double residuals_beyond(const struct residuals *residuals, double limit);
/* Whether the predicted values are best seen on a logarithmic scale: nearly all positive, over more than two
 * decades. The others are drawn at its edge. */
bool residuals_are_wide(const struct residuals *residuals);

#endif
