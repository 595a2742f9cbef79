/* The software of an archive in its crate: what software/versions.json, the facts of the nodes and run.json
 * record, each piece once however many nodes have it. */
#include "archive-format/crate/crate-private.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text-set.h"

#include <stdlib.h>
#include <string.h>

enum { SOFTWARE_MAX = 512, FACTS_READ_MAX = 1024 /* files */, HASH_SHOWN = 12 };

struct software {
    struct crate *crate;
    cJSON *instrument, *requirements; /* the latter made with the first piece */
    struct text_set known;
};

/* A piece of software. Members that are NULL are not known. */
struct piece {
    const char *type; /* of the crate; NULL: SoftwareApplication */
    const char *name, *version, *sha256, *url, *description;
};

static void add(struct software *software, const struct piece *piece) {
    cleanup_free char *key = xformat("%s\n%s\n%s", piece->name, piece->version ? piece->version : "",
                                     piece->sha256 ? piece->sha256 : "");
    cleanup_free char *by_hash = piece->sha256 ? xformat("sha256:%.*s", HASH_SHOWN, piece->sha256) : NULL;
    size_t count = software->known.count;
    if (count == SOFTWARE_MAX || text_set_add(&software->known, key, strlen(key)) < count)
        return;
    cleanup_free char *id = xformat("#software-%zu", count + 1);
    cJSON *entity =
        crate_entity(software->crate, id, piece->type ? piece->type : "SoftwareApplication", piece->name,
                     piece->description ? piece->description : "Software of the run");
    json_add_string(entity, "version", piece->version ? piece->version : by_hash ? by_hash : "not known");
    if (piece->sha256)
        json_add_string(entity, "sha256", piece->sha256);
    if (piece->url)
        json_add_string(entity, "url", piece->url);
    if (!software->requirements)
        software->requirements = json_add_array(software->instrument, "softwareRequirements");
    crate_refer(software->requirements, NULL, id);
}

/* The text of member KEY; NULL where there is none. */
static const char *text_of(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    return value && value->kind == DOCUMENT_TEXT && value->text[0] ? value->text : NULL;
}

/* A list of programs or libraries, each with its own libraries. Lists nest at most so deep as documents do.
 */
static void add_files(struct software *software, const struct document_node *list) {
    for (size_t i = 0; list && list->kind == DOCUMENT_SEQUENCE && i < list->count; i++) {
        const struct document_node *file = list->items[i];
        const char *path = text_of(file, "path"), *package = text_of(file, "package"),
                   *version = text_of(file, "version"), *name = text_of(file, "name");
        cleanup_free char *description = xformat("%s%s%s", path ? path : "not found",
                                                 package ? ", of package " : "", package ? package : "");
        if (path || name)
            add(software, &(struct piece){.name = path ? file_base_name(path) : name,
                                          .version = version ? version : package,
                                          .sha256 = text_of(file, "sha256"),
                                          .description = description});
        add_files(software, document_get(file, "libraries"));
    }
}

/* A mapping of names to versions. */
static void add_versions(struct software *software, const struct document_node *versions,
                         const char *description) {
    for (size_t i = 0; versions && versions->kind == DOCUMENT_MAPPING && i < versions->count; i++)
        if (versions->items[i]->kind == DOCUMENT_TEXT)
            add(software, &(struct piece){.name = versions->keys[i]->text,
                                          .version = versions->items[i]->text,
                                          .description = description});
}

static void add_source(struct software *software, const struct document_node *source) {
    const char *git = text_of(source, "git"), *folder = text_of(source, "folder"),
               *dirty = text_of(source, "dirty");
    cleanup_free char *description =
        xformat("Source that the run built%s%s", dirty ? ", changed: " : "", dirty ? dirty : "");
    if (git || folder)
        add(software, &(struct piece){.type = "SoftwareSourceCode",
                                      .name = git ? file_base_name(git) : folder,
                                      .version = text_of(source, "commit"),
                                      .sha256 = text_of(source, "sha256"),
                                      .url = git,
                                      .description = description});
}

static void add_node(struct software *software, const struct document_node *node) {
    static const struct {
        const char *key, *name;
    } values[] = {{"compiler", "C compiler"}, {"libc", "C library"}, {"mpi", "MPI"}};
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        if (text_of(node, values[i].key))
            add(software, &(struct piece){.name = values[i].name,
                                          .version = text_of(node, values[i].key),
                                          .description = "Of a node, as it calls itself"});
    add_source(software, document_get(node, "source"));
    add_files(software, document_get(node, "programs"));
    add_files(software, document_get(node, "libraries"));
    add_versions(software, document_get(node, "packages"), "Package of a node");
    add_versions(software, document_get(node, "kernel"), "As the kernel of the experiment reported it");
}

/* The kernel and the agent of the node whose FACTS these are. */
static void add_facts(struct software *software, const struct document_node *facts) {
    const struct document_node *agent = document_get(facts, "agent");
    if (text_of(facts, "kernel_name"))
        add(software, &(struct piece){.name = text_of(facts, "kernel_name"),
                                      .version = text_of(facts, "kernel_release"),
                                      .url = "https://www.kernel.org/",
                                      .description = "Kernel of a node"});
    if (text_of(agent, "version"))
        add(software, &(struct piece){.name = "assay-agent",
                                      .version = text_of(agent, "version"),
                                      .sha256 = text_of(agent, "sha256"),
                                      .description = "Ran the commands on a node"});
}

void crate_describe_software(struct crate *crate, cJSON *instrument) {
    struct software software = {.crate = crate, .instrument = instrument};
    const struct archive_prediction *prediction = crate->of->prediction;
    if (prediction)
        add(&software, &(struct piece){.name = prediction->plugin,
                                       .version = prediction->version,
                                       .description = "Plugin that predicted"});
    cleanup(document_cleanup) struct document *versions = describe_read(crate->staging, ARCHIVE_VERSIONS);
    const struct document_node *nodes = versions ? document_get(versions->root, "nodes") : NULL;
    for (size_t i = 0; nodes && nodes->kind == DOCUMENT_MAPPING && i < nodes->count; i++)
        add_node(&software, nodes->items[i]);
    size_t read = 0;
    for (size_t i = 0; i < crate->staging->count && read < FACTS_READ_MAX; i++) {
        if (!describe_is_facts(crate->staging->files[i].name))
            continue;
        cleanup(document_cleanup) struct document *facts =
            describe_read(crate->staging, crate->staging->files[i].name);
        if (facts)
            add_facts(&software, facts->root);
        read++;
    }
    text_set_clear(&software.known);
}
