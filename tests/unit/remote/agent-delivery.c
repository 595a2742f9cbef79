/*
 * Bringing the agent to a node, which here is this machine: the script runs under every sh that there is.
 * Login shells, and folders that are full, noexec or somebody else's: integration/remote/agent-delivery.sh.
 */
#include "engine/remote/launch/delivery.h"

#include "engine/foundation/clock.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/remote/channel/child.h"
#include "tests/test.h"
#include "tests/wait.h"

#include <dirent.h>
#include <fcntl.h>
#include <limits.h>
#include <sys/stat.h>
#include <sys/wait.h>

static const char *base; /* a folder for everything */

/* The other side, on this machine: the login shell and the sh of the test's choice. */
struct test_launcher {
    struct launcher head;
    const char *shell, *node_shell; /* paths */
    const char *const *environment; /* of what is run */
    unsigned runs;
    size_t cut; /* the input ends after so many bytes, as when a connection breaks; 0: it does not */
    char last_command[1024];
};

static int open_here(struct launcher *launcher, enum launcher_step step, const char *command,
                     const struct remote_channel_listener *listener, struct remote_channel **ret,
                     struct failure *failure) {
    struct test_launcher *self = (struct test_launcher *)launcher;
    snprintf(self->last_command, sizeof self->last_command, "%s", command);
    self->runs++;
    static const char own[] = "exec /bin/sh ";
    assert_memory_equal(command, own, strlen(own));
    command = test_formatted("exec %s %s", self->node_shell, command + strlen(own));
    cleanup_free char *cut = text_format("/usr/bin/head -c %zu | %s -c \"$0\"", self->cut, self->shell);
    const char *plain[] = {self->shell, "-c", command, NULL};
    const char *cutting[] = {"/bin/sh", "-c", cut, command, NULL};
    return child_channel_open(launcher->loop,
                              &(struct child_channel_options){.arguments = self->cut ? cutting : plain,
                                                              .environment = self->environment},
                              listener, ret, failure);
}

static const struct launcher_operations here = {.open = open_here};

static struct fixture {
    struct event_loop *loop;
    struct installation installation;
    struct agent_package *package;
    struct test_launcher launcher;
    char home[96], tools[96];
    char path_variable[256], home_variable[128];
    char *environment[8];
    char cache[128]; /* where the agent is to be */
} fixture;

/* ---- the node */

static void put_text(const char *folder, const char *name, const char *text, unsigned mode) {
    test_put_in(folder, name, text, strlen(text), mode);
}

/* A folder with just the tools that the script needs, and no compiler, so that what is missing can be chosen.
 */
static void link_tools(void) {
    static const char *const names[] = {"cat", "chmod", "dd", "find",  "id",    "ls",        "mkdir",
                                        "mv",  "rm",    "sh", "touch", "uname", "sha256sum", "sleep"};
    assert_int_equal(mkdir(fixture.tools, 0755), 0);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cleanup_free char *from = text_format("/usr/bin/%s", names[i]);
        cleanup_free char *other = text_format("/bin/%s", names[i]);
        cleanup_free char *to = file_join(fixture.tools, names[i]);
        assert_int_equal(symlink(file_exists(from) ? from : other, to), 0);
    }
}

static void set_path(bool all_tools) {
    snprintf(fixture.path_variable, sizeof fixture.path_variable, "PATH=%s%s", fixture.tools,
             all_tools ? ":/usr/bin:/bin" : "");
}

static void remove_tool(const char *name) {
    cleanup_free char *path = file_join(fixture.tools, name);
    assert_int_equal(unlink(path), 0);
}

/* It is compiled only where it arrives as it is. */
static const char tiny_agent[] =
    "#include <stdio.h>\n"
    "_Static_assert(sizeof \"'$HOME' `x` \\\\ ${y} $(z) \\\"\" == 26, \"another text\");\n"
    "int main(void) {\n    return puts(\"assay-agent \" ASSAY_VERSION) < 0;\n}\n";

static void copy(const char *from, const char *folder, const char *name, unsigned mode) {
    size_t length;
    const char *bytes = test_read(from, &length);
    test_put_in(folder, name, bytes, length, mode);
}

/* The agent of the build tree, the script of the source tree, and sources that are built in no time. */
static void install(void) {
    cleanup_free char *prefix = file_join(base, "prefix");
    copy(test_formatted("%s/libexec/assay/assay-agent", test_build()), prefix, "libexec/assay/assay-agent",
         0755);
    copy(test_formatted("%s/engine/remote/launch/delivery.sh", getenv("ASSAY_SOURCE")), prefix,
         "share/assay/agent-source/engine/remote/launch/delivery.sh", 0644);
    put_text(prefix, "share/assay/agent-source/engine/agent/main.c", tiny_agent, 0644);
    assert_ok(installation_init(&fixture.installation, prefix, NULL, &test_failure));
}

static void open_package(enum agent_kind kind) {
    struct failure failure = {0};
    agent_package_free(take_pointer(fixture.package));
    if (agent_package_new(&fixture.installation, kind, &fixture.package, &failure) < 0)
        fail_msg("%s", failure.text);
}

static int set_up(void **state) {
    memset(&fixture, 0, sizeof fixture);
    signal(SIGPIPE, SIG_IGN);
    base = test_own_folder();
    install();
    open_package(AGENT_AUTO);
    snprintf(fixture.home, sizeof fixture.home, "%s/alice", base);
    assert_int_equal(mkdir(fixture.home, 0755), 0);
    snprintf(fixture.cache, sizeof fixture.cache, "%s/.cache/assay", fixture.home);
    snprintf(fixture.tools, sizeof fixture.tools, "%s/tools", base);
    link_tools();
    set_path(true);
    snprintf(fixture.home_variable, sizeof fixture.home_variable, "HOME=%s", fixture.home);
    fixture.environment[0] = fixture.path_variable;
    fixture.environment[1] = fixture.home_variable;
    fixture.loop = event_loop_new(&test_failure);
    assert_non_null(fixture.loop);
    fixture.launcher =
        (struct test_launcher){.head = {.operations = &here, .loop = fixture.loop, .node = (char *)"test"},
                               .shell = "/bin/sh",
                               .node_shell = "/bin/sh",
                               .environment = (const char *const *)fixture.environment};
    return 0;
}

static int tear_down(void **state) {
    while (waitpid(-1, NULL, 0) > 0) /* what cancelled deliveries left */
        continue;
    event_loop_free(fixture.loop);
    agent_package_free(fixture.package);
    installation_clear(&fixture.installation);
    return 0;
}

/* ---- delivering */

struct outcome {
    unsigned calls;
    bool delivered, built, found;
    char path[512], hash[HASH_HEX_SIZE];
    struct failure failure;
};

static void on_outcome(const struct agent_delivered *delivered, const struct failure *failure,
                       void *context) {
    struct outcome *outcome = context;
    outcome->calls++;
    assert_true((delivered == NULL) != (failure == NULL));
    outcome->delivered = delivered != NULL;
    if (failure) {
        outcome->failure = *failure;
        return;
    }
    outcome->built = delivered->built;
    outcome->found = delivered->found;
    snprintf(outcome->path, sizeof outcome->path, "%s", delivered->path);
    snprintf(outcome->hash, sizeof outcome->hash, "%s", delivered->hash);
}

static struct agent_delivery *start(struct outcome *outcome) {
    struct agent_delivery *delivery = NULL;
    struct failure failure = {0};
    *outcome = (struct outcome){0};
    if (agent_delivery_start(&fixture.launcher.head, fixture.package, on_outcome, outcome, &delivery,
                             &failure) < 0)
        fail_msg("%s", failure.text);
    assert_int_equal(outcome->calls, 0);
    return delivery;
}

static void wait_for(struct outcome *outcome) {
    wait_until(fixture.loop, outcome->calls > 0, "no answer");
    assert_int_equal(outcome->calls, 1);
}

static struct outcome deliver(void) {
    struct outcome outcome;
    (void)start(&outcome);
    wait_for(&outcome);
    return outcome;
}

enum how { BROUGHT, FOUND, BUILT, BUILT_FOUND };

/* The agent is at FOLDER/agent-HASH, is what its name says, is private, and runs. */
static void expect(enum how how, const char *folder) {
    struct outcome outcome = deliver();
    if (!outcome.delivered)
        fail_msg("%s: %s", outcome.failure.place, outcome.failure.text);
    cleanup_free char *path = text_format("%s/agent-%s", folder, outcome.hash);
    assert_string_equal(outcome.path, path);
    assert_int_equal(outcome.built, how == BUILT || how == BUILT_FOUND);
    assert_int_equal(outcome.found, how == FOUND || how == BUILT_FOUND);
    if (!outcome.built)
        assert_string_equal(outcome.hash, fixture.package->binary_hash);
    char hex[HASH_HEX_SIZE];
    assert_int_equal(hash_file(outcome.path, hex, NULL, &test_failure), 0);
    assert_string_equal(hex, outcome.hash);
    struct stat status;
    assert_int_equal(lstat(outcome.path, &status), 0);
    assert_int_equal(status.st_mode, S_IFREG | 0700);
    assert_int_equal(lstat(folder, &status), 0);
    assert_int_equal(status.st_mode, S_IFDIR | 0700);
}

static void expect_sentences(int code, const char *const sentences[]) {
    struct outcome outcome = deliver();
    if (outcome.delivered)
        fail_msg("delivered, and not \"%s\"", sentences[0]);
    assert_string_equal(outcome.failure.place, "node test");
    for (size_t i = 0; sentences[i]; i++)
        if (!strstr(outcome.failure.text, sentences[i]))
            fail_msg("\"%s\" does not say \"%s\"", outcome.failure.text, sentences[i]);
    assert_int_equal(outcome.failure.code, code);
}

#define expect_failure(code, ...) expect_sentences(code, (const char *const[]){__VA_ARGS__, NULL})

/* How many names that begin with PREFIX are in FOLDER. */
static size_t count_names(const char *folder, const char *prefix) {
    DIR *entries = opendir(folder);
    size_t count = 0;
    for (struct dirent *entry; entries && (entry = readdir(entries));)
        count += strncmp(entry->d_name, prefix, strlen(prefix)) == 0 && strcmp(entry->d_name, ".") != 0 &&
                 strcmp(entry->d_name, "..") != 0;
    if (entries)
        closedir(entries);
    return count;
}

/* One agent, and nothing that is half done. */
static void expect_tidy(const char *folder, size_t agents) {
    assert_int_equal(count_names(folder, "agent-"), agents);
    assert_int_equal(count_names(folder, "."), 0);
}

/* ---- tests */

/* The words of the command are ours: nothing of what the node said is in it. */
TEST(command_has_only_our_words) {
    (void)deliver();
    const char *command = fixture.launcher.last_command;
    static const char begin[] = "exec /bin/sh -c 'eval \"$(dd bs=1 count=";
    assert_memory_equal(command, begin, sizeof begin - 1);
    const char *end = strstr(command, " 2>/dev/null)\"' assay-delivery ");
    assert_non_null(end);
    end += strlen(" 2>/dev/null)\"' ");
    assert_int_equal(strspn(end, "abcdefghijklmnopqrstuvwxyz0123456789_- "), strlen(end));
    assert_null(strstr(command, "alice"));
}

/* The node's /bin/sh may be any of these; each does all that the script can. */
TEST(node_shells) {
    static const char *const shells[] = {"/bin/dash", "/bin/bash", "/bin/busybox", "/bin/ksh", "/bin/zsh"};
    cleanup_free char *link = file_join(base, "sh"); /* they go by the name that they are called by */
    fixture.launcher.node_shell = link;
    for (size_t i = 0; i < sizeof shells / sizeof *shells; i++) {
        if (access(shells[i], X_OK) < 0) {
            print_message("SKIPPED: there is no %s\n", shells[i]);
            continue;
        }
        assert_true(unlink(link) == 0 || errno == ENOENT);
        assert_int_equal(symlink(shells[i], link), 0);
        assert_int_equal(file_remove_tree(fixture.cache, NULL), 0);
        open_package(AGENT_AUTO);
        expect(BROUGHT, fixture.cache);
        expect(FOUND, fixture.cache);
        open_package(AGENT_SOURCE);
        expect(BUILT, fixture.cache);
        expect(BUILT_FOUND, fixture.cache);
        expect_tidy(fixture.cache, 2);
    }
}

TEST(damaged_is_replaced) {
    expect(BROUGHT, fixture.cache);
    cleanup_free char *name = text_format("agent-%s", fixture.package->binary_hash);
    cleanup_free char *path = file_join(fixture.cache, name);
    put_text(fixture.cache, name, "#!/bin/sh\nexit 0\n", 0700); /* runs, and is another */
    expect(BROUGHT, fixture.cache);
    assert_int_equal(truncate(path, 1000), 0);
    expect(BROUGHT, fixture.cache);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(symlink("/bin/true", path), 0);
    expect(BROUGHT, fixture.cache);
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0755), 0);
    expect(BROUGHT, fixture.cache);
    /* Good, but others could have written to it, and may still have it open. */
    assert_int_equal(chmod(path, 0702), 0);
    expect(BROUGHT, fixture.cache);
    assert_int_equal(chmod(fixture.cache, 0730), 0);
    expect(BROUGHT, fixture.cache);
    assert_int_equal(chmod(fixture.cache, 0755), 0); /* only read */
    expect(FOUND, fixture.cache);
    expect_tidy(fixture.cache, 1);
}

/* The bytes are on the disk before the name is. Some sync take no file: then everything is written out. */
TEST(synced_before_named) {
    cleanup_free char *tool = text_format(
        "#!/bin/sh\nprintf 'sync' >>%s/synced\nfor name; do printf ' %%s/.new' \"${name%%%%/.new-*}\" "
        ">>%s/synced; done\n"
        "for there in %s/agent-*; do [ ! -e \"$there\" ] || printf ' late' >>%s/synced; done\n"
        "echo >>%s/synced\n[ $# -eq 0 ]\n",
        base, base, fixture.cache, base, base);
    put_text(fixture.tools, "sync", tool, 0755);
    expect(BROUGHT, fixture.cache);
    assert_file(test_formatted("%s/synced", base), test_formatted("sync %s/.new\nsync\n", fixture.cache));
    expect(FOUND, fixture.cache); /* needs none */
    assert_file(test_formatted("%s/synced", base), test_formatted("sync %s/.new\nsync\n", fixture.cache));
}

TEST(nothing_that_hashes) {
    set_path(false);
    remove_tool("sha256sum");
    expect_failure(-ENOEXEC, "there is neither sha256sum nor shasum nor openssl");
    expect_tidy(fixture.cache, 0);
}

static void fake_uname(const char *system, const char *machine) {
    cleanup_free char *content =
        text_format("#!/bin/sh\ncase $1 in -s) echo '%s' ;; *) echo '%s' ;; esac\n", system, machine);
    remove_tool("uname");
    put_text(fixture.tools, "uname", content, 0755);
}

TEST(other_machine_builds) {
    fake_uname("Linux", "riscv64");
    expect(BUILT, fixture.cache);
    expect(BUILT_FOUND, fixture.cache);
    expect_tidy(fixture.cache, 1);
    assert_int_equal(count_names(fixture.cache, "built-"), 1);
    /* A pointer that is nonsense, or points to nothing: built again. */
    cleanup_free char *pointer = text_format("built-%s-riscv64", fixture.package->source_hash);
    put_text(fixture.cache, pointer, "../../../bin/sh\n", 0600);
    expect(BUILT, fixture.cache);
    assert_int_equal(file_remove_tree(fixture.cache, NULL), 0);
    put_text(fixture.cache, pointer, "0000000000000000000000000000000000000000000000000000000000000000\n",
             0600);
    expect(BUILT, fixture.cache);
    open_package(AGENT_BINARY);
    expect_failure(-ENOEXEC, "the node is a Linux riscv64 and the binary is for Linux ");
}

TEST(compiler_that_fails) {
    fake_uname("Linux", "riscv64");
    /* Without a static libc it is linked to the shared one. */
    put_text(fixture.tools, "cc",
             "#!/bin/sh\ncase \" $* \" in *' -static '*) echo 'ld: cannot find -lc' >&2; exit 1 ;; esac\n"
             "exec /usr/bin/cc \"$@\"\n",
             0755);
    expect(BUILT, fixture.cache);
    assert_int_equal(file_remove_tree(fixture.cache, NULL), 0);
    put_text(fixture.tools, "cc",
             "#!/bin/sh\necho 'In file x' >&2\necho 'main.c:1: error: no such thing' >&2\nexit 1\n", 0755);
    expect_failure(-ENOEXEC, "cannot be built there", "cc: main.c:1: error: no such thing");
    expect_tidy(fixture.cache, 0);
    put_text(fixture.tools, "cc", "#!/bin/sh\nprintf '#!/bin/sh\\necho no; exit 3\\n' >agent\n", 0755);
    expect_failure(-ENOEXEC, "what was built there does not run: exit status 3: no");
    expect_tidy(fixture.cache, 0);
}

/* The binary is of the right machine and does not run (a kernel that is too old): built. */
TEST(binary_that_does_not_run) {
    assert_int_equal(truncate(fixture.installation.agent, 4096), 0);
    open_package(AGENT_AUTO);
    expect(BUILT, fixture.cache);
    expect(BUILT_FOUND, fixture.cache);
    open_package(AGENT_BINARY);
    expect_failure(-ENOEXEC, "the binary does not run there (exit status ");
}

TEST(real_sources) {
    installation_clear(&fixture.installation);
    assert_ok(installation_init(&fixture.installation, test_build(), NULL, &test_failure));
    open_package(AGENT_SOURCE);
    expect(BUILT, fixture.cache);
    expect(BUILT_FOUND, fixture.cache);
}

TEST(xdg_comes_first) {
    cleanup_free char *variable = text_format("XDG_CACHE_HOME=%s/of its own", fixture.home);
    fixture.environment[2] = variable;
    expect(BROUGHT, fixture.cache); /* a blank is in no command */
    variable[strlen(variable) - strlen("/of its own")] = '\0';
    cleanup_free char *other = text_format("%s/assay", fixture.home);
    expect(BROUGHT, other);
    expect(FOUND, other);
}

TEST(without_a_home) {
    fixture.environment[1] = (char *)"HOME=/nowhere";
    struct outcome outcome = deliver();
    assert_true(outcome.delivered);
    assert_null(strstr(outcome.path, "/nowhere"));
    if (!outcome.found)
        assert_int_equal(unlink(outcome.path), 0);
}

/* bash reads it where its input is a socket, as sshd's is. */
static void put_bashrc(const char *lines) {
    put_text(fixture.home, ".bashrc", lines, 0644);
    fixture.launcher.shell = "/bin/bash";
}

TEST(noisy_login) {
    put_bashrc("echo 'assay-0000000000000000 agent x y'; printf 'welcome\\nto the node'; echo x >&2\n");
    expect(BROUGHT, fixture.cache);
    expect(FOUND, fixture.cache);
}

TEST(no_sh) {
    fixture.launcher.shell = "/bin/false";
    expect_failure(-EPROTO, "the node's sh ended with exit status 1");
    fixture.launcher.shell = "/bin/true";
    expect_failure(-EPROTO,
                   "the login shell ended with exit status 0 and did not run the command for 'find'");
}

TEST(login_shells_that_print_much_or_end) {
    put_bashrc("printf '%260000s\\n' x\n");
    expect(BROUGHT, fixture.cache);
    put_bashrc("printf '%400000s\\n' x\n");
    expect_failure(-EPROTO, "the login shell printed more than 256 KiB before the answer to 'find'");
    put_bashrc("echo; echo come back tomorrow; echo; exit 0\n");
    expect_failure(-EPROTO, "may have 'exit', or the account no shell: come back tomorrow");
    put_bashrc("echo This account is currently not available.; exit 1\n");
    expect_failure(-EPROTO,
                   "the node's sh ended with exit status 1: This account is currently not available.");
}

/* Several build it at once. */
TEST(concurrent_builds) {
    enum { ALL = 4 };
    static struct outcome outcomes[ALL];
    open_package(AGENT_SOURCE);
    for (size_t i = 0; i < ALL; i++)
        (void)start(&outcomes[i]);
    for (size_t i = 0; i < ALL; i++) {
        wait_for(&outcomes[i]);
        assert_true(outcomes[i].delivered && outcomes[i].built);
    }
    assert_int_equal(count_names(fixture.cache, "."), 0);
    expect(BUILT_FOUND, fixture.cache);
}

/* Given up, or cut off by a connection that broke: nothing is taken for an agent that is none. */
TEST(cut_off) {
    struct outcome outcome;
    for (unsigned turns = 0; turns < 40; turns += 3) {
        struct agent_delivery *delivery = start(&outcome);
        for (unsigned i = 0; i < turns && outcome.calls == 0; i++)
            assert_true(event_loop_run_once(fixture.loop, EVENT_SECOND, NULL) >= 0);
        if (outcome.calls == 0)
            agent_delivery_cancel(delivery);
    }
    agent_delivery_cancel(NULL);
    assert_int_equal(file_remove_tree(fixture.cache, NULL), 0);
    fixture.launcher.cut = 100000; /* enough for the script, not for the binary */
    outcome = deliver();
    assert_false(outcome.delivered);
    assert_non_null(strstr(outcome.failure.text, "does not read back as it was written"));
    expect_tidy(fixture.cache, 0);
    fixture.launcher.cut = 0;
    expect(BROUGHT, fixture.cache);
    open_package(AGENT_SOURCE);
    const char *input = fixture.package->inputs[AGENT_INPUT_SOURCE].bytes;
    fixture.launcher.cut = (size_t)(strstr(input, "main(void)") - input);
    outcome = deliver();
    assert_false(outcome.delivered);
    assert_non_null(strstr(outcome.failure.text, "the sources did not come as a whole"));
    expect_tidy(fixture.cache, 1);
}

static void set_age(const char *folder, const char *name, int days) {
    cleanup_free char *path = file_join(folder, name);
    struct timespec times[2] = {{.tv_sec = clock_wall_ns() / 1000000000 - days * 86400}};
    times[1] = times[0];
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

static bool is_there(const char *folder, const char *name) {
    cleanup_free char *path = file_join(folder, name);
    return file_exists(path);
}

/* Agents stay: another machine that shares the folder may be running them. */
TEST(leftovers_are_removed) {
    put_text(fixture.cache, "agent-old", "x", 0700);
    assert_int_equal(chmod(fixture.cache, 0700), 0);
    put_text(fixture.cache, "built-old", "x", 0600);
    put_text(fixture.cache, ".new-old", "x", 0600);
    put_text(fixture.cache, ".new-recent", "x", 0600);
    put_text(fixture.cache, ".build-old/engine/x.c", "x", 0600);
    static const char *const old[] = {"agent-old", "built-old", ".new-old", ".build-old"};
    for (size_t i = 0; i < sizeof old / sizeof *old; i++)
        set_age(fixture.cache, old[i], 400);
    expect(BROUGHT, fixture.cache);
    assert_true(is_there(fixture.cache, "agent-old") && is_there(fixture.cache, "built-old") &&
                is_there(fixture.cache, ".new-recent"));
    assert_false(is_there(fixture.cache, ".new-old") || is_there(fixture.cache, ".build-old"));
}

TEST(open_folder_is_closed) {
    assert_int_equal(file_make_folders(fixture.cache, &test_failure), 0);
    assert_int_equal(chmod(fixture.cache, 0777), 0);
    expect(BROUGHT, fixture.cache);
}

TEST_EACH(set_up, tear_down)
