#include "engine/numerics/range.h"

#include <math.h>

enum { LANES = 8 }; /* beside each other, so that the compiler uses vectors */

/* The least and the greatest of COUNT values, NaN left out; INFINITY and -INFINITY if there is none. */
__attribute__((target_clones("avx2", "default"))) void range_find(const double *values, size_t count,
                                                                  double *ret_least, double *ret_most) {
    double least[LANES], most[LANES];
    for (size_t l = 0; l < LANES; l++) {
        least[l] = INFINITY;
        most[l] = -INFINITY;
    }
    size_t i = 0;
    for (; i + LANES <= count; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            least[l] = values[i + l] < least[l] ? values[i + l] : least[l];
            most[l] = values[i + l] > most[l] ? values[i + l] : most[l];
        }
    for (; i < count; i++) {
        least[0] = values[i] < least[0] ? values[i] : least[0];
        most[0] = values[i] > most[0] ? values[i] : most[0];
    }
    *ret_least = least[0];
    *ret_most = most[0];
    for (size_t l = 1; l < LANES; l++) {
        *ret_least = least[l] < *ret_least ? least[l] : *ret_least;
        *ret_most = most[l] > *ret_most ? most[l] : *ret_most;
    }
}
