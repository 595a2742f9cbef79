#include "plugins/export-simgrid/network.h"

#include <assay/text.h>

/* The properties of SMPI, and the part of the model that each comes from. */
static const struct property {
    const char *name, *part;
    enum { COSTS, FACTORS, CALL, THRESHOLD } type;
    const char *value; /* of the part; NULL: its estimates */
} properties[] = {
    {"smpi/os", "Send", COSTS, NULL},
    {"smpi/ois", "Isend", COSTS, NULL},
    {"smpi/or", "Recv", COSTS, NULL},
    {"smpi/lat-factor", "PingPong", FACTORS, "lat_factor"},
    {"smpi/bw-factor", "PingPong", FACTORS, "bw_factor"},
    {"smpi/async-small-thresh", "protocol", THRESHOLD, "async_small_thresh"},
    {"smpi/send-is-detached-thresh", "protocol", THRESHOLD, "send_is_detached_thresh"},
    {"smpi/wtime", "Wtime", CALL, NULL},
    {"smpi/iprobe", "Iprobe", CALL, NULL},
    {"smpi/test", "Test", CALL, NULL},
};

static double seconds_of(const struct network *network, const struct model_part *part, size_t term) {
    return part->estimates[term].estimate * network->share;
}

/* The first part called NAME after AT (NULL: from the beginning); NULL: none. All parts of a model of
 * durations count as PingPong, and it has no others. */
static const struct model_part *next_part(const struct network *network, const char *name,
                                          const struct model_part *at) {
    const struct model_part *end = network->group->parts + network->group->part_count;
    for (at = at ? at + 1 : network->group->parts; at < end; at++)
        if (strcmp(!network->is_smpi ? "PingPong" : at->name ? at->name : "", name) == 0)
            return at;
    return NULL;
}

/* ---- Opening */

/* Finds the terms 1 and size. false: the model has others. */
static bool find_terms(const struct model *model, struct network *network) {
    network->one = network->size = SIZE_MAX;
    for (size_t t = 0; t < model->term_count && t < 2; t++) {
        const struct model_term *term = &model->terms[t];
        if (term->factor_count == 0)
            network->one = t;
        if (term->factor_count == 1 && term->factors[0].power == 1 && !term->factors[0].level &&
            !term->factors[0].function)
            network->size = t;
    }
    return model->term_count == 2 && network->one != SIZE_MAX && network->size != SIZE_MAX;
}

/* The first whole size of a segment. */
static double start_of(const struct model_part *part) {
    return part->from > 0 ? ceil(part->from) : 0;
}

/* Finds latency and bandwidth, which the factors are relative to: those of the model, or of the options.
 * -EINVAL: none, or both are given. */
static int find_base(struct network *network, struct plugin_message *message) {
    const char *file = network->model->file;
    const struct model_part *first = next_part(network, "PingPong", NULL), *last = first, *at = first,
                            *protocol = next_part(network, "protocol", NULL);
    if (!first || (network->is_smpi && !protocol))
        return plugin_refuse(message, -EINVAL,
                             "the model %.128s has no part '%s'; expected the parts 'PingPong' and "
                             "'protocol': fit rows of PingPong, as the experiment "
                             "mpi-point-to-point measures them",
                             file, first ? "protocol" : "PingPong");
    if (network->is_smpi && !(isnan(network->latency) && isnan(network->bandwidth)))
        return plugin_refuse(message, -EINVAL,
                             "'latency' or 'bandwidth' is set, but the factors of %.128s are "
                             "relative to the model's own latency and bandwidth; remove one",
                             file);
    for (; (at = next_part(network, "PingPong", at)); last = at)
        if (!(start_of(at) > start_of(last)))
            return plugin_refuse(message, -EINVAL,
                                 "a segment of %.128s begins at %.15g byte, and the segment before it "
                                 "at %.15g byte; expected ascending segments",
                                 file, start_of(at), start_of(last));
    if (isnan(network->latency))
        network->latency =
            protocol ? predict_part_value(protocol, "latency") : seconds_of(network, first, network->one);
    if (isnan(network->bandwidth))
        network->bandwidth = protocol ? predict_part_value(protocol, "bandwidth")
                                      : 1 / seconds_of(network, last, network->size);
    if (network->latency > 0 && network->bandwidth > 0 && isfinite(network->latency * network->bandwidth))
        return 0;
    return plugin_refuse(message, -EINVAL,
                         "the model %.128s has a latency of %g s and a bandwidth of %g B/s; "
                         "expected both above 0",
                         file, network->latency, network->bandwidth);
}

/* Opens a model of a network, of one GROUP. -EINVAL: its terms or parts do not describe one. */
int network_open(const struct model *model, const char *group, bool round_trip, struct network *ret,
                 struct plugin_message *message) {
    ret->model = model;
    ret->is_smpi = strcmp(model->kind, "smpi") == 0;
    ret->share = ret->is_smpi || !round_trip ? model->response_seconds : model->response_seconds / 2;
    if (!find_terms(model, ret))
        return plugin_refuse(message, -EINVAL,
                             "the terms of %.128s do not describe a network; expected the terms 1 "
                             "and the size of a message",
                             model->file);
    ret->group = predict_group(model, group, message);
    return ret->group ? find_base(ret, message) : -EINVAL;
}

/* ---- Printing */

/* The size at which SMPI's table has the entry of a segment. SMPI uses an entry for sizes above it, with the
 * envelope for factors; a model that knows its envelope has entries that make its segments begin where they
 * say, published tables have bare sizes. */
static double entry_of(const struct network *network, const struct property *property,
                       const struct model_part *part) {
    const struct model_part *protocol = next_part(network, "protocol", NULL);
    double envelope = protocol && network->is_smpi ? predict_part_value(protocol, "envelope") : NAN;
    double start = start_of(part);
    if (isnan(envelope) || start == 0)
        return start;
    return start - 1 + (property->type == FACTORS ? envelope : 0);
}

/* The value of a property at the segment PART; for COSTS in s (INDEX 0) or s/By (1), 0 where SMPI does not
 * charge the operation. */
static double find_number(const struct network *network, const struct property *property,
                          const struct model_part *part, size_t index) {
    const struct model_part *cost = NULL;
    if (property->value && network->is_smpi)
        return predict_part_value(part, property->value);
    if (property->type == CALL)
        return seconds_of(network, part, network->one);
    if (property->type == FACTORS)
        return strcmp(property->value, "lat_factor") == 0
                   ? seconds_of(network, part, network->one) / network->latency
                   : 1 / (seconds_of(network, part, network->size) * network->bandwidth);
    do
        cost = next_part(network, property->part, cost);
    while (cost && !(cost->from == part->from && predict_part_value(cost, "charged") == 1));
    return cost ? seconds_of(network, cost, index == 0 ? network->one : network->size) : 0;
}

/* Writes a property; tables have an entry where each segment of PingPong begins. -EINVAL: SMPI does not
 * accept a value. */
static int print_property(const struct network *network, const struct property *property,
                          struct predict_output *output, struct plugin_message *message) {
    bool is_table = property->type == COSTS || property->type == FACTORS,
         may_be_0 = strcmp(property->name, "smpi/bw-factor") != 0;
    const char *name = is_table ? "PingPong" : property->part, *before = "\" value=\"";
    const struct model_part *at = next_part(network, name, NULL);
    if (property->type == THRESHOLD && isnan(find_number(network, property, at, 0)))
        return 0; /* not known */
    predict_print(output, NULL, "    <prop id=\"%s", property->name);
    for (; at; at = is_table ? next_part(network, name, at) : NULL, before = ";") {
        predict_print(output, NULL, "%s", before);
        if (is_table)
            predict_print(output, NULL, "%g:", entry_of(network, property, at));
        for (size_t i = 0; i < (property->type == COSTS ? 2 : 1); i++) {
            double number = find_number(network, property, at, i);
            if (!isfinite(number) || number < 0 || (number == 0 && !may_be_0))
                return plugin_refuse(message, -EINVAL,
                                     "%s from the model %.128s is %g for messages from %.15g byte on; "
                                     "expected %s: %s, or set config=%s=...",
                                     property->name, network->model->file, number, start_of(at),
                                     may_be_0 ? "0 or more" : "more than 0",
                                     network->is_smpi
                                         ? "fit it with 'assay fit smpi' and rules=ping-pong, which bounds it"
                                         : "fit other breaks",
                                     property->name);
            predict_print(output, NULL, i == 0 ? "%g" : ":%g", number);
        }
    }
    predict_print(output, NULL, "\"/>\n");
    return 0;
}

bool network_is_set(const struct plugin_value *settings, const char *property) {
    size_t length = strlen(property);
    for (size_t i = 0; i < settings->count; i++)
        if (strncmp(settings->texts[i], property, length) == 0 && settings->texts[i][length] == '=')
            return true;
    return false;
}

int network_print(const struct network *network, const struct plugin_value *settings,
                  struct predict_output *output, struct plugin_message *message) {
    int r = 0;
    for (size_t i = 0; network->model && r == 0 && i < sizeof properties / sizeof *properties; i++)
        if (next_part(network, properties[i].part, NULL) && !network_is_set(settings, properties[i].name))
            r = print_property(network, &properties[i], output, message);
    return r;
}
