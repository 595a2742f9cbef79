#include "tests/test-bed/network.h"

#include "engine/foundation/cleanup.h"

#include <arpa/inet.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/if_link.h>
#include <linux/rtnetlink.h>
#include <linux/veth.h>
#include <net/if.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

enum { REQUEST_SIZE = 1024, ANSWER_SIZE = 32768 };

/* One request being put together. */
struct request {
    _Alignas(struct nlmsghdr) char bytes[REQUEST_SIZE];
};

static struct nlmsghdr *header(struct request *request) {
    return (struct nlmsghdr *)(void *)request->bytes;
}

/* Appends LENGTH bytes, and room up to the next multiple of four. */
static void *append(struct request *request, const void *bytes, size_t length) {
    struct nlmsghdr *message = header(request);
    char *at = request->bytes + NLMSG_ALIGN(message->nlmsg_len);
    if (length > 0 && bytes != NULL)
        memcpy(at, bytes, length);
    message->nlmsg_len = (uint32_t)(NLMSG_ALIGN(message->nlmsg_len) + NLMSG_ALIGN(length));
    return at;
}

static void begin(struct request *request, uint16_t type, uint16_t flags, const void *body, size_t length) {
    memset(request, 0, sizeof *request);
    *header(request) = (struct nlmsghdr){
        .nlmsg_len = NLMSG_HDRLEN, .nlmsg_type = type, .nlmsg_flags = (uint16_t)(NLM_F_REQUEST | flags)};
    append(request, body, length);
}

static struct rtattr *attribute(struct request *request, uint16_t type, const void *bytes, size_t length) {
    struct rtattr *start = append(
        request, &(struct rtattr){.rta_len = (uint16_t)RTA_LENGTH(length), .rta_type = type}, sizeof *start);
    append(request, bytes, length);
    return start;
}

static void attribute_text(struct request *request, uint16_t type, const char *text) {
    attribute(request, type, text, strlen(text) + 1);
}

static void attribute_number(struct request *request, uint16_t type, uint32_t number) {
    attribute(request, type, &number, sizeof number);
}

/* An attribute that holds what is appended until nest_end(). */
static struct rtattr *nest(struct request *request, uint16_t type) {
    return attribute(request, type, NULL, 0);
}

static void nest_end(struct request *request, struct rtattr *start) {
    start->rta_len = (uint16_t)(request->bytes + header(request)->nlmsg_len - (char *)start);
}

/* Sends the request and reads the kernel's answer. INDEX, unless NULL, gets the interface of a link answer.
 */
static int ask(int socket, struct request *request, int *index) {
    header(request)->nlmsg_flags |= NLM_F_ACK;
    if (send(socket, request->bytes, header(request)->nlmsg_len, 0) < 0)
        return -errno;
    for (;;) {
        _Alignas(struct nlmsghdr) char answer[ANSWER_SIZE];
        ssize_t got = recv(socket, answer, sizeof answer, 0);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        struct nlmsghdr *message = (struct nlmsghdr *)(void *)answer;
        for (; NLMSG_OK(message, (uint32_t)got); message = NLMSG_NEXT(message, got)) {
            if (message->nlmsg_type == NLMSG_ERROR)
                return ((struct nlmsgerr *)NLMSG_DATA(message))->error;
            if (message->nlmsg_type == RTM_NEWLINK && index != NULL)
                *index = ((struct ifinfomsg *)NLMSG_DATA(message))->ifi_index;
        }
    }
}

static int refused(int status, const char *what, const char *name, struct failure *failure) {
    if (status < 0)
        return failure_set(failure, status, "network device '%s': cannot %s: %s", name, what,
                           strerror(-status));
    return 0;
}

int network_open(struct failure *failure) {
    int descriptor = socket(AF_NETLINK, SOCK_RAW | SOCK_CLOEXEC, NETLINK_ROUTE);
    if (descriptor < 0)
        return failure_set(failure, -errno, "cannot open a netlink socket: %s", strerror(errno));
    return descriptor;
}

static void begin_link(struct request *request, uint16_t type, uint16_t flags, const char *name) {
    begin(request, type, flags, &(struct ifinfomsg){.ifi_family = AF_UNSPEC}, sizeof(struct ifinfomsg));
    attribute_text(request, IFLA_IFNAME, name);
}

int network_add_pair(int socket, const char *name, const char *peer, int peer_namespace, uint32_t address,
                     struct failure *failure) {
    /* 02: locally administered. */
    uint8_t hardware[6] = {0x02,
                           0,
                           (uint8_t)(address >> 24),
                           (uint8_t)(address >> 16),
                           (uint8_t)(address >> 8),
                           (uint8_t)address};
    struct request request;
    begin_link(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, name);
    struct rtattr *info = nest(&request, IFLA_LINKINFO);
    attribute_text(&request, IFLA_INFO_KIND, "veth");
    struct rtattr *data = nest(&request, IFLA_INFO_DATA);
    struct rtattr *other = nest(&request, VETH_INFO_PEER);
    append(&request, &(struct ifinfomsg){.ifi_family = AF_UNSPEC}, sizeof(struct ifinfomsg));
    attribute_text(&request, IFLA_IFNAME, peer);
    attribute(&request, IFLA_ADDRESS, hardware, sizeof hardware);
    attribute_number(&request, IFLA_NET_NS_FD, (uint32_t)peer_namespace);
    nest_end(&request, other);
    nest_end(&request, data);
    nest_end(&request, info);
    return refused(ask(socket, &request, NULL), "make the pair", name, failure);
}

int network_add_bridge(int socket, const char *name, struct failure *failure) {
    struct request request;
    begin_link(&request, RTM_NEWLINK, NLM_F_CREATE | NLM_F_EXCL, name);
    struct rtattr *info = nest(&request, IFLA_LINKINFO);
    attribute_text(&request, IFLA_INFO_KIND, "bridge");
    struct rtattr *data = nest(&request, IFLA_INFO_DATA);
    attribute_number(&request, IFLA_BR_FORWARD_DELAY, 0); /* ports forward at once */
    attribute(&request, IFLA_BR_MCAST_SNOOPING, &(uint8_t){0}, 1);
    nest_end(&request, data);
    nest_end(&request, info);
    return refused(ask(socket, &request, NULL), "make the bridge", name, failure);
}

int network_remove(int socket, const char *name, struct failure *failure) {
    struct request request;
    begin_link(&request, RTM_DELLINK, 0, name);
    return refused(ask(socket, &request, NULL), "remove it", name, failure);
}

static int set_flag(int socket, const char *name, unsigned flag, bool on) {
    struct request request;
    begin_link(&request, RTM_NEWLINK, 0, name);
    struct ifinfomsg *body = NLMSG_DATA(header(&request));
    body->ifi_change = flag;
    body->ifi_flags = on ? flag : 0;
    return ask(socket, &request, NULL);
}

int network_set_up(int socket, const char *name, bool up, struct failure *failure) {
    return refused(set_flag(socket, name, IFF_UP, up), up ? "set it up" : "set it down", name, failure);
}

int network_set_bridge(int socket, const char *name, int bridge, struct failure *failure) {
    struct request request;
    begin_link(&request, RTM_NEWLINK, 0, name);
    attribute_number(&request, IFLA_MASTER, (uint32_t)bridge);
    return refused(ask(socket, &request, NULL), "put it on the bridge", name, failure);
}

int network_index(int socket, const char *name, int *ret, struct failure *failure) {
    struct request request;
    begin_link(&request, RTM_GETLINK, 0, name);
    int index = 0;
    int status = ask(socket, &request, &index);
    if (status == 0)
        *ret = index;
    return refused(status, "find it", name, failure);
}

int network_add_address(int socket, const char *name, uint32_t address, int prefix, struct failure *failure) {
    int index;
    int status = network_index(socket, name, &index, failure);
    if (status < 0)
        return status;
    struct request request;
    struct ifaddrmsg body = {
        .ifa_family = AF_INET, .ifa_prefixlen = (uint8_t)prefix, .ifa_index = (uint32_t)index};
    begin(&request, RTM_NEWADDR, NLM_F_CREATE | NLM_F_REPLACE, &body, sizeof body);
    attribute_number(&request, IFA_LOCAL, htonl(address));
    attribute_number(&request, IFA_ADDRESS, htonl(address));
    attribute_number(&request, IFA_BROADCAST, htonl(address | (UINT32_MAX >> prefix)));
    return refused(ask(socket, &request, NULL), "give it an address", name, failure);
}

int network_quick_acknowledge(int socket, const char *name, uint32_t address, int prefix,
                              struct failure *failure) {
    int index;
    int status = network_index(socket, name, &index, failure);
    if (status < 0)
        return status;
    struct request request;
    struct rtmsg body = {.rtm_family = AF_INET,
                         .rtm_dst_len = (uint8_t)prefix,
                         .rtm_table = RT_TABLE_MAIN,
                         .rtm_protocol = RTPROT_KERNEL,
                         .rtm_scope = RT_SCOPE_LINK,
                         .rtm_type = RTN_UNICAST};
    begin(&request, RTM_NEWROUTE, NLM_F_CREATE | NLM_F_REPLACE, &body, sizeof body);
    attribute_number(&request, RTA_DST, htonl(address & ~(UINT32_MAX >> prefix)));
    attribute_number(&request, RTA_OIF, (uint32_t)index);
    attribute_number(&request, RTA_PREFSRC, htonl(address));
    struct rtattr *metrics = nest(&request, RTA_METRICS);
    attribute_number(&request, RTAX_QUICKACK, 1);
    nest_end(&request, metrics);
    return refused(ask(socket, &request, NULL), "change its route", name, failure);
}

void network_without_ipv6(void) {
    static const char *const files[] = {"/proc/sys/net/ipv6/conf/all/disable_ipv6",
                                        "/proc/sys/net/ipv6/conf/default/disable_ipv6"};
    for (size_t i = 0; i < sizeof files / sizeof *files; i++) {
        cleanup_close int file = open(files[i], O_WRONLY | O_CLOEXEC);
        if (file >= 0 && write(file, "1", 1) < 0)
            continue; /* chatter does no harm */
    }
}
