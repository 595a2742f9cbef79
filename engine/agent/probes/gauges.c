/* What every gauge shares; and the probes that need no more: frequency, throttle, memory. */
#include "engine/agent/probes/gauges.h"

#include "engine/agent/probes/source.h"
#include "engine/foundation/list.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct gauge {
    struct source source;
    enum gauge_scale scale;
};

void gauges_add(struct probing *probing, const char *path, enum gauge_scale scale, const char *unit,
                const char *name, ...) {
    char text[PROBE_NAME_SIZE];
    va_list arguments;
    va_start(arguments, name);
    vsnprintf(text, sizeof text, name, arguments);
    va_end(arguments);
    struct gauges *gauges = probing->state;
    if (list_reserve(&gauges->items, &gauges->capacity, gauges->count + 1, sizeof *gauges->items,
                     PROBE_COLUMN_LIMIT + 1) < 0) {
        probing->error = -ENOMEM;
        return;
    }
    struct gauge *gauge = &gauges->items[gauges->count];
    if (!probing_add_column(probing, unit, "%s", text))
        return;
    gauge->scale = scale;
    if (source_init(&gauge->source, path) < 0)
        probing->error = -ENOMEM;
    gauges->count++;
}

static void put_thousandfold(struct probing *probing, char *digits, size_t length) {
    memcpy(digits + length, "000", 3);
    probing_put(probing, digits, length == 1 && digits[0] == '0' ? 1 : length + 3);
}

static void put_thousandth(struct probing *probing, char *digits, size_t length) {
    size_t first = digits[0] == '-';
    while (length - first < 4) { /* 50 is 0.050 */
        memmove(digits + first + 1, digits + first, length - first);
        digits[first] = '0';
        length++;
    }
    memmove(digits + length - 2, digits + length - 3, 3);
    digits[length - 3] = '.';
    probing_put(probing, digits, length + 1);
}

/* "MemFree:        24198396 kB", at the beginning of a line: that of the next column. */
static void put_kibibytes(struct probing *probing, struct source *source) {
    char content[16 << 10], field[PROBE_NAME_SIZE];
    size_t length = (size_t)snprintf(field, sizeof field, "Mem%s:", probing->columns[probing->at].name);
    bool there = source_read(source, probing->machine, probing->now_ns, content, sizeof content) > 0;
    for (const char *line = there ? content : NULL; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncasecmp(line, field, length) != 0)
            continue;
        uint64_t number;
        const char *digits = line + length + strspn(line + length, " \t");
        size_t count = strspn(digits, "0123456789");
        if (!number_parse_uint64(digits, count, &number) || strncmp(digits + count, " kB", 3) != 0 ||
            __builtin_mul_overflow(number, UINT64_C(1024), &number))
            break;
        probing_put_number(probing, number);
        return;
    }
    probing_put_gone(probing);
}

void gauges_sample(struct probing *probing) {
    struct gauges *gauges = probing->state;
    for (size_t i = 0; i < gauges->count; i++) {
        char digits[64];
        struct gauge *gauge = &gauges->items[i];
        if (gauge->scale == GAUGE_KIBIBYTES) {
            put_kibibytes(probing, &gauge->source);
            continue;
        }
        ssize_t length =
            source_read_digits(&gauge->source, probing->machine, probing->now_ns, digits, sizeof digits);
        if (length < 0 || length > PROBE_VALUE_SIZE - 5)
            probing_put_gone(probing);
        else if (gauge->scale == GAUGE_THOUSANDFOLD)
            put_thousandfold(probing, digits, (size_t)length);
        else if (gauge->scale == GAUGE_THOUSANDTH)
            put_thousandth(probing, digits, (size_t)length);
        else
            probing_put(probing, digits, (size_t)length);
    }
}

void gauges_end(struct probing *probing) {
    struct gauges *gauges = probing->state;
    for (size_t i = 0; i < gauges->count; i++)
        source_clear(&gauges->items[i].source);
    free(gauges->items);
}

/* ---- of PUs */

#define CPU "sys/devices/system/cpu"

/* "cpuN/NAME" into PATH; whether it is there. */
static bool find_file(const struct machine *machine, unsigned pu, const char *name, char path[static 128]) {
    snprintf(path, 128, CPU "/cpu%u/%s", pu, name);
    return machine_has(machine, path);
}

static struct pu_set read_online(struct probing *probing) {
    struct pu_set online;
    int r = machine_read_set(probing->machine, CPU "/online", &online);
    if (r < 0)
        probing_fail(probing, r, "/" CPU "/online: %s", strerror(-r));
    return r < 0 ? (struct pu_set){0} : online;
}

static void begin_frequency(struct probing *probing) {
    struct pu_set online = read_online(probing);
    char path[128];
    for (unsigned pu = 0; pu < PROTOCOL_PU_LIMIT; pu++)
        if (pu_set_has(&online, pu) && find_file(probing->machine, pu, "cpufreq/scaling_cur_freq", path))
            gauges_add(probing, path, GAUGE_THOUSANDFOLD, "Hz", "cpu%u", pu);
}

static unsigned read_topology(const struct machine *machine, unsigned pu, const char *name) {
    char path[128];
    int64_t value;
    snprintf(path, sizeof path, CPU "/cpu%u/topology/%s", pu, name);
    return machine_read_number(machine, path, &value) < 0 || value < 0 ? 0 : (unsigned)value;
}

/* How often cores and packages were slowed down because they were too hot, since boot. The threads of a core
 * count the same: the first one speaks for it. So does a package's first. */
static void begin_throttle(struct probing *probing) {
    const struct machine *machine = probing->machine;
    struct pu_set online = read_online(probing), packages = {0}, siblings;
    for (unsigned pu = 0; pu < PROTOCOL_PU_LIMIT; pu++) {
        char path[128];
        if (!pu_set_has(&online, pu))
            continue;
        machine_read_siblings(machine, pu, &siblings);
        if (pu_set_first(&siblings) != pu)
            continue;
        unsigned package = read_topology(machine, pu, "physical_package_id");
        if (!pu_set_has(&packages, package) &&
            find_file(machine, pu, "thermal_throttle/package_throttle_count", path))
            gauges_add(probing, path, GAUGE_AS_IT_IS, "1", "package-%u", package);
        pu_set_add(&packages, package);
        if (find_file(machine, pu, "thermal_throttle/core_throttle_count", path))
            gauges_add(probing, path, GAUGE_AS_IT_IS, "1", "core-%u-%u", package,
                       read_topology(machine, pu, "core_id"));
    }
}

const struct probe probe_frequency = {.name = "frequency",
                                      .source = "cpufreq scaling_cur_freq",
                                      .missing =
                                          "no PU has /sys/devices/system/cpu/cpuN/cpufreq/scaling_cur_freq",
                                      .state_size = sizeof(struct gauges),
                                      .begin = begin_frequency,
                                      .sample = gauges_sample,
                                      .end = gauges_end};
const struct probe probe_throttle = {.name = "throttle",
                                     .source = "thermal_throttle",
                                     .missing = "no PU has /sys/devices/system/cpu/cpuN/thermal_throttle",
                                     .state_size = sizeof(struct gauges),
                                     .begin = begin_throttle,
                                     .sample = gauges_sample,
                                     .end = gauges_end};

/* ---- memory: the kernel counts pages in batches, so it is not worth reading often */

static void begin_memory(struct probing *probing) {
    static const char path[] = "proc/meminfo";
    char first[1];
    ssize_t length = machine_read_small(probing->machine, path, first, sizeof first);
    if (length < 0 && length != -EFBIG)
        probing_fail(probing, (int)length, "/%s: %s", path, strerror((int)-length));
    gauges_add(probing, path, GAUGE_KIBIBYTES, "By", "available");
    gauges_add(probing, path, GAUGE_KIBIBYTES, "By", "free");
}

const struct probe probe_memory = {.name = "memory",
                                   .source = "/proc/meminfo",
                                   .every_ns = PROBE_SECOND / 10,
                                   .state_size = sizeof(struct gauges),
                                   .begin = begin_memory,
                                   .sample = gauges_sample,
                                   .end = gauges_end};
