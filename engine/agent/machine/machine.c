#include "engine/agent/machine/machine.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/list.h"
#include "engine/foundation/number.h"

#include <ctype.h>
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

enum { PIECE = 4096, OPEN_TRIES = 10000 };

int machine_open(const char *root, struct machine *ret, struct failure *failure) {
    const char *path = root ? root : "/";
    int descriptor = open(path, O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (descriptor < 0)
        return failure_set(failure, -errno, "cannot open the root '%s': %s", path, strerror(errno));
    struct machine machine = {.root = descriptor, .captured = strcmp(path, "/") != 0};
    cleanup_close int itself = machine_open_file(&machine, ".", O_PATH | O_DIRECTORY);
    if (itself < 0) {
        close(descriptor);
        return failure_set(
            failure, itself,
            "cannot use the root '%s': openat2 (Linux 5.6), without which its links would lead "
            "out of it, is not available here: %s",
            path, strerror(-itself));
    }
    *ret = machine;
    return 0;
}

void machine_close(struct machine *machine) {
    cleanup_close_descriptor(&machine->root);
}

const char *machine_path_in(char buffer[static MACHINE_PATH_LIMIT], const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    if (vsnprintf(buffer, MACHINE_PATH_LIMIT, format, arguments) >= MACHINE_PATH_LIMIT)
        buffer[0] = '\0';
    va_end(arguments);
    return buffer;
}

/* The definitions of linux/openat2.h, which older systems lack. */
struct how {
    uint64_t flags, mode, resolve;
};
#define RESOLVE_AS_ROOT UINT64_C(0x10)
#ifndef SYS_openat2
#define SYS_openat2 437
#endif

/* A descriptor or a negative errno. On a captured machine links lead to files below its root. */
int machine_open_file(const struct machine *machine, const char *path, int flags) {
    /* openat2 refuses O_PATH together with flags that O_PATH ignores. */
    flags |= flags & O_PATH ? O_CLOEXEC : O_CLOEXEC | O_NOCTTY;
    if (machine->captured) {
        struct how how = {.flags = (uint64_t)flags, .resolve = RESOLVE_AS_ROOT};
        int descriptor, tries = 0;
        /* EAGAIN: some process renames or mounts, and the kernel is not sure where ".." in a link leads. */
        do
            descriptor = (int)syscall(SYS_openat2, machine->root, path, &how, sizeof how);
        while (descriptor < 0 && errno == EAGAIN && ++tries < OPEN_TRIES);
        return descriptor < 0 ? -errno : descriptor;
    }
    int descriptor = openat(machine->root, path, flags);
    return descriptor < 0 ? -errno : descriptor;
}

/* ---- reading */

/* Reads up to SIZE bytes. Returns their number, 0 at the end, or a negative errno. */
static ssize_t read_some(int file, char *space, size_t size) {
    ssize_t got;
    do
        got = read(file, space, size);
    while (got < 0 && errno == EINTR);
    return got < 0 ? -errno : got;
}

/* True where a read of GOT of SIZE bytes was the last of the file PATH. One read gives a whole attribute of
 * /sys; files of /proc come in pieces of the kernel's choice, and end with a read of 0 bytes. */
static bool is_end(const char *path, ssize_t got, size_t size) {
    return got == 0 || ((size_t)got < size && strncmp(path, "sys/", 4) == 0);
}

/* Reads all of a file of MACHINE into RET, with a NUL after it. 0 or a negative errno. */
static int read_bytes(const struct machine *machine, const char *path, struct text *ret) {
    cleanup_close int file = machine_open_file(machine, path, O_RDONLY | O_NONBLOCK);
    if (file < 0)
        return file;
    text_reset(ret);
    ssize_t got = PIECE;
    while (!is_end(path, got, PIECE)) {
        char *space;
        int r = text_reserve(ret, PIECE, &space);
        if (r < 0)
            return r;
        got = read_some(file, space, PIECE);
        if (got < 0)
            return (int)got;
        ret->length += (size_t)got;
    }
    ret->bytes[ret->length] = '\0';
    return 0;
}

size_t machine_trim(char *bytes, size_t length) {
    while (length > 0 && isspace((unsigned char)bytes[length - 1]))
        length--;
    bytes[length] = '\0';
    return length;
}

int machine_read(const struct machine *machine, const char *path, struct text *ret) {
    int r = read_bytes(machine, path, ret);
    if (r < 0)
        return r;
    ret->length = machine_trim(ret->bytes, ret->length);
    return 0;
}

/* Reads all of a file into BUFFER, with a NUL after it. The bytes read; -EFBIG: it has SIZE bytes or more. */
ssize_t machine_read_small(const struct machine *machine, const char *path, char *buffer, size_t size) {
    cleanup_close int file = machine_open_file(machine, path, O_RDONLY | O_NONBLOCK);
    if (file < 0)
        return file;
    size_t length = 0, asked;
    ssize_t got;
    do {
        asked = size - length;
        got = read_some(file, buffer + length, asked);
        if (got < 0)
            return got;
        length += (size_t)got;
        if (length == size)
            return -EFBIG;
    } while (!is_end(path, got, asked));
    buffer[length] = '\0';
    return (ssize_t)length;
}

int machine_read_value(const struct machine *machine, const char *path, char *buffer, size_t size) {
    ssize_t length = machine_read_small(machine, path, buffer, size);
    if (length >= 0)
        (void)machine_trim(buffer, (size_t)length);
    return length < 0 ? (int)length : 0;
}

int machine_read_number(const struct machine *machine, const char *path, int64_t *ret) {
    char value[64];
    int r = machine_read_value(machine, path, value, sizeof value);
    if (r < 0)
        return r;
    return number_parse_int64(value, strlen(value), ret) ? 0 : -EINVAL;
}

int machine_read_set(const struct machine *machine, const char *path, struct pu_set *ret) {
    char list[PIECE];
    int r = machine_read_value(machine, path, list, sizeof list);
    return r < 0 ? r : pu_set_parse(list, ret);
}

void machine_read_siblings(const struct machine *machine, unsigned pu, struct pu_set *ret) {
    const char *path = machine_path("sys/devices/system/cpu/cpu%u/topology/thread_siblings_list", pu);
    if (machine_read_set(machine, path, ret) == 0 && pu_set_has(ret, pu))
        return;
    *ret = (struct pu_set){0};
    pu_set_add(ret, pu);
}

int machine_read_topology(const struct machine *machine, unsigned pu, const char *name) {
    int64_t value;
    const char *path = machine_path("sys/devices/system/cpu/cpu%u/topology/%s", pu, name);
    bool known = machine_read_number(machine, path, &value) == 0 && value >= 0 && value <= INT32_MAX;
    return known ? (int)value : -1;
}

bool machine_has(const struct machine *machine, const char *path) {
    cleanup_close int file = machine_open_file(machine, path, O_PATH);
    return file >= 0;
}

/* ---- writing */

int machine_write(const struct machine *machine, const char *path, const char *bytes, size_t length) {
    int file = machine_open_file(machine, path, O_WRONLY | O_TRUNC | O_NONBLOCK);
    if (file < 0)
        return file;
    ssize_t written = write(file, bytes, length);
    int r = written < 0 ? -errno : (size_t)written < length ? -EIO : 0;
    if (close(file) < 0 && r == 0)
        r = -errno;
    return r;
}

/* ---- folders */

/* Compares names in natural order: runs of digits are compared as numbers. */
static int compare_names(const void *a, const void *b) {
    return strverscmp(*(char *const *)a, *(char *const *)b);
}

void machine_names_clear(struct machine_names *names) {
    for (size_t i = 0; i < names->count; i++)
        free(names->items[i]);
    free(names->items);
    *names = (struct machine_names){0};
}

/* RET: the sorted names in FOLDER that begin with PREFIX. A negative errno when the folder cannot be read. */
int machine_list(const struct machine *machine, const char *folder, const char *prefix,
                 struct machine_names *ret) {
    int descriptor = machine_open_file(machine, folder, O_RDONLY | O_DIRECTORY);
    if (descriptor < 0)
        return descriptor;
    DIR *entries = fdopendir(descriptor);
    if (!entries) {
        int r = -errno;
        close(descriptor);
        return r;
    }
    cleanup(machine_names_clear) struct machine_names names = {0};
    size_t capacity = 0, length = strlen(prefix);
    struct dirent *entry;
    int r = 0;
    while (r == 0 && (entry = readdir(entries)))
        if (entry->d_name[0] != '.' && strncmp(entry->d_name, prefix, length) == 0) {
            r = list_reserve(&names.items, &capacity, names.count + 1, sizeof *names.items,
                             MACHINE_NAMES_LIMIT);
            if (r == 0 && !(names.items[names.count++] = strdup(entry->d_name)))
                r = -ENOMEM;
        }
    closedir(entries);
    if (r < 0)
        return r;
    if (names.count > 0)
        qsort(names.items, names.count, sizeof *names.items, compare_names);
    *ret = names;
    names = (struct machine_names){0};
    return 0;
}
