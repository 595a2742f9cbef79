#include "engine/report/shown.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/text.h"

#include <stdint.h>
#include <stdlib.h>
#include <string.h>

struct shown shown(const char *text) {
    struct shown result;
    size_t used = 0, left = strlen(text);
    while (left > 0) {
        char piece[TEXT_SHOWN_SIZE];
        size_t length, step = text_show(text, left, false, piece, &length);
        if (used + length + sizeof "..." > sizeof result.text) {
            memcpy(result.text + used, "...", 3);
            used += 3;
            break;
        }
        memcpy(result.text + used, piece, length);
        used += length;
        text += step;
        left -= step;
    }
    result.text[used] = '\0';
    return result;
}

void shown_write(FILE *stream, const char *bytes, size_t length) {
    for (size_t at = 0, shown; at < length;) {
        char piece[TEXT_SHOWN_SIZE];
        at += text_show(bytes + at, length - at, true, piece, &shown);
        fwrite(piece, 1, shown, stream);
    }
}

void shown_print(FILE *stream, const char *text, bool lines) {
    cleanup_free char *line = lines ? NULL : shown_copy(text);
    if (line)
        fputs(line, stream);
    else
        shown_write(stream, text, strlen(text));
}

char *shown_copy(const char *text) {
    struct text copy;
    text_init(&copy, SIZE_MAX / 2);
    if (text_append_shown(&copy, text, strlen(text), false) < 0)
        memory_exhausted();
    return text_take(&copy);
}

bool shown_is_unicode(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && value[0])
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}
