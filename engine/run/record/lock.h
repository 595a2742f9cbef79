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

/* FOLDER must be there. When somebody else has it the failure (FAILURE_INPUT, -EBUSY) says who. */
int run_lock_take(const char *folder, struct run_lock **ret, struct failure *failure);
void run_lock_free(struct run_lock *lock); /* NULL is fine */
void run_lock_cleanup(struct run_lock **lock);

struct run_lock_owner {
    bool held;  /* somebody works on it now */
    bool known; /* the three below; of the last one when it is not held: it has died, then */
    char host[RUN_LOCK_HOST_SIZE]; /* printable ASCII */
    int64_t pid;
    char since[CLOCK_TEXT_SIZE];
};

/* Looks and changes nothing. A folder without a lock is not held. */
int run_lock_look(const char *folder, struct run_lock_owner *ret, struct failure *failure);

/* Sends SIGNAL_NUMBER to the process that works on the run: one of this host that has the lock's file open
 * and is named in it, so that a number which another process has by now is never meant. FAILURE_INPUT,
 * -ESRCH: nobody works on it; -EREMOTE: somebody does, on another host. */
int run_lock_signal(const char *folder, int signal_number, struct run_lock_owner *ret,
                    struct failure *failure);

#endif
