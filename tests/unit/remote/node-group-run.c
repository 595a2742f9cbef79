/* Commands on many agents: ends, output kept, filed and cut, folding, input, and what goes wrong. */
#include "tests/test.h"
#include "tests/unit/remote/group-fixture.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/hash.h"

#include <sys/stat.h>

enum { NODES = 8 };

static struct node_result *run(const struct node_group_command *command) {
    struct node_result *given = NULL;
    assert_done(&fixture, node_group_run(fixture.group, command, &given, &fixture.failure));
    assert_non_null(given);
    return given;
}

/* Each node is told its number by the variable NUMBER. */
struct numbered {
    const char *script;
    char variable[32];
    const char *environment[2];
    const char *arguments[4];
    size_t refused;                    /* a node for which there is nothing to run; SIZE_MAX: none */
    uint64_t output_limit, timeout_ms; /* the first node has no time limit */
};

static int specify(size_t node, struct remote_command_specification *ret, void *context,
                   struct failure *failure) {
    struct numbered *numbered = context;
    if (node == numbered->refused)
        return failure_set(failure, -ENOENT, "there is nothing for this one");
    snprintf(numbered->variable, sizeof numbered->variable, "NUMBER=%zu", node + 1);
    numbered->environment[0] = numbered->variable;
    numbered->arguments[0] = "sh";
    numbered->arguments[1] = "-c";
    numbered->arguments[2] = numbered->script;
    *ret = (struct remote_command_specification){.arguments = numbered->arguments,
                                                 .environment = numbered->environment,
                                                 .output_limit = numbered->output_limit,
                                                 .timeout_ms = node > 0 ? numbered->timeout_ms : 0};
    return 0;
}

static struct node_result *run_script(const char *script) {
    struct numbered numbered = {.script = script, .refused = SIZE_MAX};
    return run(&(struct node_group_command){.specify = specify, .context = &numbered});
}

static void assert_hash(const struct node_stream *stream, const char *bytes, size_t length) {
    char hex[HASH_HEX_SIZE];
    assert_int_equal(hash_bytes(bytes, length, hex), 0);
    assert_string_equal(stream->hash, hex);
}

/* ---- ends */

TEST(specify_can_refuse_one) {
    group_open(4);
    struct numbered numbered = {.script = "echo $NUMBER", .refused = 2};
    results = run(&(struct node_group_command){.specify = specify, .context = &numbered});
    assert_int_equal(results[2].outcome, NODE_FAILED);
    assert_string_equal(results[2].failure.text, "there is nothing for this one");
    assert_string_equal(results[3].output.bytes, "4\n");
}

TEST(only_some_are_asked) {
    group_open(4);
    struct numbered numbered = {.script = "test $NUMBER != 4", .refused = SIZE_MAX};
    const bool some[] = {false, true, false, true};
    results = run(&(struct node_group_command){.specify = specify, .context = &numbered, .nodes = some});
    assert_int_equal(results[0].outcome, NODE_NOT_ASKED);
    assert_int_equal(results[1].outcome, NODE_DONE);
    assert_int_equal(results[2].outcome, NODE_NOT_ASKED);
    assert_true(node_results_failure(fixture.group, results, &fixture.failure) < 0);
    assert_string_equal(fixture.failure.text, "1 of 2 nodes failed: n4: exited with status 1");
    struct node_answer *answers;
    size_t count;
    count = node_results_fold(fixture.group, results, &answers);
    assert_int_equal(count, 2);
    node_answers_free(answers, count);
}

TEST(time_limit) {
    group_open(2);
    struct numbered numbered = {.refused = SIZE_MAX, .timeout_ms = 50};
    /* It cleaned up when it was told to end, and did not do its work. Again with twice the time where it was
     * told so before it could listen. */
    numbered.script = "[ $NUMBER = 1 ] || { exec 2>&-; trap 'exit 0' TERM; while :; do sleep 0.01; done; }";
    for (;; node_results_free(fixture.group, take_pointer(results)), numbered.timeout_ms *= 2) {
        assert_true(numbered.timeout_ms < WAIT_LIMIT_MS);
        results = run(&(struct node_group_command){.specify = specify, .context = &numbered});
        assert_true(results[1].exit.timed_out);
        if (!results[1].exit.signalled)
            break;
    }
    assert_int_equal(results[1].exit.code, 0);
    assert_true(node_result_is_good(&results[0]));
    assert_false(node_result_is_good(&results[1]));
    assert_int_equal(node_results_failure(fixture.group, results, &fixture.failure), -EIO);
    assert_string_equal(fixture.failure.text,
                        "1 of 2 nodes failed: n2: ran past its time limit and exited with status 0");
}

/* ---- folding */

/* A difference beyond what is kept is a difference. */
TEST(answers_differ_beyond_what_is_kept) {
    group_open(3);
    results = run_script("head -c 200000 /dev/zero; [ $NUMBER = 2 ] && echo a || echo b");
    struct node_answer *answers;
    size_t count;
    assert_int_equal(results[0].output.length, NODE_OUTPUT_KEPT);
    assert_int_equal(results[0].output.total, 200002);
    assert_memory_equal(results[0].output.bytes, results[1].output.bytes, NODE_OUTPUT_KEPT);
    count = node_results_fold(fixture.group, results, &answers);
    assert_int_equal(count, 2);
    assert_int_equal(answers[0].count, 2);
    node_answers_free(answers, count);
}

/* What each says of itself by its own name is one sentence. */
TEST(own_names_do_not_keep_sentences_apart) {
    group_open(4);
    results = run_script("echo \"n$NUMBER: broken, like n${NUMBER}0\" >&2; exit 2");
    assert_true(node_results_failure(fixture.group, results, &fixture.failure) < 0);
    /* n10 is no name of n1: there it differs. */
    assert_non_null(strstr(fixture.failure.text, "n1: exited with status 2: n1: broken, like n10"));
    node_results_free(fixture.group, take_pointer(results));
    results = run_script("echo \"n$NUMBER: broken\" >&2; exit 2");
    assert_true(node_results_failure(fixture.group, results, &fixture.failure) < 0);
    assert_string_equal(fixture.failure.text,
                        "4 of 4 nodes failed: n[1-4]: exited with status 2: NODE: broken");
    node_results_free(fixture.group, take_pointer(results));
    /* Nor do addresses; what only looks like one does. */
    results = run_script("echo \"at 10.77.0.$NUMBER port 22, [fe80::$NUMBER]: no.\" >&2; exit 2");
    assert_true(node_results_failure(fixture.group, results, &fixture.failure) < 0);
    assert_string_equal(fixture.failure.text, "4 of 4 nodes failed: n[1-4]: exited with status 2: at ADDRESS "
                                              "port 22, [ADDRESS]: no.");
    node_results_free(fixture.group, take_pointer(results));
    results = run_script("echo \"version 1.2.$NUMBER, 0.1.2.3.4, a::b, 10:$NUMBER\" >&2; exit 2");
    assert_true(node_results_failure(fixture.group, results, &fixture.failure) < 0);
    assert_non_null(strstr(fixture.failure.text, "n1: exited with status 2: version 1.2.1, 0.1.2.3.4, a::b"));
}

/* However many ways there are to fail, the sentence has an end that says how many are not told. */
TEST(a_sentence_has_an_end) {
    group_open(16);
    results = run_script("printf '%0150d' $NUMBER >&2; exit 1");
    assert_true(node_results_failure(fixture.group, results, &fixture.failure) < 0);
    assert_true(strlen(fixture.failure.text) < FAILURE_TEXT_SIZE - 1);
    assert_non_null(strstr(fixture.failure.text, " more for other reasons"));
}

/* ---- output */

TEST(output_goes_to_files) {
    group_open(3);
    const char *folder = group_path("outputs");
    assert_int_equal(mkdir(folder, 0777), 0);
    /* What is there of an earlier command must not stay, and a link must not be followed. */
    write_whole(group_path("outputs/n1.err"), "old", 3);
    write_whole(group_path("victim"), "victim", 6);
    assert_int_equal(symlink("../victim", group_path("outputs/n2.out")), 0);
    struct numbered numbered = {.script = "case $NUMBER in 1) printf small;; 2) seq 1 40000;; esac; "
                                          "[ $NUMBER != 2 ] || printf error >&2",
                                .refused = SIZE_MAX};
    results = run(&(struct node_group_command){.specify = specify, .context = &numbered, .folder = folder});
    assert_file(results[0].output.file, "small");
    assert_null(results[0].error.file);
    assert_false(file_exists(group_path("outputs/n1.err")));
    cleanup(text_clear) struct text expected;
    text_init(&expected, 1 << 20);
    for (int i = 1; i <= 40000; i++)
        text_printf(&expected, "%d\n", i);
    assert_string_equal(results[1].output.file, group_path("outputs/n2.out"));
    assert_file(results[1].output.file, expected.bytes);
    assert_int_equal(results[1].output.length, NODE_OUTPUT_KEPT);
    assert_memory_equal(results[1].output.bytes, expected.bytes, NODE_OUTPUT_KEPT);
    assert_int_equal(results[1].output.bytes[NODE_OUTPUT_KEPT], '\0');
    assert_hash(&results[1].output, expected.bytes, expected.length);
    assert_file(results[1].error.file, "error");
    assert_file(group_path("victim"), "victim");
    assert_null(results[2].output.file);
}

TEST(a_folder_that_cannot_be_written) {
    group_open(3);
    struct numbered numbered = {.script = "echo x", .refused = SIZE_MAX};
    struct node_group_command command = {
        .specify = specify, .context = &numbered, .folder = group_path("nowhere")};
    assert_int_equal(node_group_run(fixture.group, &command, &results, &fixture.failure), -ENOENT);
    /* A folder in the way of a file. */
    command.folder = group_path("outputs");
    assert_int_equal(mkdir(command.folder, 0777), 0);
    assert_int_equal(mkdir(group_path("outputs/n2.out"), 0777), 0);
    assert_true(node_group_run(fixture.group, &command, &results, &fixture.failure) < 0);
    assert_non_null(strstr(fixture.failure.text, "outputs/n2.out"));
    /* The group is as it was. */
    assert_int_equal(rmdir(group_path("outputs/n2.out")), 0);
    results = run(&command);
    assert_int_equal(node_results_failure(fixture.group, results, &fixture.failure), 0);
}

/* ---- what goes wrong */

static const char until_killed[] = "begun\nit\n";

/* What the node has printed is in its output's file as soon as it is here, and may come in two parts. */
static void kill_what_has_begun(struct event_source *self, void *context) {
    const pid_t *agent = context;
    struct stat status;
    char path[128]; /* group_path() has few, which the test needs meanwhile */
    snprintf(path, sizeof path, "%s/outputs/n2.out", fixture.folder);
    if (stat(path, &status) == 0 && status.st_size == (off_t)strlen(until_killed))
        kill(*agent, SIGKILL);
}

/* One is killed; the others end when that one is gone. */
TEST(an_agent_dies_in_mid_command) {
    group_open(4);
    pid_t agent = agent_link_greeting(node_group_link(fixture.group, 1))->pid;
    char script[160];
    snprintf(script, sizeof script,
             "echo begun; echo it; while kill -0 %ld 2>/dev/null && ! grep -q '^State:.Z' /proc/%ld/status; "
             "do sleep 0.01; done; echo done",
             (long)agent, (long)agent);
    struct numbered numbered = {.script = script, .refused = SIZE_MAX};
    struct node_group_command command = {
        .specify = specify, .context = &numbered, .folder = group_path("outputs"), .kept = 6};
    assert_int_equal(mkdir(command.folder, 0777), 0);
    struct event_source *timer =
        event_loop_add_timer(fixture.loop, EVENT_MILLISECOND, EVENT_MILLISECOND, kill_what_has_begun, &agent);
    results = run(&command);
    event_source_remove(timer);
    assert_int_equal(results[1].outcome, NODE_FAILED);
    assert_int_equal(results[1].failure.kind, FAILURE_SYSTEM);
    assert_string_equal(results[1].output.bytes, "begun\n");
    assert_hash(&results[1].output, until_killed, strlen(until_killed));
    for (size_t i = 0; i < 4; i++)
        if (i != 1)
            assert_hash(&results[i].output, "begun\nit\ndone\n", 14);
    assert_false(node_group_is_there(fixture.group, 1));
    node_results_free(fixture.group, take_pointer(results));
    /* And it is left out of what comes later. */
    results = run_script("echo again");
    assert_int_equal(results[1].outcome, NODE_SKIPPED);
    assert_non_null(strstr(results[1].failure.text, "there is no connection"));
    assert_string_equal(results[3].output.bytes, "again\n");
    assert_true(node_results_failure(fixture.group, results, &fixture.failure) < 0);
    assert_non_null(strstr(fixture.failure.text, "1 of 4 nodes failed: n2: there is no connection"));
}

static void run_within(struct event_source *self, void *context) {
    int *r = context;
    struct numbered numbered = {.script = "true", .refused = SIZE_MAX};
    struct node_group_command command = {.specify = specify, .context = &numbered};
    *r = node_group_run(fixture.group, &command, &results, &fixture.failure);
}

TEST(one_wait_at_a_time) {
    group_open(2);
    int r = 0;
    struct event_source *timer = event_loop_add_timer(fixture.loop, 0, 0, run_within, &r);
    results = run_script("true"); /* not over before the loop turns */
    assert_int_equal(r, -EBUSY);
    event_source_remove(timer);
}
