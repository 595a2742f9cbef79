/* What ssh-config.c reads and ssh-config-look-up.c follows. Nobody else includes it. */
#ifndef ASSAY_SSH_CONFIG_INSIDE_H
#define ASSAY_SSH_CONFIG_INSIDE_H

#include "engine/remote/ssh/config.h"

#include "engine/foundation/text.h"

enum ssh_keyword {
    SSH_KEYWORD_CONNECT_TIMEOUT,
    SSH_KEYWORD_HOST,
    SSH_KEYWORD_HOST_KEY_ALIAS,
    SSH_KEYWORD_HOST_NAME,
    SSH_KEYWORD_IDENTITIES_ONLY,
    SSH_KEYWORD_IDENTITY_AGENT,
    SSH_KEYWORD_IDENTITY_FILE,
    SSH_KEYWORD_INCLUDE,
    SSH_KEYWORD_MATCH,
    SSH_KEYWORD_PORT,
    SSH_KEYWORD_PROXY_COMMAND,
    SSH_KEYWORD_PROXY_JUMP,
    SSH_KEYWORD_USER,
    SSH_KEYWORD_USER_KNOWN_HOSTS_FILE,
    /* Not in files: an included file begins and ends; what comes after is again for the hosts before it. */
    SSH_KEYWORD_BEGIN,
    SSH_KEYWORD_END,
    /* A file of its own: what comes is for every host. */
    SSH_KEYWORD_FILE,
};

struct ssh_directive {
    enum ssh_keyword keyword;
    char **arguments; /* owned, each too */
    size_t count;
    const char *file; /* one of struct ssh_config's */
    size_t line;
    unsigned number; /* the value of Port, ConnectTimeout (s) and IdentitiesOnly (0, 1) */
};

enum { SSH_INCLUDE_DEPTH_MOST = 16 };

struct ssh_config {
    struct ssh_directive *directives;
    size_t count, capacity;
    char **files; /* owned names of what was read */
    size_t file_count, file_capacity;
    size_t bytes; /* read in all */
};

/* The folder of USER (LENGTH bytes; none: of the user who runs us, $HOME first) in fresh memory, or NULL. */
char *ssh_home_folder(const char *user, size_t length);
/* PATH with "~" or "~user" at its start made a folder, in fresh memory. -ENOENT: no such user. */
int ssh_expand_home(const char *path, char **ret);

#endif
