/*
 * Has a quantity settled? Over a window of its last samples, by a line of least squares: how much the line
 * rises or falls over one window (slope), and how far the samples lie apart off that line (spread: greatest
 * residual less least). Both must be within limits. A test of slope and spread, and not of the slope's
 * significance: with many samples the least drift is significant, and with few none is.
 */
#ifndef ASSAY_STATE_STEADINESS_H
#define ASSAY_STATE_STEADINESS_H

#include "engine/run/state/history.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define STEADINESS_MEAN SIZE_MAX /* in place of a column: the mean of all columns */

struct steadiness_state {
    double mean, slope, spread; /* slope: over one window */
    size_t samples;             /* within the window, and the last before it */
};
/* Of one COLUMN of HISTORY, over the window that ends with its last sample. False, with the samples that
 * there are, while there are fewer than 3 or they do not reach back over a window. */
bool steadiness_of(const struct history *history, size_t column, double window_seconds,
                   struct steadiness_state *ret);

#endif
