/*
 * What a campaign says to the testbed `hosts`, checked. Private to this room.
 *
 *     testbed:
 *       hosts: dahu-[1-32].grenoble     # names or ranges, a list of them, or {file: hosts.txt}
 *       spares: dahu-[33-34].grenoble   # likewise: connected only when one of the hosts is lost
 *       user: root
 *       port: 22
 *       identity: ~/.ssh/id             # a private key, or a list of them, tried before all others
 *       jump: access.grenoble           # [user@]host[:port],...: through these
 *       ssh-config: FILE                # instead of ~/.ssh/config and /etc/ssh/ssh_config; none
 *       known-hosts: FILE               # instead of ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts
 *       host-keys: known                # or accept-new: unknown keys are noted in the run's folder
 *       window: 64                      # connections being set up at once
 *       timeout: 20 s                   # for each step of a connection
 *       agent: auto                     # or binary, or source
 *       launcher: ssh                   # libssh; or srun or oarsh, or {start: [WORDS], attach: [WORDS]}
 *       lease: 5 min                    # an agent leaves when it has not heard from the engine for so long
 *
 * Files are relative to the campaign; `~/` is the home folder of whoever runs it.
 */
#ifndef ASSAY_TESTBED_HOST_SETTINGS_H
#define ASSAY_TESTBED_HOST_SETTINGS_H

#include "engine/documents/bind.h"
#include "engine/foundation/host-list.h"
#include "engine/remote/launch/launcher.h"
#include "engine/testbed/testbed.h"

#include <stddef.h>
#include <stdint.h>

struct testbed_settings {
    struct host_list hosts; /* destinations, [user@]host[:port]; the last of them are the spares */
    size_t host_count;      /* without the spares */
    char **names;           /* of the nodes, one a destination, in the same order */
    size_t name_count;      /* of them, so far */
    char *user;             /* NULL here and below: what ssh's configuration says */
    int64_t port;           /* 0: likewise */
    struct bind_texts identities;
    char *jump, *config, *known_hosts;
    int host_keys; /* enum host_key_policy */
    int64_t window;
    double timeout, lease; /* seconds */
    int agent;             /* enum agent_kind */
    struct testbed_launcher {
        char *by;                        /* "ssh", "srun", "oarsh"; NULL: by the programs: */
        struct bind_texts start, attach; /* none: libssh */
    } launcher;
};

enum host_key_policy { HOST_KEYS_KNOWN, HOST_KEYS_ACCEPT_NEW };

/* What leads to the nodes, which borrows from the settings; *RET_WORDS is its memory. NULL: libssh. */
const struct launcher_words *host_settings_launcher(const struct testbed_settings *settings,
                                                    struct launcher_words *ret_words);

/* As the testbed's own bind(), free_settings(), describe() and resolve(). */
int host_settings_bind(const struct testbed_written *written, struct testbed_settings **ret,
                       struct failure *failure);
void host_settings_free(struct testbed_settings *settings);
int host_settings_describe(const struct testbed_settings *settings, struct text *ret);
void host_settings_resolve(const struct testbed_settings *settings, cJSON *object);

#endif
