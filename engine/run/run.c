/* The phases of a run, in their order; those that are more than a few lines have files of their own. */
#include "engine/run/run.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/out.h"
#include "engine/run/nodes/software.h"
#include "engine/run/run-state.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- The small phases ------------------------------------------------------------------------------------
 */

static int phase_reserve(struct run *run, struct failure *failure) {
    /* Agents of parts before may still be there, with folders that they will remove. */
    cleanup_free char *id = run->part > 1 ? xformat("%s-%u", run->id, run->part) : xstrdup(run->id);
    struct testbed_request request = {
        .loop = run->loop,
        .installation = run->request->installation,
        .run_id = id,
        .run_name = run->campaign->name,
        .folder = run->folder,
        .workspace = run->campaign->workspace,
    };
    const struct testbed_choice *testbed = &run->campaign->testbed;
    int r = testbed->backend->reserve(testbed->settings, &request, &run->testbed, failure);
    if (r < 0)
        return r;
    size_t count = testbed->backend->node_count(run->testbed), spares = testbed_spare_nodes(testbed);
    run->nodes = xcalloc(count + spares, sizeof *run->nodes);
    run->node_count = count + spares;
    for (size_t i = 0; i < count + spares; i++) {
        run->nodes[i].number = i;
        run->nodes[i].warm_temperature = NAN;
        run->nodes[i].name = testbed->backend->node_name(run->testbed, i);
        run_node_enter(run, &run->nodes[i], i < count ? NODE_IN : NODE_SPARE);
        if (i < count)
            journal_note(run->journal, "node", "name", run->nodes[i].name);
    }
    if (run->part > 1) {
        r = run_check_node_names(run, failure);
        spares_recall(run, &run->past);
    }
    return r < 0 ? r : run_meet_reservation(run, failure);
}

/* The first failure counts; what follows is tried all the same, and said. */
static void note_also(struct run *run, const char *what, int result, const struct failure *why,
                      struct failure *first) {
    if (result < 0 && first->code == 0)
        *first = *why;
    else if (result < 0)
        run_note(run, "%s: %s", what, why->text);
}

/* Takes what the nodes still have: how their clocks stand now, what software ran, what the agents cost. */
static int phase_collect(struct run *run, struct failure *failure) {
    struct failure first = {0}, why = {0};
    if (!run->group)
        return 0;
    run_tell_news(run);
    run_give_up_broken(run);
    note_also(run, "watching", watch_stop(run, &why), &why, &first);
    if (run->began[RUN_INSPECT])
        note_also(run, "clocks", run_measure_clocks(run, RUN_CLOCK_END, &why), &why, &first);
    note_also(run, "software", software_record_facts(run, &why), &why, &first);
    note_also(run, "teardown", run_teardown(run, &why), &why, &first);
    run_record_agent_costs(run);
    if (first.code < 0)
        *failure = first;
    return first.code;
}

/* ---- The order -------------------------------------------------------------------------------------------
 */

struct phase {
    int (*act)(struct run *run, struct failure *failure);
    bool always; /* also after a failure or an interruption */
};

static const struct phase phases[RUN_PHASES] = {
    [RUN_RESERVE] = {phase_reserve, false},     [RUN_DEPLOY] = {run_phase_deploy, false},
    [RUN_CONNECT] = {run_phase_connect, false}, [RUN_INSPECT] = {run_phase_inspect, false},
    [RUN_PREPARE] = {run_phase_prepare, false}, [RUN_CONTROL] = {run_phase_control, false},
    [RUN_WARM_UP] = {run_phase_warm_up, false}, [RUN_MEASURE] = {run_phase_measure, false},
    [RUN_COLLECT] = {phase_collect, true},      [RUN_RESTORE] = {run_phase_restore, true},
    [RUN_SEAL] = {run_phase_seal, true},        [RUN_RELEASE] = {run_phase_release, true},
};

static void note_failure(struct run *run, const struct failure *failure) {
    /* What gives up because of a signal is no failure of its own. */
    if (failure->kind == FAILURE_INTERRUPTED && (run->interrupted || run->phase >= RUN_COLLECT))
        return;
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    failure_describe(failure, sentence, sizeof sentence);
    if (!run->failed) {
        run->failed = true;
        run->why = *failure;
        run_tell(run, RUN_EVENT_FAILED, sentence);
    }
    run_log(run, "failed: %s", sentence);
    journal_begin(run->journal, "error");
    journal_string(run->journal, "phase", run_phase_names[run->phase]);
    journal_string(run->journal, "sentence", sentence);
    journal_end(run->journal);
}

/* Nodes on which nothing is left to do do not keep a run from being sealed. */
static void give_up_nodes(struct run *run, const struct failure *failure) {
    char sentence[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    run_note(run, "%s; all units are done, so the run is sealed all the same",
             failure_describe(failure, sentence, sizeof sentence));
    run->nodes_given_up = true;
}

/* One phase: journalled at both ends. Its failure is noted, and decides what follows. */
static void enter_phase(struct run *run, enum run_phase phase) {
    run->phase = phase;
    bool stopped =
        run->failed || run->interrupted || run->nodes_given_up || (run->only_seals && phase >= RUN_PREPARE);
    if (stopped && !phases[phase].always)
        return;
    run->began[phase] = true;
    run_tell(run, RUN_EVENT_PHASE, run_phase_names[phase]);
    journal_note(run->journal, "phase-started", "phase", run_phase_names[phase]);
    run_log(run, "phase %s", run_phase_names[phase]);
    if (phase < RUN_MEASURE)
        run_commit(run, NULL); /* a failure to write shows again at the phase's end */
    /* An interruption stops the loop, which ends all waiting; the last phases need it again. */
    if (phases[phase].always)
        event_loop_resume(run->loop);
    struct failure failure = {0};
    bool was_interrupted = run->interrupted != RUN_GOES_ON;
    int r = phases[phase].act(run, &failure);
    if (r < 0 && run->only_seals && phase < RUN_RESTORE)
        give_up_nodes(run, &failure);
    else if (r < 0)
        note_failure(run, &failure);
    bool interrupted_here = (run->interrupted && !was_interrupted) || failure.kind == FAILURE_INTERRUPTED;
    journal_begin(run->journal, "phase-ended");
    journal_string(run->journal, "phase", run_phase_names[phase]);
    journal_string(run->journal, "status", interrupted_here ? "interrupted" : r < 0 ? "failed" : "done");
    journal_end(run->journal);
    /* A sealed archive has the journal as it was then (run_phase_seal), and the folder has the same. */
    bool unsealed = phase == RUN_SEAL && r < 0;
    if (phase >= RUN_SEAL && !unsealed)
        return;
    struct failure commit = {0};
    if (run_commit(run, &commit) < 0)
        note_failure(run, &commit);
    if (!unsealed)
        return;
    run->seal_why = failure;
    run->seal_why.kind = FAILURE_SYSTEM;
    run_record_run(run, NULL); /* only the folder says why it has no archive */
}

/* ---- Beginning and end ------------------------------------------------------------------------------------
 */

/* A random UUID (RFC 4122, version 4). */
static int draw_uuid(char uuid[static 40], struct failure *failure) {
    cleanup(text_clear) struct text drawn;
    text_init(&drawn, 64);
    int r = file_read("/proc/sys/kernel/random/uuid", &drawn, failure);
    if (r == 0)
        snprintf(uuid, 40, "%.36s", drawn.bytes);
    return r;
}

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
    run->folder = xformat("%s/%s-%s-%.8s", parent, run->campaign->name, stamp, run->id);
    run->files.folder = run->folder;
    run->archive = xformat("%s.zip", run->folder);
    r = run_make_folder(run, "", failure);
    return r < 0 ? r : file_sync_folder_of(run->folder, failure);
}

static int open_run(struct run *run, struct failure *failure) {
    int r = draw_uuid(run->id, failure);
    if (r == 0)
        r = open_folder(run, failure);
    if (r == 0)
        r = run_lock_take(run->folder, &run->lock, failure);
    if (r == 0)
        r = run_open_records(run, failure);
    if (r < 0)
        return r;
    journal_begin(run->journal, "run-started");
    journal_string(run->journal, "run_id", run->id);
    journal_integer(run->journal, "part", 1);
    journal_string(run->journal, "engine", ASSAY_VERSION);
    journal_string(run->journal, "campaign", run->campaign->name);
    journal_end(run->journal);
    return run_record_inputs(run, failure);
}

/* What every part needs once its records are open. */
static int begin_part(struct run *run, struct failure *failure) {
    run->loop = event_loop_new(failure);
    if (!run->loop)
        return failure->code;
    int r = run_watch_signals(run, failure);
    if (r == 0)
        r = run_begin_reservation(run, failure);
    if (r == 0)
        r = run_commit(run, failure);
    if (r == 0)
        run_tell(run, RUN_EVENT_STARTED, run->folder);
    return r;
}

static void close_run(struct run *run) {
    event_source_remove(run->news_timer);
    event_source_remove(run->give_up);
    event_source_remove(run->deadline_timer);
    watch_free(take_pointer(run->watch));
    node_group_free(run->group);
    for (size_t i = 0; i < run->node_count; i++) {
        struct run_node *node = &run->nodes[i];
        node_facts_free(node->facts);
        free(node->agent_path);
        free(node->news);
        node_control_record_clear(&node->control);
        cJSON_Delete(node->warm_up);
        free(node->cpu_model);
        free(node->out_sentence);
        free(node->slow);
        free(node->cores);
        cJSON_Delete(node->software);
        experiment_arguments_free(node->environment);
    }
    free(run->nodes);
    if (run->testbed)
        run->campaign->testbed.backend->release(run->testbed, NULL);
    for (size_t i = 0; i < RUN_SIGNALS; i++)
        event_source_remove(run->signals[i]);
    event_loop_free(run->loop);
    run_files_clear(&run->files);
    journal_close(run->journal);
    append_file_close(run->results);
    append_file_close(run->log);
    plan_free(run->plan);
    ledger_free(run->ledger);
    free(run->expected_seconds);
    unit_times_free(run->times);
    settling_free(run->settling);
    run_history_clear(&run->past);
    run_lock_free(run->lock);
    free(run->folder);
    free(run->archive);
}

/* What the caller gets when the run is over. */
static int conclude(struct run *run, char **ret_archive, struct failure *failure) {
    struct run_outcome *outcome = run->request->outcome;
    run_tell(run, RUN_EVENT_ENDED, run_status(run));
    if (outcome) {
        outcome->at_deadline = run->interrupted == RUN_DEADLINE && !run->failed;
        outcome->units_done = run->units->done - run->units_before;
        outcome->folder = xstrdup(run->folder);
    }
    if (run->seal_why.code) {
        *failure = run->seal_why;
        return failure_prefix(failure, "%s%sthe run could not be sealed and stays in '%s'",
                              run->failed ? run->why.text : "", run->failed ? "; and " : "", run->folder);
    }
    *ret_archive = take_pointer(run->archive);
    if (run->failed) {
        *failure = run->why;
        return failure->code;
    }
    return run_judge_ending(run, failure);
}

/* FACTS: those that the parts before have measured with; NULL: none has. */
static int make_plan(struct run *run, const struct plan_facts *facts, struct failure *failure) {
    struct plan_facts guess = plan_guess_facts(run->request->campaign);
    int r = plan_new(run->request->campaign, facts ? facts : &guess, &run->plan, failure);
    if (r < 0)
        return r;
    run->ledger = ledger_new(plan_positions(run->plan));
    run->units = ledger_totals(run->ledger);
    r = settling_open(run, failure);
    return r < 0 ? r : run_read_expectations(run, failure);
}

static struct run new_run(const struct run_request *request) {
    return (struct run){.request = request,
                        .campaign = request->campaign,
                        .experiment = request->campaign->experiment,
                        .started_ns = clock_wall_ns(),
                        .part = 1};
}

static int carry_out(struct run *run, char **ret_archive, struct failure *failure) {
    for (int phase = 0; phase < RUN_PHASES; phase++)
        enter_phase(run, (enum run_phase)phase);
    return conclude(run, ret_archive, failure);
}

int run_execute(const struct run_request *request, char **ret_archive, struct failure *failure) {
    cleanup(close_run) struct run run = new_run(request);
    struct failure own = {0}; /* the caller may not want the sentence, but the record does */
    failure = failure ? failure : &own;
    *ret_archive = NULL;
    int r = make_plan(&run, NULL, failure);
    if (r == 0)
        r = open_run(&run, failure);
    if (r == 0)
        r = begin_part(&run, failure);
    if (r == 0)
        return carry_out(&run, ret_archive, failure);
    /* No node was touched and nothing was measured: there is nothing to keep. */
    if (run.folder)
        file_remove_tree(run.folder, NULL);
    return r;
}

int run_resume(const struct run_request *request, const struct inputs *inputs, char **ret_archive,
               struct failure *failure) {
    cleanup(close_run) struct run run = new_run(request);
    struct failure own = {0};
    failure = failure ? failure : &own;
    *ret_archive = NULL;
    int r = make_plan(&run, inputs->facts.known ? &inputs->facts : NULL, failure);
    if (r == 0)
        r = inputs_check_plan(inputs, run.plan, failure);
    if (r == 0)
        r = inputs_check_source(inputs, failure);
    if (r == 0)
        r = run_reopen(&run, inputs, ret_archive, failure);
    if (r < 0 || *ret_archive)
        return r;
    r = begin_part(&run, failure);
    return r < 0 ? r : carry_out(&run, ret_archive, failure);
}
