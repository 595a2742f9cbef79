/* Names of nodes, made from a list of hosts: they name the folders of results and stand in all tables. */
#ifndef ASSAY_TESTBED_NODE_NAMES_H
#define ASSAY_TESTBED_NODE_NAMES_H

#include "engine/foundation/failure.h"
#include "engine/foundation/host-list.h"

#include <stddef.h>

/* Makes one name for each host, in the same order; the caller frees *RET. FAILURE_INPUT, without a place, for
 * no hosts, for more than NODE_GROUP_MAX, and where two names would differ in upper and lower case only. */
int node_names_make(const struct host_list *hosts, char ***ret, struct failure *failure);
/* NULL is fine. */
void node_names_free(char **names, size_t count);

#endif
