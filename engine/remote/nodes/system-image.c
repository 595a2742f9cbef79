#include "engine/remote/nodes/system-image.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/memory.h"
#include "engine/remote/link/tree-archive.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

enum {
    BUFFER = 256 << 10,
    ENTRIES_MAX = 8 << 20,
    RELEASE_MAX = 64 << 10, /* bytes of os-release */
    OWNER_MAX = 07777777,   /* that a header has room for */
};
#define BYTES_MAX ((uint64_t)64 << 30) /* of all files */

struct reading {
    const char *path;               /* of the image */
    struct archive *input, *output; /* output: NULL: it is only read */
    uint64_t bytes, entries;
    bool has_shell;
    struct text release; /* os-release */
    char *buffer;
};

static void close_reading(struct reading *reading) {
    archive_free(reading->input);
    archive_free(reading->output);
    text_clear(&reading->release);
    free(reading->buffer);
}

static void free_entry(struct archive_entry **entry) {
    archive_entry_free(*entry);
}

static int refuse(const struct reading *reading, struct failure *failure, const char *what,
                  const char *expected) {
    return failure_set_kind(failure, FAILURE_INPUT, -EBADMSG, "the image '%s' %s; expected %s", reading->path,
                            what, expected);
}

static int refuse_entry(const struct reading *reading, const char *entry, const char *what,
                        struct failure *failure) {
    return failure_set_kind(failure, FAILURE_INPUT, -EBADMSG, "'%.256s' in the image '%s' %s", entry,
                            reading->path, what);
}

static int complain(const struct reading *reading, struct archive *archive, struct failure *failure) {
    const char *reason = archive_error_string(archive);
    if (archive == reading->output)
        return failure_set(failure, -EIO, "cannot unpack the image '%s' for the nodes: %s", reading->path,
                           reason ? reason : "packing failed");
    return failure_set_kind(failure, FAILURE_INPUT, -EBADMSG,
                            "the image '%s' is no tar, or damaged: %s; expected a root file system as a tar, "
                            "compressed by gzip, bzip2, xz or zstd, or not",
                            reading->path, reason ? reason : "it cannot be read");
}

/* PATH without what says nothing: "./usr/" is "usr". NULL: it leads out. */
static char *plain_path(const char *path) {
    char *plain = xstrdup(path), *end = plain;
    bool leads_out = path[0] == '/';
    for (const char *at = path; *at && !leads_out;) {
        size_t length = strcspn(at, "/");
        leads_out = length == 2 && memcmp(at, "..", 2) == 0;
        if (length > 0 && !(length == 1 && *at == '.')) {
            if (end > plain)
                *end++ = '/';
            memmove(end, at, length);
            end += length;
        }
        at += length + (at[length] == '/');
    }
    *end = '\0';
    if (leads_out)
        free(take_pointer(plain));
    return plain;
}

static const char *or_utf8(const char *bytes, const char *utf8) {
    return bytes ? bytes : utf8;
}

/* ---- one entry */

static int copy_content(struct reading *reading, const char *path, struct failure *failure) {
    static const char *const releases[] = {"etc/os-release", "usr/lib/os-release"};
    bool is_release = strcmp(path, releases[0]) == 0 || strcmp(path, releases[1]) == 0;
    la_ssize_t got;
    if (is_release)
        text_reset(&reading->release);
    while ((got = archive_read_data(reading->input, reading->buffer, BUFFER)) > 0) {
        reading->bytes += (uint64_t)got;
        if (reading->bytes > BYTES_MAX)
            return refuse(reading, failure, "has more than 64 GiB of files", "less");
        if (is_release) /* what is beyond its limit is left out: the name stands at its beginning */
            (void)text_append(&reading->release, reading->buffer, (size_t)got);
        if (reading->output && archive_write_data(reading->output, reading->buffer, (size_t)got) != got)
            return complain(reading, reading->output, failure);
    }
    return got < 0 ? complain(reading, reading->input, failure) : 0;
}

/* What nodes get of an entry: TARGET is that of a link; NULL: it is none. */
static int put_header(struct reading *reading, struct archive_entry *from, const char *path,
                      const char *target, struct failure *failure) {
    cleanup(free_entry) struct archive_entry *entry = archive_entry_new();
    if (!entry)
        memory_exhausted();
    bool is_hard = archive_entry_hardlink(from) || archive_entry_hardlink_utf8(from);
    time_t time_s = archive_entry_mtime(from);
    archive_entry_copy_pathname(entry, path);
    archive_entry_set_filetype(entry, is_hard ? AE_IFREG : archive_entry_filetype(from));
    archive_entry_set_perm(entry, archive_entry_perm(from));
    archive_entry_set_uid(entry, archive_entry_uid(from));
    archive_entry_set_gid(entry, archive_entry_gid(from));
    archive_entry_set_mtime(entry, time_s > 0 ? time_s : 0, 0);
    archive_entry_set_size(entry, target ? 0 : archive_entry_size(from));
    if (is_hard)
        archive_entry_copy_hardlink(entry, target);
    else if (target)
        archive_entry_copy_symlink(entry, target);
    return archive_write_header(reading->output, entry) >= ARCHIVE_WARN
               ? 0
               : complain(reading, reading->output, failure);
}

/* Of a file, folder or link. *RET_TARGET is of a link; owned; else NULL. */
static int check_link(const struct reading *reading, struct archive_entry *entry, const char *path,
                      char **ret_target, struct failure *failure) {
    const char *hard = or_utf8(archive_entry_hardlink(entry), archive_entry_hardlink_utf8(entry));
    const char *soft = or_utf8(archive_entry_symlink(entry), archive_entry_symlink_utf8(entry));
    *ret_target = hard ? plain_path(hard) : soft ? xstrdup(soft) : NULL;
    if (hard && !*ret_target)
        return refuse_entry(reading, path, "is a hard link that leads out of it", failure);
    if (!hard && !soft && archive_entry_filetype(entry) == AE_IFLNK)
        return refuse_entry(reading, path, "is a link to a name that cannot be read", failure);
    return 0;
}

static int take_entry(struct reading *reading, struct archive_entry *entry, struct failure *failure) {
    const char *written = or_utf8(archive_entry_pathname(entry), archive_entry_pathname_utf8(entry));
    cleanup_free char *path = written ? plain_path(written) : NULL, *target = NULL;
    unsigned type = archive_entry_filetype(entry);
    bool is_hard = archive_entry_hardlink(entry) || archive_entry_hardlink_utf8(entry);
    if (!written)
        return refuse(reading, failure, "has a name that cannot be read", "names in UTF-8");
    if (!path)
        return refuse_entry(reading, written, "leads out of it, expected paths within, without '..'",
                            failure);
    if (!path[0] || strncmp(path, "dev/", 4) == 0 || type == AE_IFSOCK || type == AE_IFIFO)
        return 0;
    if (!is_hard && (type == AE_IFCHR || type == AE_IFBLK))
        return refuse_entry(reading, path, "is a device, expected none but in /dev", failure);
    if (++reading->entries > ENTRIES_MAX)
        return refuse(reading, failure, "has more than 8,388,608 entries", "less");
    if (archive_entry_uid(entry) > OWNER_MAX || archive_entry_gid(entry) > OWNER_MAX)
        return refuse_entry(reading, path, "has an owner beyond 2097151", failure);
    reading->has_shell |= strcmp(path, "bin/sh") == 0 || strcmp(path, "usr/bin/sh") == 0;
    int r = check_link(reading, entry, path, &target, failure);
    if (r == 0 && reading->output)
        r = put_header(reading, entry, path, target, failure);
    return r < 0 || target || type != AE_IFREG ? r : copy_content(reading, path, failure);
}

/* ---- all of it */

static int open_input(struct reading *reading, struct failure *failure) {
    struct archive *input = reading->input = archive_read_new();
    if (!input)
        memory_exhausted();
    /* By the library itself: others would start programs. */
    archive_read_support_filter_gzip(input);
    archive_read_support_filter_bzip2(input);
    archive_read_support_filter_xz(input);
    archive_read_support_filter_zstd(input);
    archive_read_support_format_tar(input);
    return archive_read_open_filename(input, reading->path, BUFFER) == ARCHIVE_OK
               ? 0
               : complain(reading, input, failure);
}

static int open_output(struct reading *reading, int file, struct failure *failure) {
    struct archive *output = reading->output = archive_write_new();
    if (!output)
        memory_exhausted();
    /* Names are bytes, whatever their encoding. */
    return archive_write_set_format_pax_restricted(output) == ARCHIVE_OK &&
                   archive_write_set_options(output, "hdrcharset=BINARY") == ARCHIVE_OK &&
                   archive_write_open_fd(output, file) == ARCHIVE_OK
               ? 0
               : complain(reading, output, failure);
}

static int copy_entries(struct reading *reading, struct failure *failure) {
    struct archive_entry *entry;
    int found, r = 0;
    while (r == 0 && (found = archive_read_next_header(reading->input, &entry)) != ARCHIVE_EOF)
        r = found < ARCHIVE_WARN ? complain(reading, reading->input, failure)
                                 : take_entry(reading, entry, failure);
    if (r == 0 && reading->output && archive_write_close(reading->output) != ARCHIVE_OK)
        r = complain(reading, reading->output, failure);
    if (r == 0 && !reading->has_shell)
        r = refuse(reading, failure, "has no /bin/sh", "a root file system");
    return r;
}

/* The value of PRETTY_NAME="...", which needs no more of a shell's quoting than this. */
static char *name_of(const struct text *release) {
    static const char key[] = "PRETTY_NAME=";
    const char *at = release->length ? release->bytes : "";
    while (*at && strncmp(at, key, sizeof key - 1) != 0)
        at += strcspn(at, "\n") + (at[strcspn(at, "\n")] == '\n');
    at += *at ? sizeof key - 1 : 0;
    at += *at == '"' || *at == '\'';
    size_t length = strcspn(at, "\"'\n");
    char *name = length ? xstrndup(at, length) : xstrdup("unnamed system");
    for (char *c = name; *c; c++)
        if ((unsigned char)*c < ' ' || *c == 0x7f)
            *c = '?'; /* it is shown on terminals */
    return name;
}

int system_image_read(const char *path, bool with_tar, struct system_image *ret, struct failure *failure) {
    cleanup(close_reading) struct reading reading = {.path = path, .buffer = xmalloc(BUFFER)};
    struct system_image image = {0};
    text_init(&reading.release, RELEASE_MAX);
    int r = hash_file(path, image.brought.sha256, NULL, failure);
    if (r < 0)
        return r;
    cleanup_close int file = with_tar ? tree_archive_scratch(failure) : -1;
    if (with_tar && file < 0)
        return file;
    r = open_input(&reading, failure);
    if (r == 0 && with_tar)
        r = open_output(&reading, file, failure);
    r = r < 0 ? r : copy_entries(&reading, failure);
    if (r < 0)
        return r;
    if (with_tar) {
        image.brought.length = (size_t)lseek(file, 0, SEEK_END);
        image.brought.tar = mmap(NULL, image.brought.length, PROT_READ, MAP_SHARED, file, 0);
        if (image.brought.tar == MAP_FAILED)
            return failure_set(failure, -errno, "cannot map the unpacked image: %s", strerror(errno));
    }
    image.name = name_of(&reading.release);
    *ret = image;
    return 0;
}

void system_image_clear(struct system_image *image) {
    if (image->brought.tar)
        munmap((void *)image->brought.tar, image->brought.length);
    free(image->name);
    *image = (struct system_image){0};
}
