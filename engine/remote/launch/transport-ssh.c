#include "engine/remote/launch/transport-ssh.h"

int transport_ssh_new(struct event_loop *loop, const struct transport_ssh_options *options,
                      struct transport **ret, struct failure *failure) {
    const char *node = options->node ? options->node : options->destination;
    struct launcher *launcher = options->command
                                    ? launcher_command_new(loop, options->command, false, node)
                                    : launcher_ssh_new(loop, options->client, options->destination, node);
    return agent_transport_new(
        launcher,
        &(struct agent_transport_options){.package = options->package,
                                          .folder = options->folder,
                                          .workspace = options->workspace,
                                          .label = options->label,
                                          .remove_directory = options->remove_directory,
                                          .write_anywhere = options->write_anywhere,
                                          .leave_controls = options->leave_controls},
        ret, failure);
}
