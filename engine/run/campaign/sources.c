#include "engine/run/campaign/sources.h"

#include "archive-format/layout.h"
#include "engine/documents/document.h"
#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <fcntl.h>
#include <spawn.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LISTING_MAX = 64 << 20, ANSWER_SIZE = 4096 };

/* ---- What git says of a folder ---------------------------------------------------------------------------
 */

/* Prints three lines: the commit of the folder $1, the address that it came from, and whether files differ
 * from that commit. Nothing where it is no checkout. */
static const char checkout_script[] =
    "cd -- \"$1\" && git rev-parse --verify HEAD && { git config --get remote.origin.url || echo; } &&\n"
    "    git -c core.fsmonitor=false status --porcelain -uno -- . | grep -q . && echo dirty\n";

/* Sets ANSWER to what CHECKOUT_SCRIPT prints about FOLDER; "" if git is missing or FOLDER is no checkout. */
static void query_git(const char *folder, char answer[static ANSWER_SIZE]) {
    char *const arguments[] = {(char *)"sh",    (char *)"-c",   (char *)checkout_script,
                               (char *)"assay", (char *)folder, NULL};
    posix_spawn_file_actions_t actions;
    pid_t child;
    int ends[2];
    size_t length = 0;
    answer[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0)
        return;
    posix_spawn_file_actions_init(&actions);
    posix_spawn_file_actions_adddup2(&actions, ends[1], STDOUT_FILENO);
    posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, "/dev/null", O_WRONLY, 0);
    int r = posix_spawnp(&child, arguments[0], &actions, NULL, arguments, environ);
    posix_spawn_file_actions_destroy(&actions);
    close(ends[1]);
    for (ssize_t got = 1; r == 0 && got > 0 && length<ANSWER_SIZE - 1; length += got> 0 ? (size_t)got : 0)
        got = read(ends[0], answer + length, ANSWER_SIZE - 1 - length);
    answer[length] = '\0';
    close(ends[0]);
    if (r == 0)
        waitpid(child, NULL, 0);
}

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
    char answer[ANSWER_SIZE] = "", *lines[3] = {answer, NULL, NULL};
    if (!origin->commit && !origin->node && file_is_folder(folder))
        query_git(folder, answer);
    for (size_t i = 1; i < 3 && lines[i - 1]; i++)
        if ((lines[i] = strchr(lines[i - 1], '\n')))
            *lines[i]++ = '\0';
    const char *commit = origin->commit ? origin->commit : lines[1] ? answer : NULL;
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
