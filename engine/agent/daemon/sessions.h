/* The daemons of our user on this node, found by their sockets (control-socket.h) in /proc/net/unix. Both
 * functions print, and return an exit status. */
#ifndef ASSAY_DAEMON_SESSIONS_H
#define ASSAY_DAEMON_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * A line a daemon on stdout, in order of session, of fields with a tab between:
 *
 *     session  state  seconds-since-heard  lease-seconds  commands  pid  started-unix  directory  label
 *
 * state: attached, alone, or silent, when it does not answer within 2 s; then of the other fields only pid,
 * that of its guardian, is known, and the rest are 0 or empty; pid 0: somebody, perhaps another user, has the
 * name and accepts no connection. lease-seconds 0: no lease.
 *
 * And a line a folder that an agent which was killed has left (workspace_find_abandoned()); REMOVE_ABANDONED:
 * which is removed.
 */
int sessions_list(bool remove_abandoned);

/* Asks the daemon of SESSION (0: all of them) to leave, and waits until it has gone. 69 if there is none of
 * that session; 1, with a sentence, if it does not answer, or has not gone after 50 s, in which case it goes
 * on leaving. */
int sessions_end(uint64_t session);

#endif
