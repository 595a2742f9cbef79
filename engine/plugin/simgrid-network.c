#include "engine/plugin/simgrid-network.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* A model being read: what all steps want. */
struct reading {
    const struct predict_model *view;
    const struct predict_group *group;
    double seconds; /* in one unit of the response */
    size_t one_term, size_term;
    struct simgrid_network *network;
    struct failure *failure;
};

static double value_of(const struct predict_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    return NAN;
}

static bool is_named(const struct predict_part *part, const char *name) {
    return part->name && strcmp(part->name, name) == 0;
}

/* Entries come in any order, and stay sorted. */
static int add_entry(const struct reading *reading, enum simgrid_table_name name, double from, double first,
                     double second) {
    struct simgrid_table *table = &reading->network->tables[name];
    double start = from > 0 ? ceil(from) : 0; /* sizes are whole */
    if (table->count == SIMGRID_SEGMENTS_MAX)
        return failure_input(reading->failure, reading->view->name, 0, 0,
                             "the model has more than %d segments", (int)SIMGRID_SEGMENTS_MAX);
    if (!(start <= SIMGRID_SIZE_MAX))
        return failure_input(reading->failure, reading->view->name, 0, 0,
                             "a segment begins at %.15g byte; SimGrid takes sizes up to %d", from,
                             (int)SIMGRID_SIZE_MAX);
    size_t i = table->count++;
    for (; i > 0 && table->entries[i - 1].from > start; i--)
        table->entries[i] = table->entries[i - 1];
    table->entries[i] = (struct simgrid_entry){start, {first, second}};
    if (i > 0 && table->entries[i - 1].from == start)
        return failure_input(reading->failure, reading->view->name, 0, 0, "two segments begin at %.15g byte",
                             start);
    return 0;
}

static int add_factors(const struct reading *reading, double from, double latency, double bandwidth) {
    if (!(latency >= 0) || !isfinite(latency))
        return failure_input(reading->failure, reading->view->name, 0, 0,
                             "the latency factor from %.15g byte on is %g; expected 0 or more",
                             from > 0 ? from : 0, latency);
    if (!isfinite(bandwidth))
        return failure_input(
            reading->failure, reading->view->name, 0, 0,
            "from %.15g byte on the model's time does not grow with the size, which gives no "
            "bandwidth factor",
            from > 0 ? from : 0);
    if (!(bandwidth > 0))
        return failure_input(reading->failure, reading->view->name, 0, 0,
                             "the bandwidth factor from %.15g byte on is %g; expected more than 0",
                             from > 0 ? from : 0, bandwidth);
    int r = add_entry(reading, SIMGRID_LATENCY_FACTOR, from, latency, 0);
    return r < 0 ? r : add_entry(reading, SIMGRID_BANDWIDTH_FACTOR, from, bandwidth, 0);
}

/* ---- Of the kind smpi */

static const struct {
    const char *operation;
    enum simgrid_table_name table;
} costs[] = {{"Send", SIMGRID_OS}, {"Isend", SIMGRID_OIS}, {"Recv", SIMGRID_OR}};

/* A cost of the estimate of TERM, in seconds. */
static int find_cost(const struct reading *reading, const struct predict_part *part, size_t term,
                     double *ret) {
    double cost = part->estimates[term] * reading->seconds;
    if (!(cost >= 0) || !isfinite(cost))
        return failure_input(reading->failure, reading->view->name, 0, 0,
                             "the part '%.64s' costs %g s%s; expected 0 or more", part->name, cost,
                             term == reading->size_term ? " a byte" : "");
    *ret = cost;
    return 0;
}

static int add_cost(const struct reading *reading, size_t cost, double from) {
    bool told = false;
    for (size_t i = 0; i < reading->group->part_count; i++) {
        const struct predict_part *part = &reading->group->parts[i];
        if (!is_named(part, costs[cost].operation))
            continue;
        told = true;
        if (part->from != from || value_of(part, "charged") != 1)
            continue;
        double once = 0, per_byte = 0;
        int r = find_cost(reading, part, reading->one_term, &once);
        r = r < 0 ? r : find_cost(reading, part, reading->size_term, &per_byte);
        return r < 0 ? r : add_entry(reading, costs[cost].table, from, once, per_byte);
    }
    return told ? add_entry(reading, costs[cost].table, from, 0, 0) : 0;
}

static int check_base(const struct reading *reading, const char *name, double given, double told) {
    if (!isfinite(told) || !(told > 0))
        return failure_input(reading->failure, reading->view->name, 0, 0,
                             "the part 'protocol' does not tell the %s to which the factors are relative",
                             name);
    if (isnan(given) || given == told)
        return 0;
    return failure_input(reading->failure, reading->view->name, 0, 0,
                         "its factors are relative to the %s %.15g, not %.15g", name, told, given);
}

static int read_smpi_part(const struct reading *reading, const struct predict_part *part) {
    struct simgrid_network *network = reading->network;
    const struct {
        const char *name;
        double *cost;
    } calls[] = {{"Iprobe", &network->iprobe}, {"Test", &network->test}, {"Wtime", &network->wtime}};
    for (size_t i = 0; i < sizeof calls / sizeof *calls; i++)
        if (is_named(part, calls[i].name))
            return find_cost(reading, part, reading->one_term, calls[i].cost);
    if (is_named(part, "protocol")) {
        network->latency = value_of(part, "latency");
        network->bandwidth = value_of(part, "bandwidth");
        network->async_threshold = value_of(part, "async_small_thresh");
        network->detached_threshold = value_of(part, "send_is_detached_thresh");
    }
    if (!is_named(part, "PingPong"))
        return 0;
    int r = add_factors(reading, part->from, value_of(part, "lat_factor"), value_of(part, "bw_factor"));
    for (size_t c = 0; r == 0 && c < sizeof costs / sizeof *costs; c++)
        r = add_cost(reading, c, part->from);
    return r;
}

static int read_smpi(const struct reading *reading, const struct simgrid_base *base) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < reading->group->part_count; i++)
        r = read_smpi_part(reading, &reading->group->parts[i]);
    if (r == 0 && reading->network->tables[SIMGRID_LATENCY_FACTOR].count == 0)
        return failure_input(reading->failure, reading->view->name, 0, 0, "the model has no part 'PingPong'");
    r = r < 0 ? r : check_base(reading, "latency", base->latency, reading->network->latency);
    return r < 0 ? r : check_base(reading, "bandwidth", base->bandwidth, reading->network->bandwidth);
}

/* ---- Of durations of messages */

/* Terms 1 and one column, in either order. */
static bool find_terms(const struct predict_model *view, size_t *ret_one, size_t *ret_size) {
    *ret_one = *ret_size = SIZE_MAX;
    for (size_t t = 0; t < view->term_count && t < 2; t++) {
        const struct plugin_term *term = &view->terms[t];
        if (term->factor_count == 0)
            *ret_one = t;
        if (term->factor_count == 1 && term->factors[0].power == 1 && !term->factors[0].level &&
            !term->factors[0].function)
            *ret_size = t;
    }
    return view->term_count == 2 && *ret_one != SIZE_MAX && *ret_size != SIZE_MAX;
}

static int read_lines(const struct reading *reading, const struct simgrid_base *base) {
    struct simgrid_network *network = reading->network;
    const struct predict_group *group = reading->group;
    const struct predict_part *last = &group->parts[group->part_count - 1];
    double share = reading->seconds / (base->round_trip ? 2 : 1);
    size_t one = reading->one_term, size = reading->size_term;
    /* Not given: the latency of the smallest messages, the bandwidth of the largest. */
    network->latency = isnan(base->latency) ? group->parts[0].estimates[one] * share : base->latency;
    network->bandwidth = isnan(base->bandwidth) ? 1 / (last->estimates[size] * share) : base->bandwidth;
    if (!(network->latency > 0) || !(network->bandwidth > 0) || !isfinite(network->bandwidth))
        return failure_input(reading->failure, reading->view->name, 0, 0,
                             "the model gives a latency of %g s and a bandwidth of %g byte/s; expected both "
                             "to be more than 0 (--latency, --bandwidth)",
                             network->latency, network->bandwidth);
    int r = 0;
    for (size_t i = 0; r == 0 && i < group->part_count; i++) {
        const double *estimates = group->parts[i].estimates;
        r = add_factors(reading, group->parts[i].from, estimates[one] * share / network->latency,
                        1 / (estimates[size] * share * network->bandwidth));
    }
    return r;
}

/* ---- All of it */

bool simgrid_network_is(const struct predict_model *view) {
    size_t one, size;
    if (strcmp(view->kind, "smpi") == 0)
        return find_terms(view, &one, &size);
    bool lines = strcmp(view->kind, "piecewise") == 0 || strcmp(view->kind, "linear") == 0;
    return lines && find_terms(view, &one, &size);
}

static int choose_group(struct reading *reading, const char *name) {
    const struct predict_model *view = reading->view;
    if (!name && view->group_count == 1) {
        reading->group = &view->groups[0];
        return 0;
    }
    if (!name)
        return failure_input(reading->failure, view->name, 0, 0,
                             "the model has %zu groups, the first '%.128s'; say which with --group",
                             view->group_count, view->groups[0].name);
    cleanup_free const char **names = xcalloc(view->group_count, sizeof *names);
    for (size_t g = 0; g < view->group_count; g++) {
        names[g] = view->groups[g].name;
        if (strcmp(name, names[g]) == 0)
            reading->group = &view->groups[g];
    }
    if (reading->group)
        return 0;
    const char *nearest = text_nearest(name, names, view->group_count);
    return failure_input(reading->failure, view->name, 0, 0, "the model has no group '%.128s'; %s '%.128s'%s",
                         name, nearest ? "did you mean" : "its first is", nearest ? nearest : names[0],
                         nearest ? "?" : "");
}

int simgrid_network_read(const struct model *model, const char *group, const struct simgrid_base *base,
                         struct simgrid_network *ret, struct failure *failure) {
    const struct predict_model *view = model_view(model);
    *ret = (struct simgrid_network){.latency = NAN,
                                    .bandwidth = NAN,
                                    .iprobe = NAN,
                                    .test = NAN,
                                    .wtime = NAN,
                                    .async_threshold = NAN,
                                    .detached_threshold = NAN};
    struct reading reading = {.view = view, .network = ret, .failure = failure};
    if (!simgrid_network_is(view))
        return failure_input(failure, view->name, 0, 0,
                             "a model of kind '%.64s' tells of no network; expected smpi, linear or "
                             "piecewise with the terms 1 and the size of a message",
                             view->kind);
    find_terms(view, &reading.one_term, &reading.size_term);
    int r = model_time(model, &reading.seconds, failure);
    r = r < 0 ? r : choose_group(&reading, group);
    if (r < 0)
        return r;
    return strcmp(view->kind, "smpi") == 0 ? read_smpi(&reading, base) : read_lines(&reading, base);
}
