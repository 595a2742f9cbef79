#include "engine/run/measure/job-mpi.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/run/measure/job.h"
#include "engine/run/nodes/command.h"
#include "engine/run/nodes/nodes.h"
#include "engine/run/nodes/software.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The options of mpirun for a unit. */
static const struct {
    const char *options, *bound, *unbound;
} libraries[] = {
    [MPI_OPEN_MPI] = {"--hostfile {hosts} --wdir {folder} -n {ranks}",
                      "--map-by ppr:{ranks-per-node}:node:PE={threads} --bind-to core",
                      "--map-by ppr:{ranks-per-node}:node --bind-to none"},
    [MPI_MPICH] = {"-f {hosts} -wdir {folder} -n {ranks} -ppn {ranks-per-node}", "-bind-to core:{threads}",
                   "-bind-to none"},
    [MPI_INTEL] = {"-f {hosts} -wdir {folder} -n {ranks} -ppn {ranks-per-node}",
                   "-genv I_MPI_PIN_DOMAIN {threads}", "-genv I_MPI_PIN off"},
};

/* The MPI library by the output of `mpirun --version`. */
static enum mpi_kind kind_of_version(const char *version) {
    return strstr(version, "Open MPI") || strstr(version, "OpenRTE") || strstr(version, "PRRTE")
               ? MPI_OPEN_MPI
           : strstr(version, "Intel(R) MPI") ? MPI_INTEL
           : strstr(version, "HYDRA")        ? MPI_MPICH
                                             : MPI_UNKNOWN;
}

void mpi_append_hosts(enum mpi_kind kind, const struct placement *at, const struct experiment_shape *shape,
                      struct text *text) {
    for (size_t i = 0; i < shape->nodes; i++) {
        text_printf(text, "%s", at->shares[i].node->name);
        if (kind != MPI_UNKNOWN)
            text_printf(text, "%s%zu", kind == MPI_OPEN_MPI ? " slots=" : ":", shape->ranks_per_node);
        text_append_character(text, '\n');
    }
}

/* Appends copies of WORDS, NULL-ended, to *LIST, which may be NULL. */
static void add_words(char ***list, const char *const *words) {
    size_t count = 0, more = 0;
    while (*list && (*list)[count])
        count++;
    while (words[more])
        more++;
    *list = xrealloc(*list, (count + more + 1) * sizeof **list);
    for (size_t i = 0; i < more; i++)
        (*list)[count + i] = xstrdup(words[i]);
    (*list)[count + more] = NULL;
}

/* ---- mpirun */

static int specify(struct node_set *set, size_t node, struct remote_command_specification *ret, void *context,
                   struct failure *failure) {
    (void)failure;
    ret->arguments = context;
    ret->environment = software_environment(set, &set->items[node]);
    ret->folder = RUN_WORK_FOLDER;
    return 0;
}

int mpi_run(struct node_set *set, const char **arguments, struct node_result **ret, struct failure *failure) {
    return node_command_run(set, &(struct node_command){.specify = specify, .context = arguments}, ret,
                            failure);
}

/* Fails because NODE's mpirun cannot be run, or is of an unknown library. */
static int refuse_mpirun(const struct run_node *node, const char *mpirun, const struct node_result *result,
                         struct failure *failure) {
    const char *printed = result->output.length ? result->output.bytes : result->error.bytes;
    if (result->outcome != NODE_DONE)
        return failure_set_kind(failure, FAILURE_EXPERIMENT, -ENOENT,
                                "node %s: %.400s (in Debian: openmpi-bin or mpich)", node->name,
                                result->failure.text);
    return failure_set_kind(failure, FAILURE_EXPERIMENT, -ENOENT,
                            "node %s: '%s --version' says '%.*s', expected Open MPI, MPICH or Intel MPI",
                            node->name, mpirun, (int)strcspn(printed, "\n"), printed);
}

/* Finds the MPI library of the nodes. All nodes must have the same one. */
int mpi_find(struct node_set *set, enum mpi_kind *ret, struct failure *failure) {
    cleanup(job_free_words) char **mpirun = NULL;
    struct node_result *results;
    *ret = MPI_UNKNOWN;
    int r = software_mpirun(set, &mpirun, failure);
    if (r < 0)
        return r;
    const char *arguments[] = {mpirun[0], "--version", NULL};
    r = mpi_run(set, arguments, &results, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; r == 0 && i < set->count; i++) {
        if (results[i].outcome == NODE_NOT_ASKED || results[i].outcome == NODE_SKIPPED)
            continue;
        const char *version = node_result_is_good(&results[i]) ? results[i].output.bytes : "";
        enum mpi_kind kind = kind_of_version(version);
        json_add_bytes(set->items[i].software, "mpi", version, strcspn(version, "\n"));
        if (kind == MPI_UNKNOWN)
            r = refuse_mpirun(&set->items[i], mpirun[0], &results[i], failure);
        else if (*ret != MPI_UNKNOWN && kind != *ret)
            r = failure_set_kind(failure, FAILURE_EXPERIMENT, -EINVAL,
                                 "node %s: '%s' belongs to another MPI library than on the other nodes; "
                                 "install the same one on all nodes",
                                 set->items[i].name, mpirun[0]);
        *ret = kind;
    }
    node_results_free(set->group, results);
    return r;
}

/* ---- Its command */

/* Adds the variables that make each MPI library start its daemons through our launch script, flat, and ignore
 * schedulers. */
static void add_environment(const struct node_set *set, const char *folder, char ***environment) {
    cleanup_free char *mark = xformat("ASSAY_JOB=%s", set->record->id);
    add_words(environment,
              (const char *[]){mark,
                               /* Daemons start no daemons, and none leaves its parent. */
                               "OMPI_MCA_plm=rsh", "OMPI_MCA_plm_rsh_no_tree_spawn=1",
                               "OMPI_MCA_orte_leave_session_attached=1", "PRTE_MCA_plm=ssh",
                               "PRTE_MCA_plm_ssh_no_tree_spawn=1", "PRTE_MCA_prte_leave_session_attached=1",
                               /* Nodes may differ after the first dot of their names alone. */
                               "OMPI_MCA_orte_keep_fqdn_hostnames=1", "PRTE_MCA_prte_keep_fqdn_hostnames=1",
                               /* The host file says where, and not a job that the agent is in. */
                               "OMPI_MCA_ras=^slurm", "PRTE_MCA_ras=^slurm",
                               /* An agent that runs as root was started so on purpose. */
                               "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                               "PRTE_ALLOW_RUN_AS_ROOT=1", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1",
                               "HYDRA_LAUNCHER=ssh", "I_MPI_HYDRA_BOOTSTRAP=ssh", NULL});
    static const char *const launchers[] = {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent",
                                            "HYDRA_LAUNCHER_EXEC", "I_MPI_HYDRA_BOOTSTRAP_EXEC"};
    for (size_t i = 0; i < sizeof launchers / sizeof *launchers; i++) {
        cleanup_free char *variable = xformat("%s=%s/../launch", launchers[i], folder);
        add_words(environment, (const char *[]){variable, NULL});
    }
}

/* The options of KIND's library with the unit's numbers filled in; *RET is the caller's. */
static int fill_options(const struct node_set *set, enum mpi_kind kind, const char *folder,
                        const struct experiment_shape *shape, char ***ret, struct failure *failure) {
    enum { WORDS_MAX = 16 };
    static const char *const names[] = {"hosts", "folder", "ranks", "ranks-per-node", "threads"};
    cleanup_free char *hosts = xformat("%s/" JOB_HOST_FILE, folder), *ranks = xformat("%zu", shape->ranks),
                      *per_node = xformat("%zu", shape->ranks_per_node),
                      *threads = xformat("%zu", shape->threads),
                      *options = xformat("%s %s", libraries[kind].options,
                                         shape->bind ? libraries[kind].bound : libraries[kind].unbound);
    const char *values[] = {hosts, folder, ranks, per_node, threads};
    struct experiment_values view = {names, values, sizeof names / sizeof *names};
    char *words[WORDS_MAX], *rest = options;
    struct experiment_command command = {.arguments.items = words};
    while (rest && command.arguments.count < WORDS_MAX)
        words[command.arguments.count++] = strsep(&rest, " ");
    return experiment_command_arguments(&command, set->experiment->file, &view, ret, failure);
}

/* Puts mpirun and its options before the unit's command. Open MPI hands on only variables that are named with
 * -x, the other libraries all. */
int mpi_adapt(const struct node_set *set, enum mpi_kind kind, const char *folder,
              const struct experiment_shape *shape, const struct experiment_values *values, char ***arguments,
              char ***environment, struct failure *failure) {
    cleanup(job_free_words) char **words = NULL, **options = NULL;
    add_environment(set, folder, environment);
    if (!experiment_has_ranks(set->experiment))
        return 0;
    int r = software_mpirun(set, &words, failure);
    if (r == 0)
        r = fill_options(set, kind, folder, shape, &options, failure);
    if (r < 0)
        return r;
    add_words(&words, (const char *const *)options);
    /* The other libraries hand the environment of mpirun to all ranks. */
    for (size_t i = 0; kind == MPI_OPEN_MPI && i < values->count; i++)
        add_words(&words, (const char *[]){"-x", values->names[i], NULL});
    add_words(&words, software_prefix(set));
    add_words(&words, (const char *const *)*arguments);
    experiment_arguments_free(*arguments);
    *arguments = take_pointer(words);
    return 0;
}
