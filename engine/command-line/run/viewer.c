#include "engine/command-line/run/viewer.h"

#include <errno.h>
#include <signal.h>
#include <spawn.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>

/* Starts 'assay watch --screen FOLDER' with default signal handlers. Returns the process; 0: it could not be
 * started. */
pid_t viewer_start(const char *folder) {
    char *const words[] = {(char *)"assay", (char *)"watch", (char *)"--screen",
                           (char *)"--",    (char *)folder,  NULL};
    posix_spawnattr_t attributes;
    sigset_t none, all;
    pid_t viewer;
    sigemptyset(&none);
    sigfillset(&all);
    posix_spawnattr_init(&attributes);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &all);
    int r = posix_spawn(&viewer, "/proc/self/exe", NULL, &attributes, words, environ);
    posix_spawnattr_destroy(&attributes);
    return r == 0 ? viewer : 0;
}

void viewer_stop(pid_t viewer) {
    if (viewer <= 0)
        return;
    kill(viewer, SIGTERM);
    while (waitpid(viewer, NULL, 0) < 0 && errno == EINTR)
        continue;
}
