#include "plugins/predict-hpl-replay/studies.h"

const struct column sensitivity_columns[] = {
    {"cost", .help = "the network, calls of MPI, a kernel, or all kernels of a node"},
    {"sensitivity", .unit = "%",
     .help = "of the time, where there is 1 % more of it: latency, bandwidth, cost of a call, speed of a "
             "kernel or node"},
    {"cost_time", .unit = "s", .help = "that the cost has on the critical path"},
    {.name = NULL},
};
const struct column tolerance_columns[] = {
    {"slowdown", .unit = "%", .help = "of the whole run"},
    {"tolerated_factor", .unit = "1", .help = "by which the latency between nodes may grow for that"},
    {"tolerated_latency", .unit = "s", .help = "that of the smallest messages, then"},
    {.name = NULL},
};

int report_sensitivities(const struct machine *machine, const struct trace *trace, double time, size_t table,
                         struct predict_output *output) {
    static const struct {
        const char *name;
        double sign; /* of the time, when there is more of it */
    } costs[] = {[SENSITIVITY_LATENCY] = {"latency", 1},
                 [SENSITIVITY_BANDWIDTH] = {"bandwidth", -1},
                 [SENSITIVITY_CARD] = {"cards", -1},
                 [SENSITIVITY_LOCAL_LATENCY] = {"latency within nodes", 1},
                 [SENSITIVITY_LOCAL_BANDWIDTH] = {"bandwidth within nodes", -1},
                 [SENSITIVITY_CALLS] = {"calls of MPI", 1},
                 [SENSITIVITY_PROBES] = {"probes", 1}};
    const double *vector = sensitivities_last(trace->sensitivities, trace->ranks);
    int r = 0;
    if (sensitivities_are_means(trace->sensitivities, trace->ranks))
        predict_remark(
            output, false,
            "the schedule is chaotic: a tiny delay changes which piece of an update a panel waits for, so "
            "the sensitivities are those of the mean over small changes, and a single replay with 1 %% more "
            "of a cost differs by chance");
    if (trace->sensitivities->nodes == 0)
        predict_remark(
            output, false,
            "the table sensitivities has no rows of nodes: %d nodes and %d processes; it has them for at "
            "most %d nodes, and nodes x processes up to %d",
            machine->replay.nodes, trace->ranks, SENSITIVITY_NODES_MAX, SENSITIVITY_VALUES_MAX);
    for (int i = SENSITIVITY_LATENCY; r == 0 && i < trace->sensitivities->width; i++) {
        char node[128];
        const char *name = i < SENSITIVITY_KERNELS ? costs[i].name
                           : i < SENSITIVITY_NODES ? hpl_kernel_names[i - SENSITIVITY_KERNELS]
                                                   : node;
        double sign = i < SENSITIVITY_KERNELS ? costs[i].sign : -1;
        if (i >= SENSITIVITY_NODES)
            machine_name_node(machine, i - SENSITIVITY_NODES, node, sizeof node);
        if (vector[i] != 0 || i >= SENSITIVITY_NODES)
            r = output->table_row(output->context, table, (double[]){0, sign * vector[i] / time, vector[i]},
                                  (const char *[]){name, NULL, NULL});
    }
    return r;
}

/* The time of HPL with FACTOR times the latency between nodes. */
static int replay_with_latency(const struct hpl *hpl, const struct machine *like, double factor,
                               double *ret_time) {
    struct network_model network = like->network;
    struct replay_machine machine = like->replay;
    struct replay_times times;
    machine.network = &network;
    for (int i = 0; i < network.counts[NETWORK_REMOTE]; i++)
        network.segments[NETWORK_REMOTE][i].latency *= factor;
    int r = replay_run(hpl, &machine, NULL, &times);
    *ret_time = times.time;
    return r;
}

int report_tolerance(const struct hpl *hpl, const struct machine *machine, const struct trace *trace,
                     double time, size_t table, struct predict_output *output) {
    static const double slowdowns[] = {1, 2, 5};
    enum { STEPS_MAX = 5 };
    static const double close = 0.01; /* of the slowdown */
    const struct network_segment *first = &machine->network.segments[NETWORK_REMOTE][0];
    double slope = sensitivities_last(trace->sensitivities, trace->ranks)[SENSITIVITY_LATENCY];
    int r = 0;
    if (slope <= 0)
        predict_remark(output, false,
                       "the table tolerance is empty: the run does not wait for the latency between nodes");
    if (slope > 0 && sensitivities_are_means(trace->sensitivities, trace->ranks))
        predict_remark(
            output, false,
            "the schedule is chaotic: the latencies of the table tolerance differ by chance from one "
            "seed to another; compare several seeds");
    /* Secants through the replay with the latency as it is, which even out a chaotic schedule. */
    for (size_t i = 0; r == 0 && slope > 0 && i < sizeof slowdowns / sizeof *slowdowns; i++) {
        double more = time * slowdowns[i] / 100, now = time, factor = 1;
        for (int step = 0; r == 0 && step < STEPS_MAX && fabs(now - time - more) > close * more; step++) {
            factor = 1 + more / slope;
            r = replay_with_latency(hpl, machine, factor, &now);
            slope = now > time ? (now - time) / (factor - 1) : slope;
        }
        if (r == 0)
            r = output->table_row(output->context, table,
                                  (double[]){slowdowns[i], factor, factor * first->latency}, NULL);
    }
    return r;
}
