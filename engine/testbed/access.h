/*
 * How the nodes of a testbed are reached, as a campaign says it beside the key that names the testbed:
 *
 *     testbed:
 *       hosts: dahu-[1-32].grenoble
 *       user: root
 *       port: 22
 *       identity: ~/.ssh/id             # a private key, or a list of them, tried before all others
 *       jump: access.grenoble           # [user@]host[:port],...: connect through these hosts
 *       ssh-config: FILE                # instead of ~/.ssh/config and /etc/ssh/ssh_config; or none
 *       known-hosts: FILE               # instead of ~/.ssh/known_hosts and /etc/ssh/ssh_known_hosts
 *       host-keys: known                # or accept-new: unknown keys are noted in the run's folder
 *       window: 64                      # connections being set up at once
 *       timeout: 20 s                   # for each step of a connection
 *       agent: auto                     # or binary, or source
 *       launcher: ssh                   # libssh; or srun or oarsh, or {start: [WORDS], attach: [WORDS]}
 *       deploy: debian12.tar.zst        # a fresh system for the run: deploy.h
 *       lease: 5 min                    # an agent ends when it has not heard from the engine for so long
 *       sudo: no                        # yes ([sudo, -n]), or a command's words: sets controls as root
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
    char *user;   /* NULL here and below: as ssh's configuration says */
    int64_t port; /* 0: as ssh's configuration says */
    struct bind_texts identities;
    char *jump, *config, *known_hosts;
    int host_keys; /* enum host_key_policy */
    int64_t window;
    double timeout, lease;  /* seconds */
    int agent;              /* enum agent_kind */
    struct bind_texts sudo; /* the command that sets controls as root; empty: the user sets them */
    struct access_launcher {
        char *by;                        /* "ssh", "srun", "oarsh"; NULL: start and attach */
        struct bind_texts start, attach; /* commands; both empty: libssh */
    } launcher;
    struct deploy_settings deploy;
};

enum host_key_policy { HOST_KEYS_KNOWN, HOST_KEYS_ACCEPT_NEW };

/* The keys above, for a bind_field of type BIND_MAPPING without a key. */
enum { ACCESS_FIELDS = 14 };
extern const struct bind_field access_fields[ACCESS_FIELDS];

/* Makes *PATH absolute: below the home folder for "~/", else below FOLDER, the campaign's. NULL stays NULL.
 */
void access_place_path(char **path, const char *folder);
/* Sets the defaults; SETTINGS is zeroed. */
void access_init(struct access_settings *settings);
/* Called after binding: makes paths absolute; refuses files that cannot be read, and settings that do not go
 * together. */
int access_check(struct access_settings *settings, const struct testbed_written *written,
                 struct failure *failure);
/* Removes from OBJECT, which bind_resolve() has filled, the settings of ssh where a launcher other than
 * libssh is used: access_check() would refuse them when the resolved campaign is read. */
void access_leave_out(const struct access_settings *settings, cJSON *object);
/* As the backend's describe(). */
int access_describe(const struct access_settings *settings, struct text *ret);
/* The commands that start agents on the nodes and attach to them; NULL: libssh does. They borrow from
 * SETTINGS, and may be stored in *RET_WORDS. */
const struct launcher_words *access_launcher(const struct access_settings *settings,
                                             struct launcher_words *ret_words);

/* As the backend's kills_agents(); true for srun and oarsh. A step of Slurm ends with its job, with all
 * processes of the step. oarsh puts processes into the job's cpuset (oarsh_shell), whose processes OAR kills
 * by SIGKILL on all nodes of the job (job_resource_manager_cgroups.pl, clean). */
bool access_kills_agents(const struct access_settings *settings);

/* Connections to the nodes of a reservation. */
struct access;
/* Options for a separate ssh connection with the same settings. */
struct ssh_client_options access_ssh_options(const struct access_settings *settings,
                                             const char *accepted_hosts);

/* Prepares connections. WORDS: the commands of the launcher, NULL: libssh; borrowed until access_close().
 * KNOWN_HOSTS: a file with the host keys of fresh nodes, used beside the user's files; unknown keys are then
 * refused whatever `host-keys` says. NULL: there is no such file. */
int access_open(const struct access_settings *settings, const struct testbed_request *request,
                const struct launcher_words *words, const char *known_hosts, struct access **ret,
                struct failure *failure);
void access_close(struct access *access); /* NULL is fine */
struct ssh_nodes *access_nodes(const struct access *access);
/* As the backend's agent(). */
struct testbed_agent access_agent(const struct testbed *testbed, const struct transport *transport);

#endif
