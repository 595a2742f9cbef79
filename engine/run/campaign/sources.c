#include "engine/run/campaign/sources.h"

#include "archive-format/layout.h"
#include "engine/documents/document.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/process.h"

#include <stdlib.h>
#include <string.h>

enum { LISTING_MAX = 64 << 20, ANSWER_SIZE = 4096 };

/* ---- What git says of a folder ---------------------------------------------------------------------------
 */

/* Prints three lines: the commit of the folder $1, the address that it came from, and whether files differ
 * from that commit. Nothing where it is no checkout. */
static const char checkout_script[] =
    "cd -- \"$1\" && git rev-parse --verify HEAD && { git config --get remote.origin.url || echo; } &&\n"
    "    git -c core.fsmonitor=false status --porcelain -uno -- . | grep -q . && echo dirty\n";

/* Without the user and password of "https://me:secret@host/". */
static char *strip_user(const char *url) {
    const char *authority = strstr(url, "://");
    size_t length = authority ? strcspn(authority + 3, "/") : 0;
    const char *at = length ? memchr(authority + 3, '@', length) : NULL;
    return at ? xformat("%.*s%s", (int)(authority + 3 - url), url, at + 1) : xstrdup(url);
}

/* Adds `git` to OBJECT: the commit and URL that the source came from, and whether it had changes. Nothing if
 * it is no checkout. */
static void describe_git(const struct source_origin *origin, const char *folder, cJSON *object) {
    const char *const arguments[] = {"sh", "-c", checkout_script, "assay", folder, NULL};
    cleanup(text_clear) struct text answer;
    text_init(&answer, ANSWER_SIZE);
    if (!origin->commit && !origin->node && file_is_folder(folder))
        (void)process_run(arguments, NULL, &answer, NULL);
    char *lines[3] = {answer.bytes, NULL, NULL};
    for (size_t i = 1; i < 3 && lines[i - 1]; i++)
        if ((lines[i] = strchr(lines[i - 1], '\n')))
            *lines[i]++ = '\0';
    const char *commit = origin->commit ? origin->commit : lines[1] ? answer.bytes : NULL;
    const char *address = origin->commit ? origin->url : lines[1];
    if (!commit)
        return;
    cleanup_free char *url = strip_user(address ? address : "");
    cJSON *git = json_add_object(object, "git");
    if (url[0])
        json_add_string(git, "url", url);
    json_add_string(git, "commit", commit);
    json_add_boolean(git, "dirty", lines[2] && lines[2][0]);
    if (origin->at)
        json_add_string(git, "at", origin->at);
}

/* ---- The record ------------------------------------------------------------------------------------------
 */

/* Adds the SHA-256 of the source NAME: that of its only file, or that of a listing with a hash for each file,
 * which is written into software/. */
static int describe_files(const char *run_folder, struct source_files *files, const char *name, cJSON *object,
                          struct failure *failure) {
    struct local_tree *tree = &files->tree;
    char hex[HASH_HEX_SIZE];
    cleanup(text_clear) struct text listing;
    cleanup_free char *member = xformat(ARCHIVE_SOFTWARE "/%s-sha256.txt", name),
                      *path = file_join(run_folder, member);
    text_init(&listing, LISTING_MAX);
    int r = tree->count > 0 ? 1 : file_read(path, &listing, failure);
    while (r > 0)
        r = local_tree_hash(tree, failure);
    if (tree->count > 0) {
        json_add_uint64(object, "files", tree->files);
        json_add_uint64(object, "bytes", files->bytes);
    }
    if (r == 0 && tree->count == 1 && !tree->entries[0].is_folder) {
        json_add_string(object, "sha256", tree->entries[0].hash);
        return 0;
    }
    if (r == 0 && tree->count > 0)
        r = local_tree_manifest(tree, &listing) < 0 ? failure_memory(failure) : 0;
    if (r == 0)
        r = file_replace(path, listing.bytes, listing.length, 0666, failure);
    if (r < 0)
        return r;
    hash_bytes(listing.bytes, listing.length, hex);
    json_add_string(object, "sha256", hex);
    json_add_string(object, "listing", member);
    return 0;
}

/* Adds the origin and hash of a source to software/sources.json. An ORIGIN without `written` came with its
 * record: only the listing of hashes is made. */
int sources_record(const char *run_folder, struct source_files *files, const struct source_origin *origin,
                   struct failure *failure) {
    cleanup(document_cleanup) struct document *document = NULL;
    cleanup(json_cleanup) cJSON *object = NULL;
    cleanup_free char *path = file_join(run_folder, ARCHIVE_SOURCES),
                      *folder = file_join(run_folder, ARCHIVE_SOFTWARE);
    int r = file_make_folders(folder, failure);
    if (r == 0 && file_exists(path))
        r = document_read_json(path, &document, failure);
    if (r < 0)
        return r;
    object = document ? json_from_node(document->root) : cJSON_CreateObject();
    if (!origin->written)
        return describe_files(run_folder, files, origin->name, object, failure);
    cJSON_DeleteItemFromObjectCaseSensitive(object, origin->name);
    cJSON *source = json_add_object(object, origin->name);
    json_add_string(source, "written", origin->written);
    if (origin->copy)
        json_add_string(source, "copy", origin->copy);
    if (origin->node)
        json_add_string(source, "node", origin->node);
    describe_git(origin, files->tree.count ? files->tree.entries[0].path : "", source);
    r = describe_files(run_folder, files, origin->name, source, failure);
    return r < 0 ? r : json_write_file(path, object, failure);
}
