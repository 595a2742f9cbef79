/* Agents that set controls and end, in order or not: all comes back, and who finds something to do says so.
 */
#include "tests/test.h"
#include "tests/unit/agent/controls.h"
#include "tests/unit/agent/engine.h"

#include "engine/agent/controls/snapshot-store.h"
#include "engine/remote/link/facts.h"

#include <sched.h>
#include <sys/mount.h>

/* ---- an agent of the machine */

static void attach_to_machine(void) {
    engine_clear(&engine);
    engine_init(&engine);
    attach(&engine, (const char *const[]){"--directory", below("run"), "--remove-directory", "--root",
                                          machine_root, NULL});
}

/* Starts a tool as the engine does; the root is the agent's to tell. */
static void begin_tool(struct engine *self, const char *const *arguments) {
    const char *all[24] = {"/proc/self/exe"};
    for (size_t i = 0; arguments[i]; i++)
        all[1 + i] = arguments[i];
    run(self, all, PROTOCOL_MODE_NULL);
}

/* Its exit status; what it printed in `tool_output`. */
static uint32_t end_tool(struct engine *self) {
    struct protocol_exited exited;
    struct protocol_data data;
    text_reset(&tool_output);
    for (;;) {
        assert_true(receive(self));
        assert_int_equal(outbox_acknowledge(&self->outbox, frame.acknowledged, &failure), 0);
        if (frame.type == PROTOCOL_OUTPUT) {
            assert_int_equal(protocol_get_message(&frame, &data, &failure), 0);
            assert_int_equal(text_append(&tool_output, data.bytes, data.length), 0);
        }
        if (frame.type == PROTOCOL_EXITED)
            break;
    }
    assert_int_equal(protocol_get_message(&frame, &exited, &failure), 0);
    assert_int_equal(exited.flags, 0);
    return exited.code;
}

#define AGENT_TOOL(self, ...) (begin_tool(self, (const char *const[]){__VA_ARGS__, NULL}), end_tool(self))

#define SET_ALL                                                                                              \
    "--set-controls", "turbo=off", "hyperthreads=off", "governor=performance", "frequency=2GHz",             \
        "energy-preference=performance", "idle-states=C1", "uncore-frequency=2GHz", "numa-balancing=off",    \
        "transparent-huge-pages=never"

static void keep(struct engine *self) {
    assert_int_equal(
        AGENT_TOOL(self, "--snapshot-controls", "--session", self->name, "--label", "somebody@somewhere"), 0);
}

/* The only note of FACTS, or "". */
static const char *note_of(struct engine *self) {
    static char note[2048];
    struct node_facts *facts;
    begin(self, PROTOCOL_INSPECT);
    protocol_put_u32(&writer, self->next++);
    end(self);
    expect(self, PROTOCOL_FACTS);
    assert_int_equal(node_facts_parse(frame.payload + 4, frame.length - 4, &facts, &failure), 0);
    assert_true(facts->note_count <= 1);
    snprintf(note, sizeof note, "%s", facts->note_count ? facts->notes[0] : "");
    node_facts_free(facts);
    return note;
}

static pid_t parent_of(pid_t pid) {
    char path[64], line[512];
    snprintf(path, sizeof path, "/proc/%ld/stat", (long)pid);
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    fclose(file);
    return (pid_t)strtol(strrchr(line, ')') + 4, NULL, 10);
}

/* Gone, or dead and not reaped: where nobody reaps, that stays. */
static void wait_until_dead(pid_t pid) {
    struct owner owner;
    wait_until(NULL, owner_find(pid, &owner) == -ESRCH, "process %ld is there", (long)pid);
}

/* ---- in order */

TEST(who_leaves_puts_back) {
    enum { LEAVE, LEASE, TERMINATE, WAYS };
    machine_make("intel-pstate");
    for (int way = LEAVE; way < WAYS; way++) {
        attach_to_machine();
        assert_string_equal(note_of(&engine), "");
        keep(&engine);
        assert_int_equal(AGENT_TOOL(&engine, SET_ALL), 0);
        machine_expect("sys/devices/system/cpu/smt/control", "off\n");
        pid_t worker = engine.agent;
        if (way == LEAVE) {
            leave(&engine);
        } else if (way == LEASE) {
            set_lease(&engine, 50);
        } else {
            kill(worker, SIGTERM);
        }
        if (way != LEAVE)
            assert_int_equal(relay_end(&engine), 0);
        wait_until_dead(worker);
        machine_is_as_before();
    }
}

/* A command that sets, and is ended with the agent, does not set after the agent has put back. */
TEST(commands_end_before) {
    machine_make("two-sockets");
    attach_to_machine();
    keep(&engine);
    begin_tool(&engine, (const char *const[]){SET_ALL, NULL});
    expect(&engine, PROTOCOL_STARTED);
    leave(&engine);
    machine_is_as_before();
}

/* Of session 0, on its stream. */
TEST(the_stream_ends) {
    machine_make("intel-pstate");
    engine.session = 0;
    start(&engine, (const char *const[]){"--directory", below("run"), "--root", machine_root, NULL}, NULL);
    say_hello(&engine, 0);
    take_hello(&engine);
    keep(&engine);
    assert_int_equal(AGENT_TOOL(&engine, SET_ALL), 0);
    close_stream(&engine);
    assert_int_equal(relay_end(&engine), 0);
    machine_is_as_before();
}

/* ---- killed */

enum who { WORKER = 1, GUARDIAN = 2, BOTH = 3 };

static void kill_who(pid_t worker, pid_t guardian, enum who who) {
    /* Stopped first, so that neither sees the other die. */
    if (who == BOTH) {
        kill(guardian, SIGSTOP);
        kill(worker, SIGKILL);
        kill(guardian, SIGKILL);
    } else {
        kill(who == WORKER ? worker : guardian, SIGKILL);
    }
}

TEST(the_guardian_puts_back) {
    machine_make("intel-pstate");
    char expected[256];
    attach_to_machine();
    keep(&engine);
    assert_int_equal(AGENT_TOOL(&engine, SET_ALL), 0);
    kill(engine.agent, SIGKILL);
    assert_int_equal(relay_end(&engine), 1);
    machine_is_as_before();
    snprintf(expected, sizeof expected,
             "files that an earlier agent (session %s, label somebody@somewhere) had left", engine.name);
    assert_non_null(strstr(words, expected));
}

/* The files that SET_ALL changes, in that order, and what they had: the moments of a setting. */
static struct { char path[256], before[256]; } steps[128];
static unsigned step_count;

static const char *content_of(const char *path) {
    static char bytes[256];
    FILE *file = fopen(path, "re");
    assert_non_null(file);
    bytes[fread(bytes, 1, sizeof bytes - 1, file)] = '\0';
    fclose(file);
    return bytes;
}

static bool is_set(unsigned step) {
    return strcmp(content_of(steps[step].path), steps[step].before) != 0;
}

static void find_steps(void) {
    cleanup(text_clear) struct text lines;
    unsigned count = 0;
    step_count = 0;
    text_init(&lines, OUTPUT_MAX);
    assert_int_equal(TOOL("--snapshot-controls"), 0);
    assert_int_equal(text_append(&lines, tool_output.bytes, tool_output.length), 0);
    for (char *at = lines.bytes, *line; count < sizeof steps / sizeof *steps && (line = strsep(&at, "\n"));)
        if (strncmp(line, "file\t", 5) == 0) {
            snprintf(steps[count].path, sizeof steps[0].path, "%s%.180s", machine_root, field(line, 2));
            snprintf(steps[count].before, sizeof steps[0].before, "%s", content_of(steps[count].path));
            count++;
        }
    assert_int_equal(TOOL(SET_ALL), 0);
    for (unsigned i = 0; i < count; i++)
        if (is_set(i))
            steps[step_count++] = steps[i];
    assert_int_equal(TOOL("--restore-controls"), 0);
    assert_true(step_count > 3);
}

/* At any moment, whoever it is. */
TEST(killed_at_any_moment) {
    enum { MOMENTS = 12 };
    machine_make("intel-pstate");
    find_steps();
    file_remove_tree(on_machine("run"), NULL);
    machine_remember();
    unsigned in_the_middle = 0;
    for (unsigned round = 0; round < 3 * MOMENTS; round++) {
        enum who who = (enum who)(1 + round % 3);
        unsigned step = round / 3 * step_count / (MOMENTS - 1); /* so many have been set; or more */
        attach_to_machine();
        pid_t worker = engine.agent, guardian = parent_of(worker);
        keep(&engine);
        begin_tool(&engine, (const char *const[]){SET_ALL, NULL});
        expect(&engine, PROTOCOL_STARTED);
        if (step > 0)
            wait_until(NULL, is_set(step - 1), "%s is not set", steps[step - 1].path);
        kill_who(worker, guardian, who);
        relay_end(&engine);
        wait_until_dead(worker);
        wait_until_dead(guardian);
        if (who == BOTH) {
            struct text now = machine_state();
            in_the_middle += now.length != machine_before.length ||
                             memcmp(now.bytes, machine_before.bytes, now.length) != 0;
            text_clear(&now);
            assert_int_equal(TOOL("--restore-controls", "--abandoned"), 0);
        }
        machine_is_as_before();
    }
    print_message("%u times something was left to put back\n", in_the_middle);
    assert_true(in_the_middle >= MOMENTS - 1);
}

/* Whoever puts back can be killed, too. */
TEST(killed_while_putting_back) {
    machine_make("two-sockets");
    find_steps();
    file_remove_tree(on_machine("run"), NULL);
    machine_remember();
    for (unsigned round = 0; round < 10; round++) {
        int from;
        unsigned step = round * (step_count - 1) / 9;
        assert_int_equal(TOOL("--snapshot-controls"), 0);
        assert_int_equal(TOOL(SET_ALL), 0);
        pid_t child = tool_start((const char *const[]){"--restore-controls", NULL}, &from);
        wait_until(NULL, !is_set(step), "%s is set", steps[step].path);
        kill(child, SIGKILL);
        waitpid(child, NULL, 0);
        close(from);
        assert_int_equal(TOOL("--restore-controls"), 0);
        file_remove_tree(on_machine("run"), NULL); /* the folder of one that was killed at its last step */
        machine_is_as_before();
    }
}

/* ---- whose it is */

TEST(one_agent_holds_a_machine) {
    machine_make("intel-pstate");
    struct engine other;
    char expected[128];
    attach_to_machine();
    keep(&engine);
    engine_init(&other);
    attach(&other, (const char *const[]){"--directory", below("other"), "--root", machine_root, NULL});
    assert_string_equal(note_of(&other), "");
    assert_int_equal(AGENT_TOOL(&other, "--snapshot-controls"), 1);
    snprintf(expected, sizeof expected, "held\t%s\tsomebody@somewhere\talive\t", engine.name);
    assert_memory_equal(tool_output.bytes, expected, strlen(expected));
    assert_int_equal(AGENT_TOOL(&other, "--set-controls", "turbo=off"), 1);
    assert_memory_equal(tool_output.bytes, expected, strlen(expected));
    assert_int_equal(AGENT_TOOL(&other, "--restore-controls", "--abandoned"), 1);
    assert_memory_equal(tool_output.bytes, expected, strlen(expected));
    leave(&other); /* and what is another's stays */
    assert_int_equal(AGENT_TOOL(&engine, "--set-controls", "turbo=off"), 0);
    keep(&engine); /* again: told as it was */
    assert_string_not_equal(told("file\tturbo\t/sys/devices/system/cpu/intel_pstate/no_turbo\t0\\n"), "");
    leave(&engine);
    machine_expect("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    engine_clear(&other);
}

/* What is left here by one that was killed is put back before another keeps what it finds. */
TEST(the_next_snapshot_puts_back_first) {
    machine_make("intel-pstate");
    int status;
    pid_t child = fork();
    if (child == 0) {
        if (TOOL("--snapshot-controls", "--label", "first") != 0 || TOOL("--set-controls", "turbo=off") != 0)
            _exit(1);
        _exit(0);
    }
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    assert_int_equal(TOOL("--snapshot-controls", "--label", "second"), 0);
    assert_string_equal(field(told("restored"), 1), "1");
    assert_string_equal(field(told("restored"), 4), "first");
    assert_string_not_equal(told("file\tturbo\t/sys/devices/system/cpu/intel_pstate/no_turbo\t0\\n"), "");
    restore_all();
}

TEST(many_start_at_once) {
    enum { AGENTS = 8 };
    machine_make("two-sockets");
    pid_t children[AGENTS];
    int status, froms[AGENTS];
    pid_t child = fork();
    if (child == 0)
        _exit(TOOL("--snapshot-controls") != 0 || TOOL(SET_ALL) != 0);
    waitpid(child, &status, 0);
    assert_int_equal(status, 0);
    for (int i = 0; i < AGENTS; i++)
        children[i] = tool_start((const char *const[]){"--restore-controls", "--abandoned", NULL}, &froms[i]);
    unsigned put_back = 0, nothing = 0;
    for (int i = 0; i < AGENTS; i++) {
        drain(froms[i], &tool_output);
        close(froms[i]);
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_int_equal(status, 0);
        put_back += count_told("restored\t");
        nothing += count_told("nothing\t");
    }
    assert_int_equal(put_back, 1);
    assert_int_equal(nothing, AGENTS - 1);
    machine_is_as_before();
}

/* ---- what lies there */

/* Calls CHANGE with what is kept, and keeps that. */
static void change_snapshot(void (*change)(struct snapshot *snapshot)) {
    struct machine machine;
    struct snapshot_store store;
    struct snapshot snapshot;
    assert_int_equal(machine_open(machine_root, &machine, &failure), 0);
    assert_int_equal(store_open(&machine, STORE_LOCK, &store, &failure), 0);
    assert_int_equal(store_load(&store, &snapshot, &failure), 0);
    change(&snapshot);
    assert_int_equal(store_save(&store, &snapshot, &failure), 0);
    snapshot_clear(&snapshot);
    store_close(&store);
    machine_close(&machine);
}

/* Its number went to a process that began later. */
static void take_number(struct snapshot *snapshot) {
    snapshot->owner.start--;
}

TEST(a_number_may_go_to_another) {
    machine_make("intel-pstate");
    KEEP_AND_SET("turbo=off");
    assert_int_equal(TOOL("--restore-controls", "--abandoned"), 1);
    change_snapshot(take_number);
    assert_int_equal(TOOL("--set-controls", "turbo=on"), 1);
    assert_string_equal(field(told("held"), 3), "gone");
    assert_int_equal(TOOL("--restore-controls", "--abandoned"), 0);
    machine_is_as_before();
}

/* In a container: PID and mount namespaces of its own, with its own /proc. Keeps a snapshot there, writes a
 * byte, and lives until its input ends. Never returns. */
static _Noreturn void keep_in_container(int ready, int hold) {
    char byte = 0;
    if (test_own_mounts(CLONE_NEWPID) < 0)
        _exit(1);
    pid_t first = fork();
    if (first == 0) {
        if (mount("proc", "/proc", "proc", 0, NULL) < 0)
            _exit(1);
        int r = TOOL("--snapshot-controls") || TOOL("--set-controls", "turbo=off");
        (void)!write(ready, &byte, r == 0);
        (void)!read(hold, &byte, 1);
        _exit(r);
    }
    int status = 0;
    waitpid(first, &status, 0);
    _exit(WIFEXITED(status) ? WEXITSTATUS(status) : 1);
}

/* Its owner cannot be looked at from here, where its PID is another's or nobody's: it counts as alive. */
TEST(an_owner_in_a_container_is_alive) {
    test_need_own_mounts(CLONE_NEWPID);
    machine_make("intel-pstate");
    int ready[2], hold[2], status;
    char byte;
    assert_int_equal(pipe2(ready, O_CLOEXEC) + pipe2(hold, O_CLOEXEC), 0);
    pid_t child = fork();
    if (child == 0) {
        close(ready[0]);
        close(hold[1]);
        keep_in_container(ready[1], hold[0]);
    }
    close(ready[1]);
    close(hold[0]);
    bool kept = read(ready[0], &byte, 1) == 1;
    if (kept) {
        assert_int_equal(TOOL("--restore-controls", "--abandoned"), 1);
        assert_string_equal(field(told("held"), 3), "alive");
        assert_int_equal(TOOL("--snapshot-controls"), 1);
        machine_expect("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
    }
    close(hold[1]);
    close(ready[0]);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_true(kept);
    restore_all();
}

/* A node gets another name while it runs, by DHCP say: it is the same machine. */
TEST(another_name_is_the_same_machine) {
    machine_make("intel-pstate");
    KEEP_AND_SET("turbo=off");
    machine_put("proc/sys/kernel/hostname", "renamed\n");
    assert_int_equal(TOOL("--restore-controls"), 0);
    assert_string_equal(field(told("restored"), 1), "1");
    machine_expect("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    assert_false(file_exists(on_machine("run")));
}

TEST(a_boot_without_an_id_is_refused) {
    machine_make("intel-pstate");
    assert_int_equal(unlink(on_machine("proc/sys/kernel/random/boot_id")), 0);
    assert_int_equal(TOOL("--snapshot-controls"), 1);
    assert_non_null(strstr(tool_words.bytes, "boot_id', which tells a snapshot of this boot"));
    assert_string_equal(tool_output.bytes, "");
    assert_int_equal(TOOL("--set-controls", "turbo=off"), 1);
    machine_expect("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
    assert_int_equal(TOOL("--controls"), 0);
    assert_false(file_exists(on_machine("run")));
}

static void snapshot_path(char *path, size_t size) {
    snprintf(path, size, "%s%.512s", machine_root, field(told("snapshot"), 1));
}

/* A torn one is never believed, and nothing is set on top of it. */
TEST(a_torn_snapshot_is_known) {
    machine_make("intel-pstate:cores=1");
    char path[1024];
    cleanup(text_clear) struct text whole;
    text_init(&whole, 1 << 20);
    assert_int_equal(TOOL("--snapshot-controls"), 0);
    snapshot_path(path, sizeof path);
    assert_int_equal(TOOL("--set-controls", "turbo=off"), 0);
    assert_int_equal(file_read(path, &whole, NULL), 0);
    for (size_t length = 0; length < whole.length; length += 97) {
        assert_int_equal(truncate(path, (off_t)length), 0);
        assert_int_equal(TOOL("--restore-controls"), 1);
        assert_non_null(strstr(tool_words.bytes, "cannot be used"));
        assert_int_equal(TOOL("--snapshot-controls"), 1);
        assert_string_equal(tool_output.bytes, "");
        machine_expect("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
        assert_int_equal(file_replace(path, whole.bytes, whole.length, 0600, &failure), 0);
    }
    for (size_t at = 0; at < whole.length; at += 101) {
        whole.bytes[at] ^= 1;
        assert_int_equal(file_replace(path, whole.bytes, whole.length, 0600, &failure), 0);
        assert_int_equal(TOOL("--restore-controls"), 1);
        whole.bytes[at] ^= 1;
    }
    machine_expect("sys/devices/system/cpu/intel_pstate/no_turbo", "1\n");
    /* What others may write to, or a link to elsewhere, is none either. */
    assert_int_equal(file_replace(path, whole.bytes, whole.length, 0600, &failure), 0);
    assert_int_equal(chmod(path, 0622), 0);
    assert_int_equal(TOOL("--restore-controls"), 1);
    assert_int_equal(chmod(path, 0600), 0);
    char elsewhere[1100];
    snprintf(elsewhere, sizeof elsewhere, "%s.elsewhere", machine_root);
    assert_int_equal(rename(path, elsewhere), 0);
    assert_int_equal(symlink(elsewhere, path), 0);
    assert_int_equal(TOOL("--restore-controls"), 1);
    assert_int_equal(rename(elsewhere, path), 0);
    assert_int_equal(TOOL("--restore-controls"), 0);
    machine_expect("sys/devices/system/cpu/intel_pstate/no_turbo", "0\n");
}

/* An agent that starts does not wait for one that is at work here. */
TEST(who_is_at_work_is_not_waited_for) {
    machine_make("virtual");
    struct machine machine;
    struct snapshot_store store;
    assert_int_equal(TOOL("--snapshot-controls"), 0);
    assert_int_equal(machine_open(machine_root, &machine, &failure), 0);
    assert_int_equal(store_open(&machine, STORE_LOCK, &store, &failure), 0); /* as if for minutes */
    attach_to_machine();
    assert_string_equal(note_of(&engine), "");
    assert_int_equal(AGENT_TOOL(&engine, "--controls"), 0);
    assert_string_equal(field(told("held"), 3), "alive");
    leave(&engine);
    store_close(&store);
    machine_close(&machine);
    assert_int_equal(TOOL("--restore-controls"), 0);
}

/* Nor for ever for one that restores what a third has left: the agent says so, and serves. */
TEST(who_restores_is_not_waited_for_for_ever) {
    machine_make("virtual");
    struct machine machine;
    struct snapshot_store store;
    assert_int_equal(TOOL("--snapshot-controls"), 0);
    change_snapshot(take_number);
    assert_int_equal(machine_open(machine_root, &machine, &failure), 0);
    assert_int_equal(store_open(&machine, STORE_LOCK, &store, &failure), 0);
    attach_to_machine();
    assert_non_null(strstr(note_of(&engine), "'/run/assay' has been locked by another process"));
    leave(&engine);
    store_close(&store);
    machine_close(&machine);
    assert_int_equal(TOOL("--restore-controls"), 0);
}

TEST(a_folder_of_others_is_refused) {
    machine_make("virtual");
    assert_int_equal(mkdir(on_machine("run"), 0755), 0);
    assert_int_equal(mkdir(on_machine("run/assay"), 0755), 0);
    assert_int_equal(chmod(on_machine("run/assay"), 0777), 0);
    assert_int_equal(TOOL("--snapshot-controls"), 1);
    assert_non_null(strstr(tool_words.bytes, "can be written by others"));
    assert_int_equal(TOOL("--controls"), 1); /* but all that can be told is */
    assert_string_equal(told_of("control", "transparent-huge-pages", 2), "available");
    assert_non_null(strstr(tool_words.bytes, "can be written by others"));
    assert_int_equal(rmdir(on_machine("run/assay")), 0);
    assert_int_equal(symlink("/tmp", on_machine("run/assay")), 0);
    assert_int_equal(TOOL("--snapshot-controls"), 1);
    assert_string_equal(tool_output.bytes, "");
}

static int find_programs(void **state) {
    find_program();
    machine_find_program();
    return 0;
}

static int begin_test(void **state) {
    return machine_setup(state) < 0 ? -1 : set_up(state);
}

static int end_test(void **state) {
    return machine_teardown(state) < 0 ? -1 : tear_down(state);
}

TEST_EACH(begin_test, end_test)
TEST_GROUP(find_programs, NULL)
