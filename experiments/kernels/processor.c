#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include "processor.h"

#include <sched.h>
#include <stdio.h>

/* Whether the file PATH has CPU in its list, such as "0-7,16"; false also if there is no file. */
static int is_listed(const char *path, int cpu) {
    int first, last, found = 0;
    FILE *file = fopen(path, "re");
    if (!file)
        return 0;
    while (!found && fscanf(file, "%d", &first) == 1) {
        if (fscanf(file, "-%d", &last) != 1)
            last = first;
        found = cpu >= first && cpu <= last;
        if (fgetc(file) != ',')
            break;
    }
    fclose(file);
    return found;
}

/* The capacity of a CPU that Linux states, up to 1024; 0 if it states none. */
static int capacity_of(const char *sys, int cpu) {
    char path[512];
    int capacity = 0;
    snprintf(path, sizeof path, "%s/devices/system/cpu/cpu%d/cpu_capacity", sys, cpu);
    FILE *file = fopen(path, "re");
    if (file && fscanf(file, "%d", &capacity) != 1)
        capacity = 0;
    if (file)
        fclose(file);
    return capacity;
}

/* The class of the PU that this thread runs on: 1 to 3 by Intel's lists, else its capacity if PUs differ,
 * else 0. */
int processor_class(const char *sys) {
    static const char *const intel[] = {"cpu_core", "cpu_atom", "cpu_lowpower"};
    char path[512];
    int cpu = sched_getcpu(), own = capacity_of(sys, cpu);
    for (int i = 0; i < 3; i++) {
        snprintf(path, sizeof path, "%s/devices/%s/cpus", sys, intel[i]);
        if (is_listed(path, cpu))
            return i + 1;
    }
    for (int other = 0; other < CPU_SETSIZE && own > 0; other++) {
        int capacity = capacity_of(sys, other);
        if (capacity > 0 && capacity != own)
            return own;
    }
    return 0;
}
