#include "plugins/predict-hpl-replay/sampled.h"

#include "engine/numerics/distribution.h"
#include "engine/numerics/least-squares.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

enum {
    WINDOWS_MIN = 5,
    WINDOWS_USUAL = 12,
    WINDOWS_MAX = 24,
    MEASURED_MIN = 3, /* panels that a window measures */
    SETTLING_MAX = 4, /* panels that a window replays before them */
    PANELS_MIN = 48,
    WINDOWS_PANELS_MAX = 200, /* of WINDOWS_MIN windows, if one measures a panel of each process column */
    FEATURES = 4,
};

/* The beginning or the end of what a window measures: the mean time at which the processes have found
 * `panel`. */
struct edge {
    int panel, found;          /* found: by how many processes so far */
    double sum, time;          /* sum and mean of their clocks, s */
    struct replay_times times; /* of the replay so far */
};

struct window {
    struct edge from, to;
    double features[FEATURES];
    double factor; /* measured time over that of the regression */
    double share;  /* s: estimated time of all panels that are nearer to this window than to others */
};

struct sampling {
    const struct hpl *hpl;
    const struct replay_observer *observer;
    int (*progress)(void *context, double share);
    int *chosen, count;
    struct window windows[WINDOWS_MAX];
    int window_count;
};

/* ---- Which panels */

/* The default number of panels to replay: as many as have 3 million messages. Messages without events count a
 * twentieth: those of the search for pivots, and of long broadcasts where each process has its own card. It
 * is at least what WINDOWS_MIN windows take that measure a panel of each process column, if these are few. */
static int usual_panels(const struct hpl *hpl, bool has_own_cards) {
    double p = hpl->p, q = hpl->q, rounds = ceil(log2(p));
    double swaps = q * p * (hpl->swap == HPL_BINARY_EXCHANGE ? rounds : p);
    double panels = p * q * (hpl->bcast < HPL_LONG ? 1 : has_own_cards ? q / 20 : q);
    double ret = fmin(3e6 / (swaps + panels + hpl->nb * p * rounds / 20), hpl_panel_count(hpl));
    double windows = WINDOWS_MIN * (q + SETTLING_MAX + 1);
    return (int)fmax(fmax(ret, PANELS_MIN), windows <= WINDOWS_PANELS_MAX ? windows : 0);
}

/* How many panels a window measures, of BUDGET panels in all. A multiple of Q, so that each process column
 * factors equally many, or of max(P, Q) if that leaves WINDOWS_MIN windows. */
static int measured_panels(const struct hpl *hpl, int budget) {
    int columns = hpl->q, both = hpl->p > columns ? hpl->p : columns;
    int most = budget / WINDOWS_MIN - SETTLING_MAX, usual = budget / WINDOWS_USUAL - SETTLING_MAX;
    int period = both <= most ? both : columns;
    if (period > most)
        return usual > MEASURED_MIN ? usual : MEASURED_MIN;
    return usual < period ? period : usual / period * period;
}

/* Chooses the windows, closer together where panels are large. False: the windows would have 4/5 of all
 * panels or more. */
static bool choose_panels(struct sampling *sampling, int budget) {
    const struct hpl *hpl = sampling->hpl;
    int all = hpl_panel_count(hpl), q = hpl->q, measured = measured_panels(hpl, budget);
    int settling = (measured + 2) / 3 < SETTLING_MAX ? (measured + 2) / 3 : SETTLING_MAX;
    int length = settling + measured + 1, windows = budget / length, next = 0;
    windows = windows < WINDOWS_MIN ? WINDOWS_MIN : windows > WINDOWS_MAX ? WINDOWS_MAX : windows;
    if (windows * length * 5 / 4 > all)
        return false;
    for (int i = 0; i < windows; i++) {
        struct window *window = &sampling->windows[i];
        double left = sqrt(1 - (double)i / (windows - 1)); /* of the matrix: their density goes by it */
        int wanted = (int)((1 - left) * (all - length)), last = all - (windows - i) * length;
        int start = wanted > next ? next + (wanted - next + q / 2) / q * q : next;
        start = i == windows - 1 || start > last ? last : start;
        for (int k = 0; k < length; k++)
            sampling->chosen[sampling->count++] = start + k;
        window->from.panel = i == 0 ? 0 : start + settling;
        window->to.panel = next = start + length - 1;
        next++;
        sampling->window_count++;
    }
    return true;
}

/* ---- The replay */

/* The window that PANEL is in: the last one whose measurement begins at PANEL or before. */
static int find_window(const struct sampling *sampling, int panel) {
    int low = 0, high = sampling->window_count - 1;
    while (low < high) {
        int middle = (low + high + 1) / 2;
        if (sampling->windows[middle].from.panel <= panel)
            low = middle;
        else
            high = middle - 1;
    }
    return low;
}

/* replay_observer.panel_found: writes the edges of the windows. */
static int panel_found(void *context, int panel, double now, const struct replay_times *times) {
    struct sampling *sampling = context;
    int ranks = sampling->hpl->p * sampling->hpl->q, at = find_window(sampling, panel);
    struct window *window = &sampling->windows[at];
    struct edge *edge = panel == window->from.panel ? &window->from : &window->to;
    if (panel != edge->panel)
        return 0;
    edge->sum += now;
    if (++edge->found < ranks)
        return 0;
    edge->time = edge->sum / ranks;
    edge->times = *times;
    return sampling->progress
               ? sampling->progress(sampling->observer->context, (at + 1.0) / sampling->window_count)
               : 0;
}

/* ---- The whole from its parts */

/* The features of the time between PANEL and the next panel: rows x columns, rows, columns of the process
 * that has most, and 1. */
static void find_features(const struct hpl *hpl, int panel, double ret[FEATURES]) {
    int rows = 0, columns = 0, next = hpl_panel_start(hpl, panel + 1);
    for (int row = 0; row < hpl->p; row++) {
        int of = hpl_rows_below(hpl, panel, row);
        rows = of > rows ? of : rows;
    }
    for (int column = 0; column < hpl->q; column++) {
        int of = hpl_local_columns(hpl, next, hpl->n + 1, column);
        columns = of > columns ? of : columns;
    }
    ret[0] = (double)rows * columns;
    ret[1] = rows;
    ret[2] = columns;
    ret[3] = 1;
}

static double regression(const double *estimates, const double *features) {
    double ret = 0;
    for (int f = 0; f < FEATURES; f++)
        ret += estimates[f] * features[f];
    return ret;
}

/* Writes the coefficients of the features into RET: least squares of the windows' times, relative errors, all
 * coefficients at least 0. Negative errno; 1: a window took no time. */
static int fit(struct sampling *sampling, double ret[FEATURES]) {
    static const enum least_squares_role roles[] = {LEAST_SQUARES_NONNEGATIVE, LEAST_SQUARES_NONNEGATIVE,
                                                    LEAST_SQUARES_NONNEGATIVE, LEAST_SQUARES_NONNEGATIVE};
    struct least_squares sums;
    struct least_squares_fit fit = {0};
    int r = least_squares_init(&sums, FEATURES);
    for (int i = 0; r == 0 && i < sampling->window_count; i++) {
        struct window *window = &sampling->windows[i];
        double time = window->to.time - window->from.time, weight = 1 / (time * time);
        r = time > 0 ? 0 : 1;
        for (int k = window->from.panel; k < window->to.panel; k++) {
            double features[FEATURES];
            find_features(sampling->hpl, k, features);
            for (int f = 0; f < FEATURES; f++)
                window->features[f] += features[f];
        }
        r = r != 0 ? r : least_squares_append(&sums, 1, window->features, 1, &time, &weight);
    }
    r = r != 0 ? r : least_squares_solve(&sums, roles, &fit);
    for (int f = 0; r == 0 && f < FEATURES; f++)
        ret[f] = fit.estimate[f];
    least_squares_fit_clear(&fit);
    least_squares_clear(&sums);
    return r;
}

/* The panel in the middle of what WINDOW measures. */
static double centre(const struct sampling *sampling, int window) {
    const struct window *of = &sampling->windows[window];
    return (of->from.panel + of->to.panel - 1) / 2.0;
}

/* The factor at PANEL, on the line between those of the windows A and B; beyond them that of the nearer one.
 */
static double interpolate(const struct sampling *sampling, int a, int b, double panel) {
    double from = centre(sampling, a), to = centre(sampling, b), at = (panel - from) / (to - from);
    double low = sampling->windows[a].factor, high = sampling->windows[b].factor;
    return at <= 0 ? low : at >= 1 ? high : low + at * (high - low);
}

/* Adds FROM times FACTOR to TO; of what is counted, FROM times PANELS. */
static void add_times(struct replay_times *to, const struct replay_times *from, double factor,
                      double panels) {
    for (int i = 0; i < HPL_KERNELS; i++)
        to->kernels[i] += factor * from->kernels[i];
    for (int i = 0; i < HPL_PHASES; i++)
        to->messages[i] += factor * from->messages[i];
    to->panel_wait += factor * from->panel_wait;
    to->probing += factor * from->probing;
    to->events += (uint64_t)llround(panels * (double)from->events);
    to->message_count += (uint64_t)llround(panels * (double)from->message_count);
    to->kernel_count += (uint64_t)llround(panels * (double)from->kernel_count);
    to->unusable_count += (uint64_t)llround(panels * (double)from->unusable_count);
}

/* Estimates the times of all panels and reports each panel to OBSERVER. RET has the times of the replayed
 * panels, and then those of all panels. */
static int integrate(struct sampling *sampling, struct replay_times *ret) {
    const struct replay_observer *observer = sampling->observer;
    double estimates[FEATURES], until = sampling->windows[0].from.time;
    int last = sampling->window_count - 1, at = 0, panels = hpl_panel_count(sampling->hpl), own = 0;
    struct replay_times all = sampling->windows[0].from.times;
    int r = fit(sampling, estimates);
    for (int i = 0; r == 0 && i <= last; i++) {
        struct window *window = &sampling->windows[i];
        window->factor = (window->to.time - window->from.time) / regression(estimates, window->features);
    }
    for (int k = 0; r == 0 && k < panels; k++) {
        double features[FEATURES];
        struct window *window = &sampling->windows[at];
        if (observer && observer->panel_done)
            r = observer->panel_done(observer->context, k, until, until);
        if (k + 1 == panels)
            break;
        find_features(sampling->hpl, k, features);
        double time = regression(estimates, features), middle = centre(sampling, at);
        if (k >= window->from.panel && k < window->to.panel)
            time *= window->factor;
        else
            time *= k > middle && at < last ? interpolate(sampling, at, at + 1, k)
                    : at > 0                ? interpolate(sampling, at - 1, at, k)
                                            : window->factor;
        until += time;
        window->share += time;
        own++;
        if (at == last ? k + 2 == panels : k + 1 > (middle + centre(sampling, at + 1)) / 2) {
            struct replay_times part = window->to.times;
            add_times(&part, &window->from.times, -1, -1);
            add_times(&all, &part, window->share / (window->to.time - window->from.time),
                      (double)own / (window->to.panel - window->from.panel));
            own = 0;
            at += at < last;
        }
    }
    add_times(&all, ret, 1, 1);
    add_times(&all, &sampling->windows[last].to.times, -1, -1);
    all.time = until + ret->time - sampling->windows[last].to.time;
    *ret = all;
    return r;
}

/* Half of the interval, s, that has the time of all panels in 95 % of cases. The difference of a window from
 * the line between its neighbours estimates two things: chance, which panels that are not replayed have, too,
 * and the bend of the curve between windows. Such differences overlap: N of them have 18/35 N degrees of
 * freedom (T. Gasser, L. Sroka, C. Jennen-Steinmetz, Biometrika 73, 1986). */
static double find_error(const struct sampling *sampling) {
    const struct window *windows = sampling->windows;
    int last = sampling->window_count - 1;
    double variance = 0, bend = 0;
    for (int i = 0; i <= last; i++) {
        int middle = i == 0 ? 1 : i == last ? i - 1 : i;
        double line = interpolate(sampling, middle - 1, middle + 1, centre(sampling, middle));
        double error = windows[i].share * (line / windows[middle].factor - 1);
        double measured = windows[i].to.time - windows[i].from.time;
        variance += error * error / 1.5 * (1 + measured / windows[i].share);
        bend += error / 6;
    }
    return distribution_student_two_sided_quantile(0.05, fmax(1, (last - 1) * 18.0 / 35)) * sqrt(variance) +
           fabs(bend);
}

int sampled_run(const struct hpl *hpl, const struct replay_machine *machine,
                const struct replay_observer *observer, int (*progress)(void *context, double share),
                struct sampled *sampled, struct replay_times *ret) {
    struct hpl part = *hpl;
    struct sampling sampling = {.hpl = hpl, .observer = observer, .progress = progress};
    int all = hpl_panel_count(hpl), budget = sampled->panels, r = 1;
    if (budget == 0)
        budget =
            usual_panels(hpl, machine->nodes == hpl->p * hpl->q && machine->network->tree.leaf_nodes == 0 &&
                                  machine->network->reverse == 0);
    sampling.chosen = calloc((size_t)all, sizeof *sampling.chosen);
    if (!sampling.chosen)
        return -ENOMEM;
    if (choose_panels(&sampling, budget)) {
        part.chosen = sampling.chosen;
        part.chosen_count = sampling.count;
        r = replay_run(&part, machine,
                       &(struct replay_observer){.context = &sampling, .panel_found = panel_found}, ret);
        r = r < 0 ? r : integrate(&sampling, ret);
    }
    if (r == 0)
        *sampled = (struct sampled){sampling.count, find_error(&sampling)};
    free(sampling.chosen);
    return r;
}
