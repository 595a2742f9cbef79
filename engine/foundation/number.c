#include "engine/foundation/number.h"

#include <endian.h>
#include <locale.h>
#include <math.h>
#include <stddef.h>
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

/* Parses a long or extreme number by strtod. false: it is no finite number. */
static bool parse_double_slowly(const char *bytes, size_t length, double *ret) {
    char copy[NUMBER_LENGTH_MAX + 1];
    if (length >= sizeof copy)
        return false;
    memcpy(copy, bytes, length);
    copy[length] = '\0';
    double value = strtod_l(copy, NULL, c_locale());
    if (!isfinite(value))
        return false;
    *ret = value;
    return true;
}

/* Appends the decimal digits at *AT to MANTISSA, eight at a time (D. Lemire, Quickly parsing eight digits,
 * 2018), and moves *AT after them. */
static inline uint64_t read_digits(uint64_t mantissa, const char **at, const char *end) {
    for (uint64_t eight; end - *at >= 8; *at += 8) { /* as the machine has them, the first lowest */
        memcpy(&eight, *at, sizeof eight);
        eight = le64toh(eight) - UINT64_C(0x3030303030303030);
        if ((eight | (eight + UINT64_C(0x7676767676767676))) & UINT64_C(0x8080808080808080))
            break;
        eight = eight * 10 + (eight >> 8); /* pairs in every other byte; then fours, and all */
        eight = ((eight & UINT64_C(0xff000000ff)) * UINT64_C(0xf424000000064) +
                 (eight >> 16 & UINT64_C(0xff000000ff)) * UINT64_C(0x271000000001)) >>
                32;
        mantissa = mantissa * 100000000 + eight;
    }
    for (; *at < end && (unsigned char)(**at - '0') < 10; ++*at)
        mantissa = mantissa * 10 + (unsigned char)(**at - '0');
    return mantissa;
}

/* Parses a decimal number, correctly rounded, independent of the locale. false: BYTES is no finite number. */
bool number_parse_double(const char *bytes, size_t length, double *ret) {
    const char *at = bytes, *end = bytes + length;
    bool negative = false;
    if (at < end && (*at == '-' || *at == '+'))
        negative = *at++ == '-';
    const char *first = at;
    uint64_t mantissa = read_digits(0, &at, end);
    ptrdiff_t digits = at - first, scale = 0;
    if (at < end && *at == '.') {
        const char *point = at++;
        mantissa = read_digits(mantissa, &at, end);
        scale = point + 1 - at;
        digits -= scale;
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
    for (; digits > 19 && (*first == '0' || *first == '.'); first++)
        digits -= *first == '0'; /* only significant ones; of more the mantissa may have overflown */
    /* Clinger's fast path: a mantissa below 2^53 and a power of ten that is exact need one rounding. */
    double value = (double)mantissa;
    if (digits > 19 || mantissa > UINT64_C(1) << 53 || scale < -22 || scale > 22)
        return parse_double_slowly(bytes, length, ret);
    value = scale < 0 ? value / exact_powers[-scale] : value * exact_powers[scale];
    *ret = negative ? -value : value;
    return true;
}

/* Parses decimal digits. false: another character, no digit, or beyond 64 bits. */
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

/* Parses a whole number with an optional sign. false: no number, or beyond 64 bits. */
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

/* By hand, since a design of a million rows is written so. */
size_t number_format_uint64(uint64_t value, char buffer[static NUMBER_TEXT_SIZE]) {
    size_t length = 1;
    for (uint64_t rest = value; rest > 9; rest /= 10)
        length++;
    buffer[length] = '\0';
    for (size_t at = length; at-- > 0; value /= 10)
        buffer[at] = (char)('0' + value % 10);
    return length;
}

size_t number_format_int64(int64_t value, char buffer[static NUMBER_TEXT_SIZE]) {
    char digits[NUMBER_TEXT_SIZE];
    size_t length = number_format_uint64(value < 0 ? 0 - (uint64_t)value : (uint64_t)value, digits);
    memcpy(buffer, "-", 1);
    memcpy(buffer + (value < 0), digits, length + 1);
    return length + (value < 0);
}

/* Writes the shortest of 15 to 17 digits that reads back as VALUE; whole numbers without an exponent. Returns
 * the length. */
size_t number_format_double(double value, char buffer[static NUMBER_TEXT_SIZE]) {
    if (isnan(value))
        return (size_t)snprintf(buffer, NUMBER_TEXT_SIZE, "nan");
    if (isinf(value))
        return (size_t)snprintf(buffer, NUMBER_TEXT_SIZE, value < 0 ? "-inf" : "inf");
    locale_t before = uselocale(c_locale());
    int length = 0;
    /* %.17g would write 10^15 and more with an exponent. */
    if (fabs(value) < 9007199254740992.0 && value == trunc(value)) {
        length = snprintf(buffer, NUMBER_TEXT_SIZE, "%.0f", value);
    } else {
        double again = NAN;
        for (int digits = 15; digits <= 17 && again != value; digits++) {
            length = snprintf(buffer, NUMBER_TEXT_SIZE, "%.*g", digits, value);
            (void)number_parse_double(buffer, (size_t)length, &again);
        }
    }
    uselocale(before);
    return (size_t)length;
}

/* Of numbers below 2^53 in size, which texts of other numbers do not round to. */
static bool parse_distinct(const char *text, double *ret) {
    return number_parse_double(text, strlen(text), ret) && fabs(*ret) < 0x1p53;
}

bool number_spell(const char *text, char buffer[static NUMBER_TEXT_SIZE]) {
    double value;
    if (!parse_distinct(text, &value))
        return false;
    number_format_double(value + 0.0, buffer); /* -0 is 0 */
    return true;
}

bool number_texts_equal(const char *left, const char *right) {
    double values[2];
    return strcmp(left, right) == 0 ||
           (parse_distinct(left, &values[0]) && parse_distinct(right, &values[1]) && values[0] == values[1]);
}

/* Writes "WHAT from 1 to 5 UNIT" into BUFFER, which is returned; infinite bounds are left out. */
const char *number_describe_range(const char *what, double low, double high, const char *unit, char *buffer,
                                  size_t size) {
    char first[NUMBER_TEXT_SIZE], last[NUMBER_TEXT_SIZE];
    const char *space = unit[0] ? " " : "";
    number_format_double(low, first);
    number_format_double(high, last);
    if (isfinite(low) && isfinite(high))
        snprintf(buffer, size, "%s from %s to %s%s%s", what, first, last, space, unit);
    else if (isfinite(low) || isfinite(high))
        snprintf(buffer, size, "%s of at %s %s%s%s", what, isfinite(low) ? "least" : "most",
                 isfinite(low) ? first : last, space, unit);
    else
        snprintf(buffer, size, "%s", what);
    return buffer;
}

/* Writes a size with a binary prefix, as "1.5 GiB", into BUFFER, which is returned. */
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

/* Writes a duration as a person reads it, as "12 min 05 s", into BUFFER, which is returned. */
const char *number_describe_duration(double seconds, char buffer[static NUMBER_TEXT_SIZE]) {
    double magnitude = fabs(seconds);
    static const struct {
        double below, scale;
        const char *unit;
    } small[] = {{999.5e-9, 1e9, "ns"}, {999.5e-6, 1e6, "us"}, {999.5e-3, 1e3, "ms"}, {100, 1, "s"}};
    size_t i = 0;
    while (i < sizeof small / sizeof *small && magnitude >= small[i].below)
        i++;
    if (!isfinite(seconds))
        snprintf(buffer, NUMBER_TEXT_SIZE, "unknown");
    else if (magnitude == 0)
        snprintf(buffer, NUMBER_TEXT_SIZE, "0 s");
    else if (i < sizeof small / sizeof *small)
        snprintf(buffer, NUMBER_TEXT_SIZE, "%.3g %s", seconds * small[i].scale, small[i].unit);
    else if (magnitude < 6000)
        snprintf(buffer, NUMBER_TEXT_SIZE, "%d min %02d s", (int)(seconds / 60), (int)fmod(magnitude, 60));
    else if (magnitude < 360000)
        snprintf(buffer, NUMBER_TEXT_SIZE, "%d h %02d min", (int)(seconds / 3600),
                 (int)fmod(magnitude / 60, 60));
    else
        snprintf(buffer, NUMBER_TEXT_SIZE, magnitude < 999.5 * 86400 ? "%.3g d" : "%.0f d", seconds / 86400);
    return buffer;
}
