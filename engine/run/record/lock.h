/*
 * Who works on a run's folder: FOLDER/.lock, which the engine that runs or resumes it keeps locked (an open
 * file description's write lock, fcntl(2)) for as long as it lives. The lock goes when the engine does,
 * however it dies; the file stays. Its text says who, for people and for the sentence of a refusal: host,
 * process, since.
 *
 * Some file systems cannot lock (Lustre without -o flock, say). There the text alone counts: it is emptied
 * when the lock is freed, a process of this host that is gone does not count, and of another host nobody here
 * knows, so that it is taken for alive.
 */
#ifndef ASSAY_RECORD_LOCK_H
#define ASSAY_RECORD_LOCK_H

#include "engine/foundation/clock.h"
#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stdint.h>

enum { RUN_LOCK_HOST_SIZE = 256 };

struct run_lock;

/* Locks FOLDER, which must exist. If another engine has locked it, FAILURE (FAILURE_INPUT, -EBUSY) says who.
 */
int run_lock_take(const char *folder, struct run_lock **ret, struct failure *failure);
void run_lock_free(struct run_lock *lock); /* NULL is fine */
void run_lock_cleanup(struct run_lock **lock);

struct run_lock_owner {
    bool held;  /* a process works on the run now */
    bool known; /* host, pid and since are set; when not held, they are of a process that has died */
    char host[RUN_LOCK_HOST_SIZE]; /* printable ASCII */
    int64_t pid;
    char since[CLOCK_TEXT_SIZE];
};

/* Sets RET to who has locked FOLDER, and changes nothing. A folder without a lock is not held. */
int run_lock_read(const char *folder, struct run_lock_owner *ret, struct failure *failure);

/* Sends SIGNAL_NUMBER to the process that works on the run. It must be named in the lock and have the file
 * open, so that a process with a reused number is never signalled. FAILURE_INPUT, -ESRCH: nobody works on it;
 * -EREMOTE: a process on another host does. */
int run_lock_signal(const char *folder, int signal_number, struct run_lock_owner *ret,
                    struct failure *failure);

#endif
