#include "engine/run/campaign/campaign.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

struct written {
    char *name, *description, *license, *author, *workspace;
    const struct document_node *experiment, *testbed, *options, *design, *controls, *probes, *warm_up, *stop,
        *gates, *node_loss, *walltime, *packages;
    struct software_written software;
};

static const struct bind_field fields[] = {
    {.key = "experiment",
     .type = BIND_NODE,
     .offset = offsetof(struct written, experiment),
     .required = true},
    {.key = "name", .type = BIND_TEXT, .offset = offsetof(struct written, name)},
    {.key = "description", .type = BIND_TEXT, .offset = offsetof(struct written, description)},
    {.key = "testbed", .type = BIND_NODE, .offset = offsetof(struct written, testbed)},
    {.key = "options",
     .type = BIND_NODE,
     .offset = offsetof(struct written, options),
     .kinds = 1 << DOCUMENT_MAPPING | 1 << DOCUMENT_NULL},
    {.key = "packages", .type = BIND_NODE, .offset = offsetof(struct written, packages)},
    SOFTWARE_FIELDS(struct written, software),
    {.key = "design", .type = BIND_NODE, .offset = offsetof(struct written, design)},
    {.key = "controls", .type = BIND_NODE, .offset = offsetof(struct written, controls)},
    {.key = "probes", .type = BIND_NODE, .offset = offsetof(struct written, probes)},
    {.key = "warm-up", .type = BIND_NODE, .offset = offsetof(struct written, warm_up)},
    {.key = "gates", .type = BIND_NODE, .offset = offsetof(struct written, gates)},
    {.key = "node-loss", .type = BIND_NODE, .offset = offsetof(struct written, node_loss)},
    {.key = "walltime", .type = BIND_NODE, .offset = offsetof(struct written, walltime)},
    {.key = "stop-after-failures", .type = BIND_NODE, .offset = offsetof(struct written, stop)},
    {.key = "license", .type = BIND_TEXT, .offset = offsetof(struct written, license)},
    {.key = "author", .type = BIND_TEXT, .offset = offsetof(struct written, author)},
    {.key = "workspace", .type = BIND_TEXT, .offset = offsetof(struct written, workspace)},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

/* The absolute folder that holds PATH. */
static int folder_of(const char *path, char **ret, struct failure *failure) {
    cleanup_free char *absolute = realpath(path, NULL);
    if (!absolute)
        return failure_set_kind(failure, FAILURE_INPUT, -errno, "cannot open '%s': %s", path,
                                strerror(errno));
    char *slash = strrchr(absolute, '/');
    *(slash == absolute ? slash + 1 : slash) = '\0';
    *ret = take_pointer(absolute);
    return 0;
}

static int bind_experiment(struct campaign *campaign, const struct document_node *node,
                           const struct installation *installation,
                           const struct campaign_overrides *overrides, struct failure *failure) {
    const char *file = campaign->document->file;
    if (node->kind == DOCUMENT_MAPPING)
        return experiment_from_node(campaign->document, node, campaign->folder, &campaign->experiment,
                                    failure);
    if (node->kind != DOCUMENT_TEXT)
        return failure_input(failure, file, node->line, node->column,
                             "'experiment' is %s, expected a name, a path, or an experiment written in place",
                             document_kind_name(node->kind));
    const char *name = overrides && overrides->experiment_folder ? overrides->experiment_folder : node->text;
    return experiment_find(name, campaign->folder, installation, file, node->line, node->column,
                           &campaign->experiment, failure);
}

static int check_source(struct experiment *experiment, const struct campaign_overrides *overrides,
                        struct failure *failure) {
    const char *recorded = overrides ? overrides->recorded : NULL;
    if (recorded && !(experiment->source.recorded = strdup(recorded)))
        return failure_memory(failure);
    return experiment_check_source(experiment, failure);
}

static int set_options(struct campaign *campaign, const struct document_node *node,
                       const struct campaign_overrides *overrides, struct failure *failure) {
    const char *file = campaign->document->file;
    for (size_t i = 0; node && node->kind == DOCUMENT_MAPPING && i < node->count; i++) {
        const struct document_node *value = node->items[i];
        if (!value->text)
            return failure_input(failure, file, value->line, value->column,
                                 "option '%s' is %s, expected a value", node->keys[i]->text,
                                 document_kind_name(value->kind));
        int r = experiment_set_option(
            campaign->experiment, node->keys[i]->text, value->text, file,
            /* an unknown name is pointed at, not its value */
            experiment_option_value(campaign->experiment, node->keys[i]->text) ? value->line
                                                                               : node->keys[i]->line,
            experiment_option_value(campaign->experiment, node->keys[i]->text) ? value->column
                                                                               : node->keys[i]->column,
            failure);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; overrides && i < overrides->option_count; i++) {
        const char *setting = overrides->options[i], *equals = strchr(setting, '=');
        if (!equals || equals == setting)
            return failure_input(failure, NULL, 0, 0, "'%s' is not a setting, expected NAME=VALUE", setting);
        cleanup_free char *name = xstrndup(setting, (size_t)(equals - setting));
        int r = experiment_set_option(campaign->experiment, name, equals + 1, "--set", 0, 0, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

static int bind_design(struct campaign *campaign, const struct document_node *node,
                       const struct campaign_overrides *overrides, struct failure *failure) {
    const struct experiment *experiment = campaign->experiment;
    const struct document *document = campaign->document;
    const char *folder = campaign->folder;
    if (!node) {
        node = experiment->design_node;
        document = experiment->source_document;
        folder = experiment->folder ? experiment->folder : campaign->folder;
    }
    if (!node && experiment->factor_count > 0)
        return failure_input(
            failure, campaign->document->file, 1, 1,
            "no 'design', and experiment '%s' has none of its own; expected a CSV file or a generator",
            experiment->name);
    int r = design_specification_from_node(document, node, folder, &campaign->design, failure);
    if (r == 0 && overrides && overrides->seed)
        r = design_specification_set_seed(campaign->design, overrides->seed, failure);
    if (r == 0 && overrides && overrides->table)
        r = design_specification_set_table(campaign->design, overrides->table);
    return r;
}

/* What design: takes is easily written beside it. */
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

static int bind_testbed(struct campaign *campaign, const struct document_node *node,
                        const struct campaign_overrides *overrides, struct failure *failure) {
    struct testbed_written written = {
        .document = campaign->document, .node = node, .folder = campaign->folder};
    if (overrides) {
        written.nodes = overrides->nodes;
        written.node_count = overrides->node_count;
        written.spares = overrides->spares;
        written.spare_count = overrides->spare_count;
    }
    return testbed_bind(&written, &campaign->testbed, failure);
}

/* A gate without samples would let everything pass. What was asked for by name is refused; of "all of them"
 * it leaves those that can be. */
static int check_gates(struct campaign *campaign, const struct document_node *node, struct failure *failure) {
    static const double slowest = 60; /* s; a unit waits for the sample after its end */
    const char *file = campaign->document->file;
    if (node && node->kind != DOCUMENT_MAPPING && !probe_settings_any(&campaign->probes) &&
        campaign->gates.actions[GATE_UNWATCHED] > GATE_FLAG)
        return failure_input(failure, file, node->line, node->column,
                             "'gates' is '%s', and nothing is sampled: 'probes' is none", node->text);
    for (unsigned gate = 0; gate < GATE_UNWATCHED; gate++) {
        enum probe_kind probe = gate_probe((enum gate_kind)gate);
        double period = (double)campaign->probes.periods_ns[probe] * 1e-9;
        const struct document_node *at = document_get(node, gate_kind_names[gate]);
        if ((period > 0 && period <= slowest) || campaign->gates.actions[gate] == GATE_NONE)
            continue;
        if (at && period > 0)
            return failure_input(
                failure, file, at->line, at->column,
                "the gate '%s' needs the probe '%s' once a minute at least, and its period is "
                "%g s",
                gate_kind_names[gate], probe_kind_names[probe], period);
        if (at)
            return failure_input(failure, file, at->line, at->column,
                                 "the gate '%s' needs the probe '%s', which is none", gate_kind_names[gate],
                                 probe_kind_names[probe]);
        campaign->gates.actions[gate] = GATE_NONE;
    }
    return 0;
}

static int check_warm_up(const struct campaign *campaign, const struct document_node *node,
                         struct failure *failure) {
    const struct probe_settings *probes = &campaign->probes;
    if (campaign->warm_up.kind != WARM_UP_STEADY || probes->periods_ns[PROBE_FREQUENCY] > 0 ||
        probes->periods_ns[PROBE_TEMPERATURE] > 0)
        return 0;
    return failure_input(
        failure, campaign->document->file, node->line, node->column,
        "what is steady is told by the probes 'temperature' and 'frequency', which are none");
}

static int bind_stop(struct campaign *campaign, const struct document_node *node, struct failure *failure) {
    enum { DEFAULT = 3, MOST = 1000000 };
    campaign->stop_after_failures = DEFAULT;
    if (!node || node->kind == DOCUMENT_NULL)
        return 0;
    if (node->kind == DOCUMENT_TEXT && strcmp(node->text, "none") == 0) {
        campaign->stop_after_failures = 0;
        return 0;
    }
    if (node->kind == DOCUMENT_NUMBER &&
        number_parse_int64(node->text, strlen(node->text), &campaign->stop_after_failures) &&
        campaign->stop_after_failures >= 1 && campaign->stop_after_failures <= MOST)
        return 0;
    return failure_input(
        failure, campaign->document->file, node->line, node->column,
        "'stop-after-failures' is %s%.64s, expected how many units in a row may fail, from 1 to %d, or none",
        node->text ? "" : document_kind_name(node->kind), node->text ? node->text : "", MOST);
}

/* How the nodes are set, watched and warmed up. */
static int bind_state(struct campaign *campaign, const struct written *written, struct failure *failure) {
    const struct document *document = campaign->document;
    int r = control_settings_bind(document, written->controls, &campaign->controls, failure);
    if (r == 0)
        r = probe_settings_bind(document, written->probes, &campaign->probes, failure);
    if (r == 0)
        r = warm_up_settings_bind(document, written->warm_up, &campaign->warm_up, failure);
    if (r == 0 && campaign->warm_up.load != WARM_UP_AGENT)
        r = experiment_add_package(campaign->experiment, warm_up_load_names[campaign->warm_up.load], failure);
    if (r == 0)
        r = gate_settings_bind(document, written->gates, &campaign->gates, failure);
    if (r == 0)
        r = bind_stop(campaign, written->stop, failure);
    if (r == 0)
        r = check_gates(campaign, written->gates, failure);
    if (r == 0)
        r = check_warm_up(campaign, written->warm_up, failure);
    return r;
}

static int bind(struct campaign *campaign, struct written *written, const struct installation *installation,
                const struct campaign_overrides *overrides, struct failure *failure) {
    const struct document *document = campaign->document;
    int r = refuse_misplaced(document, failure);
    if (r == 0)
        r = bind_mapping(document, document->root, "campaign", fields, FIELD_COUNT, written, failure);
    if (r == 0)
        r = bind_experiment(campaign, written->experiment, installation, overrides, failure);
    if (r == 0)
        r = software_settings_bind(document, &written->software, &campaign->experiment->software, failure);
    if (r == 0)
        r = experiment_bind_packages(campaign->experiment, document, written->packages, failure);
    if (r == 0)
        r = check_source(campaign->experiment, overrides, failure);
    if (r == 0)
        r = set_options(campaign, written->options, overrides, failure);
    if (r == 0)
        r = experiment_resolve(campaign->experiment, failure);
    if (r == 0)
        r = bind_design(campaign, written->design, overrides, failure);
    if (r == 0)
        r = bind_state(campaign, written, failure);
    if (r == 0)
        r = walltime_settings_bind(document, written->walltime, campaign->folder, &campaign->walltime,
                                   failure);
    if (r < 0)
        return r;
    campaign->name = written->name ? take_pointer(written->name) : strdup(campaign->experiment->name);
    campaign->description = take_pointer(written->description);
    campaign->license = take_pointer(written->license);
    campaign->author = take_pointer(written->author);
    campaign->workspace = take_pointer(written->workspace);
    if (campaign->workspace && campaign->workspace[0] != '/') {
        const struct document_node *at = document_get(document->root, "workspace");
        return failure_input(failure, document->file, at->line, at->column,
                             "the workspace '%s' is not an absolute path on the nodes", campaign->workspace);
    }
    if (!campaign->name)
        return failure_memory(failure);
    /* The name becomes part of file names. */
    if (strspn(campaign->name, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_.") !=
            strlen(campaign->name) ||
        !campaign->name[0] || campaign->name[0] == '.' || campaign->name[0] == '-' ||
        strlen(campaign->name) > 64) {
        const struct document_node *at = document_get(document->root, "name");
        return failure_input(
            failure, document->file, at ? at->line : 1, at ? at->column : 1,
            "'%s' cannot name a campaign, expected up to 64 letters, digits, '-', '_' and '.'",
            campaign->name);
    }
    r = bind_testbed(campaign, written->testbed, overrides, failure);
    return r < 0 ? r
                 : node_loss_settings_bind(document, written->node_loss, &campaign->testbed,
                                           overrides && overrides->spare_count > 0, &campaign->node_loss,
                                           failure);
}

void campaign_cleanup(struct campaign **campaign) {
    campaign_free(*campaign);
}

int campaign_read(const char *path, const struct installation *installation,
                  const struct campaign_overrides *overrides, struct campaign **ret,
                  struct failure *failure) {
    cleanup(campaign_cleanup) struct campaign *campaign = calloc(1, sizeof *campaign);
    if (!campaign)
        return failure_memory(failure);
    text_init(&campaign->bytes, CAMPAIGN_BYTES_MOST);
    int r = 0;
    if (!overrides || !overrides->folder)
        r = folder_of(path, &campaign->folder, failure);
    else if (!(campaign->folder = strdup(overrides->folder)))
        r = failure_memory(failure);
    if (r == 0)
        r = file_read(path, &campaign->bytes, failure);
    if (r == 0)
        r = document_parse_yaml(path, campaign->bytes.bytes, campaign->bytes.length, &campaign->document,
                                failure);
    if (r < 0)
        return r;
    struct written written = {0};
    r = bind(campaign, &written, installation, overrides, failure);
    bind_clear(fields, FIELD_COUNT, &written);
    if (r < 0)
        return r;
    *ret = take_pointer(campaign);
    return 0;
}

void campaign_free(struct campaign *campaign) {
    if (!campaign)
        return;
    design_specification_free(campaign->design);
    experiment_free(campaign->experiment);
    document_free(campaign->document);
    text_clear(&campaign->bytes);
    free(campaign->folder);
    free(campaign->name);
    free(campaign->description);
    free(campaign->license);
    free(campaign->author);
    testbed_choice_clear(&campaign->testbed);
    free(campaign->workspace);
    control_settings_clear(&campaign->controls);
    walltime_settings_clear(&campaign->walltime);
    free(campaign);
}
