#include "engine/command-line/archive-sign.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/process.h"
#include "engine/foundation/text.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

/* Of signatures by ssh-keygen: they are of this kind of thing, and of nothing else. */
#define NAMESPACE "file"
enum {
    SIGNATURE_BYTES_MAX = 64 << 10,
    PRINCIPAL_BYTES_MAX = 4 << 10,
    MANIFEST_BYTES_MAX = 256 << 20,
    SIGNERS_BYTES_MAX = 1 << 20
};

/* ---- ssh-keygen */

/* Its exit status; FAILURE where it cannot be run. A passphrase is asked for on the terminal. */
static int run_keygen(const char *const *arguments, const struct text *input, struct text *output,
                      struct text *errors, struct failure *failure) {
    int r = process_run(arguments, input, output, errors);
    return r >= 0 ? r
                  : failure_set(failure, r, "cannot run ssh-keygen: %s; signatures need OpenSSH 8.2 or later",
                                strerror(-r));
}

/* "Could not verify signature.": the line of ERRORS that says why. */
static int refuse(const struct archive_reader *archive, const struct text *errors, const char *what,
                  struct failure *failure) {
    int length;
    const char *why = text_reason(errors->bytes, &length);
    return failure_verification(failure, archive_path(archive), "%s%s%.*s", what, length ? ": " : "", length,
                                why);
}

/* ---- Signing */

static int read_manifest(struct archive_reader *archive, struct text *ret, struct failure *failure) {
    text_init(ret, MANIFEST_BYTES_MAX);
    return archive_read_member(archive, ARCHIVE_MANIFEST, ret, failure);
}

int archive_sign(const struct verb_arguments *arguments, struct failure *failure) {
    const char *path = arguments->operands[1], *key = verb_value(arguments, "--key");
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    cleanup(text_clear) struct text manifest = {0}, signature, errors;
    cleanup_free char *target = xformat("%s.sig", path);
    text_init(&signature, SIGNATURE_BYTES_MAX);
    text_init(&errors, SIGNATURE_BYTES_MAX);
    if (!key)
        return failure_input(
            failure, NULL, 0, 0,
            "no key is given; expected --key FILE, a private key, or a public one whose private key "
            "the ssh agent has");
    int r = archive_open(path, &archive, failure);
    r = r < 0 ? r : archive_verify(archive, failure); /* nobody signs what is damaged */
    r = r < 0 ? r : read_manifest(archive, &manifest, failure);
    if (r < 0)
        return r;
    const char *const words[] = {"ssh-keygen", "-Y", "sign", "-q", "-n", NAMESPACE, "-f", key, NULL};
    r = run_keygen(words, &manifest, &signature, &errors, failure);
    if (r > 0) {
        int length;
        const char *why = text_reason(errors.bytes, &length);
        return failure_input(failure, NULL, 0, 0, "cannot sign '%s' with the key '%s': %.*s", path, key,
                             length, why);
    }
    r = r < 0 ? r : file_replace(target, signature.bytes, signature.length, 0666, failure);
    if (r == 0)
        printf("%s\n", target);
    return r;
}

/* ---- Verifying */

/* The signature beside the archive, or else the member that another program has put into it. */
static int read_signature(struct archive_reader *archive, struct text *ret, struct failure *failure) {
    static const char begin[] = "-----BEGIN SSH SIGNATURE-----";
    cleanup_free char *path = xformat("%s.sig", archive_path(archive));
    text_init(ret, SIGNATURE_BYTES_MAX);
    bool is_beside = file_exists(path);
    if (!is_beside && !archive_find(archive, ARCHIVE_SIGNATURE, NULL))
        return failure_verification(
            failure, archive_path(archive),
            "there is no signature: neither the file '%s' nor the member " ARCHIVE_SIGNATURE, path);
    int r = is_beside ? file_read(path, ret, failure)
                      : archive_read_member(archive, ARCHIVE_SIGNATURE, ret, failure);
    if (r == 0 && strncmp(ret->bytes, begin, sizeof begin - 1) != 0)
        return failure_verification(failure, archive_path(archive), "'%s' %s; 'assay archive sign' makes one",
                                    is_beside ? path : ARCHIVE_SIGNATURE,
                                    ret->length ? "has no SSH signature" : "is empty");
    return r;
}

/* Why nobody was found in SIGNERS, a file: it has no key, or ERRORS of ssh-keygen begin with one of its
 * lines. 0: it is as it should be. */
static int check_signers(const char *signers, const struct text *errors, struct failure *failure) {
    cleanup(text_clear) struct text keys;
    cleanup_free char *place = xformat("%s:", signers);
    text_init(&keys, SIGNERS_BYTES_MAX);
    int r = file_read(signers, &keys, failure);
    bool is_malformed = strncmp(errors->bytes, place, strlen(place)) == 0;
    const char *line = is_malformed ? errors->bytes + strlen(place) : "";
    if (r < 0 || (!is_malformed && strstr(keys.bytes, "AAAA"))) /* as every public key begins */
        return r;
    cleanup_free char *why = is_malformed ? xformat("line %.*s", (int)strcspn(line, "\r\n"), line)
                                          : xstrdup("there is no key in it");
    return failure_input(failure, NULL, 0, 0,
                         "the allowed signers '%s' cannot be read: %s; expected lines of a name and a public "
                         "key, such as 'me@example.org ssh-ed25519 AAAA...' (ssh-keygen(1), ALLOWED SIGNERS)",
                         signers, why);
}

int archive_check_signature(struct archive_reader *archive, const char *signers, char **ret_who,
                            struct failure *failure) {
    cleanup(text_clear) struct text manifest = {0}, signature = {0}, who, errors;
    text_init(&who, PRINCIPAL_BYTES_MAX);
    text_init(&errors, SIGNATURE_BYTES_MAX);
    if (access(signers, R_OK) < 0)
        return failure_input(failure, NULL, 0, 0, "cannot read the allowed signers '%s': %s", signers,
                             strerror(errno));
    int r = read_manifest(archive, &manifest, failure);
    r = r < 0 ? r : read_signature(archive, &signature, failure);
    if (r < 0)
        return r;
    cleanup_close int file = process_memory_file(&signature);
    cleanup_free char *path = xformat("/proc/%jd/fd/%d", (intmax_t)getpid(), file);
    const char *const find[] = {"ssh-keygen", "-Y", "find-principals", "-s", path, "-f", signers, NULL};
    r = run_keygen(find, &manifest, &who, &errors, failure);
    if (r < 0)
        return r;
    /* Of a key of several principals, the first. */
    cleanup_free char *principal = xstrndup(who.bytes, strcspn(who.bytes, "\n"));
    if (r > 0 || !principal[0])
        r = check_signers(signers, &errors, failure);
    if (r < 0)
        return r;
    if (!principal[0])
        return refuse(archive, &errors, "its signature is of nobody that the allowed signers have", failure);
    const char *const verify[] = {"ssh-keygen", "-Y", "verify", "-n", NAMESPACE, "-I",
                                  principal,    "-s", path,     "-f", signers,   NULL};
    text_reset(&errors);
    r = run_keygen(verify, &manifest, &signature, &errors, failure);
    if (r > 0)
        return refuse(archive, &errors, "its signature is not of this manifest", failure);
    *ret_who = r == 0 ? take_pointer(principal) : NULL;
    return r;
}
