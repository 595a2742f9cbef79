#include "archive-format/tar.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum { BUFFER_SIZE = 128 << 10, ENTRIES_MAX = 400000 };
#define BYTES_MAX ((uint64_t)2 << 30)

struct tar_writer {
    char *path;
    int descriptor;
    struct archive *packer;
    struct hash *hash;
    char buffer[BUFFER_SIZE];
};

static void free_entry(struct archive_entry **entry) {
    archive_entry_free(*entry);
}

/* ---- Writing */

static int fail_writing(const struct tar_writer *tar, struct failure *failure) {
    const char *reason = archive_error_string(tar->packer);
    return failure_set(failure, -EIO, "cannot write '%s': %s", tar->path, reason ? reason : "packing failed");
}

void tar_free(struct tar_writer **tar) {
    if (!*tar)
        return;
    archive_write_free((*tar)->packer);
    cleanup_close_descriptor(&(*tar)->descriptor);
    hash_free((*tar)->hash);
    free((*tar)->path);
    free(*tar);
}

int tar_create(const char *path, struct tar_writer **ret, struct failure *failure) {
    cleanup(tar_free) struct tar_writer *tar = xcalloc(1, sizeof *tar);
    tar->path = xstrdup(path);
    tar->packer = archive_write_new();
    tar->hash = hash_new();
    tar->descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (tar->descriptor < 0)
        return failure_set(failure, -errno, "cannot create '%s': %s", path, strerror(errno));
    if (!tar->packer)
        memory_exhausted();
    /* GNU's form keeps names as bytes; that of POSIX converts them, which depends on the locale. */
    if (archive_write_set_format_gnutar(tar->packer) != ARCHIVE_OK ||
        archive_write_open_fd(tar->packer, tar->descriptor) != ARCHIVE_OK)
        return fail_writing(tar, failure);
    *ret = take_pointer(tar);
    return 0;
}

static int add_header(struct tar_writer *tar, const char *name, unsigned type, unsigned mode, uint64_t size,
                      struct failure *failure) {
    cleanup(free_entry) struct archive_entry *entry = archive_entry_new();
    if (!entry)
        memory_exhausted();
    archive_entry_set_pathname(entry, name);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, mode & 0777);
    archive_entry_set_size(entry, (la_int64_t)size);
    archive_entry_set_mtime(entry, 0, 0);
    return archive_write_header(tar->packer, entry) >= ARCHIVE_WARN ? 0 : fail_writing(tar, failure);
}

int tar_add_folder(struct tar_writer *tar, const char *name, unsigned mode, struct failure *failure) {
    return add_header(tar, name, AE_IFDIR, mode, 0, failure);
}

int tar_add_file(struct tar_writer *tar, const char *name, unsigned mode, uint64_t size, const char *from,
                 char sha256[static HASH_HEX_SIZE], struct failure *failure) {
    cleanup_close int source = file_open(from, FILE_REGULAR, failure);
    if (source < 0)
        return source;
    int r = add_header(tar, name, AE_IFREG, mode, size, failure);
    uint64_t done = 0;
    while (r == 0) {
        ssize_t got = read(source, tar->buffer, sizeof tar->buffer);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failure_set(failure, -errno, "cannot read '%s': %s", from, strerror(errno));
        if (got == 0 && done == size)
            break;
        if (got == 0 || (uint64_t)got > size - done)
            return failure_set(failure, -EBUSY, "'%s' changed while it was copied", from);
        hash_update(tar->hash, tar->buffer, (size_t)got);
        if (archive_write_data(tar->packer, tar->buffer, (size_t)got) != got)
            return fail_writing(tar, failure);
        done += (uint64_t)got;
    }
    hash_finish(tar->hash, sha256);
    return r;
}

int tar_finish(struct tar_writer *tar, struct failure *failure) {
    if (archive_write_close(tar->packer) != ARCHIVE_OK)
        return fail_writing(tar, failure);
    if (fsync(tar->descriptor) < 0 || close(take_descriptor(tar->descriptor)) < 0)
        return failure_set(failure, -errno, "cannot write '%s': %s", tar->path, strerror(errno));
    return file_sync_folder_of(tar->path, failure);
}

/* ---- Reading */

static void free_unpacker(struct archive **unpacker) {
    archive_read_free(*unpacker);
}

static int fail_reading(struct archive *unpacker, const char *path, struct failure *failure) {
    const char *reason = archive_error_string(unpacker);
    return failure_verification(failure, path, "%s", reason ? reason : "it cannot be unpacked");
}

static bool leads_out(const char *name) {
    for (const char *part = name; part; part = strchr(part, '/')) {
        part += *part == '/';
        size_t length = strcspn(part, "/");
        if (length == 2 && memcmp(part, "..", 2) == 0)
            return true;
    }
    return name[0] == '/' || name[0] == '\0';
}

static int extract_file(struct archive *unpacker, const char *tar, const char *path, mode_t mode,
                        struct failure *failure) {
    cleanup_close int file = open(path, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0600);
    if (file < 0)
        return failure_set(failure, -errno, "cannot create '%s': %s", path, strerror(errno));
    if (archive_read_data_into_fd(unpacker, file) != ARCHIVE_OK)
        return fail_reading(unpacker, tar, failure);
    if (fchmod(file, mode & 0777) < 0 || close(take_descriptor(file)) < 0)
        return failure_set(failure, -errno, "cannot write '%s': %s", path, strerror(errno));
    return 0;
}

static int extract_entry(struct archive *unpacker, struct archive_entry *entry, const char *tar,
                         const char *folder, struct failure *failure) {
    const char *name = archive_entry_pathname(entry);
    mode_t type = archive_entry_filetype(entry);
    if (!name || leads_out(name) || archive_entry_hardlink(entry) || (type != AE_IFREG && type != AE_IFDIR))
        return failure_verification(failure, tar, "'%s' in it is no file or folder below its top",
                                    name ? name : "");
    cleanup_free char *path = xformat("%s/%s", folder, name);
    /* What is in a folder that its owner may not write could not be written, nor removed later. */
    if (type == AE_IFDIR)
        return mkdir(path, (archive_entry_perm(entry) & 0777) | 0700) < 0
                   ? failure_set(failure, -errno, "cannot make folder '%s': %s", path, strerror(errno))
                   : 0;
    return extract_file(unpacker, tar, path, archive_entry_perm(entry), failure);
}

int tar_extract(const char *path, const char *folder, struct failure *failure) {
    cleanup(free_unpacker) struct archive *unpacker = archive_read_new();
    struct archive_entry *entry;
    if (!unpacker || archive_read_support_format_tar(unpacker) != ARCHIVE_OK)
        memory_exhausted();
    cleanup_close int file = file_open(path, FILE_REGULAR, failure);
    if (file < 0)
        return file;
    if (archive_read_open_fd(unpacker, file, BUFFER_SIZE) != ARCHIVE_OK)
        return fail_reading(unpacker, path, failure);
    int r = 0, next;
    uint64_t bytes = 0, entries = 0;
    if (mkdir(folder, 0777) < 0)
        return failure_set(failure, -errno, "cannot make folder '%s': %s", folder, strerror(errno));
    while (r == 0 && (next = archive_read_next_header(unpacker, &entry)) != ARCHIVE_EOF) {
        if (next < ARCHIVE_WARN)
            return fail_reading(unpacker, path, failure);
        bytes += (uint64_t)archive_entry_size(entry);
        if (++entries > ENTRIES_MAX || archive_entry_size(entry) < 0 || bytes > BYTES_MAX)
            return failure_verification(failure, path, "it has more than %d entries or %d GiB", ENTRIES_MAX,
                                        (int)(BYTES_MAX >> 30));
        r = extract_entry(unpacker, entry, path, folder, failure);
    }
    return r;
}
