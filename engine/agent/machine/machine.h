/*
 * The files in which a machine shows itself and is set (/sys, /proc, a few of /dev and /run), reached through
 * one root descriptor, so that a captured machine in a folder can stand for a real one.
 *
 * A PATH has no leading slash: "sys/devices/system/cpu/online". In a captured machine links are followed as
 * if its root were "/" (openat2 with RESOLVE_IN_ROOT, Linux 5.6), and none leads out of it; where there is no
 * such call, or a container hides it, no captured machine can be opened: its links would lead to the real
 * one.
 *
 * These functions return a negative errno and no sentence: the caller knows what a missing file means.
 */
#ifndef ASSAY_MACHINE_MACHINE_H
#define ASSAY_MACHINE_MACHINE_H

#include "engine/agent/machine/pu-set.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/types.h>

enum {
    MACHINE_PATH_LIMIT = 512,       /* bytes of a path, its NUL included */
    MACHINE_FILE_LIMIT = 256 << 10, /* bytes of one file; more is -EFBIG */
    MACHINE_NAMES_LIMIT = 64 << 10, /* entries of one folder; more are -EFBIG */
};

/* In a deployed system (daemon/deployed.h), the node's /run. */
#define MACHINE_NODE_RUN "run/assay-node"

struct machine {
    int root;      /* descriptor; not the struct's to close, unless machine_open() made it */
    bool captured; /* the root is not "/": never ask the kernel what the files do not say */
};

/* ROOT: a folder, NULL for "/". -ENOSYS or -EPERM: without openat2 it can only be "/". */
int machine_open(const char *root, struct machine *ret, struct failure *failure);
void machine_close(struct machine *machine);

/* A path made as by printf(3), for the calls below; it is good until the end of the block. One that is too
 * long becomes "", which is no file. */
#define machine_path(...) machine_path_in((char[MACHINE_PATH_LIMIT]){0}, __VA_ARGS__)
const char *machine_path_in(char buffer[static MACHINE_PATH_LIMIT], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* A descriptor (O_CLOEXEC) or a negative errno. FLAGS as for open(2). */
int machine_open_file(const struct machine *machine, const char *path, int flags);

/* RET (whose limit should be MACHINE_FILE_LIMIT) has the whole content afterwards, without blanks and
 * newlines at its end. */
int machine_read(const struct machine *machine, const char *path, struct text *ret);
/* The whole content of a small file, to the byte, and a NUL into BUFFER. Its length; -EFBIG if it does not
 * fit. */
ssize_t machine_read_small(const struct machine *machine, const char *path, char *buffer, size_t size);
/* The same without blanks and newlines at its end. 0 or a negative errno. */
int machine_read_value(const struct machine *machine, const char *path, char *buffer, size_t size);
/* Cuts blanks and newlines off the end of BYTES; the new length. */
size_t machine_trim(char *bytes, size_t length);
/* -EINVAL if it is no whole number and nothing else. */
int machine_read_number(const struct machine *machine, const char *path, int64_t *ret);
int machine_read_set(const struct machine *machine, const char *path, struct pu_set *ret);
/* The PUs of the core of PU; PU alone where nothing says. */
void machine_read_siblings(const struct machine *machine, unsigned pu, struct pu_set *ret);
/* "core_id" or "physical_package_id" of PU; -1: not known. */
int machine_read_topology(const struct machine *machine, unsigned pu, const char *name);
bool machine_has(const struct machine *machine, const char *path);

/* Writes with one call to write(2), as the kernel's attributes want it: each call is a change of its own. A
 * plain file is truncated first. The kernel's refusal (-EINVAL, -EBUSY, -EPERM, ...) is returned, also one
 * that close(2) returns. */
int machine_write(const struct machine *machine, const char *path, const char *bytes, size_t length);

/* The entries of a folder whose names begin with PREFIX, but for those that begin with a dot; in natural
 * order: cpu2 before cpu10. */
struct machine_names {
    char **items; /* owned */
    size_t count;
};
int machine_list(const struct machine *machine, const char *folder, const char *prefix,
                 struct machine_names *ret);
void machine_names_clear(struct machine_names *names);

#endif
