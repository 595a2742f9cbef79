#include "engine/foundation/failure.h"

#include "engine/foundation/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Copies TEXT into BUFFER with control characters made visible, so that a quoted value cannot send commands
 * to a terminal. A long text is cut in its middle, in TEXT too, since its end often has the reason. */
static void copy_visibly(char *text, char *buffer, size_t size) {
    char all[4 * FAILURE_TEXT_SIZE]; /* a byte becomes four at most */
    size_t left = text_shorten(text, strlen(text), size - 1), length = 0, shown;
    for (; left > 0; length += shown) {
        size_t step = text_show(text, left, false, all + length, &shown);
        text += step;
        left -= step;
    }
    all[length] = '\0';
    memcpy(buffer, all, text_shorten(all, length, size - 1) + 1);
}

/* Sets all of FAILURE. Returns CODE. FAILURE may be NULL, and ARGUMENTS may point into it. */
__attribute__((format(printf, 5, 0))) static int fill(struct failure *failure, enum failure_kind kind,
                                                      int code, const char *place, const char *format,
                                                      va_list arguments) {
    if (!failure)
        return code;
    /* The arguments may point into the failure itself (a sentence quoted by another), so the new text
     * is composed aside. */
    char text[4 * FAILURE_TEXT_SIZE], where[FAILURE_PLACE_SIZE];
    vsnprintf(text, sizeof text, format, arguments);
    snprintf(where, sizeof where, "%s", place);
    failure->kind = kind;
    failure->code = code;
    copy_visibly(where, failure->place, sizeof failure->place);
    copy_visibly(text, failure->text, sizeof failure->text);
    return code;
}

int failure_set(struct failure *failure, int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(failure, FAILURE_SYSTEM, code, "", format, arguments);
    va_end(arguments);
    return code;
}

int failure_set_kind(struct failure *failure, enum failure_kind kind, int code, const char *format, ...) {
    va_list arguments;
    va_start(arguments, format);
    fill(failure, kind, code, "", format, arguments);
    va_end(arguments);
    return code;
}

/* Fails with a sentence about an input of the user, at a place of FILE if that is not NULL; LINE and COLUMN 0
 * are unknown. Returns -EINVAL. */
int failure_input(struct failure *failure, const char *file, size_t line, size_t column, const char *format,
                  ...) {
    char place[FAILURE_PLACE_SIZE] = "";
    if (file && line && column)
        snprintf(place, sizeof place, "%s:%zu:%zu", file, line, column);
    else if (file && line)
        snprintf(place, sizeof place, "%s:%zu", file, line);
    else if (file)
        snprintf(place, sizeof place, "%s", file);
    va_list arguments;
    va_start(arguments, format);
    fill(failure, FAILURE_INPUT, -EINVAL, place, format, arguments);
    va_end(arguments);
    return -EINVAL;
}

int failure_place(struct failure *failure, int code, const char *file, size_t line, size_t column) {
    if (code < 0 && failure && failure->kind == FAILURE_INPUT && !failure->place[0])
        failure_input(failure, file, line, column, "%s", failure->text);
    return code;
}

int failure_verification(struct failure *failure, const char *file, const char *format, ...) {
    char place[FAILURE_PLACE_SIZE];
    snprintf(place, sizeof place, "%s", file ? file : "");
    va_list arguments;
    va_start(arguments, format);
    fill(failure, FAILURE_VERIFICATION, -EBADMSG, place, format, arguments);
    va_end(arguments);
    return -EBADMSG;
}

/* Puts "PREFIX: " before the sentence of FAILURE. Returns its code. */
int failure_prefix(struct failure *failure, const char *format, ...) {
    if (!failure)
        return -EIO;
    char prefix[FAILURE_TEXT_SIZE];
    va_list arguments;
    va_start(arguments, format);
    vsnprintf(prefix, sizeof prefix, format, arguments);
    va_end(arguments);
    char text[2 * FAILURE_TEXT_SIZE + 8];
    snprintf(text, sizeof text, "%s: %s", prefix, failure->text);
    copy_visibly(text, failure->text, sizeof failure->text);
    return failure->code;
}

int failure_memory(struct failure *failure) {
    return failure_set(failure, -ENOMEM, "out of memory");
}

const char *failure_describe(const struct failure *failure, char *buffer, size_t size) {
    if (failure->place[0])
        snprintf(buffer, size, "%s: %s", failure->place, failure->text);
    else
        snprintf(buffer, size, "%s", failure->text);
    return buffer;
}
