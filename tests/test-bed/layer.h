/*
 * What all nodes of a bed have in common and this machine does not: files in the folder LAYER that lie over
 * this machine's root in every node. Accounts, sshd's configuration and keys, the hosts file; and white-outs
 * for what a node is not to have.
 */
#ifndef ASSAY_TEST_BED_LAYER_H
#define ASSAY_TEST_BED_LAYER_H

#include "tests/test-bed/node.h"

int layer_make(const struct bed *bed, const char *layer, struct failure *failure);

/* Writes a whole small file, and makes a folder with those above it. Both do nothing once FAILURE holds one,
 * so that of a sequence only the last is asked how it went. */
int layer_write(const char *path, const char *text, mode_t mode, struct failure *failure);
int layer_folder(const char *path, mode_t mode, struct failure *failure);

/* Makes a host's or a user's key in the file PATH, and PATH.pub; any that is there goes. */
int layer_make_key(const char *path, struct failure *failure);

/* sshd's configuration: the bed's own options come first, and the first word on a thing counts. */
int layer_sshd_configuration(const struct bed *bed, char *text, size_t size, struct failure *failure);

#endif
