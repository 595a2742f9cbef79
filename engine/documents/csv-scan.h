/*
 * Finding the bytes of a CSV text that mean something: 64 bytes at a time give words with a bit for each
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

/* Bit i tells of byte i. */
struct csv_scan {
    uint64_t special; /* commas too */
    uint64_t comma;
};

static inline bool csv_scan_is_special(unsigned char byte) {
    return byte <= '\r' || byte == ',' || byte == '"' || byte >= 0x80;
}

static inline struct csv_scan csv_scan_64_portable(const char *bytes) {
    struct csv_scan scan = {0};
    for (unsigned i = 0; i < 64; i++) {
        scan.special |= (uint64_t)csv_scan_is_special((unsigned char)bytes[i]) << i;
        scan.comma |= (uint64_t)(bytes[i] == ',') << i;
    }
    return scan;
}

#ifdef __SSE2__
static inline struct csv_scan csv_scan_16_sse2(const char *bytes) {
    __m128i block = _mm_loadu_si128((const __m128i *)(const void *)bytes);
    __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8('\r')), block);
    __m128i comma = _mm_cmpeq_epi8(block, _mm_set1_epi8(','));
    __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
    /* The sign bit of a byte that is not ASCII is set already. */
    __m128i special = _mm_or_si128(_mm_or_si128(control, comma), _mm_or_si128(quote, block));
    return (struct csv_scan){(uint32_t)_mm_movemask_epi8(special), (uint32_t)_mm_movemask_epi8(comma)};
}
#endif

static inline struct csv_scan csv_scan_64(const char *bytes) {
#ifdef __SSE2__
    struct csv_scan a = csv_scan_16_sse2(bytes), b = csv_scan_16_sse2(bytes + 16);
    struct csv_scan c = csv_scan_16_sse2(bytes + 32), d = csv_scan_16_sse2(bytes + 48);
    return (struct csv_scan){a.special | b.special << 16 | c.special << 32 | d.special << 48,
                             a.comma | b.comma << 16 | c.comma << 32 | d.comma << 48};
#else
    return csv_scan_64_portable(bytes);
#endif
}

/* The first special byte in [AT, END), or END. */
static inline const char *csv_scan_next(const char *at, const char *end) {
    for (; at < end; at += 64) {
        uint64_t mask = csv_scan_64(at).special;
        if (mask) {
            const char *found = at + __builtin_ctzll(mask);
            return found < end ? found : end;
        }
    }
    return end;
}

#endif
