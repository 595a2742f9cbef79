/*
 * Reading an archive (FORMAT.md) that may come from anybody: a zip, or the folder of a run, which has the
 * same files as they stand and is not sealed. Every failure that the content of a zip causes is
 * FAILURE_VERIFICATION with the reason; a file that is missing or cannot be read is FAILURE_INPUT or
 * FAILURE_SYSTEM.
 *
 *     cleanup(archive_cleanup) struct archive_reader *archive = NULL;
 *     r = archive_open("dgemm.zip", &archive, failure);
 *
 * A table, as a stream:
 *
 *     struct archive_member *member;
 *     r = archive_member_open(archive, "results/results.csv", &member, failure);
 *     r = csv_open_function("dgemm.zip:results/results.csv", archive_member_read, member, &csv, failure);
 *     while ((r = csv_next(csv, &fields, failure)) > 0) ...
 *     if (r < 0) archive_member_status(member, failure);   // the member's own reason is the better one
 *
 * What is read of a zip is proved only at the end of the stream: until archive_member_read has returned 0,
 * the bytes may still turn out to be damaged, and nothing that was made from them should be published.
 * Members that are not read are not checked. Files of a folder have no checksums.
 */
#ifndef ASSAY_ARCHIVE_FORMAT_READER_H
#define ASSAY_ARCHIVE_FORMAT_READER_H

#include "archive-format/layout.h"
#include "archive-format/run.h"
#include "engine/documents/document.h"
#include "engine/foundation/failure.h"
#include "engine/foundation/hash.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

/* Limits. Writers keep to them too, so that what was sealed can be opened. */
#define ARCHIVE_MEMBER_BYTES_MAX ((uint64_t)64 << 30) /* one member, inflated */
#define ARCHIVE_TOTAL_BYTES_MAX ((uint64_t)256 << 30) /* all members, inflated */
#define ARCHIVE_RATIO_FREE_BYTES                                                                             \
    ((uint64_t)1 << 30) /* below this much content the ratio is not asked for                                \
                         */
enum {
    ARCHIVE_RATIO_MAX = 200,             /* inflated bytes for a byte of the zip */
    ARCHIVE_ENTRIES_MAX = 1 << 18,       /* members and folders */
    ARCHIVE_NAME_MAX = 512,              /* bytes of a member's name */
    ARCHIVE_RECORD_BYTES_MAX = 16 << 20, /* run.json, datapackage.json: what is read whole */
};

struct archive_reader;
struct archive_member;

/*
 * Opens PATH, a zip or the folder of a run. Of a folder run.json is read. A zip is checked, without inflating
 * any data: that it is one zip from its first byte to its last (nothing before, between or after the
 * members), that every local header says what the directory says, that every name is one that
 * archive_name_problem takes, that no two names are the same or differ in case only and none is both file and
 * folder, that there are only files and folders, only stored or deflated, none encrypted, and the limits
 * above. Then the manifest is read, which must name exactly the members that there are, and run.json, whose
 * archive_version must be of a major version that this reader knows.
 */
int archive_open(const char *path, struct archive_reader **ret, struct failure *failure);
/* A zip from an open descriptor of a regular file, which it owns from then on, also when it fails. NAME is
 * for messages. */
int archive_open_descriptor(int descriptor, const char *name, struct archive_reader **ret,
                            struct failure *failure);
/* A zip that another program made, by the same rules but that it has a manifest and a run.json: of members,
 * size and CRC-32 are checked, and archive_run() is empty. */
int archive_open_foreign(const char *path, struct archive_reader **ret, struct failure *failure);
void archive_close(struct archive_reader *archive);    /* NULL is fine; close its members first */
void archive_cleanup(struct archive_reader **archive); /* for cleanup() */

const char *archive_path(const struct archive_reader *archive);
uint64_t archive_bytes(const struct archive_reader *archive); /* of the zip, or of a folder's listed files */

/* Finds the files of a run's folder, which are then its members, in the order of their names and without
 * hashes; those of a zip are known. */
int archive_list(struct archive_reader *archive, struct failure *failure);
bool archive_is_folder(const struct archive_reader *archive);
/* Members are the files, of a zip in its order; folders do not count. */
size_t archive_member_count(const struct archive_reader *archive);
const char *archive_member_name(const struct archive_reader *archive, size_t index);
uint64_t archive_member_size(const struct archive_reader *archive, size_t index); /* inflated, bytes */
uint64_t archive_member_stored_size(const struct archive_reader *archive,
                                    size_t index); /* in the zip, bytes */
/* By the manifest; "" for the manifest and its signature, which are not in it, and in a folder. The reader's.
 */
const char *archive_member_sha256(const struct archive_reader *archive, size_t index);
/* Is there a member NAME? Its bytes, inflated, in *RET_BYTES unless that is NULL. */
bool archive_find(const struct archive_reader *archive, const char *name, uint64_t *ret_bytes);

/* run.json as it was read while opening; the reader's. */
const struct archive_run *archive_run(const struct archive_reader *archive);

/* Refuses an archive in which nothing was measured, that of a prediction: for what fits, ranks, resumes or
 * repeats measurements. FAILURE_INPUT with what can be done with it. */
int archive_check_measured(const struct archive_reader *archive, struct failure *failure);

/* A member as a stream. No such member is FAILURE_INPUT. Several members may be open at once. */
int archive_member_open(struct archive_reader *archive, const char *name, struct archive_member **ret,
                        struct failure *failure);
/* Up to SIZE bytes into BUFFER: how many, 0 at the end when size, CRC-32 and SHA-256 were right, or a
 * negative errno (and the same again if called again). MEMBER is a struct archive_member: this is a
 * csv_read_function. */
int64_t archive_member_read(void *member, char *buffer, size_t size);
/* 0, or the failure that archive_member_read met, put into FAILURE. */
int archive_member_status(const struct archive_member *member, struct failure *failure);
void archive_member_close(struct archive_member *member);    /* NULL is fine */
void archive_member_cleanup(struct archive_member **member); /* for cleanup() */

/* Appends the whole member to RET, checked; one that is larger than what RET's limit leaves is refused
 * (-EFBIG), in a zip before it is inflated. On failure RET is as it was. */
int archive_read_member(struct archive_reader *archive, const char *name, struct text *ret,
                        struct failure *failure);
/* A JSON member of at most ARCHIVE_RECORD_BYTES_MAX bytes as a document. */
int archive_read_document(struct archive_reader *archive, const char *name, struct document **ret,
                          struct failure *failure);

/* Inflates every member of a zip and compares its SHA-256 with the manifest. FAILURE_VERIFICATION names the
 * first member that differs. A folder, which has no manifest, is FAILURE_INPUT. */
int archive_verify(struct archive_reader *archive, struct failure *failure);

/* The same, and whether what the members say of each other holds: the crate keeps to its rules
 * (crate/check.h), and each table that a datapackage.json describes has the columns and the types of values
 * that it says. */
int archive_check(struct archive_reader *archive, struct failure *failure);

/* Verifies a whole zip, then writes the members NAMES (a member, or a folder and all below it; COUNT 0:
 * all) into FOLDER, which must be absent or empty. Links are not followed; files get mode 0666 less the
 * umask. What was written is removed again if anything fails. */
int archive_extract(struct archive_reader *archive, const char *folder, const char *const *names,
                    size_t count, struct failure *failure);

#endif
