#include "plugins/predict-hpl-replay/variability.h"

#include "engine/numerics/quantile.h"

const struct column loss_columns[] = {
    {"variability", .help = "that nodes differ (spatial), that calls scatter (temporal), both, or what "
                            "temporal adds to spatial"},
    {"loss", .unit = "%", .help = "of the speed without it; the mean over sets of nodes"},
    {"loss_low", .unit = "%", .help = "2.5 % of the sets lose less"},
    {"loss_high", .unit = "%", .help = "2.5 % of the sets lose more"},
    {.name = NULL},
};
const struct column node_set_columns[] = {
    {"left_out", .unit = "1", .help = "nodes, the slowest ones by dgemm"},
    {"set_P", .unit = "1", .help = "rows of the fastest grid of what is left"},
    {"set_Q", .unit = "1", .help = "its columns"},
    {"set_gflops", .unit = "Gflop/s", .help = "without these nodes"},
    {"gain", .unit = "%", .help = "of the rate, beside the first row"},
    {"left_out_last", .help = "the node that the row before has and this one has not"},
    {.name = NULL},
};

/* The size of a typical update of HPL: half of the matrix is left. */
static double typical(int n, int of) {
    return fmax(1, n / 2.0 / of);
}

static void ignore_remark(__attribute__((unused)) void *context, __attribute__((unused)) bool warning,
                          __attribute__((unused)) const char *sentence) {
}

enum kind { KIND_EVEN, KIND_SPATIAL, KIND_TEMPORAL, KIND_BOTH, KINDS, LOSS_ADDED = KINDS, LOSSES };

enum { CALL_BITS = 40 };

/* The time of HPL on the model's NODES, or on nodes that all are as their mean; without noise, or with noise
 * number DRAW. */
static int replay_on(const struct variability *of, const struct hpl *hpl, const int *nodes, enum kind kind,
                     int draw, double *ret) {
    struct models_request request = of->request;
    struct predict_output quiet = *of->output;
    struct machine *machine;
    struct replay_times times;
    struct hpl scenario = *hpl;
    quiet.remark = ignore_remark;
    request.hpl = hpl;
    request.has_noise = kind == KIND_TEMPORAL || kind == KIND_BOTH;
    int r = machine_new(of->state, of->inputs, &request, &quiet, &machine, of->message);
    if (r < 0)
        return r;
    machine_choose_nodes(machine, &request, nodes);
    if (kind == KIND_EVEN || kind == KIND_TEMPORAL)
        machine_make_even(machine, hpl, typical(hpl->n, hpl->p), typical(hpl->n, hpl->q), hpl->nb);
    scenario.pivots = machine->pivots;
    machine->replay.first_call = (uint64_t)draw << CALL_BITS;
    r = replay_run(&scenario, &machine->replay, NULL, &times);
    *ret = times.time;
    machine_free(machine);
    return r;
}

static int node_count(const struct variability *of) {
    const struct models_request *request = &of->request;
    return (request->hpl->p * request->hpl->q + request->ranks_per_node - 1) / request->ranks_per_node;
}

/* Draws set SET of COUNT of the POOL nodes of the model, in the first places of NODES; the first set is in
 * their order. */
static void draw_nodes(const struct variability *of, int set, int count, int pool, int *nodes) {
    for (int i = 0; i < pool; i++)
        nodes[i] = i;
    for (int i = 0; set > 0 && i < count; i++) {
        double uniform =
            of->inputs->uniform(of->inputs->context, "node sets", (uint64_t)set << 32 | (unsigned)i);
        int other = i + (int)(uniform * (pool - i)), kept = nodes[i];
        nodes[i] = nodes[other];
        nodes[other] = kept;
    }
}

int report_losses(const struct variability *of, int sets, size_t table) {
    static const char *const names[LOSSES] = {NULL, "spatial", "temporal", "both",
                                              "temporal where nodes differ"};
    int count = node_count(of), pool = models_nodes(of->state, &of->request), r = 0;
    pool = pool > count ? pool : count;
    int *nodes = calloc((size_t)pool, sizeof *nodes);
    double *losses = calloc(LOSSES * (size_t)sets, sizeof *losses);
    if (!nodes || !losses)
        r = -ENOMEM;
    for (int set = 0; r == 0 && set < sets; set++) {
        double times[KINDS];
        draw_nodes(of, set, count, pool, nodes);
        for (int kind = 0; r == 0 && kind < KINDS; kind++) {
            r = replay_on(of, of->request.hpl, nodes, kind, set, &times[kind]);
            r = r < 0 ? r : of->output->progress(of->output->context, (set + kind / (double)KINDS) / sets);
            losses[kind * sets + set] = 100 * (1 - times[KIND_EVEN] / times[kind]);
        }
        losses[LOSS_ADDED * sets + set] = 100 * (1 - times[KIND_SPATIAL] / times[KIND_BOTH]);
    }
    for (int kind = KIND_SPATIAL; r == 0 && kind < LOSSES; kind++) {
        double *of_kind = losses + kind * sets, mean = 0;
        quantile_sort(of_kind, (size_t)sets);
        for (int set = 0; set < sets; set++)
            mean += of_kind[set] / sets;
        double values[] = {0, mean, quantile(of_kind, (size_t)sets, 0.025),
                           quantile(of_kind, (size_t)sets, 0.975)};
        r = of->output->table_row(of->output->context, table, values,
                                  (const char *[]){names[kind], NULL, NULL, NULL});
    }
    free(nodes);
    free(losses);
    return r;
}

/* ---- Nodes that are left out */

struct slow_node {
    double time;
    int node;
};

static int compare_nodes(const void *a, const void *b) {
    const struct slow_node *x = a, *y = b;
    return x->time != y->time ? (x->time > y->time ? -1 : 1) : x->node - y->node;
}

/* Replays HPL on each grid P x Q of RANKS processes with P <= Q <= RATIO P whose nodes have their blocks, or
 * on the one that is nearest to a square; HPL becomes the fastest, and RET_TIME its time. */
static int choose_grid(const struct variability *of, struct hpl *hpl, int ranks, double ratio,
                       const int *nodes, double *ret_time) {
    struct hpl trial = *hpl;
    int first = (int)sqrt(ranks), r = 0;
    *ret_time = INFINITY;
    /* Below `first`, then above: blocks of many rows may fit into no grid with P <= Q. */
    for (int i = 0; r == 0 && i < ranks; i++) {
        double time;
        trial.p = i < first ? first - i : i + 1;
        trial.q = ranks / trial.p;
        if (isfinite(*ret_time) && (i >= first || trial.q > ratio * trial.p))
            break;
        if (trial.p * trial.q != ranks || !models_fit_grid(&of->request, &trial))
            continue;
        r = replay_on(of, &trial, nodes, of->request.has_noise ? KIND_BOTH : KIND_SPATIAL, 0, &time);
        if (r == 0 && time < *ret_time) {
            *ret_time = time;
            *hpl = trial;
        }
    }
    return r;
}

int report_node_sets(const struct variability *of, int most, double ratio, size_t table) {
    const struct models_request *request = &of->request;
    const struct hpl *hpl = request->hpl;
    struct predict_output *output = of->output, quiet = *output;
    struct machine *machine;
    int count = node_count(of), each = request->ranks_per_node;
    double first_time = 0;
    quiet.remark = ignore_remark;
    int r = machine_new(of->state, of->inputs, request, &quiet, &machine, of->message);
    if (r < 0)
        return r;
    struct slow_node *slow = calloc((size_t)count, sizeof *slow);
    int *nodes = calloc((size_t)count, sizeof *nodes);
    if (!slow || !nodes)
        r = -ENOMEM;
    for (int i = 0; r == 0 && i < count; i++)
        slow[i] = (struct slow_node){
            machine_node_time(machine, hpl, i, typical(hpl->n, hpl->p), typical(hpl->n, hpl->q), hpl->nb), i};
    if (r == 0)
        qsort(slow, (size_t)count, sizeof *slow, compare_nodes);
    for (int left_out = 0; r == 0 && left_out <= most && left_out < count; left_out++) {
        struct hpl scenario = *hpl;
        char name[128] = "";
        int kept = 0;
        double time;
        for (int i = 0; i < count; i++) {
            bool is_kept = true;
            for (int k = 0; k < left_out; k++)
                is_kept = is_kept && slow[k].node != i;
            if (is_kept)
                nodes[kept++] = i;
        }
        r = choose_grid(of, &scenario, left_out > 0 ? kept * each : hpl->p * hpl->q, ratio, nodes, &time);
        if (r < 0)
            break;
        first_time = left_out == 0 ? time : first_time;
        if (left_out > 0)
            machine_name_node(machine, slow[left_out - 1].node, name, sizeof name);
        double n = hpl->n, rate = (2.0 / 3.0 * n + 1.5) * n * n / time / 1e9;
        double values[] = {left_out, scenario.p, scenario.q, rate, 100 * (first_time / time - 1), 0};
        r = output->table_row(output->context, table, values,
                              (const char *[]){NULL, NULL, NULL, NULL, NULL, name});
        r = r < 0 ? r : output->progress(output->context, (left_out + 1.0) / (most + 1));
    }
    free(slow);
    free(nodes);
    machine_free(machine);
    return r;
}
