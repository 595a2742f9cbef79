/* Numbers as text and back, against the C library. */
#include "engine/foundation/number.h"
#include "tests/test.h"

#include <inttypes.h>
#include <locale.h>

static double from_bits(uint64_t bits) {
    double value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static uint64_t to_bits(double value) {
    uint64_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

static void check_like_strtod(const char *text) {
    double value = 0, expected = strtod(text, NULL);
    bool good = number_parse_double(text, strlen(text), &value);
    if (good != (bool)isfinite(expected) || (good && to_bits(value) != to_bits(expected)))
        fail_msg("'%s' is read as %a, expected %a", text, value, expected);
}

TEST(one_spelling_a_value) {
    static const char *const spellings[][2] = {
        {"100000", "100000"}, {"1e+05", "100000"},
        {"1E5", "100000"},    {"100000.0", "100000"},
        {"007", "7"},         {"+7", "7"},
        {"-0", "0"},          {"0.0", "0"},
        {".5", "0.5"},        {"5e-1", "0.5"},
        {"-1.50", "-1.5"},    {"9007199254740991", "9007199254740991"}};
    char buffer[NUMBER_TEXT_SIZE] = "untouched";
    for (size_t i = 0; i < sizeof spellings / sizeof *spellings; i++) {
        assert_true(number_spell(spellings[i][0], buffer));
        assert_string_equal(buffer, spellings[i][1]);
        assert_true(number_texts_equal(spellings[i][0], spellings[i][1]));
    }
    static const char *const others[] = {
        "", "x", "1 ", "0x10", "nan", "inf", "9007199254740992", "20261127225531001"};
    for (size_t i = 0; i < sizeof others / sizeof *others; i++)
        assert_false(number_spell(others[i], buffer));
    assert_true(number_texts_equal("x", "x"));
    assert_false(number_texts_equal("x", "1"));
    assert_false(number_texts_equal("1", "1.5"));
    assert_false(number_texts_equal("9007199254740993", "9007199254740992"));
}

TEST(parse_double_like_strtod) {
    static const char *const texts[] = {
        "0",
        "-0",
        "+1",
        "1.",
        ".5",
        "-.5e1",
        "00012",
        "1e22",
        "1e23",
        "-1e-22",
        "9007199254740992",
        "9007199254740993",
        "9007199254740995",
        "18446744073709551615",
        "18446744073709551616",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "2.2250738585072011e-308",
        "4.9406564584124654e-324",
        "2.4703282292062327e-324",
        "2.4703282292062328e-324",
        "1e-400",
        "1e400",
        "-1e400",
        "0e400",
        "0.1",
        "0.30000000000000004",
        "123456789012345678901234567890",
        "1e0000000000000000000001",
        "0.000000000000000000000000000000000000000000000000000000000000001e63",
        "8.5",
        "1e-100000000",
        "1e100000000"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++)
        check_like_strtod(texts[i]);
}

TEST(parse_double_random_texts) {
    for (int i = 0; i < 500000; i++) {
        char text[64];
        int digits = 1 + (int)(test_random_bits() % 19), point = (int)(test_random_bits() % 24),
            exponent = (int)(test_random_bits() % 61) - 30;
        size_t at = 0;
        for (int j = 0; j < digits; j++) {
            if (j == point)
                text[at++] = '.';
            text[at++] = (char)('0' + test_random_bits() % 10);
        }
        text[at] = '\0';
        if (test_random_bits() & 1)
            snprintf(text + at, sizeof text - at, "e%d", exponent);
        check_like_strtod(text);
    }
}

/* Halfway between two doubles, and one unit of the last digit beside it: where rounding is hardest. */
TEST(parse_double_near_ties) {
    for (int i = 0; i < 200000; i++) {
        uint64_t odd = (UINT64_C(1) << 53) + (test_random_bits() & ((UINT64_C(1) << 53) - 1));
        uint64_t middle = 2 * odd + 1; /* 54 or 55 bits: halfway */
        char text[64];
        snprintf(text, sizeof text, "%" PRIu64 "%s", middle + test_random_bits() % 3 - 1,
                 test_random_bits() & 1 ? "0" : "");
        check_like_strtod(text);
        snprintf(text, sizeof text, "%" PRIu64 "e-%d", middle + test_random_bits() % 3 - 1,
                 (int)(test_random_bits() % 30));
        check_like_strtod(text);
    }
}

TEST(parse_double_refuses) {
    static const char *const texts[] = {"",    "+",     "-",    ".",        "e5",    "1e",   "1e+",   "1 ",
                                        " 1",  "1x",    "0x10", "inf",      "nan",   "-inf", "1.2.3", "--1",
                                        "+-1", "1e5.5", "1,5",  "infinity", "1_000", "\t1",  "1e--5", "."};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        double value = 42;
        if (number_parse_double(texts[i], strlen(texts[i]), &value) || value != 42)
            fail_msg("'%s' was taken", texts[i]);
    }
    double value = 42;
    assert_false(number_parse_double("1\0", 2, &value)); /* a NUL is a byte like any other */
    assert_true(number_parse_double("15xyz", 2, &value));
    assert_true(value == 15);
}

TEST(doubles_round_trip) {
    for (int i = 0; i < 1000000; i++) {
        double value = from_bits(test_random_bits());
        if (!isfinite(value))
            continue;
        char text[NUMBER_TEXT_SIZE];
        double again;
        size_t length = number_format_double(value, text);
        if (length != strlen(text) || !number_parse_double(text, length, &again) ||
            to_bits(again) != to_bits(value))
            fail_msg("%a is written as '%s'", value, text);
    }
    static const double ends[] = {
        0.0,  -0.0, 0x1p-1074,      -0x1p-1074,         0x1.fffffffffffffp1023, 0x1p-1022,
        0.1,  1e15, 1e16,           9007199254740991.0, 9007199254740992.0,     9007199254740994.0,
        1e22, 1e23, 5.803674000e-01};
    for (size_t i = 0; i < sizeof ends / sizeof *ends; i++) {
        char text[NUMBER_TEXT_SIZE];
        double again = 1;
        assert_true(number_parse_double(text, number_format_double(ends[i], text), &again));
        assert_true(to_bits(again) == to_bits(ends[i]));
    }
}

static void check_double_text(double value, const char *expected) {
    char text[NUMBER_TEXT_SIZE];
    assert_int_equal(number_format_double(value, text), strlen(expected));
    assert_string_equal(text, expected);
}

TEST(format_double_is_short) {
    check_double_text(0.1, "0.1");
    check_double_text(0.5803674, "0.5803674");
    check_double_text(1000000, "1000000");
    check_double_text(-3, "-3");
    check_double_text(-0.0, "-0");
    check_double_text(1e300, "1e+300");
    check_double_text(0.1 + 0.2, "0.30000000000000004");
    check_double_text(NAN, "nan");
    check_double_text(INFINITY, "inf");
    check_double_text(-INFINITY, "-inf");
}

/* Nobody may set a locale behind our back and turn points into commas. */
TEST(locale_does_not_matter) {
    static const char *const names[] = {"de_DE.UTF-8", "fr_FR.UTF-8", "de_DE", "fr_FR"};
    const char *set = NULL;
    for (size_t i = 0; i < 4 && !set; i++)
        set = setlocale(LC_NUMERIC, names[i]);
    if (!set)
        test_skip("no locale with a decimal comma is installed");
    check_double_text(0.1 + 0.2, "0.30000000000000004");
    double value;
    assert_true(number_parse_double("1.5e-300", 8, &value));
    assert_true(value == 1.5e-300);
    setlocale(LC_NUMERIC, "C");
}

TEST(integers) {
    static const int64_t ends[] = {
        0, 1, -1, 9, 10, -10, INT64_MAX, INT64_MIN, INT64_MAX - 1, INT64_MIN + 1, INT64_C(1) << 53};
    for (size_t i = 0; i < 200000; i++) {
        int64_t value = i < sizeof ends / sizeof *ends
                            ? ends[i]
                            : (int64_t)(test_random_bits() >> test_random_bits() % 64);
        char text[NUMBER_TEXT_SIZE], expected[32];
        snprintf(expected, sizeof expected, "%" PRId64, value);
        size_t length = number_format_int64(value, text);
        assert_string_equal(text, expected);
        int64_t again = ~value;
        assert_true(number_parse_int64(text, length, &again));
        assert_true(again == value);
    }
    char text[NUMBER_TEXT_SIZE];
    number_format_uint64(UINT64_MAX, text);
    assert_string_equal(text, "18446744073709551615");
    uint64_t value = 0;
    assert_true(number_parse_uint64(text, 20, &value));
    assert_true(value == UINT64_MAX);
}

TEST(integers_refuse) {
    static const char *const texts[] = {"",
                                        "-",
                                        "+",
                                        "1e3",
                                        "1.0",
                                        " 1",
                                        "1 ",
                                        "9223372036854775808",
                                        "-9223372036854775809",
                                        "99999999999999999999",
                                        "0x1",
                                        "--1",
                                        "+-1",
                                        "a"};
    for (size_t i = 0; i < sizeof texts / sizeof *texts; i++) {
        int64_t value = 42;
        if (number_parse_int64(texts[i], strlen(texts[i]), &value) || value != 42)
            fail_msg("'%s' was taken", texts[i]);
    }
    uint64_t value = 42;
    assert_false(number_parse_uint64("18446744073709551616", 20, &value));
    assert_false(number_parse_uint64("-1", 2, &value));
    assert_false(number_parse_uint64("+1", 2, &value));
    assert_true(value == 42);
    int64_t with_sign = 0;
    assert_true(number_parse_int64("+007", 4, &with_sign));
    assert_true(with_sign == 7);
}

static void check_bytes(double bytes, const char *expected) {
    char text[NUMBER_TEXT_SIZE];
    assert_string_equal(number_describe_bytes(bytes, text), expected);
}

static void check_duration(double seconds, const char *expected) {
    char text[NUMBER_TEXT_SIZE];
    assert_string_equal(number_describe_duration(seconds, text), expected);
}

TEST(descriptions) {
    check_bytes(0, "0 B");
    check_bytes(999, "999 B");
    check_bytes(1023, "0.999 KiB");
    check_bytes(1536, "1.5 KiB");
    check_bytes(999.7 * 1024, "0.976 MiB"); /* not "1e+03 KiB" */
    check_bytes(64.0 * (1 << 20), "64 MiB");
    check_duration(0, "0 s");
    check_duration(1.5e-9, "1.5 ns");
    check_duration(999.7e-9, "1 us");
    check_duration(20e-6, "20 us");
    check_duration(999.7e-6, "1 ms");
    check_duration(0.9997, "1 s");
    check_duration(1.25, "1.25 s");
    check_duration(90, "90 s");
    check_duration(125, "2 min 05 s");
    check_duration(7260, "2 h 01 min");
    check_duration(5 * 86400, "5 d");
    check_duration(1500.0 * 86400, "1500 d");
    check_duration(INFINITY, "unknown");
    check_duration(NAN, "unknown");
}
