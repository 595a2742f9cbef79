/* Chooses PUs to keep busy, and runs a process on each that is killed when this process dies. */
#ifndef ASSAY_LOAD_PUS_H
#define ASSAY_LOAD_PUS_H

#include "engine/agent/machine/pu-set.h"

#include <sys/types.h>

/* Sets *RET to the PUs of LIST (`--pus`); NULL: those that this process may use. Returns 0, or an exit status
 * after a sentence on stderr. */
int load_choose_pus(const char *tool, const char *list, struct pu_set *ret);

typedef void load_work(void *context, unsigned pu, unsigned index);

/* Starts a child for each PU of SET, bound to it, which calls WORK and ends. PIDS gets the children's pids in
 * the order of their PUs. Returns 0, or a negative errno and the PU of the failure in *RET_PU: then no child
 * is left. */
int load_start(const struct pu_set *set, load_work *work, void *context, pid_t *pids, unsigned *ret_pu);
/* Kills the children that are left (pids above 0), and waits for them. */
void load_stop(pid_t *pids, unsigned count);

#endif
