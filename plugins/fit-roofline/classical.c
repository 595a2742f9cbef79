#include "plugins/fit-roofline/roofline.h"

#include <stdio.h>
#include <stdlib.h>

/* -1, 0 or 1 as the intensity of A is below, at or above that of B: F/B by products, which are exact enough
 * to tell equal ones apart from nearly equal ones, and have no division by 0. */
static int compare_intensity(const struct classical_row *a, const struct classical_row *b) {
    struct dd left = dd_two_product(a->flops, b->bytes), right = dd_two_product(b->flops, a->bytes);
    if (left.high != right.high)
        return left.high < right.high ? -1 : 1;
    return (left.low > right.low) - (left.low < right.low);
}

static int compare_rows(const void *a, const void *b) {
    const struct classical_row *left = a, *right = b;
    if (left->group != right->group)
        return left->group < right->group ? -1 : 1;
    int order = compare_intensity(left, right);
    if (order == 0 && left->flops != right->flops)
        order = left->flops < right->flops ? -1 : 1;
    if (order == 0)
        order = (left->duration > right->duration) - (left->duration < right->duration);
    return order == 0 ? (left->w > right->w) - (left->w < right->w) : order;
}

void classical_sort(struct classical_row *rows, size_t count) {
    if (count > 0)
        qsort(rows, count, sizeof *rows, compare_rows);
}

/* ---- One side of the ridge */

/* What the rows on one side say of its peak. With z = F or B, the criterion is a square in p = x or y, or for
 * ROOFLINE_LOG in p = log x or log y: `square` p^2 - 2 `product` p + `rest`. */
struct side {
    uint64_t rows;
    struct dd square, product, rest;
};

static struct side side_of(const struct classical_row *row, enum roofline_criterion criterion, double z) {
    double duration = row->duration;
    struct side ret = {.rows = 1};
    if (z == 0) /* of the other side for certain: a partition that puts it here is not looked at */
        return ret;
    if (criterion == ROOFLINE_LOG) {
        struct dd ratio = dd_divide(dd_from(duration), dd_from(z));
        struct dd u = dd_fast_two_sum(log(ratio.high), ratio.low / ratio.high);
        ret.square = dd_from(row->w);
        ret.product = dd_multiply(dd_from(row->w), u);
        ret.rest = dd_multiply(ret.product, u);
        return ret;
    }
    double w = criterion == ROOFLINE_RELATIVE ? row->w / duration / duration : row->w;
    struct dd weighted = dd_two_product(w, z);
    ret.square = dd_multiply(weighted, dd_from(z));
    ret.product = dd_multiply(weighted, dd_from(duration));
    ret.rest = dd_multiply(dd_two_product(w, duration), dd_from(duration));
    return ret;
}

static struct side side_plus(struct side a, struct side b) {
    return (struct side){a.rows + b.rows, dd_add(a.square, b.square), dd_add(a.product, b.product),
                         dd_add(a.rest, b.rest)};
}

static struct side side_minus(struct side a, struct side b) {
    return (struct side){a.rows - b.rows, dd_subtract(a.square, b.square), dd_subtract(a.product, b.product),
                         dd_subtract(a.rest, b.rest)};
}

/* The least of the criterion on one side; 0 without rows. */
static struct dd least(const struct side *side, struct dd *ret) {
    if (side->rows == 0)
        return dd_from(0);
    *ret = dd_divide(side->product, side->square);
    return dd_subtract(side->rest, dd_multiply(*ret, side->product));
}

/* The side as one of p, when its own parameter is p + SHIFT (ROOFLINE_LOG) or p FACTOR. */
static struct side seen_from(const struct side *side, enum roofline_criterion criterion, struct dd factor,
                             struct dd shift) {
    struct side ret = *side;
    if (criterion == ROOFLINE_LOG) {
        struct dd shifted = dd_multiply(side->square, shift);
        ret.product = dd_subtract(side->product, shifted);
        ret.rest = dd_add(dd_subtract(side->rest, dd_multiply(dd_multiply(dd_from(2), shift), side->product)),
                          dd_multiply(shifted, shift));
        return ret;
    }
    ret.square = dd_multiply(dd_multiply(side->square, factor), factor);
    ret.product = dd_multiply(side->product, factor);
    return ret;
}

/* ---- The best partition */

struct candidate {
    bool found, tied;
    size_t first; /* of the sorted rows, that computation bounds */
    struct dd criterion;
    double x, y; /* 0 of the one that no row tells */
    double edge; /* of the intensities, or of their inverses, the greatest, where there is one side only */
};

static void offer(struct candidate *best, const struct candidate *other) {
    if (!best->found || dd_subtract(other->criterion, best->criterion).high < 0)
        *best = *other;
}

/* The rows that computation bounds begin at FIRST; SIDES are memory and computation. */
struct partition {
    const struct classical_row *rows;
    size_t count, first;
    struct side memory, compute;
};

/* The row before FIRST and the row there; NULL: there is none. */
static const struct classical_row *last_of_memory(const struct partition *partition) {
    return partition->first > 0 ? &partition->rows[partition->first - 1] : NULL;
}

static const struct classical_row *first_of_compute(const struct partition *partition) {
    return partition->first < partition->count ? &partition->rows[partition->first] : NULL;
}

/* Each side by itself, when the ridge that comes out lies between the two. */
static void offer_free(struct candidate *best, enum roofline_criterion criterion,
                       const struct partition *partition) {
    const struct classical_row *low = last_of_memory(partition), *high = first_of_compute(partition);
    /* A row without bytes is never memory's, one without flops never computation's. */
    if ((low && low->bytes == 0) || (high && high->flops == 0))
        return;
    struct dd x = dd_from(0), y = dd_from(0);
    struct dd left = least(&partition->memory, &y), right = least(&partition->compute, &x);
    struct candidate one = {.found = true, .first = partition->first, .criterion = dd_add(left, right)};
    bool log = criterion == ROOFLINE_LOG;
    one.y = !low ? 0 : log ? exp(dd_to_double(y)) : dd_to_double(y);
    one.x = !high ? 0 : log ? exp(dd_to_double(x)) : dd_to_double(x);
    if (low && high) {
        if (low->flops * one.x > low->bytes * one.y || high->flops * one.x < high->bytes * one.y)
            return;
    } else {
        one.edge = low ? low->flops / low->bytes : high->bytes / high->flops;
    }
    offer(best, &one);
}

/* The ridge at the intensity of memory's last row: y = x F/B. */
static void offer_tied(struct candidate *best, enum roofline_criterion criterion,
                       const struct partition *partition) {
    const struct classical_row *row = last_of_memory(partition);
    if (!row || row->flops == 0 || row->bytes == 0)
        return;
    struct dd ridge = dd_divide(dd_from(row->flops), dd_from(row->bytes)), x;
    struct side all = seen_from(&partition->memory, criterion, ridge, dd_from(log(ridge.high)));
    all = side_plus(all, partition->compute);
    struct candidate one = {.found = true, .tied = true, .first = partition->first};
    one.criterion = least(&all, &x);
    one.x = criterion == ROOFLINE_LOG ? exp(dd_to_double(x)) : dd_to_double(x);
    one.y = one.x * dd_to_double(ridge);
    offer(best, &one);
}

static void offer_both(struct candidate *best, enum roofline_criterion criterion,
                       const struct partition *partition) {
    offer_free(best, criterion, partition);
    offer_tied(best, criterion, partition);
}

/* Both sides, added up afresh. */
static void add_sides(struct partition *partition, enum roofline_criterion criterion) {
    partition->memory = partition->compute = (struct side){0};
    for (size_t i = 0; i < partition->count; i++) {
        const struct classical_row *row = &partition->rows[i];
        if (i < partition->first)
            partition->memory = side_plus(partition->memory, side_of(row, criterion, row->bytes));
        else
            partition->compute = side_plus(partition->compute, side_of(row, criterion, row->flops));
    }
}

/* Sorted by intensity, the rows that memory bounds come first, so a ridge parts them into a beginning and an
 * end. Between two neighbouring intensities the criterion is a sum of two squares, one in each peak: its
 * least value there is that of each side by itself, if the ridge that this gives lies between the two, and
 * otherwise it is at one of them, where one peak tells the other. All of these are looked at. */
static struct candidate search(const struct classical_row *rows, size_t count,
                               enum roofline_criterion criterion) {
    struct candidate best = {0};
    struct partition partition = {.rows = rows, .count = count};
    add_sides(&partition, criterion);
    for (;;) {
        size_t i = partition.first;
        if (i == 0 || i == count || compare_intensity(&rows[i - 1], &rows[i]) != 0)
            offer_both(&best, criterion, &partition);
        if (i == count)
            break;
        partition.memory = side_plus(partition.memory, side_of(&rows[i], criterion, rows[i].bytes));
        partition.compute = side_minus(partition.compute, side_of(&rows[i], criterion, rows[i].flops));
        partition.first++;
    }
    /* Once more for the best one: where its end is little beside the rest, taking away left it few digits. */
    partition.first = best.first;
    add_sides(&partition, criterion);
    struct candidate exact = {0};
    if (best.tied)
        offer_tied(&exact, criterion, &partition);
    else
        offer_free(&exact, criterion, &partition);
    return exact.found ? exact : best;
}

/* ---- Results */

/* Of the criterion's own response: its squares, and the part of them that r2 is about. */
static void total_of(const struct classical_row *rows, size_t count, enum roofline_criterion criterion,
                     struct dd *ret_raw, struct dd *ret_total, double *ret_log_densities) {
    struct dd weight = dd_from(0), sum = dd_from(0), squares = dd_from(0), densities = dd_from(0);
    for (size_t i = 0; i < count; i++) {
        double duration = rows[i].duration, w = rows[i].w, share = w;
        double response = criterion == ROOFLINE_LOG ? log(duration) : duration;
        if (criterion == ROOFLINE_RELATIVE)
            share = w / duration / duration;
        struct dd weighted = dd_two_product(share, response);
        weight = dd_add(weight, dd_from(share));
        sum = dd_add(sum, weighted);
        squares = dd_add(squares, dd_multiply(weighted, dd_from(response)));
        densities = dd_add(densities, dd_from(0.5 * log(share) - (criterion == ROOFLINE_LOG ? response : 0)));
    }
    *ret_raw = *ret_total = squares;
    if (criterion == ROOFLINE_LOG)
        *ret_total = dd_subtract(squares, dd_divide(dd_multiply(sum, sum), weight));
    *ret_log_densities = dd_to_double(densities);
}

/* sigma^2 / sum w z^2 of each side; that of a logarithm times its estimate's square. */
static void spread(const struct classical_row *rows, size_t count, const struct candidate *best,
                   enum roofline_criterion criterion, struct roofline *ret) {
    struct partition partition = {.rows = rows, .count = count, .first = best->first};
    add_sides(&partition, criterion);
    const struct side *sides[] = {
        [ROOFLINE_FLOPS] = &partition.compute, [ROOFLINE_BYTES] = &partition.memory};
    for (size_t i = 0; i < 2; i++) {
        if (!ret->told[i])
            continue;
        double variance = ret->sigma * ret->sigma / sides[i]->square.high;
        ret->covariance[4 * i] =
            criterion == ROOFLINE_LOG ? variance * ret->estimates[i] * ret->estimates[i] : variance;
    }
    ret->has_covariance = true;
}

static void judge(const struct classical_row *rows, size_t count, const struct candidate *best,
                  enum roofline_criterion criterion, struct roofline *ret) {
    double n = (double)count, told = (double)ret->told[0] + (double)ret->told[1], log_densities;
    struct dd raw, total;
    total_of(rows, count, criterion, &raw, &total, &log_densities);
    ret->degrees = n - told;
    ret->saturated = ret->degrees <= 0;
    ret->perfect = best->criterion.high <= normal_perfect * raw.high;
    ret->rss = ret->perfect || (ret->saturated && !best->tied) ? 0 : dd_to_double(best->criterion);
    if (total.high > normal_perfect * raw.high)
        ret->r2 = 1 - dd_to_double(dd_divide(dd_from(ret->rss), total));
    if (ret->saturated)
        return;
    ret->sigma = sqrt(ret->rss / ret->degrees);
    if (!best->tied)
        spread(rows, count, best, criterion, ret);
    if (ret->perfect)
        return;
    ret->log_likelihood = log_densities - 0.5 * n * (log(2 * M_PI) + 1 + log(ret->rss / n));
    ret->aic = 2 * (told + 1) - 2 * ret->log_likelihood; /* sigma counts as one */
    ret->bic = log(n) * (told + 1) - 2 * ret->log_likelihood;
}

bool classical_fit(const struct classical_row *rows, size_t count, enum roofline_criterion criterion,
                   struct roofline *ret, char reason[static ROOFLINE_REASON_SIZE]) {
    *ret = (struct roofline){
        .sigma = NAN, .r2 = NAN, .log_likelihood = NAN, .aic = NAN, .bic = NAN, .bound = {NAN, NAN}};
    if (count == 0) {
        snprintf(reason, ROOFLINE_REASON_SIZE, "0 rows for 2 terms");
        return false;
    }
    struct candidate best = search(rows, count, criterion);
    if (!best.found || !isfinite(best.criterion.high) || !isfinite(best.x) || !isfinite(best.y)) {
        snprintf(reason, ROOFLINE_REASON_SIZE, "its sums are beyond the range of a double");
        return false;
    }
    ret->rows = count;
    ret->estimates[ROOFLINE_FLOPS] = best.x;
    ret->estimates[ROOFLINE_BYTES] = best.y;
    ret->memory_bound = best.first;
    ret->compute_bound = count - best.first;
    ret->tied = best.tied;
    ret->told[ROOFLINE_FLOPS] = best.x > 0;
    ret->told[ROOFLINE_BYTES] = best.y > 0;
    if (best.edge > 0 && best.x == 0)
        ret->bound[ROOFLINE_FLOPS] = best.edge / best.y;
    if (best.edge > 0 && best.y == 0)
        ret->bound[ROOFLINE_BYTES] = best.edge / best.x;
    judge(rows, count, &best, criterion, ret);
    return true;
}
