/*
 * A network as SimGrid is to be told of it: the latency and the bandwidth between two hosts, and SMPI's
 * tables of factors and costs over the size of a message. Made from a model of
 *
 *     smpi         all of it (plugins/fit-smpi/README.md)
 *     piecewise    the durations of messages: each segment a + b size is lat-factor = a / latency and
 *                  bw-factor = 1 / (b bandwidth)
 *     linear       the same with one segment; latency and bandwidth follow from it where they are not given
 */
#ifndef ASSAY_PLUGIN_SIMGRID_NETWORK_H
#define ASSAY_PLUGIN_SIMGRID_NETWORK_H

#include "engine/foundation/failure.h"
#include "engine/plugin/model.h"

#include <stdbool.h>
#include <stddef.h>

enum {
    SIMGRID_SEGMENTS_MAX = 256,
    /* SimGrid reads the sizes where tables change with stoi(). */
    SIMGRID_SIZE_MAX = 2147483647,
};

enum simgrid_table_name {
    SIMGRID_OS,
    SIMGRID_OIS,
    SIMGRID_OR,
    SIMGRID_LATENCY_FACTOR,
    SIMGRID_BANDWIDTH_FACTOR,
    SIMGRID_TABLES,
};

struct simgrid_entry {
    double from;      /* bytes: holds for sizes from here on */
    double values[2]; /* of costs: seconds, seconds a byte; of factors: the first alone */
};

struct simgrid_table {
    struct simgrid_entry entries[SIMGRID_SEGMENTS_MAX]; /* by `from`, the first 0 */
    size_t count;                                       /* 0: the model does not tell it */
};

/* What the user says of the way between two hosts; NaN: nothing. */
struct simgrid_base {
    double latency, bandwidth; /* s, byte/s */
    bool round_trip;           /* durations of messages are there and back; not looked at with smpi */
};

struct simgrid_network {
    double latency, bandwidth; /* between two hosts: s, byte/s */
    struct simgrid_table tables[SIMGRID_TABLES];
    double iprobe, test, wtime;                 /* seconds a call; NaN: the model does not tell it */
    double async_threshold, detached_threshold; /* bytes; NaN: the model does not tell it */
};

/* GROUP is a group's name, NULL for the only one. Refused: a factor that SimGrid could not use (a latency
 * below 0, a bandwidth that is not above), a base that contradicts that of the factors, a unit that is no
 * time. */
int simgrid_network_read(const struct model *model, const char *group, const struct simgrid_base *base,
                         struct simgrid_network *ret, struct failure *failure);

/* Whether a model of this kind and these terms is one of a network. */
bool simgrid_network_is(const struct predict_model *view);

#endif
