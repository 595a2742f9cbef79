#include "tests/test-bed/line.h"

#include "engine/foundation/cleanup.h"
#include "tests/test-bed/network.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_ether.h>
#include <linux/if_packet.h>
#include <linux/if_tun.h>
#include <net/if.h>
#include <poll.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

enum {
    FRAME_SIZE = 65536 + 64, /* no frame is longer, whatever the device's limit */
    FRAMES_MAX = 16384,      /* under way in one direction; the next is lost */
    BACKLOG_US = 200000,     /* what waits for a slow line before frames are lost, as in a router */
};

struct frame {
    int64_t due; /* us of the monotonic clock */
    uint32_t length;
    char *bytes;
};

struct direction {
    int from, to;
    int64_t free_at; /* when the line has sent what it was given */
    uint32_t first, last;
    struct frame frames[FRAMES_MAX];
};

static int64_t now_us(void) {
    struct timespec now;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000 + now.tv_nsec / 1000;
}

/* xorshift64*: the same losses each time (Vigna, "An experimental exploration of Marsaglia's xorshift
 * generators, scrambled", 2016). */
static uint32_t random_below(uint64_t *state, uint32_t limit) {
    *state ^= *state >> 12;
    *state ^= *state << 25;
    *state ^= *state >> 27;
    return (uint32_t)((*state * 0x2545f4914f6cdd1dU >> 32) % limit);
}

/* Takes all frames that have arrived. */
static void take_frames(struct direction *direction, struct line *line, uint64_t *random) {
    static char bytes[FRAME_SIZE];
    for (;;) {
        ssize_t length = read(direction->from, bytes, sizeof bytes);
        if (length <= 0)
            return;
        uint32_t loss = atomic_load(&line->loss_per_million), rate = atomic_load(&line->rate_kbit);
        int64_t now = now_us();
        int64_t start = direction->free_at > now ? direction->free_at : now;
        if ((loss > 0 && random_below(random, 1000000) < loss) ||
            direction->last - direction->first == FRAMES_MAX || (rate > 0 && start - now > BACKLOG_US))
            continue;
        char *copy = malloc((size_t)length);
        if (copy == NULL)
            continue;
        memcpy(copy, bytes, (size_t)length);
        direction->free_at = rate > 0 ? start + length * 8000 / rate : start;
        direction->frames[direction->last++ % FRAMES_MAX] =
            (struct frame){.due = direction->free_at + atomic_load(&line->delay_us),
                           .length = (uint32_t)length,
                           .bytes = copy};
    }
}

/* Gives on what is due. Returns the us until the next one, or LEAST. */
static int64_t give_frames(struct direction *direction, int64_t least) {
    while (direction->first != direction->last) {
        struct frame *frame = &direction->frames[direction->first % FRAMES_MAX];
        int64_t left = frame->due - now_us();
        if (left > 0)
            return left < least ? left : least;
        ssize_t sent = write(direction->to, frame->bytes, frame->length);
        (void)sent; /* a device that is down takes nothing: the frame is lost, as on a wire */
        free(frame->bytes);
        direction->first++;
    }
    return least;
}

static void carry(int tap, int wire, struct line *line) __attribute__((noreturn));
static void carry(int tap, int wire, struct line *line) {
    static struct direction directions[2];
    directions[0].from = directions[1].to = tap;
    directions[1].from = directions[0].to = wire;
    uint64_t random = 0x9e3779b97f4a7c15U;
    for (;;) {
        int64_t least = 1000000;
        for (int i = 0; i < 2; i++)
            least = give_frames(&directions[i], least);
        struct pollfd waits[2] = {{.fd = tap, .events = POLLIN}, {.fd = wire, .events = POLLIN}};
        struct timespec wait = {.tv_sec = least / 1000000, .tv_nsec = least % 1000000 * 1000};
        ppoll(waits, 2, &wait, NULL);
        for (int i = 0; i < 2; i++)
            take_frames(&directions[i], line, &random);
    }
}

/* A tap without offloads: the kernel gives it frames that are ready for a wire. */
static int open_tap(const char *name, struct failure *failure) {
    int tap = open("/dev/net/tun", O_RDWR | O_NONBLOCK | O_CLOEXEC);
    if (tap < 0)
        return failure_set(failure, -errno, "cannot open '/dev/net/tun': %s", strerror(errno));
    struct ifreq request = {.ifr_flags = IFF_TAP | IFF_NO_PI};
    snprintf(request.ifr_name, sizeof request.ifr_name, "%s", name);
    if (ioctl(tap, TUNSETIFF, &request) < 0) {
        close(tap);
        return failure_set(failure, -errno, "cannot make the tap '%s': %s", name, strerror(errno));
    }
    return tap;
}

/* All frames that come in on LINK, and only those. */
static int open_wire(int index, const char *link, struct failure *failure) {
    int wire = socket(AF_PACKET, SOCK_RAW | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
    struct sockaddr_ll address = {
        .sll_family = AF_PACKET, .sll_protocol = htons(ETH_P_ALL), .sll_ifindex = index};
    struct packet_mreq all = {.mr_ifindex = index, .mr_type = PACKET_MR_PROMISC};
    int room = 4 << 20;
    if (wire < 0 || setsockopt(wire, SOL_PACKET, PACKET_IGNORE_OUTGOING, &(int){1}, sizeof(int)) < 0 ||
        setsockopt(wire, SOL_PACKET, PACKET_ADD_MEMBERSHIP, &all, sizeof all) < 0 ||
        setsockopt(wire, SOL_SOCKET, SO_RCVBUFFORCE, &room, sizeof room) < 0 ||
        bind(wire, (struct sockaddr *)&address, sizeof address) < 0) {
        int error = errno;
        if (wire >= 0)
            close(wire);
        return failure_set(failure, -error, "cannot listen on '%s': %s", link, strerror(error));
    }
    return wire;
}

/* What the node sends must be complete before it leaves the node: nothing later would complete it. */
static int set_offload(int node_network, bool on, struct failure *failure) {
    cleanup_close int own = open("/proc/self/ns/net", O_RDONLY | O_CLOEXEC);
    if (own < 0 || setns(node_network, CLONE_NEWNET) < 0)
        return failure_set(failure, -errno, "cannot enter a node's network: %s", strerror(errno));
    int status = network_set_offload("eth0", on, failure);
    if (setns(own, CLONE_NEWNET) < 0)
        return failure_set(failure, -errno, "cannot come back from a node's network: %s", strerror(errno));
    return status;
}

static void tap_name(const char *link, char name[IFNAMSIZ]) {
    snprintf(name, IFNAMSIZ, "t-%.12s", link);
}

/* Opens both ends and puts the tap on the bridge. */
static int connect_ends(int socket, const char *link, int bridge, int *tap, int *wire,
                        struct failure *failure) {
    char name[IFNAMSIZ];
    tap_name(link, name);
    int index = 0;
    int status = network_index(socket, link, &index, failure);
    if (status < 0)
        return status;
    *tap = open_tap(name, failure);
    if (*tap < 0)
        return *tap;
    *wire = open_wire(index, link, failure);
    if (*wire < 0)
        return *wire;
    /* The device has no address, but the kernel would answer for the bridge's. */
    status = network_set_arp(socket, link, false, failure);
    if (status == 0)
        status = network_set_bridge(socket, link, 0, failure);
    if (status == 0)
        status = network_set_bridge(socket, name, bridge, failure);
    if (status == 0)
        status = network_set_up(socket, name, true, failure);
    return status == 0 ? network_index(socket, name, &index, failure) : status;
}

static void be_line(int tap, int wire, struct line *line) __attribute__((noreturn));
static void be_line(int tap, int wire, struct line *line) {
    prctl(PR_SET_PDEATHSIG, SIGKILL);
    prctl(PR_SET_NAME, "bed-line");
    prctl(PR_SET_TIMERSLACK, 1000UL);
    /* Nothing of the keeper's is left open: its lock and its sockets end with it. */
    unsigned low = (unsigned)(tap < wire ? tap : wire), high = (unsigned)(tap < wire ? wire : tap);
    if (low > 3)
        close_range(3, low - 1, 0);
    if (high > low + 1)
        close_range(low + 1, high - 1, 0);
    close_range(high + 1, ~0U, 0);
    carry(tap, wire, line);
}

int line_start(int socket, const char *link, int bridge, int node_network, struct line **ret,
               struct failure *failure) {
    struct line *line = mmap(NULL, sizeof *line, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    if (line == MAP_FAILED)
        return failure_memory(failure);
    cleanup_close int tap = -1;
    cleanup_close int wire = -1;
    int status = set_offload(node_network, false, failure);
    if (status == 0)
        status = connect_ends(socket, link, bridge, &tap, &wire, failure);
    pid_t process = status == 0 ? fork() : 0;
    if (process < 0)
        status = failure_set(failure, -errno, "cannot fork: %s", strerror(errno));
    if (status < 0) {
        munmap(line, sizeof *line);
        return status;
    }
    if (process == 0)
        be_line(tap, wire, line);
    line->process = process;
    *ret = line;
    return 0;
}

void line_stop(struct line *line) {
    if (line == NULL)
        return;
    kill(line->process, SIGKILL);
    while (waitpid(line->process, NULL, 0) < 0 && errno == EINTR)
        ;
    munmap(line, sizeof *line);
}

int line_remove(int socket, const char *link, int bridge, int node_network, struct line *line,
                struct failure *failure) {
    line_stop(line); /* and with its process the tap */
    int index;
    int status = network_set_bridge(socket, link, bridge, failure);
    if (status == 0)
        status = network_set_arp(socket, link, true, failure);
    if (status == 0)
        status = set_offload(node_network, true, failure);
    return status == 0 ? network_index(socket, link, &index, failure) : status;
}
