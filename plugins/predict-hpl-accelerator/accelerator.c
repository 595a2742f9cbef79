#include "plugins/predict-hpl-accelerator/accelerator.h"

#include <math.h>

struct run {
    const struct accelerator_scenario *scenario;
    accelerator_dgemm dgemm;
    void *context;
};

/* Equation (2) for the panel of ROWS x WIDTH. */
static double factorisation(const struct accelerator_scenario *s, double rows, double width) {
    return s->panel_share * rows / s->p * width * width / s->panel_rate;
}

/* Equation (3), between COUNT processes; SHARERS of a node send at once over the link. */
static double broadcast_over(const struct accelerator_link *link, double count, double bytes,
                             double sharers) {
    return count > 1 ? (log2(count) / 2 + 1 / count + 1) * (link->latency + bytes * sharers / link->bandwidth)
                     : 0;
}

static double broadcast(const struct accelerator_scenario *s, double rows, double width) {
    double bytes = 8 * (rows / s->p * width + width * width + width + 1);
    return broadcast_over(&s->links[0], s->q / s->node_columns, bytes, s->node_rows) +
           broadcast_over(&s->links[1], s->node_columns, bytes, 1);
}

/* Equation (4), likewise. */
static double swap_over(const struct accelerator_link *link, double count, double bytes, double sharers) {
    return count > 1 ? (log2(count) + count - 1) * link->latency +
                           (log2(count) / 2 + 2) * bytes * sharers / link->bandwidth
                     : 0;
}

static double swap(const struct accelerator_scenario *s, double columns, double width) {
    double bytes = 8 * columns * width;
    return columns > 0 ? swap_over(&s->links[0], s->p / s->node_rows, bytes, s->node_columns) +
                             swap_over(&s->links[1], s->node_rows, bytes, 1)
                       : 0;
}

/* Equation (5) for COLUMNS local columns of the trailing matrix with ROWS local rows. */
static double update(const struct run *run, double rows, double columns, double width) {
    return columns > 0 ? run->dgemm(run->context, rows, columns, width) +
                             columns * width * width / run->scenario->dtrsm_rate
                       : 0;
}

/* Adds the iteration that updates a trailing matrix of order REST after a panel of WIDTH columns, while the
 * next panel is factored and broadcast in PANEL seconds; what the update does not hide is exposed. */
static void add_iteration(const struct run *run, double rest, double width, double panel,
                          struct accelerator_time *time) {
    const struct accelerator_scenario *s = run->scenario;
    double rows = rest / s->p, columns = rest / s->q;
    double last = fmin(s->overlap == ACCELERATOR_SPLIT ? s->split * s->n / s->q : columns, columns),
           first = columns - last;
    if (first > 0) { /* the swap of one part is hidden by the update of the other */
        double swap_first = swap(s, first, width), swap_last = swap(s, last, width);
        double update_last = update(run, rows, last, width), update_first = update(run, rows, first, width);
        double exposed = fmax(panel - update_last, 0);
        time->exposed_panels += exposed;
        time->exposed_swap += fmax(panel + swap_first - update_last, 0) - exposed;
        time->exposed_swap += fmax(swap_last - update_first, 0);
        time->swap += swap_first + swap_last;
        time->update += update_first + update_last;
    } else {
        double work = update(run, rows, columns, width), moved = swap(s, columns, width);
        time->exposed_panels += s->overlap == ACCELERATOR_NO_OVERLAP ? panel : fmax(panel - work, 0);
        time->exposed_swap += moved;
        time->swap += moved;
        time->update += work;
    }
}

/* The time of HPL, panel by panel (accelerator.h). */
struct accelerator_time accelerator_predict(const struct accelerator_scenario *s, accelerator_dgemm dgemm,
                                            accelerator_panel_done panel_done, void *context) {
    const struct run run = {s, dgemm, context};
    struct accelerator_time time = {0};
    double count = ceil(s->n / s->nb), width = fmin(s->nb, s->n);
    double work = factorisation(s, s->n, width), sent = broadcast(s, s->n, width);
    for (double i = 0; i < count; i++) {
        struct accelerator_time panel = {.factorisation = work, .broadcast = sent};
        double rest = s->n - i * s->nb - width, next = fmin(s->nb, rest);
        panel.exposed_panels = i == 0 ? work + sent : 0;
        work = rest > 0 ? factorisation(s, rest, next) : 0;
        sent = rest > 0 ? broadcast(s, rest, next) : 0;
        add_iteration(&run, rest, width, work + sent, &panel);
        width = next;
        time.factorisation += panel.factorisation;
        time.broadcast += panel.broadcast;
        time.swap += panel.swap;
        time.update += panel.update;
        time.exposed_panels += panel.exposed_panels;
        time.exposed_swap += panel.exposed_swap;
        if (panel_done)
            panel_done(context, i * s->nb, &panel);
    }
    return time;
}
