#include "engine/foundation/hash.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <fcntl.h>
#include <openssl/evp.h>
#include <pthread.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum algorithm { SHA256, SHA512, ALGORITHMS };

struct hash {
    EVP_MD_CTX *context;
    enum algorithm algorithm;
};

/* Found once: libcrypto searches its providers whenever it is given EVP_sha256(). */
static EVP_MD *algorithms[ALGORITHMS];

static void find_algorithms(void) {
    algorithms[SHA256] = EVP_MD_fetch(NULL, "SHA256", NULL);
    algorithms[SHA512] = EVP_MD_fetch(NULL, "SHA512", NULL);
}

static struct hash *new_of(enum algorithm algorithm) {
    static pthread_once_t once = PTHREAD_ONCE_INIT;
    struct hash *hash = xmalloc(sizeof *hash);
    pthread_once(&once, find_algorithms);
    hash->algorithm = algorithm;
    hash->context = EVP_MD_CTX_new();
    if (!hash->context || EVP_DigestInit_ex(hash->context, algorithms[algorithm], NULL) != 1)
        memory_exhausted(); /* libcrypto fails for no other reason here */
    return hash;
}

struct hash *hash_new(void) {
    return new_of(SHA256);
}

void hash_free(struct hash *hash) {
    if (!hash)
        return;
    EVP_MD_CTX_free(hash->context);
    free(hash);
}

void hash_update(struct hash *hash, const void *bytes, size_t length) {
    EVP_DigestUpdate(hash->context, bytes, length);
}

/* Writes the digest as hexadecimal digits into HEX, and begins a new hash. */
static void finish(struct hash *hash, char *hex) {
    unsigned char digest[EVP_MAX_MD_SIZE];
    unsigned length = 0;
    EVP_DigestFinal_ex(hash->context, digest, &length);
    EVP_DigestInit_ex(hash->context, algorithms[hash->algorithm], NULL);
    for (unsigned i = 0; i < length; i++) {
        hex[2 * i] = "0123456789abcdef"[digest[i] >> 4];
        hex[2 * i + 1] = "0123456789abcdef"[digest[i] & 15];
    }
    hex[2 * length] = '\0';
}

void hash_finish(struct hash *hash, char hex[static HASH_HEX_SIZE]) {
    finish(hash, hex);
}

static void free_hash(struct hash **hash) {
    hash_free(*hash);
}

int hash_bytes(const void *bytes, size_t length, char hex[static HASH_HEX_SIZE]) {
    cleanup(free_hash) struct hash *hash = hash_new();
    hash_update(hash, bytes, length);
    hash_finish(hash, hex);
    return 0;
}

/* Hashes the file PATH; *RET_SIZE, if not NULL, is its size. Negative with FAILURE: it cannot be read. */
static int hash_content(const char *path, struct hash *hash, uint64_t *ret_size, struct failure *failure) {
    cleanup_close int descriptor = file_open(path, FILE_REGULAR, failure);
    if (descriptor < 0)
        return descriptor;
    char buffer[65536];
    uint64_t size = 0;
    for (;;) {
        ssize_t got = read(descriptor, buffer, sizeof buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failure_set(failure, -errno, "cannot read '%s': %s", path, strerror(errno));
        if (got == 0)
            break;
        hash_update(hash, buffer, (size_t)got);
        size += (uint64_t)got;
    }
    if (ret_size)
        *ret_size = size;
    return 0;
}

int hash_file(const char *path, char hex[static HASH_HEX_SIZE], uint64_t *ret_size, struct failure *failure) {
    cleanup(free_hash) struct hash *hash = hash_new();
    int r = hash_content(path, hash, ret_size, failure);
    if (r == 0)
        finish(hash, hex);
    return r;
}

int hash_file_sha512(const char *path, char hex[static HASH_SHA512_HEX_SIZE], struct failure *failure) {
    cleanup(free_hash) struct hash *hash = new_of(SHA512);
    int r = hash_content(path, hash, NULL, failure);
    if (r == 0)
        finish(hash, hex);
    return r;
}
