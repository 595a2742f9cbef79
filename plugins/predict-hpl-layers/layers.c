#include "plugins/predict-hpl-layers/layers.h"

#include <math.h>

struct layer layers_memory(double cores, double memory, double words, double cycles, double clock) {
    double equivalent = words > 0 ? memory / cores * words : memory;
    return (struct layer){.latency = cycles / clock, .word = 8 / equivalent};
}

/* The shape *RET_P x *RET_Q of COUNT processes in a grid of P x Q: the squarest that fits, turned as the grid
 * is. false: none fits. */
bool layers_grid(double count, double p, double q, double *ret_p, double *ret_q) {
    for (double shorter = floor(sqrt(count)); shorter >= 1; shorter--) {
        double longer = count / shorter;
        if (longer != floor(longer))
            continue;
        for (int turned = 0; turned < 2; turned++) {
            bool is_flat = (p <= q) == (turned == 0);
            *ret_p = is_flat ? shorter : longer;
            *ret_q = is_flat ? longer : shorter;
            if (*ret_p <= p && *ret_q <= q)
                return true;
        }
    }
    return false;
}

/* The lowest layer that holds a trailing matrix with SIZE rows (columns unless IS_ROWS). */
static size_t find_layer(const struct layers_scenario *s, double size, bool is_rows) {
    size_t j = 0;
    while (j + 1 < s->count && size > (is_rows ? s->layers[j].rows : s->layers[j].columns) * (1 + 1e-12))
        j++;
    return j;
}

/* Adds the time of all panels: the terms of HPL's authors, as predict-hpl with panels=asymptotic, each with
 * latency and bandwidth of the layer that holds the trailing matrix. */
static void add_panels(const struct layers_scenario *s, layers_panel_done panel_done, void *context,
                       struct layers_time *time) {
    double rounds = log2(s->p), count = ceil(s->n / s->nb);
    for (double i = 0; i < count; i++) {
        double width = fmin(s->nb, s->n - i * s->nb), rows = s->n - i * s->nb, rest = rows - width;
        size_t down = find_layer(s, rows, true), along = find_layer(s, rest, false);
        const struct layer *column = &s->layers[down], *row = &s->layers[along];
        double work = fmax(rows / s->p - width / 3, 0) * width * width * s->gamma +
                      s->gamma * (rest * width * width / s->q + 2 * rest * rest * width / (s->p * s->q));
        double pivots = width * rounds * (column->latency + column->word * 2 * width), broadcast = 0,
               swap = 0;
        if (s->q > 1 || s->is_memory_first)
            broadcast = column->latency + column->word * width * rows / s->p;
        if (s->p > 1 || s->is_memory_first)
            swap = row->latency * (rounds + s->p - 1) + 3 * row->word * rest * width / s->q;
        time->computation += work;
        time->layers[down].pivots += pivots;
        time->layers[down].broadcast += broadcast;
        time->layers[along].swap += swap;
        if (panel_done)
            panel_done(context, &(struct layers_panel){i * s->nb, work, pivots + broadcast + swap, down});
    }
}

/* Computes equations (25) and (27) to (29) for a matrix of order N_new. */
static void add_printed(const struct layers_scenario *s, struct layers_time *time) {
    double least = s->p; /* the least common multiple of P and Q */
    while (fmod(least, s->q) != 0)
        least += s->p;
    double n = ceil(s->n / (s->nb * least)) * s->nb * least, p = s->p, q = s->q, nb = s->nb, rounds = log2(p);
    time->padded = n;
    time->printed_computation =
        s->gamma * (2 * n * n * n / (3 * p * q) + nb * (3 * q + 3 * p + 6) * n * n / (6 * p * q) +
                    nb * nb * (3 * p + 2 - (2 * p + 3) * q) * n / (6 * p * q));
    double rows_before = 0, columns_before = 0;
    for (size_t j = 0; j < s->count; j++) {
        const struct layer *layer = &s->layers[j];
        double rows = layer->rows / s->n * n - rows_before;
        double columns = layer->columns / s->n * n - columns_before;
        time->printed[j] = (struct layers_share){
            rounds * (layer->latency + layer->word * (2 * nb + 4)) * rows,
            layer->latency * rows / nb + layer->word * (rows * rows - rows * nb) / (2 * p),
            layer->latency * (rounds + p - 1) * columns / nb +
                3 * layer->word * (columns * columns + columns * nb) / (2 * q)};
        rows_before += rows;
        columns_before += columns;
    }
}

/* The time of HPL over layers (layers.h). */
struct layers_time layers_predict(const struct layers_scenario *s, layers_panel_done panel_done,
                                  void *context) {
    struct layers_time time = {0};
    const struct layer *last = &s->layers[s->count - 1];
    add_panels(s, panel_done, context, &time);
    add_printed(s, &time);
    time.original = s->gamma * 2 * s->n * s->n * s->n / (3 * s->p * s->q) +
                    last->word * s->n * s->n * (3 * s->p + s->q) / (2 * s->p * s->q) +
                    last->latency * s->n * ((s->nb + 1) * log2(s->p) + s->p) / s->nb;
    return time;
}
