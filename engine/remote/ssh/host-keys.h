/*
 * Which host keys are known: files in the format of sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT", each read once
 * for all connections, and one file of this run to which new keys are added.
 *
 * libssh parses the keys and reads hashed names. Files, markers and patterns (with "*", "?" and "!") are read
 * here: libssh would read two files anew for each session, pass over @revoked, and (before its security
 * updates of 0.10) match some patterns in exponential time. libssh has no host certificates: a
 * @cert-authority line makes no key known, but it is found, so that a refusal can name it.
 */
#ifndef ASSAY_SSH_HOST_KEYS_H
#define ASSAY_SSH_HOST_KEYS_H

#include "engine/event-loop/event-loop.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/text.h"

#include <stddef.h>

enum {
    HOST_KEYS_FILE_MAX = 16 << 20, /* bytes of one file */
    HOST_KEYS_FILES_MAX = 16,      /* files of one host */
};

struct host_keys;
struct ssh_key_struct; /* libssh's */

/* ACCEPTED: the file of this run, made when the first key is added; NULL: there is none. */
int host_keys_new(struct event_loop *loop, const char *accepted, struct host_keys **ret,
                  struct failure *failure);
/* From now on, nothing is added to that file. */
void host_keys_seal(struct host_keys *keys);
/* What was added and is not on the disk yet is synced. NULL is fine. */
void host_keys_free(struct host_keys *keys);

/* Reads FILE now, if it was not read before. Files are read when they are first asked about; one that the
 * user named had better be read before, for one that is not there counts as empty. */
int host_keys_read(struct host_keys *keys, const char *file, struct failure *failure);

enum host_key_verdict {
    HOST_KEY_KNOWN,
    HOST_KEY_UNKNOWN, /* nothing is known of this host */
    HOST_KEY_CHANGED, /* other keys are known, this one is not */
    HOST_KEY_REVOKED,
    HOST_KEY_UNREADABLE, /* a file is there and cannot be read: it might say anything */
};

struct host_key_finding {
    enum host_key_verdict verdict;
    const char *file;   /* where it says so; when UNKNOWN, that of a @cert-authority line for this host or
                         * NULL; valid as long as the keys and the place */
    size_t line;        /* 0 when UNREADABLE */
    const char *reason; /* when UNREADABLE: a sentence; as valid */
};

/* A host as known_hosts names it: "name", "[name]:port", in lower case; and the files that count. */
struct host_key_place {
    const char *name;
    const char
        *name_without_port; /* counts where NAME is unknown and this has the key; NULL: does not count */
    const char *const *files;
    size_t file_count;
    const char *revoked; /* RevokedHostKeys of ssh_config: public keys, one a line, that no host may show;
                            NULL: none */
};

struct host_key_finding host_keys_look_up(struct host_keys *keys, const struct host_key_place *place,
                                          const struct ssh_key_struct *key);

/* Appends the signature algorithms of the known keys of this host, then those that are not among them,
 * separated by commas, as SSH_OPTIONS_HOSTKEYS wants them: a server that has several keys then shows one that
 * is known. */
void host_keys_algorithms(struct host_keys *keys, const struct host_key_place *place, struct text *ret);

/* Adds the line "NAME TYPE KEY", TYPE as in the file ("ssh-ed25519") and KEY in base64, to the file of this
 * run: written at once, on the disk within 0.1 s, so that many nodes do not wait for many syncs. -ENOTSUP
 * when there is no such file. */
int host_keys_accept(struct host_keys *keys, const char *name, const char *type, const char *key,
                     struct failure *failure);

#endif
