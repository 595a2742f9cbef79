/* Daemons are queried, stopped and started by systemctl: fixed words, never a shell, and with a time limit.
 */
#include "engine/agent/controls/daemons.h"

#include "engine/agent/controls/control.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

enum { QUERY_MS = 10000, SET_MS = 60000, OUTPUT_SIZE = 4096 };

const char *const daemon_names[DAEMON_COUNT] = {"tuned", "thermald", "power-profiles-daemon", "irqbalance"};
const char *const daemon_state_names[] = {[DAEMON_ABSENT] = "absent",
                                          [DAEMON_STOPPED] = "stopped",
                                          [DAEMON_RUNNING] = "running",
                                          [DAEMON_UNKNOWN] = "unknown"};

static bool has_systemd(const struct machine *machine) {
    return !machine->captured && access("/run/systemd/system", F_OK) == 0;
}

/* ---- running systemctl */

/* Runs in the child: executes systemctl with fixed variables and no blocked signals. The program stays in the
 * caller's process group, so that a signal to the group ends it, too, and no daemon is stopped after all was
 * restored. */
static _Noreturn void execute(char *const arguments[], int output, bool with_errors) {
    static char search[] = "PATH=/usr/sbin:/usr/bin:/sbin:/bin", language[] = "LC_ALL=C";
    static const char *const programs[] = {"/usr/sbin/systemctl", "/usr/bin/systemctl", "/sbin/systemctl",
                                           "/bin/systemctl"};
    char *const environment[] = {search, language, NULL};
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    signal(SIGPIPE, SIG_DFL);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    dup2(null, 0);
    dup2(output, 1);
    dup2(with_errors ? output : null, 2);
    for (size_t i = 0; i < sizeof programs / sizeof *programs; i++)
        execve(programs[i], arguments, environment);
    _exit(127);
}

/* Reads OUTPUT to its end; bytes that do not fit are dropped. False: the deadline came first. */
static bool collect(int from, int64_t until_ns, char output[static OUTPUT_SIZE]) {
    size_t length = 0;
    for (;;) {
        char beyond[256];
        size_t room = OUTPUT_SIZE - 1 - length;
        struct pollfd wait = {.fd = from, .events = POLLIN};
        int64_t left_ns = until_ns - clock_monotonic_ns();
        if (left_ns <= 0)
            return false;
        if (clock_poll(&wait, left_ns) <= 0)
            continue;
        ssize_t got = read(from, room ? output + length : beyond, room ? room : sizeof beyond);
        if (got <= 0)
            return true;
        length += room ? (size_t)got : 0;
        output[length] = '\0';
    }
}

static int64_t deadline_ns = INT64_MAX;

void daemons_limit(int64_t total_ns) {
    deadline_ns = clock_monotonic_ns() + total_ns;
}

/* Runs systemctl with ARGUMENTS. Returns its exit status, with its output in OUTPUT, or a negative errno;
 * -ETIMEDOUT: it was killed after LIMIT_MS, or at the deadline of daemons_limit(). */
static int run_systemctl(const char *const *arguments, int64_t limit_ms, bool with_errors,
                         char output[static OUTPUT_SIZE]) {
    int ends[2], status = 0;
    char *copy[8] = {0};
    for (size_t i = 0; arguments[i]; i++)
        copy[i] = (char *)(uintptr_t)arguments[i];
    output[0] = '\0';
    if (pipe2(ends, O_CLOEXEC) < 0)
        return -errno;
    cleanup_close int from = ends[0];
    pid_t child = fork();
    if (child == 0)
        execute(copy, ends[1], with_errors);
    int r = child < 0 ? -errno : 0;
    close(ends[1]);
    if (r < 0)
        return r;
    int64_t end_ns = clock_monotonic_ns() + limit_ms * 1000000;
    bool whole = collect(from, end_ns < deadline_ns ? end_ns : deadline_ns, output);
    if (!whole)
        kill(child, SIGKILL);
    while (waitpid(child, &status, 0) < 0)
        if (errno != EINTR)
            return -errno;
    return !whole ? -ETIMEDOUT : WIFEXITED(status) ? WEXITSTATUS(status) : -EINTR;
}

/* ---- states */

/* True where OUTPUT has a line "NAME=VALUE" whose value is one of WORDS, which are separated by blanks. */
static bool has_value(const char *output, const char *name, const char *words) {
    size_t length = strlen(name);
    for (const char *line = output; line; line = strchr(line, '\n')) {
        line += *line == '\n';
        if (strncmp(line, name, length) != 0 || line[length] != '=')
            continue;
        char value[64];
        snprintf(value, sizeof value, "%.*s", (int)strcspn(line + length + 1, "\n"), line + length + 1);
        return control_check_word(value, words, NULL) == 0;
    }
    return false;
}

/* Asks for the state of one unit. systemctl is called for each unit, because a unit may be printed by another
 * of its names. 0, or the failure of call(). */
static int read_unit_state(const char *name, enum daemon_state *ret) {
    char output[OUTPUT_SIZE];
    const char *const arguments[] = {"systemctl", "show", "--property=LoadState", "--property=ActiveState",
                                     name,        NULL};
    int status = run_systemctl(arguments, QUERY_MS, false, output);
    if (status != 0)
        return status;
    if (has_value(output, "LoadState", "not-found masked error bad-setting"))
        *ret = DAEMON_ABSENT;
    else if (!has_value(output, "LoadState", "loaded merged stub"))
        *ret = DAEMON_UNKNOWN;
    else if (has_value(output, "ActiveState", "active activating reloading refreshing"))
        *ret = DAEMON_RUNNING;
    else if (has_value(output, "ActiveState", "inactive deactivating failed maintenance"))
        *ret = DAEMON_STOPPED;
    return 0;
}

void daemons_read_states(const struct machine *machine, enum daemon_state ret[static DAEMON_COUNT]) {
    bool systemd = has_systemd(machine);
    int r = 0;
    for (int i = 0; i < DAEMON_COUNT; i++) {
        ret[i] = systemd ? DAEMON_UNKNOWN : DAEMON_ABSENT;
        /* A systemd that does not answer is not asked again for the other daemons. */
        if (systemd && r != -ETIMEDOUT)
            r = read_unit_state(daemon_names[i], &ret[i]);
    }
}

/* ---- setting them */

/* Starts or stops one daemon, reads the states of all again, and writes a line "write". Fails when the state
 * is not the one wanted. */
int daemons_set(struct write_context *context, int index, enum daemon_state wanted,
                enum daemon_state states[static DAEMON_COUNT], struct failure *failure) {
    const char *name = daemon_names[index], *verb = wanted == DAEMON_RUNNING ? "start" : "stop";
    const char *const arguments[] = {"systemctl", "--no-ask-password", verb, name, NULL};
    char output[OUTPUT_SIZE], number[16];
    enum daemon_state before = states[index];
    int status = run_systemctl(arguments, SET_MS, true, output);
    daemons_read_states(context->machine, states);
    int r = status < 0 ? status : states[index] == wanted ? 0 : geteuid() != 0 ? -EACCES : -EIO;
    context->changed += states[index] != before;
    lines_put(context->lines, "write", context->control, name, daemon_state_names[before],
              daemon_state_names[wanted], daemon_state_names[states[index]], lines_errno(r, number), NULL);
    if (r == 0)
        return 0;
    if (status == 0 && states[index] == DAEMON_UNKNOWN)
        return failure_set(failure, r, "systemd does not report the state of %s after '%s'", name, verb);
    return failure_set(failure, r, "cannot %s %s: %.*s", verb, name, (int)strcspn(output, "\n"),
                       status > 0 && output[0] ? output : strerror(-r));
}

/* ---- as a control */

/* The status of the control daemons: running or stopped, for each daemon that the machine has. */
static void read_status(const struct layout *layout, struct control_status *ret) {
    enum daemon_state states[DAEMON_COUNT];
    if (layout->machine->captured) {
        control_refuse(ret, CONTROL_ABSENT, "nothing runs on a captured machine");
        return;
    }
    daemons_read_states(layout->machine, states);
    for (int i = 0; i < DAEMON_COUNT; i++)
        if (states[i] != DAEMON_ABSENT)
            values_add_named(&ret->values, daemon_state_names[states[i]], daemon_names[i]);
    if (ret->values.count == 0)
        return;
    snprintf(ret->driver, sizeof ret->driver, "systemd");
    control_add_possible(ret, "running stopped");
    if (geteuid() != 0)
        control_refuse(ret, CONTROL_DENIED, "only root may stop and start daemons");
}

/* Checks the value only: daemons have no files, and set.c sets them by daemons_set(). */
static int plan(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure) {
    (void)layout;
    (void)ret;
    bool known = strcmp(asked, "running") == 0 || strcmp(asked, "stopped") == 0;
    return known
               ? 0
               : failure_set(failure, -EINVAL, "'%.64s' is not possible; expected running or stopped", asked);
}

const struct control control_daemons = {
    .name = "daemons",
    .absent = "there is no systemd, or it has none of tuned, thermald, power-profiles-daemon and irqbalance",
    .read_status = read_status,
    .plan = plan};
