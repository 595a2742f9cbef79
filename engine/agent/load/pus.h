/* Which PUs are to be kept busy, and a process on each of them that dies with us. */
#ifndef ASSAY_LOAD_PUS_H
#define ASSAY_LOAD_PUS_H

#include "engine/agent/machine/pu-set.h"

#include <sys/types.h>

/* The PUs of LIST (`--pus`); of NULL, those that this process may use. 0, or an exit status after a sentence
 * on stderr. */
int load_choose_pus(const char *tool, const char *list, struct pu_set *ret);

typedef void load_work(void *context, unsigned pu, unsigned index);

/* A child for each PU of SET, bound to it, which does WORK and ends; killed when we die. Their pids, in the
 * order of their PUs, go into PIDS. 0, or a negative errno and the PU for which it did not work: then none is
 * left. */
int load_start(const struct pu_set *set, load_work *work, void *context, pid_t *pids, unsigned *ret_pu);
/* Kills and waits for what is left of them. */
void load_stop(pid_t *pids, unsigned count);

#endif
