/*
 * A network as SimGrid takes it: the latency and bandwidth between two hosts, and SMPI's tables of factors
 * and costs over the size of a message. Made from a model of the kind
 *
 *     smpi         all of it (MODEL.md, "The kind smpi")
 *     piecewise    the durations of messages: each segment a + b size is lat-factor = a / latency and
 *                  bw-factor = 1 / (b bandwidth)
 *     linear       the same with one segment
 *
 * Of the last two the latency is that of the smallest messages and the bandwidth that of the largest, unless
 * they are given.
 */
#ifndef ASSAY_EXPORT_SIMGRID_NETWORK_H
#define ASSAY_EXPORT_SIMGRID_NETWORK_H

#include <assay/predict.h>

struct network {
    const struct model *model; /* NULL: there is none, and SMPI's tables are its own */
    const struct model_group *group;
    bool is_smpi;
    size_t one, size;          /* the terms 1 and the size of a message */
    double share;              /* of a unit of the response in seconds, that a message one way takes */
    double latency, bandwidth; /* between two hosts: s, By/s */
};

/* GROUP is a group's name; NULL: the only one. RET has the latency and bandwidth that are given, NaN where
 * they are not. Refused: a model of no network, and a base beside that of the kind smpi. */
int network_open(const struct model *model, const char *group, bool round_trip, struct network *ret,
                 struct plugin_message *message);

/* Appends the properties that SMPI has of it, but for those of which SETTINGS ("smpi/os=...") has one.
 * Refused: segments out of order, and what SMPI cannot use (a latency or cost below 0, a bandwidth that is
 * not above 0). */
int network_print(const struct network *network, const struct plugin_value *settings,
                  struct predict_output *output, struct plugin_message *message);

/* Whether SETTINGS has PROPERTY. */
bool network_is_set(const struct plugin_value *settings, const char *property);

#endif
