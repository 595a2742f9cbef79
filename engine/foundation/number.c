#include "engine/foundation/number.h"

#include <errno.h>
#include <float.h>
#include <inttypes.h>
#include <locale.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Powers of ten that are exact as doubles. */
static const double exact_powers[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                      1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

static locale_t c_locale(void) {
    static locale_t locale;
    if (!locale)
        locale = newlocale(LC_ALL_MASK, "C", NULL);
    return locale;
}

/* strtod on a copy that ends in NUL: the slow road, for long or extreme numbers. */
static bool parse_double_slowly(const char *bytes, size_t length, double *ret) {
    char small[128];
    char *copy = length < sizeof small ? small : malloc(length + 1);
    if (!copy)
        return false;
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    char *end;
    double value = strtod_l(copy, &end, c_locale());
    bool good = end == copy + length && isfinite(value);
    if (copy != small)
        free(copy);
    if (good)
        *ret = value;
    return good;
}

#if LDBL_MANT_DIG == 64 && __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
/* MANTISSA * 10^SCALE through the x87's 64 bits of precision, in which both are exact, so that the one
 * operation is off by half its last bit at most. Rounding that to a double's 53 bits is right too, unless the
 * 11 bits that go are just one half, where the bits that were lost would have decided: false then. */
static bool scale_extended(uint64_t mantissa, int scale, double *ret) {
    static const long double powers[] = {1e0L,  1e1L,  1e2L,  1e3L,  1e4L,  1e5L,  1e6L,  1e7L,  1e8L,  1e9L,
                                         1e10L, 1e11L, 1e12L, 1e13L, 1e14L, 1e15L, 1e16L, 1e17L, 1e18L, 1e19L,
                                         1e20L, 1e21L, 1e22L, 1e23L, 1e24L, 1e25L, 1e26L, 1e27L};
    if (scale < -27 || scale > 27)
        return false;
    long double value = (long double)mantissa;
    value = scale < 0 ? value / powers[-scale] : value * powers[scale];
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    if ((bits & 0x7ff) == 0x400)
        return false;
    *ret = (double)value;
    return true;
}
#else
static bool scale_extended(uint64_t mantissa, int scale, double *ret) {
    (void)mantissa, (void)scale, (void)ret;
    return false;
}
#endif

bool number_parse_double(const char *bytes, size_t length, double *ret) {
    const char *at = bytes, *end = bytes + length;
    bool negative = false;
    if (at < end && (*at == '-' || *at == '+'))
        negative = *at++ == '-';
    uint64_t mantissa = 0;
    int digits = 0, significant = 0, scale = 0;
    for (; at < end && (unsigned char)(*at - '0') < 10; at++, digits++) {
        mantissa = mantissa * 10 + (uint64_t)(*at - '0');
        significant += significant > 0 || *at != '0'; /* the mantissa may overflow to zero */
    }
    if (at < end && *at == '.') {
        for (at++; at < end && (unsigned char)(*at - '0') < 10; at++, digits++, scale--) {
            mantissa = mantissa * 10 + (uint64_t)(*at - '0');
            significant += significant > 0 || *at != '0';
        }
    }
    if (digits == 0)
        return false;
    if (at < end && (*at == 'e' || *at == 'E')) {
        at++;
        bool exponent_negative = false;
        if (at < end && (*at == '-' || *at == '+'))
            exponent_negative = *at++ == '-';
        int exponent = 0, exponent_digits = 0;
        for (; at < end && (unsigned char)(*at - '0') < 10; at++, exponent_digits++)
            if (exponent < 100000)
                exponent = exponent * 10 + (*at - '0');
        if (exponent_digits == 0)
            return false;
        scale += exponent_negative ? -exponent : exponent;
    }
    if (at != end)
        return false;
    /* Clinger's fast path: a mantissa below 2^53 and a power of ten that is exact need one rounding. */
    double value = (double)mantissa;
    if (significant <= 19 && mantissa <= UINT64_C(1) << 53 && scale >= -22 && scale <= 22)
        value = scale < 0 ? value / exact_powers[-scale] : value * exact_powers[scale];
    else if (significant > 19 || !scale_extended(mantissa, scale, &value))
        return parse_double_slowly(bytes, length, ret);
    *ret = negative ? -value : value;
    return true;
}

bool number_parse_uint64(const char *bytes, size_t length, uint64_t *ret) {
    uint64_t value = 0;
    if (length == 0)
        return false;
    for (size_t i = 0; i < length; i++) {
        unsigned digit = (unsigned char)(bytes[i] - '0');
        if (digit > 9 || __builtin_mul_overflow(value, UINT64_C(10), &value) ||
            __builtin_add_overflow(value, (uint64_t)digit, &value))
            return false;
    }
    *ret = value;
    return true;
}

bool number_parse_int64(const char *bytes, size_t length, int64_t *ret) {
    bool negative = length && bytes[0] == '-';
    bool has_sign = negative || (length && bytes[0] == '+');
    uint64_t magnitude;
    if (!number_parse_uint64(bytes + has_sign, length - has_sign, &magnitude))
        return false;
    if (magnitude > (uint64_t)INT64_MAX + negative)
        return false;
    *ret = negative ? (int64_t)(0 - magnitude) : (int64_t)magnitude;
    return true;
}

size_t number_format_uint64(uint64_t value, char buffer[static NUMBER_TEXT_SIZE]) {
    char reversed[20];
    size_t count = 0;
    do {
        reversed[count++] = (char)('0' + value % 10);
        value /= 10;
    } while (value);
    for (size_t i = 0; i < count; i++)
        buffer[i] = reversed[count - 1 - i];
    buffer[count] = '\0';
    return count;
}

size_t number_format_int64(int64_t value, char buffer[static NUMBER_TEXT_SIZE]) {
    if (value >= 0)
        return number_format_uint64((uint64_t)value, buffer);
    char digits[NUMBER_TEXT_SIZE];
    size_t length = number_format_uint64(0 - (uint64_t)value, digits);
    buffer[0] = '-';
    memcpy(buffer + 1, digits, length + 1);
    return length + 1;
}

/* Writes the COUNT digits of DIGITS, whose first has the value 10^EXPONENT, as %g does: without trailing
 * zeros, and with an exponent below 10^-4. */
static size_t write_digits(bool negative, uint64_t digits, int count, int exponent, char *buffer) {
    char text[NUMBER_TEXT_SIZE];
    for (; digits % 10 == 0; digits /= 10)
        count--;
    for (int i = count - 1; i >= 0; i--, digits /= 10)
        text[i] = (char)('0' + digits % 10);
    char *at = buffer;
    if (negative)
        *at++ = '-';
    int before = exponent >= 0 ? exponent + 1 : exponent < -4 ? 1 : 0; /* digits before the point */
    if (before == 0) {
        *at++ = '0';
        *at++ = '.';
        for (int i = exponent + 1; i < 0; i++)
            *at++ = '0';
    }
    for (int i = 0; i < count || i < before; i++) {
        if (i == before && i > 0)
            *at++ = '.';
        *at++ = i < count ? text[i] : '0';
    }
    if (exponent < -4) {
        memcpy(at, "e-0", 3);
        at[3] = (char)('0' - exponent);
        at += 4;
    }
    *at = '\0';
    return (size_t)(at - buffer);
}

/* The common range, 10^-6 to 10^15, without printf and strtod: there value * 10^p, with p chosen so that it
 * has 17 digits before the point, is an exact fraction of 128-bit integers, and so is the distance from a
 * shorter decimal to the value, which tells whether that decimal reads back. Gives the same text as the loop
 * below, twenty times faster. */
static size_t format_common_double(double value, char *buffer) {
    int binary;
    uint64_t mantissa = (uint64_t)ldexp(frexp(fabs(value), &binary), 53);
    int shift = 53 - binary; /* |value| = mantissa / 2^shift, shift from 4 to 72 */
    int exponent = 14;       /* of the first decimal digit */
    while (exponent > -6 &&
           fabs(value) < (exponent >= 0 ? exact_powers[exponent] : 1 / exact_powers[-exponent]))
        exponent--;
    unsigned __int128 power = 1;
    for (int i = 0; i < 16 - exponent; i++)
        power *= 10;
    unsigned __int128 scaled = mantissa * power; /* |value| * 10^p * 2^shift, below 2^127 */
    for (int digits = 15; digits <= 17; digits++) {
        unsigned unit = digits == 15 ? 100 : digits == 16 ? 10 : 1;
        unsigned __int128 step = (unsigned __int128)unit << shift;
        unsigned __int128 count = scaled / step, rest = scaled % step;
        count += 2 * rest > step || (2 * rest == step && count % 2 == 1);
        unsigned __int128 decimal = count * step;
        unsigned __int128 distance = decimal > scaled ? decimal - scaled : scaled - decimal;
        /* Half the gap to the neighbour is power / 2; below a power of two the neighbour is twice as near. */
        unsigned __int128 limit = mantissa == UINT64_C(1) << 52 && decimal < scaled ? power / 2 : power;
        bool reads_back = 2 * distance < limit || (2 * distance == limit && mantissa % 2 == 0);
        if (!reads_back && digits < 17)
            continue;
        bool carried = count / (digits == 15   ? UINT64_C(1000000000000000)
                                : digits == 16 ? UINT64_C(10000000000000000)
                                               : UINT64_C(100000000000000000)) >
                       0;
        return write_digits(value < 0, (uint64_t)count, digits + carried, exponent + carried, buffer);
    }
    return 0;
}

size_t number_format_double(double value, char buffer[static NUMBER_TEXT_SIZE]) {
    if (isnan(value))
        return (size_t)snprintf(buffer, NUMBER_TEXT_SIZE, "nan");
    if (isinf(value))
        return (size_t)snprintf(buffer, NUMBER_TEXT_SIZE, value < 0 ? "-inf" : "inf");
    /* Most columns hold whole numbers: no printf for those. Zero keeps its sign. */
    if (fabs(value) < 9007199254740992.0 && value == (double)(int64_t)value &&
        !(value == 0 && signbit(value)))
        return number_format_int64((int64_t)value, buffer);
    if (fabs(value) >= 1e-6 && fabs(value) < 1e15)
        return format_common_double(value, buffer);
    locale_t before = uselocale(c_locale());
    int length = 0;
    for (int digits = 15; digits <= 17; digits++) {
        length = snprintf(buffer, NUMBER_TEXT_SIZE, "%.*g", digits, value);
        if (digits == 17 || strtod(buffer, NULL) == value)
            break;
    }
    uselocale(before);
    return (size_t)length;
}

const char *number_describe_bytes(double bytes, char buffer[static NUMBER_TEXT_SIZE]) {
    static const char *const prefixes[] = {"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"};
    size_t i = 0;
    /* From 999.5 on, three digits would be "1e+03". */
    while (fabs(bytes) >= (i == 0 ? 1000 : 999.5) && i + 1 < sizeof prefixes / sizeof *prefixes) {
        bytes /= 1024;
        i++;
    }
    snprintf(buffer, NUMBER_TEXT_SIZE, i == 0 ? "%.0f %s" : "%.3g %s", bytes, prefixes[i]);
    return buffer;
}

const char *number_describe_duration(double seconds, char buffer[static NUMBER_TEXT_SIZE]) {
    double magnitude = fabs(seconds);
    if (!isfinite(seconds))
        snprintf(buffer, NUMBER_TEXT_SIZE, "unknown");
    else if (magnitude == 0)
        snprintf(buffer, NUMBER_TEXT_SIZE, "0 s");
    else if (magnitude < 999.5e-9)
        snprintf(buffer, NUMBER_TEXT_SIZE, "%.3g ns", seconds * 1e9);
    else if (magnitude < 999.5e-6)
        snprintf(buffer, NUMBER_TEXT_SIZE, "%.3g us", seconds * 1e6);
    else if (magnitude < 999.5e-3)
        snprintf(buffer, NUMBER_TEXT_SIZE, "%.3g ms", seconds * 1e3);
    else if (magnitude < 100)
        snprintf(buffer, NUMBER_TEXT_SIZE, "%.3g s", seconds);
    else if (magnitude < 6000)
        snprintf(buffer, NUMBER_TEXT_SIZE, "%d min %02d s", (int)(seconds / 60), (int)fmod(magnitude, 60));
    else if (magnitude < 360000)
        snprintf(buffer, NUMBER_TEXT_SIZE, "%d h %02d min", (int)(seconds / 3600),
                 (int)fmod(magnitude / 60, 60));
    else
        snprintf(buffer, NUMBER_TEXT_SIZE, magnitude < 999.5 * 86400 ? "%.3g d" : "%.0f d", seconds / 86400);
    return buffer;
}

bool number_multiply_size(size_t a, size_t b, size_t *ret) {
    size_t result;
    if (__builtin_mul_overflow(a, b, &result))
        return false;
    *ret = result;
    return true;
}

bool number_add_size(size_t a, size_t b, size_t *ret) {
    size_t result;
    if (__builtin_add_overflow(a, b, &result))
        return false;
    *ret = result;
    return true;
}
