/*
 * --capture: writes the machine's files as a tar, so that it can be examined elsewhere: the unpacked folder
 * is a captured machine for --root.
 *
 * Only files in the lists below are written. None identifies a person or has a serial number, and command
 * lines and environments of processes are not among them.
 */
#include "engine/agent/files/tar.h"
#include "engine/agent/machine/facts.h"
#include "engine/agent/machine/machine.h"
#include "engine/agent/machine/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/path.h"

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
    char *content; /* of the file that was read last; FILE_LIMIT bytes */
    size_t length;
    unsigned mode;
};

/* ---- files */

/* Reads the file PATH, up to FILE_LIMIT bytes, into capture->content. False: it cannot be read, or is no
 * file. */
static bool read_content(struct capture *capture, const char *path) {
    cleanup_close int file = machine_open_file(capture->machine, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    struct stat status;
    if (file < 0 || fstat(file, &status) < 0 || !S_ISREG(status.st_mode) || (status.st_mode & 0444) == 0)
        return false;
    ssize_t got = path_read_up_to(file, capture->content, FILE_LIMIT);
    capture->length = got < 0 ? 0 : (size_t)got;
    capture->mode = (status.st_mode & 0644u) | 0400u;
    return got >= 0;
}

/* Writes an entry: a link to TARGET or, with NULL, a file with capture->content. */
static void put_entry(struct capture *capture, const char *path, const char *target) {
    struct tar_entry entry = {.type = target ? TAR_LINK : TAR_FILE,
                              .target = target,
                              .mode = target ? 0777 : capture->mode,
                              .size = target ? 0 : capture->length};
    snprintf(entry.path, sizeof entry.path, "%s", path);
    tar_put_entry(&capture->tar, &entry);
    tar_put_bytes(&capture->tar, capture->content, entry.size);
    tar_put_padding(&capture->tar, entry.size);
}

static void capture_file(struct capture *capture, const char *path) {
    if (read_content(capture, path))
        put_entry(capture, path, NULL);
}

/* True where the line AT begins with one of NAMES (separated by blanks) and a colon or a blank. */
static bool is_named(const char *at, size_t length, const char *names) {
    size_t word = 0;
    while (word < length && !strchr(": \t\n", at[word]))
        word++;
    for (const char *name = names; *name; name += strcspn(name, " "), name += *name == ' ')
        if (word > 0 && strcspn(name, " ") == word && strncmp(name, at, word) == 0)
            return true;
    return false;
}

/* Captures only the lines of PATH that begin with one of NAMES or, if WITHOUT, only the other lines. */
static void capture_lines(struct capture *capture, const char *path, const char *names, bool without) {
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

/* Reads the target of the link PATH; false: PATH is no link. */
static bool read_link(struct capture *capture, const char *path, char buffer[static MACHINE_PATH_LIMIT]) {
    cleanup_close int link = machine_open_file(capture->machine, path, O_PATH | O_NOFOLLOW);
    ssize_t length = link < 0 ? -1 : readlinkat(link, "", buffer, MACHINE_PATH_LIMIT - 1);
    buffer[length > 0 ? length : 0] = '\0';
    return length > 0 && length < MACHINE_PATH_LIMIT - 1;
}

/* ---- folders */

/* True where NAME matches one of PATTERNS, which are separated by blanks. */
static bool matches(const char *name, const char *patterns) {
    char pattern[64];
    for (size_t length; *patterns; patterns += length + (patterns[length] == ' ')) {
        length = strcspn(patterns, " ");
        snprintf(pattern, sizeof pattern, "%.*s", (int)length, patterns);
        if (fnmatch(pattern, name, 0) == 0)
            return true;
    }
    return false;
}

/* Names that are never captured: links to files that are not captured, and files about single devices. */
static const char never_captured[] =
    "subsystem driver firmware_node of_node uevent hotplug crash_notes* memory[0-9]* "
    "autosuspend* runtime_* wakeup* stat_refresh *serial* *uuid*";

/* The files of a folder that are captured. The entries of a class are links to folders of devices, in which
 * the files in `names` are captured. */
struct selection {
    const char *folder;
    int depth; /* levels of subfolders */
    bool is_class;
    const char *names; /* patterns */
};

static void capture_folder(struct capture *capture, const char *folder, const struct selection *selection,
                           int depth);

/* Captures the link, file or folder PATH; for a class also the device's folder that a link leads to. */
static void capture_entry(struct capture *capture, const char *path, const struct selection *selection,
                          int depth) {
    char link[MACHINE_PATH_LIMIT];
    struct stat status;
    if (read_link(capture, path, link)) {
        put_entry(capture, path, link);
        /* Of a class: "../../devices/..." in "sys/class/NAME". */
        if (selection->is_class && depth > 0 && strncmp(link, "../../", 6) == 0)
            capture_folder(capture, machine_path("sys/%s", link + 6), selection, 0);
        return;
    }
    cleanup_close int entry = machine_open_file(capture->machine, path, O_PATH | O_NOFOLLOW);
    if (entry < 0 || fstat(entry, &status) < 0)
        return;
    if (S_ISREG(status.st_mode))
        capture_file(capture, path);
    else if (S_ISDIR(status.st_mode) && depth > 0)
        capture_folder(capture, path, selection, depth - 1);
}

static void capture_folder(struct capture *capture, const char *folder, const struct selection *selection,
                           int depth) {
    cleanup(machine_names_clear) struct machine_names names = {0};
    if (machine_list(capture->machine, folder, "", &names) < 0)
        return;
    bool all = selection->is_class && depth > 0;
    for (size_t i = 0; i < names.count && capture->tar.status == 0; i++) {
        const char *name = names.items[i];
        if (!matches(name, never_captured) && (all || matches(name, selection->names)))
            capture_entry(capture, machine_path("%s/%s", folder, name), selection, depth);
    }
}

static const struct selection selections[] = {
    {"sys/devices/system/cpu", DEPTH, false, "*"},
    {"sys/devices/system/node", DEPTH, false, "*"},
    {"sys/devices/system/edac/mc", DEPTH, false, "*"},
    {"sys/devices/system/clocksource", DEPTH, false, "*"},
    {"sys/kernel/mm/transparent_hugepage", DEPTH, false, "*"},
    {"sys/kernel/mm/hugepages", DEPTH, false, "*"},
    {"sys/module/intel_idle/parameters", DEPTH, false, "*"},
    {"sys/module/processor/parameters", DEPTH, false, "*"},
    {"sys/class/hwmon", 1, true,
     "name device temp*_input temp*_label temp*_max temp*_crit power*_average power*_input power*_label "
     "power*_average_interval"},
    {"sys/class/thermal", 1, true, "type temp policy"},
    {"sys/class/powercap", 1, true, "name enabled energy_uj max_energy_range_uj constraint_*"},
    {"sys/class/dmi", 1, true,
     "sys_vendor product_name product_version bios_vendor bios_version bios_date bios_release board_vendor "
     "board_name board_version chassis_type"},
    {"proc/sys/kernel", 0, false,
     "hostname ostype osrelease version arch numa_balancing* sched_* randomize_va_space *watchdog* "
     "perf_event_* timer_migration threads-max"},
    {"proc/sys/vm", 0, false, "*"},
};

static void capture_limit_file(const struct machine *machine, const char *path, void *context) {
    (void)machine;
    capture_file(context, path);
}

/* Captures what the controls, the probes and the facts of a node read. */
static void capture_files(struct capture *capture) {
    /* Read one by one: /proc/self and /proc/net are links to the folder of this process. */
    static const char *const files[] = {"proc/meminfo",
                                        "proc/stat",
                                        "proc/loadavg",
                                        "proc/version",
                                        "proc/net/dev",
                                        "proc/self/cgroup",
                                        "proc/sys/kernel/random/boot_id"};
    for (size_t i = 0; i < sizeof selections / sizeof *selections; i++)
        capture_folder(capture, selections[i].folder, &selections[i], selections[i].depth);
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        capture_file(capture, files[i]);
    capture_lines(capture, "proc/cpuinfo", "Serial", true); /* of boards with ARM processors */
    capture_lines(capture, "proc/self/status",
                  "Cpus_allowed Cpus_allowed_list Mems_allowed Mems_allowed_list", false);
    facts_visit_memory_limits(capture->machine, capture_limit_file, capture);
}

static int capture_all(const struct machine *machine) {
    cleanup_free char *content = malloc(FILE_LIMIT);
    struct capture capture = {.machine = machine, .content = content};
    if (!content)
        return -ENOMEM;
    tar_begin(&capture.tar, 1, TOTAL_LIMIT);
    capture.tar.time_s = clock_wall_ns() / 1000000000;
    capture_files(&capture);
    return tar_end(&capture.tar);
}

int tool_capture(int count, char **arguments) {
    const char *root = NULL;
    cleanup(machine_close) struct machine machine = {.root = -1};
    const struct tool_option options[] = {{"--root", .text = &root}, {NULL}};
    if (tool_parse(count, arguments, options, 0) < 0)
        return 2;
    if (isatty(1))
        return tool_complain(2, "usage: --capture [--root DIR] >FILE.tar");
    if (tool_open_machine(root, &machine) != 0)
        return 2;
    int r = capture_all(&machine);
    if (r == -EFBIG)
        return tool_complain(1, "--capture: the machine's files are more than %d MiB", TOTAL_LIMIT >> 20);
    return r < 0 ? tool_complain(1, "--capture: %s", strerror(-r)) : 0;
}
