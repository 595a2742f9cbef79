/* Hosts and their speeds, from a linear model of a kernel with a fit for each host: what a unit of the term
 * of the highest degree (m*n*k of dgemm) takes is FLOP / speed. Groups of one host (its cores) are averaged:
 * a host of SimGrid has one speed for all of its cores. */
#ifndef ASSAY_EXPORT_SIMGRID_SPEEDS_H
#define ASSAY_EXPORT_SIMGRID_SPEEDS_H

#include <assay/predict.h>

struct speeds_host {
    const char *name; /* the model's */
    double seconds;   /* that a unit of the term takes, summed over its groups */
    size_t groups;
    double speed; /* of a core, flop/s */
};

struct speeds {
    struct speeds_host *hosts; /* in the order of the model; owned */
    size_t count;
    double mean; /* flop/s */
};

/* The names of hosts are in the only column that forms groups, or in the one called node or host. FLOP:
 * operations that a unit of the term stands for, 2 for m*n*k. RET is to be cleared also after a failure. */
int speeds_read(const struct model *model, double flop, struct speeds *ret, struct plugin_message *message);
void speeds_clear(struct speeds *speeds);

#endif
