/* How much time a run has, what of it must be left for ending, and whether something still fits into it. */
#include "engine/run/nodes/command.h"

#include "archive-format/staging.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const int64_t look_period_ns = EVENT_SECOND;
static const int64_t usual_grace_ns = 3 * EVENT_SECOND;
static const uint64_t missing_line_bytes = 48; /* of a unit that is not done, in missing.csv */

/* ---- The deadline ----------------------------------------------------------------------------------------
 */

/* Of the files that grow. */
static uint64_t count_growing(const struct run *run) {
    return run->results->committed + run->results->pending.length + run->log->committed +
           journal_committed_bytes(run->journal);
}

/* What sealing will have to do grows all the time. */
static void count_folder(struct run *run) {
    uint64_t bytes = run->files.bytes + count_growing(run);
    if (run->units_planned > run->units->done)
        bytes += (run->units_planned - run->units->done) * missing_line_bytes;
    deadline_set_size(&run->deadline, bytes, run->files.count);
}

int64_t run_time_left_ns(const struct run *run) {
    return deadline_left_ns(&run->deadline, clock_monotonic_ns());
}

int64_t run_grace_ns(const struct run *run) {
    int64_t grace_ns = run->interrupted == RUN_DEADLINE ? deadline_grace_ns(&run->deadline) : usual_grace_ns;
    return grace_ns < usual_grace_ns ? grace_ns : usual_grace_ns;
}

/* The local time, with the date unless it is near. */
static const char *describe_moment(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]) {
    time_t moment = (time_t)(wall_ns / EVENT_SECOND);
    struct tm fields;
    localtime_r(&moment, &fields);
    bool near = llabs(wall_ns - clock_wall_ns()) < 20 * 3600 * EVENT_SECOND;
    strftime(buffer, CLOCK_TEXT_SIZE, near ? "%H:%M:%S" : "%Y-%m-%d %H:%M:%S", &fields);
    return buffer;
}

void run_reach_deadline(struct run *run, const char *why) {
    if (run->interrupted || run->phase >= RUN_COLLECT)
        return;
    char when[CLOCK_TEXT_SIZE], sentence[256];
    snprintf(sentence, sizeof sentence, "the reservation ends at %s: %s",
             describe_moment(run->deadline.wall_ns, when), why);
    journal_note(run->journal, "deadline-reached", "sentence", sentence);
    run_interrupt(run, RUN_DEADLINE, sentence);
}

/* A teardown that takes longer than what was kept for it must not cost the archive. */
static bool is_collecting_too_long(const struct run *run) {
    const struct deadline *deadline = &run->deadline;
    int64_t behind_ns = deadline->costs_ns[DEADLINE_COLLECT] + deadline->costs_ns[DEADLINE_TEARDOWN] +
                        deadline_margin_ns(deadline) / 2;
    return run->phase == RUN_COLLECT && run_time_left_ns(run) + behind_ns <= 0;
}

static void on_timer(struct event_source *source, void *context) {
    struct run *run = context;
    count_folder(run);
    int64_t left_ns = run_time_left_ns(run);
    if (left_ns <= 0)
        run_reach_deadline(run, "what is left of it is for restoring and sealing what there is");
    if (is_collecting_too_long(run) && !event_loop_is_stopped(run->loop)) {
        run_note(run, "the reservation is about to end: no longer waiting for the nodes");
        event_loop_stop(run->loop);
    }
    event_source_set_timer(source, left_ns > 0 && left_ns < look_period_ns ? left_ns : look_period_ns, 0);
}

static int consider(struct run *run, enum deadline_source source, int64_t wall_ns, struct failure *failure) {
    struct deadline *deadline = &run->deadline;
    if (!deadline_consider(deadline, source, wall_ns, clock_wall_ns(), clock_monotonic_ns()))
        return 0;
    journal_begin(run->journal, "deadline");
    journal_time(run->journal, "wall_ns", wall_ns);
    journal_string(run->journal, "source", deadline_source_names[source]);
    journal_end(run->journal);
    if (!run->deadline_timer)
        run->deadline_timer = event_loop_add_timer(run->loop, 0, 0, on_timer, run);
    if (!run->deadline_timer)
        return failure_memory(failure);
    event_source_set_timer(run->deadline_timer, 0, 0);
    return 0;
}

int run_begin_reservation(struct run *run, struct failure *failure) {
    const struct walltime_settings *settings = &run->campaign->walltime;
    int r = 0;
    run->deadline.margin_ns =
        settings->margin_seconds < 0 ? -1 : (int64_t)llround(settings->margin_seconds * 1e9);
    if (settings->limit_seconds > 0)
        r = consider(run, DEADLINE_WALLTIME, clock_wall_ns() + llround(settings->limit_seconds * 1e9),
                     failure);
    if (r == 0 && run->request->until_ns > 0)
        r = consider(run, DEADLINE_UNTIL, run->request->until_ns, failure);
    return r;
}

int run_meet_reservation(struct run *run, struct failure *failure) {
    int64_t wall_ns = run->campaign->testbed.backend->deadline(run->testbed);
    return wall_ns > 0 ? consider(run, DEADLINE_TESTBED, wall_ns, failure) : 0;
}

/* ---- Just before the measurements ------------------------------------------------------------------------
 */

/* What the run's folder has by now, of earlier parts too. */
static int measure_folder(struct run *run, struct failure *failure) {
    cleanup(staging_clear) struct staging staging = {0};
    uint64_t bytes = 0, growing = count_growing(run);
    int r = staging_scan(run->folder, &staging, failure);
    for (size_t i = 0; i < staging.count; i++)
        bytes += staging.files[i].size;
    run->files.bytes = bytes > growing ? bytes - growing : 0;
    run->files.count = staging.count;
    return r;
}

/* The collect phase asks so many questions. */
static int rehearse_questions(struct run *run, struct failure *failure) {
    enum { QUESTIONS = 10 };
    static const char *const nothing[] = {"true", NULL};
    int64_t begun_ns = clock_monotonic_ns();
    int r = node_command_run(run, &(struct node_command){.arguments = nothing}, NULL, failure);
    run->deadline.costs_ns[DEADLINE_COLLECT] += QUESTIONS * (clock_monotonic_ns() - begun_ns);
    return r;
}

int run_rehearse_ending(struct run *run, struct failure *failure) {
    if (run->deadline.source == DEADLINE_NONE)
        return 0;
    int r = rehearse_questions(run, failure);
    if (r == 0)
        r = run_commit(run, failure);
    if (r == 0)
        r = measure_folder(run, failure);
    if (r < 0)
        return r;
    const struct plan *plan = run->plan;
    run->times = unit_times_new(plan->design->row_count,
                                run->expected_seconds ? run->expected_seconds : plan->row_seconds);
    count_folder(run);
    char when[CLOCK_TEXT_SIZE], kept[NUMBER_TEXT_SIZE];
    run_note(run, "the reservation ends at %s; %s are kept for restoring and sealing",
             describe_moment(run->deadline.wall_ns, when),
             number_describe_duration((double)deadline_reserve_ns(&run->deadline) * 1e-9, kept));
    event_source_set_timer(run->deadline_timer, 0, 0);
    return 0;
}

/* ---- What fits -------------------------------------------------------------------------------------------
 */

int run_read_expectations(struct run *run, struct failure *failure) {
    const struct run_request *request = run->request;
    if (!run->campaign->walltime.model || !request->predict)
        return 0;
    run->expected_seconds = xcalloc(run->plan->design->row_count + 1, sizeof *run->expected_seconds);
    return request->predict(request->predict_context, run->plan, run->expected_seconds, failure);
}

int64_t run_expect_ns(const struct run *run, size_t position) {
    return run->times ? unit_times_predict(run->times, design_order_row(run->plan->order, position)) : -1;
}

bool run_has_time(const struct run *run, size_t position, int64_t busy_ns) {
    int64_t left_ns = run_time_left_ns(run);
    if (left_ns == INT64_MAX)
        return true;
    int64_t expected_ns = run_expect_ns(run, position);
    /* Of what nobody knows, only that it may take longer than what is left for surprises. */
    if (expected_ns < 0)
        expected_ns = deadline_margin_ns(&run->deadline);
    return busy_ns + expected_ns <= left_ns;
}

void run_take_unit_time(struct run *run, size_t position, int64_t begun_ns, int64_t end_ns) {
    if (run->times && begun_ns >= 0)
        unit_times_take(run->times, design_order_row(run->plan->order, position), end_ns - begun_ns);
}

/* How long the nodes take to come into a block's state: as long as they did; at first, what is sure. */
static int64_t expect_state_ns(const struct run *run) {
    const struct warm_up_settings *warm_up = &run->campaign->warm_up;
    double seconds = 0;
    if (run->state_ns > 0)
        return run->state_ns;
    if (warm_up->kind != WARM_UP_NONE)
        seconds = warm_up->kind == WARM_UP_TIME ? warm_up->seconds : warm_up->limits.window_seconds;
    if (run->phase == RUN_WARM_UP) /* the controls are set already */
        return (int64_t)llround(seconds * 1e9);
    seconds += run->campaign->controls.proof_seconds;
    return (int64_t)llround(seconds * 1e9) + run->deadline.costs_ns[DEADLINE_RESTORE];
}

void run_take_state_time(struct run *run, int64_t took_ns, int64_t setting_ns) {
    if (took_ns > run->state_ns)
        run->state_ns = took_ns;
    deadline_took(&run->deadline, DEADLINE_RESTORE, setting_ns);
}

bool run_has_time_for_state(struct run *run) {
    if (expect_state_ns(run) < run_time_left_ns(run))
        return true;
    run_reach_deadline(run, "the nodes would not be in the state to measure in before that");
    return false;
}
