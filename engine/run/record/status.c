#include "engine/run/record/status.h"

#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/campaign/experiment-command.h"
#include "engine/run/record/story.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char *const condition_names[RUN_CONDITIONS] = {
    [RUN_IS_RUNNING] = "running", [RUN_IS_STOPPED] = "stopped", [RUN_IS_COMPLETED] = "completed",
    [RUN_IS_FAILED] = "failed",   [RUN_IS_PARTIAL] = "partial", [RUN_IS_INTERRUPTED] = "interrupted",
    [RUN_IS_UNKNOWN] = "unknown",
};

const char *run_condition_name(enum run_condition condition) {
    return condition_names[condition];
}

/* What a `sealing` entry or run.json says. */
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
    for (size_t i = 0; i < status->node_count; i++) {
        free(status->nodes[i]->name);
        free(status->nodes[i]->sentence);
        free(status->nodes[i]);
    }
    free(status->nodes);
    free(status->path);
    free(status->folder);
    free(status->archive);
    free(status->next);
    free(status->command);
    free(status);
}

void run_status_cleanup(struct run_status **status) {
    run_status_free(*status);
}

/* PATH without the slashes at its end. */
static char *trimmed(const char *path) {
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/')
        length--;
    return strndup(path, length);
}

static struct run_status *new_status(const char *path) {
    struct run_status *status = calloc(1, sizeof *status);
    if (!status)
        return NULL;
    status->part = 1;
    status->rate = NAN;
    status->seconds_left = -1;
    status->path = trimmed(path);
    if (!status->path) {
        free(status);
        return NULL;
    }
    return status;
}

/* ---- Where things are -------------------------------------------------------------------------- */

bool run_status_is_run(const char *folder) {
    cleanup_free char *journal = file_join(folder, "journal.jsonl");
    return journal && file_exists(journal);
}

char *run_status_folder_of(const char *path) {
    size_t length = strlen(path);
    if (length < 5 || strcmp(path + length - 4, ".zip") != 0)
        return NULL;
    char *folder = strndup(path, length - 4);
    if (!folder || run_status_is_run(folder))
        return folder;
    size_t digits = length - 4;
    while (digits > 1 && folder[digits - 1] >= '0' && folder[digits - 1] <= '9')
        digits--;
    if (digits == length - 4 || folder[digits - 1] != '-')
        return folder;
    cleanup_free char *shorter = strndup(folder, digits - 1);
    if (!shorter || !run_status_is_run(shorter))
        return folder;
    free(folder);
    return take_pointer(shorter);
}

static int take_first(const struct journal_entry *entry, void *context, struct failure *failure) {
    int64_t *wall_ns = context;
    *wall_ns = entry->wall_ns;
    return failure_set(failure, -ECANCELED, "enough");
}

int64_t run_status_begun_ns(const char *folder) {
    cleanup_free char *journal = file_join(folder, "journal.jsonl");
    struct journal_end end;
    int64_t wall_ns = 0;
    if (journal)
        journal_replay(journal, take_first, &wall_ns, &end, NULL);
    return wall_ns;
}

/* The archive that part PART of the run in FOLDER has, if it is there: FOLDER.zip is that of the first part
 * that was sealed, whichever it was, and FOLDER-K.zip that of a later part K. */
static int find_archive(const char *folder, int64_t part, char **ret, struct failure *failure) {
    /* What the user calls it may have no name in it: ".", for one. */
    cleanup_free char *real = realpath(folder, NULL);
    if (!real)
        return failure_set(failure, -errno, "cannot resolve '%s': %s", folder, strerror(errno));
    const char *name = file_base_name(real), *last = file_base_name(folder);
    cleanup_free char *shown = strcmp(name, last) == 0 ? strdup(folder) : strdup(real);
    cleanup_free char *first = shown ? text_format("%s.zip", shown) : NULL,
                      *later = shown ? text_format("%s-%" PRId64 ".zip", shown, part) : NULL;
    if (!first || !later)
        return failure_memory(failure);
    *ret = file_exists(later) ? take_pointer(later) : file_exists(first) ? take_pointer(first) : NULL;
    return 0;
}

/* ---- What to do next --------------------------------------------------------------------------- */

/* "assay VERB PATH", PATH quoted where a shell needs it. */
static char *command_for(const char *verb, const char *path) {
    struct text text;
    text_init(&text, 64 << 10);
    char *words[] = {(char *)"assay", (char *)verb, (char *)path, NULL};
    if (experiment_command_describe(words, &text) < 0)
        text_clear(&text);
    return text_take(&text);
}

static bool can_resume(const struct run_status *status) {
    cleanup_free char *inputs = status->folder ? file_join(status->folder, "inputs.json") : NULL;
    return inputs && file_exists(inputs) && status->journal_bytes > 0;
}

static char *say_left(const struct run_status *status) {
    if (!status->is_planned)
        return strdup("");
    if (status->left + status->failed == 0)
        return strdup(": all units are done, and left to be sealed");
    /* One that was replaced is out, too: then what is left is its spare's, which may be lost in turn. */
    return text_format(
        ": %" PRIu64 " of %" PRIu64 " units are left%s", status->left + status->failed, status->planned,
        status->nodes_out > 0 ? "; --spares names others for nodes that are gone for good" : "");
}

static int advise(struct run_status *status, struct failure *failure) {
    bool whole = status->is_planned && status->left == 0 && status->failed == 0;
    if (status->condition == RUN_IS_RUNNING)
        status->next = strdup("nothing: it is running");
    else if (status->condition == RUN_IS_COMPLETED || (whole && status->archive))
        status->next = strdup("nothing: what it measured is sealed");
    else if (!status->folder)
        status->next = strdup("nothing: the run's folder is gone, so that it cannot be resumed");
    else if (!can_resume(status))
        status->next = strdup("run the campaign again: this run does not have what it takes to be resumed");
    else if ((status->command = command_for("resume", status->folder))) {
        cleanup_free char *left = say_left(status);
        status->next = left ? text_format("`%s` goes on with it%s", status->command, left) : NULL;
    }
    return status->next ? 0 : failure_memory(failure);
}

/* ---- From a folder ----------------------------------------------------------------------------- */

static void count_nodes(struct run_status *status) {
    for (size_t i = 0; i < status->node_count; i++) {
        const struct run_status_node *node = status->nodes[i];
        status->nodes_out_of_reach += node->condition == RUN_NODE_OUT_OF_REACH;
        status->nodes_lost += node->condition == RUN_NODE_LOST;
        status->nodes_out += node->condition == RUN_NODE_OUT;
        status->nodes_slow += node->slow;
    }
}

/* The time since the last unit ended counts where our clock is the run's. */
static double seconds_since(const struct run_status *status, int64_t monotonic_ns) {
    char host[RUN_LOCK_HOST_SIZE] = "";
    int64_t now = clock_monotonic_ns();
    if (!status->owner.known || gethostname(host, sizeof host - 1) < 0 ||
        strcmp(host, status->owner.host) != 0 || now < monotonic_ns)
        return 0;
    return (double)(now - monotonic_ns) / 1e9;
}

static void estimate(struct run_status *status, const struct run_story *story) {
    status->rate = run_story_rate(story);
    if (status->condition != RUN_IS_RUNNING || !story->measuring || !status->is_planned)
        return;
    if (status->left == 0) {
        status->seconds_left = 0;
        return;
    }
    if (isnan(status->rate))
        return;
    double seconds = (double)status->left / status->rate - seconds_since(status, story->last_unit_ns);
    status->seconds_left = seconds > 0 ? seconds : 0;
}

static void judge(struct run_status *status, const struct run_story *story) {
    uint64_t ended = status->done + status->failed;
    status->left = status->planned > ended ? status->planned - ended : 0;
    bool sealed = story->sealed[0] && status->archive;
    status->condition = status->owner.held ? RUN_IS_RUNNING
                        : sealed           ? condition_called(story->sealed)
                                           : RUN_IS_STOPPED;
    if (status->condition == RUN_IS_RUNNING || !sealed)
        status->ended[0] = '\0';
    else
        status->phase[0] = '\0';
    if (status->condition != RUN_IS_RUNNING)
        status->block = 0;
    else /* its last line is being written */
        status->journal_torn_bytes = 0;
    count_nodes(status);
    estimate(status, story);
}

/* Journals before 1.3 do not say how many units there are; run.json does once the run is sealed. */
static void look_up_planned(struct run_status *status) {
    cleanup_free char *path = file_join(status->folder, "run.json");
    struct document *document = NULL;
    if (!path || document_read_json(path, &document, NULL) < 0)
        return;
    const struct document_node *counts = document_get(document->root, "counts");
    const struct document_node *planned = document_get(counts, "units_planned");
    uint64_t units = 0;
    if (planned && planned->text && number_parse_uint64(planned->text, strlen(planned->text), &units) &&
        units > 0) {
        status->is_planned = true;
        status->planned = units;
    }
    document_free(document);
}

/* A journal that no entry of was written yet: a run that begins, or that died as it began. */
static int name_by_folder(struct run_status *status, struct failure *failure) {
    cleanup_free char *real = realpath(status->folder, NULL);
    if (!real)
        return failure_set(failure, -errno, "cannot resolve '%s': %s", status->folder, strerror(errno));
    snprintf(status->name, sizeof status->name, "%s", file_base_name(real));
    return 0;
}

/* What was read is shown, so it must survive a power cut: an engine has written its last entries before it
 * syncs them. Where this fails (a read-only file system, say) there is nothing that could be done better. */
static void sync_journal(const char *path) {
    cleanup_close int file = open(path, O_RDONLY | O_NONBLOCK | O_CLOEXEC);
    if (file >= 0)
        (void)fdatasync(file);
}

static int read_journal(struct run_status *status, struct run_story *story, const char *path,
                        struct failure *failure) {
    struct journal_end end;
    int r = journal_replay(path, run_story_take, story, &end, failure);
    if (r < 0)
        return failure_prefix(failure, "'%s' is no journal of a run", path);
    sync_journal(path);
    if (end.entries == 0 && end.file_bytes > 0)
        return failure_input(failure, NULL, 0, 0, "'%s' is no journal of a run: its first line is not whole",
                             path);
    status->journal_bytes = end.bytes;
    status->journal_torn_bytes = end.file_bytes - end.bytes;
    status->journal_whole_after = end.whole_after;
    if (end.entries == 0)
        return name_by_folder(status, failure);
    clock_format(story->last_entry_ns, status->last_entry);
    if (!status->is_planned)
        look_up_planned(status);
    return run_story_count_units(story, path, failure);
}

static int read_folder(const char *path, struct run_status **ret, struct failure *failure) {
    cleanup(run_status_cleanup) struct run_status *status = new_status(path);
    cleanup(run_story_clear) struct run_story story = {.status = status, .last_unit_ns = -1};
    cleanup_free char *journal = status ? file_join(path, "journal.jsonl") : NULL;
    if (!journal || !(status->folder = strdup(status->path)))
        return failure_memory(failure);
    /* The lock first: a run that ends meanwhile is then seen as running, and not as one that died. */
    int r = run_lock_look(path, &status->owner, failure);
    if (r == 0)
        r = read_journal(status, &story, journal, failure);
    if (r == 0)
        r = find_archive(status->folder, status->part, &status->archive, failure);
    if (r < 0)
        return r;
    judge(status, &story);
    r = advise(status, failure);
    if (r == 0)
        *ret = take_pointer(status);
    return r;
}

/* ---- From an archive --------------------------------------------------------------------------- */

static void copy_text(const struct archive_reader *archive, const char *key, char *buffer, size_t size) {
    const char *text = archive_run_text(archive, key, NULL);
    snprintf(buffer, size, "%s", text ? text : "");
}

static uint64_t count_called(const struct archive_reader *archive, const char *key) {
    const char *text = archive_run_text(archive, "counts", key, NULL);
    uint64_t count = 0;
    return text && number_parse_uint64(text, strlen(text), &count) ? count : 0;
}

static void take_record(struct run_status *status, const struct archive_reader *archive) {
    copy_text(archive, "name", status->name, sizeof status->name);
    copy_text(archive, "run_id", status->run_id, sizeof status->run_id);
    copy_text(archive, "started", status->started, sizeof status->started);
    copy_text(archive, "ended", status->ended, sizeof status->ended);
    copy_text(archive, "error", status->last_error, sizeof status->last_error);
    status->condition = condition_called(archive_run_text(archive, "status", NULL));
    status->planned = count_called(archive, "units_planned");
    status->done = count_called(archive, "units_done");
    status->failed = count_called(archive, "units_failed");
    status->flagged = count_called(archive, "units_flagged");
    status->repeated = count_called(archive, "units_repeated");
    uint64_t ended = status->done + status->failed;
    status->left = status->planned > ended ? status->planned - ended : 0;
    /* A run that failed before it knew says 0. */
    status->is_planned = status->planned > 0 || status->condition == RUN_IS_COMPLETED;
}

static int take_nodes(struct run_status *status, const struct archive_reader *archive,
                      struct failure *failure) {
    const struct document_node *nodes = document_get(archive_run(archive)->root, "nodes");
    if (!nodes || nodes->kind != DOCUMENT_SEQUENCE)
        return 0;
    status->nodes = xcalloc(nodes->count + 1, sizeof *status->nodes);
    for (size_t i = 0; i < nodes->count; i++) {
        struct run_status_node *node = calloc(1, sizeof *node);
        if (!node || !(node->name = strdup(nodes->items[i]->text ? nodes->items[i]->text : "?"))) {
            free(node);
            return failure_memory(failure);
        }
        status->nodes[status->node_count++] = node;
    }
    return 0;
}

static int take_archive(const char *path, struct archive_reader *archive, struct run_status **ret,
                        struct failure *failure) {
    cleanup(run_status_cleanup) struct run_status *status = new_status(path);
    if (!status || !(status->archive = strdup(path)))
        return failure_memory(failure);
    take_record(status, archive);
    int r = take_nodes(status, archive, failure);
    if (r == 0)
        r = advise(status, failure);
    if (r == 0)
        *ret = take_pointer(status);
    return r;
}

int run_status_read_archive(const char *path, struct run_status **ret, struct failure *failure) {
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
    int r = archive_open(path, &archive, failure);
    return r < 0 ? r : take_archive(path, archive, ret, failure);
}

/* What the journal in it tells beyond run.json: what became of nodes and blocks, and which part it is of. */
static int add_journal(struct run_status *status, struct archive_reader *archive, struct failure *failure) {
    cleanup(archive_close_member) struct archive_member *member = NULL;
    cleanup(run_status_cleanup) struct run_status *told = new_status("");
    cleanup(run_story_clear) struct run_story story = {.status = told, .last_unit_ns = -1};
    size_t index;
    if (!told)
        return failure_memory(failure);
    if (!archive_find(archive, "journal.jsonl", &index))
        return 0;
    int r = archive_member_open(archive, "journal.jsonl", &member, failure);
    if (r < 0)
        return r;
    struct journal_end end;
    struct journal_source source = {"journal.jsonl", archive_member_read, member};
    r = journal_replay_from(&source, run_story_take, &story, &end, failure);
    if (r < 0)
        return archive_member_status(member, failure) < 0 ? failure->code : r;
    if (end.entries == 0)
        return 0;
    clock_format(story.last_entry_ns, status->last_entry);
    status->part = told->part;
    status->blocks_done = told->blocks_done;
    status->journal_bytes = end.bytes;
    status->journal_torn_bytes = end.file_bytes - end.bytes;
    status->journal_whole_after = end.whole_after;
    status->rate = run_story_rate(&story);
    if (told->node_count > 0) {
        struct run_status_node **nodes = status->nodes;
        size_t count = status->node_count;
        status->nodes = told->nodes;
        status->node_count = told->node_count;
        told->nodes = nodes;
        told->node_count = count;
        count_nodes(status);
    }
    return 0;
}

static int read_archive(const char *path, struct run_status **ret, struct failure *failure) {
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
    cleanup(run_status_cleanup) struct run_status *status = NULL;
    int r = archive_open(path, &archive, failure);
    if (r == 0)
        r = take_archive(path, archive, &status, failure);
    if (r < 0)
        return r;
    /* Its folder may know more: it may have been resumed since. */
    cleanup_free char *folder = run_status_folder_of(path);
    if (folder && run_status_is_run(folder)) {
        cleanup(run_status_cleanup) struct run_status *beside = NULL;
        struct failure unread = {0};
        if (read_folder(folder, &beside, &unread) == 0 && strcmp(beside->run_id, status->run_id) == 0) {
            *ret = take_pointer(beside);
            return 0;
        }
    }
    r = add_journal(status, archive, failure);
    if (r == 0)
        *ret = take_pointer(status);
    return r;
}

int run_status_read(const char *path, struct run_status **ret, struct failure *failure) {
    if (!file_exists(path))
        return failure_input(failure, NULL, 0, 0, "'%s' is not there; expected a run's folder or an archive",
                             path);
    if (!file_is_folder(path))
        return read_archive(path, ret, failure);
    if (!run_status_is_run(path))
        return failure_input(failure, NULL, 0, 0, "'%s' is no run: there is no journal.jsonl in it", path);
    return read_folder(path, ret, failure);
}
