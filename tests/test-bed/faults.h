/*
 * What can be done to the nodes of a bed that is up: the commands of `bed` that name nodes, and status and
 * can.
 */
#ifndef ASSAY_TEST_BED_FAULTS_H
#define ASSAY_TEST_BED_FAULTS_H

#include "engine/foundation/text.h"
#include "tests/test-bed/node.h"

/* Does the command WORDS and appends what there is to print to ANSWER. */
int faults_do(struct bed *bed, int count, const char *const *words, struct text *answer,
              struct failure *failure);

#endif
