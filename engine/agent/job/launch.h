/*
 * --launch SOCKET [SSH-OPTIONS] HOST COMMAND...: stands in for ssh where an MPI library starts its daemons.
 * The request goes to the node's --job tool, from there to the engine, and to the agent of that host, which
 * runs the command as ssh would, by `sh -c`; what it writes, and its status, come back the same way.
 *
 * On the socket: HOST, NUL, COMMAND, end; back come frames of one byte that says what it is ('1' and '2' for
 * the streams, LAUNCH_EXIT), four of the length in the machine's order, and the bytes.
 */
#ifndef ASSAY_JOB_LAUNCH_H
#define ASSAY_JOB_LAUNCH_H

#include <stddef.h>

#define LAUNCH_MARK "ASSAY_JOB"
#define LAUNCH_SOCKET "launch.socket"
#define LAUNCH_SCRIPT "launch"
enum { LAUNCH_REQUEST_MAX = 192 << 10, LAUNCH_EXIT = 'x' };

/* Sends a frame. Errors are ignored on purpose: a receiver that does not take it has ended. */
void launch_send(int socket, char kind, const void *bytes, size_t length);

#endif
