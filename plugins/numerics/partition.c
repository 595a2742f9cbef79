/*
 * Let C(t, s) be the rss of one line over the points t <= i < s, P the penalty, and F(s) the least cost of
 * the points before s: F(0) = -P, F(s) = min over t <= s - minimum of F(t) + P + C(t, s).
 *
 * Exact pruning. C is superadditive: C(t, s) >= C(t, u) + C(u, s), t <= u <= s. So for every t in a block
 * that ends with u, and every s that is a or later,
 *
 *     F(t) + P + C(t, s) >= least + P + C(u, a) + C(a, s),    least = min over the block of F(t) + C(t, u) .
 *
 * The left side is what beginning the last segment at t costs. So the whole block can be left out for all s
 * of another block that begins with a, if least + P + C(u, a) is at least the greatest, over these s, of U(s)
 * - C(a, s), U(s) being what any known way costs. With the block one point and U(s) from a last segment that
 * begins at a this is the rule of PELT (R. Killick, P. Fearnhead, I. A. Eckley, J. Amer. Statist. Assoc. 107
 * (2012), 1590, theorem 3.1: F(t) + C(t, a) >= F(a)), which never applies while there is no break; between
 * blocks it applies there best, for a penalty is many times what a needless cut gains.
 *
 * Both kinds of blocks are those of one tree of eighths. The visit goes through it from left to right, with
 * the list of the blocks before it that may still matter, and hands its children what survives, cut as small
 * as they.
 */
#include "plugins/numerics/partition.h"

#include "plugins/numerics/growth.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum {
    BRANCH_BITS = 3,
    BRANCH = 1 << BRANCH_BITS,
    LEVELS_MAX = 12,
    CHUNK = 64,
    OPEN_MAX = 16,
    SHORT_MINIMUM_MAX = 8, /* up to here every short segment is looked at */
};

/* Of the roundings in a bound: three additions. */
static const double rounding = 0x1p-50;

/* Without a call, which fmin and fmax are. */
static inline double least_of(double a, double b) {
    return a < b ? a : b;
}

static inline double greatest_of(double a, double b) {
    return a > b ? a : b;
}

struct node {
    uint32_t first, last; /* places */
    uint32_t level;
    double least; /* over the block, of F(t) + C(t, last); INFINITY: it has no value */
    double bound; /* of least + P + C(u, a), a the place where the list was made; -INFINITY: not known */
};

/* Blocks of earlier places; from this place on nothing was known when it was made. */
struct list {
    size_t start, count; /* in search.nodes */
    size_t made_at;
};

struct search {
    const struct partition_run *run;
    size_t count; /* points of the run: places are 0 to count */
    double penalty;
    struct partition_places places;
    const struct partition_places *below, *above;
    double *values;            /* high parts of those of the places */
    size_t settled;            /* places before this one have their value */
    double near_least;         /* of the values since the block of the lowest level began */
    double *least[LEVELS_MAX]; /* of each block but those of one place */
    struct node *nodes;        /* lists, one on the other */
    size_t node_count, node_capacity;
    bool failed;
};

static size_t block_size(uint32_t level) {
    return (size_t)1 << (BRANCH_BITS * level);
}

static size_t block_last(const struct search *search, size_t first, uint32_t level) {
    size_t last = first + block_size(level) - 1;
    return last < search->count ? last : search->count;
}

/* Of a block whose places have their values. */
static struct node make_node(const struct search *search, size_t first, uint32_t level) {
    return (struct node){.first = (uint32_t)first,
                         .last = (uint32_t)block_last(search, first, level),
                         .level = level,
                         .least = search->least[level][first >> (BRANCH_BITS * level)],
                         .bound = -INFINITY};
}

static struct sums_bounds bounds(const struct search *search, size_t a, size_t b) {
    return sums_bounds(search->run->sums, search->run->first + a, search->run->first + b);
}

static double lower(const struct search *search, size_t a, size_t b) {
    return b - a <= 2 ? 0 : bounds(search, a, b).lower;
}

static void push(struct search *search, struct node node) {
    if (growth_reserve(&search->nodes, &search->node_capacity, search->node_count + 1, sizeof node) < 0)
        search->failed = true;
    else
        search->nodes[search->node_count++] = node;
}

/* ---- One place */

/* Ways to the place S that may be the best. */
struct best {
    double most;            /* one of them costs at most this; INFINITY: there is none yet */
    size_t first;           /* where the last segment of the first begins */
    size_t count;           /* that are open; of one block at most after another, so few */
    size_t open[OPEN_MAX];  /* where their last segments begin */
    double least[OPEN_MAX]; /* what they cost at least */
    struct dd value;        /* of the best whose cost is told in 32 digits */
    size_t from;            /* SIZE_MAX: there is none */
};

/* Not the arrays, which are filled as they are needed. */
static void best_init(struct best *best) {
    best->most = INFINITY;
    best->first = best->from = SIZE_MAX;
    best->count = 0;
    best->value = (struct dd){INFINITY, 0};
}

static double most_of(const struct search *search, const struct best *best) {
    return best->most + rounding * (fabs(best->most) + search->penalty);
}

static void try_exactly(struct search *search, size_t t, size_t s, struct best *best) {
    struct dd value = dd_add(search->places.values[t], dd_from(search->penalty));
    value = dd_add(value, sums_rss(search->run->sums, search->run->first + t, search->run->first + s));
    struct dd gain = dd_subtract(value, best->value);
    if (best->from == SIZE_MAX || gain.high < 0 || (gain.high == 0 && t < best->from)) {
        best->value = value;
        best->from = t;
    }
}

/* What is still open is told in 32 digits. */
static void decide(struct search *search, size_t s, struct best *best) {
    double most = most_of(search, best);
    for (size_t i = 0; i < best->count; i++)
        if (best->least[i] <= most)
            try_exactly(search, best->open[i], s, best);
    best->count = 0;
}

static void offer(struct search *search, size_t t, size_t s, struct sums_bounds bounds, struct best *best) {
    double value = search->values[t] + search->penalty;
    if (best->count == OPEN_MAX)
        decide(search, s, best);
    best->open[best->count] = t;
    best->least[best->count++] = value + bounds.lower;
    best->most = least_of(best->most, value + bounds.upper);
}

/* The last segment begins at one of COUNT places from FIRST on, at most a block of the lowest level. */
static void try_places(struct search *search, size_t first, size_t count, size_t s, struct best *best) {
    double least[BRANCH + SUMS_LANES], greatest[BRANCH + SUMS_LANES];
    const size_t origin = search->run->first;
    if (first + search->run->minimum > s)
        return;
    count = first + count + search->run->minimum > s + 1 ? s + 1 - search->run->minimum - first : count;
    double most = most_of(search, best) - search->penalty;
    if (!sums_bounds_below(search->run->sums, origin + s, origin + first, count, search->values + first, most,
                           least, greatest))
        return;
    for (size_t i = count; i-- > 0;)
        if (search->values[first + i] < INFINITY && search->values[first + i] + least[i] <= most &&
            first + i != best->first)
            offer(search, first + i, s, (struct sums_bounds){least[i], greatest[i]}, best);
}

static struct node child_of(const struct search *search, struct node node, uint32_t child) {
    return make_node(search, node.first + child * block_size(node.level - 1), node.level - 1);
}

/* MADE: C(a, s), a the place where the node's list was made. */
static void consider(struct search *search, struct node node, size_t s, double made, struct best *best) {
    if (node.first + search->run->minimum > s || !(node.least < INFINITY))
        return;
    double most = most_of(search, best);
    if (node.bound + made > most || node.least + search->penalty > most ||
        node.least + search->penalty + lower(search, node.last, s) > most)
        return;
    if (node.level == 1) {
        try_places(search, node.first, node.last - node.first + 1, s, best);
        return;
    }
    for (uint32_t child = BRANCH; child-- > 0;)
        consider(search, child_of(search, node, child), s, made, best);
}

/* Whether earlier runs tell what is best for the points before S: the least cost is concave in the penalty,
 * made of lines whose slopes are numbers of breaks, so where these differ by one at most it is one of the two
 * lines that the runs found. */
static bool is_known(const struct search *search, size_t s) {
    return search->below && search->below->breaks[s] - search->above->breaks[s] <= 1;
}

static void try_known(struct search *search, size_t s, struct best *best) {
    uint32_t below = search->below->from[s], above = search->above->from[s];
    if (above == UINT32_MAX)
        return;
    try_exactly(search, above, s, best);
    if (below != above)
        try_exactly(search, below, s, best);
}

static void search_place(struct search *search, size_t s, size_t near, const struct list *list,
                         struct best *best) {
    uint32_t before = search->places.from[s - 1];
    if (before != UINT32_MAX) {
        best->first = before;
        offer(search, before, s, bounds(search, before, s), best);
    }
    if (near < s && search->near_least + search->penalty <= most_of(search, best))
        try_places(search, near, s - near, s, best);
    double made = greatest_of(lower(search, list->made_at, s), 0);
    for (size_t i = list->count; i-- > 0;)
        consider(search, search->nodes[list->start + i], s, made, best);
    decide(search, s, best);
}

/* The places before S are those of the blocks in the list, and NEAR to before S. */
static void settle(struct search *search, size_t s, size_t near, const struct list *list) {
    struct partition_places *places = &search->places;
    if (s < search->settled)
        return;
    search->settled = s + 1;
    if (s == near)
        search->near_least = INFINITY;
    places->from[s] = places->breaks[s] = UINT32_MAX;
    places->values[s] = (struct dd){s == 0 ? -search->penalty : INFINITY, 0};
    search->values[s] = places->values[s].high;
    if (s == 0)
        search->near_least = -search->penalty;
    if (s == 0 || s < search->run->minimum)
        return;
    struct best best;
    best_init(&best);
    if (!is_known(search, s))
        search_place(search, s, near, list, &best);
    else
        try_known(search, s, &best);
    if (best.from == SIZE_MAX)
        return;
    places->values[s] = best.value;
    search->values[s] = best.value.high;
    search->near_least = least_of(search->near_least, best.value.high);
    places->from[s] = (uint32_t)best.from;
    places->breaks[s] = best.from == 0 ? 0 : places->breaks[best.from] + 1;
}

/* ---- Blocks */

static void make_block(struct search *search, size_t first, uint32_t level) {
    double bound[CHUNK + SUMS_LANES], unused[CHUNK + SUMS_LANES], least = INFINITY;
    size_t last = block_last(search, first, level), origin = search->run->first;
    for (size_t t = first; t <= last; t += CHUNK) {
        size_t count = last + 1 - t < CHUNK ? last + 1 - t : CHUNK;
        sums_bounds_many(search->run->sums, origin + last, origin + t, count, bound, unused);
        for (size_t i = 0; i < count; i++) {
            double value = search->values[t + i];
            if (value < INFINITY)
                least = least_of(least, value + greatest_of(bound[i], 0) -
                                            rounding * (fabs(value) + search->penalty));
        }
    }
    search->least[level][first >> (BRANCH_BITS * level)] = least;
}

/* The greatest U(s) - C(a, s) over a <= s <= LAST. */
static double ceiling(const struct search *search, size_t a, size_t last) {
    double value = search->values[a], greatest = -INFINITY;
    if (!(value < INFINITY))
        return INFINITY;
    size_t from = search->places.from[a], minimum = search->run->minimum, origin = search->run->first;
    if (from == UINT32_MAX)
        return INFINITY;
    double before = search->values[from] + search->penalty;
    double lower_here[CHUNK + SUMS_LANES], upper_here[CHUNK + SUMS_LANES];
    double lower_before[CHUNK + SUMS_LANES], upper_before[CHUNK + SUMS_LANES];
    for (size_t s = a; s <= last; s += CHUNK) {
        size_t count = last + 1 - s < CHUNK ? last + 1 - s : CHUNK;
        sums_bounds_many(search->run->sums, origin + a, origin + s, count, lower_here, upper_here);
        sums_bounds_many(search->run->sums, origin + from, origin + s, count, lower_before, upper_before);
        for (size_t i = 0; i < count; i++) {
            double least = before + upper_before[i];
            if (s + i >= a + minimum)
                least = least_of(least, value + search->penalty + upper_here[i]);
            greatest = greatest_of(greatest, least - greatest_of(lower_here[i], 0));
        }
    }
    return greatest + rounding * (fabs(value) + search->penalty);
}

/* MADE as above, s being A. */
static void keep(struct search *search, struct node node, size_t a, double made, uint32_t level,
                 double most) {
    if (!(node.least < INFINITY) || node.bound + made > most)
        return;
    double bound = node.least + search->penalty + lower(search, node.last, a);
    if (bound > most)
        return;
    if (node.level <= level) {
        node.bound = bound - rounding * (fabs(node.least) + search->penalty);
        push(search, node);
        return;
    }
    for (uint32_t child = 0; child < BRANCH; child++)
        keep(search, child_of(search, node, child), a, made, level, most);
}

static bool is_all_known(const struct search *search, size_t a, size_t last) {
    bool known = search->below;
    for (size_t s = a; known && s <= last; s++)
        known = is_known(search, s);
    return known;
}

static void visit(struct search *search, uint32_t level, size_t a, const struct list *list) {
    settle(search, a, a, list);
    size_t last = block_last(search, a, level);
    size_t step = block_size(level - 1);
    struct list own = {search->node_count, 0, a};
    if (list->count > 0 && !is_all_known(search, a, last)) {
        double most = ceiling(search, a, last), made = greatest_of(lower(search, list->made_at, a), 0);
        for (size_t i = 0; i < list->count; i++)
            keep(search, search->nodes[list->start + i], a, made, level, most);
    }
    for (size_t child = a; child <= last && !search->failed; child += step) {
        own.count = search->node_count - own.start;
        if (level == 1) {
            settle(search, child, a, &own);
            continue;
        }
        visit(search, level - 1, child, &own);
        make_block(search, child, level - 1);
        if (child + step <= last)
            push(search, make_node(search, child, level - 1));
    }
    search->node_count = own.start;
}

/* ---- Results */

static int read_back(const struct search *search, struct partition *ret) {
    const uint32_t *from = search->places.from;
    size_t count = search->places.breaks[search->count], end = search->count;
    *ret = (struct partition){.breaks = malloc((count + 1) * sizeof *ret->breaks), .count = count};
    if (!ret->breaks)
        return -ENOMEM;
    for (size_t i = count + 1; i-- > 0;) {
        size_t begin = from[end];
        ret->rss = dd_add(ret->rss,
                          sums_rss(search->run->sums, search->run->first + begin, search->run->first + end));
        if (i > 0)
            ret->breaks[i - 1] = search->run->first + begin;
        end = begin;
    }
    return 0;
}

static void search_clear(struct search *search) {
    free(search->values);
    free(search->nodes);
    for (size_t i = 0; i < LEVELS_MAX; i++)
        free(search->least[i]);
}

static bool search_init(struct search *search, uint32_t *ret_level) {
    size_t places = search->count + 1;
    search->values = calloc(places + SUMS_LANES, sizeof *search->values);
    bool made = search->values;
    uint32_t level = 0;
    while (level == 0 || block_size(level) < places) {
        level++;
        search->least[level] = malloc((places / block_size(level) + 1) * sizeof(double));
        made = made && search->least[level];
    }
    *ret_level = level;
    return made;
}

/* Where breaks cost nothing a segment that can be cut in two need not be looked at. */
static void search_short(struct search *search) {
    size_t minimum = search->run->minimum;
    for (size_t s = 0; s <= search->count; s++) {
        struct partition_places *places = &search->places;
        struct best best;
        best_init(&best);
        for (size_t length = 2 * minimum - 1; length >= minimum; length--)
            if (s >= length && (s == length || places->from[s - length] != UINT32_MAX))
                try_exactly(search, s - length, s, &best);
        bool found = best.from != SIZE_MAX;
        places->values[s] = found ? best.value : (struct dd){s == 0 ? 0 : INFINITY, 0};
        places->from[s] = found ? (uint32_t)best.from : UINT32_MAX;
        places->breaks[s] = !found ? UINT32_MAX : best.from == 0 ? 0 : places->breaks[best.from] + 1;
    }
}

int partition_penalised(const struct partition_run *run, double penalty, const struct partition_places *below,
                        const struct partition_places *above, struct partition_places *places,
                        struct partition *ret) {
    struct search search = {
        .run = run, .count = run->end - run->first, .penalty = penalty, .places = *places};
    uint32_t level;
    if (below && above) {
        search.below = below;
        search.above = above;
    }
    search.failed = !search_init(&search, &level);
    if (!search.failed && penalty == 0 && run->minimum <= SHORT_MINIMUM_MAX)
        search_short(&search);
    else if (!search.failed)
        visit(&search, level, 0, &(struct list){0, 0, 0});
    int r = search.failed ? -ENOMEM : read_back(&search, ret);
    search_clear(&search);
    return r;
}

double partition_floor(const struct partition_run *run) {
    const size_t minimum = run->minimum, count = run->end - run->first;
    double least[2 * SHORT_MINIMUM_MAX]; /* of the points before the last places, in turn */
    if (minimum > SHORT_MINIMUM_MAX || count < minimum)
        return 0;
    const size_t turn = 2 * minimum;
    for (size_t s = 0; s <= count; s++) {
        double here = s == 0 ? 0 : INFINITY;
        for (size_t length = minimum; length < turn && length <= s; length++) {
            double before = least[(s - length) % turn];
            if (!(before < here))
                continue;
            double own =
                length <= 2 ? 0 : sums_bounds(run->sums, run->first + s - length, run->first + s).lower;
            here = least_of(here, before + greatest_of(own, 0));
        }
        least[s % turn] = here;
    }
    return least[count % turn] * (1 - 1e-12);
}

int partition_places_init(struct partition_places *places, size_t count) {
    *places = (struct partition_places){.values = malloc(count * sizeof *places->values),
                                        .from = malloc(count * sizeof *places->from),
                                        .breaks = malloc(count * sizeof *places->breaks)};
    return places->values && places->from && places->breaks ? 0 : -ENOMEM;
}

void partition_places_clear(struct partition_places *places) {
    free(places->values);
    free(places->from);
    free(places->breaks);
    *places = (struct partition_places){0};
}

struct partition_places partition_places_from(const struct partition_places *places, size_t first) {
    return (struct partition_places){places->values + first, places->from + first, places->breaks + first};
}

void partition_clear(struct partition *partition) {
    free(partition->breaks);
    *partition = (struct partition){0};
}
