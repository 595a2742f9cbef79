#include "engine/documents/csv-tile.h"

#include "engine/documents/csv-number.h"
#include "engine/documents/csv-scan.h"

#define INLINE __attribute__((always_inline)) static inline

/* ---- The ends of fields ------------------------------------------------------------------------ */

/* Bit i tells of byte i. */
struct masks {
    uint64_t newline;
    uint64_t comma;
    uint64_t odd; /* whatever no plain row has; a carriage return before a newline is not odd */
};

/* A carriage return is part of a line's end when the next byte is its newline. */
INLINE uint64_t lone_returns(uint64_t returns, uint64_t newlines, char next) {
    return returns & ~(newlines >> 1 | (uint64_t)(next == '\n') << 63);
}

/* Appends the places of the bits of MASK, BASE being the first's. Eight at a time, wanted or not: how many
 * there are is what a processor cannot guess. */
INLINE uint32_t *append_places(uint64_t mask, uint32_t base, uint32_t *at) {
    uint32_t *end = at + __builtin_popcountll(mask);
    for (; at < end; at += 8)
        for (size_t i = 0; i < 8; i++, mask &= mask - 1) {
            at[i] = base + (uint32_t)__builtin_ctzll(mask | UINT64_C(1) << 63);
            __asm__("" : "+r"(mask)); /* one by one: gathering them into vectors costs more than it saves */
        }
    return end;
}

/* Whether every row has a newline at its end, and no other field has, NEWLINES being all that there are. */
INLINE bool are_rows(const struct csv_tile *tile, size_t newlines) {
    for (size_t row = 1; row <= tile->rows; row++)
        if (tile->at[tile->ends[row * tile->columns]] != '\n')
            return false;
    return newlines == tile->rows;
}

INLINE void index_rows(struct masks (*scan)(const char *),
                       uint32_t *(*append)(uint64_t, uint32_t, uint32_t *), struct csv_tile *tile,
                       size_t length) {
    uint32_t *first = tile->ends + 1, *end = first;
    size_t newlines = 0;
    length = length < CSV_TILE_BYTES ? length : CSV_TILE_BYTES;
    for (size_t base = 0; base < length && end <= first + CSV_TILE_ENDS - 64; base += 64) {
        struct masks masks = scan(tile->at + base);
        uint64_t plain = masks.odd ? (masks.odd & -masks.odd) - 1 : UINT64_MAX;
        if (length - base < 64)
            plain &= (UINT64_C(1) << (length - base)) - 1;
        newlines += (size_t)__builtin_popcountll(masks.newline & plain);
        end = append((masks.newline | masks.comma) & plain, (uint32_t)base, end);
        if (masks.odd)
            break;
    }
    tile->ends[0] = UINT32_MAX;
    tile->rows = (size_t)(end - first) / tile->columns;
    if (!are_rows(tile, newlines))
        tile->rows = 0;
}

/* ---- Numbers ----------------------------------------------------------------------------------- */

/* A number in any shape: the way of the few, kept out of the loops of the many. */
__attribute__((noinline)) static bool parse_any(const char *bytes, size_t length, double *ret) {
    return csv_number_parse(bytes, length, ret);
}

/* The rows from FIRST on, one by one. */
INLINE size_t read_rows(bool (*parse)(const char *, size_t, double *), const struct csv_tile *tile,
                        size_t column, size_t first, size_t rows, bool missing_is_nan, double *ret) {
    const size_t columns = tile->columns;
    const char *at = tile->at;
    const bool is_last = column + 1 == columns;
    const uint32_t *before = tile->ends + first * columns + column;
    for (size_t row = first; row < rows; row++, before += columns) {
        size_t begin = csv_tile_begin(before), end = csv_tile_end(at, before, is_last);
        if (__builtin_expect(parse(at + begin, end - begin, &ret[row]), 1))
            continue;
        if (!missing_is_nan || !csv_number_parse_missing(at + begin, end - begin, &ret[row]))
            return row;
    }
    return rows;
}

/* ---- Plain C ----------------------------------------------------------------------------------- */

INLINE struct masks scan_portable(const char *bytes) {
    struct masks masks = {0};
    uint64_t returns = 0;
    for (unsigned i = 0; i < 64; i++) {
        masks.newline |= (uint64_t)(bytes[i] == '\n') << i;
        masks.comma |= (uint64_t)(bytes[i] == ',') << i;
        returns |= (uint64_t)(bytes[i] == '\r') << i;
        masks.odd |= (uint64_t)csv_scan_is_special((unsigned char)bytes[i]) << i;
    }
    masks.odd &= ~(masks.newline | masks.comma | returns);
    masks.odd |= lone_returns(returns, masks.newline, bytes[64]);
    return masks;
}

static void index_portable(struct csv_tile *tile, size_t length) {
    index_rows(scan_portable, append_places, tile, length);
}

static size_t numbers_portable(const struct csv_tile *tile, size_t column, bool missing_is_nan, double *ret) {
    return read_rows(csv_number_parse, tile, column, 0, tile->rows, missing_is_nan, ret);
}

static const struct csv_tile_kernel portable = {"plain C", index_portable, numbers_portable};

/* ---- SSE2 and AVX2 ----------------------------------------------------------------------------- */

#if defined(__x86_64__)
#include <immintrin.h>

INLINE uint64_t bits_sse2(__m128i bytes, unsigned shift) {
    return (uint64_t)(uint32_t)_mm_movemask_epi8(bytes) << shift;
}

INLINE struct masks scan_sse2(const char *bytes) {
    uint64_t newline = 0, comma = 0, returns = 0, odd = 0;
    for (unsigned i = 0; i < 64; i += 16) {
        __m128i block = _mm_loadu_si128((const __m128i *)(const void *)(bytes + i));
        __m128i control = _mm_cmpeq_epi8(_mm_min_epu8(block, _mm_set1_epi8('\r')), block);
        __m128i quote = _mm_cmpeq_epi8(block, _mm_set1_epi8('"'));
        newline |= bits_sse2(_mm_cmpeq_epi8(block, _mm_set1_epi8('\n')), i);
        comma |= bits_sse2(_mm_cmpeq_epi8(block, _mm_set1_epi8(',')), i);
        returns |= bits_sse2(_mm_cmpeq_epi8(block, _mm_set1_epi8('\r')), i);
        odd |= bits_sse2(_mm_or_si128(_mm_or_si128(control, quote), block), i); /* the sign: not ASCII */
    }
    odd = (odd & ~(newline | returns)) | lone_returns(returns, newline, bytes[64]);
    return (struct masks){newline, comma, odd};
}

static void index_sse2(struct csv_tile *tile, size_t length) {
    index_rows(scan_sse2, append_places, tile, length);
}

static const struct csv_tile_kernel sse2 = {"SSE2", index_sse2, numbers_portable};

#define AVX2 __attribute__((target("avx2,bmi,bmi2,popcnt,lzcnt")))

AVX2 INLINE uint64_t bits_avx2(__m256i bytes, unsigned shift) {
    return (uint64_t)(uint32_t)_mm256_movemask_epi8(bytes) << shift;
}

AVX2 INLINE struct masks scan_avx2(const char *bytes) {
    uint64_t newline = 0, comma = 0, returns = 0, odd = 0;
    for (unsigned i = 0; i < 64; i += 32) {
        __m256i block = _mm256_loadu_si256((const __m256i *)(const void *)(bytes + i));
        __m256i control = _mm256_cmpeq_epi8(_mm256_min_epu8(block, _mm256_set1_epi8('\r')), block);
        __m256i quote = _mm256_cmpeq_epi8(block, _mm256_set1_epi8('"'));
        newline |= bits_avx2(_mm256_cmpeq_epi8(block, _mm256_set1_epi8('\n')), i);
        comma |= bits_avx2(_mm256_cmpeq_epi8(block, _mm256_set1_epi8(',')), i);
        returns |= bits_avx2(_mm256_cmpeq_epi8(block, _mm256_set1_epi8('\r')), i);
        odd |= bits_avx2(_mm256_or_si256(_mm256_or_si256(control, quote), block), i);
    }
    odd = (odd & ~(newline | returns)) | lone_returns(returns, newline, bytes[64]);
    return (struct masks){newline, comma, odd};
}

AVX2 static void index_avx2(struct csv_tile *tile, size_t length) {
    index_rows(scan_avx2, append_places, tile, length);
}

/* Windows of 16 bytes: from LENGTH on for the last LENGTH bytes of 16, from 32 - LENGTH on for the first. */
static const uint8_t windows[48] = {
    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,    0,
    0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff,
};

AVX2 INLINE __m128i window(size_t from) {
    return _mm_loadu_si128((const __m128i *)(const void *)(windows + from));
}

/* The number that up to 16 digits make, the first byte's digit being the greatest; each byte at most 9. */
AVX2 INLINE uint64_t join_digits(__m128i digits) {
    __m128i pairs = _mm_maddubs_epi16(digits, _mm_set1_epi16(0x010a)); /* 10 and 1 */
    __m128i fours = _mm_madd_epi16(pairs, _mm_set1_epi32(0x00010064)); /* 100 and 1 */
    __m128i eights = _mm_madd_epi16(_mm_packus_epi32(fours, fours), _mm_set1_epi32(0x00012710));
    uint64_t both = (uint64_t)_mm_cvtsi128_si64(eights);
    return (both & UINT32_MAX) * 100000000 + (both >> 32);
}

/* Numbers of up to 16 characters, point included, and an exponent of two digits; others are left to
 * csv_number_parse. */
AVX2 INLINE bool parse_avx2(const char *bytes, size_t length, double *ret) {
    const char *end = bytes + length;
    size_t digits = length - (*bytes == '-');
    int scale = 0;
    if (digits > 4 && (end[-4] | 0x20) == 'e' && csv_number_exponent(end, &scale)) {
        end -= 4;
        digits -= 4;
    }
    if (digits - 1 >= 16)
        return parse_any(bytes, length, ret);
    __m128i text = _mm_loadu_si128((const __m128i *)(const void *)(end - 16));
    __m128i values = _mm_and_si128(_mm_sub_epi8(text, _mm_set1_epi8('0')), window(digits));
    uint32_t point = (uint32_t)_mm_movemask_epi8(_mm_cmpeq_epi8(values, _mm_set1_epi8('.' - '0')));
    /* The digits before the point move up by one, into its place. */
    if (point != 0 && digits > 1) {
        size_t before = _tzcnt_u32(point) + 1;
        __m128i places = _mm_setr_epi8(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
        values = _mm_shuffle_epi8(values, _mm_add_epi8(places, window(32 - before)));
        scale -= 16 - (int)before;
    }
    __m128i good = _mm_cmpeq_epi8(_mm_min_epu8(values, _mm_set1_epi8(9)), values);
    if (_mm_movemask_epi8(good) != 0xffff || !csv_number_scale(join_digits(values), scale, ret))
        return parse_any(bytes, length, ret);
    if (*bytes == '-')
        *ret = -*ret;
    return true;
}

/* Four rows of a column as whole numbers of 1 to 8 digits. False when one of them is anything else. BEFORE:
 * the end before the first one's field; the others' are COLUMNS apart. */
AVX2 INLINE bool read_four(const char *at, const uint32_t *before, size_t columns, double *ret) {
    uint64_t words[4], lengths = 0;
    for (size_t i = 0; i < 4; i++, before += columns) {
        size_t begin = csv_tile_begin(before), length = before[1] - begin;
        lengths |= length - 1;
        /* What is behind the digits leaves at the top, zeros come in at the bottom: before the first digit.
         */
        words[i] = (csv_number_load(at + begin) ^ UINT64_C(0x3030303030303030)) << (-8 * length & 63);
    }
    __m256i digits =
        _mm256_set_epi64x((int64_t)words[3], (int64_t)words[2], (int64_t)words[1], (int64_t)words[0]);
    __m256i good = _mm256_cmpeq_epi8(_mm256_min_epu8(digits, _mm256_set1_epi8(9)), digits);
    if (lengths > 7 || _mm256_movemask_epi8(good) != -1)
        return false;
    __m256i pairs = _mm256_maddubs_epi16(digits, _mm256_set1_epi16(0x010a)); /* 10 and 1 */
    __m256i fours = _mm256_madd_epi16(pairs, _mm256_set1_epi32(0x00010064)); /* 100 and 1 */
    __m256i whole =
        _mm256_add_epi64(_mm256_mul_epu32(fours, _mm256_set1_epi64x(10000)), _mm256_srli_epi64(fours, 32));
    /* 2^52 and a whole number below it: its bits are the lowest of the sum's. */
    const __m256d two_52 = _mm256_set1_pd(0x1p52);
    __m256d sum = _mm256_castsi256_pd(_mm256_or_si256(whole, _mm256_castpd_si256(two_52)));
    _mm256_storeu_pd(ret, _mm256_sub_pd(sum, two_52));
    return true;
}

/* Numbers like 5.803674000e-01, of one digit before the point, 1 to 10 behind it and two of the exponent: by
 * their length, which bytes of the 16 that they end are digits of the mantissa; what is no digit becomes 0.
 */
enum { SCIENTIFIC_LEAST = 8, SCIENTIFIC_MOST = 16 };
#define NONE 0x80
static const uint8_t scientific_digits[SCIENTIFIC_MOST - SCIENTIFIC_LEAST + 1][16] = {
    {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 8, 10, 11},
    {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 7, 9, 10, 11},
    {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 6, 8, 9, 10, 11},
    {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 5, 7, 8, 9, 10, 11},
    {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 4, 6, 7, 8, 9, 10, 11},
    {NONE, NONE, NONE, NONE, NONE, NONE, NONE, NONE, 3, 5, 6, 7, 8, 9, 10, 11},
    {NONE, NONE, NONE, NONE, NONE, NONE, NONE, 2, 4, 5, 6, 7, 8, 9, 10, 11},
    {NONE, NONE, NONE, NONE, NONE, NONE, 1, 3, 4, 5, 6, 7, 8, 9, 10, 11},
    {NONE, NONE, NONE, NONE, NONE, 0, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11},
};

/* By the power of ten and 22: what the mantissa is multiplied by and then divided by, both exact, one of them
 * 1; so that there is one rounding (Clinger 1990). */
enum { SCALE_MOST = 22 };
static const double scale_factors[2 * SCALE_MOST + 1] = {
    1,   1,   1,    1,    1,    1,    1,    1,    1,    1,    1,    1,    1,    1,    1,
    1,   1,   1,    1,    1,    1,    1,    1,    1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,
    1e8, 1e9, 1e10, 1e11, 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

/* What is found of a number's tail, "e-01": its power of ten, and whether it is one (0: it is). */
INLINE uint32_t read_exponent(const char *end, int *ret) {
    uint32_t tail;
    memcpy(&tail, end - 4, sizeof tail);
    uint32_t sign = (tail >> 8) & 0xff, digits = tail >> 16;
    int exponent = (int)(10 * (digits & 0xf) + (digits >> 8 & 0xf));
    *ret = sign == '-' ? -exponent : exponent;
    return ((tail & 0xdf) ^ 'E') | ((sign - '+') & ~(uint32_t)('-' - '+')) |
           ((((digits + 0x0606) | digits) & 0xf0f0) ^ 0x3030);
}

/* Four rows of a column as such numbers. False when one of them is anything else. */
AVX2 INLINE bool read_four_scientific(const char *at, const uint32_t *before, size_t columns, bool is_last,
                                      double *ret) {
    __m128i digits[4];
    double factors[4], divisors[4];
    uint32_t odd = 0;
    for (size_t i = 0; i < 4; i++, before += columns) {
        size_t begin = csv_tile_begin(before), end = csv_tile_end(at, before, is_last);
        size_t place = end - begin - SCIENTIFIC_LEAST;
        if (place > SCIENTIFIC_MOST - SCIENTIFIC_LEAST)
            return false;
        int exponent;
        odd |= read_exponent(at + end, &exponent) | (uint32_t)(at[begin + 1] ^ '.');
        size_t scale = (size_t)(exponent - (int)place - 2 + SCALE_MOST);
        if (scale > 2 * SCALE_MOST)
            return false;
        factors[i] = scale_factors[scale];
        divisors[i] = scale_factors[2 * SCALE_MOST - scale];
        __m128i text = _mm_loadu_si128((const __m128i *)(const void *)(at + end - 16));
        digits[i] =
            _mm_shuffle_epi8(_mm_sub_epi8(text, _mm_set1_epi8('0')),
                             _mm_loadu_si128((const __m128i *)(const void *)scientific_digits[place]));
    }
    __m256i first = _mm256_set_m128i(digits[2], digits[0]), second = _mm256_set_m128i(digits[3], digits[1]);
    __m256i most = _mm256_max_epu8(first, second);
    if (odd ||
        _mm256_movemask_epi8(_mm256_cmpeq_epi8(_mm256_min_epu8(most, _mm256_set1_epi8(9)), most)) != -1)
        return false;
    const __m256i tens = _mm256_set1_epi16(0x010a), hundreds = _mm256_set1_epi32(0x00010064);
    __m256i fours = _mm256_packus_epi32(_mm256_madd_epi16(_mm256_maddubs_epi16(first, tens), hundreds),
                                        _mm256_madd_epi16(_mm256_maddubs_epi16(second, tens), hundreds));
    /* Of each row the upper eight digits and the lower eight: rows 0, 1 and 2, 3. */
    __m256i eights = _mm256_madd_epi16(fours, _mm256_set1_epi32(0x00012710));
    const __m256i apart = _mm256_setr_epi32(0, 2, 4, 6, 1, 3, 5, 7);
    eights = _mm256_permutevar8x32_epi32(eights, apart);
    __m256d mantissa =
        _mm256_add_pd(_mm256_mul_pd(_mm256_cvtepi32_pd(_mm256_castsi256_si128(eights)), _mm256_set1_pd(1e8)),
                      _mm256_cvtepi32_pd(_mm256_extracti128_si256(eights, 1)));
    _mm256_storeu_pd(
        ret, _mm256_div_pd(_mm256_mul_pd(mantissa, _mm256_loadu_pd(factors)), _mm256_loadu_pd(divisors)));
    return true;
}

/* How many rows from FIRST on are read by fours as one shape or the other. Functions of their own, so that
 * each has the registers. */
AVX2 __attribute__((noinline)) static size_t read_whole(const struct csv_tile *tile, size_t column,
                                                        size_t first, double *ret) {
    const size_t columns = tile->columns;
    const char *at = tile->at;
    const uint32_t *before = tile->ends + column + first * columns;
    size_t row = first;
    for (; row + 4 <= tile->rows; row += 4, before += 4 * columns)
        if (!read_four(at, before, columns, ret + row))
            break;
    return row - first;
}

AVX2 __attribute__((noinline)) static size_t read_scientific(const struct csv_tile *tile, size_t column,
                                                             size_t first, double *ret) {
    const size_t columns = tile->columns;
    const char *at = tile->at;
    const bool is_last = column + 1 == columns; /* may have a carriage return behind it */
    const uint32_t *before = tile->ends + column + first * columns;
    size_t row = first;
    for (; row + 4 <= tile->rows; row += 4, before += 4 * columns)
        if (!read_four_scientific(at, before, columns, is_last, ret + row))
            break;
    return row - first;
}

/* By fours as long as that goes; where it does not, some rows one by one. */
AVX2 static size_t numbers_avx2(const struct csv_tile *tile, size_t column, bool missing_is_nan,
                                double *ret) {
    enum { SOME = 32 };
    const size_t rows = tile->rows;
    size_t row = 0;
    while (row < rows) {
        size_t start = row;
        if (column + 1 < tile->columns)
            row += read_whole(tile, column, row, ret);
        row += read_scientific(tile, column, row, ret);
        if (row > start && row + 4 <= rows)
            continue;
        size_t end = rows - row < SOME ? rows : row + SOME;
        row = read_rows(parse_avx2, tile, column, row, end, missing_is_nan, ret);
        if (row < end)
            return row;
    }
    return rows;
}

static const struct csv_tile_kernel avx2 = {"AVX2", index_avx2, numbers_avx2};
#define AVX512 __attribute__((target("avx512f,avx512bw,avx512vbmi2,avx2,bmi,bmi2,popcnt,lzcnt")))

static const uint8_t first_bytes[64] = {0,  1,  2,  3,  4,  5,  6,  7,  8,  9,  10, 11, 12, 13, 14, 15,
                                        16, 17, 18, 19, 20, 21, 22, 23, 24, 25, 26, 27, 28, 29, 30, 31,
                                        32, 33, 34, 35, 36, 37, 38, 39, 40, 41, 42, 43, 44, 45, 46, 47,
                                        48, 49, 50, 51, 52, 53, 54, 55, 56, 57, 58, 59, 60, 61, 62, 63};

AVX512 INLINE struct masks scan_avx512(const char *bytes) {
    __m512i block = _mm512_loadu_si512(bytes);
    uint64_t newline = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('\n'));
    uint64_t comma = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8(','));
    uint64_t odd = _mm512_cmple_epi8_mask(block, _mm512_set1_epi8('\r')) | /* signed: not ASCII too */
                   _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('"'));
    odd &= ~newline;
    if (odd) {
        uint64_t returns = _mm512_cmpeq_epi8_mask(block, _mm512_set1_epi8('\r'));
        odd = (odd & ~returns) | lone_returns(returns, newline, bytes[64]);
    }
    return (struct masks){newline, comma, odd};
}

/* The places among 0 to 63 move together, then become wider; sixteen at a time. */
AVX512 INLINE uint32_t *append_avx512(uint64_t mask, uint32_t base, uint32_t *at) {
    uint32_t *end = at + __builtin_popcountll(mask);
    const __m512i all = _mm512_loadu_si512(first_bytes);
    __m512i places = _mm512_maskz_compress_epi8(mask, all);
    for (; at < end; at += 16) {
        __m512i wide = _mm512_cvtepu8_epi32(_mm512_castsi512_si128(places));
        _mm512_storeu_si512(at, _mm512_add_epi32(wide, _mm512_set1_epi32((int)base)));
        places = _mm512_alignr_epi64(places, places, 2);
    }
    return end;
}

AVX512 static void index_avx512(struct csv_tile *tile, size_t length) {
    index_rows(scan_avx512, append_avx512, tile, length);
}

static const struct csv_tile_kernel avx512 = {"AVX-512", index_avx512, numbers_avx2};
#endif

const struct csv_tile_kernel *const *csv_tile_kernels(size_t *ret_count) {
#if defined(__x86_64__)
    static const struct csv_tile_kernel *const all[] = {&portable, &sse2, &avx2, &avx512};
    bool has_avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("bmi2");
    bool has_avx512 = has_avx2 && __builtin_cpu_supports("avx512bw") && __builtin_cpu_supports("avx512vbmi2");
    *ret_count = has_avx512 ? 4 : has_avx2 ? 3 : 2;
#else
    static const struct csv_tile_kernel *const all[] = {&portable};
    *ret_count = 1;
#endif
    return all;
}

const struct csv_tile_kernel *csv_tile_kernel_best(void) {
    size_t count;
    const struct csv_tile_kernel *const *all = csv_tile_kernels(&count);
    return all[count - 1];
}
