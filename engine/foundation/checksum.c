#include "engine/foundation/checksum.h"

static uint32_t table[256]; /* the remainder of each byte */

__attribute__((constructor)) static void fill_table(void) {
    for (uint32_t i = 0; i < 256; i++) {
        table[i] = i;
        for (int bit = 0; bit < 8; bit++)
            table[i] = table[i] >> 1 ^ (table[i] & 1 ? UINT32_C(0x82f63b78) : 0);
    }
}

uint32_t checksum_crc32c(const void *bytes, size_t length) {
    uint32_t crc = UINT32_MAX;
    for (const unsigned char *at = bytes; length > 0; length--)
        crc = crc >> 8 ^ table[(crc ^ *at++) & 255];
    return ~crc;
}
