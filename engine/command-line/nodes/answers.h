/* What nodes answered, for people and for programs. */
#ifndef ASSAY_COMMAND_LINE_NODES_ANSWERS_H
#define ASSAY_COMMAND_LINE_NODES_ANSWERS_H

#include "engine/command-line/nodes/nodes.h"
#include "engine/documents/json.h"

struct nodes_answers_style {
    bool json;  /* an object a node, one a line */
    bool quiet; /* only what is not good */
    bool apart; /* each by itself */
};

/* To standard output: equal answers once, the good ones first. ROUND counts from 1; 0: there is only one.
 * Nodes that were not there are not shown: the failure at the end names them. */
void nodes_answers_print(const struct nodes *nodes, const struct node_result *results, size_t round,
                         const struct nodes_answers_style *style);

#endif
