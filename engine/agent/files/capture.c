/*
 * --capture: the machine's files as a tar, so that it can be examined elsewhere: unpacked, it is a folder for
 * --root.
 *
 * Only what the lists below name is taken. Nothing of it identifies a person or has a serial number; command
 * lines and environments of processes are not in it.
 */
#include "engine/agent/files/tar.h"
#include "engine/agent/machine/machine.h"
#include "engine/agent/serve/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_LIMIT = MACHINE_FILE_LIMIT, /* no tool reads more of a file */
    TOTAL_LIMIT = 64 << 20,
    DEPTH = 8,
};

struct capture {
    const struct machine *machine;
    struct tar_writer tar;
    char *content; /* FILE_LIMIT bytes: of the file that was read last */
    size_t length;
    unsigned mode;
};

/* ---- files */

/* The beginning of PATH into capture->content; false if it cannot be read, or is no file. */
static bool read_content(struct capture *capture, const char *path) {
    cleanup_close int file = machine_open_file(capture->machine, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0 || !S_ISREG(status.st_mode) || (status.st_mode & 0444) == 0)
        return false;
    ssize_t got = 1;
    for (capture->length = 0; capture->length < FILE_LIMIT && got != 0; capture->length += (size_t)got) {
        got = read(file, capture->content + capture->length, FILE_LIMIT - capture->length);
        if (got < 0 && errno != EINTR)
            return false;
        got = got < 0 ? 0 : got;
    }
    capture->mode = (status.st_mode & 0644u) | 0400u;
    return true;
}

static void put_entry(struct capture *capture, const char *path, const char *target) {
    struct tar_entry entry = {.type = target ? TAR_LINK : TAR_FILE,
                              .target = target,
                              .mode = target ? 0777 : capture->mode,
                              .size = target ? 0 : capture->length};
    snprintf(entry.path, sizeof entry.path, "%s", path);
    tar_put_entry(&capture->tar, &entry);
    if (target)
        return;
    tar_put_bytes(&capture->tar, capture->content, capture->length);
    tar_put_padding(&capture->tar, capture->length);
}

static void take_file(struct capture *capture, const char *path) {
    if (read_content(capture, path))
        put_entry(capture, path, NULL);
}

/* Whether the line AT begins with one of NAMES (separated by blanks) and a colon or a blank. */
static bool is_named(const char *at, size_t length, const char *names) {
    size_t word = 0;
    while (word < length && !strchr(": \t\n", at[word]))
        word++;
    for (const char *name = names; *name; name += strcspn(name, " "), name += *name == ' ')
        if (word > 0 && strcspn(name, " ") == word && strncmp(name, at, word) == 0)
            return true;
    return false;
}

/* Of PATH only the lines that begin with one of NAMES, or with WITHOUT all but those. */
static void take_lines(struct capture *capture, const char *path, const char *names, bool without) {
    if (!read_content(capture, path))
        return;
    char *to = capture->content, *end = capture->content + capture->length;
    for (char *at = to, *next; at < end; at = next) {
        char *newline = memchr(at, '\n', (size_t)(end - at));
        next = newline ? newline + 1 : end;
        size_t length = (size_t)(next - at);
        if (is_named(at, length, names) == without)
            continue;
        memmove(to, at, length);
        to += length;
    }
    capture->length = (size_t)(to - capture->content);
    put_entry(capture, path, NULL);
}

/* The text of the link PATH; false if it is no link. */
static bool read_link(struct capture *capture, const char *path, char buffer[static MACHINE_PATH_LIMIT]) {
    cleanup_close int link = machine_open_file(capture->machine, path, O_PATH | O_NOFOLLOW);
    ssize_t length = link < 0 ? -1 : readlinkat(link, "", buffer, MACHINE_PATH_LIMIT - 1);
    buffer[length > 0 ? length : 0] = '\0';
    return length > 0 && length < MACHINE_PATH_LIMIT - 1;
}

/* Where LINK, in the folder FOLDER, leads: "sys/class/hwmon" and "../../devices/x" give "sys/devices/x". */
static bool resolve(const char *folder, const char *link, char buffer[static MACHINE_PATH_LIMIT]) {
    char path[MACHINE_PATH_LIMIT];
    snprintf(path, sizeof path, "%s", link[0] == '/' ? "" : folder);
    while (strncmp(link, "../", 3) == 0) {
        char *slash = strrchr(path, '/');
        path[slash ? slash - path : 0] = '\0';
        link += 3;
    }
    link += strspn(link, "/");
    return snprintf(buffer, MACHINE_PATH_LIMIT, "%s%s%s", path, *path ? "/" : "", link) < MACHINE_PATH_LIMIT;
}

/* ---- folders */

/* PATTERNS end with NULL. */
static bool matches(const char *name, const char *const *patterns) {
    for (; *patterns; patterns++)
        if (fnmatch(*patterns, name, 0) == 0)
            return true;
    return false;
}

/* Links to what is not taken, and what is about devices and not about the machine. */
static const char *const left_out[] = {
    "subsystem", "driver",       "firmware_node", "of_node",      "uevent",
    "hotplug",   "crash_notes*", "memory[0-9]*",  "autosuspend*", "runtime_*",
    "wakeup*",   "stat_refresh", "*serial*",      "*uuid*",       NULL};

/* What is taken of a folder. The entries of a class are links to folders of devices: of these, the files that
 * `names` has. */
struct selection {
    const char *folder;
    int depth; /* of folders in it */
    bool is_class;
    const char *names[14]; /* patterns; none: all */
};

static void take_folder(struct capture *capture, const char *folder, const struct selection *selection,
                        int depth);

static void take_entry(struct capture *capture, const char *folder, const char *path,
                       const struct selection *selection, int depth) {
    char link[MACHINE_PATH_LIMIT], target[MACHINE_PATH_LIMIT];
    struct stat status;
    if (read_link(capture, path, link)) {
        put_entry(capture, path, link);
        if (selection->is_class && depth > 0 && resolve(folder, link, target))
            take_folder(capture, target, selection, 0);
        return;
    }
    cleanup_close int entry = machine_open_file(capture->machine, path, O_PATH | O_NOFOLLOW);
    if (entry < 0 || fstat(entry, &status) < 0)
        return;
    if (S_ISREG(status.st_mode))
        take_file(capture, path);
    else if (S_ISDIR(status.st_mode) && depth > 0)
        take_folder(capture, path, selection, depth - 1);
}

static void take_folder(struct capture *capture, const char *folder, const struct selection *selection,
                        int depth) {
    cleanup(machine_names_clear) struct machine_names names = {0};
    if (machine_list(capture->machine, folder, "", &names) < 0)
        return;
    bool all = !selection->names[0] || (selection->is_class && depth > 0);
    for (size_t i = 0; i < names.count && capture->tar.status == 0; i++) {
        char path[MACHINE_PATH_LIMIT];
        if (snprintf(path, sizeof path, "%s/%s", folder, names.items[i]) < (int)sizeof path &&
            !matches(names.items[i], left_out) && (all || matches(names.items[i], selection->names)))
            take_entry(capture, folder, path, selection, depth);
    }
}

static const struct selection selections[] = {
    {"sys/devices/system/cpu", DEPTH, false, {NULL}},
    {"sys/devices/system/node", DEPTH, false, {NULL}},
    {"sys/devices/system/edac/mc", DEPTH, false, {NULL}},
    {"sys/devices/system/clocksource", DEPTH, false, {NULL}},
    {"sys/kernel/mm/transparent_hugepage", DEPTH, false, {NULL}},
    {"sys/kernel/mm/hugepages", DEPTH, false, {NULL}},
    {"sys/module/intel_idle/parameters", DEPTH, false, {NULL}},
    {"sys/module/processor/parameters", DEPTH, false, {NULL}},
    {"sys/class/hwmon",
     1,
     true,
     {"name", "device", "temp*_input", "temp*_label", "temp*_max", "temp*_crit", "power*_average",
      "power*_input", "power*_label", "power*_average_interval", NULL}},
    {"sys/class/thermal", 1, true, {"type", "temp", "policy", NULL}},
    {"sys/class/powercap",
     1,
     true,
     {"name", "enabled", "energy_uj", "max_energy_range_uj", "constraint_*", NULL}},
    {"sys/class/dmi",
     1,
     true,
     {"sys_vendor", "product_name", "product_version", "bios_vendor", "bios_version", "bios_date",
      "bios_release", "board_vendor", "board_name", "board_version", "chassis_type", NULL}},
    {"proc/sys/kernel",
     0,
     false,
     {"hostname", "ostype", "osrelease", "version", "arch", "numa_balancing*", "sched_*",
      "randomize_va_space", "*watchdog*", "perf_event_*", "timer_migration", "threads-max", NULL}},
    {"proc/sys/vm", 0, false, {NULL}},
};

/* The memory limits of this process's group and of those above it. Lines "ID:CONTROLLERS:GROUP"; version 2
 * has one without controllers. */
static void take_memory_limits(struct capture *capture) {
    if (!read_content(capture, "proc/self/cgroup"))
        return;
    cleanup_free char *lines = strndup(capture->content, capture->length);
    char *rest = lines, *line;
    while ((line = strsep(&rest, "\n"))) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group || (controllers[1] != ':' && !strstr(controllers, "memory")))
            continue;
        *group++ = '\0';
        for (char *slash = group + strlen(group); slash; slash = strrchr(group, '/')) {
            char path[MACHINE_PATH_LIMIT];
            *slash = '\0';
            int length = controllers[1] ? snprintf(path, sizeof path,
                                                   "sys/fs/cgroup/memory%s/memory.limit_in_bytes", group)
                                        : snprintf(path, sizeof path, "sys/fs/cgroup%s/memory.max", group);
            if (length < (int)sizeof path)
                take_file(capture, path);
        }
    }
}

static void take_all(struct capture *capture) {
    /* Links of /proc to the folder of whoever looks are followed here: afterwards nobody is there any more.
     */
    static const char *const files[] = {"proc/meminfo",
                                        "proc/stat",
                                        "proc/loadavg",
                                        "proc/version",
                                        "proc/net/dev",
                                        "proc/self/cgroup",
                                        "proc/sys/kernel/random/boot_id"};
    for (size_t i = 0; i < sizeof selections / sizeof *selections; i++)
        take_folder(capture, selections[i].folder, &selections[i], selections[i].depth);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        take_file(capture, files[i]);
    take_lines(capture, "proc/cpuinfo", "Serial", true); /* of boards with ARM processors */
    take_lines(capture, "proc/self/status", "Cpus_allowed Cpus_allowed_list Mems_allowed Mems_allowed_list",
               false);
    take_memory_limits(capture);
}

static int capture_all(const struct machine *machine) {
    cleanup_free char *content = malloc(FILE_LIMIT);
    struct capture capture = {.machine = machine, .content = content};
    if (!content)
        return -ENOMEM;
    tar_begin(&capture.tar, 1, TOTAL_LIMIT);
    capture.tar.time_s = clock_wall_ns() / 1000000000;
    take_all(&capture);
    return tar_end(&capture.tar);
}

int tool_capture(int count, char **arguments) {
    struct failure failure = {0};
    struct machine machine;
    if ((count != 0 && (count != 2 || strcmp(arguments[0], "--root") != 0)) || isatty(1)) {
        fputs("assay-agent: usage: --capture [--root DIR] >FILE.tar\n", stderr);
        return 2;
    }
    if (machine_open(count ? arguments[1] : NULL, &machine, &failure) < 0) {
        fprintf(stderr, "assay-agent: %s\n", failure.text);
        return 2;
    }
    int r = capture_all(&machine);
    machine_close(&machine);
    if (r == -EFBIG)
        fprintf(stderr, "assay-agent: --capture: the machine's files are more than %d MiB\n",
                TOTAL_LIMIT >> 20);
    else if (r < 0)
        fprintf(stderr, "assay-agent: --capture: %s\n", strerror(-r));
    return r < 0 ? 1 : 0;
}
