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

/* BYTES with quotes doubled if QUOTED, each byte that no CSV can hold replaced by U+FFFD. */
static int append_content(struct text *text, const char *bytes, size_t length, bool quoted) {
    int r = 0;
    while (r == 0 && length > 0) {
        const char *nul = memchr(bytes, '\0', length);
        size_t good = text_invalid_utf8(bytes, nul ? (size_t)(nul - bytes) : length);
        const char *quote = quoted && good ? memchr(bytes, '"', good) : NULL;
        if (quote)
            good = (size_t)(quote - bytes) + 1;
        r = text_append(text, bytes, good);
        if (r == 0 && quote)
            r = text_append_character(text, '"');
        if (r == 0 && !quote && good < length) {
            r = text_append(text, "\xef\xbf\xbd", 3);
            good++;
        }
        bytes += good;
        length -= good;
    }
    return r;
}

int csv_append_field(struct text *text, bool first, const char *bytes, size_t length) {
    size_t before = text->length;
    bool quoted = needs_quotes(bytes, length);
    int r = first ? 0 : text_append_character(text, ',');
    if (r == 0 && quoted)
        r = text_append_character(text, '"');
    if (r == 0)
        r = append_content(text, bytes, length, quoted);
    if (r == 0 && quoted)
        r = text_append_character(text, '"');
    if (r < 0 && text->length > before) {
        text->length = before;
        text->bytes[before] = '\0';
    }
    return r;
}

/* A literal that needs no quotes. */
static int append_literal(struct text *text, bool first, const char *literal, size_t length) {
    char *end;
    int r = text_reserve(text, length + !first, &end);
    if (r < 0)
        return r;
    if (!first)
        *end++ = ',';
    memcpy(end, literal, length);
    end[length] = '\0';
    text->length += length + !first;
    return 0;
}

int csv_append_double(struct text *text, bool first, double value) {
    char literal[NUMBER_TEXT_SIZE];
    return append_literal(text, first, literal, isfinite(value) ? number_format_double(value, literal) : 0);
}

int csv_append_int64(struct text *text, bool first, int64_t value) {
    char literal[NUMBER_TEXT_SIZE];
    return append_literal(text, first, literal, number_format_int64(value, literal));
}
