#include "engine/agent/daemon/control-socket.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/clock.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { SESSION_DIGITS = 16, WAITING_LIMIT = 16, ROUND_MS = 20 };

bool control_socket_parse_session(const char *text, uint64_t *ret) {
    if (strlen(text) != SESSION_DIGITS || strspn(text, "0123456789abcdefABCDEF") != SESSION_DIGITS)
        return false;
    uint64_t session = strtoull(text, NULL, 16);
    if (session == 0)
        return false;
    *ret = session;
    return true;
}

static socklen_t make_address(uint64_t session, struct sockaddr_un *ret) {
    *ret = (struct sockaddr_un){.sun_family = AF_UNIX};
    int length = snprintf(ret->sun_path + 1, sizeof ret->sun_path - 1, "assay-agent-%ld-%016llx",
                          (long)geteuid(), (unsigned long long)session);
    return (socklen_t)(offsetof(struct sockaddr_un, sun_path) + 1 + (size_t)length);
}

static bool is_our_user(int socket, pid_t *ret_pid) {
    struct ucred peer;
    socklen_t length = sizeof peer;
    if (getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &peer, &length) < 0 || peer.uid != geteuid())
        return false;
    if (ret_pid)
        *ret_pid = peer.pid;
    return true;
}

int control_socket_listen(uint64_t session) {
    struct sockaddr_un address;
    socklen_t length = make_address(session, &address);
    cleanup_close int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0 || bind(descriptor, (struct sockaddr *)&address, length) < 0 ||
        listen(descriptor, WAITING_LIMIT) < 0)
        return -errno;
    return take_descriptor(descriptor);
}

/* Connects within TIMEOUT_MS. The socket never blocks, since any user can listen by any name and accept no
 * connection. */
static int connect_within(int descriptor, const struct sockaddr_un *address, socklen_t length,
                          int timeout_ms) {
    int64_t end_ns = clock_monotonic_ns() + timeout_ms * INT64_C(1000000);
    for (;;) {
        if (connect(descriptor, (const struct sockaddr *)address, length) == 0)
            return 0;
        if (errno == EINTR)
            continue;
        if (errno != EAGAIN || clock_monotonic_ns() >= end_ns)
            return -errno;
        clock_sleep_ns(ROUND_MS * INT64_C(1000000));
    }
}

/* A descriptor. -ECONNREFUSED: there is no such daemon; -EPERM: it is another user's; -EAGAIN: it does not
 * answer in time. */
int control_socket_connect(uint64_t session, int timeout_ms, pid_t *ret_pid) {
    struct sockaddr_un address;
    socklen_t length = make_address(session, &address);
    cleanup_close int descriptor = socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);
    if (descriptor < 0)
        return -errno;
    int r = connect_within(descriptor, &address, length, timeout_ms);
    if (r == 0 && fcntl(descriptor, F_SETFL, O_RDWR) < 0)
        r = -errno;
    if (r < 0)
        return r;
    return is_our_user(descriptor, ret_pid) ? take_descriptor(descriptor) : -EPERM;
}

/* Accepts one connection per call, so that other users who connect all the time do not block the daemon. */
int control_socket_accept(int listener) {
    cleanup_close int descriptor = accept4(listener, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (descriptor < 0)
        return errno == EINTR || errno == ECONNABORTED ? -EAGAIN : -errno;
    return is_our_user(descriptor, NULL) ? take_descriptor(descriptor) : -EAGAIN;
}

/* ---- messages */

union ancillary {
    struct cmsghdr header; /* for its alignment */
    char bytes[CMSG_SPACE(CONTROL_DESCRIPTORS * sizeof(int))];
};

/* Sends one message with its text and, if COUNT is not 0, descriptors. */
int control_socket_send(int socket, enum control_kind kind, const char *text, const int *descriptors,
                        size_t count) {
    char letter = (char)kind;
    struct iovec parts[2] = {{&letter, 1}, {(char *)text, text ? strlen(text) : 0}};
    union ancillary ancillary = {0};
    struct msghdr message = {.msg_iov = parts, .msg_iovlen = 2};
    if (count) {
        message.msg_control = ancillary.bytes;
        message.msg_controllen = CMSG_SPACE(count * sizeof(int));
        struct cmsghdr *header = CMSG_FIRSTHDR(&message);
        header->cmsg_level = SOL_SOCKET;
        header->cmsg_type = SCM_RIGHTS;
        header->cmsg_len = CMSG_LEN(count * sizeof(int));
        memcpy(CMSG_DATA(header), descriptors, count * sizeof(int));
    }
    ssize_t sent;
    do
        sent = sendmsg(socket, &message, MSG_NOSIGNAL);
    while (sent < 0 && errno == EINTR);
    return sent < 0 ? -errno : 0;
}

/* Copies the descriptors that came with MESSAGE; the kernel gives no more than CONTROL_DESCRIPTORS. */
static void copy_descriptors(struct msghdr *message, int descriptors[CONTROL_DESCRIPTORS]) {
    for (struct cmsghdr *header = CMSG_FIRSTHDR(message); header; header = CMSG_NXTHDR(message, header))
        if (header->cmsg_level == SOL_SOCKET && header->cmsg_type == SCM_RIGHTS)
            memcpy(descriptors, CMSG_DATA(header), header->cmsg_len - CMSG_LEN(0));
}

/* ECONNRESET is reported once, when the other side closed without having read everything; its earlier
 * messages can still be received. */
int control_socket_receive(int socket, struct control_message *ret) {
    char letter = 0;
    struct iovec parts[2] = {{&letter, 1}, {ret->text, sizeof ret->text - 1}};
    union ancillary ancillary;
    struct msghdr message = {.msg_iov = parts,
                             .msg_iovlen = 2,
                             .msg_control = ancillary.bytes,
                             .msg_controllen = sizeof ancillary.bytes};
    ssize_t got;
    do
        got = recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    while (got < 0 && (errno == EINTR || errno == ECONNRESET));
    if (got <= 0)
        return got < 0 ? -errno : 0;
    ret->kind = (enum control_kind)letter;
    ret->text[got - 1] = '\0';
    for (int i = 0; i < CONTROL_DESCRIPTORS; i++)
        ret->descriptors[i] = -1;
    copy_descriptors(&message, ret->descriptors);
    return 1;
}

void control_message_clear(struct control_message *message) {
    for (int i = 0; i < CONTROL_DESCRIPTORS; i++)
        cleanup_close_descriptor(&message->descriptors[i]);
}
