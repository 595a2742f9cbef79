#include "tests/simulation/moved-clock.h"

#include "engine/foundation/clock.h"

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static char path[4096];

static int64_t read_clock(clockid_t id) {
    struct timespec now;
    struct stat file;
    clock_gettime(id, &now);
    int64_t offset_ms = stat(path, &file) == 0 ? file.st_size : 0;
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec + offset_ms * 1000000;
}

static int64_t read_wall(void *context) {
    (void)context;
    return read_clock(CLOCK_REALTIME);
}

static int64_t read_monotonic(void *context) {
    (void)context;
    return read_clock(CLOCK_MONOTONIC);
}

void moved_clock_use(const char *file) {
    static const struct clock_source source = {
        .wall_ns = read_wall, .monotonic_ns = read_monotonic, .look_again_ns = 10000000};
    snprintf(path, sizeof path, "%s", file);
    setenv("ASSAY_TEST_CLOCK", path, 1);
    clock_use(&source);
}

__attribute__((constructor)) static void use_given(void) {
    const char *given = getenv("ASSAY_TEST_CLOCK");
    if (given)
        moved_clock_use(given);
}

void moved_clock_advance(int64_t milliseconds) {
    struct stat file = {0};
    int descriptor = open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0600);
    if (descriptor < 0 || fstat(descriptor, &file) < 0 ||
        ftruncate(descriptor, file.st_size + milliseconds) < 0) {
        perror(path);
        abort();
    }
    close(descriptor);
}
