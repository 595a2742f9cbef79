/* --pack: files and folders of the node as a tar on stdout. */
#include "engine/agent/files/sha256.h"
#include "engine/agent/files/tar.h"
#include "engine/agent/machine/machine.h"
#include "engine/agent/machine/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/path.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { WHOLE_MAX = 1 << 20, DEPTH_LIMIT = 64 };
enum { READ_FLAGS = O_RDONLY | O_NOCTTY | O_NONBLOCK | O_NOFOLLOW | O_CLOEXEC };

struct pack {
    struct tar_writer tar;
    char *buffer; /* WHOLE_MAX bytes */
    int status;   /* of the tool */
};

/* Prints a message about PATH; the tool goes on, and ends with status 1. */
static void complain(struct pack *pack, const char *what, const char *path, int code) {
    pack->status = tool_complain(1, "cannot %s '%.256s': %s", what, path, strerror(-code));
}

/* Reads FILE again and writes its content with exactly SIZE bytes, the size in its header. If the file has
 * changed meanwhile its hash is wrong, and the receiver refuses it. */
static void put_content(struct pack *pack, int file, uint64_t size) {
    uint64_t left = size;
    if (lseek(file, 0, SEEK_SET) < 0)
        pack->tar.status = -errno;
    while (left > 0 && pack->tar.status == 0) {
        size_t part = left < WHOLE_MAX ? (size_t)left : WHOLE_MAX;
        ssize_t got = path_read_up_to(file, pack->buffer, part);
        size_t known = got > 0 ? (size_t)got : 0;
        memset(pack->buffer + known, 0, part - known);
        tar_put_bytes(&pack->tar, pack->buffer, part);
        left -= part;
    }
}

/* Packs a file. It is read twice, for its hash and for its content. A small file is read once, which gives a
 * consistent copy of files that the kernel generates. The size is counted, because many files of /proc claim
 * to be empty. */
static void put_file(struct pack *pack, int file, struct tar_entry *entry) {
    struct sha256 hash;
    unsigned char digest[SHA256_SIZE];
    ssize_t got, first = 0;
    sha256_init(&hash);
    do {
        got = path_read_up_to(file, pack->buffer, WHOLE_MAX);
        if (got < 0) {
            complain(pack, "read", entry->path, (int)got);
            return;
        }
        first = entry->size == 0 ? got : first;
        sha256_add(&hash, pack->buffer, (size_t)got);
        entry->size += (uint64_t)got;
    } while (got == WHOLE_MAX);
    sha256_end(&hash, digest);
    sha256_to_hex(digest, entry->sha256);
    tar_put_entry(&pack->tar, entry);
    if (entry->size < WHOLE_MAX)
        tar_put_bytes(&pack->tar, pack->buffer, (size_t)first);
    else
        put_content(pack, file, entry->size);
    tar_put_padding(&pack->tar, entry->size);
}

static void put_folder(struct pack *pack, int folder, struct tar_entry *entry, int depth);

/* Packs the file or folder NAME in FOLDER. Links, special files, and files that have disappeared are silently
 * left out. */
static void put_at(struct pack *pack, int folder, const char *name, struct tar_entry *entry, int depth) {
    struct stat status;
    if (fstatat(folder, name, &status, AT_SYMLINK_NOFOLLOW) < 0 ||
        (!S_ISREG(status.st_mode) && !S_ISDIR(status.st_mode)))
        return;
    cleanup_close int found = openat(folder, name, READ_FLAGS);
    if (found < 0 && (errno == ENOENT || errno == ELOOP))
        return;
    if (found < 0 || fstat(found, &status) < 0) {
        complain(pack, "read", entry->path, -errno);
        return;
    }
    entry->mode = status.st_mode & 0777;
    entry->size = 0;
    entry->sha256[0] = '\0';
    entry->type = S_ISDIR(status.st_mode) ? TAR_FOLDER : TAR_FILE;
    if (S_ISDIR(status.st_mode))
        put_folder(pack, found, entry, depth + 1);
    else if (S_ISREG(status.st_mode))
        put_file(pack, found, entry);
}

/* Packs a folder with its content. ENTRY has its path in the archive, "" for a folder without an entry of its
 * own; it is reused for the content. */
static void put_folder(struct pack *pack, int folder, struct tar_entry *entry, int depth) {
    size_t length = strlen(entry->path);
    if (length > 0)
        tar_put_entry(&pack->tar, entry);
    int again = openat(folder, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    DIR *entries = again < 0 ? NULL : fdopendir(again);
    if (!entries || depth > DEPTH_LIMIT) {
        complain(pack, "list", entry->path, entries ? -ELOOP : -errno);
        if (entries)
            closedir(entries);
        else
            cleanup_close_descriptor(&again);
        return;
    }
    struct dirent *found;
    while (pack->tar.status == 0 && (found = readdir(entries))) {
        if (strcmp(found->d_name, ".") == 0 || strcmp(found->d_name, "..") == 0)
            continue;
        size_t space = sizeof entry->path - length;
        if ((size_t)snprintf(entry->path + length, space, "%s%s", length ? "/" : "", found->d_name) < space)
            put_at(pack, folder, found->d_name, entry, depth);
        else
            complain(pack, "read", entry->path, -ENAMETOOLONG);
    }
    entry->path[length] = '\0';
    closedir(entries);
}

/* Packs PATH, an argument of the tool. PATH itself may be a link, links below it are not followed. The
 * entries' paths begin with its last component, unless that is "." or empty. */
static void put_top(struct pack *pack, int directory, int root, const char *path) {
    struct failure failure;
    struct tar_entry entry = {.type = TAR_FOLDER};
    cleanup_close int top = path_open(directory, root, path, O_RDONLY | O_NOCTTY | O_NONBLOCK, &failure);
    if (top < 0) {
        pack->status = tool_complain(1, "%s", failure.text);
        return;
    }
    size_t end = strlen(path), start;
    while (end > 0 && path[end - 1] == '/')
        end--;
    for (start = end; start > 0 && path[start - 1] != '/';)
        start--;
    if (end - start <= NAME_MAX && strncmp(path + start, ".", end - start) != 0)
        memcpy(entry.path, path + start, end - start);
    struct stat status;
    if (fstat(top, &status) < 0) {
        complain(pack, "read", path, -errno);
        return;
    }
    entry.mode = status.st_mode & 0777;
    if (S_ISDIR(status.st_mode)) {
        put_folder(pack, top, &entry, 0);
    } else if (S_ISREG(status.st_mode)) {
        entry.type = TAR_FILE;
        put_file(pack, top, &entry);
    } else {
        pack->status = tool_complain(1, "'%.256s' is neither a file nor a folder", path);
    }
}

/* --pack: writes a tar of files and folders to stdout. 1: one of them could not be read. */
int tool_pack(int count, char **arguments) {
    cleanup(machine_close) struct machine machine = {.root = -1};
    /* All further arguments are paths, which may begin with '-'. */
    int first = count > 1 && strcmp(arguments[0], "--root") == 0 ? 2 : 0;
    if (first >= count || isatty(1))
        return tool_complain(2, "usage: --pack [--root DIR] PATH... >FILE.tar");
    if (tool_open_machine(first ? arguments[1] : NULL, &machine) != 0)
        return 2;
    cleanup_close int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_free char *buffer = malloc(WHOLE_MAX);
    struct pack pack = {.buffer = buffer};
    tar_begin(&pack.tar, 1, UINT64_MAX);
    if (directory < 0 || !buffer)
        pack.tar.status = directory < 0 ? -errno : -ENOMEM;
    for (int i = first; i < count && pack.tar.status == 0; i++)
        put_top(&pack, directory, machine.root, arguments[i]);
    int r = pack.tar.total > 0 ? tar_end(&pack.tar) : pack.tar.status;
    return r < 0 ? tool_complain(1, "--pack: %s", strerror(-r)) : pack.status;
}
