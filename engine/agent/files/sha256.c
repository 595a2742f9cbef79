#include "engine/agent/files/sha256.h"

#include <stdio.h>
#include <string.h>

/* FIPS 180-4, 4.2.2 and 5.3.3: the first 32 bits of the fractional parts of the cube roots of the first 64
 * primes, and of the square roots of the first 8. */
static const uint32_t constants[SHA256_BLOCK] = {
    0x428a2f98, 0x71374491, 0xb5c0fbcf, 0xe9b5dba5, 0x3956c25b, 0x59f111f1, 0x923f82a4, 0xab1c5ed5,
    0xd807aa98, 0x12835b01, 0x243185be, 0x550c7dc3, 0x72be5d74, 0x80deb1fe, 0x9bdc06a7, 0xc19bf174,
    0xe49b69c1, 0xefbe4786, 0x0fc19dc6, 0x240ca1cc, 0x2de92c6f, 0x4a7484aa, 0x5cb0a9dc, 0x76f988da,
    0x983e5152, 0xa831c66d, 0xb00327c8, 0xbf597fc7, 0xc6e00bf3, 0xd5a79147, 0x06ca6351, 0x14292967,
    0x27b70a85, 0x2e1b2138, 0x4d2c6dfc, 0x53380d13, 0x650a7354, 0x766a0abb, 0x81c2c92e, 0x92722c85,
    0xa2bfe8a1, 0xa81a664b, 0xc24b8b70, 0xc76c51a3, 0xd192e819, 0xd6990624, 0xf40e3585, 0x106aa070,
    0x19a4c116, 0x1e376c08, 0x2748774c, 0x34b0bcb5, 0x391c0cb3, 0x4ed8aa4a, 0x5b9cca4f, 0x682e6ff3,
    0x748f82ee, 0x78a5636f, 0x84c87814, 0x8cc70208, 0x90befffa, 0xa4506ceb, 0xbef9a3f7, 0xc67178f2,
};

void sha256_init(struct sha256 *hash) {
    static const uint32_t start[8] = {0x6a09e667, 0xbb67ae85, 0x3c6ef372, 0xa54ff53a,
                                      0x510e527f, 0x9b05688c, 0x1f83d9ab, 0x5be0cd19};
    memcpy(hash->state, start, sizeof start);
    hash->length = 0;
}

static uint32_t rotate(uint32_t word, int bits) {
    return word >> bits | word << (32 - bits);
}

/* The message schedule, 6.2.2 step 1. */
static void schedule(const unsigned char *block, uint32_t w[SHA256_BLOCK]) {
    for (int t = 0; t < 16; t++)
        w[t] = (uint32_t)block[4 * t] << 24 | (uint32_t)block[4 * t + 1] << 16 |
               (uint32_t)block[4 * t + 2] << 8 | block[4 * t + 3];
    for (int t = 16; t < SHA256_BLOCK; t++) {
        uint32_t s0 = rotate(w[t - 15], 7) ^ rotate(w[t - 15], 18) ^ w[t - 15] >> 3;
        uint32_t s1 = rotate(w[t - 2], 17) ^ rotate(w[t - 2], 19) ^ w[t - 2] >> 10;
        w[t] = s1 + w[t - 7] + s0 + w[t - 16];
    }
}

/* The compression function of SHA-256: updates STATE with one block of 64 bytes. */
static void compress(uint32_t state[8], const unsigned char *block) {
    uint32_t w[SHA256_BLOCK];
    schedule(block, w);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3];
    uint32_t e = state[4], f = state[5], g = state[6], h = state[7];
    for (int t = 0; t < SHA256_BLOCK; t++) {
        uint32_t choose = (e & f) ^ (~e & g), majority = (a & b) ^ (a & c) ^ (b & c);
        uint32_t one = h + (rotate(e, 6) ^ rotate(e, 11) ^ rotate(e, 25)) + choose + constants[t] + w[t];
        uint32_t two = (rotate(a, 2) ^ rotate(a, 13) ^ rotate(a, 22)) + majority;
        h = g;
        g = f;
        f = e;
        e = d + one;
        d = c;
        c = b;
        b = a;
        a = one + two;
    }
    const uint32_t after[8] = {a, b, c, d, e, f, g, h};
    for (int i = 0; i < 8; i++)
        state[i] += after[i];
}

void sha256_add(struct sha256 *hash, const void *bytes, size_t length) {
    const unsigned char *at = bytes;
    size_t held = hash->length % SHA256_BLOCK;
    hash->length += length;
    if (held) {
        size_t wanted = SHA256_BLOCK - held, part = length < wanted ? length : wanted;
        memcpy(hash->block + held, at, part);
        at += part;
        length -= part;
        if (part < wanted)
            return;
        compress(hash->state, hash->block);
    }
    for (; length >= SHA256_BLOCK; at += SHA256_BLOCK, length -= SHA256_BLOCK)
        compress(hash->state, at);
    if (length)
        memcpy(hash->block, at, length);
}

/* 5.1.1: a one bit, zeros, and the length in bits as the last eight bytes of a block. */
void sha256_end(struct sha256 *hash, unsigned char digest[static SHA256_SIZE]) {
    uint64_t bits = hash->length * 8;
    static const unsigned char padding[SHA256_BLOCK] = {0x80};
    size_t held = hash->length % SHA256_BLOCK;
    sha256_add(hash, padding, held < 56 ? 56 - held : 120 - held);
    unsigned char length[8];
    for (int i = 0; i < 8; i++)
        length[i] = (unsigned char)(bits >> (56 - 8 * i));
    sha256_add(hash, length, sizeof length);
    for (int i = 0; i < SHA256_SIZE; i++)
        digest[i] = (unsigned char)(hash->state[i / 4] >> (24 - 8 * (i % 4)));
}

void sha256_to_hex(const unsigned char digest[static SHA256_SIZE], char hex[static 2 * SHA256_SIZE + 1]) {
    for (int i = 0; i < SHA256_SIZE; i++)
        snprintf(hex + 2 * i, 3, "%02x", digest[i]);
}
