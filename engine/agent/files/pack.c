/* --pack: files and folders of the node as a tar on stdout. */
#include "engine/agent/files/path.h"
#include "engine/agent/files/sha256.h"
#include "engine/agent/files/tar.h"
#include "engine/agent/machine/machine.h"
#include "engine/agent/serve/tool.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"

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

/* The rest is packed all the same. */
static void complain(struct pack *pack, const char *what, const char *path, int code) {
    fprintf(stderr, "assay-agent: cannot %s '%.256s': %s\n", what, path, strerror(-code));
    pack->status = 1;
}

/* Up to SIZE bytes, fewer only at the end of the file. */
static ssize_t read_up_to(int file, char *bytes, size_t size) {
    size_t done = 0;
    while (done < size) {
        ssize_t got = read(file, bytes + done, size - done);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return -errno;
        if (got == 0)
            break;
        done += (size_t)got;
    }
    return (ssize_t)done;
}

/* The content as it is now, once more, with exactly the size that was announced. If it has changed since, it
 * does not fit its hash, and the receiver refuses it. */
static void put_content(struct pack *pack, int file, uint64_t size) {
    uint64_t left = size;
    if (lseek(file, 0, SEEK_SET) < 0)
        pack->tar.status = -errno;
    while (left > 0 && pack->tar.status == 0) {
        size_t part = left < WHOLE_MAX ? (size_t)left : WHOLE_MAX;
        ssize_t got = read_up_to(file, pack->buffer, part);
        size_t known = got > 0 ? (size_t)got : 0;
        memset(pack->buffer + known, 0, part - known);
        tar_put_bytes(&pack->tar, pack->buffer, part);
        left -= part;
    }
}

/* A file is read twice, for its hash and for its content; a small one once, which also gives a consistent
 * copy of what the kernel makes up as it is read. Sizes are counted, for many files of /proc say that they
 * are empty. */
static void put_file(struct pack *pack, int file, struct tar_entry *entry) {
    struct sha256 hash;
    unsigned char digest[SHA256_SIZE];
    ssize_t got, first = 0;
    sha256_init(&hash);
    do {
        got = read_up_to(file, pack->buffer, WHOLE_MAX);
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

/* What has gone meanwhile is left out without a word, and so are links and special files. */
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

/* ENTRY names the folder, "" for one whose name is not wanted; it is used for what is in it as well. */
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

/* PATH itself is followed if it is a link; nothing below it is. Entries begin with its last part, unless that
 * is "." or there is none. */
static void put_top(struct pack *pack, int directory, int root, const char *path) {
    struct failure failure;
    struct tar_entry entry = {.type = TAR_FOLDER};
    cleanup_close int top = path_open(directory, root, path, O_RDONLY | O_NOCTTY | O_NONBLOCK, &failure);
    if (top < 0) {
        fprintf(stderr, "assay-agent: %s\n", failure.text);
        pack->status = 1;
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
        fprintf(stderr, "assay-agent: '%.256s' is neither a file nor a folder\n", path);
        pack->status = 1;
    }
}

int tool_pack(int count, char **arguments) {
    struct failure failure = {0};
    struct machine machine;
    bool captured = count > 1 && strcmp(arguments[0], "--root") == 0;
    int first = captured ? 2 : 0;
    if (first >= count || isatty(1)) {
        fputs("assay-agent: usage: --pack [--root DIR] PATH... >FILE.tar\n", stderr);
        return 2;
    }
    if (machine_open(captured ? arguments[1] : NULL, &machine, &failure) < 0) {
        fprintf(stderr, "assay-agent: %s\n", failure.text);
        return 2;
    }
    cleanup_close int directory = open(".", O_RDONLY | O_DIRECTORY | O_CLOEXEC);
    cleanup_free char *buffer = malloc(WHOLE_MAX);
    struct pack pack = {.buffer = buffer};
    tar_begin(&pack.tar, 1, UINT64_MAX);
    if (directory < 0 || !buffer)
        pack.tar.status = directory < 0 ? -errno : -ENOMEM;
    for (int i = first; i < count && pack.tar.status == 0; i++)
        put_top(&pack, directory, machine.root, arguments[i]);
    machine_close(&machine);
    int r = pack.tar.total > 0 ? tar_end(&pack.tar) : pack.tar.status;
    if (r < 0)
        fprintf(stderr, "assay-agent: --pack: %s\n", strerror(-r));
    return r < 0 ? 1 : pack.status;
}
