/* Sources that the nodes have and this machine has not: copies of them come from the first node, before they
 * are built. Private to this room. */
#ifndef ASSAY_NODES_FETCH_SOURCES_H
#define ASSAY_NODES_FETCH_SOURCES_H

#include "engine/run/nodes/nodes.h"

/* Of options that the experiment lists as `sources`: "git+ADDRESS", perhaps with "@COMMIT", which the node
 * clones, and paths that are a source there. The copy becomes an input, so that all nodes build the same, and
 * the option's value changes. Other values stay as they are, as does a source that is too large to be kept,
 * of which hashes are recorded. */
int sources_fetch(struct node_set *set, struct failure *failure);
/* Of an experiment whose source is a git repository, which all nodes have just cloned: ARCHIVE_SOURCE. */
int sources_fetch_clone(struct node_set *set, struct failure *failure);

#endif
