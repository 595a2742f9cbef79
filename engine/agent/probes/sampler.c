#include "engine/agent/probes/sampler.h"

#include "engine/agent/controls/lines.h"
#include "engine/agent/probes/output.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <time.h>

enum {
    LINE_MAX_BYTES = 256 << 10,
    WRITE_AT = 32 << 10, /* half of what a pipe holds */
    DRAIN_MS = 5000,
    NICENESS = -10,
    TIMER_SLACK_NS = 1000,
};
#define CHECK_READER_NS (10 * PROBE_SECOND)

/* A probe that is sampled, with its times. */
struct sampled {
    struct probing probing;
    struct sampler *sampler;
    int64_t period_ns, due_ns, refresh_ns;
    uint64_t missed; /* samples missed since its last line */
};

struct sampler {
    const struct sampler_options *options;
    struct sampled items[PROBE_LIMIT];
    size_t count;
    struct output output;
    int64_t oldest_ns;        /* due time of the oldest line that waits in `output` */
    uint64_t samples, missed; /* of all probes */
    int64_t worst_late_ns;
    struct lines lines; /* the line that is being made */
};

/* ---- waiting */

static volatile sig_atomic_t ending;
static struct timespec deadline;

/* Also clears the deadline: a signal that comes just before clock_nanosleep() then makes it return at once.
 */
static void on_signal(int number) {
    (void)number;
    ending = 1;
    deadline = (struct timespec){0};
}

static void watch_signals(void) {
    static const int numbers[] = {SIGTERM, SIGINT, SIGHUP};
    struct sigaction action = {.sa_handler = on_signal};
    ending = 0;
    for (size_t i = 0; i < sizeof numbers / sizeof *numbers; i++)
        sigaction(numbers[i], &action, NULL);
}

static void sleep_until(int64_t time_ns) {
    do {
        /* An absolute time of the system's clock, so that time that passes before the call does not make the
         * sample late. */
        int64_t until_ns = clock_system_ns(time_ns);
        deadline = (struct timespec){.tv_sec = until_ns / PROBE_SECOND, .tv_nsec = until_ns % PROBE_SECOND};
        atomic_signal_fence(memory_order_seq_cst);
        if (!ending)
            clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &deadline, NULL);
    } while (!ending && clock_waits_again(time_ns));
}

/* Raises this process's priority, if that is allowed, by niceness. Real-time scheduling is not used: such a
 * process is woken on the PU where it ran before, even if a computation runs there and another PU is idle.
 * With this niceness a sample on a busy machine hardly ever waits for a second tick of the scheduler. */
static void raise_priority(void) {
    (void)setpriority(PRIO_PROCESS, 0, NICENESS);
    (void)prctl(PR_SET_TIMERSLACK, TIMER_SLACK_NS);
}

/* ---- lines */

/* Queues the line in `lines`. False: it is lost, because there is no room or no memory. */
static bool put_line(struct sampler *sampler, int64_t due_ns, bool is_sample) {
    struct lines *lines = &sampler->lines;
    bool was_empty = sampler->output.waiting.length == 0;
    bool queued =
        lines->error == 0 && output_put(&sampler->output, lines->text.bytes, lines->text.length, is_sample);
    if (queued && was_empty)
        sampler->oldest_ns = due_ns;
    lines->error = 0;
    text_reset(&lines->text);
    return queued;
}

/* Queues the line `probe`: the probe's columns with their units. */
static void put_header(struct sampler *sampler, size_t index) {
    const struct sampled *item = &sampler->items[index];
    const struct probing *probing = &item->probing;
    struct lines *lines = &sampler->lines;
    int r = text_printf(&lines->text, "probe\t%zu\t%s\t%lld", index, probing->probe->name,
                        (long long)item->period_ns);
    for (size_t i = 0; i < probing->count && r == 0; i++)
        r = text_printf(&lines->text, "\t%s:%s", probing->columns[i].name, probing->columns[i].unit);
    lines->error = r == 0 ? text_append_character(&lines->text, '\n') : r;
    put_line(sampler, 0, false);
}

static void put_event(void *context, const char *kind, const char *text) {
    struct sampled *item = context;
    char wall[NUMBER_TEXT_SIZE], now[NUMBER_TEXT_SIZE];
    int64_t now_ns = clock_monotonic_ns();
    number_format_int64(clock_wall_ns(), wall);
    number_format_int64(now_ns, now);
    lines_put(&item->sampler->lines, "event", wall, now, kind, text, NULL);
    put_line(item->sampler, now_ns, false);
}

/* Queues the line of a sample; a lost line counts as missed. */
static void put_sample(struct sampler *sampler, size_t index, int64_t wall_ns, int64_t now_ns,
                       int64_t late_ns) {
    struct sampled *item = &sampler->items[index];
    struct text *text = &sampler->lines.text;
    int r = text_printf(text, "s%zu,%lld,%lld,%lld,%llu", index, (long long)wall_ns, (long long)now_ns,
                        (long long)late_ns, (unsigned long long)item->missed);
    if (r == 0)
        r = text_append(text, item->probing.values, item->probing.length);
    sampler->lines.error = r == 0 ? text_append_character(text, '\n') : r;
    if (!put_line(sampler, now_ns, true)) {
        item->missed++;
        return;
    }
    sampler->samples++;
    sampler->missed += item->missed;
    item->missed = 0;
}

/* ---- sampling */

/* Samples a probe now and queues its line. LAST: the final sample, which has no due time. */
static void take_sample(struct sampler *sampler, size_t index, int64_t due_ns, bool last) {
    struct sampled *item = &sampler->items[index];
    int64_t wall_ns = clock_wall_ns(), now_ns = clock_monotonic_ns(), late_ns = last ? 0 : now_ns - due_ns;
    if (late_ns > sampler->worst_late_ns)
        sampler->worst_late_ns = late_ns;
    item->probing.now_ns = last ? now_ns : due_ns;
    item->probing.last = last;
    item->refresh_ns = now_ns + item->probing.probe->refresh_ns;
    probing_sample(&item->probing);
    put_sample(sampler, index, wall_ns, now_ns, late_ns);
}

/* Samples a probe if it is due, or refreshes it. After a delay of more than a period only the latest due
 * sample is taken, and the others count as missed. */
static void sample_if_due(struct sampler *sampler, size_t index) {
    struct sampled *item = &sampler->items[index];
    int64_t now_ns = clock_monotonic_ns();
    if (item->due_ns <= now_ns) {
        int64_t skipped = (now_ns - item->due_ns) / item->period_ns;
        item->missed += (uint64_t)skipped;
        item->due_ns += skipped * item->period_ns;
        take_sample(sampler, index, item->due_ns, false);
        item->due_ns += item->period_ns;
    } else if (item->probing.probe->refresh && item->refresh_ns <= now_ns) {
        item->refresh_ns = now_ns + item->probing.probe->refresh_ns;
        item->probing.now_ns = now_ns;
        probing_refresh(&item->probing);
    }
}

/* The time of the next sample or refresh, at most CHECK_READER_NS from now. */
static int64_t find_next_wakeup(const struct sampler *sampler) {
    int64_t next = clock_monotonic_ns() + CHECK_READER_NS;
    for (size_t i = 0; i < sampler->count; i++) {
        const struct sampled *item = &sampler->items[i];
        if (item->due_ns < next)
            next = item->due_ns;
        if (item->probing.probe->refresh && item->refresh_ns < next)
            next = item->refresh_ns;
    }
    return next;
}

/* Writes the queued lines as late as they may wait, but never wakes up only to write. NEXT_NS: the next
 * wake-up. With nothing to write, checks whether the reader is still there. */
static void write_if_due(struct sampler *sampler, int64_t next_ns) {
    struct output *output = &sampler->output;
    if (output->waiting.length == 0) {
        struct pollfd reader = {.fd = output->descriptor};
        if (next_ns - clock_monotonic_ns() >= PROBE_SECOND && poll(&reader, 1, 0) > 0)
            output->broken = (reader.revents & (POLLERR | POLLNVAL)) != 0;
    } else if (output->waiting.length >= WRITE_AT ||
               next_ns - sampler->oldest_ns >= sampler->options->flush_ns) {
        output_flush(output);
    }
}

/* Sleeps until the next probe is due and samples it, until a signal asks to end or the output breaks. */
static void loop(struct sampler *sampler) {
    for (;;) {
        int64_t next_ns = find_next_wakeup(sampler);
        write_if_due(sampler, next_ns);
        if (sampler->output.broken)
            return;
        sleep_until(next_ns);
        if (ending)
            return;
        for (size_t i = 0; i < sampler->count; i++)
            sample_if_due(sampler, i);
    }
}

/* ---- begin and end */

/* Begins the probe number WANTED of the options, and queues its header, or a line `missing`. */
static void begin_probe(struct sampler *sampler, size_t wanted) {
    const struct sampler_options *options = sampler->options;
    struct sampled *item = &sampler->items[sampler->count];
    *item = (struct sampled){.sampler = sampler, .period_ns = options->probes[wanted].period_ns};
    item->probing = (struct probing){.probe = options->probes[wanted].probe,
                                     .machine = options->machine,
                                     .expectations = options->expectations,
                                     .expectation_count = options->expectation_count,
                                     .event = put_event,
                                     .context = item,
                                     .now_ns = clock_monotonic_ns()};
    int r = probing_begin(&item->probing);
    if (item->probing.why[0]) {
        lines_put(&sampler->lines, "missing", item->probing.probe->name, item->probing.why, NULL);
        put_line(sampler, 0, false);
    }
    if (r < 0)
        probing_clear(&item->probing);
    else
        put_header(sampler, sampler->count++);
}

/* Begins all probes, and takes a first sample of each. */
static void begin(struct sampler *sampler) {
    for (size_t i = 0; i < sampler->options->count; i++)
        begin_probe(sampler, i);
    int64_t now_ns = clock_monotonic_ns();
    struct lines *lines = &sampler->lines;
    lines->error =
        text_printf(&lines->text, "begin\t%lld\t%lld\n", (long long)clock_wall_ns(), (long long)now_ns);
    put_line(sampler, now_ns, false);
    /* The first sample is taken at once, so that every later moment lies between two samples. */
    for (size_t i = 0; i < sampler->count; i++) {
        struct sampled *item = &sampler->items[i];
        item->due_ns = (now_ns / item->period_ns + 1) * item->period_ns;
        take_sample(sampler, i, clock_monotonic_ns(), false);
    }
    output_flush(&sampler->output);
}

/* The peak of the resident memory. (getrusage would report the parent's, if that used vfork.) */
static long long read_memory(void) {
    char line[128];
    long long kilobytes = 0;
    FILE *status = fopen("/proc/self/status", "re");
    while (status && fgets(line, sizeof line, status) && sscanf(line, "VmHWM: %lld", &kilobytes) != 1)
        continue;
    if (status)
        fclose(status);
    return kilobytes * 1024;
}

static void put_cost(struct sampler *sampler) {
    struct rusage usage;
    getrusage(RUSAGE_SELF, &usage);
    struct lines *lines = &sampler->lines;
    lines->error = text_printf(&lines->text, "cost\t%lld\t%lld\t%lld\t%llu\t%llu\t%lld\n",
                               (long long)usage.ru_utime.tv_sec * 1000000 + usage.ru_utime.tv_usec,
                               (long long)usage.ru_stime.tv_sec * 1000000 + usage.ru_stime.tv_usec,
                               (long long)sampler->worst_late_ns, (unsigned long long)sampler->samples,
                               (unsigned long long)sampler->missed, read_memory());
    put_line(sampler, clock_monotonic_ns(), false);
}

static int finish(struct sampler *sampler) {
    if (sampler->output.broken)
        return -EPIPE;
    for (size_t i = 0; i < sampler->count; i++)
        take_sample(sampler, i, 0, true);
    for (size_t i = 0; i < sampler->count; i++)
        sampler->missed += sampler->items[i].missed; /* not reported by any line */
    put_cost(sampler);
    return output_drain(&sampler->output, DRAIN_MS) ? 0 : sampler->output.broken ? -EPIPE : -ETIMEDOUT;
}

int sampler_run(const struct sampler_options *options) {
    struct sampler *sampler = calloc(1, sizeof *sampler);
    if (!sampler)
        return -ENOMEM;
    sampler->options = options;
    lines_init(&sampler->lines, LINE_MAX_BYTES);
    output_init(&sampler->output, options->descriptor);
    watch_signals();
    raise_priority();
    begin(sampler);
    loop(sampler);
    int r = finish(sampler);
    output_clear(&sampler->output);
    for (size_t i = 0; i < sampler->count; i++)
        probing_clear(&sampler->items[i].probing);
    lines_clear(&sampler->lines);
    free(sampler);
    return r;
}
