#include "engine/command-line/run/follow.h"

#include "engine/command-line/output.h"
#include "engine/command-line/run/page.h"
#include "engine/command-line/run/screen.h"
#include "engine/event-loop/event-loop.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/report/shown.h"
#include "engine/run/record/lock.h"
#include "engine/run/record/status-report.h"
#include "engine/run/record/status.h"

#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

static const int64_t plain_period_ns = 5 * EVENT_SECOND;
enum { LINE_SIZE = 512 };

struct followed {
    const char *folder;
    struct run_status *status; /* as it was read last */
    char line[LINE_SIZE];      /* of several runs: what there is to show, */
    bool is_shown;             /* and was */
    bool has_ended;            /* it was found so once; it may be between two parts */
    bool is_over;
    bool is_sealed;
    struct failure end; /* why it is not complete; code 0: it is */
};

struct following {
    struct followed *runs;
    size_t count, over, lines_drawn;
    struct progress *progress;
    struct run_observer shown;
    int64_t last_shown_ns;
    bool is_only_screen; /* nothing but the screen: follow_on_screen() */
    struct screen screen;
    bool was_on_screen;
    struct run_page page;
};

/* ---- On a screen ---------------------------------------------------------------------------------------
 */

static bool has_screen(const struct following *following) {
    return following->count == 1 && following->progress->has_screen;
}

/* Draws the run's screen. A run that has ended before the first look gets none. A terminal that is gone ends
 * the screen. */
static void show_page(struct following *following, struct followed *run) {
    if (!following->screen.is_open && run->has_ended)
        return;
    if (!following->screen.is_open)
        screen_open(&following->screen, STDERR_FILENO);
    following->was_on_screen = true;
    run_page_make(&following->page, run->status, &following->screen);
    if (screen_draw(&following->screen) < 0) /* the terminal is gone */
        following->progress->has_screen = false;
}

/* ---- One run ---------------------------------------------------------------------------------------------
 */

static void send_event(const struct following *following, enum run_event_kind kind, const char *text) {
    struct run_event event = {.kind = kind, .text = text, .seconds_left = -1};
    following->shown.event(following->shown.context, &event);
}

/* Reports the counts as if the run were carried out here. */
static void show_counts(const struct following *following, const struct run_status *status) {
    size_t away = status->nodes_out_of_reach + status->nodes_lost + status->nodes_out;
    struct run_event event = {.kind = RUN_EVENT_PROGRESS,
                              .units_done = status->done,
                              .units_failed = status->failed,
                              .units_total = status->planned,
                              .nodes_done = status->node_count - away,
                              .nodes_total = status->node_count,
                              .rate = isnan(status->rate) ? 0 : status->rate,
                              .seconds_left = status->seconds_left};
    if (status->history.measuring && status->is_planned)
        following->shown.event(following->shown.context, &event);
}

/* Shows the run as lines: its folder and phase first, then the entries of its journal as they are read. */
static void show_run(const struct following *following, struct followed *run) {
    struct run_status *status = run->status;
    bool is_first = !run->is_shown;
    run->is_shown = true;
    if (is_first) {
        send_event(following, RUN_EVENT_STARTED, run->folder);
        if (status->phase[0] && run_status_is_under_way(status))
            send_event(following, RUN_EVENT_PHASE, status->phase);
        status->history.observer = &following->shown;
    }
    if (status->condition == RUN_IS_QUEUED && is_first)
        send_event(following, RUN_EVENT_NOTE, status->history.reservation);
    show_counts(following, status);
}

/* Closes the screen and prints the folder and the last messages, which stay on the terminal. */
static void leave_screen(struct following *following, const struct followed *run) {
    const struct run_history *history = &run->status->history;
    size_t count = history->message_count;
    screen_close(&following->screen);
    following->progress->has_screen = false;
    send_event(following, RUN_EVENT_STARTED, run->folder);
    for (size_t i = count > RUN_HISTORY_MESSAGES ? count - RUN_HISTORY_MESSAGES : 0;
         following->was_on_screen && i < count; i++)
        send_event(following, RUN_EVENT_NOTE, history->messages[i % RUN_HISTORY_MESSAGES].text);
}

/* ---- Several ---------------------------------------------------------------------------------------------
 */

static void write_line(struct followed *run, const struct run_status *status) {
    char line[LINE_SIZE], units[STATUS_UNITS_SIZE], when[STATUS_WHEN_SIZE];
    bool is_running = status->condition == RUN_IS_RUNNING && status->phase[0];
    snprintf(line, sizeof line, "%.200s: %s, %s units, %s", file_base_name(run->folder),
             is_running ? status->phase : run_condition_name(status->condition),
             status_describe_units(status, units), status_describe_when(status, when));
    run->is_shown = run->is_shown && strcmp(line, run->line) == 0;
    memcpy(run->line, line, sizeof line);
}

/* Shows a line for each run: on a terminal in place, elsewhere again every plain_period_ns. */
static void show_lines(struct following *following) {
    bool in_place = following->progress->has_screen;
    int64_t now = clock_monotonic_ns();
    if (following->progress->quiet ||
        (!in_place && following->last_shown_ns && following->over < following->count &&
         now - following->last_shown_ns < plain_period_ns))
        return;
    following->last_shown_ns = now;
    if (in_place && following->lines_drawn)
        fprintf(stderr, "\033[%zuA", following->lines_drawn);
    for (size_t i = 0; i < following->count; i++) {
        struct followed *run = &following->runs[i];
        if (in_place || !run->is_shown)
            fprintf(stderr, "%s%s\n", in_place ? "\r\033[K" : "", shown(run->line).text);
        run->is_shown = true;
    }
    following->lines_drawn = following->count;
}

/* ---- The end ---------------------------------------------------------------------------------------------
 */

/* Sets the failure with which the run has ended; none if it is complete. */
static void set_run_failure(struct followed *run, const struct run_status *status) {
    const struct run_history *history = &status->history;
    enum failure_kind kind = (enum failure_kind)history->exit_code;
    if (status->damage)
        failure_set(&run->end, -EBADMSG, "%s; %s", status->damage, status->next);
    else if (status->condition == RUN_IS_STOPPED)
        failure_set(&run->end, -ECHILD, "the engine of '%s' ended before the run was sealed; %s", run->folder,
                    status->next);
    else if (status->condition == RUN_IS_RESERVED)
        failure_set_kind(&run->end, FAILURE_INPUT, -ESRCH, "no engine works on the run '%s'; %s", run->folder,
                         status->next);
    else if (status->condition != RUN_IS_COMPLETED)
        failure_set_kind(&run->end, kind >= FAILURE_SYSTEM && kind <= FAILURE_PARTIAL ? kind : FAILURE_SYSTEM,
                         -ECANCELED, "%s",
                         history->outcome[0] ? history->outcome : run_condition_name(status->condition));
}

/* Reports a run that has ended: its archive, its failure, its end. */
static void report_ended_run(struct following *following, struct followed *run,
                             const struct run_status *status) {
    run->is_over = true;
    following->over++;
    if (has_screen(following))
        leave_screen(following, run);
    if (following->is_only_screen)
        return;
    set_run_failure(run, status);
    bool is_sealed = status->archive && status->condition != RUN_IS_STOPPED;
    if (following->count == 1 && is_sealed)
        following->shown.event(following->shown.context, &(struct run_event){.kind = RUN_EVENT_SEALED,
                                                                             .text = status->archive,
                                                                             .units_done = status->done,
                                                                             .units_failed = status->failed,
                                                                             .seconds_left = -1});
    else if (is_sealed)
        puts(status->archive);
    run->is_sealed = is_sealed;
    if (following->count == 1 && following->progress->json)
        send_event(following, RUN_EVENT_ENDED, run_condition_name(status->condition));
    (void)output_flush();
}

/* ---- Looking ---------------------------------------------------------------------------------------------
 */

/* Reads the status of a run and shows it. A run counts as ended when two readings in a row say so. */
static int read_run(struct following *following, struct followed *run, struct failure *failure) {
    int r = run->status ? run_status_update(&run->status, failure)
                        : run_status_read(run->folder, &run->status, failure);
    if (r < 0)
        return r;
    const struct run_status *status = run->status;
    bool ended_before = run->has_ended;
    run->has_ended = !run_status_is_under_way(status);
    if (following->count > 1)
        write_line(run, status);
    else if (has_screen(following))
        show_page(following, run);
    else
        show_run(following, run);
    if (run->has_ended && ended_before)
        report_ended_run(following, run, status);
    return 0;
}

/* Reads the status of all runs that have not ended. */
static int read_runs(struct following *following, struct failure *failure) {
    int r = 0;
    for (size_t i = 0; i < following->count && r == 0; i++)
        if (!following->runs[i].is_over)
            r = read_run(following, &following->runs[i], failure);
    if (following->count > 1)
        show_lines(following);
    return r;
}

static void end_runs(const struct following *following, int number) {
    struct run_lock_owner owner;
    for (size_t i = 0; i < following->count; i++) {
        struct failure why = {0};
        if (!following->runs[i].is_over &&
            run_lock_signal(following->runs[i].folder, number, &owner, &why) < 0 && why.code != -ESRCH)
            output_failure(&why);
    }
}

/* The terminal is the shell's while this process is stopped. */
static void stop_process(struct following *following) {
    screen_close(&following->screen);
    raise(SIGSTOP);
}

/* Reads and shows all runs until they have ended, or a signal comes. SIGNALS are blocked by the caller.
 * ENDS_RUNS: signals are sent on to the runs, which are followed to their ends. */
static int follow_until_end(struct following *following, const sigset_t *signals, bool ends_runs,
                            bool *ret_interrupted, struct failure *failure) {
    static const struct timespec wait = {.tv_nsec = 500 * EVENT_MILLISECOND}, screen_wait = {.tv_sec = 1};
    int r = read_runs(following, failure);
    while (r == 0 && following->over < following->count) {
        int number = sigtimedwait(signals, NULL, following->screen.is_open ? &screen_wait : &wait);
        if (number == SIGTSTP)
            stop_process(following);
        number = number == SIGTSTP || number == SIGWINCH ? 0 : number;
        *ret_interrupted = number > 0 && !ends_runs;
        if (*ret_interrupted)
            return 0;
        if (number > 0)
            end_runs(following, number);
        r = read_runs(following, failure);
    }
    return r;
}

/* Returns the failure of the run that ended worst; 0: all are complete. */
static int find_worst(const struct following *following, struct failure *failure) {
    const struct failure *worst = NULL;
    for (size_t i = 0; i < following->count; i++) {
        const struct failure *end = &following->runs[i].end;
        if (end->code < 0 && (!worst || end->kind < worst->kind))
            worst = end;
    }
    if (worst)
        *failure = *worst;
    return worst ? worst->code : 0;
}

/* Follows with the signals that it handles blocked. */
static int follow_with_signals(struct following *following, bool ends_runs, bool *ret_interrupted,
                               struct failure *failure) {
    sigset_t signals, before;
    sigemptyset(&signals);
    if (!following->is_only_screen)
        sigaddset(&signals, SIGINT);
    sigaddset(&signals, SIGTERM);
    if (has_screen(following)) {
        sigaddset(&signals, SIGWINCH);
        sigaddset(&signals, SIGTSTP);
    }
    *ret_interrupted = false;
    sigprocmask(SIG_BLOCK, &signals, &before);
    int r = follow_until_end(following, &signals, ends_runs, ret_interrupted, failure);
    screen_close(&following->screen);
    sigprocmask(SIG_SETMASK, &before, NULL);
    run_page_clear(&following->page);
    return r;
}

int follow_runs(const char *const *folders, size_t count, struct progress *progress, bool ends_runs,
                bool *ret_interrupted, struct failure *failure) {
    cleanup_free struct followed *runs = xcalloc(count, sizeof *runs);
    struct following following = {
        .count = count, .runs = runs, .progress = progress, .shown = progress_observer(progress)};
    for (size_t i = 0; i < count; i++)
        runs[i].folder = folders[i];
    int r = follow_with_signals(&following, ends_runs, ret_interrupted, failure);
    for (size_t i = 0; count > 1 && !progress->quiet && i < count; i++)
        if (runs[i].is_sealed)
            fprintf(stderr, "which setting is best: assay report %s\n", shown(runs[i].folder).text);
    for (size_t i = 0; i < count; i++)
        run_status_free(runs[i].status);
    return r < 0 || *ret_interrupted ? r : find_worst(&following, failure);
}

int follow_on_screen(const char *folder, struct progress *progress, struct failure *failure) {
    struct followed run = {.folder = folder};
    struct following following = {.count = 1,
                                  .runs = &run,
                                  .progress = progress,
                                  .shown = progress_observer(progress),
                                  .is_only_screen = true};
    bool is_interrupted;
    signal(SIGINT, SIG_IGN);
    int r = follow_with_signals(&following, false, &is_interrupted, failure);
    if (r == 0 && is_interrupted)
        leave_screen(&following, &run);
    run_status_free(run.status);
    return r;
}
