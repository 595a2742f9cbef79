#include "engine/analysis/ranking.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/numerics/distribution.h"

#include <math.h>
#include <stdlib.h>

static const double level = 0.05;

/* ---- Replicates */

static int compare_places(const void *a, const void *b) {
    const struct replicate *left = a, *right = b;
    if (left->node != right->node)
        return left->node < right->node ? -1 : 1;
    return (left->core > right->core) - (left->core < right->core);
}

/* The units of each setting that count, in order of their places. */
static void collect_units(const struct measurements *measurements, struct ranking *ranking) {
    size_t used = 0;
    for (size_t g = 0; g < ranking->count; g++) {
        struct ranked *item = &ranking->items[g];
        item->first = used;
        for (size_t i = 0; i < item->setting->row_count; i++) {
            uint32_t row = item->setting->rows[i];
            if (measurements->left_out[row])
                continue;
            ranking->replicates[used++] = (struct replicate){
                measurements->nodes[row], measurements->cores[row], measurements->values[row]};
        }
        item->n = used - item->first;
        qsort(ranking->replicates + item->first, item->n, sizeof *ranking->replicates, compare_places);
    }
}

/* What a replicate is: the coarsest that half of the settings have two of. */
static enum ranking_replicate choose_replicate(const struct ranking *ranking) {
    size_t settings = 0, on_nodes = 0, on_cores = 0;
    for (size_t g = 0; g < ranking->count; g++) {
        const struct ranked *item = &ranking->items[g];
        if (item->n == 0)
            continue;
        const struct replicate *first = &ranking->replicates[item->first], *last = first + item->n - 1;
        settings++;
        on_nodes += first->node != last->node;
        on_cores += compare_places(first, last) != 0;
    }
    return settings == 0 || 2 * on_cores < settings ? RANKING_UNITS
           : 2 * on_nodes >= settings               ? RANKING_NODES
                                                    : RANKING_CORES;
}

/* Replaces the units of ITEM on one node, or core, by their mean. */
static void merge_units(struct ranking *ranking, struct ranked *item) {
    struct replicate *units = ranking->replicates + item->first;
    size_t merged = 0;
    for (size_t i = 0, next; i < item->n; i = next) {
        double sum = 0;
        for (next = i; next < item->n && units[next].node == units[i].node &&
                       (ranking->replicate == RANKING_NODES || units[next].core == units[i].core);
             next++)
            sum += units[next].value;
        units[merged++] = (struct replicate){.node = units[i].node,
                                             .core = ranking->replicate == RANKING_NODES ? 0 : units[i].core,
                                             .value = sum / (double)(next - i)};
    }
    item->n = merged;
}

/* ---- Means */

/* Of COUNT values less those of OTHERS, unless that is NULL: their mean and standard deviation. */
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

static void estimate(const struct ranking *ranking, struct ranked *item) {
    item->mean = find_mean(ranking->replicates + item->first, NULL, item->n, &item->deviation);
    double half = distribution_student_two_sided_quantile(level, (double)item->n - 1) * item->deviation /
                  sqrt((double)item->n);
    item->low = item->mean - half;
    item->high = item->mean + half;
}

static int compare_means(const void *a, const void *b, void *context) {
    const struct ranked *left = a, *right = b;
    double sign = *(const bool *)context ? -1 : 1;
    if ((left->n == 0) != (right->n == 0))
        return left->n == 0 ? 1 : -1;
    if (left->n > 0 && left->mean != right->mean)
        return sign * left->mean < sign * right->mean ? -1 : 1;
    return left->setting < right->setting ? -1 : left->setting > right->setting; /* as they were */
}

/* ---- Differences to the best */

static bool have_same_places(const struct ranking *ranking, const struct ranked *a, const struct ranked *b) {
    if (a->n != b->n)
        return false;
    for (size_t i = 0; i < a->n; i++)
        if (compare_places(&ranking->replicates[a->first + i], &ranking->replicates[b->first + i]) != 0)
            return false;
    return true;
}

/* The p of DIFFERENCE, whose standard error is ERROR. */
static double test_difference(double difference, double error, double freedom) {
    if (error == 0) /* of values that are all equal */
        return difference == 0 ? 1 : 0;
    return distribution_student_two_sided(difference / error, freedom);
}

static double compare(const struct ranking *ranking, const struct ranked *a, const struct ranked *b) {
    if (ranking->is_paired) {
        double deviation, mean = find_mean(ranking->replicates + a->first, ranking->replicates + b->first,
                                           a->n, &deviation);
        return test_difference(mean, deviation / sqrt((double)a->n), (double)a->n - 1);
    }
    double of_a = a->deviation * a->deviation / (double)a->n,
           of_b = b->deviation * b->deviation / (double)b->n, both = of_a + of_b;
    double freedom = both * both / (of_a * of_a / (double)(a->n - 1) + of_b * of_b / (double)(b->n - 1));
    return test_difference(a->mean - b->mean, sqrt(both), freedom);
}

static int compare_p(const void *a, const void *b) {
    const struct ranked *left = *(struct ranked *const *)a, *right = *(struct ranked *const *)b;
    return (left->p > right->p) - (left->p < right->p);
}

/* Holm's correction of the COUNT p-values of COMPARED. */
static void adjust(struct ranked **compared, size_t count) {
    double greatest = 0;
    qsort(compared, count, sizeof *compared, compare_p);
    for (size_t i = 0; i < count; i++) {
        greatest = fmax(greatest, fmin(1, (double)(count - i) * compared[i]->p));
        compared[i]->p = greatest;
        compared[i]->standing = greatest > level ? RANKING_NO_DIFFERENCE : RANKING_WORSE;
    }
}

static void compare_with_best(struct ranking *ranking) {
    cleanup_free struct ranked **compared = xcalloc(ranking->count + 1, sizeof *compared);
    const struct ranked *best = ranking->items;
    ranking->is_paired = ranking->replicate != RANKING_UNITS;
    for (size_t i = 1; i < ranking->with_value; i++)
        ranking->is_paired = ranking->is_paired && have_same_places(ranking, best, &ranking->items[i]);
    for (size_t i = 0; i < ranking->count; i++) {
        struct ranked *item = &ranking->items[i];
        item->p = NAN;
        item->standing = item->n == 0 ? RANKING_NO_VALUE : i == 0 ? RANKING_BEST : RANKING_NOT_COMPARED;
        if (i == 0 || item->n < 2 || best->n < 2)
            continue;
        item->p = compare(ranking, best, item);
        compared[ranking->comparisons++] = item;
    }
    adjust(compared, ranking->comparisons);
}

/* ---- The whole */

void ranking_make(const struct measurements *measurements, struct ranking *ret) {
    struct ranking *ranking = ret;
    *ranking = (struct ranking){
        .items = xcalloc(measurements->setting_count + 1, sizeof *ranking->items),
        .count = measurements->setting_count,
        .replicates = xcalloc(measurements->row_count + 1, sizeof *ranking->replicates),
    };
    for (size_t g = 0; g < ranking->count; g++)
        ranking->items[g].setting = &measurements->settings[g];
    collect_units(measurements, ranking);
    ranking->replicate = choose_replicate(ranking);
    for (size_t g = 0; g < ranking->count; g++) {
        if (ranking->replicate != RANKING_UNITS)
            merge_units(ranking, &ranking->items[g]);
        ranking->with_value += ranking->items[g].n > 0;
        estimate(ranking, &ranking->items[g]);
    }
    bool most = measurements->most;
    qsort_r(ranking->items, ranking->count, sizeof *ranking->items, compare_means, &most);
    compare_with_best(ranking);
}

void ranking_clear(struct ranking *ranking) {
    free(ranking->items);
    free(ranking->replicates);
    *ranking = (struct ranking){0};
}
