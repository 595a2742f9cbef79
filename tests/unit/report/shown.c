/* What a terminal is shown of texts that anybody wrote. */
#include "engine/report/shown.h"
#include "tests/test.h"

TEST(cleaned) {
    static const char *const cases[][2] = {
        {"duration", "duration"},
        {"", ""},
        {"\x1b[31my\a", "\\x1b[31my\\x07"},
        {"a\nb\tc\x7f", "a\\nb\\tc\\x7f"},
        {"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\x89", "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x8e\x89"},
        {"\xc2\x9b"
         "31m",
         "\\xc2\\x9b"
         "31m"}, /* C1 */
        {"\x9b"
         "31m\xff",
         "\\x9b"
         "31m\\xff"},                                          /* no UTF-8 */
        {"\xc3", "\\xc3"},                                     /* cut in the middle */
        {"\xc0\x9b\xe0\x80\x9b", "\\xc0\\x9b\\xe0\\x80\\x9b"}, /* overlong */
        {"a\xe2\x80\xae"
         "b",
         "a\\xe2\\x80\\xae"
         "b"}, /* right to left */
        {"a\xd8\x9c"
         "b",
         "a\\xd8\\x9c"
         "b"}, /* U+061C */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++)
        assert_string_equal(shown(cases[i][0]).text, cases[i][1]);
}

TEST(cut) {
    char exact[SHOWN_MAX + 16];
    memset(exact, 'x', sizeof exact);
    exact[sizeof exact - 1] = '\0';
    struct shown cut = shown(exact);
    assert_int_equal(strlen(cut.text), SHOWN_MAX - 1);
    assert_string_equal(cut.text + SHOWN_MAX - 5, "x...");
    memset(exact, '\x1b', sizeof exact - 1);
    cut = shown(exact);
    assert_true(strlen(cut.text) < SHOWN_MAX);
    assert_non_null(strstr(cut.text, "\\x1b..."));
}

TEST(lines) {
    char found[64] = "";
    FILE *stream = fmemopen(found, sizeof found, "w");
    shown_print(stream, "a\n\tb\x1b", true);
    shown_print(stream, "\n", false);
    fclose(stream);
    assert_string_equal(found, "a\n\tb\\x1b\\n");
}
