#define NOISE_KERNEL_WIDTH 8
#include "plugins/fit-linear/noise-kernel-tile.h"

#if defined(__x86_64__)
__attribute__((target("avx512f,avx512dq"))) void
noise_kernel_add_wide(const struct noise_columns *columns, const double *b, const double *c, bool gradient,
                      unsigned grams, double *scratch, struct noise_sums *sums) {
    add_rows(columns, b, c, gradient, grams, scratch, sums);
}
#endif
