#include "engine/run/record/journal.h"
#include "engine/documents/document.h"
#include "engine/foundation/checksum.h"
#include "engine/foundation/file.h"
#include "engine/run/record/journal-read.h"
#include "tests/test.h"

#include <sys/stat.h>
#include <unistd.h>

static const char *path;
static struct journal *journal;
static struct journal_end end; /* of the last replay */
static struct text bytes;      /* of the journal that was written, or what is put in its place */

static int set_up(void **state) {
    path = test_path("journal.jsonl");
    unlink(path);
    text_init(&bytes, 8 << 20);
    return 0;
}

static int tear_down(void **state) {
    journal_close(journal);
    journal = NULL;
    text_clear(&bytes);
    return 0;
}

static void begin_journal(void) {
    assert_ok(journal_create(path, &journal, &test_failure));
}

static void end_journal(void) {
    assert_ok(journal_commit(journal, &test_failure));
    journal_close(journal);
    journal = NULL;
}

/* Three entries, one with what JSON must escape. */
static void write_journal(void) {
    begin_journal();
    journal_note(journal, "run-started", "run_id", "a \"quoted\" name\nand \xff");
    journal_begin(journal, "unit");
    journal_time(journal, "row", INT64_MIN);
    journal_time(journal, "order", INT64_MAX);
    journal_string(journal, "why", NULL);
    journal_end(journal);
    assert_int_equal(journal_committed_bytes(journal), 0);
    assert_ok(journal_commit(journal, &test_failure));
    journal_note(journal, "error", "sentence", "x");
    assert_ok(journal_commit(journal, &test_failure));
    end_journal(); /* nothing to do */
    assert_int_equal(file_read(path, &bytes, NULL), 0);
}

/* What is read when the journal is the first LENGTH of `bytes`. */
static void replay_bytes(size_t length, journal_handler *taker, void *context) {
    assert_int_equal(file_replace(path, bytes.bytes, length, 0600, NULL), 0);
    end = (struct journal_end){0};
    assert_ok(journal_replay(path, taker, context, &end, &test_failure));
}

TEST(lines_are_whole_json) {
    write_journal();
    size_t lines = 0;
    for (char *line = bytes.bytes, *stop; (stop = strchr(line, '\n')); line = stop + 1, lines++) {
        struct document *document = NULL;
        assert_true(journal_line_is_whole(line, (size_t)(stop - line)));
        assert_ok(document_parse_json("journal", line, (size_t)(stop - line), &document, &test_failure));
        char expected[32];
        snprintf(expected, sizeof expected, "%zu", lines + 1);
        assert_string_equal(document_get(document->root, "seq")->text, expected);
        if (lines == 1) {
            assert_string_equal(document_get(document->root, "row")->text, "-9223372036854775808");
            assert_string_equal(document_get(document->root, "order")->text, "9223372036854775807");
        }
        document_free(document);
    }
    assert_int_equal(lines, 3);
}

/* How many lines end in the first LENGTH of TEXT. */
static size_t count_lines(const char *text, size_t length) {
    size_t lines = 0;
    for (size_t i = 0; i < length; i++)
        lines += text[i] == '\n';
    return lines;
}

/* Cut after any byte, the journal ends in its last whole line. */
TEST(torn_lines_are_known) {
    write_journal();
    for (size_t length = 0; length <= bytes.length; length++) {
        size_t whole = length, entries;
        while (whole > 0 && bytes.bytes[whole - 1] != '\n')
            whole--;
        entries = count_lines(bytes.bytes, whole);
        replay_bytes(length, NULL, NULL);
        assert_int_equal(end.bytes, whole);
        assert_int_equal(end.entries, entries);
        assert_int_equal(end.file_bytes, length);
        assert_int_equal(end.whole_after, 0);
    }
}

/* Any bit that flips ends what is believed before its line; whole lines behind it are counted. */
TEST(flipped_bits_are_known) {
    write_journal();
    for (size_t i = 0; i < bytes.length; i++) {
        size_t line_start = i;
        while (line_start > 0 && bytes.bytes[line_start - 1] != '\n')
            line_start--;
        bytes.bytes[i] ^= 4;
        replay_bytes(bytes.length, NULL, NULL);
        assert_int_equal(end.bytes, line_start);
        assert_int_equal(end.file_bytes, bytes.length);
        bytes.bytes[i] ^= 4;
        /* A newline that is none joins two lines: neither is whole then. */
        size_t next = i + strcspn(bytes.bytes + i, "\n") + 1;
        size_t behind = count_lines(bytes.bytes + next, bytes.length - next);
        assert_int_equal(end.whole_after, behind > 0 && bytes.bytes[i] == '\n' ? behind - 1 : behind);
    }
}

TEST(a_journal_is_not_overwritten) {
    write_journal();
    assert_true(journal_create(path, &journal, &test_failure) < 0);
    assert_null(journal);
    assert_says(test_failure.text, "File exists");
}

/* ---- Reading ----------------------------------------------------------------------------------- */

struct seen {
    size_t count;
    void (*look)(const struct journal_entry *entry, size_t number);
};

static int take(const struct journal_entry *entry, void *context, struct failure *failure) {
    struct seen *seen = context;
    assert_int_equal(entry->sequence, ++seen->count);
    assert_true(entry->wall_ns > 0 && entry->monotonic_ns > 0);
    if (seen->look)
        seen->look(entry, seen->count);
    return 0;
}

static void replay(void (*look)(const struct journal_entry *entry, size_t number)) {
    struct seen seen = {.look = look};
    end = (struct journal_end){0};
    assert_ok(journal_replay(path, take, &seen, &end, &test_failure));
    assert_int_equal(end.entries, seen.count);
}

static void look_at_members(const struct journal_entry *entry, size_t number) {
    char text[64];
    int64_t integer = 7;
    if (number == 1) {
        assert_true(journal_entry_is(entry, "run-started") && !journal_entry_is(entry, "run-starte"));
        assert_true(journal_entry_text(entry, "run_id", text, sizeof text));
        assert_string_equal(text, "a \"quoted\" name\nand \xef\xbf\xbd");
        for (size_t size = 1; size < 25; size++) {
            char cut[25] = "";
            assert_true(journal_entry_text(entry, "run_id", cut, size));
            size_t length = size - 1 < 20 ? size - 1 : size - 1 < 23 ? 20 : 23; /* never within U+FFFD */
            assert_int_equal(strlen(cut), length);
            assert_memory_equal(cut, text, length);
        }
        assert_false(journal_entry_text(entry, "run_i", text, sizeof text));
        assert_false(journal_entry_integer(entry, "run_id", &integer));
        assert_false(journal_entry_integer(entry, "crc32c", &integer));
    }
    if (number == 2) {
        assert_true(journal_entry_time(entry, "row", &integer) && integer == INT64_MIN);
        assert_true(journal_entry_time(entry, "order", &integer) && integer == INT64_MAX);
        assert_false(journal_entry_integer(entry, "row", &integer));
        assert_false(journal_entry_text(entry, "why", text, sizeof text));
        assert_false(journal_entry_integer(entry, "why", &integer));
    }
}

TEST(members_are_read_back) {
    write_journal();
    replay(look_at_members);
    assert_int_equal(end.entries, 3);
    assert_int_equal(end.bytes, end.file_bytes);
}

static const double numbers[] = {
    0, -0.0, 1.5, 0.1, 1e300, 5e-324, -1.0 / 3, 1e22, 12345678, 1.23456789e-7, 4503599627370497.5};
enum { NUMBERS = sizeof numbers / sizeof *numbers };

static void write_number(double value) {
    journal_begin(journal, "row-settled");
    journal_number(journal, "value", value);
    journal_end(journal);
}

TEST(numbers_read_back_the_same) {
    begin_journal();
    for (size_t i = 0; i < NUMBERS; i++)
        write_number(numbers[i]);
    write_number(NAN);
    write_number(INFINITY);
    write_number(-INFINITY);
    end_journal();
    replay(NULL);
    assert_int_equal(end.entries, NUMBERS + 3);
    assert_int_equal(file_read(path, &bytes, NULL), 0);
    const char *at = bytes.bytes;
    for (size_t i = 0; i < NUMBERS; i++) {
        at = strstr(at, "\"value\":") + strlen("\"value\":");
        double value = strtod(at, NULL);
        assert_memory_equal(&value, &numbers[i], sizeof value);
    }
    for (size_t i = 0; i < 3; i++) {
        at = strstr(at, "\"value\":null");
        assert_non_null(at++);
    }
}

/* BODY, which lacks its checksum, as a line of a file. */
static void append_line(const char *body, size_t length) {
    assert_int_equal(text_append(&bytes, body, length), 0);
    assert_int_equal(text_printf(&bytes, ",\"crc32c\":\"%08x\"}\n", checksum_crc32c(body, length)), 0);
}

/* What others may write with a right checksum: escapes of every kind, nesting, no JSON at all. */
static int take_foreign(const struct journal_entry *entry, void *context, struct failure *failure) {
    char text[64] = "untouched";
    size_t *count = context;
    assert_int_equal(journal_entry_text(entry, "a", text, sizeof text), *count == 0);
    assert_string_equal(text, *count == 0 ? "\b\f\n\r\t/\\\" e\xc3\xa9 \xf0\x9f\x98\x80" : "untouched");
    ++*count;
    return 0;
}

TEST(foreign_lines_do_no_harm) {
    static const char *const bodies[] = {
        "{\"seq\":1,\"t\":1,\"m\":5,\"event\":\"x\",\"a\":\"\\b\\f\\n\\r\\t\\/\\\\\\\" \\u0065\\u00E9 "
        "\\ud83d\\uDE00\"",
        "{\"seq\":2,\"t\":\"1\",\"m\":\"5\",\"event\":\"x\",\"b\":{\"a\":[1,\"]}\"]},\"c\":[],\"d\":true",
        "{\"seq\":3,\"t\":1,\"m\":5,\"event\":\"x\", \"b\":\"blank\"",
        "{\"seq\":4,\"t\":1,\"m\":5,\"event\":\"x\"",
        "{\"seq\":5,\"t\":1,\"m\":5,\"event\":\"x\",\"a\":12",
        "{\"seq\":6,\"t\":1,\"m\":5,\"event\":\"x\",\"b\":\"a\",\"A\":\"a\"",
    };
    static const char *const no_entries[] = {
        "",
        "{",
        "[1",
        "{\"seq\":1",
        "{\"seq\":2,\"t\":1,\"m\":1,\"event\":\"x\"",
        "{\"seq\":1,\"m\":1,\"event\":\"x\"",
        "{\"seq\":1,\"t\":1,\"event\":\"x\"",
        "{\"seq\":1,\"t\":1,\"m\":-1,\"event\":\"x\"",
        "{\"seq\":1,\"t\":1,\"m\":\"one\",\"event\":\"x\"",
        "{\"seq\":1,\"t\":1,\"m\":1,\"event\":\"x",
        "{\"seq\":1,\"t\":1,\"m\":1,\"event\":5",
        "{\"seq\":99999999999999999999,\"t\":1,\"m\":1,\"event\":\"x\"",
        "{\"seq\":-1,\"t\":1,\"m\":1,\"event\":\"x\"",
        "{\"seq\":1,\"t\":1,\"m\":1,\"event\":\"x\",\"a\":\"\\u0000\\ud83d\\udc0x\\q\"",
        "{\"seq\":1,\"t\":1,\"m\":1,\"event\":\"x\",\"b\":{\"a\":\"1\"",
        "{\"seq\":1,\"t\":1,\"m\":1,\"event\":\"x\",\"a\":\"open",
        "{\"seq\":1,\"t\":1,\"m\":1,\"event\":\"x\",\"a\":\"open\\",
        "{\"seq\":1,\"t\":1,\"m\":1,\"event\":\"x\",\"a\"",
        "{\"seq\":1,\"t\":1,\"m\":1,\"event\":\"x\",\"a\":",
    };
    for (size_t i = 0; i < sizeof bodies / sizeof *bodies; i++)
        append_line(bodies[i], strlen(bodies[i]));
    size_t count = 0;
    replay_bytes(bytes.length, take_foreign, &count);
    assert_int_equal(end.entries, sizeof bodies / sizeof *bodies);
    for (size_t i = 0; i < sizeof no_entries / sizeof *no_entries; i++) {
        text_reset(&bytes);
        append_line(no_entries[i], strlen(no_entries[i]));
        replay_bytes(bytes.length, NULL, NULL);
        assert_int_equal(end.entries, 0);
    }
}

/* The longest line is read, one byte more is not, and neither hides what comes behind it. */
TEST(lines_have_a_limit) {
    static const char opening[] = "{\"seq\":1,\"t\":1,\"m\":1,\"event\":\"x\",\"a\":\"",
                      second[] = "{\"seq\":2,\"t\":1,\"m\":1,\"event\":\"x\"";
    for (size_t over = 0; over < 4; over++) {
        static const size_t more[] = {0, 1, 2 << 20, 4 << 20};
        size_t length = JOURNAL_LINE_BYTES_MAX - JOURNAL_TAIL_BYTES + more[over];
        cleanup_free char *body = malloc(length);
        assert_non_null(body);
        memset(body, 'x', length);
        memcpy(body, opening, strlen(opening));
        body[length - 1] = '"';
        text_reset(&bytes);
        append_line(body, length);
        append_line(second, strlen(second));
        replay_bytes(bytes.length, NULL, NULL);
        assert_int_equal(end.entries, over == 0 ? 2 : 0);
        assert_int_equal(end.bytes, over == 0 ? bytes.length : 0);
        assert_int_equal(end.whole_after, over == 0 ? 0 : 1);
        assert_int_equal(end.file_bytes, bytes.length);
    }
}

TEST(an_entry_that_is_too_long_is_not_kept) {
    begin_journal();
    cleanup_free char *value = malloc(JOURNAL_LINE_BYTES_MAX + 1);
    assert_non_null(value);
    memset(value, 'x', JOURNAL_LINE_BYTES_MAX);
    value[JOURNAL_LINE_BYTES_MAX] = '\0';
    journal_note(journal, "agent-note", "text", value);
    assert_int_equal(journal_commit(journal, &test_failure), -EFBIG);
    assert_int_equal(journal_committed_bytes(journal), 0);
}

static int refuse_second(const struct journal_entry *entry, void *context, struct failure *failure) {
    return entry->sequence == 2 ? failure_set(failure, -EDOM, "the second") : 0;
}

TEST(a_taker_ends_it) {
    write_journal();
    end = (struct journal_end){.whole_after = 77};
    assert_int_equal(journal_replay(path, refuse_second, NULL, &end, &test_failure), -EDOM);
    assert_string_equal(test_failure.text, "the second");
    assert_int_equal(end.whole_after, 77);
}

TEST(what_is_no_file_is_refused) {
    assert_int_equal(journal_replay(path, NULL, NULL, &end, &test_failure), -ENOENT);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_int_equal(journal_replay(path, NULL, NULL, &end, &test_failure), -EINVAL);
    unlink(path);
    assert_int_equal(journal_replay(test_folder(), NULL, NULL, &end, &test_failure), -EINVAL);
}

/* ---- Going on ---------------------------------------------------------------------------------- */

/* Cut after any byte of its last two lines, and gone on with: what was whole, and then what is new. */
TEST(a_torn_journal_goes_on) {
    write_journal();
    size_t first = strcspn(bytes.bytes, "\n") + 1;
    for (size_t length = first; length <= bytes.length; length++) {
        replay_bytes(length, NULL, NULL);
        struct journal_end kept = end;
        assert_ok(journal_open(path, &end, &journal, &test_failure));
        assert_int_equal(journal_committed_bytes(journal), end.bytes);
        uint64_t size;
        assert_int_equal(file_size(path, &size, NULL), 0);
        assert_int_equal(size, end.bytes); /* cut before anything else is written */
        journal_note(journal, "run-resumed", "run_id", "x");
        journal_note(journal, "error", "sentence", "x");
        end_journal();
        replay(NULL);
        assert_int_equal(end.entries, kept.entries + 2);
        assert_int_equal(end.bytes, end.file_bytes);
        assert_memory_equal(test_read(path, NULL), bytes.bytes, kept.bytes);
    }
}

TEST(what_is_no_journal_is_not_cut) {
    write_journal();
    end = (struct journal_end){.bytes = bytes.length + 1, .entries = 3};
    assert_true(journal_open(path, &end, &journal, &test_failure) < 0);
    assert_says(test_failure.text, "were written");
    uint64_t size;
    assert_int_equal(file_size(path, &size, NULL), 0);
    assert_int_equal(size, bytes.length);
    const char *link = test_path("link");
    assert_int_equal(symlink(path, link), 0);
    end.bytes = 0;
    assert_int_equal(journal_open(link, &end, &journal, &test_failure), -ELOOP);
    unlink(link);
    assert_int_equal(mkfifo(link, 0600), 0);
    assert_true(journal_open(link, &end, &journal, &test_failure) < 0);
    unlink(link);
    assert_int_equal(journal_open(link, &end, &journal, &test_failure), -ENOENT);
    assert_null(journal);
}

TEST_EACH(set_up, tear_down)
