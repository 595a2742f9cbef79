#include "plugins/fit-linear/noise-kernel-tile.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* ---- Sums */

int noise_sums_new(size_t width, struct noise_sums **ret) {
    size_t doubles = 3 * width + NOISE_GRAMS_MAX * width * width;
    struct noise_sums *sums = calloc(1, sizeof *sums + doubles * sizeof(double));
    if (!sums)
        return -ENOMEM;
    sums->width = width;
    sums->mean = (double *)(void *)(sums + 1);
    sums->spread = sums->mean + width;
    sums->absolute = sums->spread + width;
    for (size_t g = 0; g < NOISE_GRAMS_MAX; g++)
        sums->grams[g] = sums->absolute + width + g * width * width;
    *ret = sums;
    return 0;
}

void noise_sums_free(struct noise_sums *sums) {
    free(sums);
}

static size_t sum_count(const struct noise_sums *sums) {
    return 3 * sums->width + NOISE_GRAMS_MAX * sums->width * sums->width;
}

void noise_sums_clear(struct noise_sums *sums) {
    sums->objective = 0;
    memset(sums->mean, 0, sum_count(sums) * sizeof(double));
}

void noise_sums_add(struct noise_sums *to, const struct noise_sums *other, double sign) {
    to->objective += sign * other->objective;
    for (size_t i = 0; i < sum_count(to); i++)
        to->mean[i] += sign * other->mean[i];
}

static void add_portable(const struct noise_columns *columns, const double *b, const double *c, bool gradient,
                         unsigned grams, double *scratch, struct noise_sums *sums) {
    add_rows(columns, b, c, gradient, grams, scratch, sums);
}

#if defined(__x86_64__)
__attribute__((target("avx2"))) static void add_avx2(const struct noise_columns *columns, const double *b,
                                                     const double *c, bool gradient, unsigned grams,
                                                     double *scratch, struct noise_sums *sums) {
    add_rows(columns, b, c, gradient, grams, scratch, sums);
}
#endif

void noise_kernel_add(const struct noise_columns *columns, const double *b, const double *c, bool gradient,
                      unsigned grams, double *scratch, struct noise_sums *sums) {
#if defined(__x86_64__)
    if (__builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq")) {
        noise_kernel_add_wide(columns, b, c, gradient, grams, scratch, sums);
        return;
    }
    if (__builtin_cpu_supports("avx2")) {
        add_avx2(columns, b, c, gradient, grams, scratch, sums);
        return;
    }
#endif
    add_portable(columns, b, c, gradient, grams, scratch, sums);
}

void noise_kernel_rows(const struct noise_columns *columns, size_t first, size_t rows, const double *b,
                       const double *c, double *ret_t, double *ret_s) {
    for (size_t r = 0; r < rows; r++) {
        const double *z = columns->z + first + r;
        double s = 0, residual = columns->y[first + r];
        for (size_t q = 0; q < columns->width; q++, z += columns->stride) {
            s += *z * c[q];
            residual -= *z * b[q];
        }
        ret_s[r] = s;
        ret_t[r] = residual / s * (columns->v ? columns->v[first + r] : 1);
    }
}
