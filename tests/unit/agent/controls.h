/* The agent's tools at work on a made-up machine in a folder. */
#ifndef ASSAY_TESTS_CONTROLS_H
#define ASSAY_TESTS_CONTROLS_H

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/text.h"
#include "tests/machines/machine-tree.h"
#include "tests/test.h"

#include <dirent.h>
#include <fcntl.h>
#include <signal.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

enum { OUTPUT_MAX = 8 << 20 };

static char machine_program[512];
static const char *machine_root;
static struct text tool_output, tool_words; /* of the last tool */
static struct text machine_before;          /* what machine_is_as_before() compares with */

static inline int machine_setup(void **state) {
    (void)state;
    machine_root = test_memory_folder(); /* a tree is made and compared often */
    text_init(&tool_output, OUTPUT_MAX);
    text_init(&tool_words, OUTPUT_MAX);
    return 0;
}

static inline int machine_teardown(void **state) {
    (void)state;
    char errors[128];
    snprintf(errors, sizeof errors, "%s.err", machine_root);
    unlink(errors); /* of a tool that was started and killed */
    text_clear(&tool_output);
    text_clear(&tool_words);
    text_clear(&machine_before);
    return 0;
}

static inline void machine_find_program(void) {
    snprintf(machine_program, sizeof machine_program, "%s", test_agent());
    signal(SIGPIPE, SIG_IGN);
    umask(022);
}

/* A path below the root (test_formatted()). */
static inline const char *on_machine(const char *path) {
    return test_formatted("%s/%s", machine_root, path);
}

static inline void machine_put(const char *path, const char *content) {
    int file = open(on_machine(path), O_WRONLY | O_TRUNC | O_CREAT | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    assert_int_equal(file_write_all(file, content, strlen(content)), 0);
    close(file);
}

static inline void machine_expect(const char *path, const char *content) {
    assert_file(on_machine(path), content);
}

/* ---- all files of the machine, to be compared */

static inline int by_name(const struct dirent **a, const struct dirent **b) {
    return strcmp((*a)->d_name, (*b)->d_name);
}

static inline void add_tree(struct text *text, const char *folder) {
    struct dirent **entries;
    int count = scandir(folder, &entries, NULL, by_name);
    assert_true(count >= 0);
    for (int i = 0; i < count; i++) {
        const char *name = entries[i]->d_name;
        cleanup_free char *path = file_join(folder, name);
        struct stat status;
        assert_int_equal(lstat(path, &status), 0);
        if (strcmp(name, ".") != 0 && strcmp(name, "..") != 0) {
            assert_int_equal(text_printf(text, "%s %o\n", path, status.st_mode), 0);
            if (S_ISDIR(status.st_mode))
                add_tree(text, path);
            else if (S_ISREG(status.st_mode))
                assert_int_equal(file_read(path, text, NULL), 0);
        }
        free(entries[i]);
    }
    free(entries);
}

/* Names, modes and contents of all that there is. The caller clears it. */
static inline struct text machine_state(void) {
    struct text text;
    text_init(&text, 64 << 20);
    add_tree(&text, machine_root);
    return text;
}

/* All is to be as it is now again. */
static inline void machine_remember(void) {
    text_clear(&machine_before);
    machine_before = machine_state();
}

/* A new one, which is remembered. */
static inline void machine_make(const char *specification) {
    struct failure failure = {0};
    assert_int_equal(file_remove_tree(machine_root, &failure), 0);
    if (machine_tree_make(specification, machine_root, &failure) < 0)
        fail_msg("%s", failure.text);
    machine_remember();
}

/* Whether all is as it was; names the first line that is not. */
static inline void machine_is_as_before(void) {
    struct text now = machine_state();
    size_t at = 0;
    while (at < machine_before.length && at < now.length && machine_before.bytes[at] == now.bytes[at])
        at++;
    if (at < machine_before.length || at < now.length) {
        size_t from = at > 200 ? at - 200 : 0;
        fail_msg("differs: ...%.260s... where there was ...%.260s...", now.bytes + from,
                 machine_before.bytes + from);
    }
    text_clear(&now);
}

/* ---- tools */

static inline void drain(int from, struct text *ret) {
    char *space;
    ssize_t got;
    text_reset(ret);
    do {
        assert_int_equal(text_reserve(ret, 65536, &space), 0);
        got = read(from, space, 65536);
        if (got > 0)
            ret->length += (size_t)got;
    } while (got > 0);
    ret->bytes[ret->length] = '\0';
}

/* Starts the agent with WORDS (up to a NULL) and --root; its stderr goes to a file. */
static inline pid_t tool_start(const char *const *words, int *ret_output) {
    int ends[2];
    assert_int_equal(pipe2(ends, O_CLOEXEC), 0);
    char errors[128];
    snprintf(errors, sizeof errors, "%s.err", machine_root);
    pid_t child = fork();
    if (child == 0) {
        const char *all[32] = {machine_program, words[0], "--root", machine_root};
        for (size_t i = 1; words[i]; i++)
            all[3 + i] = words[i];
        dup2(open("/dev/null", O_RDONLY | O_CLOEXEC), 0);
        dup2(ends[1], 1);
        dup2(open(errors, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600), 2);
        execv(machine_program, (char **)all);
        _exit(126);
    }
    close(ends[1]);
    *ret_output = ends[0];
    return child;
}

/* Its exit status; what it said in `tool_output` and `tool_words`. */
static inline int tool_run(const char *const *words) {
    int from, status;
    pid_t child = tool_start(words, &from);
    drain(from, &tool_output);
    close(from);
    assert_int_equal(waitpid(child, &status, 0), child);
    char errors[128];
    snprintf(errors, sizeof errors, "%s.err", machine_root);
    text_reset(&tool_words);
    assert_int_equal(file_read(errors, &tool_words, NULL), 0);
    unlink(errors);
    assert_true(WIFEXITED(status));
    return WEXITSTATUS(status);
}

#define TOOL(...) tool_run((const char *const[]){__VA_ARGS__, NULL})

/* Sets after a snapshot. */
#define KEEP_AND_SET(...)                                                                                    \
    do {                                                                                                     \
        assert_int_equal(TOOL("--snapshot-controls"), 0);                                                    \
        assert_int_equal(TOOL("--set-controls", __VA_ARGS__), 0);                                            \
    } while (0)

static inline void restore_all(void) {
    assert_int_equal(TOOL("--restore-controls"), 0);
    machine_is_as_before();
}

/* The line of `tool_output` that begins with PREFIX; "" if there is none. Good until the next call. */
static inline const char *told(const char *prefix) {
    static char line[4096];
    size_t length = strlen(prefix);
    for (const char *at = tool_output.bytes; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        if (strncmp(at, prefix, length) == 0) {
            snprintf(line, sizeof line, "%.*s", (int)strcspn(at, "\n"), at);
            return line;
        }
    return "";
}

/* Field NUMBER (from 0) of a line; good until the next call. */
static inline const char *field(const char *line, unsigned number) {
    static char text[2048];
    while (number-- > 0) {
        line += strcspn(line, "\t");
        line += *line == '\t';
    }
    snprintf(text, sizeof text, "%.*s", (int)strcspn(line, "\t"), line);
    return text;
}

/* `control NAME ...`, `set NAME ...` */
static inline const char *told_of(const char *kind, const char *name, unsigned number) {
    char prefix[128];
    snprintf(prefix, sizeof prefix, "%s\t%s\t", kind, name);
    return field(told(prefix), number);
}

static inline unsigned count_told(const char *prefix) {
    unsigned count = 0;
    size_t length = strlen(prefix);
    for (const char *at = tool_output.bytes; at && *at; at = strchr(at, '\n') ? strchr(at, '\n') + 1 : NULL)
        count += strncmp(at, prefix, length) == 0;
    return count;
}

#endif
