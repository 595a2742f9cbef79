/* What cpufreq says that each PU runs at. */
#include "engine/agent/probes/gauges.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

static int begin(struct probing *probing) {
    struct pu_set online;
    int r = machine_read_set(probing->machine, "sys/devices/system/cpu/online", &online);
    if (r < 0)
        return probing_fail(probing, r, "/sys/devices/system/cpu/online: %s", strerror(-r));
    for (unsigned pu = 0; pu < PROTOCOL_PU_LIMIT; pu++) {
        char path[128], name[16];
        if (!pu_set_has(&online, pu))
            continue;
        snprintf(path, sizeof path, "sys/devices/system/cpu/cpu%u/cpufreq/scaling_cur_freq", pu);
        snprintf(name, sizeof name, "cpu%u", pu);
        if (!machine_has(probing->machine, path))
            continue;
        r = gauges_add(probing, path, GAUGE_THOUSANDFOLD, "Hz", name);
        if (r < 0 && r != -E2BIG)
            return r;
    }
    if (probing->count == 0)
        return probing_fail(probing, -ENOENT,
                            "no PU has /sys/devices/system/cpu/cpuN/cpufreq/scaling_cur_freq");
    snprintf(probing->source, sizeof probing->source, "cpufreq scaling_cur_freq");
    return 0;
}

const struct probe probe_frequency = {
    .name = "frequency", .begin = begin, .sample = gauges_sample, .end = gauges_end};
