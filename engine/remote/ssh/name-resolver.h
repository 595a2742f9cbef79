/*
 * Names to addresses without stopping the loop: getaddrinfo() may wait for seconds, so threads call it.
 * Numeric addresses need none.
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
enum { NAME_ADDRESSES_MAX = 16 };

/* At most 4 threads work for queries that are still wanted; a thread whose query was cancelled
 * does not count, and ends when getaddrinfo() returns. A resolver with nothing to do does not keep
 * the loop running. */
int name_resolver_new(struct event_loop *loop, struct name_resolver **ret, struct failure *failure);
/* Its queries must have been called back or cancelled. Waits for no thread. Not from a callback; NULL is
 * fine.
 */
void name_resolver_free(struct name_resolver *resolver);

/* The addresses, in the order of getaddrinfo (RFC 6724), valid during the callback; on failure COUNT is 0 and
 * FAILURE, NULL otherwise, says why: -ENOENT (no such name), -EAGAIN (no name
 * server answered), or what the system said. Called once, never from within name_resolver_ask(). It may ask
 * and cancel. */
typedef void name_resolver_callback(const struct name_address *addresses, size_t count,
                                    const struct failure *failure, void *context);
int name_resolver_ask(struct name_resolver *resolver, const char *name, name_resolver_callback *callback,
                      void *context, struct name_query **ret, struct failure *failure);
/* The callback will not be called. Before the callback only; NULL is fine. */
void name_query_cancel(struct name_query *query);

#endif
