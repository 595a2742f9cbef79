/* The daemons of our user on this node, found by their sockets (control-socket.h) in /proc/net/unix. Both
 * functions print, and return an exit status. */
#ifndef ASSAY_DAEMON_SESSIONS_H
#define ASSAY_DAEMON_SESSIONS_H

#include <stdbool.h>
#include <stdint.h>

/*
 * Prints one line for each daemon on stdout, in order of session, with tabs between the fields:
 *
 *     session  state  seconds-since-heard  lease-seconds  commands  pid  started-unix  directory  label
 *
 * state: attached (to an engine), alone, or silent: no answer within 2 s. Of a silent daemon only pid, that
 * of its guardian, is known, and the other fields are 0 or empty; pid 0: a process, perhaps of another user,
 * has the name and accepts no connection. lease-seconds 0: no lease.
 *
 * Then prints a line for each run directory that a killed agent has left (workspace_find_abandoned()), and
 * removes these if REMOVE_ABANDONED.
 */
int sessions_list(bool remove_abandoned);

/* Asks the daemon of SESSION (0: all daemons) to end, and waits until it has. Returns 69 if the session has
 * no daemon; 1, with a sentence, if the daemon does not answer or has not ended after 50 s (it still will).
 */
int sessions_end(uint64_t session);

#endif
