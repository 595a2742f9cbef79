/* What ran on each node, as its package manager, its compiler and its kernel say: software/versions.json. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/run/node-command.h"
#include "engine/run/node-out.h"

#include <stdlib.h>
#include <string.h>

/* A question to every node whose first line of answer is recorded as member KEY of OBJECTS[node]; null when
 * there is no such program, which is no failure. LENGTH_MOST cuts it. */
static int record_lines(struct run *run, const struct node_command *question, cJSON *const *objects,
                        char *const *keys, const char *key, size_t length_most, struct failure *failure) {
    struct node_result *results = NULL;
    int r = node_command_run(run, question, &results, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < run->node_count; i++) {
        const char *name = keys ? keys[i] : key;
        if (results[i].outcome == NODE_SKIPPED || !objects[i] || !name || !run_concerns(run, i))
            continue;
        const struct node_stream *output = &results[i].output;
        if (node_result_is_good(&results[i])) {
            size_t length = strcspn(output->bytes, "\n");
            json_add_bytes(objects[i], name, output->bytes, length < length_most ? length : length_most);
        } else {
            json_add_string(objects[i], name, NULL);
        }
    }
    node_results_free(run->group, results);
    return 0;
}

/* A fact of the kernel's that is a path names a library that it loaded: its hash, and the package that it
 * came in, decide whether two archives measured the same code. The n-th such fact of each node is asked for
 * on all nodes at once. */
struct libraries {
    const char **paths; /* of each node; NULL: it has not so many */
    char **keys;
    bool *nodes; /* that have one */
    cJSON **objects;
    const char **arguments;     /* LIBRARY_ARGUMENTS of each node */
    const char *const *program; /* up to the path */
};
enum { LIBRARY_ARGUMENTS = 4 };

static void clear_libraries(struct libraries *libraries, const struct run *run) {
    for (size_t i = 0; libraries->keys && i < run->node_count; i++)
        free(libraries->keys[i]);
    free(libraries->paths);
    free(libraries->keys);
    free(libraries->nodes);
    free(libraries->objects);
    free(libraries->arguments);
}

static int specify_library(struct run *run, size_t node, struct remote_command_specification *ret,
                           void *context, struct failure *failure) {
    const struct libraries *libraries = context;
    (void)run;
    (void)failure;
    const char **arguments = libraries->arguments + node * LIBRARY_ARGUMENTS;
    arguments[0] = libraries->program[0];
    arguments[1] = libraries->program[1];
    arguments[2] = libraries->paths[node];
    arguments[3] = NULL;
    ret->arguments = arguments;
    return 0;
}

/* Finds the N-th path among the facts of each node. Returns how many have one. */
static size_t find_paths(struct run *run, size_t n, struct libraries *libraries) {
    size_t found = 0;
    for (size_t i = 0; i < run->node_count; i++) {
        libraries->paths[i] = NULL;
        libraries->nodes[i] = false;
        const cJSON *facts = cJSON_GetObjectItemCaseSensitive(run->nodes[i].software, "kernel"), *fact;
        size_t seen = 0;
        cJSON_ArrayForEach(fact, facts) {
            if (!cJSON_IsString(fact) || fact->valuestring[0] != '/' || seen++ != n)
                continue;
            if (!libraries->objects[i])
                libraries->objects[i] = json_add_object(run->nodes[i].software, "libraries");
            libraries->paths[i] = fact->valuestring;
            libraries->nodes[i] = true;
            free(libraries->keys[i]);
            libraries->keys[i] = strdup(fact->string);
            found++;
        }
    }
    return found;
}

static int ask_about_libraries(struct run *run, struct libraries *libraries, const char *const *program,
                               const char *suffix, size_t length_most, struct failure *failure) {
    char **keys = calloc(run->node_count, sizeof *keys);
    int r = keys ? 0 : failure_memory(failure);
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        if (libraries->nodes[i] && !(keys[i] = text_format("%s.%s", libraries->keys[i], suffix)))
            r = failure_memory(failure);
    libraries->program = program;
    struct node_command question = {
        .specify = specify_library, .context = libraries, .nodes = libraries->nodes};
    if (r == 0)
        r = record_lines(run, &question, libraries->objects, keys, NULL, length_most, failure);
    for (size_t i = 0; keys && i < run->node_count; i++)
        free(keys[i]);
    free(keys);
    return r;
}

static int inspect_libraries(struct run *run, struct failure *failure) {
    static const char *const hash[] = {"sha256sum", "--"};
    static const char *const package[] = {"dpkg-query", "-S"};
    struct libraries libraries = {
        .paths = calloc(run->node_count, sizeof *libraries.paths),
        .keys = calloc(run->node_count, sizeof *libraries.keys),
        .nodes = calloc(run->node_count, sizeof *libraries.nodes),
        .objects = calloc(run->node_count, sizeof *libraries.objects),
        .arguments = calloc(run->node_count, LIBRARY_ARGUMENTS * sizeof *libraries.arguments)};
    int r = libraries.paths && libraries.keys && libraries.nodes && libraries.objects && libraries.arguments
                ? 0
                : failure_memory(failure);
    for (size_t n = 0; r == 0 && find_paths(run, n, &libraries) > 0; n++) {
        r = ask_about_libraries(run, &libraries, hash, "sha256", HASH_HEX_SIZE - 1, failure);
        if (r == 0)
            r = ask_about_libraries(run, &libraries, package, "package", 256, failure);
    }
    clear_libraries(&libraries, run);
    return r;
}

int run_inspect_software(struct run *run, struct failure *failure) {
    static const char *const compiler[] = {"cc", "--version", NULL};
    static const char *const libc[] = {"getconf", "GNU_LIBC_VERSION", NULL};
    cleanup_free cJSON **objects = calloc(run->node_count ? run->node_count : 1, sizeof *objects);
    if (!objects)
        return failure_memory(failure);
    size_t count = 0;
    for (size_t i = 0; i < run->node_count; i++) {
        objects[i] = run->nodes[i].software;
        count += objects[i] && run->group && node_group_is_there(run->group, i);
    }
    if (count == 0)
        return 0;
    int r = record_lines(run, &(struct node_command){.arguments = compiler}, objects, NULL, "compiler", 256,
                         failure);
    if (r == 0)
        r = record_lines(run, &(struct node_command){.arguments = libc}, objects, NULL, "libc", 256, failure);
    return r < 0 ? r : inspect_libraries(run, failure);
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
    /* A part that got no further than to reach the nodes knows less than those before. */
    if (path && cJSON_GetArraySize(nodes) == 0 && file_exists(path))
        return 0;
    return path ? run_write_json(path, object, failure) : failure_memory(failure);
}
