/* Adds up an array of SIZE bytes PASSES times, and prints how long once takes and by how much the sum is off.
 */
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return (double)time.tv_sec + 1e-9 * (double)time.tv_nsec;
}

int main(int count, char **arguments) {
    if (count != 3) {
        fprintf(stderr, "usage: sum SIZE PASSES\n");
        return 2;
    }
    size_t items = strtoull(arguments[1], NULL, 10) / sizeof(double);
    long passes = strtol(arguments[2], NULL, 10);
    double *array = malloc(items * sizeof *array), sum = 0;
    if (!array) {
        fprintf(stderr, "out of memory\n");
        return 1;
    }
    for (size_t i = 0; i < items; i++)
        array[i] = 1;
    double start = now();
    for (long pass = 0; pass < passes; pass++)
        for (size_t i = 0; i < items; i++)
            sum += array[i];
    double time = (now() - start) / (double)passes;
    printf("time %.9f s\n", time);
    printf("error %g\n", sum - (double)passes * (double)items);
    free(array);
    return 0;
}
