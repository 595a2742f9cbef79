#include "engine/agent/serve/spawn.h"

#include "engine/agent/machine/pu-set.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/path.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

void spawned_init(struct spawned *spawned) {
    *spawned = (struct spawned){.input = -1, .output = -1, .error = -1};
}

void spawned_clear(struct spawned *spawned) {
    cleanup_close_descriptor(&spawned->input);
    cleanup_close_descriptor(&spawned->output);
    cleanup_close_descriptor(&spawned->error);
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

/* ---- prepared before vfork: the child itself may do only what is safe between vfork and exec */

enum spawn_step { SPAWN_SESSION, SPAWN_FOLDER, SPAWN_STREAMS, SPAWN_AFFINITY, SPAWN_EXEC };

struct child {
    int folder;     /* the working folder; -1: the run directory itself */
    int streams[3]; /* -1: /dev/null or, for stderr with `merge`, where stdout goes */
    bool merge;     /* stderr goes where stdout goes */
    pid_t parent;
    struct pu_set pus; /* empty: the agent's PUs */
    char **arguments, **environment;
    /* The step that failed and its errno; 0: none failed. The child writes them, into the shared memory. */
    enum spawn_step step;
    int code;
};

static void child_clear(struct child *child) {
    cleanup_close_descriptor(&child->folder);
    for (int i = 0; i < 3; i++)
        cleanup_close_descriptor(&child->streams[i]);
    free(child->environment);
}

static size_t name_length(const char *variable) {
    return strcspn(variable, "=");
}

static bool same_name(const char *a, const char *b) {
    size_t length = name_length(a);
    return length == name_length(b) && memcmp(a, b, length) == 0;
}

/* Makes the child's environment: the agent's with the variables of RUN. A variable replaces an earlier one of
 * its name; a name without '=' removes it. The array is the caller's, its texts are borrowed. */
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
        size_t remaining = 0;
        for (size_t k = 0; k < used; k++)
            if (!same_name(result[k], addition))
                result[remaining++] = result[k];
        used = remaining;
        if (strchr(addition, '='))
            result[used++] = addition;
    }
    result[used] = NULL;
    *ret = result;
    return 0;
}

/* Makes a pipe for a stream of MODE STREAM, with the child's end THEIRS and the agent's end OURS; other modes
 * have none. */
static int make_stream(uint8_t mode, bool input, int *theirs, int *ours) {
    int ends[2];
    if (mode != PROTOCOL_MODE_STREAM)
        return 0;
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    *theirs = ends[input ? 0 : 1];
    *ours = ends[input ? 1 : 0];
    /* The agent's end only: the program expects blocking streams. */
    return fcntl(*ours, F_SETFL, O_NONBLOCK | (input ? O_WRONLY : O_RDONLY)) < 0 ? -errno : 0;
}

static int make_streams(const struct protocol_run *run, struct child *child, struct spawned *spawned) {
    child->merge = run->error == PROTOCOL_MODE_MERGE;
    int r = make_stream(run->input, true, &child->streams[0], &spawned->input);
    if (r == 0)
        r = make_stream(run->output, false, &child->streams[1], &spawned->output);
    return r < 0 ? r : make_stream(run->error, false, &child->streams[2], &spawned->error);
}

/* ---- the child */

/* Ends the child before exec, with the failed STEP and errno for the parent. */
static _Noreturn void exit_failed(struct child *child, enum spawn_step step) {
    child->step = step;
    child->code = errno;
    _exit(127);
}

/* The signals that the agent ignores, which exec would not reset. They are read once: the agent changes none
 * after it has begun to serve. */
static const sigset_t *ignored_signals(void) {
    static sigset_t ignored;
    static bool known;
    struct sigaction action;
    for (int number = 1; number < NSIG && !known; number++)
        if (sigaction(number, NULL, &action) == 0 && action.sa_handler == SIG_IGN)
            sigaddset(&ignored, number);
    known = true;
    return &ignored;
}

static void reset_signals(void) {
    const sigset_t *ignored = ignored_signals();
    for (int number = 1; number < NSIG; number++)
        if (sigismember(ignored, number) > 0)
            signal(number, SIG_DFL);
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
}

/* Binds the child to its PUs. False, with errno, where that failed or some of the PUs are not allowed: the
 * kernel silently leaves those out, so the set is read back. */
static bool bind_to_pus(const struct child *child) {
    static struct pu_set got;
    if (pu_set_first(&child->pus) == PROTOCOL_PU_LIMIT)
        return true;
    if (pu_set_bind(&child->pus) < 0 || pu_set_allowed(&got) < 0)
        return false;
    errno = EINVAL;
    return memcmp(&got, &child->pus, sizeof got) == 0;
}

static struct rlimit inherited; /* the agent's limits of open files as it was started */
static bool raised;             /* the agent has raised its own soft limit */

enum { DESCRIPTORS_WANTED = 3 * PROTOCOL_COMMAND_LIMIT + 1024 };

void spawn_allow_descriptors(void) {
    if (raised || getrlimit(RLIMIT_NOFILE, &inherited) < 0 || inherited.rlim_cur >= DESCRIPTORS_WANTED)
        return;
    struct rlimit more = inherited;
    more.rlim_cur = inherited.rlim_max < DESCRIPTORS_WANTED ? inherited.rlim_max : DESCRIPTORS_WANTED;
    raised = setrlimit(RLIMIT_NOFILE, &more) == 0;
}

/* Runs in the child: sets up session, folder, streams, PUs and signals, and executes the program. */
static _Noreturn void run_child(struct child *child, const struct spawn_folders *folders) {
    if (setsid() < 0)
        exit_failed(child, SPAWN_SESSION);
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    if (getppid() != child->parent) { /* the agent died before prctl */
        errno = ESRCH;
        exit_failed(child, SPAWN_SESSION);
    }
    if (fchdir(child->folder < 0 ? folders->directory : child->folder) < 0)
        exit_failed(child, SPAWN_FOLDER);
    for (int i = 0; i < 3; i++) {
        int stream = child->streams[i] >= 0 ? child->streams[i] : i == 2 && child->merge ? 1 : folders->null;
        if (dup2(stream, i) < 0)
            exit_failed(child, SPAWN_STREAMS);
    }
    if (!bind_to_pus(child))
        exit_failed(child, SPAWN_AFFINITY);
    reset_signals();
    if (raised)
        setrlimit(RLIMIT_NOFILE, &inherited);
    environ = child->environment; /* PATH is looked up in it */
    execvp(child->arguments[0], child->arguments);
    exit_failed(child, SPAWN_EXEC);
}

/* Forks and runs the child. Not inlined, so that the compiler keeps no value in a register that the child
 * changes in memory. */
static __attribute__((noinline)) pid_t fork_child(struct child *child, const struct spawn_folders *folders) {
    pid_t pid = vfork();
    if (pid == 0)
        run_child(child, folders);
    return pid;
}

/* ---- the parent */

/* The longest of COUNT texts: the kernel has a limit for each (execve(2), E2BIG). */
static const char *longest(const char *const *texts, uint32_t count) {
    const char *found = "";
    for (uint32_t i = 0; i < count; i++)
        found = strlen(texts[i]) > strlen(found) ? texts[i] : found;
    return found;
}

/* Fails for a program whose arguments or environment are too long: names the longest of them and the limit.
 */
static int describe_size_failure(const struct protocol_run *run, struct failure *failure) {
    const long text_max = 32 * sysconf(_SC_PAGESIZE) - 1; /* MAX_ARG_STRLEN without the NUL */
    const char *argument = longest(run->arguments, run->argument_count),
               *variable = longest(run->environment, run->environment_count);
    bool is_variable = strlen(variable) > strlen(argument);
    return failure_set(
        failure, -E2BIG,
        "cannot run '%.64s': its %s '%.*s%s' has %zu bytes; Linux allows %ld in each argument and "
        "variable, and a quarter of 'ulimit -s' for all; give the content in a file",
        run->arguments[0], is_variable ? "environment variable" : "argument",
        is_variable ? (int)strcspn(variable, "=") : 40, is_variable ? variable : argument,
        is_variable ? "" : "...", strlen(is_variable ? variable : argument), text_max);
}

/* Fails for a program that could not be executed, with its path or the PATH that was searched. */
static int describe_exec_failure(const struct protocol_run *run, int code, struct failure *failure) {
    const char *program = run->arguments[0];
    if (code == E2BIG)
        return describe_size_failure(run, failure);
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

/* Turns the child's failed step and errno into FAILURE. */
static int describe_failure(const struct protocol_run *run, const struct child *child,
                            struct failure *failure) {
    const char *program = run->arguments[0], *why = strerror(child->code);
    char wanted[256], allowed[256];
    struct pu_set pus;
    switch (child->step) {
    case SPAWN_FOLDER:
        return failure_set(failure, -child->code, "cannot run '%.256s': cannot change to folder '%.256s': %s",
                           program, run->folder, why);
    case SPAWN_AFFINITY:
        return failure_set(failure, -child->code,
                           "cannot run '%.256s': cannot pin it to PUs %s: %s; the agent may use PUs %s",
                           program, pu_set_format(&child->pus, wanted, sizeof wanted), why,
                           pu_set_allowed(&pus) < 0 ? "unknown"
                                                    : pu_set_format(&pus, allowed, sizeof allowed));
    case SPAWN_EXEC:
        return describe_exec_failure(run, child->code, failure);
    default:
        return failure_set(failure, -child->code, "cannot run '%.256s': cannot prepare its process: %s",
                           program, why);
    }
}

/* Opens the working folder of RUN; "." is the run directory, for which nothing is opened. */
static int open_folder(const struct protocol_run *run, const struct spawn_folders *folders,
                       struct child *child, struct failure *failure) {
    if (strcmp(run->folder, ".") == 0)
        return 0;
    child->folder = path_open(folders->directory, -1, run->folder, O_RDONLY | O_DIRECTORY, failure);
    if (child->folder >= 0)
        return 0;
    failure_prefix(failure, "cannot run '%.64s'", run->arguments[0]);
    return child->folder;
}

/* Starts the child. Returns 0 with its pid where the program runs; 1 where the child failed before exec and
 * CHILD tells the step; or a negative errno. */
static int start_child(struct child *child, const struct spawn_folders *folders, struct spawned *spawned) {
    char **ours = environ;
    spawned->wall_ns = clock_wall_ns();
    spawned->monotonic_ns = clock_monotonic_ns();
    spawned->pid = fork_child(child, folders);
    environ = ours;
    if (spawned->pid < 0)
        return -errno;
    if (child->code == 0)
        return 0;
    while (waitpid(spawned->pid, NULL, 0) < 0 && errno == EINTR)
        continue;
    return 1;
}

struct event_source *spawn_watch(struct event_loop *loop, pid_t pid, event_child_callback *callback,
                                 void *context) {
    return event_loop_add_child(loop, pid, callback, context);
}

int spawn_signal(pid_t pid, int number) {
    return kill(-pid, number) < 0 ? -errno : 0;
}

/* Starts the process of RUN. RET: its pid and the agent's ends of its pipes; untouched on failure. */
int spawn(const struct protocol_run *run, const struct spawn_folders *folders, struct spawned *ret,
          struct failure *failure) {
    struct child child = {.folder = -1, .streams = {-1, -1, -1}, .parent = getpid()};
    struct spawned spawned;
    spawned_init(&spawned);
    child.arguments = (char **)run->arguments;
    for (uint32_t i = 0; i < run->pu_count; i++)
        pu_set_add(&child.pus, run->pus[i]);
    int r = open_folder(run, folders, &child, failure);
    if (r < 0)
        return r;
    r = make_environment(run, &child.environment);
    if (r == 0)
        r = make_streams(run, &child, &spawned);
    if (r == 0)
        r = start_child(&child, folders, &spawned);
    child_clear(&child);
    if (r == 0) {
        *ret = spawned;
        return 0;
    }
    spawned_clear(&spawned);
    if (r > 0)
        return describe_failure(run, &child, failure);
    return failure_set(failure, r, "cannot run '%.64s': %s", run->arguments[0], strerror(-r));
}
