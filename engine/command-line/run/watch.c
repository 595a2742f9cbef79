/* assay watch: follows a run that another process carries out. */
#include "engine/command-line/run/follow.h"
#include "engine/command-line/status/run-list.h"
#include "engine/command-line/verb.h"

#include "engine/foundation/cleanup.h"
#include "engine/report/shown.h"
#include "engine/run/record/status.h"

#include <signal.h>
#include <stdio.h>
#include <stdlib.h>

int command_watch(const struct verb_arguments *arguments, struct failure *failure) {
    struct progress progress;
    cleanup_free char *folder = NULL, *newest = NULL;
    bool is_interrupted = false;
    const char *path = arguments->operand_count ? arguments->operands[0] : NULL;
    int r = path ? 0 : run_list_newest("runs", &newest, failure);
    path = path ? path : newest;
    r = r < 0 ? r : run_status_find_folder(path, &folder, failure);
    if (r < 0)
        return r;
    progress_init(&progress, verb_switch(arguments, "--json"), verb_switch(arguments, "--quiet"));
    if (verb_switch(arguments, "--screen") && !progress.has_screen)
        return failure_input(failure, "watch", 0, 0,
                             "--screen needs a terminal, with TERM set, and neither --json nor --quiet");
    if (verb_switch(arguments, "--screen")) {
        r = follow_on_screen(folder, &progress, failure);
        progress_end(&progress);
        return r;
    }
    const char *const folders[] = {folder};
    r = follow_runs(folders, 1, &progress, false, &is_interrupted, failure);
    if (!is_interrupted)
        progress_end(&progress);
    if (!is_interrupted)
        return r;
    fprintf(stderr, "the run continues: 'assay watch %s' follows it again, 'assay stop %s' ends it\n",
            shown(folder).text, shown(folder).text);
    signal(SIGINT, SIG_DFL); /* what a shell takes for 130 */
    raise(SIGINT);
    return 0;
}
