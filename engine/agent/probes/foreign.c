#include "engine/agent/probes/foreign.h"

#include "engine/agent/machine/machine.h"
#include "engine/agent/machine/process.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { CONTENT = 16 << 10, ANCESTORS = 8 };

/* The real machine: its paths are absolute. */
static const struct machine real = {.root = -1};

struct family {
    pid_t *members; /* processes found so far */
    size_t count, capacity;
    char *content;
};

static bool is_same_program(pid_t pid) {
    struct stat own, other;
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/exe", (int)pid);
    return stat("/proc/self/exe", &own) == 0 && stat(path, &other) == 0 && own.st_dev == other.st_dev &&
           own.st_ino == other.st_ino;
}

pid_t foreign_find_family(void) {
    pid_t family = getppid();
    if (access(machine_path("/proc/self/task/%d/children", (int)getpid()), R_OK) < 0)
        return 0;
    for (int above = 0; above < ANCESTORS && is_same_program(family); above++) {
        struct process process;
        if (process_read(family, &process) < 0 || process.parent <= 1 || !is_same_program(process.parent))
            break;
        family = process.parent;
    }
    return family;
}

static bool add(struct family *family, pid_t pid) {
    if (list_reserve(&family->members, &family->capacity, family->count + 1, sizeof *family->members,
                     FOREIGN_PROCESS_LIMIT) < 0)
        return false;
    family->members[family->count++] = pid;
    return true;
}

/* Adds the children of one thread. False: there are too many. */
static bool add_children(struct family *family, pid_t pid, const char *thread) {
    const char *path = machine_path("/proc/%d/task/%s/children", (int)pid, thread);
    ssize_t length = machine_read_small(&real, path, family->content, CONTENT);
    bool whole = length != -EFBIG;
    char *at = family->content, *end;
    for (long child; whole && length > 0 && (child = strtol(at, &end, 10)) > 0; at = end)
        whole = add(family, (pid_t)child);
    return whole;
}

static bool add_children_of_threads(struct family *family, pid_t pid) {
    cleanup(machine_names_clear) struct machine_names threads = {0};
    bool whole = machine_list(&real, machine_path("/proc/%d/task", (int)pid), "", &threads) != -ENOMEM;
    for (size_t i = 0; i < threads.count && whole; i++)
        whole = add_children(family, pid, threads.items[i]);
    return whole;
}

/* Adds up the CPU time of process PID and all its descendants. False: not all could be found. */
bool foreign_family_ticks(pid_t pid, uint64_t *ret) {
    cleanup_free char *content = malloc(CONTENT);
    struct family family = {.content = content};
    uint64_t ticks = 0;
    bool whole = content && add(&family, pid);
    for (size_t i = 0; whole && i < family.count; i++) {
        struct process process;
        pid = family.members[i];
        if (process_read(pid, &process) < 0)
            continue;
        ticks += process.own_ticks + process.children_ticks;
        whole = process.threads == 1 ? add_children(&family, pid, machine_path("%d", (int)pid))
                                     : add_children_of_threads(&family, pid);
    }
    free(family.members);
    if (whole)
        *ret = ticks;
    return whole;
}
