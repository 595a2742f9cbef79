/*
 * Names to addresses without stopping the loop: getaddrinfo() may wait for seconds, so child processes of
 * ours do it. Numeric addresses need none. Each name is asked for once; the answer serves everybody who asks
 * while it is on its way, and, when it was an address, for a minute after.
 */
#ifndef ASSAY_SSH_NAME_RESOLVER_H
#define ASSAY_SSH_NAME_RESOLVER_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"

#include <sys/socket.h>

struct name_resolver;
struct name_query;

struct name_address {
    struct sockaddr_storage address; /* without a port */
    socklen_t length;
};
enum { NAME_ADDRESSES_MOST = 16 };

/* Children are started when names need them: at most 4, which end with the resolver, or with the engine
 * however it ends. They hold none of its descriptors, and no signal of a terminal reaches them. A resolver
 * with nothing to do keeps no loop turning. */
int name_resolver_new(struct event_loop *loop, struct name_resolver **ret, struct failure *failure);
/* Calls nobody. Not from a callback; NULL is fine. */
void name_resolver_free(struct name_resolver *resolver);

/* The addresses, in the order of getaddrinfo (RFC 6724), valid during the callback; on failure COUNT is 0 and
 * FAILURE, NULL otherwise, says why: -ENOENT (no such name), -ETIMEDOUT (after TIMEOUT_NS; negative: none),
 * -EAGAIN (no name server answered), or what the system said. Called once, never from within
 * name_resolver_ask(). It may ask and cancel. */
typedef void name_resolver_callback(const struct name_address *addresses, size_t count,
                                    const struct failure *failure, void *context);
int name_resolver_ask(struct name_resolver *resolver, const char *name, int64_t timeout_ns,
                      name_resolver_callback *callback, void *context, struct name_query **ret,
                      struct failure *failure);
/* The callback is not called any more. Before the callback only; NULL is fine. */
void name_query_cancel(struct name_query *query);

#endif
