/* The prepare phase, on all nodes at once: packages, the experiment's files, its source, its setup commands.
 */
#include "engine/run/run-state.h"

#include "archive-format/tar.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/answers.h"
#include "engine/run/nodes/command.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/out.h"
#include "engine/run/nodes/software.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char unpacked_source[] = ".source"; /* hidden: no member of an archive */

/* ---- Packages -------------------------------------------------------------------------------------------
 */

/* What is missing where. */
struct packages {
    const char **missing; /* of node i, at i * packages wanted; borrowed names, then NULL */
    const char ***arguments;
    bool *lacking; /* nodes that miss something */
    bool *root;    /* nodes on which we are root */
    size_t wanted;
};

static void clear_packages(struct packages *packages, const struct run *run) {
    for (size_t i = 0; packages->arguments && i < run->node_count; i++)
        free(packages->arguments[i]);
    free(packages->arguments);
    free(packages->missing);
    free(packages->lacking);
    free(packages->root);
}

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
 * collects the packages that are not there in MISSING (borrowed names, NULL-ended). */
static size_t read_versions(const struct bind_texts *packages, const char *output, cJSON *versions,
                            const char **missing) {
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
    missing[count] = NULL;
    return count;
}

static const char **missing_of(const struct packages *packages, size_t node) {
    return packages->missing + node * (packages->wanted + 1);
}

/* *RET_LACKING: how many nodes lack something. */
static int query_packages(struct run *run, struct packages *packages, const bool *nodes, size_t *ret_lacking,
                          struct failure *failure) {
    static const char *const query[] = {"dpkg-query", "-W",
                                        "-f=${Package}\\t${Version}\\t${db:Status-Abbrev}\\n", "--", NULL};
    const struct bind_texts *wanted = &run->experiment->packages;
    cleanup_free const char **arguments =
        with_packages(query, (const char *const *)wanted->items, wanted->count);
    if (!arguments)
        return failure_memory(failure);
    struct node_result *results = NULL;
    int r = node_command_run(run, &(struct node_command){.arguments = arguments, .nodes = nodes}, &results,
                             failure);
    if (r < 0)
        return r;
    size_t lacking = 0;
    for (size_t i = 0; r == 0 && i < run->node_count; i++) {
        if ((nodes && !nodes[i]) || !run_concerns(run, i))
            continue;
        if (results[i].outcome != NODE_DONE) {
            if (failure)
                *failure = results[i].failure;
            r = results[i].failure.code;
            break;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(run->nodes[i].software, "packages");
        cJSON *versions = json_add_object(run->nodes[i].software, "packages");
        if (!versions)
            r = failure_memory(failure);
        else if (read_versions(wanted, results[i].output.bytes, versions, missing_of(packages, i)) > 0) {
            packages->lacking[i] = true;
            lacking++;
        }
    }
    node_results_free(run->group, results);
    if (r == 0)
        *ret_lacking = lacking;
    return r;
}

static int find_root(struct run *run, struct packages *packages, struct failure *failure) {
    static const char *const identity[] = {"id", "-u", NULL};
    struct node_result *results = NULL;
    int r = node_command_run(run, &(struct node_command){.arguments = identity, .nodes = packages->lacking},
                             &results, failure);
    for (size_t i = 0; r == 0 && i < run->node_count; i++)
        packages->root[i] = results[i].outcome == NODE_DONE && strcmp(results[i].output.bytes, "0\n") == 0;
    if (r == 0)
        node_results_free(run->group, results);
    return r;
}

/* What needs root has words before it: nothing as root, sudo without a question otherwise. */
static int specify_update(struct run *run, size_t node, struct remote_command_specification *ret,
                          void *context, struct failure *failure) {
    static const char *const update[] = {"sudo",    "-n", "env",    "DEBIAN_FRONTEND=noninteractive",
                                         "apt-get", "-q", "update", NULL};
    const struct packages *packages = context;
    (void)run;
    (void)failure;
    ret->arguments = packages->root[node] ? update + 2 : update;
    return 0;
}

static int specify_install(struct run *run, size_t node, struct remote_command_specification *ret,
                           void *context, struct failure *failure) {
    static const char *const install[] = {
        "sudo", "-n",      "env", "DEBIAN_FRONTEND=noninteractive", "apt-get",
        "-q",   "install", "-y",  "--no-install-recommends",        "--",
        NULL};
    struct packages *packages = context;
    const char **missing = missing_of(packages, node);
    size_t count = 0;
    (void)run;
    while (missing[count])
        count++;
    packages->arguments[node] = with_packages(packages->root[node] ? install + 2 : install, missing, count);
    if (!packages->arguments[node])
        return failure_memory(failure);
    ret->arguments = packages->arguments[node];
    return 0;
}

/* "make git" for each node, and who lacks them. */
static int note_missing(struct run *run, const struct packages *packages, char **ret_first,
                        struct failure *failure) {
    char **words = calloc(run->node_count, sizeof *words);
    struct node_kinds kinds = {0};
    int r = words ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < run->node_count; i++) {
        if (!packages->lacking[i])
            continue;
        struct text names;
        text_init(&names, FAILURE_TEXT_SIZE / 2);
        for (const char **name = missing_of(packages, i); *name; name++)
            text_printf(&names, "%s%s", names.length ? " " : "", *name);
        words[i] = text_take(&names);
        r = words[i] ? 0 : -ENOMEM;
    }
    if (r == 0)
        r = node_kinds_init(&kinds, (const char *const *)words, run->node_count);
    for (size_t k = 0; r == 0 && k < kinds.count; k++) {
        cleanup_free char *who = run_nodes_in_words(run, kinds.items[k].nodes, kinds.items[k].count);
        run_note(run, "%s: installing %s", who ? who : "nodes", kinds.items[k].value);
        if (k == 0)
            *ret_first = text_format("%s: %s", who ? who : "nodes", kinds.items[k].value);
    }
    node_kinds_clear(&kinds);
    for (size_t i = 0; words && i < run->node_count; i++)
        free(words[i]);
    free(words);
    return r < 0 ? failure_memory(failure) : 0;
}

static int install_packages(struct run *run, struct packages *packages, struct failure *failure) {
    int r = find_root(run, packages, failure);
    if (r == 0)
        r = node_command_run(
            run,
            &(struct node_command){
                .specify = specify_update, .context = packages, .nodes = packages->lacking, .name = "update"},
            NULL, failure);
    if (r == 0)
        r = node_command_run(run,
                             &(struct node_command){.specify = specify_install,
                                                    .context = packages,
                                                    .nodes = packages->lacking,
                                                    .name = "install"},
                             NULL, failure);
    return r;
}

static int provide_packages(struct run *run, struct packages *packages, struct failure *failure) {
    size_t lacking = 0;
    int r = query_packages(run, packages, NULL, &lacking, failure);
    if (r < 0 || lacking == 0)
        return r;
    cleanup_free char *first = NULL;
    r = note_missing(run, packages, &first, failure);
    if (r == 0)
        r = install_packages(run, packages, failure);
    if (r == 0)
        r = query_packages(run, packages, packages->lacking, &lacking, failure);
    for (size_t i = 0; r == 0 && lacking > 0 && i < run->node_count; i++)
        if (packages->lacking[i] && run_concerns(run, i) && missing_of(packages, i)[0])
            return failure_set_kind(failure, FAILURE_EXPERIMENT, -ENOPKG,
                                    "on node %s, package %s is still missing", run->nodes[i].name,
                                    missing_of(packages, i)[0]);
    if (r < 0 && !run->interrupted)
        failure_prefix(failure,
                       "the experiment needs packages that are not there (%.300s) and that could not be "
                       "installed",
                       first ? first : "");
    return r;
}

static int prepare_packages(struct run *run, struct failure *failure) {
    size_t wanted = run->experiment->packages.count;
    if (wanted == 0)
        return 0;
    struct packages packages = {.missing = calloc(run->node_count, (wanted + 1) * sizeof *packages.missing),
                                .arguments = calloc(run->node_count, sizeof *packages.arguments),
                                .lacking = calloc(run->node_count, sizeof *packages.lacking),
                                .root = calloc(run->node_count, sizeof *packages.root),
                                .wanted = wanted};
    int r = packages.missing && packages.arguments && packages.lacking && packages.root
                ? provide_packages(run, &packages, failure)
                : failure_memory(failure);
    clear_packages(&packages, run);
    return r;
}

/* ---- Files and source -----------------------------------------------------------------------------------
 */

enum { COMMIT_SIZE = 72 }; /* hexadecimal digits of SHA-1 or SHA-256, and their NUL */

/* The commit that this run has built already, in an earlier part or on other nodes; "": none. A branch goes
 * on while a run does not. */
static int read_commit(const struct run *run, char ret[static COMMIT_SIZE], struct failure *failure) {
    cleanup_free char *path = run_path(run, RUN_SOURCE_COMMIT);
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, 4096);
    ret[0] = '\0';
    if (!path)
        return failure_memory(failure);
    if (!file_exists(path))
        return 0;
    int r = file_read(path, &bytes, failure);
    if (r < 0)
        return r;
    size_t length = strspn(bytes.bytes, "0123456789abcdef");
    if (length < 40 || length >= COMMIT_SIZE || strcmp(bytes.bytes + length, "\n") != 0)
        return failure_set_kind(
            failure, FAILURE_VERIFICATION, -EBADMSG,
            "'%s' does not have the commit that this run has built; expected its 40 or 64 "
            "hexadecimal digits",
            path);
    memcpy(ret, bytes.bytes, length);
    ret[length] = '\0';
    return 0;
}

/* All nodes have built one commit: COMMIT, or, if that is empty, the one that is kept now. */
static int check_commits(struct run *run, const struct node_result *told, char commit[static COMMIT_SIZE],
                         struct failure *failure) {
    bool known = commit[0];
    for (size_t i = 0; i < run->node_count; i++) {
        if (!run_concerns(run, i))
            continue;
        const char *own = told[i].output.bytes;
        size_t length = strcspn(own, "\n");
        if (!commit[0] && length < COMMIT_SIZE)
            snprintf(commit, COMMIT_SIZE, "%.*s", (int)length, own);
        if (strlen(commit) != length || memcmp(commit, own, length) != 0)
            return failure_set_kind(
                failure, FAILURE_EXPERIMENT, -EINVAL,
                "node %s has cloned commit %.*s of '%s', and others %s; expected an 'at' that "
                "stays as it is",
                run->nodes[i].name, (int)(length < COMMIT_SIZE ? length : COMMIT_SIZE), own,
                run->experiment->source.git, commit);
    }
    cleanup_free char *path = run_path(run, RUN_SOURCE_COMMIT), *line = text_format("%s\n", commit);
    if (!path || !line)
        return failure_memory(failure);
    return known || !commit[0] ? 0 : file_replace(path, line, strlen(line), 0666, failure);
}

static int prepare_git(struct run *run, struct failure *failure) {
    const struct experiment_source *wanted = &run->experiment->source;
    char built[COMMIT_SIZE];
    int r = read_commit(run, built, failure);
    const char *at = built[0] ? built : wanted->at;
    const char *clone[] = {"git", "clone", "--quiet", "--", wanted->git, RUN_WORK_FOLDER, NULL};
    const char *checkout[] = {"git", "-c", "advice.detachedHead=false", "checkout", "--quiet", at,
                              "--",  NULL};
    static const char *const commit[] = {"git", "rev-parse", "HEAD", NULL};
    static const char *const no_questions[] = {"GIT_TERMINAL_PROMPT=0", NULL};
    struct node_command cloning = {.arguments = clone, .environment = no_questions, .name = "clone"};
    struct node_command checking_out = {
        .arguments = checkout, .environment = no_questions, .folder = RUN_WORK_FOLDER, .name = "checkout"};
    struct node_command telling = {.arguments = commit, .folder = RUN_WORK_FOLDER, .name = "commit"};
    struct node_result *told = NULL;
    if (r == 0)
        r = node_command_run(run, &cloning, NULL, failure);
    if (r == 0 && at)
        r = node_command_run(run, &checking_out, NULL, failure);
    if (r == 0)
        r = node_command_run(run, &telling, &told, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < run->node_count; i++) {
        if (!run_concerns(run, i))
            continue;
        cJSON *source = json_add_object(run->nodes[i].software, "source");
        json_add_string(source, "git", wanted->git);
        json_add_string(source, "at", wanted->at);
        json_add_bytes(source, "commit", told[i].output.bytes, strcspn(told[i].output.bytes, "\n"));
    }
    r = check_commits(run, told, built, failure);
    node_results_free(run->group, told);
    return r;
}

/* A folder of this machine to all nodes; what does not arrive whole on one of them fails the run. */
static int put(struct run *run, const struct node_put *put, struct failure *failure) {
    cleanup_free struct failure *failures = NULL;
    cleanup_free char *what = text_format("put '%s'", put->local);
    int r = what ? node_group_put(run->group, put, &failures, NULL, failure) : failure_memory(failure);
    return r < 0 ? r : run_merge_failures(run, failures, what, failure);
}

/* What every part and every node builds: the copy that the run took when it began. */
static int prepare_local_source(struct run *run, struct failure *failure) {
    cleanup_free char *tar = run_path(run, RUN_SOURCE_TAR), *folder = run_path(run, unpacked_source);
    if (!tar || !folder)
        return failure_memory(failure);
    int r = file_remove_tree(folder, failure); /* a part that died may have left it */
    if (r == 0)
        r = tar_extract(tar, folder, failure);
    if (r == 0)
        r = put(run, &(struct node_put){.local = folder, .remote = RUN_WORK_FOLDER}, failure);
    file_remove_tree(folder, NULL);
    if (r < 0)
        return r;
    for (size_t i = 0; i < run->node_count; i++) {
        if (!run_concerns(run, i))
            continue;
        cJSON *source = json_add_object(run->nodes[i].software, "source");
        json_add_string(source, "folder", file_base_name(run->experiment->source.folder));
        json_add_string(source, "files", RUN_SOURCE_MANIFEST);
    }
    return 0;
}

static void on_made(struct agent_link *link, const struct failure *failure, void *context) {
    (void)link;
    struct answer *answer = context;
    struct failure *failures = answer->answers->context;
    if (failure)
        failures[answer->node] = *failure;
    answers_take(answer);
}

static int make_work_folders(struct run *run, struct failure *failure) {
    cleanup_free struct failure *failures = xcalloc(run->node_count, sizeof *failures);
    cleanup(answers_clear) struct answers answers = {0};
    int r = answers_init(&answers, run->loop, run->node_count, failures, failure);
    for (size_t i = 0; r == 0 && i < run->node_count; i++) {
        if (!run_concerns(run, i))
            continue;
        struct answer *answer = answers_ask(&answers, run->nodes[i].link, i, 0);
        if (agent_link_make_folder(answer->link, RUN_WORK_FOLDER, on_made, answer, &failures[i]) < 0)
            answers_take(answer);
    }
    if (r == 0)
        r = answers_wait(&answers, failure);
    return r < 0 ? r : run_merge_failures(run, failures, "make folder '" RUN_WORK_FOLDER "'", failure);
}

static int prepare_files(struct run *run, struct failure *failure) {
    const struct experiment *experiment = run->experiment;
    bool source = experiment->source.git || experiment->source.folder;
    int r;
    if (experiment->source.git)
        r = prepare_git(run, failure);
    else if (experiment->source.folder)
        r = prepare_local_source(run, failure);
    else
        r = make_work_folders(run, failure);
    /* A source is left as it came: the experiment's own files lie beside it. */
    if (r < 0 || !experiment->folder)
        return r;
    cleanup_free char *copy = run_path(run, RUN_EXPERIMENT_FOLDER);
    return copy ? put(run,
                      &(struct node_put){.local = copy,
                                         .remote = source ? RUN_EXPERIMENT_FOLDER : RUN_WORK_FOLDER},
                      failure)
                : failure_memory(failure);
}

/* ---- Commands -------------------------------------------------------------------------------------------
 */

/* A command of the experiment's: the same on nodes that have the same number of cores. */
struct variant {
    size_t cpus;
    char **arguments, **environment;
};

struct variants {
    const struct experiment_command *command;
    struct variant *items;
    size_t count;
    const char **
        *joined; /* of each node: with the container before the arguments, and with its environment */
};

static void clear_variants(struct variants *variants, const struct run *run) {
    for (size_t i = 0; variants->joined && i < 2 * run->node_count; i++)
        free(variants->joined[i]);
    free(variants->joined);
    for (size_t i = 0; i < variants->count; i++) {
        experiment_arguments_free(variants->items[i].arguments);
        experiment_arguments_free(variants->items[i].environment);
    }
    free(variants->items);
}

static int make_variant(struct run *run, struct variants *variants, size_t cpus, struct variant **ret,
                        struct failure *failure) {
    struct plan_values values = {0};
    struct variant *variant = &variants->items[variants->count];
    *variant = (struct variant){.cpus = cpus};
    int r = plan_values_new(run->plan, cpus, &values, failure);
    if (r < 0)
        return r;
    variants->count++; /* what there is of it is freed with the others */
    struct experiment_values usable = plan_values_view(&values);
    r = experiment_command_arguments(variants->command, run->experiment->file, &usable, &variant->arguments,
                                     failure);
    if (r == 0)
        r = plan_values_environment(&values, &variant->environment, failure);
    plan_values_clear(&values);
    if (r == 0)
        *ret = variant;
    return r;
}

static int specify_variant(struct run *run, size_t node, struct remote_command_specification *ret,
                           void *context, struct failure *failure) {
    struct variants *variants = context;
    size_t cpus = run->experiment->placement == EXPERIMENT_PLACEMENT_CORE ? 1 : run->nodes[node].core_count;
    struct variant *variant = NULL;
    for (size_t i = 0; i < variants->count && !variant; i++)
        if (variants->items[i].cpus == cpus)
            variant = &variants->items[i];
    int r = variant ? 0 : make_variant(run, variants, cpus, &variant, failure);
    if (r < 0)
        return r;
    const char ***joined = variants->joined + 2 * node;
    joined[0] = software_join(software_prefix(run), (const char *const *)variant->arguments);
    joined[1] = software_join(software_environment(run, &run->nodes[node]),
                              (const char *const *)variant->environment);
    if (!joined[0] || !joined[1])
        return failure_memory(failure);
    ret->arguments = joined[0];
    ret->environment = joined[1];
    ret->folder = RUN_WORK_FOLDER;
    return 0;
}

static int run_commands(struct run *run, const char *name, const struct experiment_command *commands,
                        size_t count, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < count; i++) {
        struct variants variants = {.command = &commands[i],
                                    .items = calloc(run->node_count, sizeof *variants.items),
                                    .joined = calloc(2 * run->node_count, sizeof *variants.joined)};
        r = variants.items && variants.joined
                ? node_command_run(
                      run,
                      &(struct node_command){.specify = specify_variant, .context = &variants, .name = name},
                      NULL, failure)
                : failure_memory(failure);
        clear_variants(&variants, run);
    }
    return r;
}

/* What software there is, is recorded of a setup that fails too. */
static int run_setup(struct run *run, struct failure *failure) {
    int r = run_commands(run, "setup", run->experiment->setup, run->experiment->setup_count, failure);
    if (r < 0)
        software_add_hint(failure);
    if (run->interrupted)
        return r;
    struct failure why = {0};
    int recorded = software_record_programs(run, &why);
    if (recorded == 0)
        recorded = software_write(run, &why); /* known too when the run is killed */
    if (r == 0 && recorded < 0)
        *failure = why;
    return r < 0 ? r : recorded;
}

int run_phase_prepare(struct run *run, struct failure *failure) {
    for (size_t i = 0; i < run->node_count; i++)
        if (run_concerns(run, i) && !(run->nodes[i].software = cJSON_CreateObject()))
            return failure_memory(failure);
    int r = prepare_packages(run, failure);
    if (r == 0)
        r = prepare_files(run, failure);
    if (r == 0)
        r = software_load(run, failure);
    int64_t begun_ns = clock_monotonic_ns();
    if (r == 0)
        r = run_setup(run, failure);
    if (run->experiment->teardown_count > 0)
        deadline_took(&run->deadline, DEADLINE_TEARDOWN, clock_monotonic_ns() - begun_ns);
    return r;
}

int run_teardown(struct run *run, struct failure *failure) {
    if (!run->phases[RUN_PREPARE].started_ns)
        return 0;
    return run_commands(run, "teardown", run->experiment->teardown, run->experiment->teardown_count, failure);
}
