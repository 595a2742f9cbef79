#include "engine/analysis/ranking.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/numerics/distribution.h"
#include "engine/numerics/holm.h"

#include <math.h>
#include <stdlib.h>

static const double level = 0.05;

/* ---- Replicates */

static int compare_nodes(const void *a, const void *b) {
    const struct replicate *left = a, *right = b;
    return (left->node > right->node) - (left->node < right->node);
}

/* Collects each setting's units in order of their nodes, and decides whether nodes or units are the
 * replicates. */
static void collect_units(const struct measurements *measurements, struct ranking *ranking) {
    const struct groups *settings = &measurements->settings;
    size_t used = 0, with_value = 0, on_nodes = 0;
    for (size_t g = 0; g < ranking->count; g++) {
        struct ranked *item = &ranking->items[g];
        struct replicate *units = &ranking->replicates[used];
        *item = (struct ranked){.setting = g, .first = used};
        for (size_t i = settings->first[g]; i < settings->first[g + 1]; i++) {
            uint32_t row = settings->rows[i];
            if (!measurements->left_out[row])
                units[item->n++] = (struct replicate){measurements->nodes[row], measurements->values[row]};
        }
        used += item->n;
        qsort(units, item->n, sizeof *units, compare_nodes);
        with_value += item->n > 0;
        on_nodes += item->n > 0 && units[0].node != units[item->n - 1].node;
    }
    ranking->by_node = on_nodes > 0 && 2 * on_nodes >= with_value;
}

/* Replaces the units of ITEM on one node by their mean. */
static void merge_units(struct ranking *ranking, struct ranked *item) {
    struct replicate *units = ranking->replicates + item->first;
    size_t merged = 0;
    for (size_t i = 0, next; i < item->n; i = next) {
        double sum = 0;
        for (next = i; next < item->n && units[next].node == units[i].node; next++)
            sum += units[next].value;
        units[merged++] = (struct replicate){units[i].node, sum / (double)(next - i)};
    }
    item->n = merged;
}

/* ---- Means */

/* Mean and standard deviation of COUNT values, or of their differences to OTHERS unless that is NULL. NAN
 * when there are too few. */
static double find_mean(const struct replicate *values, const struct replicate *others, size_t count,
                        double *ret_deviation) {
    double sum = 0, squares = 0;
    for (size_t i = 0; i < count; i++)
        sum += values[i].value - (others ? others[i].value : 0);
    double mean = sum / (double)count; /* NaN of none */
    for (size_t i = 0; i < count; i++)
        squares += pow(values[i].value - (others ? others[i].value : 0) - mean, 2);
    *ret_deviation = count > 1 ? sqrt(squares / (double)(count - 1)) : NAN;
    return mean;
}

static void make_interval(const struct ranking *ranking, struct ranked *item) {
    item->mean = find_mean(ranking->replicates + item->first, NULL, item->n, &item->deviation);
    double half = distribution_student_two_sided_quantile(level, (double)item->n - 1) * item->deviation /
                  sqrt((double)item->n);
    item->low = item->mean - half;
    item->high = item->mean + half;
    item->p = NAN;
}

/* Below 0: the size of A is larger; 0: they are equal. */
static int compare_sizes(const struct measurements *measurements, const struct ranked *a,
                         const struct ranked *b) {
    const struct groups *settings = &measurements->settings;
    for (size_t f = 0; f < measurements->size_count; f++) {
        uint32_t left = settings->labels[a->setting * settings->label_count + f],
                 right = settings->labels[b->setting * settings->label_count + f];
        if (left != right)
            return left > right ? -1 : 1;
    }
    return 0;
}

/* Largest size first; within a size the best mean first, settings without a value last. */
static int compare_items(const void *a, const void *b, void *context) {
    const struct ranked *left = a, *right = b;
    const struct measurements *measurements = *(const struct measurements *const *)context;
    int order = compare_sizes(measurements, left, right);
    if (order == 0)
        order = (left->n == 0) - (right->n == 0);
    if (order == 0 && left->n > 0 && left->mean != right->mean)
        order = (left->mean < right->mean) == measurements->most ? 1 : -1;
    return order ? order : (left->setting > right->setting) - (left->setting < right->setting);
}

/* ---- Differences to the best */

static bool have_same_nodes(const struct ranking *ranking, const struct ranked *a, const struct ranked *b) {
    bool are_same = ranking->by_node && a->n == b->n;
    for (size_t i = 0; are_same && i < a->n; i++)
        are_same = ranking->replicates[a->first + i].node == ranking->replicates[b->first + i].node;
    return are_same;
}

/* The p of DIFFERENCE, whose standard error is ERROR. */
static double test_difference(double difference, double error, double freedom) {
    if (error == 0) /* of values that are all equal */
        return difference == 0 ? 1 : 0;
    return distribution_student_two_sided(difference / error, freedom);
}

/* p of the difference of the means of A and B: paired if both have the same nodes, else by Welch. */
static double compare_means(const struct ranking *ranking, const struct ranked *a, const struct ranked *b) {
    if (have_same_nodes(ranking, a, b)) {
        double deviation, mean = find_mean(ranking->replicates + a->first, ranking->replicates + b->first,
                                           a->n, &deviation);
        return test_difference(mean, deviation / sqrt((double)a->n), (double)a->n - 1);
    }
    double of_a = a->deviation * a->deviation / (double)a->n,
           of_b = b->deviation * b->deviation / (double)b->n, both = of_a + of_b;
    double freedom = both * both / (of_a * of_a / (double)(a->n - 1) + of_b * of_b / (double)(b->n - 1));
    return test_difference(a->mean - b->mean, sqrt(both), freedom);
}

/* Compares the COUNT settings ITEMS of one size, best first, with the first of them. */
static void compare_with_best(struct ranking *ranking, struct ranked *items, size_t count) {
    cleanup_free double *p = xcalloc(count, sizeof *p);
    if (items->n == 0)
        return; /* none has a value */
    bool is_alone = count == 1 || items[1].n == 0;
    items->standing = is_alone ? RANKING_ALONE : RANKING_BEST;
    ranking->choices += !is_alone;
    ranking->best = ranking->best ? ranking->best : items;
    p[0] = NAN;
    for (size_t i = 1; i < count; i++) {
        bool can = items->n > 1 && items[i].n > 1;
        p[i] = can ? compare_means(ranking, items, &items[i]) : NAN;
        ranking->comparisons += can;
    }
    holm_adjust(p, count);
    for (size_t i = 1; i < count && items[i].n > 0; i++) {
        items[i].p = p[i];
        items[i].standing = isnan(p[i])    ? RANKING_NOT_COMPARED
                            : p[i] > level ? RANKING_NO_DIFFERENCE
                                           : RANKING_WORSE;
    }
}

/* ---- The whole */

/* Sorts the settings by size and mean, then compares those of each size with the best. */
void ranking_make(const struct measurements *measurements, struct ranking *ret) {
    struct ranking *ranking = ret;
    *ranking = (struct ranking){
        .items = xcalloc(measurements->settings.count + 1, sizeof *ranking->items),
        .count = measurements->settings.count,
        .replicates = xcalloc(measurements->row_count + 1, sizeof *ranking->replicates),
    };
    collect_units(measurements, ranking);
    for (size_t g = 0; g < ranking->count; g++) {
        if (ranking->by_node)
            merge_units(ranking, &ranking->items[g]);
        make_interval(ranking, &ranking->items[g]);
    }
    qsort_r(ranking->items, ranking->count, sizeof *ranking->items, compare_items, &measurements);
    for (size_t first = 0, next; first < ranking->count; first = next) {
        for (next = first + 1; next < ranking->count && compare_sizes(measurements, &ranking->items[first],
                                                                      &ranking->items[next]) == 0;)
            next++;
        compare_with_best(ranking, &ranking->items[first], next - first);
    }
}

void ranking_clear(struct ranking *ranking) {
    free(ranking->items);
    free(ranking->replicates);
    *ranking = (struct ranking){0};
}
