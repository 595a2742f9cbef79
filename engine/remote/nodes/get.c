/*
 * A file or a folder of many nodes.
 *
 * What a node says is there is checked before a name of it is used, and a node has only so many files under
 * way, and the engine so many nodes. Each file is hashed as it comes; when it is here, the node is asked for
 * the SHA-256 of what it has now, and only a file that did not change meanwhile gets its name.
 */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/remote/nodes/inside.h"
#include "engine/remote/nodes/landing.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

enum {
    SLOTS = 8, /* files of one node under way */
    NODES_AT_ONCE = 16,
};

/* Files that say that they are empty, as those of /proc do, may have this much. */
static const uint64_t sizeless_most = 64 << 20;

struct get_entry {
    char *path;
    uint64_t size;
    unsigned mode;
};

/* A file under way; the context of its callbacks. */
struct get_slot {
    struct get_node *node;
    const struct get_entry *entry; /* NULL: free */
    char *remote;
    struct landed landed;
    struct hash *hash;
    struct failure failure; /* of writing it; code 0: none */
};

struct get_node {
    struct get *get;
    struct node_asked *asked;
    struct failure *failure;
    struct landing *landing;
    struct get_entry *entries;
    size_t count, next;
    unsigned under_way;
    struct get_slot slots[SLOTS];
};

struct get {
    struct node_round round;
    const char *folder;
    char *remote;            /* without slashes at its end */
    const char *name;        /* the last part of it; "" when it has none */
    struct get_node **nodes; /* of those under way; NULL: not begun, or over */
    struct failure *failures;
};

/* ---- a node's memory */

static void clear_slot(struct get_slot *slot) {
    landed_clear(&slot->landed);
    hash_free(take_pointer(slot->hash));
    free(take_pointer(slot->remote));
    slot->entry = NULL;
}

static void free_node(struct get_node *node) {
    if (!node)
        return;
    for (int i = 0; i < SLOTS; i++)
        clear_slot(&node->slots[i]);
    for (size_t i = 0; i < node->count; i++)
        free(node->entries[i].path);
    free(node->entries);
    landing_free(node->landing);
    free(node);
}

static void fail_node(struct get_node *node, const struct failure *why) {
    if (node->failure->code == 0)
        *node->failure = *why;
}

/* ---- files */

static void proceed(struct get_node *node);

/* WHY: NULL if it went well. */
static void end_slot(struct get_slot *slot, const struct failure *why) {
    struct get_node *node = slot->node;
    if (why)
        fail_node(node, why);
    clear_slot(slot);
    node->under_way--;
    proceed(node);
}

static void on_hash(struct agent_link *link, const char *hex, uint64_t size, const struct failure *failure,
                    void *context) {
    (void)link;
    (void)size;
    struct get_slot *slot = context;
    char mine[HASH_HEX_SIZE];
    struct failure why;
    hash_finish(slot->hash, mine);
    if (!failure && strcmp(hex, mine) != 0) {
        failure_set(&why, -EBUSY, "'%s' has changed while it was read", slot->remote);
        failure = &why;
    }
    if (!failure && landed_commit(&slot->landed, slot->entry->mode, &why) < 0)
        failure = &why;
    end_slot(slot, failure);
}

static void on_piece(struct agent_link *link, const char *bytes, size_t length, void *context) {
    (void)link;
    struct get_slot *slot = context;
    if (slot->failure.code < 0)
        return;
    hash_update(slot->hash, bytes, length);
    (void)landed_write(&slot->landed, bytes, length, &slot->failure);
}

static void on_read(struct agent_link *link, const struct failure *failure, void *context) {
    struct get_slot *slot = context;
    struct failure why;
    if (!failure && slot->failure.code < 0)
        failure = &slot->failure;
    if (!failure && agent_link_hash_file(link, slot->remote, on_hash, slot, &why) < 0)
        failure = &why;
    if (!failure)
        return;
    struct failure told = *failure; /* it may be the slot's own */
    end_slot(slot, &told);
}

/* Where ENTRY is on the node, or lands here below the node's folder; NULL when out of memory. */
static char *remote_of(const struct get *get, const struct get_entry *entry) {
    return entry->path[0] ? file_join(get->remote, entry->path) : strdup(get->remote);
}

static char *local_of(const struct get *get, const char *path) {
    if (!get->name[0] || !path[0])
        return strdup(get->name[0] ? get->name : path);
    return file_join(get->name, path);
}

static int begin_file(struct get_slot *slot, struct failure *failure) {
    struct get_node *node = slot->node;
    const struct get *get = node->get;
    cleanup_free char *local = local_of(get, slot->entry->path);
    slot->remote = remote_of(get, slot->entry);
    slot->hash = hash_new();
    slot->failure = (struct failure){0};
    if (!local || !slot->remote || !slot->hash)
        return failure_memory(failure);
    int r = landed_open(node->landing, local, &slot->landed, failure);
    if (r < 0)
        return r;
    uint64_t most = slot->entry->size > 0 ? slot->entry->size : sizeless_most;
    return agent_link_stream_file(node_group_link(get->round.group, node->asked->node), slot->remote, most,
                                  on_piece, on_read, slot, failure);
}

static void end_node(struct get_node *node) {
    struct node_asked *asked = node->asked;
    struct failure why;
    if (node->landing && landing_sync(node->landing, &why) < 0)
        fail_node(node, &why);
    node->get->nodes[asked->node] = NULL;
    free_node(node);
    node_round_answered(asked);
}

/* Begins as many files as may be under way; ends the node when there is nothing more to do. */
static void proceed(struct get_node *node) {
    while (node->failure->code == 0 && node->next < node->count && node->under_way < SLOTS) {
        struct get_slot *slot = node->slots;
        while (slot->entry)
            slot++;
        slot->entry = &node->entries[node->next++];
        struct failure why;
        if (begin_file(slot, &why) < 0) {
            fail_node(node, &why);
            clear_slot(slot);
            break;
        }
        node->under_way++;
    }
    if (node->under_way == 0)
        end_node(node);
}

/* ---- what is there */

static int refuse_entry(const char *path, const char *problem, struct failure *failure) {
    return failure_set(failure, -EBADMSG, "the node lists '%.200s', which cannot be written here: %s", path,
                       problem);
}

/* PREVIOUS: the path of the entry before; NULL: it is the first. */
static int take_entry(struct get_node *node, const struct agent_entry *entry, const char *previous,
                      bool alone, struct failure *failure) {
    const char *problem = NULL;
    if (entry->path[0] || !alone || entry->kind != AGENT_ENTRY_FILE || !node->get->name[0])
        problem = landing_problem(entry->path);
    if (!problem && previous && strcmp(previous, entry->path) >= 0)
        problem = "it is out of order";
    if (problem)
        return refuse_entry(entry->path, problem, failure);
    if (entry->kind == AGENT_ENTRY_FOLDER) {
        cleanup_free char *local = local_of(node->get, entry->path);
        return local ? landing_make_folder(node->landing, local, failure) : failure_memory(failure);
    }
    if (entry->kind != AGENT_ENTRY_FILE)
        return 0;
    char *path = xstrdup(entry->path);
    node->entries[node->count++] = (struct get_entry){.path = path, .size = entry->size, .mode = entry->mode};
    return 0;
}

static int take_entries(struct get_node *node, const struct agent_entry *entries, size_t count,
                        struct failure *failure) {
    const struct get *get = node->get;
    bool alone = count == 1 && !entries[0].path[0];
    if (alone && entries[0].kind != AGENT_ENTRY_FILE)
        return failure_set(failure, -EINVAL, "'%s' is neither a file nor a folder", get->remote);
    node->entries = xcalloc(count + 1, sizeof *node->entries);
    int r = landing_new(get->folder, node_group_name(get->round.group, node->asked->node), &node->landing,
                        failure);
    if (r == 0 && !alone && get->name[0])
        r = landing_make_folder(node->landing, get->name, failure);
    for (size_t i = 0; i < count && r == 0; i++)
        r = take_entry(node, &entries[i], i > 0 ? entries[i - 1].path : NULL, alone, failure);
    return r;
}

static void on_tree(struct agent_link *link, const struct agent_entry *entries, size_t count,
                    const struct failure *failure, void *context) {
    (void)link;
    struct get_node *node = context;
    struct failure why;
    if (!failure && take_entries(node, entries, count, &why) < 0)
        failure = &why;
    if (failure)
        fail_node(node, failure);
    proceed(node);
}

static bool ask(struct node_round *round, size_t number, struct node_asked *asked) {
    struct get *get = round->context;
    struct failure *failure = &get->failures[number];
    if (!node_group_is_there(round->group, number)) {
        node_group_complain_absent(round->group, number, failure);
        return false;
    }
    struct get_node *node = calloc(1, sizeof *node);
    if (!node) {
        failure_memory(failure);
        return false;
    }
    node->get = get;
    node->asked = asked;
    node->failure = failure;
    for (int i = 0; i < SLOTS; i++)
        node->slots[i] = (struct get_slot){.node = node, .landed = LANDED_NONE};
    if (agent_link_list_tree(node_group_link(round->group, number), get->remote, on_tree, node, failure) <
        0) {
        free_node(node);
        return false;
    }
    get->nodes[number] = node;
    return true;
}

/* ---- all of it */

static void clear_get(struct get *get) {
    for (size_t i = 0; get->nodes && i < get->round.group->count; i++) {
        struct get_node *node = get->nodes[i];
        if (!node)
            continue;
        struct agent_link *link = node_group_link(get->round.group, i);
        agent_link_forget(link, node);
        for (int k = 0; k < SLOTS; k++)
            agent_link_forget(link, &node->slots[k]);
        free_node(node);
    }
    free((void *)get->nodes);
    free(get->remote);
}

static int prepare(struct get *get, const char *remote, struct failure *failure) {
    size_t length = strlen(remote);
    while (length > 1 && remote[length - 1] == '/')
        length--;
    get->nodes = xcalloc(get->round.group->count + 1, sizeof *get->nodes);
    get->remote = xstrndup(remote, length);
    get->name = file_base_name(get->remote);
    if (strcmp(get->name, ".") == 0 || strcmp(get->name, "/") == 0)
        get->name = "";
    if (!get->remote[0] || (get->name[0] && landing_problem(get->name)))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "'%s' does not end in a name; expected the path of a file or a folder",
                                remote);
    return 0;
}

int node_group_get(struct node_group *group, const char *remote, const char *folder,
                   struct failure **ret_failures, struct failure *failure) {
    cleanup_free struct failure *failures = xcalloc(group->count + 1, sizeof *failures);
    cleanup(clear_get) struct get get = {.folder = folder, .failures = failures};
    get.round = (struct node_round){.group = group, .at_once = NODES_AT_ONCE, .ask = ask, .context = &get};
    int r = prepare(&get, remote, failure);
    if (r == 0)
        r = node_round_run(&get.round, failure);
    if (r == 0)
        *ret_failures = take_pointer(failures);
    return r;
}
