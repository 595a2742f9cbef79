#include "archive-format/crate/crate.h"

#include "archive-format/crate/crate-private.h"
#include "archive-format/reader-private.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define NO_LICENSE_ID "#no-license"
#define OTHER_ENGINE_ID "#measured-by"
#define ORIGIN_ID "#based-on"
enum { CRATE_MACHINES_MAX = 64, ORCID_LENGTH = sizeof "https://orcid.org/0000-0000-0000-0000" - 1 };

/* ---- Entities */

void crate_refer(cJSON *object, const char *key, const char *id) {
    json_add_string(json_add_object(object, key), "@id", id);
}

cJSON *crate_entity(struct crate *crate, const char *id, const char *type, const char *name,
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
        crate_entity(crate, file->name, "File", place ? place->name : file->name,
                     place ? place->description
                           : (facts ? "What this node is: processor, memory, kernel" : "File of the run"));
    json_add_string(object, "encodingFormat", encoding_of(file->name));
    json_add_string(object, "contentSize", size);
    if (file->sha256[0] != '\0')
        json_add_string(object, "sha256", file->sha256);
    if (strcmp(file->name, ARCHIVE_JOURNAL) == 0 || strncmp(file->name, ARCHIVE_LOGS "/", 5) == 0)
        crate_refer(object, "about", crate->run);
}

static void describe_folder(struct crate *crate, const struct staged_file *folder) {
    const struct archive_place *place = archive_place_find(folder->name);
    bool node = strncmp(folder->name, ARCHIVE_NODES "/", 6) == 0 && !strchr(folder->name + 6, '/');
    bool raw = strcmp(strrchr(folder->name, '/') ? strrchr(folder->name, '/') : "", "/raw") == 0;
    cleanup_free char *facts = node ? xformat("%s/" ARCHIVE_NODE_FACTS, folder->name) : NULL;
    cleanup_free char *machine =
        node && crate->machines++ < CRATE_MACHINES_MAX ? describe_machine(crate->staging, facts) : NULL;
    const char *other = machine ? machine
                        : node  ? "What this node is"
                        : raw   ? "Files as they were found; the manifest lists each"
                                : "Folder of the run";
    cleanup_free char *id = xformat("%s/", folder->name);
    crate_entity(crate, id, "Dataset", place ? place->name : folder->name,
                 place ? place->description : other);
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

/* Marks in DESCRIBED the files and folders that get an entity of their own: those with a meaning of their
 * own, to which the run refers; of the others those that are not below a folder called "raw", and files only
 * where there are few. */
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
        if (describe_is_made_last(file->name))
            continue;
        bool many = !file->folder && folder && files_in[folder - staging->files] > CRATE_FOLDER_FILES_MAX;
        bool other = !many && !strstr(file->name, "/raw/") && chosen < CRATE_ENTITIES_MAX;
        described[i] = other || archive_place_find(file->name);
        chosen += described[i];
    }
}

/* ---- The run */

static void refer_to_part(cJSON *parts, const struct staged_file *part) {
    cleanup_free char *id = xformat(part->folder ? "%s/" : "%s", part->name);
    crate_refer(parts, NULL, id);
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
    cJSON *run = crate_entity(crate, crate->run, "CreateAction", name, description->command);
    json_add_string(run, "startTime", clock_format(description->started_ns, time));
    json_add_string(run, "endTime", clock_format(description->ended_ns, time));
    crate_refer(run, "instrument", description->measured_by ? OTHER_ENGINE_ID : crate->engine);
    if (description->agent)
        crate_refer(run, "agent", crate->agent);
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
    cJSON *object = crate_entity(crate, ORIGIN_ID, "CreativeWork", origin->archive,
                                 "The archive of the run that was run again");
    json_add_string(object, "identifier", id);
    if (origin->sha256)
        json_add_string(object, "sha256", origin->sha256);
}

/* The number in "Josiah Carberry <https://orcid.org/0000-0002-1825-0097>", which is then the @id; or NULL. */
static const char *find_orcid(const char *agent) {
    static const char address[] = "https://orcid.org/", form[] = "dddd-dddd-dddd-dddx";
    const char *at = agent ? strstr(agent, address) : NULL;
    const char *number = at ? at + sizeof address - 1 : NULL;
    for (size_t i = 0; number && form[i]; i++) {
        bool is_digit = number[i] >= '0' && number[i] <= '9';
        if (form[i] == '-' ? number[i] != '-' : !is_digit && !(form[i] == 'x' && number[i] == 'X'))
            return NULL;
    }
    return at;
}

static void describe_agent(struct crate *crate) {
    const char *agent = crate->description->agent, *orcid = find_orcid(agent);
    if (!agent)
        return;
    size_t length = orcid ? (size_t)(orcid - agent) : strlen(agent);
    while (orcid && length > 0 && strchr(" <(,;", agent[length - 1]))
        length--;
    cleanup_free char *name = xstrndup(length ? agent : crate->agent, length ? length : strlen(crate->agent));
    cJSON *person = crate_entity(crate, crate->agent, "Person", name, NULL);
    if (orcid)
        json_add_string(person, "url", crate->agent);
}

static cJSON *describe_engine(struct crate *crate) {
    const struct archive_description *description = crate->description;
    const struct archive_engine *built = &crate->of->engine;
    cleanup_free char *text =
        xformat("Runs calibration campaigns on machines and archives them%s%s",
                built->commit ? "; built from commit " : "", built->commit ? built->commit : "");
    cJSON *engine = crate_entity(crate, crate->engine, "SoftwareApplication", "assay", text);
    json_add_string(engine, "version", description->engine_version);
    if (built->sha256)
        json_add_string(engine, "sha256", built->sha256);
    if (description->engine_url)
        json_add_string(engine, "url", description->engine_url);
    return engine;
}

static void describe_others(struct crate *crate) {
    const struct archive_description *description = crate->description;
    cJSON *profile = crate_entity(crate, CRATE_PROFILE, "CreativeWork", "Process Run Crate",
                                  "How the run, its inputs and its outputs are described");
    json_add_string(profile, "version", "0.5");
    /* The root of a crate must have a licence: where none was given, an entity that says so, at no address.
     */
    crate_entity(crate, description->license ? description->license : NO_LICENSE_ID, "CreativeWork",
                 description->license ? description->license : ARCHIVE_NO_LICENSE,
                 description->license
                     ? "The licence of this archive"
                     : "Ask the authors before you publish or change what is in this archive");
    cJSON *instrument = describe_engine(crate);
    if (description->measured_by) {
        instrument = crate_entity(crate, OTHER_ENGINE_ID, "SoftwareApplication", description->measured_by,
                                  "The program that measured; assay imported what it wrote");
        const char *blank = strrchr(description->measured_by, ' ');
        json_add_string(instrument, "version", blank ? blank + 1 : "not known");
    }
    crate_describe_software(crate, instrument);
    describe_agent(crate);
    if (description->based_on)
        describe_origin(crate);
}

static void describe_root(struct crate *crate, const bool *described) {
    const struct archive_description *description = crate->description;
    const struct staging *staging = crate->staging;
    char time[CLOCK_TEXT_SIZE];
    clock_format(description->ended_ns, time);
    cJSON *metadata = crate_entity(crate, ARCHIVE_CRATE, "CreativeWork", NULL, NULL);
    crate_refer(metadata, "about", "./");
    crate_refer(metadata, "conformsTo", CRATE_SPECIFICATION);
    cJSON *root = crate_entity(crate, "./", "Dataset", description->name, description->text);
    json_add_string(root, "datePublished", time);
    json_add_string(root, "dateCreated", time);
    crate_refer(root, "license", description->license ? description->license : NO_LICENSE_ID);
    if (description->agent)
        crate_refer(root, "author", crate->agent);
    if (description->based_on)
        crate_refer(root, "isBasedOn", ORIGIN_ID);
    crate_refer(json_add_array(root, "conformsTo"), NULL, CRATE_PROFILE);
    json_add_string(root, "identifier", crate->run);
    crate_refer(json_add_array(root, "mentions"), NULL, crate->run);
    cJSON *parts = json_add_array(root, "hasPart");
    crate_refer(parts, NULL, ARCHIVE_MANIFEST);
    for (size_t i = 0; i < staging->count; i++)
        if (described[i])
            refer_to_part(parts, &staging->files[i]);
}

int crate_print(const struct sealed_content *content, struct text *ret, struct failure *failure) {
    const struct staging *staging = content->staging;
    const struct archive_description *description = content->description;
    cleanup(json_cleanup) cJSON *document = cJSON_CreateObject();
    cleanup_free bool *described = xcalloc(staging->count + 1, sizeof *described);
    cleanup_free char *run = xformat("urn:uuid:%s", description->run_id);
    cleanup_free char *engine = description->engine_url
                                    ? xformat("%s#%s", description->engine_url, description->engine_version)
                                    : xformat("#assay-%s", description->engine_version);
    const char *orcid = find_orcid(description->agent);
    cleanup_free char *agent = orcid ? xstrndup(orcid, ORCID_LENGTH) : xstrdup("#agent");
    choose(staging, described);
    struct crate crate = {.staging = staging,
                          .description = description,
                          .of = content->run,
                          .run = run,
                          .engine = engine,
                          .agent = agent};
    cJSON *context = json_add_array(document, "@context");
    json_add_string(context, NULL, CRATE_CONTEXT);
    json_add_string(context, NULL, CRATE_RUN_CONTEXT); /* has sha256 */
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
