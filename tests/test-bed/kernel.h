/*
 * What plays the kernel behind the made-up files of a node: a machine of tests/machines in memory, whose
 * files answer as the kernel's attributes do. A value that a file does not take is refused, one has effects
 * on others (smt/control takes processors away), some change by themselves (temperature, energy). And faults:
 * a file that refuses, that keeps its value, that vanishes.
 *
 * One process a node has one (kernel-files.h); nothing here knows of FUSE, of other nodes, or of this
 * machine, but for kernel_heat_*(), which looks whether processes of the node are running.
 */
#ifndef ASSAY_TEST_BED_KERNEL_H
#define ASSAY_TEST_BED_KERNEL_H

#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"
#include "tests/machines/machine-tree.h"

#include <stdbool.h>
#include <stdint.h>
#include <sys/types.h>
#include <time.h>

enum {
    KERNEL_ROOT = 1,          /* number of the root folder; FUSE's too */
    KERNEL_PU_MAX = 1024,     /* processors of a machine */
    KERNEL_VALUE_SIZE = 4096, /* bytes of one write, with its NUL, as an attribute of the kernel takes them */
    KERNEL_SHOWN_MAX = 65536, /* bytes of one file */
    KERNEL_LOG_MAX = 16384,   /* writes that are remembered */
};

/* What has been done to one file. */
struct kernel_fault {
    int refuse;        /* errno of writes; 0: none */
    long refuse_times; /* that many more; -1: always */
    int unreadable;    /* errno of reads */
    bool stuck;        /* takes what is written and keeps what it had */
    bool gone;         /* is not there, nor what is below it */
    char *pinned;      /* what it shows whatever happens; NULL */
};

struct kernel;
struct kernel_file;

/* What a write may be and does, and what a read shows. */
struct kernel_rule {
    const char *name;
    /* VALUE has no newline at its end and may be changed. NULL: the file cannot be written. */
    int (*write)(struct kernel *kernel, struct kernel_file *file, char *value);
    /* Appends to SHOWN. NULL: what is stored. */
    int (*show)(struct kernel *kernel, const struct kernel_file *file, struct text *shown);
    int variant; /* which of the rules that share these functions it is */
};

struct kernel_file {
    const char *name; /* in its folder */
    char *own_name;   /* the same of a folder that the machine's file does not name; NULL. Owned */
    uint32_t parent, next,
        first; /* numbers of files: its folder, the next one there, the first one in it; 0 */
    enum machine_kind kind;
    unsigned mode;
    const char *initial;            /* what it has after a boot, or where a link leads */
    char *stored;                   /* what has been written since; NULL: the same. Owned */
    const struct kernel_rule *rule; /* NULL: what is stored, and no write */
    const char *arguments;          /* of the rule, "" for none */
    int pu;                         /* the processor that it is of and is there with; -1: always there */
    bool policy;                /* a folder of cpufreq, or a file in one: busy while its processors are off */
    struct kernel_fault *fault; /* NULL: none. Owned */
};

struct kernel_pu {
    bool present, online, first; /* FIRST: the first thread of its core, which stays when SMT goes */
    uint32_t policy;             /* its folder; 0 */
};

/* How warm the machine is and what it has used. */
struct kernel_heat {
    struct timespec last;
    double load;   /* 0 to 1 */
    bool forced;   /* LOAD is what a test wants, not what the node does */
    double warmth; /* 0: as cool as when idle, 1: as hot as when busy */
    double joules; /* of a package, since the boot */
    pid_t node;    /* the node's first process, as this process counts; 0: none */
};

struct kernel_write {
    uint32_t file;
    int status;
    char *value;
};

struct kernel {
    struct machine_tree machine;
    struct kernel_file *files; /* by number; 0 is none */
    uint32_t count;
    struct kernel_pu pus[KERNEL_PU_MAX];
    struct kernel_heat heat;
    bool resets_turbo;  /* a new governor turns turbo on */
    bool remembers;     /* processors come back with the settings that they had */
    int offline_next;   /* a processor that goes away by itself; -1 */
    long offline_after; /* when so many more writes have been tried */
    struct kernel_write log[KERNEL_LOG_MAX];
    size_t logged; /* all, also those that were forgotten */
};

/* MACHINE: as for machine_tree_read(). */
int kernel_new(const char *machine, struct kernel **ret, struct failure *failure);
/* NULL is fine. */
void kernel_free(struct kernel *kernel);

/* The file of a path, links followed; a leading slash makes no difference. NULL: none. */
struct kernel_file *kernel_find(struct kernel *kernel, const char *path);
/* In a folder, without following links and whether or not it is there for others. NULL: none. */
struct kernel_file *kernel_child(const struct kernel *kernel, uint32_t folder, const char *name);
uint32_t kernel_number_of(const struct kernel *kernel, const struct kernel_file *file);
/* Its path with a leading slash, into PATH, which is returned. */
const char *kernel_path(const struct kernel *kernel, const struct kernel_file *file,
                        char path[MACHINE_TREE_PATH_SIZE]);

/* Can it be seen now? */
bool kernel_is_there(const struct kernel *kernel, const struct kernel_file *file);
/* Appends what a read gives. 0 or a negative errno, as the kernel's. */
int kernel_read(struct kernel *kernel, const struct kernel_file *file, struct text *shown);
/* One call to write(2), with faults; remembered in the log. */
int kernel_write(struct kernel *kernel, struct kernel_file *file, const char *bytes, size_t length);
/* The change itself, whoever makes it: no faults, no log. */
int kernel_change(struct kernel *kernel, struct kernel_file *file, const char *bytes, size_t length);

/* ---- For the rules */

const char *kernel_stored(const struct kernel_file *file);
/* VALUE and a newline. 0 or -ENOMEM. */
int kernel_store(struct kernel_file *file, const char *value);
/* The number that is stored in NAME of FOLDER, or OTHERWISE. */
long kernel_stored_number(const struct kernel *kernel, uint32_t folder, const char *name, long otherwise);
/* A setting of the machine's file. */
long kernel_setting(const struct kernel *kernel, const char *name, long otherwise);
/* Its fault, made if there is none. NULL: no memory. */
struct kernel_fault *kernel_fault_of(struct kernel_file *file);

/* A processor comes or goes, with its files. */
void kernel_set_online(struct kernel *kernel, int pu, bool online);
int kernel_online_count(const struct kernel *kernel);

/* kernel-rules.c. NULL: there is no such rule. */
const struct kernel_rule *kernel_rule_find(const char *name, size_t length);

/* ---- kernel-heat.c: moves temperature and energy on to this moment. */
void kernel_heat_advance(struct kernel *kernel);
/* Millidegrees of a busy machine's sensor, uJ of a package: after kernel_heat_advance(). */
long kernel_heat_temperature(const struct kernel *kernel);
double kernel_heat_microjoules(const struct kernel *kernel);

/* ---- kernel-orders.c: what a test asks, as bed.c's help lists it; WORDS without the nodes. */
int kernel_order(struct kernel *kernel, int count, const char *const *words, struct text *answer,
                 struct failure *failure);

#endif
