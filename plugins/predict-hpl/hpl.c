#include "plugins/predict-hpl/hpl.h"

#include <math.h>

struct sum {
    const struct hpl_scenario *scenario;
    hpl_dgemm dgemm;
    hpl_panel_done panel_done;
    void *context;
    struct hpl_time time;
    /* Panels of one width whose time is not added yet, so that dgemm is asked for many at once. */
    struct {
        double count, column;
    } panels[HPL_CALLS_MAX];
    size_t panel_count;
    double width;
    struct hpl_calls calls;
};

double hpl_flops(double n) {
    return (2.0 / 3.0 * n + 1.5) * n * n;
}

/* gamma 2N^3/(3PQ) + beta N^2 (3P+Q)/(2PQ) + alpha N ((NB+1) log2 P + P)/NB */
static double closed_form(const struct hpl_scenario *s) {
    return s->gamma * 2 * s->n * s->n * s->n / (3 * s->p * s->q) +
           s->word * s->n * s->n * (3 * s->p + s->q) / (2 * s->p * s->q) +
           s->latency * s->n * ((s->nb + 1) * log2(s->p) + s->p) / s->nb;
}

/* The published time to factor a panel, (rows/P - width/3) width^2 gamma; 0, counted in `clamped`, where it
 * would be negative. */
static double published_work(struct sum *sum, double count, double rows, double width) {
    const struct hpl_scenario *s = sum->scenario;
    double work =
        (rows / s->p - width / 3) * width * width * (s->panel_gamma > 0 ? s->panel_gamma : s->gamma);
    if (3 * rows >= s->p * width)
        return work;
    sum->time.clamped += count;
    sum->time.hidden -= count * work;
    return 0;
}

/* Calls dgemm with the same N and K for each waiting panel; their m are set. */
static void call_dgemm(struct sum *sum, double times, double n, double k) {
    struct hpl_calls *calls = &sum->calls;
    calls->count = sum->panel_count;
    calls->is_update = false;
    for (size_t i = 0; i < calls->count; i++) {
        calls->times[i] = sum->panels[i].count * times;
        calls->n[i] = n;
        calls->k[i] = k;
    }
    sum->dgemm(sum->context, calls);
}

/* The time to factor each waiting panel by halves, into RET: the left half, dtrsm, dgemm with as many columns
 * as the half, the right half. A level has CALLS dgemm of (rows/P - width/2 on average) x half x half. All
 * levels together have the flops of the published term. */
static void recursive_work(struct sum *sum, double *ret) {
    const struct hpl_scenario *s = sum->scenario;
    const double width = sum->width, least = s->least_half, *seconds = sum->calls.seconds;
    double calls = 1, half = width / 2;
    for (size_t i = 0; i < sum->panel_count; i++) {
        sum->calls.m[i] = fmax((s->n - sum->panels[i].column) / s->p - width / 2, 0);
        ret[i] = 0;
    }
    for (; half >= least; half /= 2, calls *= 2) {
        call_dgemm(sum, calls, half, half);
        for (size_t i = 0; i < sum->panel_count; i++)
            ret[i] += calls * (seconds[i] + s->gamma * half * half * half);
    }
    /* What is left: below width^2 / calls + width^3 / (6 calls^2) flops. */
    call_dgemm(sum, 0, least, least);
    for (size_t i = 0; i < sum->panel_count; i++)
        ret[i] += seconds[i] * width * half / (least * least) + s->gamma * width * 4 * half * half / 6;
}

/* The time of dgemm on the trailing matrix of each waiting panel, into `calls`; the last panel leaves
 * none. */
static void update_work(struct sum *sum) {
    const struct hpl_scenario *s = sum->scenario;
    struct hpl_calls *calls = &sum->calls;
    calls->count = 0;
    calls->is_update = true;
    for (size_t i = 0; i < sum->panel_count; i++) {
        double rest = s->n - sum->panels[i].column - sum->width;
        calls->times[i] = sum->panels[i].count;
        calls->m[i] = rest / s->p;
        calls->n[i] = rest / s->q;
        calls->k[i] = sum->width;
        calls->count += rest > 0;
    }
    sum->dgemm(sum->context, calls);
}

/* Adds the time of all waiting panels. */
static void finish_panels(struct sum *sum) {
    const struct hpl_scenario *s = sum->scenario;
    struct hpl_time *time = &sum->time;
    double work[HPL_CALLS_MAX], width = sum->width;
    double rounds = log2(s->p), ranks = fmax(s->ranks_per_card, 1), columns = fmin(ranks, s->q);
    double along = s->word * ranks / columns; /* s a word, where a node sends for each of its process rows */
    double across =
        s->word * (2 * columns + ranks); /* of the three words of a swap: 2 of them, and the roll */
    if (s->recursive)
        recursive_work(sum, work);
    update_work(sum);
    for (size_t i = 0; i < sum->panel_count; i++) {
        double count = sum->panels[i].count, rows = s->n - sum->panels[i].column, rest = rows - width;
        double own = s->recursive ? work[i] : published_work(sum, count, rows, width);
        struct hpl_panel panel = {.column = sum->panels[i].column,
                                  .factorisation = own + width * rounds * (s->latency + along * 2 * width)};
        if (s->q > 1)
            panel.broadcast = s->latency + along * width * rows / s->p;
        if (s->p > 1)
            panel.swap = s->latency * (rounds + s->p - 1) + across * rest * width / s->q;
        if (rest > 0)
            panel.update = sum->calls.seconds[i] + s->gamma * rest * width * width / s->q;
        time->panels += count;
        time->factorisation += count * panel.factorisation;
        time->broadcast += count * panel.broadcast;
        time->swap += count * panel.swap;
        time->update += count * panel.update;
        if (sum->panel_done)
            sum->panel_done(sum->context, &panel);
    }
    sum->panel_count = 0;
}

/* Adds the panel that begins at column COLUMN and has WIDTH columns, COUNT times. */
static void add_panel(struct sum *sum, double count, double column, double width) {
    if (sum->panel_count == HPL_CALLS_MAX || width != sum->width)
        finish_panels(sum);
    sum->width = width;
    sum->panels[sum->panel_count].count = count;
    sum->panels[sum->panel_count++].column = column;
}

/* The sum of a function of the panel over COUNT neighbouring panels about number CENTRE is COUNT/2 times its
 * sum over CENTRE +- sqrt((COUNT^2 - 1)/12), exactly for polynomials of third degree. */
static void add_block(struct sum *sum, double count, double centre) {
    double nb = sum->scenario->nb, off = sqrt((count * count - 1) / 12);
    add_panel(sum, count / 2, (centre - off) * nb, nb);
    add_panel(sum, count / 2, (centre + off) * nb, nb);
}

/* The time of HPL, summed over panels or, for many panels, by quadrature (hpl.h). */
struct hpl_time hpl_predict(const struct hpl_scenario *s, hpl_dgemm dgemm, hpl_panel_done panel_done,
                            void *context) {
    struct sum sum = {.scenario = s,
                      .dgemm = dgemm,
                      .panel_done = panel_done,
                      .context = context,
                      .time = {.closed = closed_form(s)}};
    double whole = ceil(s->n / s->nb) - 1, blocks = (double)(s->nodes_max / 2);
    if (whole <= (double)s->nodes_max) {
        for (double i = 0; i < whole; i++)
            add_panel(&sum, 1, i * s->nb, s->nb);
    } else {
        for (double b = 0; b < blocks; b++) {
            double from = floor(whole * b / blocks), to = floor(whole * (b + 1) / blocks);
            add_block(&sum, to - from, (from + to - 1) / 2);
        }
    }
    add_panel(&sum, 1, whole * s->nb, s->n - whole * s->nb); /* the last leaves nothing to update */
    finish_panels(&sum);
    return sum.time;
}
