#include "tests/test-bed/kernel.h"

#include <ctype.h>
#include <dirent.h>
#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum { LOOK_MS = 50 }; /* the node's processes are not looked at more often */

/* Whether the process of a folder of /proc is running, and not only there. */
static bool is_running(int processes, const char *name) {
    char path[300], text[512];
    snprintf(path, sizeof path, "%s/stat", name);
    int file = openat(processes, path, O_RDONLY | O_CLOEXEC);
    ssize_t length = file < 0 ? -1 : read(file, text, sizeof text - 1);
    if (file >= 0)
        close(file);
    if (length <= 0)
        return false;
    text[length] = '\0';
    const char *state = strrchr(text, ')'); /* the command before it may have any character */
    return state != NULL && strncmp(state, ") R", 3) == 0;
}

/* Whoever reads the temperature waits for us meanwhile, and so does not run. */
static bool node_is_busy(pid_t node) {
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/root/proc", (int)node);
    DIR *processes = opendir(path);
    bool busy = false;
    for (struct dirent *entry; !busy && processes != NULL && (entry = readdir(processes)) != NULL;)
        busy = isdigit((unsigned char)entry->d_name[0]) && is_running(dirfd(processes), entry->d_name);
    if (processes != NULL)
        closedir(processes);
    return busy;
}

void kernel_heat_advance(struct kernel *kernel) {
    struct kernel_heat *heat = &kernel->heat;
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    double seconds =
        (double)(now.tv_sec - heat->last.tv_sec) + (double)(now.tv_nsec - heat->last.tv_nsec) * 1e-9;
    if (!heat->forced && seconds * 1000 < LOOK_MS)
        return;
    if (!heat->forced)
        heat->load = heat->node > 0 && node_is_busy(heat->node) ? 1 : 0;
    heat->last = now;
    double constant = (double)kernel_setting(kernel, "heat", 3);
    heat->warmth += (heat->load - heat->warmth) * (constant > 0 ? 1 - exp(-seconds / constant) : 1);
    double idle = (double)kernel_setting(kernel, "idlewatts", 0);
    double busy = (double)kernel_setting(kernel, "busywatts", 0);
    heat->joules += (idle + heat->load * (busy - idle)) * seconds;
}

long kernel_heat_temperature(const struct kernel *kernel) {
    double cool = (double)kernel_setting(kernel, "cool", 40000),
           hot = (double)kernel_setting(kernel, "hot", 40000);
    return lround(cool + kernel->heat.warmth * (hot - cool));
}

double kernel_heat_microjoules(const struct kernel *kernel) {
    return kernel->heat.joules * 1e6;
}
