/* Resuming a run: its folder is locked and the history of its earlier parts is read. Files that a crash has
 * torn are cut (the bytes are kept in logs/cut/), and the records are opened again. */
#include "archive-format/layout.h"
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/campaign/tables.h"
#include "engine/run/nodes/placement.h"
#include "engine/run/state/unit-state.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* ---- The records -----------------------------------------------------------------------------------------
 */

/* Copies what the file NAME has from byte BEGIN on to logs/cut/, before the caller truncates it. These bytes
 * were never reported as measured, but nothing is thrown away. Does nothing when the file ends at BEGIN. */
static int save_cut(struct run *run, const char *name, uint64_t begin, struct failure *failure) {
    cleanup_free char *path = record_path(&run->record, name);
    cleanup_free char *kept = xformat("%s/" ARCHIVE_CUT "/part-%u-%s", run->record.folder,
                                      run->record.part - 1, file_base_name(name));
    uint64_t size;
    int r = file_size(path, &size, failure);
    if (r < 0 || size <= begin)
        return r;
    r = record_make_folder(&run->record, ARCHIVE_CUT, failure);
    if (r < 0)
        return r;
    cleanup_close int from = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    cleanup_close int to = open(kept, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    char piece[64 << 10];
    ssize_t got = from < 0 || to < 0 ? -1 : 1;
    for (; got > 0; begin += (uint64_t)got)
        if ((got = pread(from, piece, sizeof piece, (off_t)begin)) > 0 &&
            file_write_all(to, piece, (size_t)got) < 0)
            got = -1;
    if (got < 0 || fsync(to) < 0)
        return failure_set(failure, -errno, "cannot keep the end of '%s' in '%s': %s", path, kept,
                           strerror(errno));
    return file_sync_folder_of(kept, failure);
}

/* Makes the journal in part 1. A later part opens it, cuts a torn end off and keeps that in logs/cut/. */
static int open_journal(struct run *run, struct failure *failure) {
    cleanup_free char *path = record_path(&run->record, ARCHIVE_JOURNAL);
    if (run->past.part_count == 0)
        return journal_create(path, &run->record.journal, failure);
    int r = save_cut(run, ARCHIVE_JOURNAL, run->past.journal.bytes, failure);
    return r < 0 ? r : journal_open(path, &run->past.journal, &run->record.journal, failure);
}

/* Opens the file NAME for appending, cut off after COMMITTED bytes; the rest goes to logs/cut/. A missing
 * file is made. */
static int open_table(struct run *run, const char *name, uint64_t committed, struct append_file **ret,
                      struct failure *failure) {
    cleanup_free char *path = record_path(&run->record, name);
    if (!file_exists(path))
        return append_file_create(path, ret, failure);
    int r = save_cut(run, name, committed, failure);
    return r < 0 ? r : append_file_open(path, committed, ret, failure);
}

/* Makes the folders of the run, then opens journal, results and log. */
int run_open_records(struct run *run, struct failure *failure) {
    static const char *const inside[] = {
        "", ARCHIVE_RESULTS_FOLDER, ARCHIVE_LOGS, ARCHIVE_NODES, ARCHIVE_SOFTWARE, ARCHIVE_EXPERIMENT};
    cleanup_free char *log = record_path(&run->record, ARCHIVE_LOG);
    uint64_t log_bytes = 0;
    int r = 0;
    for (size_t i = 0; r == 0 && i < sizeof inside / sizeof *inside; i++)
        r = record_make_folder(&run->record, inside[i], failure);
    if (r == 0)
        r = record_make_reserve(&run->record, failure);
    if (r == 0)
        r = open_journal(run, failure);
    if (r == 0)
        r = open_table(run, ARCHIVE_RESULTS, run->past.results_bytes, &run->record.results, failure);
    if (r == 0 && file_exists(log))
        r = file_size(log, &log_bytes, failure);
    return r < 0 ? r : open_table(run, ARCHIVE_LOG, log_bytes, &run->record.log, failure);
}

/* ---- What is left ----------------------------------------------------------------------------------------
 */

/* The archive's path, the caller's: "FOLDER.zip", or, if that exists, "FOLDER-K.zip" for part K. */
static char *name_archive(const struct run *run) {
    cleanup_free char *first = xformat("%s.zip", run->record.folder);
    return file_exists(first) ? xformat("%s-%u.zip", run->record.folder, run->record.part)
                              : take_pointer(first);
}

/* Looks for the archive of a run that was completed. *RET is its path when it is whole; otherwise *RET_DAMAGE
 * says in a sentence what is wrong with it. Both stay NULL for a run that was not completed. */
static void find_sealed(const struct run *run, char **ret, char **ret_damage) {
    if (strcmp(run->past.sealed_as, "completed") == 0)
        run_history_find_archive(&run->past, run->record.folder, RUN_ARCHIVE_HASH, ret, ret_damage);
}

/* Does the journal say that every planned unit is done, so that this part only has to seal? False when in
 * doubt: the measure phase then finds nothing to do. */
static bool is_all_done(const struct run *run) {
    const struct run_history *past = &run->past;
    return past->measured && past->planned > 0 && run->record.units->done >= (uint64_t)past->planned &&
           run->record.units->failed == 0 && past->lost == 0 && !run->progress.settling.rule &&
           !measure_wants_repeats(&run->set, 0, plan_positions(run->set.plan));
}

/* ---- Beginning -------------------------------------------------------------------------------------------
 */

/* Journals "run-resumed": the part, and how many bytes of journal and results were intact or cut off. */
static void journal_resumed(struct run *run) {
    const struct run_history *past = &run->past;
    journal_begin(run->record.journal, "run-resumed");
    journal_string(run->record.journal, "run_id", run->record.id);
    journal_integer(run->record.journal, "part", run->record.part);
    journal_string(run->record.journal, "engine", ASSAY_VERSION);
    journal_integer(run->record.journal, "results_bytes", (int64_t)past->results_bytes);
    record_journal_counts(&run->record);
    journal_integer(run->record.journal, "journal_cut_bytes",
                    (int64_t)(past->journal.file_bytes - past->journal.bytes));
    journal_integer(run->record.journal, "results_cut_bytes",
                    (int64_t)(past->results_end - past->results_bytes));
    journal_end(run->record.journal);
}

/* Notes what the earlier parts have left: units done, units to try again, and bytes that were cut off. */
static void note_past(struct run *run) {
    const struct run_history *past = &run->past;
    uint64_t torn = past->journal.file_bytes - past->journal.bytes;
    if (run->only_seals)
        record_note(&run->record, "part %u: all %" PRIu64 " units are done; the archive is made",
                    run->record.part, run->record.units->done);
    else if (past->planned > 0)
        record_note(&run->record, "part %u: %" PRIu64 " of %" PRId64 " units are done", run->record.part,
                    run->record.units->done, past->planned);
    else
        record_note(&run->record, "part %u: %" PRIu64 " units are done", run->record.part,
                    run->record.units->done);
    if (run->record.units->failed > 0)
        record_note(&run->record, "%" PRIu64 " units that failed are tried again", run->record.units->failed);
    if (torn > 0)
        record_note(&run->record,
                    "the journal is torn at line %" PRIu64 ": the last %" PRIu64 " bytes (%" PRIu64
                    " whole entries among them) are kept in logs/cut",
                    past->journal.entries + 1, torn, past->journal.whole_after);
    if (past->results_end > past->results_bytes)
        record_note(&run->record,
                    "results.csv had %" PRIu64
                    " bytes after the last commit in the journal; they are kept in logs/cut",
                    past->results_end - past->results_bytes);
    if (past->lost > 0)
        record_note(&run->record,
                    "%" PRIu64 " units are done by the journal, but have no intact line in results.csv; they "
                    "are measured again",
                    past->lost);
}

/* Notes that another version of assay ran the part before. A version with another order or other columns is
 * refused earlier. */
static void note_engine(struct run *run) {
    const struct run_history *past = &run->past;
    const char *before = past->parts[past->part_count - 1].engine;
    if (before[0] && strcmp(before, ASSAY_VERSION) != 0)
        record_note(&run->record, "the part before was run by assay %s, and this is " ASSAY_VERSION, before);
}

/* Is TEXT a UUID? Checked because the run's id becomes part of paths on nodes. */
static bool is_uuid(const char *text) {
    enum { DIGITS = 36 };
    return strlen(text) == DIGITS && strspn(text, "0123456789abcdef-") == DIGITS;
}

/* Reads the history of the earlier parts into run->past, and their finished units into the ledger. Refuses a
 * journal that has no run or no valid id. */
static int read_past(struct run *run, struct failure *failure) {
    cleanup(text_clear) struct text header;
    text_init(&header, 1 << 20);
    if (tables_append_header(run->set.plan, &header) < 0)
        return failure_memory(failure);
    struct run_history *past = &run->past;
    struct run_history_units units = {
        .ledger = run->record.ledger,
        .positions = plan_positions(run->set.plan),
        .header = header.bytes,
        .node = run->set.experiment->placement == EXPERIMENT_PLACEMENT_JOB ? PLACEMENT_JOB_NODE : NULL,
        .parse_flags = unit_state_parse_flags,
        .columns = tables_plan_columns(run->set.plan),
        .picked = run->set.plan->design->column_count + run->set.plan->repeat_response,
        .add_row = run->progress.settling.rule ? settling_add_row : NULL,
        .context = &run->progress.settling,
    };
    int r = run_history_read(run->record.folder, &units, past, failure);
    if (r == 0 && past->part_count == 0)
        r = failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                             "the journal of '%s' does not begin with a run; nothing was measured yet",
                             run->record.folder);
    if (r == 0 && !is_uuid(past->run_id))
        r = failure_set_kind(failure, FAILURE_VERIFICATION, -EBADMSG,
                             "the journal of '%s' has no valid run_id", run->record.folder);
    return r < 0 ? r : run_history_read_units(run->record.folder, &units, past, failure);
}

/* Continues from run->past: id, part number, counts, block number, and which spares have replaced which
 * nodes. */
static void adopt_past(struct run *run) {
    const struct run_history *past = &run->past;
    snprintf(run->record.id, sizeof run->record.id, "%.36s", past->run_id);
    for (size_t i = 0; i < past->replacement_count; i++)
        ledger_replace_node(run->record.ledger, past->replacements[i].node);
    run->record.part = (unsigned)run_history_next_part(past);
    run->started_ns = past->parts[0].started_ns;
    run->progress.block_number = (size_t)past->last_block;
    run->record.commands_kept = past->commands_kept;
    run->record.units_planned = (uint64_t)past->planned;
    run->units_before = run->record.units->done;
    run->record.committed = *run->record.units;
}

/* Opens the run's folder for another part. The design is written again, since the run may have more spares
 * now. */
int run_reopen(struct run *run, const struct inputs *inputs, char **ret_sealed, struct failure *failure) {
    run->record.folder = xstrdup(inputs->run_folder);
    run->record.files.folder = run->record.folder;
    int r = run_lock_take(run->record.folder, &run->lock, failure);
    if (r == 0)
        r = read_past(run, failure);
    if (r < 0)
        return r;
    adopt_past(run);
    cleanup_free char *damage = NULL;
    find_sealed(run, ret_sealed, &damage);
    if (*ret_sealed)
        return 0;
    run->only_seals = is_all_done(run);
    run->archive = name_archive(run);
    r = run_record_design(run, failure); /* it may have more spares */
    if (r == 0)
        r = run_open_records(run, failure);
    if (r < 0)
        return r;
    journal_resumed(run);
    if (damage)
        record_note(&run->record, "%s; it stays as it is, and the run is sealed again", damage);
    note_past(run);
    note_engine(run);
    return record_commit(&run->record, failure);
}
