/*
 * Zip files byte by byte, as wrong as wanted: every field of every header can be set to something else than
 * what is true. For tests, and for archive-format/samples/invalid.
 */
#ifndef ASSAY_ARCHIVE_FORMAT_ZIP_BUILDER_H
#define ASSAY_ARCHIVE_FORMAT_ZIP_BUILDER_H

#include "engine/foundation/hash.h"
#include "engine/foundation/text.h"

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { BUILD_MEMBERS_MAX = 32, BUILD_DATE = 0x5b74, BUILD_TIME = 0x5060 };

/* What is 0 or NULL is as it should be. */
struct build_member {
    const char *name;
    size_t name_length;     /* when the name has a NUL inside */
    const char *local_name; /* the name before the data, if another */
    const char *bytes;      /* content */
    size_t length;
    const char *packed; /* packed content, if it is not made from the content */
    size_t packed_length;
    uint16_t method, flags; /* method 8 packs into stored deflate blocks */
    uint16_t local_needed_flip, local_flags_flip, local_method_flip, local_time_flip;
    uint16_t internal; /* attributes of the directory entry */
    uint32_t mode;     /* Unix mode; 0: a regular file, or a folder if the name ends in "/" */
    uint32_t dos_attributes;
    uint32_t crc_flip;                        /* in the directory and before the data */
    uint32_t local_crc_flip;                  /* before the data only */
    int64_t size_off, stored_off;             /* added to what both headers say */
    int64_t header_off;                       /* added to where the directory says that the member begins */
    int64_t local_size_off, local_stored_off; /* added before the data only */
    bool descriptor;                          /* CRC-32 and sizes after the data */
    uint32_t descriptor_crc_flip;
    uint64_t wide_size; /* the inflated size in a Zip64 field */
    bool wide;
    const char *extra; /* extra field of the directory entry */
    size_t extra_length;
    const char *comment;
    const char *before;   /* bytes between the member before and this one */
    bool not_in_manifest; /* for build_archive */
    bool only_in_manifest;
    bool wrong_hash;
    bool twice_in_manifest;
    int share_data_of; /* the directory entry points to the data of member N - 1 as well */
};

struct build_around {
    const char *manifest;     /* instead of a right one */
    const char *manifest_end; /* after a right one */
    const char *comment;      /* of the zip */
    const char *after;        /* bytes after the end record */
    const char *before;       /* bytes before the first member */
    uint64_t claimed_count;   /* entries, in a Zip64 end record */
    int64_t directory_size_off, directory_offset_off;
    uint16_t disk;
};

struct build {
    struct build_member members[BUILD_MEMBERS_MAX];
    size_t count;
    struct build_around around;
};

static inline void build_number(struct text *text, size_t bytes, uint64_t value) {
    for (size_t i = 0; i < bytes; i++)
        text_append_character(text, (char)(value >> (8 * i)));
}

static inline uint32_t build_crc32(const char *bytes, size_t length) {
    uint32_t crc = UINT32_MAX;
    for (size_t i = 0; i < length; i++) {
        crc ^= (unsigned char)bytes[i];
        for (int bit = 0; bit < 8; bit++)
            crc = crc & 1 ? crc >> 1 ^ 0xedb88320u : crc >> 1;
    }
    return ~crc;
}

/* Deflate (RFC 1951, 3.2.4) without compression. */
static inline void build_deflate(struct text *text, const char *bytes, size_t length) {
    do {
        size_t step = length < 65535 ? length : 65535;
        build_number(text, 1, step == length);
        build_number(text, 2, step);
        build_number(text, 2, step ^ 0xffff);
        text_append(text, bytes, step);
        bytes += step;
        length -= step;
    } while (length > 0);
}

/* Deflate of LENGTH zeros by the fixed code (RFC 1951, 3.2.6): one literal, then copies of 258: 13 bits each.
 */
static inline void build_deflate_zeros(struct text *text, size_t copies) {
    uint64_t bits = 0;
    unsigned count = 0;
    /* Final block, fixed code; literal 0 is 00110000, first bit first. */
    uint32_t symbols[] = {0x3, 0x0c};
    unsigned lengths[] = {3, 8};
    for (size_t i = 0; i < copies + 3; i++) {
        uint32_t symbol = i < 2 ? symbols[i] : i < copies + 2 ? 0xa3 /* 11000101 */ : 0;
        unsigned length = i < 2 ? lengths[i] : i < copies + 2 ? 13 : 7;
        bits |= (uint64_t)symbol << count;
        count += length;
        for (; count >= 8; count -= 8, bits >>= 8)
            build_number(text, 1, bits & 0xff);
    }
    if (count)
        build_number(text, 1, bits & 0xff);
}

struct built_place {
    uint64_t header;
    uint32_t crc;
    uint64_t size, stored;
};

static inline void build_wide_field(struct text *text, const struct build_member *member, uint64_t stored,
                                    bool local) {
    build_number(text, 2, 1);
    build_number(text, 2, local ? 16 : 8);
    build_number(text, 8, member->wide_size);
    if (local)
        build_number(text, 8, stored);
}

static inline void build_local(struct text *zip, const struct build_member *member,
                               struct built_place *place) {
    struct text packed;
    text_init(&packed, 64 << 20);
    if (member->packed)
        text_append(&packed, member->packed, member->packed_length);
    else if (member->method == 8)
        build_deflate(&packed, member->bytes, member->length);
    else
        text_append(&packed, member->bytes, member->length);
    if (member->before)
        text_append_string(zip, member->before);
    place->header = zip->length;
    place->crc = build_crc32(member->bytes, member->length) ^ member->crc_flip;
    place->size = member->length + (uint64_t)member->size_off;
    place->stored = packed.length + (uint64_t)member->stored_off;
    bool later = member->descriptor;
    const char *name = member->local_name ? member->local_name : member->name;
    size_t name_length = member->local_name || !member->name_length ? strlen(name) : member->name_length;
    text_append(zip, "PK\3\4", 4);
    build_number(zip, 2, (member->wide ? 45 : 20) ^ member->local_needed_flip);
    build_number(zip, 2, (uint16_t)(member->flags | (later ? 8 : 0)) ^ member->local_flags_flip);
    build_number(zip, 2, member->method ^ member->local_method_flip);
    build_number(zip, 2, BUILD_TIME ^ member->local_time_flip);
    build_number(zip, 2, BUILD_DATE);
    build_number(zip, 4, later ? 0 : place->crc ^ member->local_crc_flip);
    build_number(zip, 4,
                 later          ? 0
                 : member->wide ? UINT32_MAX
                                : place->stored + (uint64_t)member->local_stored_off);
    build_number(zip, 4,
                 later          ? 0
                 : member->wide ? UINT32_MAX
                                : place->size + (uint64_t)member->local_size_off);
    build_number(zip, 2, name_length);
    build_number(zip, 2, member->wide ? 20 : 0);
    text_append(zip, name, name_length);
    if (member->wide)
        build_wide_field(zip, member, place->stored, true);
    text_append(zip, packed.bytes, packed.length);
    if (later) {
        text_append(zip, "PK\7\10", 4);
        build_number(zip, 4, place->crc ^ member->descriptor_crc_flip);
        build_number(zip, 4, place->stored);
        build_number(zip, 4, place->size);
    }
    text_clear(&packed);
}

static inline void build_central(struct text *zip, const struct build_member *member,
                                 const struct built_place *place) {
    size_t name_length = member->name_length ? member->name_length : strlen(member->name);
    bool folder = member->name[name_length - 1] == '/';
    uint32_t mode = member->mode ? member->mode : folder ? 0040755 : 0100644;
    text_append(zip, "PK\1\2", 4);
    build_number(zip, 2, 3 << 8 | 20);
    build_number(zip, 2, member->wide ? 45 : 20);
    build_number(zip, 2, (uint16_t)(member->flags | (member->descriptor ? 8 : 0)));
    build_number(zip, 2, member->method);
    build_number(zip, 2, BUILD_TIME);
    build_number(zip, 2, BUILD_DATE);
    build_number(zip, 4, place->crc);
    build_number(zip, 4, place->stored);
    build_number(zip, 4, member->wide ? UINT32_MAX : place->size);
    build_number(zip, 2, name_length);
    build_number(zip, 2, (member->wide ? 12 : 0) + member->extra_length);
    build_number(zip, 2, member->comment ? strlen(member->comment) : 0);
    build_number(zip, 2, 0);
    build_number(zip, 2, member->internal);
    build_number(zip, 4, mode << 16 | member->dos_attributes);
    build_number(zip, 4, place->header + (uint64_t)member->header_off);
    text_append(zip, member->name, name_length);
    if (member->wide)
        build_wide_field(zip, member, place->stored, false);
    if (member->extra)
        text_append(zip, member->extra, member->extra_length);
    if (member->comment)
        text_append_string(zip, member->comment);
}

static inline void build_end(struct text *zip, const struct build *build, size_t count, uint64_t start) {
    uint64_t size = zip->length - start + (uint64_t)build->around.directory_size_off;
    start += (uint64_t)build->around.directory_offset_off;
    if (build->around.claimed_count) {
        uint64_t record = zip->length;
        text_append(zip, "PK\6\6", 4);
        build_number(zip, 8, 44);
        build_number(zip, 2, 3 << 8 | 45);
        build_number(zip, 2, 45);
        build_number(zip, 4, 0);
        build_number(zip, 4, 0);
        build_number(zip, 8, build->around.claimed_count);
        build_number(zip, 8, build->around.claimed_count);
        build_number(zip, 8, size);
        build_number(zip, 8, start);
        text_append(zip, "PK\6\7", 4);
        build_number(zip, 4, 0);
        build_number(zip, 8, record);
        build_number(zip, 4, 1);
    }
    text_append(zip, "PK\5\6", 4);
    build_number(zip, 2, build->around.disk);
    build_number(zip, 2, build->around.disk);
    build_number(zip, 2, build->around.claimed_count ? 0xffff : count);
    build_number(zip, 2, build->around.claimed_count ? 0xffff : count);
    build_number(zip, 4, build->around.claimed_count ? UINT32_MAX : size);
    build_number(zip, 4, build->around.claimed_count ? UINT32_MAX : start);
    build_number(zip, 2, build->around.comment ? strlen(build->around.comment) : 0);
    if (build->around.comment)
        text_append_string(zip, build->around.comment);
    if (build->around.after)
        text_append_string(zip, build->around.after);
}

/* The zip of BUILD's members as they are. */
static inline void build_zip(const struct build *build, struct text *zip) {
    struct built_place places[BUILD_MEMBERS_MAX] = {0};
    size_t count = 0;
    text_init(zip, 256 << 20);
    if (build->around.before)
        text_append_string(zip, build->around.before);
    for (size_t i = 0; i < build->count; i++) {
        if (build->members[i].only_in_manifest)
            continue;
        if (build->members[i].share_data_of)
            places[i] = places[build->members[i].share_data_of - 1];
        else
            build_local(zip, &build->members[i], &places[i]);
    }
    uint64_t start = zip->length;
    for (size_t i = 0; i < build->count; i++)
        if (!build->members[i].only_in_manifest) {
            build_central(zip, &build->members[i], &places[i]);
            count++;
        }
    build_end(zip, build, count, start);
}

/* ---- Archives */

#define BUILD_RUN                                                                                            \
    "{\"archive_version\":\"1.0\",\"run_id\":\"00000000-0000-4000-8000-000000000000\",\"name\":\"sample\","  \
    "\"status\":\"completed\",\"started\":\"2025-11-20T10:00:00.000+00:00\","                                \
    "\"ended\":\"2025-11-20T10:03:00.000+00:00\",\"experiment\":{\"name\":\"sample\"}}\n"
/* A crate up to the entity of run.json, and all of it. */
#define BUILD_CRATE_HEAD                                                                                     \
    "{\"@context\":[\"https://w3id.org/ro/crate/1.1/context\","                                              \
    "\"https://w3id.org/ro/terms/workflow-run/context\"],\"@graph\":["                                       \
    "{\"@id\":\"ro-crate-metadata.json\",\"@type\":\"CreativeWork\",\"about\":{\"@id\":\"./\"},"             \
    "\"conformsTo\":{\"@id\":\"https://w3id.org/ro/crate/1.1\"}},"                                           \
    "{\"@id\":\"./\",\"@type\":\"Dataset\",\"name\":\"sample\",\"description\":\"A sample.\","               \
    "\"datePublished\":\"2025-11-20\",\"license\":{\"@id\":\"#license\"},"                                   \
    "\"conformsTo\":{\"@id\":\"https://w3id.org/ro/wfrun/process/0.5\"},"                                    \
    "\"hasPart\":[{\"@id\":\"run.json\"}]},"                                                                 \
    "{\"@id\":\"https://w3id.org/ro/wfrun/process/0.5\",\"@type\":\"CreativeWork\","                         \
    "\"name\":\"Process Run Crate\",\"version\":\"0.5\"},"                                                   \
    "{\"@id\":\"#license\",\"@type\":\"CreativeWork\",\"name\":\"none\"},"                                   \
    "{\"@id\":\"#assay\",\"@type\":\"SoftwareApplication\",\"name\":\"assay\",\"version\":\"0.1.0\"},"       \
    "{\"@id\":\"#run\",\"@type\":\"CreateAction\",\"name\":\"run\","                                         \
    "\"instrument\":{\"@id\":\"#assay\"},\"result\":{\"@id\":\"run.json\"}},"
#define BUILD_CRATE BUILD_CRATE_HEAD "{\"@id\":\"run.json\",\"@type\":\"File\",\"name\":\"run\"}]}\n"
#define BUILD_RESULTS "row,duration\n1,0.25\n2,0.5\n"

enum { BUILD_CRATE_MEMBER, BUILD_MANIFEST_MEMBER, BUILD_RUN_MEMBER, BUILD_RESULTS_MEMBER, BUILD_FIRST_FREE };

/* A small, right archive, to be spoilt. */
static inline struct build build_good(void) {
    struct build build = {.count = BUILD_FIRST_FREE};
    const char *names[] = {"ro-crate-metadata.json", "manifest-sha256.txt", "run.json",
                           "results/results.csv"};
    const char *contents[] = {BUILD_CRATE, "", BUILD_RUN, BUILD_RESULTS};
    for (size_t i = 0; i < build.count; i++)
        build.members[i] =
            (struct build_member){.name = names[i], .bytes = contents[i], .length = strlen(contents[i])};
    build.members[BUILD_RESULTS_MEMBER].method = 8;
    return build;
}

static inline struct build_member *build_add(struct build *build, const char *name, const char *content) {
    struct build_member *member = &build->members[build->count++];
    *member = (struct build_member){.name = name, .bytes = content, .length = strlen(content)};
    return member;
}

/* The zip of BUILD with its manifest filled in. */
static inline void build_archive(struct build *build, struct text *zip) {
    struct text manifest;
    char hex[HASH_HEX_SIZE];
    text_init(&manifest, 1 << 20);
    for (size_t i = 0; i < build->count; i++) {
        const struct build_member *member = &build->members[i];
        bool folder = member->name[0] && member->name[strlen(member->name) - 1] == '/';
        if (i == BUILD_MANIFEST_MEMBER || member->not_in_manifest || folder)
            continue;
        hash_bytes(member->bytes, member->length, hex);
        if (member->wrong_hash)
            hex[0] = hex[0] == '0' ? '1' : '0';
        for (int k = 0; k < 1 + member->twice_in_manifest; k++)
            text_printf(&manifest, "%s  %s\n", hex, member->name);
    }
    if (build->around.manifest_end)
        text_append_string(&manifest, build->around.manifest_end);
    struct build_member *member = &build->members[BUILD_MANIFEST_MEMBER];
    member->bytes = build->around.manifest ? build->around.manifest : manifest.bytes;
    member->length = strlen(member->bytes);
    build_zip(build, zip);
    text_clear(&manifest);
    member->bytes = "";
    member->length = 0;
}

#endif
