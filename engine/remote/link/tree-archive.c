#include "engine/remote/link/tree-archive.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK_SIZE = 64 << 10, OVERHEAD_MAX = 32 << 10 /* bytes of an archive beside its one file's */ };

static const char hash_name[] = "user.sha256";

void tree_archive_free(struct archive **archive) {
    archive_free(*archive);
}

static void free_entry(struct archive_entry **entry) {
    archive_entry_free(*entry);
}

static int archive_failure(struct archive *archive, const char *what, int code, struct failure *failure) {
    const char *reason = archive_error_string(archive);
    return failure_set(failure, code, "cannot %s: %s", what, reason ? reason : strerror(-code));
}

/* ---- writing */

/* Makes a writer of POSIX's pax format, whose records hold the hash; NULL without memory. */
static struct archive *new_packer(void) {
    struct archive *archive = archive_write_new();
    if (archive && archive_write_set_format_pax(archive) == ARCHIVE_OK &&
        /* Names are bytes, in any encoding. */
        archive_write_set_options(archive, "hdrcharset=BINARY") == ARCHIVE_OK &&
        archive_write_set_bytes_per_block(archive, BLOCK_SIZE) == ARCHIVE_OK)
        return archive;
    archive_free(archive);
    return NULL;
}

/* A descriptor of a file in $TMPDIR that has no name; the caller closes it. */
int tree_archive_scratch(struct failure *failure) {
    const char *folder = getenv("TMPDIR");
    folder = folder && folder[0] == '/' ? folder : "/tmp";
    int file = open(folder, O_TMPFILE | O_RDWR | O_CLOEXEC, 0600);
    if (file >= 0)
        return file;
    cleanup_free char *path = xformat("%s/assay-XXXXXX", folder);
    file = mkostemp(path, O_CLOEXEC);
    if (file < 0)
        return failure_set(failure, -errno, "cannot make a file in '%s': %s", folder, strerror(errno));
    unlink(path);
    return file;
}

int tree_archive_create(int file, struct archive **ret, struct failure *failure) {
    cleanup(tree_archive_free) struct archive *archive = new_packer();
    if (!archive || archive_write_open_fd(archive, file) != ARCHIVE_OK)
        return failure_memory(failure);
    *ret = take_pointer(archive);
    return 0;
}

/* Writes the header of an entry, with SHA256 as an extended attribute unless it is NULL. */
static int put_entry(struct archive *archive, const char *path, unsigned type, unsigned mode, uint64_t size,
                     const char *sha256, struct failure *failure) {
    cleanup(free_entry) struct archive_entry *entry = archive_entry_new();
    if (!entry)
        return failure_memory(failure);
    archive_entry_set_pathname(entry, path);
    archive_entry_set_filetype(entry, type);
    archive_entry_set_perm(entry, mode & 0777);
    archive_entry_set_size(entry, (la_int64_t)size);
    if (sha256)
        archive_entry_xattr_add_entry(entry, hash_name, sha256, strlen(sha256));
    int r = archive_write_header(archive, entry);
    return r >= ARCHIVE_WARN ? 0 : archive_failure(archive, "pack the files", -EIO, failure);
}

int tree_archive_add_folder(struct archive *archive, const char *path, struct failure *failure) {
    return put_entry(archive, path, AE_IFDIR, 0777, 0, NULL, failure);
}

int tree_archive_add_file(struct archive *archive, const char *path, unsigned mode, uint64_t size,
                          const char *sha256, struct failure *failure) {
    return put_entry(archive, path, AE_IFREG, mode, size, sha256, failure);
}

int tree_archive_add_bytes(struct archive *archive, const void *bytes, size_t length,
                           struct failure *failure) {
    return archive_write_data(archive, bytes, length) == (la_ssize_t)length
               ? 0
               : archive_failure(archive, "pack the files", -EIO, failure);
}

int tree_archive_finish(struct archive *archive, struct failure *failure) {
    return archive_write_close(archive) == ARCHIVE_OK
               ? 0
               : archive_failure(archive, "pack the files", -EIO, failure);
}

int tree_archive_of_file(const char *path, unsigned mode, const void *bytes, size_t length, struct text *ret,
                         struct failure *failure) {
    cleanup(tree_archive_free) struct archive *archive = new_packer();
    char hex[HASH_HEX_SIZE], *space;
    size_t used = 0;
    int r = archive ? hash_bytes(bytes, length, hex) : -ENOMEM;
    if (r == 0)
        r = text_reserve(ret, length + OVERHEAD_MAX, &space);
    if (r < 0)
        return failure_memory(failure);
    if (archive_write_open_memory(archive, space, length + OVERHEAD_MAX, &used) != ARCHIVE_OK)
        return archive_failure(archive, "pack the file", -EIO, failure);
    r = tree_archive_add_file(archive, path, mode, length, hex, failure);
    if (r == 0)
        r = tree_archive_add_bytes(archive, bytes, length, failure);
    if (r == 0)
        r = tree_archive_finish(archive, failure);
    ret->length += used;
    return r;
}

/* ---- reading */

int tree_archive_open(int file, const void *bytes, size_t length, struct archive **ret,
                      struct failure *failure) {
    cleanup(tree_archive_free) struct archive *archive = archive_read_new();
    /* Compression is not accepted: a few bytes could become many. */
    if (!archive || archive_read_support_format_tar(archive) != ARCHIVE_OK)
        return failure_memory(failure);
    int r = file >= 0 ? archive_read_open_fd(archive, file, BLOCK_SIZE)
                      : archive_read_open_memory(archive, bytes, length);
    if (r != ARCHIVE_OK)
        return archive_failure(archive, "unpack what the node sent", -EPROTO, failure);
    *ret = take_pointer(archive);
    return 0;
}

/* Copies the hash of ENTRY; "": it has none. */
static void copy_hash(struct archive_entry *entry, char ret[static HASH_HEX_SIZE]) {
    const char *name;
    const void *value;
    size_t size;
    ret[0] = '\0';
    archive_entry_xattr_reset(entry);
    while (archive_entry_xattr_next(entry, &name, &value, &size) == ARCHIVE_OK)
        if (strcmp(name, hash_name) == 0 && size == HASH_HEX_SIZE - 1) {
            memcpy(ret, value, size);
            ret[size] = '\0';
        }
}

/* The next file or folder; links and special files are skipped. 1; 0: the end; negative: the archive is
 * damaged. */
int tree_archive_next(struct archive *archive, struct tree_archive_entry *ret, struct failure *failure) {
    struct archive_entry *entry;
    unsigned type;
    do {
        int r = archive_read_next_header(archive, &entry);
        if (r == ARCHIVE_EOF)
            return 0;
        if (r < ARCHIVE_WARN)
            return archive_failure(archive, "unpack what the node sent", -EPROTO, failure);
        type = archive_entry_filetype(entry);
    } while ((type != AE_IFREG && type != AE_IFDIR) || archive_entry_hardlink(entry));
    char *path = (char *)archive_entry_pathname(entry);
    if (!path)
        return failure_set(failure, -EPROTO, "cannot unpack the files from the node: a name is not readable");
    size_t length = strlen(path);
    while (type == AE_IFDIR && length > 0 && path[length - 1] == '/')
        path[--length] = '\0';
    *ret = (struct tree_archive_entry){.is_folder = type == AE_IFDIR,
                                       .path = path,
                                       .mode = archive_entry_perm(entry) & 0777,
                                       .size = (uint64_t)archive_entry_size(entry)};
    copy_hash(entry, ret->sha256);
    return 1;
}

ssize_t tree_archive_read(struct archive *archive, void *bytes, size_t size, struct failure *failure) {
    la_ssize_t got = archive_read_data(archive, bytes, size);
    return got >= 0 ? got : archive_failure(archive, "unpack what the node sent", -EPROTO, failure);
}
