#include "archive-format/export.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { LIST_BYTES_MAX = 256 << 20 }; /* of a list of all files, with their hashes */

/* ---- The folder */

/* Removes what a process that is gone has left of a folder of this name: FOLDER/.NAME.PID.part. */
static void remove_leftovers(const char *folder, const char *name) {
    cleanup_free char *beginning = xformat(".%s.", name);
    size_t length = strlen(beginning);
    DIR *entries = opendir(folder);
    for (struct dirent *entry; entries && (entry = readdir(entries));) {
        char *end = entry->d_name;
        long process = strncmp(end, beginning, length) == 0 ? strtol(end + length, &end, 10) : 0;
        cleanup_free char *path = file_join(folder, entry->d_name);
        if (process > 0 && strcmp(end, ".part") == 0 && kill((pid_t)process, 0) < 0 && errno == ESRCH)
            file_remove_tree(path, NULL);
    }
    if (entries)
        closedir(entries);
}

int export_folder_begin(const char *target, struct export_folder *ret, struct failure *failure) {
    cleanup(export_folder_clear) struct export_folder folder = {.target = xstrdup(target)};
    struct stat status;
    size_t length = strlen(folder.target);
    while (length > 1 && folder.target[length - 1] == '/')
        folder.target[--length] = '\0';
    if (length == 0)
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "the name of the folder is empty; expected that of a new folder (-o FOLDER)");
    if (lstat(folder.target, &status) == 0)
        return failure_set_kind(failure, FAILURE_INPUT, -EEXIST,
                                "'%s' exists; expected the name of a new folder (-o FOLDER)", folder.target);
    const char *name = file_base_name(folder.target);
    cleanup_free char *parent = xformat("%.*s.", (int)(name - folder.target), folder.target),
                      *path = xformat("%s%s.%ld.part", parent, name, (long)getpid());
    remove_leftovers(parent, name);
    int r = mkdir(path, 0777) < 0 ? -errno : 0;
    if (r < 0)
        return failure_set_kind(failure, FAILURE_INPUT, r, "cannot make the folder '%s': %s", folder.target,
                                strerror(-r));
    folder.path = take_pointer(path);
    *ret = folder;
    folder = (struct export_folder){0};
    return 0;
}

int export_folder_write(const struct export_folder *folder, const char *name, const char *bytes,
                        size_t length, struct failure *failure) {
    cleanup_free char *path = file_join(folder->path, name);
    return file_replace(path, bytes, length, 0666, failure);
}

int export_folder_commit(struct export_folder *folder, struct failure *failure) {
    cleanup_close int descriptor = open(folder->path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0 || syncfs(descriptor) < 0 || rename(folder->path, folder->target) < 0)
        return failure_set(failure, -errno, "cannot rename the finished export to '%s': %s", folder->target,
                           strerror(errno));
    free(take_pointer(folder->path));
    return file_sync_folder_of(folder->target, failure);
}

void export_folder_clear(struct export_folder *folder) {
    if (folder->path)
        file_remove_tree(folder->path, NULL);
    free(folder->path);
    free(folder->target);
    *folder = (struct export_folder){0};
}

/* ---- BagIt: RFC 8493 */

#define PAYLOAD "data"

/* The two manifests of a bag, or of its tag files. */
struct hash_lists {
    struct text sha256, sha512;
};

static struct hash_lists hash_lists_new(void) {
    struct hash_lists lists;
    text_init(&lists.sha256, LIST_BYTES_MAX);
    text_init(&lists.sha512, LIST_BYTES_MAX);
    return lists;
}

static void hash_lists_clear(struct hash_lists *lists) {
    text_clear(&lists->sha256);
    text_clear(&lists->sha512);
}

/* The file NAME of FOLDER; SHA256 as it is known, or "". */
static int list_file(struct hash_lists *lists, const struct export_folder *folder, const char *name,
                     const char *sha256, struct failure *failure) {
    cleanup_free char *path = file_join(folder->path, name);
    char hex[HASH_HEX_SIZE], long_hex[HASH_SHA512_HEX_SIZE];
    int r = *sha256 ? 0 : hash_file(path, hex, NULL, failure);
    r = r < 0 ? r : hash_file_sha512(path, long_hex, failure);
    if (r < 0)
        return r;
    r = text_printf(&lists->sha256, "%s  %s\n", *sha256 ? sha256 : hex, name);
    r = r < 0 ? r : text_printf(&lists->sha512, "%s  %s\n", long_hex, name);
    return r < 0 ? failure_set(failure, r, "cannot list '%s': %s", name, strerror(-r)) : 0;
}

static int write_lists(const struct hash_lists *lists, const struct export_folder *folder, const char *prefix,
                       struct failure *failure) {
    cleanup_free char *sha256 = xformat("%smanifest-sha256.txt", prefix),
                      *sha512 = xformat("%smanifest-sha512.txt", prefix);
    int r = export_folder_write(folder, sha256, lists->sha256.bytes, lists->sha256.length, failure);
    return r < 0 ? r
                 : export_folder_write(folder, sha512, lists->sha512.bytes, lists->sha512.length, failure);
}

static int write_tags(const struct archive_reader *archive, const struct export_folder *folder,
                      struct failure *failure) {
    static const char declaration[] = "BagIt-Version: 1.0\nTag-File-Character-Encoding: UTF-8\n";
    static const char *const names[] = {"bag-info.txt", "bagit.txt", "manifest-sha256.txt",
                                        "manifest-sha512.txt"};
    const struct archive_run *run = archive_run(archive);
    cleanup(hash_lists_clear) struct hash_lists tags = hash_lists_new();
    char date[CLOCK_TEXT_SIZE];
    uint64_t bytes = 0;
    size_t count = archive_member_count(archive);
    for (size_t i = 0; i < count; i++)
        bytes += archive_member_size(archive, i);
    cleanup_free char *info =
        xformat("Bag-Software-Agent: assay %s\nBagging-Date: %.10s\nExternal-Identifier: urn:uuid:%s\n"
                "Internal-Sender-Identifier: %s\nPayload-Oxum: %" PRIu64 ".%zu\n",
                ASSAY_VERSION, clock_format(clock_wall_ns(), date), run->run_id ? run->run_id : "-",
                file_base_name(archive_path(archive)), bytes, count);
    int r = export_folder_write(folder, "bagit.txt", declaration, strlen(declaration), failure);
    r = r < 0 ? r : export_folder_write(folder, "bag-info.txt", info, strlen(info), failure);
    for (size_t i = 0; r == 0 && i < sizeof names / sizeof *names; i++)
        r = list_file(&tags, folder, names[i], "", failure);
    return r < 0 ? r : write_lists(&tags, folder, "tag", failure);
}

static int fill_bag(struct archive_reader *archive, const struct export_folder *folder,
                    struct failure *failure) {
    cleanup(hash_lists_clear) struct hash_lists payload = hash_lists_new();
    cleanup_free char *data = file_join(folder->path, PAYLOAD);
    int r = archive_extract(archive, data, NULL, 0, failure);
    for (size_t i = 0; r == 0 && i < archive_member_count(archive); i++) {
        cleanup_free char *name = xformat(PAYLOAD "/%s", archive_member_name(archive, i));
        r = list_file(&payload, folder, name, archive_member_sha256(archive, i), failure);
    }
    r = r < 0 ? r : write_lists(&payload, folder, "", failure);
    return r < 0 ? r : write_tags(archive, folder, failure);
}

/* ---- Frictionless */

/* The package that is made, and the members that it has. */
struct package {
    cJSON *json, *resources;
    const char **tables; /* names of the members; the archive's */
    size_t count;
};

static size_t find_member(const struct archive_reader *archive, const char *name) {
    size_t i = 0;
    while (i < archive_member_count(archive) && strcmp(archive_member_name(archive, i), name) != 0)
        i++;
    return i;
}

/* Small letters, and "-" for "/": what names of packages and resources are made of. The caller's. */
static char *make_name(const char *prefix, const char *text) {
    char *name = xformat("%s%s", prefix, text);
    for (char *at = name; *at; at++)
        *at = *at == '/' ? '-' : *at >= 'A' && *at <= 'Z' ? (char)(*at - 'A' + 'a') : *at;
    return name;
}

static void set_text(cJSON *object, const char *key, const char *text) {
    cJSON_DeleteItemFromObjectCaseSensitive(object, key);
    json_add_string(object, key, text);
}

/* The resource NODE of the package in the folder PREFIX ("" or "nodes/n-1/probes/"), if the archive has its
 * table. */
static void add_resource(struct package *package, const struct archive_reader *archive, const char *prefix,
                         const struct document_node *node) {
    const struct document_node *path = document_get(node, "path"), *name = document_get(node, "name");
    cleanup_free char *table =
        path && path->kind == DOCUMENT_TEXT ? xformat("%s%s", prefix, path->text) : NULL;
    size_t i = table ? find_member(archive, table) : archive_member_count(archive);
    if (i == archive_member_count(archive) || !name || name->kind != DOCUMENT_TEXT)
        return;
    cJSON *resource = json_from_node(node);
    cleanup_free char *own_name = make_name(prefix, name->text),
                      *hash = xformat("sha256:%s", archive_member_sha256(archive, i));
    set_text(resource, "name", own_name);
    set_text(resource, "path", table);
    set_text(resource, "hash", hash);
    cJSON_DeleteItemFromObjectCaseSensitive(resource, "bytes");
    json_add_uint64(resource, "bytes", archive_member_size(archive, i));
    cJSON_AddItemToArray(package->resources, resource);
    package->tables[package->count++] = archive_member_name(archive, i);
}

/* The tables of the datapackage.json that is member MEMBER. */
static int add_package(struct package *package, struct archive_reader *archive, const char *member,
                       struct failure *failure) {
    cleanup(document_cleanup) struct document *document = NULL;
    size_t length = (size_t)(file_base_name(member) - member);
    cleanup_free char *prefix = xstrndup(member, length);
    int r = archive_read_document(archive, member, &document, failure);
    const struct document_node *resources = r < 0 ? NULL : document_get(document->root, "resources");
    for (size_t i = 0; resources && i < resources->count; i++)
        if (package->count < archive_member_count(archive))
            add_resource(package, archive, prefix, resources->items[i]);
    return r;
}

static void begin_package(struct package *package, const struct archive_reader *archive) {
    const struct archive_run *run = archive_run(archive);
    char created[CLOCK_TEXT_SIZE];
    cleanup_free char *id = xformat("urn:uuid:%s", run->run_id ? run->run_id : "-"),
                      *name = make_name("", run->name ? run->name : "archive");
    package->json = cJSON_CreateObject();
    package->tables = xcalloc(archive_member_count(archive) + 1, sizeof *package->tables);
    json_add_string(package->json, "$schema", "https://datapackage.org/profiles/2.0/datapackage.json");
    json_add_string(package->json, "name", name);
    json_add_string(package->json, "id", id);
    json_add_string(package->json, "title", run->name ? run->name : name);
    if (run->ended_ns)
        json_add_string(package->json, "created", clock_format(run->ended_ns, created));
    json_add_string(json_add_object(json_add_array(package->json, "sources"), NULL), "title",
                    file_base_name(archive_path(archive)));
    package->resources = json_add_array(package->json, "resources");
}

static void package_clear(struct package *package) {
    cJSON_Delete(package->json);
    free(package->tables);
}

static int fill_package(struct archive_reader *archive, const struct export_folder *folder,
                        struct failure *failure) {
    cleanup(package_clear) struct package package = {0};
    cleanup_free char *path = file_join(folder->path, ARCHIVE_DATAPACKAGE);
    int r = 0;
    begin_package(&package, archive);
    for (size_t i = 0; r == 0 && i < archive_member_count(archive); i++)
        if (strcmp(file_base_name(archive_member_name(archive, i)), ARCHIVE_DATAPACKAGE) == 0)
            r = add_package(&package, archive, archive_member_name(archive, i), failure);
    r = r == 0 && package.count == 0 ? archive_verify(archive, failure) : r;
    if (r == 0 && package.count == 0)
        return failure_input(failure, archive_path(archive), 0, 0,
                             "this archive describes no tables (datapackage.json); 'folder' and 'bagit' "
                             "export all of its files");
    r = r < 0 ? r : archive_extract(archive, folder->path, package.tables, package.count, failure);
    return r < 0 ? r : json_write_file(path, package.json, failure);
}

/* ---- Any of them */

static int fill_folder(struct archive_reader *archive, const struct export_folder *folder,
                       struct failure *failure) {
    return archive_extract(archive, folder->path, NULL, 0, failure);
}

int archive_export(struct archive_reader *archive, enum export_form form, const char *target,
                   struct failure *failure) {
    static int (*const fill[])(struct archive_reader * archive, const struct export_folder *folder,
                               struct failure *failure) = {
        [EXPORT_BAGIT] = fill_bag,
        [EXPORT_FRICTIONLESS] = fill_package,
        [EXPORT_FOLDER] = fill_folder,
    };
    cleanup(export_folder_clear) struct export_folder folder = {0};
    int r = archive_is_folder(archive) ? archive_verify(archive, failure) : 0; /* says why it cannot be */
    r = r < 0 ? r : export_folder_begin(target, &folder, failure);
    r = r < 0 ? r : fill[form](archive, &folder, failure);
    return r < 0 ? r : export_folder_commit(&folder, failure);
}
