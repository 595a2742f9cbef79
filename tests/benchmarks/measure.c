/* measure COMMAND [ARGUMENT...]: runs it and then prints, on descriptor 3, its CPU time (user and system,
 * with that of the children that it waited for) in s, its largest resident memory in MiB, and its wall time
 * in s. Exits as it did. */
#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

static double seconds(struct timeval time) {
    return (double)time.tv_sec + (double)time.tv_usec * 1e-6;
}

int main(int argc, char **argv) {
    if (argc < 2) {
        fprintf(stderr, "usage: measure COMMAND [ARGUMENT...] 3>FIGURES\n");
        return 2;
    }
    struct timespec before, after;
    clock_gettime(CLOCK_MONOTONIC, &before);
    pid_t child = fork();
    if (child == 0) {
        close(3);
        execvp(argv[1], argv + 1);
        fprintf(stderr, "measure: cannot run '%s': %s\n", argv[1], strerror(errno));
        _exit(127);
    }
    int status;
    struct rusage usage;
    if (child < 0 || wait4(child, &status, 0, &usage) < 0) {
        fprintf(stderr, "measure: %s\n", strerror(errno));
        return 1;
    }
    clock_gettime(CLOCK_MONOTONIC, &after);
    double wall = (double)(after.tv_sec - before.tv_sec) + (double)(after.tv_nsec - before.tv_nsec) * 1e-9;
    dprintf(3, "%.3f %.1f %.3f\n", seconds(usage.ru_utime) + seconds(usage.ru_stime),
            (double)usage.ru_maxrss / 1024, wall);
    return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
