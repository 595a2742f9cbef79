
#include "engine/foundation/cleanup.h"
#include "tests/test-bed/kernel-files.h"
#include "tests/test-bed/mounts.h"
#include "tests/test-bed/network.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/sched.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/inotify.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#ifndef CLONE_NEWTIME
#define CLONE_NEWTIME 0x80
#endif

enum { SSHD_WAIT_MS = 20000 };

void bed_path(const struct bed *bed, char path[BED_PATH_SIZE], const char *format, ...) {
    int length = snprintf(path, BED_PATH_SIZE, "%s/", bed->folder);
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(path + length, (size_t)(BED_PATH_SIZE - length), format, arguments);
    va_end(arguments);
}

static int milliseconds_until(const struct timespec *end) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    long left = (end->tv_sec - now.tv_sec) * 1000 + (end->tv_nsec - now.tv_nsec) / 1000000;
    return left < 0 ? 0 : (int)left;
}

static struct timespec after_milliseconds(int milliseconds) {
    struct timespec end;
    clock_gettime(CLOCK_MONOTONIC, &end);
    end.tv_sec += milliseconds / 1000;
    end.tv_nsec += milliseconds % 1000 * 1000000L;
    return end;
}

/* ---- sshd ---------------------------------------------------------------------------------------------- */

static void exec_sshd(void) {
    /* A service has nothing of the shell that someone started the bed from. */
    static const char *const environment[] = {
        "PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin", "LANG=C.UTF-8", NULL};
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    execle("/usr/sbin/sshd", "/usr/sbin/sshd", "-D", "-e", (char *)NULL, environment);
    dprintf(STDERR_FILENO, "cannot run /usr/sbin/sshd: %s\n", strerror(errno));
    _exit(127);
}

/* sshd writes this file when it listens. */
static bool sshd_listens(void) {
    cleanup_close int file = open("/run/sshd.pid", O_RDONLY | O_CLOEXEC);
    char digit;
    return file >= 0 && read(file, &digit, 1) == 1;
}

/* With the last line of its log, which is descriptor 2. */
static int ended_at_once(int wait_status, struct failure *failure) {
    char text[512] = "";
    off_t end = lseek(STDERR_FILENO, 0, SEEK_END), start = end > 500 ? end - 500 : 0;
    ssize_t length = pread(STDERR_FILENO, text, sizeof text - 1, start);
    while (length > 0 && (text[length - 1] == '\n' || text[length - 1] == '\r'))
        text[--length] = '\0';
    const char *last = strrchr(text, '\n');
    return failure_set(failure, -EIO, "sshd ended at once (wait status %d): %s", wait_status,
                       last ? last + 1 : text);
}

int node_start_sshd(struct failure *failure) {
    unlink("/run/sshd.pid");
    cleanup_close int watch = inotify_init1(IN_CLOEXEC | IN_NONBLOCK);
    if (watch < 0 || inotify_add_watch(watch, "/run", IN_CLOSE_WRITE) < 0)
        return failure_set(failure, -errno, "cannot watch /run: %s", strerror(errno));
    pid_t child = fork();
    if (child < 0)
        return failure_set(failure, -errno, "cannot fork: %s", strerror(errno));
    if (child == 0)
        exec_sshd();
    struct timespec end = after_milliseconds(SSHD_WAIT_MS);
    for (;;) {
        int status;
        if (waitpid(child, &status, WNOHANG) == child)
            return ended_at_once(status, failure);
        if (sshd_listens())
            return 0;
        int left = milliseconds_until(&end);
        if (left == 0)
            return failure_set(failure, -ETIMEDOUT, "sshd does not listen after %d s", SSHD_WAIT_MS / 1000);
        struct pollfd wait = {.fd = watch, .events = POLLIN};
        if (poll(&wait, 1, left < 100 ? left : 100) > 0) { /* now and then the child is looked at */
            char events[1024];
            if (read(watch, events, sizeof events) < 0 && errno != EAGAIN)
                return failure_set(failure, -errno, "cannot watch /run: %s", strerror(errno));
        }
    }
}

/* ---- The first process of a node ----------------------------------------------------------------------- */

/* One wire: LINK on the bridge with index BRIDGE of the front end, INNER in the calling process's new
 * namespace. */
static int plug_wire(const struct bed *bed, const char *link, int bridge, const char *inner, uint32_t address,
                     bool cut, struct failure *failure) {
    cleanup_close int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    cleanup_close int socket = network_open(failure);
    if (own < 0 || socket < 0)
        return failure_set(failure, -errno, "cannot open the network namespace: %s", strerror(errno));
    /* The inner end is up before the outer one, so that the bridge has a port that works from the start. */
    int status = network_add_pair(bed->front_end, link, inner, own, address, failure);
    if (status == 0)
        status = network_set_up(socket, inner, true, failure);
    if (status == 0)
        status = network_add_address(socket, inner, address, BED_PREFIX, failure);
    if (status == 0)
        status = network_quick_acknowledge(socket, inner, address, BED_PREFIX, failure);
    if (status == 0)
        status = network_set_bridge(bed->front_end, link, bridge, failure);
    if (status == 0 && !cut)
        status = network_set_up(bed->front_end, link, true, failure);
    return status;
}

static int plug(const struct bed *bed, const struct node *node, struct failure *failure) {
    if (unshare(CLONE_NEWNET) < 0)
        return failure_set(failure, -errno, "cannot make a network namespace: %s", strerror(errno));
    network_without_ipv6();
    cleanup_close int socket = network_open(failure);
    int status = socket < 0 ? socket : network_set_up(socket, "lo", true, failure);
    if (status < 0)
        return status;
    if (!node->gateway)
        return plug_wire(bed, node->link, bed->bridge, "eth0", node->address, node->cut, failure);
    status = plug_wire(bed, node->link, bed->outer_bridge, "eth0", BED_OUTER_GATEWAY, node->cut, failure);
    return status == 0 ? plug_wire(bed, node->nodes_link, bed->bridge, "eth1", node->address, false, failure)
                       : status;
}

static int become_node(const struct bed *bed, struct node *node, struct failure *failure) {
    int status = plug(bed, node, failure);
    if (status == 0 && sethostname(node->name, strlen(node->name)) < 0)
        return failure_set(failure, -errno, "cannot set the host name: %s", strerror(errno));
    if (status == 0)
        status = mounts_make(bed, node, failure);
    if (status < 0)
        return status;
    if (dup2(node->log, 1) < 0 || dup2(node->log, 2) < 0) /* 0 is /dev/null already */
        return failure_set(failure, -errno, "cannot use the node's log: %s", strerror(errno));
    return node_start_sshd(failure);
}

/* Never returns. REPORT gets one zero byte when sshd listens, or a sentence. */
static void first_process(const struct bed *bed, struct node *node, int report) __attribute__((noreturn));
static void first_process(const struct bed *bed, struct node *node, int report) {
    prctl(PR_SET_PDEATHSIG, SIGKILL); /* from outside its pid namespace, this one counts */
    prctl(PR_SET_NAME, "bed-node");
    setsid();
    sigset_t none;
    sigemptyset(&none);
    sigprocmask(SIG_SETMASK, &none, NULL);
    umask(022);
    struct failure failure = {0};
    int status = become_node(bed, node, &failure);
    ssize_t written = status == 0 ? write(report, "", 1) : write(report, failure.text, strlen(failure.text));
    if (status < 0 || written < 0)
        _exit(1);
    /* Nothing of the keeper's is left open: its lock and its sockets end with it. */
    close_range(3, ~0U, 0);
    sigset_t child;
    sigemptyset(&child);
    sigaddset(&child, SIGCHLD);
    sigprocmask(SIG_BLOCK, &child, NULL);
    for (;;) {
        while (waitpid(-1, NULL, WNOHANG) > 0)
            ;
        sigwaitinfo(&child, NULL);
    }
}

/* A node's monotonic clock counts from its own boot, so that nobody compares those of two nodes. Affects the
 * children that the calling process makes from now on; without time namespaces nothing. */
static void set_boot_time(const struct node *node) {
    struct timespec now;
    clock_gettime(CLOCK_BOOTTIME, &now);
    /* On the first boot node N has been up for N times 1000 s; on the others it has just started. */
    long offset = (node->boots == 0 ? node->number * 1000L : 5L) - now.tv_sec;
    if (unshare(CLONE_NEWTIME) < 0)
        return;
    cleanup_close int file = open("/proc/self/timens_offsets", O_WRONLY | O_CLOEXEC);
    if (file >= 0)
        dprintf(file, "monotonic %ld 0\nboottime %ld 0\n", offset, offset);
}

static void reset_boot_time(void) {
    cleanup_close int own = open("/proc/self/ns/time", O_RDONLY | O_CLOEXEC);
    if (own >= 0)
        setns(own, CLONE_NEWTIME);
}

int node_start(struct bed *bed, struct node *node, struct failure *failure) {
    char path[BED_PATH_SIZE];
    bed_path(bed, path, "log/%s", node->name);
    if (node->log < 0)
        node->log = open(path, O_RDWR | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
    if (node->log < 0)
        return failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
    int status = node->boots == 0 ? mounts_make_disk(bed, node, failure) : 0;
    if (status < 0)
        return status;
    int report[2];
    if (pipe2(report, O_CLOEXEC) < 0)
        return failure_set(failure, -errno, "cannot make a pipe: %s", strerror(errno));
    node->files_mount = bed->kernel != NULL ? kernel_files_open(failure) : -1;
    set_boot_time(node);
    /* The child goes on in a copy of this program: its 128 nodes share nearly all of its memory. */
    int handle = -1;
    struct clone_args arguments = {.flags =
                                       CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_PIDFD,
                                   .pidfd = (uint64_t)(uintptr_t)&handle,
                                   .exit_signal = SIGCHLD};
    long child = syscall(SYS_clone3, &arguments, sizeof arguments);
    int error = errno;
    if (child == 0)
        first_process(bed, node, report[1]);
    reset_boot_time();
    close(report[1]);
    if (child < 0) {
        close(report[0]);
        return failure_set(failure, -error, "cannot make namespaces: %s", strerror(error));
    }
    node->init = (pid_t)child;
    node->init_handle = handle;
    node->report = report[0];
    node->boots++;
    if (bed->kernel == NULL)
        return 0;
    /* Without the process the mount fails, and the node says why it does not start. */
    status = node->files_mount < 0 ? -EIO
                                   : kernel_files_start(bed->kernel, node->files_mount, node->init,
                                                        &node->files, &node->files_control, failure);
    if (node->files_mount >= 0)
        close(take_descriptor(node->files_mount));
    return status;
}

/* Whether NODE is up, from what it has reported. */
static int hear(struct bed *bed, struct node *node, struct failure *failure) {
    char text[FAILURE_TEXT_SIZE] = "";
    ssize_t length = read(node->report, text, sizeof text - 1);
    close(take_descriptor(node->report));
    if (length != 1 || text[0] != '\0') {
        text[length < 0 ? 0 : length] = '\0';
        return failure_set(failure, -EIO, "node '%s' did not start: %s", node->name,
                           length > 0 ? text : "it ended without a word");
    }
    char path[64];
    snprintf(path, sizeof path, "/proc/%d/ns/net", (int)node->init);
    node->network = open(path, O_RDONLY | O_CLOEXEC);
    if (node->network < 0)
        return failure_set(failure, -errno, "node '%s': cannot open '%s': %s", node->name, path,
                           strerror(errno));
    node->state = NODE_UP;
    int index;
    int status = network_index(bed->front_end, node->link, &index, failure);
    return status == 0 && node->gateway ? network_index(bed->front_end, node->nodes_link, &index, failure)
                                        : status;
}

int node_wait(struct bed *bed, struct node *nodes, int count, struct failure *failure) {
    struct timespec end = after_milliseconds(BED_NODE_WAIT_MS);
    for (;;) {
        struct pollfd waits[SETTINGS_NODES_MAX + 1];
        int open = 0;
        for (int i = 0; i < count; i++) {
            waits[i] = (struct pollfd){.fd = nodes[i].report, .events = POLLIN};
            open += nodes[i].report >= 0;
        }
        if (open == 0)
            return 0;
        int ready = poll(waits, (nfds_t)count, milliseconds_until(&end));
        if (ready < 0 && errno != EINTR)
            return failure_set(failure, -errno, "cannot wait for nodes: %s", strerror(errno));
        if (ready == 0)
            return failure_set(failure, -ETIMEDOUT, "%d nodes did not start within %d s", open,
                               BED_NODE_WAIT_MS / 1000);
        for (int i = 0; ready > 0 && i < count; i++)
            if (waits[i].fd >= 0 && waits[i].revents != 0) {
                int status = hear(bed, &nodes[i], failure);
                if (status < 0)
                    return status;
            }
    }
}

void node_end_files(struct node *node) {
    if (node->files == 0)
        return;
    kill(node->files, SIGKILL);
    while (waitpid(node->files, NULL, 0) < 0 && errno == EINTR)
        ;
    node->files = 0;
    close(take_descriptor(node->files_control));
}

void node_kill(struct node *node) {
    if (node->init == 0)
        return;
    kill(node->init, SIGKILL);
    while (waitpid(node->init, NULL, 0) < 0 && errno == EINTR)
        ;
    node->init = 0;
    close(take_descriptor(node->init_handle));
    node_end_files(node);
    if (node->report >= 0)
        close(take_descriptor(node->report));
}

void node_unplug(struct bed *bed, struct node *node) {
    network_remove(bed->front_end, node->link, NULL);
    if (node->gateway)
        network_remove(bed->front_end, node->nodes_link, NULL);
    if (node->network >= 0)
        close(take_descriptor(node->network));
}

int node_join(int handle, struct failure *failure) {
    int all = CLONE_NEWNS | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWPID | CLONE_NEWNET;
    if (setns(handle, all | CLONE_NEWTIME) < 0 && setns(handle, all) < 0)
        return failure_set(failure, -errno, "cannot enter the node: %s", strerror(errno));
    return 0;
}

/* In a child of the keeper: joins, and lets a child of its own, which is then inside, do the work. */
static void work_inside(const struct node *node, int (*function)(void *argument), void *argument, int words)
    __attribute__((noreturn));
static void work_inside(const struct node *node, int (*function)(void *argument), void *argument, int words) {
    struct failure failure = {0};
    if (node_join(node->init_handle, &failure) < 0) {
        dprintf(words, "%s", failure.text);
        _exit(1);
    }
    pid_t child = fork();
    if (child == 0) {
        if (words != 3)
            dup2(words, 3);
        dup2(node->log, 1);
        dup2(node->log, 2);
        fcntl(3, F_SETFD, FD_CLOEXEC);
        close_range(4, ~0U, 0);
        _exit(function(argument) == 0 ? 0 : 1);
    }
    int status = 1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    _exit(child > 0 && status == 0 ? 0 : 1);
}

int node_inside(const struct node *node, int (*function)(void *argument), void *argument,
                struct failure *failure) {
    int words[2];
    if (pipe2(words, O_CLOEXEC) < 0)
        return failure_set(failure, -errno, "cannot make a pipe: %s", strerror(errno));
    pid_t child = fork();
    if (child == 0)
        work_inside(node, function, argument, words[1]);
    close(words[1]);
    char text[FAILURE_TEXT_SIZE] = "";
    size_t length = 0;
    for (ssize_t got;
         length < sizeof text - 1 && (got = read(words[0], text + length, sizeof text - 1 - length)) > 0;)
        length += (size_t)got;
    close(words[0]);
    int status = 1;
    while (child > 0 && waitpid(child, &status, 0) < 0 && errno == EINTR)
        ;
    if (status != 0)
        return failure_set(failure, -EIO, "node '%s': %s", node->name,
                           length > 0 ? text : "the work inside it failed without a word");
    return 0;
}
