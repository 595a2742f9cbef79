#include "engine/documents/number-literal.h"

static size_t count_digits(const char *bytes, size_t length) {
    size_t count = 0;
    while (count < length && bytes[count] >= '0' && bytes[count] <= '9')
        count++;
    return count;
}

/* Length of an exponent with its 'e', or 0 when there is no whole one. */
static size_t exponent_length(const char *bytes, size_t length) {
    if (length == 0 || (bytes[0] != 'e' && bytes[0] != 'E'))
        return 0;
    size_t at = 1;
    at += at < length && (bytes[at] == '-' || bytes[at] == '+');
    size_t digits = count_digits(bytes + at, length - at);
    return digits ? at + digits : 0;
}

/* The parts of a decimal number: sign, digits, point and digits, exponent. */
struct parts {
    bool negative;
    const char *whole, *fraction, *exponent;
    size_t whole_length, fraction_length, exponent_length;
};

static bool split(const char *bytes, size_t length, struct parts *ret) {
    size_t at = length > 0 && (bytes[0] == '-' || bytes[0] == '+');
    struct parts parts = {.negative = length > 0 && bytes[0] == '-', .whole = bytes + at};
    parts.whole_length = count_digits(bytes + at, length - at);
    at += parts.whole_length;
    parts.fraction = bytes + at;
    if (at < length && bytes[at] == '.') {
        parts.fraction = bytes + at + 1;
        parts.fraction_length = count_digits(bytes + at + 1, length - at - 1);
        at += 1 + parts.fraction_length;
    }
    if (parts.whole_length + parts.fraction_length == 0)
        return false;
    parts.exponent = bytes + at;
    parts.exponent_length = exponent_length(bytes + at, length - at);
    if (at + parts.exponent_length != length)
        return false;
    *ret = parts;
    return true;
}

bool number_literal_is_decimal(const char *bytes, size_t length) {
    struct parts parts;
    return split(bytes, length, &parts);
}

size_t number_literal_json_length(const char *bytes, size_t length) {
    size_t at = length > 0 && bytes[0] == '-';
    size_t digits = count_digits(bytes + at, length - at);
    if (digits == 0 || (digits > 1 && bytes[at] == '0'))
        return 0;
    at += digits;
    if (at < length && bytes[at] == '.') {
        digits = count_digits(bytes + at + 1, length - at - 1);
        if (digits == 0)
            return 0;
        at += 1 + digits;
    }
    if (at < length && (bytes[at] == 'e' || bytes[at] == 'E')) {
        size_t exponent = exponent_length(bytes + at, length - at);
        if (exponent == 0)
            return 0;
        at += exponent;
    }
    return at;
}

int number_literal_append_json(struct text *text, const char *bytes, size_t length) {
    struct parts parts;
    if (!split(bytes, length, &parts))
        return text_append(text, "null", 4);
    while (parts.whole_length > 1 && parts.whole[0] == '0') {
        parts.whole++;
        parts.whole_length--;
    }
    int r = parts.negative ? text_append_character(text, '-') : 0;
    if (r == 0)
        r = parts.whole_length ? text_append(text, parts.whole, parts.whole_length)
                               : text_append_character(text, '0');
    if (r == 0 && parts.fraction_length) {
        r = text_append_character(text, '.');
        if (r == 0)
            r = text_append(text, parts.fraction, parts.fraction_length);
    }
    if (r == 0 && parts.exponent_length)
        r = text_append(text, parts.exponent, parts.exponent_length);
    return r;
}
