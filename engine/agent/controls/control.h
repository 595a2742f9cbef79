/*
 * A control: one thing about a node that can be set, in files of the kernel (TOOLS.md has the names, the
 * values and the files). One file of this folder each.
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

/* How a control stands. */
struct control_look {
    enum control_access access;
    char driver[64];
    char why[256];             /* why it is not available */
    struct text value;         /* as a campaign would write it */
    struct text possible;      /* parted by blanks */
    char path[PLAN_PATH_SIZE]; /* one of its files, to see whether it may be written; "" for none */
};

/* Files a control may write. */
struct control_files {
    char (*paths)[PLAN_PATH_SIZE];
    size_t count, capacity;
};

struct control {
    const char *name;
    unsigned also; /* 1 << index of each control whose files the kernel changes along with this one's */
    /* Fills RET, whose texts are empty. 0 or a negative errno (memory); what is not there is no error. */
    int (*look)(const struct layout *layout, struct control_look *ret);
    int (*files)(const struct layout *layout, struct control_files *ret);
    /* -EINVAL with a sentence if ASKED is none of its values here. NULL: it is set otherwise, or never. */
    int (*plan)(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure);
};

extern const struct control control_daemons, control_hyperthreads, control_governor, control_turbo,
    control_frequency, control_energy_preference, control_idle_states, control_uncore_frequency,
    control_numa_balancing, control_transparent_huge_pages, control_aslr;

/* The table. */
const struct control *control_at(enum control_index index);
/* CONTROL_COUNT if there is none of that name. */
enum control_index control_find(const char *name);
/* The bits of SET and of all that change along with them, and along with those. */
unsigned control_closure(unsigned set);

/* look(), and whether this user may write. 0 or a negative errno. */
int control_look_at(const struct control *control, const struct layout *layout, struct control_look *ret);
void control_look_init(struct control_look *look);
void control_look_clear(struct control_look *look);
const char *control_access_name(enum control_access access);

/* For the controls' files: adds FOLDER/NAME, which need not be there. 0 or -ENOMEM. */
int control_add_file(struct control_files *files, const char *folder, const char *name);
/* The same for a file of each policy. */
int control_add_policy_files(const struct layout *layout, struct control_files *files, const char *name);
void control_files_clear(struct control_files *files);
/* It is not there; a sentence says why. Returns 0. */
int control_absent(struct control_look *look, const char *why);
/* Notes the file by which it is seen whether it may be written. */
void control_note_path(struct control_look *look, const char *folder, const char *name);
/* "on" or "off". 0, or -EINVAL with a sentence. */
int control_parse_switch(const char *asked, bool *ret, struct failure *failure);
/* Whether ASKED is one of the words of LIST, which blanks part. 0, or -EINVAL with a sentence. */
int control_check_word(const char *asked, const char *list, struct failure *failure);
#define CONTROL_NO_CPUFREQ                                                                                   \
    "the kernel has no driver for the processor's frequency (cpufreq): it is a virtual machine, or was "     \
    "started so"
/* The driver of the first policy. */
void control_note_driver(const struct layout *layout, struct control_look *look);

#endif
