/*
 * Known host keys: files in the format of sshd(8), "SSH_KNOWN_HOSTS FILE FORMAT", each read once for all
 * connections, and one file of this run to which new keys are added.
 *
 * libssh parses the keys and reads hashed names. Files, markers and patterns (with "*", "?" and "!") are read
 * here: libssh would read two files for each session, ignore @revoked, and (before its security updates of
 * 0.10) match some patterns in exponential time. libssh has no host certificates: a @cert-authority line
 * makes no key known, but a refusal names it.
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

/* ACCEPTED: the file of this run, made when the first key is added; NULL: no keys are added. */
int host_keys_new(struct event_loop *loop, const char *accepted, struct host_keys **ret,
                  struct failure *failure);
/* From now on no keys are added to that file. */
void host_keys_seal(struct host_keys *keys);
/* Frees, and syncs added keys to the disk. NULL is fine. */
void host_keys_free(struct host_keys *keys);

/* Reads FILE now, if it was not read before. Otherwise files are read at the first look-up, where a missing
 * file counts as empty; so a file that the user has named must be read by this call. */
int host_keys_read(struct host_keys *keys, const char *file, struct failure *failure);

enum host_key_verdict {
    HOST_KEY_KNOWN,
    HOST_KEY_UNKNOWN, /* no key of this host is known */
    HOST_KEY_CHANGED, /* other keys of this host are known */
    HOST_KEY_REVOKED,
    HOST_KEY_UNREADABLE, /* a file exists and cannot be read: it might have or revoke the key */
};

struct host_key_finding {
    enum host_key_verdict verdict;
    /* The file and line of the key. UNKNOWN: those of a @cert-authority line for this host, or NULL. Valid as
     * long as the keys and the place. */
    const char *file;
    size_t line;        /* 0 when UNREADABLE */
    const char *reason; /* when UNREADABLE: a sentence, valid as `file` */
};

/* The names of a host in known_hosts, "name" or "[name]:port" in lower case, and the files to search. */
struct host_key_place {
    const char *name;
    const char *name_without_port; /* searched where `name` is unknown; NULL: none */
    const char *const *files;
    size_t file_count;
    const char *revoked; /* the file RevokedHostKeys: public keys, one a line, that are refused; NULL: none */
};

/* Looks up KEY, which the host has shown. A key that is revoked anywhere is REVOKED, even if it is also
 * known. */
struct host_key_finding host_keys_look_up(struct host_keys *keys, const struct host_key_place *place,
                                          const struct ssh_key_struct *key);

/* Appends signature algorithms, separated by commas, for SSH_OPTIONS_HOSTKEYS: first those of the known keys
 * of this host, then the others. So a server with several keys shows a known one. */
void host_keys_algorithms(struct host_keys *keys, const struct host_key_place *place, struct text *ret);

/* Adds the line "NAME TYPE KEY" (TYPE: "ssh-ed25519"; KEY in base64) to the file of this run. It is written
 * at once, and synced to the disk within 0.1 s, so that many nodes do not wait for a sync each. -ENOTSUP when
 * there is no such file. */
int host_keys_accept(struct host_keys *keys, const char *name, const char *type, const char *key,
                     struct failure *failure);

#endif
