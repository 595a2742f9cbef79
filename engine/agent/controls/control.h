/*
 * A control: one property of a node that can be set in files of the kernel (TOOLS.md has the names, the
 * values and the files).
 *
 * A control reads its status (current value, possible values), lists the files that it may write, and plans
 * the writes that set a value. It never writes itself: set.c does, once the snapshot has all files that may
 * change.
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

/* In the order in which controls are set; README.md has the reasons. */
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

/* The status of a control. Lack of memory is noted in `values.error` and `error`. */
struct control_status {
    enum control_access access;
    char driver[64];
    char why[256];             /* why it is not available */
    struct values values;      /* the current values; empty: the control is absent */
    struct text value;         /* the same as a campaign writes it; filled in by control_read_status() */
    struct text possible;      /* possible values, separated by blanks */
    char path[PLAN_PATH_SIZE]; /* one of its files, to test whether it can be written; "": none */
    int error;
};

/* How the content of a kernel file is read as a word, and a word written into it. */
enum attribute_codec {
    ATTRIBUTE_WORD,           /* the word itself; also a number up to `max`, where that is not 0 */
    ATTRIBUTE_SWITCH,         /* on: 1, or up to `max` where that is not 0; off: 0 */
    ATTRIBUTE_INVERSE_SWITCH, /* on: 0; off: 1 */
    ATTRIBUTE_CHOICE,         /* all possible words, with the current one in brackets */
    ATTRIBUTE_NAMED,          /* a number up to `max`; some numbers have a name */
};

struct attribute_name {
    const char *name; /* NULL after the last */
    unsigned number;
};

/* A kind of file of a control: its places, and how its content is read. */
struct attribute {
    enum layout_scope scope;
    const char *folder, *file;
    const char *upper; /* the file of the upper limit, where `file` is a lower limit; else NULL */
    enum attribute_codec codec;
    const char *words; /* possible words; NULL: those in the file `list` of the same folder, if any */
    const char *list;
    unsigned max;
    const struct attribute_name *names; /* of numbers; with ATTRIBUTE_WORD the kernel may show the name */
};

struct control {
    const char *name;
    const char *absent;    /* why it is absent, where no value is found */
    const char *read_only; /* why it is never set; NULL: it can be set */
    unsigned side_effects; /* 1 << index of each control whose files the kernel changes with this one's */
    bool shows_driver;     /* the status has cpufreq's driver */
    /* The first attribute whose files exist is the control's; with read_status() all are. */
    const struct attribute *attributes[4];
    /* Reads driver, values, possible values and path; NULL: by `attributes`. */
    void (*read_status)(const struct layout *layout, struct control_status *ret);
    /* Lists the files that the control may write, existing or not, as writes of ""; NULL: by `attributes`. */
    void (*files)(const struct layout *layout, struct plan *ret);
    /* Plans the writes that set the value ASKED; NULL: by `attributes`. -EINVAL with a sentence if ASKED is
     * no value of the control on this machine. */
    int (*plan)(const struct layout *layout, const char *asked, struct plan *ret, struct failure *failure);
};

/* The control of INDEX. */
const struct control *control_at(enum control_index index);
/* The index of the control NAME; CONTROL_COUNT: there is no such control. */
enum control_index control_find(const char *name);
/* The bits of SET and of all controls that the kernel changes with them, directly or in turn. */
unsigned control_closure(unsigned set);

/* Reads the status of CONTROL, and whether this user may set it. Returns 0 or a negative errno (memory); the
 * caller clears *RET in both cases. */
int control_read_status(const struct control *control, const struct layout *layout,
                        struct control_status *ret);
void control_status_clear(struct control_status *current);
const char *control_access_name(enum control_access access);
/* Lists all files that CONTROL may write, as writes of "". */
void control_list_files(const struct control *control, const struct layout *layout, struct plan *ret);
/* Plans the writes that set CONTROL to ASKED. -EINVAL with a sentence for a value that is not possible here.
 */
int control_plan(const struct control *control, const struct layout *layout, const char *asked,
                 struct plan *ret, struct failure *failure);

/* ---- for the controls */

extern const struct control control_daemons, control_hyperthreads, control_governor, control_turbo,
    control_frequency, control_energy_preference, control_idle_states, control_uncore_frequency,
    control_numa_balancing, control_transparent_huge_pages, control_aslr;

/* Notes that the control is absent or cannot be set, and why. */
void control_refuse(struct control_status *current, enum control_access access, const char *why);
/* Appends to the list of possible values. */
void control_add_possible(struct control_status *current, const char *format, ...)
    __attribute__((format(printf, 2, 3)));
/* Names the file that tells whether the control can be written. */
void control_set_path(struct control_status *current, const char *folder, const char *name);
/* For files(): add FOLDER/FILE; and add all files of an attribute. */
void control_add_file(struct plan *plan, const char *folder, const char *file);
void control_add_files(struct plan *plan, const struct layout *layout, const struct attribute *attribute);
/* Checks that ASKED is one of the words of LIST, which are separated by blanks. 0, or -EINVAL with a
 * sentence. */
int control_check_word(const char *asked, const char *list, struct failure *failure);

/* True where a file of the attribute exists and can be read. */
bool attribute_is_there(const struct attribute *attribute, const struct layout *layout);
/* Plans to write ASKED into every file of the attribute; as struct control's plan(). */
int attribute_plan(const struct attribute *attribute, const struct layout *layout, const char *asked,
                   struct plan *ret, struct failure *failure);

#define CONTROL_NO_CPUFREQ                                                                                   \
    "the kernel has no driver for the processor's frequency (cpufreq): it is a virtual machine, or was "     \
    "started so"

#endif
