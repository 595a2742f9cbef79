#include "engine/foundation/checksum.h"

/* Slicing by eight: table k holds the effect of a byte that is followed by k zero bytes. */
static uint32_t tables[8][256];

__attribute__((constructor)) static void fill_tables(void) {
    for (uint32_t i = 0; i < 256; i++) {
        uint32_t remainder = i;
        for (int bit = 0; bit < 8; bit++)
            remainder = (remainder >> 1) ^ (remainder & 1 ? UINT32_C(0x82f63b78) : 0);
        tables[0][i] = remainder;
    }
    for (uint32_t i = 0; i < 256; i++)
        for (int k = 1; k < 8; k++)
            tables[k][i] = (tables[k - 1][i] >> 8) ^ tables[0][tables[k - 1][i] & 255];
}

uint32_t checksum_crc32c(const void *bytes, size_t length) {
    const unsigned char *at = bytes;
    uint32_t crc = UINT32_MAX;
    for (; length >= 8; length -= 8, at += 8)
        crc = tables[7][(crc ^ at[0]) & 255] ^ tables[6][((crc >> 8) ^ at[1]) & 255] ^
              tables[5][((crc >> 16) ^ at[2]) & 255] ^ tables[4][(crc >> 24) ^ at[3]] ^ tables[3][at[4]] ^
              tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
    for (; length > 0; length--)
        crc = (crc >> 8) ^ tables[0][(crc ^ *at++) & 255];
    return ~crc;
}
