#include "engine/agent/probes/output.h"

#include "engine/foundation/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

void output_init(struct output *output, int descriptor) {
    struct stat status;
    *output = (struct output){.descriptor = descriptor};
    text_init(&output->waiting, OUTPUT_LIMIT);
    /* Files and terminals keep their flags, which other processes may share. */
    int flags = fcntl(descriptor, F_GETFL);
    if (fstat(descriptor, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) &&
        flags >= 0)
        (void)fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
}

void output_clear(struct output *output) {
    text_clear(&output->waiting);
}

bool output_put(struct output *output, const char *line, size_t length, bool is_sample) {
    size_t limit = is_sample ? OUTPUT_LIMIT - OUTPUT_RESERVE : OUTPUT_LIMIT;
    return output->waiting.length + length <= limit && text_append(&output->waiting, line, length) == 0;
}

void output_flush(struct output *output) {
    while (output->waiting.length > 0 && !output->broken) {
        ssize_t written = write(output->descriptor, output->waiting.bytes, output->waiting.length);
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            output->broken = errno != EAGAIN;
            return;
        }
        text_consume(&output->waiting, (size_t)written);
    }
}

bool output_drain(struct output *output, int limit_ms) {
    while (output_flush(output), output->waiting.length > 0 && !output->broken) {
        struct pollfd ready = {.fd = output->descriptor, .events = POLLOUT};
        int r = clock_poll(&ready, limit_ms * INT64_C(1000000));
        if (r == 0 || (r < 0 && errno != EINTR))
            return false;
    }
    return !output->broken;
}
