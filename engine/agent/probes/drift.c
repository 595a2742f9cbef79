/*
 * The probe `drift`: how many files that were set no longer have the value that was set. All files are read
 * for the first and the last sample. In between 50 files a second are read, or a tenth of all if that is
 * more, so that each is read at least every 10 s.
 */
#include "engine/agent/controls/plan.h"
#include "engine/agent/probes/probe.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { ROUND_SECONDS = 10, LEAST_A_SECOND = 50 };

struct expectation {
    char *path; /* owned; the value follows its NUL */
    const char *value;
    bool drifted;
};

struct drift {
    struct expectation *items;
    size_t count, next, drifted;
    bool all_read; /* the first sample, which reads all files, was taken */
    int64_t began_ns;
    uint64_t done; /* files read since began_ns */
};

/* Reads one file, and reports an event when its state changes: `drift`, or `drift-over`. */
static void check_file(struct probing *probing, struct drift *drift, struct expectation *item) {
    char content[PLAN_VALUE_SIZE];
    int r = machine_read_value(probing->machine, item->path, content, sizeof content);
    if (r < 0)
        snprintf(content, sizeof content, "(%s)", strerror(-r));
    else
        plan_choose(content);
    bool drifted = r < 0 || strcmp(content, item->value) != 0;
    if (drifted == item->drifted)
        return;
    item->drifted = drifted;
    drift->drifted += drifted ? 1 : (size_t)-1;
    probing_event(probing, drifted ? "drift" : "drift-over", "/%s: expected %s, found %s", item->path,
                  item->value, content);
}

/* How many files to read for this sample. */
static size_t files_due(struct probing *probing, struct drift *drift) {
    if (!drift->all_read || probing->last) {
        drift->all_read = true;
        drift->began_ns = probing->now_ns;
        drift->done = 0;
        return drift->count;
    }
    double seconds = (double)(probing->now_ns - drift->began_ns) / 1e9;
    double rate = (double)drift->count / ROUND_SECONDS;
    uint64_t due = (uint64_t)(seconds * (rate > LEAST_A_SECOND ? rate : LEAST_A_SECOND));
    uint64_t more = due > drift->done ? due - drift->done : 0;
    drift->done = due;
    return more < drift->count ? (size_t)more : drift->count;
}

static void sample(struct probing *probing) {
    struct drift *drift = probing->state;
    for (size_t left = files_due(probing, drift); left > 0; left--) {
        check_file(probing, drift, &drift->items[drift->next]);
        drift->next = (drift->next + 1) % drift->count;
    }
    probing_put_number(probing, drift->drifted);
}

/* Adds the expectation TEXT, "/PATH=VALUE". */
static int add_expectation(struct drift *drift, const char *text) {
    struct expectation *item = &drift->items[drift->count];
    item->path = strdup(text + 1);
    if (!item->path)
        return -ENOMEM;
    drift->count++;
    char *value = strchr(item->path, '=');
    *value++ = '\0';
    value += strspn(value, " \t\n\v\f\r");
    (void)machine_trim(value, strlen(value));
    item->value = value;
    return 0;
}

static void begin(struct probing *probing) {
    size_t count = probing->expectation_count;
    struct drift *drift = probing->state;
    if (count == 0)
        return;
    if (!(drift->items = calloc(count, sizeof *drift->items)))
        probing->error = -ENOMEM;
    for (size_t i = 0; i < count && probing->error == 0; i++)
        probing->error = add_expectation(drift, probing->expectations[i]);
    snprintf(probing->source, sizeof probing->source, "%zu expected values", drift->count);
    probing_add_column(probing, "1", "drifted");
}

static void end(struct probing *probing) {
    struct drift *drift = probing->state;
    for (size_t i = 0; i < drift->count; i++)
        free(drift->items[i].path);
    free(drift->items);
}

const struct probe probe_drift = {.name = "drift",
                                  .missing = "nothing is expected (--expect)",
                                  .state_size = sizeof(struct drift),
                                  .begin = begin,
                                  .sample = sample,
                                  .end = end};
