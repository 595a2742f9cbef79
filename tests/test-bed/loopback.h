/*
 * A bed without root: one sshd on 127.0.0.1, run by the user himself, and N names for it.
 */
#ifndef ASSAY_TEST_BED_LOOPBACK_H
#define ASSAY_TEST_BED_LOOPBACK_H

#include "tests/test-bed/node.h"

/* Starts sshd on a free port, which RET_PORT gets. */
int loopback_start(struct bed *bed, int *ret_port, struct failure *failure);
void loopback_stop(void);

/* Whether such a bed has FEATURE; the failure names it. */
int loopback_can(const char *feature, struct failure *failure);
/* The commands about sshd; the others fail. */
int loopback_do(struct bed *bed, const char *command, int count, const char *const *words,
                struct failure *failure);

#endif
