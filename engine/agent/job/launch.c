#include "engine/agent/job/launch.h"

#include "engine/agent/machine/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/path.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <unistd.h>

enum { NOT_STARTED = 255 }; /* exit status where the command did not run, as ssh's */

void launch_send(int socket, char kind, const void *bytes, size_t length) {
    char head[5] = {kind};
    uint32_t number = (uint32_t)length;
    memcpy(head + 1, &number, sizeof number);
    if (send(socket, head, sizeof head, MSG_NOSIGNAL | MSG_MORE) == sizeof head)
        (void)!send(socket, bytes, length, MSG_NOSIGNAL);
}

static bool receive(int socket, void *bytes, size_t length) {
    return path_read_up_to(socket, bytes, length) == (ssize_t)length;
}

/* Copies the command's output to stdout and stderr, and returns its exit status. */
static int relay_output(int socket) {
    char head[5], bytes[4096];
    uint32_t length;
    while (receive(socket, head, sizeof head)) {
        memcpy(&length, head + 1, sizeof length);
        while (length > 0) {
            size_t part = length < sizeof bytes ? length : sizeof bytes;
            if (!receive(socket, bytes, part))
                return NOT_STARTED;
            if (head[0] == LAUNCH_EXIT)
                return (unsigned char)bytes[0];
            (void)!write(head[0] == '2' ? 2 : 1, bytes, part);
            length -= (uint32_t)part;
        }
    }
    return tool_complain(NOT_STARTED, "the node's agent has ended");
}

/* --launch, in place of ssh and srun: passes the command for a host to the agent and its output back. The
 * exit status of the command. */
int tool_launch(int count, char **arguments) {
    int at = 1;
    /* ssh's options are ignored, since assay has its own connection; those in this list have a value. */
    for (; at < count && arguments[at][0] == '-'; at++)
        if (strlen(arguments[at]) == 2 && strchr("bcDEeFIiJLlmOopQRSWw", arguments[at][1]))
            at++;
    if (at + 1 >= count)
        return tool_complain(2, "--launch takes a socket, a host and a command");
    const char *user = strrchr(arguments[at], '@'), *host = user ? user + 1 : arguments[at];
    cleanup(text_clear) struct text request;
    text_init(&request, LAUNCH_REQUEST_MAX);
    int r = text_append(&request, host, strlen(host) + 1);
    for (at++; r == 0 && at < count; at++)
        r = text_printf(&request, "%s%s", arguments[at], at + 1 < count ? " " : "");
    struct sockaddr_un address = {.sun_family = AF_UNIX};
    if (r < 0 || strlen(arguments[0]) >= sizeof address.sun_path)
        return tool_complain(NOT_STARTED, "the command for %s is too long", host);
    memcpy(address.sun_path, arguments[0], strlen(arguments[0]) + 1);
    cleanup_close int connection = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (connect(connection, (struct sockaddr *)&address, sizeof address) < 0 ||
        send(connection, request.bytes, request.length, MSG_NOSIGNAL) != (ssize_t)request.length ||
        shutdown(connection, SHUT_WR) < 0)
        return tool_complain(NOT_STARTED, "cannot reach the node's agent: %s", strerror(errno));
    return relay_output(connection);
}
