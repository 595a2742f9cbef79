/* Gauges, and the probes that consist of gauges only: frequency, throttle, memory. */
#include "engine/agent/probes/gauges.h"

#include "engine/foundation/list.h"
#include "engine/foundation/number.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#define LOST_AFTER_NS (60 * PROBE_SECOND)

/* Adds a column with the value of the file PATH. NULL: there are too many columns, or there is no memory. */
struct gauge *gauges_add(struct probing *probing, const char *path, enum gauge_scale scale, const char *unit,
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
        return NULL;
    }
    if (!probing_add_column(probing, unit, "%s", text))
        return NULL;
    struct gauge *gauge = &gauges->items[gauges->count++];
    /* A device that measures sets all bits of a value to say "unknown". Counters and numbers without a unit
     * come from the kernel, and may really be 65535. */
    *gauge = (struct gauge){.scale = scale, .is_measured = strcmp(unit, "1") != 0 && scale != GAUGE_COUNTER};
    if (source_init(&gauge->source, path) < 0)
        probing->error = -ENOMEM;
    return gauge;
}

/* Puts DIGITS, in thousandths, as a decimal number: "45000" as 45.000. */
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

/* Puts the value of the next column, in bytes, from its line of /proc/meminfo: "MemFree:        24198396 kB".
 */
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

/* Adds to a counter what it has counted since the last reading. DIGITS: its present value; "": it cannot be
 * read. */
static void update_counter(struct gauge *gauge, int64_t now_ns, const char *digits) {
    uint64_t counter;
    gauge->unknown = now_ns - gauge->read_ns > LOST_AFTER_NS ||
                     !number_parse_uint64(digits, strlen(digits), &counter) || counter > gauge->range;
    if (gauge->unknown)
        return;
    gauge->used += counter >= gauge->last ? counter - gauge->last : gauge->range - gauge->last + counter;
    gauge->last = counter;
    gauge->read_ns = now_ns;
}

/* True where DIGITS is no measured value. Firmware sets all of 16, 32 or 64 bits, signed or unsigned, where
 * it cannot measure, and drivers may scale that (0xffffffff mW of an ACPI meter is 4294967295000 uW). Other
 * impossible values are a power or frequency below 0, and a temperature outside of -273.15 to 255 Cel (8 bits
 * set). */
static bool is_unknown(const struct gauge *gauge, const char *digits) {
    static const int64_t all_ones[] = {-1, INT16_MAX, UINT16_MAX, INT32_MAX, UINT32_MAX, INT64_MAX};
    bool is_temperature = gauge->scale == GAUGE_THOUSANDTH;
    int64_t value, scaled;
    if (!number_parse_int64(digits, strlen(digits), &value) || value < (is_temperature ? -273150 : 0) ||
        (is_temperature && value >= 255000))
        return true;
    for (size_t i = 0; i < sizeof all_ones / sizeof *all_ones; i++)
        for (int64_t scale = 1; scale <= 1000000; scale *= 1000)
            if (!__builtin_mul_overflow(all_ones[i], scale, &scaled) && value == scaled)
                return true;
    return false;
}

/* Reads a gauge. PUT: puts its value in the sample; otherwise only a counter is updated. */
static void read_gauge(struct probing *probing, struct gauge *gauge, bool put) {
    char digits[64];
    ssize_t length =
        source_read_digits(&gauge->source, probing->machine, probing->now_ns, digits, sizeof digits);
    if (gauge->is_measured && length >= 0 && is_unknown(gauge, digits))
        length = -ENODATA;
    if (gauge->scale == GAUGE_COUNTER)
        update_counter(gauge, probing->now_ns, length < 0 ? "" : digits);
    if (!put)
        return;
    if (gauge->unknown || (gauge->scale != GAUGE_COUNTER && (length < 0 || length > PROBE_VALUE_SIZE - 5))) {
        probing_put_gone(probing);
    } else if (gauge->scale == GAUGE_COUNTER) {
        probing_put_number(probing, gauge->used);
    } else if (gauge->scale == GAUGE_THOUSANDTH) {
        put_thousandth(probing, digits, (size_t)length);
    } else if (gauge->scale == GAUGE_THOUSANDFOLD && strcmp(digits, "0") != 0) {
        memcpy(digits + length, "000", 3);
        probing_put(probing, digits, (size_t)length + 3);
    } else {
        probing_put(probing, digits, (size_t)length);
    }
}

void gauges_sample(struct probing *probing) {
    struct gauges *gauges = probing->state;
    for (size_t i = 0; i < gauges->count; i++)
        if (gauges->items[i].scale == GAUGE_KIBIBYTES)
            put_kibibytes(probing, &gauges->items[i].source);
        else
            read_gauge(probing, &gauges->items[i], true);
}

void gauges_refresh(struct probing *probing) {
    struct gauges *gauges = probing->state;
    for (size_t i = 0; i < gauges->count; i++)
        read_gauge(probing, &gauges->items[i], false);
}

void gauges_end(struct probing *probing) {
    struct gauges *gauges = probing->state;
    for (size_t i = 0; i < gauges->count; i++)
        source_clear(&gauges->items[i].source);
    free(gauges->items);
}

/* ---- gauges of PUs */

#define CPU "sys/devices/system/cpu"

static struct pu_set read_online(struct probing *probing) {
    struct pu_set online;
    int r = machine_read_set(probing->machine, CPU "/online", &online);
    if (r < 0)
        probing_fail(probing, r, "/" CPU "/online: %s", strerror(-r));
    return r < 0 ? (struct pu_set){0} : online;
}

static void begin_frequency(struct probing *probing) {
    struct pu_set online = read_online(probing);
    for (unsigned pu = pu_set_first(&online); pu < PROTOCOL_PU_LIMIT; pu = pu_set_next(&online, pu)) {
        const char *path = machine_path(CPU "/cpu%u/cpufreq/scaling_cur_freq", pu);
        if (machine_has(probing->machine, path))
            gauges_add(probing, path, GAUGE_THOUSANDFOLD, "Hz", "cpu%u", pu);
    }
}

static unsigned topology(const struct machine *machine, unsigned pu, const char *name) {
    int value = machine_read_topology(machine, pu, name);
    return value < 0 ? 0 : (unsigned)value;
}

/* Adds counters of thermal throttling of cores and packages since boot. All threads of a core have the same
 * count, so that only the first one's file is read; likewise for packages. */
static void begin_throttle(struct probing *probing) {
    const struct machine *machine = probing->machine;
    struct pu_set online = read_online(probing), packages = {0}, siblings;
    for (unsigned pu = pu_set_first(&online); pu < PROTOCOL_PU_LIMIT; pu = pu_set_next(&online, pu)) {
        machine_read_siblings(machine, pu, &siblings);
        if (pu_set_first(&siblings) != pu)
            continue;
        unsigned package = topology(machine, pu, "physical_package_id");
        const char *path = machine_path(CPU "/cpu%u/thermal_throttle/package_throttle_count", pu);
        if (!pu_set_has(&packages, package) && machine_has(machine, path))
            gauges_add(probing, path, GAUGE_AS_IT_IS, "1", "package-%u", package);
        pu_set_add(&packages, package);
        path = machine_path(CPU "/cpu%u/thermal_throttle/core_throttle_count", pu);
        if (machine_has(machine, path))
            gauges_add(probing, path, GAUGE_AS_IT_IS, "1", "core-%u-%u", package,
                       topology(machine, pu, "core_id"));
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
