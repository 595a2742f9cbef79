/*
 * Hosts and their speeds from a linear model of a kernel with a fit for each host: what a unit of the term of
 * the highest degree (m*n*k of dgemm) takes is FLOP / speed. Groups of one host (its cores) are averaged: a
 * host of SimGrid has one speed for all of its cores.
 */
#ifndef ASSAY_PLUGIN_SIMGRID_HOSTS_H
#define ASSAY_PLUGIN_SIMGRID_HOSTS_H

#include "engine/foundation/failure.h"
#include "engine/plugin/model.h"

#include <stddef.h>

struct simgrid_host {
    const char *name; /* the model's text */
    double seconds;   /* a unit of the term takes, summed up over its groups */
    size_t groups;
    double speed; /* flop/s of a core */
};

struct simgrid_hosts {
    struct simgrid_host *hosts; /* in the model's order */
    size_t count;
    const char *term; /* the model's text */
};

/* COLUMN forms the groups and has the host's name; NULL: the one called node or host, or else the first. FLOP
 * is how many operations a unit of the term stands for: 2 for m*n*k. */
int simgrid_hosts_read(const struct model *model, const char *column, double flop, struct simgrid_hosts *ret,
                       struct failure *failure);
void simgrid_hosts_clear(struct simgrid_hosts *hosts);

#endif
