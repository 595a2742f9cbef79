#include "engine/model/formula.h"
#include "tests/test.h"

#pragma GCC diagnostic ignored "-Wdiscarded-qualifiers" /* models of literals */

#define LENGTH(array) (sizeof(array) / sizeof *(array))

static char *hosts[] = {"", "a", "b", "c"}, *modes[] = {"p", "q"}, *one[] = {"only"};
static const struct model_column columns[] = {
    {.about.name = "m", .about.unit = "1", .about.type = COLUMN_INTEGER},
    {.about.name = "n", .about.unit = "1", .about.type = COLUMN_NUMBER},
    {.about.name = "k", .about.unit = "1"},
    {.about.name = "size", .about.unit = "By"},
    {.about.name = "host", .about.type = COLUMN_STRING, .levels = hosts, .level_count = 4},
    {.about.name = "mode", .levels = modes, .level_count = 2},
    {.about.name = "lone", .about.type = COLUMN_BOOLEAN, .levels = one, .level_count = 1},
    {.about.name = "my size", .about.unit = NULL},
    {.about.name = "y", .about.unit = "s"},
    {.about.name = "1"},
};

static struct formula read_with(const char *text, const char *const *sizes, size_t size_count) {
    const struct formula_context context = {columns, LENGTH(columns), "y", sizes, size_count};
    struct formula formula;
    assert_ok(formula_read(text, &context, &formula, &test_failure));
    return formula;
}

static struct formula read_good(const char *text) {
    return read_with(text, NULL, 0);
}

static void expect_refusal(const char *text, const char *sentence) {
    const struct formula_context context = {columns, LENGTH(columns), "y", NULL, 0};
    cleanup(formula_clear) struct formula formula = {0};
    int r = formula_read(text, &context, &formula, &test_failure);
    if (r == 0 && (r = formula_expand(&formula, columns, LENGTH(columns), &formula, &test_failure)) == 0)
        fail_msg("%s is read", text);
    if (!strstr(test_failure.text, sentence))
        fail_msg("%s: '%s'; expected '%s'", text, test_failure.text, sentence);
    assert_int_equal(test_failure.kind, FAILURE_INPUT);
}

/* A formula as it is printed; what is printed reads back as the same. */
TEST(reads_and_prints) {
    static const char *const cases[][2] = {
        {"1+m*n*k", "1 + m*n*k"},
        {" m ^ 2*n + 1 ", "m^2*n + 1"},
        {"mnk", "m*n*k"},
        {"m*m*n", "m^2*n"},
        {"n^2*m^-1*log2(size)^2", "n^2*m^-1*log2(size)^2"},
        {"m*log2(m)", "m*log2(m)"},
        {"`my size`^3 + `1`*m", "`my size`^3 + `1`*m"},
        {"m*host + category(mode)", "host*m + category(mode)"},
        {"category(m)*m", "category(m)*m"},
        {"category(host)", "host"},
        {"M-0", "1"},
        {"M-1", "1 + m*n*k"},
        {"M-2", "1 + m*n*k + m*n + m*k + n*k"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        struct formula formula = read_good(cases[i][0]);
        char *printed = formula_print(&formula);
        assert_string_equal(printed, cases[i][1]);
        struct formula again = read_good(printed);
        char *twice = formula_print(&again);
        assert_string_equal(twice, printed);
        free(printed), free(twice);
        formula_clear(&formula), formula_clear(&again);
    }
    struct formula formula = read_good("1+m^2*log2(size)^-1*host");
    assert_int_equal(formula.term_count, 2);
    assert_int_equal(formula.terms[0].factor_count, 0);
    const struct model_factor *factors = formula.terms[1].factors;
    assert_string_equal(factors[0].column, "host");
    assert_string_equal(factors[0].function, FORMULA_CATEGORY);
    assert_true(factors[1].power == 2 && !factors[1].function && factors[2].power == -1);
    assert_string_equal(factors[2].function, "log2");
    assert_int_equal(formula.places[1], 3);
    assert_null(formula.note);
    formula_clear(&formula);
    formula = read_good("mmn");
    assert_string_equal(formula.terms[0].name, "m^2*n");
    assert_says(formula.note, "'mmn' is no column, and is read as the product of its letters");
    formula_clear(&formula);
}

TEST(named_models) {
    static const char *const two[] = {"size", "n"}, *const single[] = {"my size"};
    static const char *const expected[][3] = {{"1", "1 + size*n", "1 + size*n + size + n"},
                                              {"1", "1 + `my size`", "1 + `my size`"}};
    for (int degree = 0; degree < 3; degree++)
        for (size_t i = 0; i < 2; i++) {
            struct formula formula =
                read_with((char[]){'M', '-', (char)('0' + degree), 0}, i ? single : two, i ? 1 : 2);
            cleanup_free char *printed = formula_print(&formula);
            assert_string_equal(printed, expected[i][degree]);
            formula_clear(&formula);
        }
    const struct formula_context context = {columns, 2, "y", NULL, 0};
    struct formula formula;
    assert_error(formula_read("M-2", &context, &formula, &test_failure), -EINVAL,
                 "M-2 uses the sizes m, n, k, but there is no column 'k'; name the columns");
    assert_error(formula_read("M-3", &context, &formula, &test_failure), -EINVAL,
                 "there is no model 'M-3'; expected M-0, M-1 or M-2");
}

TEST(refusals) {
    static const char *const cases[][2] = {
        {"", "terms '', column 1: the terms end where a column or 1 was expected"},
        {"1+", "column 3: the terms end"},
        {"1 + m*", "column 7: the terms end"},
        {"m n", "column 3: 'n' where '+' or '*' was expected"},
        {"m-n", "column 2: '-' where '+' or '*' was expected"},
        {"2*m", "column 1: '2' where a column or 1 was expected (only the constant 1 is a number)"},
        {"m^0", "column 3: expected a whole power from 1 to 16 or from -16 to -1"},
        {"m^1.5", "expected a whole power"},
        {"m^99999999999999999999", "expected a whole power"},
        {"m^9*n^8", "column 5: the powers of a term add up to more than 16"},
        {"m*m^-1", "column 3: the powers of 'm' cancel"},
        {"mnk^2",
         "a power after 'mnk' may mean the last letter or the whole product; separate the letters by"},
        {"mnq", "there is no column 'mnq'"},
        {"sise", "did you mean 'size'?"},
        {"`m", "column 1: a backquote that is not closed"},
        {"`q`", "there is no column 'q'"},
        {"ln(m)", "column 1: there is no function 'ln'; the functions are log2 and category"},
        {"log2(m", "column 7: expected ')' after the column of log2("},
        {"log2(q)", "column 6: there is no column 'q'"},
        {"log2(host)", "'host' has texts; log2() needs a column of numbers"},
        {"host^2", "'host' is a category and cannot have a power"},
        {"category(mode)^2", "'mode' is a category and cannot have a power"},
        {"host*m*host", "column 8: the category 'host' occurs twice in the same term"},
        {"m*n + 1 + nm", "column 11: the term n*m is given twice"},
        {"1+y", "column 3: 'y' is the response, and cannot be a term of its own model"},
        {"log2(y)", "'y' is the response"},
        /* Dummies that add up to other terms, and what to write instead. */
        {"1 + category(mode)*host",
         "column 5: the term 'category(mode)*host' is rank deficient: with a dummy variable for each "
         "combination of levels it "
         "contains other terms; add 'category(mode) + category(host)' to the formula"},
        {"host*category(mode) + 1", "column 1: the term 'host*category(mode)' is rank deficient"},
        {"m + host*lone*m", "add 'category(host)*m + category(lone)*m' to the formula"},
    };
    for (size_t i = 0; i < LENGTH(cases); i++)
        expect_refusal(cases[i][0], cases[i][1]);
    cleanup_free char *text = malloc(FORMULA_BYTES_MAX + 2);
    memset(text, 'm', FORMULA_BYTES_MAX + 1);
    text[FORMULA_BYTES_MAX + 1] = '\0';
    expect_refusal(text, "longer than 4096 bytes");
}

static void expect_terms(const char *text, const char *expected) {
    struct formula formula = read_good(text), expanded;
    assert_ok(formula_expand(&formula, columns, LENGTH(columns), &expanded, &test_failure));
    char *printed = formula_print(&expanded);
    if (strcmp(printed, expected) != 0)
        fail_msg("%s: %s; expected %s", text, printed, expected);
    free(printed);
    formula_clear(&formula), formula_clear(&expanded);
}

/* The table of the manual, and more: as R's model.matrix. */
TEST(dummies) {
    expect_terms("1 + host", "1 + host[b] + host[c]");
    expect_terms("host", "host[a] + host[b] + host[c]");
    expect_terms("host + 1", "host[b] + host[c] + 1");
    expect_terms("1 + m*n + host*m*n", "1 + m*n + host[b]*m*n + host[c]*m*n");
    expect_terms("1 + host*m*n", "1 + host[a]*m*n + host[b]*m*n + host[c]*m*n");
    expect_terms("host + category(mode)", "host[a] + host[b] + host[c] + mode[q]");
    expect_terms("1 + host + category(mode) + host*category(mode)",
                 "1 + host[b] + host[c] + mode[q] + host[b]*mode[q] + host[c]*mode[q]");
    /* Hosts nested in modes. */
    expect_terms("1 + category(mode) + category(mode)*host",
                 "1 + mode[q] + mode[p]*host[b] + mode[p]*host[c] + mode[q]*host[b] + mode[q]*host[c]");
    expect_terms("host*category(mode)", "host[a]*mode[p] + host[a]*mode[q] + host[b]*mode[p] + "
                                        "host[b]*mode[q] + host[c]*mode[p] + host[c]*mode[q]");
    /* What all combinations say already, a later category need not. */
    expect_terms("host*category(mode) + category(mode)*m",
                 "host[a]*mode[p] + host[a]*mode[q] + host[b]*mode[p] + host[b]*mode[q] + host[c]*mode[p] + "
                 "host[c]*mode[q] + mode[p]*m + mode[q]*m");
    expect_terms("1 + lone + m", "1 + m");
    expect_terms("lone*m", "lone[only]*m");
    const struct model_column empty = {.about.name = "lone", .levels = hosts, .level_count = 1};
    struct formula formula = read_good("lone"), expanded;
    assert_error(formula_expand(&formula, &empty, 1, &expanded, &test_failure), -EINVAL,
                 "terms 'lone': no term is left");
    formula_clear(&formula);
}

/* As many categories as there are, and a limit on what they make. */
TEST(many) {
    static char names[12][8], texts[100][8];
    static char *levels[100];
    struct model_column many[12] = {0};
    char text[256] = "1";
    for (size_t i = 0; i < 100; i++) {
        snprintf(texts[i], sizeof texts[i], "l%zu", i);
        levels[i] = texts[i];
    }
    for (size_t i = 0; i < 12; i++) {
        snprintf(names[i], sizeof names[i], "c%zu", i);
        many[i] = (struct model_column){
            .about.name = names[i], .about.type = COLUMN_STRING, .levels = levels, .level_count = 80};
        snprintf(text + strlen(text), sizeof text - strlen(text), "+c%zu", i);
    }
    const struct formula_context context = {many, 12, NULL, NULL, 0};
    struct formula formula, expanded;
    assert_ok(formula_read(text, &context, &formula, &test_failure));
    assert_ok(formula_expand(&formula, many, 12, &expanded, &test_failure));
    assert_int_equal(expanded.term_count, 1 + 12 * 79);
    assert_string_equal(expanded.terms[948].name, "c11[l79]");
    formula_clear(&expanded);
    many[3].level_count = 100;
    many[4].level_count = 100;
    many[5].level_count = 100;
    many[6].level_count = 100;
    assert_error(formula_expand(&formula, many, 12, &expanded, &test_failure), -EINVAL,
                 "column 37: the term 'c11' makes more than 1024 terms with a dummy variable for each");
    assert_error(formula_expand(&formula, many, 11, &expanded, &test_failure), -EINVAL,
                 "the term 'c11' has a category whose levels are not known");
    formula_clear(&formula);
}

TEST(units) {
    static const char *const cases[][3] = {
        {"1", "s", "s"},
        {"m*n*k", "s", "s"},
        {"size", "s", "s/By"},
        {"size^2", "s", "s/By2"},
        {"size^-1", "s", "s.By"},
        {"size", "By", "1"},
        {"size", "1", "1/By"},
        {"size", "By/s", "By/s/By"},
        {"log2(size)*m", "s", "s"},
        {"host*size", "s", "s/By"},
        {"`my size`", "s", NULL},
        {"size", NULL, NULL},
        {"1", NULL, NULL},
    };
    for (size_t i = 0; i < LENGTH(cases); i++) {
        cleanup(formula_clear) struct formula formula = read_good(cases[i][0]);
        cleanup_free char *unit = formula_unit(&formula.terms[0], cases[i][1], columns, LENGTH(columns));
        if (!unit != !cases[i][2] || (unit && strcmp(unit, cases[i][2]) != 0))
            fail_msg("%s of %s: %s; expected %s", cases[i][0], cases[i][1], unit, cases[i][2]);
    }
    const struct model_column rate = {.about.name = "rate", .about.unit = "By/s"};
    struct model_factor factor = {.column = "rate", .power = 2};
    const struct model_term term = {.factors = &factor, .factor_count = 1};
    cleanup_free char *unit = formula_unit(&term, "s", &rate, 1);
    assert_string_equal(unit, "s/(By/s)2");
}

TEST(values) {
    static const double m[] = {2, 3, 0, 5, NAN, 7}, n[] = {8, 0.5, 4, -1, 1, 2};
    static const uint32_t codes[] = {1, 0, 1, 2, 1, 3};
    static const char *const texts[] = {"b", "a", "", "z"};               /* any order */
    const struct formula_column data[] = {{.name = "host", .numbers = m}, /* the same name as a number */
                                          {.name = "m", .numbers = m},
                                          {.name = "n", .numbers = n},
                                          {.name = "host", .codes = codes, .texts = texts, .text_count = 4}};
    struct formula formula = read_good("m^3*log2(n)^-1"), dummies = read_good("host*m"), expanded;
    double values[6];
    const char *missing;
    assert_int_equal(formula_values(&formula.terms[0], data, 4, 6, values, &missing), 0);
    assert_true(values[0] == 8. / 3 && values[1] == -27 && values[2] == 0 && isnan(values[3]) &&
                isnan(values[4]) && values[5] == 343);
    assert_int_equal(formula_expand(&dummies, columns, LENGTH(columns), &expanded, NULL), 0);
    assert_string_equal(expanded.terms[1].name, "host[b]*m");
    assert_int_equal(formula_values(&expanded.terms[1], data, 4, 6, values, &missing), 0);
    assert_true(values[0] == 0 && values[1] == 3 && values[2] == 0 && isnan(values[3]) && isnan(values[4]) &&
                values[5] == 0);
    assert_int_equal(formula_values(&expanded.terms[1], data, 3, 6, values, &missing), -ENOENT);
    assert_string_equal(missing, "host");
    const struct model_term constant = {0};
    assert_int_equal(formula_values(&constant, NULL, 0, 2, values, &missing), 0);
    assert_true(values[0] == 1 && values[1] == 1);
    formula_clear(&formula), formula_clear(&dummies), formula_clear(&expanded);
    assert_true(formula_power(2, 10) == 1024 && formula_power(2, -2) == 0.25 && formula_power(3, 0) == 1);
}
