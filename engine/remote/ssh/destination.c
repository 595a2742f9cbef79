/* Parses destinations, [user@]host[:port]. */
#include "engine/foundation/memory.h"
#include "engine/foundation/number.h"
#include "engine/remote/ssh/config.h"

#include <errno.h>
#include <stdint.h>
#include <string.h>

enum { USER_MAX = 255, HOST_MAX = 255 };

static const char letters[] = "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789";

static bool is_made_of(const char *text, size_t length, const char *others) {
    for (size_t i = 0; i < length; i++)
        if (!strchr(letters, text[i]) && !strchr(others, text[i]))
            return false;
    return true;
}

/* The parts of a destination, as pointers into it with lengths. */
struct parts {
    const char *user, *host, *port;
    size_t user_length, host_length, port_length; /* 0: there is no such part */
};

/* Splits a destination. False: it has an empty part, or text after a part where none is allowed. */
static bool split_destination(const char *text, struct parts *ret) {
    const char *at = strchr(text, '@');
    *ret = (struct parts){.user = text, .user_length = at ? (size_t)(at - text) : 0};
    const char *host = at ? at + 1 : text, *colon = strchr(host, ':');
    bool is_bracketed = *host == '[', is_address = colon && strchr(colon + 1, ':');
    ret->host = host + is_bracketed;
    ret->host_length = strcspn(ret->host, is_bracketed ? "]" : is_address ? "" : ":");
    const char *after = ret->host + ret->host_length;
    if ((at && at == text) || ret->host_length == 0 || (is_bracketed && *after != ']'))
        return false;
    after += is_bracketed;
    ret->port = after + (*after == ':');
    ret->port_length = strlen(ret->port);
    return *after == '\0' || (*after == ':' && ret->port_length > 0);
}

/* Why the parts are no valid destination; NULL: they are valid. */
static const char *find_problem(const struct parts *parts) {
    size_t address_length = strcspn(parts->host, "%]");
    bool is_address = memchr(parts->host, ':', parts->host_length);
    if (parts->user_length > USER_MAX || parts->host_length > HOST_MAX)
        return "a part is longer than 255 bytes";
    if ((parts->user_length && parts->user[0] == '-') || parts->host[0] == '-')
        return "a part begins with '-', as options do";
    if (!is_made_of(parts->user, parts->user_length, "-._+%$\\"))
        return "the user name has a character that user names cannot have";
    if (!is_made_of(parts->host, parts->host_length, is_address ? ":.%-_" : "-._"))
        return "the host name has a character that host names cannot have";
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
    if (!split_destination(destination, &parts))
        return refuse(destination, NULL, failure);
    const char *why = find_problem(&parts);
    if (why)
        return refuse(destination, why, failure);
    uint64_t port = 0;
    if (parts.port_length > 0 &&
        (!number_parse_uint64(parts.port, parts.port_length, &port) || port < 1 || port > 65535))
        return refuse(destination, "the port is not one of 1 to 65535", failure);
    *ret_user = parts.user_length ? xstrndup(parts.user, parts.user_length) : NULL;
    *ret_host = xstrndup(parts.host, parts.host_length);
    *ret_port = (unsigned)port;
    return 0;
}
