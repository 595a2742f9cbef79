#include "engine/remote/launch/transport.h"

#include <errno.h>

int transport_start(struct transport *transport, const struct transport_listener *listener,
                    struct failure *failure) {
    transport->listener = *listener;
    transport->state = TRANSPORT_STARTING;
    int r = transport->operations->start(transport, failure);
    if (r < 0)
        transport->state = TRANSPORT_CLOSED;
    return r;
}

ssize_t transport_read(struct transport *transport, void *bytes, size_t size) {
    return transport->state == TRANSPORT_OPEN ? transport->operations->read(transport, bytes, size)
                                              : -ENOTCONN;
}

ssize_t transport_write(struct transport *transport, const void *bytes, size_t length) {
    return transport->state == TRANSPORT_OPEN ? transport->operations->write(transport, bytes, length)
                                              : -ENOTCONN;
}

int transport_want(struct transport *transport, unsigned events) {
    return transport->state == TRANSPORT_OPEN ? transport->operations->want(transport, events) : 0;
}

void transport_close(struct transport *transport) {
    if (transport->state != TRANSPORT_STARTING && transport->state != TRANSPORT_OPEN)
        return;
    transport_set_state(transport, TRANSPORT_CLOSING, NULL);
    transport->operations->close(transport);
}

int transport_renew(struct transport *old, struct transport **ret, struct failure *failure) {
    if (!old->operations->renew)
        return failure_set(failure, -ENOTSUP, "a %s agent ends with its connection", old->operations->name);
    return old->operations->renew(old, ret, failure);
}

void transport_free(struct transport *transport) {
    if (!transport)
        return;
    transport->listener = (struct transport_listener){0};
    transport->operations->free(transport);
}

void transport_set_state(struct transport *transport, enum transport_state state, const struct failure *why) {
    /* States only go forward, so that an end that is noticed twice is reported once. */
    if (state <= transport->state)
        return;
    transport->state = state;
    if ((state == TRANSPORT_OPEN || state == TRANSPORT_CLOSED) && transport->listener.on_state)
        transport->listener.on_state(transport, state, why, transport->listener.context);
}
