/*
 * Where a node's units are done: on each of its cores, or once on the whole node, as the experiment says. The
 * ledger knows a place by the node's name and the core's number ("all": the whole node).
 */
#ifndef ASSAY_RUN_PLACES_H
#define ASSAY_RUN_PLACES_H

#include "engine/run/run-state.h"

#include <stddef.h>

size_t places_count(const struct run *run, const struct run_node *node);
/* The ledger's number of the I-th; SIZE_MAX when out of memory or of places. */
size_t places_find(const struct run *run, const struct run_node *node, size_t i);

#endif
