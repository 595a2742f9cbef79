#include "engine/agent/spawn.h"

#include "engine/agent/beneath.h"
#include "engine/agent/pu-set.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <unistd.h>

void spawned_init(struct spawned *spawned) {
    *spawned = (struct spawned){.input = -1, .output = -1, .error = -1, .report = -1};
}

void spawned_clear(struct spawned *spawned) {
    cleanup_close_descriptor(&spawned->input);
    cleanup_close_descriptor(&spawned->output);
    cleanup_close_descriptor(&spawned->error);
    cleanup_close_descriptor(&spawned->report);
    spawned_init(spawned);
}

size_t spawn_widen_pipe(int descriptor, size_t size) {
    int now = fcntl(descriptor, F_GETPIPE_SZ);
    /* EPERM: beyond pipe-max-size, or the user has too many pages in pipes. */
    for (; now > 0 && size > (size_t)now; size /= 2) {
        int granted = fcntl(descriptor, F_SETPIPE_SZ, (int)size);
        if (granted > 0)
            return (size_t)granted;
    }
    return now > 0 ? (size_t)now : 0;
}

/* ---- what is made ready before fork: after it, only what is safe between fork and exec */

struct child {
    int folder, streams[3], report;
    pid_t parent;
    cpu_set_t *pus; /* NULL: as the agent */
    size_t pus_size;
    char **arguments, **environment;
};

static void child_clear(struct child *child) {
    cleanup_close_descriptor(&child->folder);
    for (int i = 0; i < 3; i++)
        cleanup_close_descriptor(&child->streams[i]);
    cleanup_close_descriptor(&child->report);
    CPU_FREE(child->pus);
    free(child->environment);
}

static size_t name_length(const char *variable) {
    return strcspn(variable, "=");
}

static bool same_name(const char *a, const char *b) {
    size_t length = name_length(a);
    return length == name_length(b) && memcmp(a, b, length) == 0;
}

/* Ours, with the additions: a later one of a name takes the place of an earlier one, a bare name takes it
 * away. */
static int make_environment(const struct protocol_run *run, char ***ret) {
    size_t count = 0, used = 0;
    while (environ[count])
        count++;
    char **result = calloc(count + run->environment_count + 1, sizeof *result);
    if (!result)
        return -ENOMEM;
    for (size_t i = 0; i < count; i++)
        result[used++] = environ[i];
    for (uint32_t i = 0; i < run->environment_count; i++) {
        char *addition = (char *)run->environment[i];
        size_t kept = 0;
        for (size_t k = 0; k < used; k++)
            if (!same_name(result[k], addition))
                result[kept++] = result[k];
        used = kept;
        if (strchr(addition, '='))
            result[used++] = addition;
    }
    result[used] = NULL;
    *ret = result;
    return 0;
}

static int make_pus(const struct protocol_run *run, struct child *child) {
    if (run->pu_count == 0)
        return 0;
    child->pus = CPU_ALLOC(PROTOCOL_PU_LIMIT);
    if (!child->pus)
        return -ENOMEM;
    child->pus_size = CPU_ALLOC_SIZE(PROTOCOL_PU_LIMIT);
    CPU_ZERO_S(child->pus_size, child->pus);
    for (uint32_t i = 0; i < run->pu_count; i++)
        CPU_SET_S(run->pus[i], child->pus_size, child->pus);
    return 0;
}

/* THEIRS is the child's end, OURS the agent's. */
static int make_stream(uint8_t mode, bool input, int null, int *theirs, int *ours) {
    if (mode == PROTOCOL_MODE_MERGE)
        return 0;
    if (mode == PROTOCOL_MODE_NULL) {
        *theirs = fcntl(null, F_DUPFD_CLOEXEC, 3);
        return *theirs < 0 ? -errno : 0;
    }
    int ends[2];
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *theirs = ends[input ? 0 : 1];
    *ours = ends[input ? 1 : 0];
    /* Only our end: the program must find its streams blocking, as everywhere. */
    return fcntl(*ours, F_SETFL, O_NONBLOCK | (input ? O_WRONLY : O_RDONLY)) < 0 ? -errno : 0;
}

static int make_streams(const struct protocol_run *run, int null, struct child *child,
                        struct spawned *spawned) {
    int r = make_stream(run->input, true, null, &child->streams[0], &spawned->input);
    if (r == 0)
        r = make_stream(run->output, false, null, &child->streams[1], &spawned->output);
    if (r == 0)
        r = make_stream(run->error, false, null, &child->streams[2], &spawned->error);
    int ends[2];
    if (r == 0 && pipe2(ends, O_CLOEXEC | O_NONBLOCK) < 0)
        r = -errno;
    if (r < 0)
        return r;
    spawned->report = ends[0];
    child->report = ends[1];
    return 0;
}

/* ---- the child */

static _Noreturn void give_up(const struct child *child, enum spawn_step step) {
    struct spawn_report report = {.step = step, .code = errno};
    ssize_t ignored = write(child->report, &report, sizeof report);
    (void)ignored; /* nobody is left to tell */
    _exit(127);
}

static void reset_signals(void) {
    for (int number = 1; number < NSIG; number++)
        if (number != SIGKILL && number != SIGSTOP)
            signal(number, SIG_DFL); /* fails for those that libc keeps for itself, which is right */
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* The kernel takes away what does not exist or is not allowed, as long as something is left; so it is read
 * back. */
static bool pin(const struct child *child) {
    static cpu_set_t got[PROTOCOL_PU_LIMIT / CPU_SETSIZE]; /* no allocation after fork */
    if (!child->pus)
        return true;
    if (sched_setaffinity(0, child->pus_size, child->pus) < 0)
        return false;
    CPU_ZERO_S(sizeof got, got);
    if (sched_getaffinity(0, sizeof got, got) < 0)
        return false;
    if (CPU_EQUAL_S(child->pus_size, got, child->pus))
        return true;
    errno = EINVAL;
    return false;
}

static _Noreturn void become(const struct child *child) {
    if (setsid() < 0)
        give_up(child, SPAWN_SESSION);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != child->parent) { /* it died before prctl */
        errno = ESRCH;
        give_up(child, SPAWN_SESSION);
    }
    if (fchdir(child->folder) < 0)
        give_up(child, SPAWN_FOLDER);
    int output = child->streams[1], error = child->streams[2] < 0 ? output : child->streams[2];
    if (dup2(child->streams[0], 0) < 0 || dup2(output, 1) < 0 || dup2(error, 2) < 0)
        give_up(child, SPAWN_STREAMS);
    if (!pin(child))
        give_up(child, SPAWN_AFFINITY);
    reset_signals();
    environ = child->environment;
    execvp(child->arguments[0], child->arguments);
    give_up(child, SPAWN_EXEC);
}

/* ---- the parent */

int spawn(const struct protocol_run *run, const struct spawn_folders *folders, struct spawned *ret,
          struct failure *failure) {
    struct child child = {.folder = -1, .streams = {-1, -1, -1}, .report = -1, .parent = getpid()};
    struct spawned spawned;
    spawned_init(&spawned);
    child.arguments = (char **)run->arguments;
    child.folder = beneath_open(folders->directory, run->folder, O_RDONLY | O_DIRECTORY, 0, failure);
    if (child.folder < 0) {
        failure_prefix(failure, "cannot run '%.64s'", run->arguments[0]);
        return child.folder;
    }
    int r = make_environment(run, &child.environment);
    if (r == 0)
        r = make_pus(run, &child);
    if (r == 0)
        r = make_streams(run, folders->null, &child, &spawned);
    if (r == 0) {
        spawned.wall_ns = clock_wall_ns();
        spawned.monotonic_ns = clock_monotonic_ns();
        spawned.pid = fork();
        if (spawned.pid == 0)
            become(&child);
        if (spawned.pid < 0)
            r = -errno;
    }
    child_clear(&child);
    if (r < 0) {
        spawned_clear(&spawned);
        return failure_set(failure, r, "cannot run '%.64s': %s", run->arguments[0], strerror(-r));
    }
    *ret = spawned;
    return 0;
}

static const char *describe_pus(const struct protocol_run *run, char *buffer, size_t size) {
    struct pu_set set = {0};
    for (uint32_t i = 0; i < run->pu_count; i++)
        pu_set_add(&set, run->pus[i]);
    return pu_set_format(&set, buffer, size);
}

static const char *describe_allowed(char *buffer, size_t size) {
    static cpu_set_t mask[PROTOCOL_PU_LIMIT / CPU_SETSIZE];
    struct pu_set set = {0};
    if (sched_getaffinity(0, sizeof mask, mask) < 0)
        return "unknown";
    for (unsigned pu = 0; pu < PROTOCOL_PU_LIMIT; pu++)
        if (CPU_ISSET_S(pu, sizeof mask, mask))
            pu_set_add(&set, pu);
    return pu_set_format(&set, buffer, size);
}

static int explain_exec(const struct protocol_run *run, int code, struct failure *failure) {
    const char *program = run->arguments[0];
    if (strchr(program, '/'))
        return failure_set(failure, -code, "cannot run '%.256s' in folder '%.256s': %s%s", program,
                           run->folder, strerror(code),
                           code == ENOENT ? " (or the interpreter that it names is missing)" : "");
    const char *path = getenv("PATH");
    for (uint32_t i = 0; i < run->environment_count; i++)
        if (strncmp(run->environment[i], "PATH=", 5) == 0)
            path = run->environment[i] + 5;
    return failure_set(failure, -code, "cannot run '%.256s': %s; PATH is '%.512s'", program, strerror(code),
                       path ? path : "");
}

int spawn_explain(const struct protocol_run *run, const struct spawn_report *report,
                  struct failure *failure) {
    const char *program = run->arguments[0], *why = strerror(report->code);
    char wanted[256], allowed[256];
    switch (report->step) {
    case SPAWN_FOLDER:
        return failure_set(failure, -report->code,
                           "cannot run '%.256s': cannot change to folder '%.256s': %s", program, run->folder,
                           why);
    case SPAWN_AFFINITY:
        return failure_set(failure, -report->code,
                           "cannot run '%.256s': cannot pin it to PUs %s: %s; the agent may use PUs %s",
                           program, describe_pus(run, wanted, sizeof wanted), why,
                           describe_allowed(allowed, sizeof allowed));
    case SPAWN_EXEC:
        return explain_exec(run, report->code, failure);
    default:
        return failure_set(failure, -report->code, "cannot run '%.256s': cannot prepare its process: %s",
                           program, why);
    }
}
