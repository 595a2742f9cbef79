#include "plugins/fit-transfer/scout.h"

#include <math.h>
#include <stddef.h>

/* Sizes are counted: what is below this share of the greatest is as good as 0. */
static const double least_share = 1e-12;

void scout_begin(struct scout *scout, double size_minimum, double size_maximum) {
    *scout = (struct scout){.lowest = 0.1 * fmax(size_minimum, least_share * size_maximum)};
    scout->ratio = pow(10 * size_maximum / scout->lowest, 1.0 / (SCOUT_STEPS - 1));
}

void scout_add(struct scout *scout, double size, double duration, double w) {
    double bandwidth = size / duration, half = scout->lowest;
    for (size_t i = 0; i < SCOUT_STEPS; i++, half *= scout->ratio) {
        double share = size / (size + half);
        scout->products[i] += w * share * bandwidth;
        scout->squares[i] += w * share * share;
    }
}

double scout_best(const struct scout *scout, double squares, double *ret_latency, double *ret_inverse) {
    double best = INFINITY, half = scout->lowest;
    for (size_t i = 0; i < SCOUT_STEPS; i++, half *= scout->ratio) {
        double peak = scout->products[i] / scout->squares[i];
        double criterion = squares - peak * scout->products[i];
        if (!(criterion < best) || !(peak > 0))
            continue;
        best = criterion;
        *ret_inverse = 1 / peak;
        *ret_latency = half / peak;
    }
    return best;
}
