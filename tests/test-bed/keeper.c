#include "tests/test-bed/keeper.h"

#include "engine/foundation/cleanup.h"
#include "tests/test-bed/faults.h"
#include "tests/test-bed/folder.h"
#include "tests/test-bed/kernel-files.h"
#include "tests/test-bed/layer.h"
#include "tests/test-bed/mounts.h"
#include "tests/test-bed/network.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

enum {
    REQUEST_MAX = 65536,
    ANSWER_MAX = 1 << 20,
    WORDS_MAX = 64,
    CLIENT_WAIT_S = 5, /* for a client that has connected and does not ask */
    DOWN_TURNS = 2000, /* of 1 ms, for processes that have been killed to be gone */
};

/* ---- Coming up ------------------------------------------------------------------------------------------
 */

static int make_nodes(struct bed *bed, struct failure *failure) {
    const struct settings *settings = &bed->settings;
    bool gateway = settings->gateway[0] != '\0';
    bed->node_count = settings->nodes + gateway;
    bed->nodes = calloc((size_t)bed->node_count, sizeof *bed->nodes);
    if (bed->nodes == NULL)
        return failure_memory(failure);
    for (int i = 0; i < bed->node_count; i++) {
        struct node *node = &bed->nodes[i];
        *node = (struct node){.number = i + 1,
                              .init_handle = -1,
                              .network = -1,
                              .log = -1,
                              .report = -1,
                              .files_control = -1,
                              .files_mount = -1};
        settings_name(settings, i + 1, node->name);
        node->address = BED_NETWORK | (uint32_t)((i + 1) / 250 << 8 | ((i + 1) % 250 + 1));
        snprintf(node->link, sizeof node->link, "node%d", i + 1);
        if (gateway && i == settings->nodes) {
            node->gateway = true;
            node->address = BED_GATEWAY;
            snprintf(node->nodes_link, sizeof node->nodes_link, "gateway");
            snprintf(node->name, sizeof node->name, "%s", settings->gateway);
        }
    }
    return 0;
}

/* A bridge of the front end, which has ADDRESS on it unless it is 0. */
static int make_bridge(const struct bed *bed, const char *name, uint32_t address, int *ret_index,
                       struct failure *failure) {
    int status = network_add_bridge(bed->front_end, name, failure);
    if (status == 0)
        status = network_set_up(bed->front_end, name, true, failure);
    if (status == 0 && address != 0)
        status = network_add_address(bed->front_end, name, address, BED_PREFIX, failure);
    if (status == 0 && address != 0)
        status = network_quick_acknowledge(bed->front_end, name, address, BED_PREFIX, failure);
    return status == 0 ? network_index(bed->front_end, name, ret_index, failure) : status;
}

/* The calling process becomes the front end: the namespaces that `bed run` enters. */
static int make_front_end(struct bed *bed, struct failure *failure) {
    if (unshare(CLONE_NEWNS | CLONE_NEWNET) < 0)
        return failure_set(failure, -errno, "cannot make namespaces: %s", strerror(errno));
    network_without_ipv6();
    bed->front_end = network_open(failure);
    int status = bed->front_end < 0 ? bed->front_end : network_set_up(bed->front_end, "lo", true, failure);
    bool gateway = bed->settings.gateway[0] != '\0';
    if (status == 0)
        status = make_bridge(bed, BED_BRIDGE, gateway ? 0 : BED_FRONT_END, &bed->bridge, failure);
    if (status == 0 && gateway)
        status = make_bridge(bed, BED_OUTER_BRIDGE, BED_OUTER_FRONT_END, &bed->outer_bridge, failure);
    return status == 0 ? mounts_make_bed(bed, failure) : status;
}

/* The machine that all nodes are to be; without FUSE they have plain files. */
static int take_machine(struct bed *bed, struct failure *failure) {
    char folder[BED_PATH_SIZE];
    struct failure why = {0};
    bed_path(bed, folder, "inside/root");
    if (bed->settings.machine == NULL || kernel_files_try(folder, &why) < 0)
        return 0; /* `can kernel-files` says so */
    return kernel_new(bed->settings.machine, &bed->kernel, failure);
}

static int come_up(struct bed *bed, struct failure *failure) {
    int status = make_nodes(bed, failure);
    if (status == 0)
        status = make_front_end(bed, failure);
    if (status == 0)
        status = take_machine(bed, failure);
    for (int i = 0; status == 0 && i < bed->node_count; i++)
        status = node_start(bed, &bed->nodes[i], failure);
    if (status == 0)
        status = node_wait(bed, bed->nodes, bed->node_count, failure);
    return status == 0 ? folder_write_client_files(bed, failure) : status;
}

/* ---- Going down -----------------------------------------------------------------------------------------
 */

/* Ends all children, and those that become children when their parents end. */
static void end_children(void) {
    char path[64];
    snprintf(path, sizeof path, "/proc/self/task/%d/children", (int)getpid());
    for (int i = 0; i < DOWN_TURNS; i++) {
        cleanup_fclose FILE *stream = fopen(path, "re");
        int child;
        while (stream != NULL && fscanf(stream, "%d", &child) == 1)
            kill(child, SIGKILL);
        pid_t got;
        do
            got = waitpid(-1, NULL, WNOHANG);
        while (got > 0);
        if (got < 0)
            return;
        usleep(1000);
    }
}

static void go_down(struct bed *bed, pid_t client) {
    if (bed->bridge > 0) /* the network is the bed's own */
        folder_end_network(client);
    for (int i = 0; i < bed->node_count; i++) {
        if (bed->nodes[i].init > 0)
            kill(bed->nodes[i].init, SIGKILL); /* all of them at once; reaped below */
        if (bed->nodes[i].files > 0)
            kill(bed->nodes[i].files, SIGKILL);
    }
    end_children();
    char inside[BED_PATH_SIZE];
    bed_path(bed, inside, "inside");
    umount2(inside, MNT_DETACH);
    folder_remove(bed->folder);
}

/* ---- Listening ------------------------------------------------------------------------------------------
 */

static int open_control(const struct bed *bed, struct failure *failure) {
    int control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/control", bed->folder);
    if (control < 0 || bind(control, (struct sockaddr *)&address, sizeof address) < 0 ||
        listen(control, 64) < 0)
        return failure_set(failure, -errno, "cannot listen on '%s': %s", address.sun_path, strerror(errno));
    return control;
}

/* Reads words, each with its NUL, up to the end. Returns how many, or -1. */
static int read_words(int client, char bytes[REQUEST_MAX], const char *words[WORDS_MAX]) {
    size_t length = 0;
    for (;;) {
        ssize_t got = read(client, bytes + length, REQUEST_MAX - length);
        if (got < 0)
            return -1;
        if (got == 0)
            break;
        length += (size_t)got;
        if (length == REQUEST_MAX)
            return -1;
    }
    int count = 0;
    for (size_t at = 0; at < length && count < WORDS_MAX; at += strlen(bytes + at) + 1)
        words[count++] = bytes + at;
    return length > 0 && bytes[length - 1] == '\0' ? count : -1;
}

/* Serves one client. Whether the bed is to go down; CLIENT stays open then, and its end says that the bed is
 * gone. */
static bool serve(struct bed *bed, int client, pid_t *ret_asker) {
    static char bytes[REQUEST_MAX];
    const char *words[WORDS_MAX];
    struct timeval wait = {.tv_sec = CLIENT_WAIT_S};
    setsockopt(client, SOL_SOCKET, SO_RCVTIMEO, &wait, sizeof wait);
    setsockopt(client, SOL_SOCKET, SO_SNDTIMEO, &wait, sizeof wait);
    struct ucred asker = {0};
    socklen_t size = sizeof asker;
    getsockopt(client, SOL_SOCKET, SO_PEERCRED, &asker, &size);
    int count = read_words(client, bytes, words);
    if (count == 1 && strcmp(words[0], "down") == 0) {
        *ret_asker = asker.pid;
        return true;
    }
    struct failure failure = {0};
    struct text answer cleanup(text_clear);
    text_init(&answer, ANSWER_MAX);
    int status = count < 1 ? failure_set(&failure, -EINVAL, "a request that is not one")
                           : faults_do(bed, count, words, &answer, &failure);
    /* The first byte says how it went. */
    if (status < 0) {
        text_reset(&answer);
        text_append_string(&answer, failure.text);
    }
    dprintf(client, "%c%s", status < 0 ? '!' : '=', answer.bytes);
    return false;
}

/* A node whose first process somebody else has ended has crashed. */
static void look_after_nodes(struct bed *bed) {
    for (int i = 0; i < bed->node_count; i++) {
        struct node *node = &bed->nodes[i];
        if (node->init > 0 && waitpid(node->init, NULL, WNOHANG) == node->init) {
            node->init = 0;
            close(take_descriptor(node->init_handle));
            node_end_files(node);
            node->state = NODE_CRASHED;
        }
    }
}

static void listen_until_down(struct bed *bed, int control, int signals) {
    cleanup_close int owner = -1;
    if (bed->settings.owner > 0) {
        owner = (int)syscall(SYS_pidfd_open, bed->settings.owner, 0);
        if (owner < 0) { /* it is gone already */
            go_down(bed, 0);
            return;
        }
    }
    for (;;) {
        struct pollfd waits[3] = {{.fd = control, .events = POLLIN},
                                  {.fd = signals, .events = POLLIN},
                                  {.fd = owner, .events = POLLIN}};
        if (poll(waits, 3, -1) < 0)
            continue;
        pid_t asker = 0;
        bool down = waits[2].revents != 0;
        cleanup_close int client = -1;
        if (waits[1].revents != 0) {
            struct signalfd_siginfo signal;
            if (read(signals, &signal, sizeof signal) == sizeof signal && signal.ssi_signo != SIGCHLD)
                down = true;
            look_after_nodes(bed);
        }
        if (!down && waits[0].revents != 0) {
            client = accept4(control, NULL, NULL, SOCK_CLOEXEC);
            if (client >= 0)
                down = serve(bed, client, &asker);
        }
        if (down) {
            go_down(bed, asker);
            return;
        }
    }
}

static void be_keeper(struct bed *bed, int report) __attribute__((noreturn));
static void be_keeper(struct bed *bed, int report) {
    setsid();
    prctl(PR_SET_NAME, "bed-keeper");
    signal(SIGPIPE, SIG_IGN);
    struct rlimit files;
    if (getrlimit(RLIMIT_NOFILE, &files) == 0) { /* three descriptors a node */
        files.rlim_cur = files.rlim_max;
        setrlimit(RLIMIT_NOFILE, &files);
    }
    sigset_t set;
    sigemptyset(&set);
    sigaddset(&set, SIGTERM);
    sigaddset(&set, SIGINT);
    sigaddset(&set, SIGHUP);
    sigaddset(&set, SIGCHLD);
    sigprocmask(SIG_BLOCK, &set, NULL);
    struct failure failure = {0};
    char path[BED_PATH_SIZE], number[16];
    bed_path(bed, path, "log/keeper");
    int log = open(path, O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0600);
    int null = open("/dev/null", O_RDWR | O_CLOEXEC);
    int signals = signalfd(-1, &set, SFD_CLOEXEC | SFD_NONBLOCK);
    int status = 0;
    if (log < 0 || null < 0 || signals < 0 || dup2(null, 0) < 0 || dup2(log, 1) < 0 || dup2(log, 2) < 0 ||
        chdir("/") < 0)
        status = failure_set(&failure, -errno, "the keeper cannot start: %s", strerror(errno));
    snprintf(number, sizeof number, "%d\n", (int)getpid());
    bed_path(bed, path, "keeper");
    if (status == 0)
        status = layer_write(path, number, 0600, &failure);
    if (status == 0)
        status = come_up(bed, &failure);
    int control = status == 0 ? open_control(bed, &failure) : -1;
    if (status == 0 && control < 0)
        status = control;
    if (status < 0) {
        dprintf(report, "%s", failure.text);
        go_down(bed, 0);
        _exit(1);
    }
    dprintf(report, "=");
    close(report);
    listen_until_down(bed, control, signals);
    _exit(0);
}

int keeper_start(const struct settings *settings, char folder[BED_PATH_SIZE], struct failure *failure) {
    folder_reap();
    struct bed bed = {.settings = *settings, .front_end = -1};
    cleanup_close int lock = -1;
    int status = folder_make(&bed, &lock, failure);
    int report[2] = {-1, -1};
    if (status == 0 && pipe2(report, O_CLOEXEC) < 0)
        status = failure_set(failure, -errno, "cannot make a pipe: %s", strerror(errno));
    pid_t keeper = status == 0 ? fork() : -1;
    if (keeper == 0)
        be_keeper(&bed, report[1]);
    if (keeper < 0) {
        folder_remove(bed.folder);
        return status < 0 ? status : failure_set(failure, -errno, "cannot fork: %s", strerror(errno));
    }
    close(report[1]);
    char text[FAILURE_TEXT_SIZE] = "";
    ssize_t length = read(report[0], text, sizeof text - 1);
    close(report[0]);
    if (length != 1 || text[0] != '=') {
        waitpid(keeper, NULL, 0);
        folder_remove(bed.folder); /* nothing is left of it unless the keeper was killed */
        return failure_set(failure, -EIO, "%s", length > 0 ? text : "the keeper ended without a word");
    }
    snprintf(folder, BED_PATH_SIZE, "%s", bed.folder);
    return 0;
}

/* ---- Clients --------------------------------------------------------------------------------------------
 */

int keeper_process(const char *folder, pid_t *ret, struct failure *failure) {
    char path[BED_PATH_SIZE], text[16] = "";
    snprintf(path, sizeof path, "%.200s/keeper", folder);
    cleanup_close int file = open(path, O_RDONLY | O_CLOEXEC);
    long number;
    if (file < 0 || read(file, text, sizeof text - 1) < 0)
        return failure_set(failure, -errno, "there is no bed in '%s': %s", folder, strerror(errno));
    text[strcspn(text, "\n")] = '\0';
    if (settings_number(text, 2, 1 << 30, &number) < 0)
        return failure_set(failure, -EINVAL, "'%s' does not hold the id of a process", path);
    *ret = (pid_t)number;
    return 0;
}

static int connect_control(const char *folder, struct failure *failure) {
    cleanup_close int control = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    snprintf(address.sun_path, sizeof address.sun_path, "%.90s/control", folder);
    if (control < 0 || connect(control, (struct sockaddr *)&address, sizeof address) < 0)
        return failure_set(failure, -errno, "there is no bed in '%s': %s", folder, strerror(errno));
    return take_descriptor(control);
}

int keeper_ask(const char *folder, int count, const char *const *words, struct text *answer,
               struct failure *failure) {
    cleanup_close int control = connect_control(folder, failure);
    if (control < 0)
        return control;
    for (int i = 0; i < count; i++) {
        size_t length = strlen(words[i]) + 1;
        if (write(control, words[i], length) != (ssize_t)length)
            return failure_set(failure, -EIO, "the bed's keeper does not take the request");
    }
    shutdown(control, SHUT_WR);
    struct text got cleanup(text_clear);
    text_init(&got, ANSWER_MAX);
    for (;;) {
        char bytes[4096];
        ssize_t length = read(control, bytes, sizeof bytes);
        if (length < 0 && errno == EINTR)
            continue;
        if (length <= 0)
            break;
        if (text_append(&got, bytes, (size_t)length) < 0)
            return failure_memory(failure);
    }
    bool down = count == 1 && strcmp(words[0], "down") == 0;
    if (got.length == 0)
        return down ? 0 : failure_set(failure, -EIO, "the bed's keeper has ended");
    if (got.bytes[0] != '=')
        return failure_set(failure, -EIO, "%s", got.bytes + 1);
    return text_append(answer, got.bytes + 1, got.length - 1);
}
