#include "engine/remote/nodes/controls.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text.h"
#include "engine/remote/nodes/nodes-private.h"
#include "engine/remote/nodes/tools.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    TOOL_TIMEOUT_MS = 120 * 1000, /* setting 500 PUs offline, one after the other, is slow */
    TEXT_MAX = NODE_TOOL_OUTPUT_MAX,
    PUS_MAX = 8192,
    EXPECTATIONS_MAX = 64 << 10,
    SESSION_SIZE = 17,
};

static const char *const control_statuses[] = {
    [NODE_CONTROL_AVAILABLE] = "available", [NODE_CONTROL_READ_ONLY] = "read-only",
    [NODE_CONTROL_ABSENT] = "absent",       [NODE_CONTROL_DENIED] = "denied",
    [NODE_CONTROL_UNKNOWN] = "unknown",
};
static const char *const setting_statuses[] = {
    [NODE_SETTING_DONE] = "done",           [NODE_SETTING_UNCHANGED] = "unchanged",
    [NODE_SETTING_MISMATCH] = "mismatch",   [NODE_SETTING_ABSENT] = "absent",
    [NODE_SETTING_READ_ONLY] = "read-only", [NODE_SETTING_DENIED] = "denied",
    [NODE_SETTING_FAILED] = "failed",       [NODE_SETTING_INVALID] = "invalid",
};
enum {
    CONTROL_STATUSES = sizeof control_statuses / sizeof *control_statuses,
    SETTING_STATUSES = sizeof setting_statuses / sizeof *setting_statuses,
};

const char *node_control_status_name(enum node_control_status status) {
    return control_statuses[status];
}

const char *node_setting_status_name(enum node_setting_status status) {
    return setting_statuses[status];
}

/* The number of a field, or 0, not known, when it is empty or none. */
static double number_or_zero(const char *text) {
    double value = 0;
    return number_parse_double(text, strlen(text), &value) && value > 0 ? value : 0;
}

/* Appends one zeroed item of SIZE bytes to an array, which doubles when it is full. Returns the item. */
static void *append_zeroed(void *items, size_t *count, size_t size) {
    void **array = items;
    if ((*count & (*count - 1)) == 0)
        *array = xrealloc(*array, (*count ? 2 * *count : 1) * size);
    return memset((char *)*array + (*count)++ * size, 0, size);
}

/* The next field of a line; the caller frees. */
static char *copy_field(char **at) {
    return xstrdup(tool_field_next(at));
}

/* ---- reading */

static void clear_state(struct node_control_state *state) {
    for (size_t i = 0; i < state->count; i++) {
        struct node_control *control = &state->controls[i];
        free(control->name);
        free(control->value);
        free(control->possible);
        free(control->driver);
        free(control->why);
    }
    free(state->controls);
    free(state->boot_id);
    free(state->driver);
    free(state->holder);
    *state = (struct node_control_state){0};
}

void node_control_states_free(struct node_control_state *states, size_t count) {
    for (size_t i = 0; states && i < count; i++)
        clear_state(&states[i]);
    free(states);
}

/* Adds the control that a line "control" of the agent's tool --controls describes to STATE. AT: the line
 * after that word. -EPROTO: STATE has NODE_CONTROLS_LIMIT controls already. */
static int read_control(struct node_control_state *state, char *at, struct failure *failure) {
    if (state->count == NODE_CONTROLS_LIMIT)
        return failure_set(failure, -EPROTO, "the agent reported more than %d controls", NODE_CONTROLS_LIMIT);
    struct node_control *control = append_zeroed(&state->controls, &state->count, sizeof *control);
    control->name = copy_field(&at);
    size_t known = text_find(tool_field_next(&at), control_statuses, CONTROL_STATUSES);
    control->status = known < CONTROL_STATUSES ? (enum node_control_status)known : NODE_CONTROL_UNKNOWN;
    control->value = copy_field(&at);
    control->possible = copy_field(&at);
    control->driver = copy_field(&at);
    control->why = copy_field(&at);
    return 0;
}

/* "session 0123 (label)" from the next two fields, either of which may be empty; the caller frees. */
static char *read_holder(char **at) {
    const char *session = tool_field_next(at), *label = tool_field_next(at);
    if (!*session)
        return xstrdup(*label ? label : "an agent without a name");
    return xformat("session %s%s%s%s", session, *label ? " (" : "", label, *label ? ")" : "");
}

/* node_tool.take of --controls. */
static int read_state_line(size_t node, const char *kind, char *at, void *context, struct failure *failure) {
    struct node_control_state *state = &((struct node_control_state *)context)[node];
    if (strcmp(kind, "control") == 0)
        return read_control(state, at, failure);
    if (strcmp(kind, "machine") == 0 && !state->boot_id) {
        state->boot_id = copy_field(&at);
        state->driver = copy_field(&at);
        state->base_hz = number_or_zero(tool_field_next(&at));
        state->max_hz = number_or_zero(tool_field_next(&at));
    } else if (strcmp(kind, "held") == 0 && !state->holder) {
        state->holder = read_holder(&at);
        state->holder_alive = strcmp(tool_field_next(&at), "alive") == 0;
        const char *since = tool_field_next(&at);
        number_parse_int64(since, strlen(since), &state->holder_since_ns);
    }
    return 0;
}

static bool has_controls(size_t node, int status, void *context) {
    return status == 0 && ((const struct node_control_state *)context)[node].count > 0;
}

int node_controls_show(struct node_group *group, struct node_control_state **ret,
                       struct failure **ret_failures, struct failure *failure) {
    static const char *const arguments[] = {"--controls", NULL};
    size_t count = node_group_count(group);
    struct node_control_state *states = xcalloc(count + 1, sizeof *states);
    int r = node_group_run_tool(group,
                                &(struct node_tool){.arguments = arguments,
                                                    .timeout_ms = TOOL_TIMEOUT_MS,
                                                    .take = read_state_line,
                                                    .is_told = has_controls,
                                                    .context = states},
                                ret_failures, failure);
    if (r < 0) {
        node_control_states_free(states, count);
        return r;
    }
    *ret = states;
    return 0;
}

/* ---- snapshots */

/* Appends "KIND<tab>REST" as a line; either may be empty. -EFBIG when TEXT is full. */
static int append_line(struct text *text, const char *kind, const char *rest, struct failure *failure) {
    int r = text_printf(text, "%s%s%s\n", kind, *kind && rest ? "\t" : "", rest ? rest : "");
    return r == -EFBIG
               ? failure_set(failure, r, "the agent's tool printed more than %zu MiB", text->limit >> 20)
           : r < 0 ? failure_memory(failure)
                   : 0;
}

/* A call of node_controls_keep(). */
struct snapshot_run {
    struct node_group *group;
    struct text *snapshots;
    bool *kept; /* one a node: has a line "snapshot" come? */
    const char *label;
    char session[SESSION_SIZE]; /* in hex, of the node whose arguments these are */
    const char *arguments[6];
};

/* node_tool.take of --snapshot-controls: appends each line to the snapshot of NODE. -EBUSY for the line
 * "held": another agent that still runs has a snapshot. */
static int read_snapshot_line(size_t node, const char *kind, char *at, void *context,
                              struct failure *failure) {
    struct snapshot_run *run = context;
    if (strcmp(kind, "held") == 0) {
        cleanup_free char *holder = read_holder(&at);
        return failure_set(failure, -EBUSY,
                           "its controls were set by %s, whose agent still runs; wait until it "
                           "ends, or end it with 'assay nodes clean --force'",
                           holder);
    }
    run->kept[node] |= strcmp(kind, "snapshot") == 0;
    return append_line(&run->snapshots[node], kind, at, failure);
}

static bool has_snapshot(size_t node, int status, void *context) {
    return status == 0 && ((const struct snapshot_run *)context)->kept[node];
}

/* node_tool.arguments_of: NODE gets the session of its own link. */
static const char *const *snapshot_arguments(size_t node, void *context) {
    struct snapshot_run *run = context;
    const struct transport *stream = agent_link_transport(node_group_link(run->group, node));
    snprintf(run->session, sizeof run->session, "%016" PRIx64, stream ? stream->session : 0);
    const char *const arguments[] = {"--snapshot-controls",       "--label",    run->label,
                                     stream ? "--session" : NULL, run->session, NULL};
    memcpy(run->arguments, arguments, sizeof arguments);
    return run->arguments;
}

int node_controls_keep(struct node_group *group, const char *label, struct text *snapshots,
                       struct failure **ret_failures, struct failure *failure) {
    size_t count = node_group_count(group);
    cleanup_free bool *kept = xcalloc(count + 1, sizeof *kept);
    struct snapshot_run run = {.group = group, .snapshots = snapshots, .kept = kept, .label = label};
    return node_group_run_tool(group,
                               &(struct node_tool){.arguments_of = snapshot_arguments,
                                                   .timeout_ms = TOOL_TIMEOUT_MS,
                                                   .take = read_snapshot_line,
                                                   .is_told = has_snapshot,
                                                   .context = &run},
                               ret_failures, failure);
}

/* ---- changing */

void node_change_init(struct node_change *change) {
    *change = (struct node_change){0};
    text_init(&change->writes, TEXT_MAX);
    text_init(&change->different, TEXT_MAX);
}

void node_change_clear(struct node_change *change) {
    for (size_t i = 0; i < change->count; i++) {
        struct node_setting *setting = &change->settings[i];
        free(setting->control);
        free(setting->asked);
        free(setting->before);
        free(setting->after);
        free(setting->sentence);
    }
    free(change->settings);
    free(change->expectations);
    text_clear(&change->writes);
    text_clear(&change->different);
    free(change->restored);
    free(change->nothing);
    free(change->held);
    node_change_init(change);
}

/* A line "set" of the tool. -EPROTO after NODE_CONTROLS_LIMIT of them. */
static int read_setting(struct node_change *change, char *at, struct failure *failure) {
    if (change->count == NODE_CONTROLS_LIMIT)
        return failure_set(failure, -EPROTO, "the agent reported more than %d settings", NODE_CONTROLS_LIMIT);
    struct node_setting *setting = append_zeroed(&change->settings, &change->count, sizeof *setting);
    setting->control = copy_field(&at);
    setting->asked = copy_field(&at);
    setting->before = copy_field(&at);
    setting->after = copy_field(&at);
    size_t known = text_find(tool_field_next(&at), setting_statuses, SETTING_STATUSES);
    setting->status = known < SETTING_STATUSES ? (enum node_setting_status)known : NODE_SETTING_FAILED;
    setting->sentence = copy_field(&at);
    return 0;
}

/* A line "expect": appends "PATH=VALUE" to the expectations of CHANGE, as a text of GROUP. -EPROTO after
 * EXPECTATIONS_MAX of them. */
static int add_expectation(struct node_group *group, struct node_change *change, const char *path,
                           const char *value, struct failure *failure) {
    if (change->expectation_count == EXPECTATIONS_MAX)
        return failure_set(failure, -EPROTO, "the agent wrote more than %d files", EXPECTATIONS_MAX);
    const char **place = append_zeroed(&change->expectations, &change->expectation_count, sizeof *place);
    cleanup_free char *text = xformat("%s=%s", path, value);
    uint32_t number = text_set_add(&group->texts, text, strlen(text)); /* which may move the array */
    *place = group->texts.texts[number];
    return 0;
}

/* A line "restored": the counts of files, and whose snapshot it was. */
static int read_restored(struct node_change *change, char *at, struct failure *failure) {
    const char *written = tool_field_next(&at), *different = tool_field_next(&at);
    if (!number_parse_uint64(written, strlen(written), &change->files_written) ||
        !number_parse_uint64(different, strlen(different), &change->files_different))
        return failure_set(failure, -EPROTO,
                           "the agent reported '%.32s' files restored and '%.32s' different", written,
                           different);
    change->restored = read_holder(&at);
    return 0;
}

/* A call of node_controls_set() or node_controls_restore(). */
struct change_run {
    struct node_group *group;
    struct node_change *changes; /* one a node */
    size_t asked;                /* controls that were to be set */
};

/* node_tool.is_told of --set-controls: has a line come for every control that was to be set? */
static bool is_set(size_t node, int status, void *context) {
    (void)status; /* the statuses of the settings say more */
    const struct change_run *run = context;
    return run->changes[node].count >= run->asked;
}

/* node_tool.is_told of --restore-controls: do the lines say what was restored, or why nothing was? */
static bool is_restored(size_t node, int status, void *context) {
    const struct node_change *change = &((const struct change_run *)context)->changes[node];
    bool whole = change->files_different == 0 && change->different.length == 0;
    return (change->restored && (status == 0 || !whole)) || change->nothing || change->held;
}

/* node_tool.take of --set-controls and --restore-controls. Lines of other kinds are ignored. */
static int read_change_line(size_t node, const char *kind, char *at, void *context, struct failure *failure) {
    struct change_run *run = context;
    struct node_change *change = &run->changes[node];
    if (strcmp(kind, "set") == 0)
        return read_setting(change, at, failure);
    if (strcmp(kind, "write") == 0)
        return append_line(&change->writes, "", at, failure);
    if (strcmp(kind, "expect") == 0) {
        const char *path = tool_field_next(&at);
        return add_expectation(run->group, change, path, tool_field_next(&at), failure);
    }
    if (strcmp(kind, "target") == 0) {
        change->target_min_hz = number_or_zero(tool_field_next(&at));
        change->target_max_hz = number_or_zero(tool_field_next(&at));
    } else if (strcmp(kind, "restored") == 0 && !change->restored) {
        return read_restored(change, at, failure);
    } else if (strcmp(kind, "different") == 0) {
        return append_line(&change->different, "", at, failure);
    } else if (strcmp(kind, "nothing") == 0 && !change->nothing) {
        change->nothing = copy_field(&at);
    } else if (strcmp(kind, "held") == 0 && !change->held) {
        change->held = read_holder(&at);
    }
    return 0;
}

/* Runs TOOL, of which the caller has set arguments, nodes and is_told, and fills the cleared changes. */
static int run_change(struct node_group *group, struct node_tool *tool, struct change_run *run,
                      struct failure **ret_failures, struct failure *failure) {
    for (size_t i = 0; i < node_group_count(group); i++)
        node_change_clear(&run->changes[i]);
    tool->timeout_ms = TOOL_TIMEOUT_MS;
    tool->take = read_change_line;
    run->group = group;
    tool->context = run;
    return node_group_run_tool(group, tool, ret_failures, failure);
}

int node_controls_set(struct node_group *group, const char *const *assignments, struct node_change *changes,
                      struct failure **ret_failures, struct failure *failure) {
    size_t count = 0;
    while (assignments[count])
        count++;
    cleanup_free const char **arguments = xcalloc(count + 2, sizeof *arguments);
    arguments[0] = "--set-controls";
    memcpy(arguments + 1, assignments, count * sizeof *arguments);
    return run_change(group, &(struct node_tool){.arguments = arguments, .is_told = is_set},
                      &(struct change_run){.changes = changes, .asked = count}, ret_failures, failure);
}

int node_controls_restore(struct node_group *group, const bool *nodes, bool abandoned,
                          struct node_change *changes, struct failure **ret_failures,
                          struct failure *failure) {
    const char *const arguments[] = {"--restore-controls", abandoned ? "--abandoned" : NULL, NULL};
    return run_change(group,
                      &(struct node_tool){.arguments = arguments, .nodes = nodes, .is_told = is_restored},
                      &(struct change_run){.changes = changes}, ret_failures, failure);
}

/* ---- measuring the frequency */

void node_proofs_free(struct node_proof *proofs, size_t count) {
    for (size_t i = 0; proofs && i < count; i++) {
        free(proofs[i].pus);
        free(proofs[i].hz);
        free(proofs[i].source);
    }
    free(proofs);
}

/* node_tool.take of --spin: the frequency of one PU. */
static int read_spin_line(size_t node, const char *kind, char *at, void *context, struct failure *failure) {
    struct node_proof *proof = &((struct node_proof *)context)[node];
    uint64_t pu;
    if (strcmp(kind, "spin") != 0)
        return 0;
    const char *number = tool_field_next(&at), *hz = tool_field_next(&at), *source = tool_field_next(&at);
    if (!number_parse_uint64(number, strlen(number), &pu) || pu >= PUS_MAX || proof->count == PUS_MAX)
        return failure_set(failure, -EPROTO,
                           "the agent reported a frequency of '%.32s', which is not the number of a PU",
                           number);
    size_t speeds = proof->count;
    *(unsigned *)append_zeroed(&proof->pus, &proof->count, sizeof *proof->pus) = (unsigned)pu;
    *(double *)append_zeroed(&proof->hz, &speeds, sizeof *proof->hz) = number_or_zero(hz);
    if (!proof->source)
        proof->source = xstrdup(source);
    return 0;
}

static bool has_frequencies(size_t node, int status, void *context) {
    return status == 0 && ((const struct node_proof *)context)[node].count > 0;
}

int node_controls_prove(struct node_group *group, unsigned milliseconds, struct node_proof **ret,
                        struct failure **ret_failures, struct failure *failure) {
    char number[16];
    snprintf(number, sizeof number, "%u", milliseconds);
    const char *const arguments[] = {"--spin", "--milliseconds", number, NULL};
    size_t count = node_group_count(group);
    struct node_proof *proofs = xcalloc(count + 1, sizeof *proofs);
    int r = node_group_run_tool(group,
                                &(struct node_tool){.arguments = arguments,
                                                    .timeout_ms = milliseconds + TOOL_TIMEOUT_MS,
                                                    .take = read_spin_line,
                                                    .is_told = has_frequencies,
                                                    .context = proofs},
                                ret_failures, failure);
    if (r < 0) {
        node_proofs_free(proofs, count);
        return r;
    }
    *ret = proofs;
    return 0;
}
