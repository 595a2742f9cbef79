/*
 * What a campaign says about nodes that are lost while it runs: `node-loss:`.
 *
 *     node-loss: continue             # abort, continue or replace
 *     node-loss:
 *       do: continue
 *       at-least: 2                   # fewer nodes left than that: abort
 *
 * abort: the run ends as failed. continue: the node is taken out, and the others go on (node-out.h). replace:
 * likewise, and one of the testbed's spares measures the node's share. By default a run with spares replaces,
 * one on several nodes continues, and one on a single node, which has nobody to go on, aborts.
 */
#ifndef ASSAY_CAMPAIGN_NODE_LOSS_SETTINGS_H
#define ASSAY_CAMPAIGN_NODE_LOSS_SETTINGS_H

#include "engine/documents/document.h"
#include "engine/foundation/failure.h"
#include "engine/testbed/testbed.h"

#include <stdbool.h>
#include <stdint.h>

enum node_loss_action { NODE_LOSS_ABORT, NODE_LOSS_CONTINUE, NODE_LOSS_REPLACE };

extern const char *const node_loss_action_names[];

struct node_loss_settings {
    enum node_loss_action action;
    int64_t at_least; /* nodes */
};

/* NODE: what `node-loss` is, or NULL. TESTBED: the campaign's, bound. REPLACE: the command line names spares,
 * so that this is to be done whatever NODE says. */
int node_loss_settings_bind(const struct document *document, const struct document_node *node,
                            const struct testbed_choice *testbed, bool replace,
                            struct node_loss_settings *ret, struct failure *failure);

#endif
