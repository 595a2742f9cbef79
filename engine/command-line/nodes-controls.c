/* assay nodes controls: what can be set on the nodes, how it stands, who has it, and what can be sampled. */
#include "engine/command-line/nodes.h"

#include "engine/command-line/nodes-answers.h"
#include "engine/command-line/nodes-values.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/controls.h"
#include "engine/remote/nodes/tools.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum {
    KEY_WIDTH = 22,
    COLUMN_MAX = 32,    /* what is longer moves its line's rest to the right */
    PROBES_MAX = 256,   /* lines about probes, of one node */
    PROBE_TIMEOUT = 60, /* s */
    COLUMNS_SHOWN = 8,  /* of a probe; --json has all */
};

/* What a node says of a probe: what it would sample, or why it cannot. */
struct sampled {
    char *name;
    char *columns; /* "NAME:UNIT NAME:UNIT ..."; NULL: it is missing, or a part of it is */
    char *words;   /* where from; or why not */
};

struct node_sampled {
    struct sampled *items;
    size_t count, capacity;
};

/* What is known of all of them. */
struct view {
    const struct nodes *nodes;
    size_t count;
    struct node_control_state *states;
    struct node_sampled *probes; /* NULL: not asked for */
    struct failure *failures;
};

static void clear_view(struct view *view) {
    node_control_states_free(view->states, view->count);
    for (size_t i = 0; view->probes && i < view->count; i++) {
        for (size_t k = 0; k < view->probes[i].count; k++) {
            free(view->probes[i].items[k].name);
            free(view->probes[i].items[k].columns);
            free(view->probes[i].items[k].words);
        }
        free(view->probes[i].items);
    }
    free(view->probes);
    free(view->failures);
}

/* ---- looking */

static int take_probe(size_t node, const char *kind, char *at, void *context, struct failure *failure) {
    struct node_sampled *probes = &((struct node_sampled *)context)[node];
    bool here = strcmp(kind, "probe") == 0;
    if (!here && strcmp(kind, "missing") != 0)
        return 0;
    int r =
        list_reserve(&probes->items, &probes->capacity, probes->count + 1, sizeof *probes->items, PROBES_MAX);
    if (r < 0)
        return r == -EFBIG
                   ? failure_set(failure, -EPROTO, "the agent told of more than %d probes", PROBES_MAX)
                   : failure_memory(failure);
    struct sampled *item = &probes->items[probes->count++];
    item->name = strdup(tool_field_next(&at));
    if (here)
        item->columns = strdup(tool_field_next(&at));
    item->words = strdup(tool_field_next(&at));
    return item->name && (!here || item->columns) && item->words ? 0 : failure_memory(failure);
}

static bool is_listed(size_t node, int status, void *context) {
    return status == 0 && ((const struct node_sampled *)context)[node].count > 0;
}

static int look_at_probes(struct nodes *nodes, struct view *view, struct failure *failure) {
    static const char *const arguments[] = {"--probes", NULL};
    cleanup_free struct failure *failures = NULL;
    view->probes = xcalloc(view->count + 1, sizeof *view->probes);
    int r = node_group_run_tool(nodes->group,
                                &(struct node_tool){.arguments = arguments,
                                                    .timeout_ms = PROBE_TIMEOUT * 1000,
                                                    .take = take_probe,
                                                    .is_told = is_listed,
                                                    .context = view->probes},
                                &failures, failure);
    for (size_t i = 0; r == 0 && i < view->count; i++)
        if (view->failures[i].code == 0)
            view->failures[i] = failures[i];
    return r;
}

static int look(struct nodes *nodes, bool probes, struct view *view, struct failure *failure) {
    view->nodes = nodes;
    view->count = node_group_count(nodes->group);
    int r = node_controls_show(nodes->group, &view->states, &view->failures, failure);
    return r < 0 || !probes ? r : look_at_probes(nodes, view, failure);
}

static bool is_known(const struct view *view, size_t node) {
    return view->failures[node].code == 0;
}

/* ---- for people */

static const char *or_dash(const char *text) {
    return *text ? text : "-";
}

static char *machine_text(const struct node_control_state *state) {
    char base[48] = "", most[48] = "";
    if (state->base_hz > 0)
        snprintf(base, sizeof base, ", base %.6g GHz", state->base_hz / 1e9);
    if (state->max_hz > 0)
        snprintf(most, sizeof most, ", at most %.6g GHz", state->max_hz / 1e9);
    const char *driver = state->driver && *state->driver ? state->driver : "no frequency driver";
    return text_format("%s%s%s", driver, base, most);
}

/* Not since when, which differs from node to node. */
static char *holder_text(const struct node_control_state *state) {
    if (!state->holder)
        return strdup("nobody");
    return text_format("%s, %s", state->holder,
                       state->holder_alive ? "whose agent is there"
                                           : "whose agent is gone: 'assay nodes restore' puts them back");
}

/* How wide a column is, over all nodes. */
static void widen(size_t *width, const char *text) {
    size_t length = strlen(text);
    *width = length > *width && length <= COLUMN_MAX ? length : *width;
}

struct widths {
    size_t present, driver;
};

static struct widths measure(const struct view *view) {
    struct widths widths = {.present = strlen("present"), .driver = strlen("driver")};
    for (size_t i = 0; i < view->count; i++)
        for (size_t k = 0; is_known(view, i) && k < view->states[i].count; k++) {
            widen(&widths.present, view->states[i].controls[k].value);
            widen(&widths.driver, view->states[i].controls[k].driver);
        }
    return widths;
}

static char *control_text(const struct node_control *control, const struct widths *widths) {
    bool available = control->status == NODE_CONTROL_AVAILABLE;
    const char *possible = control->possible;
    return text_format("%-*s  %-*s  %s%s%s%s%s", (int)widths->present, or_dash(control->value),
                       (int)widths->driver, or_dash(control->driver),
                       *possible || !available ? possible : "-", *possible && !available ? "; " : "",
                       available ? "" : node_control_status_name(control->status),
                       available || !*control->why ? "" : ": ", available ? "" : control->why);
}

static int print_machines(const struct view *view, struct failure *failure) {
    cleanup(nodes_table_clear) struct nodes_table table;
    nodes_table_init(&table, view->nodes);
    int r = 0;
    for (size_t i = 0; i < view->count && r == 0; i++) {
        if (!is_known(view, i))
            continue;
        r = nodes_table_add(&table, i, "cpu driver", machine_text(&view->states[i]), failure);
        if (r == 0)
            r = nodes_table_add(&table, i, "held by", holder_text(&view->states[i]), failure);
    }
    return r < 0 ? r : nodes_table_print(&table, KEY_WIDTH, failure);
}

static int print_controls(const struct view *view, struct failure *failure) {
    cleanup(nodes_table_clear) struct nodes_table table;
    nodes_table_init(&table, view->nodes);
    struct widths widths = measure(view);
    int r = 0;
    for (size_t i = 0; i < view->count; i++)
        for (size_t k = 0; r == 0 && is_known(view, i) && k < view->states[i].count; k++) {
            const struct node_control *control = &view->states[i].controls[k];
            r = nodes_table_add(&table, i, control->name, control_text(control, &widths), failure);
        }
    if (r < 0 || table.count == 0)
        return r;
    printf("\n%-*s  %-*s  %-*s  %s\n", KEY_WIDTH, "control", (int)widths.present, "present",
           (int)widths.driver, "driver", "possible");
    return nodes_table_print(&table, KEY_WIDTH, failure);
}

/* "busy foreign interrupts (/proc/stat)": names without their units. */
static char *sampled_text(const struct sampled *sampled) {
    if (!sampled->columns)
        return text_format("missing: %s", sampled->words);
    cleanup_free char *columns = strdup(sampled->columns);
    cleanup(text_clear) struct text text;
    text_init(&text, NODE_TOOL_OUTPUT_MAX);
    size_t count = 0;
    int r = columns ? 0 : -ENOMEM;
    for (char *at = columns, *column; r == 0 && (column = strsep(&at, " "));) {
        column[strcspn(column, ":")] = '\0';
        if (*column && count++ < COLUMNS_SHOWN)
            r = text_printf(&text, "%s ", column);
    }
    if (r == 0 && count > COLUMNS_SHOWN)
        r = text_printf(&text, "and %zu more ", count - COLUMNS_SHOWN);
    if (r == 0)
        r = text_printf(&text, "(%s)", sampled->words);
    return r < 0 ? NULL : text_take(&text);
}

static int print_probes(const struct view *view, struct failure *failure) {
    cleanup(nodes_table_clear) struct nodes_table table;
    nodes_table_init(&table, view->nodes);
    int r = 0;
    for (size_t i = 0; i < view->count; i++)
        for (size_t k = 0; r == 0 && is_known(view, i) && k < view->probes[i].count; k++)
            r = nodes_table_add(&table, i, view->probes[i].items[k].name,
                                sampled_text(&view->probes[i].items[k]), failure);
    if (r < 0 || table.count == 0)
        return r;
    printf("\n%-*s  %s\n", KEY_WIDTH, "probe", "columns (source)");
    return nodes_table_print(&table, KEY_WIDTH, failure);
}

static int print_text(const struct view *view, struct failure *failure) {
    cleanup_free bool *known = xcalloc(view->count + 1, sizeof *known);
    for (size_t i = 0; i < view->count; i++)
        known[i] = is_known(view, i);
    int r = nodes_print_known(view->nodes, known, KEY_WIDTH, failure);
    if (r == 0)
        r = print_machines(view, failure);
    if (r == 0)
        r = print_controls(view, failure);
    if (r == 0 && view->probes)
        r = print_probes(view, failure);
    return r;
}

/* ---- for programs */

/* TEXT's words, parted by blanks. */
static bool add_words(cJSON *object, const char *name, const char *text) {
    cJSON *array = json_add_array(object, name);
    bool added = array;
    for (const char *at = text; added && *(at += strspn(at, " "));) {
        size_t length = strcspn(at, " ");
        added = json_add_bytes(array, NULL, at, length);
        at += length;
    }
    return added;
}

static bool add_control(cJSON *array, const struct node_control *control) {
    cJSON *item = json_add_object(array, NULL);
    return item && json_add_string(item, "name", control->name) &&
           json_add_string(item, "status", node_control_status_name(control->status)) &&
           json_add_string(item, "value", *control->value ? control->value : NULL) &&
           add_words(item, "possible", control->possible) &&
           json_add_string(item, "driver", *control->driver ? control->driver : NULL) &&
           json_add_string(item, "why", *control->why ? control->why : NULL);
}

static bool add_frequency(cJSON *object, const char *name, double hz) {
    return hz > 0 ? json_add_double(object, name, hz) : json_add_string(object, name, NULL);
}

static bool add_holder(cJSON *object, const struct node_control_state *state) {
    if (!state->holder)
        return json_add_string(object, "held", NULL);
    char since[CLOCK_TEXT_SIZE];
    cJSON *held = json_add_object(object, "held");
    return held && json_add_string(held, "by", state->holder) &&
           json_add_boolean(held, "alive", state->holder_alive) &&
           json_add_string(held, "since",
                           state->holder_since_ns > 0 ? clock_format(state->holder_since_ns, since) : NULL);
}

static bool add_state(cJSON *object, const struct node_control_state *state) {
    bool added = json_add_string(object, "boot_id", state->boot_id) &&
                 json_add_string(object, "driver", state->driver) &&
                 add_frequency(object, "base_hertz", state->base_hz) &&
                 add_frequency(object, "maximum_hertz", state->max_hz) && add_holder(object, state);
    cJSON *array = added ? json_add_array(object, "controls") : NULL;
    added = array;
    for (size_t i = 0; i < state->count && added; i++)
        added = add_control(array, &state->controls[i]);
    return added;
}

static bool add_probes(cJSON *object, const struct node_sampled *probes) {
    cJSON *array = json_add_array(object, "probes");
    bool added = array;
    for (size_t i = 0; i < probes->count && added; i++) {
        const struct sampled *sampled = &probes->items[i];
        cJSON *item = json_add_object(array, NULL);
        added = item && json_add_string(item, "name", sampled->name) &&
                (!sampled->columns || add_words(item, "columns", sampled->columns)) &&
                json_add_string(item, sampled->columns ? "source" : "missing", sampled->words);
    }
    return added;
}

static int print_json(const struct view *view, struct failure *failure) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    cJSON *array = object ? json_add_array(object, "nodes") : NULL;
    bool added = array;
    for (size_t i = 0; i < view->count && added; i++) {
        cJSON *item = json_add_object(array, NULL);
        added = item && json_add_string(item, "node", node_group_name(view->nodes->group, i)) &&
                json_add_boolean(item, "known", is_known(view, i));
        if (added && is_known(view, i))
            added =
                add_state(item, &view->states[i]) && (!view->probes || add_probes(item, &view->probes[i]));
        else if (added)
            added = json_add_string(item, "failure", view->failures[i].text);
    }
    return added ? nodes_print_json(object, failure) : failure_memory(failure);
}

/* ---- the action */

static int show_all(struct nodes *nodes, bool probes, bool json, struct failure *failure) {
    cleanup(clear_view) struct view view = {0};
    nodes_doing(nodes, "looking");
    int r = look(nodes, probes, &view, failure);
    nodes_doing(nodes, NULL);
    if (r == 0)
        r = json ? print_json(&view, failure) : print_text(&view, failure);
    return r < 0 ? r : nodes_failures(nodes, view.failures, "looking", failure);
}

int nodes_controls(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(nodes_clear) struct nodes nodes = {0};
    int r = nodes_open(&nodes, arguments, NODES_LEAVE_CONTROLS, failure);
    if (r == 0)
        r = show_all(&nodes, verb_switch(arguments, "--probes"), verb_switch(arguments, "--json"), failure);
    return nodes_close(&nodes, r, failure);
}
