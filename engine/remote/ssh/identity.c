#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/remote/ssh/connection-private.h"

#include <endian.h>
#include <errno.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

/* Called by libssh to ask for a passphrase. None is given, but the question shows that the key is encrypted.
 */
static int note_passphrase(const char *prompt, char *passphrase, size_t size, int echo, int verify,
                           void *context) {
    (void)prompt;
    (void)passphrase;
    (void)size;
    (void)echo;
    (void)verify;
    bool *encrypted = context;
    *encrypted = true;
    return -1;
}

/* The public part of KEY in ssh's wire format, or NULL. The caller frees. */
static unsigned char *export_public(ssh_key key, size_t *ret_length) {
    static const char digits[] = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
    char *base64 = NULL;
    *ret_length = 0;
    if (ssh_pki_export_pubkey_base64(key, &base64) != SSH_OK)
        return NULL;
    unsigned char *bytes = xcalloc(strlen(base64) + 1, 1);
    unsigned held = 0, bits = 0;
    for (const char *at = base64, *digit; *at && (digit = strchr(digits, *at)); at++) {
        held = held << 6 | (unsigned)(digit - digits);
        bits += 6;
        if (bits >= 8)
            bytes[(*ret_length)++] = (unsigned char)(held >> (bits -= 8));
    }
    ssh_string_free_char(base64);
    return bytes;
}

/* True for a regular file, also one that this user may not read: libssh would wait for the writer of a FIFO.
 */
static bool is_file(const char *path) {
    cleanup_close int file = file_open(path, FILE_REGULAR, NULL);
    return file >= 0 || file == -EACCES;
}

/* Reads the public key of an identity without a private one: from its file (a public key, or one before an
 * encrypted private key), or from the file PATH.pub. */
static void read_public(struct ssh_identity *identity) {
    cleanup_free char *beside = xformat("%s.pub", identity->path);
    if ((identity->missing || ssh_pki_import_pubkey_file(identity->path, &identity->public) != SSH_OK) &&
        (!is_file(beside) || ssh_pki_import_pubkey_file(beside, &identity->public) != SSH_OK))
        return;
    size_t length;
    cleanup_free unsigned char *bytes = export_public(identity->public, &length);
    if (bytes)
        (void)hash_bytes(bytes, length, identity->hash);
}

/* The identity of the file PATH, read once for all nodes. One that cannot be read has no key. */
struct ssh_identity *ssh_identity_get(struct ssh_client *client, const char *path) {
    struct ssh_identity **end = &client->identities;
    for (; *end; end = &(*end)->next)
        if (strcmp((*end)->path, path) == 0)
            return *end;
    struct ssh_identity *identity = xcalloc(1, sizeof *identity);
    identity->path = xstrdup(path);
    identity->missing = !is_file(path);
    if (!identity->missing && ssh_pki_import_privkey_file(path, NULL, note_passphrase, &identity->encrypted,
                                                          &identity->key) != SSH_OK)
        identity->key = NULL;
    if (!identity->key)
        read_public(identity);
    return *end = identity;
}

/* The position after the string at AT, which begins with its length; LENGTH: the string is cut off. */
static size_t skip_string(const unsigned char *bytes, size_t length, size_t at) {
    uint32_t size;
    if (length - at < sizeof size)
        return length;
    memcpy(&size, bytes + at, sizeof size);
    return be32toh(size) > length - at - sizeof size ? length : at + sizeof size + be32toh(size);
}

/* True where CERTIFICATE is for KEY, which libssh cannot tell. A key is its type and its numbers; a
 * certificate is its type, a nonce and the same numbers. */
static bool certifies(ssh_key certificate, ssh_key key) {
    size_t length, key_length;
    cleanup_free unsigned char *bytes = export_public(certificate, &length);
    cleanup_free unsigned char *key_bytes = export_public(key, &key_length);
    if (!bytes || !key_bytes)
        return false;
    size_t at = skip_string(bytes, length, skip_string(bytes, length, 0));
    size_t key_at = skip_string(key_bytes, key_length, 0), numbers = key_length - key_at;
    return numbers > 0 && length - at >= numbers && memcmp(bytes + at, key_bytes + key_at, numbers) == 0;
}

/* The identity OF with the certificate of the file PATH. NULL: the file is no certificate of its key. */
struct ssh_identity *ssh_identity_certified(struct ssh_client *client, const struct ssh_identity *of,
                                            const char *path) {
    ssh_key own = of->key ? of->key : of->public, certificate = NULL;
    if (!own || !is_file(path) || ssh_pki_import_cert_file(path, &certificate) != SSH_OK)
        return NULL;
    struct ssh_identity **end = &client->identities, *identity = NULL;
    bool belongs = certifies(certificate, own);
    while (*end && strcmp((*end)->path, path) != 0)
        end = &(*end)->next;
    if (belongs && !*end) {
        identity = *end = xcalloc(1, sizeof *identity);
        identity->path = xstrdup(path);
        identity->certificate = true;
        identity->key = of->key ? ssh_key_dup(of->key) : NULL;
        if (identity->key && ssh_pki_copy_cert_to_privkey(certificate, identity->key) != SSH_OK) {
            ssh_key_free(identity->key);
            identity->key = NULL;
        }
    }
    ssh_key_free(certificate);
    return belongs ? *end : NULL;
}

void ssh_identity_free_all(struct ssh_client *client) {
    while (client->identities) {
        struct ssh_identity *identity = client->identities;
        client->identities = identity->next;
        ssh_key_free(identity->key);
        ssh_key_free(identity->public);
        free(identity->path);
        free(identity);
    }
}
