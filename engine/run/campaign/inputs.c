#include "engine/run/campaign/inputs.h"

#include "engine/documents/document.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/plan-describe.h"
#include "engine/run/campaign/source-files.h"
#include "engine/run/campaign/tree-difference.h"
#include "engine/run/run-state.h"

#include <endian.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

static const char inputs_file[] = "inputs.json";
/* The design's file as it was, to say what has changed. Hidden: the archive has the same values in
 * design.csv. */
static const char design_copy[] = ".design-file";

enum { ORDER_PIECE = 4096, FILE_MOST = 64 << 20 };

/* ---- Hashes ----------------------------------------------------------------------------------------------
 */

/* Of the units by position, each as four bytes, the least first. */
static int hash_order(const struct design_order *order, char hex[static HASH_HEX_SIZE]) {
    struct hash *hash = hash_new();
    if (!hash)
        return -ENOMEM;
    uint32_t piece[ORDER_PIECE];
    for (size_t i = 0; i < order->count;) {
        size_t count = 0;
        while (count < ORDER_PIECE && i < order->count)
            piece[count++] = htole32(order->units[i++]);
        hash_update(hash, piece, count * sizeof *piece);
    }
    hash_finish(hash, hex);
    hash_free(hash);
    return 0;
}

static int hash_table(const struct plan *plan, char hex[static HASH_HEX_SIZE], struct failure *failure) {
    cleanup(text_clear) struct text table;
    text_init(&table, 1 << 30);
    int r = design_append(plan->design, NULL, &table, failure);
    return r < 0 ? r : hash_bytes(table.bytes, table.length, hex) < 0 ? failure_memory(failure) : 0;
}

/* ---- Writing ---------------------------------------------------------------------------------------------
 */

static void add_texts(cJSON *object, const char *key, char *const *texts, size_t count) {
    cJSON *array = json_add_array(object, key);
    for (size_t i = 0; i < count; i++)
        json_add_string(array, NULL, texts[i]);
}

static void add_file(cJSON *object, const char *key, const char *path, const char *hex) {
    cJSON *item = json_add_object(object, key);
    json_add_string(item, "path", path);
    json_add_string(item, "sha256", hex);
}

int inputs_save(const struct inputs *inputs, struct failure *failure) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    cleanup_free char *path = file_join(inputs->run_folder, inputs_file);
    if (!object || !path)
        return failure_memory(failure);
    add_file(object, "campaign", inputs->campaign, inputs->campaign_sha256);
    json_add_string(object, "folder", inputs->folder);
    json_add_string(object, "experiment", inputs->experiment);
    if (inputs->source_sha256[0])
        add_file(object, "source", inputs->source, inputs->source_sha256);
    if (inputs->design)
        add_file(object, "design", inputs->design, inputs->design_sha256);
    json_add_string(object, "seed", inputs->seed);
    if (inputs->facts.known)
        plan_add_facts(&inputs->facts, json_add_object(object, "facts"));
    json_add_boolean(object, "columns", inputs->table != NULL);
    json_add_string(object, "table_sha256", inputs->table_sha256);
    json_add_string(object, "order_sha256", inputs->order_sha256);
    add_texts(object, "set", inputs->settings, inputs->setting_count);
    add_texts(object, "nodes", inputs->nodes, inputs->node_count);
    add_texts(object, "hosts", inputs->hosts, inputs->host_count);
    add_texts(object, "spares", inputs->spares, inputs->spare_count);
    add_texts(object, "executables", inputs->executables, inputs->executable_count);
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, FILE_MOST);
    if (json_print(object, true, &bytes) < 0 || text_append_character(&bytes, '\n') < 0)
        return failure_memory(failure);
    return file_replace(path, bytes.bytes, bytes.length, 0666, failure);
}

static int take_file(const char *path, char **ret, char hex[static HASH_HEX_SIZE], struct failure *failure) {
    *ret = realpath(path, NULL);
    if (!*ret)
        return failure_set(failure, -errno, "cannot resolve '%s': %s", path, strerror(errno));
    return hash_file(*ret, hex, NULL, failure);
}

static int copy_texts(const char *const *texts, size_t count, char ***ret, size_t *ret_count) {
    *ret = calloc(count + 1, sizeof **ret);
    for (size_t i = 0; *ret && i < count; i++) {
        if (!((*ret)[i] = strdup(texts[i])))
            return -ENOMEM;
        *ret_count = i + 1;
    }
    return *ret ? 0 : -ENOMEM;
}

/* The strings of the array KEY of what a testbed says of itself. */
static int take_names(const cJSON *resolved, const char *key, char ***ret, size_t *ret_count) {
    const cJSON *array = cJSON_GetObjectItemCaseSensitive(resolved, key);
    size_t count = array ? (size_t)cJSON_GetArraySize(array) : 0;
    cleanup_free const char **names = calloc(count + 1, sizeof *names);
    if (!names)
        return -ENOMEM;
    const cJSON *item = array ? array->child : NULL;
    for (size_t i = 0; i < count && item; i++, item = item->next)
        names[i] = cJSON_GetStringValue(item);
    return copy_texts(names, count, ret, ret_count);
}

static int take_testbed(struct inputs *inputs, const struct testbed_choice *testbed) {
    cleanup(json_cleanup) cJSON *resolved = cJSON_CreateObject();
    if (!resolved)
        return -ENOMEM;
    testbed->backend->resolve(testbed->settings, resolved);
    int r = take_names(resolved, "hosts", &inputs->hosts, &inputs->host_count);
    return r < 0 ? r : take_names(resolved, "spares", &inputs->spares, &inputs->spare_count);
}

/* A design that came by standard input cannot be looked at again. */
static bool has_file(const struct design_specification *design) {
    return design->kind == DESIGN_KIND_FILE && design->file && strcmp(design->file, "-") != 0;
}

/* Of a file that is too large nobody will be told the line. */
static int keep_design(const char *run_folder, const char *design, struct failure *failure) {
    cleanup_free char *copy = file_join(run_folder, design_copy);
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, FILE_MOST);
    if (!copy)
        return failure_memory(failure);
    if (file_read(design, &bytes, NULL) < 0)
        return 0;
    return file_replace(copy, bytes.bytes, bytes.length, 0666, failure);
}

/* Its table is not what will be measured: a run that dies before it knows better makes it again. */
static bool is_guessed(const struct plan *plan) {
    return !plan->facts.known && design_uses_facts(plan->design);
}

static int take_plan(struct inputs *inputs, const struct plan *plan,
                     const struct campaign_overrides *overrides) {
    const struct campaign *campaign = plan->campaign;
    char seed[NUMBER_TEXT_SIZE];
    const char *experiment = campaign->experiment->folder;
    number_format_uint64(design_specification_seed(campaign->design), seed);
    inputs->folder = strdup(campaign->folder);
    inputs->seed = strdup(seed);
    inputs->experiment = experiment ? strdup(experiment) : NULL;
    bool columns = plan->design->column_count > 0 && !is_guessed(plan);
    inputs->table = columns ? file_join(inputs->run_folder, "design.csv") : NULL;
    if (!inputs->folder || !inputs->seed || (experiment && !inputs->experiment) ||
        (columns && !inputs->table) || hash_order(plan->order, inputs->order_sha256) < 0)
        return -ENOMEM;
    int r =
        copy_texts(overrides->options, overrides->option_count, &inputs->settings, &inputs->setting_count);
    if (r == 0)
        r = copy_texts(overrides->nodes, overrides->node_count, &inputs->nodes, &inputs->node_count);
    return r < 0 ? r : take_testbed(inputs, &campaign->testbed);
}

/* A copy of a copy has no original that could be edited. */
static int take_source(struct inputs *inputs, const struct experiment_source *source,
                       struct failure *failure) {
    cleanup_free char *tar = file_join(inputs->run_folder, RUN_SOURCE_TAR);
    inputs->source = source->recorded ? NULL : strdup(source->folder);
    return tar && (inputs->source || source->recorded) ? hash_file(tar, inputs->source_sha256, NULL, failure)
                                                       : failure_memory(failure);
}

static int take_executables(struct inputs *inputs, struct failure *failure) {
    cleanup(local_tree_clear) struct local_tree tree = LOCAL_TREE_NONE;
    cleanup_free char *copy = file_join(inputs->run_folder, RUN_EXPERIMENT_FOLDER);
    int r = copy ? local_tree_read(&tree, copy, NULL, failure) : failure_memory(failure);
    if (r < 0)
        return r;
    cleanup_free const char **names = calloc(tree.count + 1, sizeof *names);
    size_t count = 0;
    for (size_t i = 0; names && i < tree.count; i++)
        if (!tree.entries[i].is_folder && (tree.entries[i].mode & 0100))
            names[count++] = tree.entries[i].relative;
    return names && copy_texts(names, count, &inputs->executables, &inputs->executable_count) == 0
               ? 0
               : failure_memory(failure);
}

int inputs_write(const char *run_folder, const struct plan *plan, const struct campaign_overrides *overrides,
                 struct failure *failure) {
    const struct campaign *campaign = plan->campaign;
    static const struct campaign_overrides none = {0};
    cleanup(inputs_clear) struct inputs inputs = {.run_folder = strdup(run_folder)};
    if (!inputs.run_folder || take_plan(&inputs, plan, overrides ? overrides : &none) < 0)
        return failure_memory(failure);
    int r = take_file(campaign->document->file, &inputs.campaign, inputs.campaign_sha256, failure);
    if (r == 0 && has_file(campaign->design) && !(overrides && overrides->table))
        r = take_file(campaign->design->file, &inputs.design, inputs.design_sha256, failure);
    if (r == 0 && inputs.design)
        r = keep_design(run_folder, inputs.design, failure);
    if (r == 0 && campaign->experiment->source.folder)
        r = take_source(&inputs, &campaign->experiment->source, failure);
    if (r == 0 && inputs.experiment)
        r = take_executables(&inputs, failure);
    if (r == 0)
        r = hash_table(plan, inputs.table_sha256, failure);
    return r < 0 ? r : inputs_save(&inputs, failure);
}

/* ---- Reading ---------------------------------------------------------------------------------------------
 */

static char *take_text(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->kind == DOCUMENT_TEXT ? strdup(value->text) : NULL;
}

static void take_hash(const struct document_node *node, const char *key, char hex[static HASH_HEX_SIZE]) {
    const struct document_node *value = document_get(node, key);
    if (value && value->kind == DOCUMENT_TEXT && strlen(value->text) == HASH_HEX_SIZE - 1)
        memcpy(hex, value->text, HASH_HEX_SIZE);
}

static int take_texts(const struct document_node *node, const char *key, char ***ret, size_t *ret_count) {
    const struct document_node *list = document_get(node, key);
    if (!list || list->kind != DOCUMENT_SEQUENCE)
        return 0;
    char **texts = calloc(list->count + 1, sizeof *texts);
    *ret = texts;
    for (size_t i = 0; texts && i < list->count; i++) {
        if (!list->items[i]->text)
            return -EINVAL;
        if (!(texts[i] = strdup(list->items[i]->text)))
            return -ENOMEM;
        *ret_count = i + 1;
    }
    return texts ? 0 : -ENOMEM;
}

static void take_facts(const struct document_node *node, struct plan_facts *ret) {
    static const char *const keys[PLAN_FACTS] = {"run_nodes", "node_cores", "node_memory"};
    double *const values[PLAN_FACTS] = {&ret->nodes, &ret->cores, &ret->memory};
    ret->known = node != NULL;
    for (size_t i = 0; i < PLAN_FACTS; i++) {
        const struct document_node *value = document_get(node, keys[i]);
        ret->known &=
            value && value->text && number_parse_double(value->text, strlen(value->text), values[i]);
    }
}

static int take_members(struct inputs *inputs, const struct document_node *root) {
    const struct document_node *campaign = document_get(root, "campaign"),
                               *design = document_get(root, "design"), *source = document_get(root, "source"),
                               *columns = document_get(root, "columns");
    inputs->campaign = take_text(campaign, "path");
    take_hash(campaign, "sha256", inputs->campaign_sha256);
    inputs->folder = take_text(root, "folder");
    inputs->experiment = take_text(root, "experiment");
    inputs->source = take_text(source, "path");
    take_hash(source, "sha256", inputs->source_sha256);
    inputs->design = take_text(design, "path");
    take_hash(design, "sha256", inputs->design_sha256);
    take_hash(root, "table_sha256", inputs->table_sha256);
    take_hash(root, "order_sha256", inputs->order_sha256);
    inputs->seed = take_text(root, "seed");
    take_facts(document_get(root, "facts"), &inputs->facts);
    if (inputs->experiment && !(inputs->copied_experiment = file_join(inputs->run_folder, "experiment")))
        return -ENOMEM;
    if (columns && columns->kind == DOCUMENT_BOOLEAN && strcmp(columns->text, "true") == 0 &&
        !(inputs->table = file_join(inputs->run_folder, "design.csv")))
        return -ENOMEM;
    int r = take_texts(root, "set", &inputs->settings, &inputs->setting_count);
    if (r == 0)
        r = take_texts(root, "nodes", &inputs->nodes, &inputs->node_count);
    if (r == 0)
        r = take_texts(root, "hosts", &inputs->hosts, &inputs->host_count);
    if (r == 0)
        r = take_texts(root, "spares", &inputs->spares, &inputs->spare_count);
    return r < 0 ? r : take_texts(root, "executables", &inputs->executables, &inputs->executable_count);
}

int inputs_read(const char *run_folder, struct inputs *ret, struct failure *failure) {
    cleanup(inputs_clear) struct inputs inputs = {0};
    inputs.run_folder = realpath(run_folder, NULL);
    if (!inputs.run_folder)
        return failure_set_kind(failure, FAILURE_INPUT, -errno, "cannot open '%s': %s", run_folder,
                                strerror(errno));
    cleanup_free char *path = file_join(inputs.run_folder, inputs_file);
    if (!path)
        return failure_memory(failure);
    if (!file_exists(path))
        return failure_input(
            failure, run_folder, 0, 0,
            "this is no folder of a run that could go on: it has no inputs.json, which a run has "
            "before it begins to measure");
    struct document *document;
    int r = document_read_json(path, &document, failure);
    if (r < 0)
        return r;
    r = take_members(&inputs, document->root);
    document_free(document);
    if (r == -ENOMEM)
        return failure_memory(failure);
    if (r < 0 || !inputs.campaign || !inputs.folder || !inputs.seed || !inputs.table_sha256[0] ||
        !inputs.order_sha256[0])
        return failure_input(failure, path, 0, 0,
                             "this does not say what the run was made from; expected campaign, folder, seed "
                             "and hashes, and texts in its lists");
    *ret = inputs;
    inputs = (struct inputs){0};
    return 0;
}

int inputs_take_plan(const char *run_folder, const struct plan *plan, struct failure *failure) {
    cleanup(inputs_clear) struct inputs inputs = {0};
    int r = inputs_read(run_folder, &inputs, failure);
    if (r < 0)
        return r;
    inputs.facts = plan->facts;
    free(inputs.table);
    inputs.table = plan->design->column_count > 0 ? file_join(inputs.run_folder, "design.csv") : NULL;
    r = hash_table(plan, inputs.table_sha256, failure);
    return r < 0 ? r : inputs_save(&inputs, failure);
}

static void free_texts(char **texts, size_t count) {
    for (size_t i = 0; i < count; i++)
        free(texts[i]);
    free(texts);
}

void inputs_clear(struct inputs *inputs) {
    free(inputs->run_folder);
    free(inputs->campaign);
    free(inputs->folder);
    free(inputs->experiment);
    free(inputs->copied_experiment);
    free(inputs->source);
    free(inputs->design);
    free(inputs->table);
    free(inputs->seed);
    free_texts(inputs->settings, inputs->setting_count);
    free_texts(inputs->nodes, inputs->node_count);
    free_texts(inputs->hosts, inputs->host_count);
    free_texts(inputs->spares, inputs->spare_count);
    free_texts(inputs->executables, inputs->executable_count);
    *inputs = (struct inputs){0};
}

static bool is_among(const char *name, char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++)
        if (strcmp(names[i], name) == 0)
            return true;
    return false;
}

int inputs_restore_executables(const struct inputs *inputs, struct failure *failure) {
    cleanup(local_tree_clear) struct local_tree tree = LOCAL_TREE_NONE;
    int r = inputs->executable_count ? local_tree_read(&tree, inputs->copied_experiment, NULL, failure) : 0;
    for (size_t i = 0; r == 0 && i < tree.count; i++) {
        const struct local_entry *entry = &tree.entries[i];
        if (!(entry->mode & 0100) &&
            is_among(entry->relative, inputs->executables, inputs->executable_count) &&
            chmod(entry->path, entry->mode | 0100 | (entry->mode & 0044) >> 2) < 0)
            r = failure_set(failure, -errno, "cannot make '%s' executable: %s", entry->path, strerror(errno));
    }
    return r;
}

/* ---- Spares ----------------------------------------------------------------------------------------------
 */

int inputs_take_names(struct inputs *inputs, const struct campaign *campaign, struct failure *failure) {
    if (inputs->host_count > 0)
        return 0;
    free_texts(take_pointer(inputs->hosts), inputs->host_count);
    free_texts(take_pointer(inputs->spares), inputs->spare_count);
    inputs->host_count = inputs->spare_count = 0;
    return take_testbed(inputs, &campaign->testbed) < 0 ? failure_memory(failure) : 0;
}

int inputs_add_spares(struct inputs *inputs, const char *const *lists, size_t count,
                      struct failure *failure) {
    cleanup(host_list_clear) struct host_list hosts = {0};
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++)
        r = lists[i][0] == '@' ? host_list_read(&hosts, lists[i] + 1, failure)
                               : host_list_parse(&hosts, lists[i], failure);
    if (r < 0)
        return failure_prefix(failure, "the spares");
    char **spares = xrealloc(inputs->spares, (inputs->spare_count + hosts.count + 1) * sizeof *spares);
    inputs->spares = spares;
    for (size_t i = 0; i < hosts.count; i++)
        if (!is_among(hosts.names[i], spares, inputs->spare_count)) {
            spares[inputs->spare_count++] = take_pointer(hosts.names[i]);
            inputs->has_more_spares = true;
        }
    return 0;
}

/* ---- Comparing -------------------------------------------------------------------------------------------
 */

static int add_sentence(struct text *text, const char *sentence) {
    return text->length ? text_printf(text, "; %s", sentence) : text_append_string(text, sentence);
}

/* The line of the design's file that is another; NULL where its copy does not tell. */
static char *find_design_line(const struct inputs *inputs) {
    char hex[HASH_HEX_SIZE], *sentence = NULL;
    cleanup_free char *copy = file_join(inputs->run_folder, design_copy);
    if (!copy || !file_exists(copy) || hash_file(copy, hex, NULL, NULL) < 0 ||
        strcmp(hex, inputs->design_sha256) != 0 || file_difference(copy, inputs->design, &sentence, NULL) < 0)
        return NULL;
    return sentence;
}

static int compare_design(const struct inputs *inputs, struct text *ret, struct failure *failure) {
    char hex[HASH_HEX_SIZE];
    if (!inputs->design || !file_exists(inputs->design))
        return 0;
    int r = hash_file(inputs->design, hex, NULL, failure);
    if (r < 0 || strcmp(hex, inputs->design_sha256) == 0)
        return r;
    cleanup_free char *line = find_design_line(inputs);
    cleanup_free char *sentence = line ? text_format("the design's file %s", line)
                                       : text_format("the design's file '%s' has changed", inputs->design);
    return sentence && add_sentence(ret, sentence) == 0 ? 0 : failure_memory(failure);
}

/* The file that the campaign has its hosts from, the caller's; NULL: it has none, or the command line had
 * others. */
static char *find_host_file(const struct inputs *inputs, const struct document_node *root) {
    const struct document_node *hosts = document_get(document_get(root, "testbed"), "hosts");
    const struct document_node *file = document_get(hosts, "file");
    if (!file || !file->text || inputs->node_count > 0 || inputs->host_count == 0)
        return NULL;
    return file->text[0] == '/' ? strdup(file->text) : file_join(inputs->folder, file->text);
}

/* The run goes on with the nodes that it has; whoever edits their list wants others. */
static int compare_host_file(const struct inputs *inputs, const char *path, struct text *ret,
                             struct failure *failure) {
    cleanup(host_list_clear) struct host_list hosts = {0};
    const char *name = NULL, *what = "has";
    int r = file_exists(path) ? host_list_read(&hosts, path, failure) : 0;
    for (size_t i = 0; i < hosts.count && !name; i++)
        if (!is_among(hosts.names[i], inputs->hosts, inputs->host_count))
            name = hosts.names[i];
    for (size_t i = 0; i < inputs->host_count && hosts.count > 0 && !name; i++)
        if (!is_among(inputs->hosts[i], hosts.names, hosts.count)) {
            name = inputs->hosts[i];
            what = "lacks";
        }
    if (r < 0 || !name)
        return r;
    cleanup_free char *sentence =
        text_format("the list of hosts '%s' has changed: it %s %s now", path, what, name);
    return sentence && add_sentence(ret, sentence) == 0 ? 0 : failure_memory(failure);
}

static int compare_hosts(const struct inputs *inputs, const char *campaign, struct text *ret,
                         struct failure *failure) {
    struct document *document = NULL;
    int r = document_read_yaml(campaign, &document, failure);
    if (r < 0)
        return r;
    cleanup_free char *path = find_host_file(inputs, document->root);
    if (path)
        r = compare_host_file(inputs, path, ret, failure);
    document_free(document);
    return r;
}

static int compare_source(const struct inputs *inputs, struct text *ret, struct failure *failure) {
    cleanup_free char *manifest = file_join(inputs->run_folder, RUN_SOURCE_MANIFEST), *differs = NULL;
    if (!manifest)
        return failure_memory(failure);
    if (!inputs->source || !file_is_folder(inputs->source))
        return 0;
    int r = source_files_difference(manifest, inputs->source, &differs, failure);
    if (r < 0 || !differs)
        return r;
    cleanup_free char *sentence = text_format(
        "the experiment's source '%s' has changed since the run began: %s", inputs->source, differs);
    return sentence && add_sentence(ret, sentence) == 0 ? 0 : failure_memory(failure);
}

int inputs_compare(const struct inputs *inputs, struct text *ret, struct failure *failure) {
    cleanup_free char *sentence = NULL, *copy = file_join(inputs->run_folder, "campaign.yaml");
    if (!copy)
        return failure_memory(failure);
    int r = 0;
    if (file_exists(inputs->campaign))
        r = file_difference(copy, inputs->campaign, &sentence, failure);
    if (r == 0 && sentence && add_sentence(ret, sentence) < 0)
        r = failure_memory(failure);
    if (r == 0)
        r = compare_design(inputs, ret, failure);
    if (r == 0)
        r = compare_hosts(inputs, copy, ret, failure);
    cleanup_free char *differs = NULL;
    if (r == 0 && inputs->experiment && file_is_folder(inputs->experiment))
        r = tree_difference(inputs->copied_experiment, inputs->experiment, &differs, failure);
    if (r == 0 && differs && add_sentence(ret, differs) < 0)
        r = failure_memory(failure);
    return r < 0 ? r : compare_source(inputs, ret, failure);
}

void inputs_overrides(const struct inputs *inputs, struct campaign_overrides *ret) {
    bool known = inputs->host_count > 0; /* a run that was begun before they were kept has none */
    *ret = (struct campaign_overrides){
        .options = (const char *const *)inputs->settings,
        .option_count = inputs->setting_count,
        .seed = inputs->seed,
        .nodes = (const char *const *)(known ? inputs->hosts : inputs->nodes),
        .node_count = known ? inputs->host_count : inputs->node_count,
        .spares = (const char *const *)inputs->spares,
        .spare_count = inputs->spare_count,
        .folder = inputs->folder,
        .recorded = inputs->run_folder,
        .experiment_folder = inputs->copied_experiment,
        .table = inputs->table,
    };
}

int inputs_check_source(const struct inputs *inputs, struct failure *failure) {
    char hex[HASH_HEX_SIZE];
    cleanup_free char *tar = file_join(inputs->run_folder, RUN_SOURCE_TAR);
    if (!tar)
        return failure_memory(failure);
    int r = inputs->source_sha256[0] ? hash_file(tar, hex, NULL, failure) : 0;
    if (r < 0 || !inputs->source_sha256[0] || strcmp(hex, inputs->source_sha256) == 0)
        return r;
    return failure_verification(failure, tar, "this is not the source that the run began with");
}

int inputs_check_plan(const struct inputs *inputs, const struct plan *plan, struct failure *failure) {
    char table[HASH_HEX_SIZE], order[HASH_HEX_SIZE];
    int r = hash_table(plan, table, failure);
    if (r < 0)
        return r;
    if (hash_order(plan->order, order) < 0)
        return failure_memory(failure);
    if (!is_guessed(plan) && strcmp(table, inputs->table_sha256) != 0)
        return failure_set_kind(failure, FAILURE_VERIFICATION, -EBADMSG,
                                "'%s/design.csv' is not the design that the run began with",
                                inputs->run_folder);
    if (strcmp(order, inputs->order_sha256) != 0)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "this version of assay puts the units of '%s' in another order than the one "
                                "that the run began with; expected the version that run.json names",
                                inputs->run_folder);
    return 0;
}

static bool same_texts(char *const *a, size_t a_count, const char *const *b, size_t b_count) {
    bool same = a_count == b_count;
    for (size_t i = 0; same && i < a_count; i++)
        same = strcmp(a[i], b[i]) == 0;
    return same;
}

enum inputs_kinship inputs_find_kinship(const struct inputs *inputs, const struct campaign *campaign,
                                        const struct campaign_overrides *overrides) {
    char hex[HASH_HEX_SIZE];
    cleanup_free char *path = realpath(campaign->document->file, NULL);
    bool ours =
        path && strcmp(path, inputs->campaign) == 0 &&
        same_texts(inputs->settings, inputs->setting_count, overrides->options, overrides->option_count) &&
        same_texts(inputs->nodes, inputs->node_count, overrides->nodes, overrides->node_count) &&
        (!overrides->seed || strcmp(overrides->seed, inputs->seed) == 0);
    if (!ours || hash_bytes(campaign->bytes.bytes, campaign->bytes.length, hex) < 0)
        return INPUTS_OTHER;
    return strcmp(hex, inputs->campaign_sha256) == 0 ? INPUTS_SAME : INPUTS_CHANGED;
}
