#include "engine/testbed/scheduler-environment.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

/* Beginnings of the names of variables by which Slurm's and OAR's programs select other jobs, submit another
 * job, print in another form or wait. Slurm 22.05 to 24.11 has some 250 of them, and each release has more.
 */
static const char cleared[] = "SQUEUE_|SCANCEL_|SBATCH_|SALLOC_|SRUN_|SCONTROL_|SINFO_|SACCT_" /* man pages */
                              "|SLURM" /* all of them */
                              "|OAR_"; /* oarstat's form, and whose job is asked for */

/* Names, as patterns of the shell's `case`, of variables that are not cleared: where Slurm's server is and
 * who the user is, the job that srun is called in, and the key that oarsub and oarsh share. */
static const char kept[] = "SLURM_CONF*|SLURM_JWT|SLURM_SACK*|SLURM_WORKING_CLUSTER" /* the server */
                           "|SLURM_JOB_ID|SLURM_JOBID|SLURM_STEPMGR"                 /* the job */
                           "|OAR_JOB_KEY_FILE";

/* The variables are cleared by a shell where the command runs, since a login node has an environment of its
 * own. */
void scheduler_environment_words(const char *const *words, struct bind_texts *ret) {
    cleanup_free char *script =
        xformat("for name in $(env | LC_ALL=C sed -n -E '/^(%s)[A-Za-z0-9_]*=/s/=.*//p'); do "
                "case $name in %s) ;; *) unset $name ;; esac; done; exec \"$@\"",
                cleared, kept);
    const char *const shell[] = {"/bin/sh", "-c", script, "sh"};
    for (size_t i = 0; i < sizeof shell / sizeof *shell; i++)
        bind_texts_add(ret, shell[i]);
    for (size_t i = 0; words[i]; i++)
        bind_texts_add(ret, words[i]);
}
