#include "engine/agent/controls/lines.h"

#include "engine/foundation/file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

enum { LINES_LIMIT = 64 << 20 };

void lines_init(struct lines *lines, int descriptor) {
    *lines = (struct lines){.descriptor = descriptor};
    text_init(&lines->text, LINES_LIMIT);
}

void lines_clear(struct lines *lines) {
    text_clear(&lines->text);
}

int lines_escape(struct text *text, const char *bytes, size_t length) {
    int r = 0;
    for (size_t i = 0; i < length && r == 0;) {
        size_t plain = i;
        while (plain < length && bytes[plain] != '\t' && bytes[plain] != '\n' && bytes[plain] != '\\')
            plain++;
        r = text_append(text, bytes + i, plain - i);
        if (r == 0 && plain < length)
            r = text_append_string(text, bytes[plain] == '\t'   ? "\\t"
                                         : bytes[plain] == '\n' ? "\\n"
                                                                : "\\\\");
        i = plain + 1;
    }
    return r;
}

void lines_put(struct lines *lines, ...) {
    if (lines->descriptor < 0 || lines->error < 0)
        return;
    va_list fields;
    va_start(fields, lines);
    int r = 0;
    bool first = true;
    for (const char *field; r == 0 && (field = va_arg(fields, const char *)); first = false) {
        if (!first)
            r = text_append_character(&lines->text, '\t');
        if (r == 0)
            r = lines_escape(&lines->text, field, strlen(field));
    }
    va_end(fields);
    if (r == 0)
        r = text_append_character(&lines->text, '\n');
    if (r < 0)
        lines->error = r;
}

int lines_flush(struct lines *lines) {
    if (lines->descriptor >= 0 && lines->error == 0 && lines->text.length > 0)
        lines->error = file_write_all(lines->descriptor, lines->text.bytes, lines->text.length);
    text_reset(&lines->text);
    return lines->error;
}

char *lines_take_field(char **at, char *end, size_t *ret_length) {
    char *start = *at, *to = start;
    if (!start)
        return NULL;
    char *from = start;
    for (; from < end && *from != '\t'; from++) {
        if (*from == '\0' || *from == '\n')
            return NULL;
        if (*from != '\\') {
            *to++ = *from;
            continue;
        }
        from++;
        if (from == end || (*from != 't' && *from != 'n' && *from != '\\'))
            return NULL;
        *to++ = *from == 't' ? '\t' : *from == 'n' ? '\n' : '\\';
    }
    *at = from < end ? from + 1 : NULL;
    *to = '\0';
    *ret_length = (size_t)(to - start);
    return start;
}

const char *lines_errno(int code, char buffer[static 16]) {
    static const struct {
        int code;
        const char *name;
    } names[] = {{EPERM, "EPERM"},   {EACCES, "EACCES"}, {ENOENT, "ENOENT"}, {ENODEV, "ENODEV"},
                 {ENXIO, "ENXIO"},   {EBUSY, "EBUSY"},   {EINVAL, "EINVAL"}, {EIO, "EIO"},
                 {EROFS, "EROFS"},   {EAGAIN, "EAGAIN"}, {ERANGE, "ERANGE"}, {ENOSPC, "ENOSPC"},
                 {ENOMEM, "ENOMEM"}, {EFBIG, "EFBIG"},   {ENOSYS, "ENOSYS"}, {ETIMEDOUT, "ETIMEDOUT"},
                 {ELOOP, "ELOOP"},   {EISDIR, "EISDIR"}, {EXDEV, "EXDEV"},   {EOPNOTSUPP, "EOPNOTSUPP"}};
    if (code == 0)
        return "";
    for (size_t i = 0; i < sizeof names / sizeof *names; i++)
        if (names[i].code == -code)
            return names[i].name;
    snprintf(buffer, 16, "%d", -code);
    return buffer;
}
