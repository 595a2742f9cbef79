#include "engine/numerics/segments.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Starts of a segment are pruned in blocks (PELT, R. Killick et al. 2012): a line over more points has at
 * least the residual sum of a line over a part of them, so the cost from the end of a block bounds the cost
 * from any start in it. */
enum { BLOCK = 8 };

/* Moments of runs of points: sum w, the means, sum w (x - mean)^2, the slope of the regression line, and its
 * residual sum of squares. A new point adds a square to that sum, so nothing cancels. */
struct moments {
    double *weight, *x, *y, *spread, *slope, *rss;
};

static struct moments moments_at(double *memory, size_t count) {
    return (struct moments){memory,
                            memory + count,
                            memory + 2 * count,
                            memory + 3 * count,
                            memory + 4 * count,
                            memory + 5 * count};
}

/* Adds one point to each of the first COUNT runs, by Welford's updates. */
static void add_point(const struct moments *to, size_t count, double x, double y, double w) {
    double *restrict weights = to->weight, *restrict xs = to->x, *restrict ys = to->y;
    double *restrict spreads = to->spread, *restrict slopes = to->slope, *restrict rss = to->rss;
    for (size_t k = 0; k < count; k++) {
        double sum = weights[k] + w, share = w / sum, both = share * weights[k];
        double dx = x - xs[k], dy = y - ys[k], residual = dy - slopes[k] * dx;
        double spread = spreads[k] + both * dx * dx;
        double gain = both / (spread + DBL_MIN); /* both is 0 for the first point of a run */
        rss[k] += gain * spreads[k] * residual * residual;
        slopes[k] += gain * dx * residual;
        spreads[k] = spread;
        xs[k] += share * dx;
        ys[k] += share * dy;
        weights[k] = sum;
    }
}

/* The residual sum of one line over run FIRST + i of HEADS joined with run AT of TAILS,
 * for i < BLOCK, into RET. */
static void join_runs(const struct moments *heads, size_t first, const struct moments *tails, size_t at,
                      double *restrict ret) {
    const double *weights = heads->weight + first, *xs = heads->x + first, *ys = heads->y + first;
    const double *spreads = heads->spread + first, *slopes = heads->slope + first, *rss = heads->rss + first;
    double weight = tails->weight[at], x = tails->x[at], y = tails->y[at];
    double spread = tails->spread[at], slope = tails->slope[at], left = tails->rss[at];
    for (size_t i = 0; i < BLOCK; i++) {
        double both = weights[i] * weight / (weights[i] + weight);
        double dx = xs[i] - x, dy = ys[i] - y, turn = slopes[i] - slope;
        double head = slopes[i] * dx - dy, tail = slope * dx - dy;
        double squares =
            spreads[i] * spread * turn * turn + both * (spreads[i] * head * head + spread * tail * tail);
        ret[i] = rss[i] + left + squares / (spreads[i] + spread + both * dx * dx);
    }
}

/* ---- The least R + price m */

struct search {
    const struct segments_problem *problem;
    size_t points, minimum, step; /* breaks are at multiples of STEP, or given */
    double *x, *y, *w;            /* scaled by powers of two to at most 1 */
    double unit;                  /* of R, in the problem's */
    double *memory;               /* of all arrays of doubles */
    struct moments heads;         /* by point: the run from it to the end of its block */
    struct moments tails;         /* by active block: the run from its end to the point reached */
    double *least;                /* by active block: the least of `cost` in it */
    double *cost;                 /* by point: the least R + price m before it, with a break there */
    uint32_t *start,
        *block;   /* by point: where the best segment that ends there begins; numbers of the active blocks */
    bool *pruned; /* by active block: removed at the next check */
    struct segments best; /* by the criterion; or with as many segments as asked for */
    double criterion;     /* of the best */
    double exact;         /* R below it is rounding */
};

/* Divides VALUES - ORIGIN by a power of two that leaves them below 1, into RET. Returns its exponent. */
static int scale_to_one(size_t count, const double *values, double origin, double *ret) {
    double most = 0;
    int exponent;
    for (size_t i = 0; i < count; i++)
        most = fmax(most, fabs(values[i] - origin));
    frexp(most, &exponent);
    for (size_t i = 0; i < count; i++)
        ret[i] = ldexp(values[i] - origin, -exponent);
    return exponent;
}

/* Prepares a search: scales the data and computes `heads`. -EINVAL: the problem is not valid; -ENOMEM. To be
 * cleared in any case. */
static int search_init(struct search *ret, const struct segments_problem *problem, size_t step) {
    size_t n = problem->points, padded = n + BLOCK + 1, blocks = n / BLOCK + 2;
    *ret = (struct search){
        .problem = problem, .points = n, .minimum = problem->minimum, .step = step, .criterion = INFINITY};
    if (n == 0 || n > SEGMENTS_POINTS_MAX || problem->minimum == 0 || !(problem->penalty > 0))
        return -EINVAL;
    for (size_t i = 0; i < n; i++)
        if (!isfinite(problem->x[i]) || !isfinite(problem->y[i]) ||
            (i > 0 && problem->x[i] <= problem->x[i - 1]) ||
            (problem->weights && !(problem->weights[i] > 0 && isfinite(problem->weights[i]))))
            return -EINVAL;
    for (size_t i = 0; i < problem->given_count; i++)
        if (problem->given[i] <= (i ? problem->given[i - 1] : 0) || problem->given[i] >= n)
            return -EINVAL;
    double *memory = ret->memory = calloc(10 * padded + 7 * blocks, sizeof *memory);
    ret->start = calloc(padded, sizeof *ret->start);
    ret->block = calloc(blocks, sizeof *ret->block);
    ret->pruned = calloc(blocks, sizeof *ret->pruned);
    if (!memory || !ret->start || !ret->block || !ret->pruned)
        return -ENOMEM;
    ret->x = memory;
    ret->y = memory + padded;
    ret->w = memory + 2 * padded;
    ret->cost = memory + 3 * padded;
    ret->heads = moments_at(memory + 4 * padded, padded);
    ret->tails = moments_at(memory + 10 * padded, blocks);
    ret->least = memory + 10 * padded + 6 * blocks;
    scale_to_one(n, problem->x, problem->x[0], ret->x);
    int unit = 2 * scale_to_one(n, problem->y, 0, ret->y);
    if (problem->weights)
        unit += scale_to_one(n, problem->weights, 0, ret->w);
    for (size_t i = 0; i < n; i++) {
        ret->w[i] = problem->weights ? ret->w[i] : 1;
        ret->exact += 0x1p-92 * ret->w[i] * ret->y[i] * ret->y[i];
    }
    ret->unit = ldexp(1, unit);
    for (size_t i = 0; i < padded;
         i++) /* heads after the last point weigh something, so that nothing is 0 / 0 */
        ret->heads.weight[i] = i < n ? 0 : 1;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n && (j == i || j % BLOCK != 0); j++) {
            struct moments head = ret->heads;
            head = (struct moments){head.weight + i, head.x + i,     head.y + i,
                                    head.spread + i, head.slope + i, head.rss + i};
            add_point(&head, 1, ret->x[j], ret->y[j], ret->w[j]);
        }
    return 0;
}

static void search_clear(struct search *search) {
    free(search->memory);
    free(search->start);
    free(search->block);
    free(search->pruned);
    segments_clear(&search->best);
}

/* Removes the blocks that were marked at the last check, and marks those from which no segment can be best
 * any more, since a break at END costs less, whatever follows. That holds for ends at least a minimum length
 * after END, so checks are that far apart. The first ELIGIBLE blocks end a minimum before END. Returns the
 * number of blocks that remain. */
static size_t prune_blocks(struct search *search, size_t active, size_t eligible, size_t end) {
    struct moments *tails = &search->tails;
    double *const arrays[] = {tails->weight, tails->x,   tails->y,     tails->spread,
                              tails->slope,  tails->rss, search->least};
    size_t kept = 0;
    for (size_t k = 0; k < active; k++) {
        if (search->pruned[k])
            continue;
        for (size_t a = 0; a < sizeof arrays / sizeof *arrays; a++)
            arrays[a][kept] = arrays[a][k];
        search->block[kept] = search->block[k];
        search->pruned[kept] = k < eligible && search->least[k] + tails->rss[k] >= search->cost[end];
        kept++;
    }
    return kept;
}

static void begin_block(struct search *search, size_t slot, size_t block) {
    struct moments *tails = &search->tails;
    tails->weight[slot] = tails->x[slot] = tails->y[slot] = 0;
    tails->spread[slot] = tails->slope[slot] = tails->rss[slot] = 0;
    search->block[slot] = (uint32_t)block;
    search->pruned[slot] = false;
    search->least[slot] = INFINITY;
    for (size_t i = block * BLOCK; i < (block + 1) * BLOCK; i++)
        search->least[slot] = fmin(search->least[slot], search->cost[i]);
}

/* Finds the best start of the last segment in the finished blocks, into *START. Returns its cost, or BEST if
 * none is lower. */
static double find_start_in_blocks(const struct search *search, size_t eligible, double best, size_t *start) {
    double left[BLOCK];
    for (size_t k = 0; k < eligible; k++) {
        if (search->least[k] + search->tails.rss[k] >= best)
            continue;
        size_t first = (size_t)search->block[k] * BLOCK;
        join_runs(&search->heads, first, &search->tails, k, left);
        for (size_t i = 0; i < BLOCK; i++)
            if (search->cost[first + i] + left[i] < best) {
                best = search->cost[first + i] + left[i];
                *start = first + i;
            }
    }
    return best;
}

/* Finds the best segments between the points FROM and TO, between which no break is given, at PRICE for a
 * break; `start` has for each end the start of the last segment. */
static void run_part(struct search *search, double price, size_t from, size_t to) {
    size_t after = search->minimum > 2 ? search->minimum : 2; /* a finished block has a point after it */
    size_t active = 0, period = search->minimum > BLOCK ? search->minimum : BLOCK, checked = from;
    double memory[6];
    struct moments run_with_price = moments_at(memory, 1);
    search->start[to] = (uint32_t)from;
    if (isinf(price))
        return;
    for (size_t i = from / BLOCK * BLOCK; i <= to; i++)
        search->cost[i] = INFINITY;
    search->cost[from] = 0;
    for (size_t end = from + 1; end <= to; end++) {
        size_t last = end - 1, eligible = 0, start = from;
        if (last % BLOCK == 0 && last > from)
            begin_block(search, active++, last / BLOCK - 1);
        add_point(&search->tails, active, search->x[last], search->y[last], search->w[last]);
        size_t finished = end + 1 > after ? (end + 1 - after) / BLOCK : 0;
        while (eligible < active && search->block[eligible] < finished)
            eligible++;
        double best = find_start_in_blocks(search, eligible, INFINITY, &start);
        size_t first = finished * BLOCK > from ? finished * BLOCK : from;
        memset(memory, 0, sizeof memory);
        for (size_t i = end; i-- > first;) { /* starts that are in no finished block */
            add_point(&run_with_price, 1, search->x[i], search->y[i], search->w[i]);
            double cost = search->cost[i] + *run_with_price.rss;
            bool allowed = end - i >= search->minimum || (i == from && end == to);
            if (allowed && (cost < best || (cost == best && i < start))) {
                best = cost;
                start = i;
            }
        }
        search->start[end] = (uint32_t)start;
        search->cost[end] = end % search->step == 0 || end == to ? best + price : INFINITY;
        if (end - checked >= period) {
            active = prune_blocks(search, active, eligible, end);
            checked = end;
        }
    }
}

/* ---- Results */

/* The regression line over the points BEGIN to END - 1, computed with more digits than double. */
void segments_line(const struct segments_problem *problem, size_t begin, size_t end, struct segment *ret) {
    const double *x = problem->x, *y = problem->y, *weights = problem->weights;
    long double weight = 0, mean_x = 0, mean_y = 0, xx = 0, xy = 0, rss = 0;
    for (size_t i = begin; i < end; i++) {
        long double w = weights ? weights[i] : 1;
        weight += w;
        mean_x += w * x[i];
        mean_y += w * y[i];
    }
    mean_x /= weight;
    mean_y /= weight;
    for (size_t i = begin; i < end; i++) {
        long double w = weights ? weights[i] : 1;
        xx += w * (x[i] - mean_x) * (x[i] - mean_x);
        xy += w * (x[i] - mean_x) * (y[i] - mean_y);
    }
    long double slope = xx > 0 ? xy / xx : 0;
    for (size_t i = begin; end - begin > 2 && i < end; i++) { /* two points leave nothing */
        long double residual = (y[i] - mean_y) - slope * (x[i] - mean_x);
        rss += (weights ? weights[i] : 1) * residual * residual;
    }
    *ret = (struct segment){.begin = begin,
                            .end = end,
                            .intercept = (double)(mean_y - slope * mean_x),
                            .slope = (double)slope,
                            .rss = (double)rss,
                            .weight = (double)weight,
                            .mean = (double)mean_x,
                            .spread = (double)xx};
}

/* The residual sum of the line over the first 1, 2, ... points from BEGIN on, or from END backwards. */
void segments_scan(const struct segments_problem *problem, size_t begin, size_t end, bool backwards,
                   double *ret) {
    double memory[6] = {0};
    struct moments run_with_price = moments_at(memory, 1);
    for (size_t k = 0; k < end - begin; k++) {
        size_t i = backwards ? end - 1 - k : begin + k;
        add_point(&run_with_price, 1, problem->x[i], problem->y[i],
                  problem->weights ? problem->weights[i] : 1);
        ret[k] = *run_with_price.rss;
    }
}

void segments_clear(struct segments *segments) {
    free(segments->segments);
    *segments = (struct segments){0};
}

/* Makes the segments from `start`, following it back from the last point, into RET. -ENOMEM. */
static int trace_segments(const struct search *search, struct segments *ret) {
    *ret = (struct segments){0};
    for (size_t end = search->points; end > 0; end = search->start[end])
        ret->count++;
    ret->segments = malloc(ret->count * sizeof *ret->segments);
    if (!ret->segments)
        return -ENOMEM;
    size_t at = ret->count;
    for (size_t end = search->points; end > 0; end = search->start[end])
        segments_line(search->problem, search->start[end], end, &ret->segments[--at]);
    for (size_t i = 0; i < ret->count; i++)
        ret->rss += ret->segments[i].rss;
    return 0;
}

/* ---- The hull */

/* A corner of the lower convex hull of R over the number of breaks: the best for prices `low` to `high`. */
struct corner {
    size_t breaks;
    double rss, low, high;
};

struct hull {
    struct corner *corners; /* by their breaks */
    size_t count, room;
};

static double criterion(const struct search *search, double breaks, double rss) {
    const struct segments_problem *problem = search->problem;
    return problem->measurements * log(fmax(rss + problem->scatter, search->exact * search->unit)) +
           (breaks > 0 ? problem->penalty * breaks : 0);
}

/* Searches with PRICE for a break; the result's corner goes to RET. Keeps the best segments so far: those
 * with WANTED segments, or, if that is 0, with the least criterion. 0 or a negative errno. */
static int run_with_price(struct search *search, double price, size_t wanted, struct corner *ret) {
    const struct segments_problem *problem = search->problem;
    size_t from = 0;
    for (size_t i = 0; i <= problem->given_count; i++) {
        size_t to = i < problem->given_count ? problem->given[i] : search->points;
        run_part(search, price / search->unit, from, to);
        from = to;
    }
    struct segments found;
    int code = trace_segments(search, &found);
    if (code < 0)
        return code;
    *ret = (struct corner){found.count - 1 - problem->given_count, found.rss, price, price};
    double value = criterion(search, (double)ret->breaks, found.rss), margin = value - search->criterion;
    found.runs = search->best.runs + 1;
    if (wanted ? found.count == wanted
               : margin < -1e-9 || (margin <= 1e-9 && found.count < search->best.count)) {
        segments_clear(&search->best);
        search->best = found;
        search->criterion = value;
        return 0;
    }
    search->best.runs = found.runs;
    segments_clear(&found);
    return 0;
}

/* A lower bound of the criterion for any number of breaks between two corners: the hull lies above the line
 * of either corner's price, and the criterion is concave along these, so it is least where they meet. */
static double least_between(const struct search *search, const struct corner *a, const struct corner *b) {
    double least = INFINITY, line = b->rss + b->high * (double)b->breaks;
    if (b->breaks - a->breaks < 2 || a->low <= b->high)
        return least;
    double meet =
        isinf(a->low) ? (double)a->breaks : (a->rss + a->low * (double)a->breaks - line) / (a->low - b->high);
    for (double breaks = floor(meet); breaks <= floor(meet) + 1; breaks++) {
        double inside = fmin(fmax(breaks, (double)a->breaks + 1), (double)b->breaks - 1);
        double above_a = isinf(a->low) ? 0 : a->rss - a->low * (inside - (double)a->breaks);
        least = fmin(least, criterion(search, inside, fmax(above_a, line - b->high * inside)));
    }
    return least;
}

/* The greatest price, below that of A, at which finding A again would show that no corner between A and B is
 * better; SLOPE, that of the line from A to B, if there is none above it. */
static double closing_price(const struct search *search, const struct corner *a, const struct corner *b,
                            double slope) {
    struct corner next = *a;
    double low = slope, high = fmin(a->low, a->rss);
    while (high > low * 1.001) {
        next.low = low + (high - low) / 2;
        if (least_between(search, &next, b) + 1e-9 >= search->criterion)
            low = next.low;
        else
            high = next.low;
    }
    return low;
}

/* Searches with a price between those of corners I and I + 1: the price of the criterion's own trade-off,
 * else the greatest useful one. Finds a corner between the two, or narrows their prices. 0 or a negative
 * errno. */
static int search_between(struct search *search, struct hull *hull, size_t i, size_t wanted) {
    const struct segments_problem *problem = search->problem;
    struct corner *a = &hull->corners[i], *b = a + 1, found;
    double slope = (a->rss - b->rss) / (double)(b->breaks - a->breaks);
    double price = problem->penalty * (search->best.rss + problem->scatter) / problem->measurements;
    bool chord = wanted || !(price > b->high && price < a->low);
    if (chord)
        price = wanted ? slope : closing_price(search, a, b, slope);
    chord = chord && price == slope;
    int code = run_with_price(search, price, wanted, &found);
    if (code < 0)
        return code;
    if (found.breaks > a->breaks && found.breaks < b->breaks) {
        if (hull->count == hull->room) {
            struct corner *more = realloc(hull->corners, 2 * hull->room * sizeof *more);
            if (!more)
                return -ENOMEM;
            hull->corners = more;
            hull->room *= 2;
        }
        memmove(&hull->corners[i + 2], &hull->corners[i + 1], (hull->count - i - 1) * sizeof found);
        hull->corners[i + 1] = found;
        hull->count++;
    } else if (chord) {
        a->low = b->high = slope;
    } else if (found.breaks <= a->breaks) {
        a->low = price;
    } else {
        b->high = price;
    }
    return 0;
}

/* Begins the hull with its two ends: no break, and as many breaks as reduce R most. */
static int hull_init(struct search *search, struct hull *ret, size_t wanted) {
    *ret = (struct hull){.corners = calloc(8, sizeof *ret->corners), .room = 8};
    if (!ret->corners)
        return -ENOMEM;
    int code = run_with_price(search, INFINITY, wanted, &ret->corners[0]);
    ret->count = 1;
    if (code < 0 || (!wanted && isinf(search->problem->penalty)))
        return code;
    code = run_with_price(search, 0, wanted, &ret->corners[1]);
    ret->count += ret->corners[1].breaks > ret->corners[0].breaks;
    return code;
}

static void hull_clear(struct hull *hull) {
    free(hull->corners);
}

/* Finds the segments with the least criterion, with breaks at multiples of STEP, by refining the hull until
 * no gap can hide a better one (CROPS, K. Haynes et al. 2017). */
static int find_best(const struct segments_problem *problem, size_t step, struct segments *ret) {
    cleanup(search_clear) struct search search;
    cleanup(hull_clear) struct hull hull = {0};
    *ret = (struct segments){0};
    int code = search_init(&search, problem, step);
    if (code == 0)
        code = hull_init(&search, &hull, 0);
    if (code == 0 && search.best.count == 0) /* R is beyond the range of a double */
        code = -EINVAL;
    while (code == 0) {
        size_t at = 0;
        double least = INFINITY;
        for (size_t i = 0; i + 1 < hull.count; i++) {
            double between = least_between(&search, &hull.corners[i], &hull.corners[i + 1]);
            if (between < least) {
                least = between;
                at = i;
            }
        }
        if (least + 1e-9 >= search.criterion)
            break;
        code = search_between(&search, &hull, at, 0);
    }
    if (code < 0)
        return code;
    *ret = search.best;
    search.best = (struct segments){0};
    return 0;
}

/* ---- A given number of segments that is no corner */

/* The least COST[i] + LEFT[i], in eight lanes for vector instructions. */
static double least_sum(const double *cost, const double *left, size_t count) {
    enum { LANES = 8 };
    double lanes[LANES], least = INFINITY;
    size_t i = 0;
    for (size_t l = 0; l < LANES; l++)
        lanes[l] = INFINITY;
    for (; i + LANES <= count; i += LANES)
        for (size_t l = 0; l < LANES; l++) {
            double sum = cost[i + l] + left[i + l];
            lanes[l] = sum < lanes[l] ? sum : lanes[l];
        }
    for (; i < count; i++)
        least = fmin(least, cost[i] + left[i]);
    for (size_t l = 0; l < LANES; l++)
        least = fmin(least, lanes[l]);
    return least;
}

/* Finds the best COUNT segments by dynamic programming over their number (R. Bellman 1961), into `start`.
 * -ENOMEM. */
static int segment_by_dynamic_programming(struct search *search, size_t count) {
    size_t n = search->points, stride = n + 1;
    cleanup_free double *cost =
        malloc((count + 1) * stride * sizeof *cost); /* of k segments over the first j points */
    cleanup_free double *memory = calloc(6 * stride, sizeof *memory); /* from each point to the one reached */
    if (!cost || !memory)
        return -ENOMEM;
    struct moments runs = moments_at(memory, stride);
    for (size_t i = 0; i < (count + 1) * stride; i++)
        cost[i] = INFINITY;
    cost[0] = 0;
    for (size_t end = 1; end <= n; end++) {
        add_point(&runs, end, search->x[end - 1], search->y[end - 1], search->w[end - 1]);
        for (size_t k = 1; k <= count && k * search->minimum <= end && end % search->step == 0; k++)
            cost[k * stride + end] = least_sum(cost + (k - 1) * stride, runs.rss, end + 1 - search->minimum);
    }
    size_t end = n;
    for (size_t k = count; k > 0; k--) { /* the costs say the rest: looked for again along the best alone */
        double run_memory[6] = {0}, best = INFINITY;
        struct moments run_with_price = moments_at(run_memory, 1);
        size_t start = 0;
        for (size_t i = end; i-- > 0;) {
            add_point(&run_with_price, 1, search->x[i], search->y[i], search->w[i]);
            if (end - i >= search->minimum && cost[(k - 1) * stride + i] + *run_with_price.rss <= best) {
                best = cost[(k - 1) * stride + i] + *run_with_price.rss;
                start = i;
            }
        }
        search->start[end] = (uint32_t)start;
        end = start;
    }
    return 0;
}

/* Finds the COUNT segments with the least R, breaks at multiples of STEP: by the hull, or, where they are no
 * corner of it, by dynamic programming. -EINVAL: there is no room for so many. */
static int find_exactly(const struct segments_problem *problem, size_t step, size_t count,
                        struct segments *ret) {
    cleanup(search_clear) struct search search;
    cleanup(hull_clear) struct hull hull = {0};
    *ret = (struct segments){0};
    int code = search_init(&search, problem, step);
    if (code < 0)
        return code;
    if (count == 0 || problem->given_count > 0 || count > problem->points / problem->minimum)
        return -EINVAL;
    code = hull_init(&search, &hull, count);
    while (code == 0 && search.best.count != count) {
        size_t i = 0;
        while (i + 1 < hull.count && hull.corners[i + 1].breaks < count - 1)
            i++;
        if (i + 1 == hull.count || hull.corners[i].low <= hull.corners[i + 1].high)
            break;
        code = search_between(&search, &hull, i, count);
    }
    if (code == 0 && search.best.count != count) {
        size_t runs = search.best.runs;
        code = segment_by_dynamic_programming(&search, count);
        if (code == 0)
            code = trace_segments(&search, &search.best);
        search.best.runs = runs + 1;
    }
    if (code < 0)
        return code;
    *ret = search.best;
    search.best = (struct segments){0};
    return 0;
}

/* ---- Many points */

/* Runs of neighbouring points, each replaced by two points and a sum of squares. Weight, means and sums of
 * products are kept, so lines over whole runs, and their residual sums, are the same. */
struct runs {
    struct segments_problem problem; /* two points a run */
    double *memory;                  /* x, y and weights, STRIDE apart */
    size_t stride;
    size_t *begins, *given; /* points at which runs begin, and their end; given breaks among the pairs */
    size_t count;
};

static void runs_clear(struct runs *runs) {
    free(runs->memory);
    free(runs->begins);
    free(runs->given);
}

/* How many points a run has at least, where no given breaks are closer. */
static size_t run_length(const struct segments_problem *problem) {
    return (problem->points + SEGMENTS_RUNS - 1) / SEGMENTS_RUNS;
}

/* Adds the two points that replace the points BEGIN to END - 1: at the first x, and where the spread is that
 * of the run, at or before its last x. */
static void add_pair(const struct segments_problem *problem, size_t begin, size_t end, struct runs *ret) {
    double *x = ret->memory + 2 * ret->count, *y = x + ret->stride, *w = y + ret->stride;
    struct segment line;
    segments_line(problem, begin, end, &line);
    double left = line.mean - problem->x[begin], right = left > 0 ? line.spread / line.weight / left : 0;
    x[0] = problem->x[begin];
    x[1] = fmax(line.mean + right, nextafter(x[0], INFINITY));
    for (size_t i = 0; i < 2; i++)
        y[i] = line.intercept + line.slope * x[i];
    w[0] = left > 0 ? line.weight * (right / (left + right)) : line.weight / 2;
    w[1] = left > 0 ? line.weight * (left / (left + right)) : line.weight / 2;
    ret->problem.scatter += line.rss;
    ret->begins[ret->count++] = begin;
}

/* Groups the points into runs of about equal length. With NEAR, runs near its breaks are shorter, down to
 * single points. -ENOMEM. */
static int runs_init(struct runs *ret, const struct segments_problem *problem, const struct segments *near) {
    size_t n = problem->points, length = run_length(problem), breaks = near ? near->count : 0, fine = length;
    size_t room = 2 * SEGMENTS_RUNS + 4 * (breaks + problem->given_count + 1);
    *ret = (struct runs){.problem = *problem,
                         .memory = malloc(6 * room * sizeof *ret->memory),
                         .stride = 2 * room,
                         .begins = malloc(room * sizeof *ret->begins),
                         .given = malloc(room * sizeof *ret->given)};
    if (!ret->memory || !ret->begins || !ret->given)
        return -ENOMEM;
    if (near) { /* at least three runs a segment */
        fine = (problem->minimum + 2) / 3 + 2 * breaks * length / SEGMENTS_RUNS;
        fine = fine < length ? fine : length;
    }
    for (size_t part = 0, begin = 0, at = 1; part <= problem->given_count; part++) {
        size_t to = part < problem->given_count ? problem->given[part] : n;
        for (size_t end; begin < to; begin = end) {
            while (at < breaks && near->segments[at].begin + length <= begin)
                at++;
            size_t next = at < breaks ? near->segments[at].begin : 2 * n;
            size_t size = begin + length >= next ? fine : length;
            size_t stop = begin + length >= next || next - length > to ? to : next - length;
            end = stop - begin < 2 * size ? stop : begin + size;
            add_pair(problem, begin, end, ret);
        }
        ret->given[part] = 2 * ret->count;
    }
    ret->begins[ret->count] = n;
    ret->problem.points = 2 * ret->count;
    ret->problem.x = ret->memory;
    ret->problem.y = ret->memory + ret->stride;
    ret->problem.weights = ret->memory + 2 * ret->stride;
    ret->problem.given = ret->given;
    ret->problem.minimum = 2 * ((problem->minimum + fine - 1) / fine);
    return 0;
}

/* Finds COUNT segments (0: as many as the criterion says) with breaks between runs. */
static int find_between_runs(const struct segments_problem *problem, const struct segments *near,
                             size_t count, struct segments *ret) {
    cleanup(runs_clear) struct runs runs = {0};
    *ret = (struct segments){0};
    int code = runs_init(&runs, problem, near);
    if (code == 0)
        code = count > 0 ? find_exactly(&runs.problem, 2, count, ret) : find_best(&runs.problem, 2, ret);
    for (size_t i = 0; i < ret->count; i++) {
        ret->segments[i].begin = runs.begins[ret->segments[i].begin / 2];
        ret->segments[i].end = runs.begins[ret->segments[i].end / 2];
    }
    ret->places = runs.count;
    return code;
}

/* Moves the break before segment I of FOUND to its best place between its neighbours, unless it is a given
 * break. ROOM: two numbers a point. */
static void move_break(const struct segments_problem *problem, struct segments *found, size_t i,
                       double *room) {
    struct segment *left = &found->segments[i - 1], *right = left + 1;
    size_t begin = left->begin, count = right->end - begin;
    double *before = room, *after = room + problem->points, least = INFINITY;
    for (size_t k = 0; k < problem->given_count; k++)
        if (problem->given[k] == right->begin)
            return;
    segments_scan(problem, begin, right->end, false, before);
    segments_scan(problem, begin, right->end, true, after);
    for (size_t at = problem->minimum; at + problem->minimum <= count; at++)
        if (before[at - 1] + after[count - at - 1] < least) {
            least = before[at - 1] + after[count - at - 1];
            left->end = right->begin = begin + at;
        }
}

/* Finds segments of many points: between runs, again with shorter runs near the breaks found, then each break
 * is moved to its best place. COUNT 0: as many as the criterion says. */
static int find_in_many(const struct segments_problem *problem, size_t count, struct segments *ret) {
    cleanup(segments_clear) struct segments first = {0};
    cleanup_free double *room = malloc(2 * problem->points * sizeof *room);
    int code = room ? find_between_runs(problem, NULL, count, &first) : -ENOMEM;
    *ret = (struct segments){0};
    if (code < 0)
        return code;
    code = find_between_runs(problem, &first, count, ret);
    if (code == -EINVAL) { /* the shorter runs have no room for so many segments */
        *ret = first;
        first = (struct segments){0};
    } else if (code < 0) {
        return code;
    }
    for (size_t i = 1; i < ret->count; i++)
        move_break(problem, ret, i, room);
    ret->rss = 0;
    for (size_t i = 0; i < ret->count; i++) {
        segments_line(problem, ret->segments[i].begin, ret->segments[i].end, &ret->segments[i]);
        ret->rss += ret->segments[i].rss;
    }
    return 0;
}

size_t segments_most(const struct segments_problem *problem) {
    size_t length = problem->points > SEGMENTS_EXACT_MAX ? run_length(problem) : 1;
    return problem->points / length / ((problem->minimum + length - 1) / length);
}

int segments_best(const struct segments_problem *problem, struct segments *ret) {
    return problem->points > SEGMENTS_EXACT_MAX ? find_in_many(problem, 0, ret) : find_best(problem, 1, ret);
}

int segments_exactly(const struct segments_problem *problem, size_t count, struct segments *ret) {
    return problem->points > SEGMENTS_EXACT_MAX && count > 0 ? find_in_many(problem, count, ret)
                                                             : find_exactly(problem, 1, count, ret);
}
