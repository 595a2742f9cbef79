/* What the tests of the agent's tools share: nodes on which the tools are shell scripts of the test. */
#ifndef ASSAY_TESTS_UNIT_REMOTE_TOOL_FIXTURE_H
#define ASSAY_TESTS_UNIT_REMOTE_TOOL_FIXTURE_H

#include "tests/unit/remote/group-fixture.h"

/* Every node's tool from now on; "$1" is its name. */
static inline void tools_are(const char *script) {
    for (size_t i = 0; i < node_group_count(fixture.group); i++) {
        char name[32];
        snprintf(name, sizeof name, "n%zu/tool", i + 1);
        write_whole(group_path(name), script, strlen(script));
    }
}

/* That of one node. */
static inline void tool_is(size_t node, const char *script) {
    char name[32];
    snprintf(name, sizeof name, "n%zu/tool", node + 1);
    write_whole(group_path(name), script, strlen(script));
}

/* COUNT nodes n1, n2, ..., connected, and their tools. */
static inline void tools_open(size_t count, const char *script) {
    char agent[4096];
    const char *build = getenv("ASSAY_BUILD");
    assert_non_null(build);
    snprintf(agent, sizeof agent, "%s/tests/unit/scripted-agent", build);
    group_prepare(NULL);
    for (size_t i = 0; i < count; i++)
        group_add(i, agent);
    assert_done(&fixture, node_group_connect(fixture.group, &fixture.failure));
    tools_are(script);
}

/* What a tool has left in the file NAME of its node's folder; valid until the next call. */
static inline const char *tool_left(size_t node, const char *name) {
    static char bytes[4096];
    char path[64];
    snprintf(path, sizeof path, "n%zu/%s", node + 1, name);
    FILE *file = fopen(group_path(path), "re");
    assert_non_null(file);
    bytes[fread(bytes, 1, sizeof bytes - 1, file)] = '\0';
    fclose(file);
    return bytes;
}

#endif
