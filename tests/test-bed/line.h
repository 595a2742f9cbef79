/*
 * A line: a node's wire with a delay, with loss, or of a limited rate. A process in the front end's network
 * namespace takes the node's device off the bridge, puts a tap on the bridge instead, and carries frames
 * between the two. The node keeps its device, its address and its connections; the kernel needs no netem for
 * it.
 */
#ifndef ASSAY_TEST_BED_LINE_H
#define ASSAY_TEST_BED_LINE_H

#include "engine/foundation/failure.h"

#include <stdatomic.h>
#include <stdint.h>
#include <sys/types.h>

/* What a line does, in each direction; shared with its process, which looks at every frame. */
struct line {
    _Atomic uint32_t delay_us;         /* one way */
    _Atomic uint32_t loss_per_million; /* of frames */
    _Atomic uint32_t rate_kbit;        /* 0: no limit */
    pid_t process;
};

/* Puts a line into the wire whose outer end is LINK (a device of the calling process's namespace, on the
 * bridge with index BRIDGE); NODE_NETWORK is the namespace of its inner end, "eth0". SOCKET: network.h. */
int line_start(int socket, const char *link, int bridge, int node_network, struct line **ret,
               struct failure *failure);
/* The plain wire again. */
int line_remove(int socket, const char *link, int bridge, int node_network, struct line *line,
                struct failure *failure);
/* Ends the line's process and leaves the wire as it is. NULL is fine. */
void line_stop(struct line *line);

#endif
