/*
 * --launch SOCKET [SSH-OPTIONS] HOST COMMAND...: replaces ssh where an MPI library starts its daemons. The
 * request goes to the node's --job tool, from there to the engine, and to the agent of HOST, which runs the
 * command as ssh would, by `sh -c`. Its output and its status come back the same way.
 *
 * On the socket: HOST, NUL, COMMAND, end of file. The answer is frames: one byte with the kind ('1' and '2'
 * for the streams, LAUNCH_EXIT), four bytes with the length in the machine's byte order, and the bytes.
 */
#ifndef ASSAY_JOB_LAUNCH_H
#define ASSAY_JOB_LAUNCH_H

#include <stddef.h>

#define LAUNCH_MARK "ASSAY_JOB"
#define LAUNCH_SOCKET "launch.socket"
#define LAUNCH_SCRIPT "launch"
enum { LAUNCH_REQUEST_MAX = 192 << 10, LAUNCH_EXIT = 'x' };

/* Sends a frame. Errors are ignored on purpose: the receiver has ended. */
void launch_send(int socket, char kind, const void *bytes, size_t length);

#endif
