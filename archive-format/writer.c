#include "archive-format/writer.h"

#include "archive-format/crate/crate.h"
#include "archive-format/crate/preview.h"
#include "archive-format/crate/readme.h"
#include "archive-format/reader-private.h"
#include "archive-format/secrets.h"
#include "archive-format/staging.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/path.h"
#include "engine/foundation/text.h"

#include <archive.h>
#include <archive_entry.h>
#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum {
    BUFFER_SIZE = 128 << 10,
    PAGE_BYTES_MAX = 8 << 20,
};

/* One sealing. */
struct seal {
    const char *target, *part;
    const struct archive_description *description;
    struct staging staging;
    struct archive_run run; /* run.json of the staging folder */
    struct failure *failure;
    struct archive *packer;
    int descriptor;  /* of the .part file */
    int write_error; /* negative errno of the first write to it that failed */
    char *buffer;
    bool stored; /* members are stored instead of deflated */
};

static time_t stamp(const struct seal *seal) {
    return (time_t)(seal->description->ended_ns / 1000000000);
}

/* ---- Packing */

/* Deflate gains some 100 bytes on a member of fewer, and its state of 256 KiB is made anew for each. (The
 * archive of 1,000 nodes, which is 9,000 small members, has 3 % more bytes than if all were deflated.) */
enum { DEFLATED_MIN = 512 };

static int choose_method(const struct seal *seal, uint64_t size) {
    return seal->stored || size < DEFLATED_MIN ? archive_write_zip_set_compression_store(seal->packer)
                                               : archive_write_zip_set_compression_deflate(seal->packer);
}

/* libarchive's sink. It takes everything: after a failed write, libarchive 3.6 forgets the memory of the
 * deflate stream. What failed is kept, and pack_content looks. */
static la_ssize_t take(struct archive *packer, void *context, const void *bytes, size_t length) {
    struct seal *seal = context;
    (void)packer;
    if (seal->write_error == 0)
        seal->write_error = file_write_all(seal->descriptor, bytes, length);
    return (la_ssize_t)length;
}

static int fail_writing(const struct seal *seal, int code) {
    return failure_set(seal->failure, code, "cannot write '%s': %s", seal->part, strerror(-code));
}

static int fail_packing(const struct seal *seal) {
    const char *reason = archive_error_string(seal->packer);
    return failure_set(seal->failure, -EIO, "cannot write '%s': %s", seal->part,
                       reason ? reason : "packing failed");
}

static void free_entry(struct archive_entry **entry) {
    archive_entry_free(*entry);
}

/* What does not come from the content is the same for every member: owner, mode, time. */
static int pack_header(const struct seal *seal, const struct staged_file *file) {
    cleanup(free_entry) struct archive_entry *entry = archive_entry_new();
    if (!entry)
        memory_exhausted();
    archive_entry_set_pathname(entry, file->name);
    archive_entry_set_filetype(entry, file->folder ? AE_IFDIR : AE_IFREG);
    archive_entry_set_perm(entry, file->folder ? 0755 : 0644);
    archive_entry_set_uid(entry, 0);
    archive_entry_set_gid(entry, 0);
    archive_entry_set_mtime(entry, stamp(seal), 0);
    archive_entry_set_size(entry, (la_int64_t)file->size);
    return choose_method(seal, file->size) == ARCHIVE_OK &&
                   archive_write_header(seal->packer, entry) == ARCHIVE_OK
               ? 0
               : fail_packing(seal);
}

static int pack_content(const struct seal *seal, const struct staged_file *file, const char *path) {
    cleanup_close int source = open(path, O_RDONLY | O_NOFOLLOW | O_CLOEXEC);
    if (source < 0)
        return failure_set(seal->failure, -errno, "cannot open '%s': %s", path, strerror(errno));
    uint64_t done = 0;
    for (;;) {
        ssize_t got = read(source, seal->buffer, BUFFER_SIZE);
        if (got < 0 && errno == EINTR)
            continue;
        if (got < 0)
            return failure_set(seal->failure, -errno, "cannot read '%s': %s", path, strerror(errno));
        if (got == 0 || (uint64_t)got > file->size - done)
            break;
        if (archive_write_data(seal->packer, seal->buffer, (size_t)got) != got)
            return fail_packing(seal);
        if (seal->write_error < 0)
            return fail_writing(seal, seal->write_error);
        done += (uint64_t)got;
        if (done == file->size)
            break;
    }
    return done == file->size
               ? 0
               : failure_set(seal->failure, -EBUSY, "'%s' changed while it was being sealed", path);
}

static int pack(const struct seal *seal, const struct staged_file *file) {
    cleanup_free char *path = xformat("%s/%s", seal->staging.folder, file->name);
    int r = pack_header(seal, file);
    if (r == 0 && !file->folder)
        r = pack_content(seal, file, path);
    if (r == 0 && archive_write_finish_entry(seal->packer) != ARCHIVE_OK)
        r = fail_packing(seal);
    return r;
}

/* The members that a reader wants first come first: a cut-off download still shows what it was. */
static const char *const first_members[] = {ARCHIVE_CRATE, ARCHIVE_MANIFEST, ARCHIVE_RUN};
enum { FIRST_COUNT = sizeof first_members / sizeof *first_members };

static bool is_first(const struct staged_file *file) {
    return text_find(file->name, first_members, FIRST_COUNT) < FIRST_COUNT;
}

static int pack_all(const struct seal *seal) {
    int r = 0;
    for (size_t i = 0; r == 0 && i < FIRST_COUNT; i++)
        r = pack(seal, staging_find(&seal->staging, first_members[i]));
    for (size_t i = 0; r == 0 && i < seal->staging.count; i++)
        if (!is_first(&seal->staging.files[i]))
            r = pack(seal, &seal->staging.files[i]);
    if (r == 0 && archive_write_close(seal->packer) != ARCHIVE_OK)
        r = fail_packing(seal);
    return r == 0 && seal->write_error < 0 ? fail_writing(seal, seal->write_error) : r;
}

static int write_zip(struct seal *seal) {
    if (ftruncate(seal->descriptor, 0) < 0 || lseek(seal->descriptor, 0, SEEK_SET) < 0)
        return fail_writing(seal, -errno);
    seal->packer = archive_write_new();
    if (!seal->packer)
        memory_exhausted();
    int r = 0;
    if (archive_write_set_format_zip(seal->packer) != ARCHIVE_OK ||
        archive_write_set_bytes_in_last_block(seal->packer, 1) != ARCHIVE_OK ||
        archive_write_open(seal->packer, seal, NULL, take, NULL) != ARCHIVE_OK)
        r = fail_packing(seal);
    if (r == 0)
        r = pack_all(seal);
    archive_write_free(seal->packer);
    seal->packer = NULL;
    return r;
}

/* ---- What libarchive leaves to the time zone */

/* The time of SECONDS in UTC in the two 16-bit fields of a zip header (APPNOTE 4.4.6), little endian. */
static void dos_time(time_t seconds, unsigned char ret[static 4]) {
    struct tm fields;
    gmtime_r(&seconds, &fields);
    if (fields.tm_year < 80)
        fields = (struct tm){.tm_year = 80, .tm_mday = 1};
    if (fields.tm_year > 207)
        fields.tm_year = 207;
    unsigned time = (unsigned)(fields.tm_hour << 11 | fields.tm_min << 5 | fields.tm_sec / 2);
    unsigned date = (unsigned)((fields.tm_year - 80) << 9 | (fields.tm_mon + 1) << 5 | fields.tm_mday);
    ret[0] = (unsigned char)time;
    ret[1] = (unsigned char)(time >> 8);
    ret[2] = (unsigned char)date;
    ret[3] = (unsigned char)(date >> 8);
}

/* libarchive writes these fields in local time; the same run would give other bytes in another time zone. */
static int rewrite_times(const struct seal *seal) {
    cleanup(zip_directory_clear) struct zip_directory zip = {0};
    unsigned char time[4];
    dos_time(stamp(seal), time);
    int r = zip_directory_read(seal->descriptor, seal->part, &zip, seal->failure);
    if (r < 0)
        return r;
    for (size_t i = 0; i < zip.count; i++)
        if (pwrite(seal->descriptor, time, sizeof time, (off_t)(zip.entries[i].header + 10)) != sizeof time ||
            pwrite(seal->descriptor, time, sizeof time, (off_t)(zip.entries[i].directory_entry + 12)) !=
                sizeof time)
            return fail_writing(seal, errno ? -errno : -EIO);
    return 0;
}

/* ---- Sealing */

static struct sealed_content content_of(const struct seal *seal) {
    return (struct sealed_content){&seal->staging, seal->description, &seal->run};
}

/* A page for people, NAME, which PRINT makes. */
static int put_page(struct seal *seal, const char *name,
                    int (*print)(const struct sealed_content *content, struct text *ret)) {
    const struct sealed_content content = content_of(seal);
    cleanup(text_clear) struct text text;
    text_init(&text, PAGE_BYTES_MAX);
    int r = print(&content, &text);
    if (r < 0)
        return failure_set(seal->failure, r, "cannot write %s: %s", name, strerror(-r));
    return staging_put(&seal->staging, name, text.bytes, text.length, seal->failure);
}

static int put_crate(struct seal *seal) {
    const struct sealed_content content = content_of(seal);
    cleanup(text_clear) struct text text;
    text_init(&text, ARCHIVE_RECORD_BYTES_MAX);
    int r = crate_print(&content, &text, seal->failure);
    return r < 0 ? r : staging_put(&seal->staging, ARCHIVE_CRATE, text.bytes, text.length, seal->failure);
}

static int read_run(struct seal *seal) {
    cleanup_free char *path = file_join(seal->staging.folder, ARCHIVE_RUN);
    cleanup(document_cleanup) struct document *document = NULL;
    int r = document_read_json(path, &document, seal->failure);
    return r < 0 ? r : archive_run_read(document, &seal->run, seal->failure);
}

static int put_manifest(struct seal *seal) {
    cleanup(text_clear) struct text text;
    text_init(&text, (size_t)ARCHIVE_ENTRIES_MAX * (HASH_HEX_SIZE + 2 + ARCHIVE_NAME_MAX));
    for (size_t i = 0; i < seal->staging.count; i++) {
        const struct staged_file *file = &seal->staging.files[i];
        if (!file->folder && strcmp(file->name, ARCHIVE_MANIFEST) != 0)
            text_printf(&text, "%s  %s\n", file->sha256, file->name);
    }
    return staging_put(&seal->staging, ARCHIVE_MANIFEST, text.bytes, text.length, seal->failure);
}

static int check_staging(const struct seal *seal) {
    const struct staged_file *run = staging_find(&seal->staging, ARCHIVE_RUN);
    uint64_t total = 0;
    for (size_t i = 0; i < seal->staging.count; i++)
        total += seal->staging.files[i].size;
    if (!run || run->folder)
        return failure_set_kind(seal->failure, FAILURE_INPUT, -ENOENT, "'%s' has no run.json to be sealed",
                                seal->staging.folder);
    if (staging_find(&seal->staging, ARCHIVE_SIGNATURE))
        return failure_set_kind(seal->failure, FAILURE_INPUT, -EINVAL,
                                "'%s' has a file " ARCHIVE_SIGNATURE "; that name is reserved",
                                seal->staging.folder);
    if (total > ARCHIVE_TOTAL_BYTES_MAX)
        return failure_set_kind(seal->failure, FAILURE_INPUT, -EFBIG,
                                "'%s' has %" PRIu64 " bytes; an archive takes at most %" PRIu64,
                                seal->staging.folder, total, ARCHIVE_TOTAL_BYTES_MAX);
    return 0;
}

/* Content that deflates better than a reader believes (gigabytes of one byte, say) is written again, not
 * deflated: a run that can be made can be sealed. */
static int write_believable(struct seal *seal) {
    uint64_t total = 0;
    struct stat status;
    for (size_t i = 0; i < seal->staging.count; i++)
        total += seal->staging.files[i].size;
    int r = write_zip(seal);
    if (r < 0 || total <= ARCHIVE_RATIO_FREE_BYTES)
        return r;
    if (fstat(seal->descriptor, &status) < 0)
        return fail_writing(seal, -errno);
    if (total / (uint64_t)status.st_size < ARCHIVE_RATIO_MAX)
        return 0;
    seal->stored = true;
    return write_zip(seal);
}

static int write_part(struct seal *seal) {
    int r = write_believable(seal);
    if (r == 0)
        r = rewrite_times(seal);
    if (r == 0 && fsync(seal->descriptor) < 0)
        r = fail_writing(seal, -errno);
    if (r < 0)
        return r;
    /* So that what is verified is what the disk has, where the system lets us ask for that. */
    (void)posix_fadvise(seal->descriptor, 0, 0, POSIX_FADV_DONTNEED);
    if (close(take_descriptor(seal->descriptor)) < 0)
        return fail_writing(seal, -errno);
    return 0;
}

static int verify_part(const struct seal *seal, char sha256[static HASH_HEX_SIZE]) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    int r = archive_open(seal->part, &archive, seal->failure);
    if (r == 0)
        r = archive_verify(archive, seal->failure);
    for (size_t i = 0; r == 0 && i < seal->staging.count; i++) {
        const struct staged_file *file = &seal->staging.files[i];
        const struct zip_entry *entry = archive_entry_called(archive, file->name);
        const char *found = entry ? archive->sha256[entry - archive->zip.entries] : "";
        if (!entry || (!file->folder && found[0] != '\0' && strcmp(found, file->sha256) != 0))
            r = failure_verification(seal->failure, seal->part, "'%s' is not in it as it was staged",
                                     file->name);
    }
    if (r < 0)
        return failure_prefix(seal->failure, "the archive that was just written cannot be trusted");
    return hash_file(seal->part, sha256, NULL, seal->failure);
}

/* The part becomes the target, unless there is one: then it must be the same. */
static int publish(const struct seal *seal, const char *sha256) {
    if (renameat2(AT_FDCWD, seal->part, AT_FDCWD, seal->target, RENAME_NOREPLACE) == 0)
        return file_sync_folder_of(seal->target, seal->failure);
    struct stat status;
    bool unsupported = errno == EINVAL || errno == ENOSYS; /* by the file system, as some network ones */
    if (unsupported && lstat(seal->target, &status) < 0 && errno == ENOENT) {
        if (rename(seal->part, seal->target) == 0)
            return file_sync_folder_of(seal->target, seal->failure);
    } else if (unsupported) {
        errno = EEXIST;
    }
    if (errno != EEXIST)
        return failure_set(seal->failure, -errno, "cannot rename '%s' to '%s': %s", seal->part, seal->target,
                           strerror(errno));
    char found[HASH_HEX_SIZE];
    bool same = lstat(seal->target, &status) == 0 && S_ISREG(status.st_mode) &&
                hash_file(seal->target, found, NULL, NULL) == 0 && strcmp(found, sha256) == 0;
    if (!same)
        return failure_set_kind(seal->failure, FAILURE_INPUT, -EEXIST,
                                "'%s' is already there and is not this run's archive; it is left as it is",
                                seal->target);
    unlink(seal->part);
    return file_sync_folder_of(seal->target, seal->failure);
}

static void seal_clear(struct seal *seal) {
    cleanup_close_descriptor(&seal->descriptor);
    staging_clear(&seal->staging);
    archive_run_clear(&seal->run);
    free(seal->buffer);
}

static int write_and_publish(struct seal *seal, char sha256[static HASH_HEX_SIZE]) {
    int r = path_check(seal->part, PATH_PLACE, seal->failure);
    if (r < 0)
        return r;
    /* Not through a link, and not over a file that somebody else can see: a part that a crash left is
     * replaced. */
    if (unlink(seal->part) < 0 && errno != ENOENT)
        return failure_set(seal->failure, -errno, "cannot remove '%s': %s", seal->part, strerror(errno));
    seal->descriptor = open(seal->part, O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW | O_CLOEXEC, 0666);
    if (seal->descriptor < 0)
        return failure_set(seal->failure, -errno, "cannot create '%s': %s", seal->part, strerror(errno));
    r = write_part(seal);
    if (r == 0)
        r = verify_part(seal, sha256);
    if (r == 0)
        r = publish(seal, sha256);
    if (r < 0)
        unlink(seal->part);
    return r;
}

int archive_check_target(const char *target, struct failure *failure) {
    cleanup_free char *parent = xstrndup(target, (size_t)(file_base_name(target) - target));
    const char *folder = parent[0] ? parent : ".";
    if (!text_ends_in(target, ".zip"))
        return failure_input(failure, NULL, 0, 0,
                             "'%s' is no name of an archive; expected one that ends in .zip", target);
    if (access(target, F_OK) == 0)
        return failure_input(failure, NULL, 0, 0,
                             "'%s' is already there, and archives are not replaced; give another name",
                             target);
    if (access(folder, W_OK | X_OK) < 0)
        return failure_input(failure, NULL, 0, 0, "cannot write into the folder '%s': %s", folder,
                             strerror(errno));
    return 0;
}

int archive_seal(const char *staging_folder, const char *target_path,
                 const struct archive_description *description, char sha256[static HASH_HEX_SIZE],
                 struct failure *failure) {
    char found[HASH_HEX_SIZE];
    cleanup_free char *part = xformat("%s.part", target_path);
    cleanup(seal_clear) struct seal seal = {.target = target_path,
                                            .part = part,
                                            .description = description,
                                            .failure = failure,
                                            .descriptor = -1,
                                            .buffer = xmalloc(BUFFER_SIZE)};
    int r = staging_scan(staging_folder, &seal.staging, failure);
    if (r == 0)
        r = check_staging(&seal);
    if (r == 0)
        r = secrets_check(&seal.staging, failure);
    if (r == 0)
        r = read_run(&seal);
    if (r == 0)
        r = put_page(&seal, ARCHIVE_README, readme_print);
    if (r == 0)
        r = put_page(&seal, ARCHIVE_PREVIEW, preview_print);
    if (r == 0)
        r = staging_hash(&seal.staging, failure);
    if (r == 0)
        r = put_crate(&seal);
    if (r == 0)
        r = put_manifest(&seal);
    if (r == 0)
        r = write_and_publish(&seal, found);
    if (r == 0)
        memcpy(sha256, found, sizeof found);
    return r;
}

int archive_seal_run(const char *staging_folder, const char *target_path, const struct archive_run *run,
                     const char *name, const char *text, char sha256[static HASH_HEX_SIZE],
                     struct failure *failure) {
    cleanup(text_clear) struct text command;
    text_init(&command, 64 << 10);
    if (run->command.items)
        text_append_command(&command, (const char *const *)run->command.items);
    const struct archive_description description = {.kind = (enum archive_kind)run->kind,
                                                    .name = name,
                                                    .text = text,
                                                    .status = run->status,
                                                    .error = run->error,
                                                    .started_ns = run->started_ns,
                                                    .ended_ns = run->ended_ns,
                                                    .run_id = run->run_id,
                                                    .engine_version = ASSAY_VERSION,
                                                    .command = command.bytes,
                                                    .measured_by = run->import ? run->import->engine : NULL};
    return archive_seal(staging_folder, target_path, &description, sha256, failure);
}
