/* SHA-256 by libcrypto: of bytes as they pass, of a buffer, of a file; and SHA-512 of a file. */
#ifndef ASSAY_FOUNDATION_HASH_H
#define ASSAY_FOUNDATION_HASH_H

#include "engine/foundation/failure.h"

#include <stddef.h>
#include <stdint.h>

enum {
    HASH_HEX_SIZE = 65,         /* 64 lower-case hexadecimal digits and a NUL */
    HASH_SHA512_HEX_SIZE = 129, /* 128 digits and a NUL */
};

struct hash; /* a hash in progress */

struct hash *hash_new(void); /* never NULL */
void hash_free(struct hash *hash);
void hash_update(struct hash *hash, const void *bytes, size_t length);
/* Ends the hash and writes it; the hash starts anew. */
void hash_finish(struct hash *hash, char hex[static HASH_HEX_SIZE]);

/* 0. */
int hash_bytes(const void *bytes, size_t length, char hex[static HASH_HEX_SIZE]);
/* Streams the file: memory is bounded. RET_SIZE may be NULL. */
int hash_file(const char *path, char hex[static HASH_HEX_SIZE], uint64_t *ret_size, struct failure *failure);
/* The same with SHA-512. */
int hash_file_sha512(const char *path, char hex[static HASH_SHA512_HEX_SIZE], struct failure *failure);

#endif
