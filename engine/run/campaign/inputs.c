#include "engine/run/campaign/inputs.h"

#include "archive-format/layout.h"
#include "engine/documents/document.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/source-files.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

/* ---- The file --------------------------------------------------------------------------------------------
 */

static const struct bind_field file_fields[] = {
    {BIND_ROW("path", BIND_TEXT, inputs_file, path)},
    {BIND_ROW("sha256", BIND_TEXT, inputs_file, sha256), .required = true},
};

static const struct bind_field fields[] = {
    {BIND_ROW("campaign", BIND_MAPPING, inputs, campaign), BIND_FIELDS(file_fields), .required = true},
    {BIND_ROW("experiment", BIND_TEXT, inputs, experiment)},
    {BIND_ROW("source", BIND_MAPPING, inputs, source), BIND_FIELDS(file_fields)},
    {BIND_ROW("originals", BIND_TEXTS, inputs, originals)},
    {BIND_ROW("seed", BIND_TEXT, inputs, seed), .required = true},
    {BIND_ROW("facts", BIND_MAPPING, inputs, facts), BIND_FIELDS(plan_fact_fields)},
    {BIND_ROW("table_sha256", BIND_TEXT, inputs, table_sha256), .required = true},
    {BIND_ROW("order_sha256", BIND_TEXT, inputs, order_sha256), .required = true},
    {BIND_ROW("set", BIND_TEXTS, inputs, settings)},
    {BIND_ROW("nodes", BIND_TEXTS, inputs, nodes)},
    {BIND_ROW("testbed", BIND_TEXT, inputs, testbed)},
    {BIND_ROW("again", BIND_TEXT, inputs, again)},
    {BIND_ROW("executables", BIND_TEXTS, inputs, executables)},
    {BIND_ROW("left_out", BIND_TEXTS, inputs, left_out)},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static char *path_in(const struct inputs *inputs, const char *name) {
    return xformat("%s/%s", inputs->run_folder, name);
}

static int save(const struct inputs *inputs, struct failure *failure) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    cleanup_free char *path = path_in(inputs, ARCHIVE_INPUTS);
    bind_resolve(fields, FIELD_COUNT, inputs, object);
    return json_write_file(path, object, failure);
}

int inputs_read(const char *run_folder, struct inputs *ret, struct failure *failure) {
    cleanup(inputs_clear) struct inputs inputs = {.run_folder = realpath(run_folder, NULL)};
    cleanup(document_cleanup) struct document *document = NULL;
    if (!inputs.run_folder)
        return failure_set_kind(failure, FAILURE_INPUT, -errno, "cannot open '%s': %s", run_folder,
                                strerror(errno));
    cleanup_free char *path = path_in(&inputs, ARCHIVE_INPUTS);
    if (!file_exists(path))
        return failure_input(failure, run_folder, 0, 0,
                             "this run cannot be resumed: it ended before inputs.json was written; "
                             "run the campaign again");
    int r = document_read_json(path, &document, failure);
    if (r == 0)
        r = bind_mapping(document, document->root, "inputs.json", fields, FIELD_COUNT, &inputs, failure);
    if (r < 0)
        return r;
    inputs.facts.known = inputs.facts.nodes > 0 && inputs.facts.cores > 0 && inputs.facts.memory > 0;
    *ret = inputs;
    inputs = (struct inputs){0};
    return 0;
}

void inputs_clear(struct inputs *inputs) {
    bind_clear(fields, FIELD_COUNT, inputs);
    free(inputs->run_folder);
    *inputs = (struct inputs){0};
}

/* ---- Making it -------------------------------------------------------------------------------------------
 */

/* Files of the experiment are named as they are there, those of inputs with that folder. */
static const char *const copy_folders[] = {ARCHIVE_EXPERIMENT, ARCHIVE_INPUT_FILES};
enum { COPY_FOLDERS = sizeof copy_folders / sizeof *copy_folders };

static char *name_copy(size_t folder, const char *relative) {
    return folder == 0 ? xstrdup(relative) : file_join(copy_folders[folder], relative);
}

/* The hash of the order of units by position. */
static void hash_order(const struct design_order *order, char hex[static HASH_HEX_SIZE]) {
    hash_bytes(order->units, order->count * sizeof *order->units, hex);
}

static int hash_table(const struct plan *plan, char **ret, struct failure *failure) {
    cleanup(text_clear) struct text table;
    char hex[HASH_HEX_SIZE];
    text_init(&table, 1 << 30);
    int r = design_append(plan->design, NULL, &table, failure);
    if (r == 0)
        r = hash_bytes(table.bytes, table.length, hex);
    *ret = r < 0 ? NULL : xstrdup(hex);
    return r;
}

static int take_hash(const char *path, char **ret, struct failure *failure) {
    char hex[HASH_HEX_SIZE];
    int r = hash_file(path, hex, NULL, failure);
    if (r == 0)
        *ret = xstrdup(hex);
    return r;
}

static int take_file(const char *path, struct inputs_file *ret, struct failure *failure) {
    ret->path = realpath(path, NULL);
    if (!ret->path)
        return failure_set(failure, -errno, "cannot resolve '%s': %s", path, strerror(errno));
    return take_hash(ret->path, &ret->sha256, failure);
}

static void take_texts(struct bind_texts *texts, const char *const *items, size_t count) {
    for (size_t i = 0; i < count; i++)
        bind_texts_add(texts, items[i]);
}

/* As it was, to say what has changed. Hidden: the archive says the same in campaign.resolved.json and
 * design.csv. */
static char *copy_of(const struct inputs *inputs, size_t original) {
    return original == 0 ? path_in(inputs, ARCHIVE_CAMPAIGN)
                         : xformat("%s/.original-%zu", inputs->run_folder, original);
}

/* A FILE that the campaign, which lies in FOLDER, names; NULL: none. */
static int take_original(struct inputs *inputs, const char *folder, const char *file,
                         struct failure *failure) {
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, SOURCE_BYTES_MAX);
    if (!file)
        return 0;
    cleanup_free char *path = file[0] == '/' ? xstrdup(file) : file_join(folder, file);
    cleanup_free char *copy = copy_of(inputs, inputs->originals.count);
    bind_texts_add(&inputs->originals, path);
    int r = file_read(path, &bytes, failure);
    return r < 0 ? r : file_replace(copy, bytes.bytes, bytes.length, 0666, failure);
}

/* Hashes the files that the campaign was read from: itself, and the files of its hosts, spares and design.
 * Left out are lists that the command line replaces, standard input, and copies that a run has. */
static int take_originals(struct inputs *inputs, const struct campaign *campaign,
                          const struct campaign_overrides *overrides, struct failure *failure) {
    const struct document_node *testbed = document_get(campaign->document->root, "testbed"),
                               *hosts = document_get(document_get(testbed, "hosts"), "file"),
                               *spares = document_get(document_get(testbed, "spares"), "file");
    const struct design_specification *design = campaign->design;
    const char *folder = campaign->folder;
    bool is_own = overrides->node_count == 0 && !overrides->testbed_text; /* the hosts */
    bool has_file = design->kind == DESIGN_KIND_FILE && strcmp(design->file, "-") != 0 &&
                    !campaign->experiment->source.recorded;
    bind_texts_add(&inputs->originals, inputs->campaign.path);
    int r = take_original(inputs, folder, hosts && is_own ? hosts->text : NULL, failure);
    if (r == 0)
        r = take_original(inputs, folder, spares && overrides->spare_count == 0 ? spares->text : NULL,
                          failure);
    return r < 0 ? r : take_original(inputs, folder, has_file ? design->file : NULL, failure);
}

/* Lists the executable files among the copies in the run's folder, because members of archives have no
 * permission bits. */
static int take_executables(struct inputs *inputs, struct failure *failure) {
    int r = 0;
    bind_texts_clear(&inputs->executables);
    for (size_t k = 0; r == 0 && k < COPY_FOLDERS; k++) {
        cleanup(local_tree_clear) struct local_tree tree = LOCAL_TREE_NONE;
        cleanup_free char *copy = path_in(inputs, copy_folders[k]);
        if (file_is_folder(copy))
            r = local_tree_read(&tree, copy, NULL, failure);
        for (size_t i = 0; i < tree.count; i++) {
            cleanup_free char *name = name_copy(k, tree.entries[i].relative);
            if (!tree.entries[i].is_folder && (tree.entries[i].mode & 0100))
                bind_texts_add(&inputs->executables, name);
        }
    }
    return r;
}

/* Notes where the experiment and its source lie, and the hash of the copy of the source. A source that is
 * itself a run's copy has no path, because nobody edits it. */
static int take_experiment(struct inputs *inputs, const struct experiment *experiment,
                           struct failure *failure) {
    cleanup_free char *tar = source_copy_path(inputs->run_folder, ARCHIVE_SOURCE);
    int r = 0;
    if (experiment->source.folder) {
        /* A copy of a copy has no original that could be edited. */
        inputs->source.path = experiment->source.recorded ? NULL : xstrdup(experiment->source.folder);
        r = take_hash(tar, &inputs->source.sha256, failure);
    }
    if (experiment->folder)
        inputs->experiment = xstrdup(experiment->folder);
    return r < 0 ? r : take_executables(inputs, failure);
}

/* Was the table made with guessed facts? It is then made again when they are known, also by a part after a
 * crash. */
static bool is_guessed(const struct plan *plan) {
    return !plan->facts.known && design_uses_facts(plan->design);
}

/* Writes inputs.json. The hashes of the table and its order let a resumed run refuse to measure another plan.
 */
int inputs_write(const char *run_folder, const struct plan *plan, const struct campaign_overrides *overrides,
                 const struct bind_texts *left_out, struct failure *failure) {
    const struct campaign *campaign = plan->campaign;
    static const struct campaign_overrides none = {0};
    char order[HASH_HEX_SIZE];
    overrides = overrides ? overrides : &none;
    cleanup(inputs_clear) struct inputs inputs = {.run_folder = xstrdup(run_folder)};
    inputs.seed = xformat("%llu", (unsigned long long)design_specification_seed(campaign->design));
    hash_order(plan->order, order);
    inputs.order_sha256 = xstrdup(order);
    take_texts(&inputs.settings, overrides->options, overrides->option_count);
    take_texts(&inputs.nodes, overrides->nodes, overrides->node_count);
    take_texts(&inputs.left_out, (const char *const *)left_out->items, left_out->count);
    inputs.testbed = xstrdup_or_null(overrides->testbed_text);
    inputs.again = overrides->again ? xstrdup(overrides->again->path) : NULL;
    int r = take_file(campaign->path, &inputs.campaign, failure);
    if (r == 0)
        r = take_originals(&inputs, campaign, overrides, failure);
    if (r == 0)
        r = take_experiment(&inputs, campaign->experiment, failure);
    if (r == 0)
        r = hash_table(plan, &inputs.table_sha256, failure);
    return r < 0 ? r : save(&inputs, failure);
}

int inputs_take_plan(const char *run_folder, const struct plan *plan, struct failure *failure) {
    cleanup(inputs_clear) struct inputs inputs = {0};
    int r = inputs_read(run_folder, &inputs, failure);
    inputs.facts = plan->facts;
    free(take_pointer(inputs.table_sha256));
    if (r == 0)
        r = hash_table(plan, &inputs.table_sha256, failure);
    return r < 0 ? r : save(&inputs, failure);
}

int inputs_take_copies(const char *run_folder, struct failure *failure) {
    cleanup(inputs_clear) struct inputs inputs = {0};
    int r = inputs_read(run_folder, &inputs, failure);
    if (r == 0)
        r = take_executables(&inputs, failure);
    return r < 0 ? r : save(&inputs, failure);
}

/* Makes the files executable that were so when they were copied; who may read a file may then execute it. */
int inputs_restore_executables(const struct inputs *inputs, struct failure *failure) {
    int r = 0;
    for (size_t k = 0; r == 0 && inputs->executables.count && k < COPY_FOLDERS; k++) {
        cleanup(local_tree_clear) struct local_tree tree = LOCAL_TREE_NONE;
        cleanup_free char *copy = path_in(inputs, copy_folders[k]);
        if (file_is_folder(copy))
            r = local_tree_read(&tree, copy, NULL, failure);
        for (size_t i = 0; r == 0 && i < tree.count; i++) {
            const struct local_entry *entry = &tree.entries[i];
            cleanup_free char *name = name_copy(k, entry->relative);
            if (!(entry->mode & 0100) && bind_texts_have(&inputs->executables, name) &&
                chmod(entry->path, entry->mode | 0100 | (entry->mode & 0044) >> 2) < 0)
                r = failure_set(failure, -errno, "cannot make '%s' executable: %s", entry->path,
                                strerror(errno));
        }
    }
    return r;
}

/* ---- Comparing -------------------------------------------------------------------------------------------
 */

static void add_sentence(struct text *text, const char *sentence) {
    text_printf(text, "%s%s", text->length ? "; " : "", sentence);
}

static int compare_originals(const struct inputs *inputs, struct text *ret, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < inputs->originals.count; i++) {
        cleanup_free char *copy = copy_of(inputs, i), *differs = NULL;
        const char *original = inputs->originals.items[i];
        if (file_exists(original) && (i == 0 || file_exists(copy)))
            r = file_difference(copy, original, &differs, failure);
        if (differs)
            add_sentence(ret, differs);
    }
    return r;
}

/* Appends sentences on what has changed in the experiment's folder and its source since they were copied. */
static int compare_experiment(const struct inputs *inputs, struct text *ret, struct failure *failure) {
    cleanup_free char *manifest = path_in(inputs, ARCHIVE_SOURCE_MANIFEST),
                      *copy = path_in(inputs, ARCHIVE_EXPERIMENT), *differs = NULL, *source = NULL;
    int r = inputs->experiment && file_is_folder(inputs->experiment)
                ? tree_difference(copy, inputs->experiment, &differs, failure)
                : 0;
    if (differs)
        add_sentence(ret, differs);
    if (r < 0 || !inputs->source.path || !file_is_folder(inputs->source.path))
        return r;
    r = source_files_difference(manifest, inputs->source.path, &source, failure);
    if (r < 0 || !source)
        return r;
    cleanup_free char *sentence = xformat("the experiment's source '%s' has changed since the run began: %s",
                                          inputs->source.path, source);
    add_sentence(ret, sentence);
    return 0;
}

int inputs_compare(const struct inputs *inputs, struct text *ret, struct failure *failure) {
    int r = compare_originals(inputs, ret, failure);
    return r < 0 ? r : compare_experiment(inputs, ret, failure);
}

int inputs_check_source(const struct inputs *inputs, struct failure *failure) {
    char hex[HASH_HEX_SIZE];
    cleanup_free char *tar = source_copy_path(inputs->run_folder, ARCHIVE_SOURCE);
    if (!inputs->source.sha256)
        return 0;
    int r = hash_file(tar, hex, NULL, failure);
    return r < 0 || strcmp(hex, inputs->source.sha256) == 0
               ? r
               : failure_verification(failure, tar,
                                      "the source differs from the one that the run began with; restore it, "
                                      "or start a new run");
}

/* Refuses a plan whose table or order is not the one that the run began with. A table that depends on guessed
 * facts is not compared. */
int inputs_check_plan(const struct inputs *inputs, const struct plan *plan, struct failure *failure) {
    char order[HASH_HEX_SIZE];
    cleanup_free char *table = NULL;
    int r = hash_table(plan, &table, failure);
    if (r < 0)
        return r;
    hash_order(plan->order, order);
    if (!is_guessed(plan) && strcmp(table, inputs->table_sha256) != 0)
        return failure_set_kind(failure, FAILURE_VERIFICATION, -EBADMSG,
                                "'%s/design.csv' differs from the design that the run began with; "
                                "restore it, or start a new run",
                                inputs->run_folder);
    if (strcmp(order, inputs->order_sha256) != 0)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "this version of assay orders the units of '%s' differently from the "
                                "version that began the run; resume with the version that run.json "
                                "names",
                                inputs->run_folder);
    return 0;
}

static bool same_texts(const struct bind_texts *a, const char *const *b, size_t count) {
    bool same = a->count == count;
    for (size_t i = 0; same && i < count; i++)
        same = strcmp(a->items[i], b[i]) == 0;
    return same;
}

/* Whether the run of INPUTS was made from CAMPAIGN with the options of OVERRIDES. INPUTS_CHANGED: from the
 * same file, whose bytes now have another hash; a file that cannot be hashed counts as INPUTS_OTHER. */
enum inputs_match inputs_match(const struct inputs *inputs, const struct campaign *campaign,
                               const struct campaign_overrides *overrides) {
    char hex[HASH_HEX_SIZE];
    cleanup_free char *path = realpath(campaign->path, NULL);
    bool ours = path && strcmp(path, inputs->campaign.path) == 0 &&
                same_texts(&inputs->settings, overrides->options, overrides->option_count) &&
                same_texts(&inputs->nodes, overrides->nodes, overrides->node_count) &&
                text_is_same(inputs->testbed, overrides->testbed_text) &&
                (!overrides->seed || strcmp(overrides->seed, inputs->seed) == 0);
    if (!ours || hash_bytes(campaign->bytes.bytes, campaign->bytes.length, hex) < 0)
        return INPUTS_OTHER;
    return strcmp(hex, inputs->campaign.sha256) == 0 ? INPUTS_SAME : INPUTS_CHANGED;
}
