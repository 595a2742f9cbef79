#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/remote/ssh/inside.h"

#include <stdlib.h>
#include <string.h>

/* libssh asks for the passphrase. None is given, but the question shows that the key is encrypted. */
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

struct ssh_identity *ssh_identity_get(struct ssh_client *client, const char *path) {
    struct ssh_identity **end = &client->identities;
    for (; *end; end = &(*end)->next)
        if (strcmp((*end)->path, path) == 0)
            return *end;
    struct ssh_identity *identity = xcalloc(1, sizeof *identity);
    identity->path = xstrdup(path);
    identity->missing = !file_exists(path);
    if (!identity->missing && ssh_pki_import_privkey_file(path, NULL, note_passphrase, &identity->encrypted,
                                                          &identity->key) != SSH_OK)
        identity->key = NULL;
    return *end = identity;
}

void ssh_identity_free_all(struct ssh_client *client) {
    while (client->identities) {
        struct ssh_identity *identity = client->identities;
        client->identities = identity->next;
        ssh_key_free(identity->key);
        free(identity->path);
        free(identity);
    }
}
