/* What becomes of the run directory when the agent was told to remove it, for each way in which it can end.
 */
#include "engine/foundation/cleanup.h"
#include "tests/test.h"
#include "tests/unit/remote/fixture.h"

#include <sys/stat.h>
#include <sys/wait.h>

static const char *top, *outside;
static struct remote_command *running; /* the mess */

/* The run directory is `top`/run; it is not there yet. */
static int set_up(void **state) {
    memset(&f, 0, sizeof f);
    static char paths[2][64];
    top = test_own_folder();
    snprintf(paths[0], sizeof paths[0], "%s/run", top);
    snprintf(paths[1], sizeof paths[1], "%s/outside", top);
    f.folder = paths[0];
    outside = paths[1];
    assert_int_equal(mkdir(outside, 0700), 0);
    return 0;
}

static void let_go(void) {
    agent_link_free(f.link);
    event_loop_free(f.loop);
    f.link = NULL;
    f.loop = NULL;
}

static int tear_down(void **state) {
    let_go();
    remote_command_free(take_pointer(running));
    return 0;
}

static void connect_with(const char *directory, bool remove) {
    fixture_connect(&f, (struct transport_local_options){.directory = directory, .remove_directory = remove});
}

/* Files, a folder that cannot be written, a link out, and a process that has left everything, SIGTERM
 * included if the first argument says so, and goes on writing. */
static const char mess[] =
    "mkdir -p a/b && echo x >a/b/file && chmod 0555 a/b && ln -s ../outside out && "
    "(eval \"$0\"; setsid sh -c 'echo $$ >pid; while :; do : >a/$$; sleep 0.01; done' &) "
    "&& while ! [ -s pid ]; do sleep 0.01; done && echo ready && exec sleep 91";

static void on_output(struct remote_command *command, enum remote_stream stream, const char *bytes,
                      size_t length, void *context) {
    *(bool *)context = true;
}

/* Returns the process that goes on writing. */
static pid_t make_mess(bool stubborn) {
    static const struct remote_command_callbacks callbacks = {.on_output = on_output};
    static bool ready;
    ready = false;
    assert_done(&f, remote_command_start(
                        f.link,
                        &(struct remote_command_specification){
                            .arguments = SHELL(mess, stubborn ? "trap '' TERM" : ":"), .grace_ms = 200},
                        &callbacks, &ready, &running, &f.failure));
    wait_until(f.loop, ready, "it says nothing");
    pid_t pid = (pid_t)strtol(test_read(fixture_path(&f, "pid"), NULL), NULL, 10);
    assert_true(process_lives(pid));
    return pid;
}

static void put(const char *path) {
    assert_int_equal(file_replace(path, "x", 1, 0600, NULL), 0);
}

static char *in(const char *folder, const char *name) {
    static char path[2][256];
    static int turn;
    turn = !turn;
    snprintf(path[turn], sizeof path[turn], "%s/%s", folder, name);
    return path[turn];
}

TEST(a_killed_engine_leaves_nothing) {
    put(in(outside, "kept"));
    int ready[2];
    assert_int_equal(pipe(ready), 0);
    pid_t engine = fork();
    if (engine == 0) {
        connect_with(f.folder, true);
        pid_t pid = make_mess(true);
        (void)!write(ready[1], &pid, sizeof pid);
        for (;;)
            pause();
    }
    pid_t pid;
    close(ready[1]);
    assert_int_equal(read(ready[0], &pid, sizeof pid), sizeof pid);
    close(ready[0]);
    assert_true(file_exists(f.folder));
    kill(engine, SIGKILL);
    assert_int_equal(waitpid(engine, NULL, 0), engine);
    wait_until(NULL, !file_exists(f.folder), "it is there");
    assert_false(process_lives(pid)); /* before the folder */
    assert_true(file_exists(in(outside, "kept")));
}

static pid_t parent_of(pid_t pid) {
    char path[64], line[512] = "";
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    return (pid_t)strtol(strrchr(line, ')') + 4, NULL, 10);
}

TEST(a_killed_guardian_leaves_it) {
    connect_with(f.folder, true);
    pid_t worker = agent_link_greeting(f.link)->pid;
    kill(parent_of(worker), SIGKILL);
    assert_true(process_ends(worker));
    assert_true(file_is_folder(f.folder));
}

TEST(a_directory_that_had_content_is_left_alone) {
    assert_int_equal(mkdir(f.folder, 0700), 0);
    put(fixture_path(&f, "before"));
    connect_with(f.folder, true);
    assert_done(&f, agent_link_write_file_and_wait(f.link, "new", "x", 1, 0600, &f.failure));
    let_go();
    assert_true(file_exists(fixture_path(&f, "before")));
    assert_true(file_exists(fixture_path(&f, "new")));
}

TEST(an_empty_directory_is_taken_over) {
    assert_int_equal(mkdir(f.folder, 0755), 0);
    connect_with(in(top, "run//"), true);
    assert_done(&f, agent_link_write_file_and_wait(f.link, "new", "x", 1, 0600, &f.failure));
    let_go();
    assert_false(file_exists(f.folder));
}

TEST(without_being_asked_nothing_is_removed) {
    connect_with(f.folder, false);
    let_go();
    assert_true(file_is_folder(f.folder));
}

TEST(a_link_in_its_place_is_left_alone) {
    assert_int_equal(symlink("outside", f.folder), 0);
    connect_with(f.folder, true);
    assert_done(&f, agent_link_write_file_and_wait(f.link, "new", "x", 1, 0600, &f.failure));
    let_go();
    struct stat status;
    assert_int_equal(lstat(f.folder, &status), 0);
    assert_true(file_exists(in(outside, "new")));
}

TEST(what_takes_its_name_is_not_touched) {
    connect_with(f.folder, true);
    assert_done(&f, agent_link_write_file_and_wait(f.link, "new", "x", 1, 0600, &f.failure));
    assert_int_equal(rename(f.folder, in(top, "moved")), 0);
    assert_int_equal(mkdir(f.folder, 0700), 0);
    let_go();
    assert_true(file_is_folder(f.folder)); /* though it is empty */
    assert_true(file_is_folder(in(top, "moved")));
    assert_false(file_exists(in(top, "moved/new")));
}

TEST(a_directory_without_a_name_cannot_be_removed) {
    struct transport *transport;
    char path[128];
    snprintf(path, sizeof path, "%s/.", top);
    struct transport_local_options options = {
        .agent = test_agent(), .directory = path, .remove_directory = true, .node = "n"};
    f.loop = event_loop_new(&f.failure);
    assert_done(&f, transport_local_new(f.loop, &options, &transport, &f.failure));
    assert_done(&f, agent_link_new(f.loop, transport, NULL, &f.link, &f.failure));
    assert_done(&f, agent_link_start(f.link, AGENT_LINK_HELLO_TIMEOUT, &f.failure));
    assert_true(agent_link_wait_ready(f.link, &f.failure) < 0);
    assert_non_null(strstr(f.failure.text, "must end in a name"));
}

TEST_EACH(set_up, tear_down)
