/*
 * How the nodes of a testbed are reached, as a campaign says it beside the key that names the testbed:
 *
 *     testbed:
 *       hosts: dahu-[1-32].grenoble
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
 *       deploy: debian12.tar.zst        # a fresh system for the run: deploy.h
 *       lease: 5 min                    # an agent leaves when it has not heard from the engine for so long
 *       sudo: no                        # yes ([sudo, -n]), or words: controls are set by it
 *
 * Files are relative to the campaign; `~/` is the home folder of whoever runs it.
 */
#ifndef ASSAY_TESTBED_ACCESS_H
#define ASSAY_TESTBED_ACCESS_H

#include "engine/documents/bind.h"
#include "engine/remote/launch/launcher.h"
#include "engine/remote/nodes/ssh-nodes.h"
#include "engine/testbed/deploy.h"
#include "engine/testbed/testbed.h"

#include <stddef.h>
#include <stdint.h>

struct access_settings {
    char *user;   /* NULL here and below: what ssh's configuration says */
    int64_t port; /* 0: likewise */
    struct bind_texts identities;
    char *jump, *config, *known_hosts;
    int host_keys; /* enum host_key_policy */
    int64_t window;
    double timeout, lease;  /* seconds */
    int agent;              /* enum agent_kind */
    struct bind_texts sudo; /* none: controls are set by the user */
    struct access_launcher {
        char *by;                        /* "ssh", "srun", "oarsh"; NULL: by the programs: */
        struct bind_texts start, attach; /* none: libssh */
    } launcher;
    struct deploy_settings deploy;
};

enum host_key_policy { HOST_KEYS_KNOWN, HOST_KEYS_ACCEPT_NEW };

/* The keys above, for a bind_field of type BIND_MAPPING without a key. */
enum { ACCESS_FIELDS = 14 };
extern const struct bind_field access_fields[ACCESS_FIELDS];

/* Makes *PATH absolute: below the home folder ("~/"), or FOLDER, that of the campaign. NULL stays. */
void access_place_path(char **path, const char *folder);
/* The defaults. */
void access_init(struct access_settings *settings);
/* After binding: makes paths absolute and refuses what cannot be meant. */
int access_check(struct access_settings *settings, const struct testbed_written *written,
                 struct failure *failure);
/* Of what bind_resolve() has added to OBJECT, takes away what check() refuses beside the launcher. */
void access_leave_out(const struct access_settings *settings, cJSON *object);
/* As the testbed's own describe(). */
int access_describe(const struct access_settings *settings, struct text *ret);
/* What leads to the nodes, which borrows from the settings; *RET_WORDS is its memory. NULL: libssh. */
const struct launcher_words *access_launcher(const struct access_settings *settings,
                                             struct launcher_words *ret_words);

/* As the testbed's own kills_agents(): a step of Slurm's ends with its job, and all that it runs with it; so
 * does what oarsh starts, which is put into the job's cpuset (oarsh_shell): that is killed by SIGKILL, on all
 * nodes of the job (job_resource_manager_cgroups.pl, clean). */
bool access_kills_agents(const struct access_settings *settings);

/* The nodes of a reservation, as far as reaching them goes. WORDS: what leads to them; NULL: libssh; borrowed
 * until access_close(). */
struct access;
/* Of a connection of its own, with the same settings. */
struct ssh_client_options access_ssh_options(const struct access_settings *settings,
                                             const char *accepted_hosts);

/* KNOWN_HOSTS: of nodes whose host keys are new and known; that file counts beside the user's, and unknown
 * keys are refused whatever `host-keys` says. NULL: there is none. */
int access_open(const struct access_settings *settings, const struct testbed_request *request,
                const struct launcher_words *words, const char *known_hosts, struct access **ret,
                struct failure *failure);
void access_close(struct access *access); /* NULL is fine */
struct ssh_nodes *access_nodes(const struct access *access);
/* As the testbed's own agent(). */
struct testbed_agent access_agent(const struct testbed *testbed, const struct transport *transport);

#endif
