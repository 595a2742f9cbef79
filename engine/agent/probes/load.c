/*
 * The probe `load`: how busy the machine is, and how much of that is foreign work. /proc/stat counts in ticks
 * of 10 ms and costs the kernel a walk over all PUs and interrupts, so it is read at most ten times a second.
 * /proc/loadavg changes every 5 s and is read at most once a second. The time of the agent's family costs
 * three files for each process: it is read at most once a second, and less often the longer it takes, so that
 * it costs at most a thousandth of one PU.
 */
#include "engine/agent/probes/foreign.h"
#include "engine/agent/probes/probe.h"
#include "engine/agent/probes/source.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { STAT_SIZE = MACHINE_FILE_LIMIT, FAMILY_SHARE = 1000 };
#define FAMILY_PAUSE_LIMIT_NS (30 * PROBE_SECOND)

struct ticks {
    uint64_t busy, all, switches, interrupts;
};

struct load {
    struct source average, stat;
    char *content;
    struct ticks begun, last;
    int64_t average_due_ns, family_due_ns;
    pid_t family;                     /* 0: not known */
    uint64_t family_ticks, busy_then; /* ticks of the family and of the machine at family_read_ns */
    int64_t family_read_ns;           /* 0: the family's ticks are not known */
};

static uint64_t number_after(const char *content, const char *word) {
    const char *at = strstr(content, word);
    return at ? strtoull(at + strlen(word), NULL, 10) : 0;
}

/* Reads /proc/stat into *RET: "cpu  user nice system idle iowait irq softirq steal guest guest_nice", and the
 * counts of context switches and interrupts. Busy is user to system, irq and softirq: the time of guests is
 * in user and nice already, and stolen time was not spent by this machine. 0 or a negative errno. */
static int read_stat(struct probing *probing, struct load *load, struct ticks *ret) {
    unsigned long long user, nice, system, idle, waiting, irq, softirq, stolen = 0;
    ssize_t length = source_read(&load->stat, probing->machine, probing->now_ns, load->content, STAT_SIZE);
    if (length < 0)
        return (int)length;
    if (sscanf(load->content, "cpu %llu %llu %llu %llu %llu %llu %llu %llu", &user, &nice, &system, &idle,
               &waiting, &irq, &softirq, &stolen) < 7 ||
        !strstr(load->content, "\nctxt ") || !strstr(load->content, "\nintr "))
        return -EINVAL;
    ret->busy = user + nice + system + irq + softirq;
    ret->all = ret->busy + idle + waiting + stolen;
    ret->switches = number_after(load->content, "\nctxt ");
    ret->interrupts = number_after(load->content, "\nintr ");
    return 0;
}

/* Puts the load average of one minute, or nothing if it was read less than a second ago. */
static void put_average(struct probing *probing, struct load *load) {
    char content[64];
    if (!probing->last && probing->now_ns < load->average_due_ns) {
        probing_put_empty(probing);
        return;
    }
    load->average_due_ns = probing->now_ns + PROBE_SECOND;
    ssize_t length = source_read(&load->average, probing->machine, probing->now_ns, content, sizeof content);
    size_t digits = length < 0 ? 0 : strspn(content, "0123456789."), whole = strspn(content, "0123456789");
    if (length < 0 || digits == 0 || digits >= PROBE_VALUE_SIZE || whole == 0 || content[whole] != '.' ||
        content[digits] != ' ')
        probing_put_gone(probing);
    else
        probing_put(probing, content, digits);
}

/* Puts the PUs that foreign processes kept busy since the last reading: the machine's busy time less the
 * family's. The two are read at slightly different times, so that the difference may be a tick below 0, and
 * is then 0. */
static void put_foreign(struct probing *probing, struct load *load, const struct ticks *now) {
    uint64_t ticks = 0;
    if (load->family == 0 || (!probing->last && probing->now_ns < load->family_due_ns)) {
        probing_put_empty(probing);
        return;
    }
    int64_t began = clock_monotonic_ns();
    bool known = foreign_family_ticks(load->family, &ticks);
    int64_t ended = clock_monotonic_ns(), pause = (ended - began) * FAMILY_SHARE;
    int64_t elapsed = load->family_read_ns ? began - load->family_read_ns : 0;
    if (known && elapsed > PROBE_SECOND / 4) {
        double per_second = (double)sysconf(_SC_CLK_TCK);
        double others =
            (double)(int64_t)(now->busy - load->busy_then) - (double)(int64_t)(ticks - load->family_ticks);
        double share = others * 1e9 / per_second / (double)elapsed;
        probing_put_decimal(probing, share > 0 && share < 1e6 ? share : 0, 3);
    } else {
        probing_put_empty(probing);
    }
    load->family_ticks = ticks;
    load->busy_then = now->busy;
    load->family_read_ns = known ? began : 0;
    pause = pause > FAMILY_PAUSE_LIMIT_NS ? FAMILY_PAUSE_LIMIT_NS : pause;
    load->family_due_ns = probing->now_ns + (pause > PROBE_SECOND ? pause : PROBE_SECOND);
}

/* Puts load average, busy share, foreign load, context switches and interrupts; all are gone when /proc/stat
 * cannot be read. */
static void sample(struct probing *probing) {
    struct load *load = probing->state;
    struct ticks now = {0};
    put_average(probing, load);
    if (read_stat(probing, load, &now) < 0) {
        while (probing->at < probing->count)
            probing_put_gone(probing);
        return;
    }
    uint64_t all = now.all - load->last.all, busy = now.busy - load->last.busy;
    if (now.all > load->last.all && now.busy >= load->last.busy && busy <= all)
        probing_put_decimal(probing, (double)busy / (double)all, 4);
    else
        probing_put_empty(probing); /* no tick since the last sample */
    put_foreign(probing, load, &now);
    probing_put_number(probing, now.switches - load->begun.switches);
    probing_put_number(probing, now.interrupts - load->begun.interrupts);
    load->last = now;
}

/* Reads the first values of /proc/stat and of the agent's own processes, and adds the columns. */
static void begin(struct probing *probing) {
    static const char *const names[] = {"load-1min", "busy", "foreign", "context-switches", "interrupts"};
    struct load *load = probing->state;
    load->content = malloc(STAT_SIZE);
    if (!load->content || source_init(&load->average, "proc/loadavg") < 0 ||
        source_init(&load->stat, "proc/stat") < 0) {
        probing->error = -ENOMEM;
        return;
    }
    int r = read_stat(probing, load, &load->begun);
    if (r < 0)
        probing_fail(probing, r, "/proc/stat: %s", strerror(-r));
    load->last = load->begun;
    if (!probing->machine->captured)
        load->family = foreign_find_family();
    if (load->family && foreign_family_ticks(load->family, &load->family_ticks)) {
        load->family_read_ns = clock_monotonic_ns();
        load->busy_then = load->begun.busy;
    }
    load->family_due_ns = probing->now_ns + PROBE_SECOND / 2;
    snprintf(probing->source, sizeof probing->source, "/proc/loadavg, /proc/stat%s",
             load->family ? ", the agent's processes" : "");
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        probing_add_column(probing, "1", "%s", names[i]);
}

static void end(struct probing *probing) {
    struct load *load = probing->state;
    source_clear(&load->average);
    source_clear(&load->stat);
    free(load->content);
}

const struct probe probe_load = {.name = "load",
                                 .state_size = sizeof(struct load),
                                 .every_ns = PROBE_SECOND / 10,
                                 .begin = begin,
                                 .sample = sample,
                                 .end = end};
