#include "engine/run/campaign/settings.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/group.h"
#include "engine/run/campaign/campaign.h"

#include <stdlib.h>
#include <string.h>

/* ---- The fields ------------------------------------------------------------------------------------------
 */

#define QUANTITY(key_, struct_, member, unit, least, most)                                                   \
    BIND_RANGED(key_, BIND_QUANTITY, struct_, member, least, most), .dimension = unit

static const struct bind_word none[] = {{"none", 0}, {NULL, 0}};
static const struct bind_word none_or_steady[] = {{"none", 0}, {"steady", -1}, {NULL, 0}};
static const struct bind_word automatic[] = {{"auto", -1}, {NULL, 0}};

static const char *const rigour_names[] = {
    [CONTROL_ERROR] = "error", [CONTROL_BEST_EFFORT] = "best-effort", NULL};

static const struct bind_field control_fields[] = {
    {.keys = &control_kinds[0].name,
     .keys_stride = sizeof *control_kinds,
     .type = BIND_TEXT,
     .offset = offsetof(struct control_settings, values),
     .expect = control_value_expectation},
    {BIND_ROW("mismatch", BIND_CHOICE, control_settings, mismatch), .choices = rigour_names},
    {BIND_ROW("unavailable", BIND_CHOICE, control_settings, unavailable), .choices = rigour_names},
    {QUANTITY("proof", control_settings, proof_seconds, UNIT_TIME, 0.01, 600), .words = none},
    {QUANTITY("tolerance", control_settings, tolerance, UNIT_RATIO, 1e-4, 1)},
};

const char *const probe_kind_names[] = {[PROBE_FREQUENCY] = "frequency",
                                        [PROBE_TEMPERATURE] = "temperature",
                                        [PROBE_THROTTLE] = "throttle",
                                        [PROBE_ENERGY] = "energy",
                                        [PROBE_POWER] = "power",
                                        [PROBE_LOAD] = "load",
                                        [PROBE_MEMORY] = "memory",
                                        [PROBE_NETWORK] = "network",
                                        [PROBE_KERNEL] = "kernel",
                                        [PROBE_DRIFT] = "drift",
                                        NULL};

#define PERIOD .type = BIND_DURATION, .dimension = UNIT_TIME, .minimum = 0.01, .maximum = 3600, .words = none
static const struct bind_field probe_fields[] = {
    {.key = "period", .offset = offsetof(struct probe_settings, period_ns), .alias = true, PERIOD},
    {.keys = probe_kind_names, .offset = offsetof(struct probe_settings, periods_ns), PERIOD},
};

const char *const warm_up_load_names[] = {
    [WARM_UP_AGENT] = "agent", [WARM_UP_STRESS] = "stress", [WARM_UP_STRESS_NG] = "stress-ng", NULL};

#define WARM_UP(key_, member, unit, least, most) QUANTITY(key_, warm_up_settings, member, unit, least, most)
static const struct bind_field warm_up_fields[] = {
    {WARM_UP("until", seconds, UNIT_TIME, 0.1, 86400), .words = none_or_steady},
    {WARM_UP("time", seconds, UNIT_TIME, 0.1, 86400), .alias = true},
    {BIND_ROW("load", BIND_CHOICE, warm_up_settings, load), .choices = warm_up_load_names},
    {WARM_UP("at-most", at_most_seconds, UNIT_TIME, 1, 86400)},
    {WARM_UP("window", limits.window_seconds, UNIT_TIME, 0.5, 3600)},
    {WARM_UP("temperature-slope", limits.temperature_slope, UNIT_TEMPERATURE, 1e-3, 100)},
    {WARM_UP("temperature-spread", limits.temperature_spread, UNIT_TEMPERATURE, 1e-3, 100)},
    {WARM_UP("frequency-slope", limits.frequency_slope, UNIT_RATIO, 1e-5, 1)},
    {WARM_UP("frequency-spread", limits.frequency_spread, UNIT_RATIO, 1e-5, 1)},
};

const char *const gate_kind_names[] = {[GATE_THROTTLE] = "throttle",
                                       [GATE_FREQUENCY] = "frequency",
                                       [GATE_TEMPERATURE] = "temperature",
                                       [GATE_DRIFT] = "drift",
                                       [GATE_LOAD] = "load",
                                       [GATE_KERNEL] = "kernel",
                                       [GATE_UNWATCHED] = "unwatched",
                                       NULL};
const char *const gate_action_names[] = {[GATE_NONE] = "none", [GATE_FLAG] = "flag", [GATE_REPEAT] = "repeat",
                                         [GATE_DROP] = "drop", [GATE_STOP] = "stop", NULL};

static const struct bind_field gate_fields[] = {
    {BIND_ROW("all", BIND_CHOICE, gate_settings, all), .choices = gate_action_names, .alias = true},
    {.keys = gate_kind_names,
     .type = BIND_CHOICE,
     .offset = offsetof(struct gate_settings, actions),
     .choices = gate_action_names},
    {BIND_RANGED("repeats", BIND_INTEGER, gate_settings, repeats, 1, 1000)},
    {QUANTITY("frequency-tolerance", gate_settings, frequency_tolerance, UNIT_RATIO, 1e-4, 1)},
    {QUANTITY("temperature-band", gate_settings, temperature_band, UNIT_TEMPERATURE, 0.1, 100)},
    {BIND_RANGED("foreign-load", BIND_NUMBER, gate_settings, foreign_load, 1e-3, 1e4)},
};

static const char *const loss_names[] = {
    [NODE_LOSS_ABORT] = "abort", [NODE_LOSS_CONTINUE] = "continue", [NODE_LOSS_REPLACE] = "replace", NULL};

static const struct bind_field loss_fields[] = {
    {BIND_ROW("do", BIND_CHOICE, node_loss_settings, action), .choices = loss_names},
    {BIND_RANGED("at-least", BIND_INTEGER, node_loss_settings, at_least, 1, NODE_GROUP_MAX)},
};

static const struct bind_field walltime_fields[] = {
    {QUANTITY("limit", walltime_settings, limit_seconds, UNIT_TIME, 0.1, WALLTIME_SECONDS_MAX),
     .words = none},
    {QUANTITY("margin", walltime_settings, margin_seconds, UNIT_TIME, 0, 86400), .words = automatic},
    {BIND_ROW("model", BIND_TEXT, walltime_settings, model)},
};

/* A tool would take what begins with a dash for an option. */
static const char *expect_software(const char *key, const char *value) {
    if (strcmp(key, "prefix") == 0)
        return value[0] == '/' ? NULL : "an absolute path on the nodes";
    return value[0] && value[0] != '-' ? NULL : "a name";
}

#define TEXTS(key_, member) BIND_ROW(key_, BIND_TEXTS, software_settings, member), .expect = expect_software
static const struct bind_field spack_fields[] = {
    {TEXTS("specs", kinds[SOFTWARE_SPACK])},
    {TEXTS("environment", kinds[SOFTWARE_SPACK_ENVIRONMENT])},
};
static const struct bind_field container_fields[] = {
    {BIND_ROW("image", BIND_TEXT, software_settings, image), .expect = expect_software},
    {BIND_ROW("command", BIND_TEXTS, software_settings, command)},
};
const struct bind_field software_fields[SOFTWARE_FIELDS] = {
    {TEXTS("modules", kinds[SOFTWARE_MODULES])},
    {.key = "spack", .type = BIND_MAPPING, BIND_FIELDS(spack_fields), .scalar = "specs"},
    {.key = "container", .type = BIND_MAPPING, BIND_FIELDS(container_fields), .scalar = "image"},
    {TEXTS("prefix", kinds[SOFTWARE_PREFIX])},
};
const char *const software_kind_names[SOFTWARE_KINDS] = {
    [SOFTWARE_MODULES] = "modules",
    [SOFTWARE_SPACK] = "spack",
    [SOFTWARE_SPACK_ENVIRONMENT] = "spack-environment",
    [SOFTWARE_PREFIX] = "prefix",
    [SOFTWARE_CONTAINER] = "container",
};

/* Debian Policy 5.6.1; apt would take a dash at the end for "remove". */
const char *package_expectation(const char *key, const char *value) {
    size_t length = strlen(value);
    (void)key;
    return strspn(value, "abcdefghijklmnopqrstuvwxyz0123456789+-.") == length && length >= 2 &&
                   value[length - 1] != '-' && !strchr("+-.", value[0])
               ? NULL
               : "the name of a Debian package";
}

static const char *expect_workspace(const char *key, const char *value) {
    (void)key;
    return value[0] == '/' ? NULL : "an absolute path on the nodes";
}

/* Accepts only characters that are safe in file names. NULL: VALUE is accepted; else what is expected. */
static const char *expect_name(const char *key, const char *value) {
    (void)key;
    size_t length = strspn(value, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.");
    return value[length] || length == 0 || length > 64 || value[0] == '.' || value[0] == '-'
               ? "up to 64 letters, digits, '-', '_' and '.'"
               : NULL;
}

static const char *const provenance_names[] = {[PROVENANCE_FULL] = "full", [PROVENANCE_LEAN] = "lean", NULL};

static const char *const redact_names[] = {[REDACT_NONE] = "none", [REDACT_PEOPLE] = "people", NULL};

uint64_t provenance_source_bytes(enum provenance provenance) {
    return (provenance == PROVENANCE_LEAN ? (uint64_t)4 : (uint64_t)256) << 20;
}

#define LATER(key_) .key = key_, .type = BIND_LATER
static const struct bind_field fields[] = {
    {BIND_ROW("name", BIND_TEXT, campaign, name), .expect = expect_name},
    {BIND_ROW("description", BIND_TEXT, campaign, description)},
    {BIND_ROW("license", BIND_TEXT, campaign, license)},
    {BIND_ROW("author", BIND_TEXT, campaign, author)},
    {BIND_ROW("workspace", BIND_TEXT, campaign, workspace), .expect = expect_workspace},
    {BIND_ROW("provenance", BIND_CHOICE, campaign, provenance), .choices = provenance_names},
    {BIND_ROW("redact", BIND_CHOICE, campaign, redact), .choices = redact_names},
    {LATER("experiment"), .required = true},
    {LATER("testbed")},
    {LATER("options"), .kinds = 1 << DOCUMENT_MAPPING | 1 << DOCUMENT_NULL},
    {LATER("packages")},
    {LATER("modules")},
    {LATER("spack")},
    {LATER("container")},
    {LATER("prefix")},
    {LATER("design")},
    {LATER("resolved"), .kinds = 1 << DOCUMENT_MAPPING},
    {BIND_ROW("controls", BIND_MAPPING, campaign, controls), BIND_FIELDS(control_fields)},
    {BIND_ROW("probes", BIND_MAPPING, campaign, probes), BIND_FIELDS(probe_fields), .scalar = "period"},
    {BIND_ROW("warm-up", BIND_MAPPING, campaign, warm_up), BIND_FIELDS(warm_up_fields), .scalar = "until"},
    {BIND_ROW("gates", BIND_MAPPING, campaign, gates), BIND_FIELDS(gate_fields), .scalar = "all"},
    {BIND_RANGED("stop-after-failures", BIND_INTEGER, campaign, stop_after_failures, 1, 1000000),
     .words = none},
    {BIND_ROW("node-loss", BIND_MAPPING, campaign, node_loss), BIND_FIELDS(loss_fields), .scalar = "do"},
    {BIND_ROW("walltime", BIND_MAPPING, campaign, walltime), BIND_FIELDS(walltime_fields), .scalar = "limit"},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

/* Reads the degree of provenance from the variable ASSAY_PROVENANCE. Unset or empty: the default stays. */
static int take_environment(struct campaign *campaign, struct failure *failure) {
    const char *wish = getenv("ASSAY_PROVENANCE");
    if (!wish || !*wish)
        return 0;
    bool is_lean = strcmp(wish, provenance_names[PROVENANCE_LEAN]) == 0;
    campaign->provenance = is_lean ? PROVENANCE_LEAN : PROVENANCE_FULL;
    if (is_lean || strcmp(wish, provenance_names[PROVENANCE_FULL]) == 0)
        return 0;
    return failure_input(failure, NULL, 0, 0,
                         "the variable ASSAY_PROVENANCE is '%.64s', expected 'full' or 'lean'", wish);
}

/* Sets the defaults of all settings. UNSAID marks those whose default depends on others; finish_...() replace
 * it. */
static void set_defaults(struct campaign *campaign) {
    enum { UNSAID = -1 };
    campaign->controls.proof_seconds = 1;
    campaign->controls.tolerance = 0.02;
    campaign->probes.period_ns = 1000000000;
    for (size_t i = 0; i < PROBE_KINDS; i++)
        campaign->probes.periods_ns[i] = UNSAID;
    campaign->warm_up = (struct warm_up_settings){.at_most_seconds = 900,
                                                  .limits = {.window_seconds = 60,
                                                             .temperature_slope = 1,
                                                             .temperature_spread = 3,
                                                             .frequency_slope = 0.01,
                                                             .frequency_spread = 0.03}};
    campaign->gates = (struct gate_settings){.all = GATE_FLAG,
                                             .repeats = 3,
                                             .frequency_tolerance = 0.05,
                                             .temperature_band = 5,
                                             .foreign_load = 0.5};
    for (size_t i = 0; i < GATE_KINDS; i++)
        campaign->gates.actions[i] = (enum gate_action)UNSAID;
    campaign->stop_after_failures = 3;
    campaign->node_loss = (struct node_loss_settings){(enum node_loss_action)UNSAID, 1};
    campaign->walltime.margin_seconds = -1;
}

/* ---- What goes together ----------------------------------------------------------------------------------
 */

/* The value of INNER within that of KEY, or that of KEY, where there is one. */
static const struct document_node *at(const struct campaign *campaign, const char *key, const char *inner) {
    const struct document_node *node = document_get(campaign->document->root, key),
                               *within = inner ? document_get(node, inner) : NULL;
    return within ? within : node;
}

bool control_settings_any(const struct control_settings *settings) {
    for (size_t i = 0; i < CONTROL_KINDS; i++)
        if (settings->values[i])
            return true;
    return false;
}

bool probe_settings_any(const struct probe_settings *settings) {
    for (size_t i = 0; i < PROBE_KINDS; i++)
        if (settings->periods_ns[i] > 0)
            return true;
    return false;
}

enum probe_kind gate_probe(enum gate_kind gate) {
    static const enum probe_kind probes[GATE_KINDS] = {
        [GATE_THROTTLE] = PROBE_THROTTLE,
        [GATE_FREQUENCY] = PROBE_FREQUENCY,
        [GATE_TEMPERATURE] = PROBE_TEMPERATURE,
        [GATE_DRIFT] = PROBE_DRIFT,
        [GATE_LOAD] = PROBE_LOAD,
        [GATE_KERNEL] = PROBE_KERNEL,
        [GATE_UNWATCHED] = PROBE_KINDS,
    };
    return probes[gate];
}

/* Decides the kind of warm-up. Refused: a steady state that is waited for without frequency or temperature
 * samples, or for less than one window. */
static int finish_warm_up(struct campaign *campaign, struct failure *failure) {
    struct warm_up_settings *settings = &campaign->warm_up;
    const struct document_node *node = document_get(campaign->document->root, "warm-up");
    if (node && node->kind == DOCUMENT_MAPPING && !document_get(node, "time") == !document_get(node, "until"))
        return bind_refuse(campaign->document, at(campaign, "warm-up", NULL), failure,
                           "'warm-up' needs one of 'time' and 'until: steady'");
    settings->kind = settings->seconds == 0  ? WARM_UP_NONE
                     : settings->seconds < 0 ? WARM_UP_STEADY
                                             : WARM_UP_TIME;
    if (settings->kind != WARM_UP_STEADY)
        return 0;
    if (settings->at_most_seconds < settings->limits.window_seconds)
        return bind_refuse(campaign->document,
                           at(campaign, "warm-up", document_get(node, "at-most") ? "at-most" : "window"),
                           failure, "'at-most' is %g s and 'window' is %g s, expected at least one window",
                           settings->at_most_seconds, settings->limits.window_seconds);
    if (campaign->probes.periods_ns[PROBE_FREQUENCY] > 0 ||
        campaign->probes.periods_ns[PROBE_TEMPERATURE] > 0)
        return 0;
    return bind_refuse(
        campaign->document, at(campaign, "warm-up", NULL), failure,
        "'warm-up: steady' needs one of the probes 'temperature' and 'frequency', which are both none");
}

/* Gives each gate its action. A gate without samples at least once a minute would let everything pass: it is
 * refused when the campaign names it, and switched off when it only comes from the default for all gates. */
static int finish_gates(struct campaign *campaign, struct failure *failure) {
    static const double slowest = 60; /* s; a unit waits for the sample after its end */
    struct gate_settings *gates = &campaign->gates;
    const struct document_node *node = document_get(campaign->document->root, "gates");
    for (size_t gate = 0; gate < GATE_KINDS; gate++)
        if ((int)gates->actions[gate] < 0)
            gates->actions[gate] = gates->all;
    if (node && node->kind != DOCUMENT_MAPPING && !probe_settings_any(&campaign->probes) &&
        gates->all > GATE_FLAG)
        return bind_refuse(campaign->document, at(campaign, "gates", NULL), failure,
                           "'gates' is '%s' but 'probes' is 'none'; a gate needs samples: choose "
                           "probes, or 'gates: none'",
                           node->text);
    for (size_t gate = 0; gate < GATE_UNWATCHED; gate++) {
        const char *name = gate_kind_names[gate];
        enum probe_kind probe = gate_probe((enum gate_kind)gate);
        double period = (double)campaign->probes.periods_ns[probe] * 1e-9;
        if ((period > 0 && period <= slowest) || gates->actions[gate] == GATE_NONE)
            continue;
        if (!document_get(node, name))
            gates->actions[gate] = GATE_NONE;
        else if (period > 0)
            return bind_refuse(
                campaign->document, at(campaign, "gates", name), failure,
                "the gate '%s' needs the probe '%s' once a minute at least, and its period is %g s", name,
                probe_kind_names[probe], period);
        else
            return bind_refuse(campaign->document, at(campaign, "gates", name), failure,
                               "the gate '%s' needs the probe '%s', which is off", name,
                               probe_kind_names[probe]);
    }
    return 0;
}

/* Decides what happens when a node is lost, and refuses settings that could not work, before a node is lost
 * at night. REPLACE: the command line has spares. */
static int finish_loss(struct campaign *campaign, bool replace, struct failure *failure) {
    struct node_loss_settings *settings = &campaign->node_loss;
    const struct testbed_choice *testbed = &campaign->testbed;
    size_t nodes = testbed->backend->expected_nodes(testbed->settings), spares = testbed_spare_nodes(testbed);
    const struct document_node *node = document_get(campaign->document->root, "node-loss");
    bool least = document_get(node, "at-least");
    if (replace || ((int)settings->action < 0 && spares > 0))
        settings->action = NODE_LOSS_REPLACE;
    else if ((int)settings->action < 0)
        settings->action = nodes == 1 ? NODE_LOSS_ABORT : NODE_LOSS_CONTINUE;
    if (!node)
        return 0;
    if (settings->action == NODE_LOSS_REPLACE && spares == 0)
        return bind_refuse(campaign->document, at(campaign, "node-loss", "do"), failure,
                           "'node-loss: replace' needs spare nodes; add 'spares' beside the "
                           "'hosts' of 'testbed'");
    if (settings->action != NODE_LOSS_REPLACE && spares > 0)
        return bind_refuse(campaign->document, at(campaign, "node-loss", "do"), failure,
                           "'node-loss: %s' would not use the testbed's %zu spare%s; expected "
                           "'node-loss: replace'",
                           loss_names[settings->action], spares, spares == 1 ? "" : "s");
    if (least && settings->action == NODE_LOSS_ABORT && settings->at_least > 1)
        return bind_refuse(campaign->document, at(campaign, "node-loss", "at-least"), failure,
                           "'at-least' (nodes that must remain) has no meaning when the run "
                           "aborts; expected 'do: continue' or 'do: replace'");
    if (least && nodes > 0 && (size_t)settings->at_least > nodes)
        return bind_refuse(campaign->document, at(campaign, "node-loss", "at-least"), failure,
                           "'at-least' is %lld, and the run has %zu node%s", (long long)settings->at_least,
                           nodes, nodes == 1 ? "" : "s");
    return 0;
}

/* Checks the margin against the limit, and makes the path of `model` absolute; the file must exist. */
static int finish_walltime(struct campaign *campaign, struct failure *failure) {
    struct walltime_settings *settings = &campaign->walltime;
    if (settings->limit_seconds > 0 && settings->margin_seconds >= settings->limit_seconds)
        return bind_refuse(campaign->document, at(campaign, "walltime", "margin"), failure,
                           "'margin' is %g s and 'limit' is %g s, expected less than the limit",
                           settings->margin_seconds, settings->limit_seconds);
    cleanup_free char *written = settings->model;
    if (!written)
        return 0;
    settings->model = written[0] == '/' ? xstrdup(written) : xformat("%s/%s", campaign->folder, written);
    if (file_exists(settings->model) && !file_is_folder(settings->model))
        return 0;
    return bind_refuse(campaign->document, at(campaign, "walltime", "model"), failure,
                       "there is no file '%s' for 'model'", written);
}

/* ---- Software --------------------------------------------------------------------------------------------
 */

bool software_settings_given(const struct document_node *root) {
    for (size_t i = 0; i < SOFTWARE_FIELDS; i++)
        if (document_get(root, software_fields[i].key))
            return true;
    return false;
}

/* Makes the container's argument list: the command, or "apptainer exec", then the image. Without an image it
 * is empty. */
int software_settings_finish(struct software_settings *settings, const struct document *document,
                             const struct document_node *root, struct failure *failure) {
    struct bind_texts *arguments = &settings->kinds[SOFTWARE_CONTAINER];
    bind_texts_clear(arguments);
    if (!settings->image && settings->command.count)
        return bind_refuse(document, document_get(root, "container"), failure,
                           "'container' has a command and no 'image', expected both");
    if (!settings->image)
        return 0;
    for (size_t i = 0; i < settings->command.count; i++)
        bind_texts_add(arguments, settings->command.items[i]);
    if (settings->command.count == 0) {
        bind_texts_add(arguments, "apptainer");
        bind_texts_add(arguments, "exec");
    }
    bind_texts_add(arguments, settings->image);
    return 0;
}

void software_settings_clear(struct software_settings *settings) {
    bind_clear(software_fields, SOFTWARE_FIELDS, settings);
    bind_texts_clear(&settings->kinds[SOFTWARE_CONTAINER]);
}

void software_settings_describe(const struct software_settings *settings, struct text *ret) {
    const char *between = "";
    for (size_t kind = 0; kind < SOFTWARE_KINDS; kind++) {
        const struct bind_texts *texts = &settings->kinds[kind];
        if (texts->count) {
            text_printf(ret, "%s%s", between, software_kind_names[kind]);
            between = "; ";
        }
        for (size_t i = 0; i < texts->count; i++)
            text_printf(ret, " %s", texts->items[i]);
    }
}

/* ---- All of it -------------------------------------------------------------------------------------------
 */

/* Refuses keys of `design` that stand beside it, an easy mistake. */
static int refuse_misplaced(const struct document *document, struct failure *failure) {
    static const char *const keys[] = {"seed", "order", "repetitions", "repeat"};
    const struct document_node *root = document->root;
    for (size_t i = 0; root->kind == DOCUMENT_MAPPING && i < root->count; i++)
        for (size_t k = 0; k < sizeof keys / sizeof *keys; k++)
            if (strcmp(root->keys[i]->text, keys[k]) == 0)
                return failure_input(failure, document->file, root->keys[i]->line, root->keys[i]->column,
                                     "'%s' belongs inside 'design'", keys[k]);
    return 0;
}

/* Binds and checks all settings of CAMPAIGN. A testbed in COMMAND_LINE replaces the campaign's. */
int settings_bind(struct campaign *campaign, const struct testbed_written *command_line,
                  struct failure *failure) {
    const struct document *document = campaign->document;
    struct testbed_written testbed = *command_line;
    set_defaults(campaign);
    int r = take_environment(campaign, failure);
    if (r == 0)
        r = refuse_misplaced(document, failure);
    if (r == 0)
        r = bind_mapping(document, document->root, "campaign", fields, FIELD_COUNT, campaign, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < PROBE_KINDS; i++)
        if (campaign->probes.periods_ns[i] < 0)
            campaign->probes.periods_ns[i] = campaign->probes.period_ns;
    r = finish_gates(campaign, failure);
    if (r == 0)
        r = finish_warm_up(campaign, failure);
    if (r == 0)
        r = finish_walltime(campaign, failure);
    if (testbed.document) {
        testbed.node = testbed.document->root;
    } else {
        testbed.document = document;
        testbed.node = document_get(document->root, "testbed");
        testbed.folder = campaign->folder;
    }
    if (r == 0)
        r = testbed_bind(&testbed, &campaign->testbed, failure);
    return r < 0 ? r : finish_loss(campaign, command_line->spare_count > 0, failure);
}

void settings_clear(struct campaign *campaign) {
    bind_clear(fields, FIELD_COUNT, campaign);
    testbed_choice_clear(&campaign->testbed);
}

void settings_resolve(const struct campaign *campaign, cJSON *object) {
    bind_resolve(fields, FIELD_COUNT, campaign, object);
}

/* Appends a line for each setting, for 'assay run --dry-run'. */
void settings_describe(const struct campaign *campaign, struct text *ret) {
    for (const struct bind_field *field = fields; field < fields + FIELD_COUNT; field++) {
        const char *member = (const char *)campaign + field->offset;
        cleanup(text_clear) struct text words;
        text_init(&words, FAILURE_TEXT_SIZE);
        if (field->type == BIND_MAPPING)
            bind_describe(field->fields, field->field_count, member, &words);
        else if (field->type == BIND_INTEGER)
            bind_describe(field, 1, campaign, &words);
        if (words.length)
            text_printf(ret, "%-12s %s\n", field->type == BIND_MAPPING ? field->key : "", words.bytes);
    }
}
