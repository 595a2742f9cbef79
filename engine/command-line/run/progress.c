#include "engine/command-line/run/progress.h"

#include "engine/command-line/output.h"
#include "engine/command-line/report.h"
#include "engine/command-line/run/screen.h"
#include "engine/command-line/run/viewer.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/report/shown.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const int64_t plain_period_ns = 5000000000; /* between two lines */
static const int64_t json_period_ns = 1000000000;  /* of nodes that are waited for */

static const char *const event_names[] = {
    [RUN_EVENT_STARTED] = "started", [RUN_EVENT_PHASE] = "phase",     [RUN_EVENT_NOTE] = "note",
    [RUN_EVENT_NODES] = "nodes",     [RUN_EVENT_WARM_UP] = "warm-up", [RUN_EVENT_PROGRESS] = "progress",
    [RUN_EVENT_FAILED] = "failed",   [RUN_EVENT_SEALED] = "sealed",   [RUN_EVENT_ENDED] = "ended",
};

void progress_init(struct progress *progress, bool json, bool quiet) {
    *progress = (struct progress){
        .json = json, .quiet = quiet, .has_screen = !json && !quiet && screen_is_possible(STDERR_FILENO)};
}

/* Has PERIOD_NS passed since the last line? Then this is the last one. */
static bool is_due(struct progress *progress, int64_t period_ns) {
    int64_t now = clock_monotonic_ns();
    if (now - progress->last_shown_ns < period_ns)
        return false;
    progress->last_shown_ns = now;
    return true;
}

/* Prints the event as a line of JSON; events that come often are printed now and then. */
static void print_json(struct progress *progress, const struct run_event *event) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    bool is_last = event->kind == RUN_EVENT_NODES && event->nodes_done >= event->nodes_total;
    if ((event->kind == RUN_EVENT_NODES || event->kind == RUN_EVENT_WARM_UP) && !is_last &&
        !is_due(progress, json_period_ns))
        return;
    char now[CLOCK_TEXT_SIZE];
    json_add_string(object, "time", clock_format(clock_wall_ns(), now));
    json_add_string(object, "event", event_names[event->kind]);
    if (event->text)
        json_add_string(object, "text", event->text);
    if (event->sha256)
        json_add_string(object, "sha256", event->sha256);
    if (event->kind == RUN_EVENT_NODES) {
        json_add_uint64(object, "nodes_done", event->nodes_done);
        json_add_uint64(object, "nodes_total", event->nodes_total);
    }
    if (event->kind == RUN_EVENT_WARM_UP) {
        json_add_uint64(object, "nodes_steady", event->nodes_done);
        json_add_uint64(object, "nodes", event->nodes_total);
        json_add_double(object, "seconds_left", event->seconds_left);
    }
    if (event->kind == RUN_EVENT_PROGRESS) {
        json_add_uint64(object, "nodes_reached", event->nodes_done);
        json_add_uint64(object, "nodes", event->nodes_total);
        json_add_uint64(object, "units_done", event->units_done);
        json_add_uint64(object, "units_failed", event->units_failed);
        json_add_uint64(object, "units_total", event->units_total);
        json_add_double(object, "units_per_second", event->rate);
        json_add_double(object, "seconds_left", event->seconds_left >= 0 ? event->seconds_left : NAN);
    }
    output_json(object, false);
    (void)output_flush(); /* main says when it fails */
}

/* Prints the counts of units, now and then, if they have changed. */
static void show_counts(struct progress *progress, const struct run_event *event) {
    uint64_t units = event->units_done + event->units_failed;
    bool last = units == event->units_total;
    /* Nothing new to count while samples are awaited or units are measured again. */
    if (last && progress->last_units == units && progress->last_done == event->units_done)
        return;
    progress->last_units = units;
    progress->last_done = event->units_done;
    if (!is_due(progress, last ? 0 : plain_period_ns))
        return;
    char left[NUMBER_TEXT_SIZE] = "";
    if (event->seconds_left >= 0)
        number_describe_duration(event->seconds_left, left);
    double share = event->units_total ? (double)event->units_done / (double)event->units_total : 1;
    fprintf(stderr, "  %" PRIu64 " of %" PRIu64 " units (%.1f %%), %.4g units/s", event->units_done,
            event->units_total, 100 * share, event->rate);
    if (event->units_failed)
        fprintf(stderr, ", %" PRIu64 " failed", event->units_failed);
    if (event->nodes_done < event->nodes_total)
        fprintf(stderr, ", %zu of %zu nodes reached", event->nodes_done, event->nodes_total);
    if (left[0] && !last)
        fprintf(stderr, ", %s left", left);
    fputc('\n', stderr);
}

/* Prints how many nodes are steady, now and then, since a warm-up takes minutes. */
static void show_warm_up(struct progress *progress, const struct run_event *event) {
    if (!is_due(progress, plain_period_ns))
        return;
    char left[NUMBER_TEXT_SIZE];
    number_describe_duration(event->seconds_left, left);
    if (event->text)
        fprintf(stderr, "  %zu of %zu nodes are steady, %s left at most\n", event->nodes_done,
                event->nodes_total, left);
    else
        fprintf(stderr, "  %s left\n", left);
}

/* Only what takes long. */
static void show_nodes(struct progress *progress, const struct run_event *event) {
    if (event->nodes_done <= 1)
        progress->last_shown_ns = clock_monotonic_ns();
    if (is_due(progress, plain_period_ns))
        fprintf(stderr, "  %zu of %zu nodes\n", event->nodes_done, event->nodes_total);
}

/* Prints the event as a line: the archive's path to standard output, all else to standard error. */
static void print_event(const struct run_event *event) {
    if (event->kind == RUN_EVENT_SEALED) {
        puts(event->text);
        (void)output_flush(); /* main says when it fails */
    } else if (event->kind == RUN_EVENT_FAILED) {
        /* Why is said once, at the end, by the command line. */
        fputs("  failed; sealing the results so far\n", stderr);
    } else {
        const char *head = event->kind == RUN_EVENT_STARTED ? "run folder: "
                           : event->kind == RUN_EVENT_NOTE  ? "  "
                                                            : "";
        fputs(head, stderr);
        shown_print(stderr, event->text, true);
        fputc('\n', stderr);
    }
}

static void replace(char **text, const char *by) {
    free(*text);
    *text = xstrdup(by);
}

static void end_viewer(struct progress *progress) {
    viewer_stop(progress->viewer);
    progress->viewer = 0;
}

/* Whether the viewer shows EVENT. It begins with the run, and ends before the archive's path is printed. */
static bool is_on_screen(struct progress *progress, const struct run_event *event) {
    if (event->kind == RUN_EVENT_STARTED && !progress->viewer)
        progress->viewer = viewer_start(event->text);
    if (event->kind == RUN_EVENT_SEALED || event->kind == RUN_EVENT_ENDED)
        end_viewer(progress);
    return progress->viewer > 0;
}

/* The observer's function: prints an event as the options say. */
static void on_event(void *context, const struct run_event *event) {
    struct progress *progress = context;
    if (event->kind == RUN_EVENT_STARTED)
        replace(&progress->folder, event->text);
    if (event->kind == RUN_EVENT_SEALED && event->units_done + event->units_failed > 0)
        replace(&progress->archive, event->text);
    if (progress->has_screen && is_on_screen(progress, event))
        return;
    if (progress->json) {
        print_json(progress, event);
    } else if (progress->quiet && event->kind != RUN_EVENT_SEALED) {
        return;
    } else if (event->kind == RUN_EVENT_PROGRESS) {
        show_counts(progress, event);
    } else if (event->kind == RUN_EVENT_WARM_UP) {
        show_warm_up(progress, event);
    } else if (event->kind == RUN_EVENT_NODES) {
        show_nodes(progress, event);
    } else {
        print_event(event);
    }
}

struct run_observer progress_observer(struct progress *progress) {
    return (struct run_observer){.event = on_event, .context = progress};
}

void progress_end(struct progress *progress) {
    end_viewer(progress);
    if (progress->folder && progress->archive && !progress->json && !progress->quiet)
        report_after_run(progress->folder, progress->archive);
    free(progress->folder), free(progress->archive);
    progress->folder = progress->archive = NULL;
}
