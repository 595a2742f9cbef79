/*
 * A control: one thing about a node that can be set, in files of the kernel (TOOLS.md has the names, the
 * values and the files).
 *
 * A control looks (what is it now, what could it be), names the files that it may write, and plans the writes
 * that make it what was asked. It never writes itself: set.c does, once everything is kept that may change.
 */
#ifndef ASSAY_CONTROLS_CONTROL_H
#define ASSAY_CONTROLS_CONTROL_H

#include "engine/agent/controls/layout.h"
#include "engine/agent/controls/plan.h"
#include "engine/agent/controls/values.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>

/* In the order in which they are set, and why in that order: README.md. */
enum control_index {
    CONTROL_DAEMONS,
    CONTROL_HYPERTHREADS,
    CONTROL_GOVERNOR,
    CONTROL_TURBO,
    CONTROL_FREQUENCY,
    CONTROL_ENERGY_PREFERENCE,
    CONTROL_IDLE_STATES,
    CONTROL_UNCORE_FREQUENCY,
    CONTROL_NUMA_BALANCING,
    CONTROL_TRANSPARENT_HUGE_PAGES,
    CONTROL_ASLR,
    CONTROL_COUNT,
};

enum control_access { CONTROL_AVAILABLE, CONTROL_READ_ONLY, CONTROL_ABSENT, CONTROL_DENIED };

/* How a control stands. Memory that is lacking is noted in `values.error` and `error`. */
struct control_look {
    enum control_access access;
    char driver[64];
    char why[256];             /* why it is not available */
    struct values values;      /* none: it is not there */
    struct text value;         /* the same as a campaign would write it; control_look_at() fills it in */
    struct text possible;      /* words separated by blanks */
    char path[PLAN_PATH_SIZE]; /* one of its files, to see whether it may be written; "" for none */
    int error;
};

/* What a file of the kernel holds, and which words stand for it. */
enum attribute_codec {
    ATTRIBUTE_WORD,   /* as it is; also a number up to `max`, where that is not 0 */
    ATTRIBUTE_SWITCH, /* on: 1, or up to `max` where that is not 0; off: 0 */
    ATTRIBUTE_INVERSE_SWITCH,
    ATTRIBUTE_CHOICE, /* all words, the one that holds in brackets */
    ATTRIBUTE_NAMED,  /* a number up to `max`, some of which have a name */
};

struct attribute_name {
    const char *name; /* NULL after the last */
    unsigned number;
};

/* A kind of file of a control: where, and how its content is read. */
struct attribute {
    enum layout_scope scope;
    const char *folder, *file;
    const char *upper; /* of a pair of limits, whose lower one is `file` */
    enum attribute_codec codec;
    const char *words; /* that are possible; NULL: those in the file `list` beside it, if there is one */
    const char *list;
    unsigned max;
    const struct attribute_name *names; /* of numbers: instead of them, or (ATTRIBUTE_WORD) shown for them */
};

struct control {
    const char *name;
    const char *absent;    /* why it is absent, where look() finds no value */
    const char *read_only; /* why it is never set; NULL: it is */
    unsigned
        side_effects;  /* 1 << index of each control whose files the kernel changes along with this one's */
    bool shows_driver; /* that of cpufreq */
    /* The first whose files are there is the control; with a look() of its own, all of them are. */
    const struct attribute *attributes[4];
    void (*look)(const struct layout *layout, struct control_look *ret);
    /* The files that it may write, which need not be there, as writes of nothing; NULL: those of
     * `attributes`. */
    void (*files)(const struct layout *layout, struct plan *ret);
    /* -EINVAL with a sentence if ASKED is not one of its values here. */
    int (*plan)(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure);
};

/* The table. */
const struct control *control_at(enum control_index index);
/* CONTROL_COUNT: there is no such control. */
enum control_index control_find(const char *name);
/* The bits of SET and of all that change along with them, and along with those. */
unsigned control_closure(unsigned set);

/* How it stands, and whether this user may write. 0 or a negative errno (memory); RET is to be cleared
 * anyway.
 */
int control_look_at(const struct control *control, const struct layout *layout, struct control_look *ret);
void control_look_clear(struct control_look *look);
const char *control_access_name(enum control_access access);
void control_list_files(const struct control *control, const struct layout *layout, struct plan *ret);
int control_plan(const struct control *control, const struct layout *layout, const char *asked,
                 struct plan *ret, struct failure *failure);

/* ---- for the controls */

extern const struct control control_daemons, control_hyperthreads, control_governor, control_turbo,
    control_frequency, control_energy_preference, control_idle_states, control_uncore_frequency,
    control_numa_balancing, control_transparent_huge_pages, control_aslr;

/* It is not there, or cannot be set, and why. */
void control_refuse(struct control_look *look, enum control_access access, const char *why);
/* Appends to the possible values. */
void control_possible(struct control_look *look, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Keeps the file by which it is seen whether it may be written. */
void control_keep_path(struct control_look *look, const char *folder, const char *name);
/* For files(): FOLDER/FILE; and all files of an attribute. */
void control_add_file(struct plan *plan, const char *folder, const char *file);
void control_add_files(struct plan *plan, const struct layout *layout, const struct attribute *attribute);
/* Whether ASKED is one of the words of LIST, which are separated by blanks. 0, or -EINVAL with a sentence. */
int control_check_word(const char *asked, const char *list, struct failure *failure);

bool attribute_is_there(const struct attribute *attribute, const struct layout *layout);
/* ASKED in every file of it; as struct control's plan. */
int attribute_plan(const struct attribute *attribute, const struct layout *layout, const char *asked,
                   struct plan *ret, struct failure *failure);

#define CONTROL_NO_CPUFREQ                                                                                   \
    "the kernel has no driver for the processor's frequency (cpufreq): it is a virtual machine, or was "     \
    "started so"

#endif
