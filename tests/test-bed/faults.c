#include "tests/test-bed/faults.h"

#include "engine/foundation/cleanup.h"
#include "tests/test-bed/kernel-files.h"
#include "tests/test-bed/mounts.h"
#include "tests/test-bed/network.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

/* What a command works on: one node, and the words after the nodes. */
struct order {
    struct bed *bed;
    struct node *node;
    int count;
    const char *const *words;
    const char *name; /* of the command */
    struct text *answer;
    struct failure *failure;
};

static int out_of_place(const struct order *order, const char *expected) {
    static const char *const states[] = {"off", "up", "frozen", "crashed"};
    return failure_set(order->failure, -EINVAL, "node '%s' is %s; expected one that is %s", order->node->name,
                       states[order->node->state], expected);
}

/* ---- Wires ----------------------------------------------------------------------------------------------
 */

static int set_wire(const struct order *order, bool up) {
    struct node *node = order->node;
    int index;
    node->cut = !up;
    if (node->state == NODE_OFF)
        return 0; /* it starts with its wire as it is */
    int status = network_set_up(order->bed->front_end, node->link, up, order->failure);
    return status == 0 ? network_index(order->bed->front_end, node->link, &index, order->failure) : status;
}

static int do_cut(const struct order *order) {
    return set_wire(order, false);
}

static int do_mend(const struct order *order) {
    return set_wire(order, true);
}

/* ---- Processes ------------------------------------------------------------------------------------------
 */

/* Inside a node: all its processes but the first and this one, at one moment. */
static int signal_all(void *argument) {
    return kill(-1, *(int *)argument) < 0 && errno != ESRCH ? -errno : 0;
}

static int do_freeze(const struct order *order) {
    if (order->node->state == NODE_FROZEN)
        return 0;
    if (order->node->state != NODE_UP)
        return out_of_place(order, "up");
    int status = node_inside(order->node, signal_all, &(int){SIGSTOP}, order->failure);
    if (status == 0)
        order->node->state = NODE_FROZEN;
    return status;
}

static int do_thaw(const struct order *order) {
    if (order->node->state == NODE_UP)
        return 0;
    if (order->node->state != NODE_FROZEN)
        return out_of_place(order, "frozen");
    int status = node_inside(order->node, signal_all, &(int){SIGCONT}, order->failure);
    if (status == 0)
        order->node->state = NODE_UP;
    return status;
}

static int do_crash(const struct order *order) {
    if (order->node->state == NODE_OFF)
        return out_of_place(order, "up");
    node_kill(order->node);
    order->node->state = NODE_CRASHED;
    return 0;
}

static int do_power_off(const struct order *order) {
    if (order->node->state == NODE_OFF)
        return 0;
    /* First the wire, so that nothing tells the others that the processes die. */
    bool cut = order->node->cut;
    int status = set_wire(order, false);
    order->node->cut = cut;
    if (status < 0)
        return status;
    node_kill(order->node);
    node_unplug(order->bed, order->node);
    order->node->state = NODE_OFF;
    return 0;
}

/* First half; faults_do() waits for all that were started. */
static int do_reboot(const struct order *order) {
    if (order->node->state != NODE_OFF) {
        node_kill(order->node);
        node_unplug(order->bed, order->node);
        order->node->state = NODE_OFF;
    }
    return node_start(order->bed, order->node, order->failure);
}

static int do_power_on(const struct order *order) {
    return order->node->state == NODE_OFF ? do_reboot(order) : out_of_place(order, "off");
}

/* ---- sshd -----------------------------------------------------------------------------------------------
 */

static int say(const struct failure *failure) {
    dprintf(3, "%s", failure->text);
    return failure->code;
}

/* Inside a node: ends the listening sshd; those that serve a session stay. */
static int end_sshd(void *argument) {
    (void)argument;
    cleanup_close int file = open("/run/sshd.pid", O_RDONLY | O_CLOEXEC);
    char text[16] = "";
    long process;
    if (file < 0 || read(file, text, sizeof text - 1) < 0)
        return 0; /* there is none */
    text[strcspn(text, "\n")] = '\0';
    if (settings_number(text, 2, 1 << 30, &process) < 0)
        return 0;
    kill((pid_t)process, SIGKILL);
    unlink("/run/sshd.pid");
    for (int i = 0; i < 120000 && kill((pid_t)process, 0) == 0; i++)
        nanosleep(&(struct timespec){.tv_nsec = 1000000}, NULL);
    return 0;
}

static int begin_sshd(void *argument) {
    (void)argument;
    struct failure failure = {0};
    if (access("/run/sshd.pid", F_OK) == 0)
        end_sshd(NULL);
    return node_start_sshd(&failure) == 0 ? 0 : say(&failure);
}

static int need_up(const struct order *order) {
    return order->node->state == NODE_UP ? 0 : out_of_place(order, "up");
}

static int do_refuse_logins(const struct order *order) {
    int status = need_up(order);
    return status == 0 ? node_inside(order->node, end_sshd, NULL, order->failure) : status;
}

static int do_accept_logins(const struct order *order) {
    int status = need_up(order);
    return status == 0 ? node_inside(order->node, begin_sshd, NULL, order->failure) : status;
}

/* ---- Disks ----------------------------------------------------------------------------------------------
 */

/* A file system of a node and the limit it is given back. */
struct filling {
    const char *path, *size;
};

static int limit(void *argument) {
    const struct filling *filling = argument;
    struct failure failure = {0};
    int status = mounts_limit(filling->path, filling->size, &failure);
    return status == 0 ? 0 : say(&failure);
}

static int fill_one(const struct order *order, const char *path, bool full) {
    const struct settings *settings = &order->bed->settings;
    struct filling filling = {.path = path};
    if (strcmp(path, "/") == 0 || strcmp(path, "/home") == 0 || strcmp(path, "/root") == 0) {
        char disk[BED_PATH_SIZE];
        bed_path(order->bed, disk, "inside/disk/%d", order->node->number);
        return mounts_limit(disk, full ? NULL : settings->disk_size, order->failure);
    }
    if (strcmp(path, "/tmp") == 0)
        filling.size = settings->tmp_size;
    else if (strcmp(path, "/dev/shm") == 0)
        filling.size = SETTINGS_SHM_SIZE;
    else
        return failure_set(order->failure, -EINVAL,
                           "'%s' is no file system of a node; expected /, /home, /root, /tmp or /dev/shm",
                           path);
    if (full)
        filling.size = NULL;
    int status = need_up(order);
    return status == 0 ? node_inside(order->node, limit, &filling, order->failure) : status;
}

static int fill(const struct order *order, bool full) {
    static const char *const all[] = {"/", "/tmp", "/dev/shm"};
    int count = order->count > 0 ? order->count : 3;
    const char *const *paths = order->count > 0 ? order->words : all;
    int status = 0;
    for (int i = 0; status == 0 && i < count; i++)
        status = fill_one(order, paths[i], full);
    return status;
}

static int do_fill(const struct order *order) {
    return fill(order, true);
}

static int do_empty(const struct order *order) {
    return fill(order, false);
}

static int do_process(const struct order *order) {
    return text_printf(order->answer, "%d\n", (int)order->node->init);
}

/* ---- Kernel files: the process behind them does it ----------------------------------------------------- */

static int do_kernel_files(const struct order *order) {
    const char *words[4]; /* a command has three at most */
    if (order->bed->kernel == NULL)
        return failure_set(order->failure, -EOPNOTSUPP,
                           "'%s': the nodes of this bed have plain files; see --machine", order->name);
    if (order->node->files == 0)
        return out_of_place(order, "up");
    words[0] = order->name;
    for (int i = 0; i < order->count; i++)
        words[i + 1] = order->words[i];
    return kernel_files_ask(order->node->files_control, order->count + 1, words, order->answer,
                            order->failure);
}

/* ---- Commands -------------------------------------------------------------------------------------------
 */

static const struct {
    const char *name;
    int least, most; /* words after the nodes */
    int (*function)(const struct order *order);
} commands[] = {
    {"cut", 0, 0, do_cut},
    {"mend", 0, 0, do_mend},
    {"freeze", 0, 0, do_freeze},
    {"thaw", 0, 0, do_thaw},
    {"crash", 0, 0, do_crash},
    {"power-off", 0, 0, do_power_off},
    {"power-on", 0, 0, do_power_on},
    {"reboot", 0, 0, do_reboot},
    {"refuse-logins", 0, 0, do_refuse_logins},
    {"accept-logins", 0, 0, do_accept_logins},
    {"fill", 0, 8, do_fill},
    {"empty", 0, 8, do_empty},
    {"process", 0, 0, do_process},
    {"fault", 1, 3, do_kernel_files},
    {"set", 2, 2, do_kernel_files},
    {"unset", 1, 1, do_kernel_files},
    {"load", 1, 1, do_kernel_files},
    {"files", 0, 1, do_kernel_files},
    {"writes", 0, 1, do_kernel_files},
};
enum { COMMANDS = sizeof commands / sizeof *commands };

/* Marks the nodes that one entry of a list means: a number, a range of numbers, a name, or all. */
static int mark_entry(const struct bed *bed, const char *entry, bool *marked, struct failure *failure) {
    char first[SETTINGS_WORD_SIZE];
    snprintf(first, sizeof first, "%s", entry);
    char *dash = strchr(first, '-');
    long from, to;
    if (strcmp(entry, "all") == 0)
        from = 1, to = bed->node_count;
    else if (settings_number(entry, 1, bed->node_count, &from) == 0)
        to = from;
    else {
        for (int i = 0; i < bed->node_count; i++)
            if (strcmp(bed->nodes[i].name, entry) == 0) {
                marked[i] = true;
                return 0;
            }
        if (dash != NULL)
            *dash = '\0';
        if (dash == NULL || settings_number(first, 1, bed->node_count, &from) < 0 ||
            settings_number(dash + 1, from, bed->node_count, &to) < 0)
            return failure_set(
                failure, -EINVAL,
                "'%s' is no node of this bed; expected numbers up to %d, a range such as 1-4, names, or all",
                entry, bed->node_count);
    }
    for (long i = from; i <= to; i++)
        marked[i - 1] = true;
    return 0;
}

static int mark_nodes(const struct bed *bed, const char *list, bool *marked, struct failure *failure) {
    char copy[4096], *rest = copy;
    if (snprintf(copy, sizeof copy, "%s", list) >= (int)sizeof copy)
        return failure_set(failure, -EINVAL, "a list of nodes is too long");
    for (char *entry; (entry = strsep(&rest, ",")) != NULL;) {
        int status = mark_entry(bed, entry, marked, failure);
        if (status < 0)
            return status;
    }
    return 0;
}

static int print_status(const struct bed *bed, struct text *answer) {
    static const char *const states[] = {"off", "up", "frozen", "crashed"};
    for (int i = 0; i < bed->node_count; i++) {
        const struct node *node = &bed->nodes[i];
        text_printf(answer, "%d\t%s\t%u.%u.%u.%u\t%s%s\n", node->number, node->name, node->address >> 24,
                    node->address >> 16 & 255, node->address >> 8 & 255, node->address & 255,
                    states[node->state], node->cut ? " cut" : "");
    }
    return 0;
}

/* FEATURE: a command of above, or one of these words. */
static int answer_can(const struct bed *bed, const char *feature, struct failure *failure) {
    static const char *const others[] = {"nodes",   "names", "sys",  "network",
                                         "gateway", "disks", "user", "boot-id"};
    if (strcmp(feature, "kernel-files") == 0)
        return bed->kernel != NULL ? 0
                                   : failure_set(failure, -EOPNOTSUPP,
                                                 bed->settings.machine == NULL
                                                     ? "the nodes of this bed have plain files; see --machine"
                                                     : "there is no FUSE here: the nodes have plain files");
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        if (strcmp(feature, others[i]) == 0)
            return 0;
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(feature, commands[i].name) == 0)
            return 0;
    return failure_set(failure, -EOPNOTSUPP, "'%s' is nothing that a bed can do; see bed help", feature);
}

static int do_on_nodes(struct bed *bed, size_t command, int count, const char *const *words,
                       struct text *answer, struct failure *failure) {
    bool marked[SETTINGS_NODES_MAX + 1] = {false};
    int status = mark_nodes(bed, words[1], marked, failure);
    for (int i = 0; status == 0 && i < bed->node_count; i++) {
        if (!marked[i])
            continue;
        struct order order = {.bed = bed,
                              .node = &bed->nodes[i],
                              .count = count - 2,
                              .words = words + 2,
                              .name = words[0],
                              .answer = answer,
                              .failure = failure};
        status = commands[command].function(&order);
    }
    int waited = node_wait(bed, bed->nodes, bed->node_count, failure);
    return status < 0 ? status : waited;
}

int faults_do(struct bed *bed, int count, const char *const *words, struct text *answer,
              struct failure *failure) {
    if (count == 1 && strcmp(words[0], "status") == 0)
        return print_status(bed, answer);
    if (count == 2 && strcmp(words[0], "can") == 0)
        return answer_can(bed, words[1], failure);
    for (size_t i = 0; i < COMMANDS; i++)
        if (strcmp(words[0], commands[i].name) == 0) {
            if (count < 2 + commands[i].least || count > 2 + commands[i].most)
                return failure_set(failure, -EINVAL,
                                   "%s: expected nodes and then %d to %d words; see bed help", words[0],
                                   commands[i].least, commands[i].most);
            return do_on_nodes(bed, i, count, words, answer, failure);
        }
    return failure_set(failure, -EINVAL, "'%s' is no command; see bed help", words[0]);
}
