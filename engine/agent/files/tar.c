#include "engine/agent/files/tar.h"

#include "engine/foundation/file.h"
#include "engine/foundation/number.h"
#include "engine/foundation/path.h"

#include <errno.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { BLOCK = 512, BUFFER = 64 << 10, RECORDS_LIMIT = 64 << 10 };

#define HASH_KEY "SCHILY.xattr.user.sha256"
#define OCTAL_SIZE_MAX UINT64_C(077777777777)

/* The header of ustar; its numbers are octal digits, padded with zeros. */
struct header {
    char name[100], mode[8], uid[8], gid[8], size[12], mtime[12], checksum[8], type, link[100], magic[6],
        version[2], user[32], group[32], major[8], minor[8], prefix[155], rest[12];
};
_Static_assert(sizeof(struct header) == BLOCK, "a header is a block");

/* The checksum of a header: the sum of its bytes, with blanks in the checksum's own field. */
static unsigned checksum(const struct header *header) {
    struct header blank = *header;
    unsigned sum = 0;
    memset(blank.checksum, ' ', sizeof blank.checksum);
    for (size_t i = 0; i < sizeof blank; i++)
        sum += ((const unsigned char *)&blank)[i];
    return sum;
}

/* ---- writing */

void tar_begin(struct tar_writer *tar, int output, uint64_t limit) {
    *tar = (struct tar_writer){.output = output, .limit = limit};
    text_init(&tar->waiting, 2 * BUFFER + RECORDS_LIMIT);
}

static void flush(struct tar_writer *tar) {
    if (tar->status == 0)
        tar->status = file_write_all(tar->output, tar->waiting.bytes, tar->waiting.length);
    text_reset(&tar->waiting);
}

void tar_put_bytes(struct tar_writer *tar, const void *bytes, size_t length) {
    for (size_t done = 0, part; tar->status == 0 && done < length; done += part) {
        part = length - done < BUFFER ? length - done : BUFFER;
        tar->total += part;
        if (tar->total > tar->limit)
            tar->status = -EFBIG;
        else if (text_append(&tar->waiting, (const char *)bytes + done, part) < 0)
            tar->status = -ENOMEM;
        if (tar->waiting.length >= BUFFER)
            flush(tar);
    }
}

void tar_put_padding(struct tar_writer *tar, uint64_t size) {
    static const char zeros[BLOCK];
    tar_put_bytes(tar, zeros, (BLOCK - size % BLOCK) % BLOCK);
}

/* Writes the ustar header of ENTRY. A name, link target or size that does not fit is cut: a pax header before
 * it has all of it. */
static void put_header(struct tar_writer *tar, char type, const struct tar_entry *entry, uint64_t size) {
    struct header header = {.type = type};
    const char *target = entry->target ? entry->target : "";
    memcpy(header.name, entry->path, strnlen(entry->path, sizeof header.name));
    memcpy(header.link, target, strnlen(target, sizeof header.link));
    snprintf(header.mode, sizeof header.mode, "%07o", entry->mode & 07777u);
    memcpy(header.uid, "0000000", sizeof header.uid);
    memcpy(header.gid, "0000000", sizeof header.gid);
    snprintf(header.size, sizeof header.size, "%011llo",
             (unsigned long long)(size > OCTAL_SIZE_MAX ? 0 : size));
    snprintf(header.mtime, sizeof header.mtime, "%011llo", (unsigned long long)tar->time_s & OCTAL_SIZE_MAX);
    memcpy(header.magic, "ustar", sizeof header.magic);
    memcpy(header.version, "00", sizeof header.version);
    snprintf(header.checksum, sizeof header.checksum, "%06o", checksum(&header));
    tar_put_bytes(tar, &header, sizeof header);
}

/* Appends a pax record "LENGTH KEY=VALUE\n". LENGTH counts the whole record, its own digits included. */
static int put_record(struct text *records, const char *key, const char *value) {
    size_t body = strlen(key) + strlen(value) + 3, length = body + 1;
    char digits[24];
    while ((size_t)snprintf(digits, sizeof digits, "%zu", length) + body != length)
        length = (size_t)snprintf(digits, sizeof digits, "%zu", length) + body;
    return text_printf(records, "%zu %s=%s\n", length, key, value);
}

static bool is_ascii(const char *text) {
    while (*text && (unsigned char)*text < 0x80)
        text++;
    return !*text;
}

/* Appends the pax records of an entry: values that do not fit into its header, and its hash. Names are bytes,
 * in any encoding. */
static int put_records(struct text *records, const struct tar_entry *entry) {
    char size[24];
    int r = 0;
    bool is_long = strlen(entry->path) > sizeof((struct header *)0)->name;
    if (is_long && !is_ascii(entry->path))
        r = put_record(records, "hdrcharset", "BINARY");
    if (r == 0 && is_long)
        r = put_record(records, "path", entry->path);
    if (r == 0 && entry->target && strlen(entry->target) > sizeof((struct header *)0)->link)
        r = put_record(records, "linkpath", entry->target);
    snprintf(size, sizeof size, "%llu", (unsigned long long)entry->size);
    if (r == 0 && entry->size > OCTAL_SIZE_MAX)
        r = put_record(records, "size", size);
    if (r == 0 && entry->sha256[0])
        r = put_record(records, HASH_KEY, entry->sha256);
    return r;
}

/* Writes the header of ENTRY, and pax records for what does not fit into it. */
void tar_put_entry(struct tar_writer *tar, const struct tar_entry *entry) {
    struct text records;
    text_init(&records, RECORDS_LIMIT);
    if (put_records(&records, entry) < 0)
        tar->status = tar->status < 0 ? tar->status : -ENOMEM;
    if (records.length > 0) {
        put_header(tar, 'x', &(struct tar_entry){.path = "pax", .mode = 0644}, records.length);
        tar_put_bytes(tar, records.bytes, records.length);
        tar_put_padding(tar, records.length);
    }
    text_clear(&records);
    put_header(tar, (char)entry->type, entry, entry->size);
}

int tar_end(struct tar_writer *tar) {
    static const char end[2 * BLOCK];
    tar_put_bytes(tar, end, sizeof end);
    flush(tar);
    text_clear(&tar->waiting);
    return tar->status;
}

/* ---- reading */

static int fail_malformed(struct failure *failure, const char *what) {
    return failure_set(failure, -EPROTO, "the archive on stdin is malformed: %s", what);
}

/* Reads exactly SIZE bytes. Returns 1; 0 at the end of the input; or negative, also for an input that ends
 * earlier. */
static int read_all(int input, void *bytes, size_t size, struct failure *failure) {
    ssize_t got = path_read_up_to(input, bytes, size);
    if (got < 0)
        return failure_set(failure, (int)got, "cannot read stdin: %s", strerror((int)-got));
    return got == 0 ? 0 : (size_t)got == size ? 1 : fail_malformed(failure, "the archive is truncated");
}

ssize_t tar_read(struct tar_reader *tar, void *bytes, size_t size, struct failure *failure) {
    if (size > tar->left)
        size = (size_t)tar->left;
    int r = size ? read_all(tar->input, bytes, size, failure) : 1;
    if (r <= 0)
        return r < 0 ? r : fail_malformed(failure, "the archive is truncated");
    tar->left -= size;
    return (ssize_t)size;
}

static int skip_rest(struct tar_reader *tar, struct failure *failure) {
    char bytes[BLOCK];
    ssize_t got = 0;
    tar->left += tar->padding;
    tar->padding = 0;
    while (tar->left > 0 && (got = tar_read(tar, bytes, sizeof bytes, failure)) >= 0)
        continue;
    return got < 0 ? (int)got : 0;
}

static uint64_t octal(const char *field, size_t size) {
    uint64_t value = 0;
    for (size_t i = 0; i < size && field[i] >= '0' && field[i] <= '7'; i++)
        value = 8 * value + (uint64_t)(field[i] - '0');
    return value;
}

static void expect_content(struct tar_reader *tar, uint64_t size) {
    tar->left = size;
    tar->padding = (BLOCK - size % BLOCK) % BLOCK;
}

static int read_record(struct tar_entry *entry, const char *key, const char *value, struct failure *failure) {
    size_t length = strlen(value);
    if (strcmp(key, "path") == 0 && length < sizeof entry->path)
        memcpy(entry->path, value, length + 1);
    else if (strcmp(key, HASH_KEY) == 0 && length < sizeof entry->sha256)
        memcpy(entry->sha256, value, length + 1);
    else if (strcmp(key, "path") == 0 || strcmp(key, HASH_KEY) == 0)
        return fail_malformed(failure, "a name or a hash is too long");
    else if (strcmp(key, "size") == 0 && !number_parse_uint64(value, length, &entry->size))
        return fail_malformed(failure, "a size is no number");
    return 0;
}

/* Reads the pax records of the next entry; unknown ones are skipped. */
static int read_records(struct tar_reader *tar, struct tar_entry *entry, struct failure *failure) {
    if (tar->left > RECORDS_LIMIT)
        return fail_malformed(failure, "the attributes of an entry are too long");
    char *records = malloc((size_t)tar->left + 1);
    if (!records)
        return failure_memory(failure);
    size_t size = (size_t)tar->left;
    ssize_t got = tar_read(tar, records, size, failure);
    int r = got < 0 ? (int)got : 0;
    for (char *at = records, *end = records + size; r == 0 && at < end;) {
        char *key;
        size_t length = strtoul(at, &key, 10);
        char *value = *key == ' ' ? memchr(key, '=', (size_t)(end - key)) : NULL;
        if (!value || length > (size_t)(end - at) || at + length <= value || at[length - 1] != '\n') {
            r = fail_malformed(failure, "an attribute has a wrong length");
            break;
        }
        *value = at[length - 1] = '\0';
        r = read_record(entry, key + 1, value + 1, failure);
        at += length;
    }
    free(records);
    return r;
}

static bool is_zero(const struct header *header) {
    static const struct header zero;
    return memcmp(header, &zero, sizeof zero) == 0;
}

/* Reads the header of an entry; a path from a pax record is kept. Returns 1, or negative for an entry that is
 * neither a file nor a folder, or has no name. */
static int read_header(const struct header *header, struct tar_entry *ret, struct failure *failure) {
    if (header->type != TAR_FILE && header->type != TAR_FOLDER)
        return fail_malformed(failure, "an entry is neither a file nor a folder");
    ret->type = (enum tar_type)header->type;
    ret->mode = (unsigned)octal(header->mode, sizeof header->mode) & 0777;
    if (!ret->path[0])
        snprintf(ret->path, sizeof ret->path, "%.155s%s%.100s", header->prefix, header->prefix[0] ? "/" : "",
                 header->name);
    size_t length = strlen(ret->path);
    while (length > 0 && ret->path[length - 1] == '/')
        ret->path[--length] = '\0';
    return length ? 1 : fail_malformed(failure, "an entry has no name");
}

/* The next entry, after what is left of the last one. 1; 0: the end; negative: the tar is damaged. */
int tar_next(struct tar_reader *tar, struct tar_entry *ret, struct failure *failure) {
    *ret = (struct tar_entry){.size = UINT64_MAX};
    for (;;) {
        struct header header;
        int r = skip_rest(tar, failure);
        if (r == 0)
            r = read_all(tar->input, &header, sizeof header, failure);
        if (r <= 0 || is_zero(&header))
            return r < 0 ? r : 0;
        if (octal(header.checksum, sizeof header.checksum) != checksum(&header) ||
            memcmp(header.magic, "ustar", 5) != 0)
            return fail_malformed(failure, "a header is damaged");
        expect_content(tar, octal(header.size, sizeof header.size));
        if (header.type == 'x' && (r = read_records(tar, ret, failure)) < 0)
            return r;
        if (header.type == 'x' || header.type == 'g')
            continue;
        if (ret->size == UINT64_MAX)
            ret->size = tar->left;
        expect_content(tar, ret->size);
        return read_header(&header, ret, failure);
    }
}
