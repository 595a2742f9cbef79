#include "plugins/fit-mixture/search.h"

#include "plugins/numerics/random.h"

#include <float.h>
#include <math.h>
#include <stdbool.h>

enum {
    KEPT_MAX = 16,    /* that go on after their first steps */
    POLISHED = 3,     /* of those, on all points */
    FIRST_CYCLES = 5, /* of SQUAREM, three steps each */
    COARSE_CYCLES = 60,
    FINE_CYCLES = 6,
    ROUNDS_MAX = 4, /* of moves */
    QUANTILES = 16,
    WINDOW_MAX = 64, /* points that a small component is put on */
    WINDOWS_MAX = 6,
    DRAWS_MAX = 64, /* times as many as were asked for */
    ABOVE = 2,      /* so many components more are tried, since merging them leads where splitting does not */
};

/* The best that were seen, the best first. */
struct kept {
    struct mixture mixtures[KEPT_MAX];
    size_t count;
};

struct search {
    const struct sample *sample;
    const struct search_settings *settings;
    struct random_numbers numbers;
    struct kept kept;
    size_t starts;
};

/* Two mixtures whose likelihoods differ by no more are the same one. */
static const double same = 1e-3;

/* What the last steps will not gain any more. */
static const double hopeless = 50;

/* Whether every component has points enough to live on. */
static bool carried(const struct search *search, const struct mixture *mixture) {
    for (size_t k = 0; k < mixture->count; k++)
        if (mixture->weight[k] * search->sample->weight < search->settings->least * (1 - 1e-6))
            return false;
    return true;
}

static void keep(struct kept *kept, const struct mixture *mixture) {
    size_t at = kept->count;
    while (at > 0 && kept->mixtures[at - 1].log_likelihood < mixture->log_likelihood)
        at--;
    if ((at > 0 && kept->mixtures[at - 1].log_likelihood - mixture->log_likelihood < same) ||
        (at < kept->count && mixture->log_likelihood - kept->mixtures[at].log_likelihood < same))
        return;
    if (at == KEPT_MAX)
        return;
    if (kept->count < KEPT_MAX)
        kept->count++;
    for (size_t i = kept->count - 1; i > at; i--)
        kept->mixtures[i] = kept->mixtures[i - 1];
    kept->mixtures[at] = *mixture;
}

/* Takes a place to begin at. */
static void begin(struct search *search, struct mixture *mixture) {
    double total = 0;
    for (size_t k = 0; k < mixture->count; k++) {
        mixture->weight[k] = fmax(mixture->weight[k], 1e-6);
        mixture->sigma[k] = fmax(mixture->sigma[k], search->settings->floor.sigma);
        total += mixture->weight[k];
    }
    for (size_t k = 0; k < mixture->count; k++)
        mixture->weight[k] /= total;
    em_climb(mixture, &search->sample->coarse, &search->settings->floor, FIRST_CYCLES, same);
    search->starts++;
    if (carried(search, mixture))
        keep(&search->kept, mixture);
}

/* ---- Places */

/* The point at which SHARE of the weight has passed. */
static double quantile(const struct points *points, double weight, double share) {
    double passed = 0;
    size_t i = 0;
    for (; i + 1 < points->count; i++) {
        passed += points->weight[i];
        if (passed >= share * weight)
            break;
    }
    return points->at[i];
}

/* Each point to its nearest centre, and each centre to the mean of its points; ROUNDS times. CENTRES are
 * ascending. */
static void cluster(const struct points *points, int rounds, double *centres, struct mixture *ret) {
    for (int round = 0; round < rounds; round++) {
        double weight[COMPONENTS_MAX] = {0}, first[COMPONENTS_MAX] = {0}, second[COMPONENTS_MAX] = {0};
        size_t k = 0;
        for (size_t i = 0; i < points->count; i++) {
            while (k + 1 < ret->count && points->at[i] > (centres[k] + centres[k + 1]) / 2)
                k++;
            double away = points->at[i] - centres[k];
            weight[k] += points->weight[i];
            first[k] += points->weight[i] * away;
            second[k] += points->weight[i] * (away * away + (points->spread ? points->spread[i] : 0));
        }
        for (size_t j = 0; j < ret->count; j++) {
            double moved = weight[j] > 0 ? first[j] / weight[j] : 0;
            ret->weight[j] = weight[j];
            ret->sigma[j] = weight[j] > 0 ? sqrt(fmax(0, second[j] / weight[j] - moved * moved)) : 0;
            ret->mean[j] = centres[j] += moved;
        }
    }
}

static void from_quantiles(struct search *search, size_t count) {
    struct mixture mixture = {.count = count};
    double centres[COMPONENTS_MAX];
    for (size_t k = 0; k < count; k++)
        centres[k] =
            quantile(&search->sample->coarse, search->sample->weight, ((double)k + 0.5) / (double)count);
    cluster(&search->sample->coarse, 1, centres, &mixture);
    begin(search, &mixture);
}

/* A point, drawn in proportion to its weight and, unless COUNT is 0, to the square of its distance from the
 * nearest of the COUNT centres. */
static double draw_centre(struct search *search, const double *centres, size_t count) {
    const struct points *points = &search->sample->coarse;
    double total = 0, passed = 0, chances[COARSE_MAX];
    for (size_t i = 0; i < points->count; i++) {
        double nearest = count ? INFINITY : 1;
        for (size_t k = 0; k < count; k++)
            nearest = fmin(nearest, (points->at[i] - centres[k]) * (points->at[i] - centres[k]));
        total += chances[i] = points->weight[i] * nearest;
    }
    double share = random_numbers_fraction(&search->numbers) * total;
    for (size_t i = 0; i < points->count; i++) {
        passed += chances[i];
        if (passed > share)
            return points->at[i];
    }
    return points->at[points->count - 1];
}

static void from_drawn_centres(struct search *search, size_t count) {
    struct mixture mixture = {.count = count};
    double centres[COMPONENTS_MAX];
    for (size_t k = 0; k < count; k++) {
        double centre = draw_centre(search, centres, k);
        size_t at = k;
        for (; at > 0 && centres[at - 1] > centre; at--)
            centres[at] = centres[at - 1];
        centres[at] = centre;
    }
    cluster(&search->sample->coarse, 10, centres, &mixture);
    begin(search, &mixture);
}

/* Points as means, each as often as it weighs, with any sigma between the floor's and all values'. */
static void from_drawn_shapes(struct search *search, size_t count) {
    struct mixture mixture = {.count = count};
    for (size_t k = 0; k < count; k++) {
        mixture.mean[k] = draw_centre(search, NULL, 0);
        mixture.sigma[k] = pow(search->settings->floor.sigma, random_numbers_fraction(&search->numbers));
        mixture.weight[k] = 0.05 + random_numbers_fraction(&search->numbers);
    }
    begin(search, &mixture);
}

/* The fewer points, the more draws there is time for, and the more ways in which they can be shared out. */
static size_t count_draws(const struct search *search) {
    size_t times = 2 * COARSE_MAX / (search->sample->coarse.count + 1);
    return search->settings->starts * (times < 1 ? 1 : times > DRAWS_MAX ? DRAWS_MAX : times);
}

/* Component K of MIXTURE becomes two, in one of SPLITS ways. */
enum { SPLITS = 4 };

static void split(struct mixture *mixture, size_t k, int way) {
    static const struct {
        double share[2], moved[2], sigma[2]; /* the last two in deviations of the component */
    } ways[SPLITS] = {
        {{0.5, 0.5}, {-0.8, 0.8}, {0.6, 0.6}},
        {{0.5, 0.5}, {0, 0}, {0.4, 1.4}},
        {{0.3, 0.7}, {-1, 0.4}, {0.3, 0.9}},
        {{0.3, 0.7}, {1, -0.4}, {0.3, 0.9}},
    };
    double weight = mixture->weight[k], mean = mixture->mean[k], sigma = mixture->sigma[k];
    size_t places[2] = {k, mixture->count++};
    for (int i = 0; i < 2; i++) {
        mixture->weight[places[i]] = weight * ways[way].share[i];
        mixture->mean[places[i]] = mean + sigma * ways[way].moved[i];
        mixture->sigma[places[i]] = sigma * ways[way].sigma[i];
    }
}

static void remove_component(struct mixture *mixture, size_t k) {
    mixture->count--;
    mixture->weight[k] = mixture->weight[mixture->count];
    mixture->mean[k] = mixture->mean[mixture->count];
    mixture->sigma[k] = mixture->sigma[mixture->count];
}

/* Components I < J become one with their weight, mean and variance. */
static void merge(struct mixture *mixture, size_t i, size_t j) {
    double weight = mixture->weight[i] + mixture->weight[j], share = mixture->weight[j] / weight;
    double apart = mixture->mean[j] - mixture->mean[i];
    double variance = (1 - share) * mixture->sigma[i] * mixture->sigma[i] +
                      share * mixture->sigma[j] * mixture->sigma[j] + share * (1 - share) * apart * apart;
    mixture->weight[i] = weight;
    mixture->mean[i] += share * apart;
    mixture->sigma[i] = sqrt(variance);
    remove_component(mixture, j);
}

/* ---- Where points lie closer than a mixture has them */

/* Points next to each other, and about what a component on them would gain. */
struct window {
    double gain, weight, mean, sigma;
};

struct windows {
    struct window best[WINDOWS_MAX]; /* the best first, apart from each other */
    size_t count;
};

static void keep_window(struct windows *windows, const struct window *window) {
    size_t at = windows->count;
    for (size_t i = 0; i < windows->count; i++) {
        const struct window *other = &windows->best[i];
        if (fabs(other->mean - window->mean) > other->sigma + window->sigma)
            continue;
        if (other->gain >= window->gain)
            return;
        at = i;
        break;
    }
    if (at == WINDOWS_MAX && windows->best[--at].gain >= window->gain)
        return;
    if (at == windows->count)
        windows->count++;
    windows->best[at] = *window;
    for (; at > 0 && windows->best[at - 1].gain < window->gain; at--) {
        windows->best[at] = windows->best[at - 1];
        windows->best[at - 1] = *window;
    }
}

/* log of the density times sqrt(2 pi); far from all components no less than a double has. */
static double log_density(const struct mixture *mixture, double at) {
    double sum = DBL_MIN;
    for (size_t k = 0; k < mixture->count; k++) {
        double away = (at - mixture->mean[k]) / mixture->sigma[k];
        sum += mixture->weight[k] / mixture->sigma[k] * exp(-0.5 * away * away);
    }
    return log(sum);
}

/* Of all runs of points from FIRST on, the one on which a component gains most; its gain -INFINITY where
 * there is none. LOGS: the log densities of the mixture without it. */
static struct window best_from(const struct search *search, const double *logs, size_t first) {
    const struct points *points = &search->sample->coarse;
    struct window best = {.gain = -INFINITY};
    double weight = 0, moment = 0, squares = 0, before = 0, all = search->sample->weight;
    size_t end = first + WINDOW_MAX < points->count ? first + WINDOW_MAX : points->count;
    for (size_t i = first; i < end; i++) {
        double away = points->at[i] - points->at[first], share = points->weight[i];
        weight += share;
        moment += share * away;
        squares += share * (away * away + (points->spread ? points->spread[i] : 0));
        before += share * logs[i];
        if (weight < search->settings->least)
            continue;
        double mean = moment / weight;
        double sigma = fmax(sqrt(fmax(0, squares / weight - mean * mean)), search->settings->floor.sigma);
        double gain = weight * (log(weight / all / sigma) - 1.5) - before;
        if (gain > best.gain)
            best = (struct window){gain, weight / all, points->at[first] + mean, sigma};
    }
    return best;
}

/* MIXTURE with one more component, where it gains most at once. */
static void add_on_windows(struct search *search, const struct mixture *mixture) {
    const struct points *points = &search->sample->coarse;
    struct windows windows = {.count = 0};
    double logs[COARSE_MAX];
    for (size_t i = 0; i < points->count; i++)
        logs[i] = log_density(mixture, points->at[i]);
    for (size_t i = 0; i < points->count; i++) {
        struct window window = best_from(search, logs, i);
        if (isfinite(window.gain))
            keep_window(&windows, &window);
    }
    for (size_t i = 0; i < windows.count; i++) {
        struct mixture more = *mixture;
        size_t k = more.count++;
        more.weight[k] = windows.best[i].weight;
        more.mean[k] = windows.best[i].mean;
        more.sigma[k] = windows.best[i].sigma;
        begin(search, &more);
    }
}

static void from_smaller(struct search *search, const struct mixture *smaller) {
    add_on_windows(search, smaller);
    for (size_t k = 0; k < smaller->count; k++)
        for (int way = 0; way < SPLITS; way++) {
            struct mixture mixture = *smaller;
            split(&mixture, k, way);
            begin(search, &mixture);
        }
    for (int i = 0; i < 2 * QUANTILES; i++) {
        struct mixture mixture = *smaller;
        size_t k = mixture.count++;
        double share = i % 2 ? 0.2 : 0.05;
        mixture.mean[k] =
            quantile(&search->sample->coarse, search->sample->weight, (i / 2 + 0.5) / QUANTILES);
        mixture.sigma[k] = share;
        mixture.weight[k] = share;
        begin(search, &mixture);
    }
}

static void from_larger(struct search *search, const struct mixture *larger) {
    for (size_t j = 1; j < larger->count; j++)
        for (size_t i = 0; i < j; i++) {
            struct mixture mixture = *larger;
            merge(&mixture, i, j);
            begin(search, &mixture);
        }
}

/* ---- Going on */

/* Runs what is kept to its maximum, on the coarse points. */
static void go_on(struct search *search) {
    struct kept before = search->kept;
    search->kept.count = 0;
    for (size_t i = 0; i < before.count; i++) {
        struct mixture *mixture = &before.mixtures[i];
        em_climb(mixture, &search->sample->coarse, &search->settings->floor, COARSE_CYCLES, same);
        if (carried(search, mixture))
            keep(&search->kept, mixture);
    }
}

/* One component narrower or wider: a small one may sit on its points in two ways. */
static void squeeze(struct search *search, const struct mixture *from) {
    static const double factors[] = {0.2, 0.45, 2.5};
    for (size_t k = 0; k < from->count; k++)
        for (size_t i = 0; i < sizeof factors / sizeof *factors; i++) {
            struct mixture mixture = *from;
            mixture.sigma[k] *= factors[i];
            mixture.weight[k] *= sqrt(factors[i]);
            begin(search, &mixture);
        }
}

/* Takes each away, and puts one where points lie closest then. */
static void relocate(struct search *search, const struct mixture *from) {
    for (size_t k = 0; k < from->count; k++) {
        struct mixture fewer = *from;
        double rest = 1 - fewer.weight[k];
        remove_component(&fewer, k);
        for (size_t i = 0; i < fewer.count; i++)
            fewer.weight[i] /= rest;
        add_on_windows(search, &fewer);
    }
}

/* Squeezes and relocates each, and merges two and splits a third, in every way. */
static void move_best(struct search *search) {
    for (int round = 0; round < ROUNDS_MAX && search->kept.count > 0; round++) {
        struct mixture best = search->kept.mixtures[0];
        squeeze(search, &best);
        relocate(search, &best);
        for (size_t j = 1; j < best.count; j++)
            for (size_t i = 0; i < j; i++)
                for (size_t k = 0; k + 1 < best.count; k++) {
                    struct mixture mixture = best;
                    merge(&mixture, i, j);
                    if (k != i) { /* or the move would end where it began */
                        split(&mixture, k, 0);
                        begin(search, &mixture);
                    }
                }
        go_on(search);
        if (search->kept.count == 0 || search->kept.mixtures[0].log_likelihood < best.log_likelihood + same)
            return;
    }
}

static void sort_components(struct mixture *mixture) {
    for (size_t i = 1; i < mixture->count; i++)
        for (size_t j = i; j > 0 && mixture->mean[j] < mixture->mean[j - 1]; j--) {
            struct mixture before = *mixture;
            mixture->weight[j] = before.weight[j - 1], mixture->weight[j - 1] = before.weight[j];
            mixture->mean[j] = before.mean[j - 1], mixture->mean[j - 1] = before.mean[j];
            mixture->sigma[j] = before.sigma[j - 1], mixture->sigma[j - 1] = before.sigma[j];
        }
}

/* The best of what is kept goes to BEST, if it is better than what is there: on all points, or, where they
 * are very many, on the fine ones. */
static void settle(struct search *search, struct mixture *best) {
    const struct floor *floor = &search->settings->floor;
    bool fine = search->sample->fine.count > 0;
    const struct points *points = fine ? &search->sample->fine : &search->sample->points;
    for (size_t i = 0; i < search->kept.count && i < POLISHED; i++) {
        struct mixture *mixture = &search->kept.mixtures[i];
        em_climb(mixture, points, floor, fine ? COARSE_CYCLES : FINE_CYCLES, fine ? same : 1e-4);
        if (mixture->log_likelihood + hopeless < best->log_likelihood)
            continue;
        if (!fine)
            em_polish(mixture, points, floor);
        if (mixture->log_likelihood > best->log_likelihood && carried(search, mixture)) {
            *best = *mixture;
            sort_components(best);
        }
    }
    search->kept.count = 0;
}

void search_finish(const struct sample *sample, const struct search_settings *settings,
                   struct mixture *mixture) {
    if (sample->fine.count == 0)
        return;
    em_climb(mixture, &sample->points, &settings->floor, FINE_CYCLES, 1e-4);
    em_polish(mixture, &sample->points, &settings->floor);
    sort_components(mixture);
}

/* The best with COUNT components, from those with one less. */
static void ascend(struct search *search, size_t count, struct search_result *ret) {
    const struct mixture *smaller = &ret->mixtures[count - 2];
    struct mixture *best = &ret->mixtures[count - 1];
    *best = (struct mixture){.count = count, .log_likelihood = -INFINITY};
    search->starts = 0;
    from_quantiles(search, count);
    for (size_t i = 0; i < count_draws(search); i++) {
        from_drawn_centres(search, count);
        from_drawn_shapes(search, count);
    }
    if (isfinite(smaller->log_likelihood))
        from_smaller(search, smaller);
    go_on(search);
    move_best(search);
    settle(search, best);
    ret->starts[count - 1] = search->starts;
}

/* A better one with COUNT components, from those with one more. */
static void descend(struct search *search, size_t count, struct search_result *ret) {
    if (!isfinite(ret->mixtures[count].log_likelihood))
        return;
    search->starts = ret->starts[count - 1];
    from_larger(search, &ret->mixtures[count]);
    go_on(search);
    if (search->kept.count > 0) {
        struct mixture best = search->kept.mixtures[0];
        squeeze(search, &best);
        go_on(search);
    }
    settle(search, &ret->mixtures[count - 1]);
    ret->starts[count - 1] = search->starts;
}

void search_run(const struct sample *sample, const struct search_settings *settings,
                struct search_result *ret) {
    struct search search = {.sample = sample, .settings = settings, .numbers = {settings->seed}};
    ret->mixtures[0] =
        (struct mixture){1, {1}, {0}, {fmax(1, settings->floor.sigma)}, -INFINITY}; /* as it was scaled */
    ret->mixtures[0].log_likelihood = em_log_likelihood(&ret->mixtures[0], &sample->points);
    ret->starts[0] = 1;
    if (settings->most == 1)
        return;
    size_t highest = settings->most + (settings->only ? ABOVE : 0);
    if (highest > COMPONENTS_MAX)
        highest = COMPONENTS_MAX;
    for (size_t k = 2; k <= highest; k++)
        ascend(&search, k, ret);
    for (size_t k = highest - 1; k >= (settings->only ? settings->most : 2); k--)
        descend(&search, k, ret);
}
