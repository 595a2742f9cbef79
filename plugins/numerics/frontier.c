#include "plugins/numerics/frontier.h"

#include "plugins/numerics/counted.h"
#include "plugins/numerics/growth.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    BLOCK_SIZES = 9,
    BLOCK_OF_NOISE = 16,
    KEPT_MAX = 16,         /* runs whose places are kept */
    KEPT_PLACES = 1 << 21, /* and places of them altogether, but for three runs */
    STEPS_MAX = 6,         /* towards an exact number */
};

static const size_t block_sizes[BLOCK_SIZES] = {4, 5, 6, 8, 10, 12, 16, 24, 32};

/* Differences of a criterion below this are no differences. */
static const double indifferent = 1e-9;

/* Residuals of 2^-49 of the response are its rounding: nothing is better than that. */
static const double perfect = 0x1p-98;

/* A corner of the hull. */
struct corner {
    struct partition partition;
    double rss;
    double penalty_least, penalty_most; /* it is known to be best for these; least > most: for none */
    bool edge;                          /* nothing is below the line to the next corner */
};

/* What a run found on its way. */
struct kept_run {
    double penalty;
    struct partition_places places;
};

struct frontier {
    struct sums sums;
    struct zones zones;
    size_t most;
    bool proving;   /* all blocks are made */
    double floor;   /* rss below this is as good as none */
    double noise;   /* about its variance: what short blocks leave, but the worst tenth */
    double *blocks; /* by number of breaks: a bound of R from below; most + 1 */
    struct kept_run kept[KEPT_MAX];
    size_t kept_count;
    struct corner *corners; /* by number of breaks */
    size_t count, capacity;
    struct partition *exact; /* numbers that are no corners */
    size_t exact_count;
};

/* ---- Beginning and end */

static int compare_doubles(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return left < right ? -1 : left > right;
}

/* Breaks spoil at most so many blocks; the rest keeps its rss: the least of them at least. */
static void bound_by_blocks(struct frontier *frontier, size_t size, double *blocks) {
    size_t count = 0, borders = frontier->zones.count - 1;
    for (size_t z = 0; z <= borders; z++)
        for (size_t a = frontier->zones.borders[z]; a + size <= frontier->zones.borders[z + 1]; a += size)
            blocks[count++] = sums_bounds(&frontier->sums, a, a + size).lower;
    qsort(blocks, count, sizeof *blocks, compare_doubles);
    double sum = 0;
    for (size_t i = 0; size == BLOCK_OF_NOISE && i < count - count / 10; i++)
        frontier->noise += blocks[i] / (double)((count - count / 10) * (size - 2));
    for (size_t kept = 0; kept <= count; kept++) {
        size_t m = borders + count - kept;
        if (m <= frontier->most)
            frontier->blocks[m] = fmax(frontier->blocks[m], sum * (1 - 1e-12));
        sum += kept < count ? fmax(blocks[kept], 0) : 0;
    }
}

/* The size that tells of the noise at first; the others only where something is to be proven. */
static int make_blocks(struct frontier *frontier, bool proving) {
    if (frontier->proving)
        return 0;
    double *blocks = malloc((frontier->sums.count / block_sizes[0] + 1) * sizeof *blocks);
    if (!frontier->blocks)
        frontier->blocks = calloc(frontier->most + 1, sizeof *frontier->blocks);
    int r = blocks && frontier->blocks ? 0 : -ENOMEM;
    frontier->sums.tolerance =
        fmax(1e-6 * sums_rss(&frontier->sums, 0, frontier->sums.count).high / (double)frontier->sums.count,
             frontier->floor);
    for (size_t i = 0; r >= 0 && i < BLOCK_SIZES; i++)
        if ((block_sizes[i] == BLOCK_OF_NOISE) != proving)
            bound_by_blocks(frontier, block_sizes[i], blocks);
    double least = r >= 0 && proving ? zones_floor(&frontier->sums, &frontier->zones) : 0;
    for (size_t m = 0; r >= 0 && m <= frontier->most; m++)
        frontier->blocks[m] = fmax(frontier->blocks[m], least);
    frontier->proving = proving;
    free(blocks);
    return r;
}

static int make_zones(const size_t *borders, size_t border_count, size_t minimum, bool cut, size_t points,
                      struct frontier *frontier) {
    struct zones *zones = &frontier->zones;
    *zones = (struct zones){.count = border_count + 1, .minimum = minimum, .cut = cut};
    zones->borders = malloc((border_count + 2) * sizeof *zones->borders);
    if (!zones->borders)
        return -ENOMEM;
    zones->borders[0] = 0;
    if (border_count > 0)
        memcpy(zones->borders + 1, borders, border_count * sizeof *borders);
    zones->borders[border_count + 1] = points;
    frontier->most = border_count;
    for (size_t z = 0; z < zones->count; z++)
        frontier->most += (zones->borders[z + 1] - zones->borders[z]) / zones_minimum(zones, z) - 1;
    return 0;
}

int frontier_new(const struct point *points, size_t count, const size_t *borders, size_t border_count,
                 size_t minimum, bool cut, struct frontier **ret) {
    struct frontier *frontier = calloc(1, sizeof *frontier);
    if (!frontier)
        return -ENOMEM;
    int r = sums_init(&frontier->sums, points, count);
    r = r < 0 ? r : make_zones(borders, border_count, minimum, cut, count, frontier);
    double square = 0;
    for (size_t i = 0; r >= 0 && i < count; i++) {
        double y = ldexp(points[i].y, -frontier->sums.response_exponent);
        square += ldexp(points[i].weight, -frontier->sums.weight_exponent) * y * y;
    }
    frontier->floor = perfect * square;
    r = r < 0 ? r : make_blocks(frontier, false);
    if (r < 0) {
        frontier_free(frontier);
        return r;
    }
    *ret = frontier;
    return 0;
}

void frontier_free(struct frontier *frontier) {
    if (!frontier)
        return;
    for (size_t i = 0; i < frontier->count; i++)
        partition_clear(&frontier->corners[i].partition);
    for (size_t i = 0; i < frontier->exact_count; i++)
        partition_clear(&frontier->exact[i]);
    for (size_t i = 0; i < frontier->kept_count; i++)
        partition_places_clear(&frontier->kept[i].places);
    free(frontier->exact);
    free(frontier->corners);
    free(frontier->blocks);
    free(frontier->zones.borders);
    sums_clear(&frontier->sums);
    free(frontier);
}

size_t frontier_most(const struct frontier *frontier) {
    return frontier->most;
}

double frontier_rss(const struct frontier *frontier, const struct partition *partition) {
    return sums_unscale(&frontier->sums, dd_to_double(partition->rss));
}

double frontier_segment(const struct frontier *frontier, size_t a, size_t b) {
    return sums_unscale(&frontier->sums, dd_to_double(sums_rss(&frontier->sums, a, b)));
}

static double lower(const struct frontier *frontier, size_t a, size_t b) {
    return b - a <= 2 ? 0 : sums_bounds(&frontier->sums, a, b).lower;
}

bool frontier_leaves_more(const struct frontier *frontier, size_t a, size_t at, size_t b, double most) {
    double least = lower(frontier, a, at) + lower(frontier, at, b);
    return sums_unscale(&frontier->sums, least) * (1 - 0x1p-50) > most ||
           frontier_segment(frontier, a, at) + frontier_segment(frontier, at, b) > most;
}

/* ---- Corners */

/* Takes PARTITION over. RET_AT: where it stands now. */
static int insert(struct frontier *frontier, struct partition *partition, size_t *ret_at) {
    size_t at = 0;
    while (at < frontier->count && frontier->corners[at].partition.count < partition->count)
        at++;
    *ret_at = at;
    if (at < frontier->count && frontier->corners[at].partition.count == partition->count) {
        partition_clear(partition);
        return 0;
    }
    if (growth_reserve(&frontier->corners, &frontier->capacity, frontier->count + 1,
                       sizeof *frontier->corners) < 0) {
        partition_clear(partition);
        return -ENOMEM;
    }
    memmove(frontier->corners + at + 1, frontier->corners + at,
            (frontier->count - at) * sizeof *frontier->corners);
    frontier->count++;
    frontier->corners[at] = (struct corner){*partition, partition->rss.high, INFINITY, -INFINITY, false};
    if (at > 0)
        frontier->corners[at - 1].edge = false;
    return 0;
}

/* The kept run next to PENALTY on one side. Where breaks cost nothing many ways are equal: that tells nothing
 * of others. */
static const struct partition_places *find_kept(const struct frontier *frontier, double penalty, bool above) {
    const struct kept_run *near = NULL;
    for (size_t i = 0; i < frontier->kept_count; i++) {
        const struct kept_run *kept = &frontier->kept[i];
        if (kept->penalty == 0 || (above ? kept->penalty < penalty : kept->penalty > penalty))
            continue;
        if (!near || fabs(kept->penalty - penalty) < fabs(near->penalty - penalty))
            near = kept;
    }
    return near ? &near->places : NULL;
}

static void keep(struct frontier *frontier, double penalty, struct partition_places *places) {
    size_t most = KEPT_PLACES / zones_places(&frontier->zones), farthest = 0;
    most = most < 3 ? 3 : most > KEPT_MAX ? KEPT_MAX : most;
    if (frontier->kept_count < most) {
        frontier->kept[frontier->kept_count++] = (struct kept_run){penalty, *places};
        return;
    }
    for (size_t i = 1; i < frontier->kept_count; i++)
        if (fabs(frontier->kept[i].penalty - penalty) > fabs(frontier->kept[farthest].penalty - penalty))
            farthest = i;
    partition_places_clear(&frontier->kept[farthest].places);
    frontier->kept[farthest] = (struct kept_run){penalty, *places};
}

/* What is best for PENALTY, as a corner. */
static int run(struct frontier *frontier, double penalty, size_t *ret_at) {
    struct partition all = {0};
    struct partition_places places;
    frontier->sums.tolerance = fmax(penalty / 32, frontier->floor * 0x1p-20);
    int r = partition_places_init(&places, zones_places(&frontier->zones));
    r = r < 0
            ? r
            : zones_penalised(&frontier->sums, &frontier->zones, penalty, find_kept(frontier, penalty, false),
                              find_kept(frontier, penalty, true), &places, &all);
    if (r < 0)
        partition_places_clear(&places);
    else
        keep(frontier, penalty, &places);
    r = r < 0 ? r : insert(frontier, &all, ret_at);
    if (r < 0)
        return r;
    struct corner *corner = &frontier->corners[*ret_at];
    corner->penalty_least = fmin(corner->penalty_least, penalty);
    corner->penalty_most = fmax(corner->penalty_most, penalty);
    return 0;
}

/* The fewest breaks there can be are best for any penalty that is high enough. */
static int run_fewest(struct frontier *frontier) {
    if (frontier->count > 0 && frontier->corners[0].partition.count == frontier->zones.count - 1)
        return 0;
    struct partition all = {.count = frontier->zones.count - 1};
    all.breaks = malloc((all.count + 1) * sizeof *all.breaks);
    if (!all.breaks)
        return -ENOMEM;
    for (size_t z = 0; z < frontier->zones.count; z++) {
        all.breaks[z] = frontier->zones.borders[z + 1];
        all.rss = dd_add(
            all.rss, sums_rss(&frontier->sums, frontier->zones.borders[z], frontier->zones.borders[z + 1]));
    }
    size_t at;
    int r = insert(frontier, &all, &at);
    if (r >= 0)
        frontier->corners[at].penalty_most = frontier->corners[at].penalty_least = INFINITY;
    return r;
}

/* R(m) is nowhere below this. */
static double bound(const struct frontier *frontier, size_t left, size_t m) {
    const struct corner *a = &frontier->corners[left];
    double least = frontier->blocks[m];
    if (isfinite(a->penalty_least))
        least = fmax(least, a->rss - a->penalty_least * (double)(m - a->partition.count));
    if (left + 1 >= frontier->count)
        return least;
    const struct corner *b = &frontier->corners[left + 1];
    double run = (double)(b->partition.count - m), width = (double)(b->partition.count - a->partition.count);
    if (a->edge)
        return fmax(least, b->rss + (a->rss - b->rss) * (run / width));
    if (isfinite(b->penalty_most) && b->penalty_most >= 0)
        least = fmax(least, b->rss + b->penalty_most * run);
    return fmax(least, b->rss);
}

double frontier_bound(const struct frontier *frontier, size_t breaks) {
    double least = frontier->blocks[breaks];
    for (size_t i = 0; i < frontier->count; i++) {
        if (frontier->corners[i].partition.count == breaks)
            least = fmax(least, frontier->corners[i].rss * (1 - 0x1p-40));
        else if (frontier->corners[i].partition.count < breaks &&
                 (i + 1 == frontier->count || frontier->corners[i + 1].partition.count > breaks))
            least = fmax(least, bound(frontier, i, breaks));
    }
    return sums_unscale(&frontier->sums, least);
}

/* ---- The choice */

struct choice {
    double n, cost;
    size_t most;
    double best; /* the least criterion so far */
    size_t breaks;
};

static double criterion(const struct frontier *frontier, const struct choice *choice, double rss, size_t m) {
    return choice->n * log(fmax(rss, frontier->floor)) + choice->cost * (double)m;
}

static void find_best(const struct frontier *frontier, struct choice *choice) {
    choice->best = INFINITY;
    for (size_t i = 0; i < frontier->count; i++) {
        size_t m = frontier->corners[i].partition.count;
        double value = criterion(frontier, choice, frontier->corners[i].rss, m);
        if (m <= choice->most && value < choice->best - indifferent) {
            choice->best = value;
            choice->breaks = m;
        }
    }
    for (size_t i = 0; i < frontier->exact_count; i++) {
        const struct partition *exact = &frontier->exact[i];
        double value = criterion(frontier, choice, exact->rss.high, exact->count);
        if (exact->count <= choice->most && value < choice->best - indifferent) {
            choice->best = value;
            choice->breaks = exact->count;
        }
    }
}

static const struct partition *find_exact(const struct frontier *frontier, size_t breaks) {
    for (size_t i = 0; i < frontier->exact_count; i++)
        if (frontier->exact[i].count == breaks)
            return &frontier->exact[i];
    return NULL;
}

/* The numbers of breaks between two corners that might still be better: the first, the last, and the one of
 * which least is known. */
struct open {
    size_t left, first, last, worst;
};

static bool find_open(const struct frontier *frontier, const struct choice *choice, size_t left,
                      struct open *ret) {
    bool last = left + 1 >= frontier->count;
    size_t end = last ? frontier->most + 1 : frontier->corners[left + 1].partition.count;
    double least = INFINITY;
    for (size_t m = frontier->corners[left].partition.count + 1; m < end && m <= choice->most; m++) {
        double value = criterion(frontier, choice, bound(frontier, left, m), m);
        if (value >= choice->best - indifferent || find_exact(frontier, m))
            continue;
        *ret = (struct open){left, least < INFINITY ? ret->first : m, m, value < least ? m : ret->worst};
        least = fmin(least, value);
    }
    return least < INFINITY;
}

/* Beside the best first: a better one makes the rest easier to settle. */
static bool find_next(const struct frontier *frontier, const struct choice *choice, struct open *ret) {
    size_t best = 0;
    while (best + 1 < frontier->count && frontier->corners[best].partition.count < choice->breaks)
        best++;
    if ((best > 0 && find_open(frontier, choice, best - 1, ret)) || find_open(frontier, choice, best, ret))
        return true;
    for (size_t left = 0; left < frontier->count; left++)
        if (find_open(frontier, choice, left, ret))
            return true;
    return false;
}

/* The penalty whose run would settle all that is open: if the corner to the left (or right) is best for it.
 */
static double next_penalty(const struct frontier *frontier, const struct choice *choice,
                           const struct open *open, bool *ret_chord) {
    const struct corner *a = &frontier->corners[open->left];
    const struct corner *b = open->left + 1 < frontier->count ? a + 1 : NULL;
    size_t ends[] = {open->first, open->last};
    double from_left = INFINITY, from_right = 0;
    for (size_t i = 0; i < 2; i++) {
        double rss = exp((choice->best - choice->cost * (double)ends[i]) / choice->n);
        from_left = fmin(from_left, (a->rss - rss) / (double)(ends[i] - a->partition.count));
        if (b)
            from_right = fmax(from_right, (rss - b->rss) / (double)(b->partition.count - ends[i]));
    }
    from_left *= 1 - 1e-6;
    from_right *= 1 + 1e-6;
    *ret_chord = false;
    double least = b ? fmax(b->penalty_most, 0) : 0, most = a->penalty_least;
    /* Where it is most open, along the curve that all must be above: what settles most where there are many.
     */
    double curve = exp((choice->best - choice->cost * (double)open->worst) / choice->n);
    double along = curve * choice->cost / choice->n;
    bool fits = along > least && along<most, many = open->last - open->first> 2 + choice->breaks / 10;
    if (fits && many && choice->breaks >= 20)
        return along;
    if (a->partition.count == choice->breaks && from_left > least && from_left < most)
        return from_left;
    if (b && b->partition.count == choice->breaks && from_right > least && from_right < most)
        return from_right;
    if (!b)
        return from_left > 0 && from_left < most ? 0.7 * from_left : 0;
    if (fits)
        return along;
    *ret_chord = true;
    return fmax((a->rss - b->rss) / (double)(b->partition.count - a->partition.count), 0);
}

/* One more run for what is open, or one more exact number where runs cannot tell. */
static int settle(struct frontier *frontier, const struct choice *choice, const struct open *open) {
    size_t at;
    if (frontier->corners[open->left].edge) {
        const struct partition *exact;
        return frontier_exactly(frontier, open->last, &exact);
    }
    bool chord;
    size_t count = frontier->count;
    double penalty = next_penalty(frontier, choice, open, &chord);
    int r = run(frontier, penalty, &at);
    /* Nothing new for the line between two corners: there is nothing below it. */
    if (r >= 0 && chord && frontier->count == count)
        frontier->corners[open->left].edge = true;
    return r;
}

/*
 * At the best number of breaks the penalty is cost x R / n: from the noise to there by repetition, which goes
 * ahead of itself: by how fast breaks that fit noise grow in number (see penalty_of_noise) at first, by how
 * fast it closes in once two steps tell. Noise alone hardly gains 2 log n times its variance: where breaks
 * cost more, seven tenths of the penalty find the same and prove at once that more are no better. Where it
 * leads is only where the proof begins.
 */
static int begin_choice(struct frontier *frontier, const struct choice *choice) {
    int r = 0;
    const bool clear = 0.7 * choice->cost > 2 * log((double)frontier->sums.count);
    const double share = clear ? 0.7 : 1, least = choice->cost * frontier->floor / choice->n;
    double last_step = 0, penalty = share * choice->cost * frontier->noise;
    for (int i = 0; r >= 0 && i < 8; i++) {
        size_t at;
        penalty = fmax(penalty, least);
        r = run(frontier, penalty, &at);
        if (r < 0)
            break;
        double count = (double)frontier->corners[at].partition.count;
        double step = share * choice->cost * frontier->corners[at].rss / choice->n - penalty;
        /* Few breaks are the same few for a penalty near by. */
        if (fabs(step) < (count >= 20 ? 0.005 : clear ? 0.15 : 0.02) * penalty)
            break;
        double rate = last_step != 0 ? step / last_step : 0;
        bool closes = rate > 0.1 && rate < 0.8;
        if (last_step == 0 && count >= 20)
            rate = fmin(0.65 * choice->cost * choice->cost * count / choice->n, 0.7);
        bool ahead = closes || (last_step == 0 && count >= 20);
        penalty += ahead ? step / (1 - rate) : step;
        last_step = ahead ? 0 : step;
        if (fabs(step) < 0.1 * penalty && rate == 0 && count < 20)
            break;
    }
    return r;
}

static int give(const struct frontier *frontier, size_t breaks, const struct partition **ret) {
    for (size_t i = 0; i < frontier->count; i++)
        if (frontier->corners[i].partition.count == breaks)
            *ret = &frontier->corners[i].partition;
    const struct partition *exact = find_exact(frontier, breaks);
    *ret = exact ? exact : *ret;
    return 0;
}

int frontier_guess(struct frontier *frontier, double n, double cost, size_t most,
                   const struct partition **ret) {
    struct choice choice = {.n = n, .cost = cost, .most = most < frontier->most ? most : frontier->most};
    int r = run_fewest(frontier);
    if (r >= 0 && frontier->corners[0].rss > frontier->floor)
        r = begin_choice(frontier, &choice);
    find_best(frontier, &choice);
    return r < 0 ? r : give(frontier, choice.breaks, ret);
}

int frontier_choose(struct frontier *frontier, double n, double cost, size_t most,
                    const struct partition **ret) {
    struct choice choice = {.n = n, .cost = cost, .most = most < frontier->most ? most : frontier->most};
    int r = frontier_guess(frontier, n, cost, most, ret);
    if (r < 0 || frontier->corners[0].rss <= frontier->floor)
        return r;
    r = make_blocks(frontier, true);
    while (r >= 0) {
        find_best(frontier, &choice);
        struct open open;
        if (!find_next(frontier, &choice, &open))
            return give(frontier, choice.breaks, ret);
        r = settle(frontier, &choice, &open);
    }
    return r;
}

/* ---- Exactly so many */

static const struct partition_places *find_run(const struct frontier *frontier, double penalty) {
    for (size_t i = 0; i < frontier->kept_count; i++)
        if (frontier->kept[i].penalty == penalty)
            return &frontier->kept[i].places;
    return NULL;
}

static int find_counted(struct frontier *frontier, double penalty, size_t left, size_t breaks,
                        const struct partition **ret) {
    struct partition *exact = realloc(frontier->exact, (frontier->exact_count + 1) * sizeof *frontier->exact);
    if (!exact)
        return -ENOMEM;
    frontier->exact = exact;
    size_t at;
    const struct partition_places *places = find_run(frontier, penalty);
    int r = places ? 0 : run(frontier, penalty, &at);
    if (r < 0)
        return r;
    const struct corner *a = &frontier->corners[left];
    const struct partition *more = left + 1 < frontier->count ? &a[1].partition : NULL;
    r = zones_counted(&frontier->sums, &frontier->zones, penalty, find_run(frontier, penalty), &a->partition,
                      more, breaks, &exact[frontier->exact_count]);
    if (r >= 0)
        *ret = &exact[frontier->exact_count++];
    return r;
}

/* The last corner with fewer breaks; that of so many, if there is one, is the next. */
static size_t find_fewer(const struct frontier *frontier, size_t breaks) {
    size_t left = 0;
    while (left + 1 < frontier->count && frontier->corners[left + 1].partition.count < breaks)
        left++;
    return left;
}

/*
 * Breaks that fit noise alone grow in number with the e-th power of the penalty over the noise's variance,
 * about as n exp(0.35 - 0.65 penalty / variance): so noise tells where a number beyond the natural one is
 * found, in few steps. Where that leads is only where the exact search begins.
 */
static double penalty_of_noise(double extra, double variance, double n) {
    return variance * fmax(log(n / extra) + 0.35, 0) / 0.65;
}

/* Nearer to BREAKS from both sides until the corners beside are near enough to look between them. */
static int approach(struct frontier *frontier, size_t breaks) {
    size_t at;
    const double n = (double)frontier->sums.count;
    if (!(frontier->noise > frontier->floor))
        return 0;
    int r = run(frontier, 4 * log(n) * frontier->noise, &at);
    if (r < 0 || frontier->corners[at].partition.count >= breaks)
        return r;
    const size_t natural = frontier->corners[at].partition.count;
    const double variance = frontier->corners[at].rss / n, extra = (double)(breaks - natural);
    double penalty = penalty_of_noise(extra, variance, n);
    for (int i = 0; r >= 0 && i < STEPS_MAX; i++) {
        size_t left = find_fewer(frontier, breaks);
        const struct corner *a = &frontier->corners[left];
        const struct corner *b = left + 1 < frontier->count ? a + 1 : NULL;
        double most = a->penalty_least, least = b ? fmax(b->penalty_most, 0) : 0;
        bool near = b && b->partition.count - a->partition.count <= 2 + breaks / 8;
        if ((b && b->partition.count == breaks) || near || !(penalty > least && penalty < most))
            break;
        r = run(frontier, penalty, &at);
        if (r < 0 || frontier->corners[at].partition.count <= natural)
            break;
        double found = (double)(frontier->corners[at].partition.count - natural);
        penalty += variance * log(found / extra) / 0.65;
    }
    return r;
}

int frontier_exactly(struct frontier *frontier, size_t breaks, const struct partition **ret) {
    int r = run_fewest(frontier);
    size_t at;
    if (r >= 0 && frontier->count == 1 && frontier->corners[0].partition.count < breaks)
        r = approach(frontier, breaks);
    if (r >= 0 && frontier->corners[frontier->count - 1].partition.count < breaks)
        r = run(frontier, 0, &at);
    while (r >= 0) {
        size_t left = find_fewer(frontier, breaks), count = frontier->count;
        const struct corner *a = &frontier->corners[left], *b = a + 1;
        if (a->partition.count == breaks || (left + 1 < count && b->partition.count == breaks) ||
            find_exact(frontier, breaks))
            return give(frontier, breaks, ret);
        if (left + 1 == count)
            return find_counted(frontier, 0, left, breaks, ret);
        double run_length = (double)(b->partition.count - a->partition.count);
        double penalty = fmax((a->rss - b->rss) / run_length, 0);
        if (a->edge)
            return find_counted(frontier, penalty, left, breaks, ret);
        r = run(frontier, penalty, &at);
        if (r >= 0 && frontier->count == count)
            frontier->corners[left].edge = true;
    }
    return r;
}
