/* A made-up machine in a folder, and one probe at work on it. */
#ifndef ASSAY_TESTS_MADE_TREE_H
#define ASSAY_TESTS_MADE_TREE_H

#include "engine/agent/probes/probe.h"
#include "engine/foundation/file.h"
#include "tests/test.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

static struct made_tree {
    const char *folder;
    struct machine machine;
    struct probing probing;
    char events[4096]; /* "KIND TEXT\n", since they were last asked for */
} tree;

static inline int made_tree_setup(void **state) {
    (void)state;
    struct failure failure;
    memset(&tree, 0, sizeof tree);
    tree.folder = test_memory_folder();
    return machine_open(tree.folder, &tree.machine, &failure);
}

static inline int made_tree_teardown(void **state) {
    (void)state;
    if (tree.probing.probe)
        probing_clear(&tree.probing);
    machine_close(&tree.machine);
    return 0;
}

TEST_EACH(made_tree_setup, made_tree_teardown)

/* CONTENT as it is into PATH, the folders above it made. */
static inline void put(const char *path, const char *content) {
    char full[512];
    snprintf(full, sizeof full, "%s/%s", tree.folder, path);
    char *slash = strrchr(full, '/');
    *slash = '\0';
    assert_int_equal(file_make_folders(full, NULL), 0);
    *slash = '/';
    int file = open(full, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
    assert_true(file >= 0);
    assert_int_equal(file_write_all(file, content, strlen(content)), 0);
    close(file);
}

static inline void take_away(const char *path) {
    assert_int_equal(unlinkat(tree.machine.root, path, 0), 0);
}

static inline void put_link(const char *target, const char *path) {
    char folder[512];
    snprintf(folder, sizeof folder, "%s/%s", tree.folder, path);
    *strrchr(folder, '/') = '\0';
    assert_int_equal(file_make_folders(folder, NULL), 0);
    assert_int_equal(symlinkat(target, tree.machine.root, path), 0);
}

static inline void note_event(void *context, const char *kind, const char *text) {
    (void)context;
    size_t length = strlen(tree.events);
    snprintf(tree.events + length, sizeof tree.events - length, "%s %s\n", kind, text);
}

/* The probe begins at second 100; what it says, a probe of that name before it is ended. */
static inline int begin_with(const char *name, const char *const *expectations, size_t count) {
    if (tree.probing.probe)
        probing_clear(&tree.probing);
    tree.events[0] = '\0';
    tree.probing = (struct probing){.probe = probe_find(name),
                                    .machine = &tree.machine,
                                    .expectations = expectations,
                                    .expectation_count = count,
                                    .event = note_event,

                                    .now_ns = 100 * PROBE_SECOND};
    assert_non_null(tree.probing.probe);
    return probing_begin(&tree.probing);
}

static inline int begin(const char *name) {
    return begin_with(name, NULL, 0);
}

/* "NAME:UNIT NAME:UNIT" */
static inline void expect_columns(const char *expected) {
    char columns[4096] = "";
    size_t length = 0;
    for (size_t i = 0; i < tree.probing.count; i++)
        length += (size_t)snprintf(columns + length, sizeof columns - length, "%s%s:%s", i > 0 ? " " : "",
                                   tree.probing.columns[i].name, tree.probing.columns[i].unit);
    assert_string_equal(columns, expected);
}

/* The values, each with a comma before it, of a sample that was due SECONDS after the beginning. */
static inline void expect_sample(double seconds, const char *expected) {
    tree.probing.now_ns = (int64_t)((100 + seconds) * 1e9);
    probing_sample(&tree.probing);
    tree.probing.values[tree.probing.length] = '\0';
    assert_string_equal(tree.probing.values, expected);
}

static inline void expect_events(const char *expected) {
    assert_string_equal(tree.events, expected);
    tree.events[0] = '\0';
}

#endif
