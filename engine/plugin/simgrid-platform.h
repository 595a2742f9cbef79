/*
 * A platform file of SimGrid (simgrid.dtd, version 4.1; what SimGrid 3.32 loads): hosts, the links between
 * them, and SMPI's configuration. Numbers are the shortest that read back as the same double; every unit is
 * written.
 *
 * Hosts that are alike are a <cluster>; hosts with a speed of their own are a <zone> of routing Cluster with
 * a <host_link> each. Either way a message takes the sender's link up and the receiver's down, so each has
 * half of the latency between two hosts.
 */
#ifndef ASSAY_PLUGIN_SIMGRID_PLATFORM_H
#define ASSAY_PLUGIN_SIMGRID_PLATFORM_H

#include "engine/foundation/text.h"
#include "engine/plugin/simgrid-hosts.h"
#include "engine/plugin/simgrid-network.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    SIMGRID_NAME_MAX = 128, /* bytes of a host's name, a prefix, a suffix */
    SIMGRID_HOSTS_MAX = 1000000,
    SIMGRID_LEVELS_MAX = 8,  /* of a fat tree */
    SIMGRID_SHAPE_MAX = 256, /* bytes of the text of a list of hosts or a fat tree */
    /* What SMPI counts to a message besides its payload; lat-factor and bw-factor see it. */
    SIMGRID_ENVELOPE = 16,
};

struct simgrid_setting {
    const char *name, *value;
};

struct simgrid_platform {
    const struct simgrid_network *network; /* NULL: latency and bandwidth below, SMPI as it is by default */
    const struct simgrid_hosts *hosts;     /* NULL: alike */
    const char *prefix, *suffix, *radical; /* of hosts that are alike: "node-", "", "0-31" */
    double speed;                          /* of their cores: flop/s */
    int cores;
    double latency, bandwidth;                   /* between two hosts: s, byte/s */
    double loopback_latency, loopback_bandwidth; /* within a host; NaN: as between two */
    double backbone_latency, backbone_bandwidth; /* a link that all share; NaN: none */
    const char *fat_tree; /* "2;4,8;1,2;1,2": levels; hosts or switches below, switches above, links; or NULL
                           */
    /* Tables change where the model's segments begin to the byte; otherwise at the same numbers, which SMPI
     * takes for the last size of the segment before, and counts the envelope. */
    bool exact_breaks;
    const struct simgrid_setting *settings; /* more of SimGrid's configuration */
    size_t setting_count;
    const char *const *origins; /* lines about where all this comes from, for a comment */
    size_t origin_count;
};

/* Appends the file to RET. FAILURE_INPUT for what SimGrid would not load. */
int simgrid_platform_write(const struct simgrid_platform *platform, struct text *ret,
                           struct failure *failure);

#endif
