#include "engine/documents/shown-value.h"

#include <stdbool.h>
#include <stdio.h>

struct shown_value shown_value(const char *bytes, size_t length) {
    struct shown_value shown;
    bool cut = length > SHOWN_VALUE_MOST;
    if (cut) {
        length = SHOWN_VALUE_MOST;
        while (length > 0 && ((unsigned char)bytes[length] & 0xc0) == 0x80)
            length--; /* not in the middle of a character */
    }
    size_t out = 0;
    shown.text[out++] = '\'';
    for (size_t i = 0; i < length; i++) {
        unsigned char byte = (unsigned char)bytes[i];
        shown.text[out++] = byte < ' ' || byte == 0x7f ? ' ' : (char)byte;
    }
    snprintf(shown.text + out, sizeof shown.text - out, "%s", cut ? "...'" : "'");
    return shown;
}
