/*
 * What a node sees as its file system.
 */
#ifndef ASSAY_TEST_BED_MOUNTS_H
#define ASSAY_TEST_BED_MOUNTS_H

#include "tests/test-bed/node.h"

/* In the keeper's mount namespace: the tmpfs of the bed, and on it the layer and the trees that all nodes
 * share. */
int mounts_make_bed(const struct bed *bed, struct failure *failure);
/* In the keeper's mount namespace: the node's disk, which lives through its reboots. */
int mounts_make_disk(const struct bed *bed, const struct node *node, struct failure *failure);
/* In the node's own mount namespace, as its first process, with its host name set: everything, with "/" last.
 */
int mounts_make(const struct bed *bed, struct node *node, struct failure *failure);

/* Fills (or gives back) the tmpfs that is mounted on PATH, without taking memory for it: its limit is set to
 * what is used. SIZE is the limit to give back, NULL to fill. */
int mounts_limit(const char *path, const char *size, struct failure *failure);

#endif
