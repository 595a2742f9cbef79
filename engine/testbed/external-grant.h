/*
 * The answer of an external testbed's program when its nodes are ready:
 *
 *     {"id": 2, "nodes": ["dahu-[1-3]", "cc@10.1.2.3:22"], "end": 1795454502,
 *      "known_hosts": ["10.1.2.3 ssh-ed25519 AAAA..."]}
 */
#ifndef ASSAY_TESTBED_EXTERNAL_GRANT_H
#define ASSAY_TESTBED_EXTERNAL_GRANT_H

#include "engine/documents/document.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/host-list.h"
#include "engine/foundation/text.h"

#include <stdint.h>

struct external_grant {
    struct host_list hosts;  /* destinations, [user@]host[:port] */
    char **names;            /* of the nodes, in the same order */
    int64_t end_s;           /* when the reservation ends, since 1970; 0: not known */
    struct text known_hosts; /* the nodes' host keys, as lines of a known_hosts file; empty: not given */
};

/* Reads ANSWER into RET, which is zeroed; the caller clears it, on failure too. -EBADMSG or -EINVAL for an
 * answer that is no valid grant: hosts are checked as those of a campaign. */
int external_grant_read(const struct document *answer, struct external_grant *ret, struct failure *failure);
void external_grant_clear(struct external_grant *grant);

#endif
