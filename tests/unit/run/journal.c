#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/documents/document.h"
#include "engine/foundation/file.h"
#include "engine/run/journal.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static char folder[] = "/tmp/assay-journal-XXXXXX";
static char path[64];

static int set_up(void **state) {
    (void)state;
    if (!mkdtemp(folder))
        return -1;
    snprintf(path, sizeof path, "%s/journal.jsonl", folder);
    return 0;
}

static int tear_down(void **state) {
    (void)state;
    return file_remove_tree(folder, NULL);
}

/* Three entries, one with what JSON must escape. */
static void write_journal(void) {
    struct failure failure = {0};
    struct journal *journal;
    unlink(path);
    assert_int_equal(journal_create(path, &journal, &failure), 0);
    journal_note(journal, "run-started", "run_id", "a \"quoted\" name\nand \xff");
    journal_begin(journal, "unit");
    journal_integer(journal, "row", INT64_MIN);
    journal_integer(journal, "order", INT64_MAX);
    journal_string(journal, "why", NULL);
    journal_end(journal);
    assert_int_equal(journal_committed_bytes(journal), 0);
    assert_int_equal(journal_commit(journal, &failure), 0);
    journal_note(journal, "run-ended", NULL, NULL);
    assert_int_equal(journal_commit(journal, &failure), 0);
    assert_int_equal(journal_commit(journal, &failure), 0); /* nothing to do */
    journal_close(journal);
}

static struct text read_journal(void) {
    struct text bytes;
    text_init(&bytes, 1 << 20);
    assert_int_equal(file_read(path, &bytes, NULL), 0);
    return bytes;
}

static void lines_are_whole_json(void **state) {
    (void)state;
    write_journal();
    struct text bytes = read_journal();
    size_t lines = 0;
    for (char *line = bytes.bytes, *end; (end = strchr(line, '\n')); line = end + 1, lines++) {
        struct failure failure = {0};
        struct document *document = NULL;
        assert_true(journal_line_is_whole(line, (size_t)(end - line)));
        assert_int_equal(document_parse_json("journal", line, (size_t)(end - line), &document, &failure), 0);
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
    text_clear(&bytes);
}

/* Cut after any byte, the journal ends in its last whole line. */
static void torn_lines_are_known(void **state) {
    (void)state;
    write_journal();
    struct text bytes = read_journal();
    for (size_t length = 0; length <= bytes.length; length++) {
        size_t whole = length, entries = 0;
        while (whole > 0 && bytes.bytes[whole - 1] != '\n')
            whole--;
        for (size_t i = 0; i < whole; i++)
            entries += bytes.bytes[i] == '\n';
        assert_int_equal(file_replace(path, bytes.bytes, length, 0600, NULL), 0);
        uint64_t good_bytes, good_entries;
        assert_int_equal(journal_check(path, &good_bytes, &good_entries, NULL), 0);
        assert_int_equal(good_bytes, whole);
        assert_int_equal(good_entries, entries);
    }
    text_clear(&bytes);
}

/* Any bit that flips ends what is believed before its line. */
static void flipped_bits_are_known(void **state) {
    (void)state;
    write_journal();
    struct text bytes = read_journal();
    for (size_t i = 0; i < bytes.length; i++) {
        size_t line_start = i;
        while (line_start > 0 && bytes.bytes[line_start - 1] != '\n')
            line_start--;
        bytes.bytes[i] ^= 4;
        assert_int_equal(file_replace(path, bytes.bytes, bytes.length, 0600, NULL), 0);
        uint64_t good_bytes, good_entries;
        assert_int_equal(journal_check(path, &good_bytes, &good_entries, NULL), 0);
        assert_int_equal(good_bytes, line_start);
        bytes.bytes[i] ^= 4;
    }
    text_clear(&bytes);
}

static void a_journal_is_not_overwritten(void **state) {
    (void)state;
    write_journal();
    struct failure failure = {0};
    struct journal *journal = NULL;
    assert_true(journal_create(path, &journal, &failure) < 0);
    assert_null(journal);
    assert_non_null(strstr(failure.text, "File exists"));
}

int main(void) {
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lines_are_whole_json),
        cmocka_unit_test(torn_lines_are_known),
        cmocka_unit_test(flipped_bits_are_known),
        cmocka_unit_test(a_journal_is_not_overwritten),
    };
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
