/* The phases of a run, in their order; those that are more than a few lines have files of their own. */
#include "engine/run/run.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/machine-record.h"
#include "engine/run/nodes/reservation.h"
#include "engine/run/nodes/software.h"
#include "engine/run/run-state.h"
#include "engine/run/state/state.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The small phases ------------------------------------------------------------------------------------
 */

/* For a phase whose steps all run, even after a failure: sets FIRST to WHY if RESULT, the step's, is the
 * first negative one. A later failure becomes a note of the run that begins with STEP. */
static void note_step_failure(struct run *run, const char *step, int result, const struct failure *why,
                              struct failure *first) {
    if (result < 0 && first->code == 0)
        *first = *why;
    else if (result < 0)
        record_note(&run->record, "%s: %s", step, why->text);
}

/* Ends watching, measures the clocks again, reads the kernel logs and the software that ran, runs the
 * teardown commands and journals the agents' own cost. A step that fails does not keep the next from running;
 * the first failure is returned. */
static int phase_collect(struct run *run, struct failure *failure) {
    struct failure first = {0}, why = {0};
    if (!run->set.group)
        return 0;
    node_set_report_news(&run->set);
    node_set_give_up_broken(&run->set);
    note_step_failure(run, "watching", watch_stop(&run->watch, &why), &why, &first);
    if (run->began[RUN_INSPECT])
        note_step_failure(run, "clocks", node_set_measure_clocks(&run->set, RUN_CLOCK_END, &why), &why,
                          &first);
    note_step_failure(run, "the kernels' logs", machine_record_log(&run->set, &why), &why, &first);
    note_step_failure(run, "software", software_record_facts(&run->set, &why), &why, &first);
    if (run->began[RUN_PREPARE])
        note_step_failure(run, "teardown", node_set_tear_down(&run->set, &why), &why, &first);
    node_set_record_costs(&run->set);
    if (first.code < 0)
        *failure = first;
    return first.code;
}

/* Reads the facts of the nodes, makes the plan again if it depends on them, and refuses what the nodes cannot
 * measure. */
static int phase_inspect(struct run *run, struct failure *failure) {
    int r = node_set_inspect(&run->set, failure);
    if (r == 0)
        r = run_plan_for_facts(run, failure);
    if (r == 0)
        r = settling_check_nodes(&run->set, failure);
    return r < 0 ? r : node_set_check_fit(&run->set, failure);
}

/* Notes how the nodes and their software differ from those of the run that this one repeats. Nothing happens
 * in a run that repeats none; a comparison that fails is only noted. */
static void report_differences(struct run *run) {
    cleanup(bind_texts_clear) struct bind_texts sentences = {0};
    struct failure why = {0};
    if (!run->request->compare || !run_origin(run).run_id[0])
        return;
    int r = record_commit(&run->record, &why); /* the nodes are part of run.json */
    r = r < 0 ? r : software_write(&run->set, &why);
    r = r < 0 ? r : run_record_run(run, &why);
    r = r < 0 ? r : run->request->compare(run->record.folder, &sentences, &why);
    for (size_t i = 0; i < sentences.count; i++)
        record_note(&run->record, "%s", sentences.items[i]);
    if (r < 0)
        record_note(&run->record, "the run that is repeated cannot be compared with this one: %s", why.text);
}

/* Sets the controls of all nodes. Then the nodes are as they will be measured, and are compared with those of
 * the repeated run. */
static int phase_control(struct run *run, struct failure *failure) {
    int r = controls_begin(&run->set, failure);
    if (r == 0)
        report_differences(run);
    return r;
}

/* Builds the experiment on the nodes. Sources that were fetched from a node are recorded as inputs of the
 * campaign, and the resolved campaign is written again. */
static int phase_prepare(struct run *run, struct failure *failure) {
    int r = node_set_prepare(&run->set, failure);
    if (r < 0 || run->set.experiment->sources.count == 0)
        return r;
    r = inputs_take_copies(run->record.folder, failure);
    return r < 0 ? r : run_record_design(run, failure);
}

static int phase_measure(struct run *run, struct failure *failure) {
    return measure(&run->watch, &run->progress, failure);
}

/* Restores the controls that this part set. When it ended before the agents of earlier parts were asked, they
 * are ended here, and restore theirs. Both are tried; the first failure is returned. */
static int phase_restore(struct run *run, struct failure *failure) {
    struct failure first = {0}, why = {0};
    note_step_failure(run, "earlier agents", node_set_end_old_agents_before_seal(&run->set, &why), &why,
                      &first);
    note_step_failure(run, "controls", controls_restore(&run->set, &why), &why, &first);
    if (first.code < 0)
        *failure = first;
    return first.code;
}

static int phase_release(struct run *run, struct failure *failure) {
    watch_close(&run->watch);
    return node_set_release(&run->set, failure);
}

/* ---- The order -------------------------------------------------------------------------------------------
 */

/* Exactly one of the functions is set: the phase of nodes, of machine state, or of the whole run. */
struct phase {
    int (*nodes)(struct node_set *set, struct failure *failure);
    int (*state)(struct watch *watch, struct failure *failure);
    int (*run)(struct run *run, struct failure *failure);
};

static const struct phase phases[RUN_PHASES] = {
    [RUN_RESERVE] = {.nodes = node_set_reserve},
    [RUN_DEPLOY] = {.nodes = node_set_deploy},
    [RUN_CONNECT] = {.nodes = node_set_connect},
    [RUN_INSPECT] = {.run = phase_inspect},
    [RUN_PREPARE] = {.run = phase_prepare},
    [RUN_CONTROL] = {.run = phase_control},
    [RUN_WARM_UP] = {.state = warm_up_begin},
    [RUN_MEASURE] = {.run = phase_measure},
    [RUN_COLLECT] = {.run = phase_collect},
    [RUN_RESTORE] = {.run = phase_restore},
    [RUN_SEAL] = {.run = run_seal},
    [RUN_RELEASE] = {.run = phase_release},
};

static int run_phase(struct run *run, const struct phase *phase, struct failure *failure) {
    return phase->nodes   ? phase->nodes(&run->set, failure)
           : phase->state ? phase->state(&run->watch, failure)
                          : phase->run(run, failure);
}

/* Journals and logs FAILURE of the current phase; the first one becomes the reason why the run failed. A
 * failure that only says that a signal interrupted the phase is ignored, because the interruption itself is
 * recorded. */
static void note_failure(struct run *run, const struct failure *failure) {
    /* What gives up because of a signal is no failure of its own. */
    if (failure->kind == FAILURE_INTERRUPTED && (run->record.interrupted || run->record.phase >= RUN_COLLECT))
        return;
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    failure_describe(failure, sentence, sizeof sentence);
    if (!run->record.failed) {
        run->record.failed = true;
        run->why = *failure;
        if (!run->only_reserves)
            record_report_text(&run->record, RUN_EVENT_FAILED, sentence);
    }
    record_log(&run->record, "failed: %s", sentence);
    journal_begin(run->record.journal, "error");
    journal_string(run->record.journal, "phase", run_phase_names[run->record.phase]);
    journal_string(run->record.journal, "sentence", sentence);
    journal_end(run->record.journal);
}

/* A run that only seals has lost its nodes (FAILURE): notes that, and has the later phases leave them alone.
 */
static void seal_without_nodes(struct run *run, const struct failure *failure) {
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    record_note(&run->record, "%s; all units are done, so the run is sealed anyway",
                failure_describe(failure, sentence, sizeof sentence));
    run->set.unreachable_at_seal = true;
}

/* Did FAILURE happen because the testbed took the nodes away, or ended the job? Between deploy and collect
 * the testbed is asked, because nodes may vanish before it has told the engine. True: FAILURE is only logged,
 * and the run has not failed. */
static bool are_nodes_taken_away(struct run *run, const struct failure *failure) {
    const struct testbed_backend *backend = run->set.campaign->testbed.backend;
    enum run_phase phase = run->record.phase;
    bool is_taken = phase == RUN_COLLECT && run->record.interrupted == RUN_REVOKED;
    if (failure->kind != FAILURE_SYSTEM && failure->kind != FAILURE_EXPERIMENT)
        return false;
    if (phase > RUN_DEPLOY && phase < RUN_COLLECT && !run->record.interrupted && run->set.testbed &&
        backend->ask) {
        event_loop_resume(run->set.loop);
        backend->ask(run->set.testbed);
        is_taken = run->record.interrupted && run->record.interrupted != RUN_INTERRUPTED;
    }
    if (is_taken)
        record_log(&run->record, "%s", failure->text);
    return is_taken;
}

/* Marks the run as refused when FAILURE is about the user's input and part 1 has measured nothing yet. A
 * refused run is not sealed, and its folder is removed. */
static void mark_refused(struct run *run, const struct failure *failure) {
    run->refused = !run->record.failed && failure->kind == FAILURE_INPUT && run->past.part_count == 0 &&
                   run->record.phase < RUN_MEASURE;
}

/* Runs PHASE and journals its begin, its end and its failure. Before collect, a phase is skipped once the run
 * has failed or was interrupted; collect and all later phases always run. After a failure to seal, run.json
 * says so. */
static void enter_phase(struct run *run, enum run_phase phase) {
    run->record.phase = phase;
    bool stopped = run->record.failed || run->record.interrupted || run->set.unreachable_at_seal ||
                   (run->only_seals && phase >= RUN_PREPARE);
    bool always = phase >= RUN_COLLECT; /* also after a failure or an interruption */
    if ((stopped && !always) || (phase == RUN_SEAL && run->refused))
        return;
    run->began[phase] = true;
    record_report_text(&run->record, RUN_EVENT_PHASE, run_phase_names[phase]);
    journal_note(run->record.journal, "phase-started", "phase", run_phase_names[phase]);
    record_log(&run->record, "phase %s", run_phase_names[phase]);
    if (phase < RUN_MEASURE)
        record_commit(&run->record, NULL); /* a failure to write shows again at the phase's end */
    /* An interruption stops the loop, which ends all waiting; the last phases need it again. */
    if (always)
        event_loop_resume(run->set.loop);
    struct failure failure = {0};
    bool was_interrupted = run->record.interrupted != RUN_NOT_INTERRUPTED;
    int r = run_phase(run, &phases[phase], &failure);
    if (r < 0 && run->only_seals && phase < RUN_RESTORE)
        seal_without_nodes(run, &failure);
    else if (r < 0 && !are_nodes_taken_away(run, &failure)) {
        mark_refused(run, &failure);
        note_failure(run, &failure);
    }
    bool interrupted_here =
        (run->record.interrupted && !was_interrupted) || failure.kind == FAILURE_INTERRUPTED;
    journal_begin(run->record.journal, "phase-ended");
    journal_string(run->record.journal, "phase", run_phase_names[phase]);
    journal_string(run->record.journal, "status",
                   interrupted_here ? "interrupted"
                   : r < 0          ? "failed"
                                    : "done");
    journal_end(run->record.journal);
    /* A sealed archive has the journal as it was then (run_phase_seal), and the folder has the same. */
    bool unsealed = phase == RUN_SEAL && r < 0;
    if (phase >= RUN_SEAL && !unsealed)
        return;
    if (unsealed && !run->ended_ns)
        run->ended_ns = clock_wall_ns();
    struct failure commit = {0};
    if (record_commit(&run->record, &commit) < 0)
        note_failure(run, &commit);
    if (!unsealed)
        return;
    run->seal_why = failure;
    run->seal_why.kind = FAILURE_SYSTEM;
    run_record_run(run, NULL); /* only the folder says why it has no archive */
}

/* ---- Beginning and end ------------------------------------------------------------------------------------
 */

/* Makes the run's folder, "FOLDER/CAMPAIGN-TIME-ID", and chooses the archive's path beside it. */
static int open_folder(struct run *run, struct failure *failure) {
    const struct run_request *request = run->request;
    int r = file_make_folders(request->folder, failure);
    if (r < 0)
        return r;
    cleanup_free char *parent = realpath(request->folder, NULL);
    if (!parent)
        return failure_set(failure, -errno, "cannot resolve '%s': %s", request->folder, strerror(errno));
    char stamp[CLOCK_TEXT_SIZE];
    clock_format_compact(run->started_ns, stamp);
    run->record.folder = xformat("%s/%s-%s-%.8s", parent, run->set.campaign->name, stamp, run->record.id);
    run->record.files.folder = run->record.folder;
    run->archive = xformat("%s.zip", run->record.folder);
    r = record_make_folder(&run->record, "", failure);
    return r < 0 ? r : file_sync_folder_of(run->record.folder, failure);
}

/* Makes, locks and fills the folder of a new run: its records, the entry "run-started", notes on its options,
 * and its inputs. On failure the folder may be there; the caller removes it. */
static int open_run(struct run *run, struct failure *failure) {
    const struct campaign_overrides *overrides = run->request->overrides;
    const struct campaign_again *again = overrides ? overrides->again : NULL;
    int r = archive_draw_id(run->record.id, failure);
    if (r == 0)
        r = open_folder(run, failure);
    if (r == 0)
        r = run_lock_take(run->record.folder, &run->lock, failure);
    if (r == 0)
        r = run_open_records(run, failure);
    if (r < 0)
        return r;
    journal_begin(run->record.journal, "run-started");
    journal_string(run->record.journal, "run_id", run->record.id);
    journal_integer(run->record.journal, "part", 1);
    journal_string(run->record.journal, "engine", ASSAY_VERSION);
    journal_string(run->record.journal, "campaign", run->set.campaign->name);
    if (again) {
        journal_string(run->record.journal, "based_on", again->origin.run_id);
        journal_string(run->record.journal, "based_on_archive", again->origin.archive);
        journal_string(run->record.journal, "based_on_sha256", again->origin.sha256);
    }
    journal_end(run->record.journal);
    const struct experiment *experiment = run->set.experiment;
    for (size_t i = 0; i < experiment->option_count; i++) {
        const struct experiment_option *option = &experiment->options[i];
        const char *note = experiment_option_note(option);
        if (note)
            record_note(&run->record, "%s = %s: %s", option->factor.about.name, option->value, note);
    }
    return run_record_inputs(run, failure);
}

/* Starts the event loop, the signal handlers and the reservation's deadline of a part whose records are open.
 */
static int begin_part(struct run *run, struct failure *failure) {
    run->set.loop = event_loop_new(failure);
    if (!run->set.loop)
        return failure->code;
    int r = run_watch_signals(run, failure);
    if (r == 0)
        r = reservation_begin(&run->set, run->request->until_ns, failure);
    if (r == 0)
        r = record_commit(&run->record, failure);
    if (r == 0)
        record_report_text(&run->record, RUN_EVENT_STARTED, run->record.folder);
    return r;
}

static void close_run(struct run *run) {
    watch_close(&run->watch);
    node_set_clear(&run->set);
    for (size_t i = 0; i < RUN_SIGNALS; i++)
        event_source_remove(run->signals[i]);
    event_loop_free(run->set.loop);
    run_progress_clear(&run->progress);
    record_clear(&run->record);
    plan_free(run->set.plan);
    run_history_clear(&run->past);
    run_lock_free(run->lock);
    free(run->archive);
}

/* Sets the caller's outcome and returns the run's result: why it could not be sealed, why it failed, why it
 * is incomplete, or 0. *RET_ARCHIVE is set whenever the archive was sealed. The folder of a refused run is
 * removed. */
static int conclude(struct run *run, char **ret_archive, struct failure *failure) {
    struct run_outcome *outcome = run->request->outcome;
    if (run->refused) {
        run->ended_ns = clock_wall_ns();
        file_remove_tree(run->record.folder, NULL);
    }
    record_report_text(&run->record, RUN_EVENT_ENDED, run_end_word(run));
    if (outcome) {
        outcome->reservation_over =
            (run->record.interrupted == RUN_DEADLINE || run->record.interrupted == RUN_REVOKED) &&
            !run->record.failed;
        outcome->units_done = run->record.units->done - run->units_before;
        outcome->folder = xstrdup(run->record.folder);
    }
    if (run->seal_why.code) {
        *failure = run->seal_why;
        bool is_full = failure->code == -ENOSPC || failure->code == -EDQUOT,
             is_limited = failure->code == -EFBIG, is_secret = failure->code == -EKEYREJECTED;
        bool had_failed = run->record.failed && strcmp(run->why.text, failure->text) != 0;
        return failure_prefix(
            failure, "%s%sthe run could not be sealed and stays in '%s'%s", had_failed ? run->why.text : "",
            had_failed ? "; and " : "", run->record.folder,
            is_full      ? "; free space on its disk, then continue the run with 'assay resume'"
            : is_limited ? "; set a larger 'ulimit -f', then continue the run with 'assay resume'"
            : is_secret  ? "; nothing is lost, and 'assay resume' seals the run when the secret is gone"
                         : "");
    }
    if (run->began[RUN_SEAL])
        *ret_archive = take_pointer(run->archive);
    if (run->record.failed) {
        *failure = run->why;
        return failure->code;
    }
    return run_ending_failure(run, failure);
}

/* Sets up RUN, which is zeroed, for part 1 of REQUEST. RUN must not move afterwards: its members point at
 * each other. */
static void init_run(struct run *run, const struct run_request *request) {
    run->request = request;
    run->record = (struct run_record){.observer = request->observer, .part = 1};
    run->set = (struct node_set){.record = &run->record,
                                 .installation = request->installation,
                                 .campaign = request->campaign,
                                 .experiment = request->campaign->experiment,
                                 .past = &run->past};
    run->watch.set = &run->set;
    run->started_ns = clock_wall_ns();
}

/* Runs every phase in order; the result is that of conclude(). */
static int run_all_phases(struct run *run, char **ret_archive, struct failure *failure) {
    for (int phase = 0; phase < RUN_PHASES; phase++)
        enter_phase(run, (enum run_phase)phase);
    return conclude(run, ret_archive, failure);
}

/* Does everything before the first phase: plan, folder, records, event loop. On failure the folder is
 * removed, because no node was touched. */
static int begin_run(struct run *run, const struct run_request *request, struct failure *failure) {
    init_run(run, request);
    int r = run_make_plan(run, NULL, failure);
    if (r == 0)
        r = open_run(run, failure);
    if (r == 0)
        r = begin_part(run, failure);
    /* No node was touched and nothing was measured: there is nothing to keep. */
    if (r < 0 && run->record.folder)
        file_remove_tree(run->record.folder, NULL);
    return r;
}

int run_execute(const struct run_request *request, char **ret_archive, struct failure *failure) {
    cleanup(close_run) struct run run = {0};
    struct failure own = {0}; /* the caller may not want the sentence, but the record does */
    failure = failure ? failure : &own;
    *ret_archive = NULL;
    int r = begin_run(&run, request, failure);
    return r < 0 ? r : run_all_phases(&run, ret_archive, failure);
}

/* ---- A reservation alone --------------------------------------------------------------------------------
 */

/* Gives the reservation back after it failed or was interrupted, and removes the folder; returns why. When
 * the nodes cannot be given back, the folder stays, because 'assay release FOLDER' needs it. */
static int undo_reservation(struct run *run, struct failure *failure) {
    struct failure why = {0};
    event_loop_resume(run->set.loop);
    run->record.phase = RUN_RELEASE;
    if (run->record.failed)
        *failure = run->why;
    else
        failure_set_kind(failure, FAILURE_INTERRUPTED, -EINTR, "interrupted; no nodes are reserved");
    if (node_set_release(&run->set, &why) < 0)
        return failure_set_kind(failure, failure->kind, failure->code, "%s; the run's folder is '%s'",
                                why.text, run->record.folder);
    file_remove_tree(run->record.folder, NULL);
    return failure->code;
}

/* Reserves and leaves the nodes to the testbed, which keeps them when this process ends. The reservation is
 * journalled first. */
int run_reserve(const struct run_request *request, char **ret_folder, struct failure *failure) {
    cleanup(close_run) struct run run = {.only_reserves = true};
    const struct testbed_backend *backend = request->campaign->testbed.backend;
    if (!backend->leave)
        return failure_input(failure, request->campaign->document->file, 0, 0,
                             "the testbed '%s' has no reservations; expected one that has, such as "
                             "slurm or oar",
                             backend->name);
    int r = begin_run(&run, request, failure);
    if (r < 0)
        return r;
    enter_phase(&run, RUN_RESERVE);
    enter_phase(&run, RUN_DEPLOY);
    if (run.record.failed || run.record.interrupted)
        return undo_reservation(&run, failure);
    journal_begin(run.record.journal, "reservation-kept");
    journal_end(run.record.journal);
    r = record_commit(&run.record, failure); /* what is reserved is known, whatever comes of this */
    node_group_free(take_pointer(run.set.group));
    backend->leave(take_pointer(run.set.testbed));
    *ret_folder = xstrdup(run.record.folder);
    return r;
}

int run_begin(const struct run_request *request, char **ret_folder, struct failure *failure) {
    cleanup(close_run) struct run run = {0};
    init_run(&run, request);
    int r = run_make_plan(&run, NULL, failure);
    if (r == 0)
        r = open_run(&run, failure);
    if (r == 0)
        *ret_folder = xstrdup(run.record.folder);
    else if (run.record.folder)
        file_remove_tree(run.record.folder, NULL);
    return r;
}

/* ---- Another part ---------------------------------------------------------------------------------------
 */

static void note_reclaimed(void *context, const char *sentence) {
    record_report_text(context, RUN_EVENT_NOTE, sentence);
}

/* Continues the run with another part. A run that was completed only gives back what is still reserved. */
int run_resume(const struct run_request *request, const struct inputs *inputs, char **ret_archive,
               struct failure *failure) {
    cleanup(close_run) struct run run = {0};
    struct failure own = {0};
    failure = failure ? failure : &own;
    *ret_archive = NULL;
    init_run(&run, request);
    int r = run_make_plan(&run, inputs->facts.known ? &inputs->facts : NULL, failure);
    if (r == 0)
        r = inputs_check_plan(inputs, run.set.plan, failure);
    if (r == 0)
        r = inputs_check_source(inputs, failure);
    if (r == 0)
        r = run_reopen(&run, inputs, ret_archive, failure);
    if (r == 0 && *ret_archive && run_history_is_reserved(&run.past, clock_wall_ns()) &&
        request->campaign->testbed.backend->reclaim)
        r = run_give_back(run.record.folder, &run.past, request->campaign, request->installation,
                          note_reclaimed, &run.record, failure);
    if (r < 0 || *ret_archive)
        return r;
    r = begin_part(&run, failure);
    return r < 0 ? r : run_all_phases(&run, ret_archive, failure);
}
