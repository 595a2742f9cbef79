#include "archive-format/zip-directory.h"

#include "archive-format/name.h"
#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/memory.h"

#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

enum {
    LOCAL_SIZE = 30,     /* fixed part of a local header */
    CENTRAL_SIZE = 46,   /* fixed part of a directory entry */
    END_SIZE = 22,       /* end record, without a comment */
    END64_SIZE = 56,     /* Zip64 end record */
    LOCATOR64_SIZE = 20, /* Zip64 end record locator */
    EXTRA_MAX = 1024,    /* bytes of extra fields of one header; we write 40 */
    FLAG_ENCRYPTED = 1 << 0,
    FLAG_DESCRIPTOR = 1 << 3, /* CRC-32 and sizes follow the data */
    EMPTY_PACKED_MAX = 5,
    FLAGS_TAKEN = 1 << 1 | 1 << 2 | FLAG_DESCRIPTOR | 1 << 11, /* and: deflate effort, names are UTF-8 */
    DOS_FOLDER = 0x10,
    INTERNAL_TEXT = 1 << 0, /* some writers guess whether a member is text */
};
#define MAX32 UINT32_C(0xffffffff)

static uint16_t get16(const unsigned char *at) {
    return (uint16_t)(at[0] | at[1] << 8);
}

static uint32_t get32(const unsigned char *at) {
    return (uint32_t)get16(at) | (uint32_t)get16(at + 2) << 16;
}

static uint64_t get64(const unsigned char *at) {
    return (uint64_t)get32(at) | (uint64_t)get32(at + 4) << 32;
}

/* What a header says, from the directory or from before the data; sizes widened by Zip64. */
struct header {
    uint16_t needed, flags, method, time, date; /* NEEDED: the version of the format that reads it */
    uint32_t crc32;
    uint64_t size, stored_size, offset;
    bool wide; /* has a Zip64 extra field */
};

/* The file while it is read. */
struct scan {
    int descriptor;
    const char *file;
    struct failure *failure;
    struct zip_directory *directory;
    uint64_t directory_offset, directory_size;
    size_t count;
    unsigned char *bytes; /* the directory */
};

static int read_at(const struct scan *scan, uint64_t offset, void *bytes, size_t length) {
    unsigned char *at = bytes;
    while (length > 0) {
        ssize_t got = pread(scan->descriptor, at, length, (off_t)offset);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failure_set(scan->failure, -errno, "cannot read '%s': %s", scan->file, strerror(errno));
        if (got == 0)
            return failure_verification(
                scan->failure, scan->file,
                "the file was cut short by another program while it was read; try again");
        at += got;
        offset += (uint64_t)got;
        length -= (size_t)got;
    }
    return 0;
}

#define refuse(scan, ...) failure_verification((scan)->failure, (scan)->file, __VA_ARGS__)

static int refuse_entry(const struct scan *scan, const char *name, const char *what) {
    char shown[ARCHIVE_NAME_SHOWN_SIZE];
    return refuse(scan, "member '%s' %s", archive_name_show(name, shown), what);
}

/* ---- The end records */

/* Looks at the Zip64 records before the end record at END; END's own fields are either too small for the
 * values, or the same. On success END moves to where the Zip64 records begin. */
static int read_end64(struct scan *scan, const unsigned char *end_record, uint64_t *end) {
    unsigned char locator[LOCATOR64_SIZE], record[END64_SIZE];
    if (*end < LOCATOR64_SIZE + END64_SIZE)
        return refuse(scan, "the zip's end record asks for Zip64 records that are not there");
    uint64_t start = *end - LOCATOR64_SIZE - END64_SIZE;
    int r = read_at(scan, start + END64_SIZE, locator, sizeof locator);
    if (r == 0)
        r = read_at(scan, start, record, sizeof record);
    if (r < 0)
        return r;
    if (memcmp(locator, "PK\6\7", 4) != 0 || memcmp(record, "PK\6\6", 4) != 0 ||
        get64(locator + 8) != start || get64(record + 4) != END64_SIZE - 12)
        return refuse(scan, "the zip's end record asks for Zip64 records that are not there");
    if (get32(locator + 4) != 0 || get32(locator + 16) != 1 || get32(record + 16) != 0 ||
        get32(record + 20) != 0 || get64(record + 24) != get64(record + 32))
        return refuse(scan, "the zip is one of several parts; expected one file");
    uint64_t count = get64(record + 32), size = get64(record + 40), offset = get64(record + 48);
    if ((get16(end_record + 10) != 0xffff && get16(end_record + 10) != count) ||
        (get32(end_record + 12) != MAX32 && get32(end_record + 12) != size) ||
        (get32(end_record + 16) != MAX32 && get32(end_record + 16) != offset))
        return refuse(scan, "the zip's two end records disagree");
    scan->count = count > SIZE_MAX ? SIZE_MAX : (size_t)count;
    scan->directory_size = size;
    scan->directory_offset = offset;
    *end = start;
    return 0;
}

static int read_end(struct scan *scan) {
    struct zip_directory *directory = scan->directory;
    unsigned char record[END_SIZE], begin[4] = {0};
    if (directory->bytes < END_SIZE)
        return refuse(scan,
                      directory->bytes ? "not a zip file: only %" PRIu64 " bytes" : "not a zip file: empty",
                      directory->bytes);
    uint64_t end = directory->bytes - END_SIZE;
    int r = read_at(scan, end, record, sizeof record);
    if (r == 0)
        r = read_at(scan, 0, begin, sizeof begin);
    if (r < 0)
        return r;
    if (memcmp(record, "PK\5\6", 4) != 0 || get16(record + 20) != 0) {
        if (memcmp(begin, "PK\3\4", 4) == 0)
            return refuse(
                scan, "the zip is truncated or has bytes after its end: its last 22 bytes are no end record");
        return refuse(scan, "not a zip file");
    }
    scan->count = get16(record + 10);
    scan->directory_size = get32(record + 12);
    scan->directory_offset = get32(record + 16);
    if (scan->count == 0xffff || scan->directory_size == MAX32 || scan->directory_offset == MAX32) {
        r = read_end64(scan, record, &end);
        if (r < 0)
            return r;
    } else if (get16(record + 8) != get16(record + 10)) {
        return refuse(scan, "the zip is one of several parts; expected one file");
    }
    if (get16(record + 4) != 0 || get16(record + 6) != 0)
        return refuse(scan, "the zip is one of several parts; expected one file");
    if (scan->count > ARCHIVE_ENTRIES_MAX)
        return refuse(scan, "the zip has %zu entries; at most %d are taken", scan->count,
                      ARCHIVE_ENTRIES_MAX);
    if (scan->directory_offset > end || scan->directory_size != end - scan->directory_offset)
        return refuse(scan, "the zip's directory does not end where its end record begins");
    if (scan->directory_size > scan->count * (uint64_t)(CENTRAL_SIZE + ARCHIVE_NAME_MAX + EXTRA_MAX))
        return refuse(scan, "the zip's directory is larger than its %zu entries can need", scan->count);
    return 0;
}

/* ---- Headers */

/* The fields that a local header has 4 bytes from its begin, and an entry of the directory 6. Behind them are
 * the lengths of name and extra fields. */
enum { NAME_LENGTH_AT = 22, EXTRA_LENGTH_AT = 24 };

static struct header read_header(const unsigned char *at) {
    return (struct header){.needed = get16(at),
                           .flags = get16(at + 2),
                           .method = get16(at + 4),
                           .time = get16(at + 6),
                           .date = get16(at + 8),
                           .crc32 = get32(at + 10),
                           .stored_size = get32(at + 14),
                           .size = get32(at + 18)};
}

/* Takes the sizes that did not fit the header's own fields from a Zip64 extra field (APPNOTE 4.5.3). */
static bool widen(struct header *header, const unsigned char *field, size_t length, bool central) {
    uint64_t *narrow[] = {&header->size, &header->stored_size, &header->offset};
    size_t used = 0;
    header->wide = true;
    for (size_t i = 0; i < (central ? 3 : 2); i++) {
        if (*narrow[i] != MAX32)
            continue;
        if (length - used < 8)
            return false;
        *narrow[i] = get64(field + used);
        used += 8;
    }
    /* Writers may give both sizes in a local header although only one was too large, or none (bit 3). */
    return used == length || (!central && length == 16);
}

/* The extra fields of one header. NULL, or what is wrong. */
static const char *read_extra(struct header *header, const unsigned char *extra, size_t length,
                              bool central) {
    if (length > EXTRA_MAX)
        return "has more extra fields than are taken";
    while (length > 0) {
        if (length < 4 || get16(extra + 2) > length - 4)
            return "has extra fields that are cut short";
        uint16_t id = get16(extra), size = get16(extra + 2);
        switch (id) {
        case 0x0001:
            if (header->wide || !widen(header, extra + 4, size, central))
                return "has a Zip64 field that does not fit its header";
            break;
        case 0x7075: /* Unicode path: another name for the same member */
        case 0x6c78: /* attributes repeated beside the data */
            return "has an extra field that could contradict its name or kind";
        case 0x0017: /* strong encryption */
        case 0x9901: /* AES */
            return "is encrypted";
        default:
            break;
        }
        extra += 4 + size;
        length -= 4u + size;
    }
    return NULL;
}

/* What kind of thing the directory's attributes and name make of an entry. NULL, or why it is refused. */
static const char *judge_kind(const unsigned char *central, bool folder) {
    uint32_t attributes = get32(central + 38);
    mode_t mode = attributes >> 16; /* whatever system the entry says it is from: some programs do not ask */
    if (S_ISLNK(mode))
        return "is a symbolic link";
    if (mode & (S_ISUID | S_ISGID | S_ISVTX))
        return "has a set-user-ID, set-group-ID or sticky bit";
    if (get16(central + 36) & ~INTERNAL_TEXT)
        return "has internal attributes that are not taken";
    if ((mode & S_IFMT) != 0 && !S_ISREG(mode) && !S_ISDIR(mode))
        return "is neither a file nor a folder";
    if (((mode & S_IFMT) != 0 && S_ISDIR(mode) != folder) || ((attributes & DOS_FOLDER) && !folder))
        return "is called a file and marked as a folder, or the other way round";
    return NULL;
}

static const char *judge_header(const struct header *header, bool folder) {
    if (header->flags & FLAG_ENCRYPTED || header->method == 99)
        return "is encrypted";
    if (header->flags & ~FLAGS_TAKEN)
        return "has flags that are not taken";
    if (header->method != ZIP_STORED && header->method != ZIP_DEFLATED)
        return "is packed by a method that is not taken; expected stored or deflated";
    if (header->method == ZIP_STORED && header->size != header->stored_size)
        return "is stored, but its two sizes differ";
    /* Some programs deflate the nothing that is in a folder, to two bytes, or five. */
    if (folder && (header->size != 0 || header->stored_size > EMPTY_PACKED_MAX || header->crc32 != 0))
        return "is a folder with content";
    if (header->size > ARCHIVE_MEMBER_BYTES_MAX)
        return "is larger than 64 GiB";
    return NULL;
}
_Static_assert(ARCHIVE_MEMBER_BYTES_MAX >> 30 == 64, "the sentence above says 64 GiB");

/* One entry of the directory at AT, with LEFT bytes from there on. Sets *RET_LENGTH to its length; NAMES to
 * behind the name that it appends there. */
static int read_central(struct scan *scan, const unsigned char *at, size_t left, struct zip_entry *entry,
                        char **names, struct header *header, size_t *ret_length) {
    if (left < CENTRAL_SIZE || memcmp(at, "PK\1\2", 4) != 0)
        return refuse(scan, "the zip's directory is damaged: an entry does not begin where it should");
    size_t name_length = get16(at + 6 + NAME_LENGTH_AT), extra_length = get16(at + 6 + EXTRA_LENGTH_AT);
    if (name_length == 0 || name_length > ARCHIVE_NAME_MAX)
        return refuse(scan, "a member's name has %zu bytes; expected 1 to %d", name_length, ARCHIVE_NAME_MAX);
    if (get16(at + 32) != 0)
        return refuse(scan, "a member has a comment; none is taken");
    if (left - CENTRAL_SIZE < name_length + extra_length)
        return refuse(scan, "the zip's directory is damaged: an entry is cut short");
    char *name = *names;
    memcpy(name, at + CENTRAL_SIZE, name_length);
    name[name_length] = '\0';
    if (strlen(name) != name_length)
        return refuse_entry(scan, name, "has a NUL byte in its name");
    bool folder = name[name_length - 1] == '/';
    *names += name_length + 1;
    *header = read_header(at + 6);
    header->offset = get32(at + 42);
    if (get16(at + 34) != 0)
        return refuse(scan, "the zip is one of several parts; expected one file");
    const char *wrong = read_extra(header, at + CENTRAL_SIZE + name_length, extra_length, true);
    if (!wrong)
        wrong = judge_header(header, folder);
    if (!wrong)
        wrong = judge_kind(at, folder);
    if (wrong)
        return refuse_entry(scan, name, wrong);
    *entry = (struct zip_entry){.name = name,
                                .folder = folder,
                                .method = header->method,
                                .crc32 = header->crc32,
                                .size = header->size,
                                .stored_size = header->stored_size,
                                .header = header->offset,
                                .directory_entry = scan->directory_offset + (uint64_t)(at - scan->bytes)};
    *ret_length = CENTRAL_SIZE + name_length + extra_length;
    return 0;
}

/* CRC-32 and sizes after the data, with or without a signature, in 32 or 64 bits (APPNOTE 4.3.9). */
static int check_descriptor(struct scan *scan, const struct zip_entry *entry, uint64_t start,
                            uint64_t length) {
    unsigned char bytes[24];
    if (length != 12 && length != 16 && length != 20 && length != 24)
        return refuse_entry(scan, entry->name, "is not followed by what its header announces");
    int r = read_at(scan, start, bytes, (size_t)length);
    if (r < 0)
        return r;
    const unsigned char *at = bytes;
    bool with_signature = length == 16 || length == 24;
    if (with_signature && memcmp(at, "PK\7\10", 4) != 0)
        return refuse_entry(scan, entry->name, "is not followed by what its header announces");
    at += with_signature ? 4 : 0;
    bool wide = length >= 20;
    uint64_t stored_size = wide ? get64(at + 4) : get32(at + 4);
    uint64_t size = wide ? get64(at + 12) : get32(at + 8);
    if (get32(at) != entry->crc32 || stored_size != entry->stored_size || size != entry->size)
        return refuse_entry(scan, entry->name,
                            "is described differently after its data and in the directory");
    return 0;
}

/* The header before ENTRY's data against CENTRAL, and that the entry's bytes end at NEXT. */
static int check_local(struct scan *scan, struct zip_entry *entry, const struct header *central,
                       uint64_t next) {
    unsigned char bytes[LOCAL_SIZE + ARCHIVE_NAME_MAX + 1 + EXTRA_MAX];
    if (next < entry->header || next - entry->header < LOCAL_SIZE)
        return refuse_entry(scan, entry->name, "overlaps another");
    uint64_t room = next - entry->header;
    int r = read_at(scan, entry->header, bytes, room < sizeof bytes ? (size_t)room : sizeof bytes);
    if (r < 0)
        return r;
    size_t name_length = get16(bytes + 4 + NAME_LENGTH_AT), extra_length = get16(bytes + 4 + EXTRA_LENGTH_AT);
    size_t length = strlen(entry->name);
    if (memcmp(bytes, "PK\3\4", 4) != 0)
        return refuse_entry(scan, entry->name, "has no header where the directory says");
    if (LOCAL_SIZE + name_length + extra_length > room || extra_length > EXTRA_MAX || name_length != length ||
        memcmp(bytes + LOCAL_SIZE, entry->name, length) != 0)
        return refuse_entry(scan, entry->name,
                            "has a name in its local header that differs from the one in the directory");
    struct header local = read_header(bytes + 4);
    const char *wrong = read_extra(&local, bytes + LOCAL_SIZE + name_length, extra_length, false);
    if (wrong)
        return refuse_entry(scan, entry->name, wrong);
    bool later = local.flags & FLAG_DESCRIPTOR; /* then the header may leave CRC-32 and sizes at 0 */
    if (local.needed != central->needed || local.flags != central->flags || local.method != central->method ||
        local.time != central->time || local.date != central->date ||
        (local.crc32 != central->crc32 && !(later && local.crc32 == 0)) ||
        (local.stored_size != central->stored_size && !(later && local.stored_size == 0)) ||
        (local.size != central->size && !(later && local.size == 0)))
        return refuse_entry(scan, entry->name,
                            "is described differently before its data and in the directory");
    entry->data = entry->header + LOCAL_SIZE + name_length + extra_length;
    if (entry->stored_size > next - entry->data)
        return refuse_entry(scan, entry->name, "overlaps another");
    uint64_t end = entry->data + entry->stored_size;
    if (later)
        return check_descriptor(scan, entry, end, next - end);
    return end == next ? 0
                       : refuse_entry(scan, entry->name, "is followed by bytes that are part of no member");
}

/* ---- The whole */

/* An entry and its header, sorted together by place in the file. */
struct found {
    struct zip_entry entry;
    struct header header;
};

static int compare_places(const void *a, const void *b) {
    uint64_t left = ((const struct found *)a)->entry.header, right = ((const struct found *)b)->entry.header;
    return (left > right) - (left < right);
}

static int read_entries(struct scan *scan, struct found *found) {
    char *names = scan->directory->names;
    size_t at = 0, left = (size_t)scan->directory_size;
    for (size_t i = 0; i < scan->count; i++) {
        size_t length = 0;
        int r =
            read_central(scan, scan->bytes + at, left, &found[i].entry, &names, &found[i].header, &length);
        if (r < 0)
            return r;
        at += length;
        left -= length;
    }
    return left == 0 ? 0 : refuse(scan, "the zip's directory has %zu bytes that belong to no entry", left);
}

static int check_sizes(struct scan *scan) {
    struct zip_directory *directory = scan->directory;
    for (size_t i = 0; i < directory->count; i++)
        directory->total += directory->entries[i].size; /* 2^18 entries of 2^36 bytes do not overflow */
    if (directory->total > ARCHIVE_TOTAL_BYTES_MAX)
        return refuse(scan, "the members are %" PRIu64 " bytes when unpacked; at most %" PRIu64 " are taken",
                      directory->total, ARCHIVE_TOTAL_BYTES_MAX);
    if (directory->total > ARCHIVE_RATIO_FREE_BYTES &&
        directory->total / directory->bytes >= ARCHIVE_RATIO_MAX)
        return refuse(
            scan, "the zip is a bomb: %" PRIu64 " bytes unpack to %" PRIu64 ", more than %d times as many",
            directory->bytes, directory->total, ARCHIVE_RATIO_MAX);
    return 0;
}

static int read_directory(struct scan *scan) {
    struct zip_directory *directory = scan->directory;
    int r = read_end(scan);
    if (r < 0)
        return r;
    cleanup_free unsigned char *bytes = xmalloc((size_t)scan->directory_size + 1);
    cleanup_free struct found *found = xcalloc(scan->count + 1, sizeof *found);
    directory->entries = xcalloc(scan->count + 1, sizeof *directory->entries);
    directory->names =
        xmalloc((size_t)scan->directory_size + 1); /* a name and a NUL are shorter than an entry */
    scan->bytes = bytes;
    r = read_at(scan, scan->directory_offset, bytes, (size_t)scan->directory_size);
    if (r == 0)
        r = read_entries(scan, found);
    if (r < 0)
        return r;
    qsort(found, scan->count, sizeof *found, compare_places);
    if (scan->count > 0 ? found[0].entry.header != 0 : scan->directory_offset != 0)
        return refuse(scan, "the zip has bytes before its first member");
    const struct zip_entry *last = &found[scan->count ? scan->count - 1 : 0].entry;
    if (scan->count > 0 && last->header >= scan->directory_offset)
        return refuse_entry(scan, last->name, "is said to begin where there are no members");
    for (size_t i = 0; i < scan->count; i++) {
        uint64_t next = i + 1 < scan->count ? found[i + 1].entry.header : scan->directory_offset;
        r = check_local(scan, &found[i].entry, &found[i].header, next);
        if (r < 0)
            return r;
        directory->entries[i] = found[i].entry;
    }
    directory->count = scan->count;
    for (size_t i = 0; i < directory->count; i++)
        if (directory->entries[i].folder) /* only now: the local names were compared with their last slash */
            directory->names[directory->entries[i].name - directory->names +
                             strlen(directory->entries[i].name) - 1] = '\0';
    return check_sizes(scan);
}

int zip_directory_read(int descriptor, const char *file, struct zip_directory *ret, struct failure *failure) {
    struct stat status;
    if (fstat(descriptor, &status) < 0)
        return failure_set(failure, -errno, "cannot read '%s': %s", file, strerror(errno));
    if (!S_ISREG(status.st_mode))
        return failure_set_kind(failure, FAILURE_INPUT, -EINVAL, "'%s' is not a regular file", file);
    struct zip_directory directory = {.bytes = (uint64_t)status.st_size};
    struct scan scan = {.descriptor = descriptor, .file = file, .failure = failure, .directory = &directory};
    int r = read_directory(&scan);
    if (r < 0) {
        zip_directory_clear(&directory);
        return r;
    }
    *ret = directory;
    return 0;
}

void zip_directory_clear(struct zip_directory *directory) {
    free(directory->entries);
    free(directory->names);
    *directory = (struct zip_directory){0};
}
