/* Sentences and places. */
#include "engine/foundation/failure.h"

#include "engine/foundation/text.h"
#include "tests/test.h"

static void check(const struct failure *failure, const char *expected) {
    char text[FAILURE_PLACE_SIZE + FAILURE_TEXT_SIZE];
    assert_string_equal(failure_describe(failure, text, sizeof text), expected);
}

TEST(places) {
    struct failure failure = {0};
    assert_int_equal(failure_input(&failure, "a.yaml", 3, 9, "'%s' is not a key", "tubro"), -EINVAL);
    assert_int_equal(failure.kind, FAILURE_INPUT);
    assert_int_equal(failure.code, -EINVAL);
    check(&failure, "a.yaml:3:9: 'tubro' is not a key");
    failure_input(&failure, "a.yaml", 3, 0, "x");
    check(&failure, "a.yaml:3: x");
    failure_input(&failure, "a.yaml", 0, 0, "x");
    check(&failure, "a.yaml: x");
    failure_input(&failure, "a.yaml", 0, 7, "x"); /* a column without a line says nothing */
    check(&failure, "a.yaml: x");
    failure_input(&failure, NULL, 3, 9, "x");
    check(&failure, "x");
}

TEST(kinds_and_codes) {
    struct failure failure = {0};
    assert_int_equal(failure_set(&failure, -EIO, "a"), -EIO);
    assert_int_equal(failure.kind, FAILURE_SYSTEM);
    assert_int_equal(failure_set_kind(&failure, FAILURE_INTERRUPTED, -EINTR, "b"), -EINTR);
    assert_int_equal(failure.kind, FAILURE_INTERRUPTED);
    assert_int_equal(failure_verification(&failure, "a.zip", "%d members", 3), -EBADMSG);
    assert_int_equal(failure.kind, FAILURE_VERIFICATION);
    check(&failure, "a.zip: 3 members");
    assert_int_equal(failure_memory(&failure), -ENOMEM);
    check(&failure, "out of memory");
}

TEST(nobody_listens) {
    assert_int_equal(failure_set(NULL, -EIO, "a"), -EIO);
    assert_int_equal(failure_input(NULL, "f", 1, 1, "a"), -EINVAL);
    assert_int_equal(failure_verification(NULL, "f", "a"), -EBADMSG);
    assert_int_equal(failure_memory(NULL), -ENOMEM);
    assert_true(failure_prefix(NULL, "a") < 0);
}

TEST(prefixes_climb) {
    struct failure failure = {0};
    failure_input(&failure, "f", 1, 2, "inner");
    assert_int_equal(failure_prefix(&failure, "node %s", "dahu-3"), -EINVAL);
    failure_prefix(&failure, "phase %d", 2);
    check(&failure, "f:1:2: phase 2: node dahu-3: inner");
    /* A failure may quote itself. */
    failure_set(&failure, -EIO, "cannot go on: %s", failure.text);
    check(&failure, "cannot go on: phase 2: node dahu-3: inner");
}

TEST(one_line_whatever_is_quoted) {
    struct failure failure = {0};
    failure_input(&failure, "a\nb", 1, 1, "'%s'", "x\n\t\x1b[31m\x7f");
    check(&failure, "a\\nb:1:1: 'x\\n\\t\\x1b[31m\\x7f'");
    failure_prefix(&failure, "%s", "p\nq");
    check(&failure, "a\\nb:1:1: p\\nq: 'x\\n\\t\\x1b[31m\\x7f'");
    failure_set(&failure, -EIO, "%s", "\xc2\x9b\xe2\x80\xae\xff");
    check(&failure, "\\xc2\\x9b\\xe2\\x80\\xae\\xff");
    char text[3 * FAILURE_TEXT_SIZE];
    memset(text, 'x', sizeof text);
    snprintf(text + sizeof text - 8, 8, "because");
    failure_set(&failure, -EIO, "why: %s", text);
    assert_int_equal(strncmp(failure.text, "why: xx", 7), 0);
    assert_string_equal(failure.text + strlen(failure.text) - 9, "xxbecause");
}

/* However long the parts and wherever they are cut, what is left is whole characters. */
TEST(cut_between_characters) {
    char text[4 * FAILURE_TEXT_SIZE];
    static const char *const characters[] = {"a", "\xc3\xa9", "\xe2\x82\xac", "\xf0\x9f\x98\x80", "\n"};
    for (size_t kind = 0; kind < 5; kind++)
        for (size_t shift = 0; shift < 5; shift++) {
            size_t length = strlen(characters[kind]), at = shift;
            memset(text, 'x', shift);
            for (; at + length < sizeof text; at += length)
                memcpy(text + at, characters[kind], length);
            text[at] = '\0';
            struct failure failure = {0};
            failure_input(&failure, text, 1, 1, "%s", text);
            assert_int_equal(text_invalid_utf8(failure.text, strlen(failure.text)), strlen(failure.text));
            assert_int_equal(text_invalid_utf8(failure.place, strlen(failure.place)), strlen(failure.place));
            assert_true(strlen(failure.text) > FAILURE_TEXT_SIZE - 16 &&
                        strlen(failure.place) > FAILURE_PLACE_SIZE - 16);
            failure_prefix(&failure, "%s", text);
            assert_int_equal(text_invalid_utf8(failure.text, strlen(failure.text)), strlen(failure.text));
            char small[10];
            failure_describe(&failure, small, sizeof small);
            assert_true(strlen(small) < sizeof small);
        }
}
