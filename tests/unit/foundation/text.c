/* Bytes that grow, UTF-8, and the nearest name. */
#include "engine/foundation/text.h"

#include "tests/test.h"

TEST(empty_text_is_a_string) {
    struct text text;
    text_init(&text, 10);
    assert_string_equal(text.bytes, "");
    text_reset(&text);
    text_consume(&text, 0);
    text_consume(&text, 5);
    assert_string_equal(text.bytes, "");
    char *taken = text_take(&text);
    assert_string_equal(taken, "");
    free(taken);
    text_clear(&text);
    text_clear(&text);
}

TEST(growth_keeps_content) {
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    for (int i = 0; i < 10000; i++)
        assert_int_equal(text_printf(&text, "%d,", i), 0);
    size_t at = 0;
    for (int i = 0; i < 10000; i++) {
        char expected[16];
        size_t length = (size_t)snprintf(expected, sizeof expected, "%d,", i);
        assert_memory_equal(text.bytes + at, expected, length);
        at += length;
    }
    assert_int_equal(at, text.length);
    assert_int_equal(text.bytes[at], '\0');
}

TEST(limit_is_exact_and_leaves_what_was) {
    struct text text;
    text_init(&text, 5);
    assert_int_equal(text_append(&text, "abc", 3), 0);
    assert_int_equal(text_append(&text, "def", 3), -EFBIG);
    assert_int_equal(text_printf(&text, "%d", 123), -EFBIG);
    assert_string_equal(text.bytes, "abc");
    assert_int_equal(text_append_string(&text, "de"), 0);
    assert_int_equal(text_append_character(&text, 'f'), -EFBIG);
    assert_int_equal(text_append(&text, "", 0), 0);
    assert_string_equal(text.bytes, "abcde");
    char *end;
    assert_int_equal(text_reserve(&text, SIZE_MAX, &end), -EFBIG);
    text_clear(&text);
    assert_int_equal(text.limit, 5);
}

TEST(nuls_count) {
    cleanup(text_clear) struct text text;
    text_init(&text, 100);
    assert_int_equal(text_append(&text, "a\0b", 3), 0);
    assert_int_equal(text.length, 3);
    assert_memory_equal(text.bytes, "a\0b", 4);
}

TEST(consume_and_reset) {
    struct text text;
    text_init(&text, 100);
    text_append_string(&text, "hello world");
    text_consume(&text, 6);
    assert_string_equal(text.bytes, "world");
    text_consume(&text, 5);
    assert_int_equal(text.length, 0);
    assert_string_equal(text.bytes, "");
    text_append_string(&text, "again");
    text_consume(&text, 99);
    assert_string_equal(text.bytes, "");
    text_append_string(&text, "kept");
    cleanup_free char *taken = text_take(&text);
    assert_string_equal(taken, "kept");
    assert_int_equal(text.length, 0);
    assert_int_equal(text.capacity, 0);
}

TEST(format) {
    cleanup_free char *formatted = text_format("%s-%03d", "dahu", 7);
    assert_string_equal(formatted, "dahu-007");
}

/* Whether BYTES is one valid sequence, by the table of RFC 3629, section 4. */
static bool is_sequence(const unsigned char *b, size_t length) {
#define TAIL(i) (b[i] >= 0x80 && b[i] <= 0xbf)
    if (length == 1)
        return b[0] <= 0x7f;
    if (length == 2)
        return b[0] >= 0xc2 && b[0] <= 0xdf && TAIL(1);
    if (length == 3)
        return TAIL(2) &&
               ((b[0] == 0xe0 && b[1] >= 0xa0 && b[1] <= 0xbf) || (b[0] >= 0xe1 && b[0] <= 0xec && TAIL(1)) ||
                (b[0] == 0xed && b[1] >= 0x80 && b[1] <= 0x9f) || (b[0] >= 0xee && b[0] <= 0xef && TAIL(1)));
    return TAIL(2) && TAIL(3) &&
           ((b[0] == 0xf0 && b[1] >= 0x90 && b[1] <= 0xbf) || (b[0] >= 0xf1 && b[0] <= 0xf3 && TAIL(1)) ||
            (b[0] == 0xf4 && b[1] >= 0x80 && b[1] <= 0x8f));
}

/* Every sequence of one to three bytes, and every first three bytes with some fourth ones. */
TEST(utf8_against_the_table) {
    unsigned char b[4];
    for (unsigned code = 0; code < 1U << 24; code++) {
        b[0] = (unsigned char)(code >> 16), b[1] = (unsigned char)(code >> 8), b[2] = (unsigned char)code;
        if (b[0] >= 0xe0 && b[0] <= 0xef) {
            bool good = text_invalid_utf8((char *)b, 3) == 3;
            if (good != is_sequence(b, 3))
                fail_msg("%02x %02x %02x", b[0], b[1], b[2]);
        }
        if (b[0] >= 0xf0) {
            static const unsigned char fourths[] = {0x00, 0x7f, 0x80, 0xbf, 0xc0, 0xff};
            for (size_t i = 0; i < sizeof fourths; i++) {
                b[3] = fourths[i];
                if ((text_invalid_utf8((char *)b, 4) == 4) != is_sequence(b, 4))
                    fail_msg("%02x %02x %02x %02x", b[0], b[1], b[2], b[3]);
            }
        }
        if (b[2] == 0) {
            bool both = is_sequence(b, 2) || (is_sequence(b, 1) && is_sequence(b + 1, 1));
            if ((text_invalid_utf8((char *)b, 2) == 2) != both)
                fail_msg("%02x %02x", b[0], b[1]);
        }
    }
}

TEST(utf8_offsets) {
    assert_int_equal(text_invalid_utf8("", 0), 0);
    assert_int_equal(text_invalid_utf8("abc\xff", 4), 3);
    assert_int_equal(text_invalid_utf8("a\xc3", 2), 1); /* cut short */
    assert_int_equal(text_invalid_utf8("\xe2\x82\xac\xe2\x82", 5), 3);
    assert_int_equal(text_invalid_utf8("a\0b", 3), 3);
}

TEST(nearest) {
    static const char *const names[] = {"turbo", "frequency", "governor", "repetitions", "m"};
    assert_string_equal(text_nearest("tubro", names, 5), "turbo"); /* neighbours swapped count one */
    assert_string_equal(text_nearest("turbos", names, 5), "turbo");
    assert_string_equal(text_nearest("frequncy", names, 5), "frequency");
    assert_string_equal(text_nearest("repetition", names, 5), "repetitions");
    assert_string_equal(text_nearest("reptition", names, 5), "repetitions");
    assert_null(text_nearest("xyz", names, 5));
    assert_null(text_nearest("n", names, 5)); /* no letter in common */
    assert_null(text_nearest("", names, 5));
    assert_null(text_nearest("turbo", names, 0));
    static const char *const nodes[] = {"node"};
    assert_null(text_nearest("core", nodes, 1)); /* two of four letters: over a third */
    assert_string_equal(text_nearest("nodes", nodes, 1), "node");
    char longest[200];
    memset(longest, 'a', sizeof longest - 1);
    longest[sizeof longest - 1] = '\0';
    assert_null(text_nearest(longest, names, 5));
}

TEST(instead) {
    char ret[TEXT_INSTEAD_SIZE], long_name[500];
    memset(long_name, 'x', sizeof long_name - 1);
    long_name[sizeof long_name - 1] = '\0';
    const char *const names[] = {"turbo", long_name, long_name, "governor"};
    assert_string_equal(text_instead("tubro", names, 4, ret), "did you mean 'turbo'?");
    assert_string_equal(text_instead("nothing", names, 1, ret), "there are: turbo");
    assert_string_equal(text_instead("nothing", NULL, 0, ret), "there are none");
    text_instead("nothing", names, 4, ret); /* one of the long ones fits, and the last still does */
    assert_int_equal(strlen(ret), strlen("there are: turbo, , governor") + strlen(long_name));
}

TEST(find) {
    static const char *const names[] = {"turbo", "frequency", "m"};
    assert_int_equal(text_find("turbo", names, 3), 0);
    assert_int_equal(text_find("m", names, 3), 2);
    assert_int_equal(text_find("m", names, 2), 2); /* only the first two are looked at */
    assert_int_equal(text_find("freq", names, 3), 3);
    assert_int_equal(text_find("turbo", NULL, 0), 0);
}

TEST(marks) {
    cleanup(text_clear) struct text text;
    text_init(&text, 8);
    text_append_string(&text, "ab");
    struct text_mark outer = text_mark(&text);
    text_append_string(&text, "cd");
    struct text_mark inner = text_mark(&text);
    text_append_string(&text, "too long");
    text_append_string(&text, "x"); /* would fit, but what is missing before it is not forgotten */
    assert_int_equal(text_keep(&text, inner), -EFBIG);
    assert_string_equal(text.bytes, "abcd");
    text_append_string(&text, "e");
    assert_int_equal(text_keep(&text, outer), -EFBIG);
    assert_string_equal(text.bytes, "ab");
    outer = text_mark(&text);
    text_append_string(&text, "cde");
    assert_int_equal(text_keep(&text, outer), 0);
    assert_string_equal(text.bytes, "abcde");
    text_cut(&text, 1);
    assert_string_equal(text.bytes, "a");
}

TEST(any_bytes_as_utf8) {
    cleanup(text_clear) struct text text;
    text_init(&text, 100);
    assert_int_equal(text_append_utf8(&text, "\xc3\xa9\0\xe2\x82x\xff", 7), 0);
    assert_string_equal(text.bytes, "\xc3\xa9\xef\xbf\xbd\xef\xbf\xbd\xef\xbf\xbdx\xef\xbf\xbd");
    text.limit = text.length;
    assert_int_equal(text_append_utf8(&text, "\xff", 1), -EFBIG);
}

TEST(words) {
    static const char *const words[] = {"linear", "piecewise", NULL};
    cleanup(text_clear) struct text text;
    text_init(&text, 18);
    text_append_words(&text, NULL);
    assert_string_equal(text.bytes, "");
    text_append_words(&text, words);
    assert_string_equal(text.bytes, "linear, piecewise");
    text_append_words(&text, words); /* too long: cut before the word that does not fit */
    assert_string_equal(text.bytes, "linear, piecewise");
}

TEST(shortened_in_the_middle) {
    char text[] = "a long line of a command, and why it failed";
    assert_int_equal(text_shorten(text, strlen(text), strlen(text)), strlen(text));
    size_t length = text_shorten(text, strlen(text), 25);
    assert_string_equal(text, "a long lin ...  it failed");
    assert_int_equal(length, strlen(text));
    for (size_t most = 16; most < 40; most++) {
        char letters[] =
            "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac"
            "\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac\xe2\x82\xac";
        length = text_shorten(letters, strlen(letters), most);
        assert_true(length <= most && length + 6 > (most < 42 ? most : 42));
        assert_int_equal(strlen(letters), length);
        assert_int_equal(text_invalid_utf8(letters, length), length);
    }
}

/* Which line of a failed command's output is quoted. */
TEST(reason) {
    static const char *const cases[][2] = {
        {"", ""},
        {" \n\t\r\n", ""},
        {"one\ntwo\r\n\n", "two"},
        {"This account is currently not available.\n", "This account is currently not available."},
        {"srun: job 12 queued and waiting for resources\nsrun: error: Unable to create step for job 12: "
         "Invalid "
         "account\n",
         "srun: error: Unable to create step for job 12: Invalid account"},
        {"slurmstepd: error: execve(): ./x: No such file or directory\nsrun: error: n1: task 0: Exited with "
         "exit "
         "code 2\n",
         "slurmstepd: error: execve(): ./x: No such file or directory"},
        {"x.c: In function 'f':\nx.c:1:9: error: 'y' undeclared\n    1 | int x = y;\n      |         "
         "^\nmake: *** "
         "[Makefile:2: x] Error 1",
         "x.c:1:9: error: 'y' undeclared"},
        {"bash: warning: setlocale: LC_ALL: cannot change locale\nsh: 1: xhpl: Permission denied\nbye",
         "sh: 1: xhpl: Permission denied"},
        {"sbatch: error: invalid partition specified: none\nsbatch: error: Batch job submission failed: "
         "Invalid "
         "partition name specified\n",
         "sbatch: error: invalid partition specified: none"},
        {"make: *** [all] Error 1\n", "make: *** [all] Error 1"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        int length;
        const char *found = text_reason(cases[i][0], &length);
        cleanup_free char *line = strndup(found, (size_t)length);
        assert_string_equal(line, cases[i][1]);
    }
}

TEST(shown_to_people) {
    cleanup(text_clear) struct text text;
    text_init(&text, 1000);
    assert_int_equal(text_append_shown(&text, "a\nb\t\0\x1b\x7f\xff", 8, false), 0);
    assert_string_equal(text.bytes, "a\\nb\\t\\x00\\x1b\\x7f\\xff");
    text_reset(&text);
    text_append_shown(&text, "a\nb\t\xc2\x9b\xe2\x80", 8, true);
    assert_string_equal(text.bytes, "a\nb\t\\xc2\\x9b\\xe2\\x80");
    static const char *const controls[] = {"\xd8\x9c",     "\xe2\x80\x8e", "\xe2\x80\x8f", "\xe2\x80\xa8",
                                           "\xe2\x80\xaa", "\xe2\x80\xae", "\xe2\x81\xa6", "\xe2\x81\xa9"};
    static const char *const characters[] = {"\xc2\xa0", "\xd8\x9b", "\xe2\x80\x90", "\xe2\x81\xa5",
                                             "\xf0\x9f\x98\x80"};
    for (size_t i = 0; i < sizeof controls / sizeof *controls; i++)
        assert_true(text_has_control(controls[i]));
    for (size_t i = 0; i < sizeof characters / sizeof *characters; i++)
        assert_false(text_has_control(characters[i]));
}
