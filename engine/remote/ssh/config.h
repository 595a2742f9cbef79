/*
 * What the user's ssh configuration says of one destination: the part of ssh_config(5) that assay follows.
 *
 * Keywords: Host (patterns with * ? and !), Match (`all`, `host` and `originalhost` with pattern lists; any
 * other criterion never matches, for it may run commands), Include (relative names are below ~/.ssh, or below
 * /etc/ssh in the system's file; globs; 16 levels), HostName (%h, %%), User, Port, IdentityFile (several; ~
 * and %d %h %i %n %p %r %u %%, where %r and %p are what the files say, or the local user and 22),
 * IdentitiesOnly, IdentityAgent, ProxyJump, ProxyCommand (only to be refused: it would be shell text; of it
 * and ProxyJump, the first counts), UserKnownHostsFile, HostKeyAlias, ConnectTimeout. As in OpenSSH, the
 * first value found counts, except that IdentityFile adds up; keywords are case-insensitive; others are
 * passed over. "~" is $HOME.
 */
#ifndef ASSAY_SSH_CONFIG_H
#define ASSAY_SSH_CONFIG_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>

/* Strings are owned, NULL where nothing was said. */
struct ssh_host {
    char *host_name; /* to connect to, in lower case; never NULL after ssh_config_look_up() */
    char *user;
    unsigned port; /* 0: nothing was said */
    char **identities;
    size_t identity_count;
    bool identities_only;
    char *identity_agent; /* a socket's path, "none", or "SSH_AUTH_SOCK" */
    char *proxy_jump;     /* "[user@]host[:port],...", or "none" */
    char *proxy_command;  /* or "none" */
    char *known_hosts;    /* files, parted by blanks, ~ expanded */
    char *host_key_alias;
    unsigned connect_timeout; /* s; 0: nothing was said */
};
void ssh_host_clear(struct ssh_host *host);

struct ssh_config; /* the files, read once */

/* Reads PATH and what it includes, then /etc/ssh/ssh_config when PATH is NULL (then ~/.ssh/config is read,
 * and neither need exist). "none" or "": an empty configuration. Failures have file and line: a file that
 * cannot be read, a keyword without its value, a port that is none. At most 1 MiB a file. */
int ssh_config_read(const char *path, struct ssh_config **ret, struct failure *failure);
void ssh_config_free(struct ssh_config *config);

/* DESTINATION: the host as the user named it, without user and port. Fills RET, which the caller clears. */
int ssh_config_look_up(const struct ssh_config *config, const char *destination, struct ssh_host *ret,
                       struct failure *failure);

/* Splits "[user@]host[:port]", "[user@][address]:port" and "ssh://[user@]host[:port]". *RET_USER NULL and
 * *RET_PORT 0 where there is none; strings owned by the caller. FAILURE_INPUT when it is none, or when a part
 * begins with "-" or has a character that no name has. */
int ssh_destination_parse(const char *destination, char **ret_user, char **ret_host, unsigned *ret_port,
                          struct failure *failure);

#endif
