/* The warm-up phase: all nodes are kept busy, for a time or until temperature and frequency have settled on
 * each of them; what was reached is recorded. */
#include "archive-format/layout.h"
#include "engine/run/state/state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/link/command.h"
#include "engine/remote/nodes/tools.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/reservation.h"
#include "engine/run/state/steadiness.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

enum { QUANTITIES_MAX = 64 + 1 }; /* of one node: temperatures, and the frequency */
static const int64_t check_period_ns = 500 * EVENT_MILLISECOND, end_timeout_ns = 10 * EVENT_SECOND;

struct warming_node {
    struct remote_command *load;
    bool ended;             /* the load has */
    struct failure failure; /* .code 0: none */
    bool steady;
    double steady_after; /* seconds since the load began */
};

struct warming {
    struct watch *watch;
    struct node_set *set;
    const struct warm_up_settings *settings;
    struct warming_node *nodes; /* of all nodes */
    int64_t started_ns;
};

/* What is to settle, and how it stands. */
struct quantity {
    enum probe_kind kind;
    const char *column; /* NULL: the mean of all */
    bool known;         /* samples reach over the window */
    struct steadiness_state state;
};

/* ---- The load --------------------------------------------------------------------------------------------
 */

static void on_load_exit(struct remote_command *command, const struct remote_exit *exit,
                         const struct failure *failure, void *context) {
    (void)command;
    struct warming_node *node = context;
    char how[128];
    node->ended = true;
    if (failure)
        node->failure = *failure;
    else if (!(exit->signalled && (exit->code == SIGTERM || exit->code == SIGKILL)) && exit->code != 0)
        failure_set_kind(&node->failure, FAILURE_EXPERIMENT, -EIO, "the load %s",
                         remote_exit_describe(exit, how, sizeof how));
}

/* Starts the campaign's load on all PUs of NODE. */
static int start_load(struct warming *warming, const struct run_node *node, struct failure *failure) {
    struct warming_node *warmed = &warming->nodes[node->number];
    char count[32];
    snprintf(count, sizeof count, "%zu", node->facts->pu_count);
    const char *const own[] = {NODE_TOOL_PROGRAM, "--stress", NULL};
    const char *const stress[] = {"stress", "--cpu", count, NULL};
    const char *const stress_ng[] = {"stress-ng", "--cpu", count, NULL};
    const char *const *const loads[] = {
        [WARM_UP_AGENT] = own, [WARM_UP_STRESS] = stress, [WARM_UP_STRESS_NG] = stress_ng};
    struct remote_command_specification specification = {.arguments = loads[warming->settings->load],
                                                         .output = REMOTE_OUTPUT_NULL,
                                                         .error = REMOTE_OUTPUT_NULL};
    struct remote_command_callbacks callbacks = {.on_exit = on_load_exit};
    return remote_command_start(node->link, &specification, &callbacks, warmed, &warmed->load, failure);
}

/* ---- The test --------------------------------------------------------------------------------------------
 */

/* Adds COLUMN of PROBE to the quantities of a node, if there are samples of it. */
static void add_quantity(const struct warming *warming, const struct watch_probe *probe, enum probe_kind kind,
                         size_t column, struct quantity *ret, size_t *count) {
    struct quantity *quantity = &ret[*count];
    *quantity = (struct quantity){.kind = kind};
    if (column != STEADINESS_MEAN)
        quantity->column = watch_column_name(probe, column);
    quantity->known =
        steadiness_of(&probe->history, column, warming->settings->limits.window_seconds, &quantity->state);
    *count += quantity->state.samples > 0;
}

/* Sets RET to the quantities that must be steady: the temperature of each package, the mean frequency.
 * Returns their number. */
static size_t find_quantities(const struct warming *warming, const struct run_node *node,
                              struct quantity ret[static QUANTITIES_MAX]) {
    const struct watch *watch = warming->watch;
    size_t number = node->number, count = 0;
    const struct watch_probe *temperature = watch_probe(watch, number, PROBE_TEMPERATURE),
                             *frequency = watch_probe(watch, number, PROBE_FREQUENCY);
    for (size_t i = 0; temperature && i < temperature->history.columns && count < QUANTITIES_MAX - 1; i++)
        if (watch_is_package(temperature, i))
            add_quantity(warming, temperature, PROBE_TEMPERATURE, i, ret, &count);
    if (frequency)
        add_quantity(warming, frequency, PROBE_FREQUENCY, STEADINESS_MEAN, ret, &count);
    return count;
}

/* Are slope and spread of all quantities of NODE within the limits? False when none is known. */
static bool is_steady(const struct warming *warming, const struct run_node *node) {
    const struct steadiness_limits *limits = &warming->settings->limits;
    struct quantity quantities[QUANTITIES_MAX];
    size_t count = find_quantities(warming, node, quantities);
    for (size_t i = 0; i < count; i++) {
        const struct steadiness_state *state = &quantities[i].state;
        bool hot = quantities[i].kind == PROBE_TEMPERATURE;
        double slope = hot ? limits->temperature_slope : limits->frequency_slope * state->mean,
               spread = hot ? limits->temperature_spread : limits->frequency_spread * state->mean;
        if (!quantities[i].known || !(fabs(state->slope) <= slope && state->spread <= spread))
            return false;
    }
    return count > 0;
}

static double elapsed(const struct warming *warming) {
    return (double)(clock_monotonic_ns() - warming->started_ns) * 1e-9;
}

/* A node is steady when it is so now: one that was, and is not any more, has not settled. */
static size_t count_steady(struct warming *warming) {
    size_t steady = 0;
    for (struct run_node *node = NULL; (node = node_set_next(warming->set, node));) {
        struct warming_node *warmed = &warming->nodes[node->number];
        bool now = is_steady(warming, node);
        if (now && !warmed->steady)
            warmed->steady_after = elapsed(warming);
        warmed->steady = now;
        steady += now;
    }
    return steady;
}

/* Those that are to be warm. */
static size_t count_wanted(const struct warming *warming) {
    return warming->set->joining ? 1 : node_set_count_in(warming->set);
}

static void show_progress(const struct warming *warming, size_t steady, double cap) {
    double left = cap - elapsed(warming);
    bool wants_steady = warming->settings->kind == WARM_UP_STEADY;
    record_report_event(warming->set->record, &(struct run_event){.kind = RUN_EVENT_WARM_UP,
                                                                  .text = wants_steady ? "steady" : NULL,
                                                                  .nodes_done = steady,
                                                                  .nodes_total = count_wanted(warming),
                                                                  .seconds_left = left > 0 ? left : 0});
}

/* Checks that all nodes are connected and that the load runs on each. A node whose load has ended is taken
 * out, where the campaign has the run continue without nodes. */
static int check_loads(const struct warming *warming, struct failure *failure) {
    int r = node_set_check(warming->set, failure);
    for (struct run_node *node = NULL; r == 0 && (node = node_set_next(warming->set, node));) {
        struct failure *why = &warming->nodes[node->number].failure;
        if (why->code == 0)
            continue;
        /* -EIO: the load ended on the node. Any other code: the campaign's load could not be started. */
        r = why->code == -EIO ? node_set_take_out_unfit(warming->set, node->number, "warm-up", why, failure)
                              : 0;
        if (r < 0)
            return r;
        if (r > 0) {
            r = 0;
            continue;
        }
        *failure = *why;
        r = failure->place[0] ? failure->code : failure_prefix(failure, "node %s", node->name);
    }
    return r;
}

/* Waits until all nodes are steady or the time is over, showing progress. Fails when a node that the run
 * needs is lost. */
static int wait_for_warm_up(struct warming *warming, struct failure *failure) {
    bool wants_steady = warming->settings->kind == WARM_UP_STEADY;
    double cap = wants_steady ? warming->settings->at_most_seconds : warming->settings->seconds;
    for (;;) {
        size_t steady = count_steady(warming);
        double left = cap - elapsed(warming);
        show_progress(warming, steady, cap);
        if ((wants_steady && steady == count_wanted(warming)) || left <= 0)
            return 0;
        int r = check_loads(warming, failure);
        int64_t left_ns = (int64_t)(left * 1e9) + 1, now_ns = clock_monotonic_ns();
        int64_t deadline_ns = now_ns + (left_ns < check_period_ns ? left_ns : check_period_ns);
        while (r >= 0 && (now_ns = clock_monotonic_ns()) < deadline_ns)
            r = event_loop_turn(warming->set->loop, deadline_ns - now_ns, failure);
        if (r < 0)
            return r;
    }
}

/* ---- What was reached ------------------------------------------------------------------------------------
 */

/* Adds the state of one quantity to OBJECT; without a whole window of samples, a sentence that says so. */
static void add_quantity_state(cJSON *object, const struct quantity *quantity) {
    const char *name = quantity->kind == PROBE_TEMPERATURE ? "temperature_celsius" : "frequency_hz";
    cJSON *array = cJSON_GetObjectItemCaseSensitive(object, name);
    cJSON *item = json_add_object(array ? array : json_add_array(object, name), NULL);
    if (quantity->column)
        json_add_string(item, "column", quantity->column);
    if (quantity->known) {
        json_add_double(item, "mean", quantity->state.mean);
        json_add_double(item, "slope_per_window", quantity->state.slope);
        json_add_double(item, "spread", quantity->state.spread);
        json_add_uint64(item, "samples", quantity->state.samples);
    } else {
        json_add_string(item, "sentence", "its samples cover less than one window");
    }
}

/* Appends to the node's warm-up.json. BLOCK: 0, or the number of the block that it was for. */
static int record_warm_up(const struct warming *warming, struct run_node *node,
                          const struct quantity *quantities, size_t count, size_t block,
                          struct failure *failure) {
    const struct warming_node *warmed = &warming->nodes[node->number];
    if (!node->warm_up)
        node->warm_up = cJSON_CreateArray();
    cJSON *object = json_add_object(node->warm_up, NULL);
    if (block > 0)
        json_add_uint64(object, "block", block);
    json_add_double(object, "seconds", elapsed(warming));
    json_add_boolean(object, "steady", warmed->steady);
    if (warmed->steady)
        json_add_double(object, "steady_after_seconds", warmed->steady_after);
    json_add_double(object, "window_seconds", warming->settings->limits.window_seconds);
    for (size_t i = 0; i < count; i++)
        add_quantity_state(object, &quantities[i]);
    return record_write_node_json(warming->set->record, node->name, ARCHIVE_NODE_WARM_UP, node->warm_up,
                                  failure);
}

/* "steady after 3 min: 67 Cel, 2.1 GHz"; the caller frees. */
static char *describe_warm_up(const struct warming *warming, bool steady, const struct quantity *quantities,
                              size_t count) {
    char after[NUMBER_TEXT_SIZE];
    cleanup(text_clear) struct text words;
    text_init(&words, 1024);
    (void)number_describe_duration(elapsed(warming), after);
    if (count == 0)
        text_printf(&words,
                    "warmed up for %s; steadiness unknown: the node reports neither "
                    "temperatures nor frequencies",
                    after);
    else if (warming->settings->kind == WARM_UP_STEADY)
        text_printf(&words, "%s after %s", steady ? "steady" : "not steady", after);
    else
        text_printf(&words, "warmed up for %s", after);
    const char *comma = ": ";
    for (size_t i = 0; i < count; i++) {
        if (!quantities[i].known)
            continue;
        if (quantities[i].kind == PROBE_TEMPERATURE)
            text_printf(&words, "%s%.0f Cel", comma, quantities[i].state.mean);
        else
            text_printf(&words, "%s%.3g GHz", comma, quantities[i].state.mean * 1e-9);
        comma = ", ";
    }
    return xstrdup(words.bytes);
}

/* Notes and records how warm each node is; its temperature becomes the reference of the temperature gate. */
static int report_warm_up(struct warming *warming, size_t block, struct failure *failure) {
    struct node_set *set = warming->set;
    cleanup(node_texts_clear) struct node_texts words = node_texts_new(set->count);
    int r = 0;
    for (struct run_node *node = NULL; r == 0 && (node = node_set_next(set, node));) {
        size_t i = node->number;
        struct quantity quantities[QUANTITIES_MAX];
        size_t count = find_quantities(warming, node, quantities);
        /* The band that the gate of temperatures holds units to. */
        node->warm_temperature = NAN;
        for (size_t k = 0; k < count; k++)
            if (quantities[k].known && quantities[k].kind == PROBE_TEMPERATURE)
                node->warm_temperature = fmax(node->warm_temperature, quantities[k].state.mean);
        words.items[i] = describe_warm_up(warming, warming->nodes[i].steady, quantities, count);
        node_set_note_entry(set, "warmed-up", node, "sentence", words.items[i]);
        r = record_warm_up(warming, node, quantities, count, block, failure);
    }
    node_set_note_grouped(set, &words);
    return r;
}

/* ---- The phase -------------------------------------------------------------------------------------------
 */

static bool is_busy(const struct warming_node *node) {
    return node->load && !node->ended;
}

static void end_loads(struct warming *warming) {
    struct node_set *set = warming->set;
    int64_t deadline = clock_monotonic_ns() + end_timeout_ns, left;
    for (size_t i = 0; i < set->count; i++)
        if (is_busy(&warming->nodes[i]))
            remote_command_kill(warming->nodes[i].load, SIGTERM, NULL);
    for (size_t i = 0; i < set->count; i++)
        while (is_busy(&warming->nodes[i]) && (left = deadline - clock_monotonic_ns()) > 0 &&
               !event_loop_is_stopped(set->loop) && event_loop_run_once(set->loop, left, NULL) >= 0)
            continue;
}

static void clear(struct warming *warming) {
    for (size_t i = 0; warming->nodes && i < warming->set->count; i++)
        remote_command_free(warming->nodes[i].load);
    free(warming->nodes);
}

/* Starts the load on all nodes, waits, records how warm they are, and ends the load. */
int warm_up(struct watch *watch, size_t block, struct failure *failure) {
    struct node_set *set = watch->set;
    cleanup(clear) struct warming warming = {
        .watch = watch, .set = set, .settings = &set->campaign->warm_up, .started_ns = clock_monotonic_ns()};
    if (warming.settings->kind == WARM_UP_NONE)
        return 0;
    warming.nodes = xcalloc(set->count, sizeof *warming.nodes);
    int r = 0;
    for (struct run_node *node = NULL; r == 0 && (node = node_set_next(set, node));)
        r = start_load(&warming, node, failure);
    if (r == 0)
        r = wait_for_warm_up(&warming, failure);
    if (r == 0)
        r = report_warm_up(&warming, block, failure);
    end_loads(&warming);
    return r;
}

int warm_up_begin(struct watch *watch, struct failure *failure) {
    struct node_set *set = watch->set;
    int r = watch_start(watch, failure);
    /* Where controls vary, each block has its own state to be steady in. */
    if (r < 0 || controls_vary(set) || !reservation_has_time_for_state(set))
        return r;
    return warm_up(watch, 0, failure);
}
