#include "engine/report/shown.h"

#include "engine/foundation/memory.h"

#include <stddef.h>
#include <string.h>

/* How many bytes the character at AT has; 0 where none begins that may be shown. Overlong
 * forms are none: a careless terminal could find a control in them. */
static size_t character(const unsigned char *at) {
    size_t length = *at < 0x80 ? 1 : *at < 0xc2 ? 0 : *at < 0xe0 ? 2 : *at < 0xf0 ? 3 : *at < 0xf5 ? 4 : 0;
    for (size_t i = 1; i < length; i++)
        if ((at[i] & 0xc0) != 0x80)
            return 0;
    if (length == 3 && *at == 0xe0 && at[1] < 0xa0)
        return 0;
    if (length == 4 && *at == 0xf0 && at[1] < 0x90)
        return 0;
    if (length == 1 && (*at < 0x20 || *at == 0x7f))
        return 0;
    if (length == 2 && *at == 0xc2 && at[1] < 0xa0)
        return 0; /* U+0080 to U+009F */
    if (length == 3 && *at == 0xe2 && at[1] == 0x80 &&
        (at[2] == 0x8e || at[2] == 0x8f || (at[2] >= 0xa8 && at[2] <= 0xae)))
        return 0; /* U+200E, U+200F, U+2028 to U+202E: marks of direction, ends of lines */
    if (length == 3 && *at == 0xe2 && at[1] == 0x81 && at[2] >= 0xa6 && at[2] <= 0xa9)
        return 0; /* U+2066 to U+2069 */
    return length;
}

/* What takes the place of the next character of *AT, which moves on; returns how long it is. */
static size_t take(const unsigned char **at, bool lines, char ret[static 8]) {
    size_t length = lines && (**at == '\n' || **at == '\t') ? 1 : character(*at);
    if (length > 0) {
        memcpy(ret, *at, length);
        *at += length;
        return length;
    }
    int written = snprintf(ret, 8, "\\x%02x", **at);
    ++*at;
    return (size_t)written;
}

struct shown shown(const char *text) {
    struct shown result;
    size_t used = 0;
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        char piece[8];
        size_t length = take(&at, false, piece);
        if (used + length + sizeof "..." > sizeof result.text) {
            memcpy(result.text + used, "...", 3);
            used += 3;
            break;
        }
        memcpy(result.text + used, piece, length);
        used += length;
    }
    result.text[used] = '\0';
    return result;
}

void shown_print(FILE *stream, const char *text, bool lines) {
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        char piece[8];
        fwrite(piece, 1, take(&at, lines, piece), stream);
    }
}

void shown_write(FILE *stream, const char *bytes, size_t length) {
    for (size_t at = 0; at < length; at++) {
        shown_print(stream, bytes + at, true);
        at += strlen(bytes + at);
        if (at < length)
            fputs("\\x00", stream);
    }
}

char *shown_copy(const char *text) {
    char *copy = xmalloc(4 * strlen(text) + sizeof "\\x00"), *to = copy; /* a byte becomes four at most */
    for (const unsigned char *at = (const unsigned char *)text; *at;) {
        char piece[8];
        size_t length = take(&at, false, piece);
        memcpy(to, piece, length);
        to += length;
    }
    *to = '\0';
    return copy;
}
