/*
 * Files and folders to many nodes and from them: one command a node, the agent's tool that unpacks, or packs,
 * a tar. A transfer goes on after a broken link, because commands do.
 */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/path.h"
#include "engine/remote/link/tree-archive.h"
#include "engine/remote/nodes/landing.h"
#include "engine/remote/nodes/local-tree.h"
#include "engine/remote/nodes/nodes-private.h"
#include "engine/remote/nodes/tools.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    BUFFER = 128 << 10,
    SLICE = 1 << 20,   /* bytes after which the loop is turned once */
    PUTS_AT_ONCE = 64, /* each has about a mebibyte in memory */
    GETS_AT_ONCE = 16,
};

/* Turns the loop once without waiting, so that the links of all nodes are served during long local work. */
static int serve_others(struct node_group *group, struct failure *failure) {
    int r = event_loop_turn(group->loop, 0, failure);
    return r < 0 ? r : 0;
}

/* A copy of a path without slashes at its end: "a//b///" -> "a//b"; "/" stays. */
static char *without_slashes(const char *remote) {
    size_t length = strlen(remote);
    while (length > 1 && remote[length - 1] == '/')
        length--;
    return xstrndup(remote, length);
}

/* The failures of the nodes whose tool failed or was not run, one a node; the caller frees. */
static struct failure *collect_failures(const struct node_group *group, const struct node_result *results) {
    struct failure *failures = xcalloc(group->count + 1, sizeof *failures);
    for (size_t i = 0; i < group->count; i++) {
        if (results[i].outcome == NODE_DONE)
            (void)tool_failure(&results[i].exit, results[i].error.bytes, &failures[i]);
        else if (results[i].outcome != NODE_NOT_ASKED)
            failures[i] = results[i].failure;
    }
    return failures;
}

/* ---- put */

static int fail_changed(const struct local_entry *entry, struct failure *failure) {
    return failure_set(failure, -EBUSY, "'%s' changed while it was sent", entry->path);
}

/* Adds the file ENTRY to ARCHIVE as NAME. -EBUSY when it has not the size any more that the entry has. */
static int pack_file(struct node_group *group, struct archive *archive, const struct local_entry *entry,
                     const char *name, struct failure *failure) {
    cleanup_close int file = open(entry->path, O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
    if (file < 0)
        return failure_set_kind(failure, FAILURE_INPUT, -errno, "cannot read '%s': %s", entry->path,
                                strerror(errno));
    int r = tree_archive_add_file(archive, name, entry->mode, entry->size, entry->hash, failure);
    char buffer[BUFFER];
    uint64_t sent = 0;
    while (r == 0) {
        ssize_t got = read(file, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failure_set(failure, -errno, "cannot read '%s': %s", entry->path, strerror(errno));
        sent += (uint64_t)got;
        if (sent > entry->size || (got == 0 && sent < entry->size))
            return fail_changed(entry, failure);
        if (got == 0)
            return 0;
        r = tree_archive_add_bytes(archive, buffer, (size_t)got, failure);
        if (r == 0 && sent / SLICE != (sent - (uint64_t)got) / SLICE)
            r = serve_others(group, failure);
    }
    return r;
}

/* Writes an archive of TREE, which is hashed first, to FILE. NAME: the name of a tree that is a single file;
 * NULL: it is a folder. */
static int pack_tree(struct node_group *group, struct local_tree *tree, const char *name, int file,
                     struct failure *failure) {
    cleanup(tree_archive_free) struct archive *archive = NULL;
    int r;
    while ((r = local_tree_hash(tree, failure)) > 0)
        if ((r = serve_others(group, failure)) < 0)
            return r;
    if (r == 0)
        r = tree_archive_create(file, &archive, failure);
    for (size_t i = 0; r == 0 && i < tree->count; i++) {
        const struct local_entry *entry = &tree->entries[i];
        if (entry->is_folder && entry->relative[0])
            r = tree_archive_add_folder(archive, entry->relative, failure);
        else if (!entry->is_folder)
            r = pack_file(group, archive, entry, name ? name : entry->relative, failure);
        if (r == 0 && i % 64 == 63)
            r = serve_others(group, failure);
    }
    return r < 0 ? r : tree_archive_finish(archive, failure);
}

/* A file that is mapped into memory. */
struct mapping {
    void *bytes;
    size_t length;
};

static void mapping_clear(struct mapping *mapping) {
    if (mapping->bytes)
        munmap(mapping->bytes, mapping->length);
}

/* Maps FILE, which is not empty, for reading. */
static int map_file(int file, struct mapping *ret, struct failure *failure) {
    struct stat status;
    if (fstat(file, &status) < 0)
        return failure_set(failure, -errno, "cannot read the packed files: %s", strerror(errno));
    void *bytes = mmap(NULL, (size_t)status.st_size, PROT_READ, MAP_SHARED, file, 0);
    if (bytes == MAP_FAILED)
        return failure_set(failure, -errno, "cannot read the packed files: %s", strerror(errno));
    *ret = (struct mapping){bytes, (size_t)status.st_size};
    return 0;
}

/* The archive is packed once, and all nodes get the same bytes, whatever becomes of the files meanwhile. */
int node_group_put(struct node_group *group, const struct node_put *asked, struct failure **ret_failures,
                   size_t *ret_left_out, struct failure *failure) {
    cleanup(local_tree_clear) struct local_tree tree = LOCAL_TREE_NONE;
    cleanup(mapping_clear) struct mapping archive = {0};
    cleanup_free char *remote = without_slashes(asked->remote), *parent = tool_folder_of(remote);
    int r = local_tree_read(&tree, asked->local, NULL, failure);
    if (r < 0)
        return r;
    bool whole = !tree.entries[0].is_folder;
    const char *name = file_base_name(remote), *end = asked->remote + strlen(asked->remote);
    if (whole && (!name[0] || strcmp(name, ".") == 0 || end[-1] == '/'))
        return failure_set_kind(failure, FAILURE_INPUT, -EISDIR,
                                "'%s' names a folder; expected the name that the file '%s' is to have",
                                asked->remote, asked->local);
    cleanup_close int file = tree_archive_scratch(failure);
    if (file < 0)
        return file;
    r = pack_tree(group, &tree, whole ? name : NULL, file, failure);
    if (r == 0)
        r = map_file(file, &archive, failure);
    if (r < 0)
        return r;
    const struct remote_command_specification tool = {
        .arguments = (const char *const[]){NODE_TOOL_PROGRAM, "--unpack", whole ? parent : remote, NULL},
        .environment = path_trust_environment(),
        .idle_limit_ms = REMOTE_TREE_IDLE_LIMIT_MS};
    struct node_result *results;
    r = node_group_run(group,
                       &(struct node_group_command){.specification = &tool,
                                                    .input = archive.bytes,
                                                    .input_length = archive.length,
                                                    .at_once = PUTS_AT_ONCE},
                       &results, failure);
    if (r < 0)
        return r;
    *ret_failures = collect_failures(group, results);
    node_results_free(group, results);
    if (ret_left_out)
        *ret_left_out = tree.left_out;
    return 0;
}

/* ---- get */

/* What one node has sent. */
struct get_node {
    struct landing *landing; /* NULL: the node has sent nothing */
    int archive;             /* descriptor of a scratch file with the bytes of the archive; -1: none */
    struct failure failure;
};

/* A call of node_group_get(). */
struct get {
    struct node_group *group;
    const char *folder;
    const char *name;       /* the name that the entries of the archives begin with; "": any */
    struct get_node *nodes; /* one a node */
};

/* FAILURE for a file below the local folder that cannot be written; returns CODE. */
static int fail_to_write(const struct get *get, int code, struct failure *failure) {
    return failure_set(failure, code, "cannot write to '%s': %s", get->folder, strerror(-code));
}

static void get_clear(struct get *get) {
    for (size_t i = 0; i < get->group->count; i++) {
        landing_free(get->nodes[i].landing);
        cleanup_close_descriptor(&get->nodes[i].archive);
    }
    free(get->nodes);
}

/* Appends bytes of the archive of a node to its scratch file, which the first bytes create. */
static int store_piece(struct get *get, size_t number, const char *bytes, size_t length,
                       struct failure *failure) {
    struct get_node *node = &get->nodes[number];
    int r = 0;
    if (!node->landing)
        r = landing_new(get->folder, node_group_name(get->group, number), &node->landing, failure);
    if (r == 0 && node->archive < 0)
        r = node->archive = landing_open_scratch(node->landing, failure);
    if (r < 0)
        return r;
    r = file_write_all(node->archive, bytes, length);
    return r < 0 ? fail_to_write(get, r, failure) : 0;
}

/* node_group_command.take: stores the bytes in the scratch file, because only the end of the command says
 * whether the archive is complete. */
static void on_piece(size_t node, const char *bytes, size_t length, void *context) {
    struct get *get = context;
    struct failure *failure = &get->nodes[node].failure;
    if (failure->code == 0)
        (void)store_piece(get, node, bytes, length, failure);
}

/* Writes the bytes of the file ENTRY to FILE. -EBUSY when they do not have the hash of the entry. */
static int unpack_bytes(struct get *get, struct archive *archive, const struct tree_archive_entry *entry,
                        int file, struct hash *hash, struct failure *failure) {
    char buffer[BUFFER];
    uint64_t written = 0;
    ssize_t got;
    while ((got = tree_archive_read(archive, buffer, sizeof buffer, failure)) > 0) {
        hash_update(hash, buffer, (size_t)got);
        int r = file_write_all(file, buffer, (size_t)got);
        if (r < 0)
            return fail_to_write(get, r, failure);
        written += (uint64_t)got;
        if (written % SLICE < (uint64_t)got && (r = serve_others(get->group, failure)) < 0)
            return r;
    }
    if (got < 0)
        return (int)got;
    char hex[HASH_HEX_SIZE];
    hash_finish(hash, hex);
    return strcmp(hex, entry->sha256) == 0
               ? 0
               : failure_set(failure, -EBUSY, "'%.256s' changed while it was read", entry->path);
}

static void free_hash(struct hash **hash) {
    hash_free(*hash);
}

/* Makes the folder, or the file under its temporary name, of one entry. -EBADMSG for an entry that cannot be
 * of an honest node. */
static int unpack_entry(struct get *get, struct get_node *node, struct archive *archive,
                        const struct tree_archive_entry *entry, struct failure *failure) {
    struct stat status;
    const char *problem = landing_problem(entry->path);
    /* A larger file would be a sparse one, with which a few bytes of the archive could fill the disk. */
    if (!problem && (fstat(node->archive, &status) < 0 || entry->size > (uint64_t)status.st_size))
        problem = "it has more bytes than the node sent";
    if (problem)
        return failure_set(failure, -EBADMSG, "cannot write '%.200s', which the node sent: %s", entry->path,
                           problem);
    if (entry->is_folder)
        return landing_make_folder(node->landing, entry->path, failure);
    cleanup_close int file = landing_add(node->landing, entry->path, entry->mode, failure);
    cleanup(free_hash) struct hash *hash = hash_new();
    if (file < 0 || !hash)
        return file < 0 ? file : failure_memory(failure);
    int r = unpack_bytes(get, archive, entry, file, hash, failure);
    if (r < 0)
        landing_drop_last(node->landing);
    return r;
}

static int fail_empty(const struct get *get, struct failure *failure) {
    return failure_set(failure, -EBADMSG, "the node sent nothing, expected '%.200s'", get->name);
}

/* Is PATH the name asked for (FIRST), or below it (not FIRST)? */
static bool is_asked_for(const struct get *get, const char *path, bool first) {
    size_t length = strlen(get->name);
    return length == 0 ||
           (strncmp(path, get->name, length) == 0 && (first ? !path[length] : path[length] == '/'));
}

/* Unpacks the archive of a node and gives its files their names. -EBUSY: a file changed while the node read
 * it, and only the others were stored. Other failures, such as an entry that was not asked for: none was. */
static int unpack_node(struct get *get, struct get_node *node, struct failure *failure) {
    cleanup(tree_archive_free) struct archive *archive = NULL;
    struct tree_archive_entry entry;
    bool first = true;
    if (lseek(node->archive, 0, SEEK_SET) < 0)
        return failure_set(failure, -errno, "cannot read the files from the node: %s", strerror(errno));
    int r = tree_archive_open(node->archive, NULL, 0, &archive, failure), result = 0;
    while (r >= 0 && (r = tree_archive_next(archive, &entry, failure)) > 0) {
        r = is_asked_for(get, entry.path, first)
                ? unpack_entry(get, node, archive, &entry, failure)
                : failure_set(failure, -EBADMSG, "the node sent '%.200s', expected '%.200s'", entry.path,
                              get->name);
        first = false;
        if (r == -EBUSY)
            result = r;
        if (r < 0 && r != -EBUSY)
            return r;
        r = 0;
    }
    if (r == 0 && first && get->name[0])
        r = fail_empty(get, failure);
    if (r < 0)
        return r;
    struct failure why;
    r = landing_commit(node->landing, result < 0 ? &why : failure);
    return result < 0 ? result : r;
}

/* FAILURE_INPUT when REMOTE does not end in a name that a file here can have; "", "." and "/", whose files
 * are fetched without a name of their own, are accepted. */
static int check_name(const char *remote, struct failure *failure) {
    cleanup_free char *trimmed = without_slashes(remote);
    const char *name = file_base_name(trimmed);
    if (trimmed[0] && (!name[0] || strcmp(name, ".") == 0 || !landing_problem(name)))
        return 0;
    return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                            "'%s' does not end in a name; expected the path of a file or a folder", remote);
}

int node_group_get(struct node_group *group, const char *remote, const char *folder,
                   struct failure **ret_failures, struct failure *failure) {
    int r = check_name(remote, failure);
    if (r < 0)
        return r;
    cleanup_free char *trimmed = without_slashes(remote);
    const char *name = file_base_name(trimmed);
    cleanup(get_clear) struct get get = {
        .group = group, .folder = folder, .name = strcmp(name, ".") == 0 ? "" : name};
    get.nodes = xcalloc(group->count + 1, sizeof *get.nodes);
    for (size_t i = 0; i < group->count; i++)
        get.nodes[i].archive = -1;
    const struct remote_command_specification tool = {
        .arguments = (const char *const[]){NODE_TOOL_PROGRAM, "--pack", remote, NULL},
        .environment = path_trust_environment(),
        .idle_limit_ms = REMOTE_TREE_IDLE_LIMIT_MS};
    struct node_result *results;
    r = node_group_run(
        group,
        &(struct node_group_command){
            .specification = &tool, .take = on_piece, .context = &get, .at_once = GETS_AT_ONCE},
        &results, failure);
    if (r < 0)
        return r;
    cleanup_free struct failure *failures = collect_failures(group, results);
    for (size_t i = 0; r == 0 && i < group->count; i++) {
        struct get_node *node = &get.nodes[i];
        if (results[i].outcome == NODE_DONE && !results[i].exit.signalled && node->archive >= 0 &&
            node->failure.code == 0)
            (void)unpack_node(&get, node, &node->failure);
        else if (results[i].outcome == NODE_DONE && node->failure.code == 0 && get.name[0])
            (void)fail_empty(&get, &node->failure);
        if (failures[i].code == 0)
            failures[i] = node->failure;
        if (node->failure.kind == FAILURE_INTERRUPTED) {
            *failure = node->failure;
            r = failure->code;
        }
        landing_free(take_pointer(node->landing));
    }
    node_results_free(group, results);
    if (r == 0)
        *ret_failures = take_pointer(failures);
    return r;
}
