#include "engine/agent/probes/output.h"

#include "engine/foundation/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

int output_init(struct output *output, int descriptor) {
    struct stat status;
    *output = (struct output){.descriptor = descriptor, .bytes = malloc(OUTPUT_LIMIT)};
    if (!output->bytes)
        return -ENOMEM;
    /* Others may hold the same file or terminal: it is left as it is. */
    int flags = fcntl(descriptor, F_GETFL);
    if (fstat(descriptor, &status) == 0 && (S_ISFIFO(status.st_mode) || S_ISSOCK(status.st_mode)) &&
        flags >= 0)
        (void)fcntl(descriptor, F_SETFL, flags | O_NONBLOCK);
    return 0;
}

void output_clear(struct output *output) {
    free(output->bytes);
    *output = (struct output){.descriptor = -1};
}

size_t output_waiting(const struct output *output) {
    return output->end - output->begin;
}

bool output_put(struct output *output, const char *line, size_t length, bool is_sample) {
    size_t limit = is_sample ? OUTPUT_LIMIT - OUTPUT_RESERVE : OUTPUT_LIMIT;
    if (length > limit || output_waiting(output) > limit - length)
        return false;
    if (length > OUTPUT_LIMIT - output->end) {
        memmove(output->bytes, output->bytes + output->begin, output_waiting(output));
        output->end -= output->begin;
        output->begin = 0;
    }
    memcpy(output->bytes + output->end, line, length);
    output->end += length;
    return true;
}

void output_flush(struct output *output) {
    while (output_waiting(output) > 0 && !output->broken) {
        ssize_t written = write(output->descriptor, output->bytes + output->begin, output_waiting(output));
        if (written < 0 && errno == EINTR)
            continue;
        if (written < 0) {
            output->broken = errno != EAGAIN;
            return;
        }
        output->begin += (size_t)written;
    }
    output->begin = output->end = 0;
}

bool output_drain(struct output *output, int limit_ms) {
    while (output_flush(output), output_waiting(output) > 0 && !output->broken) {
        struct pollfd ready = {.fd = output->descriptor, .events = POLLOUT};
        int r = clock_poll(&ready, limit_ms * INT64_C(1000000));
        if (r == 0 || (r < 0 && errno != EINTR))
            return false;
    }
    return !output->broken;
}
