/*
 * The writes that set one control: files and words, in the right order. When a plan is carried out, each file
 * is read, written where it differs, and read back.
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
    PLAN_VALUE_SIZE = 256,     /* of the content of a control's file, with its NUL */
    PLAN_WRITES_MAX = 1 << 20, /* of one control */
};

/* Which content a file must have after its write. */
enum plan_kind {
    PLAN_WORD,   /* the word `wanted`, or `also_accepted` */
    PLAN_NUMBER, /* a number from `min` to `max` */
    PLAN_CHOICE, /* all possible words, with `wanted` in brackets */
    PLAN_ALIAS,  /* anything: `wanted` stands for another word, which the file will show */
    PLAN_EXACT,  /* exactly `content` */
};

struct plan_write {
    char path[PLAN_PATH_SIZE];
    char wanted[64];
    char also_accepted[32]; /* content that fulfils the write, too; "": none */
    uint64_t min, max;
    enum plan_kind kind;
    bool lower; /* this is a lower limit, and the next write is its upper limit */
    int pu;     /* the PU whose file it is; -1: none */
    /* PLAN_EXACT: `wanted` is written before the content, unless it is "". */
    const char *content; /* borrowed */
    bool once;           /* write `wanted` once even if the file has the content already */
    bool late;           /* the file may be missing, if its PU is offline again */
    /* The result. */
    bool written;
    bool exact;                  /* the file has the content */
    int error;                   /* of the last write or reading; 0 or negative */
    char before[64];             /* the content before the last write, cut */
    char after[PLAN_VALUE_SIZE]; /* the content as last read, trimmed */
};

struct plan {
    struct plan_write *writes;
    size_t count, capacity;
    int error;                  /* 0, or the first error, negative: some writes are missing */
    struct plan_write spare[2]; /* returned instead of writes that could not be added */
};

/* Adds a write of the word WANTED to FOLDER/NAME (PLAN_WORD). The caller may change its kind. Never NULL:
 * where memory lacks, a spare write is returned and plan->error is set. */
struct plan_write *plan_add(struct plan *plan, int pu, const char *folder, const char *name,
                            const char *wanted);
/* Adds a write of a number (PLAN_NUMBER). */
struct plan_write *plan_add_number(struct plan *plan, int pu, const char *folder, const char *name,
                                   uint64_t wanted);
/* Adds a write of the exact CONTENT (PLAN_EXACT), which must outlive the plan. */
struct plan_write *plan_add_content(struct plan *plan, const char *path, const char *content);
/* Adds a lower and an upper limit. Returns the two writes, valid until the next is added. */
struct plan_write *plan_add_limits(struct plan *plan, int pu, const char *folder, const char *lower,
                                   const char *upper, uint64_t min, uint64_t max);
void plan_clear(struct plan *plan);

/* The machine and the report of writes. */
struct write_context {
    const struct machine *machine;
    struct lines *lines;
    const char *control;     /* name of the control in the lines */
    int64_t busy_timeout_ns; /* time left to retry busy files, in all */
    unsigned changed;        /* number of successful writes */
};

/* Writes the files that differ from the plan, and reports each write as a line. Of a pair of limits, the one
 * that keeps them in order is written first. Busy files are retried. */
void plan_carry_out(struct plan *plan, struct write_context *context);
/* Writes the contents before the plan, in reverse order; files of PUs that are not in ONLINE are left. */
void plan_undo(struct plan *plan, struct write_context *context, const struct pu_set *online);
/* True where some file differs from the plan; reads files up to the first difference. */
bool plan_is_due(struct plan *plan, const struct machine *machine);
/* Reads all files again, into `after` and `error`. */
void plan_check(struct plan *plan, const struct machine *machine);
/* True where the content in `after` is as planned. */
bool plan_is_fulfilled(const struct plan_write *write);

/* Replaces "always [madvise] never" by the word in brackets; other values stay. */
void plan_choose(char *value);

#endif
