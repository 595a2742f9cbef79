#include "engine/agent/machine/environment.h"

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Variables that are removed, by name, or with '*' by the beginning of their names. Those with '!' are kept,
 * and stand before the pattern that would remove them. Variables by which users tune a library (OMPI_MCA_btl,
 * PMIX_MCA_gds, I_MPI_PIN) and those that describe the job (SLURM_JOB_ID, SLURM_JOB_NODELIST, FLUX_URI) are
 * not in the list. */
static const char *const rank_variables[] = {
    /* Open MPI 4: orterun, orted, ess; 5: prted */
    "OMPI_COMM_WORLD_*", "OMPI_MCA_ess", "OMPI_MCA_ess_*", "OMPI_MCA_orte_ess_*", "OMPI_MCA_orte_hnp_uri",
    "OMPI_MCA_orte_local_daemon_uri", "OMPI_MCA_orte_parent_uri", "OMPI_MCA_orte_app_num",
    "OMPI_MCA_orte_bound_at_launch", "OMPI_MCA_orte_jobfam_session_dir", "OMPI_MCA_orte_top_session_dir",
    "OMPI_MCA_orte_launch", "OMPI_MCA_orte_num_nodes", "OMPI_MCA_orte_precondition_transports",
    "OMPI_MCA_initial_wdir", "OMPI_MCA_pmix", "OMPI_MCA_shmem_RUNTIME_QUERY_hint", "OMPI_APP_CTX_NUM_PROCS",
    "OMPI_ARGV", "OMPI_COMMAND", "OMPI_FILE_LOCATION", "OMPI_FIRST_RANKS", "OMPI_NUM_APP_CTX",
    "OMPI_UNIVERSE_SIZE", "PRTE_LAUNCHED", "PRTE_MCA_ess", "PRTE_MCA_ess_*", "PRTE_MCA_prte_ess_*",
    "PRTE_MCA_prte_hnp_uri", "PRTE_MCA_prte_local_daemon_uri", "PRTE_MCA_prte_parent_uri",
    "PRTE_MCA_prte_num_nodes", "PRTE_MCA_prte_launch",
    /* PMIx; PMI 1 and 2 of MPICH's Hydra, Intel MPI, Slurm and Cray */
    "!PMIX_MCA_*", "PMIX_*", "PMI_*", "PMI2_*", "HYDI_CONTROL_FD", "MPI_LOCALRANKID", "MPI_LOCALNRANKS",
    "MPIR_CVAR_CH3_INTERFACE_HOSTNAME", "MV2_COMM_WORLD_*", "MVP_COMM_WORLD_*", "MPISPAWN_*",
    /* steps and tasks of schedulers */
    "SLURM_PROCID", "SLURM_LOCALID", "SLURM_NODEID", "SLURM_GTIDS", "SLURM_STEP_*", "SLURM_STEPID",
    "SLURM_TASK_*", "SLURM_SRUN_COMM_*", "SLURM_LAUNCH_NODE_IPADDR", "SLURM_PMI*", "SLURM_MPI_TYPE",
    "FLUX_TASK_*", "PALS_*", "ALPS_*", "PBS_TASKNUM", "PBS_NODENUM", "PBS_VNODENUM", "JSM_NAMESPACE_*",
    "LSF_PM_*",
    /* what srun may need to reach Slurm, and commands do not */
    "SLURM_JWT"};

static bool matches(const char *variable, const char *pattern) {
    size_t length = strlen(pattern);
    bool is_beginning = pattern[length - 1] == '*';
    return strncmp(variable, pattern, length - is_beginning) == 0 &&
           (is_beginning || variable[length] == '=');
}

bool environment_is_of_rank(const char *variable) {
    for (size_t i = 0; i < sizeof rank_variables / sizeof *rank_variables; i++) {
        bool is_kept = rank_variables[i][0] == '!';
        if (matches(variable, rank_variables[i] + is_kept))
            return !is_kept;
    }
    return false;
}

static void remove_rank_variables(void) {
    for (char **variable = environ; variable && *variable;) {
        char *name = environment_is_of_rank(*variable) ? strndup(*variable, strcspn(*variable, "=")) : NULL;
        bool removed = name && unsetenv(name) == 0; /* moves the next variable to this place */
        free(name);
        variable += !removed;
    }
}

/* True where the C library has the locale C.UTF-8. Without it programs that are told to use it print
 * warnings. */
static bool has_utf8(void) {
    return access("/usr/lib/locale/C.utf8", F_OK) == 0 || access("/usr/lib/locale/C.UTF-8", F_OK) == 0;
}

void environment_prepare(void) {
    remove_rank_variables();
    (void)setenv("LC_ALL", has_utf8() ? "C.UTF-8" : "C", 1);
}
