/* The prepare phase: packages, the experiment's files, its source, its setup commands. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/run/copy.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where setup and run commands work, below the agent's folder. */
static const char work_folder[] = "work";
static const char experiment_folder[] = "experiment";

/* ---- Packages -------------------------------------------------------------------------------------------
 */

/* The arguments FIXED (NULL-ended) and then the packages in WANTED; an array for free(). */
static const char **with_packages(const char *const *fixed, const char *const *wanted, size_t count) {
    size_t head = 0;
    while (fixed[head])
        head++;
    const char **arguments = calloc(head + count + 1, sizeof *arguments);
    for (size_t i = 0; arguments && i < head; i++)
        arguments[i] = fixed[i];
    for (size_t i = 0; arguments && i < count; i++)
        arguments[head + i] = wanted[i];
    return arguments;
}

/* Reads the versions that dpkg-query told, one "name<TAB>version<TAB>status" a line, into VERSIONS, and
 * collects the packages that are not there in MISSING (borrowed names). */
static void read_versions(const struct bind_texts *packages, const char *output, cJSON *versions,
                          const char **missing, size_t *ret_missing) {
    size_t count = 0;
    for (size_t i = 0; i < packages->count; i++) {
        const char *name = packages->items[i];
        size_t length = strlen(name);
        bool found = false;
        for (const char *line = output; line && *line && !found; line = strchr(line, '\n')) {
            line += *line == '\n';
            if (strncmp(line, name, length) != 0 || line[length] != '\t')
                continue;
            const char *version = line + length + 1;
            size_t version_length = strcspn(version, "\t\n");
            if (version[version_length] == '\t' && strncmp(version + version_length + 1, "ii", 2) == 0) {
                json_add_bytes(versions, name, version, version_length);
                found = true;
            }
        }
        if (!found)
            missing[count++] = name;
    }
    *ret_missing = count;
}

static int query_packages(struct run *run, struct run_node *node, cJSON *versions, const char **missing,
                          size_t *ret_missing, struct failure *failure) {
    static const char *const query[] = {"dpkg-query", "-W",
                                        "-f=${Package}\\t${Version}\\t${db:Status-Abbrev}\\n", "--", NULL};
    const struct bind_texts *packages = &run->experiment->packages;
    cleanup_free const char **arguments =
        with_packages(query, (const char *const *)packages->items, packages->count);
    if (!arguments)
        return failure_memory(failure);
    cleanup(remote_result_clear) struct remote_result result = {0};
    int r = run_command(run, node, arguments, NULL, NULL, false, &result, failure);
    if (r == 0)
        read_versions(packages, result.output, versions, missing, ret_missing);
    return r;
}

/* The words before a command that needs root: nothing as root, sudo without a question otherwise. */
static int install_packages(struct run *run, struct run_node *node, const char *const *missing, size_t count,
                            struct failure *failure) {
    static const char *const identity[] = {"id", "-u", NULL};
    cleanup(remote_result_clear) struct remote_result who = {0};
    int r = run_command(run, node, identity, NULL, NULL, true, &who, failure);
    if (r < 0)
        return r;
    bool root = strcmp(who.output, "0\n") == 0;
    static const char *const update[] = {"sudo",    "-n", "env",    "DEBIAN_FRONTEND=noninteractive",
                                         "apt-get", "-q", "update", NULL};
    static const char *const install[] = {
        "sudo", "-n",      "env", "DEBIAN_FRONTEND=noninteractive", "apt-get",
        "-q",   "install", "-y",  "--no-install-recommends",        "--",
        NULL};
    cleanup_free const char **arguments = with_packages(root ? install + 2 : install, missing, count);
    if (!arguments)
        return failure_memory(failure);
    cleanup(remote_result_clear) struct remote_result updated = {0};
    cleanup(remote_result_clear) struct remote_result installed = {0};
    r = run_command(run, node, root ? update + 2 : update, NULL, NULL, true, &updated, failure);
    if (r == 0)
        r = run_command(run, node, arguments, NULL, NULL, true, &installed, failure);
    return r;
}

static int prepare_packages(struct run *run, struct run_node *node, struct failure *failure) {
    const struct bind_texts *packages = &run->experiment->packages;
    if (packages->count == 0)
        return 0;
    cleanup_free const char **missing = calloc(packages->count, sizeof *missing);
    cJSON *versions = json_add_object(node->software, "packages");
    if (!missing || !versions)
        return failure_memory(failure);
    size_t count = 0;
    int r = query_packages(run, node, versions, missing, &count, failure);
    if (r < 0 || count == 0)
        return r;
    struct text names;
    text_init(&names, FAILURE_TEXT_SIZE / 2);
    for (size_t i = 0; i < count; i++)
        text_printf(&names, "%s%s", i ? " " : "", missing[i]);
    run_note(run, "node %s: installing %s", node->name, names.bytes);
    r = install_packages(run, node, missing, count, failure);
    if (r == 0) {
        cJSON_DeleteItemFromObjectCaseSensitive(node->software, "packages");
        versions = json_add_object(node->software, "packages");
        r = versions ? query_packages(run, node, versions, missing, &count, failure)
                     : failure_memory(failure);
    }
    if (r == 0 && count > 0)
        r = failure_set_kind(failure, FAILURE_EXPERIMENT, -ENOPKG, "on node %s, package %s is still missing",
                             node->name, missing[0]);
    else if (r < 0 && !run->interrupted)
        failure_prefix(
            failure, "the experiment needs packages that node %s lacks (%s) and that could not be installed",
            node->name, names.bytes);
    text_clear(&names);
    return r;
}

/* ---- Files and source -----------------------------------------------------------------------------------
 */

static int prepare_git(struct run *run, struct run_node *node, cJSON *source, struct failure *failure) {
    const struct experiment_source *wanted = &run->experiment->source;
    const char *clone[] = {"git", "clone", "--quiet", "--", wanted->git, work_folder, NULL};
    const char *checkout[] = {"git", "-c", "advice.detachedHead=false", "checkout", "--quiet", wanted->at,
                              "--",  NULL};
    static const char *const commit[] = {"git", "rev-parse", "HEAD", NULL};
    static const char *const no_questions[] = {"GIT_TERMINAL_PROMPT=0", NULL};
    cleanup(remote_result_clear) struct remote_result cloned = {0};
    cleanup(remote_result_clear) struct remote_result checked_out = {0};
    cleanup(remote_result_clear) struct remote_result told = {0};
    int r = run_command(run, node, clone, no_questions, NULL, true, &cloned, failure);
    if (r == 0 && wanted->at)
        r = run_command(run, node, checkout, no_questions, work_folder, true, &checked_out, failure);
    if (r == 0)
        r = run_command(run, node, commit, NULL, work_folder, true, &told, failure);
    if (r < 0)
        return r;
    json_add_string(source, "git", wanted->git);
    json_add_string(source, "at", wanted->at);
    json_add_bytes(source, "commit", told.output, strcspn(told.output, "\n"));
    return 0;
}

static int prepare_local_source(struct run *run, struct run_node *node, cJSON *source,
                                struct failure *failure) {
    struct text manifest;
    text_init(&manifest, 64 << 20);
    struct copy_target target = {.link = node->link,
                                 .folder = work_folder,
                                 .skip_version_control = true,
                                 .skip_folder = run->request->folder,
                                 .manifest = &manifest};
    size_t left_out = 0;
    int r = copy_tree(run->experiment->source.folder, &target, &left_out, failure);
    if (r == 0 && left_out > 0)
        run_note(run, "%zu links and special files below '%s' were not copied", left_out,
                 run->experiment->source.folder);
    if (r == 0) {
        cleanup_free char *path = run_path(run, "software/source-sha256.txt");
        r = path ? file_replace(path, manifest.bytes, manifest.length, 0666, failure)
                 : failure_memory(failure);
        json_add_string(source, "folder", file_base_name(run->experiment->source.folder));
        json_add_string(source, "files", "software/source-sha256.txt");
    }
    text_clear(&manifest);
    return r;
}

static int prepare_files(struct run *run, struct run_node *node, struct failure *failure) {
    const struct experiment *experiment = run->experiment;
    cJSON *source = experiment->source.git || experiment->source.folder
                        ? json_add_object(node->software, "source")
                        : NULL;
    int r = 0;
    if (experiment->source.git)
        r = prepare_git(run, node, source, failure);
    else
        r = agent_link_make_folder_and_wait(node->link, work_folder, failure);
    if (r == 0 && experiment->source.folder)
        r = prepare_local_source(run, node, source, failure);
    if (r == 0 && experiment->folder) {
        /* A source is left as it came: the experiment's own files lie beside it. */
        struct copy_target target = {.link = node->link,
                                     .folder = source ? experiment_folder : work_folder,
                                     .skip_hidden = true,
                                     .skip_folder = run->request->folder};
        r = copy_tree(experiment->folder, &target, NULL, failure);
    }
    return r;
}

/* ---- Commands -------------------------------------------------------------------------------------------
 */

static int run_commands(struct run *run, struct run_node *node, const struct experiment_command *commands,
                        size_t count, struct failure *failure) {
    struct plan_values values = {0};
    size_t cpus = run->experiment->placement == EXPERIMENT_PLACEMENT_CORE ? 1 : node->core_count;
    int r = plan_values_new(run->plan, cpus, &values, failure);
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct experiment_values usable = plan_values_view(&values);
        char **arguments = NULL, **environment = NULL;
        r = experiment_command_arguments(&commands[i], run->experiment->file, &usable, &arguments, failure);
        if (r == 0)
            r = plan_values_environment(&values, &environment, failure);
        cleanup(remote_result_clear) struct remote_result result = {0};
        if (r == 0)
            r = run_command(run, node, (const char *const *)arguments, (const char *const *)environment,
                            node->work_folder, true, &result, failure);
        experiment_arguments_free(arguments);
        experiment_arguments_free(environment);
    }
    plan_values_clear(&values);
    return r;
}

int run_phase_prepare(struct run *run, struct failure *failure) {
    for (size_t i = 0; i < run->node_count; i++) {
        struct run_node *node = &run->nodes[i];
        node->software = cJSON_CreateObject();
        node->work_folder = strdup(work_folder);
        if (!node->software || !node->work_folder)
            return failure_memory(failure);
        int r = prepare_packages(run, node, failure);
        if (r == 0)
            r = prepare_files(run, node, failure);
        if (r == 0)
            r = run_commands(run, node, run->experiment->setup, run->experiment->setup_count, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

int run_teardown(struct run *run, struct failure *failure) {
    if (run->experiment->teardown_count == 0 || !run->phases[RUN_PREPARE].started_ns)
        return 0;
    int result = 0;
    for (size_t i = 0; i < run->node_count; i++) {
        struct run_node *node = &run->nodes[i];
        struct failure why = {0};
        if (!node->work_folder || agent_link_state(node->link) != AGENT_LINK_READY)
            continue;
        int r = run_commands(run, node, run->experiment->teardown, run->experiment->teardown_count, &why);
        if (r < 0 && result == 0) {
            result = r;
            if (failure)
                *failure = why;
        }
    }
    return result;
}
