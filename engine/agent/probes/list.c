/* --probes: what could be sampled here. */
#include "engine/agent/probes/sampler.h"
#include "engine/agent/serve/tool.h"
#include "engine/foundation/clock.h"

#include <stdio.h>
#include <string.h>

static void list(const struct machine *machine, const struct probe *probe) {
    char why[2 * PROBE_WHY_SIZE];
    struct probing probing = {.probe = probe, .machine = machine, .now_ns = clock_monotonic_ns()};
    int r = probing_begin(&probing);
    if (r == 0) {
        printf("probe\t%s\t", probe->name);
        for (size_t i = 0; i < probing.count; i++)
            printf("%s%s:%s", i > 0 ? " " : "", probing.columns[i].name, probing.columns[i].unit);
        printf("\t%s\n", probing.source);
    }
    if (probing.why[0]) {
        sampler_escape(probing.why, why, sizeof why);
        printf("missing\t%s\t%s\n", probe->name, why);
    }
    probing_clear(&probing);
}

int tool_probes(int count, char **arguments) {
    struct failure failure = {0};
    struct machine machine;
    if (count != 0 && (count != 2 || strcmp(arguments[0], "--root") != 0)) {
        fputs("assay-agent: usage: --probes [--root DIR]\n", stderr);
        return 2;
    }
    if (machine_open(count ? arguments[1] : NULL, &machine, &failure) < 0) {
        fprintf(stderr, "assay-agent: %s\n", failure.text);
        return 2;
    }
    for (size_t i = 0; probe_table[i]; i++)
        list(&machine, probe_table[i]);
    machine_close(&machine);
    return fflush(stdout) == 0 ? 0 : 1;
}
