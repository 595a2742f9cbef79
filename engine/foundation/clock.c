#include "engine/foundation/clock.h"

#include <stdio.h>
#include <time.h>

static int64_t read_clock(clockid_t id) {
    struct timespec now;
    clock_gettime(id, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

int64_t clock_wall_ns(void) {
    return read_clock(CLOCK_REALTIME);
}

int64_t clock_monotonic_ns(void) {
    return read_clock(CLOCK_MONOTONIC);
}

static struct tm broken_down(int64_t wall_ns, int *ret_milliseconds) {
    time_t seconds = (time_t)(wall_ns / 1000000000);
    int64_t rest = wall_ns % 1000000000;
    if (rest < 0) {
        rest += 1000000000;
        seconds--;
    }
    struct tm fields;
    gmtime_r(&seconds, &fields);
    *ret_milliseconds = (int)(rest / 1000000);
    return fields;
}

const char *clock_format(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]) {
    int milliseconds;
    struct tm fields = broken_down(wall_ns, &milliseconds);
    size_t length = strftime(buffer, CLOCK_TEXT_SIZE, "%Y-%m-%dT%H:%M:%S", &fields);
    snprintf(buffer + length, CLOCK_TEXT_SIZE - length, ".%03d+00:00", milliseconds);
    return buffer;
}

const char *clock_format_compact(int64_t wall_ns, char buffer[static CLOCK_TEXT_SIZE]) {
    int milliseconds;
    struct tm fields = broken_down(wall_ns, &milliseconds);
    strftime(buffer, CLOCK_TEXT_SIZE, "%Y%m%dT%H%M%SZ", &fields);
    return buffer;
}
