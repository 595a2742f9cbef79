/*
 * --spin: keeps every PU busy for a moment, and measures the frequency of each in the second half, when it
 * has settled. It uses the first of these sources that the machine has:
 *
 * aperf: the counters APERF (0xE8) and MPERF (0xE7) of /dev/cpu/N/msr, scaled by the time stamp counter
 * (cycles.h); needs root, and the module msr.
 *
 * cpufreq: the mean of several readings of scaling_cur_freq.
 *
 * cycles: the time of a chain of dependent additions, in windows of about 0.1 ms. The fastest window is used,
 * because other processes on the PU can only make a window slower.
 *
 * Of a captured machine only scaling_cur_freq is read.
 */
#include "engine/agent/load/cycles.h"
#include "engine/agent/load/pus.h"
#include "engine/agent/machine/machine.h"
#include "engine/agent/machine/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    MPERF = 0xe7,
    APERF = 0xe8,
    WINDOW_CYCLES = 4096 * CYCLES_CHAIN,
    READINGS = 8,
    DEFAULT_MILLISECONDS = 1000,
    MILLISECONDS_MAX = 600000,
};
#define MILLISECOND INT64_C(1000000)
#define TOGETHER_NS (20 * MILLISECOND) /* time for all processes to start */

struct result {
    double mean_hz, current_hz; /* 0: not known */
    const char *source;
};

struct spin {
    const struct machine *machine;
    int64_t begin_ns, middle_ns, end_ns;
    struct result *results; /* in memory shared with the children, in the order of the PUs */
};

/* ---- sources */

static bool read_counters(int file, struct cycles_counters *ret) {
    bool there = file >= 0 && pread(file, &ret->maximum, sizeof ret->maximum, MPERF) == sizeof ret->maximum &&
                 pread(file, &ret->actual, sizeof ret->actual, APERF) == sizeof ret->actual;
    ret->stamp = cycles_time_stamp();
    ret->now_ns = clock_monotonic_ns();
    return there && ret->stamp != 0;
}

static double read_current(const struct machine *machine, unsigned pu) {
    int64_t kilohertz;
    const char *path = machine_path("sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq", pu);
    return machine_read_number(machine, path, &kilohertz) < 0 || kilohertz <= 0 ? 0 : (double)kilohertz * 1e3;
}

/* Runs windows of additions until UNTIL_NS. Returns the frequency in Hz of the fastest window; 0: not known
 * on this processor. */
static double spin_until(int64_t until_ns) {
    int64_t before_ns = clock_monotonic_ns(), best_ns = INT64_MAX;
    bool counts = true;
    while (before_ns < until_ns) {
        counts = cycles_spend(WINDOW_CYCLES) && counts;
        int64_t now_ns = clock_monotonic_ns();
        if (now_ns > before_ns && now_ns - before_ns < best_ns)
            best_ns = now_ns - before_ns;
        before_ns = now_ns;
    }
    return counts && best_ns < INT64_MAX ? (double)WINDOW_CYCLES * 1e9 / (double)best_ns : 0;
}

/* ---- one PU */

/* Fills RESULT from the best source; 0 Hz: the source is not there. */
static void choose_source(struct result *result, double by_counters, double by_cpufreq, double by_cycles) {
    result->current_hz = by_cpufreq;
    result->mean_hz = by_counters > 0 ? by_counters : by_cpufreq > 0 ? by_cpufreq : by_cycles;
    result->source = by_counters > 0 ? "aperf" : by_cpufreq > 0 ? "cpufreq" : "cycles";
}

/* Runs in a child bound to PU: keeps it busy and measures its frequency. */
static void measure_pu(void *context, unsigned pu, unsigned index) {
    struct spin *spin = context;
    struct cycles_counters from, to;
    double sum = 0, fastest = 0;
    int readings = 0;
    cleanup_close int registers =
        machine_open_file(spin->machine, machine_path("dev/cpu/%u/msr", pu), O_RDONLY);
    spin_until(spin->begin_ns);
    spin_until(spin->middle_ns);
    bool counted = read_counters(registers, &from);
    for (int i = 1; i <= READINGS; i++) {
        double hz = spin_until(spin->middle_ns + (spin->end_ns - spin->middle_ns) / READINGS * i);
        double current = read_current(spin->machine, pu);
        fastest = hz > fastest ? hz : fastest;
        sum += current;
        readings += current > 0;
    }
    counted = counted && read_counters(registers, &to);
    choose_source(&spin->results[index], counted ? cycles_mean_hz(&from, &to) : 0,
                  readings ? sum / readings : 0, fastest);
}

/* ---- all PUs */

static int spin_for_real(struct spin *spin, const struct pu_set *pus, unsigned count, unsigned *ret_pu) {
    static pid_t pids[PROTOCOL_PU_LIMIT];
    int r = load_start(pus, measure_pu, spin, pids, ret_pu);
    for (unsigned i = 0; r == 0 && i < count; i++)
        while (waitpid(pids[i], NULL, 0) < 0 && errno == EINTR)
            continue;
    return r;
}

static void read_captured(struct spin *spin, const struct pu_set *pus) {
    unsigned index = 0;
    for (unsigned pu = pu_set_first(pus); pu < PROTOCOL_PU_LIMIT; pu = pu_set_next(pus, pu))
        choose_source(&spin->results[index++], 0, read_current(spin->machine, pu), 0);
}

/* Prints a line for each PU. True where the frequency of all PUs is known. */
static bool print(const struct spin *spin, const struct pu_set *pus) {
    bool whole = true;
    unsigned index = 0;
    for (unsigned pu = pu_set_first(pus); pu < PROTOCOL_PU_LIMIT; pu = pu_set_next(pus, pu)) {
        const struct result *result = &spin->results[index++];
        char mean[32] = "", current[32] = "";
        if (result->mean_hz > 0)
            snprintf(mean, sizeof mean, "%.0f", result->mean_hz);
        else
            tool_complain(1, "--spin: the machine does not report the frequency of PU %u", pu);
        if (result->current_hz > 0)
            snprintf(current, sizeof current, "%.0f", result->current_hz);
        printf("spin\t%u\t%s\t%s\t%s\n", pu, mean, result->source ? result->source : "", current);
        whole = whole && result->mean_hz > 0;
    }
    return fflush(stdout) == 0 && whole;
}

/* Keeps the PUs of LIST, or all, busy for LENGTH_NS and prints their frequencies. The exit status of the
 * tool. */
static int spin_all(const struct machine *machine, int64_t length_ns, const char *list) {
    struct pu_set pus;
    unsigned pu = 0;
    int r = !list && machine->captured ? machine_read_set(machine, "sys/devices/system/cpu/online", &pus)
                                       : load_choose_pus("--spin", list, &pus);
    if (r != 0)
        return r < 0 ? tool_complain(1, "--spin: which PUs there are: %s", strerror(-r)) : r;
    unsigned count = pu_set_count(&pus);
    struct spin spin = {.machine = machine, .begin_ns = clock_monotonic_ns() + TOGETHER_NS};
    spin.middle_ns = spin.begin_ns + length_ns / 2;
    spin.end_ns = spin.begin_ns + length_ns;
    spin.results = mmap(NULL, (count + 1) * sizeof *spin.results, PROT_READ | PROT_WRITE,
                        MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (spin.results == MAP_FAILED)
        return tool_complain(1, "--spin: %s", strerror(errno));
    if (machine->captured)
        read_captured(&spin, &pus);
    else
        r = spin_for_real(&spin, &pus, count, &pu);
    if (r < 0)
        return tool_complain(1, "--spin: cannot keep PU %u busy: %s", pu, strerror(-r));
    return print(&spin, &pus) ? 0 : 1;
}

int tool_spin(int count, char **arguments) {
    const char *root = NULL, *list = NULL;
    int64_t milliseconds = DEFAULT_MILLISECONDS;
    cleanup(machine_close) struct machine machine = {.root = -1};
    const struct tool_option options[] = {
        {"--root", .text = &root},
        {"--pus", .text = &list},
        {"--milliseconds", .number = &milliseconds, .min = 1, .max = MILLISECONDS_MAX},
        {NULL}};
    if (tool_parse(count, arguments, options, 0) < 0 || tool_open_machine(root, &machine) != 0)
        return 2;
    signal(SIGCHLD, SIG_DFL); /* so that they can be waited for */
    return spin_all(&machine, milliseconds * MILLISECOND, list);
}
