#include "engine/run/record/status.h"

#include "archive-format/layout.h"
#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const condition_names[RUN_CONDITIONS] = {
    [RUN_IS_RUNNING] = "running",   [RUN_IS_QUEUED] = "queued",           [RUN_IS_STOPPED] = "stopped",
    [RUN_IS_RESERVED] = "reserved", [RUN_IS_COMPLETED] = "completed",     [RUN_IS_FAILED] = "failed",
    [RUN_IS_PARTIAL] = "partial",   [RUN_IS_INTERRUPTED] = "interrupted", [RUN_IS_UNKNOWN] = "unknown",
};

const char *run_condition_name(enum run_condition condition) {
    return condition_names[condition];
}

bool run_status_is_under_way(const struct run_status *status) {
    return status->condition == RUN_IS_RUNNING || status->condition == RUN_IS_QUEUED;
}

/* The condition by its name, as in a `sealing` entry and run.json. */
static enum run_condition condition_called(const char *name) {
    for (int i = RUN_IS_COMPLETED; name && i < RUN_IS_UNKNOWN; i++)
        if (strcmp(name, condition_names[i]) == 0)
            return (enum run_condition)i;
    return RUN_IS_UNKNOWN;
}

/* ---- Beginning and end ------------------------------------------------------------------------- */

void run_status_free(struct run_status *status) {
    if (!status)
        return;
    run_history_clear(&status->history);
    free(status->nodes);
    free(status->path);
    free(status->folder);
    free(status->archive);
    free(status->damage);
    free(status->next);
    free(status->command);
    free(status);
}

void run_status_cleanup(struct run_status **status) {
    run_status_free(*status);
}

static struct run_status *new_status(const char *path) {
    struct run_status *status = xcalloc(1, sizeof *status);
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    status->path = xstrndup(path, length);
    status->part = 1;
    status->rate = NAN;
    status->seconds_left = -1;
    return status;
}

/* ---- Where things are -------------------------------------------------------------------------- */

bool run_status_is_run(const char *folder) {
    cleanup_free char *journal = xformat("%s/" ARCHIVE_JOURNAL, folder);
    return file_exists(journal);
}

/* Part K of a run is sealed as "FOLDER-K.zip". */
char *run_status_folder_of(const char *path) {
    size_t length = strlen(path);
    if (length < 5 || strcmp(path + length - 4, ".zip") != 0)
        return NULL;
    char *folder = xstrndup(path, length - 4), *dash = strrchr(folder, '-');
    if (run_status_is_run(folder) || !dash || dash == folder || !dash[1] ||
        dash[1 + strspn(dash + 1, "0123456789")])
        return folder;
    cleanup_free char *shorter = xstrndup(folder, (size_t)(dash - folder));
    if (!run_status_is_run(shorter))
        return folder;
    free(folder);
    return take_pointer(shorter);
}

int run_status_find_folder(const char *run, char **ret, struct failure *failure) {
    cleanup_free char *beside = file_is_folder(run) ? xstrdup(run) : run_status_folder_of(run);
    if (!beside || !file_is_folder(beside))
        return failure_set_kind(failure, FAILURE_INPUT, -ENOENT,
                                "there is no folder of a run '%s'; expected the folder, or an archive with "
                                "its run's folder beside it",
                                run);
    *ret = take_pointer(beside);
    return 0;
}

/* Keeps the time of the first entry and ends the replay. */
static int stop_at_first_entry(const struct journal_entry *entry, void *context, struct failure *failure) {
    int64_t *wall_ns = context;
    *wall_ns = entry->wall_ns;
    return failure_set(failure, -ECANCELED, "enough");
}

int64_t run_status_begun_ns(const char *folder) {
    cleanup_free char *journal = xformat("%s/" ARCHIVE_JOURNAL, folder);
    struct journal_end end = {0};
    int64_t wall_ns = 0;
    journal_replay(journal, stop_at_first_entry, &wall_ns, &end, NULL);
    return wall_ns;
}

/* Looks for the archive of the run beside its folder. */
static int find_archive(struct run_status *status, enum run_archive_check check, struct failure *failure) {
    /* The user's path may have no name in it, such as ".". */
    const char *folder = status->folder;
    cleanup_free char *real = realpath(folder, NULL);
    if (!real)
        return failure_set(failure, -errno, "cannot resolve '%s': %s", folder, strerror(errno));
    const char *shown = strcmp(file_base_name(real), file_base_name(folder)) == 0 ? folder : real;
    run_history_find_archive(&status->history, shown, check, &status->archive, &status->damage);
    return 0;
}

/* ---- What to do next --------------------------------------------------------------------------- */

/* "assay VERB PATH", quoted for a shell; the caller frees. */
static char *command_of(const char *verb, const char *path) {
    struct text text;
    text_init(&text, 64 << 10);
    const char *const words[] = {"assay", verb, path, NULL};
    text_append_command(&text, words);
    return text_take(&text);
}

static bool can_resume(const struct run_status *status) {
    cleanup_free char *inputs = xformat("%s/" ARCHIVE_INPUTS, status->folder);
    return file_exists(inputs) && status->journal_bytes > 0;
}

/* ": 3 of 8 units are left", for the sentence on what to do next; the caller frees. */
static char *describe_left(const struct run_status *status) {
    if (!status->is_planned)
        return xstrdup("");
    if (status->left + status->failed == 0)
        return xstrdup(": all units are done, and left to be sealed");
    /* A node that was replaced is out, too; its units are then its spare's, which may be lost in turn. */
    return xformat(": %" PRIu64 " of %" PRIu64 " units are left%s", status->left + status->failed,
                   status->planned,
                   status->nodes_out > 0 ? "; --spares names others for nodes that are gone for good" : "");
}

/* Sets status->next, a sentence on what the user can do, and status->command, the command in it if there is
 * one. */
static void set_next_step(struct run_status *status) {
    bool whole = status->is_planned && status->left == 0 && status->failed == 0;
    bool is_sealed = status->condition == RUN_IS_COMPLETED || (whole && status->archive);
    const char *next = NULL;
    if (status->condition == RUN_IS_RUNNING)
        next = "nothing: it is running";
    else if (status->condition == RUN_IS_QUEUED)
        next = "nothing: waiting for its job; `assay release` deletes the job. If the job has ended, read "
               "the file "
               ".out beside the run's folder, then `assay resume`";
    else if (is_sealed && status->folder && run_history_is_reserved(&status->history, clock_wall_ns()))
        status->command = command_of("release", status->folder);
    else if (is_sealed)
        next = status->is_prediction ? "nothing: it is a prediction, and sealed"
                                     : "nothing: what it measured is sealed";
    else if (!status->folder)
        next = "nothing: the run's folder is missing, so it cannot be resumed";
    else if (!can_resume(status))
        next =
            "run the campaign again: this run cannot be resumed, since it has no inputs.json or no journal";
    if (next) {
        bool has_answer = status->condition == RUN_IS_COMPLETED && status->archive;
        cleanup_free char *report = has_answer ? command_of("report", status->archive) : NULL;
        status->next = has_answer
                           ? xformat("%s; `%s` %s", next, report,
                                     status->is_prediction ? "prints it" : "says which setting is best")
                           : xstrdup(next);
        return;
    }
    if (status->command) {
        status->next =
            xformat("`%s` gives back what is still reserved; what it measured is sealed", status->command);
        return;
    }
    cleanup_free char *left = describe_left(status);
    status->command = command_of("resume", status->folder);
    if (status->damage)
        status->next = xformat("`%s` seals the run again%s", status->command,
                               status->left + status->failed > 0 ? left : "");
    else if (status->condition == RUN_IS_RESERVED)
        status->next = xformat("`%s` measures on what is reserved; 'assay nodes --run' uses it by hand, "
                               "'assay release' gives it back",
                               status->command);
    else
        status->next = xformat("`%s` continues it%s", status->command, left);
}

/* ---- From a journal ---------------------------------------------------------------------------- */

static void add_node(struct run_status *status, struct run_history_node *node) {
    status->nodes[status->node_count++] = node;
    status->nodes_out_of_reach += node->condition == RUN_NODE_OUT_OF_REACH;
    status->nodes_lost += node->condition == RUN_NODE_LOST;
    status->nodes_out += node->condition == RUN_NODE_OUT;
    status->nodes_slow += node->slow != NULL;
}

/* Sets what only the journal knows: part, blocks, rate, the nodes of the last part. */
static void set_from_history(struct run_status *status) {
    const struct run_history *history = &status->history;
    status->journal_bytes = history->journal.bytes;
    status->journal_torn_bytes = history->journal.file_bytes - history->journal.bytes;
    status->journal_whole_after = history->journal.whole_after;
    if (history->part_count == 0)
        return;
    clock_format(history->parts[history->part_count - 1].ended_ns, status->last_entry);
    status->part = (int64_t)history->part_count;
    status->blocks_done = (uint64_t)history->blocks_done;
    status->rate = run_history_rate(history);
    status->nodes = xcalloc(history->node_count + 1, sizeof *status->nodes);
    for (size_t i = 0; i < history->node_count; i++)
        if (history->nodes[i]->part == history->part_count)
            add_node(status, history->nodes[i]);
}

/* Does the run's engine work on this host, so that our monotonic clock is its clock? */
static bool has_our_clock(const struct run_status *status) {
    char host[RUN_LOCK_HOST_SIZE] = "";
    return status->owner.known && gethostname(host, sizeof host - 1) == 0 &&
           strcmp(host, status->owner.host) == 0;
}

/* Seconds until all units have ended; negative: not known. The time since the estimate counts if we have the
 * run's clock. */
static double estimate_seconds_left(const struct run_status *status) {
    const struct run_history *history = &status->history;
    if (status->condition != RUN_IS_RUNNING || !history->measuring || !status->is_planned)
        return -1;
    if (status->left == 0)
        return 0;
    if (history->commit_count <= history->first_commit)
        return -1;
    const struct run_history_commit *last = &history->commits[history->commit_count - 1];
    struct run_left left = {last->left_ns, last->monotonic_ns};
    int64_t left_ns = run_left_ns(&left, has_our_clock(status) ? clock_monotonic_ns() : left.at_ns);
    return left_ns < 0 ? -1 : (double)left_ns / 1e9;
}

static void count_left(struct run_status *status) {
    uint64_t ended = status->done + status->failed;
    status->left = status->planned > ended ? status->planned - ended : 0;
}

/* Sets all else from the journal, for a run's folder, where no other record is up to date. */
static void set_from_journal(struct run_status *status) {
    const struct run_history *history = &status->history;
    snprintf(status->name, sizeof status->name, "%s", history->campaign);
    snprintf(status->run_id, sizeof status->run_id, "%s", history->run_id);
    snprintf(status->last_error, sizeof status->last_error, "%s", history->error);
    clock_format(history->parts[0].started_ns, status->started);
    if (history->deadline_ns)
        clock_format(history->deadline_ns, status->deadline);
    status->is_planned = history->planned > 0;
    status->planned = (uint64_t)history->planned;
    status->done = (uint64_t)history->units_done;
    status->failed = (uint64_t)history->units_failed;
    status->flagged = (uint64_t)history->lines_flagged;
    status->repeated = (uint64_t)history->units_repeated;
    count_left(status);
    if (status->owner.held) {
        status->condition = RUN_IS_RUNNING;
        status->block = (uint64_t)history->block;
        status->journal_torn_bytes = 0; /* its last line is being written */
    } else if (history->submitted) {
        status->condition = RUN_IS_QUEUED;
    }
    bool could_not_seal = strcmp(history->phases[RUN_SEAL].status, "failed") == 0;
    if (status->condition == RUN_IS_STOPPED && history->sealed_as[0] && (status->archive || could_not_seal)) {
        status->condition = condition_called(history->sealed_as);
        memcpy(status->ended, status->last_entry, sizeof status->ended); /* with its last entry */
    } else {
        snprintf(status->phase, sizeof status->phase, "%s", history->phase);
    }
    if (status->condition == RUN_IS_STOPPED && history->held.is_kept &&
        run_history_is_reserved(history, clock_wall_ns()))
        status->condition = RUN_IS_RESERVED;
    status->seconds_left = estimate_seconds_left(status);
}

/* ---- From a folder ----------------------------------------------------------------------------- */

/* For a journal without an entry, of a run that begins, or died as it began: the folder's name is the run's.
 */
static int name_by_folder(struct run_status *status, struct failure *failure) {
    cleanup_free char *real = realpath(status->folder, NULL);
    if (!real)
        return failure_set(failure, -errno, "cannot resolve '%s': %s", status->folder, strerror(errno));
    snprintf(status->name, sizeof status->name, "%s", file_base_name(real));
    status->condition = status->owner.held ? RUN_IS_RUNNING : RUN_IS_STOPPED;
    return 0;
}

/* Makes the journal durable: what was read is shown, and must survive a power cut, but an engine writes
 * entries before it syncs them. A failure, as on a read-only file system, is ignored. */
static void sync_journal(const char *folder) {
    cleanup_free char *path = xformat("%s/" ARCHIVE_JOURNAL, folder);
    cleanup_close int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0)
        (void)fdatasync(file);
}

/* Reads the status of a run's folder. HISTORY, which is taken over, lets the journal be read on from its end;
 * NULL: from the beginning. */
static int read_folder(const char *path, enum run_archive_check check, struct run_history *history,
                       struct run_status **ret, struct failure *failure) {
    cleanup(run_status_cleanup) struct run_status *status = new_status(path);
    if (history) {
        status->history = *history;
        *history = (struct run_history){0};
    }
    status->folder = xstrdup(status->path);
    status->condition = RUN_IS_STOPPED;
    /* The lock first: a run that ends meanwhile is then seen as running, and not as one that died. */
    int r = run_lock_read(path, &status->owner, failure);
    if (r == 0)
        r = run_history_read(path, NULL, &status->history, failure);
    if (r < 0)
        return r;
    sync_journal(path);
    const struct journal_end *journal = &status->history.journal;
    if (journal->entries == 0 && journal->file_bytes > 0)
        return failure_input(failure, NULL, 0, 0,
                             "'%s/journal.jsonl' is no journal of a run: its first line is not whole", path);
    set_from_history(status);
    r = find_archive(status, check, failure);
    if (r == 0 && journal->entries == 0)
        r = name_by_folder(status, failure);
    else if (r == 0)
        set_from_journal(status);
    if (r < 0)
        return r;
    set_next_step(status);
    *ret = take_pointer(status);
    return 0;
}

/* ---- From an archive --------------------------------------------------------------------------- */

static void copy_text(const char *text, char *buffer, size_t size) {
    snprintf(buffer, size, "%s", text ? text : "");
}

/* Sets what run.json, in an archive, knows. */
static void set_from_run_json(struct run_status *status, const struct archive_run *run) {
    copy_text(run->name, status->name, sizeof status->name);
    copy_text(run->run_id, status->run_id, sizeof status->run_id);
    copy_text(run->error, status->last_error, sizeof status->last_error);
    if (run->started_ns)
        clock_format(run->started_ns, status->started);
    if (run->ended_ns)
        clock_format(run->ended_ns, status->ended);
    status->condition = condition_called(run->status);
    status->is_prediction = run->kind == ARCHIVE_OF_PREDICTION;
    status->planned = (uint64_t)run->counts.planned;
    status->done = (uint64_t)run->counts.done;
    status->failed = (uint64_t)run->counts.failed;
    status->flagged = (uint64_t)run->counts.flagged;
    status->repeated = (uint64_t)run->counts.repeated;
    count_left(status);
    /* A run that failed before it knew says 0. */
    status->is_planned = status->planned > 0 || status->condition == RUN_IS_COMPLETED;
}

/* Sets the nodes from run.json; all of them count as in. */
static void set_nodes(struct run_status *status, const struct bind_texts *nodes) {
    free(status->nodes);
    status->nodes = xcalloc(nodes->count + 1, sizeof *status->nodes);
    for (size_t i = 0; i < nodes->count; i++)
        add_node(status, run_history_find_node(&status->history, nodes->items[i]));
}

/* Reads the journal in the archive, if it has one, for what run.json does not know. */
static int read_archived_journal(struct run_status *status, struct archive_reader *archive,
                                 struct failure *failure) {
    cleanup(archive_member_cleanup) struct archive_member *member = NULL;
    if (!archive_find(archive, ARCHIVE_JOURNAL, NULL))
        return 0;
    int r = archive_member_open(archive, ARCHIVE_JOURNAL, &member, failure);
    if (r < 0)
        return r;
    struct journal_source source = {ARCHIVE_JOURNAL, archive_member_read, member};
    r = run_history_read_from(&source, &status->history, failure);
    if (r < 0)
        return archive_member_status(member, failure) < 0 ? failure->code : r;
    set_from_history(status);
    return 0;
}

/* The archive is damaged: only run.json, whose hash was compared, is shown, and what is left is not known. */
static void set_damage(struct run_status *status, const struct failure *why) {
    status->damage = xformat("its archive '%s' is damaged: %s", status->path, why->text);
    status->condition = RUN_IS_STOPPED;
    free(take_pointer(status->archive));
}

/* Reads the status from an archive. VERIFIED: the whole archive is checked. WITH_JOURNAL: its journal is
 * read, too. */
static int read_archive(const char *path, bool with_journal, bool verified, struct run_status **ret,
                        struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    cleanup(run_status_cleanup) struct run_status *status = new_status(path);
    struct failure damage;
    int r = archive_open(path, &archive, failure);
    if (r < 0)
        return r;
    status->archive = xstrdup(path);
    set_from_run_json(status, archive_run(archive));
    if (verified && archive_verify(archive, &damage) < 0)
        set_damage(status, &damage);
    else if (with_journal)
        r = read_archived_journal(status, archive, failure);
    if (r < 0)
        return r;
    if (status->node_count == 0)
        set_nodes(status, &archive_run(archive)->nodes);
    set_next_step(status);
    *ret = take_pointer(status);
    return 0;
}

int run_status_read_archive(const char *path, struct run_status **ret, struct failure *failure) {
    return read_archive(path, false, false, ret, failure);
}

/* Prefers the folder beside the archive if it is of the same run, which may have been resumed since. */
static int read_archive_or_folder(const char *path, enum run_archive_check check, struct run_status **ret,
                                  struct failure *failure) {
    cleanup(run_status_cleanup) struct run_status *status = NULL, *beside = NULL;
    cleanup_free char *folder = run_status_folder_of(path);
    struct failure unread = {0};
    int r = read_archive(path, false, false, &status, failure);
    if (r < 0)
        return r;
    if (!folder || !run_status_is_run(folder) || read_folder(folder, check, NULL, &beside, &unread) < 0 ||
        strcmp(beside->run_id, status->run_id) != 0)
        return read_archive(path, true, check == RUN_ARCHIVE_HASH, ret, failure);
    *ret = take_pointer(beside);
    return 0;
}

/* Reads the status of PATH, a folder or an archive. */
static int read_run(const char *path, enum run_archive_check check, struct run_status **ret,
                    struct failure *failure) {
    if (!file_exists(path))
        return failure_input(failure, NULL, 0, 0, "'%s' is not there; expected a run's folder or an archive",
                             path);
    if (!file_is_folder(path))
        return read_archive_or_folder(path, check, ret, failure);
    if (!run_status_is_run(path))
        return failure_input(failure, NULL, 0, 0, "'%s' is no run: there is no journal.jsonl in it", path);
    return read_folder(path, check, NULL, ret, failure);
}

int run_status_read(const char *path, struct run_status **ret, struct failure *failure) {
    return read_run(path, RUN_ARCHIVE_SIZE, ret, failure);
}

int run_status_update(struct run_status **status, struct failure *failure) {
    cleanup(run_status_cleanup) struct run_status *before = take_pointer(*status);
    return read_folder(before->path, RUN_ARCHIVE_SIZE, &before->history, status, failure);
}

void run_status_read_samples(struct run_status *status) {
    for (size_t i = 0; status->condition == RUN_IS_RUNNING && status->folder && i < status->node_count; i++)
        samples_read(&status->nodes[i]->samples, status->folder, status->nodes[i]->name,
                     (unsigned)status->nodes[i]->part);
}

int run_status_read_whole(const char *path, struct run_status **ret, struct failure *failure) {
    return read_run(path, RUN_ARCHIVE_HASH, ret, failure);
}
