/*
 * The environment of schedulers' programs. Users set variables such as SQUEUE_PARTITION or SBATCH_ARRAY_INX
 * for their own use of Slurm; by them squeue does not list a job, or sbatch submits several. What a campaign
 * wants is an option, so that these variables are cleared.
 */
#ifndef ASSAY_TESTBED_SCHEDULER_ENVIRONMENT_H
#define ASSAY_TESTBED_SCHEDULER_ENVIRONMENT_H

#include "engine/documents/bind.h"

/* Appends to RET the command WORDS, ended by NULL, in a shell that clears the variables first. The words are
 * arguments that this shell does not interpret, and it has the exit status of the command: 127 where there is
 * no such program. */
void scheduler_environment_words(const char *const *words, struct bind_texts *ret);

#endif
