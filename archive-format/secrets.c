#include "archive-format/secrets.h"

#include "archive-format/layout.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/secret.h"

#include <errno.h>
#include <string.h>
#include <unistd.h>

enum {
    PIECE = 64 << 10,
    OVERLAP = 512, /* of a piece whose line is longer: more than a token has that is looked for */
};

static size_t count_lines(const char *bytes, size_t length) {
    size_t lines = 0;
    for (const char *at = bytes; (at = memchr(at, '\n', length - (size_t)(at - bytes))); at++)
        lines++;
    return lines;
}

/* Where the last line of BYTES begins that is not whole, or the last part of a line that is longer. */
static size_t find_rest(const char *bytes, size_t length) {
    const char *newline = memrchr(bytes, '\n', length);
    size_t rest = newline ? length - (size_t)(newline + 1 - bytes) : length;
    return length - (rest < PIECE / 2 ? rest : OVERLAP);
}

int secrets_check_file(const char *path, const char *name, struct failure *failure) {
    cleanup_free char *bytes = xmalloc(PIECE + 1);
    cleanup_close int file = file_open(path, FILE_REGULAR, failure);
    size_t kept = 0, line = 1, offset = 0;
    if (file < 0)
        return file;
    for (;;) {
        ssize_t got = TEMP_FAILURE_RETRY(read(file, bytes + kept, PIECE - kept));
        if (got < 0)
            return failure_set(failure, -errno, "cannot read '%s': %s", path, strerror(errno));
        size_t length = kept + (size_t)got;
        bytes[length] = '\0';
        const char *what = secret_find(bytes, length, &offset);
        if (what)
            return failure_set_kind(failure, FAILURE_INPUT, -EKEYREJECTED,
                                    "'%s' has what looks like %s on line %zu; remove it there", name, what,
                                    line + count_lines(bytes, offset));
        if (got == 0)
            return 0;
        size_t rest = find_rest(bytes, length);
        line += count_lines(bytes, rest);
        kept = length - rest;
        memmove(bytes, bytes + rest, kept);
    }
}

int secrets_check(const struct staging *staging, struct failure *failure) {
    static const char named[] = ARCHIVE_INPUT_FILES "/";
    int r = 0;
    for (size_t i = 0; r == 0 && i < staging->count; i++) {
        const struct staged_file *file = &staging->files[i];
        cleanup_free char *path = file_join(staging->folder, file->name);
        if (!file->folder && strncmp(file->name, named, strlen(named)) != 0)
            r = secrets_check_file(path, file->name, failure);
    }
    return r;
}
