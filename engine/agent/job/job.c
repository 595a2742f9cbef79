/*
 * --job: the tool that a node runs for programs on several nodes. It gives the working folder the same path
 * on all nodes, passes mpirun's requests to start daemons on other nodes to the engine (launch.c), measures
 * how busy the job is, and ends processes that are left of it. It runs as long as the engine has units;
 * ../TOOLS.md has the lines of its input and output.
 *
 * The processes of a job are those that have the job's mark in their environment. mpirun, its daemons and the
 * ranks make sessions and groups of their own, and daemons leave their parents, but all pass on their
 * environment.
 */
#include "engine/agent/job/launch.h"
#include "engine/agent/machine/process.h"
#include "engine/agent/machine/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"
#include "engine/foundation/number.h"
#include "engine/foundation/path.h"
#include "engine/foundation/text.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

enum { LAUNCHES_MAX = 1024, LINE_MAX_BYTES = 256, INPUT_MAX = 1 << 20, ENVIRONMENT_MAX = 1 << 20 };
static const int64_t grace_ns = INT64_C(2000000000), sweep_ns = INT64_C(8000000000),
                     sweep_round_ns = INT64_C(10000000);

/* A launch: a connection from `--launch`. */
struct launch {
    int socket;      /* -1: free */
    unsigned number; /* the engine's number for it, unique */
    bool announced;  /* the request was sent to the engine */
    struct text request;
};

struct job {
    const char *link, *mark; /* "ASSAY_JOB=..." */
    char folder[PATH_MAX];   /* the working folder, which the link leads to */
    bool made_link;          /* this process made the link, and removes it */
    int listener;            /* socket for `--launch` */
    struct launch launches[LAUNCHES_MAX];
    unsigned launched; /* launches so far, the next one's number */
    struct text input;
};

static void print(const char *format, ...) __attribute__((format(printf, 1, 2)));
static void print(const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    fflush(stdout);
}

static int complain(const char *what, const char *path) {
    return tool_complain(1, "%s '%s': %s", what, path, strerror(errno));
}

/* ---- The processes of the job */

/* Finds the job's processes and returns their number. Sends each SIGNAL (0: none), and adds the clock ticks
 * that they were busy to *RET_TICKS, which may be NULL. */
static size_t find_processes(const struct job *job, int signal, uint64_t *ret_ticks) {
    static char environment[ENVIRONMENT_MAX];
    DIR *processes = opendir("/proc");
    struct dirent *entry;
    size_t count = 0, length = strlen(job->mark);
    while (processes && (entry = readdir(processes))) {
        uint64_t pid;
        struct process process;
        char path[64];
        if (!number_parse_uint64(entry->d_name, strlen(entry->d_name), &pid))
            continue;
        snprintf(path, sizeof path, "/proc/%" PRIu64 "/environ", pid);
        cleanup_close int file = open(path, O_RDONLY | O_CLOEXEC);
        ssize_t got = file < 0 ? -1 : path_read_up_to(file, environment, sizeof environment - 1);
        size_t used = got < 0 ? 0 : (size_t)got;
        environment[used] = '\0';
        const char *at = environment;
        while (at < environment + used && strcmp(at, job->mark) != 0)
            at += strlen(at) + 1;
        if (used < length || at >= environment + used || process_read((pid_t)pid, &process) < 0)
            continue;
        count++;
        if (signal)
            kill((pid_t)pid, signal);
        if (ret_ticks)
            *ret_ticks += process.own_ticks;
    }
    if (processes)
        closedir(processes);
    return count;
}

/* Prints "busy MICROSECONDS PROCESSES". */
static void print_busy_time(const struct job *job) {
    uint64_t ticks = 0;
    size_t count = find_processes(job, 0, &ticks);
    print("busy %" PRIu64 " %zu\n", ticks * 1000000 / (uint64_t)sysconf(_SC_CLK_TCK), count);
}

/* Ends the job's processes: SIGTERM, so that daemons of MPI remove the shared memory of their ranks, and
 * after a grace SIGKILL. Repeats until none is left, for processes that were being started, but not longer
 * than sweep_ns. Returns the number of processes left. */
static size_t end_processes(const struct job *job) {
    int64_t start = clock_monotonic_ns(), passed;
    size_t left = find_processes(job, SIGTERM, NULL);
    while (left > 0 && (passed = clock_monotonic_ns() - start) < sweep_ns) {
        clock_sleep_ns(sweep_round_ns);
        left = find_processes(job, passed < grace_ns ? 0 : SIGKILL, NULL);
    }
    return left;
}

/* ---- Launches */

static void end_launch(struct launch *launch) {
    cleanup_close_descriptor(&launch->socket);
    launch->announced = false;
    text_clear(&launch->request);
}

/* Accepts a connection of `--launch`; closes it where LAUNCHES_MAX are open. */
static void accept_launch(struct job *job) {
    int socket = accept4(job->listener, NULL, NULL, SOCK_CLOEXEC);
    size_t i = 0;
    while (i < LAUNCHES_MAX && job->launches[i].socket >= 0)
        i++;
    if (socket < 0 || i == LAUNCHES_MAX) {
        cleanup_close_descriptor(&socket);
        return;
    }
    job->launches[i].socket = socket;
    job->launches[i].number = job->launched++;
    text_init(&job->launches[i].request, LAUNCH_REQUEST_MAX);
}

/* Reads a launch's socket. At the first end of file the request is complete and is printed for the engine.
 * After that an end means that its sender has ended, which is printed as "gone". */
static void read_launch(struct launch *launch) {
    char bytes[4096];
    ssize_t got = read(launch->socket, bytes, sizeof bytes);
    if (got > 0 && text_append(&launch->request, bytes, (size_t)got) == 0)
        return;
    if (got == 0 && launch->request.length > 0 && !launch->announced) {
        launch->announced = true;
        print("launch %u %zu\n", launch->number, launch->request.length);
        fwrite(launch->request.bytes, 1, launch->request.length, stdout);
        fflush(stdout);
        return;
    }
    if (launch->announced)
        print("gone %u\n", launch->number);
    end_launch(launch);
}

/* ---- Input from the engine */

static struct launch *find_launch(struct job *job, const char *digits) {
    unsigned long number = strtoul(digits, NULL, 10);
    for (size_t i = 0; i < LAUNCHES_MAX; i++)
        if (job->launches[i].socket >= 0 && job->launches[i].number == number)
            return &job->launches[i];
    return NULL;
}

/* Handles the complete lines of the input, with the bytes that follow some of them. False: a line is not
 * valid, or too long. */
static bool handle_input(struct job *job) {
    for (;;) {
        char line[LINE_MAX_BYTES];
        const char *end = memchr(job->input.bytes, '\n', job->input.length);
        size_t length = end ? (size_t)(end - job->input.bytes) : 0, stream, bytes, whole = length + 1;
        if (!end)
            return job->input.length < LINE_MAX_BYTES;
        if (length >= sizeof line)
            return false;
        memcpy(line, job->input.bytes, length);
        line[length] = '\0';
        int code;
        struct launch *launch = NULL;
        if (strcmp(line, "look") == 0) {
            print_busy_time(job);
        } else if (strcmp(line, "sweep") == 0) {
            print("swept %zu\n", end_processes(job));
        } else if (sscanf(line, "output %*u %zu %zu", &stream, &bytes) == 2) {
            if (job->input.length < whole + bytes)
                return bytes < INPUT_MAX / 2;
            if ((launch = find_launch(job, line + strlen("output "))))
                launch_send(launch->socket, (char)('0' + stream), end + 1, bytes);
            whole += bytes;
        } else if (sscanf(line, "exit %*u %d", &code) == 1) {
            if ((launch = find_launch(job, line + strlen("exit ")))) {
                char status = (char)code;
                launch_send(launch->socket, LAUNCH_EXIT, &status, 1);
                end_launch(launch);
            }
        } else {
            return false;
        }
        text_consume(&job->input, whole);
    }
}

/* ---- Start and end */

/* Makes the script "LINK/../launch", which MPI calls instead of ssh, and the socket by which the script
 * reaches this process. Returns 0, or an exit status after a message. */
static int make_launcher(struct job *job) {
    char program[PATH_MAX];
    ssize_t length = readlink("/proc/self/exe", program, sizeof program - 1);
    if (length < 0)
        return complain("cannot read link", "/proc/self/exe");
    program[length] = '\0';
    struct sockaddr_un address = {.sun_family = AF_UNIX, .sun_path = LAUNCH_SOCKET};
    unlink(LAUNCH_SOCKET);
    job->listener = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (job->listener < 0 || bind(job->listener, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(job->listener, SOMAXCONN) < 0)
        return complain("cannot listen at", LAUNCH_SOCKET);
    int file = open(LAUNCH_SCRIPT, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0700);
    FILE *script = file < 0 ? NULL : fdopen(file, "w");
    if (!script || strchr(program, '\'') || strchr(job->link, '\''))
        return complain("cannot write", LAUNCH_SCRIPT);
    fprintf(script, "#!/bin/sh\nexec '%s' --launch '%s/../%s' \"$@\"\n", program, job->link, LAUNCH_SOCKET);
    return fclose(script) == 0 ? 0 : complain("cannot write", LAUNCH_SCRIPT);
}

/* Makes the symbolic link to the working FOLDER. A link of our user that is there already is used: nodes that
 * share a /tmp share the folder of the first node. */
static int make_link(struct job *job, const char *folder) {
    struct stat status;
    char current_folder[PATH_MAX / 2];
    if (!getcwd(current_folder, sizeof current_folder))
        return complain("cannot find", "the working folder");
    snprintf(job->folder, sizeof job->folder, "%s/%s", current_folder, folder);
    job->made_link = symlink(job->folder, job->link) == 0;
    if (job->made_link)
        return 0;
    if (errno == EEXIST && lstat(job->link, &status) == 0 && S_ISLNK(status.st_mode) &&
        status.st_uid == geteuid() && stat(job->link, &status) == 0)
        return 0;
    return complain("cannot make the link", job->link);
}

static volatile sig_atomic_t ended;
static void on_signal(int number) {
    (void)number;
    ended = 1;
}

/* Serves the engine and launches until the input ends, is invalid, or a signal comes. */
static void serve(struct job *job) {
    while (!ended) {
        struct pollfd ready[LAUNCHES_MAX + 2] = {{.fd = 0, .events = POLLIN},
                                                 {.fd = job->listener, .events = POLLIN}};
        size_t numbers[LAUNCHES_MAX], count = 0;
        for (size_t i = 0; i < LAUNCHES_MAX; i++)
            if (job->launches[i].socket >= 0) {
                /* After its request a launch is only watched for its end. */
                ready[2 + count] = (struct pollfd){.fd = job->launches[i].socket,
                                                   .events = job->launches[i].announced ? 0 : POLLIN};
                numbers[count++] = i;
            }
        if (poll(ready, 2 + count, -1) < 0)
            continue;
        for (size_t i = 0; i < count; i++)
            if (ready[2 + i].revents)
                read_launch(&job->launches[numbers[i]]);
        if (ready[1].revents)
            accept_launch(job);
        if (!ready[0].revents)
            continue;
        char bytes[16384];
        ssize_t got = read(0, bytes, sizeof bytes);
        if (got <= 0 || text_append(&job->input, bytes, (size_t)got) < 0 || !handle_input(job))
            return;
    }
}

/* --job: serves launches of processes on other nodes until its input ends, then ends the processes. 1: some
 * are left. */
int tool_job(int count, char **arguments) {
    static struct job job;
    if (count != 3)
        return tool_complain(2, "--job takes a link, the folder that it leads to, and a mark");
    cleanup_free char *mark = text_format(LAUNCH_MARK "=%s", arguments[2]);
    job.link = arguments[0];
    job.mark = mark;
    job.listener = -1;
    text_init(&job.input, INPUT_MAX);
    for (size_t i = 0; i < LAUNCHES_MAX; i++)
        job.launches[i].socket = -1;
    struct sigaction action = {.sa_handler = on_signal};
    sigaction(SIGTERM, &action, NULL);
    sigaction(SIGINT, &action, NULL);
    int r = mark ? make_link(&job, arguments[1]) : complain("cannot serve", job.link);
    if (r == 0)
        r = make_launcher(&job);
    if (r == 0) {
        print("ready\n");
        serve(&job);
        r = end_processes(&job) > 0;
    }
    if (job.made_link)
        unlink(job.link);
    unlink(LAUNCH_SOCKET);
    unlink(LAUNCH_SCRIPT);
    return r;
}
