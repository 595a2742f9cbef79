/* What a field is where missing numbers are NaN, said once more and slowly: the reference of the tests. */
#ifndef ASSAY_TESTS_UNIT_DOCUMENTS_MISSING_NUMBER_H
#define ASSAY_TESTS_UNIT_DOCUMENTS_MISSING_NUMBER_H

#include "engine/foundation/number.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <string.h>
#include <strings.h>

static inline bool parse_or_missing(const char *bytes, size_t length, double *ret) {
    char word[16] = "";
    for (; length > 0 && memchr(" \t", bytes[0], 2); bytes++)
        length--;
    while (length > 0 && memchr(" \t", bytes[length - 1], 2))
        length--;
    if (length < sizeof word && !memchr(bytes, '\0', length))
        memcpy(word, bytes, length);
    *ret = NAN;
    const char *plain = word + (word[0] == '+' || word[0] == '-');
    return length == 0 || strcasecmp(word, "na") == 0 || strcasecmp(word, "n/a") == 0 ||
           strcasecmp(word, "null") == 0 || strcasecmp(word, "none") == 0 || strcmp(word, "-") == 0 ||
           strcasecmp(plain, "nan") == 0 || strcasecmp(plain, "inf") == 0 ||
           strcasecmp(plain, "infinity") == 0 || number_parse_double(bytes, length, ret);
}

#endif
