/*
 * A made-up machine: the files of /sys and /proc in which one shows itself, as NAME.machine in this folder
 * describes them (README.md). In memory, or in a folder that stands for a machine's root.
 */
#ifndef ASSAY_TESTS_MACHINE_TREE_H
#define ASSAY_TESTS_MACHINE_TREE_H

#include "engine/foundation/failure.h"
#include "tests/machines/machine-pattern.h"

#include <stddef.h>

enum {
    MACHINE_TREE_PATH_SIZE = 256,     /* bytes of a path, with its NUL */
    MACHINE_TREE_CONTENT_MAX = 65536, /* bytes of a file */
    MACHINE_TREE_ENTRIES_MAX = 1 << 18,
};

enum machine_kind { MACHINE_FILE, MACHINE_LINK, MACHINE_FOLDER };

struct machine_entry {
    char *path; /* without a leading slash */
    enum machine_kind kind;
    unsigned mode;
    char *content; /* of a link: where to; of a folder: "" */
    char *rule;    /* what a write may be and does, for whoever plays the kernel; "" for none */
    size_t order;
    bool more; /* while reading: this one's content goes behind that of the one before */
};

struct machine_tree {
    struct machine_entry *entries; /* sorted by path */
    size_t count, room;
    struct machine_scope
        scope; /* the settings, those that the files have and those that SPECIFICATION gave */
};

/* SPECIFICATION: "NAME" or "NAME:SETTING=NUMBER,...", such as "two-sockets:cores=32,threads=1". */
int machine_tree_read(struct machine_tree *ret, const char *specification, struct failure *failure);
void machine_tree_clear(struct machine_tree *tree);

const struct machine_entry *machine_tree_find(const struct machine_tree *tree, const char *path);

/* Makes FOLDER, which may be there, and the machine in it. */
int machine_tree_write(const struct machine_tree *tree, const char *folder, struct failure *failure);

/* Both of the above at once. */
int machine_tree_make(const char *specification, const char *folder, struct failure *failure);

#endif
