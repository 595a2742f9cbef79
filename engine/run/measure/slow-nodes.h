/*
 * Which nodes of a run are slower than the others? How long each unit took goes in; when a block has ended,
 * scores are worked out, and nodes that are slow are named, once each.
 *
 * For every row of the design and every node the mean of log(seconds) over what the node measured of it (all
 * cores, all repetitions) is kept. A node's deviation in a row is that mean less the median of all nodes that
 * measured the row; its score is the median of its deviations over rows: 0.1 is about 10 % slower than the
 * cluster, row for row, however the rows differ and whatever order they came in. The spread is 1.4826 times
 * the median absolute deviation of the scores from their own median, which estimates a standard deviation and
 * which less than half of the nodes cannot move.
 *
 * A node is slow when its score is more than SLOW_NODES_SPREADS spreads above the median score and more than
 * SLOW_NODES_LEAST above it: 3.5 is what Iglewicz and Hoaglin recommend for their modified z-score (B.
 * Iglewicz, D. C. Hoaglin: How to Detect and Handle Outliers, ASQC Quality Press 1993), which is 0.6745 (x -
 * median) / MAD, and 1/0.6745 = 1.4826; of a very even cluster the 2 % keep differences out that do not
 * matter. When the spread is 0, more than half of the nodes being alike to the last digit, the 2 % alone
 * decide. Nodes are compared with those of their kind only: among twelve nodes of one cluster four of an
 * older one would all be slow. Nothing is said of fewer than SLOW_NODES_NODES nodes of a kind, or of nodes
 * that have fewer than SLOW_NODES_ROWS rows which so many nodes measured.
 *
 * Memory is bounded: 16 bytes a node and row, of the design's first SLOW_NODES_ROWS_MAX rows; and of fewer
 * when there are so many nodes that it would be more than SLOW_NODES_BYTES_MAX.
 */
#ifndef ASSAY_MEASURE_SLOW_NODES_H
#define ASSAY_MEASURE_SLOW_NODES_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct node_set;

enum {
    SLOW_NODES_NODES = 4,
    SLOW_NODES_ROWS = 5,
    SLOW_NODES_ROWS_MAX = 4096,
    SLOW_NODES_BYTES_MAX = 64 << 20,
};
#define SLOW_NODES_SPREADS 3.5
#define SLOW_NODES_LEAST 0.02 /* of log(seconds): 2 % */

struct slow_nodes;

struct slow_node_score {
    size_t nodes;  /* of its kind that have rows enough to be compared */
    size_t rows;   /* that it has, and that SLOW_NODES_NODES nodes measured */
    double score;  /* above the median score; 0 when ROWS is too few */
    double spread; /* of the scores of all nodes; 0: they are alike */
    bool slow;
};

struct slow_nodes *slow_nodes_new(size_t nodes, size_t rows);
void slow_nodes_free(struct slow_nodes *slow); /* NULL is fine */
/* NODE measured ROW (both from 0) in SECONDS. Rows beyond those that are kept, and times that are not above
 * 0, are passed over. */
void slow_nodes_add(struct slow_nodes *slow, size_t node, size_t row, double seconds);
/* Forgets NODE, which no longer takes part. */
void slow_nodes_forget(struct slow_nodes *slow, size_t node);
/* SCORES: one a node. KINDS: of each node, a number from 0 to KIND_COUNT - 1; those of one kind are compared.
 */
void slow_nodes_score(const struct slow_nodes *slow, const uint32_t *kinds, size_t kind_count,
                      struct slow_node_score *scores);
/* Notes and journals the nodes of RUN that are slow and were not named yet. Those with the same processor
 * and as many cores are of one kind. */
void slow_nodes_note(const struct slow_nodes *slow, struct node_set *set);

#endif
