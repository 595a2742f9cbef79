#include "engine/agent/daemon/guardian.h"

#include "engine/agent/controls/elevation.h"
#include "engine/agent/controls/restore.h"
#include "engine/agent/machine/process.h"
#include "engine/agent/machine/tool.h"
#include "engine/agent/serve/memory.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"

#include <dirent.h>
#include <errno.h>
#include <signal.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    GRACE_MS = 1000,
    ROUND_MS = 20,
    KILL_ROUNDS_MAX = 250, /* not a time: on an overloaded machine a round takes seconds */
    QUIET_ROUNDS = 3,      /* searches in a row without a child: one may miss a process that forks */
};

/* Sends the signal NUMBER to all children. True where there was a child, or /proc cannot be read. */
static bool signal_children(int number) {
    DIR *processes = opendir("/proc");
    if (!processes)
        return true;
    bool any = false;
    struct dirent *entry;
    struct process process;
    uint64_t pid;
    while ((entry = readdir(processes)))
        if (number_parse_uint64(entry->d_name, strlen(entry->d_name), &pid) &&
            process_read((pid_t)pid, &process) == 0 && process.parent == getpid()) {
            any = true;
            kill((pid_t)pid, number);
        }
    closedir(processes);
    return any;
}

/* Reaps all children that have ended; true when no child is left. A child that dies may leave its own
 * children to us, so the search is repeated. */
static bool reap_children(void) {
    pid_t pid;
    while ((pid = waitpid(-1, NULL, WNOHANG)) > 0)
        continue;
    return pid < 0 && errno == ECHILD;
}

/* Ends all children: SIGTERM for GRACE_MS, then SIGKILL. Children that survive KILL_ROUNDS_MAX rounds hang in
 * the kernel and are left. */
static void end_children(void) {
    int64_t start = clock_monotonic_ns();
    for (int quiet = 0, kills = 0; !reap_children() && quiet < QUIET_ROUNDS && kills < KILL_ROUNDS_MAX;) {
        bool is_kill = clock_monotonic_ns() - start >= GRACE_MS * INT64_C(1000000);
        kills += is_kill;
        quiet = signal_children(is_kill ? SIGKILL : SIGTERM) ? 0 : quiet + 1;
        clock_sleep_ns(ROUND_MS * INT64_C(1000000));
    }
}

/* Ends this process with STATUS, that of the worker: the same exit status or signal. */
static _Noreturn void end_as(int status) {
    if (WIFSIGNALED(status)) {
        int number = WTERMSIG(status);
        signal(number, SIG_DFL);
        sigset_t one;
        sigemptyset(&one);
        sigaddset(&one, number);
        sigprocmask(SIG_UNBLOCK, &one, NULL);
        prctl(PR_SET_DUMPABLE, 0); /* no second core: that of the worker is useful */
        kill(getpid(), number);
    }
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 128);
}

/* Removes the run directory; a failure is printed to stderr, which the engine reads. */
static void remove_directory(const struct run_directory *directory) {
    struct failure failure;
    if (run_directory_remove(directory, &failure) < 0)
        tool_complain(1, "%s", failure.text);
}

/* Restores controls that the worker left changed, and controls set as root (elevation.h), which only the
 * guardian restores. REPORT: print what was done; a worker that ended in order has printed it itself. */
static void restore_controls(const char *root, bool report) {
    struct machine machine;
    char note[FAILURE_TEXT_SIZE];
    if (machine_open(root, &machine, NULL) < 0)
        return;
    restore_abandoned(&machine, note, sizeof note);
    if (report && note[0])
        tool_complain(1, "%s", note);
    machine_close(&machine);
}

/* The guardian's loop: passes signals to the worker as SIGTERM, and cleans up when the worker has ended. */
static _Noreturn void guard(pid_t worker, const struct run_directory *directory,
                            const struct guardian_options *options, const sigset_t *signals) {
    close(0);
    close(1);
    for (size_t i = 0; i < options->count; i++)
        close(options->descriptors[i]);
    memory_forget_code();
    for (;;) {
        int number = sigwaitinfo(signals, NULL);
        if (number > 0 && number != SIGCHLD)
            kill(worker, SIGTERM);
        int status;
        pid_t pid;
        while ((pid = waitpid(-1, &status, WNOHANG)) > 0)
            if (pid == worker) {
                end_children();
                if (!options->leave_controls)
                    restore_controls(options->root, WIFSIGNALED(status) || elevation_is_due());
                remove_directory(directory);
                end_as(status);
            }
    }
}

/* Forks: the parent becomes the guardian and never returns; the child returns and gets SIGTERM when the
 * guardian ends. */
int guardian_start(const struct run_directory *directory, const struct guardian_options *options,
                   struct failure *failure) {
    sigset_t signals, before;
    sigemptyset(&signals);
    sigaddset(&signals, SIGCHLD);
    sigaddset(&signals, SIGTERM);
    sigaddset(&signals, SIGINT);
    if (!options->ignore_hangup)
        sigaddset(&signals, SIGHUP);
    sigprocmask(SIG_BLOCK, &signals, &before);
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    pid_t guardian = getpid(), worker = fork();
    if (worker > 0)
        guard(worker, directory, options, &signals);
    int r = worker < 0 ? failure_set(failure, -errno, "cannot fork: %s", strerror(errno)) : 0;
    sigprocmask(SIG_SETMASK, &before, NULL);
    if (r < 0)
        return r;
    prctl(PR_SET_CHILD_SUBREAPER, 1);
    prctl(PR_SET_PDEATHSIG, SIGTERM);
    if (getppid() != guardian)
        raise(SIGTERM);
    return 0;
}
