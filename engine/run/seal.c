/* The files that a run writes about itself: its inputs, run.json, and the archive that it is sealed into. */
#include "archive-format/layout.h"
#include "engine/run/nodes/software.h"
#include "engine/run/run-state.h"

#include "archive-format/redaction.h"
#include "archive-format/secrets.h"
#include "archive-format/staging.h"
#include "archive-format/writer.h"
#include "engine/documents/document.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/run/campaign/copies.h"
#include "engine/run/campaign/plan-describe.h"
#include "engine/run/campaign/source-files.h"
#include "engine/run/campaign/tables.h"
#include "engine/run/measure/unit-tables.h"
#include "engine/run/record/summary.h"

#include <errno.h>
#include <fts.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

/* ---- Inputs ----------------------------------------------------------------------------------------------
 */

int run_record_design(struct run *run, struct failure *failure) {
    cleanup(json_cleanup) cJSON *resolved = plan_resolve(run->set.plan);
    cleanup(text_clear) struct text table;
    cleanup_free char *campaign = record_path(&run->record, ARCHIVE_CAMPAIGN_RESOLVED),
                      *design = record_path(&run->record, ARCHIVE_DESIGN);
    text_init(&table, 1 << 30);
    /* The resolved campaign names the table, so it is replaced last: until then it has what makes the table.
     */
    int r = 0;
    if (run->set.plan->design->column_count > 0)
        r = design_append(run->set.plan->design, NULL, &table, failure);
    if (r == 0 && table.length > 0)
        r = file_replace(design, table.bytes, table.length, 0666, failure);
    return r < 0 ? r : json_write_file(campaign, resolved, failure);
}

/* Copies the experiment and its sources into the run's folder. What was left out is logged or noted. */
static int make_copies(struct run *run, struct bind_texts *left_out, struct failure *failure) {
    cleanup(text_clear) struct text experiment, source;
    text_init(&experiment, FAILURE_TEXT_SIZE);
    text_init(&source, FAILURE_TEXT_SIZE);
    int r = copies_make(run->set.experiment, run->record.folder, run->request->folder,
                        provenance_source_bytes(run->set.campaign->provenance), left_out, &experiment,
                        &source, failure);
    if (r == 0 && experiment.length)
        record_log(&run->record, "%s", experiment.bytes);
    if (r == 0 && source.length)
        record_note(&run->record, "%s", source.bytes);
    if (r == 0 && left_out->count > 0) {
        cleanup(text_clear) struct text names;
        text_init(&names, FAILURE_TEXT_SIZE);
        source_files_list_secrets(left_out, &names);
        record_note(&run->record,
                    "left out of the archive, and of what nodes get, because they may hold secrets:%s",
                    names.bytes);
    }
    return r;
}

int run_record_plan(struct run *run, struct failure *failure) {
    int r = record_commit(&run->record, failure);
    if (r == 0)
        r = inputs_take_plan(run->record.folder, run->set.plan, failure);
    return r < 0 ? r : run_record_design(run, failure);
}

/* Writes everything that is known before a node is touched. The campaign is checked for secrets now, sooner
 * than when everything is measured. */
int run_record_inputs(struct run *run, struct failure *failure) {
    cleanup_free char *path = record_path(&run->record, ARCHIVE_CAMPAIGN);
    cleanup(bind_texts_clear) struct bind_texts left_out = {0};
    const struct text *campaign = &run->set.campaign->bytes;
    int r = file_replace(path, campaign->bytes, campaign->length, 0666, failure);
    if (r == 0)
        r = run_record_design(run, failure);
    if (r == 0) /* sooner than when all is measured */
        r = secrets_check_file(path, run->set.campaign->path, failure);
    if (r == 0 && file_exists(run->set.experiment->file)) /* which would be left out of the copies */
        r = secrets_check_file(run->set.experiment->file, run->set.experiment->file, failure);
    if (r == 0)
        r = make_copies(run, &left_out, failure);
    if (r == 0)
        r = inputs_write(run->record.folder, run->set.plan, run->request->overrides, &left_out, failure);
    if (r == 0)
        r = tables_write_package(run->set.plan, run->record.folder, failure);
    if (r == 0)
        r = record_commit(&run->record, failure);
    return r < 0 ? r : run_record_run(run, failure);
}

/* ---- run.json --------------------------------------------------------------------------------------------
 */

/* Writes run.json. The committed journal says what has happened, the plan says the rest. */
int run_record_run(struct run *run, struct failure *failure) {
    cleanup(run_history_clear) struct run_history history = {0};
    cleanup(archive_run_clear) struct archive_run summary = {.kind = ARCHIVE_OF_RUN};
    cleanup_free char *path = record_path(&run->record, ARCHIVE_RUN);
    int r = run_history_read(run->record.folder, NULL, &history, failure);
    if (r < 0)
        return r;
    archive_engine_describe(&summary.engine);
    run_history_summarize(&history, &summary);
    plan_summarize(run->set.plan, &summary);
    for (size_t i = 0; run->request->command && run->request->command[i]; i++)
        bind_texts_add(&summary.command, run->request->command[i]);
    return archive_run_write(path, &summary, failure);
}

/* ---- seal ------------------------------------------------------------------------------------------------
 */

/* Journals the engine's processor time and memory. The engine may share a measured machine, which readers
 * should know. */
static void record_own_cost(struct run *run) {
    struct rusage usage;
    if (getrusage(RUSAGE_SELF, &usage) < 0)
        return;
    journal_begin(run->record.journal, "engine-cost");
    journal_integer(run->record.journal, "user_us",
                    (int64_t)usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec);
    journal_integer(run->record.journal, "system_us",
                    (int64_t)usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec);
    journal_integer(run->record.journal, "rss_peak_bytes", (int64_t)usage.ru_maxrss * 1024);
    journal_end(run->record.journal);
}

/* "dgemm on 12 nodes"; spares that were not needed are not counted. The caller frees. */
static char *describe_title(const struct run *run) {
    size_t nodes = 0;
    for (size_t i = 0; i < run->set.count; i++)
        nodes += run->set.items[i].state != NODE_SPARE;
    return nodes == 1 ? xformat("%s on %s", run->set.campaign->name, run->set.items[0].name)
                      : xformat("%s on %zu nodes", run->set.campaign->name, nodes);
}

struct archive_origin run_origin(struct run *run) {
    const struct campaign_overrides *overrides = run->request->overrides;
    struct run_history *past = &run->past;
    if (overrides && overrides->again)
        return overrides->again->origin;
    return (struct archive_origin){past->based_on, past->based_on_archive,
                                   past->based_on_sha256[0] ? past->based_on_sha256 : NULL};
}

/* The lines on results with which README.md begins; the caller frees. NULL, and README.md shows the first
 * lines of results.csv, when nobody describes results or results.csv is larger than BYTES_MAX. */
static char *describe_result(const struct run *run, const char *folder) {
    enum { BYTES_MAX = 64 << 20 };
    uint64_t bytes = 0;
    cleanup_free char *path = record_path(&run->record, ARCHIVE_RESULTS);
    bool is_known = run->request->describe_result && file_size(path, &bytes, NULL) == 0 && bytes <= BYTES_MAX;
    return is_known ? run->request->describe_result(folder) : NULL;
}

/* The user name that the campaign's testbed logs in with; NULL: none is named. */
static const char *find_user(const struct campaign *campaign) {
    const struct document_node *user =
        document_get(document_get(campaign->document->root, "testbed"), "user");
    return user ? user->text : NULL;
}

/* Replaces *TEXT, which is freed, by its redacted form. NULL stays NULL. */
static int redact_text(struct redaction *redaction, char **text, struct failure *failure) {
    cleanup(text_clear) struct text hidden;
    text_init(&hidden, 1 << 20);
    if (!*text)
        return 0;
    int r = redaction_apply(redaction, *text, strlen(*text), &hidden);
    if (r < 0)
        return failure_set(failure, r, "cannot redact '%.40s...': %s", *text, strerror(-r));
    free(*text);
    *text = xstrdup(hidden.bytes);
    return 0;
}

/* Copies the run's folder without user names and addresses. *RET is the copy's path, which the caller frees
 * after it has removed the folder. TEXTS, NULL-ended, are redacted in place. */
static int copy_redacted(struct run *run, char **const *texts, char **ret, struct failure *failure) {
    cleanup(redaction_free) struct redaction *redaction = NULL;
    cleanup_free char *folder = record_path(&run->record, ".redacted");
    const char *const users[] = {find_user(run->set.campaign), NULL};
    cleanup(text_clear) struct text stayed;
    text_init(&stayed, FAILURE_TEXT_SIZE);
    int r = redaction_new(true, users, &redaction, failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < run->set.count; i++)
        redaction_keep(redaction, run->set.items[i].name);
    redaction_keep(redaction, run->set.campaign->name);
    redaction_keep(redaction, run->set.experiment->name);
    r = file_remove_tree(folder, failure);
    if (r == 0)
        r = redaction_copy(redaction, run->record.folder, folder, &stayed, failure);
    for (; r == 0 && *texts; texts++)
        r = redact_text(redaction, *texts, failure);
    if (r < 0)
        return r;
    record_report_text(&run->record, RUN_EVENT_NOTE,
                       "the archive is redacted; the run's folder still has everything");
    if (stayed.length > 0)
        record_note(
            &run->record,
            "not redacted, though the name of a user is in them, because the run was made from them or "
            "measured them as they are: %s",
            stayed.bytes);
    *ret = take_pointer(folder);
    return 0;
}

/* Packs the run's folder into run->archive; where the campaign says `redact`, a redacted copy, which is
 * removed then. SHA256 is the archive's. */
static int seal_folder(struct run *run, char sha256[static HASH_HEX_SIZE], struct failure *failure) {
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    const struct archive_origin origin = run_origin(run);
    const char *summary = run->set.campaign->description ? run->set.campaign->description
                          : run->set.experiment->summary ? run->set.experiment->summary
                                                         : run->set.experiment->name;
    cleanup(text_clear) struct text typed; /* as people type it */
    text_init(&typed, 64 << 10);
    if (run->request->command)
        text_append_command(&typed, run->request->command);
    cleanup_free char *title = describe_title(run), *about = xstrdup(summary),
                      *command = xstrdup(typed.bytes), *error = NULL, *copy = NULL;
    if (run->record.failed)
        error = xstrdup(failure_describe(&run->why, sentence, sizeof sentence));
    char **const texts[] = {&about, &command, &error, NULL};
    int r = run->set.campaign->redact ? copy_redacted(run, texts, &copy, failure) : 0;
    if (r < 0)
        return r;
    cleanup_free char *result = describe_result(run, copy ? copy : run->record.folder);
    struct archive_description description = {
        .name = title,
        .text = about,
        .license = run->set.campaign->license,
        .status = run_end_word(run),
        .error = error,
        .started_ns = run->started_ns,
        .ended_ns = run->ended_ns,
        .run_id = run->record.id,
        .based_on = origin.run_id[0] ? &origin : NULL,
        .engine_version = ASSAY_VERSION,
        .command = command,
        .agent = run->set.campaign->author,
        .result = result,
    };
    r = archive_seal(copy ? copy : run->record.folder, run->archive, &description, sha256, failure);
    if (copy)
        file_remove_tree(copy, NULL);
    return r;
}

/* The kind of failure, that is the exit code, with which the engine will end unless sealing or releasing
 * fails. */
static enum failure_kind expect_exit(const struct run *run) {
    struct failure ending = {0};
    if (run->record.failed)
        return run->why.kind ? run->why.kind : FAILURE_SYSTEM;
    run_ending_failure(run, &ending);
    return ending.kind;
}

/* Writes "sealing", the last entry of the archive's journal, with MISSING, the number of units that were not
 * measured. An entry on the end of this phase would come too late for the archive. */
static void journal_sealing(struct run *run, uint64_t missing) {
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    run->ended_ns = clock_wall_ns();
    if (run->record.failed)
        failure_describe(&run->why, sentence, sizeof sentence);
    else
        run_describe_ending(run, sentence, sizeof sentence);
    journal_begin(run->record.journal, "sealing");
    journal_string(run->record.journal, "status", run_end_word(run));
    journal_string(run->record.journal, "error", sentence[0] ? sentence : NULL);
    journal_string(run->record.journal, "archive", file_base_name(run->archive));
    journal_integer(run->record.journal, "units_missing", (int64_t)missing);
    journal_integer(run->record.journal, "exit_code", expect_exit(run));
    if (run->progress.settling.rule)
        journal_integer(run->record.journal, "rows_settled",
                        (int64_t)settling_count(&run->progress.settling));
    journal_end(run->record.journal);
}

/* Writes the archive's size and hash into the folder's journal, so that a later check can tell whether it is
 * whole. The archive's own journal cannot have this entry. */
static int journal_sealed(struct run *run, const char *sha256, struct failure *failure) {
    uint64_t bytes;
    int r = file_size(run->archive, &bytes, failure);
    if (r < 0)
        return r;
    journal_begin(run->record.journal, "sealed");
    journal_string(run->record.journal, "archive", file_base_name(run->archive));
    journal_integer(run->record.journal, "bytes", (int64_t)bytes);
    journal_string(run->record.journal, "sha256", sha256);
    journal_end(run->record.journal);
    return record_commit(&run->record, failure);
}

/* Notes how many bytes each kind of content of the archive has, so that the user can choose `provenance`. If
 * the folder cannot be scanned nothing is noted: sealing fails next and says why. */
static void note_sizes(struct run *run) {
    static const struct {
        const char *words;
        const char *folders[4];
    } parts[] = {
        {"results", {ARCHIVE_RESULTS_FOLDER "/"}},
        {"nodes", {ARCHIVE_NODES "/", "testbed/"}},
        {"sources", {ARCHIVE_EXPERIMENT "/", ARCHIVE_INPUT_FILES "/", ARCHIVE_SOURCE, ARCHIVE_SOFTWARE "/"}},
        {"journal and logs", {ARCHIVE_JOURNAL, ARCHIVE_LOGS "/"}},
    };
    cleanup(staging_clear) struct staging staging = {0};
    cleanup(text_clear) struct text words;
    text_init(&words, FAILURE_TEXT_SIZE);
    if (staging_scan(run->record.folder, &staging, NULL) < 0)
        return;
    for (size_t i = 0; i < sizeof parts / sizeof *parts; i++) {
        char size[NUMBER_TEXT_SIZE];
        uint64_t bytes = 0;
        for (size_t k = 0; k < 4 * staging.count; k++) {
            const char *folder = parts[i].folders[k % 4], *name = staging.files[k / 4].name;
            if (folder && strncmp(name, folder, strlen(folder)) == 0)
                bytes += staging.files[k / 4].size;
        }
        text_printf(&words, "%s%s %s", i ? ", " : "", parts[i].words,
                    number_describe_bytes((double)bytes, size));
    }
    record_note(&run->record, "recorded (provenance: %s): %s",
                run->set.campaign->provenance == PROVENANCE_LEAN ? "lean" : "full", words.bytes);
}

/* Renames to PATH.torn the file of a node that is named as JSON and was cut short. */
static int check_json(struct run_record *record, const char *path, struct failure *failure) {
    cleanup(text_clear) struct text bytes;
    cleanup(document_cleanup) struct document *document = NULL;
    text_init(&bytes, 64 << 20);
    int r = file_read(path, &bytes, failure);
    if (r < 0 || document_parse_json(path, bytes.bytes, bytes.length, &document, NULL) == 0)
        return r;
    cleanup_free char *torn = xformat("%s.torn", path);
    if (rename(path, torn) < 0)
        return failure_set(failure, -errno, "cannot rename '%s' to '%s': %s", path, torn, strerror(errno));
    record_note(record, "'%s' was cut short by a crash; what is left of it is '%s.torn'", path,
                file_base_name(path));
    return 0;
}

/* What an earlier part of the run wrote about nodes and had not synced (files.h), a crash may have cut short.
 */
static int set_torn_files_apart(struct run_record *record, struct failure *failure) {
    cleanup_free char *folder = record_path(record, ARCHIVE_NODES);
    FTS *tree = fts_open((char *const[]){folder, NULL}, FTS_PHYSICAL | FTS_NOCHDIR, NULL);
    int r = tree ? 0 : failure_set(failure, -errno, "cannot read '%s': %s", folder, strerror(errno));
    for (FTSENT *at; r == 0 && (at = fts_read(tree));)
        if (at->fts_info == FTS_D && strcmp(at->fts_name, "raw") == 0)
            fts_set(tree, at, FTS_SKIP);
        else if (at->fts_info == FTS_F && text_ends_in(at->fts_name, ".json"))
            r = check_json(record, at->fts_path, failure);
    if (tree)
        fts_close(tree);
    return r;
}

/* Writes every file that is made only at the end (missing units, tables, software, run.json), then packs the
 * archive. SHA256 is the archive's. */
static int make_archive(struct run *run, char sha256[static HASH_HEX_SIZE], struct failure *failure) {
    const struct testbed_backend *testbed = run->set.campaign->testbed.backend;
    uint64_t missing = 0;
    if (run->set.testbed && testbed->collect)
        testbed->collect(run->set.testbed);
    unit_tables_write(&run->set);
    int r = run->record.part > 1 ? set_torn_files_apart(&run->record, failure) : 0;
    if (r == 0)
        r = run_record_missing(run, &missing, failure);
    if (r == 0)
        r = settling_record(&run->progress.settling, failure);
    if (r == 0)
        r = tables_write_package(run->set.plan, run->record.folder, failure);
    if (r < 0)
        return r;
    record_own_cost(run);
    note_sizes(run);
    journal_sealing(run, missing);
    r = record_commit(&run->record, failure);
    if (r == 0)
        r = software_write(&run->set, failure);
    if (r == 0)
        r = run_record_run(run, failure);
    return r < 0 ? r : seal_folder(run, sha256, failure);
}

/* The seal phase. Room on the disk that was kept for the end is freed first. */
int run_seal(struct run *run, struct failure *failure) {
    char sha256[HASH_HEX_SIZE];
    record_release_reserve(&run->record, RECORD_RESERVE_LAST);
    int r = make_archive(run, sha256, failure);
    record_release_reserve(&run->record, 0);
    if (r == 0)
        r = journal_sealed(run, sha256, failure);
    if (r < 0)
        return r;
    record_report_event(&run->record, &(struct run_event){.kind = RUN_EVENT_SEALED,
                                                          .text = run->archive,
                                                          .sha256 = sha256,
                                                          .units_done = run->record.units->done,
                                                          .units_failed = run->record.units->failed,
                                                          .units_total = run->record.units_planned,
                                                          .seconds_left = -1});
    return 0;
}
