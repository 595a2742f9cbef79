#include "engine/remote/channel/channel.h"

#include <stdarg.h>
#include <stdio.h>

int node_failure(struct failure *failure, const char *node, int code, const char *format, ...) {
    char text[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(text, sizeof text, format, arguments);
    va_end(arguments);
    failure_set(failure, code, "%s", text);
    if (failure)
        snprintf(failure->place, sizeof failure->place, "node %s", node);
    return code;
}

const char *remote_channel_end_describe(const struct remote_channel_end *end, char *buffer, size_t size) {
    if (end->signal[0])
        snprintf(buffer, size, "was killed by signal %s", end->signal);
    else if (end->exited)
        snprintf(buffer, size, "ended with exit status %d", end->code);
    else
        snprintf(buffer, size, "ended and the server does not say how");
    return buffer;
}

ssize_t remote_channel_read(struct remote_channel *channel, void *bytes, size_t size) {
    return channel->operations->read(channel, bytes, size);
}

ssize_t remote_channel_read_error(struct remote_channel *channel, void *bytes, size_t size) {
    return channel->operations->read_error(channel, bytes, size);
}

ssize_t remote_channel_write(struct remote_channel *channel, const void *bytes, size_t length) {
    return channel->operations->write(channel, bytes, length);
}

void remote_channel_want(struct remote_channel *channel, unsigned events) {
    channel->operations->want(channel, events);
}

int remote_channel_end_input(struct remote_channel *channel) {
    return channel->operations->end_input(channel);
}

void remote_channel_free(struct remote_channel *channel) {
    if (channel)
        channel->operations->free(channel);
}
