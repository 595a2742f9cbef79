/*
 * The testbed `local`: one node, the machine on which the engine runs. Nothing is reserved.
 *
 *     testbed: local
 *     testbed: {local: , deploy: debian12.tar.zst}
 */
#include "engine/testbed/testbed.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"
#include "engine/remote/launch/transport-local.h"
#include "engine/testbed/deploy.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

struct testbed_settings {
    struct deploy_settings deploy;
};

struct testbed {
    struct agent_image image; /* zeros: none */
    char *name;               /* host name */
    char *folder;             /* the agent's folder */
    char *agent_program;
    struct event_loop *loop;
};

/* ---- The campaign's part */

static const struct bind_field fields[] = {
    {.key = "local", .type = BIND_LATER, .kinds = 1 << DOCUMENT_NULL},
    {DEPLOY_ROW(testbed_settings, deploy)},
};
enum { FIELD_COUNT = sizeof fields / sizeof *fields };

static void free_settings(struct testbed_settings *settings) {
    if (settings)
        bind_clear(fields, FIELD_COUNT, settings);
    free(settings);
}

static void free_settings_pointer(struct testbed_settings **settings) {
    free_settings(*settings);
}

static int bind(const struct testbed_written *written, struct testbed_settings **ret,
                struct failure *failure) {
    cleanup(free_settings_pointer) struct testbed_settings *settings = xcalloc(1, sizeof *settings);
    int r = written->node ? bind_mapping(written->document, written->node, "'testbed'", fields, FIELD_COUNT,
                                         settings, failure)
                          : 0;
    r = r < 0 ? r : deploy_check(&settings->deploy, written, failure);
    if (r == 0)
        *ret = take_pointer(settings);
    return r;
}

static size_t expected_nodes(const struct testbed_settings *settings) {
    (void)settings;
    return 1;
}

static int describe(const struct testbed_settings *settings, struct text *ret) {
    deploy_describe(&settings->deploy, ret);
    return 0;
}

static void resolve(const struct testbed_settings *settings, cJSON *object) {
    if (settings->deploy.image)
        cJSON_AddItemToObject(object, "local", cJSON_CreateNull());
    if (settings->deploy.image)
        bind_resolve(fields, FIELD_COUNT, settings, object);
}

/* ---- The run's part */

static void free_testbed(struct testbed *testbed) {
    if (!testbed)
        return;
    system_image_clear(&testbed->image);
    free(testbed->name);
    free(testbed->folder);
    free(testbed->agent_program);
    free(testbed);
}

static void free_testbed_pointer(struct testbed **testbed) {
    free_testbed(*testbed);
}

/* Reserves nothing: chooses the node's name and the agent's folder, and reads the image to deploy. */
static int reserve(const struct testbed_settings *settings, const struct testbed_request *request,
                   struct testbed **ret, struct failure *failure) {
    cleanup(free_testbed_pointer) struct testbed *testbed = xcalloc(1, sizeof *testbed);
    char host[HOST_NAME_MAX + 1] = "localhost";
    gethostname(host, sizeof host - 1);
    /* The name becomes a folder in the archive, so that other characters are replaced. */
    for (char *at = host; *at; at++)
        if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789.-_", *at))
            *at = '_';
    if (host[0] == '\0' || host[0] == '.')
        memcpy(host, "localhost", sizeof "localhost");
    const char *workspace = request->workspace ? request->workspace : getenv("TMPDIR");
    if (!workspace || !workspace[0])
        workspace = "/tmp";
    if (workspace[0] != '/')
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                                "the workspace '%s' is not an absolute path on the node", workspace);
    testbed->name = xstrdup(host);
    testbed->folder = xformat("%s/assay-%s", workspace, request->run_id);
    testbed->agent_program = xstrdup(request->installation->agent);
    testbed->loop = request->loop;
    if (access(testbed->agent_program, X_OK) < 0)
        return failure_set(failure, -errno, "cannot run the agent '%s': %s; install assay again",
                           testbed->agent_program, strerror(errno));
    int r = deploy_open(&settings->deploy, request, &testbed->image, failure);
    if (r == 0)
        *ret = take_pointer(testbed);
    return r;
}

static size_t node_count(const struct testbed *testbed) {
    (void)testbed;
    return 1;
}

static const char *node_name(const struct testbed *testbed, size_t node) {
    (void)node;
    return testbed->name;
}

static int connect_node(struct testbed *testbed, size_t node, struct transport **ret,
                        struct failure *failure) {
    (void)node;
    struct transport_local_options options = {
        .agent = testbed->agent_program,
        .directory = testbed->folder,
        .image = testbed->image.tar ? &testbed->image : NULL,
        .remove_directory = true, /* release() does it too, unless the engine is killed */
        .node = testbed->name};
    return transport_local_new(testbed->loop, &options, ret, failure);
}

/* No lease: the agent on this machine ends when the engine does. */
static struct agent_link_policy policy(const struct testbed *testbed) {
    (void)testbed;
    return (struct agent_link_policy){0};
}

static struct testbed_agent agent(const struct testbed *testbed, const struct transport *transport) {
    (void)transport;
    return (struct testbed_agent){.path = testbed->agent_program};
}

static int release(struct testbed *testbed, struct failure *failure) {
    int r = file_remove_tree(testbed->folder, failure);
    free_testbed(testbed);
    return r;
}

const struct testbed_backend testbed_local = {
    .name = "local",
    .summary = "the machine at hand",
    .bind = bind,
    .free_settings = free_settings,
    .expected_nodes = expected_nodes,
    .describe = describe,
    .resolve = resolve,
    .reserve = reserve,
    .node_count = node_count,
    .node_name = node_name,
    .connect = connect_node,
    .policy = policy,
    .agent = agent,
    .deadline = testbed_job_deadline,
    .release = release,
};
