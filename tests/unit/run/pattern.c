/* Patterns of responses: what they find, what is refused, and that hostile ones end. */
#include "engine/run/campaign/pattern.h"
#include "tests/test.h"

#include <sys/resource.h>

TEST(what_is_found) {
    static const struct {
        const char *pattern, *text, *found; /* NULL: nothing */
    } cases[] = {
        {"took ([0-9]+) s", "it took 12 s\nit took 13 s\n", "12"},
        {"^time: *(-?[0-9.]+([eE][-+]?[0-9]+)?)$", "a time: 1\ntime:  -1.5e-3\n", "-1.5e-3"},
        {"^x ([0-9]+)$", "x 1 \nx 2\nx 3", "2"},
        {"a.b([0-9])", "a\nb1", NULL}, /* . is no newline */
        {"[[:space:]]([[:digit:]]+)[]x]", "12] 34]", "34"},
        {"(1|12)", "12", "12"}, /* the longest */
        {"(GB|MB)/s = ([0-9]+)", "MB/s = 3", "MB"},
        {"x(y)?z", "xz", NULL}, /* the group takes no part */
        {"\\(([0-9]{2,3})\\)", "(1) (1234) (12)", "12"},
        {"a\nb ([0-9])", "a\nb 1", "1"},
        {"n ([0-9])", "a\0n 1", "1"}, /* behind a NUL, too */
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        regex_t compiled;
        char reason[PATTERN_REASON_SIZE];
        const char *match;
        size_t length, text = cases[i].text[1] ? strlen(cases[i].text) : 5;
        assert_int_equal(pattern_compile(cases[i].pattern, &compiled, reason), 0);
        bool found = pattern_find(&compiled, cases[i].text, text, &match, &length) > 0;
        if (found != (cases[i].found != NULL) ||
            (found && (length != strlen(cases[i].found) || memcmp(match, cases[i].found, length) != 0)))
            fail_msg("'%s' finds '%.*s'", cases[i].pattern, found ? (int)length : 0, found ? match : "");
        tre_regfree(&compiled);
    }
}

/* BEFORE, MIDDLE and AFTER, the first and the last TIMES times. The caller frees. */
static char *repeat(const char *before, const char *middle, const char *after, size_t times) {
    char *text = calloc(1, times * (strlen(before) + strlen(after)) + strlen(middle) + 1), *end = text;
    assert_non_null(text);
    for (size_t i = 0; i < times; i++)
        end = stpcpy(end, before);
    end = stpcpy(end, middle);
    for (size_t i = 0; i < times; i++)
        end = stpcpy(end, after);
    return text;
}

TEST(what_is_refused) {
    static const struct {
        const char *before, *middle, *after;
        size_t times;
        const char *reason; /* NULL: it compiles */
    } cases[] = {
        {"", "(", "", 0, "is not an extended regular expression: Missing ')'"},
        {"", "[0-9]+", "", 0, "has no group, expected parentheses around the number"},
        {"", "(a)\\1", "", 0, "has '\\1', which extended regular expressions do not"},
        {"", "\\Q(\\E(1)", "", 0, "has '\\Q', which extended regular expressions do not"},
        {"(", "1", ")", 14000, "has 28001 bytes, expected at most 500"},
        {"(", "1", ")", PATTERN_NESTING_MAX, NULL},
        {"(", "1", ")", PATTERN_NESTING_MAX + 1, "has parentheses 11 deep, expected at most 10"},
        {"a|", "(1)", "", 400000, "has 800003 bytes, expected at most 500"},
        {"a|", "(1)", "", 248, NULL},
        {"(", "a", "){1,2}", PATTERN_NESTING_MAX, "has more than 1000 characters when"},
        {"((a{250}){4}", "", "", 1, "has more than 1000 characters when"},
        {"([](){}[:alpha:]]{99})", "", "", 1, NULL},
        {"([](){}[:alpha:]]{99}){11}", "", "", 1, "has more than 1000 characters when"},
        {"(a{99999999999999999999})", "", "", 1, "has more than 1000 characters when"},
        {"", "(((a?){9})*){9}", "", 1, NULL},
        {"", "((a*)*|(b*)*){40}", "", 1, NULL}, /* which takes the C library years */
        {"", "[", "", 1, "is not an extended regular expression: Missing ']'"},
        {"", "(a{3", "", 1, "is not an extended regular expression: "},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup_free char *pattern = repeat(cases[i].before, cases[i].middle, cases[i].after, cases[i].times);
        regex_t compiled;
        char reason[PATTERN_REASON_SIZE] = "";
        int r = pattern_compile(pattern, &compiled, reason);
        const char *wanted = cases[i].reason;
        if (r != (wanted ? -EINVAL : 0) || (wanted && strncmp(reason, wanted, strlen(wanted)) != 0))
            fail_msg("case %zu, '%.40s': %d, '%s'", i, pattern, r, reason);
        if (r == 0)
            tre_regfree(&compiled);
    }
}

/* A line of 1 MiB, which a matcher that begins anew at each character, or keeps what it has seen, would take
 * hours or gigabytes for. */
TEST(hostile_outputs_end) {
    static const char *const patterns[] = {"x.*y([0-9])", "(x|y)*x(x|y){20}z", "(x*)+(y|x*)+(x*z)+$"};
    enum { SIZE = 1 << 20 };
    cleanup_free char *text = malloc(SIZE);
    assert_non_null(text);
    uint32_t random = 1;
    for (size_t i = 0; i < SIZE; i++) {
        random = random * 1664525 + 1013904223;
        text[i] = random >> 31 ? 'x' : 'y';
    }
    struct rusage before, after;
    getrusage(RUSAGE_SELF, &before);
    for (size_t i = 0; i < sizeof patterns / sizeof *patterns; i++) {
        regex_t compiled;
        char reason[PATTERN_REASON_SIZE];
        const char *match;
        size_t length;
        assert_int_equal(pattern_compile(patterns[i], &compiled, reason), 0);
        assert_true(pattern_find(&compiled, text, SIZE, &match, &length) <= 0);
        tre_regfree(&compiled);
    }
    getrusage(RUSAGE_SELF, &after);
    assert_true(after.ru_maxrss - before.ru_maxrss < 16 << 10); /* KiB */
}

/* Numbers that begin at any place about where one piece of the text ends are found whole. */
TEST(matches_between_pieces) {
    enum { SIZE = 400 << 10, PIECE = 128 << 10 };
    static char text[SIZE];
    char reason[PATTERN_REASON_SIZE];
    regex_t compiled;
    const char *match;
    size_t length;
    assert_int_equal(pattern_compile("^took ([0-9]+)$", &compiled, reason), 0);
    for (size_t at = PIECE - 40; at < PIECE + 5; at++) {
        memset(text, '\n', SIZE);
        memcpy(text + at, "took 1234567890\n", 16);
        assert_int_equal(pattern_find(&compiled, text, SIZE, &match, &length), 1);
        assert_ptr_equal(match, text + at + 5);
        assert_int_equal(length, 10);
        text[at - 1] = 'x'; /* no line begins there */
        assert_int_equal(pattern_find(&compiled, text, SIZE, &match, &length), 0);
    }
    tre_regfree(&compiled);
}

TEST(a_search_is_given_up) {
    enum { SIZE = 16 << 20 };
    char reason[PATTERN_REASON_SIZE], *text = malloc(SIZE);
    regex_t compiled;
    const char *match;
    size_t length;
    memset(text, 'a', SIZE);
    assert_int_equal(pattern_compile("(([a-z]{1,20} ?){1,20})+: ([0-9]+)", &compiled, reason), 0);
    assert_int_equal(pattern_find(&compiled, text, SIZE, &match, &length), -ETIMEDOUT);
    tre_regfree(&compiled);
    free(text);
}
