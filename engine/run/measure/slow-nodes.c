#include "engine/run/measure/slow-nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"
#include "engine/run/nodes/nodes.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

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
    size_t max = SLOW_NODES_BYTES_MAX / sizeof(struct cell) / (nodes ? nodes : 1);
    max = max > SLOW_NODES_ROWS_MAX ? SLOW_NODES_ROWS_MAX : max;
    rows = rows > max ? max : rows;
    struct slow_nodes *slow = xcalloc(1, sizeof *slow + nodes * rows * sizeof *slow->cells);
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

/* ---- Scores */

static int compare(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* Sorts VALUES; 0 when COUNT is. */
static double median_of(double *values, size_t count) {
    if (count == 0)
        return 0;
    qsort(values, count, sizeof *values, compare);
    return count % 2 ? values[count / 2] : (values[count / 2 - 1] + values[count / 2]) / 2;
}

/* The mean of log(seconds) of NODE in ROW; nan: it has not measured it. */
static double mean_of(const struct slow_nodes *slow, size_t node, size_t row) {
    const struct cell *cell = &slow->cells[row * slow->nodes + node];
    return cell->count > 0 ? cell->sum / (double)cell->count : NAN;
}

/* Scores COUNT nodes of one kind by the median, over rows, of how far (in log time) they are from the row's
 * median node. ROOM has room for a value of each node, or row; MEDIANS for each row. */
static void score_kind(const struct slow_nodes *slow, const size_t *nodes, size_t count, double *medians,
                       double *room, struct slow_node_score *scores) {
    for (size_t row = 0; row < slow->rows; row++) {
        size_t found = 0;
        for (size_t i = 0; i < count; i++)
            if (!isnan(room[found] = mean_of(slow, nodes[i], row)))
                found++;
        medians[row] = found >= SLOW_NODES_NODES ? median_of(room, found) : NAN;
    }
    for (size_t i = 0; i < count; i++) {
        struct slow_node_score *score = &scores[nodes[i]];
        for (size_t row = 0; row < slow->rows; row++)
            if (!isnan(room[score->rows] = mean_of(slow, nodes[i], row) - medians[row]))
                score->rows++;
        score->score = score->rows >= SLOW_NODES_ROWS ? median_of(room, score->rows) : 0;
    }
    size_t compared = 0;
    for (size_t i = 0; i < count; i++)
        if (scores[nodes[i]].rows >= SLOW_NODES_ROWS)
            room[compared++] = scores[nodes[i]].score;
    double median = median_of(room, compared);
    for (size_t i = 0; i < compared; i++)
        room[i] = fabs(room[i] - median);
    double spread = normal * median_of(room, compared);
    for (size_t i = 0; i < count; i++) {
        struct slow_node_score *score = &scores[nodes[i]];
        score->nodes = compared;
        if (score->rows < SLOW_NODES_ROWS)
            continue;
        score->score -= median;
        score->spread = spread;
        score->slow = compared >= SLOW_NODES_NODES && score->score > SLOW_NODES_LEAST &&
                      score->score > SLOW_NODES_SPREADS * spread;
    }
}

/* Scores all nodes; each kind of node is compared only with itself. */
void slow_nodes_score(const struct slow_nodes *slow, const uint32_t *kinds, size_t kind_count,
                      struct slow_node_score *scores) {
    cleanup_free double *medians = xcalloc(slow->rows + 1, sizeof *medians);
    cleanup_free double *room = xcalloc(slow->nodes + slow->rows + 1, sizeof *room);
    cleanup_free size_t *nodes = xcalloc(slow->nodes + 1, sizeof *nodes);
    for (size_t i = 0; i < slow->nodes; i++)
        scores[i] = (struct slow_node_score){0};
    for (size_t kind = 0; kind < kind_count; kind++) {
        size_t count = 0;
        for (size_t i = 0; i < slow->nodes; i++)
            if (kinds[i] == kind)
                nodes[count++] = i;
        score_kind(slow, nodes, count, medians, room, scores);
    }
}

/* ---- Names */

/* Journals and notes that NODE is slow; node->slow has the sentence. */
static void note_slow_node(struct node_set *set, struct run_node *node, const struct slow_node_score *score) {
    node->slow =
        xformat("%.3g %% slower than the median of %zu equal nodes, over %zu rows (threshold %.2g %%: %g "
                "times their spread)",
                expm1(score->score) * 100, score->nodes, score->rows,
                expm1(SLOW_NODES_SPREADS * score->spread) * 100, SLOW_NODES_SPREADS);
    journal_begin(set->record->journal, "slow-node");
    journal_string(set->record->journal, "node", node->name);
    journal_string(set->record->journal, "sentence", node->slow);
    journal_end(set->record->journal);
    record_note(set->record, "node %s: %s", node->name, node->slow);
}

/* Notes the nodes that are slower than others with the same CPU model and core count. */
void slow_nodes_note(const struct slow_nodes *slow, struct node_set *set) {
    cleanup_free struct slow_node_score *scores = xcalloc(set->count, sizeof *scores);
    cleanup_free uint32_t *kinds = xcalloc(set->count, sizeof *kinds);
    cleanup(text_set_clear) struct text_set labels = {0};
    for (size_t i = 0; i < set->count; i++) {
        const struct run_node *node = &set->items[i];
        const char *model = node->cpu_model ? node->cpu_model : node->facts ? node->facts->machine : "";
        cleanup_free char *kind = xformat("%zu %s", node->core_count, model);
        kinds[i] = text_set_add(&labels, kind, strlen(kind));
    }
    slow_nodes_score(slow, kinds, labels.count, scores);
    for (size_t i = 0; i < set->count; i++)
        if (scores[i].slow && !set->items[i].slow)
            note_slow_node(set, &set->items[i], &scores[i]);
}
