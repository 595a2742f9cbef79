/*
 * One member as a stream. libarchive is given the member alone, under a local header made here from the
 * checked directory: it cannot be led to another place of the file, to another size, or to fields that only
 * one of the member's descriptions has.
 */
#include "archive-format/name.h"
#include "archive-format/reader-private.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/path.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    HEADER_SIZE = 30 + 1 + 20, /* fixed part, a name of one byte, a Zip64 extra field with two sizes */
    CHUNK_SIZE = 64 << 10,
};

struct archive_member {
    const struct archive_reader *reader;
    const struct zip_entry *entry; /* NULL: FILE, in a run's folder */
    int file;                      /* -1: none */
    struct archive *unpacker;
    struct hash *hash;
    uint64_t given;    /* bytes of the member's data that the unpacker was given */
    uint64_t produced; /* bytes that came out */
    bool header_given, ended;
    struct failure failure;
    int status; /* 0 or the negative errno of .failure */
    unsigned char header[HEADER_SIZE];
    unsigned char chunk[CHUNK_SIZE];
};

static void put(unsigned char *at, size_t bytes, uint64_t value) {
    for (size_t i = 0; i < bytes; i++)
        at[i] = (unsigned char)(value >> (8 * i));
}

/* A local header (APPNOTE 4.3.7) with sizes and CRC-32 in place: no data descriptor, always Zip64. */
static void make_header(unsigned char header[static HEADER_SIZE], const struct zip_entry *entry) {
    memset(header, 0, HEADER_SIZE);
    memcpy(header, "PK\3\4", 4);
    put(header + 4, 2, 45);
    put(header + 8, 2, entry->method);
    put(header + 14, 4, entry->crc32);
    put(header + 18, 4, UINT32_MAX);
    put(header + 22, 4, UINT32_MAX);
    put(header + 26, 2, 1);
    put(header + 28, 2, 20);
    header[30] = 'm';
    put(header + 31, 2, 1);
    put(header + 33, 2, 16);
    put(header + 35, 8, entry->size);
    put(header + 43, 8, entry->stored_size);
}

static int fail(struct archive_member *member, const char *what) {
    char shown[ARCHIVE_NAME_SHOWN_SIZE];
    archive_name_show(member->entry->name, shown);
    member->status =
        failure_verification(&member->failure, member->reader->path, "member '%s' %s", shown, what);
    return member->status;
}

/* libarchive's source of bytes: the header, then the member's data. */
static la_ssize_t give(struct archive *unpacker, void *context, const void **ret) {
    struct archive_member *member = context;
    if (!member->header_given) {
        member->header_given = true;
        *ret = member->header;
        return HEADER_SIZE;
    }
    uint64_t left = member->entry->stored_size - member->given;
    size_t wanted = left < CHUNK_SIZE ? (size_t)left : CHUNK_SIZE;
    if (wanted == 0)
        return 0;
    ssize_t got;
    do
        got = pread(member->reader->descriptor, member->chunk, wanted,
                    (off_t)(member->entry->data + member->given));
    while (got < 0 && errno == EINTR);
    if (got < 0) {
        member->status = failure_set(&member->failure, -errno, "cannot read '%s': %s", member->reader->path,
                                     strerror(errno));
        archive_set_error(unpacker, -member->status, "cannot read");
        return ARCHIVE_FATAL;
    }
    member->given += (uint64_t)got;
    *ret = member->chunk;
    return got;
}

void archive_member_close(struct archive_member *member) {
    if (!member)
        return;
    if (member->unpacker)
        archive_read_free(member->unpacker);
    hash_free(member->hash);
    cleanup_close_descriptor(&member->file);
    free(member);
}

void archive_close_member(struct archive_member **member) {
    archive_member_close(*member);
}

static int start(struct archive_member *member) {
    struct archive_entry *header;
    if (archive_read_support_format_zip_streamable(member->unpacker) != ARCHIVE_OK ||
        archive_read_open(member->unpacker, member, NULL, give, NULL) != ARCHIVE_OK ||
        archive_read_next_header(member->unpacker, &header) != ARCHIVE_OK)
        return member->status < 0 ? member->status : fail(member, "cannot be unpacked");
    return 0;
}

int archive_entry_stream(struct archive_reader *archive, const struct zip_entry *entry,
                         struct archive_member **ret, struct failure *failure) {
    cleanup(archive_close_member) struct archive_member *member = xcalloc(1, sizeof *member);
    member->reader = archive;
    member->file = -1;
    member->entry = entry;
    member->hash = hash_new();
    member->unpacker = archive_read_new();
    if (!member->unpacker)
        memory_exhausted();
    make_header(member->header, entry);
    if (start(member) < 0)
        return archive_member_status(member, failure);
    *ret = take_pointer(member);
    return 0;
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
    return archive_entry_stream(archive, entry, ret, failure);
}

/* At the end of the data: everything that was promised about it. */
static int check_end(struct archive_member *member) {
    const char *expected = member->reader->sha256[member->entry - member->reader->zip.entries];
    char found[HASH_HEX_SIZE];
    if (member->produced != member->entry->size)
        return fail(member, "is shorter than the directory says");
    if (member->given != member->entry->stored_size)
        return fail(member, "has bytes after the end of its packed data");
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
        return length >= 0 ? length
                           : (member->status = failure_set(&member->failure, -errno, "cannot read '%s': %s",
                                                           member->reader->path, strerror(errno)));
    }
    la_ssize_t got = archive_read_data(member->unpacker, buffer, size);
    if (got < 0) {
        if (member->status < 0)
            return member->status;
        if (archive_errno(member->unpacker) == ENOMEM)
            memory_exhausted();
        const char *reason = archive_error_string(member->unpacker);
        char what[256];
        snprintf(what, sizeof what, "is damaged: %s", reason ? reason : "it cannot be unpacked");
        return fail(member, what);
    }
    if ((uint64_t)got > member->entry->size - member->produced)
        return fail(member, "unpacks to more than the directory says");
    member->produced += (uint64_t)got;
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
    cleanup(archive_close_member) struct archive_member *member = NULL;
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
                                          "'%s' in '%s' has more than the %zu bytes that are taken here",
                                          name, archive->path, ret->limit - before)
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
