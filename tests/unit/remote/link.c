/* The link itself, files and folders, and every way in which an agent can fail to be there. */
#include "engine/agent/wire/protocol.h"
#include "tests/test.h"
#include "tests/unit/remote/fixture.h"

#include <dirent.h>
#include <sys/stat.h>

TEST_EACH(link_set_up, link_tear_down)

#define assert_failure(code, call, part)                                                                     \
    do {                                                                                                     \
        memset(&f.failure, 0, sizeof f.failure);                                                             \
        assert_int_equal(call, code);                                                                        \
        if (!strstr(f.failure.text, part)) {                                                                 \
            print_error("got: %s\nexpected: %s\n", f.failure.text, part);                                    \
            fail();                                                                                          \
        }                                                                                                    \
    } while (0)

/* ---- greeting and leaving */

TEST(the_agent_greets) {
    assert_int_equal(agent_link_state(f.link), AGENT_LINK_READY);
    const struct agent_greeting *greeting = agent_link_greeting(f.link);
    char host[256];
    gethostname(host, sizeof host);
    assert_string_equal(greeting->host_name, host);
    assert_int_equal(greeting->protocol, PROTOCOL_VERSION);
    char hash[HASH_HEX_SIZE];
    assert_int_equal(hash_file(test_agent(), hash, NULL, NULL), 0);
    assert_string_equal(greeting->sha256, hash);
    assert_true(process_lives(greeting->pid));
    struct stat status;
    assert_int_equal(stat(f.folder, &status), 0);
}

TEST(closing_in_order_ends_commands_and_leaves_files) {
    static const struct remote_command_callbacks none = {0};
    struct remote_command *command;
    assert_done(&f, agent_link_write_file_and_wait(f.link, "kept", "x", 1, 0600, &f.failure));
    assert_done(
        &f, remote_command_start(f.link,
                                 &(struct remote_command_specification){
                                     .arguments = SHELL("trap '' TERM; sleep 71 & wait"), .grace_ms = 100},
                                 &none, NULL, &command, &f.failure));
    while (!remote_command_pid(command))
        event_loop_run_once(f.loop, -1, NULL);
    pid_t pid = remote_command_pid(command), agent = agent_link_greeting(f.link)->pid;
    assert_done(&f, agent_link_close_and_wait(f.link, 10 * EVENT_SECOND, &f.failure));
    assert_int_equal(agent_link_state(f.link), AGENT_LINK_CLOSED);
    assert_null(agent_link_failure(f.link));
    assert_true(remote_command_ended(command));
    assert_false(process_lives(pid));
    assert_false(process_lives(agent));
    assert_true(file_exists(fixture_path(&f, "kept")));
    assert_failure(-ENOTCONN, agent_link_write_file_and_wait(f.link, "x", "", 0, 0600, &f.failure),
                   "there is no connection: it was closed");
    assert_string_equal(f.failure.place, "node testnode");
    remote_command_free(command);
}

static void on_any_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                          size_t length, void *context) {
    ++*(int *)context;
}

/* SIGTERM comes first, and then the whole grace. */
TEST(freeing_a_link_gives_commands_their_grace) {
    static const struct remote_command_callbacks callbacks = {.on_output = on_any_output};
    static const char *const scripts[] = {
        "trap 'sleep 0.3; echo x >tidy; exit' TERM; echo; while :; do sleep 0.02; done",
        "trap 'echo x >>told' TERM; echo; while :; do sleep 0.02; done"};
    struct remote_command *commands[2];
    int ready = 0;
    for (int i = 0; i < 2; i++)
        assert_done(&f, remote_command_start(f.link,
                                             &(struct remote_command_specification){
                                                 .arguments = SHELL(scripts[i]), .grace_ms = 800},
                                             &callbacks, &ready, &commands[i], &f.failure));
    while (ready < 2)
        assert_true(event_loop_run_once(f.loop, WAIT_LIMIT_MS * EVENT_MILLISECOND, NULL) > 0);
    pid_t stubborn = remote_command_pid(commands[1]);
    agent_link_free(f.link);
    f.link = NULL;
    assert_false(process_lives(stubborn));
    assert_true(file_exists(fixture_path(&f, "tidy")));
    assert_true(file_exists(fixture_path(&f, "told")));
    for (int i = 0; i < 2; i++)
        remote_command_free(commands[i]);
}

/* ---- an agent that dies */

TEST(a_killed_agent_without_family_is_told_by_its_signal) {
    kill(agent_link_greeting(f.link)->pid, SIGKILL);
    struct node_facts *facts;
    assert_failure(-ECONNRESET, agent_link_inspect_and_wait(f.link, &facts, &f.failure),
                   "the agent was killed by signal KILL");
    assert_string_equal(f.failure.place, "node testnode");
}

TEST(a_stopped_loop_interrupts_the_waiting) {
    event_loop_stop(f.loop);
    struct node_facts *facts;
    assert_failure(-EINTR, agent_link_inspect_and_wait(f.link, &facts, &f.failure), "interrupted");
    assert_int_equal(f.failure.kind, FAILURE_INTERRUPTED);
    event_loop_resume(f.loop);
    /* The answer to the first comes, and harms nobody. */
    assert_done(&f, agent_link_inspect_and_wait(f.link, &facts, &f.failure));
    node_facts_free(facts);
}

/* ---- agents that are none */

static int start_false_agent(const char *script, int64_t timeout_ns) {
    char path[128];
    snprintf(path, sizeof path, "%s/false-agent", f.folder);
    char content[512];
    int length = snprintf(content, sizeof content, "#!/bin/sh\n%s\n", script);
    assert_int_equal(file_replace(path, content, (size_t)length, 0700, NULL), 0);
    agent_link_free(f.link);
    f.link = NULL;
    struct transport *transport;
    struct transport_local_options options = {.agent = path, .directory = f.folder, .node = "testnode"};
    assert_int_equal(transport_local_new(f.loop, &options, &transport, NULL), 0);
    assert_int_equal(agent_link_new(f.loop, transport, NULL, &f.link, NULL), 0);
    memset(&f.failure, 0, sizeof f.failure);
    int r = agent_link_start(f.link, timeout_ns, &f.failure);
    return r < 0 ? r : agent_link_wait_ready(f.link, &f.failure);
}

TEST(what_is_no_agent_is_told_from_one) {
    assert_failure(-ECONNRESET,
                   start_false_agent("echo 'no disk' >&2; exit 3", WAIT_LIMIT_MS * EVENT_MILLISECOND),
                   "the agent ended with exit status 3: no disk");
    assert_string_equal(f.failure.place, "node testnode");
    assert_failure(-EPROTO,
                   start_false_agent("echo 'Welcome to this machine, enjoy'; sleep 1",
                                     WAIT_LIMIT_MS * EVENT_MILLISECOND),
                   "the agent broke the protocol: a frame of ");
    assert_failure(-ETIMEDOUT, start_false_agent("exec sleep 3", EVENT_SECOND / 5),
                   "the agent did not answer within 0.2 s");
    /* A header that says HELLO, version 77. */
    assert_failure(
        -EPROTO,
        start_false_agent("printf '\\006\\0\\0\\0\\001\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0"
                          "\\0ASAYM\\0'; cat >/dev/null",
                          WAIT_LIMIT_MS * EVENT_MILLISECOND),
        "the agent speaks protocol 77");
    /* REFUSE, "sorry". */
    assert_failure(
        -ECONNREFUSED,
        start_false_agent("printf '\\012\\0\\0\\0\\002\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0\\0"
                          "\\0\\005\\0\\0\\0sorry\\0'; cat >/dev/null",
                          WAIT_LIMIT_MS * EVENT_MILLISECOND),
        "sorry");
}

TEST(an_agent_that_cannot_be_started_is_named) {
    struct transport *transport;
    struct transport_local_options options = {
        .agent = "/nowhere/assay-agent", .directory = f.folder, .node = "n"};
    struct agent_link *link;
    assert_int_equal(transport_local_new(f.loop, &options, &transport, NULL), 0);
    assert_int_equal(agent_link_new(f.loop, transport, NULL, &link, NULL), 0);
    assert_failure(-ENOENT, agent_link_start(link, EVENT_SECOND, &f.failure),
                   "cannot start '/nowhere/assay-agent': No such file or directory");
    assert_string_equal(f.failure.place, "node n");
    assert_int_equal(agent_link_state(link), AGENT_LINK_CLOSED);
    agent_link_free(link);
}

TEST(a_run_directory_that_cannot_be_made_is_told) {
    agent_link_free(f.link);
    f.link = NULL;
    struct transport *transport;
    struct transport_local_options options = {
        .agent = test_agent(), .directory = "/proc/nowhere", .node = "n"};
    assert_int_equal(transport_local_new(f.loop, &options, &transport, NULL), 0);
    assert_int_equal(agent_link_new(f.loop, transport, NULL, &f.link, NULL), 0);
    assert_done(&f, agent_link_start(f.link, EVENT_SECOND, &f.failure));
    assert_failure(-ECONNRESET, agent_link_wait_ready(f.link, &f.failure),
                   "the agent ended with exit status 1: cannot make the run directory '/proc/nowhere': ");
}

/* ---- files */

/* Its number and its first word. */
static void on_file(struct agent_link *link, size_t path, const char *bytes, size_t length, void *context) {
    struct waiting *waiting = context;
    assert_int_equal(length, strlen(bytes));
    text_printf(waiting->bytes, "%zu:%.*s ", path, (int)strcspn(bytes, " \n"), bytes);
}

TEST(files_go_and_come) {
    static const char content[] = "a\0b\nc";
    assert_done(&f, agent_link_write_file_and_wait(f.link, "one", content, sizeof content, 0640, &f.failure));
    struct stat status;
    assert_int_equal(stat(fixture_path(&f, "one"), &status), 0);
    assert_int_equal(status.st_mode & 0777, 0640);
    cleanup(text_clear) struct text text;
    text_init(&text, 65536);
    assert_done(&f, agent_link_read_file_and_wait(f.link, "one", &text, &f.failure));
    assert_int_equal(text.length, sizeof content);
    assert_memory_equal(text.bytes, content, sizeof content);
    text_reset(&text);
    /* Over what was there, and an empty one. */
    assert_done(&f, agent_link_write_file_and_wait(f.link, "one", "", 0, 0600, &f.failure));
    assert_done(&f, agent_link_read_file_and_wait(f.link, "one", &text, &f.failure));
    assert_int_equal(text.length, 0);
    assert_done(&f, agent_link_read_file_and_wait(f.link, "/proc/version", &text, &f.failure));
    assert_memory_equal(text.bytes, "Linux version", 13);
    text_reset(&text);
    /* Several at once; what is not there, or no file, keeps no other from coming. */
    static const char *const paths[] = {"one", "/proc/sys/kernel/ostype", "/nowhere",
                                        ".",   "/proc/version",           NULL};
    struct waiting waiting = {.bytes = &text};
    int r = agent_link_read_files(f.link, paths, 65536, on_file, wait_on_done, &waiting, &f.failure);
    assert_failure(-EIO, wait_for_answer(f.link, r, &waiting, &f.failure),
                   "cannot read '/nowhere': No such file");
    assert_string_equal(text.bytes, "0: 1:Linux 4:Linux ");
    /* No part of anything is left lying about. */
    DIR *folder = opendir(f.folder);
    int entries = 0;
    while (readdir(folder))
        entries++;
    closedir(folder);
    assert_int_equal(entries, 3); /* ".", "..", "one" */
}

/* Which paths lead out: unit/agent/files.c. */
TEST(writing_over_a_link_replaces_the_link) {
    assert_int_equal(file_replace(fixture_path(&f, "target"), "before", 6, 0600, NULL), 0);
    assert_int_equal(symlink("target", fixture_path(&f, "file-link")), 0);
    assert_done(&f, agent_link_write_file_and_wait(f.link, "file-link", "x", 1, 0600, &f.failure));
    assert_file(fixture_path(&f, "target"), "before");
    assert_true(agent_link_write_file_and_wait(f.link, "../x", "x", 1, 0600, &f.failure) < 0);
}

TEST(odd_files_are_refused) {
    cleanup(text_clear) struct text text;
    text_init(&text, 100);
    assert_int_equal(mkfifo(fixture_path(&f, "fifo"), 0600), 0);
    assert_failure(-EIO, agent_link_read_file_and_wait(f.link, "fifo", &text, &f.failure),
                   "'fifo' is neither a file nor a folder");
    assert_failure(-EISDIR, agent_link_read_file_and_wait(f.link, f.folder, &text, &f.failure),
                   "it is not a regular file");
    assert_failure(-EIO, agent_link_read_file_and_wait(f.link, "/nowhere", &text, &f.failure),
                   "cannot read '/nowhere': No such file or directory");
    static char long_path[5000];
    memset(long_path, 'a', sizeof long_path - 1);
    assert_failure(-EIO, agent_link_read_file_and_wait(f.link, long_path, &text, &f.failure),
                   "is longer than 4095 bytes");
}
