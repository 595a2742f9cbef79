/* assay attach: follows a run that another process carries out. */
#include "engine/command-line/follow.h"
#include "engine/command-line/verb.h"

#include "engine/foundation/cleanup.h"
#include "engine/report/shown.h"
#include "engine/run/record/status.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

static int run(const struct verb_arguments *arguments, struct failure *failure) {
    struct progress progress;
    cleanup_free char *folder = NULL;
    bool is_interrupted = false;
    int r = run_status_find_folder(arguments->operands[0], &folder, failure);
    if (r < 0)
        return r;
    progress_init(&progress, verb_switch(arguments, "--json"), verb_switch(arguments, "--quiet"));
    const char *const folders[] = {folder};
    r = follow_runs(folders, 1, &progress, false, &is_interrupted, failure);
    if (!is_interrupted)
        return r;
    fprintf(stderr, "%sthe run continues: 'assay attach %s' follows it again, 'assay stop %s' ends it\n",
            progress.line_drawn ? "\n" : "", shown(folder).text, shown(folder).text);
    signal(SIGINT, SIG_DFL); /* what a shell takes for 130 */
    raise(SIGINT);
    return 0;
}

static const struct verb_option options[] = {
    {"--json", 0, NULL, "prints events as JSON, one a line, on standard output", false},
    {"--quiet", 'q', NULL, "prints only what went wrong and the archive's path", false},
    {NULL, 0, NULL, NULL, false},
};

const struct verb verb_attach = {
    .name = "attach",
    .summary = "follow a run that was detached",
    .synopsis = "assay attach RUN [--json] [--quiet]",
    .description =
        "Shows the run RUN, its folder or an archive beside that, as the command that began it would: its "
        "phases, its progress, what is worth reading; then the archive's path. It is of no matter who "
        "carries it out: a detached engine, one in a job, or one in another terminal, on this machine or "
        "another that shares the folder. It reads that folder twice a second, or less often where the "
        "journal is long, and asks nothing of the engine.\n\n"
        "It ends when the run does, with the exit code of the run's engine; with 1 if that was killed. Of a "
        "run that has ended it prints the archive's path and exits likewise. Ctrl-C ends this command alone "
        "(exit code 130): the run continues, and 'assay stop' is what ends it.\n\n"
        "  assay run campaign.yaml --detach\n"
        "  assay attach runs/quickstart-20261122T120000-1a2b3c4d",
    .options = options,
    .operands_least = 1,
    .operands_most = 1,
    .run = run,
};
