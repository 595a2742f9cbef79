/*
 * For tests with real processes: the system's clocks, plus what a file says, so that a test makes time pass.
 * The offset is the file's size in milliseconds (none: 0), because a shell changes that in one step:
 *
 *     truncate -s +34000 "$ASSAY_TEST_CLOCK"
 *
 * A program that has moved-clock.c linked into it, and ASSAY_TEST_CLOCK=FILE in its environment, goes by it,
 * and looks again every 10 ms wherever it waits. README.md has which programs there are.
 */
#ifndef ASSAY_TESTS_SIMULATION_MOVED_CLOCK_H
#define ASSAY_TESTS_SIMULATION_MOVED_CLOCK_H

#include <stdint.h>

/* From here on this program and its children go by FILE. */
void moved_clock_use(const char *file);
/* And these see so much time pass. */
void moved_clock_advance(int64_t milliseconds);

#endif
