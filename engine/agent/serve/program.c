#include "engine/agent/serve/program.h"

#include "engine/foundation/cleanup.h"

#include <errno.h>
#include <fcntl.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 64 << 10 };

static unsigned char digest[SHA256_SIZE];

/* Computes the SHA-256 of the agent's own program file. False when it cannot be read. */
static bool read_digest(void) {
    cleanup_close int file = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
    cleanup_free char *buffer = malloc(BUFFER);
    struct sha256 hash;
    sha256_init(&hash);
    ssize_t got = -1;
    while (buffer && file >= 0 && (got = read(file, buffer, BUFFER)) > 0)
        sha256_add(&hash, buffer, (size_t)got);
    if (got < 0)
        return false;
    sha256_end(&hash, digest);
    return true;
}

const unsigned char *program_sha256(void) {
    static bool tried;
    if (!tried)
        (void)read_digest();
    tried = true;
    return digest;
}

/* -EBADMSG when PATH is named agent-SHA256, and SHA256 is not that of this program. */
int program_check_name(const char *path, struct failure *failure) {
    static const unsigned char unknown[SHA256_SIZE];
    static const char prefix[] = "agent-";
    enum { PREFIX = sizeof prefix - 1, HEX = 2 * SHA256_SIZE };
    char hex[HEX + 1];
    const char *slash = strrchr(path, '/'), *name = slash ? slash + 1 : path;
    if (strlen(name) != PREFIX + HEX || strncmp(name, prefix, PREFIX) != 0 ||
        memcmp(program_sha256(), unknown, sizeof unknown) == 0)
        return 0;
    sha256_to_hex(digest, hex);
    return strcmp(name + PREFIX, hex) == 0
               ? 0
               : failure_set(failure, -EBADMSG, "'%.256s' is damaged: its SHA-256 is %s", path, hex);
}
