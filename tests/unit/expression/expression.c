/* Expressions: values, precedence, nan, and every refusal with its place. */
#include "engine/expression/expression.h"
#include "engine/foundation/text.h"
#include "tests/test.h"

static const char *const names[] = {"m", "n", "k", "lda", "and_so", "min"};
static const double values[] = {3, 4, 5, 100, 7, 11};
enum { NAME_COUNT = 6 };

static struct expression *parse(const char *text) {
    struct expression *expression = NULL;
    if (expression_parse(text, names, NAME_COUNT, "e.yaml", 3, 10, &expression, &test_failure) < 0) {
        print_message("'%s': %s: %s\n", text, test_failure.place, test_failure.text);
        fail();
    }
    return expression;
}

static double value_of(const char *text) {
    struct expression *expression = parse(text);
    double value = expression_value(expression, values);
    expression_free(expression);
    return value;
}

TEST(values) {
    static const struct {
        const char *text;
        double value;
    } cases[] = {
        {"1", 1},
        {" .5 ", 0.5},
        {"1e3", 1000},
        {"1.5e-2", 0.015},
        {"64MiB", 67108864},
        {"1kB+1KiB", 2024},
        {"0.5GiB", 536870912},
        {"2B", 2},
        {"m", 3},
        {"m+n*k", 23},
        {"(m+n)*k", 35},
        {"10-3-2", 5},
        {"100/10/5", 2},
        {"17 % 5", 2},
        {"-17 % 5", -2},
        {"7 % -4", 3},
        {"2^3^2", 512},
        {"-2^2", -4},
        {"(-2)^2", 4},
        {"2^-3", 0.125},
        {"--m", 3},
        {"+m", 3},
        {"2^0.5^2", 0x1.306fe0a31b715p+0}, /* 2^(0.25), rounded */
        {"m<n", 1},
        {"m>n", 0},
        {"m<=3", 1},
        {"m>=4", 0},
        {"m==3", 1},
        {"m!=3", 0},
        {"m+1==n", 1},
        {"not m==3", 0},
        {"not 0", 1},
        {"not not 5", 1},
        {"m<n and n<k", 1},
        {"m>n or n<k", 1},
        {"0 or 0 and 1", 0},
        {"1 or 0 and 0", 1},
        {"not 0 and 0", 0},
        {"min(m,n,k)", 3},
        {"max(m,n,k)", 5},
        {"max( m )", 3},
        {"min", 11}, /* a name, since no parenthesis follows */
        {"min(min, m)", 3},
        {"ceil(2.1)+floor(2.9)", 5},
        {"ceil(-2.5)", -2},
        {"sqrt(16)", 4},
        {"abs(-3.5)", 3.5},
        {"log2(1024)", 10},
        {"gcd(12, 18)", 6},
        {"gcd(-12, 18, 8)", 2},
        {"gcd(0, 7)", 7},
        {"gcd(0, 0)", 0},
        {"lcm(4, 6)", 12},
        {"lcm(-4, 6, 5)", 60},
        {"lcm(0, 5)", 0},
        {"lcm(2^53, 2^53)", 0x1p53},
        {"round_down(1000, 192)", 960},
        {"round_down(960, 192)", 960},
        {"round_down(191, 192)", 192}, /* once at least */
        {"round_down(0, 192)", 0},
        {"round_down(-1, 192)", -192},
        {"round_down(1, 0.25)", 1},
        {"round_down(2^53 - 1, 2)", 0x1p53 - 2},
        {"grid_rows(1)", 1},
        {"grid_rows(12)", 3},
        {"grid_rows(64)", 8},
        {"grid_rows(97)", 1},
        {"grid_rows(2^40)", 0x1p20},
        {"grid_rows(2^40 - 87)", 1}, /* the largest prime below it */
        {"cbrt(27)", 3},
        {"cbrt(-0.125)", -0.5},
        {"1e12 ^ (1/3)", 1e4},
        {"0 ^ (1/3)", 0},
        {"and_so", 7},
        {"8 * (m * n + n * k + m * k) + 64MiB", 8 * 47 + 67108864.0},
        {"\tm\n+\r1 ", 4},
        {"1.7976931348623157e308*10", INFINITY},
        {"1/0", INFINITY},
        {"-1/0", -INFINITY},
        {"lda >= max(m, k)", 1},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double value = value_of(cases[i].text);
        if (value != cases[i].value)
            print_message("%s is %.17g, expected %.17g\n", cases[i].text, value, cases[i].value);
        assert_true(value == cases[i].value);
    }
}

TEST(nan) {
    static const char *const nans[] = {"0/0",
                                       "sqrt(-1)",
                                       "log2(-1)",
                                       "0/0 < 1",
                                       "not 0/0",
                                       "1 and 0/0",
                                       "0/0 and 1",
                                       "0 or 0/0",
                                       "0/0 or 0",
                                       "min(1, 0/0)",
                                       "min(0/0, 1)",
                                       "max(1, 0/0)",
                                       "max(0/0, 1)",
                                       "5 % 0",
                                       "0/0 == 0/0",
                                       "0/0 != 0/0",
                                       "gcd(2.5, 5)",
                                       "lcm(2^54, 3)",
                                       "lcm(2^53, 3)",
                                       "gcd(0/0, 1)",
                                       "gcd(1/0, 1)",
                                       "grid_rows(0)",
                                       "grid_rows(6.5)",
                                       "grid_rows(2^41)",
                                       "grid_rows(0/0)",
                                       "round_down(5, 0)",
                                       "round_down(5, -2)",
                                       "round_down(1/0, 2)",
                                       "round_down(0/0, 2)",
                                       "round_down(5, 0/0)",
                                       "(-8) ^ (1/3)",
                                       "cbrt(0/0)"};
    for (size_t i = 0; i < sizeof nans / sizeof *nans; i++)
        assert_true(isnan(value_of(nans[i])));
    /* The side that decides decides, whichever it is. */
    assert_true(value_of("0 and 0/0") == 0 && value_of("0/0 and 0") == 0);
    assert_true(value_of("1 or 0/0") == 1 && value_of("0/0 or 1") == 1);
    assert_true(value_of("m - 3 == 0 or (m - 3) / (m - 3) > 1") == 1);
}

TEST(refusals) {
    static const struct {
        const char *text;
        size_t column; /* in the file: 10 is the first of the text */
        const char *sentence;
    } cases[] = {
        {"", 10, "found the end, expected a number, a name or '('"},
        {"m +", 13, "found the end, expected a number, a name or '('"},
        {"m + * n", 14, "found '*', expected a number, a name or '('"},
        {"m n", 12, "found 'n', expected an operator or the end"},
        {"(m", 12, "found the end, expected ')' or an operator"},
        {"m)", 11, "found ')', expected an operator or the end"},
        {"max(m, n", 18, "found the end, expected ')' or an operator"},
        {"max()", 14, "found ')', expected a number, a name or '('"},
        {"max(m,)", 16, "found ')', expected a number"},
        {"sqrt(m, n)", 10, "more than one argument of 'sqrt', expected one"},
        {"ldb + 1", 10, "unknown name 'ldb', did you mean 'lda'"},
        {"m * frequency", 14, "unknown name 'frequency', expected one of m, n, k, lda, and_so, min"},
        {"maxx(m)", 10, "unknown function 'maxx', did you mean 'max'"},
        {"m(n)", 10,
         "unknown function 'm', expected one of min, max, ceil, floor, sqrt, cbrt, abs, log2, gcd, lcm, "
         "round_down, grid_rows"},
        {"round_down(m)", 10, "one argument of 'round_down', expected two"},
        {"round_down(m, n, k)", 10, "more than two arguments of 'round_down', expected two"},
        {"2 * 64Mib", 14, "'64Mib' is not a number, expected one such as 12, 0.5, 1e9 or 64MiB"},
        {"1.2.3", 10, "'1.2.3' is not a number"},
        {"1e", 10, "'1e' is not a number"},
        {"1e999", 10, "'1e999' is not a number"},
        {"12m", 10, "'12m' is not a number"},
        {"0x10", 10, "'0x10' is not a number"},
        {"m < n < k", 16, "a second comparison, expected 'and' between two"},
        {"m = n", 12, "found '=', expected an operator or the end"},
        {"m && n", 12, "found '&', expected an operator or the end"},
        {"m and", 15, "found the end"},
        {"and", 10, "found 'and', expected a number"},
        {"m + not n", 14, "found 'not', expected a number"},
        {"m \xc3\xa9", 12, "found '\xc3\xa9', expected an operator"},
        {"m; n", 11, "found ';', expected an operator"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct expression *expression = NULL;
        char place[64];
        snprintf(place, sizeof place, "e.yaml:3:%zu", cases[i].column);
        int r =
            expression_parse(cases[i].text, names, NAME_COUNT, "e.yaml", 3, 10, &expression, &test_failure);
        if (r == 0 || strcmp(test_failure.place, place) != 0 || !strstr(test_failure.text, cases[i].sentence))
            print_message("'%s': %s: %s; expected %s: %s\n", cases[i].text, test_failure.place,
                          test_failure.text, place, cases[i].sentence);
        assert_int_equal(r, -22);
        assert_int_equal(test_failure.kind, FAILURE_INPUT);
        assert_string_equal(test_failure.place, place);
        assert_says(test_failure.text, cases[i].sentence);
        assert_null(expression);
    }
}

/* PREFIX COUNT times, MIDDLE, SUFFIX COUNT times. */
static char *nested(const char *prefix, const char *middle, const char *suffix, size_t count) {
    struct text text;
    text_init(&text, 1 << 20);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(text_append_string(&text, prefix), 0);
    assert_int_equal(text_append_string(&text, middle), 0);
    for (size_t i = 0; i < count; i++)
        assert_int_equal(text_append_string(&text, suffix), 0);
    return text_take(&text);
}

static void check_limit(const char *prefix, const char *suffix, size_t good, size_t bad,
                        const char *sentence) {
    struct expression *expression = NULL;
    cleanup_free char *fits = nested(prefix, "1", suffix, good), *too_deep = nested(prefix, "1", suffix, bad);
    assert_ok(expression_parse(fits, NULL, 0, NULL, 0, 0, &expression, &test_failure));
    assert_true(isfinite(expression_value(expression, NULL)));
    expression_free(expression);
    expression = NULL;
    assert_int_equal(expression_parse(too_deep, NULL, 0, NULL, 0, 0, &expression, &test_failure), -22);
    assert_null(expression);
    assert_says(test_failure.text, sentence);
}

TEST(limits) {
    const char *deep = "more than 64 levels of nesting";
    check_limit("(", ")", EXPRESSION_DEPTH_MAX - 1, EXPRESSION_DEPTH_MAX, deep);
    check_limit("-", "", EXPRESSION_DEPTH_MAX - 1, 4000, deep);
    check_limit("not ", "", EXPRESSION_DEPTH_MAX - 1, 1000, deep);
    check_limit("1^", "", EXPRESSION_DEPTH_MAX - 1, 2000, deep);
    check_limit("max(", ")", EXPRESSION_DEPTH_MAX - 1, 800, deep);
    /* Six values wait at each level: the stack is full before the nesting is. */
    check_limit("1 or 1 and 1 < 1 + 1 * (", ")", 50, 60, "too many unfinished operations");
    /* A long chain needs neither. */
    check_limit("1 + ", "", 1000, 1024, "expected at most 4096");
}

TEST(questions) {
    cleanup(expression_cleanup) struct expression *expression = parse("max(m, k) + m");
    assert_true(expression_uses(expression, 0));
    assert_false(expression_uses(expression, 1));
    assert_true(expression_uses(expression, 2));
    assert_string_equal(expression_text(expression), "max(m, k) + m");
    assert_int_equal(expression_failure(expression, &test_failure, "%d is odd", 3), -22);
    assert_string_equal(test_failure.place, "e.yaml:3:10");
    assert_string_equal(test_failure.text, "3 is odd");
    expression_free(NULL);
}

TEST(comparisons_with_texts) {
    static const char *const columns[] = {"host", "size"};
    /* size, then whether each comparison holds, and what the condition then is */
    static const struct {
        const char *text;
        double values[4], expected;
    } cases[] = {
        {"host == 'a'", {NAN, 0, 1}, 1},
        {"host != \"it's\" and size > 2", {NAN, 3, 0}, 1},
        {"host == 'a' or host=='b'", {NAN, 3, 0, 1}, 1},
        {"not host == 'a'", {NAN, 3, 1}, 0},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        cleanup(expression_cleanup) struct expression *condition = NULL;
        size_t name = 9;
        assert_ok(expression_parse_condition(cases[i].text, columns, 2, &condition, &test_failure));
        assert_true(expression_comparison_count(condition) == (i == 2 ? 2 : 1));
        assert_string_equal(expression_comparison(condition, 0, &name), i == 1 ? "it's" : "a");
        assert_int_equal(name, 0);
        assert_false(expression_uses(condition, 0));
        assert_true(expression_value(condition, cases[i].values) == cases[i].expected);
    }
    static const char *const refused[] = {"host == 'a", "'a' == host", "host < 'a'"};
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        struct expression *condition = NULL;
        assert_true(expression_parse_condition(refused[i], columns, 2, &condition, &test_failure) < 0);
    }
    struct expression *other = NULL;
    assert_true(expression_parse("host == 'a'", columns, 2, NULL, 0, 0, &other, &test_failure) < 0);
}
