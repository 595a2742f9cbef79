/* SHA-256 (FIPS 180-4), for the agent, which has libc only. */
#ifndef ASSAY_FILES_SHA256_H
#define ASSAY_FILES_SHA256_H

#include <stddef.h>
#include <stdint.h>

enum { SHA256_SIZE = 32, SHA256_BLOCK = 64 };

struct sha256 {
    uint32_t state[8];
    uint64_t length; /* bytes so far */
    unsigned char block[SHA256_BLOCK];
};

void sha256_init(struct sha256 *hash);
void sha256_add(struct sha256 *hash, const void *bytes, size_t length);
/* Ends the message; after that, only sha256_init() may follow. */
void sha256_end(struct sha256 *hash, unsigned char digest[static SHA256_SIZE]);
/* As hexadecimal digits, with a NUL. */
void sha256_to_hex(const unsigned char digest[static SHA256_SIZE], char hex[static 2 * SHA256_SIZE + 1]);

#endif
