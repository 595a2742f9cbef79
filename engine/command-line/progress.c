#include "engine/command-line/progress.h"

#include "engine/command-line/output.h"

#include "engine/documents/json.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { BAR_WIDTH = 24 };
static const int64_t plain_period_ns = 5000000000; /* between two lines when stderr is no terminal */

static const char *const event_names[] = {
    [RUN_EVENT_STARTED] = "started",   [RUN_EVENT_PHASE] = "phase",   [RUN_EVENT_NOTE] = "note",
    [RUN_EVENT_PROGRESS] = "progress", [RUN_EVENT_FAILED] = "failed", [RUN_EVENT_SEALED] = "sealed",
    [RUN_EVENT_ENDED] = "ended",
};

void progress_init(struct progress *progress, bool json, bool quiet) {
    *progress = (struct progress){.json = json, .quiet = quiet, .terminal = isatty(STDERR_FILENO)};
}

static void print_json(const struct run_event *event) {
    cleanup(json_cleanup) cJSON *object = cJSON_CreateObject();
    if (!object)
        return;
    char now[CLOCK_TEXT_SIZE];
    json_add_string(object, "time", clock_format(clock_wall_ns(), now));
    json_add_string(object, "event", event_names[event->kind]);
    if (event->text)
        json_add_string(object, "text", event->text);
    if (event->sha256)
        json_add_string(object, "sha256", event->sha256);
    if (event->kind == RUN_EVENT_PROGRESS) {
        json_add_uint64(object, "units_done", event->units_done);
        json_add_uint64(object, "units_failed", event->units_failed);
        json_add_uint64(object, "units_total", event->units_total);
        json_add_double(object, "units_per_second", event->rate);
        if (event->seconds_left >= 0)
            json_add_double(object, "seconds_left", event->seconds_left);
        else
            json_add_string(object, "seconds_left", NULL);
    }
    struct text line;
    text_init(&line, 1 << 20);
    if (json_print(object, false, &line) == 0) {
        printf("%s\n", line.bytes);
        (void)output_flush(); /* main tells when it fails */
    }
    text_clear(&line);
}

/* Leaves the progress line as it is and begins a fresh one. */
static void end_line(struct progress *progress) {
    if (progress->line_drawn)
        fputc('\n', stderr);
    progress->line_drawn = false;
}

static void show_counts(struct progress *progress, const struct run_event *event) {
    int64_t now = clock_monotonic_ns();
    bool last = event->units_done + event->units_failed == event->units_total;
    if (!progress->terminal && !last && now - progress->last_shown_ns < plain_period_ns)
        return;
    progress->last_shown_ns = now;
    char left[NUMBER_TEXT_SIZE] = "";
    if (event->seconds_left >= 0)
        number_describe_duration(event->seconds_left, left);
    double share = event->units_total ? (double)event->units_done / (double)event->units_total : 1;
    char bar[BAR_WIDTH + 1];
    int filled = (int)(share * BAR_WIDTH);
    for (int i = 0; i < BAR_WIDTH; i++)
        bar[i] = i < filled ? '#' : '.';
    bar[BAR_WIDTH] = '\0';
    if (progress->terminal)
        fprintf(stderr, "\r\033[K  [%s] ", bar);
    else
        fputs("  ", stderr);
    fprintf(stderr, "%" PRIu64 " of %" PRIu64 " units (%.1f %%), %.4g units/s", event->units_done,
            event->units_total, 100 * share, event->rate);
    if (event->units_failed)
        fprintf(stderr, ", %" PRIu64 " failed", event->units_failed);
    if (left[0] && !last)
        fprintf(stderr, ", %s left", left);
    progress->line_drawn = progress->terminal;
    if (!progress->terminal)
        fputc('\n', stderr);
}

static void show(void *context, const struct run_event *event) {
    struct progress *progress = context;
    if (progress->json) {
        print_json(event);
        return;
    }
    if (progress->quiet && event->kind != RUN_EVENT_SEALED)
        return;
    if (event->kind == RUN_EVENT_PROGRESS) {
        show_counts(progress, event);
        return;
    }
    end_line(progress);
    switch (event->kind) {
    case RUN_EVENT_STARTED:
        fprintf(stderr, "run folder: %s\n", event->text);
        break;
    case RUN_EVENT_PHASE:
        fprintf(stderr, "%s\n", event->text);
        break;
    case RUN_EVENT_FAILED:
        /* Why is said once, at the end, by the command line. */
        fputs("  failed; what there is will be sealed\n", stderr);
        break;
    case RUN_EVENT_SEALED:
        printf("%s\n", event->text);
        (void)output_flush(); /* main tells when it fails */
        break;
    case RUN_EVENT_ENDED:
        fprintf(stderr, "%s\n", event->text);
        break;
    case RUN_EVENT_NOTE:
    case RUN_EVENT_PROGRESS:
        fprintf(stderr, "  %s\n", event->text);
        break;
    }
}

struct run_observer progress_observer(struct progress *progress) {
    return (struct run_observer){.event = show, .context = progress};
}
