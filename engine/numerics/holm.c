#include "engine/numerics/holm.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <math.h>
#include <stdlib.h>

static int compare_p(const void *a, const void *b) {
    double left = **(double *const *)a, right = **(double *const *)b;
    return (left > right) - (left < right);
}

/* Adjusts p values for multiple tests, in place (S. Holm 1979); NaN is left out. */
void holm_adjust(double *p, size_t count) {
    cleanup_free double **made = xcalloc(count + 1, sizeof *made);
    size_t n = 0;
    double greatest = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(p[i]))
            made[n++] = &p[i];
    qsort(made, n, sizeof *made, compare_p);
    for (size_t i = 0; i < n; i++) {
        greatest = fmax(greatest, fmin(1, (double)(n - i) * *made[i]));
        *made[i] = greatest;
    }
}
