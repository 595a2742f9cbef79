/*
 * The skeleton of a zip file: its end record, its directory and the header before each member's data, read
 * and compared with each other. libarchive packs and unpacks; but it believes one of the two descriptions
 * that a zip has of each member without looking at the other, while other programs believe the other one. A
 * sealed archive must mean the same to all of them, so here every byte outside the data has to be accounted
 * for. Source: PKWARE APPNOTE.TXT 6.3.10, sections 4.3 (records), 4.4 (fields), 4.5 (extra fields).
 */
#ifndef ASSAY_ARCHIVE_FORMAT_ZIP_DIRECTORY_H
#define ASSAY_ARCHIVE_FORMAT_ZIP_DIRECTORY_H

#include "engine/foundation/failure.h"

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

enum { ZIP_STORED = 0, ZIP_DEFLATED = 8 };

struct zip_entry {
    const char *name; /* NUL-ended, in zip_directory.names; a folder's without its last "/" */
    bool folder;
    uint16_t method; /* ZIP_STORED or ZIP_DEFLATED */
    uint32_t crc32;
    uint64_t size, stored_size;             /* inflated, and in the file */
    uint64_t header, data, directory_entry; /* offsets in the file */
};

struct zip_directory {
    struct zip_entry *entries; /* in the order of the file */
    size_t count;
    char *names;
    uint64_t bytes; /* of the file */
    uint64_t total; /* inflated bytes of all members */
};

/*
 * Reads the skeleton of the zip open as DESCRIPTOR and called FILE in messages. The caller clears *RET.
 *
 * Refused as FAILURE_VERIFICATION: anything before the first member, between members, or after the end
 * record; several disks; comments; a directory that does not fit; a local header or data descriptor that says
 * something else than the directory (name, flags, method, time, CRC-32, sizes); encryption; methods other
 * than the two; anything but files and folders; extra fields that give a member another name or other
 * attributes; the limits of reader.h. Names are not judged, only that they have no NUL and are within the
 * limit.
 */
int zip_directory_read(int descriptor, const char *file, struct zip_directory *ret, struct failure *failure);
void zip_directory_clear(struct zip_directory *directory);

#endif
