/*
 * Has a quantity settled? Over a window of its last samples, by a line of least squares: how much the line
 * rises or falls over one window (slope), and how far the samples lie apart off that line (spread: greatest
 * residual less least). Both must be within limits. A test of slope and spread, and not of the slope's
 * significance: with many samples the least drift is significant, and with few none is.
 */
#ifndef ASSAY_STATE_STEADINESS_H
#define ASSAY_STATE_STEADINESS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct steadiness_limits {
    double window_seconds;
    double temperature_slope, temperature_spread; /* Cel: over a window; off the line */
    double frequency_slope, frequency_spread;     /* of the mean, likewise */
};

/* The samples of one quantity that lie within a window. Zeroed memory is empty. */
struct steadiness {
    struct steadiness_sample {
        int64_t time_ns;
        double value;
    } * samples; /* owned; a ring */
    size_t first, count, capacity;
    bool full; /* samples reach back over a whole window */
};

enum { STEADINESS_SAMPLES_MOST = 8192 }; /* in a window; of more, every second one is forgotten */

/* Times must rise. 0 or -ENOMEM. */
int steadiness_add(struct steadiness *steadiness, double window_seconds, int64_t time_ns, double value);
void steadiness_clear(struct steadiness *steadiness);

struct steadiness_state {
    double mean, slope, spread; /* slope: over one window */
    size_t samples;
};
/* False while there are fewer than 3 samples, or they do not reach back over a window. */
bool steadiness_state(const struct steadiness *steadiness, double window_seconds,
                      struct steadiness_state *ret);

#endif
