#include "engine/remote/launch/transport-ssh.h"

#include "engine/foundation/cleanup.h"
#include "engine/remote/ssh/config.h"

int transport_ssh_new(struct event_loop *loop, const struct transport_ssh_options *options,
                      struct transport **ret, struct failure *failure) {
    const char *node = options->node ? options->node : options->destination;
    cleanup_free char *user = NULL, *host = NULL;
    unsigned port;
    struct launcher *launcher;
    if (options->launcher) {
        int r = ssh_destination_parse(options->destination, &user, &host, &port, failure);
        if (r < 0)
            return r;
        launcher = launcher_command_new(loop, options->launcher, host, node);
    } else {
        launcher = launcher_ssh_new(loop, options->client, options->destination, node);
    }
    return agent_transport_new(launcher, &options->agent, ret, failure);
}
