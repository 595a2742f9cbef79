#include "engine/run/measure/job-mpi.h"

#include "engine/foundation/cleanup.h"
#include "engine/run/measure/job.h"
#include "engine/run/nodes/command.h"
#include "engine/run/nodes/out.h"
#include "engine/run/nodes/software.h"
#include "engine/run/run-state.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum mpi_kind mpi_recognise(const char *version) {
    return strstr(version, "Open MPI") || strstr(version, "OpenRTE") || strstr(version, "PRRTE")
               ? MPI_OPEN_MPI
           : strstr(version, "Intel(R) MPI") ? MPI_INTEL
           : strstr(version, "HYDRA")        ? MPI_MPICH
                                             : MPI_UNKNOWN;
}

int mpi_append_hosts(enum mpi_kind kind, const struct placement *at, const struct experiment_shape *shape,
                     struct text *text) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < shape->nodes; i++) {
        const char *name = at->shares[i].node->name;
        if (kind == MPI_UNKNOWN)
            r = text_printf(text, "%s\n", name);
        else
            r = text_printf(text, kind == MPI_OPEN_MPI ? "%s slots=%zu\n" : "%s:%zu\n", name,
                            shape->ranks_per_node);
    }
    return r;
}

/* ---- Lists of words */

static int add(char ***list, const char *format, ...) __attribute__((format(printf, 2, 3)));
static int add(char ***list, const char *format, ...) {
    size_t count = 0;
    while ((*list)[count])
        count++;
    char **more = realloc(*list, (count + 2) * sizeof *more);
    if (!more)
        return -ENOMEM;
    *list = more;
    va_list arguments;
    va_start(arguments, format);
    int length = vasprintf(&more[count], format, arguments);
    va_end(arguments);
    more[count + 1] = NULL;
    if (length >= 0)
        return 0;
    more[count] = NULL;
    return -ENOMEM;
}

/* ---- mpirun's */

static int add_open_mpi(const struct experiment_shape *shape, const struct experiment_values *values,
                        char ***words) {
    int r = add(words, "--map-by");
    if (r == 0 && shape->bind)
        r = add(words, "ppr:%zu:node:PE=%zu", shape->ranks_per_node, shape->threads);
    else if (r == 0)
        r = add(words, "ppr:%zu:node", shape->ranks_per_node);
    r = r < 0 ? r : add(words, "--bind-to");
    r = r < 0 ? r : add(words, shape->bind ? "core" : "none");
    /* The others hand their own environment to all ranks. */
    for (size_t i = 0; r == 0 && i < values->count; i++) {
        r = add(words, "-x");
        r = r < 0 ? r : add(words, "%s", values->names[i]);
    }
    return r;
}

static int add_hydra(enum mpi_kind kind, const struct experiment_shape *shape, char ***words) {
    int r = add(words, "-ppn");
    r = r < 0 ? r : add(words, "%zu", shape->ranks_per_node);
    if (r < 0 || kind == MPI_INTEL) { /* which pins by its environment */
        r = r < 0 ? r : add(words, "-genv");
        r = r < 0 ? r : add(words, shape->bind ? "I_MPI_PIN_DOMAIN" : "I_MPI_PIN");
        return r < 0 ? r : shape->bind ? add(words, "%zu", shape->threads) : add(words, "off");
    }
    r = add(words, "-bind-to");
    return r < 0 ? r : shape->bind ? add(words, "core:%zu", shape->threads) : add(words, "none");
}

static int add_command(enum mpi_kind kind, char *const *mpirun, const char *folder,
                       const struct experiment_shape *shape, const struct experiment_values *values,
                       const char *const *prefix, char ***arguments) {
    char **words = calloc(1, sizeof *words);
    int r = words ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && mpirun[i]; i++)
        r = add(&words, "%s", mpirun[i]);
    r = r < 0 ? r : add(&words, kind == MPI_OPEN_MPI ? "--hostfile" : "-f");
    r = r < 0 ? r : add(&words, "%s/" JOB_HOST_FILE, folder);
    r = r < 0 ? r : add(&words, kind == MPI_OPEN_MPI ? "--wdir" : "-wdir");
    r = r < 0 ? r : add(&words, "%s", folder);
    r = r < 0 ? r : add(&words, "-n");
    r = r < 0 ? r : add(&words, "%zu", shape->ranks);
    if (r == 0)
        r = kind == MPI_OPEN_MPI ? add_open_mpi(shape, values, &words) : add_hydra(kind, shape, &words);
    for (size_t i = 0; r == 0 && prefix[i]; i++)
        r = add(&words, "%s", prefix[i]);
    for (size_t i = 0; r == 0 && (*arguments)[i]; i++)
        r = add(&words, "%s", (*arguments)[i]);
    char **old = *arguments;
    if (r == 0)
        *arguments = take_pointer(words);
    experiment_arguments_free(r == 0 ? old : words);
    return r;
}

static int add_environment(const char *launcher, const char *mark, char ***environment) {
    static const char *const fixed[] = {
        /* Without daemons of daemons, and with none that leaves its parent. */
        "OMPI_MCA_plm=rsh", "OMPI_MCA_plm_rsh_no_tree_spawn=1", "OMPI_MCA_orte_leave_session_attached=1",
        "PRTE_MCA_plm=ssh", "PRTE_MCA_plm_ssh_no_tree_spawn=1", "PRTE_MCA_prte_leave_session_attached=1",
        /* Who runs an agent as root means it. */
        "OMPI_ALLOW_RUN_AS_ROOT=1", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM=1", "PRTE_ALLOW_RUN_AS_ROOT=1",
        "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM=1", "HYDRA_LAUNCHER=ssh", "I_MPI_HYDRA_BOOTSTRAP=ssh"};
    static const char *const named[] = {"OMPI_MCA_plm_rsh_agent", "PRTE_MCA_plm_ssh_agent",
                                        "HYDRA_LAUNCHER_EXEC", "I_MPI_HYDRA_BOOTSTRAP_EXEC"};
    int r = add(environment, "%s", mark);
    for (size_t i = 0; r == 0 && i < sizeof fixed / sizeof *fixed; i++)
        r = add(environment, "%s", fixed[i]);
    for (size_t i = 0; r == 0 && i < sizeof named / sizeof *named; i++)
        r = add(environment, "%s=%s", named[i], launcher);
    return r;
}

/* ---- A unit's */

int mpi_program(const struct run *run, char ***ret, struct failure *failure) {
    static char usual[] = "mpirun";
    const struct experiment_command *own = &run->experiment->job.mpirun;
    struct experiment_command command = {.arguments = {.items = (char *[]){usual}, .count = 1}};
    struct plan_values values = {0};
    int r = plan_values_new(run->plan, 1, &values, failure);
    if (r < 0)
        return r;
    struct experiment_values view = plan_values_view(&values);
    r = experiment_command_arguments(own->arguments.count ? own : &command, run->experiment->file, &view, ret,
                                     failure);
    plan_values_clear(&values);
    return r;
}

static int specify_version(struct run *run, size_t node, struct remote_command_specification *ret,
                           void *context, struct failure *failure) {
    (void)failure;
    ret->arguments = context;
    ret->environment = software_environment(run, &run->nodes[node]);
    return 0;
}

static int refuse_mpirun(const struct run_node *node, const char *mpirun, const struct node_result *result,
                         struct failure *failure) {
    const char *said = result->output.length ? result->output.bytes : result->error.bytes;
    if (result->outcome != NODE_DONE)
        return failure_set_kind(failure, FAILURE_EXPERIMENT, -ENOENT,
                                "node %s: %.400s (in Debian: openmpi-bin or mpich)", node->name,
                                result->failure.text);
    return failure_set_kind(failure, FAILURE_EXPERIMENT, -ENOENT,
                            "node %s: '%s --version' says '%.*s', expected Open MPI, MPICH or Intel MPI",
                            node->name, mpirun, (int)strcspn(said, "\n"), said);
}

int mpi_find(struct run *run, enum mpi_kind *ret, struct failure *failure) {
    char **mpirun = NULL;
    *ret = MPI_UNKNOWN;
    int r = mpi_program(run, &mpirun, failure);
    const char *arguments[] = {mpirun ? mpirun[0] : "", "--version", NULL};
    struct node_result *results = NULL;
    if (r == 0)
        r = node_command_run(run, &(struct node_command){.specify = specify_version, .context = arguments},
                             &results, failure);
    for (size_t i = 0; r == 0 && i < run->node_count; i++) {
        if (results[i].outcome == NODE_NOT_ASKED || results[i].outcome == NODE_SKIPPED)
            continue;
        const char *version = node_result_is_good(&results[i]) ? results[i].output.bytes : "";
        enum mpi_kind kind = mpi_recognise(version);
        json_add_bytes(run->nodes[i].software, "mpi", version, strcspn(version, "\n"));
        if (kind == MPI_UNKNOWN)
            r = refuse_mpirun(&run->nodes[i], mpirun[0], &results[i], failure);
        else if (*ret != MPI_UNKNOWN && kind != *ret)
            r = failure_set_kind(failure, FAILURE_EXPERIMENT, -EINVAL,
                                 "node %s: '%s' is of another MPI library than on the nodes before it",
                                 run->nodes[i].name, mpirun[0]);
        *ret = kind;
    }
    if (results)
        node_results_free(run->group, results);
    experiment_arguments_free(mpirun);
    return r;
}

int mpi_adapt(const struct run *run, enum mpi_kind kind, const char *folder,
              const struct experiment_shape *shape, const struct experiment_values *values, char ***arguments,
              char ***environment, struct failure *failure) {
    char **mpirun = NULL;
    cleanup_free char *launcher = text_format("%s/../launch", folder),
                      *mark = text_format("ASSAY_JOB=%s", run->id);
    if (!launcher || !mark)
        return failure_memory(failure);
    int r = experiment_has_ranks(run->experiment) ? mpi_program(run, &mpirun, failure) : 0;
    if (mpirun)
        r = add_command(kind, mpirun, folder, shape, values, software_prefix(run), arguments);
    if (r == 0)
        r = add_environment(launcher, mark, environment);
    experiment_arguments_free(mpirun);
    return r == -ENOMEM ? failure_memory(failure) : r;
}
