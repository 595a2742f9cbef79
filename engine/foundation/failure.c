#include "engine/foundation/failure.h"

#include "engine/foundation/text.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

/* Writes TEXT into BUFFER with control characters made visible: a sentence that quotes a value stays one
 * line, and what somebody else wrote does not reach the terminal as commands. */
static void copy_visibly(const char *text, char *buffer, size_t size) {
    size_t length = 0;
    for (; *text && length + 5 < size; text++) {
        unsigned char c = (unsigned char)*text;
        if (c == '\n')
            length += (size_t)snprintf(buffer + length, size - length, "\\n");
        else if (c == '\t')
            length += (size_t)snprintf(buffer + length, size - length, "\\t");
        else if (c < ' ' || c == 0x7f)
            length += (size_t)snprintf(buffer + length, size - length, "\\x%02x", c);
        else
            buffer[length++] = *text;
    }
    /* A sentence that was too long may end inside a UTF-8 character. */
    size_t valid = text_invalid_utf8(buffer, length);
    buffer[length - valid < 4 ? valid : length] = '\0';
}

__attribute__((format(printf, 5, 0))) static int fill(struct failure *failure, enum failure_kind kind,
                                                      int code, const char *place, const char *format,
                                                      va_list arguments) {
    if (!failure)
        return code;
    /* The arguments may point into the failure itself (a sentence quoted by another), so the new text
     * is composed aside. */
    char text[FAILURE_TEXT_SIZE];
    vsnprintf(text, sizeof text, format, arguments);
    failure->kind = kind;
    failure->code = code;
    copy_visibly(place, failure->place, sizeof failure->place);
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
