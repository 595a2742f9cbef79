/* Guessed facts of the nodes before they are known: those of this machine. */
#include "engine/run/campaign/plan.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"

#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* The number of physical cores of which this process may use a CPU; each core is counted by its first CPU. */
static double count_cores(void) {
    cpu_set_t allowed, cores;
    CPU_ZERO(&cores);
    if (sched_getaffinity(0, sizeof allowed, &allowed) < 0)
        return 1;
    for (unsigned cpu = 0; cpu < CPU_SETSIZE; cpu++) {
        char path[96];
        unsigned long first = cpu; /* where the kernel does not say */
        cleanup(text_clear) struct text siblings;
        text_init(&siblings, 4096);
        snprintf(path, sizeof path, "/sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", cpu);
        if (CPU_ISSET(cpu, &allowed) && file_read(path, &siblings, NULL) == 0) /* "0,4" or "0-1" */
            first = strtoul(siblings.bytes, NULL, 10);
        if (CPU_ISSET(cpu, &allowed) && first < CPU_SETSIZE)
            CPU_SET(first, &cores);
    }
    return CPU_COUNT(&cores);
}

static double find_memory(void) {
    static const char key[] = "MemAvailable:";
    struct text bytes;
    text_init(&bytes, 1 << 20);
    const char *at = file_read("/proc/meminfo", &bytes, NULL) == 0 ? strstr(bytes.bytes, key) : NULL;
    double memory = at ? strtod(at + sizeof key - 1, NULL) * 1024 : 0x1p30;
    text_clear(&bytes);
    return memory;
}

struct plan_facts plan_guess_facts(const struct campaign *campaign) {
    const struct testbed_choice *testbed = &campaign->testbed;
    size_t nodes = testbed->backend->expected_nodes(testbed->settings);
    return (struct plan_facts){
        .nodes = nodes ? (double)nodes : 1, .cores = count_cores(), .memory = find_memory()};
}
