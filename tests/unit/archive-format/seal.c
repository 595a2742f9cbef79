/* Sealing a staging folder and reading it back; and what is left when it fails at any byte. */
#include "archive-format/reader.h"
#include "engine/documents/csv.h"
#include "tests/unit/archive-format/staged-run.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

static void seal(const char *staging, const char *target, char sha256[static HASH_HEX_SIZE]) {
    struct archive_description description = describe();
    assert_ok(archive_seal(staging, target, &description, sha256, &test_failure));
}

static struct archive_reader *open_archive(const char *path) {
    struct archive_reader *archive = NULL;
    assert_ok(archive_open(path, &archive, &test_failure));
    return archive;
}

static void expect_failure(const char *staging, const char *target, const char *reason) {
    struct archive_description description = describe();
    char sha256[HASH_HEX_SIZE] = "untouched";
    assert_true(archive_seal(staging, target, &description, sha256, &test_failure) < 0);
    assert_says(test_failure.text, reason);
    assert_string_equal(sha256, "untouched");
    cleanup_free char *part = text_format("%s.part", target);
    assert_false(file_exists(part));
}

/* ---- What is sealed */

TEST(round_trip) {
    const char *staging = stage("round"), *target = test_path("round.zip"), *into = test_path("round.out");
    char sha256[HASH_HEX_SIZE], found[HASH_HEX_SIZE];
    put("round", ".run.json.123.part", "what a killed process left");
    put("round", "results/.x.1.part", "likewise");
    put("round", ".name.part", "not so");
    seal(staging, target, sha256);
    assert_false(file_exists(test_path("round/.run.json.123.part")));
    assert_false(file_exists(test_path("round/results/.x.1.part")));
    assert_true(file_exists(test_path("round/.name.part")));
    assert_ok(hash_file(target, found, NULL, &test_failure));
    assert_string_equal(sha256, found);
    cleanup(archive_cleanup) struct archive_reader *archive = open_archive(target);
    assert_ok(archive_verify(archive, &test_failure));
    assert_string_equal(archive_member_name(archive, 0), "ro-crate-metadata.json");
    assert_string_equal(archive_member_name(archive, 1), "manifest-sha256.txt");
    assert_string_equal(archive_member_name(archive, 2), "run.json");
    assert_string_equal(archive_run(archive)->seed, "18446744073709551615");
    assert_string_equal(archive_run(archive)->model->method, "linear");
    uint64_t bytes;
    assert_true(archive_find(archive, "campaign.yaml", &bytes));
    assert_int_equal(bytes, sizeof staged_campaign - 1);
    assert_false(archive_find(archive, "Campaign.yaml", NULL));
    assert_false(archive_find(archive, "results", NULL));
    /* What comes out is what was staged. */
    assert_ok(archive_extract(archive, into, NULL, 0, &test_failure));
    assert_int_equal(archive_member_count(archive), STAGED_FILES + 4);
    for (size_t i = 0; i < archive_member_count(archive); i++) {
        cleanup_free char *before = file_join(staging, archive_member_name(archive, i));
        cleanup_free char *extracted = file_join(into, archive_member_name(archive, i));
        char hashes[2][HASH_HEX_SIZE];
        assert_ok(hash_file(before, hashes[0], NULL, &test_failure));
        assert_ok(hash_file(extracted, hashes[1], NULL, &test_failure));
        assert_string_equal(hashes[0], hashes[1]);
        const char *name = archive_member_name(archive, i), *sealed = archive_member_sha256(archive, i);
        assert_true(strcmp(name, "manifest-sha256.txt") == 0 || strcmp(sealed, hashes[1]) == 0);
        /* A member of a few bytes is stored: to deflate it takes time and gains none. */
        if (strcmp(name, "results/raw/1/stdout") == 0)
            assert_int_equal(archive_member_stored_size(archive, i), strlen("hello\n"));
        if (strcmp(name, "run.json") == 0)
            assert_true(archive_member_stored_size(archive, i) < sizeof run_json - 1);
    }
}

TEST(same_bytes_everywhere) {
    static const char *const zones[] = {"UTC", "Pacific/Kiritimati", "America/St_Johns",
                                        "CET-1CEST,M3.5.0,M10.5.0/3"};
    char first[HASH_HEX_SIZE] = "", again[HASH_HEX_SIZE];
    const char *before = getenv("TZ");
    cleanup_free char *zone = before ? strdup(before) : NULL;
    for (size_t i = 0; i < sizeof zones / sizeof *zones; i++) {
        cleanup_free char *name = text_format("zone%zu", i);
        const char *staging = stage(name), *target = test_path("zone.zip");
        setenv("TZ", zones[i], 1);
        tzset();
        assert_ok(file_remove_tree(target, &test_failure));
        umask(i % 2 ? 0077 : 0022);
        seal(staging, target, again);
        umask(0022);
        if (i == 0)
            memcpy(first, again, sizeof first);
        assert_string_equal(first, again);
    }
    if (zone)
        setenv("TZ", zone, 1);
    else
        unsetenv("TZ");
    tzset();
    /* The time in the headers is the end of the run in UTC: 2025-11-20 10:02:02 (DOS time counts two
     * seconds). */
    const char *target = test_path("zone.zip");
    const unsigned char *at = (const unsigned char *)test_read(target, NULL);
    assert_int_equal(at[10] | at[11] << 8, 10 << 11 | 2 << 5 | 1);
    assert_int_equal(at[12] | at[13] << 8, (2025 - 1980) << 9 | 11 << 5 | 20);
}

TEST(stream_a_table) {
    const char *staging = stage("stream"), *target = test_path("stream.zip");
    char sha256[HASH_HEX_SIZE];
    seal(staging, target, sha256);
    cleanup(archive_cleanup) struct archive_reader *archive = open_archive(target);
    cleanup(archive_member_cleanup) struct archive_member *member = NULL;
    cleanup(archive_columns_clear) struct archive_columns columns = {0};
    struct csv_reader *csv = NULL;
    const struct csv_field *fields;
    size_t duration;
    double sum = 0, value;
    assert_ok(archive_table_columns(archive, "results/results.csv", &columns, &test_failure));
    assert_int_equal(columns.count, 17);
    assert_string_equal(archive_columns_find(&columns, "duration")->unit, "s");
    assert_int_equal(archive_columns_find(&columns, "duration")->role, COLUMN_ROLE_RESPONSE);
    assert_ok(archive_member_open(archive, "results/results.csv", &member, &test_failure));
    assert_ok(csv_open_function("results.csv", archive_member_read, member, &csv, &test_failure));
    assert_ok(csv_find_column(csv, "duration", &duration, &test_failure));
    int r;
    while ((r = csv_next(csv, &fields, &test_failure)) > 0) {
        assert_ok(csv_number(csv, duration, &value, &test_failure));
        sum += value;
    }
    csv_close(csv);
    assert_int_equal(r, 0);
    assert_ok(archive_member_status(member, &test_failure));
    assert_true(sum == 0.75);
}

TEST(members_that_are_not_there) {
    const char *staging = stage("absent"), *target = test_path("absent.zip"), *into = test_path("absent.out");
    char sha256[HASH_HEX_SIZE];
    seal(staging, target, sha256);
    cleanup(archive_cleanup) struct archive_reader *archive = open_archive(target);
    struct archive_member *member = NULL;
    assert_true(archive_member_open(archive, "results", &member, &test_failure) < 0);
    assert_int_equal(test_failure.kind, FAILURE_INPUT);
    cleanup(text_clear) struct text text;
    text_init(&text, 10);
    text_append_string(&text, "before");
    assert_int_equal(archive_read_member(archive, "campaign.yaml", &text, &test_failure), -EFBIG);
    assert_string_equal(text.bytes, "before");
    const char *names[] = {"results/", "nowhere"};
    assert_true(archive_extract(archive, into, names, 2, &test_failure) < 0);
    assert_says(test_failure.text, "'nowhere'");
    assert_false(file_exists(into));
    assert_ok(archive_extract(archive, into, names, 1, &test_failure));
    cleanup_free char *inside = file_join(into, "results/raw/1/stdout"),
                      *outside = file_join(into, "run.json");
    assert_true(file_exists(inside) && !file_exists(outside));
    assert_true(archive_extract(archive, into, names, 1, &test_failure) < 0); /* not empty any more */
    assert_int_equal(test_failure.kind, FAILURE_INPUT);
    assert_true(archive_open("/nonexistent.zip", &archive, &test_failure) < 0);
    assert_int_equal(test_failure.kind, FAILURE_INPUT);
    assert_true(archive_open("/tmp", &archive, &test_failure) < 0);
    assert_int_equal(test_failure.kind, FAILURE_INPUT);
}

/* ---- What is not sealed */

TEST(refused_staging) {
    static const struct {
        const char *name, *reason;
    } cases[] = {{"my file", "its name has a byte other than"},
                 {"manifest-sha256.txt.sig", "that name is reserved"},
                 {"Design.csv", "differs only in upper and lower case"}};
    const char *staging = stage("refused"), *target = test_path("refused.zip");
    const char *link = test_path("refused/results/link"), *run = test_path("refused/run.json");
    char sha256[HASH_HEX_SIZE];
    assert_int_equal(symlink("/etc/passwd", link), 0);
    expect_failure(staging, target, "it is a symbolic link");
    assert_int_equal(unlink(link), 0);
    assert_int_equal(mkfifo(link, 0600), 0);
    expect_failure(staging, target, "neither a file nor a folder");
    assert_int_equal(unlink(link), 0);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        const char *path = put("refused", cases[i].name, "x");
        expect_failure(staging, target, cases[i].reason);
        assert_int_equal(unlink(path), 0);
    }
    put("refused", "run.json", "{\"archive_version\":\"7.0\"}");
    expect_failure(staging, target, "the archive is of version 7.0");
    assert_int_equal(unlink(run), 0);
    expect_failure(staging, target, "has no run.json");
    put("refused", "run.json", "{\"archive_version\":\"1.0\"}");
    expect_failure("/nonexistent", target, "cannot open");
    expect_failure(staging, "/nonexistent/a.zip", "cannot create");
    /* Left out, not refused: names that begin with a point, folders without files. */
    put("refused", ".git/config", "x");
    put("refused", "experiment/.hidden", "x");
    assert_ok(file_make_folders(test_path("refused/nothing/in/here"), &test_failure));
    seal(staging, target, sha256);
    cleanup(archive_cleanup) struct archive_reader *archive = open_archive(target);
    for (size_t i = 0; i < archive_member_count(archive); i++)
        assert_null(strstr(archive_member_name(archive, i), "/."));
}

TEST(target_is_there) {
    const char *staging = stage("there"), *target = test_path("there.zip");
    cleanup_free char *part = text_format("%s.part", target);
    char sha256[HASH_HEX_SIZE], again[HASH_HEX_SIZE];
    test_put("there.zip.part", "left by a crash");
    seal(staging, target, sha256);
    assert_false(file_exists(part));
    seal(staging, target, again); /* the same run again: a crash came between rename and journal */
    assert_string_equal(sha256, again);
    put("there", "logs/engine.log", "another\n");
    expect_failure(staging, target, "is already there and is not this run's archive");
    assert_ok(hash_file(target, again, NULL, &test_failure));
    assert_string_equal(sha256, again);
}

TEST(failed_run_says_why) {
    const char *staging = stage("failed"), *target = test_path("failed.zip");
    char sha256[HASH_HEX_SIZE];
    struct archive_description description = describe();
    description.status = "failed";
    description.error = "node n-1: the kernel ended with \"exit 3\" \xc2\x9b"
                        "31m\xe2\x80\xae\xff";
    description.agent = NULL;
    assert_ok(archive_seal(staging, target, &description, sha256, &test_failure));
    cleanup(archive_cleanup) struct archive_reader *archive = open_archive(target);
    cleanup(text_clear) struct text crate;
    text_init(&crate, 1 << 20);
    assert_ok(archive_read_member(archive, "ro-crate-metadata.json", &crate, &test_failure));
    assert_says(crate.bytes, "\"actionStatus\":");
    assert_says(crate.bytes, "\"http://schema.org/FailedActionStatus\"");
    assert_says(crate.bytes, "exit 3");
    assert_null(strstr(crate.bytes, "#agent"));
    assert_says(crate.bytes, "\\u009b31m\\u202e");
    text_reset(&crate);
    assert_ok(archive_read_member(archive, "README.md", &crate, &test_failure));
    assert_says(crate.bytes, "exit 3\" \\xc2\\x9b31m\\xe2\\x80\\xae\\xff");
}

/* ---- Failing at any byte */

/* The staged files that sealing does not make, as one text. */
static void read_staging(const char *staging, struct text *ret) {
    static const char *const names[] = {
        "run.json",      "campaign.yaml",   "design.csv", "results/results.csv", "results/raw/1/stdout",
        "journal.jsonl", "datapackage.json"};
    text_reset(ret);
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        cleanup_free char *path = file_join(staging, names[i]);
        assert_ok(file_read(path, ret, &test_failure));
    }
}

static void write_noise(const char *staging) {
    static char noise[60000]; /* so that the zip is larger than what libarchive writes at once */
    uint64_t random = 7;
    for (size_t i = 0; i < sizeof noise; i++) {
        random = random * UINT64_C(6364136223846793005) + 1;
        noise[i] = (char)(random >> 56);
    }
    cleanup_free char *path = file_join(staging, "results/raw/noise");
    assert_ok(file_replace(path, noise, sizeof noise, 0600, &test_failure));
}

/* A limit on the size of files stops the write that would pass it, wherever that is. */
TEST(write_fails_at_any_size) {
    const char *staging = stage("limit"), *target = test_path("limit.zip");
    cleanup_free char *part = text_format("%s.part", target);
    cleanup(text_clear) struct text before, after;
    struct archive_description description = describe();
    struct rlimit old, limit;
    char sha256[HASH_HEX_SIZE];
    text_init(&before, 1 << 20);
    text_init(&after, 1 << 20);
    write_noise(staging);
    read_staging(staging, &before);
    signal(SIGXFSZ, SIG_IGN);
    getrlimit(RLIMIT_FSIZE, &old);
    size_t failures = 0;
    for (rlim_t bytes = 0;; bytes += 997) {
        limit = (struct rlimit){.rlim_cur = bytes, .rlim_max = old.rlim_max};
        setrlimit(RLIMIT_FSIZE, &limit);
        int r = archive_seal(staging, target, &description, sha256, &test_failure);
        setrlimit(RLIMIT_FSIZE, &old);
        if (r == 0)
            break;
        failures++;
        assert_int_equal(r, -EFBIG);
        assert_int_equal(test_failure.kind, FAILURE_SYSTEM);
        assert_false(file_exists(part) || file_exists(target));
        read_staging(staging, &after);
        assert_int_equal(before.length, after.length);
        assert_memory_equal(before.bytes, after.bytes, before.length);
    }
    print_message("# failed at %zu sizes, then sealed\n", failures);
    assert_true(failures > 60);
    assert_true(file_exists(target));
}

/* The same with a file system that is full: sizes from a page up until sealing succeeds. */
TEST(full_disk) {
    test_need_mounts();
    const char *staging = stage("full"), *disk = test_path("disk"), *target = test_path("disk/a.zip");
    cleanup_free char *part = text_format("%s.part", target);
    cleanup(text_clear) struct text before, after;
    struct archive_description description = describe();
    char sha256[HASH_HEX_SIZE];
    text_init(&before, 1 << 20);
    text_init(&after, 1 << 20);
    write_noise(staging);
    read_staging(staging, &before);
    assert_int_equal(mkdir(disk, 0700), 0);
    size_t failures = 0;
    for (size_t pages = 1;; pages++) {
        cleanup_free char *options = text_format("size=%zu", pages * 4096);
        assert_int_equal(mount("tmpfs", disk, "tmpfs", 0, options), 0);
        int r = archive_seal(staging, target, &description, sha256, &test_failure);
        bool left = file_exists(part), there = file_exists(target);
        assert_int_equal(umount(disk), 0);
        if (r == 0) {
            assert_true(there && !left);
            break;
        }
        failures++;
        assert_int_equal(r, -ENOSPC);
        assert_int_equal(test_failure.kind, FAILURE_SYSTEM);
        assert_says(test_failure.text, "No space left on device");
        assert_false(left || there);
        read_staging(staging, &after);
        assert_int_equal(before.length, after.length);
        assert_memory_equal(before.bytes, after.bytes, before.length);
    }
    print_message("# no space on %zu disks, then sealed\n", failures);
    assert_true(failures > 10);
    rmdir(disk);
}

/* Writes the sample of archive-format/samples/valid: `--write PATH`. */
static int write_sample(const char *target) {
    struct archive_description description = describe();
    char sha256[HASH_HEX_SIZE];
    const char *staging = stage("sample");
    int r = archive_seal(staging, target, &description, sha256, &test_failure);
    file_remove_tree(test_folder(), NULL);
    if (r < 0)
        fprintf(stderr, "%s\n", test_failure.text);
    return r < 0;
}

/* Archives of every version that was ever released stay readable. */
TEST(committed_sample) {
    const char *source = getenv("ASSAY_SOURCE");
    if (!source)
        test_skip("ASSAY_SOURCE is not set");
    for (int minor = 0; minor < 2; minor++) {
        cleanup_free char *path =
            text_format("%s/archive-format/samples/valid/small-1.%d.zip", source, minor);
        cleanup(archive_cleanup) struct archive_reader *archive = open_archive(path);
        cleanup(text_clear) struct text table;
        text_init(&table, 1 << 20);
        assert_ok(archive_check(archive, &test_failure));
        assert_ok(archive_read_member(archive, "results/results.csv", &table, &test_failure));
        assert_string_equal(table.bytes, staged_results);
    }
}

int main(int argc, char **argv) {
    if (argc == 3 && strcmp(argv[1], "--write") == 0)
        return write_sample(argv[2]);
    return test_run();
}

#define TOKEN "ghp_aB3dE5fG7hI9jK1lM3nO5pQ7rS9tU1vW3x"

/* Refused with file and line, wherever it is in the file; what is staged stays, and is sealed without it. */
TEST(secrets_are_not_sealed) {
    static const struct {
        size_t blanks, lines; /* before it */
        const char *text, *expected;
    } cases[] = {
        {0, 0, TOKEN, "'logs/engine.log' has what looks like a token on line 1; remove it there"},
        {0, 2, "password is " TOKEN "\n", "'logs/engine.log' has what looks like a token on line 3"},
        {100, 65000, "-----BEGIN RSA PRIVATE KEY-----\nMII\n", "a private key on line 65001"},
        {65520, 1, " " TOKEN, "a token on line 2"},
        {200000, 0, " " TOKEN " ", "a token on line 1"},
    };
    const char *folder = stage("staging");
    cleanup_free char *log = file_join(folder, "logs/engine.log");
    char sha256[HASH_HEX_SIZE];
    struct archive_description description = describe();
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(text_clear) struct text text;
        text_init(&text, 1 << 20);
        for (size_t k = 0; k < cases[i].lines; k++)
            text_append_character(&text, '\n');
        for (size_t k = 0; k < cases[i].blanks; k++)
            text_append_character(&text, '.');
        text_append_string(&text, cases[i].text);
        assert_ok(file_replace(log, text.bytes, text.length, 0644, &test_failure));
        assert_error(archive_seal(folder, test_path("x.zip"), &description, sha256, &test_failure),
                     -EKEYREJECTED, cases[i].expected);
        assert_false(file_exists(test_path("x.zip")));
    }
    put("staging", "logs/engine.log", "log\n");
    put("staging", "inputs/key/id_rsa", "-----BEGIN RSA PRIVATE KEY-----\n"); /* that an option named */
    assert_ok(archive_seal(folder, test_path("x.zip"), &description, sha256, &test_failure));
}
