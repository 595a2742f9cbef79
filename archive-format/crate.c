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
#define OTHER_ENGINE_ID "#measured-by"
#define ORIGIN_ID "#based-on"

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
    const struct archive_place *place = archive_place_find(file->name);
    const char *slash = strrchr(file->name, '/');
    bool facts =
        strncmp(file->name, ARCHIVE_NODES "/", 6) == 0 && slash && strcmp(slash + 1, ARCHIVE_NODE_FACTS) == 0;
    char size[24];
    snprintf(size, sizeof size, "%" PRIu64, file->size);
    cJSON *object =
        entity(crate, file->name, "File", place ? place->name : file->name,
               place ? place->description
                     : (facts ? "What this node is: processor, memory, kernel" : "File of the run"));
    json_add_string(object, "encodingFormat", encoding_of(file->name));
    json_add_string(object, "contentSize", size);
    if (file->sha256[0] != '\0')
        json_add_string(object, "sha256", file->sha256);
    if (strcmp(file->name, ARCHIVE_JOURNAL) == 0 || strncmp(file->name, ARCHIVE_LOGS "/", 5) == 0)
        refer(object, "about", crate->run);
}

static void describe_folder(struct crate *crate, const struct staged_file *folder) {
    const struct archive_place *place = archive_place_find(folder->name);
    bool node = strncmp(folder->name, ARCHIVE_NODES "/", 6) == 0 && !strchr(folder->name + 6, '/');
    bool raw = strcmp(strrchr(folder->name, '/') ? strrchr(folder->name, '/') : "", "/raw") == 0;
    const char *other = node  ? "What this node is"
                        : raw ? "Files as they were found; the manifest lists each"
                              : "Folder of the run";
    cleanup_free char *id = xformat("%s/", folder->name);
    entity(crate, id, "Dataset", place ? place->name : folder->name, place ? place->description : other);
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

static void refer_to_part(cJSON *parts, const struct staged_file *part) {
    cleanup_free char *id = xformat(part->folder ? "%s/" : "%s", part->name);
    refer(parts, NULL, id);
}

static void refer_to_places(struct crate *crate, cJSON *parts, enum archive_place_role role) {
    for (size_t i = 0; i < archive_place_count; i++) {
        const struct staged_file *part = staging_find(crate->staging, archive_places[i].path);
        if (part && archive_places[i].role == role)
            refer_to_part(parts, part);
    }
}

static void describe_run(struct crate *crate) {
    const struct archive_description *description = crate->description;
    bool completed = strcmp(description->status, "completed") == 0;
    char time[CLOCK_TEXT_SIZE];
    cleanup_free char *name =
        xformat(description->kind == ARCHIVE_OF_RUN ? "Run of %s" : "%s", description->name);
    cJSON *run = entity(crate, crate->run, "CreateAction", name, description->command);
    json_add_string(run, "startTime", clock_format(description->started_ns, time));
    json_add_string(run, "endTime", clock_format(description->ended_ns, time));
    refer(run, "instrument", description->measured_by ? OTHER_ENGINE_ID : crate->engine);
    if (description->agent)
        refer(run, "agent", "#agent");
    refer_to_places(crate, json_add_array(run, "object"), ARCHIVE_PLACE_OBJECT);
    refer_to_places(crate, json_add_array(run, "result"), ARCHIVE_PLACE_RESULT);
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

/* The archive of the run that this one repeats. */
static void describe_origin(struct crate *crate) {
    const struct archive_origin *origin = crate->description->based_on;
    cleanup_free char *id = xformat("urn:uuid:%s", origin->run_id);
    cJSON *object = entity(crate, ORIGIN_ID, "CreativeWork", origin->archive,
                           "The archive of the run that was run again");
    json_add_string(object, "identifier", id);
    if (origin->sha256)
        json_add_string(object, "sha256", origin->sha256);
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
    if (description->measured_by)
        entity(crate, OTHER_ENGINE_ID, "SoftwareApplication", description->measured_by,
               "The program that measured; assay imported what it wrote");
    if (description->agent)
        entity(crate, "#agent", "Person", description->agent, NULL);
    if (description->based_on)
        describe_origin(crate);
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
    if (description->based_on)
        refer(root, "isBasedOn", ORIGIN_ID);
    refer(json_add_array(root, "conformsTo"), NULL, PROCESS_PROFILE);
    json_add_string(root, "identifier", crate->run);
    refer(json_add_array(root, "mentions"), NULL, crate->run);
    cJSON *parts = json_add_array(root, "hasPart");
    refer(parts, NULL, ARCHIVE_MANIFEST);
    for (size_t i = 0; i < staging->count; i++)
        if (described[i])
            refer_to_part(parts, &staging->files[i]);
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
