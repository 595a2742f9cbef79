/* The agent's tools on many nodes: their lines, their arguments, and every way in which they can fail. */
#include "tests/test.h"
#include "tests/unit/remote/tool-fixture.h"

#include "engine/remote/nodes/tools.h"

/* ---- lines */

TEST(lines) {
    char bytes[] = "one\n\nthree\nthe last has no end";
    char *at = bytes;
    assert_string_equal(tool_line_next(&at), "one");
    assert_string_equal(tool_line_next(&at), "");
    assert_string_equal(tool_line_next(&at), "three");
    assert_string_equal(tool_line_next(&at), "the last has no end");
    assert_null(tool_line_next(&at));
    assert_null(tool_line_next(&at));
    at = NULL;
    assert_null(tool_line_next(&at));
}

TEST(fields) {
    char line[] = "kind\ta\\tb\\nc\\\\d\t\t\\\\t\tends in \\";
    char *at = line;
    assert_string_equal(tool_field_next(&at), "kind");
    assert_string_equal(tool_field_next(&at), "a\tb\nc\\d");
    assert_string_equal(tool_field_next(&at), "");
    assert_string_equal(tool_field_next(&at), "\\t");
    assert_string_equal(tool_field_next(&at), "ends in \\");
    assert_null(at);
    assert_string_equal(tool_field_next(&at), ""); /* those that a line lacks */
    assert_string_equal(tool_field_next(&at), "");
}

/* ---- what is taken */

enum { NODES = 4, TEXT_SIZE = 256 };

struct taken {
    char text[NODES][TEXT_SIZE]; /* "KIND(REST)" of each line */
    size_t calls, asked;
    int refuse; /* a node whose lines are refused; -1: none */
    bool not_told;
    int status;
    char number[16];
    const char *arguments[4];
};

static int take(size_t node, const char *kind, char *at, void *context, struct failure *failure) {
    struct taken *taken = context;
    size_t used = strlen(taken->text[node]);
    taken->calls++;
    if ((int)node == taken->refuse)
        return failure_set(failure, -EPROTO, "the test does not take '%s'", kind);
    snprintf(taken->text[node] + used, TEXT_SIZE - used, "%s(%s)", kind, at ? at : "");
    return 0;
}

static bool is_told(size_t node, int status, void *context) {
    struct taken *taken = context;
    taken->asked++;
    taken->status = status;
    return !taken->not_told;
}

static const char *const some_arguments[] = {"--some", "a b;c", "", NULL};

static void run_some(struct taken *taken, const struct node_tool *given, struct failure **ret) {
    struct node_tool tool = *given;
    tool.take = take;
    tool.context = taken;
    if (!tool.arguments)
        tool.arguments = some_arguments;
    for (size_t i = 0; i < NODES; i++)
        taken->text[i][0] = '\0';
    taken->calls = taken->asked = 0;
    assert_done(&fixture, node_group_run_tool(fixture.group, &tool, ret, &fixture.failure));
}

TEST(lines_of_all_nodes) {
    struct taken taken = {.refuse = -1};
    tools_open(NODES, "printf 'count\\t%s\\n' $#; printf '<%s>' \"$@\"; echo; exit 0");
    run_some(&taken, &(struct node_tool){0}, &failures);
    for (size_t i = 0; i < NODES; i++) {
        assert_int_equal(failures[i].code, 0);
        assert_string_equal(taken.text[i], "count(3)<--some><a b;c><>()");
    }
}

TEST(lines_that_do_not_matter) {
    tools_open(2, "echo more");
    tool_is(1, "echo more; exit 1");
    assert_done(&fixture, node_group_run_tool(fixture.group, &(struct node_tool){.arguments = some_arguments},
                                              &failures, &fixture.failure));
    assert_int_equal(failures[0].code, 0);
    assert_int_equal(failures[1].code, -EIO);
}

static const char *const *numbered(size_t node, void *context) {
    struct taken *taken = context;
    snprintf(taken->number, sizeof taken->number, "%zu", node);
    taken->arguments[0] = "--number";
    taken->arguments[1] = taken->number;
    return taken->arguments;
}

TEST(arguments_of_each_and_some_nodes) {
    struct taken taken = {.refuse = -1};
    const bool nodes[NODES] = {false, true, true, false};
    tools_open(NODES, "echo \"$*\"");
    run_some(&taken, &(struct node_tool){.arguments_of = numbered, .nodes = nodes, .is_told = is_told},
             &failures);
    assert_string_equal(taken.text[0], "");
    assert_string_equal(taken.text[1], "--number 1()");
    assert_string_equal(taken.text[2], "--number 2()");
    assert_int_equal(taken.calls, 2);
    assert_int_equal(taken.asked, 2);
    for (size_t i = 0; i < NODES; i++)
        assert_int_equal(failures[i].code, 0);
}

/* ---- what goes wrong is the node's */

static void assert_fails(const char *script, const struct node_tool *tool, struct taken *taken, int code,
                         const char *sentence) {
    tools_open(2, "echo fine");
    tool_is(1, script);
    run_some(taken, tool, &failures);
    assert_int_equal(failures[0].code, 0);
    assert_string_equal(taken->text[0], "fine()");
    assert_int_equal(failures[1].code, code);
    assert_string_equal(failures[1].text, sentence);
}

TEST(statuses) {
    struct taken taken = {.refuse = -1};
    const struct node_tool plain = {0};
    assert_fails("echo some lines; echo 'wrong arguments' >&2; echo more >&2; exit 2", &plain, &taken, -EIO,
                 "the agent's tool exited with status 2: wrong arguments");
    assert_string_equal(taken.text[1], "some lines()"); /* they are taken as they come */
    assert_fails("echo 'no room' >&2; exit 1", &plain, &taken, -EIO,
                 "the agent's tool exited with status 1: no room");
    assert_fails("exit 1", &plain, &taken, -EIO, "the agent's tool exited with status 1");
    assert_fails("echo half; kill -9 $$", &plain, &taken, -EIO,
                 "the agent's tool was killed by signal 9 (Killed)");
}

/* A status of 1 is no failure of its own where somebody knows what the lines say. */
TEST(what_lines_say) {
    struct taken taken = {.refuse = -1};
    tools_open(2, "echo line; echo 'said too' >&2; exit 1");
    run_some(&taken, &(struct node_tool){0}, &failures);
    assert_int_equal(failures[0].code, -EIO);
    assert_string_equal(failures[0].text, "the agent's tool exited with status 1: said too");
    free(take_pointer(failures));
    run_some(&taken, &(struct node_tool){.is_told = is_told}, &failures);
    assert_int_equal(failures[0].code, 0);
    assert_int_equal(taken.status, 1);
    free(take_pointer(failures));
    taken.not_told = true;
    run_some(&taken, &(struct node_tool){.is_told = is_told}, &failures);
    assert_int_equal(failures[0].code, -EIO);
    assert_string_equal(failures[0].text, "the agent's tool exited with status 1: said too");
    free(take_pointer(failures));
    tools_are("echo line");
    run_some(&taken, &(struct node_tool){.is_told = is_told}, &failures);
    assert_int_equal(failures[1].code, -EPROTO);
    assert_string_equal(failures[1].text, "the output of the agent's tool lacks lines that were asked for");
}

TEST(time_limit) {
    struct taken taken = {.refuse = -1};
    tools_open(1, "echo line; exec sleep 60");
    run_some(&taken, &(struct node_tool){.timeout_ms = 20}, &failures);
    assert_int_equal(failures[0].code, -EIO);
    assert_non_null(strstr(failures[0].text, "ran past its time limit"));
}

TEST(too_much_output) {
    struct taken taken = {.refuse = -1};
    assert_fails("yes 'a line of a tool that does not stop' | head -c 17000000", &(struct node_tool){0},
                 &taken, -EFBIG, "the agent's tool printed more than 16 MiB");
}

TEST(just_enough_output) {
    struct taken taken = {.refuse = -1};
    tools_open(1, "yes 123456789abcdef | head -c 16777216"); /* 1 Mi lines of 16 bytes */
    run_some(&taken, &(struct node_tool){0}, &failures);
    assert_int_equal(failures[0].code, 0);
    assert_int_equal(taken.calls, 1 << 20);
}

TEST(a_nul_hides_nothing) {
    struct taken taken = {.refuse = -1};
    assert_fails("printf 'line\\n\\0line\\n'", &(struct node_tool){0}, &taken, -EPROTO,
                 "the agent's tool printed a NUL; expected lines of text");
}

TEST(a_line_that_is_refused) {
    struct taken taken = {.refuse = 1};
    assert_fails("echo bad; echo worse", &(struct node_tool){0}, &taken, -EPROTO,
                 "the test does not take 'bad'");
    assert_int_equal(taken.calls, 2); /* and the rest is not asked about */
}

TEST(a_node_that_is_gone) {
    struct taken taken = {.refuse = -1};
    tools_open(2, "echo fine");
    agent_link_close(node_group_link(fixture.group, 0));
    wait_until(fixture.loop, !node_group_is_there(fixture.group, 0), "it is there");
    run_some(&taken, &(struct node_tool){.is_told = is_told}, &failures);
    assert_true(failures[0].code < 0);
    assert_int_equal(failures[1].code, 0);
    assert_int_equal(taken.asked, 1);
}

/* The tools of the agent itself: started as its own program, wherever that lies. */
TEST(the_agent_is_its_tools) {
    struct taken taken = {.refuse = -1};
    static const char *const unknown[] = {"--help-me", NULL};
    group_open(2);
    run_some(&taken, &(struct node_tool){.arguments = unknown}, &failures);
    assert_int_equal(failures[1].code, -EIO);
    assert_string_equal(failures[1].text,
                        "the agent's tool exited with status 2: assay-agent: unknown option '--help-me'; see "
                        "--help");
}
