#include "engine/remote/launch/transport-local.h"

#include "engine/remote/launch/agent-transport.h"

int transport_local_new(struct event_loop *loop, const struct transport_local_options *options,
                        struct transport **ret, struct failure *failure) {
    const char *words[7] = {options->agent, "--directory", options->directory};
    size_t count = 3;
    if (options->remove_directory)
        words[count++] = "--remove-directory";
    if (options->root) {
        words[count++] = "--root";
        words[count++] = options->root;
    }
    const char *node = options->node ? options->node : "localhost";
    return agent_transport_new(launcher_local_new(loop, words, node), &(struct agent_transport_options){0},
                               ret, failure);
}
