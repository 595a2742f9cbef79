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
    TOOL_TIMEOUT_MS = 120 * 1000, /* taking 500 PUs away, one after the other, takes its time */
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

/* Empty is 0: not known. */
static double number_or_zero(const char *text) {
    double value = 0;
    return number_parse_double(text, strlen(text), &value) && value > 0 ? value : 0;
}

/* Room for one more of SIZE bytes, zeroed, in an array that doubles. */
static void *one_more(void *items, size_t *count, size_t size) {
    void **array = items;
    if ((*count & (*count - 1)) == 0)
        *array = xrealloc(*array, (*count ? 2 * *count : 1) * size);
    return memset((char *)*array + (*count)++ * size, 0, size);
}

/* The next field of a line; the caller frees. */
static char *take_field(char **at) {
    return xstrdup(tool_field_next(at));
}

/* ---- looking */

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

static int take_control(struct node_control_state *state, char *at, struct failure *failure) {
    if (state->count == NODE_CONTROLS_LIMIT)
        return failure_set(failure, -EPROTO, "the agent reported more than %d controls", NODE_CONTROLS_LIMIT);
    struct node_control *control = one_more(&state->controls, &state->count, sizeof *control);
    control->name = take_field(&at);
    size_t known = text_find(tool_field_next(&at), control_statuses, CONTROL_STATUSES);
    control->status = known < CONTROL_STATUSES ? (enum node_control_status)known : NODE_CONTROL_UNKNOWN;
    control->value = take_field(&at);
    control->possible = take_field(&at);
    control->driver = take_field(&at);
    control->why = take_field(&at);
    return 0;
}

/* "session 0123 (label)"; either may be missing. */
static char *holder_words(char **at) {
    const char *session = tool_field_next(at), *label = tool_field_next(at);
    if (!*session)
        return xstrdup(*label ? label : "an agent without a name");
    return xformat("session %s%s%s%s", session, *label ? " (" : "", label, *label ? ")" : "");
}

static int take_state(size_t node, const char *kind, char *at, void *context, struct failure *failure) {
    struct node_control_state *state = &((struct node_control_state *)context)[node];
    if (strcmp(kind, "control") == 0)
        return take_control(state, at, failure);
    if (strcmp(kind, "machine") == 0 && !state->boot_id) {
        state->boot_id = take_field(&at);
        state->driver = take_field(&at);
        state->base_hz = number_or_zero(tool_field_next(&at));
        state->max_hz = number_or_zero(tool_field_next(&at));
    } else if (strcmp(kind, "held") == 0 && !state->holder) {
        state->holder = holder_words(&at);
        state->holder_alive = strcmp(tool_field_next(&at), "alive") == 0;
        const char *since = tool_field_next(&at);
        number_parse_int64(since, strlen(since), &state->holder_since_ns);
    }
    return 0;
}

static bool is_shown(size_t node, int status, void *context) {
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
                                                    .take = take_state,
                                                    .is_told = is_shown,
                                                    .context = states},
                                ret_failures, failure);
    if (r < 0) {
        node_control_states_free(states, count);
        return r;
    }
    *ret = states;
    return 0;
}

/* ---- keeping */

static int append_line(struct text *text, const char *kind, const char *rest, struct failure *failure) {
    int r = text_printf(text, "%s%s%s\n", kind, *kind && rest ? "\t" : "", rest ? rest : "");
    return r == -EFBIG
               ? failure_set(failure, r, "the agent's tool printed more than %zu MiB", text->limit >> 20)
           : r < 0 ? failure_memory(failure)
                   : 0;
}

struct keeping {
    struct node_group *group;
    struct text *snapshots;
    bool *kept; /* one a node */
    const char *label;
    char session[SESSION_SIZE];
    const char *arguments[6];
};

static int take_kept(size_t node, const char *kind, char *at, void *context, struct failure *failure) {
    struct keeping *keeping = context;
    if (strcmp(kind, "held") == 0) {
        cleanup_free char *holder = holder_words(&at);
        return failure_set(failure, -EBUSY,
                           "its controls were set by %s, whose agent still runs; wait until it "
                           "ends, or end it with 'assay nodes clean --force'",
                           holder);
    }
    keeping->kept[node] |= strcmp(kind, "snapshot") == 0;
    return append_line(&keeping->snapshots[node], kind, at, failure);
}

static bool is_kept(size_t node, int status, void *context) {
    return status == 0 && ((const struct keeping *)context)->kept[node];
}

static const char *const *keep_arguments(size_t node, void *context) {
    struct keeping *keeping = context;
    const struct transport *stream = agent_link_transport(node_group_link(keeping->group, node));
    snprintf(keeping->session, sizeof keeping->session, "%016" PRIx64, stream ? stream->session : 0);
    const char *const arguments[] = {"--snapshot-controls",       "--label",        keeping->label,
                                     stream ? "--session" : NULL, keeping->session, NULL};
    memcpy(keeping->arguments, arguments, sizeof arguments);
    return keeping->arguments;
}

int node_controls_keep(struct node_group *group, const char *label, struct text *snapshots,
                       struct failure **ret_failures, struct failure *failure) {
    size_t count = node_group_count(group);
    cleanup_free bool *kept = xcalloc(count + 1, sizeof *kept);
    struct keeping keeping = {.group = group, .snapshots = snapshots, .kept = kept, .label = label};
    return node_group_run_tool(group,
                               &(struct node_tool){.arguments_of = keep_arguments,
                                                   .timeout_ms = TOOL_TIMEOUT_MS,
                                                   .take = take_kept,
                                                   .is_told = is_kept,
                                                   .context = &keeping},
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

static int take_setting(struct node_change *change, char *at, struct failure *failure) {
    if (change->count == NODE_CONTROLS_LIMIT)
        return failure_set(failure, -EPROTO, "the agent reported more than %d settings", NODE_CONTROLS_LIMIT);
    struct node_setting *setting = one_more(&change->settings, &change->count, sizeof *setting);
    setting->control = take_field(&at);
    setting->asked = take_field(&at);
    setting->before = take_field(&at);
    setting->after = take_field(&at);
    size_t known = text_find(tool_field_next(&at), setting_statuses, SETTING_STATUSES);
    setting->status = known < SETTING_STATUSES ? (enum node_setting_status)known : NODE_SETTING_FAILED;
    setting->sentence = take_field(&at);
    return 0;
}

static int expect(struct node_group *group, struct node_change *change, const char *path, const char *value,
                  struct failure *failure) {
    if (change->expectation_count == EXPECTATIONS_MAX)
        return failure_set(failure, -EPROTO, "the agent wrote more than %d files", EXPECTATIONS_MAX);
    const char **place = one_more(&change->expectations, &change->expectation_count, sizeof *place);
    cleanup_free char *text = xformat("%s=%s", path, value);
    uint32_t number = text_set_add(&group->texts, text, strlen(text)); /* which may move the array */
    *place = group->texts.texts[number];
    return 0;
}

static int take_restored(struct node_change *change, char *at, struct failure *failure) {
    const char *written = tool_field_next(&at), *different = tool_field_next(&at);
    if (!number_parse_uint64(written, strlen(written), &change->files_written) ||
        !number_parse_uint64(different, strlen(different), &change->files_different))
        return failure_set(failure, -EPROTO,
                           "the agent reported '%.32s' files restored and '%.32s' different", written,
                           different);
    change->restored = holder_words(&at);
    return 0;
}

struct changing {
    struct node_group *group;
    struct node_change *changes; /* one a node */
    size_t asked;                /* controls that were to be set */
};

static bool is_set(size_t node, int status, void *context) {
    (void)status; /* those of the settings say more */
    const struct changing *changing = context;
    return changing->changes[node].count >= changing->asked;
}

static bool is_restored(size_t node, int status, void *context) {
    const struct node_change *change = &((const struct changing *)context)->changes[node];
    bool whole = change->files_different == 0 && change->different.length == 0;
    return (change->restored && (status == 0 || !whole)) || change->nothing || change->held;
}

static int take_change(size_t node, const char *kind, char *at, void *context, struct failure *failure) {
    struct changing *changing = context;
    struct node_change *change = &changing->changes[node];
    if (strcmp(kind, "set") == 0)
        return take_setting(change, at, failure);
    if (strcmp(kind, "write") == 0)
        return append_line(&change->writes, "", at, failure);
    if (strcmp(kind, "expect") == 0) {
        const char *path = tool_field_next(&at);
        return expect(changing->group, change, path, tool_field_next(&at), failure);
    }
    if (strcmp(kind, "target") == 0) {
        change->target_min_hz = number_or_zero(tool_field_next(&at));
        change->target_max_hz = number_or_zero(tool_field_next(&at));
    } else if (strcmp(kind, "restored") == 0 && !change->restored) {
        return take_restored(change, at, failure);
    } else if (strcmp(kind, "different") == 0) {
        return append_line(&change->different, "", at, failure);
    } else if (strcmp(kind, "nothing") == 0 && !change->nothing) {
        change->nothing = take_field(&at);
    } else if (strcmp(kind, "held") == 0 && !change->held) {
        change->held = holder_words(&at);
    }
    return 0;
}

/* TOOL has the arguments and the nodes; the rest is the same for both changes. */
static int change_all(struct node_group *group, struct node_tool *tool, struct changing *changing,
                      struct failure **ret_failures, struct failure *failure) {
    for (size_t i = 0; i < node_group_count(group); i++)
        node_change_clear(&changing->changes[i]);
    tool->timeout_ms = TOOL_TIMEOUT_MS;
    tool->take = take_change;
    changing->group = group;
    tool->context = changing;
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
    return change_all(group, &(struct node_tool){.arguments = arguments, .is_told = is_set},
                      &(struct changing){.changes = changes, .asked = count}, ret_failures, failure);
}

int node_controls_restore(struct node_group *group, const bool *nodes, bool abandoned,
                          struct node_change *changes, struct failure **ret_failures,
                          struct failure *failure) {
    const char *const arguments[] = {"--restore-controls", abandoned ? "--abandoned" : NULL, NULL};
    return change_all(group,
                      &(struct node_tool){.arguments = arguments, .nodes = nodes, .is_told = is_restored},
                      &(struct changing){.changes = changes}, ret_failures, failure);
}

/* ---- proof */

void node_proofs_free(struct node_proof *proofs, size_t count) {
    for (size_t i = 0; proofs && i < count; i++) {
        free(proofs[i].pus);
        free(proofs[i].hz);
        free(proofs[i].source);
    }
    free(proofs);
}

static int take_spin(size_t node, const char *kind, char *at, void *context, struct failure *failure) {
    struct node_proof *proof = &((struct node_proof *)context)[node];
    uint64_t pu;
    if (strcmp(kind, "spin") != 0)
        return 0;
    const char *number = tool_field_next(&at), *hz = tool_field_next(&at), *source = tool_field_next(&at);
    if (!number_parse_uint64(number, strlen(number), &pu) || pu >= PUS_MAX || proof->count == PUS_MAX)
        return failure_set(failure, -EPROTO, "the agent reported the frequency of a PU '%.32s'", number);
    size_t speeds = proof->count;
    *(unsigned *)one_more(&proof->pus, &proof->count, sizeof *proof->pus) = (unsigned)pu;
    *(double *)one_more(&proof->hz, &speeds, sizeof *proof->hz) = number_or_zero(hz);
    if (!proof->source)
        proof->source = xstrdup(source);
    return 0;
}

static bool is_proved(size_t node, int status, void *context) {
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
                                                    .take = take_spin,
                                                    .is_told = is_proved,
                                                    .context = proofs},
                                ret_failures, failure);
    if (r < 0) {
        node_proofs_free(proofs, count);
        return r;
    }
    *ret = proofs;
    return 0;
}
