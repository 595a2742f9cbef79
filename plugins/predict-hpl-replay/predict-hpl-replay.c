/* The plugin predict-hpl-replay: see README.md for what it computes. */
#include "plugins/predict-hpl-replay/counts.h"
#include "plugins/predict-hpl-replay/models.h"
#include "plugins/predict-hpl-replay/replay.h"

#include <assay/predict.h>

static const char *const network_kinds[] = {"smpi", NULL};
static const struct predict_role roles[] = {
    [ROLE_DGEMM] = {.name = "dgemm",
                    .is_time = true,
                    .help = "the time of dgemm over m, n, k, such as M-2",
                    .experiment = "dgemm"},
    [ROLE_KERNELS] =
        {.name = "kernel",
         .is_time = true,
         .many = true,
         .optional = true,
         .help = "the time of another kernel, by its name: dtrsm=FILE, dgemv=FILE, dlaswp=FILE, ..."},
    [ROLE_NETWORK] = {.name = "network",
                      .kinds = network_kinds,
                      .optional = true,
                      .help = "messages between nodes, from 'assay fit smpi'; needed unless P = Q = 1",
                      .experiment = "mpi-point-to-point"},
    [ROLE_LOOPBACK] =
        {.name = "loopback",
         .kinds = network_kinds,
         .optional = true,
         .help = "messages within a node; without it as between nodes, but not sharing their cards"},
    [ROLE_PIVOTS] =
        {.name = "pivots",
         .optional = true,
         .is_file = true,
         .help = "lines 'N,column,row' or 'column,row': the row with which each is exchanged; without "
                 "it pivots are drawn"},
    {0},
};

enum {
    N,
    NB,
    P,
    Q,
    DEPTH,
    BCAST,
    SWAP,
    SWAP_THRESHOLD,
    RFACT,
    PFACT,
    NBMIN,
    NDIV,
    PMAP,
    L1,
    U,
    EQUILIBRATION,
    RANKS_PER_NODE,
    CPUS_PER_NODE,
    PROBING,
    IPROBE,
    CARD,
    NOISE,
    NODE_MEMORY,
    FOUND,
    PARAMETER_COUNT
};

static const char *const bcast_words[] = {"1ring", "1ringM", "2ring", "2ringM", "long", "longM", NULL};
static const char *const swap_words[] = {"binary-exchange", "long", "mix", NULL};
static const char *const fact_words[] = {"left", "Crout", "right", NULL};
static const char *const map_words[] = {"row", "column", NULL};
static const char *const form_words[] = {"transposed", "no-transposed", NULL};
static const char *const yes_words[] = {"no", "yes", NULL};
static const char *const found_words[] = {"at-once", "last", NULL};
static const char *const probing_words[] = {"physical", "smpi", NULL};

#define COUNT(NAME, MINIMUM, MAXIMUM, ...)                                                                   \
    { NAME, PLUGIN_NUMBER, "1", .minimum = MINIMUM, .maximum = MAXIMUM, .whole = true, __VA_ARGS__ }
static const struct plugin_parameter parameters[PARAMETER_COUNT + 1] = {
    [N] = COUNT("N", 1, 2e9, .required = true, .help = "order of the matrix"),
    [NB] = COUNT("NB", 1, 1e6, .required = true, .plausible_minimum = 4, .plausible_maximum = 4096,
                 .help = "block size"),
    [P] = COUNT("P", 1, 65536, .required = true, .help = "rows of the process grid"),
    [Q] = COUNT("Q", 1, 65536, .required = true, .help = "columns of the process grid"),
    [DEPTH] = COUNT("DEPTH", 0, 64, .fallback = "1", .help = "of the look-ahead"),
    [BCAST] = {"BCAST", PLUGIN_WORD, .words = bcast_words, .fallback = "1ringM",
               .help = "broadcast of panels"},
    [SWAP] = {"SWAP", PLUGIN_WORD, .words = swap_words, .fallback = "binary-exchange", .help = "of rows"},
    [SWAP_THRESHOLD] = COUNT("swap_threshold", 0, 2e9, .fallback = "64",
                             .help = "of SWAP=mix: local columns above which it is long"),
    [RFACT] = {"RFACT", PLUGIN_WORD, .words = fact_words, .fallback = "right",
               .help = "recursive factorisation of a panel"},
    [PFACT] = {"PFACT", PLUGIN_WORD, .words = fact_words, .fallback = "Crout",
               .help = "factorisation of the last NBMIN columns"},
    [NBMIN] = COUNT("NBMIN", 1, 1e6, .fallback = "4", .help = "columns at which the recursion ends"),
    [NDIV] = COUNT("NDIV", 2, 1e6, .fallback = "2", .help = "parts of a panel in the recursion"),
    [PMAP] = {"PMAP", PLUGIN_WORD, .words = map_words, .fallback = "row",
              .help = "order of ranks in the grid"},
    [L1] = {"L1", PLUGIN_WORD, .words = form_words, .fallback = "transposed",
            .help = "form of the panel's triangle"},
    [U] = {"U", PLUGIN_WORD, .words = form_words, .fallback = "transposed", .help = "form of the rows of U"},
    [EQUILIBRATION] = {"equilibration", PLUGIN_WORD, .words = yes_words, .fallback = "yes",
                       .help = "of the pieces in SWAP=long"},
    [RANKS_PER_NODE] = COUNT("ranks-per-node", 1, 65536, .fallback = "1",
                             .help = "processes of a node, which share its network card"),
    [CPUS_PER_NODE] =
        COUNT("cpus-per-node", 1, 65536,
              .help = "groups of a kernel's model that are one node; by default those whose first label "
                      "is equal"),
    [PROBING] =
        {"probing", PLUGIN_WORD, .words = probing_words, .fallback = "physical",
         .help = "what waiting for a panel costs: the calls of MPI_Iprobe, or what SMPI 3.32 makes of them"},
    [IPROBE] = {"iprobe", PLUGIN_NUMBER, "s", .minimum = 0, .maximum = 1,
                .help = "of a call of MPI_Iprobe; by default that of the network's model"},
    [CARD] = {"card", PLUGIN_NUMBER, "By/s", .minimum = 1, .maximum = 1e15, .plausible_minimum = 1e6,
              .plausible_maximum = 1e13,
              .help = "of a node's network card, each way; by default the bandwidth of the network's model"},
    [NOISE] = {"noise", PLUGIN_WORD, .words = yes_words, .fallback = "yes",
               .help = "each kernel call is drawn from its model, or takes the mean"},
    [FOUND] =
        {"found", PLUGIN_WORD, .words = found_words, .fallback = "at-once",
         .help =
             "in the tables calls and kernels: when a process finds the panel that it probes for, at once or "
             "when it has nothing else to do"},
    [NODE_MEMORY] = {"node-memory", PLUGIN_NUMBER, "By", .minimum = 1, .maximum = 1e18,
                     .help = "of a node: a warning says where the matrix does not fit"},
};

enum {
    TIME,
    GFLOPS,
    DGEMM,
    DTRSM,
    OTHER_KERNELS,
    FACT_MESSAGES,
    BCAST_MESSAGES,
    SWAP_MESSAGES,
    TRSV_MESSAGES,
    PANEL_WAIT,
    PROBES,
    AT_END,
    MESSAGES,
    MEMORY,
    COLUMN_COUNT
};

#define PART(NAME, HELP)                                                                                     \
    { NAME, .unit = "s", .help = HELP, .part_of = "time" }
static const struct column columns[COLUMN_COUNT + 1] = {
    [TIME] = {"time", .unit = "s", .help = "until the last process is done", .goal = COLUMN_LESS},
    [GFLOPS] = {"gflops", .unit = "Gflop/s", .help = "(2/3 N^3 + 3/2 N^2) / time, as HPL counts",
                .goal = COLUMN_MORE},
    [DGEMM] = PART("dgemm", "in dgemm; this and what follows: mean over processes"),
    [DTRSM] = PART("dtrsm", "in dtrsm"),
    [OTHER_KERNELS] = PART("other_kernels", "in other kernels"),
    [FACT_MESSAGES] = PART("pivot_messages", "in the exchanges of pivots, waiting included"),
    [BCAST_MESSAGES] = PART("panel_messages", "in the messages of panels, waiting included"),
    [SWAP_MESSAGES] = PART("swap_messages", "in the messages of row swaps, waiting included"),
    [TRSV_MESSAGES] = PART("solve_messages", "in the messages of the back substitution, waiting included"),
    [PANEL_WAIT] = PART("panel_wait", "waiting for a panel with nothing else to do"),
    [PROBES] = PART("probes", "in MPI_Iprobe while there is something to do"),
    [AT_END] =
        PART("other_wait", "waiting for the factorisation of a panel to begin, and for the last process"),
    [MESSAGES] = {"messages", .unit = "1", .help = "that are sent", .detail = true, .exact = true},
    [MEMORY] = {"memory", .unit = "By", .help = "of the matrix in one process: 8 N (N + 1) / (P Q)",
                .detail = true, .exact = true},
    {.name = NULL},
};

enum { TABLE_PANELS, TABLE_RANKS, TABLE_CALLS, TABLE_KERNELS };
static const struct column panel_columns[] = {
    {"panel", .unit = "1", .help = "first column of the panel"},
    {"panel_done", .unit = "s", .help = "when it was factored"},
    {.name = NULL},
};
static const struct column rank_columns[] = {
    {"rank", .unit = "1", .help = "of a process"},
    {"row", .unit = "1", .help = "of the grid"},
    {"column", .unit = "1", .help = "of the grid"},
    {"computing", .unit = "s", .help = "in kernels"},
    {"rank_idle", .unit = "s", .help = "the rest of the time: in messages and waiting"},
    {.name = NULL},
};
static const struct column call_columns[] = {
    {"calling_rank", .unit = "1", .help = "the process that calls"},
    {"phase", .help = "fact, bcast, swap, update or trsv"},
    {"type", .help = "of MPI: Send, Ssend, Issend, Recv, Irecv or Wait"},
    {"peer", .unit = "1", .help = "rank; -1 of Wait"},
    {"bytes", .unit = "By", .help = "of the message"},
    {"calls", .unit = "1", .help = "equal ones"},
    {.name = NULL},
};
static const struct column kernel_columns[] = {
    {"calling_rank", .unit = "1", .help = "the process that calls"},
    {"phase", .help = "fact, bcast, swap, update or trsv"},
    {"kernel", .help = "such as dgemm"},
    {"calls", .unit = "1", .help = "with all sizes above 0; so are the sums"},
    {"empty_calls", .unit = "1", .help = "with a size of 0"},
    {"sum_m", .unit = "1", .help = "over the calls"},
    {"sum_n", .unit = "1", .help = "over the calls"},
    {"sum_k", .unit = "1", .help = "over the calls"},
    {"sum_mn", .unit = "1", .help = "over the calls"},
    {"sum_mk", .unit = "1", .help = "over the calls"},
    {"sum_nk", .unit = "1", .help = "over the calls"},
    {"sum_mnk", .unit = "1", .help = "over the calls"},
    {.name = NULL},
};
static const struct predict_table tables[] = {
    [TABLE_PANELS] = {"panels", "when each panel was factored", PREDICT_CURVE, panel_columns},
    [TABLE_RANKS] = {"ranks", "what each process spent", PREDICT_ROWS, rank_columns},
    [TABLE_CALLS] = {"calls", "how often each process makes which call of MPI", PREDICT_ROWS, call_columns},
    [TABLE_KERNELS] = {"kernels", "what each process asks of each kernel", PREDICT_ROWS, kernel_columns},
    {.name = NULL},
};

struct observation {
    const struct hpl *hpl;
    struct predict_output *output;
    bool wants_panels;
};

static int panel_done(void *context, int panel, double time) {
    struct observation *observation = context;
    struct predict_output *output = observation->output;
    double start = hpl_panel_start(observation->hpl, panel), left = 1 - start / observation->hpl->n;
    if (observation->wants_panels)
        output->table_row(output->context, TABLE_PANELS, (double[]){start, time}, NULL);
    return panel % 16 == 0 ? output->progress(output->context, 1 - left * left * left) : 0;
}

static double flops(double n) {
    return (2.0 / 3.0 * n + 1.5) * n * n;
}

static struct hpl read_scenario(const struct plugin_value *v) {
    return (struct hpl){.n = (int)v[N].number,
                        .nb = (int)v[NB].number,
                        .p = (int)v[P].number,
                        .q = (int)v[Q].number,
                        .depth = (int)v[DEPTH].number,
                        .bcast = (enum hpl_broadcast)v[BCAST].number,
                        .swap = (enum hpl_swap)v[SWAP].number,
                        .swap_threshold = (int)v[SWAP_THRESHOLD].number,
                        .rfact = (enum hpl_variant)v[RFACT].number,
                        .pfact = (enum hpl_variant)v[PFACT].number,
                        .nbmin = (int)v[NBMIN].number,
                        .ndiv = (int)v[NDIV].number,
                        .column_major = v[PMAP].number == 1,
                        .l1_plain = v[L1].number == 1,
                        .u_plain = v[U].number == 1,
                        .equilibrate = v[EQUILIBRATION].number == 1};
}

static void warn(const struct hpl *hpl, const struct plugin_value *v, struct predict_output *output) {
    double ranks = (double)hpl->p * hpl->q, blocks = hpl_panel_count(hpl),
           node = fmin(ranks, v[RANKS_PER_NODE].number);
    double memory = 8 * (double)hpl->n * ((double)hpl->n + 1) / ranks * node;
    if (hpl->p > blocks || hpl->q > blocks)
        predict_remark(
            output, true,
            "some processes have no rows or columns: the matrix has %g x %g blocks, the grid %d x %d "
            "processes",
            blocks, blocks, hpl->p, hpl->q);
    if (memory > v[NODE_MEMORY].number)
        predict_remark(
            output, true,
            "the matrix needs %.3g GB on a node of %g processes, and node-memory is %.3g GB: HPL would not "
            "run",
            memory / 1e9, node, v[NODE_MEMORY].number / 1e9);
    if (ranks > 1 && !v[RANKS_PER_NODE].is_set)
        predict_remark(output, false,
                       "each of the %g processes has a node and a network card of its own; otherwise set "
                       "ranks-per-node=COUNT",
                       ranks);
}

static void fill(const struct hpl *hpl, const struct replay_times *times, double *ret) {
    double ranks = (double)hpl->p * hpl->q, others = 0, spent = 0;
    for (int i = HPL_DTRSM + 1; i < HPL_KERNELS; i++)
        others += times->kernels[i];
    ret[TIME] = times->time;
    ret[GFLOPS] = flops(hpl->n) / times->time / 1e9;
    ret[DGEMM] = times->kernels[HPL_DGEMM] / ranks;
    ret[DTRSM] = times->kernels[HPL_DTRSM] / ranks;
    ret[OTHER_KERNELS] = others / ranks;
    ret[FACT_MESSAGES] = times->messages[HPL_FACT] / ranks;
    ret[BCAST_MESSAGES] = times->messages[HPL_BCAST] / ranks;
    ret[SWAP_MESSAGES] = times->messages[HPL_SWAP] / ranks;
    ret[TRSV_MESSAGES] = times->messages[HPL_TRSV] / ranks;
    ret[PANEL_WAIT] = times->panel_wait / ranks;
    ret[PROBES] = times->probing / ranks;
    for (int i = DGEMM; i <= PROBES; i++)
        spent += ret[i];
    ret[AT_END] = times->time - spent;
    ret[MESSAGES] = (double)times->message_count;
    ret[MEMORY] = 8 * (double)hpl->n * ((double)hpl->n + 1) / ranks;
}

static void report_ranks(const struct hpl *hpl, const double *computing, double time,
                         struct predict_output *output) {
    for (int i = 0; i < hpl->p * hpl->q; i++) {
        double values[] = {i, hpl_row_of(hpl, i), hpl_column_of(hpl, i), computing[i], time - computing[i]};
        output->table_row(output->context, TABLE_RANKS, values, NULL);
    }
}

static int report_counts(const struct hpl *hpl, bool is_late, struct predict_output *output) {
    struct counts counts;
    int r = counts_make(hpl, is_late, NULL, NULL, &counts);
    for (size_t i = 0; r == 0 && i < counts.message_count; i++) {
        const struct counts_message *m = &counts.messages[i];
        double values[] = {m->rank, 0, 0, m->peer, (double)m->bytes, (double)m->count};
        const char *texts[] = {NULL, hpl_phase_names[m->phase], hpl_call_names[m->type], NULL, NULL, NULL};
        r = output->table_row(output->context, TABLE_CALLS, values, texts);
    }
    for (int i = 0; r == 0 && i < hpl->p * hpl->q * HPL_PHASES * HPL_KERNELS; i++) {
        int kernel = i % HPL_KERNELS, phase = i / HPL_KERNELS % HPL_PHASES,
            rank = i / HPL_KERNELS / HPL_PHASES;
        const int64_t *sums = counts.kernels[rank][phase][kernel];
        double values[3 + COUNTS_SUMS] = {rank};
        const char *texts[3 + COUNTS_SUMS] = {NULL, hpl_phase_names[phase], hpl_kernel_names[kernel]};
        for (int s = 0; s < COUNTS_SUMS; s++)
            values[3 + s] = (double)sums[s];
        if (sums[COUNTS_CALLS] + sums[COUNTS_EMPTY] > 0)
            r = output->table_row(output->context, TABLE_KERNELS, values, texts);
    }
    counts_clear(&counts);
    return r;
}

static int run(void *state, const struct predict_inputs *inputs, const struct plugin_value *v,
               double *ret_values, struct predict_output *output, struct plugin_message *message) {
    struct hpl hpl = read_scenario(v);
    struct replay_times times;
    struct observation observation = {&hpl, output, output->wants(output->context, TABLE_PANELS)};
    struct replay_observer observer = {&observation, panel_done};
    struct models_request request = {.hpl = &hpl,
                                     .ranks_per_node = (int)v[RANKS_PER_NODE].number,
                                     .cpus_per_node =
                                         v[CPUS_PER_NODE].is_set ? (int)v[CPUS_PER_NODE].number : 0,
                                     .has_noise = v[NOISE].number == 1,
                                     .probe = v[IPROBE].number,
                                     .card = v[CARD].number,
                                     .is_smpi = v[PROBING].number == 1};
    struct machine *machine;
    if ((double)hpl.p * hpl.q > 1e6)
        return plugin_refuse(message, -EINVAL, "P x Q is %g; at most 1000000 processes are replayed",
                             (double)hpl.p * hpl.q);
    if (hpl.nbmin > hpl.nb)
        hpl.nbmin = hpl.nb;
    int r = machine_new(state, inputs, &request, output, &machine, message);
    if (r < 0)
        return r;
    warn(&hpl, v, output);
    hpl.pivots = machine->pivots;
    r = replay_run(&hpl, &machine->replay, &observer, &times, machine->computing);
    if (r == 0) {
        fill(&hpl, &times, ret_values);
        if (times.unusable_count > 0)
            predict_remark(
                output, true,
                "%llu of %llu kernel calls had a time below 0 s, or none, by their models, and took "
                "0 s; fit the models to calls as small as those of a panel (NBMIN=%d columns), too",
                (unsigned long long)times.unusable_count, (unsigned long long)times.kernel_count, hpl.nbmin);
        if (output->wants(output->context, TABLE_RANKS))
            report_ranks(&hpl, machine->computing, times.time, output);
        if (output->wants(output->context, TABLE_CALLS) || output->wants(output->context, TABLE_KERNELS))
            r = report_counts(&hpl, v[FOUND].number == 1, output);
    } else if (r == -EDEADLK) {
        r = plugin_refuse(message, -ENOTSUP,
                          "the processes wait for each other: please report these parameters");
    }
    machine_free(machine);
    return r;
}

ASSAY_PREDICT_PLUGIN("hpl-replay", ASSAY_VERSION,
                     "HPL's time by replaying every message and kernel call of HPL", .roles = roles,
                     .parameters = parameters, .columns = columns, .open = models_open, .run = run,
                     .close = models_close, .tables = tables);
