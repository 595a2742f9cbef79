/* The time of a run: its deadline, what must be left for ending, and whether something still fits. */
#include "engine/run/nodes/reservation.h"

#include "archive-format/staging.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static const int64_t check_period_ns = EVENT_SECOND;
static const int64_t usual_grace_ns = 3 * EVENT_SECOND;
static const uint64_t missing_line_bytes = 48; /* of a unit that is not done, in missing.csv */

/* ---- The deadline ----------------------------------------------------------------------------------------
 */

/* The bytes of the files that grow while units are measured. */
static uint64_t count_growing(const struct node_set *set) {
    return set->record->results->committed + set->record->results->pending.length +
           set->record->log->committed + journal_committed_bytes(set->record->journal);
}

/* Tells the deadline how many bytes and files there are to seal; missing units will have a line each. */
static void count_folder(struct node_set *set) {
    uint64_t bytes = set->record->files.bytes + count_growing(set);
    if (set->record->units_planned > set->record->units->done)
        bytes += (set->record->units_planned - set->record->units->done) * missing_line_bytes;
    deadline_set_size(&set->deadline, bytes, set->record->files.count);
}

int64_t reservation_left_ns(const struct node_set *set) {
    return deadline_left_ns(&set->deadline, clock_monotonic_ns());
}

int64_t reservation_grace_ns(const struct node_set *set) {
    int64_t grace_ns =
        set->record->interrupted == RUN_DEADLINE ? deadline_grace_ns(&set->deadline) : usual_grace_ns;
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

void reservation_reach_end(struct node_set *set, const char *why) {
    if (set->record->interrupted || set->record->phase >= RUN_COLLECT)
        return;
    char when[CLOCK_TEXT_SIZE], sentence[256];
    snprintf(sentence, sizeof sentence, "the reservation ends at %s: %s",
             describe_moment(set->deadline.wall_ns, when), why);
    journal_note(set->record->journal, "deadline-reached", "sentence", sentence);
    node_set_interrupt(set, RUN_DEADLINE, sentence);
}

/* A teardown that takes longer than what was kept for it must not cost the archive. */
static bool is_collecting_too_long(const struct node_set *set) {
    const struct deadline *deadline = &set->deadline;
    int64_t behind_ns = deadline->costs_ns[DEADLINE_COLLECT] + deadline->costs_ns[DEADLINE_TEARDOWN] +
                        deadline_margin_ns(deadline) / 2;
    return set->record->phase == RUN_COLLECT && reservation_left_ns(set) + behind_ns <= 0;
}

/* A testbed may lend the nodes for longer while they are used, or for less long. */
static void follow_testbed(struct node_set *set) {
    char when[CLOCK_TEXT_SIZE];
    int64_t before_ns = set->deadline.wall_ns;
    if (!set->testbed || !set->deadline.ends[DEADLINE_TESTBED].wall_ns ||
        reservation_read_testbed_deadline(set, NULL) < 0)
        return;
    if (set->deadline.wall_ns != before_ns)
        record_note(set->record, "the reservation now ends at %s",
                    describe_moment(set->deadline.wall_ns, when));
}

/* Follows the reservation's end, and ends the measurements when only the reserve is left. In collect it ends
 * waiting when the reservation itself is about to end. */
static void on_deadline_timer(struct event_source *source, void *context) {
    struct node_set *set = context;
    follow_testbed(set);
    count_folder(set);
    int64_t left_ns = reservation_left_ns(set);
    if (left_ns <= 0)
        reservation_reach_end(set, "the rest is reserved for restoring and sealing");
    if (is_collecting_too_long(set) && !event_loop_is_stopped(set->loop)) {
        record_note(set->record, "the reservation is about to end: no longer waiting for the nodes");
        event_loop_stop(set->loop);
    }
    event_source_set_timer(source, left_ns > 0 && left_ns < check_period_ns ? left_ns : check_period_ns, 0);
}

/* Adds the end WALL_NS that SOURCE names. If the deadline changes, it is journalled and its timer runs at
 * once. */
static int add_deadline(struct node_set *set, enum deadline_source source, int64_t wall_ns,
                        struct failure *failure) {
    struct deadline *deadline = &set->deadline;
    if (!deadline_consider(deadline, source, wall_ns, clock_wall_ns(), clock_monotonic_ns()))
        return 0;
    journal_begin(set->record->journal, "deadline");
    journal_time(set->record->journal, "wall_ns", deadline->wall_ns);
    journal_string(set->record->journal, "source", deadline_source_names[deadline->source]);
    journal_end(set->record->journal);
    if (!set->deadline_timer)
        set->deadline_timer = event_loop_add_timer(set->loop, 0, 0, on_deadline_timer, set);
    if (!set->deadline_timer)
        return failure_memory(failure);
    event_source_set_timer(set->deadline_timer, 0, 0);
    return 0;
}

int reservation_begin(struct node_set *set, int64_t until_ns, struct failure *failure) {
    const struct walltime_settings *settings = &set->campaign->walltime;
    int r = 0;
    set->deadline.margin_ns =
        settings->margin_seconds < 0 ? -1 : (int64_t)llround(settings->margin_seconds * 1e9);
    if (settings->limit_seconds > 0)
        r = add_deadline(set, DEADLINE_WALLTIME, clock_wall_ns() + llround(settings->limit_seconds * 1e9),
                         failure);
    if (r == 0 && until_ns > 0)
        r = add_deadline(set, DEADLINE_UNTIL, until_ns, failure);
    return r;
}

int reservation_read_testbed_deadline(struct node_set *set, struct failure *failure) {
    int64_t wall_ns = set->campaign->testbed.backend->deadline(set->testbed);
    return wall_ns > 0 ? add_deadline(set, DEADLINE_TESTBED, wall_ns, failure) : 0;
}

/* ---- Just before the measurements ------------------------------------------------------------------------
 */

/* Counts bytes and files in the run's folder, including those of earlier parts. */
static int measure_folder(struct node_set *set, struct failure *failure) {
    cleanup(staging_clear) struct staging staging = {0};
    uint64_t bytes = 0, growing = count_growing(set);
    int r = staging_scan(set->record->folder, &staging, failure);
    for (size_t i = 0; i < staging.count; i++)
        bytes += staging.files[i].size;
    set->record->files.bytes = bytes > growing ? bytes - growing : 0;
    set->record->files.count = staging.count;
    return r;
}

/* Counts what the run's folder has, from which the time for sealing is estimated, and notes when the
 * reservation ends and how much time is kept for restoring and sealing. */
int reservation_estimate_reserve(struct node_set *set, struct failure *failure) {
    if (set->deadline.source == DEADLINE_NONE)
        return 0;
    int r = record_commit(set->record, failure);
    if (r == 0)
        r = measure_folder(set, failure);
    if (r < 0)
        return r;
    count_folder(set);
    char when[CLOCK_TEXT_SIZE], kept[NUMBER_TEXT_SIZE];
    record_note(set->record, "the reservation ends at %s; %s are kept for restoring and sealing",
                describe_moment(set->deadline.wall_ns, when),
                number_describe_duration((double)deadline_reserve_ns(&set->deadline) * 1e-9, kept));
    event_source_set_timer(set->deadline_timer, 0, 0);
    return 0;
}

/* ---- What fits -------------------------------------------------------------------------------------------
 */

/* How long the nodes will take to come into a block's state: the longest so far, or, before the first, what
 * the settings say at least. */
static int64_t expect_state_ns(const struct node_set *set) {
    const struct warm_up_settings *warm_up = &set->campaign->warm_up;
    double seconds = 0;
    if (set->state_ns > 0)
        return set->state_ns;
    if (warm_up->kind != WARM_UP_NONE)
        seconds = warm_up->kind == WARM_UP_TIME ? warm_up->seconds : warm_up->limits.window_seconds;
    if (set->record->phase == RUN_WARM_UP) /* the controls are set already */
        return (int64_t)llround(seconds * 1e9);
    seconds += set->campaign->controls.proof_seconds;
    return (int64_t)llround(seconds * 1e9) + set->deadline.costs_ns[DEADLINE_RESTORE];
}

void reservation_add_state_time(struct node_set *set, int64_t took_ns, int64_t setting_ns) {
    if (took_ns > set->state_ns)
        set->state_ns = took_ns;
    deadline_took(&set->deadline, DEADLINE_RESTORE, setting_ns);
}

bool reservation_has_time_for_state(struct node_set *set) {
    if (expect_state_ns(set) < reservation_left_ns(set))
        return true;
    reservation_reach_end(set, "the nodes would not be ready to measure before then");
    return false;
}
