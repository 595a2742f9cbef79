/*
 * The process behind a node's kernel files: it answers FUSE's questions out of a struct kernel, and a test's
 * orders over a socket. It is a child of the keeper and outside of the node, so that a node that is frozen or
 * full still has files; it ends when the node's mounts are gone, and with the keeper.
 *
 * FUSE's protocol is spoken as linux/fuse.h has it, without its library: what there is to say is little, and
 * the bed needs nothing to be built.
 */
#ifndef ASSAY_TEST_BED_KERNEL_FILES_H
#define ASSAY_TEST_BED_KERNEL_FILES_H

#include "engine/foundation/text.h"
#include "tests/test-bed/kernel.h"

/* Whether FUSE can be had: a reason in FAILURE if not. In the keeper's mount namespace; FOLDER is mounted on
 * for a moment. */
int kernel_files_try(const char *folder, struct failure *failure);

/* A descriptor for one mount of one node. */
int kernel_files_open(struct failure *failure);
/* In the node: shows them at FOLDER. Somebody is to serve DESCRIPTOR. */
int kernel_files_mount(int descriptor, const char *folder, struct failure *failure);

/* The process that serves: KERNEL is as after a boot, NODE the node's first process. RET_CONTROL is the
 * socket for orders. */
int kernel_files_start(struct kernel *kernel, int descriptor, pid_t node, pid_t *ret, int *ret_control,
                       struct failure *failure);

/* Has an order done (kernel_order()) and appends what is answered. */
int kernel_files_ask(int control, int count, const char *const *words, struct text *answer,
                     struct failure *failure);

#endif
