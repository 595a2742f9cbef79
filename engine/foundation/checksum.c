#include "engine/foundation/checksum.h"

#include <string.h>

#if defined(__x86_64__)
#include <nmmintrin.h>
#elif defined(__AARCH64EL__)
#include <sys/auxv.h>
#endif

typedef uint32_t crc32c_function(uint32_t crc, const unsigned char *at, size_t length);

/* ---- Tables ------------------------------------------------------------------------------------ */

/* Slicing by eight: table k holds the effect of a byte that is followed by k zero bytes. */
static uint32_t tables[8][256];

static void fill_tables(void) {
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

static uint32_t by_tables(uint32_t crc, const unsigned char *at, size_t length) {
    for (; length >= 8; length -= 8, at += 8)
        crc = tables[7][(crc ^ at[0]) & 255] ^ tables[6][((crc >> 8) ^ at[1]) & 255] ^
              tables[5][((crc >> 16) ^ at[2]) & 255] ^ tables[4][(crc >> 24) ^ at[3]] ^ tables[3][at[4]] ^
              tables[2][at[5]] ^ tables[1][at[6]] ^ tables[0][at[7]];
    for (; length > 0; length--)
        crc = (crc >> 8) ^ tables[0][(crc ^ *at++) & 255];
    return crc;
}

/* ---- Instructions ------------------------------------------------------------------------------ */

#if defined(__x86_64__)

__attribute__((target("sse4.2"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *at,
                                                                 size_t length) {
    uint64_t wide = crc;
    for (; length >= 8; length -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        wide = _mm_crc32_u64(wide, word);
    }
    crc = (uint32_t)wide;
    for (; length > 0; length--)
        crc = _mm_crc32_u8(crc, *at++);
    return crc;
}

static crc32c_function *best_function(void) {
    __builtin_cpu_init(); /* constructors may run before libgcc's own */
    return __builtin_cpu_supports("sse4.2") ? by_instruction : by_tables;
}

#elif defined(__AARCH64EL__) && !defined(__clang__) /* whose names for these are others */

__attribute__((target("+crc"))) static uint32_t by_instruction(uint32_t crc, const unsigned char *at,
                                                               size_t length) {
    for (; length >= 8; length -= 8, at += 8) {
        uint64_t word;
        memcpy(&word, at, sizeof word);
        crc = __builtin_aarch64_crc32cx(crc, word);
    }
    for (; length > 0; length--)
        crc = __builtin_aarch64_crc32cb(crc, *at++);
    return crc;
}

static crc32c_function *best_function(void) {
    enum { HAS_CRC32 = 1 << 7 }; /* HWCAP_CRC32 of <asm/hwcap.h> */
    return getauxval(AT_HWCAP) & HAS_CRC32 ? by_instruction : by_tables;
}

#else

static crc32c_function *best_function(void) {
    return by_tables;
}

#endif

/* ---- Outside ----------------------------------------------------------------------------------- */

static crc32c_function *crc32c;

__attribute__((constructor)) static void prepare(void) {
    fill_tables();
    crc32c = best_function();
}

uint32_t checksum_crc32c(const void *bytes, size_t length) {
    return ~crc32c(UINT32_MAX, bytes, length);
}

uint32_t checksum_crc32c_by_tables(const void *bytes, size_t length) {
    return ~by_tables(UINT32_MAX, bytes, length);
}
