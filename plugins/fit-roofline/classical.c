#include "plugins/fit-roofline/roofline.h"

#include <stdlib.h>

/* Sums over the rows on one side of the ridge: with z = F or B the criterion is square p^2 - 2 product p +
 * rest in the inverse peak p = x or y, or for BY_LOG in p = log x or log y. */
struct side {
    long double square, product, rest;
};

/* SIDE with one more row, whose operations or bytes are Z. */
static struct side add_row(struct side side, const struct kernel *row, enum criterion criterion, double z) {
    long double t = row->duration, w = criterion == BY_RELATIVE ? row->w / (t * t) : row->w;
    if (z == 0) /* it is of the other side: a partition that puts it here is not looked at */
        return side;
    if (criterion == BY_LOG) {
        long double u = logl(t / z);
        return (struct side){side.square + w, side.product + w * u, side.rest + w * u * u};
    }
    return (struct side){side.square + w * z * z, side.product + w * z * t, side.rest + w * t * t};
}

/* The sums of both sides for a ridge at which y = ridge x, as sums in p = x. */
static struct side join_sides(const struct side *memory, const struct side *compute, enum criterion criterion,
                              long double ridge) {
    struct side m = *memory;
    if (criterion == BY_LOG) {
        long double shift = logl(ridge);
        m.rest += shift * (shift * m.square - 2 * m.product);
        m.product -= shift * m.square;
    } else {
        m.square *= ridge * ridge;
        m.product *= ridge;
    }
    return (struct side){m.square + compute->square, m.product + compute->product, m.rest + compute->rest};
}

/* The least value of the criterion; 0 if that is only rounding. */
static long double least(const struct side *side) {
    long double value = side->square > 0 ? side->rest - side->product * side->product / side->square : 0;
    return fabsl(value) > 1e-16L * side->rest ? value : 0;
}

static double peak_inverse(const struct side *side, enum criterion criterion) {
    long double p = side->product / side->square;
    return (double)(criterion == BY_LOG ? expl(p) : p);
}

static int by_intensity(const void *a, const void *b) {
    const struct kernel *left = a, *right = b;
    long double l = (long double)left->flops * right->bytes, r = (long double)right->flops * left->bytes;
    return (l > r) - (l < r);
}

/* Rows are sorted by intensity, so those that memory bounds are the first FIRST. Each side has a peak of its
 * own where the ridge that they give lies between the two rows; otherwise the ridge is at one of them. */
struct candidate {
    size_t first;
    bool tied;
    double x, y; /* 0: no row is on that side */
    long double value;
    struct side memory, compute;
};

/* Replaces BEST by OTHER if that is better; of equal ones, one with a single side. */
static void keep_better(struct candidate *best, const struct candidate *other) {
    bool is_simpler = other->x == 0 || other->y == 0;
    if (isfinite(other->value) && (other->value < best->value || (other->value == best->value && is_simpler)))
        *best = *other;
}

/* Tries the candidate whose first FIRST rows are memory bound, each side with its own peak, if the ridge lies
 * between the two rows. */
static void try_free(struct candidate *best, const struct kernels *kernels, size_t first,
                     const struct side *memory, const struct side *compute) {
    const struct kernel *low = first > 0 ? &kernels->rows[first - 1] : NULL;
    const struct kernel *high = first < kernels->count ? &kernels->rows[first] : NULL;
    if ((low && low->bytes == 0) || (high && high->flops == 0))
        return;
    struct candidate one = {
        .first = first, .value = least(memory) + least(compute), .memory = *memory, .compute = *compute};
    one.y = low ? peak_inverse(memory, kernels->criterion) : 0;
    one.x = high ? peak_inverse(compute, kernels->criterion) : 0;
    if (!low || !high ||
        (low->flops * one.x <= low->bytes * one.y && high->flops * one.x >= high->bytes * one.y))
        keep_better(best, &one);
}

/* Tries the candidate whose ridge lies at row FIRST - 1. */
static void try_tied(struct candidate *best, const struct kernels *kernels, size_t first,
                     const struct side *memory, const struct side *compute) {
    const struct kernel *row = first > 0 ? &kernels->rows[first - 1] : NULL;
    if (!row || row->flops == 0 || row->bytes == 0)
        return;
    long double ridge = (long double)row->flops / row->bytes;
    struct side both = join_sides(memory, compute, kernels->criterion, ridge);
    struct candidate one = {
        .first = first, .tied = true, .value = least(&both), .memory = *memory, .compute = *compute};
    one.x = peak_inverse(&both, kernels->criterion);
    one.y = (double)(ridge * one.x);
    keep_better(best, &one);
}

/* Fills in the fit from the best candidate: peaks, residual sums, bounds of a missing peak. */
static void describe_best(const struct kernels *kernels, const struct candidate *best, struct roofline *ret) {
    const double peaks[] = {best->x, best->y};
    const struct side *const sides[] = {&best->compute, &best->memory};
    double weight = 0, mean = 0;
    ret->memory_bound = best->first;
    ret->tied = best->tied;
    for (size_t i = 0; i < 2; i++) {
        double slope = kernels->criterion == BY_LOG ? peaks[i] : 1; /* of exp */
        ret->estimates[i] = peaks[i];
        ret->found[i] = peaks[i] > 0;
        ret->inverse[i * TERMS_MAX + i] = ret->found[i] ? slope * slope / (double)sides[i]->square : 0;
    }
    for (size_t i = 0; i < kernels->count; i++) {
        const struct kernel *row = &kernels->rows[i];
        double m = fmax(row->flops * best->x, row->bytes * best->y), t = row->duration, w = row->w;
        double away = kernels->criterion == BY_TIME  ? t - m
                      : kernels->criterion == BY_LOG ? log(t / m)
                                                     : 1 - m / t;
        double u = kernels->criterion == BY_TIME ? t : kernels->criterion == BY_LOG ? log(t) : 1, old = mean;
        ret->rss += w * away * away;
        weight += w;
        mean += kernels->criterion == BY_LOG ? w / weight * (u - mean) : 0; /* otherwise about 0 */
        ret->total += w * (u - old) * (u - mean);
    }
    const struct kernel *low = kernels->rows, *high = &kernels->rows[kernels->count - 1];
    if (!ret->found[FLOPS])
        ret->bound = high->flops / high->bytes / best->y;
    else if (!ret->found[BYTES])
        ret->bound = low->bytes / low->flops / best->x;
}

/* Fits time = max(F x, B y) exactly, by trying all partitions of the rows by intensity. -EDOM: no rows, or
 * sums overflow. */
int classical_fit(struct kernels *kernels, struct roofline *ret, struct plugin_message *message) {
    size_t n = kernels->count;
    *ret = (struct roofline){.bound = NAN};
    if (n == 0)
        return plugin_refuse(message, -EDOM, "0 rows for 2 terms");
    struct side memory = {0}, *compute = calloc(n + 1, sizeof *compute);
    struct candidate best = {.value = INFINITY};
    if (!compute)
        return -ENOMEM;
    qsort(kernels->rows, n, sizeof *kernels->rows, by_intensity);
    for (size_t i = n; i-- > 0;)
        compute[i] = add_row(compute[i + 1], &kernels->rows[i], kernels->criterion, kernels->rows[i].flops);
    for (size_t first = 0; first <= n; first++) {
        try_free(&best, kernels, first, &memory, &compute[first]);
        try_tied(&best, kernels, first, &memory, &compute[first]);
        if (first < n)
            memory = add_row(memory, &kernels->rows[first], kernels->criterion, kernels->rows[first].bytes);
    }
    free(compute);
    if (isfinite(best.value))
        describe_best(kernels, &best, ret);
    return isfinite(best.value) && isfinite(ret->rss) && isfinite(ret->total)
               ? 0
               : plugin_refuse(message, -EDOM, "sums over the rows exceed the range of a double");
}
