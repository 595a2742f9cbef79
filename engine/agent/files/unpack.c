/* --unpack: unpacks a tar on stdin to files and folders of the node. */
#include "engine/agent/files/part.h"
#include "engine/agent/files/sha256.h"
#include "engine/agent/files/tar.h"
#include "engine/agent/machine/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/path.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BUFFER = 256 << 10 };

static int fail_to_write(struct failure *failure, int code, const char *path) {
    return failure_set(failure, code, "cannot write '%.256s': %s", path, strerror(-code));
}

/* Unpacks one file of TAR to PATH. It gets its name only when its SHA-256 is that of ENTRY. */
static int unpack_file(int directory, const char *path, const struct tar_entry *entry, struct tar_reader *tar,
                       char *buffer, struct failure *failure) {
    char name[NAME_MAX + 1], hex[TAR_HASH_SIZE];
    unsigned char digest[SHA256_SIZE];
    struct sha256 hash;
    cleanup(part_clear) struct part part = {.file = -1};
    part.folder = path_open_parent(directory, path, name, failure);
    if (part.folder < 0)
        return part.folder;
    int r = part_open(&part, entry->mode);
    if (r < 0)
        return fail_to_write(failure, r, path);
    sha256_init(&hash);
    ssize_t got;
    while ((got = tar_read(tar, buffer, BUFFER, failure)) > 0) {
        sha256_add(&hash, buffer, (size_t)got);
        r = file_write_all(part.file, buffer, (size_t)got);
        if (r < 0)
            return fail_to_write(failure, r, path);
    }
    if (got < 0)
        return (int)got;
    sha256_end(&hash, digest);
    sha256_to_hex(digest, hex);
    if (strcmp(hex, entry->sha256) != 0)
        return failure_set(failure, -EBADMSG,
                           "'%.256s' has SHA-256 %.16s... here, and had %.16s... when it was sent", path, hex,
                           entry->sha256);
    r = part_commit(&part, name);
    return r < 0 ? fail_to_write(failure, r, path) : 0;
}

/* Unpacks the tar on stdin into FOLDER, which is made. Stops at the first entry that fails. */
static int unpack(const char *folder, char *buffer, struct failure *failure) {
    cleanup_close int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    if (directory < 0)
        return failure_set(failure, -errno, "cannot open the current folder: %s", strerror(errno));
    int r = path_make_folders(directory, folder, failure);
    if (r < 0)
        return r;
    struct tar_reader tar = {.input = 0};
    struct tar_entry entry;
    while ((r = tar_next(&tar, &entry, failure)) > 0) {
        cleanup_free char *path =
            strcmp(folder, ".") == 0 ? strdup(entry.path) : file_join(folder, entry.path);
        if (!path)
            return failure_memory(failure);
        r = entry.type == TAR_FOLDER ? path_make_folders(directory, path, failure)
                                     : unpack_file(directory, path, &entry, &tar, buffer, failure);
        if (r < 0)
            return r;
    }
    /* The padding at the end of a tar is read, too: the writer must not find the pipe closed. */
    while (r == 0 && read(0, buffer, BUFFER) > 0)
        continue;
    return r;
}

int tool_unpack(int count, char **arguments) {
    if (count != 1)
        return tool_complain(2, "usage: --unpack DIR <FILE.tar");
    struct failure failure = {0};
    cleanup_free char *buffer = malloc(BUFFER);
    int r = buffer ? unpack(arguments[0], buffer, &failure) : failure_memory(&failure);
    return r < 0 ? tool_complain(1, "%s", failure.text) : 0;
}
