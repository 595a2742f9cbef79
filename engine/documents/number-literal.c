#include "engine/documents/number-literal.h"

#include <string.h>

static size_t count_digits(const char *bytes, size_t length) {
    size_t count = 0;
    while (count < length && bytes[count] >= '0' && bytes[count] <= '9')
        count++;
    return count;
}

/* The length of the number that BYTES begin with, by the grammar of JSON or else of YAML; 0: there is
 * none. */
static size_t number_length(const char *bytes, size_t length, bool json) {
    size_t at = length > 0 && (bytes[0] == '-' || (bytes[0] == '+' && !json));
    size_t whole = count_digits(bytes + at, length - at), fraction = 0;
    if (json && (whole == 0 || (whole > 1 && bytes[at] == '0')))
        return 0;
    at += whole;
    if (at < length && bytes[at] == '.') {
        fraction = count_digits(bytes + at + 1, length - at - 1);
        if (json && fraction == 0)
            return 0;
        at += 1 + fraction;
    }
    if (whole + fraction == 0)
        return 0;
    if (at < length && (bytes[at] == 'e' || bytes[at] == 'E')) {
        size_t sign = at + 1 < length && (bytes[at + 1] == '-' || bytes[at + 1] == '+');
        size_t digits = count_digits(bytes + at + 1 + sign, length - at - 1 - sign);
        if (digits == 0)
            return 0;
        at += 1 + sign + digits;
    }
    return at;
}

size_t number_literal_length(const char *bytes, size_t length) {
    return number_length(bytes, length, false);
}

bool number_literal_is_decimal(const char *bytes, size_t length) {
    return length > 0 && number_literal_length(bytes, length) == length;
}

size_t number_literal_json_length(const char *bytes, size_t length) {
    return number_length(bytes, length, true);
}
