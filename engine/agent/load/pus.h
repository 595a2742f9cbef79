/* Which PUs are to be kept busy, and a process on each of them that dies with us. */
#ifndef ASSAY_LOAD_PUS_H
#define ASSAY_LOAD_PUS_H

#include "engine/agent/machine/pu-set.h"

#include <sys/types.h>

/* What --stress and --spin take. */
struct load_arguments {
    const char *root;
    struct pu_set pus;
    bool has_pus;
    int64_t milliseconds; /* -1: not given */
};

/* 0, or 2 with a sentence on stderr. TOOL: "--stress"; what it does not take is NULL in ACCEPTED. */
int load_parse(const char *tool, const char *const *accepted, int count, char **given,
               struct load_arguments *ret);

/* The PUs that this process may use. 0 or a negative errno. */
int load_allowed_pus(struct pu_set *ret);
unsigned load_count_pus(const struct pu_set *set);

typedef void load_work(void *context, unsigned pu, unsigned index);

/* A child for each PU of SET, bound to it, which does WORK and ends; killed when we die. Their pids, in the
 * order of their PUs, go into PIDS. 0, or a negative errno and the PU for which it did not work: then none is
 * left. */
int load_start(const struct pu_set *set, load_work *work, void *context, pid_t *pids, unsigned *ret_pu);
/* Kills and waits for what is left of them. */
void load_stop(pid_t *pids, unsigned count);

#endif
