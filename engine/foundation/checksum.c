#include "engine/foundation/checksum.h"

#include <string.h>

/* The remainder of each byte with k zero bytes behind it, so that eight bytes are taken at once (M. Kounavis,
 * F. Berry, "A Systematic Approach to Building High Performance Software-Based CRC Generators", ISCC 2005).
 */
static uint32_t tables[8][256];

/* Fills the tables of the slicing-by-8 algorithm. */
__attribute__((constructor)) static void fill_tables(void) {
    for (uint32_t i = 0; i < 256; i++) {
        tables[0][i] = i;
        for (int bit = 0; bit < 8; bit++)
            tables[0][i] = tables[0][i] >> 1 ^ (tables[0][i] & 1 ? UINT32_C(0x82f63b78) : 0);
    }
    for (int k = 1; k < 8; k++)
        for (int i = 0; i < 256; i++)
            tables[k][i] = tables[k - 1][i] >> 8 ^ tables[0][tables[k - 1][i] & 255];
}

#ifdef __x86_64__
/* Goes on from CRC over as many groups of eight bytes as there are. */
__attribute__((target("sse4.2"))) static uint32_t take_groups(uint32_t crc, const unsigned char *at,
                                                              size_t groups) {
    uint64_t wide = crc, group;
    for (; groups > 0; at += 8, groups--) {
        memcpy(&group, at, sizeof group);
        wide = __builtin_ia32_crc32di(wide, group);
    }
    return (uint32_t)wide;
}
#endif

/* CRC-32C (Castagnoli), as in RFC 3720: by the instruction of SSE 4.2 if the processor has it, otherwise by
 * slicing-by-8. */
uint32_t checksum_crc32c(const void *bytes, size_t length) {
    uint32_t crc = UINT32_MAX;
    const unsigned char *at = bytes;
#ifdef __x86_64__
    if (__builtin_cpu_supports("sse4.2")) { /* its instruction is for this very polynomial */
        crc = take_groups(crc, at, length / 8);
        at += length / 8 * 8;
        length %= 8;
    }
#endif
    for (; length >= 8; at += 8, length -= 8) {
        crc ^= at[0] | (uint32_t)at[1] << 8 | (uint32_t)at[2] << 16 | (uint32_t)at[3] << 24;
        crc = tables[7][crc & 255] ^ tables[6][crc >> 8 & 255] ^ tables[5][crc >> 16 & 255] ^
              tables[4][crc >> 24] ^ tables[3][at[4]] ^ tables[2][at[5]] ^ tables[1][at[6]] ^
              tables[0][at[7]];
    }
    for (; length > 0; length--)
        crc = crc >> 8 ^ tables[0][(crc ^ *at++) & 255];
    return ~crc;
}
