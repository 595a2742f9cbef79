/* What ran on each node, as its package manager, its compiler and its kernel say: software/versions.json. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/hash.h"

#include <stdlib.h>
#include <string.h>

/* The first line that a program prints, as member KEY of OBJECT; null when there is no such program, which is
 * no failure. LENGTH_MOST cuts it. */
static int record_line(struct run *run, struct run_node *node, cJSON *object, const char *key,
                       const char *const *arguments, size_t length_most, struct failure *failure) {
    cleanup(remote_result_clear) struct remote_result result = {0};
    struct failure why = {0};
    int r = run_command(run, node, arguments, NULL, NULL, false, &result, &why);
    if (r < 0 && (agent_link_state(node->link) != AGENT_LINK_READY || event_loop_is_stopped(run->loop))) {
        *failure = why;
        return r;
    }
    if (r == 0 && !result.exit.signalled && result.exit.code == 0) {
        size_t length = strcspn(result.output, "\n");
        json_add_bytes(object, key, result.output, length < length_most ? length : length_most);
    } else {
        json_add_string(object, key, NULL);
    }
    return 0;
}

/* A fact of the kernel's that is a path names a library that it loaded: its hash, and the package that it
 * came in, decide whether two archives measured the same code. */
static int inspect_libraries(struct run *run, struct run_node *node, struct failure *failure) {
    cJSON *facts = cJSON_GetObjectItemCaseSensitive(node->software, "kernel");
    cJSON *libraries = facts ? json_add_object(node->software, "libraries") : NULL;
    int r = 0;
    const cJSON *fact;
    cJSON_ArrayForEach(fact, facts) {
        if (!cJSON_IsString(fact) || fact->valuestring[0] != '/')
            continue;
        const char *hash[] = {"sha256sum", "--", fact->valuestring, NULL};
        const char *package[] = {"dpkg-query", "-S", fact->valuestring, NULL};
        cleanup_free char *hash_key = text_format("%s.sha256", fact->string);
        cleanup_free char *package_key = text_format("%s.package", fact->string);
        if (!hash_key || !package_key || !libraries)
            return failure_memory(failure);
        r = record_line(run, node, libraries, hash_key, hash, HASH_HEX_SIZE - 1, failure);
        if (r == 0)
            r = record_line(run, node, libraries, package_key, package, 256, failure);
        if (r < 0)
            break;
    }
    return r;
}

int run_inspect_software(struct run *run, struct failure *failure) {
    static const char *const compiler[] = {"cc", "--version", NULL};
    static const char *const libc[] = {"getconf", "GNU_LIBC_VERSION", NULL};
    for (size_t i = 0; i < run->node_count; i++) {
        struct run_node *node = &run->nodes[i];
        if (!node->software || agent_link_state(node->link) != AGENT_LINK_READY)
            continue;
        int r = record_line(run, node, node->software, "compiler", compiler, 256, failure);
        if (r == 0)
            r = record_line(run, node, node->software, "libc", libc, 256, failure);
        if (r == 0)
            r = inspect_libraries(run, node, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

int run_record_software(struct run *run, struct failure *failure) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    cJSON *nodes = object ? json_add_object(object, "nodes") : NULL;
    if (!nodes)
        return failure_memory(failure);
    for (size_t i = 0; i < run->node_count; i++)
        if (run->nodes[i].software) {
            cJSON *copy = cJSON_Duplicate(run->nodes[i].software, true);
            if (!copy || !cJSON_AddItemToObject(nodes, run->nodes[i].name, copy))
                return failure_memory(failure);
        }
    cleanup_free char *path = run_path(run, "software/versions.json");
    return path ? run_write_json(path, object, failure) : failure_memory(failure);
}
