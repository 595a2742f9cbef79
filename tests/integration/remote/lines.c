/* lines RATE SECONDS: RATE numbered lines a second, in a burst every 20 ms, as a busy program prints. For
 * faults.sh. */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int main(int count, char **arguments) {
    if (count != 3)
        return 2;
    uint64_t rate = strtoull(arguments[1], NULL, 10), seconds = strtoull(arguments[2], NULL, 10), line = 0;
    struct timespec start;
    clock_gettime(CLOCK_MONOTONIC, &start);
    for (uint64_t burst = 1; burst <= seconds * 50; burst++) {
        while (line < burst * rate / 50)
            printf("%" PRIu64 "\n", ++line);
        if (fflush(stdout) != 0)
            return 1;
        struct timespec until = {start.tv_sec + (time_t)(burst / 50),
                                 start.tv_nsec + (long)(burst % 50) * 20000000L};
        if (until.tv_nsec >= 1000000000L) {
            until.tv_nsec -= 1000000000L;
            until.tv_sec++;
        }
        clock_nanosleep(CLOCK_MONOTONIC, TIMER_ABSTIME, &until, NULL);
    }
    return 0;
}
