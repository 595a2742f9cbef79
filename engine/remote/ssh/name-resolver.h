/*
 * Looks up the addresses of host names without blocking the loop: getaddrinfo() may take seconds, so threads
 * call it. Numeric addresses need no thread.
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

/* At most 4 threads run at once, without those of cancelled queries, which end when getaddrinfo() returns. A
 * resolver without queries does not keep the loop running. */
int name_resolver_new(struct event_loop *loop, struct name_resolver **ret, struct failure *failure);
/* All queries must have been called back or cancelled. Waits for no thread. Must not be called within a
 * callback; NULL is fine. */
void name_resolver_free(struct name_resolver *resolver);

/* Called once, never from within name_resolver_ask(), with the addresses in the order of getaddrinfo (RFC
 * 6724), valid during the callback. On failure COUNT is 0 and FAILURE, otherwise NULL, has the reason:
 * -ENOENT (no such name), -EAGAIN (no name server answered), or the system's error. It may start and cancel
 * queries. */
typedef void name_resolver_callback(const struct name_address *addresses, size_t count,
                                    const struct failure *failure, void *context);
int name_resolver_ask(struct name_resolver *resolver, const char *name, name_resolver_callback *callback,
                      void *context, struct name_query **ret, struct failure *failure);
/* Cancels a query before its callback, which is then never called; NULL is fine. */
void name_query_cancel(struct name_query *query);

#endif
