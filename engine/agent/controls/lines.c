#include "engine/agent/controls/lines.h"

#include "engine/foundation/file.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

void lines_init(struct lines *lines, size_t limit_bytes) {
    *lines = (struct lines){0};
    text_init(&lines->text, limit_bytes);
}

void lines_clear(struct lines *lines) {
    text_clear(&lines->text);
}

static int append_field(struct text *text, const char *field) {
    int r = 0;
    while (r == 0 && *field) {
        size_t plain = strcspn(field, "\t\n\\");
        r = text_append(text, field, plain);
        field += plain;
        if (r == 0 && *field)
            r = text_append_string(text, *field == '\t' ? "\\t" : *field == '\n' ? "\\n" : "\\\\");
        field += *field != '\0';
    }
    return r;
}

/* Appends a line of fields, NULL-ended, with tabs, newlines and backslashes escaped. Errors are kept in
 * lines->error. */
void lines_put(struct lines *lines, ...) {
    if (lines->text.limit == 0)
        return;
    va_list fields;
    va_start(fields, lines);
    const char *separator = "";
    for (const char *field; lines->error == 0 && (field = va_arg(fields, const char *)); separator = "\t") {
        lines->error = text_append_string(&lines->text, separator);
        if (lines->error == 0)
            lines->error = append_field(&lines->text, field);
    }
    va_end(fields);
    if (lines->error == 0)
        lines->error = text_append_character(&lines->text, '\n');
}

int lines_write(struct lines *lines, int descriptor) {
    if (lines->error == 0 && lines->text.length > 0)
        lines->error = file_write_all(descriptor, lines->text.bytes, lines->text.length);
    text_reset(&lines->text);
    return lines->error;
}

/* Unescapes the field at *AT in place and moves *AT to the next, or to NULL. NULL: there is none, or it is
 * malformed. */
char *lines_read_field(char **at, char *end, size_t *ret_length) {
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

/* The name of the errno CODE, its number in BUFFER, or "" for 0. */
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
