/* What a run knows of the controls of one node. Private to this room. */
#ifndef ASSAY_STATE_NODE_CONTROL_H
#define ASSAY_STATE_NODE_CONTROL_H

#include "engine/documents/json.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>

struct node_change;
struct node_control_state;
struct node_proof;

/* Zeroed memory is a node of which nothing is known yet. */
struct node_control_record {
    bool kept;                           /* what it was lies on the node: it is to be put back */
    double target_min_hz, target_max_hz; /* of a busy PU; 0: not known */
    char **expectations;                 /* owned; "PATH=VALUE" of the files that were set */
    size_t expectation_count;
    cJSON *json; /* owned; controls.json: FORMAT.md, "nodes/NODE/controls.json" */
};
void node_control_record_clear(struct node_control_record *record);

/* Each adds to the record what was found; 0 or -ENOMEM. */
int node_control_record_state(struct node_control_record *record, const struct node_control_state *state);
/* Takes over what CHANGE expects and how fast it says that the node is now. BLOCK: 0, or the block that it
 * was set for. */
int node_control_record_change(struct node_control_record *record, struct node_change *change, size_t block);
int node_control_record_restored(struct node_control_record *record, const struct node_change *change,
                                 const char *sentence);

struct node_speed {
    double least, mean, most; /* Hz, over the PUs */
    size_t slow, fast, count; /* PUs off the target, and all */
};
/* How fast the PUs were, against the record's target. */
struct node_speed node_control_record_speed(const struct node_control_record *record,
                                            const struct node_proof *proof, double tolerance);
int node_control_record_proof(struct node_control_record *record, const struct node_proof *proof,
                              const struct node_speed *speed, size_t block);

#endif
