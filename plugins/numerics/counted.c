#include "plugins/numerics/counted.h"

#include "plugins/numerics/growth.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

size_t zones_minimum(const struct zones *zones, size_t z) {
    size_t points = zones->borders[z + 1] - zones->borders[z];
    return zones->cut && points > zones->minimum ? zones->minimum : points;
}

static struct partition_run run_of(const struct sums *sums, const struct zones *zones, size_t z) {
    return (struct partition_run){sums, zones->borders[z], zones->borders[z + 1], zones_minimum(zones, z)};
}

size_t zones_places(const struct zones *zones) {
    return zones->borders[zones->count] + zones->count;
}

/* Those of zone Z. */
static struct partition_places places_of(const struct partition_places *places, const struct zones *zones,
                                         size_t z) {
    return partition_places_from(places, zones->borders[z] + z);
}

static int append(struct partition *all, const struct partition *one) {
    size_t *breaks = realloc(all->breaks, (all->count + one->count + 2) * sizeof *breaks);
    if (!breaks)
        return -ENOMEM;
    all->breaks = breaks;
    memcpy(all->breaks + all->count, one->breaks, one->count * sizeof *breaks);
    all->count += one->count;
    all->rss = dd_add(all->rss, one->rss);
    return 0;
}

int zones_penalised(const struct sums *sums, const struct zones *zones, double penalty,
                    const struct partition_places *below, const struct partition_places *above,
                    struct partition_places *places, struct partition *ret) {
    struct partition all = {0};
    int r = 0;
    for (size_t z = 0; r >= 0 && z < zones->count; z++) {
        struct partition_run run = run_of(sums, zones, z);
        struct partition_places own = places_of(places, zones, z), own_below = {0}, own_above = {0};
        if (below && above) {
            own_below = places_of(below, zones, z);
            own_above = places_of(above, zones, z);
        }
        bool known = below && above;
        struct partition one = {0};
        r = partition_penalised(&run, penalty, known ? &own_below : NULL, known ? &own_above : NULL, &own,
                                &one);
        r = r < 0 ? r : append(&all, &one);
        if (r >= 0 && z + 1 < zones->count)
            all.breaks[all.count++] = run.end;
        partition_clear(&one);
    }
    if (r < 0)
        partition_clear(&all);
    *ret = all;
    return r;
}

double zones_floor(const struct sums *sums, const struct zones *zones) {
    double sum = 0;
    for (size_t z = 0; z < zones->count; z++) {
        struct partition_run run = run_of(sums, zones, z);
        sum += partition_floor(&run);
    }
    return sum * (1 - 1e-12);
}

/* ---- A way that is known */

/* What it costs to leave out break I, when those before and after are at BEFORE and AFTER. */
static double cost_of_merging(const struct sums *sums, size_t before, size_t at, size_t after) {
    return sums_rss(sums, before, after).high - sums_rss(sums, before, at).high -
           sums_rss(sums, at, after).high;
}

static bool is_border(const struct zones *zones, size_t at) {
    for (size_t z = 1; z < zones->count; z++)
        if (zones->borders[z] == at)
            return true;
    return false;
}

/* The rss of some partition of BREAKS breaks: the cheapest breaks of MORE left out, one by one. */
static int thin(const struct sums *sums, const struct zones *zones, const struct partition *more,
                size_t breaks, double *ret) {
    size_t count = more->count;
    size_t *at = malloc((count + 2) * sizeof *at);
    double *costs = malloc((count + 2) * sizeof *costs);
    if (!at || !costs) {
        free(at);
        free(costs);
        return -ENOMEM;
    }
    at[0] = 0;
    memcpy(at + 1, more->breaks, count * sizeof *at);
    at[count + 1] = sums->count;
    for (size_t i = 1; i <= count; i++)
        costs[i] = is_border(zones, at[i]) ? INFINITY : cost_of_merging(sums, at[i - 1], at[i], at[i + 1]);
    double rss = more->rss.high;
    for (; count > breaks; count--) {
        size_t least = 1;
        for (size_t i = 2; i <= count; i++)
            if (costs[i] < costs[least])
                least = i;
        rss += costs[least];
        memmove(at + least, at + least + 1, (count + 1 - least) * sizeof *at);
        memmove(costs + least, costs + least + 1, (count - least) * sizeof *costs);
        for (size_t i = least > 1 ? least - 1 : 1; i <= least && i < count; i++)
            if (costs[i] < INFINITY)
                costs[i] = cost_of_merging(sums, at[i - 1], at[i], at[i + 1]);
    }
    *ret = rss;
    free(at);
    free(costs);
    return 0;
}

/* ---- Segments that may be in the best */

struct arc {
    uint32_t from, to;
    struct dd rss;
};

struct arcs {
    struct arc *arcs; /* by where they end */
    size_t count, capacity;
};

static int add_arc(struct arcs *arcs, struct arc arc) {
    if (arcs->count == ZONES_ARCS_MAX)
        return -E2BIG;
    int r = growth_reserve(&arcs->arcs, &arcs->capacity, arcs->count + 1, sizeof arc);
    if (r >= 0)
        arcs->arcs[arcs->count++] = arc;
    return r;
}

/* The least costs from every place to the end of the run, less one penalty: those of the points turned about.
 */
static int costs_to_end(const struct partition_run *run, double penalty, double *ret) {
    size_t count = run->end - run->first;
    struct sums turned = {.rows = malloc((count + 1) * sizeof *turned.rows),
                          .count = count,
                          .fused = run->sums->fused,
                          .tolerance = run->sums->tolerance};
    turned.within = run->sums->within ? malloc((count + 1) * sizeof *turned.within) : NULL;
    if (!turned.rows || (run->sums->within && !turned.within)) {
        sums_clear(&turned);
        return -ENOMEM;
    }
    /* Running sums from the other end are those from this end, negative, but for a constant that no
     * difference has. */
    for (size_t i = 0; i <= count; i++) {
        const struct sums_row *row = &run->sums->rows[run->end - i];
        const double *from = &row->high.w;
        double *to = &turned.rows[i].high.w;
        for (size_t k = 0; k < sizeof *row / sizeof *from; k++)
            to[k] = -from[k];
        if (turned.within)
            turned.within[i] = dd_negate(run->sums->within[run->end - i]);
    }
    struct partition_run back = {&turned, 0, count, run->minimum};
    struct partition best = {0};
    struct partition_places places;
    int r = partition_places_init(&places, count + 1);
    r = r < 0 ? r : sums_finish(&turned);
    r = r < 0 ? r : partition_penalised(&back, penalty, NULL, NULL, &places, &best);
    for (size_t i = 0; r >= 0 && i <= count; i++)
        ret[i] = places.values[count - i].high;
    partition_places_clear(&places);
    partition_clear(&best);
    sums_clear(&turned);
    return r;
}

/* All arcs of a zone on which something can lie that costs at most SLACK more than the best. FOUND: for that
 * penalty. */
static int find_arcs(const struct partition_run *run, double penalty, const struct partition_places *found,
                     double slack, struct arcs *arcs) {
    size_t count = run->end - run->first, places = 0;
    double *before = malloc((count + 1) * sizeof *before), *after = malloc((count + 1) * sizeof *after);
    uint32_t *kept = malloc((count + 1) * sizeof *kept);
    int r = before && after && kept ? costs_to_end(run, penalty, after) : -ENOMEM;
    for (size_t i = 0; r >= 0 && i <= count; i++)
        before[i] = found->values[i].high;
    double most = r < 0 ? 0 : before[count] + slack + 1e-12 * (fabs(before[count]) + penalty);
    for (size_t s = 0; r >= 0 && s <= count; s++) {
        if (!(before[s] + penalty + after[s] <= most))
            continue;
        for (size_t i = 0; r >= 0 && i < places && kept[i] + run->minimum <= s; i++) {
            size_t from = run->first + kept[i], to = run->first + s;
            double rest = before[kept[i]] + 2 * penalty + after[s];
            if (rest <= most && rest + sums_bounds(run->sums, from, to).lower <= most)
                r = add_arc(arcs, (struct arc){(uint32_t)from, (uint32_t)to, sums_rss(run->sums, from, to)});
        }
        kept[places++] = (uint32_t)s;
    }
    free(before);
    free(after);
    free(kept);
    return r;
}

/* ---- Their number */

struct levels {
    struct dd *least, *next; /* of each place, by as many segments as there were steps */
    uint32_t *from;          /* (segments) x places */
    size_t places;
};

static void step(struct levels *levels, const struct arcs *arcs, size_t segments) {
    uint32_t *from = levels->from + segments * levels->places;
    for (size_t i = 0; i < levels->places; i++) {
        levels->next[i] = (struct dd){INFINITY, 0};
        from[i] = UINT32_MAX;
    }
    for (size_t i = 0; i < arcs->count; i++) {
        const struct arc *arc = &arcs->arcs[i];
        if (!(levels->least[arc->from].high < INFINITY))
            continue;
        struct dd value = dd_add(levels->least[arc->from], arc->rss);
        if (from[arc->to] == UINT32_MAX || dd_subtract(value, levels->next[arc->to]).high < 0) {
            levels->next[arc->to] = value;
            from[arc->to] = arc->from;
        }
    }
    struct dd *swapped = levels->least;
    levels->least = levels->next;
    levels->next = swapped;
}

/* The places that arcs touch get numbers without gaps: AT has them. Returns how many. */
static size_t number_places(struct arcs *arcs, size_t points, size_t *at, uint32_t *numbers) {
    size_t places = 0;
    for (size_t i = 0; i < arcs->count; i++)
        numbers[arcs->arcs[i].from] = numbers[arcs->arcs[i].to] = 1;
    for (size_t i = 0; i <= points; i++)
        if (numbers[i] || i == 0 || i == points) {
            at[places] = i;
            numbers[i] = (uint32_t)places++;
        }
    for (size_t i = 0; i < arcs->count; i++) {
        arcs->arcs[i].from = numbers[arcs->arcs[i].from];
        arcs->arcs[i].to = numbers[arcs->arcs[i].to];
    }
    return places;
}

/* 1; 0 where no way of so many arcs leads from end to end, or -ENOMEM. */
static int count_arcs(struct arcs *arcs, size_t points, size_t segments, struct partition *ret) {
    size_t *at = malloc((points + 1) * sizeof *at);
    uint32_t *numbers = calloc(points + 1, sizeof *numbers);
    struct levels levels = {.places = at && numbers ? number_places(arcs, points, at, numbers) : 1};
    levels.least = malloc(levels.places * sizeof *levels.least);
    levels.next = malloc(levels.places * sizeof *levels.next);
    levels.from = calloc(levels.places * segments, sizeof *levels.from);
    *ret = (struct partition){.breaks = malloc(segments * sizeof *ret->breaks), .count = segments - 1};
    bool made = at && numbers && levels.least && levels.next && levels.from && ret->breaks;
    for (size_t i = 0; made && i < levels.places; i++)
        levels.least[i] = (struct dd){i == 0 ? 0 : INFINITY, 0};
    for (size_t k = 0; made && k < segments; k++)
        step(&levels, arcs, k);
    bool found = made && levels.least[levels.places - 1].high < INFINITY;
    if (found) {
        ret->rss = levels.least[levels.places - 1];
        size_t place = levels.places - 1;
        for (size_t k = segments; k-- > 1;) {
            place = levels.from[k * levels.places + place];
            ret->breaks[k - 1] = at[place];
        }
    }
    free(at);
    free(numbers);
    free(levels.least);
    free(levels.next);
    free(levels.from);
    if (!found)
        partition_clear(ret);
    return made ? found : -ENOMEM;
}

/* As count_arcs, on the arcs within SLACK of the best. */
static int count_within(const struct sums *sums, const struct zones *zones,
                        const struct partition_places *places, double penalty, double slack, size_t breaks,
                        struct partition *ret) {
    struct arcs arcs = {0};
    int r = 0;
    for (size_t z = 0; r >= 0 && z < zones->count; z++) {
        struct partition_run run = run_of(sums, zones, z);
        struct partition_places found = places_of(places, zones, z);
        r = find_arcs(&run, penalty, &found, slack, &arcs);
    }
    r = r < 0 ? r : count_arcs(&arcs, sums->count, breaks + 1, ret);
    free(arcs.arcs);
    return r;
}

int zones_counted(const struct sums *sums, const struct zones *zones, double penalty,
                  const struct partition_places *places, const struct partition *fewer,
                  const struct partition *more, size_t breaks, struct partition *ret) {
    double slack = INFINITY, known;
    int r = 0;
    if (more) {
        r = thin(sums, zones, more, breaks, &known);
        double best = fewer->rss.high + penalty * (double)fewer->count;
        slack = fmax(known + penalty * (double)breaks - best, 0) + 1e-9 * known;
    }
    r = r < 0 ? r : count_within(sums, zones, places, penalty, slack, breaks, ret);
    /* Where weights are so far apart that 32 digits do not hold them the slack is rounding, and not even the
     * known way may be within it. */
    if (r == 0)
        r = count_within(sums, zones, places, penalty, INFINITY, breaks, ret);
    return r < 0 ? r : r == 0 ? -E2BIG : 0;
}
