#include "engine/run/slow-nodes.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <math.h>
#include <stdint.h>
#include <stdlib.h>

static const double normal = 1.4826; /* 1 / the third quartile of the standard normal distribution */

struct cell {
    double sum; /* of log(seconds) */
    uint64_t count;
};

struct slow_nodes {
    size_t nodes, rows;
    struct cell cells[]; /* of node i, row j at j * nodes + i */
};

struct slow_nodes *slow_nodes_new(size_t nodes, size_t rows) {
    size_t most = SLOW_NODES_BYTES_MOST / sizeof(struct cell) / (nodes ? nodes : 1);
    rows = rows > SLOW_NODES_ROWS_MOST ? SLOW_NODES_ROWS_MOST : rows;
    rows = rows > most ? most : rows;
    struct slow_nodes *slow = calloc(1, sizeof *slow + nodes * rows * sizeof *slow->cells);
    if (!slow)
        return NULL;
    slow->nodes = nodes;
    slow->rows = rows;
    return slow;
}

void slow_nodes_free(struct slow_nodes *slow) {
    free(slow);
}

void slow_nodes_add(struct slow_nodes *slow, size_t node, size_t row, double seconds) {
    if (node >= slow->nodes || row >= slow->rows || !(seconds > 0) || isinf(seconds))
        return;
    struct cell *cell = &slow->cells[row * slow->nodes + node];
    cell->sum += log(seconds);
    cell->count++;
}

void slow_nodes_forget(struct slow_nodes *slow, size_t node) {
    for (size_t row = 0; row < slow->rows; row++)
        slow->cells[row * slow->nodes + node] = (struct cell){0};
}

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sorts VALUES; COUNT is not 0. */
static double median_of(double *values, size_t count) {
    qsort(values, count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* Adds the deviations of one row to those of its nodes: of node i, its ROWS-th at i * slow->rows + ROWS. */
static void add_row(const struct slow_nodes *slow, size_t row, double *deviations, double *room,
                    struct slow_node_score *scores) {
    const struct cell *cells = slow->cells + row * slow->nodes;
    size_t count = 0;
    for (size_t i = 0; i < slow->nodes; i++)
        if (cells[i].count > 0)
            room[count++] = cells[i].sum / (double)cells[i].count;
    if (count < SLOW_NODES_NODES)
        return;
    double median = median_of(room, count);
    for (size_t i = 0; i < slow->nodes; i++)
        if (cells[i].count > 0)
            deviations[i * slow->rows + scores[i].rows++] = cells[i].sum / (double)cells[i].count - median;
}

static void judge(const struct slow_nodes *slow, double *room, struct slow_node_score *scores) {
    size_t count = 0;
    for (size_t i = 0; i < slow->nodes; i++)
        if (scores[i].rows >= SLOW_NODES_ROWS)
            room[count++] = scores[i].score;
    double median = count > 0 ? median_of(room, count) : 0;
    for (size_t i = 0; i < count; i++)
        room[i] = fabs(room[i] - median);
    double spread = count > 0 ? normal * median_of(room, count) : 0;
    for (size_t i = 0; i < slow->nodes; i++) {
        struct slow_node_score *score = &scores[i];
        if (score->rows < SLOW_NODES_ROWS)
            continue;
        score->score -= median;
        score->spread = spread;
        score->slow = count >= SLOW_NODES_NODES && score->score > SLOW_NODES_LEAST &&
                      score->score > SLOW_NODES_SPREADS * spread;
    }
}

int slow_nodes_score(const struct slow_nodes *slow, struct slow_node_score *scores) {
    cleanup_free double *deviations = calloc(slow->nodes * slow->rows + 1, sizeof *deviations);
    cleanup_free double *room = calloc(slow->nodes + 1, sizeof *room);
    if (!deviations || !room)
        return -ENOMEM;
    for (size_t i = 0; i < slow->nodes; i++)
        scores[i] = (struct slow_node_score){0};
    for (size_t row = 0; row < slow->rows; row++)
        add_row(slow, row, deviations, room, scores);
    for (size_t i = 0; i < slow->nodes; i++)
        if (scores[i].rows >= SLOW_NODES_ROWS)
            scores[i].score = median_of(deviations + i * slow->rows, scores[i].rows);
    judge(slow, room, scores);
    return 0;
}
