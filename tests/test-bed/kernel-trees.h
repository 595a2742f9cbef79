/*
 * The /sys of a node and its /proc/sys: plain files, made once for a bed. A machine with 8 processors: one
 * package of 4 cores with 2 threads each (N and N+4 are of one core), intel_pstate active, four idle states,
 * one thermal zone, RAPL of package and memory, coretemp. Files take whatever is written, as files do: no
 * value is refused and none changes another (smt/control does not take processors away).
 */
#ifndef ASSAY_TEST_BED_KERNEL_TREES_H
#define ASSAY_TEST_BED_KERNEL_TREES_H

#include "engine/foundation/failure.h"

/* Makes the tree of /sys in FOLDER, which is made too. */
int kernel_trees_make_sys(const char *folder, struct failure *failure);
/* Copies what can be read of this machine's /proc/sys/kernel and /proc/sys/vm to FOLDER/kernel and FOLDER/vm.
 */
int kernel_trees_copy_settings(const char *folder, struct failure *failure);

#endif
