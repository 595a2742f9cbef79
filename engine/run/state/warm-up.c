/* The warm-up phase: all nodes are kept busy, for a time or until temperature and frequency have settled on
 * each of them; what was reached is recorded. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/link/command.h"
#include "engine/remote/nodes/tools.h"
#include "engine/run/nodes/out.h"
#include "engine/run/state/steadiness.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TEMPERATURES_MOST = 64 }; /* of packages of one node */
static const int64_t look_period_ns = 500 * EVENT_MILLISECOND, end_timeout_ns = 10 * EVENT_SECOND;

struct warming_node {
    struct warming *warming;
    size_t number;
    struct remote_command *load;
    bool ended;             /* the load has */
    struct failure failure; /* .code 0: none */
    struct steadiness temperatures[TEMPERATURES_MOST], frequency;
    size_t temperature_columns[TEMPERATURES_MOST];
    size_t temperature_count;
    bool columns_known;
    bool steady;
    double steady_after; /* seconds since the load began */
};

struct warming {
    struct run *run;
    const struct warm_up_settings *settings;
    struct warming_node *nodes;
    size_t count;
    int64_t started_ns;
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

static int start_load(struct warming_node *node, struct failure *failure) {
    struct run *run = node->warming->run;
    char count[32];
    snprintf(count, sizeof count, "%zu", run->nodes[node->number].facts->pu_count);
    const char *const own[] = {NODE_TOOL_PROGRAM, "--stress", NULL};
    const char *const stress[] = {"stress", "--cpu", count, NULL};
    const char *const stress_ng[] = {"stress-ng", "--cpu", count, NULL};
    const char *const *const loads[] = {
        [WARM_UP_AGENT] = own, [WARM_UP_STRESS] = stress, [WARM_UP_STRESS_NG] = stress_ng};
    struct remote_command_specification specification = {.arguments = loads[node->warming->settings->load],
                                                         .output = REMOTE_OUTPUT_NULL,
                                                         .error = REMOTE_OUTPUT_NULL};
    struct remote_command_callbacks callbacks = {.on_exit = on_load_exit};
    return remote_command_start(run->nodes[node->number].link, &specification, &callbacks, node, &node->load,
                                failure);
}

/* ---- The samples -----------------------------------------------------------------------------------------
 */

/* Those of packages; where there are none, all. Names as engine/agent/probes/README.md has them. */
static void choose_columns(struct warming_node *node, const struct watch_sample *sample) {
    for (int all = 0; all < 2 && node->temperature_count == 0; all++)
        for (size_t i = 0; i < sample->count && node->temperature_count < TEMPERATURES_MOST; i++)
            if (all || run_is_package_temperature(sample->columns[i]))
                node->temperature_columns[node->temperature_count++] = i;
    node->columns_known = true;
}

static double mean_of(const double *values, size_t count) {
    double sum = 0;
    size_t known = 0;
    for (size_t i = 0; i < count; i++)
        if (!isnan(values[i])) {
            sum += values[i];
            known++;
        }
    return known ? sum / (double)known : NAN;
}

static void on_sample(const struct watch_sample *sample, void *context) {
    struct warming *warming = context;
    struct warming_node *node = &warming->nodes[sample->node];
    double window = warming->settings->limits.window_seconds;
    if (sample->kind == PROBE_FREQUENCY) {
        double mean = mean_of(sample->values, sample->count);
        if (!isnan(mean))
            steadiness_add(&node->frequency, window, sample->monotonic_ns, mean);
    }
    if (sample->kind != PROBE_TEMPERATURE)
        return;
    if (!node->columns_known)
        choose_columns(node, sample);
    for (size_t i = 0; i < node->temperature_count; i++) {
        size_t column = node->temperature_columns[i];
        double value = column < sample->count ? sample->values[column] : NAN;
        if (!isnan(value))
            steadiness_add(&node->temperatures[i], window, sample->monotonic_ns, value);
    }
}

/* ---- The test --------------------------------------------------------------------------------------------
 */

static bool has_source(const struct warming_node *node) {
    return node->frequency.count > 0 || (node->temperature_count > 0 && node->temperatures[0].count > 0);
}

static bool is_steady(const struct warming_node *node) {
    const struct steadiness_limits *limits = &node->warming->settings->limits;
    struct steadiness_state state;
    for (size_t i = 0; i < node->temperature_count; i++)
        if (node->temperatures[i].count > 0 &&
            (!steadiness_state(&node->temperatures[i], limits->window_seconds, &state) ||
             !(fabs(state.slope) <= limits->temperature_slope && state.spread <= limits->temperature_spread)))
            return false;
    if (node->frequency.count > 0 && (!steadiness_state(&node->frequency, limits->window_seconds, &state) ||
                                      !(fabs(state.slope) <= limits->frequency_slope * state.mean &&
                                        state.spread <= limits->frequency_spread * state.mean)))
        return false;
    return has_source(node);
}

static double elapsed(const struct warming *warming) {
    return (double)(clock_monotonic_ns() - warming->started_ns) * 1e-9;
}

/* A node is steady when it is so now: one that was and is no more has not settled. */
static size_t look(struct warming *warming) {
    size_t steady = 0;
    for (size_t i = 0; i < warming->count; i++) {
        struct warming_node *node = &warming->nodes[i];
        if (!run_concerns(warming->run, i))
            continue;
        bool now = is_steady(node);
        if (now && !node->steady)
            node->steady_after = elapsed(warming);
        node->steady = now;
        steady += now;
    }
    return steady;
}

/* Those that are to be warm. */
static size_t count_wanted(const struct warming *warming) {
    size_t count = 0;
    for (size_t i = 0; i < warming->count; i++)
        count += run_concerns(warming->run, i);
    return count;
}

static void show(const struct warming *warming, size_t steady, double cap) {
    const struct run_observer *observer = &warming->run->request->observer;
    double left = cap - elapsed(warming);
    bool wants_steady = warming->settings->kind == WARM_UP_STEADY;
    if (observer->event)
        observer->event(observer->context, &(struct run_event){.kind = RUN_EVENT_WARM_UP,
                                                               .text = wants_steady ? "steady" : NULL,
                                                               .nodes_done = steady,
                                                               .nodes_total = count_wanted(warming),
                                                               .seconds_left = left > 0 ? left : 0});
}

static int wait_until(struct warming *warming, struct failure *failure) {
    struct run *run = warming->run;
    bool wants_steady = warming->settings->kind == WARM_UP_STEADY;
    double cap = wants_steady ? warming->settings->at_most_seconds : warming->settings->seconds;
    for (;;) {
        size_t steady = look(warming);
        double left = cap - elapsed(warming);
        show(warming, steady, cap);
        if ((wants_steady && steady == count_wanted(warming)) || left <= 0)
            return 0;
        if (event_loop_is_stopped(run->loop))
            return failure_set_kind(failure, FAILURE_INTERRUPTED, -EINTR, "interrupted");
        int r = run_check_nodes(run, failure);
        for (size_t i = 0; r == 0 && i < warming->count; i++)
            if (warming->nodes[i].failure.code < 0 && run_concerns(run, i)) {
                *failure = warming->nodes[i].failure;
                r = failure->place[0] ? failure->code
                                      : failure_prefix(failure, "node %s", run->nodes[i].name);
            }
        int64_t deadline = clock_monotonic_ns() + look_period_ns;
        if ((double)look_period_ns * 1e-9 > left)
            deadline = clock_monotonic_ns() + (int64_t)(left * 1e9) + 1;
        int64_t now;
        while (r >= 0 && (now = clock_monotonic_ns()) < deadline && !event_loop_is_stopped(run->loop))
            r = event_loop_run_once(run->loop, deadline - now, failure);
        if (r < 0)
            return r;
    }
}

/* ---- What was reached ------------------------------------------------------------------------------------
 */

static void add_state(cJSON *object, const char *name, const char *column, const struct steadiness *quantity,
                      double window) {
    struct steadiness_state state;
    if (quantity->count == 0)
        return;
    cJSON *array = cJSON_GetObjectItemCaseSensitive(object, name);
    if (!array)
        array = json_add_array(object, name);
    cJSON *item = json_add_object(array, NULL);
    if (column)
        json_add_string(item, "column", column);
    if (steadiness_state(quantity, window, &state)) {
        json_add_double(item, "mean", state.mean);
        json_add_double(item, "slope_per_window", state.slope);
        json_add_double(item, "spread", state.spread);
        json_add_uint64(item, "samples", state.samples);
    } else {
        json_add_string(item, "sentence", "its samples do not reach over a window");
    }
}

static int record(struct warming *warming, struct warming_node *node, size_t block, struct failure *failure) {
    struct run *run = warming->run;
    struct run_node *run_node = &run->nodes[node->number];
    if (!run_node->warm_up && !(run_node->warm_up = cJSON_CreateArray()))
        return failure_memory(failure);
    cJSON *object = json_add_object(run_node->warm_up, NULL);
    if (!object)
        return failure_memory(failure);
    const struct steadiness_limits *limits = &warming->settings->limits;
    if (block > 0)
        json_add_uint64(object, "block", block);
    json_add_double(object, "seconds", elapsed(warming));
    json_add_boolean(object, "steady", node->steady);
    if (node->steady)
        json_add_double(object, "steady_after_seconds", node->steady_after);
    json_add_double(object, "window_seconds", limits->window_seconds);
    for (size_t i = 0; i < node->temperature_count; i++) {
        size_t number = node->temperature_columns[i];
        const char *column = number < watch_column_count(run->watch, node->number, PROBE_TEMPERATURE)
                                 ? watch_column_name(run->watch, node->number, PROBE_TEMPERATURE, number)
                                 : NULL;
        add_state(object, "temperature_celsius", column, &node->temperatures[i], limits->window_seconds);
    }
    add_state(object, "frequency_hz", NULL, &node->frequency, limits->window_seconds);
    return run_write_node_json(run, run_node, "warm-up.json", run_node->warm_up, failure);
}

/* The band that the gate of temperatures holds units to. */
static void take_band(const struct warming *warming, const struct warming_node *node) {
    struct run_node *run_node = &warming->run->nodes[node->number];
    struct steadiness_state state;
    run_node->warm_temperature = NAN;
    for (size_t i = 0; i < node->temperature_count; i++)
        if (steadiness_state(&node->temperatures[i], warming->settings->limits.window_seconds, &state) &&
            !(run_node->warm_temperature >= state.mean))
            run_node->warm_temperature = state.mean;
}

/* "steady after 3 min: 67 Cel, 2.1 GHz" */
static char *describe(const struct warming *warming, const struct warming_node *node) {
    double window = warming->settings->limits.window_seconds;
    struct steadiness_state state;
    char after[NUMBER_TEXT_SIZE];
    (void)number_describe_duration(elapsed(warming), after);
    if (!has_source(node))
        return text_format("warmed up for %s; whether it is steady cannot be told: it shows neither "
                           "temperatures nor frequencies",
                           after);
    struct text words;
    text_init(&words, 1024);
    if (warming->settings->kind == WARM_UP_STEADY)
        text_printf(&words, "%s after %s", node->steady ? "steady" : "not steady", after);
    else
        text_printf(&words, "warmed up for %s", after);
    const char *comma = ": ";
    for (size_t i = 0; i < node->temperature_count; i++)
        if (steadiness_state(&node->temperatures[i], window, &state)) {
            text_printf(&words, "%s%.0f Cel", comma, state.mean);
            comma = ", ";
        }
    if (steadiness_state(&node->frequency, window, &state))
        text_printf(&words, "%s%.3g GHz", comma, state.mean * 1e-9);
    return text_take(&words);
}

static int tell(struct warming *warming, size_t block, struct failure *failure) {
    struct run *run = warming->run;
    cleanup_free char **words = calloc(warming->count + 1, sizeof *words);
    int r = words ? 0 : failure_memory(failure);
    for (size_t i = 0; r == 0 && i < warming->count; i++) {
        struct warming_node *node = &warming->nodes[i];
        if (!run_concerns(run, i))
            continue;
        take_band(warming, node);
        words[i] = describe(warming, node);
        journal_begin(run->journal, "warmed-up");
        journal_string(run->journal, "node", run->nodes[i].name);
        journal_string(run->journal, "sentence", words[i]);
        journal_end(run->journal);
        r = record(warming, node, block, failure);
    }
    if (r == 0 && run_note_kinds(run, (const char *const *)words) < 0)
        r = failure_memory(failure);
    for (size_t i = 0; words && i < warming->count; i++)
        free(words[i]);
    return r;
}

/* ---- The phase -------------------------------------------------------------------------------------------
 */

static void end_loads(struct warming *warming) {
    struct event_loop *loop = warming->run->loop;
    int64_t deadline = clock_monotonic_ns() + end_timeout_ns, left;
    bool open = true;
    for (size_t i = 0; i < warming->count; i++)
        if (warming->nodes[i].load && !warming->nodes[i].ended)
            remote_command_kill(warming->nodes[i].load, SIGTERM, NULL);
    while (open && (left = deadline - clock_monotonic_ns()) > 0 && !event_loop_is_stopped(loop)) {
        open = false;
        for (size_t i = 0; i < warming->count; i++)
            open |= warming->nodes[i].load && !warming->nodes[i].ended;
        if (open && event_loop_run_once(loop, left, NULL) < 0)
            break;
    }
}

static void clear(struct warming *warming) {
    if (warming->run->watch)
        watch_listen(warming->run->watch, &(struct watch_listener){0});
    for (size_t i = 0; warming->nodes && i < warming->count; i++) {
        struct warming_node *node = &warming->nodes[i];
        remote_command_free(node->load);
        for (size_t k = 0; k < TEMPERATURES_MOST; k++)
            steadiness_clear(&node->temperatures[k]);
        steadiness_clear(&node->frequency);
    }
    free(warming->nodes);
}

int run_warm_up(struct run *run, size_t block, struct failure *failure) {
    cleanup(clear) struct warming warming = {
        .run = run, .settings = &run->campaign->warm_up, .count = run->node_count};
    if (warming.settings->kind == WARM_UP_NONE)
        return 0;
    warming.nodes = xcalloc(warming.count + 1, sizeof *warming.nodes);
    watch_listen(run->watch, &(struct watch_listener){.on_sample = on_sample, .context = &warming});
    warming.started_ns = clock_monotonic_ns();
    int r = 0;
    for (size_t i = 0; r == 0 && i < warming.count; i++) {
        warming.nodes[i].warming = &warming;
        warming.nodes[i].number = i;
        if (run_concerns(run, i))
            r = start_load(&warming.nodes[i], failure);
    }
    if (r == 0)
        r = wait_until(&warming, failure);
    if (r == 0)
        r = tell(&warming, block, failure);
    end_loads(&warming);
    return r;
}

int run_phase_warm_up(struct run *run, struct failure *failure) {
    int r = watch_start(run, failure);
    /* Where controls vary, each block has its own state to be steady in. */
    if (r < 0 || run_controls_vary(run) || !run_has_time_for_state(run))
        return r;
    return run_warm_up(run, 0, failure);
}
