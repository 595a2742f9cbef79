#include "archive-format/crate.h"

#include "archive-format/reader-private.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define PROCESS_PROFILE "https://w3id.org/ro/wfrun/process/0.5"
#define NO_LICENSE_ID "#no-license"

struct crate {
    const struct staging *staging;
    const struct archive_description *description;
    cJSON *graph;
    char *run;    /* @id of the action */
    char *engine; /* @id of the instrument */
};

/* ---- Entities */

static void refer(cJSON *object, const char *key, const char *id) {
    json_add_string(json_add_object(object, key), "@id", id);
}

static cJSON *entity(struct crate *crate, const char *id, const char *type, const char *name,
                     const char *description) {
    cJSON *object = json_add_object(crate->graph, NULL);
    json_add_string(object, "@id", id);
    json_add_string(object, "@type", type);
    if (name)
        json_add_string(object, "name", name);
    if (description)
        json_add_string(object, "description", description);
    return object;
}

/* ---- What the files are */

struct meaning {
    const char *path, *name, *description;
};

static const struct meaning meanings[] = {
    {ARCHIVE_MANIFEST, "Manifest", "SHA-256 of every other file, as sha256sum writes and checks it"},
    {ARCHIVE_README, "Read me", "How to open, verify, cite and repeat this run"},
    {ARCHIVE_RUN, "Run record", "The run in short: status, times, seed, counts, nodes, options"},
    {"campaign.yaml", "Campaign", "What was asked for, byte for byte as the user wrote it"},
    {"campaign.resolved.json", "Resolved campaign", "The campaign with every default filled in"},
    {"source.tar", "Source", "What the experiment built, before it was built"},
    {"design.csv", "Design", "The planned rows; results.csv says in which order they ran"},
    {ARCHIVE_DATAPACKAGE, "Columns", "Type, unit and role of every column of every table (Data Package 2.0)"},
    {"results/results.csv", "Results",
     "One row for each unit that was done: factors, place, time, responses"},
    {"results/repeat.csv", "How well rows are known",
     "One row for each of the design: how often it was repeated, and how narrow its mean's interval is"},
    {"journal.jsonl", "Journal", "What the engine did, in order, one JSON object a line"},
    {"logs/engine.log", "Engine log", "What the engine printed for its user"},
    {"software/versions.json", "Software versions",
     "Compiler, libraries and programs that the experiment used"},
    {"experiment", "Experiment", "The experiment's own files: declaration and sources"},
    {"results", "Results", "The table of results, and what the experiment wrote besides"},
    {"results/raw", "Raw results",
     "Files and outputs of the experiment as they were; the manifest lists each"},
    {"results/tables", "Further tables", "What units printed line by line, one file a table"},
    {"nodes", "Nodes", "What each machine is, one folder a node"},
    {"logs", "Logs", "Logs of the engine and of the experiment"},
    {"software", "Software", "The software that the experiment used"},
};

static const struct meaning *find_meaning(const char *path) {
    for (size_t i = 0; i < sizeof meanings / sizeof *meanings; i++)
        if (strcmp(meanings[i].path, path) == 0)
            return &meanings[i];
    return NULL;
}

const char *crate_describe(const char *path) {
    const struct meaning *meaning = find_meaning(path);
    return meaning ? meaning->description : NULL;
}

static const char *encoding_of(const char *name) {
    static const struct {
        const char *ending, *encoding;
    } encodings[] = {
        {".csv", "text/csv"},
        {".json", "application/json"},
        {".jsonl", "application/jsonl"},
        {".yaml", "application/yaml"},
        {".yml", "application/yaml"},
        {".md", "text/markdown"},
        {".txt", "text/plain"},
        {".log", "text/plain"},
        {".out", "text/plain"},
        {".err", "text/plain"},
        {".xml", "application/xml"},
        {".c", "text/x-c"},
        {".h", "text/x-c"},
        {".py", "text/x-python"},
        {".sh", "application/x-sh"},
        {".R", "text/x-r"},
        {".gz", "application/gzip"},
        {".zip", "application/zip"},
        {".tar", "application/x-tar"},
        {".html", "text/html"},
        {".svg", "image/svg+xml"},
        {".png", "image/png"},
        {".pdf", "application/pdf"},
        {".zst", "application/zstd"},
    };
    size_t length = strlen(name);
    for (size_t i = 0; i < sizeof encodings / sizeof *encodings; i++) {
        size_t ending = strlen(encodings[i].ending);
        if (length > ending && strcmp(name + length - ending, encodings[i].ending) == 0)
            return encodings[i].encoding;
    }
    return "application/octet-stream";
}

static void describe_file(struct crate *crate, const struct staged_file *file) {
    const struct meaning *meaning = find_meaning(file->name);
    const char *slash = strrchr(file->name, '/');
    bool facts = strncmp(file->name, "nodes/", 6) == 0 && slash && strcmp(slash, "/facts.json") == 0;
    char size[24];
    snprintf(size, sizeof size, "%" PRIu64, file->size);
    cJSON *object =
        entity(crate, file->name, "File", meaning ? meaning->name : file->name,
               meaning ? meaning->description
                       : (facts ? "What this node is: processor, memory, kernel" : "File of the run"));
    json_add_string(object, "encodingFormat", encoding_of(file->name));
    json_add_string(object, "contentSize", size);
    if (file->sha256[0] != '\0')
        json_add_string(object, "sha256", file->sha256);
    if (strcmp(file->name, "journal.jsonl") == 0 || strncmp(file->name, "logs/", 5) == 0)
        refer(object, "about", crate->run);
}

static void describe_folder(struct crate *crate, const struct staged_file *folder) {
    const struct meaning *meaning = find_meaning(folder->name);
    bool node = strncmp(folder->name, "nodes/", 6) == 0 && !strchr(folder->name + 6, '/');
    bool raw = strcmp(strrchr(folder->name, '/') ? strrchr(folder->name, '/') : "", "/raw") == 0;
    const char *other = node  ? "What this node is"
                        : raw ? "Files as they were found; the manifest lists each"
                              : "Folder of the run";
    cleanup_free char *id = xformat("%s/", folder->name);
    entity(crate, id, "Dataset", meaning ? meaning->name : folder->name,
           meaning ? meaning->description : other);
}

/* The manifest's size is known before the manifest: each line has two known parts. */
static struct staged_file foresee_manifest(const struct staging *staging) {
    const size_t beside_name = HASH_HEX_SIZE - 1 + 2 + 1;
    struct staged_file manifest = {.name = (char *)ARCHIVE_MANIFEST,
                                   .size = beside_name + strlen(ARCHIVE_CRATE)};
    for (size_t i = 0; i < staging->count; i++) {
        const struct staged_file *file = &staging->files[i];
        if (!file->folder && strcmp(file->name, ARCHIVE_MANIFEST) != 0 &&
            strcmp(file->name, ARCHIVE_CRATE) != 0)
            manifest.size += beside_name + strlen(file->name);
    }
    return manifest;
}

/* The folder that FILE is in; NULL for the root. */
static struct staged_file *folder_of(const struct staging *staging, const struct staged_file *file) {
    const char *slash = strrchr(file->name, '/');
    cleanup_free char *folder = slash ? xstrndup(file->name, (size_t)(slash - file->name)) : NULL;
    return folder ? staging_find(staging, folder) : NULL;
}

/* Marks in DESCRIBED the files and folders that get an entity of their own: those that are not below a folder
 * called "raw", and files only where there are few. */
static void choose(const struct staging *staging, bool *described) {
    cleanup_free size_t *files_in = xcalloc(staging->count + 1, sizeof *files_in);
    size_t chosen = 0;
    for (size_t i = 0; i < staging->count; i++) {
        struct staged_file *folder = folder_of(staging, &staging->files[i]);
        if (folder && !staging->files[i].folder)
            files_in[folder - staging->files]++;
    }
    for (size_t i = 0; i < staging->count; i++) {
        const struct staged_file *file = &staging->files[i];
        const struct staged_file *folder = folder_of(staging, file);
        if (strcmp(file->name, ARCHIVE_CRATE) == 0 || strcmp(file->name, ARCHIVE_MANIFEST) == 0)
            continue;
        bool many = !file->folder && folder && files_in[folder - staging->files] > CRATE_FOLDER_FILES_MAX;
        described[i] = !many && !strstr(file->name, "/raw/") && chosen < CRATE_ENTITIES_MAX;
        chosen += described[i];
    }
}

/* ---- The run */

static void refer_to_parts(struct crate *crate, cJSON *parts, const char *const *names, size_t count) {
    for (size_t i = 0; i < count; i++) {
        const struct staged_file *part = staging_find(crate->staging, names[i]);
        if (!part)
            continue;
        cleanup_free char *id = xformat(part->folder ? "%s/" : "%s", names[i]);
        refer(parts, NULL, id);
    }
}

static void describe_run(struct crate *crate) {
    static const char *const objects[] = {"campaign.yaml", "campaign.resolved.json", "design.csv",
                                          "experiment"};
    static const char *const results[] = {
        "results/results.csv", "results/repeat.csv", "results/tables", "results/raw", "nodes", "software"};
    const struct archive_description *description = crate->description;
    bool completed = strcmp(description->status, "completed") == 0;
    char time[CLOCK_TEXT_SIZE];
    cleanup_free char *name = xformat("Run of %s", description->name);
    cJSON *run = entity(crate, crate->run, "CreateAction", name, description->command);
    json_add_string(run, "startTime", clock_format(description->started_ns, time));
    json_add_string(run, "endTime", clock_format(description->ended_ns, time));
    refer(run, "instrument", crate->engine);
    if (description->agent)
        refer(run, "agent", "#agent");
    refer_to_parts(crate, json_add_array(run, "object"), objects, sizeof objects / sizeof *objects);
    refer_to_parts(crate, json_add_array(run, "result"), results, sizeof results / sizeof *results);
    /* A plain string: the profile's checks do not take a reference here. */
    json_add_string(run, "actionStatus",
                    completed ? "http://schema.org/CompletedActionStatus"
                              : "http://schema.org/FailedActionStatus");
    if (!completed) {
        cleanup_free char *error =
            description->error ? xstrdup(description->error) : xformat("the run is %s", description->status);
        json_add_string(run, "error", error);
    }
}

static void describe_others(struct crate *crate) {
    const struct archive_description *description = crate->description;
    cJSON *profile = entity(crate, PROCESS_PROFILE, "CreativeWork", "Process Run Crate", NULL);
    json_add_string(profile, "version", "0.5");
    /* The root of a crate must have a licence: where none was given, an entity that says so, at no address.
     */
    entity(crate, description->license ? description->license : NO_LICENSE_ID, "CreativeWork",
           description->license ? description->license : ARCHIVE_NO_LICENSE,
           description->license ? "The licence of this archive"
                                : "Ask the authors before you publish or change what is in this archive");
    cJSON *engine = entity(crate, crate->engine, "SoftwareApplication", "assay",
                           "Runs calibration campaigns on machines and archives them");
    json_add_string(engine, "version", description->engine_version);
    if (description->engine_url)
        json_add_string(engine, "url", description->engine_url);
    if (description->agent)
        entity(crate, "#agent", "Person", description->agent, NULL);
}

static void describe_root(struct crate *crate, const bool *described) {
    const struct archive_description *description = crate->description;
    const struct staging *staging = crate->staging;
    char time[CLOCK_TEXT_SIZE];
    clock_format(description->ended_ns, time);
    cJSON *metadata = entity(crate, ARCHIVE_CRATE, "CreativeWork", NULL, NULL);
    refer(metadata, "about", "./");
    refer(metadata, "conformsTo", "https://w3id.org/ro/crate/1.1");
    cJSON *root = entity(crate, "./", "Dataset", description->name, description->text);
    json_add_string(root, "datePublished", time);
    json_add_string(root, "dateCreated", time);
    refer(root, "license", description->license ? description->license : NO_LICENSE_ID);
    if (description->agent)
        refer(root, "author", "#agent");
    refer(json_add_array(root, "conformsTo"), NULL, PROCESS_PROFILE);
    json_add_string(root, "identifier", crate->run);
    refer(json_add_array(root, "mentions"), NULL, crate->run);
    cJSON *parts = json_add_array(root, "hasPart");
    refer(parts, NULL, ARCHIVE_MANIFEST);
    for (size_t i = 0; i < staging->count; i++)
        if (described[i])
            refer_to_parts(crate, parts, (const char *const[]){staging->files[i].name}, 1);
}

int crate_print(const struct staging *staging, const struct archive_description *description,
                struct text *ret, struct failure *failure) {
    cleanup(json_cleanup) cJSON *document = cJSON_CreateObject();
    cleanup_free bool *described = xcalloc(staging->count + 1, sizeof *described);
    cleanup_free char *run = xformat("urn:uuid:%s", description->run_id);
    cleanup_free char *engine = description->engine_url
                                    ? xformat("%s#%s", description->engine_url, description->engine_version)
                                    : xformat("#assay-%s", description->engine_version);
    choose(staging, described);
    struct crate crate = {.staging = staging, .description = description, .run = run, .engine = engine};
    cJSON *context = json_add_array(document, "@context");
    json_add_string(context, NULL, "https://w3id.org/ro/crate/1.1/context");
    json_add_string(context, NULL, "https://w3id.org/ro/terms/workflow-run/context"); /* has sha256 */
    crate.graph = json_add_array(document, "@graph");
    struct staged_file manifest = foresee_manifest(staging);
    describe_root(&crate, described);
    describe_others(&crate);
    describe_run(&crate);
    describe_file(&crate, &manifest);
    for (size_t i = 0; i < staging->count; i++)
        if (described[i] && staging->files[i].folder)
            describe_folder(&crate, &staging->files[i]);
        else if (described[i])
            describe_file(&crate, &staging->files[i]);
    int r = json_print(document, true, ret);
    if (r == 0)
        r = text_append_character(ret, '\n');
    return r < 0 ? failure_set(failure, r, "cannot write ro-crate-metadata.json: %s", strerror(-r)) : 0;
}
