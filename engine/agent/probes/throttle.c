/* How often cores and packages were slowed down because they were too hot, since boot. */
#include "engine/agent/probes/gauges.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static unsigned read_topology(const struct machine *machine, unsigned pu, const char *name) {
    char path[128];
    int64_t value;
    snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/topology/%s", pu, name);
    return machine_read_number(machine, path, &value) < 0 || value < 0 ? 0 : (unsigned)value;
}

static bool is_first_of_core(const struct machine *machine, unsigned pu) {
    char path[128];
    struct pu_set siblings;
    snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", pu);
    return machine_read_set(machine, path, &siblings) < 0 || pu_set_first(&siblings) == pu;
}

/* The threads of a core count the same: the first one speaks for it. So does a package's first. */
static int add(struct probing *probing, unsigned pu, const char *what, const char *name) {
    char path[128];
    snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/thermal_throttle/%s_throttle_count", pu, what);
    if (!machine_has(probing->machine, path))
        return 0;
    int r = gauges_add(probing, path, GAUGE_AS_IT_IS, "1", name);
    return r == -E2BIG ? 0 : r;
}

static int begin(struct probing *probing) {
    const struct machine *machine = probing->machine;
    struct pu_set online, packages = {0};
    int r = machine_read_set(machine, "sys/devices/system/cpu/online", &online);
    if (r < 0)
        return probing_fail(probing, r, "/sys/devices/system/cpu/online: %s", strerror(-r));
    for (unsigned pu = 0; r == 0 && pu < PROTOCOL_PU_LIMIT; pu++) {
        char name[PROBE_NAME_SIZE];
        if (!pu_set_has(&online, pu) || !is_first_of_core(machine, pu))
            continue;
        unsigned package = read_topology(machine, pu, "physical_package_id");
        snprintf(name, sizeof name, "package-%u", package);
        if (!pu_set_has(&packages, package))
            r = add(probing, pu, "package", name);
        pu_set_add(&packages, package);
        snprintf(name, sizeof name, "core-%u-%u", package, read_topology(machine, pu, "core_id"));
        if (r == 0)
            r = add(probing, pu, "core", name);
    }
    if (r == 0 && probing->count == 0)
        return probing_fail(probing, -ENOENT, "no PU has /sys/devices/system/cpu/cpuN/thermal_throttle");
    snprintf(probing->source, sizeof probing->source, "thermal_throttle");
    return r;
}

const struct probe probe_throttle = {
    .name = "throttle", .begin = begin, .sample = gauges_sample, .end = gauges_end};
