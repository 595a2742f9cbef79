/* Sources that the nodes have and this machine has not: copies of them come from the first node, before they
 * are built. Private to this room. */
#ifndef ASSAY_NODES_FETCH_SOURCES_H
#define ASSAY_NODES_FETCH_SOURCES_H

#include "engine/run/nodes/nodes.h"

/* Fetches a copy of each option that the experiment lists as `sources`: "git+ADDRESS" (perhaps with
 * "@COMMIT"), which the node clones, or a path that is a source there. The copy becomes an input, so that all
 * nodes build the same, and the option's value. Other values stay, and so does a source that is too large to
 * be kept, of which only hashes are recorded. */
int sources_fetch(struct node_set *set, struct failure *failure);
/* For an experiment whose source is a git repository that all nodes have just cloned: keeps the clone as
 * ARCHIVE_SOURCE. */
int sources_fetch_clone(struct node_set *set, struct failure *failure);

#endif
