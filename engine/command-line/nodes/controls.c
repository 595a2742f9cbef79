/* assay nodes controls: what can be set on the nodes, how it stands, who has it, and what can be sampled. */
#include "engine/command-line/nodes/nodes.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/controls.h"
#include "engine/remote/nodes/tools.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PROBES_MAX = 256,   /* lines about probes, of one node */
    PROBE_TIMEOUT = 60, /* s */
    COLUMNS_SHOWN = 8,  /* of a probe; --json has all */
};

/* ---- controls */

static void report_machine(struct report_section *to, const struct node_control_state *state) {
    const char *driver = state->driver && *state->driver ? state->driver : "no frequency driver";
    cleanup_free char *base = xformat(", base %.6g GHz", state->base_hz / 1e9);
    cleanup_free char *most = xformat(", at most %.6g GHz", state->max_hz / 1e9);
    cleanup_free char *line =
        xformat("%s%s%s", driver, state->base_hz > 0 ? base : "", state->max_hz > 0 ? most : "");
    report_text(to, NULL, "cpu driver", line, false);
    report_text(to, "boot_id", NULL, state->boot_id, true);
    report_text(to, "driver", NULL, state->driver, true);
    report_number(to, "base_hertz", NULL, state->base_hz > 0 ? state->base_hz : NAN, "Hz", 0, true);
    report_number(to, "maximum_hertz", NULL, state->max_hz > 0 ? state->max_hz : NAN, "Hz", 0, true);
}

/* Adds who has set controls on the node. The time is only in JSON: it differs from node to node, and people
 * see equal nodes as one. */
static void report_holder(struct report_section *to, const struct node_control_state *state) {
    if (!state->holder) {
        report_text(to, NULL, "held by", "nobody", false);
        report_text(to, "held", NULL, NULL, true);
        return;
    }
    char since[CLOCK_TEXT_SIZE];
    cleanup_free char *line =
        xformat("%s, %s", state->holder,
                state->holder_alive ? "whose agent is there"
                                    : "whose agent is gone: 'assay nodes restore' puts them back");
    report_text(to, NULL, "held by", line, false);
    struct report_section *held = report_section(to, "held", NULL, true);
    report_text(held, "by", NULL, state->holder, true);
    report_boolean(held, "alive", NULL, state->holder_alive, true);
    report_text(held, "since", NULL,
                state->holder_since_ns > 0 ? clock_format(state->holder_since_ns, since) : NULL, true);
}

static const char *or_null(const char *text) {
    return *text ? text : NULL;
}

/* Adds the table of the node's controls: present value, possible values, or why it cannot be set. */
static void report_controls(struct report_section *to, const struct node_control_state *state) {
    static const struct column columns[] = {
        {.name = "name", .label = "control"},
        {.name = "status", .detail = true},
        {.name = "value", .label = "present"},
        {.name = "possible", .detail = true, .words = true},
        {.name = "driver"},
        {.label = "possible"},
        {.name = "why", .detail = true},
    };
    struct report_table *table = report_table(to, "controls", "", columns, sizeof columns / sizeof *columns);
    for (size_t i = 0; i < state->count; i++) {
        const struct node_control *control = &state->controls[i];
        const char *status = node_control_status_name(control->status), *possible = control->possible;
        cleanup_free char *refusal =
            xformat("%s%s%s%s", *possible ? "; " : "", status, *control->why ? ": " : "", control->why);
        bool is_available = control->status == NODE_CONTROL_AVAILABLE;
        cleanup_free char *words = xformat("%s%s", possible, is_available ? "" : refusal);
        const char *const cells[] = {control->name,
                                     status,
                                     or_null(control->value),
                                     possible,
                                     or_null(control->driver),
                                     or_null(words),
                                     or_null(control->why)};
        for (size_t k = 0; k < sizeof cells / sizeof *cells; k++)
            report_cell_text(table, cells[k]);
    }
}

/* ---- probes: what each would sample, or why it cannot */

struct probes {
    struct report_table *table;
    size_t count;
};

/* "busy foreign interrupts (/proc/stat)": COLUMNS, "NAME:UNIT NAME:UNIT ...", without units. The caller
 * frees. */
static char *sampled_text(const char *columns, const char *source) {
    struct text text;
    text_init(&text, NODE_TOOL_OUTPUT_MAX);
    size_t count = 0;
    for (const char *at = columns; *(at += strspn(at, " ")); at += strcspn(at, " "))
        if (*at != ':' && count++ < COLUMNS_SHOWN)
            text_printf(&text, "%.*s ", (int)strcspn(at, ": "), at);
    if (count > COLUMNS_SHOWN)
        text_printf(&text, "and %zu more ", count - COLUMNS_SHOWN);
    text_printf(&text, "(%s)", source);
    return text_take(&text);
}

/* Called with a line of the agent's list of probes: adds a row to the node's table. */
static int on_listed_probe(size_t node, const char *kind, char *at, void *context, struct failure *failure) {
    struct probes *probes = &((struct probes *)context)[node];
    bool is_here = strcmp(kind, "probe") == 0;
    if (!is_here && strcmp(kind, "missing") != 0)
        return 0;
    if (probes->count++ == PROBES_MAX)
        return failure_set(failure, -EPROTO, "the agent lists more than %d probes", PROBES_MAX);
    const char *name = tool_field_next(&at), *columns = is_here ? tool_field_next(&at) : NULL;
    const char *words = tool_field_next(&at);
    cleanup_free char *line = is_here ? sampled_text(columns, words) : xformat("missing: %s", words);
    report_cell_text(probes->table, name);
    report_cell_text(probes->table, line);
    for (int i = 0; i < 3; i++) {
        const char *values[] = {columns, is_here ? words : NULL, is_here ? NULL : words};
        if (values[i])
            report_cell_text(probes->table, values[i]);
        else
            report_cell_none(probes->table);
    }
    return 0;
}

static bool is_listed(size_t node, int status, void *context) {
    return status == 0 && ((const struct probes *)context)[node].count > 0;
}

/* Adds each node's table of probes, which the agent lists. */
static int report_probes(struct nodes *nodes, struct failure *failure) {
    static const struct column columns[] = {
        {.name = "name", .label = "probe"},
        {.label = "columns (source)"},
        {.name = "columns", .detail = true, .words = true},
        {.name = "source", .detail = true},
        {.name = "missing", .detail = true},
    };
    static const char *const arguments[] = {"--probes", NULL};
    size_t count = node_group_count(nodes->group);
    cleanup_free struct probes *probes = xcalloc(count + 1, sizeof *probes);
    cleanup_free bool *known = xcalloc(count + 1, sizeof *known);
    for (size_t i = 0; i < count; i++) {
        known[i] = nodes->failures[i].code == 0;
        if (known[i])
            probes[i].table = report_table(nodes->sections[i], "probes", "", columns, 5);
    }
    cleanup_free struct failure *failures = NULL;
    int r = node_group_run_tool(nodes->group,
                                &(struct node_tool){.arguments = arguments,
                                                    .nodes = known,
                                                    .timeout_ms = PROBE_TIMEOUT * 1000,
                                                    .take = on_listed_probe,
                                                    .is_told = is_listed,
                                                    .context = probes},
                                &failures, failure);
    nodes_add_failures(nodes, failures);
    return r;
}

int nodes_controls(struct nodes *nodes, const struct verb_arguments *arguments, struct failure *failure) {
    size_t count = node_group_count(nodes->group);
    struct node_control_state *states = NULL;
    int r = node_controls_show(nodes->group, &states, &nodes->failures, failure);
    if (r < 0)
        return r;
    nodes_report_known(nodes);
    for (size_t i = 0; i < count; i++) {
        if (nodes->failures[i].code < 0)
            continue;
        report_machine(nodes->sections[i], &states[i]);
        report_holder(nodes->sections[i], &states[i]);
        report_controls(nodes->sections[i], &states[i]);
    }
    node_control_states_free(states, count);
    return verb_switch(arguments, "--probes") ? report_probes(nodes, failure) : 0;
}
