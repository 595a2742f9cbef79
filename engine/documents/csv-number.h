/*
 * Numbers of a CSV text at speed: those of the usual shapes are read here, and exactly; others are left to
 * number_parse_double. Internal to this room. Eight bytes before and behind a number must be readable, as
 * they are around a reader's buffer.
 */
#ifndef ASSAY_DOCUMENTS_CSV_NUMBER_H
#define ASSAY_DOCUMENTS_CSV_NUMBER_H

#include "engine/foundation/number.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

/* The exponent that ends at END: a sign and two digits. False when there is none of this shape. */
static inline bool csv_number_exponent(const char *end, int *ret) {
    unsigned tens = (unsigned char)end[-2] - '0', ones = (unsigned char)end[-1] - '0';
    if ((end[-3] != '-' && end[-3] != '+') || tens > 9 || ones > 9)
        return false;
    int exponent = (int)(10 * tens + ones);
    *ret = end[-3] == '-' ? -exponent : exponent;
    return true;
}

/* MANTISSA * 10^SCALE where both are exact doubles, so that one operation rounds once (Clinger 1990). */
static inline bool csv_number_scale(uint64_t mantissa, int scale, double *ret) {
    static const double exact[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                   1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};
    if (mantissa > UINT64_C(1) << 53 || scale < -22 || scale > 22)
        return false;
    double value = (double)(int64_t)mantissa;
    *ret = scale == 0 ? value : scale < 0 ? value / exact[-scale] : value * exact[scale];
    return true;
}

#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* Eight bytes with the first in the lowest. */
static inline uint64_t csv_number_load(const char *at) {
    uint64_t word;
    memcpy(&word, at, 8);
    return word;
}

/* The number that LENGTH digits (1 to 8) at AT make. There is no branch on how many they are: zeros are
 * shifted in before them, then neighbours are joined into pairs, fours and all eight. False if they are no
 * digits. */
static inline bool csv_number_join_eight(const char *at, size_t length, uint64_t *ret) {
    uint64_t digits = (csv_number_load(at) ^ UINT64_C(0x3030303030303030)) << (64 - 8 * length);
    if ((digits | (digits + UINT64_C(0x0606060606060606))) & UINT64_C(0xf0f0f0f0f0f0f0f0))
        return false;
    digits = digits * 10 + (digits >> 8);
    const uint64_t pairs = UINT64_C(0x000000ff000000ff);
    *ret = ((digits & pairs) * UINT64_C(0x000f424000000064) +
            ((digits >> 16) & pairs) * UINT64_C(0x0000271000000001)) >>
           32;
    return true;
}

/* The same for 1 to 16 digits. */
static inline bool csv_number_join_sixteen(const char *at, size_t length, uint64_t *ret) {
    if (length <= 8)
        return csv_number_join_eight(at, length, ret);
    uint64_t high, low;
    if (!csv_number_join_eight(at, length - 8, &high) || !csv_number_join_eight(at + length - 8, 8, &low))
        return false;
    *ret = high * 100000000 + low;
    return true;
}

/* Where the first point among the eight bytes at AT is, or 8. */
static inline size_t csv_number_find_point(const char *at) {
    uint64_t other = csv_number_load(at) ^ UINT64_C(0x2e2e2e2e2e2e2e2e); /* zero where a point is */
    uint64_t zeros = (other - UINT64_C(0x0101010101010101)) & ~other & UINT64_C(0x8080808080808080);
    return zeros ? (size_t)__builtin_ctzll(zeros) >> 3 : 8;
}

/* Numbers of the usual shapes: 848, -3, 0.25, 5.803674000e-01. False for others, which may be numbers too. */
static inline bool csv_number_parse_usual(const char *bytes, size_t length, double *ret) {
    static const uint64_t powers[] = {1,
                                      10,
                                      100,
                                      1000,
                                      10000,
                                      100000,
                                      1000000,
                                      10000000,
                                      100000000,
                                      1000000000,
                                      10000000000,
                                      100000000000,
                                      1000000000000,
                                      10000000000000,
                                      100000000000000,
                                      1000000000000000,
                                      10000000000000000};
    const char *at = bytes + (bytes[0] == '-'), *end = bytes + length;
    int scale = 0;
    if (length > 6 && (end[-4] | 0x20) == 'e' && csv_number_exponent(end, &scale))
        end -= 4;
    uint64_t mantissa;
    size_t whole = csv_number_find_point(at), digits = (size_t)(end - at);
    if (whole == 8 || whole >= digits) { /* no point, or one that is far off and no digit */
        if (digits - 1 >= 16 || !csv_number_join_sixteen(at, digits, &mantissa))
            return false;
    } else {
        uint64_t before;
        size_t behind = digits - whole - 1;
        if (whole == 0 || behind - 1 >= 16 || whole + behind > 19 ||
            !csv_number_join_eight(at, whole, &before) ||
            !csv_number_join_sixteen(at + whole + 1, behind, &mantissa))
            return false;
        mantissa += before * powers[behind];
        scale -= (int)behind;
    }
    if (!csv_number_scale(mantissa, scale, ret))
        return false;
    if (bytes[0] == '-')
        *ret = -*ret;
    return true;
}

static inline bool csv_number_parse(const char *bytes, size_t length, double *ret) {
    uint64_t whole;
    if (length - 1 < 8 && csv_number_join_eight(bytes, length, &whole)) {
        *ret = (double)whole;
        return true;
    }
    return csv_number_parse_usual(bytes, length, ret) || number_parse_double(bytes, length, ret);
}
#else
static inline bool csv_number_parse(const char *bytes, size_t length, double *ret) {
    return number_parse_double(bytes, length, ret);
}
#endif

/* What csv_number_parse refused, where missing numbers are NaN (csv.h). For the few: kept out of the loops of
 * the many. */
bool csv_number_parse_missing(const char *bytes, size_t length, double *ret);

#endif
