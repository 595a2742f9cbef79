#include "engine/documents/csv.h"

#include "engine/foundation/number.h"

#include <math.h>
#include <string.h>

/* What RFC 4180 wants in quotes; a byte order mark too, which a reader would skip at the start of a file. */
static bool needs_quotes(const char *bytes, size_t length) {
    for (size_t i = 0; i < length; i++)
        if (bytes[i] == ',' || bytes[i] == '"' || bytes[i] == '\n' || bytes[i] == '\r')
            return true;
    return length >= 3 && memcmp(bytes, "\xef\xbb\xbf", 3) == 0;
}

/* Appends a field of a row, after a comma unless it is the FIRST, in quotes if it needs them (RFC 4180). A
 * negative errno: TEXT is full and unchanged. */
int csv_append_field(struct text *text, bool first, const char *bytes, size_t length) {
    struct text_mark mark = text_mark(text);
    const char *quotes = needs_quotes(bytes, length) ? "\"" : "", *end = bytes + length, *quote;
    text_append_string(text, first ? "" : ",");
    text_append_string(text, quotes);
    for (; *quotes && (quote = memchr(bytes, '"', (size_t)(end - bytes))); bytes = quote + 1) {
        text_append_utf8(text, bytes, (size_t)(quote + 1 - bytes));
        text_append_character(text, '"');
    }
    text_append_utf8(text, bytes, (size_t)(end - bytes));
    text_append_string(text, quotes);
    return text_keep(text, mark);
}

int csv_append_double(struct text *text, bool first, double value) {
    char literal[NUMBER_TEXT_SIZE];
    return csv_append_field(text, first, literal, isfinite(value) ? number_format_double(value, literal) : 0);
}

int csv_append_int64(struct text *text, bool first, int64_t value) {
    char literal[NUMBER_TEXT_SIZE];
    return csv_append_field(text, first, literal, number_format_int64(value, literal));
}
