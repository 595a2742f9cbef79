/*
 * What a bed is to be: the options of `bed up`, as bed.c's help lists them.
 */
#ifndef ASSAY_TEST_BED_SETTINGS_H
#define ASSAY_TEST_BED_SETTINGS_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    SETTINGS_NODES_MAX = 1000,
    SETTINGS_SHARES_MAX = 8,
    SETTINGS_SHARE_LENGTH = 115, /* characters of its path: mounts.c puts a node's folder before it */
    SETTINGS_SSHD_MAX = 32,
    SETTINGS_WORD_SIZE = 128, /* bytes of a name, a size, one sshd option, with its NUL */
};

#define SETTINGS_SHM_SIZE "64m"

struct settings {
    int nodes;
    char names[SETTINGS_WORD_SIZE];   /* with one '%', which stands for the node's number */
    char user[SETTINGS_WORD_SIZE];    /* whom clients log in as */
    char shell[SETTINGS_WORD_SIZE];   /* that user's login shell; empty: /bin/bash */
    char gateway[SETTINGS_WORD_SIZE]; /* name of the only way to the nodes; empty: none */
    char disk_size[SETTINGS_WORD_SIZE], tmp_size[SETTINGS_WORD_SIZE];
    bool home_read_only, home_noexec, tmp_noexec, no_compiler;
    const char
        *shares[SETTINGS_SHARES_MAX]; /* folders of this machine that every node sees at the same place */
    int share_count;
    const char *sshd[SETTINGS_SSHD_MAX]; /* "Keyword value" lines of every node's sshd_config */
    int sshd_count;
    const char *machine; /* of tests/machines, whose files the nodes have; NULL: plain files */
    pid_t owner;         /* the bed goes down when this process ends; 0: nobody's */
};

/* Reads the arguments after `up`, COUNT of them; the settings keep pointers into ARGUMENTS. */
int settings_read(struct settings *settings, int count, char *const *arguments, struct failure *failure);

/* A whole number from MINIMUM to MAXIMUM, all of TEXT. -EINVAL without a sentence. */
int settings_number(const char *text, long minimum, long maximum, long *ret);

/* The name of node NUMBER into NAME. */
void settings_name(const struct settings *settings, int number, char name[SETTINGS_WORD_SIZE]);

#endif
