/* What a run knows of the controls of one node. Private to this room. */
#ifndef ASSAY_STATE_NODE_CONTROL_H
#define ASSAY_STATE_NODE_CONTROL_H

#include "engine/documents/json.h"

#include <stdbool.h>
#include <stddef.h>

/* Zeroed memory is a node of which nothing is known yet. */
struct node_control_record {
    bool kept;                           /* what it was lies on the node: it is to be put back */
    double target_min_hz, target_max_hz; /* of a busy PU; 0: not known */
    const char **expectations; /* "PATH=VALUE" of the files that were set; the texts are the group's */
    size_t expectation_count;
    cJSON *json; /* owned; controls.json: FORMAT.md, "nodes/NODE/controls.json" */
};
void node_control_record_clear(struct node_control_record *record);

#endif
