/*
 * One member as a stream: its packed bytes, which the checked directory has found, are inflated by zlib or
 * taken as they are, and compared at their end with all that was promised about them.
 */
#include "archive-format/name.h"
#include "archive-format/reader-private.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/path.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

enum { CHUNK_SIZE = 64 << 10 };

struct archive_member {
    const struct archive_reader *reader;
    const struct zip_entry *entry; /* NULL: FILE, in a run's folder */
    int file;                      /* -1: none */
    z_stream packed;               /* its input is in .chunk; of a stored member nothing else is used */
    struct hash *hash;
    uLong crc32;
    uint64_t given;    /* packed bytes that were read */
    uint64_t produced; /* bytes that came out */
    bool ended;
    struct failure failure;
    int status; /* 0 or the negative errno of .failure */
    unsigned char chunk[CHUNK_SIZE];
};

static int fail(struct archive_member *member, const char *what) {
    char shown[ARCHIVE_NAME_SHOWN_SIZE];
    archive_name_show(member->entry->name, shown);
    member->status =
        failure_verification(&member->failure, member->reader->path, "member '%s' %s", shown, what);
    return member->status;
}

static int fail_reading(struct archive_member *member) {
    member->status =
        failure_set(&member->failure, -errno, "cannot read '%s': %s", member->reader->path, strerror(errno));
    return member->status;
}

void archive_member_close(struct archive_member *member) {
    if (!member)
        return;
    inflateEnd(&member->packed);
    hash_free(member->hash);
    cleanup_close_descriptor(&member->file);
    free(member);
}

void archive_member_cleanup(struct archive_member **member) {
    archive_member_close(*member);
}

struct archive_member *archive_entry_stream(struct archive_reader *archive, const struct zip_entry *entry) {
    struct archive_member *member = xcalloc(1, sizeof *member);
    member->reader = archive;
    member->file = -1;
    member->entry = entry;
    member->hash = hash_new();
    if (entry->method == ZIP_DEFLATED && inflateInit2(&member->packed, -MAX_WBITS) != Z_OK)
        memory_exhausted();
    return member;
}

static int open_file(struct archive_reader *archive, const char *name, struct archive_member **ret,
                     struct failure *failure) {
    struct stat status;
    /* Not blocking, and not through a link that leads out: the folder may come from anybody. */
    cleanup_close int file =
        archive_name_danger(name)
            ? -1
            : path_open(archive->descriptor, -1, name, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC, NULL);
    if (file < 0 || fstat(file, &status) < 0 || !S_ISREG(status.st_mode))
        return failure_set_kind(failure, FAILURE_INPUT, -ENOENT, "there is no file '%s' in '%s'", name,
                                archive->path);
    struct archive_member *member = xcalloc(1, sizeof *member);
    member->reader = archive;
    member->file = take_descriptor(file);
    *ret = member;
    return 0;
}

int archive_member_open(struct archive_reader *archive, const char *name, struct archive_member **ret,
                        struct failure *failure) {
    if (archive->is_folder)
        return open_file(archive, name, ret, failure);
    const struct zip_entry *entry = archive_entry_called(archive, name);
    if (!entry || entry->folder)
        return failure_input(failure, archive->path, 0, 0,
                             "there is no member '%s'; 'assay archive list' shows them", name);
    *ret = archive_entry_stream(archive, entry);
    return 0;
}

/* Reads on in the packed bytes when all that were read are used; after the last there is no input. */
static int read_packed(struct archive_member *member) {
    uint64_t left = member->entry->stored_size - member->given;
    size_t wanted = left < CHUNK_SIZE ? (size_t)left : CHUNK_SIZE;
    if (member->packed.avail_in > 0 || wanted == 0)
        return 0;
    ssize_t got = TEMP_FAILURE_RETRY(pread(member->reader->descriptor, member->chunk, wanted,
                                           (off_t)(member->entry->data + member->given)));
    if (got <= 0)
        return got < 0 ? fail_reading(member) : fail(member, "is damaged: the file was cut");
    member->given += (uint64_t)got;
    member->packed.next_in = member->chunk;
    member->packed.avail_in = (uInt)got;
    return 0;
}

/* The next bytes of the content, at most SIZE: how many, 0 at the end of the packed data. */
static int64_t unpack(struct archive_member *member, char *buffer, uInt size) {
    z_stream *packed = &member->packed;
    packed->next_out = (Bytef *)buffer;
    packed->avail_out = size;
    for (int z = Z_OK; z == Z_OK && packed->avail_out == size;) {
        if (read_packed(member) < 0)
            return member->status;
        if (member->entry->method == ZIP_DEFLATED) {
            z = inflate(packed, Z_NO_FLUSH);
            if (z == Z_MEM_ERROR)
                memory_exhausted();
            if (z != Z_OK && z != Z_STREAM_END)
                return fail(member, packed->avail_in == 0 ? "is damaged: its packed data have no end"
                                                          : "is damaged: its packed data cannot be inflated");
        } else {
            uInt step = packed->avail_in < size ? packed->avail_in : size;
            if (step > 0) /* of an empty member there is nothing to copy from */
                memcpy(buffer, packed->next_in, step);
            packed->next_in += step, packed->avail_in -= step, packed->avail_out -= step;
            z = step > 0 ? Z_OK : Z_STREAM_END;
        }
    }
    return size - packed->avail_out;
}

/* At the end of the data: everything that was promised about it. */
static int check_end(struct archive_member *member) {
    const struct zip_entry *entry = member->entry;
    const char *expected = member->reader->sha256[entry - member->reader->zip.entries];
    char found[HASH_HEX_SIZE];
    if (member->produced != entry->size)
        return fail(member, "is shorter than the directory says");
    if (member->given != entry->stored_size || member->packed.avail_in > 0)
        return fail(member, "has bytes after the end of its packed data");
    if (member->crc32 != entry->crc32)
        return fail(member, "is damaged: its CRC-32 differs from the directory's");
    hash_finish(member->hash, found);
    if (expected[0] != '\0' && strcmp(expected, found) != 0)
        return fail(member, "is not what was sealed: its sha256 differs from the manifest's");
    member->ended = true;
    return 0;
}

int64_t archive_member_read(void *context, char *buffer, size_t size) {
    struct archive_member *member = context;
    if (member->status < 0 || member->ended || size == 0)
        return member->status;
    if (!member->entry) {
        ssize_t length = TEMP_FAILURE_RETRY(read(member->file, buffer, size));
        return length >= 0 ? length : fail_reading(member);
    }
    int64_t got = unpack(member, buffer, size < UINT_MAX ? (uInt)size : UINT_MAX);
    if (got < 0)
        return got;
    if ((uint64_t)got > member->entry->size - member->produced)
        return fail(member, "unpacks to more than the directory says");
    member->produced += (uint64_t)got;
    member->crc32 = crc32(member->crc32, (const Bytef *)buffer, (uInt)got);
    hash_update(member->hash, buffer, (size_t)got);
    return got > 0 ? got : check_end(member);
}

int archive_member_status(const struct archive_member *member, struct failure *failure) {
    if (member->status < 0 && failure)
        *failure = member->failure;
    return member->status;
}

/* Appends what is left of MEMBER to RET. */
static int append_member(struct archive_member *member, struct text *ret) {
    for (;;) {
        size_t left = ret->limit - ret->length, step = left < CHUNK_SIZE ? left : CHUNK_SIZE;
        char beyond, *end = &beyond; /* when RET is full, one more read meets the end and its checks */
        if (step > 0 && text_reserve(ret, step, &end) < 0)
            memory_exhausted();
        int64_t got = archive_member_read(member, end, step > 0 ? step : 1);
        if (got <= 0)
            return (int)got;
        if (step == 0)
            return -EFBIG;
        ret->length += (size_t)got;
    }
}

int archive_read_member(struct archive_reader *archive, const char *name, struct text *ret,
                        struct failure *failure) {
    cleanup(archive_member_cleanup) struct archive_member *member = NULL;
    int r = archive_member_open(archive, name, &member, failure);
    if (r < 0)
        return r;
    size_t before = ret->length;
    r = member->entry && member->entry->size > ret->limit - before ? -EFBIG : append_member(member, ret);
    if (r < 0)
        ret->length = before;
    if (ret->capacity)
        ret->bytes[ret->length] = '\0';
    return r == -EFBIG ? failure_set_kind(failure, FAILURE_INPUT, r,
                                          "'%s' in '%s' has more than %zu bytes, the most that is read", name,
                                          archive->path, ret->limit - before)
                       : archive_member_status(member, failure);
}

int archive_read_document(struct archive_reader *archive, const char *name, struct document **ret,
                          struct failure *failure) {
    cleanup(text_clear) struct text text;
    text_init(&text, ARCHIVE_RECORD_BYTES_MAX);
    int r = archive_read_member(archive, name, &text, failure);
    if (r == -EFBIG && failure)
        failure->kind = FAILURE_VERIFICATION;
    if (r < 0)
        return r;
    cleanup_free char *file = xformat("%s:%s", archive->path, name);
    r = document_parse_json(file, text.bytes, text.length, ret, failure);
    if (r == -EINVAL && failure)
        failure->kind = FAILURE_VERIFICATION; /* it was sealed like this: not the user's doing */
    return r;
}
