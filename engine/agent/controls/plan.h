/*
 * What has to be written for one control to be as asked: files and words in the order that works. When it is
 * carried out, each file is read, written where it differs, and read back.
 */
#ifndef ASSAY_CONTROLS_PLAN_H
#define ASSAY_CONTROLS_PLAN_H

#include "engine/agent/controls/lines.h"
#include "engine/agent/machine/machine.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum {
    PLAN_PATH_SIZE = 160,
    PLAN_VALUE_SIZE = 256,     /* of what a control's file holds, its NUL included */
    PLAN_WRITES_MAX = 1 << 20, /* of one control */
};

enum plan_kind {
    PLAN_WORD,   /* the file has the word, or `other` */
    PLAN_NUMBER, /* a number from `min` to `max` */
    PLAN_CHOICE, /* all words, the one that holds in brackets */
    PLAN_ALIAS,  /* a word that stands for another, which the file will show */
    PLAN_EXACT,  /* `content`, to the byte */
};

struct plan_write {
    char path[PLAN_PATH_SIZE];
    char wanted[64];
    char other[32]; /* "" for none */
    uint64_t min, max;
    enum plan_kind kind;
    bool lower; /* the lower limit of which the next write is the upper */
    int pu;     /* whose file it is; -1: no PU's */
    /* PLAN_EXACT: not owned. What is `wanted` is written before it, unless that is ""; `once` even if the
     * content is there already. */
    const char *content;
    bool once;
    bool late; /* the file may be gone again, with its PU */
    /* The result. */
    bool written;
    bool exact;      /* the file has the content */
    int error;       /* of the last write or reading */
    char before[64]; /* what was there before the last write; cut */
    char after[PLAN_VALUE_SIZE];
};

struct plan {
    struct plan_write *writes;
    size_t count, capacity;
    int error;                  /* the first, negative: not all writes are in it */
    struct plan_write spare[2]; /* stand in for those that are not */
};

/* A write of WANTED to FOLDER/NAME, which must hold that word then. The caller may change its kind. */
struct plan_write *plan_add(struct plan *plan, int pu, const char *folder, const char *name,
                            const char *wanted);
/* The same of a number. */
struct plan_write *plan_add_number(struct plan *plan, int pu, const char *folder, const char *name,
                                   uint64_t wanted);
/* The same of a file that must hold CONTENT, which has to outlive the plan. */
struct plan_write *plan_add_content(struct plan *plan, const char *path, const char *content);
/* A lower and an upper limit: the two writes, good until the next is added. */
struct plan_write *plan_add_limits(struct plan *plan, int pu, const char *folder, const char *lower,
                                   const char *upper, uint64_t min, uint64_t max);
void plan_clear(struct plan *plan);

/* With what files are written. */
struct write_context {
    const struct machine *machine;
    struct lines *lines;
    const char *control; /* whose lines they are */
    int64_t patience_ns; /* how long files may be busy, all together */
    unsigned changed;    /* writes that were done */
};

/* Carries out what differs, and reports each write as a line. Of a pair of limits that is written first which
 * keeps them in order. A file that is busy is tried again a few times. */
void plan_carry_out(struct plan *plan, struct write_context *context);
/* Writes what was there before, in reverse, but for files of PUs that are not in ONLINE. */
void plan_undo(struct plan *plan, struct write_context *context, const struct pu_set *online);
/* Whether something is not as wanted: reads until that is known. */
bool plan_is_due(struct plan *plan, const struct machine *machine);
/* Reads all of it again. */
void plan_check(struct plan *plan, const struct machine *machine);
/* Whether a write's file, as `after` has it, is as wanted. */
bool plan_holds(const struct plan_write *write);

/* Replaces "always [madvise] never" by the word in brackets; other values stay. */
void plan_choose(char *value);

#endif
