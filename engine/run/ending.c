/* The end of a run: the signals that end it early, and the status that it ends with. */
#include "engine/run/run-state.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/run/nodes/nodes.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>

/* ---- Signals ---------------------------------------------------------------------------------------------
 */

static bool asks_for_checkpoint(int number) {
    return number == SIGTERM || number == SIGUSR2;
}

/* Handles a signal that comes when the run is ending already. While controls are restored, the second one of
 * SIGINT and SIGHUP ends waiting; in other late phases the first does. */
static void on_second_signal(struct run *run, int number) {
    /* Job managers repeat their signal: a second SIGTERM or SIGUSR2 cuts nothing short. */
    if (asks_for_checkpoint(number) && (run->record.interrupted || run->record.phase >= RUN_RESTORE)) {
        record_log(&run->record, "asked to end by signal %d once more", number);
    } else if (run->record.phase == RUN_RESTORE && !run->restore_signalled) {
        run->restore_signalled = true;
        record_note(&run->record, "restoring controls first; signal again to skip");
    } else if (run->record.phase >= RUN_COLLECT) {
        event_loop_stop(run->set.loop); /* waiting ends, for a teardown command, say */
    }
}

/* Handles the first signal: interrupts the run, so that it ends measuring and seals what it has. */
static void on_signal(struct event_source *source, int number, void *context) {
    (void)source;
    struct run *run = context;
    if (run->record.interrupted || run->record.phase >= RUN_COLLECT) {
        on_second_signal(run, number);
    } else if (run->only_reserves) {
        node_set_interrupt(&run->set, RUN_INTERRUPTED, "interrupted; giving the nodes back");
    } else if (asks_for_checkpoint(number)) {
        journal_note(run->record.journal, "checkpoint", "signal", number == SIGTERM ? "SIGTERM" : "SIGUSR2");
        node_set_interrupt(&run->set, RUN_CHECKPOINT, "asked to end; sealing the results so far");
    } else {
        node_set_interrupt(&run->set, RUN_INTERRUPTED,
                           number == SIGINT
                               ? "interrupted; ending measurements and sealing the results so far"
                               : "terminal closed; ending measurements and sealing the results so far");
    }
}

/* Starts handling SIGINT, SIGTERM, SIGHUP and SIGUSR2. SIGHUP is left alone when it is ignored, as under
 * nohup. */
int run_watch_signals(struct run *run, struct failure *failure) {
    static const int numbers[RUN_SIGNALS] = {SIGINT, SIGTERM, SIGHUP, SIGUSR2};
    for (size_t i = 0; i < RUN_SIGNALS; i++) {
        struct sigaction action;
        if (numbers[i] == SIGHUP && sigaction(SIGHUP, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            continue; /* nohup said so */
        if (!(run->signals[i] = event_loop_add_signal(run->set.loop, numbers[i], on_signal, run)))
            return failure_set(failure, -errno, "cannot watch signal %d: %s", numbers[i], strerror(errno));
    }
    return 0;
}

/* ---- The status ------------------------------------------------------------------------------------------
 */

/* Is every planned unit done? Before the inspect phase the number of units is not known, and the run is not
 * complete. */
static bool is_complete(const struct run *run) {
    return run->began[RUN_INSPECT] && run->record.units_planned > 0 &&
           run->record.units->done == run->record.units_planned;
}

/* Was the run asked to end before it was complete, or did nodes leave with units that nobody measured? */
static bool is_partial(const struct run *run) {
    bool asked = run->record.interrupted && run->record.interrupted != RUN_INTERRUPTED;
    return (asked && !is_complete(run)) || node_set_lacks_units(&run->set);
}

const char *run_end_word(const struct run *run) {
    if (!run->ended_ns)
        return "running";
    if (run->record.failed || run->seal_why.code)
        return "failed";
    if (run->record.interrupted == RUN_INTERRUPTED)
        return "interrupted";
    if (is_partial(run))
        return "partial";
    return run->record.units->done > 0 ? "completed" : "failed";
}

/* How far the run came, in a clause; the caller frees. */
static char *describe_units(const struct run *run) {
    uint64_t done = run->record.units->done;
    return done == 0 ? xstrdup("before any unit was measured; the archive has the run's records alone")
                     : xformat("after %" PRIu64 " of %" PRIu64 " units; they are sealed", done,
                               run->record.units_planned);
}

/* Why the run is partial, and after how many units, in a sentence: the time, a signal, or nodes that were
 * lost. */
static void describe_partial(const struct run *run, char *buffer, size_t size) {
    cleanup_free char *out = node_set_lacks_units(&run->set) ? node_set_describe_out(&run->set) : NULL;
    bool is_deadline = run->record.interrupted == RUN_DEADLINE;
    const char *why = is_deadline                                 ? "the time was up"
                      : run->record.interrupted == RUN_CHECKPOINT ? "asked to end"
                      : run->record.interrupted == RUN_REVOKED    ? "the nodes were taken away"
                                                                  : "ended";
    cleanup_free char *units = describe_units(run);
    snprintf(buffer, size, "%s%s%s %s%s", why, out ? " " : "", out ? out : "", units,
             is_deadline && run->record.units->done == 0
                 ? "; part of the time is kept for restoring and sealing"
                 : "");
}

const char *run_describe_ending(const struct run *run, char *buffer, size_t size) {
    cleanup_free char *units = describe_units(run);
    if (run->record.interrupted == RUN_INTERRUPTED)
        snprintf(buffer, size, "interrupted %s", units);
    else if (is_partial(run))
        describe_partial(run, buffer, size);
    else
        buffer[0] = '\0';
    return buffer;
}

int run_ending_failure(const struct run *run, struct failure *failure) {
    char sentence[FAILURE_TEXT_SIZE];
    bool interrupted = run->record.interrupted == RUN_INTERRUPTED;
    if (!interrupted && !is_partial(run))
        return 0;
    return failure_set_kind(failure, interrupted ? FAILURE_INTERRUPTED : FAILURE_PARTIAL,
                            interrupted ? -EINTR : -ECANCELED, "%s",
                            run_describe_ending(run, sentence, sizeof sentence));
}
