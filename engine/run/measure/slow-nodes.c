#include "engine/run/measure/slow-nodes.h"

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

/* The nodes of one kind, which are compared with each other. */
struct comparison {
    const struct slow_nodes *slow;
    size_t *nodes, count;
    double *deviations; /* of node i, its k-th at i * slow->rows + k */
    double *room;       /* for a value a node */
    struct slow_node_score *scores;
};

/* Adds the deviations of one row to those of its nodes. */
static void add_row(const struct comparison *among, size_t row) {
    const struct slow_nodes *slow = among->slow;
    const struct cell *cells = slow->cells + row * slow->nodes;
    double *room = among->room;
    size_t count = 0;
    for (size_t i = 0; i < among->count; i++)
        if (cells[among->nodes[i]].count > 0)
            room[count++] = cells[among->nodes[i]].sum / (double)cells[among->nodes[i]].count;
    if (count < SLOW_NODES_NODES)
        return;
    double median = median_of(room, count);
    for (size_t i = 0; i < among->count; i++) {
        size_t node = among->nodes[i];
        if (cells[node].count > 0)
            among->deviations[node * slow->rows + among->scores[node].rows++] =
                cells[node].sum / (double)cells[node].count - median;
    }
}

static void judge(const struct comparison *among) {
    double *room = among->room;
    size_t count = 0;
    for (size_t i = 0; i < among->count; i++)
        if (among->scores[among->nodes[i]].rows >= SLOW_NODES_ROWS)
            room[count++] = among->scores[among->nodes[i]].score;
    double median = count > 0 ? median_of(room, count) : 0;
    for (size_t i = 0; i < count; i++)
        room[i] = fabs(room[i] - median);
    double spread = count > 0 ? normal * median_of(room, count) : 0;
    for (size_t i = 0; i < among->count; i++) {
        struct slow_node_score *score = &among->scores[among->nodes[i]];
        score->nodes = count;
        if (score->rows < SLOW_NODES_ROWS)
            continue;
        score->score -= median;
        score->spread = spread;
        score->slow = count >= SLOW_NODES_NODES && score->score > SLOW_NODES_LEAST &&
                      score->score > SLOW_NODES_SPREADS * spread;
    }
}

static void compare_kind(const struct comparison *among) {
    const struct slow_nodes *slow = among->slow;
    for (size_t row = 0; row < slow->rows; row++)
        add_row(among, row);
    for (size_t i = 0; i < among->count; i++) {
        struct slow_node_score *score = &among->scores[among->nodes[i]];
        if (score->rows >= SLOW_NODES_ROWS)
            score->score = median_of(among->deviations + among->nodes[i] * slow->rows, score->rows);
    }
    judge(among);
}

int slow_nodes_score(const struct slow_nodes *slow, const size_t *kinds, struct slow_node_score *scores) {
    cleanup_free double *deviations = calloc(slow->nodes * slow->rows + 1, sizeof *deviations);
    cleanup_free double *room = calloc(slow->nodes + 1, sizeof *room);
    cleanup_free size_t *nodes = calloc(slow->nodes + 1, sizeof *nodes);
    if (!deviations || !room || !nodes)
        return -ENOMEM;
    for (size_t i = 0; i < slow->nodes; i++)
        scores[i] = (struct slow_node_score){0};
    struct comparison among = {slow, nodes, 0, deviations, room, scores};
    for (size_t first = 0; first < slow->nodes; first++) {
        if (kinds && kinds[first] != first)
            continue; /* an earlier one is of its kind */
        among.count = 0;
        for (size_t i = first; i < slow->nodes; i++)
            if (!kinds || kinds[i] == first)
                nodes[among.count++] = i;
        compare_kind(&among);
        if (!kinds)
            break;
    }
    return 0;
}
