/* assay list --prune: removes runs in which nothing was measured, and folders whose archive has everything.
 */
#include "engine/command-line/status/prune.h"

#include "archive-format/reader.h"
#include "engine/command-line/output.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/report/report.h"
#include "engine/report/shown.h"
#include "engine/run/record/lock.h"
#include "engine/run/record/status.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct candidate {
    char *folder, *archive; /* that would be removed; the second may be NULL */
    uint64_t journal_bytes; /* of the journal's file, when the run was looked at */
};

struct pruning {
    struct candidate *found;
    size_t count;
    size_t gone; /* removed */
};

static void pruning_clear(struct pruning *pruning) {
    for (size_t i = 0; i < pruning->count; i++)
        free(pruning->found[i].folder), free(pruning->found[i].archive);
    free(pruning->found);
}

/* Does every member of the archive PATH have the hash that its manifest says? */
static bool archive_is_whole(const char *path) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    struct failure ignored = {0};
    return archive_open(path, &archive, &ignored) == 0 && archive_verify(archive, &ignored) == 0;
}

/* Why the run must stay; NULL: it can be removed, and *RET_REASON says why. */
static const char *find_obstacle(const struct run_status *status, const char **ret_reason) {
    bool is_empty = status->done == 0;
    *ret_reason = is_empty ? "nothing was measured" : "complete, and its archive verifies";
    if (!status->folder)
        return "only its archive is there";
    if (run_status_is_under_way(status))
        return "it is under way";
    if (run_history_is_reserved(&status->history, clock_wall_ns()))
        return "it has a reservation; 'assay release' gives that back";
    if (status->journal_whole_after > 0)
        return "its journal is damaged";
    if (status->history.sealed_as[0] && (status->damage || !status->archive))
        return "its archive is missing, or is not as it was sealed";
    if (!is_empty && status->condition != RUN_IS_COMPLETED)
        return "it is not complete; 'assay resume' continues it";
    if (status->archive && !archive_is_whole(status->archive))
        return "its archive does not verify";
    if (!is_empty && !status->archive)
        return "it has no archive";
    return NULL;
}

static void add_line(struct report_table *to, const char *path, const char *what, const char *reason) {
    report_cell_text(to, path);
    report_cell_text(to, what);
    report_cell_text(to, reason);
}

/* Adds a line on the run at PATH, and remembers it if it can be removed. */
static void classify_run(struct pruning *pruning, const char *path, struct report_table *to) {
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    struct failure why = {0};
    const char *reason, *obstacle;
    if (run_status_read_whole(path, &status, &why) < 0) {
        add_line(to, path, "stays", why.text);
        return;
    }
    obstacle = find_obstacle(status, &reason);
    add_line(to, path, obstacle ? "stays" : "is removed", obstacle ? obstacle : reason);
    if (obstacle)
        return;
    bool is_empty = status->done == 0;
    pruning->found[pruning->count++] =
        (struct candidate){.folder = xstrdup(status->folder),
                           .archive = is_empty && status->archive ? xstrdup(status->archive) : NULL,
                           .journal_bytes = status->history.journal.file_bytes};
}

/* Removes the run's folder while its lock is held, unless it has changed since it was listed. */
static int remove_run(const struct candidate *run, struct failure *failure) {
    cleanup(run_lock_cleanup) struct run_lock *lock = NULL;
    cleanup_free char *journal = xformat("%s/" ARCHIVE_JOURNAL, run->folder);
    struct stat status;
    int r = run_lock_take(run->folder, &lock, failure);
    if (r < 0)
        return r;
    if (stat(journal, &status) < 0 || (uint64_t)status.st_size != run->journal_bytes)
        return failure_input(failure, run->folder, 0, 0,
                             "the run has changed since it was listed, and stays; list the runs again");
    r = file_remove_tree(run->folder, failure);
    if (r == 0 && run->archive && unlink(run->archive) < 0)
        r = failure_set(failure, -errno, "cannot remove '%s': %s", run->archive, strerror(errno));
    return r;
}

static bool ask_user(size_t count) {
    char answer[16] = "";
    if (!isatty(STDIN_FILENO) || !isatty(STDERR_FILENO)) {
        fprintf(stderr, "nothing was removed; --yes removes %zu run%s\n", count, count == 1 ? "" : "s");
        return false;
    }
    fprintf(stderr, "remove %zu run%s? [y/N] ", count, count == 1 ? "" : "s");
    return fgets(answer, sizeof answer, stdin) && (answer[0] == 'y' || answer[0] == 'Y');
}

int prune_runs(const struct run_list *list, enum prune_consent consent, struct failure *failure) {
    static const struct column columns[] = {{.label = "run"}, {.label = ""}, {.label = "because"}};
    cleanup(pruning_clear) struct pruning pruning = {.found =
                                                         xcalloc(list->count + 1, sizeof *pruning.found)};
    cleanup(report_cleanup) struct report *report = report_new();
    struct report_table *lines = report_table(report->root, NULL, NULL, columns, 3);
    int r = 0;
    report_print_whole(lines);
    for (size_t i = 0; i < list->count; i++)
        classify_run(&pruning, list->paths[i], lines);
    output_report(report, false, false);
    if (output_flush() < 0 || pruning.count == 0 || (consent == PRUNE_ASKS && !ask_user(pruning.count)))
        return 0;
    for (size_t i = 0; i < pruning.count; i++) {
        struct failure why = {0};
        if (remove_run(&pruning.found[i], &why) == 0) {
            pruning.gone++;
            continue;
        }
        output_failure(&why);
        *failure = why;
        r = why.code;
    }
    fprintf(stderr, "%zu of %zu runs removed\n", pruning.gone, pruning.count);
    return r < 0 ? failure_set_kind(failure, failure->kind, r, "%zu runs could not be removed",
                                    pruning.count - pruning.gone)
                 : 0;
}
