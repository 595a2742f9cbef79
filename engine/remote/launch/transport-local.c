#include "engine/remote/launch/transport-local.h"

#include "engine/remote/launch/agent-transport.h"

/* A transport to an agent of this machine that ends with its connection. With an image, the agent runs in it.
 */
int transport_local_new(struct event_loop *loop, const struct transport_local_options *options,
                        struct transport **ret, struct failure *failure) {
    const struct agent_image *image = options->image;
    const char *words[9] = {options->agent, "--directory", options->directory};
    const char *const bring[] = {"/bin/sh",
                                 "-c",
                                 agent_image_script,
                                 "assay-image",
                                 image ? image->name : NULL,
                                 image ? image->sha256 : NULL,
                                 NULL};
    const struct launcher_words all = {.start = image ? bring : NULL, .attach = words};
    size_t count = 3;
    if (options->remove_directory)
        words[count++] = "--remove-directory";
    if (options->root) {
        words[count++] = "--root";
        words[count++] = options->root;
    }
    if (image) {
        words[count++] = "--image";
        words[count++] = image->name;
    }
    const char *node = options->node ? options->node : "localhost";
    return agent_transport_new(launcher_local_new(loop, &all, node),
                               &(struct agent_transport_options){.image = image}, ret, failure);
}
