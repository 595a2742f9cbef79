/* Destinations: who and where, as users write it. */
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"
#include "engine/remote/ssh/config.h"

#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

enum { USER_MOST = 255, HOST_MOST = 255 };

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

static bool is_made_of(const char *text, size_t length, const char *others) {
    for (size_t i = 0; i < length; i++)
        if (text[i] == '\0' || (!strchr(letters, text[i]) && !strchr(others, text[i])))
            return false;
    return true;
}

/* Where the parts are in a destination; bytes, not strings. */
struct parts {
    const char *user, *host, *port;
    size_t user_length, host_length, port_length; /* 0: there is none */
};

/* False when there is something where nothing should be. */
static bool take_apart(const char *text, struct parts *ret) {
    *ret = (struct parts){0};
    static const char scheme[] = "ssh://";
    size_t length = strlen(text);
    bool is_uri = strncmp(text, scheme, sizeof scheme - 1) == 0;
    if (is_uri) {
        text += sizeof scheme - 1;
        length -= sizeof scheme - 1;
        if (length > 0 && text[length - 1] == '/')
            length--;
    }
    const char *end = text + length, *at = memchr(text, '@', length);
    if (at) {
        ret->user = text;
        ret->user_length = (size_t)(at - text);
        if (at == text)
            return false;
        text = at + 1;
    }
    const char *after; /* the host */
    ret->host = text;
    if (text < end && *text == '[') {
        ret->host = text + 1;
        after = memchr(text, ']', (size_t)(end - text));
        if (!after)
            return false;
        ret->host_length = (size_t)(after++ - ret->host);
    } else {
        const char *colon = memchr(text, ':', (size_t)(end - text));
        bool is_address = colon && memchr(colon + 1, ':', (size_t)(end - colon - 1));
        after = colon && !is_address ? colon : end;
        ret->host_length = (size_t)(after - text);
    }
    if (after == end)
        return ret->host_length > 0;
    ret->port = after + 1;
    ret->port_length = (size_t)(end - ret->port);
    return *after == ':' && ret->port_length > 0 && ret->host_length > 0;
}

static const char *why_none(const struct parts *parts) {
    const char *zone = memchr(parts->host, '%', parts->host_length);
    size_t address_length = zone ? (size_t)(zone - parts->host) : parts->host_length;
    bool is_address = memchr(parts->host, ':', address_length);
    if (parts->user_length > USER_MOST || parts->host_length > HOST_MOST)
        return "a part is longer than 255 bytes";
    if ((parts->user_length && parts->user[0] == '-') || parts->host[0] == '-')
        return "a part begins with '-', as options do";
    if (!is_made_of(parts->user, parts->user_length, "-._+%$\\"))
        return "the user has a character that no user's name has";
    if (!is_made_of(parts->host, parts->host_length, is_address ? ":.%-_" : "-._"))
        return "the host has a character that no host's name has";
    if (is_address && strspn(parts->host, "0123456789abcdefABCDEF:.") < address_length)
        return "the host is neither a name nor an address";
    return NULL;
}

static int refuse(const char *destination, const char *why, struct failure *failure) {
    return failure_set_kind(failure, FAILURE_INPUT, -EINVAL,
                            "'%s' is not a destination%s%s; expected [user@]host[:port]", destination,
                            why ? ": " : "", why ? why : "");
}

int ssh_destination_parse(const char *destination, char **ret_user, char **ret_host, unsigned *ret_port,
                          struct failure *failure) {
    struct parts parts;
    if (!take_apart(destination, &parts))
        return refuse(destination, NULL, failure);
    const char *why = why_none(&parts);
    if (why)
        return refuse(destination, why, failure);
    uint64_t port = 0;
    if (parts.port_length > 0 &&
        (!number_parse_uint64(parts.port, parts.port_length, &port) || port < 1 || port > 65535))
        return refuse(destination, "the port is not one of 1 to 65535", failure);
    cleanup_free char *user = parts.user_length ? strndup(parts.user, parts.user_length) : NULL;
    cleanup_free char *host = strndup(parts.host, parts.host_length);
    if (!host || (parts.user_length && !user))
        return failure_memory(failure);
    *ret_user = take_pointer(user);
    *ret_host = take_pointer(host);
    *ret_port = (unsigned)port;
    return 0;
}
