#include "engine/documents/csv-number.h"

#include <math.h>
#include <strings.h>

static bool is_blank(char byte) {
    return byte == ' ' || byte == '\t';
}

static bool is_missing(const char *bytes, size_t length) {
    static const char *const words[] = {"na", "nan", "inf",
                                        "infinity"}; /* all but the first with a sign too */
    if (length == 0)
        return true;
    size_t sign = *bytes == '+' || *bytes == '-';
    for (size_t i = sign; i < sizeof words / sizeof *words; i++)
        if (length - sign == strlen(words[i]) && strncasecmp(bytes + sign, words[i], length - sign) == 0)
            return true;
    return false;
}

bool csv_number_parse_missing(const char *bytes, size_t length, double *ret) {
    while (length > 0 && is_blank(*bytes)) {
        bytes++;
        length--;
    }
    while (length > 0 && is_blank(bytes[length - 1]))
        length--;
    if (!is_missing(bytes, length))
        return csv_number_parse(bytes, length, ret);
    *ret = NAN;
    return true;
}
