#include "engine/remote/link/system-image.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/remote/link/tree-archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum { BUFFER = 256 << 10 };
#define BYTES_MAX ((uint64_t)64 << 30) /* of the tar */

static int refuse(const char *path, const char *what, struct failure *failure) {
    return failure_set_kind(
        failure, FAILURE_INPUT, -EBADMSG,
        "the image '%s' %s; expected a root file system as a tar, compressed by gzip, bzip2, "
        "xz or zstd, or not",
        path, what);
}

static int refuse_damaged(const char *path, struct archive *archive, struct failure *failure) {
    const char *reason = archive_error_string(archive);
    cleanup_free char *what = xformat("is no tar, or damaged (%s)", reason ? reason : "it cannot be read");
    return refuse(path, what, failure);
}

/* Opens the image for reading: its entries or, if RAW, the decompressed bytes of the tar. None of these
 * filters starts a program. */
static int open_image(const char *path, bool raw, struct archive **ret, struct failure *failure) {
    struct archive *archive = *ret = archive_read_new();
    if (!archive)
        memory_exhausted();
    archive_read_support_filter_gzip(archive);
    archive_read_support_filter_bzip2(archive);
    archive_read_support_filter_xz(archive);
    archive_read_support_filter_zstd(archive);
    if (raw)
        archive_read_support_format_raw(archive);
    else
        archive_read_support_format_tar(archive);
    return archive_read_open_filename(archive, path, BUFFER) == ARCHIVE_OK
               ? 0
               : refuse_damaged(path, archive, failure);
}

/* ---- checking the entries */

/* True where PATH is absolute or has "..". */
static bool leads_out(const char *path) {
    bool out = path[0] == '/';
    for (; *path && !out; path += strcspn(path, "/"), path += *path == '/')
        out = strncmp(path, "..", 2) == 0 && (path[2] == '/' || !path[2]);
    return out;
}

/* Why an entry is refused; NULL: it is valid. */
static const char *entry_problem(struct archive_entry *entry, const char *path) {
    const char *target =
        archive_entry_hardlink(entry) ? archive_entry_hardlink(entry) : archive_entry_hardlink_utf8(entry);
    unsigned type = archive_entry_filetype(entry);
    if (leads_out(path) || (target && leads_out(target)))
        return "leads out of the image; expected a path inside it, without '..'";
    if ((type == AE_IFCHR || type == AE_IFBLK) && strncmp(path, "dev/", 4) != 0)
        return "is a device; expected devices in /dev only";
    return archive_entry_size(entry) > (la_int64_t)BYTES_MAX ? "is larger than 64 GiB" : NULL;
}

/* FAILURE_INPUT when the image PATH is damaged, has an entry that must not be unpacked, or has no /bin/sh. */
static int check_entries(const char *path, struct failure *failure) {
    cleanup(tree_archive_free) struct archive *archive = NULL;
    struct archive_entry *entry;
    bool has_shell = false;
    int found, r = open_image(path, false, &archive, failure);
    while (r == 0 && (found = archive_read_next_header(archive, &entry)) != ARCHIVE_EOF) {
        if (found < ARCHIVE_WARN)
            return refuse_damaged(path, archive, failure);
        const char *name = archive_entry_pathname(entry);
        name = name ? name : archive_entry_pathname_utf8(entry);
        if (!name)
            return refuse(path, "has a name that cannot be read", failure);
        name += strncmp(name, "./", 2) == 0 ? 2 : 0;
        const char *problem = entry_problem(entry, name);
        if (problem)
            return failure_set_kind(failure, FAILURE_INPUT, -EBADMSG, "'%.256s' in the image '%s' %s", name,
                                    path, problem);
        has_shell |= strcmp(name, "bin/sh") == 0 || strcmp(name, "usr/bin/sh") == 0;
        if (archive_read_data_skip(archive) < ARCHIVE_WARN)
            return refuse_damaged(path, archive, failure);
    }
    return r == 0 && !has_shell ? refuse(path, "has no /bin/sh", failure) : r;
}

/* ---- decompressing the tar */

static void free_hash(struct hash **hash) {
    hash_free(*hash);
}

/* Decompresses the image into FILE, maps it, and sets the tar, its length and its SHA-256 in RET. */
static int decompress(const char *path, int file, struct agent_image *ret, struct failure *failure) {
    cleanup(tree_archive_free) struct archive *archive = NULL;
    cleanup(free_hash) struct hash *hash = hash_new();
    cleanup_free char *buffer = xmalloc(BUFFER);
    struct archive_entry *entry;
    la_ssize_t got = -1;
    int r = open_image(path, true, &archive, failure);
    if (r == 0 && archive_read_next_header(archive, &entry) == ARCHIVE_OK)
        while (r == 0 && (got = archive_read_data(archive, buffer, BUFFER)) > 0) {
            hash_update(hash, buffer, (size_t)got);
            ret->length += (size_t)got;
            r = ret->length > BYTES_MAX ? -EFBIG : file_write_all(file, buffer, (size_t)got);
        }
    if (r < 0)
        return failure_set(failure, r, "cannot unpack the image '%s': %s", path, strerror(-r));
    if (got < 0)
        return refuse_damaged(path, archive, failure);
    hash_finish(hash, ret->sha256);
    ret->tar = mmap(NULL, ret->length, PROT_READ, MAP_SHARED, file, 0);
    return ret->tar == MAP_FAILED
               ? failure_set(failure, -errno, "cannot map the image '%s': %s", path, strerror(errno))
               : 0;
}

/* Hashes and checks the image PATH. WITH_TAR: also decompresses it into a file without a name. */
int system_image_read(const char *path, bool with_tar, struct agent_image *ret, struct failure *failure) {
    struct agent_image image = {0};
    int r = hash_file(path, image.name, NULL, failure);
    if (r < 0)
        return failure_set_kind(failure, FAILURE_INPUT, r, "cannot read the image '%s': %s", path,
                                strerror(-r));
    r = check_entries(path, failure);
    cleanup_close int file = r == 0 && with_tar ? tree_archive_scratch(failure) : -1;
    if (r == 0 && with_tar)
        r = file < 0 ? file : decompress(path, file, &image, failure);
    if (r == 0)
        *ret = image;
    return r;
}

void system_image_clear(struct agent_image *image) {
    if (image->tar)
        munmap((void *)image->tar, image->length);
    *image = (struct agent_image){0};
}
