/* What reader.c, member.c and extract.c share: an opened archive from the inside. */
#ifndef ASSAY_ARCHIVE_FORMAT_READER_PRIVATE_H
#define ASSAY_ARCHIVE_FORMAT_READER_PRIVATE_H

#include "archive-format/layout.h"
#include "archive-format/reader.h"
#include "archive-format/staging.h"
#include "archive-format/zip-directory.h"

struct archive_reader {
    int descriptor;         /* of the zip, or of the folder */
    bool is_foreign;        /* another program's zip: neither a manifest nor a crate is expected */
    bool is_folder;         /* then the members below but `run` are empty until it is listed */
    struct staging staging; /* of a folder that is listed: has the names of `zip` */
    char *path;             /* for messages */
    struct zip_directory zip;
    char (*sha256)[HASH_HEX_SIZE]; /* by the manifest, an item an entry of zip; "" when not in it */
    uint32_t *by_name;             /* indices into zip.entries, in the order of archive_name_compare */
    uint32_t *members;             /* indices into zip.entries of the files, in the order of the zip */
    size_t member_count;
    struct archive_run run;
};

/* The entry called NAME, file or folder, or NULL. */
const struct zip_entry *archive_entry_called(const struct archive_reader *archive, const char *name);
/* The file ENTRY as a stream. */
struct archive_member *archive_entry_stream(struct archive_reader *archive, const struct zip_entry *entry);

#endif
