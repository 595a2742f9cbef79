/* The plugin predict-hpl-replay: see README.md for what it computes. */
#include "plugins/predict-hpl-replay/counts.h"
#include "plugins/predict-hpl-replay/models.h"
#include "plugins/predict-hpl-replay/replay.h"
#include "plugins/predict-hpl-replay/sampled.h"
#include "plugins/predict-hpl-replay/studies.h"
#include "plugins/predict-hpl-replay/trace.h"
#include "plugins/predict-hpl-replay/variability.h"

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
         .help = "the time of another kernel, by its name: dtrsm=FILE, dgemv=FILE, dlaswp=FILE, ...; or of "
                 "all of them, by kernel; panel-dgemm=FILE and the like in the factorisation of panels alone",
         .experiment = "blas"},
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
    BUILD,
    REPLAY,
    REPLAYED_PANELS,
    RANKS_PER_NODE,
    NODE_ROWS,
    SPLIT,
    THREADS,
    CPUS_PER_NODE,
    PROBING_RULE,
    WHOLE_MICROSECONDS,
    IPROBE,
    CARD,
    TOPOLOGY,
    LEAF_NODES,
    SPINES,
    SPINE_CABLES,
    CABLE,
    OVERSUBSCRIPTION,
    REMOVED_SPINES,
    REMOVED_CABLES,
    SHARING,
    NOISE,
    NODE_MEMORY,
    NODE_SETS,
    LEFT_OUT,
    GRID_RATIO,
    FOUND,
    WINDOW_PANEL,
    WINDOW_PANELS,
    WINDOW_RANK,
    WINDOW_RANKS,
    PARAMETER_COUNT
};

static const char *const bcast_words[] = {"1ring", "1ringM", "2ring", "2ringM", "long", "longM", NULL};
static const char *const swap_words[] = {"binary-exchange", "spread-roll", "mix", NULL};
static const char *const fact_words[] = {"left", "crout", "right", NULL};
static const char *const map_words[] = {"row", "column", NULL};
static const char *const form_words[] = {"transposed", "not-transposed", NULL};
static const char *const yes_words[] = {"no", "yes", NULL};
static const char *const build_words[] = {"default", "copy-l", "no-mpi-datatype", NULL};
static const char *const replay_words[] = {"exact", "sampled", NULL};
static const char *const found_words[] = {"at-once", "last", NULL};
enum { ONE_SWITCH, FAT_TREE, DRAGONFLY, TORUS };
static const char *const topology_words[] = {"one-switch", "fat-tree", "dragonfly", "torus", NULL};
static const char *const sharing_words[] = {"least-share", "max-min", NULL};
static const char *const probing_words[] = {"deferred", "immediate", "smpi", NULL};

#define COUNT(NAME, MINIMUM, MAXIMUM, ...)                                                                   \
    { NAME, PLUGIN_NUMBER, "1", .minimum = MINIMUM, .maximum = MAXIMUM, .integer = true, __VA_ARGS__ }
#define WORD(NAME, CHOICES, ...)                                                                             \
    { NAME, PLUGIN_WORD, .choices = CHOICES, __VA_ARGS__ }
static const struct plugin_parameter parameters[PARAMETER_COUNT + 1] = {
    [N] = PREDICT_COUNT("N", 1e8, .required = true, .help = "order of the matrix"),
    [NB] = PREDICT_COUNT("NB", 1e6, .required = true, .plausible_minimum = 4, .plausible_maximum = 4096,
                         .help = "block size"),
    [P] = PREDICT_COUNT("P", 65536, .required = true, .help = "rows of the process grid"),
    [Q] = PREDICT_COUNT("Q", 65536, .required = true, .help = "columns of the process grid"),
    [DEPTH] = COUNT("DEPTH", 0, 64, .default_text = "1",
                    .help = "depth of the look-ahead: panels factored ahead of the update"),
    [BCAST] = WORD("BCAST", bcast_words, .default_text = "1ringM", .help = "broadcast of panels"),
    [SWAP] = WORD("SWAP", swap_words, .default_text = "binary-exchange",
                  .help = "exchange of pivot rows within a process column"),
    [SWAP_THRESHOLD] =
        COUNT("swap_threshold", 0, 2e9, .default_text = "64",
              .help = "with SWAP=mix: local columns above which rows are swapped by spread-roll"),
    [RFACT] =
        WORD("RFACT", fact_words, .default_text = "right", .help = "recursive factorisation of a panel"),
    [PFACT] =
        WORD("PFACT", fact_words, .default_text = "crout", .help = "factorisation of the last NBMIN columns"),
    [NBMIN] = PREDICT_COUNT("NBMIN", 1e6, .default_text = "4", .help = "columns at which the recursion ends"),
    [NDIV] = COUNT("NDIV", 2, 1e6, .default_text = "2", .help = "parts of a panel in the recursion"),
    [PMAP] = WORD("PMAP", map_words, .default_text = "row", .help = "order of ranks in the grid"),
    [L1] = WORD("L1", form_words, .default_text = "transposed", .help = "form of the panel's triangle"),
    [U] = WORD("U", form_words, .default_text = "transposed", .help = "form of the rows of U"),
    [EQUILIBRATION] = WORD("equilibration", yes_words, .default_text = "yes",
                           .help = "with SWAP=spread-roll: pieces are made equally long before they roll"),
    [BUILD] =
        WORD("build", build_words, .default_text = "default",
             .help = "how HPL was built: -DHPL_COPY_L and -DHPL_NO_MPI_DATATYPE copy each panel before it "
                     "is sent"),
    [REPLAY] = WORD(
        "replay", replay_words, .default_text = "exact",
        .help =
            "exact: every panel is replayed; sampled: some panels, from which the time of all is estimated"),
    [REPLAYED_PANELS] =
        PREDICT_COUNT("replayed-panels", 1e6, .plausible_minimum = 40, .plausible_maximum = 1e6,
                      .help = "with replay=sampled: about how many panels are replayed; by default as many "
                              "as take less than 1 s"),
    [RANKS_PER_NODE] = PREDICT_COUNT("ranks-per-node", 65536, .default_text = "1",
                                     .help = "processes on a node; they share its network card"),
    [NODE_ROWS] = PREDICT_COUNT(
        "node-rows", 65536,
        .help = "a node has a block of so many rows of the grid, as in rocHPL; by default ranks "
                "fill nodes in order"),
    [SPLIT] = {"split", PLUGIN_NUMBER, "1", .minimum = 0, .maximum = 1,
               .help = "accelerators update, as in rocHPL: this share of a process's columns while the panel "
                       "is factored "
                       "and broadcast, the rest while rows are swapped; by default nothing overlaps"},
    [THREADS] = PREDICT_COUNT(
        "threads", 65536, .default_text = "1",
        .help = "threads of a process, one a core: dgemm and dtrsm take the models' time of one core divided "
                "by them, other kernels the whole time"),
    [CPUS_PER_NODE] = PREDICT_COUNT(
        "cpus-per-node", 65536,
        .help = "groups of a kernel's model that are one node; by default those whose first label "
                "is equal"),
    [PROBING_RULE] =
        WORD("probing", probing_words, .default_text = "deferred",
             .help = "when MPI_Iprobe finds a panel: in the call after the one during which it had come, as "
                     "Open MPI; at "
                     "once; or as SMPI 3.32, whose calls cost more the longer they find nothing"),
    [WHOLE_MICROSECONDS] =
        WORD("whole-microseconds", yes_words,
             .help = "the time of each kernel call is cut to whole microseconds, as in the published "
                     "emulations of dahu; by default yes with probing=smpi, else no"),
    [IPROBE] = {"iprobe", PLUGIN_NUMBER, "s", .minimum = 0, .maximum = 1,
                .help = "time of one call of MPI_Iprobe; by default from the network's model"},
    [CARD] = PREDICT_BANDWIDTH(
        "card",
        .help = "bandwidth of a node's network card, each way; by default that of the network's model"),
    [TOPOLOGY] =
        WORD("topology", topology_words,
             .help = "switches of the network: one that never limits, or a fat tree of two levels; by "
                     "default fat-tree with leaf-nodes, else one-switch; dragonfly and torus are refused"),
    [LEAF_NODES] = PREDICT_COUNT(
        "leaf-nodes", 65536, .help = "fat tree: nodes of a leaf switch; nodes fill leaf switches in order"),
    [SPINES] =
        PREDICT_COUNT("spines", 65536,
                      .help = "fat tree: number of spine switches; by default so many that a leaf switch "
                              "has as many cables as nodes"),
    [SPINE_CABLES] = PREDICT_COUNT("spine-cables", 65536, .default_text = "1",
                                   .help = "fat tree: cables from each leaf switch to each spine switch"),
    [CABLE] = PREDICT_BANDWIDTH(
        "cable", .help = "fat tree: bandwidth of a cable, each way; by default that of a card"),
    [OVERSUBSCRIPTION] = {"oversubscription", PLUGIN_NUMBER, "1", .minimum = 1e-3, .maximum = 1e6,
                          .plausible_minimum = 1, .plausible_maximum = 16,
                          .help =
                              "fat tree, instead of cable: bandwidth of the cards of a leaf switch over that "
                              "of its cables, before any are removed"},
    [REMOVED_SPINES] = COUNT("removed-spines", 0, 65536, .default_text = "0",
                             .help = "fat tree: spine switches that are off"),
    [REMOVED_CABLES] =
        COUNT("removed-cables", 0, 2e9, .default_text = "0",
              .help = "fat tree: cables of the first leaf switch that are off: the first cable to "
                      "each spine switch, then the second, ..."),
    [SHARING] =
        WORD("sharing", sharing_words, .default_text = "least-share",
             .help = "bandwidth of a large message: the least of its equal shares of what it crosses, or "
                     "its max-min fair share, which takes 6 to 20 times the CPU time"),
    [NOISE] = WORD("noise", yes_words, .default_text = "yes",
                   .help = "yes: each kernel call takes a time drawn from its model; no: the mean"),
    [FOUND] =
        WORD("found", found_words, .default_text = "at-once",
             .help = "tables calls and kernels: a process finds the panel that it probes for at once, or "
                     "last, when it has nothing else to do"),
    [WINDOW_PANEL] = COUNT("window-panel", 0, 2e9, .default_text = "0",
                           .help = "table timeline: begins when so many panels are factored"),
    [WINDOW_PANELS] = PREDICT_COUNT("window-panels", 2e9, .default_text = "4",
                                    .help = "table timeline: ends when so many more panels are factored"),
    [WINDOW_RANK] = COUNT("window-rank", 0, 1e6, .default_text = "0", .help = "table timeline: first rank"),
    [WINDOW_RANKS] =
        PREDICT_COUNT("window-ranks", 1e6, .default_text = "32", .help = "table timeline: number of ranks"),
    [NODE_SETS] =
        PREDICT_COUNT("node-sets", 10000, .default_text = "10",
                      .help = "table losses: number of sets of nodes; the first has the model's nodes in "
                              "their order, the others are drawn"),
    [LEFT_OUT] = COUNT("left-out", 0, 65536, .default_text = "8",
                       .help = "table node_sets: up to so many of the slowest nodes are left out"),
    [GRID_RATIO] = COUNT("grid-ratio", 1, 65536, .default_text = "2",
                         .help = "table node_sets: greatest Q / P of the grids that are tried"),
    [NODE_MEMORY] = {"node-memory", PLUGIN_NUMBER, "By", .minimum = 1, .maximum = 1e18,
                     .help = "memory of a node; a warning says where the matrix does not fit"},
};

enum {
    TIME,
    GFLOPS,
    SAMPLING_ERROR,
    DGEMM,
    DTRSM,
    OTHER_KERNELS,
    FACT_MESSAGES,
    BCAST_MESSAGES,
    SWAP_MESSAGES,
    TRSV_MESSAGES,
    WAIT_FOR_PANEL,
    PROBES,
    AT_END,
    MESSAGE_COUNT,
    MEMORY,
    COLUMN_COUNT
};

#define PART(NAME, HELP)                                                                                     \
    { NAME, .unit = "s", .help = HELP, .part_of = "time" }
static const struct column columns[COLUMN_COUNT + 1] = {
    [TIME] = {"time", .unit = "s", .help = "until the last process is done", .goal = COLUMN_LESS},
    [GFLOPS] = {"gflops", .unit = "Gflop/s", .help = "(2/3 N^3 + 3/2 N^2) / time, as HPL counts",
                .goal = COLUMN_MORE},
    [SAMPLING_ERROR] = {"sampling_error", .unit = "s", .exact = true,
                        .help =
                            "of time, with replay=sampled: an exact replay is within it in 95 % of cases"},
    [DGEMM] = PART("dgemm", "in dgemm; this and what follows: mean over processes"),
    [DTRSM] = PART("dtrsm", "in dtrsm"),
    [OTHER_KERNELS] = PART("other_kernels", "in other kernels"),
    [FACT_MESSAGES] = PART("pivot_messages", "in the exchanges of pivots, waiting included"),
    [BCAST_MESSAGES] = PART("panel_messages", "in the messages of panels, waiting included"),
    [SWAP_MESSAGES] = PART("swap_messages", "in the messages of row swaps, waiting included"),
    [TRSV_MESSAGES] = PART("solve_messages", "in the messages of the back substitution, waiting included"),
    [WAIT_FOR_PANEL] = PART("panel_wait", "waiting for a panel with nothing else to do"),
    [PROBES] = PART("probes", "in MPI_Iprobe while there is something to do"),
    [AT_END] =
        PART("other_wait", "waiting for the factorisation of a panel to begin, and for the last process"),
    [MESSAGE_COUNT] = {"messages", .unit = "1", .help = "that are sent", .detail = true, .exact = true},
    [MEMORY] = {"memory", .unit = "By", .help = "of the matrix in one process: 8 N (N + 1) / (P Q)",
                .detail = true, .exact = true},
    {.name = NULL},
};

enum {
    TABLE_PARTS,
    TABLE_PANELS,
    TABLE_RANKS,
    TABLE_TIMELINE,
    TABLE_CALLS,
    TABLE_KERNELS,
    TABLE_SENSITIVITIES,
    TABLE_TOLERANCE,
    TABLE_LOSSES,
    TABLE_NODE_SETS
};
static const struct column part_columns[] = {
    {"part",
     .help = "a kernel; pivot, panel, swap or solve messages with the waiting in them; panel_wait; probes"},
    {"part_mean", .unit = "s", .help = "mean over processes"},
    {"part_share", .unit = "%", .help = "of the time"},
    {"path_time", .unit = "s", .help = "on the critical path: messages are those under way, not waited for"},
    {"path_share", .unit = "%", .help = "of the time"},
    {.name = NULL},
};
static const struct column panel_columns[] = {
    {"panel", .unit = "1", .help = "first column of the panel"},
    {"panel_begun", .unit = "s", .help = "when its first process began to factor it"},
    {"panel_done", .unit = "s", .help = "when its last process had"},
    {.name = NULL},
};
static const struct column rank_columns[] = {
    {"rank", .unit = "1", .help = "of a process"},
    {"row", .unit = "1", .help = "of the grid"},
    {"column", .unit = "1", .help = "of the grid"},
    {"computing", .unit = "s", .help = "in kernels; the rest of the time follows"},
    {"rank_copies", .unit = "s",
     .help = "of computing: copies of rows and panels, by dlaswp, dlacpy and dlatcpy"},
    {"rank_pivots", .unit = "s", .help = "in the exchanges of pivots and waiting for them"},
    {"rank_panels", .unit = "s", .help = "in the messages of panels and waiting for them"},
    {"rank_swaps", .unit = "s", .help = "in the messages of row swaps and waiting for them"},
    {"rank_solve", .unit = "s", .help = "in the messages of the back substitution and waiting for them"},
    {"rank_panel_wait", .unit = "s", .help = "waiting for a panel with nothing else to do"},
    {"rank_probes", .unit = "s", .help = "in MPI_Iprobe while there is something to do"},
    {"rank_end", .unit = "s", .help = "waiting for the last process"},
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
    [TABLE_PARTS] = {"parts",
                     "share of each kernel and kind of message, of the mean and of the critical path",
                     PREDICT_ROWS, part_columns},
    [TABLE_PANELS] = {"panels", "when each panel was factored", PREDICT_CURVE, panel_columns},
    [TABLE_RANKS] = {"ranks", "what each process spent", PREDICT_ROWS, rank_columns},
    [TABLE_TIMELINE] = {"timeline", "what processes do when, in a window", PREDICT_INTERVALS, NULL},
    [TABLE_CALLS] = {"calls", "how often each process makes which call of MPI", PREDICT_ROWS, call_columns},
    [TABLE_KERNELS] = {"kernels", "what each process asks of each kernel", PREDICT_ROWS, kernel_columns},
    [TABLE_SENSITIVITIES] = {"sensitivities", "what 1 % more of each speed and latency is worth",
                             PREDICT_BARS, sensitivity_columns},
    [TABLE_TOLERANCE] = {"tolerance", "the latency that is tolerated for a slowdown; some more replays",
                         PREDICT_ROWS, tolerance_columns},
    [TABLE_LOSSES] = {"losses", "speed that is lost because nodes differ, and because calls scatter",
                      PREDICT_BARS, loss_columns},
    [TABLE_NODE_SETS] = {"node_sets", "what it gains to leave out the slowest nodes", PREDICT_ROWS,
                         node_set_columns},
    {.name = NULL},
};

struct observation {
    const struct hpl *hpl;
    struct predict_output *output;
    bool wants_panels;
    struct trace trace;
    struct sensitivities sensitivities;
    double window_from, window_to; /* panels that are factored */
};

static const char *part_name(int part) {
    static const char *const others[] = {"pivots", "panels",     "row swaps", "update",
                                         "solve",  "panel_wait", "probes"};
    return part < HPL_KERNELS ? hpl_kernel_names[part] : others[part - HPL_KERNELS];
}

static int add_panel(void *context, int panel, double from, double until) {
    const struct observation *observation = context;
    struct predict_output *output = observation->output;
    double start = hpl_panel_start(observation->hpl, panel);
    return observation->wants_panels
               ? output->table_row(output->context, TABLE_PANELS, (double[]){start, from, until}, NULL)
               : 0;
}

static int tell_progress(void *context, double share) {
    const struct observation *observation = context;
    return observation->output->progress(observation->output->context, share);
}

static int panel_done(void *context, int panel, double from, double until) {
    struct observation *observation = context;
    double left = 1 - (double)hpl_panel_start(observation->hpl, panel) / observation->hpl->n;
    int r = add_panel(context, panel, from, until);
    if (observation->trace.ranks > 0)
        trace_window(&observation->trace,
                     panel + 1 >= observation->window_from && panel + 1 < observation->window_to);
    return r < 0 ? r : tell_progress(context, 1 - left * left * left);
}

static int interval_done(void *context, int rank, const struct trace_interval *interval) {
    struct predict_output *output = context;
    char lane[32];
    snprintf(lane, sizeof lane, "rank %d", rank);
    return output->table_row(output->context, TABLE_TIMELINE,
                             (double[]){0, interval->from, interval->until, 0},
                             (const char *[]){lane, NULL, NULL, part_name(interval->part)});
}

/* Records what processes do, if the tables need it. */
static int begin_trace(struct observation *observation, const struct machine *machine,
                       const struct plugin_value *v) {
    const struct predict_output *output = observation->output;
    bool wants_timeline = output->wants(output->context, TABLE_TIMELINE),
         wants_sensitivities = output->wants(output->context, TABLE_SENSITIVITIES) ||
                               output->wants(output->context, TABLE_TOLERANCE);
    struct trace *trace = &observation->trace;
    int ranks = observation->hpl->p * observation->hpl->q, panels = hpl_panel_count(observation->hpl);
    if (!wants_timeline && !output->wants(output->context, TABLE_PARTS) &&
        !output->wants(output->context, TABLE_RANKS) && !wants_sensitivities)
        return 0;
    int r = trace_init(trace, ranks);
    if (r == 0 && wants_sensitivities) {
        r = sensitivities_init(&observation->sensitivities, &machine->replay, ranks);
        trace->sensitivities = &observation->sensitivities;
    }
    trace->first_rank = (int)fmin(v[WINDOW_RANK].number, ranks - 1);
    trace->end_rank = (int)fmin(trace->first_rank + v[WINDOW_RANKS].number, ranks);
    trace->interval = wants_timeline ? interval_done : NULL;
    trace->context = observation->output;
    observation->window_from = fmin(v[WINDOW_PANEL].number, panels - 1);
    observation->window_to = observation->window_from + v[WINDOW_PANELS].number;
    if (wants_timeline && (v[WINDOW_PANEL].number >= panels || v[WINDOW_RANK].number >= ranks))
        predict_remark(observation->output, true,
                       "the timeline is to begin with panel %.0f and rank %.0f, but there are %d panels and "
                       "%d ranks, from 0: it shows the last; set window-panel and window-rank",
                       v[WINDOW_PANEL].number, v[WINDOW_RANK].number, panels, ranks);
    trace_window(trace, r == 0 && observation->window_from == 0);
    return r;
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
                        .equilibrate = v[EQUILIBRATION].number == 1,
                        .copy_l = v[BUILD].number > 0,
                        .is_split = v[SPLIT].is_set,
                        .split = v[SPLIT].is_set ? v[SPLIT].number : 0};
}

/* Reads the topology of the network into REQUEST. */
static int read_topology(const struct plugin_value *v, const struct predict_output *output,
                         struct models_request *request, struct plugin_message *message) {
    static const size_t of_tree[] = {SPINES,           SPINE_CABLES,   CABLE,
                                     OVERSUBSCRIPTION, REMOVED_SPINES, REMOVED_CABLES};
    int topology = v[TOPOLOGY].is_set     ? (int)v[TOPOLOGY].number
                   : v[LEAF_NODES].is_set ? FAT_TREE
                                          : ONE_SWITCH;
    request->is_max_min = v[SHARING].number == 1;
    if (topology > FAT_TREE)
        return plugin_refuse(
            message, -EINVAL,
            "topology=%s is not replayed, since its routes are not those of levels of switches; "
            "set topology=fat-tree or one-switch",
            topology_words[topology]);
    for (size_t i = 0; topology == ONE_SWITCH && i < sizeof of_tree / sizeof *of_tree; i++)
        if (v[of_tree[i]].is_set && !v[TOPOLOGY].is_set)
            return plugin_refuse(message, -EINVAL,
                                 "%s is of a fat tree: set leaf-nodes=COUNT, too, or remove it",
                                 parameters[of_tree[i]].name);
    if (topology == FAT_TREE && !v[LEAF_NODES].is_set)
        return plugin_refuse(
            message, -EINVAL,
            "topology=fat-tree has no leaf-nodes: set leaf-nodes=COUNT, the nodes of a switch");
    if (v[CABLE].is_set && v[OVERSUBSCRIPTION].is_set)
        return plugin_refuse(message, -EINVAL,
                             "cable and oversubscription both say how fast a cable is; remove one");
    if ((topology == FAT_TREE || request->is_max_min) &&
        (output->wants(output->context, TABLE_SENSITIVITIES) ||
         output->wants(output->context, TABLE_TOLERANCE)))
        return plugin_refuse(
            message, -EINVAL,
            "the tables sensitivities and tolerance are of cards with equal shares alone; set "
            "topology=one-switch and sharing=least-share");
    if (topology == ONE_SWITCH)
        return 0;
    double leaf_nodes = v[LEAF_NODES].number, each = v[SPINE_CABLES].number;
    double spines = v[SPINES].is_set ? v[SPINES].number : ceil(leaf_nodes / each);
    double left = spines - v[REMOVED_SPINES].number;
    if (left < 1 || v[REMOVED_CABLES].number >= left * each)
        return plugin_refuse(
            message, -EINVAL,
            "of %g spine switches %g are removed, and %g of the first leaf switch's other %g "
            "cables: it is cut off; remove fewer",
            spines, v[REMOVED_SPINES].number, v[REMOVED_CABLES].number, fmax(left, 0) * each);
    request->tree = (struct network_tree){.leaf_nodes = (int)leaf_nodes,
                                          .spines = (int)left,
                                          .spine_cables = (int)each,
                                          .cut_cables = (int)v[REMOVED_CABLES].number,
                                          .cable = 1};
    request->card_cables = !v[CABLE].is_set;
    if (v[CABLE].is_set)
        request->tree.cable = v[CABLE].number;
    else if (v[OVERSUBSCRIPTION].is_set)
        request->tree.cable = leaf_nodes / (v[OVERSUBSCRIPTION].number * spines * each);
    return 0;
}

static void warn(const struct hpl *hpl, const struct plugin_value *v, struct predict_output *output) {
    double ranks = (double)hpl->p * hpl->q, blocks = hpl_panel_count(hpl),
           node = fmin(ranks, v[RANKS_PER_NODE].number);
    double memory = 8 * (double)hpl->n * ((double)hpl->n + 1) / ranks * node;
    if (hpl->p > blocks || hpl->q > blocks)
        predict_remark(
            output, true,
            "some processes have no rows or columns: the matrix has %g x %g blocks, the grid %d x %d "
            "processes; set a smaller NB or a smaller grid",
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
    ret[WAIT_FOR_PANEL] = times->panel_wait / ranks;
    ret[PROBES] = times->probing / ranks;
    for (int i = DGEMM; i <= PROBES; i++)
        spent += ret[i];
    ret[AT_END] = times->time - spent;
    ret[MESSAGE_COUNT] = (double)times->message_count;
    ret[MEMORY] = 8 * (double)hpl->n * ((double)hpl->n + 1) / ranks;
}

static void report_parts(const struct trace *trace, double time, struct predict_output *output) {
    const struct trace_path *path = &trace->paths[0];
    for (int i = 1; i < trace->ranks; i++)
        path = trace->paths[i].until > path->until ? &trace->paths[i] : path;
    for (int part = 0; part < TRACE_PARTS; part++) {
        double mean = 0, on_path = path->parts[part];
        for (int i = 0; i < trace->ranks; i++)
            mean += trace->spent[i][part] / trace->ranks;
        double values[] = {0, mean, 100 * mean / time, on_path, 100 * on_path / time};
        if (mean > 0 || on_path > 0)
            output->table_row(output->context, TABLE_PARTS, values,
                              (const char *[]){part_name(part), NULL, NULL, NULL, NULL});
    }
}

static void report_ranks(const struct hpl *hpl, const struct trace *trace, double time,
                         struct predict_output *output) {
    for (int i = 0; i < trace->ranks; i++) {
        const double *spent = trace->spent[i], *messages = spent + HPL_KERNELS,
                     *waits = messages + HPL_PHASES;
        double computing = 0, copies = 0, idle = 0;
        for (int part = 0; part < TRACE_PARTS; part++) {
            *(part < HPL_KERNELS ? &computing : &idle) += spent[part];
            copies += part >= HPL_DLACPY && part < HPL_KERNELS ? spent[part] : 0;
        }
        double values[] = {i,
                           hpl_row_of(hpl, i),
                           hpl_column_of(hpl, i),
                           computing,
                           copies,
                           messages[HPL_FACT],
                           messages[HPL_BCAST],
                           messages[HPL_SWAP],
                           messages[HPL_TRSV],
                           waits[0],
                           waits[1],
                           time - computing - idle};
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
        const double *sums = counts.kernels[rank][phase][kernel];
        double values[3 + COUNTS_SUMS] = {rank};
        const char *texts[3 + COUNTS_SUMS] = {NULL, hpl_phase_names[phase], hpl_kernel_names[kernel]};
        for (int s = 0; s < COUNTS_SUMS; s++)
            values[3 + s] = sums[s];
        if (sums[COUNTS_CALLS] + sums[COUNTS_EMPTY] > 0)
            r = output->table_row(output->context, TABLE_KERNELS, values, texts);
    }
    counts_clear(&counts);
    return r;
}

/* Replays all panels, or with replay=sampled some of them, if there are enough. */
static int replay(const struct hpl *hpl, const struct replay_machine *machine, const struct plugin_value *v,
                  struct observation *observation, struct replay_times *ret, double *ret_error,
                  struct plugin_message *message) {
    static const size_t exact_tables[] = {TABLE_PARTS,     TABLE_RANKS,  TABLE_TIMELINE, TABLE_SENSITIVITIES,
                                          TABLE_TOLERANCE, TABLE_LOSSES, TABLE_NODE_SETS};
    const struct predict_output *output = observation->output;
    struct replay_observer observer = {.context = observation, .panel_done = add_panel};
    struct sampled sampled = {.panels = v[REPLAYED_PANELS].is_set ? (int)v[REPLAYED_PANELS].number : 0};
    int all = hpl_panel_count(hpl), r = 1;
    bool is_sampled = v[REPLAY].number == 1;
    if (is_sampled)
        for (size_t i = 0; i < sizeof exact_tables / sizeof *exact_tables; i++)
            if (output->wants(output->context, exact_tables[i]))
                return plugin_refuse(message, -EINVAL,
                                     "the table %s needs every panel, and replay=sampled leaves some out; "
                                     "set replay=exact",
                                     tables[exact_tables[i]].name);
    if (is_sampled)
        r = sampled_run(hpl, machine, &observer, tell_progress, &sampled, ret);
    if (r == 0)
        predict_remark(observation->output, false, "%d of %d panels were replayed", sampled.panels, all);
    if (r == 1) {
        observer.panel_done = panel_done;
        observer.trace = observation->trace.ranks > 0 ? &observation->trace : NULL;
        if (is_sampled)
            predict_remark(observation->output, false,
                           "all %d panels were replayed: a sample would need nearly all of them", all);
        r = replay_run(hpl, machine, &observer, ret);
    }
    *ret_error = sampled.error;
    return r;
}

static int run(void *state, const struct predict_inputs *inputs, const struct plugin_value *v,
               double *ret_values, struct predict_output *output, struct plugin_message *message) {
    struct hpl hpl = read_scenario(v);
    struct replay_times times;
    struct observation observation = {
        .hpl = &hpl, .output = output, .wants_panels = output->wants(output->context, TABLE_PANELS)};
    struct trace *trace = &observation.trace;
    struct models_request request = {
        .hpl = &hpl,
        .ranks_per_node = (int)v[RANKS_PER_NODE].number,
        .cpus_per_node = v[CPUS_PER_NODE].is_set ? (int)v[CPUS_PER_NODE].number : 0,
        .node_rows = v[NODE_ROWS].is_set ? (int)v[NODE_ROWS].number : 0,
        .threads = (int)v[THREADS].number,
        .has_noise = v[NOISE].number == 1,
        .probe = v[IPROBE].number,
        .card = v[CARD].number,
        .is_deferred = v[PROBING_RULE].number == 0,
        .is_smpi = v[PROBING_RULE].number == 2,
        .is_cut =
            v[WHOLE_MICROSECONDS].is_set ? v[WHOLE_MICROSECONDS].number == 1 : v[PROBING_RULE].number == 2};
    struct machine *machine;
    if ((double)hpl.p * hpl.q > 1e6)
        return plugin_refuse(message, -EINVAL, "P x Q is %g; at most 1000000 processes are replayed",
                             (double)hpl.p * hpl.q);
    if (hpl.nbmin > hpl.nb)
        hpl.nbmin = hpl.nb;
    int r = read_topology(v, output, &request, message);
    r = r < 0 ? r : machine_new(state, inputs, &request, output, &machine, message);
    if (r < 0)
        return r;
    warn(&hpl, v, output);
    hpl.pivots = machine->pivots;
    r = begin_trace(&observation, machine, v);
    r = r < 0 ? r
              : replay(&hpl, &machine->replay, v, &observation, &times, &ret_values[SAMPLING_ERROR], message);
    if (r == 0) {
        fill(&hpl, &times, ret_values);
        if (trace->ranks > 0) {
            trace_window(trace, false);
            report_parts(trace, times.time, output);
            report_ranks(&hpl, trace, times.time, output);
        }
        if (trace->sensitivities)
            r = report_sensitivities(machine, trace, times.time, TABLE_SENSITIVITIES, output);
        if (r == 0 && output->wants(output->context, TABLE_TOLERANCE))
            r = report_tolerance(&hpl, machine, trace, times.time, TABLE_TOLERANCE, output);
        const struct variability variability = {state, inputs, request, output, message};
        if (r == 0 && output->wants(output->context, TABLE_LOSSES))
            r = report_losses(&variability, (int)v[NODE_SETS].number, TABLE_LOSSES);
        if (r == 0 && output->wants(output->context, TABLE_NODE_SETS))
            r = report_node_sets(&variability, (int)v[LEFT_OUT].number, v[GRID_RATIO].number,
                                 TABLE_NODE_SETS);
        if (times.unusable_count > 0)
            predict_remark(
                output, true,
                "%llu of %llu kernel calls had a time below 0 s, or none, by their models, and took "
                "0 s; fit the models to calls as small as those of a panel (NBMIN=%d columns), too",
                (unsigned long long)times.unusable_count, (unsigned long long)times.kernel_count, hpl.nbmin);
        if (r == 0 &&
            (output->wants(output->context, TABLE_CALLS) || output->wants(output->context, TABLE_KERNELS)))
            r = report_counts(&hpl, v[FOUND].number == 1, output);
    } else if (r == -EDEADLK) {
        r = plugin_refuse(message, -ENOTSUP,
                          "the processes wait for each other: please report these parameters");
    }
    trace_clear(trace);
    sensitivities_clear(&observation.sensitivities);
    machine_free(machine);
    return r;
}

ASSAY_PREDICT_PLUGIN("hpl-replay", ASSAY_VERSION,
                     "HPL's time by replaying every message and kernel call of HPL", .roles = roles,
                     .parameters = parameters, .columns = columns, .open = models_open, .run = run,
                     .close = models_close, .tables = tables);
