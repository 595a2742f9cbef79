/* assay resume: goes on with a run that was killed, or that ended before all was measured. */
#include "engine/command-line/execution.h"
#include "engine/command-line/verb.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static const struct verb_option options[] = {
    EXECUTION_OPTION_UNTIL,
    EXECUTION_OPTION_RESUBMIT,
    {"--as-recorded", 0, NULL,
     "goes on with the run's own copies of campaign, design and experiment, although the originals have "
     "changed since",
     false},
    {"--json", 0, NULL, "prints events as JSON, one a line, on standard output", false},
    EXECUTION_OPTION_QUIET,
    {NULL, 0, NULL, NULL, false},
};

/* RUN's folder: itself, or what an archive of it was sealed from. The caller frees; NULL when out of memory.
 */
static char *folder_of(const char *run) {
    size_t length = strlen(run);
    char *folder = strdup(run);
    if (!folder || length < 4 || strcmp(run + length - 4, ".zip") != 0 || file_is_folder(run))
        return folder;
    folder[length - 4] = '\0';
    if (file_is_folder(folder))
        return folder;
    /* That of a later part: "FOLDER-2.zip". */
    char *dash = strrchr(folder, '-');
    if (dash)
        *dash = '\0';
    return folder;
}

static int check_changes(const struct inputs *inputs, bool as_recorded, struct failure *failure) {
    cleanup(text_clear) struct text differences;
    text_init(&differences, 1 << 20);
    int r = inputs_compare(inputs, &differences, failure);
    if (r < 0 || differences.length == 0)
        return r;
    if (as_recorded) {
        fprintf(stderr, "%s; going on with the run's own copies\n", differences.bytes);
        return 0;
    }
    return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                            "%.900s; expected what the run began with (--as-recorded goes on with the run's "
                            "own copies, 'assay run' begins another run)",
                            differences.bytes);
}

static int resume(const struct verb_arguments *arguments, struct failure *failure) {
    cleanup(installation_clear) struct installation installation = {0};
    cleanup(inputs_clear) struct inputs inputs = {0};
    cleanup(campaign_cleanup) struct campaign *campaign = NULL;
    cleanup_free char *folder = folder_of(arguments->operands[0]);
    if (!folder)
        return failure_memory(failure);
    int r = installation_init(&installation, NULL, getenv("ASSAY_PATH"), failure);
    if (r == 0)
        r = inputs_read(folder, &inputs, failure);
    if (r == 0)
        r = check_changes(&inputs, verb_switch(arguments, "--as-recorded"), failure);
    if (r == 0)
        r = execution_read_campaign(&inputs, &installation, &campaign, failure);
    if (r < 0)
        return r;
    struct execution execution = {
        .arguments = arguments, .installation = &installation, .campaign = campaign, .inputs = &inputs};
    return execution_carry_out(&execution, failure);
}

const struct verb verb_resume = {
    .name = "resume",
    .summary = "go on with a run that did not end, or not with all that was to be measured",
    .synopsis = "assay resume RUN [--until WHEN] [--resubmit] [--as-recorded]",
    .description =
        "Goes on with a run that was killed, whose machine was restarted, or that was sealed before all was "
        "measured: RUN is its folder, or an archive of it. Nothing that is on disk is measured again; what "
        "is left follows in the order that it would have had, as another part of the same run, with block "
        "numbers of its own. Units that had failed are tried again. Whatever an earlier part has left on the "
        "nodes is ended and put back first, and the nodes must be the same machines.\n\n"
        "A run whose campaign, design or experiment has changed since is refused with the difference; "
        "--as-recorded goes on with the copies in the run's folder. Two programs cannot work on one run: the "
        "second is told who has it.\n\n"
        "A part that follows an archive makes another one, NAME-2.zip and so on, with everything in it. Of a "
        "run that was completed and sealed the archive's path is printed again.\n\n"
        "  assay resume runs/quickstart-20261122T120000-1a2b3c4d\n"
        "  assay resume runs/quickstart-20261122T120000-1a2b3c4d.zip --until 18:30\n"
        "  assay status runs/quickstart-20261122T120000-1a2b3c4d",
    .options = options,
    .operands_least = 1,
    .operands_most = 1,
    .run = resume,
};
