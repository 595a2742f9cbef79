/*
 * Archives that must be refused, each with its reason and with nothing written. Run with `--write FOLDER`,
 * this program writes them all to FOLDER with reasons.tsv: that is how archive-format/samples/invalid is
 * made, and a test below sees to it that the two do not drift apart.
 */
#include "archive-format/reader.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "tests/test.h"
#include "tests/unit/archive-format/zip-builder.h"

#include <dirent.h>
#include <sys/mman.h>
#include <unistd.h>

struct sample {
    const char *name;
    const char *reason; /* part of the sentence */
    void (*spoil)(struct build *build);
};

#define member_named(build, n, c) build_add((build), (n), (c))

static void escape(struct build *b) {
    member_named(b, "../escaped.txt", "x");
}
static void escape_inside(struct build *b) {
    member_named(b, "results/../../escaped.txt", "x");
}
static void absolute(struct build *b) {
    member_named(b, "/tmp/absolute.txt", "x");
}
static void backslash(struct build *b) {
    member_named(b, "..\\escaped.txt", "x");
}
static void drive(struct build *b) {
    member_named(b, "C:escaped.txt", "x");
}
static void dot_part(struct build *b) {
    member_named(b, "results/./x.txt", "x");
}
static void empty_part(struct build *b) {
    member_named(b, "results//x.txt", "x");
}
static void control_character(struct build *b) {
    member_named(b, "a\nb", "x");
}
static void nul_in_name(struct build *b) {
    struct build_member *m = member_named(b, "a.txt", "x");
    m->name = "a.txt\0.csv";
    m->name_length = 10;
}
static void non_ascii(struct build *b) {
    member_named(b, "r\xc3\xa9sultats.csv", "x");
}
static void blank_in_name(struct build *b) {
    member_named(b, "my results.csv", "x");
}
static void long_name(struct build *b) {
    static char name[600];
    memset(name, 'n', sizeof name - 1);
    member_named(b, name, "x");
}
static void symlink_member(struct build *b) {
    member_named(b, "link", "/etc/passwd")->mode = 0120777;
}
static void set_user_id(struct build *b) {
    member_named(b, "program", "x")->mode = 0104755;
}
static void internal_attributes(struct build *b) {
    member_named(b, "x.csv", "x")->internal = 2;
}
static void symlink_folder(struct build *b) {
    member_named(b, "nodes", "/tmp")->mode = 0120777;
    member_named(b, "nodes/x", "x");
}
static void device(struct build *b) {
    member_named(b, "device", "")->mode = 0020666;
}
static void folder_as_file(struct build *b) {
    member_named(b, "nodes", "")->mode = 0040755;
}
static void duplicate(struct build *b) {
    member_named(b, "results/results.csv", "row,duration\n1,9\n")->not_in_manifest = true;
}
static void case_duplicate(struct build *b) {
    member_named(b, "Results/results.csv", "x");
}
static void case_duplicate_folder(struct build *b) {
    member_named(b, "Results/other.csv", "x");
}
static void file_and_folder(struct build *b) {
    member_named(b, "results", "x");
}
static void encrypted(struct build *b) {
    member_named(b, "secret", "x")->flags = 1;
}
static void encrypted_aes(struct build *b) {
    struct build_member *m = member_named(b, "secret", "x");
    m->extra = "\x01\x99\x07\0\2\0AE\3\0\0";
    m->extra_length = 11;
}
static void method_bzip2(struct build *b) {
    member_named(b, "x.csv", "x")->method = 12;
}
static void unknown_flag(struct build *b) {
    member_named(b, "x.csv", "x")->flags = 1 << 5;
}
static void other_name_field(struct build *b) {
    struct build_member *m = member_named(b, "x.csv", "x");
    m->extra = "\x75\x70\x0a\0\1\0\0\0\0../y\0";
    m->extra_length = 14;
}
static void torn_extra(struct build *b) {
    struct build_member *m = member_named(b, "x.csv", "x");
    m->extra = "\x55\x54\x09\0\1";
    m->extra_length = 5;
}
static void member_comment(struct build *b) {
    member_named(b, "x.csv", "x")->comment = "hello";
}
static void other_local_name(struct build *b) {
    member_named(b, "x.csv", "x")->local_name = "y.csv";
}
static void other_local_crc(struct build *b) {
    member_named(b, "x.csv", "x")->local_crc_flip = 1;
}
static void other_local_size(struct build *b) {
    member_named(b, "x.csv", "x")->local_size_off = 1;
}
static void other_local_stored_size(struct build *b) {
    member_named(b, "x.csv", "x")->local_stored_off = -1;
}
static void other_local_method(struct build *b) {
    member_named(b, "x.csv", "x")->local_method_flip = 8;
}
static void other_local_flags(struct build *b) {
    member_named(b, "x.csv", "x")->local_flags_flip = 1;
}
static void other_local_time(struct build *b) {
    member_named(b, "x.csv", "x")->local_time_flip = 1;
}
static void begins_behind_all(struct build *b) {
    member_named(b, "x.csv", "x")->header_off = INT64_C(1) << 30;
}
static void other_local_version(struct build *b) {
    member_named(b, "x.csv", "x")->local_needed_flip = 1;
}
static void other_descriptor(struct build *b) {
    struct build_member *m = member_named(b, "x.csv", "x");
    m->descriptor = true;
    m->descriptor_crc_flip = 1;
}
static void wrong_crc(struct build *b) {
    b->members[BUILD_RESULTS_MEMBER].crc_flip = 1;
}
static void wrong_hash(struct build *b) {
    b->members[BUILD_RESULTS_MEMBER].wrong_hash = true;
}
static void extra_member(struct build *b) {
    member_named(b, "x.csv", "x")->not_in_manifest = true;
}
static void missing_member(struct build *b) {
    member_named(b, "x.csv", "x")->only_in_manifest = true;
}
static void manifest_twice(struct build *b) {
    b->members[BUILD_RESULTS_MEMBER].twice_in_manifest = true;
}
static void manifest_garbage(struct build *b) {
    b->manifest = "this is not a manifest\n";
}
static void manifest_torn(struct build *b) {
    b->manifest_end = "00000000";
}
static void manifest_upper_case(struct build *b) {
    b->manifest = "E3B0C44298FC1C149AFBF4C8996FB92427AE41E4649B934CA495991B7852B855  run.json\n";
}
static void manifest_long_line(struct build *b) {
    static char line[2048];
    memset(line, 'a', sizeof line - 1);
    b->manifest = line;
}
static void manifest_lists_signature(struct build *b) {
    member_named(b, "manifest-sha256.txt.sig", "x");
}
static void manifest_lists_itself(struct build *b) {
    b->manifest_end =
        "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  manifest-sha256.txt\n";
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
static void set_run(struct build *b, const char *run) {
    b->members[BUILD_RUN_MEMBER].bytes = run;
    b->members[BUILD_RUN_MEMBER].length = strlen(run);
}
static void future_version(struct build *b) {
    set_run(b, "{\"archive_version\":\"2.0\"}");
}
static void past_version(struct build *b) {
    set_run(b, "{\"archive_version\":\"0.9\"}");
}
static void no_version(struct build *b) {
    set_run(b, "{\"version\":\"1.0\"}");
}
static void number_version(struct build *b) {
    set_run(b, "{\"archive_version\":1.0}");
}
static void run_not_json(struct build *b) {
    set_run(b, "{\"archive_version\":\"1.0\",");
}
static void bomb_ratio(struct build *b) {
    struct build_member *m = member_named(b, "zeros", "");
    m->wide = true;
    m->wide_size = UINT64_C(2) << 30;
    m->method = 8;
}
static void bomb_member(struct build *b) {
    struct build_member *m = member_named(b, "zeros", "");
    m->wide = true;
    m->wide_size = (UINT64_C(64) << 30) + 1;
    m->method = 8;
}
static void bomb_total(struct build *b) {
    static const char *const names[] = {"a", "b", "c", "d", "e"};
    for (size_t i = 0; i < 5; i++) {
        struct build_member *m = member_named(b, names[i], "");
        m->wide = true;
        m->wide_size = UINT64_C(60) << 30;
        m->method = 8;
    }
}
static void bomb_entries(struct build *b) {
    b->claimed_count = 300000;
}
static void bomb_overlap(struct build *b) {
    for (int i = 0; i < 3; i++) {
        static const char *const names[] = {"a.csv", "b.csv", "c.csv"};
        struct build_member *m = member_named(b, names[i], BUILD_RESULTS);
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
    struct build_member *m = member_named(b, "zeros", "");
    m->bytes = zeros;
    m->length = sizeof zeros;
    m->packed = packed.bytes;
    m->packed_length = packed.length;
    m->method = 8;
}
static void size_too_large(struct build *b) {
    b->members[BUILD_RESULTS_MEMBER].size_off = 5;
}
static void size_too_small(struct build *b) {
    b->members[BUILD_RESULTS_MEMBER].size_off = -5;
}
static void stored_sizes_differ(struct build *b) {
    member_named(b, "x.csv", "x")->size_off = 5;
}
static void after_packed_data(struct build *b) {
    struct build_member *m = member_named(b, "x.csv", "x");
    m->method = 8;
    m->packed = "\1\1\0\xfe\xffxGARBAGE";
    m->packed_length = 13;
}
static void broken_deflate(struct build *b) {
    struct build_member *m = member_named(b, "x.csv", "x");
    m->method = 8;
    m->packed = "\7\7\7\7\7\7\7\7";
    m->packed_length = 8;
}
static void between_members(struct build *b) {
    member_named(b, "x.csv", "x")->before = "hidden between members";
}
static void before_first(struct build *b) {
    b->before = "#!/bin/sh\necho run me\n";
    b->directory_offset_off = 0;
}
static void after_end(struct build *b) {
    b->after = "appended";
}
static void zip_comment(struct build *b) {
    b->comment = "a comment";
}
static void several_disks(struct build *b) {
    b->disk = 1;
}
static void directory_elsewhere(struct build *b) {
    b->directory_offset_off = 7;
}
static void directory_shorter(struct build *b) {
    b->directory_size_off = -3;
}
static void folder_with_content(struct build *b) {
    member_named(b, "nodes/", "x");
}

static const struct sample samples[] = {
    {"path-escape", "climbs out of its folder by '..'", escape},
    {"path-escape-inside", "climbs out of its folder by '..'", escape_inside},
    {"path-absolute", "is an absolute path", absolute},
    {"path-backslash", "has a backslash", backslash},
    {"path-drive-letter", "begins with a drive letter", drive},
    {"path-dot-part", "has an empty or '.' part", dot_part},
    {"path-empty-part", "has an empty or '.' part", empty_part},
    {"path-control-character", "has a control character", control_character},
    {"path-nul", "has a NUL byte in its name", nul_in_name},
    {"path-non-ascii", "has a byte other than letters, digits", non_ascii},
    {"path-blank", "has a byte other than letters, digits", blank_in_name},
    {"path-too-long", "a member's name has 599 bytes; expected 1 to 512", long_name},
    {"kind-symlink", "is a symbolic link", symlink_member},
    {"kind-set-user-id", "has a set-user-ID, set-group-ID or sticky bit", set_user_id},
    {"kind-internal-attributes", "has internal attributes that are not taken", internal_attributes},
    {"kind-symlink-as-folder", "is a symbolic link", symlink_folder},
    {"kind-device", "is neither a file nor a folder", device},
    {"kind-folder-called-file", "is called a file and marked as a folder", folder_as_file},
    {"kind-folder-with-content", "is a folder with content", folder_with_content},
    {"name-twice", "'results/results.csv' is there twice", duplicate},
    {"name-twice-but-for-case", "differs only in upper and lower case", case_duplicate},
    {"name-folder-twice-but-for-case", "differs only in upper and lower case", case_duplicate_folder},
    {"name-file-and-folder", "is a file and a folder at once", file_and_folder},
    {"encrypted", "is encrypted", encrypted},
    {"encrypted-aes", "is encrypted", encrypted_aes},
    {"method-bzip2", "is packed by a method that is not taken", method_bzip2},
    {"flag-unknown", "has flags that are not taken", unknown_flag},
    {"extra-other-name", "has an extra field that could contradict its name", other_name_field},
    {"extra-torn", "has extra fields that are cut short", torn_extra},
    {"comment-of-member", "a member has a comment", member_comment},
    {"comment-of-zip", "truncated or has bytes after its end", zip_comment},
    {"local-name", "has another name before its data than in the directory", other_local_name},
    {"local-crc", "is described differently before its data", other_local_crc},
    {"local-size", "is described differently before its data", other_local_size},
    {"local-stored-size", "is described differently before its data", other_local_stored_size},
    {"local-method", "is described differently before its data", other_local_method},
    {"local-flags", "is described differently before its data", other_local_flags},
    {"offset-behind-all", "is said to begin where there are no members", begins_behind_all},
    {"local-version-needed", "is described differently before its data", other_local_version},
    {"local-time", "is described differently before its data", other_local_time},
    {"descriptor-crc", "is described differently after its data", other_descriptor},
    {"crc-wrong", "member 'results/results.csv' is damaged", wrong_crc},
    {"hash-wrong", "is not what was sealed: its sha256 differs", wrong_hash},
    {"member-not-in-manifest", "member 'x.csv' is not in the manifest", extra_member},
    {"member-missing", "the manifest names 'x.csv', but there is no such member", missing_member},
    {"manifest-names-twice", "the manifest names 'results/results.csv' twice", manifest_twice},
    {"manifest-names-itself", "the manifest names 'manifest-sha256.txt', but", manifest_lists_itself},
    {"manifest-names-signature", "but neither it nor its signature can be in it", manifest_lists_signature},
    {"manifest-garbage", "line 1 of the manifest is not a sha256", manifest_garbage},
    {"manifest-upper-case", "line 1 of the manifest is not a sha256", manifest_upper_case},
    {"manifest-torn", "line 4 of the manifest has no end", manifest_torn},
    {"manifest-long-line", "line 1 of the manifest has no end", manifest_long_line},
    {"run-missing", "not an assay archive: no run.json in it", no_run},
    {"crate-missing", "not an assay archive: no ro-crate-metadata.json in it", no_crate},
    {"run-not-json", "run.json", run_not_json},
    {"version-future", "the archive is of version 2.0; this assay reads version 1.x", future_version},
    {"version-past", "the archive is of version 0.9; this assay reads version 1.x", past_version},
    {"version-missing", "run.json has the archive_version ''", no_version},
    {"version-a-number", "run.json has the archive_version '1.0'; expected a text", number_version},
    {"bomb-ratio", "the zip is a bomb", bomb_ratio},
    {"bomb-member", "is larger than 64 GiB", bomb_member},
    {"bomb-total", "bytes when unpacked; at most", bomb_total},
    {"bomb-entries", "the zip has 300000 entries; at most 262144 are taken", bomb_entries},
    {"bomb-overlap", "overlaps another", bomb_overlap},
    {"bomb-lying", "unpacks to more than the directory says", bomb_lying},
    {"size-too-large", "member 'results/results.csv' is ", size_too_large},
    {"size-too-small", "member 'results/results.csv' ", size_too_small},
    {"stored-sizes-differ", "is stored, but its two sizes differ", stored_sizes_differ},
    {"after-packed-data", "member 'x.csv' ", after_packed_data},
    {"broken-deflate", "member 'x.csv' is damaged", broken_deflate},
    {"bytes-between-members", "is followed by bytes that belong to no member", between_members},
    {"bytes-before-first", "the zip has bytes before its first member", before_first},
    {"bytes-after-end", "truncated or has bytes after its end", after_end},
    {"several-disks", "the zip is one of several parts", several_disks},
    {"directory-elsewhere", "the zip's directory does not end where its end record begins",
     directory_elsewhere},
    {"directory-shorter", "the zip's directory does not end where its end record begins", directory_shorter},
};
enum { SAMPLE_COUNT = sizeof samples / sizeof *samples };

static void make_sample(const struct sample *sample, struct text *zip) {
    struct build build = build_good();
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

static int open_and_verify(const char *bytes, size_t length, struct failure *failure) {
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
    int r = archive_open_descriptor(descriptor_of(bytes, length), "a.zip", &archive, failure);
    return r < 0 ? r : archive_verify(archive, failure);
}

/* ---- Tests */

static char scratch[] = "/tmp/assay-hostile.XXXXXX";

TEST(good) {
    struct build build = build_good();
    cleanup(text_clear) struct text zip, content;
    text_init(&content, 1000);
    build_archive(&build, &zip);
    struct failure failure = {0};
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
    assert_int_equal(
        archive_open_descriptor(descriptor_of(zip.bytes, zip.length), "a.zip", &archive, &failure), 0);
    assert_int_equal(archive_verify(archive, &failure), 0);
    assert_int_equal(archive_member_count(archive), 4);
    assert_string_equal(archive_run_text(archive, "experiment", "name", NULL), "sample");
    assert_int_equal(archive_read_member(archive, "results/results.csv", &content, &failure), 0);
    assert_string_equal(content.bytes, BUILD_RESULTS);
}

/* Everything that a right archive may have and build_good has not. */
TEST(taken) {
    struct failure failure = {0};
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
    build.claimed_count = build.count;
    build_archive(&build, &zip);
    int r = open_and_verify(zip.bytes, zip.length, &failure);
    if (r < 0)
        print_message("%s\n", failure.text);
    assert_int_equal(r, 0);
}

TEST(samples) {
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        cleanup(text_clear) struct text zip;
        struct failure failure = {0};
        make_sample(&samples[i], &zip);
        int r = open_and_verify(zip.bytes, zip.length, &failure);
        if (r >= 0 || !strstr(failure.place, "a.zip") ||
            (!strstr(failure.text, samples[i].reason) && !strstr(failure.place, samples[i].reason)) ||
            failure.kind != FAILURE_VERIFICATION)
            fail_msg("%s: kind %d, '%s: %s'; expected '%s'", samples[i].name, (int)failure.kind,
                     failure.place, failure.text, samples[i].reason);
    }
}

/* A wrong hash and a lying size are found only by unpacking: extracting must find them before it writes. */
TEST(extract_writes_nothing) {
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        cleanup(text_clear) struct text zip;
        cleanup(archive_close_reader) struct archive_reader *archive = NULL;
        cleanup_free char *folder = text_format("%s/into", scratch);
        struct failure failure = {0};
        make_sample(&samples[i], &zip);
        int r = archive_open_descriptor(descriptor_of(zip.bytes, zip.length), "a.zip", &archive, &failure);
        if (r == 0)
            r = archive_extract(archive, folder, NULL, 0, &failure);
        assert_int_equal(failure.kind, FAILURE_VERIFICATION);
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
        struct failure failure = {0};
        assert_true(open_and_verify(zip.bytes, length, &failure) < 0);
        assert_int_equal(failure.kind, FAILURE_VERIFICATION);
    }
    struct failure failure = {0};
    assert_true(open_and_verify(zip.bytes, 0, &failure) < 0);
    assert_string_equal(failure.text, "not a zip file: empty");
    assert_true(open_and_verify("row,duration\n1,0.5\n2,0.5\n", 25, &failure) < 0);
    assert_string_equal(failure.text, "not a zip file");
    assert_true(open_and_verify(zip.bytes, zip.length - 1, &failure) < 0);
    assert_non_null(strstr(failure.text, "the zip is truncated"));
}

/* Names and contents of all members as one text; the failure if there is one. */
static int read_all(const char *bytes, size_t length, struct text *ret, struct failure *failure) {
    cleanup(archive_close_reader) struct archive_reader *archive = NULL;
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
    struct failure failure = {0};
    text_init(&original, 1 << 20);
    text_init(&found, 1 << 20);
    build_add(&build, "x.csv", "x")->descriptor = true;
    build_archive(&build, &zip);
    assert_int_equal(read_all(zip.bytes, zip.length, &original, &failure), 0);
    size_t taken = 0;
    for (size_t i = 0; i < 8 * zip.length; i++) {
        zip.bytes[i / 8] = (char)(zip.bytes[i / 8] ^ 1 << i % 8);
        failure = (struct failure){0};
        text_reset(&found);
        if (read_all(zip.bytes, zip.length, &found, &failure) == 0) {
            taken++;
            assert_string_equal(found.bytes, original.bytes);
        } else {
            assert_int_equal(failure.kind, FAILURE_VERIFICATION);
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
    if (!source) {
        print_message("ASSAY_SOURCE is not set\n");
        skip();
    }
    cleanup_free char *folder = text_format("%s/archive-format/samples/invalid", source);
    size_t zips = 0;
    for (size_t i = 0; i < SAMPLE_COUNT; i++) {
        cleanup(text_clear) struct text made, found;
        cleanup_free char *path = text_format("%s/%s.zip", folder, samples[i].name);
        struct failure failure = {0};
        make_sample(&samples[i], &made);
        text_init(&found, 1 << 20);
        if (file_read(path, &found, &failure) < 0)
            fail_msg("%s", failure.text);
        assert_int_equal(found.length, made.length);
        assert_memory_equal(found.bytes, made.bytes, made.length);
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
    struct failure failure = {0};
    int r = file_make_folders(folder, &failure);
    for (size_t i = 0; r == 0 && i < SAMPLE_COUNT; i++) {
        cleanup(text_clear) struct text zip;
        cleanup_free char *path = text_format("%s/%s.zip", folder, samples[i].name);
        make_sample(&samples[i], &zip);
        text_printf(&reasons, "%s\t%s\n", samples[i].name, samples[i].reason);
        r = file_replace(path, zip.bytes, zip.length, 0644, &failure);
    }
    if (r == 0)
        r = file_replace(table, reasons.bytes, reasons.length, 0644, &failure);
    if (r < 0)
        fprintf(stderr, "%s\n", failure.text);
    return r < 0;
}

static int make_scratch(void **state) {
    return mkdtemp(scratch) ? 0 : -1;
}

static int remove_scratch(void **state) {
    return file_remove_tree(scratch, NULL);
}

TEST_GROUP(make_scratch, remove_scratch)

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_samples(argv[2]);
    return test_run();
}
