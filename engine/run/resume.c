/* Going on with a run: its folder is locked, what its parts before have measured is learnt, what a crash has
 * torn is cut off and kept, and its records are opened again. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/run/measure/lane.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { PIECE_BYTES = 64 << 10 };

/* ---- What is cut off -------------------------------------------------------------------------------------
 */

static int copy_rest(int from, uint64_t begin, int to) {
    char piece[PIECE_BYTES];
    for (ssize_t got; (got = pread(from, piece, sizeof piece, (off_t)begin)) != 0; begin += (uint64_t)got) {
        if (got < 0)
            return -errno;
        int r = file_write_all(to, piece, (size_t)got);
        if (r < 0)
            return r;
    }
    return fsync(to) < 0 ? -errno : 0;
}

/* Bytes of NAME from BEGIN on, which nobody was ever shown, go to logs/cut/: nothing is thrown away. */
static int keep_rest(const struct run *run, const char *name, uint64_t begin, struct failure *failure) {
    cleanup_free char *path = run_path(run, name);
    cleanup_free char *kept = text_format("logs/cut/part-%u-%s", run->part - 1, file_base_name(name));
    cleanup_free char *kept_path = kept ? run_path(run, kept) : NULL;
    if (!path || !kept_path)
        return failure_memory(failure);
    int r = run_make_folder(run, "logs/cut", failure);
    if (r < 0)
        return r;
    cleanup_close int from = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int to = open(kept_path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    r = from < 0 || to < 0 ? -errno : copy_rest(from, begin, to);
    if (r < 0)
        return failure_set(failure, r, "cannot keep the end of '%s' in '%s': %s", path, kept_path,
                           strerror(-r));
    return file_sync_folder_of(kept_path, failure);
}

/* ---- The records -----------------------------------------------------------------------------------------
 */

static int open_journal(struct run *run, struct failure *failure) {
    const struct journal_end *end = &run->past.journal;
    cleanup_free char *path = run_path(run, "journal.jsonl");
    if (!path)
        return failure_memory(failure);
    int r = 0;
    if (end->file_bytes > end->bytes)
        r = keep_rest(run, "journal.jsonl", end->bytes, failure);
    return r < 0 ? r : journal_open(path, end, &run->journal, failure);
}

/* KEEP: so many bytes of it stand. A file that is not there is made. */
static int open_table(struct run *run, const char *name, uint64_t keep, struct append_file **ret,
                      struct failure *failure) {
    cleanup_free char *path = run_path(run, name);
    if (!path)
        return failure_memory(failure);
    uint64_t size = 0;
    if (!file_exists(path))
        return append_file_create(path, ret, failure);
    int r = file_size(path, &size, failure);
    if (r == 0 && size > keep)
        r = keep_rest(run, name, keep, failure);
    return r < 0 ? r : append_file_open(path, keep < size ? keep : size, ret, failure);
}

static int open_records(struct run *run, struct failure *failure) {
    static const char *const inside[] = {"results", "logs", "nodes", "software"};
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof inside / sizeof *inside; i++)
        r = run_make_folder(run, inside[i], failure);
    if (r == 0)
        r = open_journal(run, failure);
    if (r == 0)
        r = open_table(run, "results/results.csv", run->past.results_bytes, &run->results, failure);
    if (r == 0)
        r = open_table(run, "logs/engine.log", UINT64_MAX, &run->log, failure);
    return r;
}

/* ---- What is left ----------------------------------------------------------------------------------------
 */

/* "FOLDER.zip" of a run that was sealed once, "FOLDER-K.zip" of part K. */
static char *name_archive(const struct run *run, unsigned part) {
    return part > 1 ? text_format("%s-%u.zip", run->folder, part) : text_format("%s.zip", run->folder);
}

/* The last archive of the parts before, the caller's; NULL: there is none. */
static char *find_archive(const struct run *run) {
    for (unsigned part = run->part - 1; part > 0; part--) {
        char *path = name_archive(run, part);
        if (path && file_exists(path))
            return path;
        free(path);
    }
    return NULL;
}

/* The archive of a run that was completed, the caller's. It is there only if sealing came to its end. */
static char *find_sealed(const struct run *run) {
    const struct past *past = &run->past;
    if (!past->sealed || strcmp(past->parts[past->part_count - 1].status, "completed") != 0)
        return NULL;
    cleanup_free char *folder = strndup(run->folder, (size_t)(file_base_name(run->folder) - run->folder));
    cleanup_free char *path = folder ? text_format("%s%s", folder, past->archive) : NULL;
    return path && past->archive[0] && file_exists(path) ? take_pointer(path) : NULL;
}

static int choose_archive(struct run *run, const char *last, struct failure *failure) {
    run->archive = name_archive(run, last ? run->part : 1);
    return run->archive ? 0 : failure_memory(failure);
}

/* As far as the journal tells. When in doubt the measure phase finds out, and has nothing to do. */
static bool is_all_done(const struct run *run) {
    const struct past *past = &run->past;
    return past->measured && past->planned > 0 && run->units->repeats_failed == 0 &&
           run->units->done >= past->planned && run->units->failed == 0 && past->lost == 0 &&
           !run->settling && !lane_want_repeats(run, 0, plan_positions(run->plan));
}

/* ---- Beginning -------------------------------------------------------------------------------------------
 */

static void journal_resumed(struct run *run) {
    const struct past *past = &run->past;
    journal_begin(run->journal, "run-resumed");
    journal_string(run->journal, "run_id", run->id);
    journal_integer(run->journal, "part", run->part);
    journal_string(run->journal, "engine", ASSAY_VERSION);
    journal_integer(run->journal, "units_done", (int64_t)run->units->done);
    journal_integer(run->journal, "units_failed", (int64_t)run->units->failed);
    journal_integer(run->journal, "journal_cut_bytes",
                    (int64_t)(past->journal.file_bytes - past->journal.bytes));
    journal_integer(run->journal, "results_cut_bytes", (int64_t)(past->results_end - past->results_bytes));
    if (past->lost > 0) {
        journal_integer(run->journal, "lost_from", (int64_t)past->lost_from);
        journal_integer(run->journal, "lost", (int64_t)past->lost);
    }
    journal_end(run->journal);
}

static void note_past(struct run *run) {
    const struct past *past = &run->past;
    uint64_t torn = past->journal.file_bytes - past->journal.bytes;
    if (run->only_seals)
        run_note(run, "part %u: all %" PRIu64 " units are done; the archive is made", run->part,
                 run->units->done);
    else if (past->planned > 0)
        run_note(run, "part %u: %" PRIu64 " of %" PRIu64 " units are done", run->part, run->units->done,
                 past->planned);
    else
        run_note(run, "part %u: %" PRIu64 " units are done", run->part, run->units->done);
    if (run->units->failed > 0)
        run_note(run, "%" PRIu64 " units that failed are tried again", run->units->failed);
    if (torn > 0)
        run_note(run,
                 "the journal ended in %" PRIu64 " bytes that are not whole (%" PRIu64
                 " whole entries among them), which are kept in logs/cut",
                 torn, past->journal.whole_after);
    if (past->results_end > past->results_bytes)
        run_note(run, "results.csv had %" PRIu64 " bytes that the journal does not know, kept in logs/cut",
                 past->results_end - past->results_bytes);
    if (past->lost > 0)
        run_note(run,
                 "%" PRIu64 " units that the journal has as done are not whole in results.csv, and are "
                 "measured again",
                 past->lost);
}

/* It would have been refused if it had another order or other columns: what is left may be new to people. */
static void note_engine(struct run *run) {
    const struct past *past = &run->past;
    const char *before = past->parts[past->part_count - 1].engine;
    if (before[0] && strcmp(before, ASSAY_VERSION) != 0)
        run_note(run, "the part before was run by assay %s, and this is " ASSAY_VERSION, before);
}

static int learn_past(struct run *run, struct failure *failure) {
    cleanup(text_clear) struct text header;
    text_init(&header, 1 << 20);
    if (run_append_header(run->plan, &header) < 0)
        return failure_memory(failure);
    int r = past_read(run->folder, run->plan, header.bytes, run->settling ? settling_take_line : NULL, run,
                      &run->past, &run->ledger, failure);
    if (r < 0)
        return r;
    run->units = ledger_totals(run->ledger);
    memcpy(run->id, run->past.id, sizeof run->id);
    run->part = (unsigned)run->past.part_count + 1;
    run->started_ns = run->past.parts[0].started_ns;
    run->block_number = run->past.block_number;
    run->commands_kept = run->past.commands_kept;
    run->units_planned = run->past.planned;
    return 0;
}

int run_go_on(struct run *run, const struct inputs *inputs, char **ret_sealed, struct failure *failure) {
    run->folder = strdup(inputs->run_folder);
    int r = run->folder ? run_lock_take(run->folder, &run->lock, failure) : failure_memory(failure);
    if (r == 0)
        r = learn_past(run, failure);
    if (r < 0)
        return r;
    cleanup_free char *last = find_archive(run), *sealed = find_sealed(run);
    if (sealed) {
        *ret_sealed = take_pointer(sealed);
        return 0;
    }
    run->only_seals = is_all_done(run);
    r = choose_archive(run, last, failure);
    if (r == 0 && inputs->has_more_spares)
        r = inputs_save(inputs, failure);
    if (r == 0)
        r = open_records(run, failure);
    if (r < 0)
        return r;
    journal_resumed(run);
    note_past(run);
    note_engine(run);
    return run_commit(run, failure);
}
