/* Daemons are asked after, stopped and started by systemctl where systemd runs the machine, by service where
 * a script of /etc/init.d is theirs: fixed words, never a shell, and never for ever. */
#include "engine/agent/controls/daemons.h"

#include "engine/agent/controls/control.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { LOOK_MS = 10000, SET_MS = 60000, OUTPUT_SIZE = 4096, ARGUMENTS = 12 };
#define ROUND_NS INT64_C(10000000)

const char *const daemon_names[DAEMON_COUNT] = {"tuned", "thermald", "power-profiles-daemon", "irqbalance"};
const char *const daemon_state_names[] = {[DAEMON_ABSENT] = "absent",
                                          [DAEMON_STOPPED] = "stopped",
                                          [DAEMON_RUNNING] = "running",
                                          [DAEMON_UNKNOWN] = "unknown"};

bool daemons_is_one(const char *name) {
    for (int i = 0; i < DAEMON_COUNT; i++)
        if (name[0] && strncmp(name, daemon_names[i], 15) == 0)
            return true;
    return false;
}

enum manager { MANAGER_NONE, MANAGER_SYSTEMD, MANAGER_SERVICE };

static enum manager find_manager(void) {
    return access("/run/systemd/system", F_OK) == 0 ? MANAGER_SYSTEMD
           : access("/etc/init.d", F_OK) == 0       ? MANAGER_SERVICE
                                                    : MANAGER_NONE;
}

/* ---- running a program */

static bool find_program(const char *name, char *path, size_t size) {
    static const char *const folders[] = {"/usr/sbin", "/usr/bin", "/sbin", "/bin"};
    for (size_t i = 0; i < sizeof folders / sizeof *folders; i++) {
        snprintf(path, size, "%s/%s", folders[i], name);
        if (access(path, X_OK) == 0)
            return true;
    }
    return false;
}

/* Whoever calls may have signals blocked. The program stays in the caller's process group: whoever ends that
 * ends it too, so that nothing is stopped after all was put back. What is said on stderr is heard where
 * ERRORS is so. */
static int spawn(const char *const *arguments, int output, bool errors, pid_t *ret) {
    static char search[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", language[] = "LC_ALL=C";
    char *const environment[] = {search, language, NULL};
    char path[256];
    if (!find_program(arguments[0], path, sizeof path))
        return -ENOENT;
    posix_spawn_file_actions_t actions;
    posix_spawnattr_t attributes;
    sigset_t none, pipe;
    sigemptyset(&none);
    sigemptyset(&pipe);
    sigaddset(&pipe, SIGPIPE);
    posix_spawn_file_actions_init(&actions);
    posix_spawnattr_init(&attributes);
    posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
    posix_spawn_file_actions_adddup2(&actions, output, 1);
    if (errors)
        posix_spawn_file_actions_adddup2(&actions, output, 2);
    else
        posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
    posix_spawnattr_setsigmask(&attributes, &none);
    posix_spawnattr_setsigdefault(&attributes, &pipe);
    posix_spawnattr_setflags(&attributes, POSIX_SPAWN_SETSIGMASK | POSIX_SPAWN_SETSIGDEF);
    char *copy[ARGUMENTS + 1] = {0};
    for (size_t i = 0; i < ARGUMENTS && arguments[i]; i++)
        copy[i] = (char *)(uintptr_t)arguments[i];
    int r = -posix_spawn(ret, path, &actions, &attributes, copy, environment);
    posix_spawnattr_destroy(&attributes);
    posix_spawn_file_actions_destroy(&actions);
    return r;
}

struct output {
    char *bytes; /* OUTPUT_SIZE of them; what does not fit is dropped */
    size_t length;
};

/* One reading, of what is there. False at the end. */
static bool take_output(int from, struct output *output) {
    char beyond[256];
    size_t room = OUTPUT_SIZE - 1 - output->length;
    ssize_t got = read(from, room ? output->bytes + output->length : beyond, room ? room : sizeof beyond);
    output->length += room && got > 0 ? (size_t)got : 0;
    return got > 0;
}

/* What was said between the last reading and the child's end. */
static void drain(int from, struct output *output) {
    struct pollfd wait = {.fd = from, .events = POLLIN};
    while (output->length < OUTPUT_SIZE - 1 && poll(&wait, 1, 0) > 0 && take_output(from, output))
        ;
}

/* Reads until the end, the deadline, or the child's: a daemon that it starts may hold the pipe for good. */
static int collect(pid_t child, int from, int64_t deadline_ns, char bytes[static OUTPUT_SIZE],
                   int *ret_status) {
    struct output output = {.bytes = bytes};
    pid_t ended = 0;
    for (bool open = true; ended == 0;) {
        int64_t left_ns = deadline_ns - clock_monotonic_ns();
        if (left_ns <= 0) {
            kill(child, SIGKILL);
            (void)waitpid(child, ret_status, 0);
            return -ETIMEDOUT;
        }
        struct pollfd wait = {.fd = open ? from : -1, .events = POLLIN};
        if (clock_poll(&wait, ROUND_NS) > 0 && (open = take_output(from, &output)))
            continue; /* all that it has said before it is asked after */
        ended = waitpid(child, ret_status, WNOHANG);
    }
    int r = ended < 0 ? -errno : 0;
    drain(from, &output);
    bytes[output.length] = '\0';
    return r;
}

/* The exit status, what was said in OUTPUT; or a negative errno. */
static int call(const char *const *arguments, int64_t limit_ms, bool errors,
                char output[static OUTPUT_SIZE]) {
    int ends[2];
    output[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    cleanup_close int from = ends[0];
    pid_t child;
    int r = spawn(arguments, ends[1], errors, &child);
    close(ends[1]);
    if (r < 0)
        return r;
    int status = 0;
    r = collect(child, from, clock_monotonic_ns() + limit_ms * 1000000, output, &status);
    if (r < 0)
        return r;
    return WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

/* ---- how they stand */

/* The value of a line "NAME=VALUE" of OUTPUT is one of WORDS, which blanks part. */
static bool says(const char *output, const char *name, const char *words) {
    size_t length = strlen(name);
    for (const char *line = output; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0 || line[length] != '=')
            continue;
        char value[64];
        snprintf(value, sizeof value, "%.*s", (int)strcspn(line + length + 1, "\n"), line + length + 1);
        return control_check_word(value, words, &(struct failure){0}) == 0;
    }
    return false;
}

/* A unit may go by another name: each is asked after alone, so that none is taken for another. */
static int look_at_unit(const char *name, enum daemon_state *ret) {
    char output[OUTPUT_SIZE];
    const char *const arguments[] = {"systemctl", "show", "--property=LoadState", "--property=ActiveState",
                                     name,        NULL};
    int status = call(arguments, LOOK_MS, false, output);
    if (status != 0)
        return status < 0 ? status : -EIO;
    if (says(output, "LoadState", "not-found masked error bad-setting"))
        *ret = DAEMON_ABSENT;
    else if (!says(output, "LoadState", "loaded merged stub"))
        return -EIO;
    else if (says(output, "ActiveState", "active activating reloading refreshing"))
        *ret = DAEMON_RUNNING;
    else if (says(output, "ActiveState", "inactive deactivating failed maintenance"))
        *ret = DAEMON_STOPPED;
    else
        return -EIO;
    return 0;
}

/* A manager that does not answer is not asked three times more. */
static void look_by_systemd(enum daemon_state ret[static DAEMON_COUNT]) {
    int r = 0;
    for (int i = 0; i < DAEMON_COUNT && r != -ETIMEDOUT; i++)
        r = look_at_unit(daemon_names[i], &ret[i]);
}

static void look_by_service(enum daemon_state ret[static DAEMON_COUNT]) {
    for (int i = 0; i < DAEMON_COUNT; i++) {
        char script[64], output[OUTPUT_SIZE];
        snprintf(script, sizeof script, "/etc/init.d/%s", daemon_names[i]);
        const char *const arguments[] = {"service", daemon_names[i], "status", NULL};
        if (access(script, X_OK) < 0) {
            ret[i] = DAEMON_ABSENT;
            continue;
        }
        /* LSB: 1 to 3, it does not run; 4 and above, it is not known. */
        int status = call(arguments, LOOK_MS, false, output);
        ret[i] = status == 0 ? DAEMON_RUNNING : status > 0 && status <= 3 ? DAEMON_STOPPED : DAEMON_UNKNOWN;
    }
}

void daemons_look(const struct machine *machine, enum daemon_state ret[static DAEMON_COUNT]) {
    enum manager manager = machine->captured ? MANAGER_NONE : find_manager();
    for (int i = 0; i < DAEMON_COUNT; i++)
        ret[i] = manager == MANAGER_NONE ? DAEMON_ABSENT : DAEMON_UNKNOWN;
    if (manager == MANAGER_SYSTEMD)
        look_by_systemd(ret);
    else if (manager == MANAGER_SERVICE)
        look_by_service(ret);
}

/* ---- setting them */

int daemons_set(struct hand *hand, int index, enum daemon_state wanted,
                enum daemon_state states[static DAEMON_COUNT], struct failure *failure) {
    const char *name = daemon_names[index], *verb = wanted == DAEMON_RUNNING ? "start" : "stop";
    const char *by_systemd[] = {"systemctl", "--no-ask-password", verb, name, NULL},
               *by_service[] = {"service", name, verb, NULL};
    char output[OUTPUT_SIZE], number[16];
    enum daemon_state before = states[index];
    int status = call(find_manager() == MANAGER_SYSTEMD ? by_systemd : by_service, SET_MS, true, output);
    daemons_look(hand->machine, states);
    int r = status < 0 ? status : states[index] == wanted ? 0 : geteuid() != 0 ? -EACCES : -EIO;
    hand->changed += states[index] != before;
    lines_put(hand->lines, "write", hand->control, name, daemon_state_names[before],
              daemon_state_names[wanted], daemon_state_names[states[index]], lines_errno(r, number), NULL);
    if (r == 0)
        return 0;
    char *end = strchr(output, '\n');
    if (end)
        *end = '\0';
    if (status == 0 && states[index] == DAEMON_UNKNOWN)
        return failure_set(failure, r, "whether %s does %s could not be asked", name, verb);
    return failure_set(failure, r, "cannot %s %s: %s", verb, name,
                       status > 0 && output[0] ? output : strerror(-r));
}

/* ---- as a control */

static int look(const struct layout *layout, struct control_look *ret) {
    enum daemon_state states[DAEMON_COUNT];
    if (layout->machine->captured)
        return control_absent(ret, "nothing runs on a captured machine");
    daemons_look(layout->machine, states);
    cleanup(values_clear) struct values values = {0};
    int r = 0;
    for (int i = 0; i < DAEMON_COUNT && r == 0; i++)
        if (states[i] != DAEMON_ABSENT)
            r = values_add_named(&values, daemon_state_names[states[i]], daemon_names[i]);
    if (r < 0)
        return r;
    if (values.count == 0)
        return control_absent(ret,
                              "none of tuned, thermald, power-profiles-daemon and irqbalance is installed");
    snprintf(ret->driver, sizeof ret->driver, find_manager() == MANAGER_SYSTEMD ? "systemd" : "service");
    if (geteuid() != 0) {
        ret->access = CONTROL_DENIED;
        snprintf(ret->why, sizeof ret->why, "only root may stop and start daemons");
    }
    r = text_append_string(&ret->possible, "running stopped");
    return r == 0 ? values_put(&values, &ret->value) : r;
}

static int files(const struct layout *layout, struct control_files *ret) {
    (void)layout;
    (void)ret;
    return 0;
}

const struct control control_daemons = {.name = "daemons", .look = look, .files = files};
