/*
 * Archives of the engine peanut (T. Cornebize, github.com/Ezibenroc/peanut), which calibrated nodes of
 * Grid'5000. Times in them are local, of France; core is a logical CPU or "all"; results of BLAS have node
 * and core since 2019, those before are of the one node of their archive.
 */
#include "archive-format/import/mapping.h"
#include "archive-format/layout.h"
#include "archive-format/name.h"
#include "archive-format/reader.h"
#include "archive-format/staging.h"
#include "archive-format/writer.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/list.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/foundation/text-set.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { TEXT_BYTES_MAX = 64 << 20, PUS_MAX = 8192 };

/* A logical CPU, by /proc/cpuinfo. */
struct peanut_pu {
    int64_t index, package, core; /* negative: not known */
    char cpu[12]; /* the number of its package among those that there are, in the order of PUs: as
                     cashew numbers processors */
};
struct peanut_node {
    const char *name; /* a key of info.yaml, as what follows */
    const struct document_node *info;
    struct peanut_pu *pus; /* in the order of cpuinfo, which is that of their numbers */
    size_t pu_count, pu_capacity;
};
struct peanut {
    struct imported imported;
    struct staging staging; /* of what was imported: names below imported/ */
    char *folder;
    struct document *info;
    struct peanut_node *nodes;
    size_t node_count;
    char *all_nodes;         /* folded */
    struct text_set is_made; /* names of files that something was made from */
};

/* ---- Files of the archive */

/* As its user knows the file NAME: "peanut.zip:result.csv". */
static char *shown_name(const struct peanut *peanut, const char *name) {
    return xformat("%s:%s", peanut->imported.request->file, name);
}

static bool has(const struct peanut *peanut, const char *name) {
    const struct staged_file *file = staging_find(&peanut->staging, name);
    return file && !file->folder;
}

/* The file NAME as a document; *RET is NULL without it. */
static int read_document(struct peanut *peanut, const char *name,
                         int (*parse)(const char *, const char *, size_t, struct document **,
                                      struct failure *),
                         struct document **ret, struct failure *failure) {
    cleanup_free char *path = file_join(peanut->folder, name), *shown = shown_name(peanut, name);
    cleanup(text_clear) struct text text;
    text_init(&text, DOCUMENT_JSON_BYTES_MAX);
    *ret = NULL;
    if (!has(peanut, name))
        return 0;
    text_set_add(&peanut->is_made, name, strlen(name));
    int r = file_read(path, &text, failure);
    return r < 0 ? r : parse(shown, text.bytes, text.length, ret, failure);
}

static const char *text_at(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->kind != DOCUMENT_NULL && value->text && value->text[0] ? value->text : NULL;
}

static struct import_file file_called(struct peanut *peanut, const char *name) {
    text_set_add(&peanut->is_made, name, strlen(name));
    return (struct import_file){
        .path = file_join(peanut->folder, name), .name = shown_name(peanut, name), .separator = ','};
}

/* ---- What is known of the job */

static int64_t time_at(const struct peanut *peanut, const char *phase, const char *tag) {
    const struct document_node *times = document_get(peanut->info->root, "timestamp");
    const char *text = text_at(document_get(times, phase), tag);
    int64_t at;
    return text && import_time(&peanut->imported.zone, text, &at) ? at : 0;
}

static int read_phases(struct peanut *peanut, struct failure *failure) {
    static const char *const names[][2] = {
        {"setup", "setup"}, {"run_exp", "measure"}, {"teardown", "collect"}};
    struct archive_run *run = &peanut->imported.run;
    run->started_ns = time_at(peanut, "setup", "start");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        struct archive_phase *phase = bind_items_add(&run->phases, sizeof *phase);
        phase->name = xstrdup(names[i][1]);
        phase->started_ns = time_at(peanut, names[i][0], "start");
        phase->ended_ns = time_at(peanut, names[i][0], "stop");
        phase->status = xstrdup(phase->ended_ns ? "done" : phase->started_ns ? "interrupted" : "not reached");
        int64_t last = phase->ended_ns ? phase->ended_ns : phase->started_ns;
        run->ended_ns = last ? last : run->ended_ns;
    }
    return run->started_ns ? 0
                           : failure_input(failure, peanut->info->file, 0, 0,
                                           "there is no time timestamp.setup.start; expected one such as "
                                           "'2020-05-13 18:18:12.112880'");
}

/* "BLASCalibration" of "/home/x/.local/bin/peanut BLASCalibration run x --jobid ...". */
static char *job_name(const struct peanut *peanut) {
    const char *command = text_at(peanut->info->root, "command");
    const char *word = command ? strstr(command, "peanut ") : NULL;
    word = word ? word + strlen("peanut ") : NULL;
    size_t length = word ? strcspn(word, " ") : 0;
    return length ? xstrndup(word, length) : xstrdup("peanut");
}

static void read_options(struct peanut *peanut, const struct document_node *install) {
    for (size_t i = 0; install && install->kind == DOCUMENT_MAPPING && i < install->count; i++)
        if (install->items[i]->text) {
            bind_texts_add(&peanut->imported.run.options, install->keys[i]->text);
            bind_texts_add(&peanut->imported.run.options, install->items[i]->text);
        }
}

static int read_job(struct peanut *peanut, struct failure *failure) {
    struct archive_run *run = &peanut->imported.run;
    const struct document_node *info = peanut->info->root;
    cleanup(document_cleanup) struct document *install = NULL;
    const char *aborted = text_at(info, "aborted"), *version = text_at(info, "peanut_version");
    const char *file = text_at(info, "installfile"), *command = text_at(info, "command");
    int r = read_document(peanut, file ? file : "install.yaml", document_parse_yaml, &install, failure);
    if (r < 0)
        return r;
    run->name = job_name(peanut);
    run->experiment.name = xstrdup(run->name);
    run->testbed = xstrdup("grid5000");
    run->order = xstrdup("random");
    run->import->engine = xformat("peanut %s", version ? version : "of an unknown version");
    read_options(peanut, install ? install->root : NULL);
    for (const char *at = command; at && *at; at += strspn(at, " \n")) {
        cleanup_free char *word = xstrndup(at, strcspn(at, " \n"));
        bind_texts_add(&run->command, word);
        at += strlen(word);
    }
    if (aborted && strcmp(aborted, "true") == 0) {
        free(run->status);
        run->status = xstrdup("interrupted");
        run->error = xstrdup("peanut was told to end before the job did; info.yaml says that it was aborted");
    }
    return 0;
}

/* Hosts are keys with a dot, whose values are mappings. */
static int find_nodes(struct peanut *peanut, struct failure *failure) {
    const struct document_node *root = peanut->info->root;
    cleanup(text_clear) struct text folded;
    cleanup_free const char **names = xcalloc(root->count + 1, sizeof *names);
    text_init(&folded, TEXT_BYTES_MAX);
    peanut->nodes = xcalloc(root->count + 1, sizeof *peanut->nodes);
    for (size_t i = 0; i < root->count; i++) {
        const char *name = root->keys[i]->text;
        if (root->items[i]->kind != DOCUMENT_MAPPING || !strchr(name, '.'))
            continue;
        if (archive_name_problem(name) || strchr(name, '/'))
            return failure_input(failure, peanut->info->file, root->keys[i]->line, root->keys[i]->column,
                                 "the host name '%.80s' cannot be the name of a folder", name);
        names[peanut->node_count] = name;
        bind_texts_add(&peanut->imported.run.nodes, name);
        peanut->nodes[peanut->node_count++] = (struct peanut_node){.name = name, .info = root->items[i]};
    }
    if (peanut->node_count == 0)
        return failure_input(
            failure, peanut->info->file, 0, 0,
            "there is no node in it; expected a key a host, such as 'yeti-1.grenoble.grid5000.fr'");
    if (host_list_fold(names, peanut->node_count, &folded) < 0)
        return failure_memory(failure);
    peanut->all_nodes = text_take(&folded);
    return 0;
}

/* ---- What is known of a node */

static void read_node_file(struct peanut *peanut, const struct peanut_node *node, const char *file,
                           struct text *ret) {
    cleanup_free char *name = xformat("information/%s/%s", node->name, file),
                      *path = file_join(peanut->folder, name);
    text_init(ret, TEXT_BYTES_MAX);
    if (has(peanut, name))
        (void)file_read(path, ret, NULL); /* too large a file is in the archive, and not looked at */
}

/* Finds the value in LINE, "KEY<tab>: VALUE" of /proc/cpuinfo, and its length. NULL: the line has another
 * key. */
static const char *cpuinfo_value(const char *line, const char *key, size_t *ret_length) {
    size_t length = strlen(key), blanks = strncmp(line, key, length) == 0 ? strspn(line + length, "\t ") : 0;
    if (strncmp(line, key, length) != 0 || line[length + blanks] != ':')
        return NULL;
    const char *value = line + length + blanks + 1;
    value += strspn(value, " ");
    *ret_length = strcspn(value, "\n");
    return value;
}

static void number_processors(struct peanut_node *node) {
    struct text_set packages = {0};
    for (size_t i = 0; i < node->pu_count; i++) {
        char package[24];
        int length = snprintf(package, sizeof package, "%" PRId64, node->pus[i].package);
        snprintf(node->pus[i].cpu, sizeof node->pus[i].cpu, "%" PRIu32,
                 text_set_add(&packages, package, (size_t)length));
    }
    text_set_clear(&packages);
}

/* The PUs of NODE, and of the first the model and the microcode, into FACTS. */
static void read_cpuinfo(struct peanut_node *node, const char *cpuinfo, cJSON *facts) {
    static const struct {
        const char *key, *fact;
    } texts[] = {{"model name", "cpu_model"}, {"microcode", "microcode"}};
    const char *value;
    size_t length;
    for (const char *line = cpuinfo; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        if (cpuinfo_value(line, "processor", &length) &&
            list_reserve(&node->pus, &node->pu_capacity, node->pu_count + 1, sizeof *node->pus, PUS_MAX) == 0)
            node->pus[node->pu_count++] = (struct peanut_pu){-1, -1, -1, ""};
        for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
            if ((value = cpuinfo_value(line, texts[i].key, &length)) &&
                !cJSON_GetObjectItemCaseSensitive(facts, texts[i].fact))
                json_add_bytes(facts, texts[i].fact, value, length);
        if (node->pu_count == 0)
            continue;
        struct peanut_pu *pu = &node->pus[node->pu_count - 1];
        const struct {
            const char *key;
            int64_t *ret;
        } numbers[] = {{"processor", &pu->index}, {"physical id", &pu->package}, {"core id", &pu->core}};
        for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
            if ((value = cpuinfo_value(line, numbers[i].key, &length)))
                (void)number_parse_int64(value, length, numbers[i].ret);
    }
    number_processors(node);
}

/* The sum of attributes NAME="NUMBER" in TEXT: of the memory of NUMA nodes, as hwloc has it. */
static uint64_t sum_attributes(const char *text, const char *name) {
    uint64_t sum = 0, number;
    for (const char *at = text; (at = strstr(at, name));) {
        at += strlen(name);
        if (number_parse_uint64(at, strspn(at, "0123456789"), &number) && number < UINT64_C(1) << 50)
            sum += number;
    }
    return sum;
}

static void add_pus(const struct peanut_node *node, cJSON *facts) {
    cJSON *pus = json_add_array(facts, "pus");
    int64_t cores = 0;
    for (size_t i = 0; i < node->pu_count; i++) {
        const struct peanut_pu *pu = &node->pus[i];
        cJSON *to = json_add_object(pus, NULL);
        size_t first = 0;
        while (node->pus[first].package != pu->package || node->pus[first].core != pu->core)
            first++;
        cores += first == i;
        json_add_int64(to, "index", pu->index);
        json_add_int64(to, "core", pu->core);
        json_add_int64(to, "package", pu->package);
        json_add_int64(to, "first_sibling", node->pus[first].index);
    }
    json_add_int64(facts, "physical_cores_usable", cores);
}

static int write_facts(struct peanut *peanut, struct peanut_node *node, struct failure *failure) {
    cleanup(json_cleanup) cJSON *facts = cJSON_CreateObject();
    cleanup_free char *inside = archive_node_folder(node->name, 1),
                      *folder = imported_path(&peanut->imported, inside),
                      *path = file_join(folder, ARCHIVE_NODE_FACTS);
    cleanup(text_clear) struct text cpuinfo, topology;
    const char *release = text_at(node->info, "kernel");
    read_node_file(peanut, node, "cpuinfo.txt", &cpuinfo);
    read_node_file(peanut, node, "topology.xml", &topology);
    json_add_string(facts, "host_name", node->name);
    json_add_string(facts, "kernel_name", "Linux");
    json_add_string(facts, "kernel_release", release ? release : "");
    json_add_string(facts, "kernel_version", text_at(node->info, "version"));
    json_add_string(facts, "machine", strstr(topology.bytes, "value=\"x86_64\"") ? "x86_64" : "");
    read_cpuinfo(node, cpuinfo.bytes, facts);
    add_pus(node, facts);
    json_add_uint64(facts, "memory_total_bytes", sum_attributes(topology.bytes, "local_memory=\""));
    int r = file_make_folders(folder, failure);
    return r < 0 ? r : json_write_file(path, facts, failure);
}

/* Moves information/HOST/ to nodes/HOST/raw/. */
static int move_node_files(struct peanut *peanut, const struct peanut_node *node, struct failure *failure) {
    cleanup_free char *folder = archive_node_folder(node->name, 1), *raw = xformat("%s/raw", folder);
    cleanup_free char *from = xformat("%s/information/%s", peanut->folder, node->name),
                      *to = imported_path(&peanut->imported, raw);
    if (rename(from, to) < 0 && errno != ENOENT)
        return failure_set(failure, -errno, "cannot rename '%s' to '%s': %s", from, to, strerror(errno));
    return 0;
}

static int import_nodes(struct peanut *peanut, struct failure *failure) {
    cleanup(json_cleanup) cJSON *versions = cJSON_CreateObject();
    cJSON *nodes = json_add_object(versions, "nodes");
    cleanup_free char *path = imported_path(&peanut->imported, ARCHIVE_VERSIONS),
                      *folder = imported_path(&peanut->imported, ARCHIVE_SOFTWARE);
    int r = file_make_folders(folder, failure);
    for (size_t i = 0; r == 0 && i < peanut->node_count; i++) {
        struct peanut_node *node = &peanut->nodes[i];
        cJSON *software = json_add_object(nodes, node->name);
        static const char *const names[] = {"gcc", "mpi"};
        for (size_t k = 0; k < sizeof names / sizeof *names; k++)
            if (text_at(node->info, names[k]))
                json_add_string(software, names[k], text_at(node->info, names[k]));
        r = write_facts(peanut, node, failure);
        r = r < 0 ? r : move_node_files(peanut, node, failure);
    }
    const struct document_node *git = document_get(peanut->info->root, "git_repositories");
    if (git)
        cJSON_AddItemToObject(versions, "git", json_from_node(git));
    return r < 0 ? r : json_write_file(path, versions, failure);
}

/* ---- Results */

static const struct peanut_node *find_node(const struct peanut *peanut, const char *name) {
    size_t i = 0;
    while (i < peanut->node_count && strcmp(peanut->nodes[i].name, name) != 0)
        i++;
    return i < peanut->node_count ? &peanut->nodes[i] : NULL;
}

static const char *place(void *context, const char *node, const char *core) {
    const struct peanut_node *on = find_node(context, node);
    int64_t index;
    for (size_t i = 0; on && number_parse_int64(core, strlen(core), &index) && i < on->pu_count; i++)
        if (on->pus[i].index == index)
            return on->pus[i].cpu;
    return core;
}

/* What columns are, of a table with COLUMN: the first such table counts. */
static const struct {
    const char *column, *mapping;
} shapes[] = {
    {"ldc",
     "{factors: [function, m, n, k, lda, ldb, ldc], responses: {duration: s}, covariates: {timestamp: s},"
     " node: hostname, core: core,"
     " model: {method: linear, response: duration, terms: M-2, sizes: [m, n, k], by: [node, cpu]},"
     " answer: {response: 2e-9 * m * n * k / duration, unit: Gflop/s, best: most}}"},
    {"matrix_size",
     "{factors: [matrix_size, block_size, proc_p, proc_q, pfact, rfact, bcast, depth, swap, mem_align,"
     " process_per_node, thread_per_process], responses: {time: s, gflops: Gflop/s, residual: '1'},"
     " start: start_timestamp,"
     " model: {method: linear, response: time, terms: matrix_size^3 + matrix_size^2,"
     " sizes: [matrix_size], by: [block_size, proc_p, proc_q]},"
     " answer: {response: gflops, best: most, sizes: [matrix_size]}}"},
    {"size",
     "{factors: [function, size], responses: {duration: s}, covariates: {timestamp: s},"
     " node: hostname, core: core, model: {method: smpi, response: duration, sizes: [size]}, answer: none}"},
    {"duration", "{responses: {duration: s}, node: hostname, core: core, answer: none}"},
};
enum { SHAPES = sizeof shapes / sizeof *shapes };

static const char *const calls_header[] = {"function", "size", "timestamp", "duration"};
static const char *const blas_header[] = {"function", "m", "n", "k", "lda", "ldb", "ldc"};
enum { CALL_FACTORS = 2, BLAS_FACTORS = sizeof blas_header / sizeof *blas_header };

/* The design, which has a header unless the second cell of its first line is a number. RET->path is NULL
 * without it. */
static int open_design(struct peanut *peanut, struct import_file *ret, struct failure *failure) {
    const struct document_node *files = document_get(peanut->info->root, "expfile");
    const struct document_node *first =
        files && files->kind == DOCUMENT_SEQUENCE && files->count > 0 ? files->items[0] : files;
    const char *name = first && first->text && has(peanut, first->text) ? first->text : "exp.csv";
    cleanup_free char *line = NULL;
    size_t size = 0, count = 1;
    double number;
    if (!has(peanut, name) || !text_ends_in(name, ".csv"))
        return 0;
    *ret = file_called(peanut, name);
    cleanup_fclose FILE *file = fopen(ret->path, "re");
    if (!file || getline(&line, &size, file) < 0)
        return failure_input(failure, ret->name, 1, 0, "the design is empty; expected rows");
    for (const char *at = line; (at = strchr(at, ',')); count++)
        at++;
    const char *second = line + strcspn(line, ",");
    second += *second == ',';
    second += strspn(second, " ");
    if (!number_parse_double(second, strcspn(second, ", \r\n"), &number))
        return 0;
    ret->header = count == CALL_FACTORS ? calls_header : blas_header;
    ret->header_count = count == CALL_FACTORS ? CALL_FACTORS : BLAS_FACTORS;
    return 0;
}

/* result.csv, results.csv, or the tables of exp/, which have no header. */
static void find_files(struct peanut *peanut, struct import_table *table) {
    static const char *const names[] = {"result.csv", "results.csv"};
    size_t capacity = 0;
    for (size_t i = 0; i < peanut->staging.count; i++) {
        const struct staged_file *file = &peanut->staging.files[i];
        bool is_calls = strncmp(file->name, "exp/", 4) == 0 && text_ends_in(file->name, ".csv"),
             is_results = strcmp(file->name, names[0]) == 0 || strcmp(file->name, names[1]) == 0;
        if (file->folder || file->size == 0 || !(is_calls || is_results))
            continue;
        if (list_reserve(&table->files, &capacity, table->file_count + 1, sizeof *table->files,
                         ARCHIVE_ENTRIES_MAX) < 0)
            memory_exhausted();
        struct import_file *to = &table->files[table->file_count++];
        *to = file_called(peanut, file->name);
        to->header = is_calls ? calls_header : NULL;
        to->header_count = is_calls ? sizeof calls_header / sizeof *calls_header : 0;
    }
}

static int describe_results(struct peanut *peanut, struct import_table *table, struct failure *failure) {
    cleanup(csv_reader_cleanup) struct csv_reader *csv = NULL;
    cleanup(document_cleanup) struct document *document = NULL;
    cleanup(import_mapping_clear) struct import_mapping mapping = {0};
    size_t s = 0;
    int r = import_table_open(table, &csv, failure);
    if (r < 0)
        return r;
    while (s < SHAPES && !import_table_find(table, shapes[s].column))
        s++;
    if (s == SHAPES)
        return failure_input(
            failure, table->files[0].name, 1, 0,
            "there is no column duration, and none of matrix_size; expected results of a job of peanut");
    r = document_parse_yaml(shapes[s].column, shapes[s].mapping, strlen(shapes[s].mapping), &document,
                            failure);
    r = r < 0 ? r : import_mapping_read(document, &mapping, failure);
    r = r < 0 ? r : import_mapping_apply(&mapping, STRICT_FOR_VALUES, csv, table, failure);
    peanut->imported.run.model = take_pointer(mapping.model);
    peanut->imported.run.answer = take_pointer(mapping.answer);
    table->order_by = import_table_find(table, "timestamp") ? "timestamp" : NULL;
    struct import_column *size = import_table_find(table, "size");
    if (size)
        size->unit = xstrdup("By");
    table->place = import_table_find(table, "core") ? place : NULL;
    return r;
}

static int import_results(struct peanut *peanut, struct failure *failure) {
    cleanup(import_table_clear) struct import_table table = {.core = "all",
                                                             .node = peanut->all_nodes,
                                                             .only_whole_rows = true,
                                                             .description = "One row for each measurement",
                                                             .context = peanut};
    struct import_file design = {0};
    find_files(peanut, &table);
    if (table.file_count == 0 && strcmp(peanut->imported.run.status, "interrupted") == 0)
        return 0;
    if (table.file_count == 0)
        return failure_input(
            failure, peanut->imported.request->file, 0, 0,
            "there are no results in it; expected result.csv, results.csv or exp/*.csv, with content");
    int r = open_design(peanut, &design, failure);
    table.design = design.path ? &design : NULL;
    r = r < 0 ? r : describe_results(peanut, &table, failure);
    r = r < 0 ? r : imported_add_results(&peanut->imported, &table, failure);
    free(design.path), free(design.name);
    return r;
}

/* ---- Monitoring */

/* Units of samples, by how the names of columns begin. */
static const char *const units[][2] = {
    {"temperature", "Cel"}, {"frequency_", "Hz"}, {"power_", "W"},   {"memory_available_percent", "%"},
    {"memory_", "By"},      {"bytes_", "By"},     {"cpu_load", "%"}, {"", "1"}};

static int describe_samples(struct import_table *table, struct failure *failure) {
    cleanup(csv_reader_cleanup) struct csv_reader *csv = NULL;
    int r = import_table_open(table, &csv, failure);
    for (size_t i = 0; r == 0 && i < table->column_count; i++) {
        struct import_column *column = &table->columns[i];
        size_t u = 0;
        while (strncmp(column->name, units[u][0], strlen(units[u][0])) != 0)
            u++;
        free(column->unit);
        column->unit = xstrdup(units[u][1]);
        column->use = strcmp(column->name, "hostname") == 0    ? IMPORT_NODE
                      : strcmp(column->name, "timestamp") == 0 ? IMPORT_START
                                                               : IMPORT_COVARIATE;
    }
    return r;
}

/* Tables of samples of all nodes. One that is no table, as after a kill while it was written, is in imported/
 * only. */
static void import_samples(struct peanut *peanut) {
    static const char *const names[] = {"monitoring", "temperatures"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cleanup_free char *name = xformat("%s.csv", names[i]), *path = archive_table_path(names[i]);
        struct failure why = {0};
        if (!has(peanut, name) || staging_find(&peanut->staging, name)->size == 0)
            continue;
        cleanup(import_table_clear) struct import_table table = {.files = xcalloc(1, sizeof *table.files),
                                                                 .file_count = 1,
                                                                 .node = peanut->all_nodes,
                                                                 .core = "all",
                                                                 .path = path,
                                                                 .description = "Samples of all nodes"};
        table.files[0] = file_called(peanut, name);
        int r = describe_samples(&table, &why);
        r = r < 0 ? r : imported_add_results(&peanut->imported, &table, &why);
        if (r < 0)
            imported_note(&peanut->imported, "%s is no table, and is in imported/ only: %s: %s", name,
                          why.place, why.text);
    }
}

/* ---- Commands */

static void append_text(struct text *out, const char *text) {
    (void)csv_append_field(out, false, text ? text : "", text ? strlen(text) : 0);
}

static void append_command(const struct peanut *peanut, const struct document_node *command,
                           struct text *out) {
    const struct document_node *date = document_get(command, "date"),
                               *hosts = document_get(command, "hostnames");
    const char *start = text_at(date, "start");
    char time[CLOCK_TEXT_SIZE] = "";
    int64_t at;
    cleanup(text_clear) struct text folded;
    cleanup_free const char **names = xcalloc((hosts ? hosts->count : 0) + 1, sizeof *names);
    size_t count = 0;
    text_init(&folded, TEXT_BYTES_MAX);
    for (size_t i = 0; hosts && hosts->kind == DOCUMENT_SEQUENCE && i < hosts->count; i++)
        if (hosts->items[i]->text)
            names[count++] = hosts->items[i]->text;
    (void)host_list_fold(names, count, &folded);
    if (start && import_time(&peanut->imported.zone, start, &at))
        clock_format_ns(at, time);
    (void)csv_append_field(out, true, time, strlen(time));
    append_text(out, text_at(date, "duration"));
    append_text(out, folded.bytes);
    append_text(out, text_at(command, "directory"));
    append_text(out, text_at(command, "command"));
    append_text(out, text_at(command, "return_code")); /* of nodes that differ, history.json has each one's */
    (void)text_append_character(out, '\n');
}

static int import_commands(struct peanut *peanut, struct failure *failure) {
    static const struct column columns[] = {
        {.name = "start", .type = COLUMN_TIME, .role = COLUMN_ROLE_TIME},
        {.name = "duration", .type = COLUMN_NUMBER, .unit = "s"},
        {.name = "node", .type = COLUMN_STRING, .role = COLUMN_ROLE_ID, .help = "nodes that ran it, folded"},
        {.name = "folder", .type = COLUMN_STRING},
        {.name = "command", .type = COLUMN_STRING},
        {.name = "exit", .type = COLUMN_INTEGER, .help = "empty where nodes differ"},
    };
    enum { COUNT = sizeof columns / sizeof *columns };
    cleanup(document_cleanup) struct document *history = NULL;
    cleanup(text_clear) struct text out;
    text_init(&out, DOCUMENT_JSON_BYTES_MAX);
    int r = read_document(peanut, "history.json", document_parse_json, &history, failure);
    if (r < 0 || !history)
        return r;
    if (history->root->kind != DOCUMENT_SEQUENCE)
        return failure_input(failure, history->file, history->root->line, history->root->column,
                             "this is %s; expected a list of commands",
                             document_kind_name(history->root->kind));
    imported_append_header(&out, columns, COUNT);
    for (size_t i = 0; i < history->root->count; i++)
        append_command(peanut, history->root->items[i], &out);
    return imported_add_table(&peanut->imported, ARCHIVE_COMMAND_TABLE,
                              "Commands that peanut ran; imported/history.json has their outputs", columns,
                              COUNT, &out, failure);
}

/* ---- The whole */

/* Names that begin with a point are no members of archives: said, and gone. */
static void note_kept(struct peanut *peanut, struct archive_reader *archive) {
    size_t hidden = 0;
    for (size_t i = 0; i < archive_member_count(archive); i++) {
        const char *name = archive_member_name(archive, i);
        hidden += name[0] == '.' || strstr(name, "/.") != NULL;
    }
    for (size_t i = 0; i < peanut->staging.count; i++) {
        const struct staged_file *file = &peanut->staging.files[i];
        cleanup_free char *path = file_join(peanut->folder, file->name);
        uint32_t number;
        if (!file->folder && !text_set_find(&peanut->is_made, file->name, strlen(file->name), &number) &&
            file_exists(path))
            bind_texts_add(&peanut->imported.run.import->kept, file->name);
    }
    if (hidden > 0)
        imported_note(&peanut->imported, "%zu files are left out: their names begin with a point", hidden);
}

static int unpack(struct peanut *peanut, struct archive_reader *archive, struct failure *failure) {
    const char *file = peanut->imported.request->file;
    if (archive_find(archive, ARCHIVE_RUN, NULL) && archive_find(archive, ARCHIVE_MANIFEST, NULL))
        return failure_input(failure, file, 0, 0,
                             "this is an archive of assay already; expected one of peanut");
    if (!archive_find(archive, "info.yaml", NULL))
        return failure_input(failure, file, 0, 0,
                             "this is no archive of peanut: there is no info.yaml in it");
    peanut->folder = imported_path(&peanut->imported, ARCHIVE_IMPORTS);
    int r = archive_extract(archive, peanut->folder, NULL, 0, failure);
    r = r < 0 ? r : staging_scan(peanut->folder, &peanut->staging, failure);
    r = r < 0 ? r : read_document(peanut, "info.yaml", document_parse_yaml, &peanut->info, failure);
    if (r == 0 && peanut->info->root->kind != DOCUMENT_MAPPING)
        r = failure_input(failure, peanut->info->file, 1, 0, "this is %s; expected a mapping",
                          document_kind_name(peanut->info->root->kind));
    return r;
}

static void peanut_clear(struct peanut *peanut) {
    for (size_t i = 0; i < peanut->node_count; i++)
        free(peanut->nodes[i].pus);
    free(peanut->nodes), free(peanut->all_nodes), free(peanut->folder);
    document_free(peanut->info);
    text_set_clear(&peanut->is_made);
    staging_clear(&peanut->staging);
    imported_clear(&peanut->imported);
}

int import_peanut(const struct import_request *request, struct import_result *ret, struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    cleanup(peanut_clear) struct peanut peanut = {0};
    int r = archive_open_foreign(request->file, &archive, failure);
    r = r < 0 ? r : imported_begin(request, "peanut", ret, &peanut.imported, failure);
    peanut.imported.zone.kind = ZONE_FRANCE;
    peanut.imported.summary = "Measured by the engine peanut on Grid'5000, and imported by assay";
    r = r < 0 ? r : unpack(&peanut, archive, failure);
    r = r < 0 ? r : find_nodes(&peanut, failure);
    r = r < 0 ? r : read_job(&peanut, failure);
    r = r < 0 ? r : import_nodes(&peanut, failure);
    r = r < 0 ? r : import_results(&peanut, failure);
    r = r < 0 ? r : import_commands(&peanut, failure);
    if (r < 0)
        return r;
    import_samples(&peanut);
    r = read_phases(&peanut, failure);
    if (r < 0)
        return r;
    note_kept(&peanut, archive);
    return imported_seal(&peanut.imported, failure);
}
