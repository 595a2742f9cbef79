#include "engine/documents/shown-value.h"

#include <stdbool.h>
#include <stdio.h>

struct shown_value shown_value(const char *bytes, size_t length) {
    struct shown_value shown;
    bool cut = length > SHOWN_VALUE_MAX;
    if (cut) {
        length = SHOWN_VALUE_MAX;
        while (length > 0 && ((unsigned char)bytes[length] & 0xc0) == 0x80)
            length--; /* not in the middle of a character */
    }
    snprintf(shown.text, sizeof shown.text, "'%.*s%s'", (int)length, bytes, cut ? "..." : "");
    return shown;
}
