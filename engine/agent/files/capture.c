/*
 * --capture: the machine's files as a tar (POSIX.1-2001, pax), so that it can be looked at elsewhere:
 * unpacked, it is a folder for --root.
 *
 * Only what the lists below name is taken. Nothing of it tells a person or a serial number; what processes
 * were started with, and with what environment, is not in it.
 */
#include "engine/agent/machine/machine.h"
#include "engine/agent/serve/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"

#include <errno.h>
#include <fcntl.h>
#include <fnmatch.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    FILE_LIMIT =
        MACHINE_FILE_LIMIT, /* what our own tools read of a file; of a longer one, so much of its beginning */
    TOTAL_LIMIT = 64 << 20,
    BUFFER = 64 << 10,
    BLOCK = 512,
    DEPTH = 8,
    TARGETS = 4096, /* of links that are followed */
};

struct capture {
    const struct machine *machine;
    struct text waiting; /* to be written */
    struct text content; /* of one file */
    size_t total;
    int64_t now_s;
    char **targets; /* folders that links of class folders led to, each taken once */
    size_t target_count;
    int status; /* negative errno: nothing more is done */
};

/* ---- tar */

static void flush(struct capture *capture) {
    if (capture->status == 0)
        capture->status = file_write_all(1, capture->waiting.bytes, capture->waiting.length);
    text_reset(&capture->waiting);
}

static void put_bytes(struct capture *capture, const void *bytes, size_t length) {
    static const char zeros[BLOCK];
    size_t padding = (BLOCK - length % BLOCK) % BLOCK;
    if (capture->status < 0)
        return;
    capture->total += length + padding;
    if (capture->total > TOTAL_LIMIT)
        capture->status = -EFBIG;
    else if (text_append(&capture->waiting, bytes, length) < 0 ||
             text_append(&capture->waiting, zeros, padding) < 0)
        capture->status = -ENOMEM;
    if (capture->waiting.length >= BUFFER)
        flush(capture);
}

/* ustar's header: every number octal, padded with noughts. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6],
        version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

static void put_header(struct capture *capture, char type, const char *name, const char *link, size_t size,
                       unsigned mode) {
    struct header header = {.type = type};
    unsigned sum = 0;
    memcpy(header.name, name, strnlen(name, sizeof header.name));
    memcpy(header.link, link, strnlen(link, sizeof header.link));
    snprintf(header.mode, sizeof header.mode, "%07o", mode & 07777u);
    memcpy(header.uid, "0000000", sizeof header.uid);
    memcpy(header.gid, "0000000", sizeof header.gid);
    snprintf(header.size, sizeof header.size, "%011zo", size);
    snprintf(header.mtime, sizeof header.mtime, "%011llo", (unsigned long long)capture->now_s & 077777777777);
    memcpy(header.magic, "ustar", sizeof header.magic);
    memcpy(header.version, "00", sizeof header.version);
    memset(header.checksum, ' ', sizeof header.checksum); /* as it counts itself */
    for (size_t i = 0; i < sizeof header; i++)
        sum += ((const unsigned char *)&header)[i];
    snprintf(header.checksum, sizeof header.checksum, "%06o", sum);
    put_bytes(capture, &header, sizeof header);
}

/* "LENGTH KEY=VALUE\n", LENGTH being that of all of it, its own digits too. */
static int pax_record(char *buffer, size_t size, const char *key, const char *value) {
    size_t body = strlen(key) + strlen(value) + 3, length = body + 1;
    char digits[24];
    while ((size_t)snprintf(digits, sizeof digits, "%zu", length) + body != length)
        length = (size_t)snprintf(digits, sizeof digits, "%zu", length) + body;
    return snprintf(buffer, size, "%zu %s=%s\n", length, key, value);
}

/* What is too long for a header goes before it. */
static void put_long_names(struct capture *capture, const char *path, const char *link) {
    char records[2 * MACHINE_PATH_LIMIT + 128];
    int length = 0;
    if (strlen(path) > sizeof((struct header *)0)->name)
        length += pax_record(records, sizeof records, "path", path);
    if (strlen(link) > sizeof((struct header *)0)->link)
        length += pax_record(records + length, sizeof records - (size_t)length, "linkpath", link);
    if (length == 0)
        return;
    put_header(capture, 'x', "pax", "", (size_t)length, 0644);
    put_bytes(capture, records, (size_t)length);
}

static void put_file(struct capture *capture, const char *path, const char *bytes, size_t length,
                     unsigned mode) {
    put_long_names(capture, path, "");
    put_header(capture, '0', path, "", length, (mode & 0644u) | 0400u);
    put_bytes(capture, bytes, length);
}

static void put_link(struct capture *capture, const char *path, const char *target) {
    put_long_names(capture, path, target);
    put_header(capture, '2', path, target, 0, 0777);
}

/* ---- files */

/* Up to FILE_LIMIT bytes of PATH into capture->content; false if it cannot be read, or is no file. */
static bool read_content(struct capture *capture, const char *path, unsigned *ret_mode) {
    cleanup_close int file = machine_open_file(capture->machine, path, O_RDONLY | O_NONBLOCK | O_NOFOLLOW);
    struct stat status;
    char *space;
    if (file < 0 || fstat(file, &status) < 0 || !S_ISREG(status.st_mode) || (status.st_mode & 0444) == 0)
        return false;
    text_reset(&capture->content);
    if (text_reserve(&capture->content, FILE_LIMIT, &space) < 0)
        return false;
    while (capture->content.length < FILE_LIMIT) {
        ssize_t got = read(file, capture->content.bytes + capture->content.length,
                           FILE_LIMIT - capture->content.length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return false;
        if (got == 0)
            break;
        capture->content.length += (size_t)got;
    }
    *ret_mode = status.st_mode;
    return true;
}

static void take_file(struct capture *capture, const char *path) {
    unsigned mode;
    if (capture->status == 0 && read_content(capture, path, &mode))
        put_file(capture, path, capture->content.bytes, capture->content.length, mode);
}

/* Of PATH only the lines that begin with one of NAMES (parted by blanks), or with WITHOUT all but those. */
static void take_lines(struct capture *capture, const char *path, const char *as, const char *names,
                       bool without) {
    unsigned mode;
    if (capture->status < 0 || !read_content(capture, path, &mode))
        return;
    struct text kept;
    text_init(&kept, FILE_LIMIT + 1);
    const char *at = capture->content.bytes, *end = at + capture->content.length;
    while (at < end && capture->status == 0) {
        const char *newline = memchr(at, '\n', (size_t)(end - at)), *next = newline ? newline + 1 : end;
        size_t word = 0;
        bool named = false;
        while (at + word < next && !strchr(": \t\n", at[word]))
            word++;
        for (const char *name = names; *name && !named; name += strcspn(name, " "), name += *name == ' ')
            named = word > 0 && strcspn(name, " ") == word && strncmp(name, at, word) == 0;
        if (named != without && text_append(&kept, at, (size_t)(next - at)) < 0)
            capture->status = -ENOMEM;
        at = next;
    }
    put_file(capture, as, kept.bytes, kept.length, mode);
    text_clear(&kept);
}

/* PATH's own target; false if it is no link. */
static bool read_link(struct capture *capture, const char *path, char *buffer, size_t size) {
    cleanup_close int link = machine_open_file(capture->machine, path, O_PATH | O_NOFOLLOW);
    ssize_t length = link < 0 ? -1 : readlinkat(link, "", buffer, size - 1);
    if (length <= 0)
        return false;
    buffer[length] = '\0';
    return (size_t)length < size - 1;
}

/* Where a link at PATH leads, from the root: "sys/class/hwmon/hwmon0" and "../../devices/x" give
 * "sys/devices/x". */
static bool resolve(const char *path, const char *link, char *buffer, size_t size) {
    if (link[0] == '/')
        return (size_t)snprintf(buffer, size, "%s", link + 1) < size;
    const char *slash = strrchr(path, '/');
    size_t length = slash ? (size_t)(slash - path) : 0;
    if (length >= size)
        return false;
    memcpy(buffer, path, length);
    buffer[length] = '\0';
    for (const char *part = link; *part; part += strspn(part, "/")) {
        size_t part_length = strcspn(part, "/");
        if (part_length == 2 && strncmp(part, "..", 2) == 0) {
            char *last = strrchr(buffer, '/');
            length = last ? (size_t)(last - buffer) : 0;
        } else if (part_length != 1 || *part != '.') {
            if (length + part_length + 2 > size)
                return false;
            length += (size_t)snprintf(buffer + length, size - length, "%s%.*s", length > 0 ? "/" : "",
                                       (int)part_length, part);
        }
        buffer[length] = '\0';
        part += part_length;
    }
    return length > 0;
}

static bool matches(const char *name, const char *const *patterns) {
    for (; *patterns; patterns++)
        if (fnmatch(*patterns, name, 0) == 0)
            return true;
    return false;
}

/* ---- folders */

/* Links to what is not taken, and what is about devices and not about the machine. */
static const char *const left_out[] = {
    "subsystem", "driver",       "firmware_node", "of_node",      "uevent",
    "hotplug",   "crash_notes*", "memory[0-9]*",  "autosuspend*", "runtime_*",
    "wakeup*",   "stat_refresh", "*serial*",      "*uuid*",       NULL};

static void take_folder(struct capture *capture, const char *folder, const char *const *wanted, int depth);

/* A link stays one. What is behind it is taken elsewhere, or is missing in the copy as well. */
static void take_entry(struct capture *capture, const char *path, const char *const *wanted, int depth) {
    char target[MACHINE_PATH_LIMIT];
    struct stat status;
    if (read_link(capture, path, target, sizeof target)) {
        put_link(capture, path, target);
        return;
    }
    cleanup_close int entry = machine_open_file(capture->machine, path, O_PATH | O_NOFOLLOW);
    if (entry < 0 || fstat(entry, &status) < 0)
        return;
    if (S_ISREG(status.st_mode))
        take_file(capture, path);
    else if (S_ISDIR(status.st_mode) && depth > 0)
        take_folder(capture, path, wanted, depth - 1);
}

/* WANTED: patterns of the names that are taken; NULL for all. Folders are gone into whatever they are called.
 */
static void take_folder(struct capture *capture, const char *folder, const char *const *wanted, int depth) {
    cleanup(machine_names_clear) struct machine_names names = {0};
    if (machine_list(capture->machine, folder, "", &names) < 0)
        return;
    for (size_t i = 0; i < names.count && capture->status == 0; i++) {
        char path[MACHINE_PATH_LIMIT];
        if (snprintf(path, sizeof path, "%s/%s", folder, names.items[i]) >= (int)sizeof path ||
            matches(names.items[i], left_out) || (wanted && !matches(names.items[i], wanted)))
            continue;
        take_entry(capture, path, wanted, depth);
    }
}

static bool is_taken(struct capture *capture, const char *target) {
    for (size_t i = 0; i < capture->target_count; i++)
        if (strcmp(capture->targets[i], target) == 0)
            return true;
    if (capture->target_count == TARGETS || !(capture->targets[capture->target_count] = strdup(target)))
        return true;
    capture->target_count++;
    return false;
}

/* The entries of a class are links to devices; of those the files that WANTED names. */
static void take_class(struct capture *capture, const char *folder, const char *const *wanted) {
    cleanup(machine_names_clear) struct machine_names names = {0};
    if (machine_list(capture->machine, folder, "", &names) < 0)
        return;
    for (size_t i = 0; i < names.count && capture->status == 0; i++) {
        char path[MACHINE_PATH_LIMIT], link[MACHINE_PATH_LIMIT], target[MACHINE_PATH_LIMIT];
        if (snprintf(path, sizeof path, "%s/%s", folder, names.items[i]) >= (int)sizeof path)
            continue;
        if (!read_link(capture, path, link, sizeof link)) {
            take_folder(capture, path, wanted, 0);
        } else if (resolve(path, link, target, sizeof target)) {
            put_link(capture, path, link);
            if (!is_taken(capture, target))
                take_folder(capture, target, wanted, 0);
        }
    }
}

/* ---- what is taken */

static void take_sys(struct capture *capture) {
    static const char *const folders[] = {
        "sys/devices/system/cpu",
        "sys/devices/system/node",
        "sys/devices/system/edac/mc",
        "sys/devices/system/clocksource",
        "sys/kernel/mm/transparent_hugepage",
        "sys/kernel/mm/hugepages",
        "sys/module/intel_idle/parameters",
        "sys/module/processor/parameters",
    };
    static const char *const sensors[] = {
        "name",       "device",         "temp*_input",  "temp*_label",  "temp*_max",
        "temp*_crit", "power*_average", "power*_input", "power*_label", "power*_average_interval",
        NULL};
    static const char *const zones[] = {"type", "temp", "policy", NULL};
    static const char *const powers[] = {"name",         "enabled", "energy_uj", "max_energy_range_uj",
                                         "constraint_*", NULL};
    static const char *const board[] = {"sys_vendor",   "product_name",  "product_version", "bios_vendor",
                                        "bios_version", "bios_date",     "bios_release",    "board_vendor",
                                        "board_name",   "board_version", "chassis_type",    NULL};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++)
        take_folder(capture, folders[i], NULL, DEPTH);
    take_class(capture, "sys/class/hwmon", sensors);
    take_class(capture, "sys/class/thermal", zones);
    take_class(capture, "sys/class/powercap", powers);
    take_class(capture, "sys/class/dmi", board);
}

static void take_proc(struct capture *capture) {
    static const char *const files[] = {"proc/meminfo", "proc/stat", "proc/loadavg", "proc/version",
                                        "proc/sys/kernel/random/boot_id"};
    static const char *const kernel[] = {
        "hostname",   "ostype",          "osrelease",       "version",
        "arch",       "numa_balancing*", "sched_*",         "randomize_va_space",
        "*watchdog*", "perf_event_*",    "timer_migration", "threads-max",
        NULL};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++)
        take_file(capture, files[i]);
    take_lines(capture, "proc/cpuinfo", "proc/cpuinfo", "Serial", true); /* of boards with ARM processors */
    take_folder(capture, "proc/sys/kernel", kernel, 0);
    take_folder(capture, "proc/sys/vm", NULL, 0);
}

/* /proc/net and /proc/self are links to the folder of whoever looks, who is not there any more when the copy
 * is looked at. */
static void take_own(struct capture *capture) {
    static const char own[] = "Cpus_allowed Cpus_allowed_list Mems_allowed Mems_allowed_list";
    unsigned mode;
    if (capture->status == 0 && read_content(capture, "proc/net/dev", &mode))
        put_file(capture, "proc/net/dev", capture->content.bytes, capture->content.length, mode);
    take_lines(capture, "proc/self/status", "proc/self/status", own, false);
    take_file(capture, "proc/self/cgroup");
}

/* The limits of a group and of those above it. */
static void take_limits(struct capture *capture, const char *mount, char *group, const char *file) {
    for (;;) {
        char path[MACHINE_PATH_LIMIT];
        if (snprintf(path, sizeof path, "%s%s/%s", mount, group, file) < (int)sizeof path)
            take_file(capture, path);
        char *slash = strrchr(group, '/');
        if (!slash)
            return;
        *slash = '\0';
    }
}

/* Lines "ID:CONTROLLERS:GROUP"; version 2 has one without controllers. */
static void take_memory_limits(struct capture *capture) {
    unsigned mode;
    if (capture->status < 0 || !read_content(capture, "proc/self/cgroup", &mode))
        return;
    cleanup_free char *lines = strndup(capture->content.bytes, capture->content.length);
    char *rest = lines, *line;
    while ((line = strsep(&rest, "\n"))) {
        char *controllers = strchr(line, ':'), *group = controllers ? strchr(controllers + 1, ':') : NULL;
        if (!group)
            continue;
        *group++ = '\0';
        if (strcmp(group, "/") == 0)
            group++;
        if (controllers[1] == '\0')
            take_limits(capture, "sys/fs/cgroup", group, "memory.max");
        else if (strstr(controllers, "memory"))
            take_limits(capture, "sys/fs/cgroup/memory", group, "memory.limit_in_bytes");
    }
}

static int capture_all(const struct machine *machine) {
    static const char end[2 * BLOCK];
    struct capture capture = {.machine = machine, .now_s = clock_wall_ns() / 1000000000};
    text_init(&capture.waiting, BUFFER + FILE_LIMIT + 2 * BLOCK);
    text_init(&capture.content, FILE_LIMIT + 1);
    capture.targets = calloc(TARGETS, sizeof *capture.targets);
    capture.status = capture.targets ? 0 : -ENOMEM;
    take_sys(&capture);
    take_proc(&capture);
    take_own(&capture);
    take_memory_limits(&capture);
    put_bytes(&capture, end, sizeof end);
    flush(&capture);
    for (size_t i = 0; i < capture.target_count; i++)
        free(capture.targets[i]);
    free(capture.targets);
    text_clear(&capture.waiting);
    text_clear(&capture.content);
    return capture.status;
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
