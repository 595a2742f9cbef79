/* The prepare phase, on all nodes at once: packages, the experiment's files, its source, its setup commands.
 */
#include "archive-format/layout.h"
#include "engine/run/nodes/nodes.h"

#include "archive-format/tar.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/source-files.h"
#include "engine/run/nodes/command.h"
#include "engine/run/nodes/fetch-sources.h"
#include "engine/run/nodes/kinds.h"
#include "engine/run/nodes/software.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static const char unpacked_source[] = ".source"; /* hidden: no member of an archive */

/* ---- Packages -------------------------------------------------------------------------------------------
 */

/* Prints "NAME<tab>VERSION" of those of its arguments that are installed. */
static const char query_script[] =
    "dpkg-query -W -f='${Package}\\t${Version}\\t${db:Status-Abbrev}\\n' -- \"$@\" 2>/dev/null |\n"
    "    sed -n 's/\tii.*//p'\n";

/* Installs those of its arguments that are not, with sudo unless it is root. */
static const char install_script[] =
    "for name; do\n"
    "    shift\n"
    "    case $(dpkg-query -W -f='${db:Status-Abbrev}' -- \"$name\" 2>/dev/null) in\n"
    "    ii*) ;;\n"
    "    *) set -- \"$@\" \"$name\" ;;\n"
    "    esac\n"
    "done\n"
    "[ $# -gt 0 ] || exit 0\n"
    "[ \"$(id -u)\" = 0 ] && sudo= || sudo='sudo -n'\n"
    "$sudo env DEBIAN_FRONTEND=noninteractive apt-get -q update &&\n"
    "    exec $sudo env DEBIAN_FRONTEND=noninteractive apt-get -q install -y --no-install-recommends -- "
    "\"$@\"\n";

/* The arguments of a shell that runs SCRIPT with the names of all packages; for free(). */
static const char **package_arguments(const struct node_set *set, const char *script) {
    const char *const shell[] = {"sh", "-c", script, "assay", NULL};
    const struct bind_texts *wanted = &set->experiment->packages;
    cleanup_free const char **names = xcalloc(wanted->count + 1, sizeof *names);
    for (size_t i = 0; i < wanted->count; i++)
        names[i] = wanted->items[i];
    return software_join(shell, names);
}

/* "name<tab>version" lines become members of RET. */
static void read_versions(const char *lines, cJSON *ret) {
    for (const char *line = lines; *line; line += strcspn(line, "\n"), line += *line == '\n') {
        cleanup_free char *name = xstrndup(line, strcspn(line, "\t\n"));
        const char *version = line + strlen(name);
        if (*version == '\t' && !cJSON_GetObjectItemCaseSensitive(ret, name))
            json_add_bytes(ret, name, version + 1, strcspn(version + 1, "\n"));
    }
}

/* Records the versions of the packages that are installed. MISSING gets, for each node, the names of those
 * that are not, "make git". */
static int query_packages(struct node_set *set, struct node_texts *missing, struct failure *failure) {
    const struct bind_texts *wanted = &set->experiment->packages;
    cleanup_free const char **arguments = package_arguments(set, query_script);
    struct node_result *results = NULL;
    int r = node_command_run(set, &(struct node_command){.arguments = arguments}, &results, failure);
    if (r < 0)
        return r;
    for (struct run_node *node = NULL; r == 0 && (node = node_set_next(set, node));) {
        size_t i = node->number;
        if (results[i].outcome != NODE_DONE) {
            *failure = results[i].failure;
            r = failure->code;
            continue;
        }
        cJSON_DeleteItemFromObjectCaseSensitive(node->software, "packages");
        cJSON *versions = json_add_object(node->software, "packages");
        read_versions(results[i].output.bytes, versions);
        cleanup(text_clear) struct text names;
        text_init(&names, FAILURE_TEXT_SIZE / 2);
        for (size_t k = 0; k < wanted->count; k++)
            if (!cJSON_GetObjectItemCaseSensitive(versions, wanted->items[k]))
                text_printf(&names, "%s%s", names.length ? " " : "", wanted->items[k]);
        missing->items[i] = names.length ? text_take(&names) : NULL;
    }
    node_results_free(set->group, results);
    return r;
}

/* Installs the packages on all nodes. It fails if one is still missing then. */
static int install_packages(struct node_set *set, struct failure *failure) {
    cleanup_free const char **arguments = package_arguments(set, install_script);
    cleanup(node_texts_clear) struct node_texts missing = node_texts_new(set->count);
    int r =
        node_command_run(set,
                         &(struct node_command){.arguments = arguments,
                                                .name = "install",
                                                .shown = "apt-get update; apt-get install what is missing"},
                         NULL, failure);
    if (r == 0)
        r = query_packages(set, &missing, failure);
    for (size_t i = 0; r == 0 && i < set->count; i++)
        if (missing.items[i])
            r = failure_set_kind(failure, FAILURE_EXPERIMENT, -ENOPKG,
                                 "on node %s, package %.*s is still missing", set->items[i].name,
                                 (int)strcspn(missing.items[i], " "), missing.items[i]);
    return r;
}

/* Records the installed packages, and installs missing ones, which is noted. */
static int prepare_packages(struct node_set *set, struct failure *failure) {
    if (set->experiment->packages.count == 0)
        return 0;
    cleanup(node_texts_clear) struct node_texts missing = node_texts_new(set->count);
    int r = query_packages(set, &missing, failure);
    if (r < 0)
        return r;
    cleanup(node_kinds_clear) struct node_kinds kinds = node_kinds_of(&missing);
    if (kinds.count == 0)
        return 0;
    cleanup_free char *first = NULL;
    for (size_t k = 0; k < kinds.count; k++) {
        cleanup_free char *who = node_set_describe(set, kinds.items[k].nodes, kinds.items[k].count);
        record_note(set->record, "%s: installing %s", who, kinds.items[k].value);
        if (k == 0)
            first = xformat("%s: %s", who, kinds.items[k].value);
    }
    r = install_packages(set, failure);
    if (r < 0 && !set->record->interrupted)
        failure_prefix(failure,
                       "the experiment needs packages that are missing (%.300s) and cannot be "
                       "installed",
                       first);
    return r;
}

/* ---- Files and source -----------------------------------------------------------------------------------
 */

enum { COMMIT_MIN = 40, COMMIT_MAX = 64 }; /* hexadecimal digits of SHA-1 and SHA-256 */

/* Reads the commit that this run has built before, in an earlier part or on other nodes: a branch may have
 * moved since. *RET is the caller's, or stays NULL. */
static int read_commit(const struct node_set *set, char **ret, struct failure *failure) {
    cleanup_free char *path = record_path(set->record, ARCHIVE_SOURCE_COMMIT);
    cleanup(text_clear) struct text bytes;
    text_init(&bytes, 4096);
    if (!file_exists(path))
        return 0;
    int r = file_read(path, &bytes, failure);
    if (r < 0)
        return r;
    size_t length = strspn(bytes.bytes, "0123456789abcdef");
    if (length < COMMIT_MIN || length > COMMIT_MAX || strcmp(bytes.bytes + length, "\n") != 0)
        return failure_set_kind(
            failure, FAILURE_VERIFICATION, -EBADMSG,
            "'%s' does not have the commit that this run has built; expected its 40 or 64 "
            "hexadecimal digits",
            path);
    *ret = xstrndup(bytes.bytes, length);
    return 0;
}

/* Refuses nodes that have cloned different COMMITS, or another than BUILT. With BUILT NULL the common one is
 * recorded. */
static int check_commits(struct node_set *set, const struct node_texts *commits, const char *built,
                         struct failure *failure) {
    const char *first = built;
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        const char *own = commits->items[node->number];
        if (!first)
            first = own;
        if (strcmp(own, first) != 0)
            return failure_set_kind(
                failure, FAILURE_EXPERIMENT, -EINVAL,
                "node %s has cloned commit %s of '%s', and others %s; expected an 'at' that stays as it is",
                node->name, own, set->experiment->source.git, first);
    }
    if (built || !first)
        return 0;
    cleanup_free char *path = record_path(set->record, ARCHIVE_SOURCE_COMMIT), *line = xformat("%s\n", first);
    return file_replace(path, line, strlen(line), 0666, failure);
}

/* A folder of this machine to all nodes; what does not arrive whole on one of them fails the run. */
static int put(struct node_set *set, const struct node_put *put, struct failure *failure) {
    cleanup_free struct failure *failures = NULL;
    cleanup_free char *what = xformat("put '%s'", put->local);
    int r = node_group_put(set->group, put, &failures, NULL, failure);
    return r < 0 ? r : node_set_merge_failures(set, failures, what, failure);
}

/* Puts the run's copy of the source on all nodes: every part and every node builds the same. */
static int prepare_local_source(struct node_set *set, struct failure *failure) {
    cleanup_free char *tar = source_copy_path(set->record->folder, ARCHIVE_SOURCE),
                      *folder = record_path(set->record, unpacked_source);
    int r = file_remove_tree(folder, failure); /* a part that died may have left it */
    if (r == 0)
        r = tar_extract(tar, folder, failure);
    if (r == 0)
        r = put(set, &(struct node_put){.local = folder, .remote = RUN_WORK_FOLDER}, failure);
    file_remove_tree(folder, NULL);
    if (r < 0)
        return r;
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        cJSON *source = json_add_object(node->software, "source");
        if (set->experiment->source.git)
            json_add_string(source, "git", set->experiment->source.git);
        else
            json_add_string(source, "folder", file_base_name(set->experiment->source.folder));
        json_add_string(source, "files", ARCHIVE_SOURCE_MANIFEST);
    }
    return 0;
}

/* Arguments: a repository, the folder to clone it to, and what to check out, which may be empty. */
static const char clone_script[] =
    "git clone --quiet -- \"$1\" \"$2\" && cd \"$2\" || exit\n"
    "[ -z \"$3\" ] || git -c advice.detachedHead=false checkout --quiet \"$3\" -- || exit\n"
    "git rev-parse HEAD\n";

/* Clones the source on the nodes, at the commit built before or at `at`. If the run has a copy of the source,
 * nodes get that. */
static int prepare_git(struct node_set *set, struct failure *failure) {
    static const char *const no_questions[] = {"GIT_TERMINAL_PROMPT=0", NULL};
    const struct experiment_source *wanted = &set->experiment->source;
    cleanup_free char *built = NULL;
    int r = read_commit(set, &built, failure);
    if (r < 0)
        return r;
    cleanup_free char *copy = record_path(set->record, ARCHIVE_SOURCE);
    if (built && file_exists(copy)) /* an earlier part, other nodes, or the run that is run again */
        return prepare_local_source(set, failure);
    const char *at = built ? built : wanted->at ? wanted->at : "";
    const char *const clone[] = {"sh", "-c", clone_script, "assay", wanted->git, RUN_WORK_FOLDER, at, NULL};
    cleanup_free char *shown = xformat("git clone %s%s%s", wanted->git, at[0] ? ", at " : "", at);
    struct node_command cloning = {
        .arguments = clone, .environment = no_questions, .name = "clone", .shown = shown};
    struct node_result *results = NULL;
    r = node_command_run(set, &cloning, &results, failure);
    if (r < 0)
        return r;
    cleanup(node_texts_clear) struct node_texts commits = node_texts_new(set->count);
    for (struct run_node *node = NULL; (node = node_set_next(set, node));) {
        const char *output = results[node->number].output.bytes;
        size_t length = strcspn(output, "\n");
        commits.items[node->number] = xstrndup(output, length < COMMIT_MAX ? length : COMMIT_MAX);
        cJSON *source = json_add_object(node->software, "source");
        json_add_string(source, "git", wanted->git);
        json_add_string(source, "at", wanted->at);
        json_add_string(source, "commit", commits.items[node->number]);
    }
    node_results_free(set->group, results);
    r = check_commits(set, &commits, built, failure);
    return r < 0 ? r : sources_fetch_clone(set, failure);
}

static int make_work_folders(struct node_set *set, struct failure *failure) {
    static const char *const arguments[] = {"mkdir", "-p", RUN_WORK_FOLDER, NULL};
    return node_command_run(set, &(struct node_command){.arguments = arguments}, NULL, failure);
}

/* Brings source, inputs and the experiment's files to the nodes. Beside a source the files have a folder of
 * their own. */
static int prepare_files(struct node_set *set, struct failure *failure) {
    const struct experiment *experiment = set->experiment;
    bool source = experiment->source.git || experiment->source.folder;
    int r;
    if (experiment->source.git)
        r = prepare_git(set, failure);
    else if (experiment->source.folder)
        r = prepare_local_source(set, failure);
    else
        r = make_work_folders(set, failure);
    if (r == 0)
        r = sources_fetch(set, failure);
    /* Copies that the archive keeps, and hidden ones that it does not. */
    static const char *const folders[] = {ARCHIVE_INPUT_FILES, "." ARCHIVE_INPUT_FILES};
    for (size_t i = 0; r == 0 && i < 2; i++) {
        cleanup_free char *inputs = record_path(set->record, folders[i]);
        if (file_exists(inputs))
            r = put(set,
                    &(struct node_put){.local = inputs, .remote = RUN_WORK_FOLDER "/" ARCHIVE_INPUT_FILES},
                    failure);
    }
    /* A source is left as it came: the experiment's own files lie beside it. */
    if (r < 0 || !experiment->folder)
        return r;
    cleanup_free char *copy = record_path(set->record, ARCHIVE_EXPERIMENT);
    struct node_put files = {.local = copy, .remote = source ? ARCHIVE_EXPERIMENT : RUN_WORK_FOLDER};
    return put(set, &files, failure);
}

/* ---- Commands -------------------------------------------------------------------------------------------
 */

/* A command of the experiment's, as the last node that was asked for it has it; both owned. */
struct node_variant {
    const struct experiment_command *command;
    char **arguments, **environment;
};

static void clear_variant(struct node_variant *variant) {
    experiment_arguments_free(variant->arguments);
    experiment_arguments_free(variant->environment);
    *variant = (struct node_variant){.command = variant->command};
}

/* Makes the arguments and environment of a setup or teardown command for one node; the values depend on its
 * cores. */
static int specify_variant(struct node_set *set, size_t number, struct remote_command_specification *ret,
                           void *context, struct failure *failure) {
    struct node_variant *variant = context;
    size_t cores = set->items[number].core_count;
    size_t cpus = set->experiment->placement == EXPERIMENT_PLACEMENT_CORE ? 1 : cores;
    cleanup(plan_values_clear) struct plan_values values = plan_values_new(set->plan, cpus);
    struct experiment_values usable = plan_values_view(&values);
    clear_variant(variant);
    int r = experiment_command_arguments(variant->command, set->experiment->file, &usable,
                                         &variant->arguments, failure);
    variant->environment = plan_values_environment(&values);
    ret->arguments = (const char *const *)variant->arguments;
    ret->environment = (const char *const *)variant->environment;
    return r;
}

static int run_commands(struct node_set *set, const char *name, const struct experiment_command *commands,
                        size_t count, struct failure *failure) {
    for (size_t i = 0; i < count; i++) {
        cleanup(clear_variant) struct node_variant variant = {.command = &commands[i]};
        struct node_command command = {
            .specify = specify_variant, .context = &variant, .in_software = true, .name = name};
        int r = node_command_run(set, &command, NULL, failure);
        if (r < 0)
            return r;
    }
    return 0;
}

/* Runs the setup commands. What software there is, is recorded also if they fail, but not after an
 * interruption. */
static int run_setup(struct node_set *set, struct failure *failure) {
    int r = run_commands(set, "setup", set->experiment->setup, set->experiment->setup_count, failure);
    if (r < 0)
        software_add_hint(failure);
    if (set->record->interrupted)
        return r;
    struct failure why = {0};
    int recorded = software_record_programs(set, &why);
    if (recorded == 0)
        recorded = software_write(set, &why); /* known too when the run is killed */
    if (r == 0 && recorded < 0)
        *failure = why;
    return r < 0 ? r : recorded;
}

/* The prepare phase: packages first, then files, software and setup commands. */
int node_set_prepare(struct node_set *set, struct failure *failure) {
    for (struct run_node *node = NULL; (node = node_set_next(set, node));)
        node->software = cJSON_CreateObject();
    int r = prepare_packages(set, failure);
    if (r == 0)
        r = prepare_files(set, failure);
    if (r == 0)
        r = software_load(set, failure);
    int64_t begun_ns = clock_monotonic_ns();
    if (r == 0)
        r = run_setup(set, failure);
    if (set->experiment->teardown_count > 0)
        deadline_took(&set->deadline, DEADLINE_TEARDOWN, clock_monotonic_ns() - begun_ns);
    return r;
}

int node_set_tear_down(struct node_set *set, struct failure *failure) {
    return run_commands(set, "teardown", set->experiment->teardown, set->experiment->teardown_count, failure);
}
