#include "plugins/numerics/notes.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>

void notes_add(struct notes *notes, const char *format, ...) {
    if (notes->count == NOTES_MAX)
        return;
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(notes->texts[notes->count], NOTE_SIZE, format, arguments);
    va_end(arguments);
    notes->pointers[notes->count] = notes->texts[notes->count];
    notes->count++;
}

void notes_add_left_out(struct notes *notes, uint64_t rows, const char *why) {
    if (rows > 0)
        notes_add(notes, "%" PRIu64 " row%s left out: %s", rows, rows == 1 ? "" : "s", why);
}
