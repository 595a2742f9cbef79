/*
 * Archives that must be refused, each with its reason and with nothing written. Run with `--write FOLDER`,
 * this program writes them all to FOLDER with reasons.tsv: that is how archive-format/samples/invalid is
 * made, and a test below sees to it that the two do not drift apart.
 */
#include "archive-format/reader.h"
#include "tests/test.h"
#include "tests/unit/archive-format/staged-run.h"
#include "tests/unit/archive-format/zip-builder.h"

#include <dirent.h>
#include <sys/mman.h>

/* What is wrong with an archive that is right otherwise. */
struct sample {
    const char *name;
    const char *reason;          /* part of the sentence */
    struct build_member member;  /* one more, if it has a name; its content is "x" where there is none */
    struct build_member results; /* what is not so of the results */
    struct build_around around;  /* and of what is around the members */
    const char *run;             /* another run.json */
    const char *crate;           /* another ro-crate-metadata.json */
    const char *package;         /* a datapackage.json */
    void (*spoil)(struct build *build);
};

static void long_name(struct build *b) {
    static char name[600];
    memset(name, 'n', sizeof name - 1);
    build_add(b, name, "x");
}
static void symlink_folder(struct build *b) {
    build_add(b, "nodes", "/tmp")->mode = 0120777;
    build_add(b, "nodes/x", "x");
}
static void manifest_long_line(struct build *b) {
    static char line[2048];
    memset(line, 'a', sizeof line - 1);
    b->around.manifest = line;
}
static void remove_member(struct build *b, size_t index) {
    b->count--;
    memmove(&b->members[index], &b->members[index + 1], (b->count - index) * sizeof *b->members);
}
static void no_run(struct build *b) {
    remove_member(b, BUILD_RUN_MEMBER);
}
static void no_crate(struct build *b) {
    /* The manifest stays the second member for the builder: another file takes the first place. */
    b->members[BUILD_CRATE_MEMBER].name = "other.json";
}
static void bomb_total(struct build *b) {
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < 5; i++) {
        struct build_member *m = build_add(b, names[i], "");
        m->wide = true;
        m->wide_size = UINT64_C(60) << 30;
        m->method = 8;
    }
}
static void bomb_overlap(struct build *b) {
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"a.csv", "b.csv", "c.csv"};
        struct build_member *m = build_add(b, names[i], BUILD_RESULTS);
        m->method = 8;
        m->share_data_of = BUILD_RESULTS_MEMBER + 1;
    }
}
/* The directory says 1000 bytes, the data unpack to 2,580,001. */
static void bomb_lying(struct build *b) {
    static struct text packed;
    static char zeros[1000];
    if (!packed.capacity) {
        text_init(&packed, 1 << 20);
        build_deflate_zeros(&packed, 10000);
    }
    struct build_member *m = build_add(b, "zeros", "");
    m->bytes = zeros;
    m->length = sizeof zeros;
    m->packed = packed.bytes;
    m->packed_length = packed.length;
    m->method = 8;
}

/* An archive instead of the members of one, and one in a folder. */
static void nested(struct build *b) {
    static struct text inner;
    struct build good = build_good();
    if (!inner.capacity)
        build_archive(&good, &inner);
    b->count = 0;
    build_add(b, "inner.zip", "")->bytes = inner.bytes;
    b->members[0].length = inner.length;
    build_add(b, "README.txt", "see inner.zip");
}
static void in_a_folder(struct build *b) {
    static const char *const names[] = {"x/ro-crate-metadata.json", "x/manifest-sha256.txt", "x/run.json",
                                        "x/results/results.csv"};
    for (size_t i = 0; i < b->count; i++)
        b->members[i].name = names[i];
}

enum { DEPTH = 1000 };
/* 1,000 lists in each other; a member FIRST before them. */
static const char *deep(const char *first) {
    static char texts[4][2 * DEPTH + 200];
    static size_t next;
    char *text = texts[next++ % 4], *at = stpcpy(text, first);
    for (size_t i = 0; i < 2 * DEPTH; i++)
        *at++ = i < DEPTH ? '[' : ']';
    memcpy(at, "}", 2);
    return text;
}
static void replace(struct build_member *member, const char *bytes) {
    member->bytes = bytes;
    member->length = strlen(bytes);
}
static void deep_run(struct build *b) {
    replace(&b->members[BUILD_RUN_MEMBER], deep("{\"archive_version\":\"1.0\",\"run_id\":"));
}
static void deep_crate(struct build *b) {
    replace(&b->members[BUILD_CRATE_MEMBER], deep("{\"@context\":[],\"@graph\":"));
}
static void deep_package(struct build *b) {
    build_add(b, "datapackage.json", deep("{\"resources\":"));
}
static void folders_a_and_b(struct build *b) {
    build_add(b, "a/", "");
    build_add(b, "b/", "");
}

#define CRATE(entities) BUILD_CRATE_HEAD entities "]}\n"
#define FOLDER(id, parts)                                                                                    \
    "{\"@id\":\"" id "\",\"@type\":\"Dataset\",\"name\":\"x\",\"description\":\"x\",\"hasPart\":[" parts "]" \
    "}"
#define PACKAGE(fields)                                                                                      \
    "{\"resources\":[{\"path\":\"results/results.csv\",\"schema\":{\"fields\":[" fields "]}}]}"
#define FIELD(name, type) "{\"name\":\"" name "\",\"type\":\"" type "\"}"

static const struct sample samples[] = {
    {"path-escape", "climbs out of its folder by '..'", .member = {.name = "../escaped.txt"}},
    {"path-escape-inside", "climbs out of its folder by '..'",
     .member = {.name = "results/../../escaped.txt"}},
    {"path-absolute", "is an absolute path", .member = {.name = "/tmp/absolute.txt"}},
    {"path-backslash", "has a backslash", .member = {.name = "..\\escaped.txt"}},
    {"path-drive-letter", "begins with a drive letter", .member = {.name = "C:escaped.txt"}},
    {"path-dot-part", "has an empty or '.' part", .member = {.name = "results/./x.txt"}},
    {"path-empty-part", "has an empty or '.' part", .member = {.name = "results//x.txt"}},
    {"path-control-character", "has a control character", .member = {.name = "a\nb"}},
    {"path-nul", "has a NUL byte in its name", .member = {.name = "a.txt\0.csv", .name_length = 10}},
    {"path-non-ascii", "has a byte other than letters, digits", .member = {.name = "r\xc3\xa9sultats.csv"}},
    {"path-blank", "has a byte other than letters, digits", .member = {.name = "my results.csv"}},
    {"path-too-long", "a member's name has 599 bytes; expected 1 to 512", .spoil = long_name},
    {"kind-symlink", "is a symbolic link",
     .member = {.name = "link", .bytes = "/etc/passwd", .mode = 0120777}},
    {"kind-set-user-id", "has a set-user-ID, set-group-ID or sticky bit",
     .member = {.name = "program", .mode = 0104755}},
    {"kind-internal-attributes", "has internal attributes that are not taken",
     .member = {.name = "x.csv", .internal = 2}},
    {"kind-symlink-as-folder", "is a symbolic link", .spoil = symlink_folder},
    {"kind-device", "is neither a file nor a folder",
     .member = {.name = "device", .bytes = "", .mode = 0020666}},
    {"kind-folder-called-file", "is called a file and marked as a folder",
     .member = {.name = "nodes", .bytes = "", .mode = 0040755}},
    {"kind-folder-with-content", "is a folder with content", .member = {.name = "nodes/"}},
    {"name-twice", "'results/results.csv' is there twice",
     .member = {.name = "results/results.csv", .bytes = "row,duration\n1,9\n", .not_in_manifest = true}},
    {"name-twice-but-for-case", "differs only in upper and lower case",
     .member = {.name = "Results/results.csv"}},
    {"name-folder-twice-but-for-case", "differs only in upper and lower case",
     .member = {.name = "Results/other.csv"}},
    {"name-file-and-folder", "is a file and a folder at once", .member = {.name = "results"}},
    {"encrypted", "is encrypted", .member = {.name = "secret", .flags = 1}},
    {"encrypted-aes", "is encrypted",
     .member = {.name = "secret", .extra = "\x01\x99\x07\0\2\0AE\3\0\0", .extra_length = 11}},
    {"method-bzip2", "is packed by a method that is not taken", .member = {.name = "x.csv", .method = 12}},
    {"flag-unknown", "has flags that are not taken", .member = {.name = "x.csv", .flags = 1 << 5}},
    {"extra-other-name", "has an extra field that could contradict its name",
     .member = {.name = "x.csv", .extra = "\x75\x70\x0a\0\1\0\0\0\0../y\0", .extra_length = 14}},
    {"extra-torn", "has extra fields that are cut short",
     .member = {.name = "x.csv", .extra = "\x55\x54\x09\0\1", .extra_length = 5}},
    {"comment-of-member", "a member has a comment", .member = {.name = "x.csv", .comment = "hello"}},
    {"comment-of-zip", "truncated or has bytes after its end", .around = {.comment = "a comment"}},
    {"local-name", "differs from the one in the directory",
     .member = {.name = "x.csv", .local_name = "y.csv"}},
    {"local-crc", "is described differently before its data",
     .member = {.name = "x.csv", .local_crc_flip = 1}},
    {"local-size", "is described differently before its data",
     .member = {.name = "x.csv", .local_size_off = 1}},
    {"local-stored-size", "is described differently before its data",
     .member = {.name = "x.csv", .local_stored_off = -1}},
    {"local-method", "is described differently before its data",
     .member = {.name = "x.csv", .local_method_flip = 8}},
    {"local-flags", "is described differently before its data",
     .member = {.name = "x.csv", .local_flags_flip = 1}},
    {"offset-behind-all", "is said to begin where there are no members",
     .member = {.name = "x.csv", .header_off = INT64_C(1) << 30}},
    {"local-version-needed", "is described differently before its data",
     .member = {.name = "x.csv", .local_needed_flip = 1}},
    {"local-time", "is described differently before its data",
     .member = {.name = "x.csv", .local_time_flip = 1}},
    {"descriptor-crc", "is described differently after its data",
     .member = {.name = "x.csv", .descriptor = true, .descriptor_crc_flip = 1}},
    {"crc-wrong", "member 'results/results.csv' is damaged", .results = {.crc_flip = 1}},
    {"hash-wrong", "is not what was sealed: its sha256 differs", .results = {.wrong_hash = true}},
    {"member-not-in-manifest", "member 'x.csv' is not in the manifest",
     .member = {.name = "x.csv", .not_in_manifest = true}},
    {"member-missing", "the manifest names 'x.csv', but there is no such member",
     .member = {.name = "x.csv", .only_in_manifest = true}},
    {"manifest-names-twice", "the manifest names 'results/results.csv' twice",
     .results = {.twice_in_manifest = true}},
    {"manifest-names-itself", "the manifest names 'manifest-sha256.txt', but",
     .around =
         {.manifest_end =
              "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  manifest-sha256.txt\n"}},
    {"manifest-names-signature", "but neither it nor its signature can be in it",
     .member = {.name = "manifest-sha256.txt.sig"}},
    {"manifest-garbage", "line 1 of the manifest is not a sha256",
     .around = {.manifest = "this is not a manifest\n"}},
    {"manifest-upper-case", "line 1 of the manifest is not a sha256",
     .around = {.manifest = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855  run.json\n"}},
    {"manifest-torn", "line 4 of the manifest has no end", .around = {.manifest_end = "00000000"}},
    {"manifest-long-line", "line 1 of the manifest has no end", .spoil = manifest_long_line},
    {"run-missing", "not an assay archive: no run.json in it", .spoil = no_run},
    {"crate-missing", "not an assay archive: no ro-crate-metadata.json in it", .spoil = no_crate},
    {"run-not-json", "run.json", .run = "{\"archive_version\":\"1.0\","},
    {"version-future", "the archive is of version 2.0; this assay reads version 1.x",
     .run = "{\"archive_version\":\"2.0\"}"},
    {"version-past", "the archive is of version 0.9; this assay reads version 1.x",
     .run = "{\"archive_version\":\"0.9\"}"},
    {"version-missing", "run.json has the archive_version ''", .run = "{\"version\":\"1.0\"}"},
    {"version-a-number", "run.json has the archive_version '1.0'; expected a text",
     .run = "{\"archive_version\":1.0}"},
    {"bomb-ratio", "the zip is a bomb",
     .member = {.name = "zeros", .bytes = "", .wide = true, .wide_size = UINT64_C(2) << 30, .method = 8}},
    {"bomb-member", "is larger than 64 GiB",
     .member =
         {.name = "zeros", .bytes = "", .wide = true, .wide_size = (UINT64_C(64) << 30) + 1, .method = 8}},
    {"bomb-total", "bytes when unpacked; at most", .spoil = bomb_total},
    {"bomb-entries", "the zip has 300000 entries; at most 262144 are taken",
     .around = {.claimed_count = 300000}},
    {"bomb-overlap", "overlaps another", .spoil = bomb_overlap},
    {"bomb-lying", "unpacks to more than the directory says", .spoil = bomb_lying},
    {"size-too-large", "member 'results/results.csv' is ", .results = {.size_off = 5}},
    {"size-too-small", "member 'results/results.csv' ", .results = {.size_off = -5}},
    {"stored-sizes-differ", "is stored, but its two sizes differ",
     .member = {.name = "x.csv", .size_off = 5}},
    {"after-packed-data", "member 'x.csv' ",
     .member = {.name = "x.csv", .method = 8, .packed = "\1\1\0\xfe\xffxGARBAGE", .packed_length = 13}},
    {"broken-deflate", "member 'x.csv' is damaged",
     .member = {.name = "x.csv", .method = 8, .packed = "\7\7\7\7\7\7\7\7", .packed_length = 8}},
    {"bytes-between-members", "bytes that are part of no member",
     .member = {.name = "x.csv", .before = "hidden between members"}},
    {"bytes-before-first", "the zip has bytes before its first member",
     .around = {.before = "#!/bin/sh\necho run me\n"}},
    {"bytes-after-end", "truncated or has bytes after its end", .around = {.after = "appended"}},
    {"several-disks", "the zip is one of several parts", .around = {.disk = 1}},
    {"directory-elsewhere", "the zip's directory does not end where its end record begins",
     .around = {.directory_offset_off = 7}},
    {"nested", "not an assay archive: no run.json in it", .spoil = nested},
    {"nested-in-folder", "not an assay archive: no run.json in it", .spoil = in_a_folder},
    {"json-deep-run", "nested deeper than", .spoil = deep_run},
    {"json-deep-crate", "nested deeper than", .spoil = deep_crate},
    {"json-deep-package", "nested deeper than", .spoil = deep_package},
    {"crate-not-json", "ro-crate-metadata.json", .crate = "{\"@context\":"},
    {"crate-empty", "'@graph' has no entity 'ro-crate-metadata.json'",
     .crate =
         "{\"@context\":[\"https://w3id.org/ro/crate/1.1/context\",\"https://w3id.org/ro/terms/workflow-run/"
         "context\"],\"@graph\":[]}"},
    {"crate-cyclic", "the entity 'run.json' is no part of './' by hasPart, or has itself as a part",
     .crate = CRATE("{\"@id\":\"run.json\",\"@type\":\"File\",\"hasPart\":{\"@id\":\"run.json\"}}")},
    {"crate-cyclic-folders", "has itself as a part",
     .crate = CRATE("{\"@id\":\"run.json\",\"@type\":\"File\"}," FOLDER("a/", "{\"@id\":\"b/\"}") "," FOLDER(
         "b/", "{\"@id\":\"a/\"}")),
     .spoil = folders_a_and_b},
    {"crate-of-other-files", "the entity 'escaped.txt' is no file of the archive",
     .crate =
         CRATE("{\"@id\":\"run.json\",\"@type\":\"File\"},{\"@id\":\"escaped.txt\",\"@type\":\"File\"}")},
    {"crate-escape", "the entity '../escaped.txt' is no file of the archive",
     .crate =
         CRATE("{\"@id\":\"run.json\",\"@type\":\"File\"},{\"@id\":\"../escaped.txt\",\"@type\":\"File\"}")},
    {"crate-lying-size", "has the contentSize 7; the file has",
     .crate = CRATE("{\"@id\":\"run.json\",\"@type\":\"File\",\"contentSize\":\"7\"}")},
    {"crate-lying-hash", "has another sha256 than the manifest",
     .crate = CRATE("{\"@id\":\"run.json\",\"@type\":\"File\",\"sha256\":\"7\"}")},
    {"table-missing", "describes the table 'x.csv', which is not in the archive",
     .package = "{\"resources\":[{\"path\":\"x.csv\",\"schema\":{\"fields\":[" FIELD("a", "any") "]}}]}"},
    {"table-escape", "describes the table '../../etc/passwd', which is not in the archive",
     .package =
         "{\"resources\":[{\"path\":\"../../etc/passwd\",\"schema\":{\"fields\":[" FIELD("a", "any") "]}}]}"},
    {"table-twice", "described twice",
     .package = "{\"resources\":[{\"path\":\"results/results.csv\",\"schema\":{\"fields\":[" FIELD(
         "row", "integer") "," FIELD("duration", "number") "]}},{\"path\":\"results/"
                                                           "results.csv\",\"schema\":{\"fields\":[" FIELD(
                                                               "a", "any") "]}}]}"},
    {"table-columns", "the table has 2 columns; its description has 1",
     .package = PACKAGE(FIELD("row", "integer"))},
    {"table-names", "column 2 is called 'duration'; its description says 'time'",
     .package = PACKAGE(FIELD("row", "integer") "," FIELD("time", "number"))},
    {"table-types", "'0.25' in column 'duration' is no integer, which its description says it is",
     .package = PACKAGE(FIELD("row", "integer") "," FIELD("duration", "integer"))},
    {"package-without-tables", "there are no resources; expected a list of tables", .package = "{}"},
    {"directory-shorter", "the zip's directory does not end where its end record begins",
     .around = {.directory_size_off = -3}},
};
enum { SAMPLE_COUNT = sizeof samples / sizeof *samples };

static void make_sample(const struct sample *sample, struct text *zip) {
    struct build build = build_good();
    struct build_member *results = &build.members[BUILD_RESULTS_MEMBER],
                        *run = &build.members[BUILD_RUN_MEMBER];
    const struct build_member good = *results;
    *results = sample->results;
    results->name = good.name;
    results->bytes = good.bytes;
    results->length = good.length;
    results->method = good.method;
    build.around = sample->around;
    if (sample->crate)
        replace(&build.members[BUILD_CRATE_MEMBER], sample->crate);
    if (sample->package)
        build_add(&build, "datapackage.json", sample->package);
    if (sample->run)
        *run = (struct build_member){.name = run->name, .bytes = sample->run, .length = strlen(sample->run)};
    if (sample->member.name) {
        struct build_member *member = build_add(&build, sample->member.name, "x");
        *member = sample->member;
        member->bytes = member->bytes ? member->bytes : "x";
        member->length = strlen(member->bytes);
    }
    if (sample->spoil)
        sample->spoil(&build);
    build_archive(&build, zip);
}

/* ---- Opening bytes */

static int descriptor_of(const char *bytes, size_t length) {
    int descriptor = memfd_create("archive", MFD_CLOEXEC);
    assert_true(descriptor >= 0);
    assert_int_equal(file_write_all(descriptor, bytes, length), 0);
    return descriptor;
}

static int open_and_verify(const char *bytes, size_t length) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    int r = archive_open_descriptor(descriptor_of(bytes, length), "a.zip", &archive, &test_failure);
    return r < 0 ? r : archive_check(archive, &test_failure);
}

/* ---- Tests */

TEST(good) {
    struct build build = build_good();
    cleanup(text_clear) struct text zip, content;
    text_init(&content, 1000);
    build_archive(&build, &zip);
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    assert_ok(
        archive_open_descriptor(descriptor_of(zip.bytes, zip.length), "a.zip", &archive, &test_failure));
    assert_ok(archive_check(archive, &test_failure));
    assert_int_equal(archive_member_count(archive), 4);
    assert_string_equal(archive_run(archive)->experiment.name, "sample");
    assert_ok(archive_read_member(archive, "results/results.csv", &content, &test_failure));
    assert_string_equal(content.bytes, BUILD_RESULTS);
}

/* Everything that a right archive may have and build_good has not. */
TEST(taken) {
    struct build build = build_good();
    cleanup(text_clear) struct text zip, packed;
    static char zeros[258 * 100 + 1];
    text_init(&packed, 10000);
    build_deflate_zeros(&packed, 100);
    build_add(&build, "nodes/", "");
    build_add(&build, "nodes/n-1.site.example/facts.json", "{}")->descriptor = true;
    build_add(&build, "empty", "");
    struct build_member *m = build_add(&build, "zeros", "");
    m->bytes = zeros;
    m->length = sizeof zeros;
    m->packed = packed.bytes;
    m->packed_length = packed.length;
    m->method = 8;
    m->wide = true;
    m->wide_size = sizeof zeros;
    build_add(&build, "unknown-extra", "x")->extra = "\x55\x54\x05\0\1\0\0\0\0";
    build.members[build.count - 1].extra_length = 9;
    build_add(&build, "manifest-sha256.txt.sig", "signature")->not_in_manifest = true;
    build.around.claimed_count = build.count;
    build_archive(&build, &zip);
    assert_ok(open_and_verify(zip.bytes, zip.length));
}

/* Values that a table may and may not have, by their declared types. */
TEST(types_of_values) {
    static const struct {
        const char *type, *value;
        bool taken;
    } cases[] = {
        {"integer", "12", true},
        {"integer", "-12", true},
        {"integer", "", true},
        {"integer", "1.0", false},
        {"integer", "1e3", false},
        {"integer", "-", false},
        {"number", "12", true},
        {"number", "-1.5e-3", true},
        {"number", ".5", true},
        {"number", "5.", true},
        {"number", "NaN", true},
        {"number", "-INF", true},
        {"number", "1e", false},
        {"number", ".", false},
        {"number", "0x1p3", false},
        {"number", "1,5", false},
        {"number", "nan", false},
        {"boolean", "true", true},
        {"boolean", "yes", false},
        {"string", "x", true},
        {"geopoint", "x", true},
        {"datetime", "2026-11-20T10:02:03.123456789Z", true},
        {"datetime", "2026-11-20T10:02:03+01:00", true},
        {"datetime", "2026-11-20T10:02:03", false},
        {"datetime", "1763632800123000000", false},
        {"datetime", "2026-11-20T10:02:03.000000000000000000000000000000000000000Z", false},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct build build = build_good();
        cleanup(text_clear) struct text zip;
        cleanup_free char *package = text_format(PACKAGE(FIELD("row", "integer") "," FIELD("x", "%s")),
                                                 cases[i].type),
                          *table = text_format("row,x\n1,\"%s\"\n", cases[i].value);
        replace(&build.members[BUILD_RESULTS_MEMBER], table);
        build_add(&build, "datapackage.json", package);
        build_archive(&build, &zip);
        if ((open_and_verify(zip.bytes, zip.length) == 0) != cases[i].taken)
            fail_msg("%s '%s'", cases[i].type, cases[i].value);
    }
}

TEST(samples) {
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        cleanup(text_clear) struct text zip;
        make_sample(&samples[i], &zip);
        int r = open_and_verify(zip.bytes, zip.length);
        if (r >= 0 || !strstr(test_failure.place, "a.zip") ||
            (!strstr(test_failure.text, samples[i].reason) &&
             !strstr(test_failure.place, samples[i].reason)) ||
            test_failure.kind != FAILURE_VERIFICATION)
            fail_msg("%s: kind %d, '%s: %s'; expected '%s'", samples[i].name, (int)test_failure.kind,
                     test_failure.place, test_failure.text, samples[i].reason);
    }
}

/* A wrong hash and a lying size are found only by unpacking: extracting must find them before it writes. */
TEST(extract_writes_nothing) {
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        cleanup(text_clear) struct text zip;
        cleanup(archive_cleanup) struct archive_reader *archive = NULL;
        const char *folder = test_path("into");
        make_sample(&samples[i], &zip);
        int r =
            archive_open_descriptor(descriptor_of(zip.bytes, zip.length), "a.zip", &archive, &test_failure);
        if (r == 0)
            r = archive_extract(archive, folder, NULL, 0, &test_failure);
        assert_int_equal(test_failure.kind, FAILURE_VERIFICATION);
        assert_true(r < 0 && !file_exists(folder));
    }
}

TEST(truncated) {
    struct build build = build_good();
    cleanup(text_clear) struct text zip;
    build_archive(&build, &zip);
    uint64_t random = 42;
    for (size_t i = 0; i < 250; i++) {
        random = random * UINT64_C(6364136223846793005) + 1442695040888963407u;
        size_t length = i < 200 ? zip.length - 1 - i : (size_t)((random >> 33) % zip.length);
        assert_true(open_and_verify(zip.bytes, length) < 0);
        assert_int_equal(test_failure.kind, FAILURE_VERIFICATION);
    }
    assert_true(open_and_verify(zip.bytes, 0) < 0);
    assert_string_equal(test_failure.text, "not a zip file: empty");
    assert_true(open_and_verify("row,duration\n1,0.5\n2,0.5\n", 25) < 0);
    assert_string_equal(test_failure.text, "not a zip file");
    assert_true(open_and_verify(zip.bytes, zip.length - 1) < 0);
    assert_says(test_failure.text, "the zip is truncated");
}

/* A sealed archive, cut at every KiB: refused, and nothing is written. */
TEST(truncated_at_every_kibibyte) {
    const char *target = test_path("whole.zip"), *folder = test_path("into");
    const struct archive_description description = describe();
    char sha256[HASH_HEX_SIZE], noise[40000];
    cleanup(text_clear) struct text zip;
    for (size_t i = 0; i < sizeof noise - 1; i++)
        noise[i] = (char)('0' + (int)(10 * test_random()));
    noise[sizeof noise - 1] = '\0';
    const char *staging = stage("whole");
    put("whole", "results/raw/noise", noise);
    assert_ok(archive_seal(staging, target, &description, sha256, &test_failure));
    text_init(&zip, 1 << 20);
    assert_ok(file_read(target, &zip, &test_failure));
    assert_ok(open_and_verify(zip.bytes, zip.length));
    size_t cuts = 0;
    for (size_t length = 0; length < zip.length; length += 1024, cuts++) {
        cleanup(archive_cleanup) struct archive_reader *archive = NULL;
        test_forget();
        int r = archive_open_descriptor(descriptor_of(zip.bytes, length), "a.zip", &archive, &test_failure);
        r = r < 0 ? r : archive_extract(archive, folder, NULL, 0, &test_failure);
        assert_true(r < 0 && !file_exists(folder));
        assert_int_equal(test_failure.kind, FAILURE_VERIFICATION);
    }
    assert_true(cuts > 20);
}

/* Names and contents of all members as one text; the failure if there is one. */
static int read_all(const char *bytes, size_t length, struct text *ret, struct failure *failure) {
    cleanup(archive_cleanup) struct archive_reader *archive = NULL;
    int r = archive_open_descriptor(descriptor_of(bytes, length), "a.zip", &archive, failure);
    for (size_t i = 0; r == 0 && i < archive_member_count(archive); i++) {
        text_printf(ret, "%s %ju\n", archive_member_name(archive, i),
                    (uintmax_t)archive_member_size(archive, i));
        r = archive_read_member(archive, archive_member_name(archive, i), ret, failure);
    }
    return r;
}

/* Flips each bit: either it is refused, or every member has the name and the content that it had. What is not
 * refused is then only what no reader uses: the version of what made it, the hint that it is text,
 * permissions. */
TEST(flipped) {
    struct build build = build_good();
    cleanup(text_clear) struct text zip, original, found;
    text_init(&original, 1 << 20);
    text_init(&found, 1 << 20);
    build_add(&build, "x.csv", "x")->descriptor = true;
    build_archive(&build, &zip);
    assert_ok(read_all(zip.bytes, zip.length, &original, &test_failure));
    size_t taken = 0;
    for (size_t i = 0; i < 8 * zip.length; i++) {
        zip.bytes[i / 8] = (char)(zip.bytes[i / 8] ^ 1 << i % 8);
        text_reset(&found);
        if (read_all(zip.bytes, zip.length, &found, &test_failure) == 0) {
            taken++;
            assert_string_equal(found.bytes, original.bytes);
        } else {
            assert_int_equal(test_failure.kind, FAILURE_VERIFICATION);
        }
        zip.bytes[i / 8] = (char)(zip.bytes[i / 8] ^ 1 << i % 8);
    }
    print_message("# %zu of %zu flipped bits taken, with the same names and contents\n", taken,
                  8 * zip.length);
    /* Bits of a member, and of the manifest, that may go: the version that made it 16, the hint that it is
     * text 1, permissions 9, no type 2, attributes of DOS 16. */
    print_message("# %zu members\n", build.count);
    assert_true(taken <= (build.count + 1) * (16 + 1 + 9 + 2 + 16));
}

TEST(samples_are_committed) {
    const char *source = getenv("ASSAY_SOURCE");
    if (!source)
        test_skip("ASSAY_SOURCE is not set");
    cleanup_free char *folder = text_format("%s/archive-format/samples/invalid", source);
    size_t zips = 0;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        cleanup(text_clear) struct text made;
        size_t length;
        const char *found = test_read(test_formatted("%s/%s.zip", folder, samples[i].name), &length);
        make_sample(&samples[i], &made);
        assert_int_equal(length, made.length);
        assert_memory_equal(found, made.bytes, made.length);
    }
    DIR *names = opendir(folder);
    assert_non_null(names);
    for (struct dirent *name; (name = readdir(names));)
        zips += strstr(name->d_name, ".zip") != NULL;
    closedir(names);
    assert_int_equal(zips, SAMPLE_COUNT);
}

static int write_samples(const char *folder) {
    cleanup(text_clear) struct text reasons;
    cleanup_free char *table = text_format("%s/reasons.tsv", folder);
    text_init(&reasons, 1 << 20);
    text_append_string(&reasons, "sample\tpart of the reason\n");
    int r = file_make_folders(folder, &test_failure);
    for (size_t i = 0; r == 0 && i < SAMPLE_COUNT; i++) {
        cleanup(text_clear) struct text zip;
        cleanup_free char *path = text_format("%s/%s.zip", folder, samples[i].name);
        make_sample(&samples[i], &zip);
        text_printf(&reasons, "%s\t%s\n", samples[i].name, samples[i].reason);
        r = file_replace(path, zip.bytes, zip.length, 0644, &test_failure);
    }
    if (r == 0)
        r = file_replace(table, reasons.bytes, reasons.length, 0644, &test_failure);
    if (r < 0)
        fprintf(stderr, "%s\n", test_failure.text);
    return r < 0;
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_samples(argv[2]);
    return test_run();
}
