#include "engine/remote/ssh/hashed-name.h"

#include <string.h>

enum { BLOCK = 64, LENGTH_BYTES = 8 };

/* ---- SHA-1 */

static const uint32_t start[5] = {0x67452301, 0xefcdab89, 0x98badcfe, 0x10325476, 0xc3d2e1f0};

static uint32_t rotate(uint32_t word, unsigned by) {
    return word << by | word >> (32 - by);
}

static void put_word(uint8_t *bytes, uint32_t word) {
    for (int i = 0; i < 4; i++)
        bytes[i] = (uint8_t)(word >> (24 - 8 * i));
}

static void compress(uint32_t state[5], const uint8_t block[BLOCK]) {
    uint32_t words[80];
    for (int i = 0; i < 16; i++)
        words[i] = (uint32_t)block[4 * i] << 24 | (uint32_t)block[4 * i + 1] << 16 |
                   (uint32_t)block[4 * i + 2] << 8 | block[4 * i + 3];
    for (int i = 16; i < 80; i++)
        words[i] = rotate(words[i - 3] ^ words[i - 8] ^ words[i - 14] ^ words[i - 16], 1);
    uint32_t a = state[0], b = state[1], c = state[2], d = state[3], e = state[4];
    for (int i = 0; i < 80; i++) {
        uint32_t mixed = i < 20   ? (b & c) | (~b & d)
                         : i < 40 ? b ^ c ^ d
                         : i < 60 ? (b & c) | (b & d) | (c & d)
                                  : b ^ c ^ d;
        static const uint32_t constants[4] = {0x5a827999, 0x6ed9eba1, 0x8f1bbcdc, 0xca62c1d6};
        uint32_t next = rotate(a, 5) + mixed + e + constants[i / 20] + words[i];
        e = d;
        d = c;
        c = rotate(b, 30);
        b = a;
        a = next;
    }
    state[0] += a;
    state[1] += b;
    state[2] += c;
    state[3] += d;
    state[4] += e;
}

/* The end of a message whose first block is in BEFORE already. */
static void finish(const uint32_t before[5], const void *message, size_t length,
                   uint8_t ret[HASHED_NAME_BYTES]) {
    uint32_t state[5];
    uint8_t block[BLOCK];
    memcpy(state, before, sizeof state);
    const uint8_t *at = message;
    size_t left = length;
    for (; left >= BLOCK; left -= BLOCK, at += BLOCK)
        compress(state, at);
    memset(block, 0, sizeof block);
    memcpy(block, at, left);
    block[left] = 0x80;
    if (left + 1 + LENGTH_BYTES > BLOCK) {
        compress(state, block);
        memset(block, 0, sizeof block);
    }
    uint64_t bits = (uint64_t)(BLOCK + length) * 8;
    put_word(block + BLOCK - 8, (uint32_t)(bits >> 32));
    put_word(block + BLOCK - 4, (uint32_t)bits);
    compress(state, block);
    for (int i = 0; i < 5; i++)
        put_word(ret + 4 * i, state[i]);
}

/* ---- the text */

static int digit_of(char c) {
    if (c >= 'A' && c <= 'Z')
        return c - 'A';
    if (c >= 'a' && c <= 'z')
        return c - 'a' + 26;
    if (c >= '0' && c <= '9')
        return c - '0' + 52;
    return c == '+' ? 62 : c == '/' ? 63 : -1;
}

/* Twenty bytes are 27 digits and "=". */
enum { TEXT_DIGITS = 27, TEXT_LENGTH = 28 };

static bool decode(const char *text, uint8_t ret[HASHED_NAME_BYTES]) {
    uint32_t bits = 0;
    unsigned have = 0;
    size_t filled = 0;
    for (size_t i = 0; i < TEXT_DIGITS; i++) {
        int digit = digit_of(text[i]);
        if (digit < 0)
            return false;
        bits = bits << 6 | (uint32_t)digit;
        have += 6;
        if (have >= 8) {
            have -= 8;
            ret[filled++] = (uint8_t)(bits >> have);
        }
    }
    return text[TEXT_DIGITS] == '=' && filled == HASHED_NAME_BYTES;
}

static void begin(const uint8_t salt[HASHED_NAME_BYTES], uint8_t pad, uint32_t ret[5]) {
    uint8_t block[BLOCK];
    for (size_t i = 0; i < BLOCK; i++)
        block[i] = (uint8_t)((i < HASHED_NAME_BYTES ? salt[i] : 0) ^ pad);
    memcpy(ret, start, sizeof start);
    compress(ret, block);
}

bool hashed_name_parse(const char *text, size_t length, struct hashed_name *ret) {
    uint8_t salt[HASHED_NAME_BYTES];
    static const char magic[] = "|1|";
    enum { SALT_AT = sizeof magic - 1, HASH_AT = SALT_AT + TEXT_LENGTH + 1 };
    if (length != HASH_AT + TEXT_LENGTH || memcmp(text, magic, SALT_AT) != 0 || text[HASH_AT - 1] != '|' ||
        !decode(text + SALT_AT, salt) || !decode(text + HASH_AT, ret->hash))
        return false;
    begin(salt, 0x36, ret->inner);
    begin(salt, 0x5c, ret->outer);
    return true;
}

void hashed_name_compute(const struct hashed_name *hashed, const char *name, uint8_t ret[HASHED_NAME_BYTES]) {
    finish(hashed->inner, name, strlen(name), ret);
    finish(hashed->outer, ret, HASHED_NAME_BYTES, ret);
}

bool hashed_name_matches(const struct hashed_name *hashed, const char *name) {
    uint8_t hash[HASHED_NAME_BYTES];
    hashed_name_compute(hashed, name, hash);
    return memcmp(hash, hashed->hash, sizeof hash) == 0;
}
