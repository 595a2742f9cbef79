#include "engine/agent/probes/source.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

enum { DIGITS_LIMIT = 19 };
#define REOPEN_NS INT64_C(1000000000)
#define SYSFS 0x62656572
#define PROCFS 0x9fa0

int source_init(struct source *source, const char *path) {
    *source = (struct source){
        .path = strdup(path), .descriptor = -1, .opened_ns = INT64_MIN, .refused_ns = INT64_MIN};
    return source->path ? 0 : -ENOMEM;
}

void source_clear(struct source *source) {
    if (source->path && source->descriptor >= 0)
        close(source->descriptor);
    free(source->path);
    *source = (struct source){.descriptor = -1};
}

/* Opens the file, again if need be. 0 or a negative errno. */
static int open_file(struct source *source, const struct machine *machine, int64_t now_ns) {
    cleanup_close_descriptor(&source->descriptor);
    source->opened_ns = now_ns;
    int descriptor = machine_open_file(machine, source->path, O_RDONLY | O_NONBLOCK);
    if (descriptor < 0)
        return descriptor;
    struct statfs system;
    source->plain = fstatfs(descriptor, &system) < 0 || (system.f_type != SYSFS && system.f_type != PROCFS);
    source->descriptor = descriptor;
    return 0;
}

/* Closes a plain file that was removed, checked at most once a second. Attributes of the kernel need no
 * check: reading a removed one fails with ENODEV. */
static void close_if_removed(struct source *source, int64_t now_ns) {
    if (!source->plain || now_ns - source->opened_ns < REOPEN_NS)
        return;
    struct stat status;
    source->opened_ns = now_ns;
    if (fstat(source->descriptor, &status) < 0 || status.st_nlink == 0)
        cleanup_close_descriptor(&source->descriptor);
}

/* Reads a file from its start into BUFFER, with a NUL after it. The bytes read; -ENODATA: it is empty;
 * -EFBIG: it has SIZE bytes or more. */
static ssize_t read_all(int descriptor, char *buffer, size_t size) {
    size_t length = 0;
    for (;;) {
        ssize_t got = pread(descriptor, buffer + length, size - length, (off_t)length);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        /* One read is enough for a small file. */
        length += (size_t)got;
        if (length == size)
            return -EFBIG;
        if (got == 0 || size <= 64)
            break;
    }
    buffer[length] = '\0';
    return length == 0 ? -ENODATA : (ssize_t)length;
}

/* True where the file was opened too recently to be opened again. */
static bool is_pause(const struct source *source, int64_t now_ns) {
    int64_t since_ns = source->descriptor < 0 ? source->opened_ns : source->refused_ns;
    return since_ns != INT64_MIN && now_ns - since_ns < REOPEN_NS;
}

ssize_t source_read(struct source *source, const struct machine *machine, int64_t now_ns, char *buffer,
                    size_t size) {
    if (source->descriptor >= 0)
        close_if_removed(source, now_ns);
    ssize_t length = -ENODEV;
    if (source->descriptor >= 0)
        length = read_all(source->descriptor, buffer, size);
    if (length >= 0 || is_pause(source, now_ns))
        return length;
    int r = open_file(source, machine, now_ns);
    if (r < 0)
        return r;
    length = read_all(source->descriptor, buffer, size);
    if (length < 0)
        source->refused_ns = now_ns;
    return length;
}

ssize_t source_read_digits(struct source *source, const struct machine *machine, int64_t now_ns, char *buffer,
                           size_t size) {
    ssize_t length = source_read(source, machine, now_ns, buffer, size);
    if (length < 0)
        return length;
    length = (ssize_t)machine_trim(buffer, (size_t)length);
    size_t first = buffer[0] == '-', digits = strspn(buffer + first, "0123456789");
    return digits > 0 && digits <= DIGITS_LIMIT && first + digits == (size_t)length ? length : -EINVAL;
}
