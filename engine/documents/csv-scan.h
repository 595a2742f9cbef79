/*
 * Finding the bytes of a CSV text that mean something: 64 bytes at a time give a word with a bit for each
 * that does. Special are the comma, the quote, the control characters up to carriage return (newline and
 * NUL among them) and every byte that is not ASCII. Internal to this room.
 */
#ifndef ASSAY_DOCUMENTS_CSV_SCAN_H
#define ASSAY_DOCUMENTS_CSV_SCAN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#ifdef __SSE2__
#include <emmintrin.h>
#endif

/* Readable bytes that must lie before and behind a text that is scanned. */
enum { CSV_SCAN_PADDING = 64 };

static inline bool csv_scan_is_special(unsigned char byte) {
    return byte <= '\r' || byte == ',' || byte == '"' || byte >= 0x80;
}

static inline uint64_t csv_scan_64_portable(const char *bytes) {
    uint64_t mask = 0;
    for (unsigned i = 0; i < 64; i++)
        mask |= (uint64_t)csv_scan_is_special((unsigned char)bytes[i]) << i;
    return mask;
}

#ifdef __SSE2__
static inline uint64_t csv_scan_16_sse2(const char *bytes) {
    __m128i block = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8('\r')), block);
    __m128i comma = _mm_cmpeq_epi8(block, _mm_set1_epi8(','));
    __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
    /* The sign bit of a byte that is not ASCII is set already. */
    __m128i special = _mm_or_si128(_mm_or_si128(control, comma), _mm_or_si128(quote, block));
    return (uint64_t)(uint32_t)_mm_movemask_epi8(special);
}
#endif

/* Bit i is set when BYTES[i] is special. */
static inline uint64_t csv_scan_64(const char *bytes) {
#ifdef __SSE2__
    return csv_scan_16_sse2(bytes) | csv_scan_16_sse2(bytes + 16) << 16 | csv_scan_16_sse2(bytes + 32) << 32 |
           csv_scan_16_sse2(bytes + 48) << 48;
#else
    return csv_scan_64_portable(bytes);
#endif
}

/* The first special byte in [AT, END), or END. */
static inline const char *csv_scan_next(const char *at, const char *end) {
    for (; at < end; at += 64) {
        uint64_t mask = csv_scan_64(at);
        if (mask) {
            const char *found = at + __builtin_ctzll(mask);
            return found < end ? found : end;
        }
    }
    return end;
}

#endif
