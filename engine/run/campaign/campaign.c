#include "engine/run/campaign/campaign.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/secret.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

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

/* Binds `experiment`: a name, a path or a mapping. */
static int bind_experiment(struct campaign *campaign, const struct installation *installation,
                           struct failure *failure) {
    const char *file = campaign->document->file;
    const struct document_node *node = document_get(campaign->document->root, "experiment");
    if (node->kind == DOCUMENT_MAPPING)
        return experiment_from_node(campaign->document, node, campaign->folder, &campaign->experiment,
                                    failure);
    if (node->kind != DOCUMENT_TEXT)
        return failure_input(failure, file, node->line, node->column,
                             "'experiment' is %s, expected a name, a path, or an experiment written in place",
                             document_kind_name(node->kind));
    return experiment_find(node->text, campaign->folder, installation, file, node->line, node->column,
                           &campaign->experiment, failure);
}

/* Sets the experiment's options from the campaign, then from the command line, which wins. */
static int set_options(struct campaign *campaign, const struct campaign_overrides *overrides,
                       struct failure *failure) {
    const char *file = campaign->document->file;
    const struct document_node *node = document_get(campaign->document->root, "options");
    for (size_t i = 0; node && node->kind == DOCUMENT_MAPPING && i < node->count; i++) {
        const char *name = node->keys[i]->text;
        const struct document_node *value = node->items[i], *at = value;
        if (!value->text)
            return failure_input(failure, file, value->line, value->column,
                                 "option '%s' is %s, expected a value", name,
                                 document_kind_name(value->kind));
        if (!experiment_option_value(campaign->experiment, name))
            at = node->keys[i]; /* an unknown name is pointed at, not its value */
        int r = experiment_set_option(campaign->experiment, name, value->text, file, at->line, at->column,
                                      failure);
        if (r < 0)
            return r;
    }
    for (size_t i = 0; i < overrides->option_count; i++) {
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

/* The value of the option NAME that the experiment lists under KEY; NULL and FAILURE: there is no such
 * option. */
static const char *listed_option_value(const struct experiment *experiment, const char *key, const char *name,
                                       struct failure *failure) {
    const char *value = experiment_option_value(experiment, name);
    if (!value)
        failure_input(failure, experiment->file, 0, 0, "'%s' names '%s', expected the name of an option", key,
                      name);
    return value;
}

static char *join_path(const struct campaign *campaign, const char *value) {
    return value[0] == '/' ? xstrdup(value) : file_join(campaign->folder, value);
}

/* The path to which VALUE leads from the campaign's folder; the caller frees. A run's own copy may be hidden
 * (copies.h). NULL: it does not exist, and errno says why. */
static char *find_path(const struct campaign *campaign, const char *value) {
    cleanup_free char *path = join_path(campaign, value),
                      *hidden = xformat("%s/.%s", campaign->folder, value);
    char *real = realpath(path, NULL);
    return real || !campaign->experiment->source.recorded ? real : realpath(hidden, NULL);
}

/* Sets the option NAME, whose value leads to the file or folder REAL, to the path of its copy below the run's
 * folder, which is also its path in the working folder on nodes. REAL is remembered for copying. */
static int replace_option_path(struct experiment *experiment, const char *name, const char *real,
                               struct failure *failure) {
    cleanup_free char *inside = file_is_folder(real) ? xformat("inputs/%s", name)
                                                     : xformat("inputs/%s/%s", name, file_base_name(real));
    bind_texts_add(&experiment->input_paths, real);
    bind_texts_add(&experiment->input_values, experiment_option_value(experiment, name));
    return experiment_set_option(experiment, name, inside, "inputs", 0, 0, failure);
}

/* Binds an option that `inputs` lists: its value must be a file or folder of this machine, which the run
 * copies. */
static int bind_input_option(struct campaign *campaign, const char *name, struct failure *failure) {
    const char *value = listed_option_value(campaign->experiment, "inputs", name, failure);
    if (!value)
        return failure->code;
    cleanup_free char *real = find_path(campaign, value), *path = join_path(campaign, value);
    if (!real)
        return failure_input(failure, campaign->document->file, 0, 0,
                             "option '%s': cannot open '%s': %s; expected a file or a folder", name, path,
                             strerror(errno));
    return replace_option_path(campaign->experiment, name, real, failure);
}

/* Is PATH a folder or a file that something is built from? A program is not, nor is a folder where programs
 * are installed: with bin and without src. */
static bool is_source(const char *path) {
    cleanup_free char *programs = file_join(path, "bin"), *sources = file_join(path, "src");
    return file_is_folder(path) ? file_exists(sources) || !file_exists(programs) : access(path, X_OK) < 0;
}

/* Binds an option that `sources` lists. A source on this machine is copied as an input. Any other value is
 * left as it is: nodes/fetch-sources.c looks for it on the nodes. Refused: a value with a password. */
static int bind_source_option(struct campaign *campaign, const char *name, struct failure *failure) {
    struct experiment *experiment = campaign->experiment;
    const char *value = listed_option_value(experiment, "sources", name, failure);
    if (!value)
        return failure->code;
    if (secret_is_text(value))
        return failure_input(failure, campaign->document->file, 0, 0,
                             "option '%s' has a password or token, which the archive would show; remove it "
                             "and let git's credential helper supply it",
                             name);
    cleanup_free char *real =
        experiment_option_is_default(experiment, name) ? NULL : find_path(campaign, value);
    if (!real || !is_source(real))
        return strncmp(value, "inputs/", strlen("inputs/")) == 0
                   ? failure_input(
                         failure, campaign->document->file, 0, 0,
                         "the archive has no copy of the source '%s', only its hashes in " ARCHIVE_SOURCES
                         "; give the source with --set %s=PATH",
                         name, name)
                   : 0;
    bind_texts_add(&experiment->inputs, name);
    return replace_option_path(experiment, name, real, failure);
}

/* Replaces the experiment's packages and software by those of the campaign, if it has any. */
static int replace_software(struct campaign *campaign, struct failure *failure) {
    struct experiment *experiment = campaign->experiment;
    const struct document *document = campaign->document;
    const struct document_node *packages = document_get(document->root, "packages");
    int r = 0;
    if (packages)
        r = bind_value(
            document, packages,
            &(struct bind_field){.key = "packages", .type = BIND_TEXTS, .expect = package_expectation},
            &experiment->packages, failure);
    if (r < 0 || !software_settings_given(document->root))
        return r;
    software_settings_clear(&experiment->software);
    for (size_t i = 0; r == 0 && i < SOFTWARE_FIELDS; i++) {
        const struct document_node *node = document_get(document->root, software_fields[i].key);
        r = node ? bind_value(document, node, &software_fields[i], &experiment->software, failure) : 0;
    }
    return r < 0 ? r : software_settings_finish(&experiment->software, document, document->root, failure);
}

/* Binds the campaign's `design`, or else the experiment's own. A seed of the command line wins. */
static int bind_design(struct campaign *campaign, const struct campaign_overrides *overrides,
                       struct failure *failure) {
    const struct experiment *experiment = campaign->experiment;
    const struct document *document = campaign->document;
    const struct document_node *node = document_get(document->root, "design");
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
    campaign->design_node = node;
    if (r == 0 && overrides->seed)
        r = design_specification_set_seed(campaign->design, overrides->seed, failure);
    return r;
}

/* Binds the settings. A testbed of the command line, --testbed or --nodes, replaces the campaign's. */
static int bind_settings(struct campaign *campaign, const struct campaign_overrides *overrides,
                         struct failure *failure) {
    cleanup(document_cleanup) struct document *testbed = NULL;
    const char *text = overrides->testbed_text;
    cleanup_free char *here = text ? realpath(".", NULL) : NULL;
    if (text && overrides->node_count > 0)
        return failure_input(
            failure, NULL, 0, 0,
            "--nodes makes the testbed 'hosts', and --testbed names one; expected one of them");
    int r = text ? document_parse_yaml("--testbed", text, strlen(text), &testbed, failure) : 0;
    return r < 0 ? r
                 : settings_bind(campaign,
                                 &(struct testbed_written){.document = testbed,
                                                           .folder = here,
                                                           .nodes = overrides->nodes,
                                                           .node_count = overrides->node_count,
                                                           .choice = overrides->testbed,
                                                           .spares = overrides->spares,
                                                           .spare_count = overrides->spare_count},
                                 failure);
}

/* The folder is a run's, whose campaign was edited: it has a copy of the source, where the campaign's own is
 * gone or was this very folder. */
static bool has_recorded_source(const struct campaign *campaign) {
    const struct experiment_source *source = &campaign->experiment->source;
    cleanup_free char *tar = file_join(campaign->folder, ARCHIVE_SOURCE);
    return strcmp(file_base_name(campaign->path), ARCHIVE_CAMPAIGN) == 0 && source->folder &&
           file_exists(tar) &&
           (!file_is_folder(source->folder) || strcmp(source->folder, campaign->folder) == 0);
}

/* Binds everything that is in the document: settings, experiment, software, options and their files, design.
 */
static int bind_campaign(struct campaign *campaign, const struct installation *installation,
                         const struct campaign_overrides *overrides, struct failure *failure) {
    const struct document *document = campaign->document;
    int r = bind_settings(campaign, overrides, failure);
    if (r == 0)
        r = bind_experiment(campaign, installation, failure);
    if (r == 0)
        r = replace_software(campaign, failure);
    if (r < 0)
        return r;
    struct experiment *experiment = campaign->experiment;
    /* A resolved campaign of a run lies beside the copy of its source, or the commit that it was. */
    cleanup_free char *inputs = file_join(campaign->folder, ARCHIVE_INPUTS);
    if (file_exists(inputs) && (document_get(document->root, "resolved") || has_recorded_source(campaign)))
        experiment->source.recorded = xstrdup(campaign->folder);
    r = experiment_check_source(experiment, failure);
    if (r == 0)
        r = set_options(campaign, overrides, failure);
    for (size_t i = 0; r == 0 && i < experiment->inputs.count; i++)
        r = bind_input_option(campaign, experiment->inputs.items[i], failure);
    for (size_t i = 0; r == 0 && i < experiment->sources.count; i++)
        r = bind_source_option(campaign, experiment->sources.items[i], failure);
    if (r == 0)
        r = experiment_resolve(experiment, failure);
    if (r < 0)
        return r;
    if (campaign->warm_up.load != WARM_UP_AGENT)
        experiment_add_package(experiment, warm_up_load_names[campaign->warm_up.load]);
    if (overrides->redact)
        campaign->redact = REDACT_PEOPLE;
    if (!campaign->name)
        campaign->name = xstrdup(experiment->name);
    if (campaign->testbed.count > 0) { /* a run of its own on each */
        cleanup_free char *name = campaign->name;
        campaign->name = xformat("%s-%zu", name, campaign->testbed.number);
    }
    return bind_design(campaign, overrides, failure);
}

void campaign_cleanup(struct campaign **campaign) {
    campaign_free(*campaign);
}

/* Says of a FAILURE that it may come from what redacted archives (redaction.h) have in place of names: YAML
 * reads "user: [user]" as a list. */
static void explain_redaction(const struct campaign *campaign, struct failure *failure) {
    const char *bytes = campaign->bytes.bytes;
    size_t used = strlen(failure->text);
    if (strstr(bytes, "[user]") || strstr(bytes, "[redacted]"))
        snprintf(failure->text + used, sizeof failure->text - used,
                 "; '[user]' and '[redacted]' stand where a redacted archive leaves out names and addresses; "
                 "extract it, and write yours into campaign.yaml");
}

int campaign_read(const char *path, const struct installation *installation,
                  const struct campaign_overrides *overrides, struct campaign **ret,
                  struct failure *failure) {
    static const struct campaign_overrides no_overrides = {0};
    cleanup(campaign_cleanup) struct campaign *campaign = xcalloc(1, sizeof *campaign);
    text_init(&campaign->bytes, CAMPAIGN_BYTES_MAX);
    overrides = overrides ? overrides : &no_overrides;
    campaign->path = xstrdup(overrides->written ? overrides->written : path);
    int r = file_read(path, &campaign->bytes, failure);
    if (r == 0)
        r = folder_of(path, &campaign->folder, failure);
    if (r == 0)
        r = document_parse_yaml(path, campaign->bytes.bytes, campaign->bytes.length, &campaign->document,
                                failure);
    if (r == 0 && overrides->written) {
        text_reset(&campaign->bytes);
        r = file_read(campaign->path, &campaign->bytes, failure);
    }
    if (r == 0)
        r = bind_campaign(campaign, installation, overrides, failure);
    if (r < 0 && failure)
        explain_redaction(campaign, failure);
    if (r < 0)
        return r;
    *ret = take_pointer(campaign);
    return 0;
}

/* Reads the campaign of the run in FOLDER. With more spares it is read a second time, with the old and the
 * new spares as overrides. */
int campaign_read_recorded(const char *folder, const struct installation *installation,
                           const char *const *more_spares, size_t count, struct campaign **ret,
                           struct failure *failure) {
    cleanup(campaign_cleanup) struct campaign *campaign = NULL;
    cleanup(host_list_clear) struct host_list hosts = {0};
    cleanup(bind_texts_clear) struct bind_texts spares = {0};
    cleanup_free char *path = file_join(folder, ARCHIVE_CAMPAIGN_RESOLVED);
    int r = campaign_read(path, installation, NULL, &campaign, failure);
    for (size_t i = 0; r == 0 && i < count; i++) {
        r = more_spares[i][0] == '@' ? host_list_read(&hosts, more_spares[i] + 1, failure)
                                     : host_list_parse(&hosts, more_spares[i], failure);
        if (r < 0)
            return failure_prefix(failure, "the spares");
    }
    if (r < 0 || hosts.count == 0) {
        *ret = r < 0 ? NULL : take_pointer(campaign);
        return r;
    }
    const struct document_node *written =
        document_get(document_get(campaign->document->root, "testbed"), "spares");
    for (size_t i = 0; written && i < written->count; i++)
        bind_texts_add(&spares, written->items[i]->text);
    for (size_t i = 0; i < hosts.count; i++)
        if (!bind_texts_have(&spares, hosts.names[i]))
            bind_texts_add(&spares, hosts.names[i]);
    struct campaign_overrides overrides = {.spares = (const char *const *)spares.items,
                                           .spare_count = spares.count};
    return campaign_read(path, installation, &overrides, ret, failure);
}

void campaign_free(struct campaign *campaign) {
    if (!campaign)
        return;
    design_specification_free(campaign->design);
    experiment_free(campaign->experiment);
    settings_clear(campaign);
    document_free(campaign->document);
    text_clear(&campaign->bytes);
    free(campaign->folder);
    free(campaign->path);
    free(campaign);
}
