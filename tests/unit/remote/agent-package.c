/* What is brought to nodes: read from an installation that the test makes, and from the build tree. */
#include "engine/remote/launch/package.h"

#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "tests/test.h"

#include <elf.h>
#include <glob.h>
#include <unistd.h>

static const char script[] = "# a comment\nverb=$1\n\n    # indented\n    echo \"# no comment\"\n";
static const char bare_script[] = "verb=$1\necho \"# no comment\"\n";

static const char program[] = "int main(void) {\n    return '$HOME' == `x`; /* \\ */\n}\n";

static struct tree {
    const char *root;
    struct installation installation;
} tree;

static void put(const char *path, const void *bytes, size_t length) {
    test_put_in(tree.root, path, bytes, length, 0755);
}

static void put_text(const char *path, const char *text) {
    put(path, text, strlen(text));
}

static void put_binary(uint16_t machine) {
    Elf64_Ehdr header = {.e_machine = machine};
    memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_ident[EI_DATA] = ELFDATA2LSB;
    put("libexec/assay/assay-agent", &header, sizeof header);
}

#define SOURCE "share/assay/agent-source/"

static int set_up(void **state) {
    tree = (struct tree){.root = test_own_folder()};
    put_binary(EM_X86_64);
    put_text(SOURCE "engine/remote/launch/delivery.sh", script);
    put_text(SOURCE "engine/agent/main.c", program);
    put_text(SOURCE "engine/agent/b.h", "");
    put_text(SOURCE "engine/foundation/a.c", "a\n");
    put_text(SOURCE "engine/agent/notes.txt", "no source");
    put_text(SOURCE "engine/agent/.hidden.c", "no source");
    assert_int_equal(installation_init(&tree.installation, tree.root, NULL, &test_failure), 0);
    return 0;
}

static int tear_down(void **state) {
    installation_clear(&tree.installation);
    return 0;
}

static void free_package(struct agent_package **package) {
    agent_package_free(*package);
}

static const char *package_input(const struct agent_package *package, enum agent_input input,
                                 size_t *ret_length) {
    *ret_length = package->inputs[input].length;
    return *ret_length ? package->inputs[input].bytes : NULL;
}

static struct agent_package *open_package(enum agent_kind kind) {
    struct agent_package *package = NULL;
    struct failure failure = {0};
    if (agent_package_new(&tree.installation, kind, &package, &failure) < 0)
        fail_msg("%s", failure.text);
    assert_int_equal(package->kind, kind);
    return package;
}

TEST(content) {
    cleanup(free_package) struct agent_package *package = open_package(AGENT_AUTO);
    assert_string_equal(package->machine, "x86_64");
    char hex[HASH_HEX_SIZE];
    assert_int_equal(hash_file(tree.installation.agent, hex, NULL, &test_failure), 0);
    assert_string_equal(package->binary_hash, hex);
    /* The header says what is hashed. */
    size_t sources_length;
    const char *sources = package_input(package, AGENT_INPUT_SOURCE, &sources_length);
    assert_int_equal(hash_bytes(sources + strlen(bare_script), sources_length - strlen(bare_script), hex), 0);
    assert_string_equal(package->source_hash, hex);
    size_t length;
    assert_string_equal(package_input(package, AGENT_INPUT_SCRIPT, &length), bare_script);
    assert_int_equal(length, strlen(bare_script));
    assert_int_equal(package->script_length, length);
    const char *input = package_input(package, AGENT_INPUT_BINARY, &length);
    assert_int_equal(length, strlen(bare_script) + sizeof(Elf64_Ehdr));
    assert_memory_equal(input, bare_script, strlen(bare_script));
    assert_memory_equal(input + strlen(bare_script), ELFMAG, SELFMAG);
}

TEST(kinds) {
    size_t length;
    cleanup(free_package) struct agent_package *binary = open_package(AGENT_BINARY);
    assert_string_equal(binary->source_hash, "");
    assert_null(package_input(binary, AGENT_INPUT_SOURCE, &length));
    cleanup(free_package) struct agent_package *source = open_package(AGENT_SOURCE);
    assert_string_equal(source->binary_hash, "");
    assert_string_equal(source->machine, "");
    assert_null(package_input(source, AGENT_INPUT_BINARY, &length));
    static const struct {
        uint16_t machine;
        const char *name;
    } machines[] = {{EM_AARCH64, "aarch64"},
                    {EM_RISCV, "riscv64"},
                    {EM_PPC64, "ppc64le"},
                    {EM_S390, "unknown"},
                    {EM_68K, "unknown"}};
    for (size_t i = 0; i < sizeof machines / sizeof *machines; i++) {
        put_binary(machines[i].machine);
        cleanup(free_package) struct agent_package *package = open_package(AGENT_BINARY);
        assert_string_equal(package->machine, machines[i].name);
    }
}

/* The hash is of names as well as contents, and of nothing else. */
TEST(source_hash) {
    static const struct {
        const char *path, *content;
        bool same;
    } changes[] = {{SOURCE "engine/agent/notes.txt", "other notes", true},
                   {SOURCE "engine/foundation/a.c", "b\n", false},
                   {SOURCE "engine/foundation/c.h", "", false},
                   {SOURCE "engine/foundation/a.c", "b\n", true}};
    char before[HASH_HEX_SIZE];
    cleanup(free_package) struct agent_package *first = open_package(AGENT_SOURCE);
    snprintf(before, sizeof before, "%s", first->source_hash);
    for (size_t i = 0; i < sizeof changes / sizeof *changes; i++) {
        put_text(changes[i].path, changes[i].content);
        cleanup(free_package) struct agent_package *package = open_package(AGENT_SOURCE);
        assert_int_equal(strcmp(package->source_hash, before) == 0, changes[i].same);
        snprintf(before, sizeof before, "%s", package->source_hash);
    }
}

static void expect_refused(enum agent_kind kind, const char *sentence) {
    struct agent_package *package = NULL;
    struct failure failure = {0};
    assert_true(agent_package_new(&tree.installation, kind, &package, &failure) < 0);
    assert_null(package);
    if (!strstr(failure.text, sentence))
        fail_msg("\"%s\" does not say \"%s\"", failure.text, sentence);
    assert_non_null(strstr(failure.text, "cannot deliver the agent to nodes"));
}

static void remove_path(const char *path) {
    cleanup_free char *full = file_join(tree.root, path);
    assert_int_equal(file_remove_tree(full, NULL), 0);
}

TEST(refusals) {
    put_text(SOURCE "engine/agent/end.c", "no line end");
    expect_refused(AGENT_AUTO, "end.c' does not end with a newline");
    put(SOURCE "engine/agent/end.c", "a\0b\n", 4);
    expect_refused(AGENT_AUTO, "end.c' does not end with a newline");
    remove_path(SOURCE "engine/agent/end.c");
    put_text(SOURCE "engine/agent/a;reboot.c", "\n");
    expect_refused(AGENT_AUTO, "a shell would have to quote");
    remove_path(SOURCE "engine/agent/a;reboot.c");
    remove_path("libexec");
    expect_refused(AGENT_AUTO, "assay-agent'");
    cleanup(free_package) struct agent_package *source = open_package(AGENT_SOURCE); /* needs none */
    remove_path(SOURCE "engine/agent");
    remove_path(SOURCE "engine/foundation");
    expect_refused(AGENT_SOURCE, "has no sources of the agent");
    remove_path(SOURCE);
    expect_refused(AGENT_BINARY, "delivery.sh'");
}

/* ---- the sources: that they arrive as they are, agent-delivery.c */

/* What is delivered of the sources in the build tree is what the one line of engine/agent/README.md compiles.
 */
TEST(sources_of_the_build_tree) {
    const char *build = getenv("ASSAY_BUILD"), *top = getenv("ASSAY_SOURCE");
    if (!build || !top)
        test_skip("ASSAY_BUILD and ASSAY_SOURCE are not set");
    cleanup(text_clear) struct text readme;
    text_init(&readme, 1 << 20);
    cleanup_free char *readme_path = file_join(top, "engine/agent/README.md");
    assert_int_equal(file_read(readme_path, &readme, &test_failure), 0);
    char *line = strstr(readme.bytes, "\ncc -O2 -static ");
    assert_non_null(line);
    line++;
    line[strcspn(line, "\n")] = '\0';
    size_t count = 0;
    char *rest = NULL;
    for (char *word = strtok_r(line, " ", &rest); word; word = strtok_r(NULL, " ", &rest)) {
        if (strncmp(word, "engine/", 7) != 0)
            continue;
        cleanup_free char *pattern = file_join(top, word);
        glob_t found;
        assert_int_equal(glob(pattern, 0, NULL, &found), 0);
        for (size_t i = 0; i < found.gl_pathc; i++, count++) {
            cleanup_free char *delivered =
                text_format("%s/share/assay/agent-source/%s", build, found.gl_pathv[i] + strlen(top) + 1);
            if (!file_exists(delivered))
                fail_msg("'%s' is not delivered", found.gl_pathv[i]);
        }
        globfree(&found);
    }
    cleanup_free char *pattern = text_format("%s/share/assay/agent-source/engine/*/*.c", build);
    glob_t found;
    cleanup_free char *deeper = text_format("%s/share/assay/agent-source/engine/*/*/*.c", build);
    assert_int_equal(glob(pattern, 0, NULL, &found), 0);
    assert_int_equal(glob(deeper, GLOB_APPEND, NULL, &found), 0);
    assert_int_equal(found.gl_pathc, count); /* and none is delivered that is not compiled */
    globfree(&found);
}

/* ---- the command */

TEST(command) {
    cleanup(free_package) struct agent_package *package = open_package(AGENT_AUTO);
    cleanup(text_clear) struct text command;
    text_init(&command, 4096);
    struct failure failure = {0};
    const char *const good[] = {"--attach", "0123456789abcdef", "--label", "a_b@c%d+e=f:g,h.i/j-k", NULL};
    assert_int_equal(agent_package_command(package, NULL, good, &command, &failure), 0);
    cleanup_free char *expected =
        text_format("' ~/.cache/assay/agent-%s --attach 0123456789abcdef --label a_b@c%%d+e=f:g,h.i/j-k",
                    package->binary_hash);
    assert_string_equal(strrchr(command.bytes, '\''), expected);
    text_reset(&command);
    const char *const none[] = {NULL};
    assert_int_equal(agent_package_command(package, "/tmp/assay-0/agent-x", none, &command, &failure), 0);
    assert_memory_equal(command.bytes, "exec /bin/sh -c '", 17);
    assert_string_equal(strrchr(command.bytes, '\''), "' /tmp/assay-0/agent-x");
    static const char *const bad[] = {"",   "a b", "a;b", "$x", "`x`", "a\nb",    "'",
                                      "\"", "\\",  "~",   "*",  "!",   "\xc3\xa9"};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const char *const arguments[] = {"--label", bad[i], NULL};
        failure = (struct failure){0};
        text_reset(&command);
        assert_int_equal(agent_package_command(package, NULL, arguments, &command, &failure), -EINVAL);
        assert_int_equal(failure.kind, FAILURE_INPUT);
        assert_int_equal(agent_package_command(package, bad[i], none, &command, &failure), -EINVAL);
    }
}

TEST_EACH(set_up, tear_down)
