/*
 * The files by which a machine is inspected and set (/sys, /proc, a few of /dev and /run). They are opened
 * below one root descriptor, so that a captured machine in a folder can replace a real one.
 *
 * A PATH has no leading slash: "sys/devices/system/cpu/online". In a captured machine symbolic links are
 * followed as if its root were "/" (openat2 with RESOLVE_IN_ROOT, Linux 5.6), so that none leads out of it.
 * Where this call is missing, or a container forbids it, no captured machine can be opened.
 *
 * These functions return a negative errno without a sentence: the caller knows what a missing file means.
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

/* The node's /run inside a deployed system (daemon/deployed.h). */
#define MACHINE_NODE_RUN "run/assay-node"

struct machine {
    int root;      /* descriptor; closed by machine_close() only if machine_open() opened it */
    bool captured; /* the root is not "/": system calls must not be used instead of files */
};

/* Opens the machine in the folder ROOT; NULL: "/". -ENOSYS or -EPERM: without openat2 only "/" can be opened.
 */
int machine_open(const char *root, struct machine *ret, struct failure *failure);
void machine_close(struct machine *machine);

/* A path formatted as by printf(3) for the calls below, valid until the end of the block. A path that is too
 * long becomes "", which is no file. */
#define machine_path(...) machine_path_in((char[MACHINE_PATH_LIMIT]){0}, __VA_ARGS__)
const char *machine_path_in(char buffer[static MACHINE_PATH_LIMIT], const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Opens a file; returns a descriptor (O_CLOEXEC) or a negative errno. FLAGS as for open(2). */
int machine_open_file(const struct machine *machine, const char *path, int flags);

/* Reads the whole content into RET (whose limit should be MACHINE_FILE_LIMIT), without blanks and newlines at
 * its end. 0 or a negative errno. */
int machine_read(const struct machine *machine, const char *path, struct text *ret);
/* Reads the exact content of a small file, and a NUL, into BUFFER. Returns its length; -EFBIG if it does not
 * fit. */
ssize_t machine_read_small(const struct machine *machine, const char *path, char *buffer, size_t size);
/* As machine_read_small(), without blanks and newlines at the end. 0 or a negative errno. */
int machine_read_value(const struct machine *machine, const char *path, char *buffer, size_t size);
/* Cuts blanks and newlines off the end of BYTES; returns the new length. */
size_t machine_trim(char *bytes, size_t length);
/* Read a file that is one whole number, or a list of PUs; -EINVAL for any other content. */
int machine_read_number(const struct machine *machine, const char *path, int64_t *ret);
int machine_read_set(const struct machine *machine, const char *path, struct pu_set *ret);
/* Sets *RET to the PUs of PU's core; to PU alone where the kernel does not say. */
void machine_read_siblings(const struct machine *machine, unsigned pu, struct pu_set *ret);
/* The topology file NAME, "core_id" or "physical_package_id", of PU; -1: not known. */
int machine_read_topology(const struct machine *machine, unsigned pu, const char *name);
bool machine_has(const struct machine *machine, const char *path);

/* Writes with one call of write(2), since each call changes an attribute of the kernel. A plain file is
 * truncated first. Returns 0 or the kernel's refusal (-EINVAL, -EBUSY, -EPERM, ...), also that of close(2).
 */
int machine_write(const struct machine *machine, const char *path, const char *bytes, size_t length);

/* Lists the entries of a folder whose names begin with PREFIX and not with a dot, in natural order: cpu2
 * before cpu10. */
struct machine_names {
    char **items; /* owned */
    size_t count;
};
int machine_list(const struct machine *machine, const char *folder, const char *prefix,
                 struct machine_names *ret);
void machine_names_clear(struct machine_names *names);

#endif
