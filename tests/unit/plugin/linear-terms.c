/* fit-linear's categories, inverses, logarithms, selection and robust weights against R 4.2 (lm, drop1, step,
 * MASS::rlm with acc = 1e-14), and the tables that must not upset it. */
#include "tests/test.h"
#include "tests/unit/plugin/fit-library.h"

enum { LOOMS = 54 };
enum { SELECT_NONE = 1, SELECT_ELIMINATION, SELECT_BIC };
enum { ROBUST_HUBER = 1, ROBUST_BISQUARE };

/* R's warpbreaks (L. H. C. Tippett, Technological Applications of Statistics, 1950), tensions in natural
 * order: H, L, M. */
static const double breaks[LOOMS] = {26, 30, 54, 25, 70, 52, 51, 26, 67, 18, 21, 29, 17, 12, 18, 35, 30, 36,
                                     36, 21, 24, 18, 10, 43, 28, 15, 26, 27, 14, 29, 19, 29, 31, 41, 20, 44,
                                     42, 26, 19, 16, 39, 28, 21, 39, 29, 20, 21, 24, 17, 13, 15, 15, 16, 28};
static double place[LOOMS];
static uint32_t wool[LOOMS], tension[LOOMS];
static const char *const wools[] = {"A", "B", ""}, *const tensions[] = {"H", "L", "M"};

static int set_up(void **state) {
    if (fit_library_open("fit-linear") < 0)
        return -1;
    static const uint32_t codes[] = {1, 2, 0}; /* L, M, H */
    for (uint32_t i = 0; i < LOOMS; i++) {
        wool[i] = i / 27;
        tension[i] = codes[i % 27 / 9];
        place[i] = (i + 1) % 7;
    }
    return 0;
}

static struct host_table looms(const char *terms) {
    return (struct host_table){.names = {"breaks", "x"},
                               .columns = {breaks, place},
                               .column_count = 2,
                               .rows = LOOMS,
                               .response = "breaks",
                               .terms = terms,
                               .category_names = {"wool", "tension"},
                               .categories = {wool, tension},
                               .levels = {wools, tensions},
                               .level_counts = {2, 3},
                               .category_count = 2};
}

struct expected {
    const char *name;
    double estimate, error;
};

static void assert_terms(const struct expected *expected, size_t count) {
    assert_int_equal(result.code, 0);
    assert_int_equal(result.term_count, count);
    assert_true(result.groups[0].fitted);
    for (size_t t = 0; t < count; t++) {
        assert_string_equal(result.terms[t], expected[t].name);
        assert_close(result.groups[0].estimates[t].estimate, expected[t].estimate, 1e-12, expected[t].name);
        assert_close(result.groups[0].estimates[t].standard_error, expected[t].error, 1e-12,
                     expected[t].name);
    }
}

#define ASSERT_TERMS(...)                                                                                    \
    do {                                                                                                     \
        const struct expected terms[] = {__VA_ARGS__};                                                       \
        assert_terms(terms, sizeof terms / sizeof *terms);                                                   \
    } while (0)

/* ---- Categories */

TEST(contrasts) {
    struct host_table table = looms("1+wool+tension+wool*tension");
    host_fit(fit, &table, &result);
    ASSERT_TERMS({"1", 24.555555555555556, 3.646761345736405},
                 {"wool[B]", -5.777777777777778, 5.157299353878384}, {"tension[L]", 20, 5.157299353878384},
                 {"tension[M]", -0.55555555555555556, 5.157299353878384},
                 {"wool[B]*tension[L]", -10.555555555555556, 7.293522691472811},
                 {"wool[B]*tension[M]", 10.555555555555556, 7.293522691472811});
    assert_close(host_value(&result.groups[0], "rss"), 5745.111111111111, 1e-12, "rss");
    assert_close(host_value(&result.groups[0], "bic"), 433.1927560491817, 1e-12, "BIC");
    assert_int_equal(result.groups[0].domain_count, 0); /* nothing is a number */

    table.terms = "1+tension+x+tension*x";
    host_fit(fit, &table, &result);
    ASSERT_TERMS(
        {"1", 17.0867507886435313, 5.539117671320424}, {"tension[L]", 12.5504731861198788, 7.140891272788267},
        {"tension[M]", 8.2676553416246676, 7.716799797962901}, {"x", 1.3296529968454260, 1.394497287355160},
        {"tension[L]*x", 1.3123028391167184, 1.972116976470159},
        {"tension[M]*x", -0.9848254106385296, 2.075206596931876});
}

/* Where the rest of a term is not in the formula, every level has a dummy. */
TEST(all_levels) {
    struct host_table table = looms("tension + wool");
    host_fit(fit, &table, &result);
    ASSERT_TERMS({"tension[H]", 24.555555555555556, 3.161783108940830},
                 {"tension[L]", 39.277777777777778, 3.161783108940830},
                 {"tension[M]", 29.277777777777778, 3.161783108940830},
                 {"wool[B]", -5.777777777777778, 3.161783108940829});
    assert_close(host_value(&result.groups[0], "r2"), 0.870277809817969, 1e-12, "R2 without an intercept");

    table.terms = "1+tension+tension*x";
    host_fit(fit, &table, &result);
    ASSERT_TERMS({"1", 17.0867507886435241, 5.539117671320424},
                 {"tension[L]", 12.5504731861198788, 7.140891272788267},
                 {"tension[M]", 8.2676553416246694, 7.716799797962901},
                 {"tension[H]*x", 1.3296529968454265, 1.394497287355160},
                 {"tension[L]*x", 2.6419558359621451, 1.394497287355160},
                 {"tension[M]*x", 0.3448275862068964, 1.536834322725999});
}

/* A number as a category, groups, weights: the same as dummies written by hand. */
TEST(by_hand) {
    static double one[LOOMS], two[LOOMS], weight[LOOMS];
    static uint32_t groups[LOOMS], codes[LOOMS];
    static const char *const levels[] = {"8", "9", "10"}; /* natural order */
    static struct host_result dummies;
    for (uint32_t i = 0; i < LOOMS; i++) {
        codes[i] = i % 3;
        one[i] = codes[i] == 1;
        two[i] = codes[i] == 2;
        weight[i] = i % 4;
        groups[i] = i % 2;
    }
    struct host_table table = {.names = {"breaks", "x", "one", "two", "w"},
                               .columns = {breaks, place, one, two, weight},
                               .column_count = 5,
                               .rows = LOOMS,
                               .groups = groups,
                               .group_count = 2,
                               .response = "breaks",
                               .weights = "w",
                               .terms = "1+one+two+x+x*one+x*two"};
    host_fit(fit, &table, &dummies);
    assert_int_equal(dummies.code, 0);
    table.terms = "1+category(level)+x+x*category(level)";
    table.category_names[0] = "level";
    table.categories[0] = codes;
    table.levels[0] = levels;
    table.level_counts[0] = 3;
    table.category_count = 1;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_string_equal(result.terms[5], "level[10]*x");
    for (uint32_t g = 0; g < 2; g++) {
        assert_int_equal(result.groups[g].rows, dummies.groups[g].rows);
        for (size_t t = 0; t < 6; t++)
            assert_close(result.groups[g].estimates[t].estimate, dummies.groups[g].estimates[t].estimate,
                         1e-13, result.terms[t]);
        assert_close(host_value(&result.groups[g], "cv_rmse"), host_value(&dummies.groups[g], "cv_rmse"),
                     1e-10, "cv_rmse");
        assert_close(host_value(&result.groups[g], "log_likelihood"),
                     host_value(&dummies.groups[g], "log_likelihood"), 1e-13, "log likelihood");
    }
}

TEST(missing_levels) {
    static uint32_t some[LOOMS];
    memcpy(some, wool, sizeof some);
    some[3] = some[40] = 2; /* empty */
    struct host_table table = looms("1+wool+x");
    table.categories[0] = some;
    table.level_counts[0] = 3;
    for (int robust = 0; robust < 2; robust++) {
        host_fit(fit, &table, &result);
        assert_int_equal(result.code, 0);
        assert_int_equal(result.term_count, 3);
        assert_int_equal(result.groups[0].rows, LOOMS - 2);
        assert_true(host_value(&result.groups[0], "rows_left_out") == 2);
        table.settings[0] = "robust";
        table.values[0] = ROBUST_HUBER;
        table.setting_count = 1;
    }
    /* A group that lacks a level cannot tell its dummy. */
    static uint32_t groups[LOOMS];
    for (size_t i = 0; i < LOOMS; i++)
        groups[i] = i >= 27;
    table = looms("1+wool+x");
    table.groups = groups;
    table.group_count = 2;
    host_fit(fit, &table, &result);
    assert_string_equal(result.groups[0].reason, "rank 2 of 3: wool[B] is always 0");
    assert_string_equal(result.groups[1].reason, "rank 2 of 3: wool[B] is always 1");
}

TEST(too_many_levels) {
    enum { MANY = 5000 };
    static double y[MANY];
    static uint32_t codes[MANY];
    static char names[MANY][8];
    static const char *levels[MANY];
    for (uint32_t i = 0; i < MANY; i++) {
        y[i] = codes[i] = i;
        snprintf(names[i], sizeof names[i], "n%u", i);
        levels[i] = names[i];
    }
    struct host_table table = {.names = {"y"},
                               .columns = {y},
                               .column_count = 1,
                               .rows = MANY,
                               .response = "y",
                               .terms = "1+host",
                               .category_names = {"host"},
                               .categories = {codes},
                               .levels = {levels},
                               .level_counts = {60},
                               .category_count = 1};
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, -EINVAL);
    assert_non_null(strstr(result.message.text, "'host' has more than 4096 levels"));
    table.rows = 60;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_int_equal(result.term_count, 60);
    assert_false(result.groups[0].has_covariance); /* a row each */
    static const double x[60];
    table.names[1] = "x";
    table.columns[1] = x;
    table.column_count = 2;
    table.terms = "host+host*x+host*x^2";
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, -EINVAL);
    assert_non_null(strstr(result.message.text, "the term 'host*x^2' makes more than 128 terms"));
}

/* ---- Inverses and logarithms */

TEST(derived) {
    enum { ROWS = 40 };
    static double p[ROWS], n[ROWS], inverse[ROWS], logarithm[ROWS], y[ROWS];
    static struct host_result columns;
    for (int i = 0; i < ROWS; i++) {
        p[i] = 1 << i % 6;
        n[i] = 100 + i * 37 % 101;
        inverse[i] = 1 / p[i];
        logarithm[i] = log2(n[i]);
        y[i] = 3 + n[i] * n[i] / p[i] + 5 * log2(n[i]) + i * 29 % 7;
    }
    struct host_table table = {.names = {"p", "n", "i", "l", "y"},
                               .columns = {p, n, inverse, logarithm, y},
                               .column_count = 5,
                               .rows = ROWS,
                               .response = "y",
                               .terms = "1+n^2*i+l+i^2*l"};
    host_fit(fit, &table, &columns);
    table.terms = "1+n^2*p^-1+log2(n)+p^-2*log2(n)";
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_string_equal(result.terms[1], "n^2*p^-1");
    assert_string_equal(result.terms[2], "log2(n)");
    assert_string_equal(result.terms[3], "p^-2*log2(n)");
    for (size_t t = 0; t < 4; t++)
        assert_close(result.groups[0].estimates[t].estimate, columns.groups[0].estimates[t].estimate, 1e-15,
                     result.terms[t]);
    /* The domain is that of the columns themselves. */
    const struct plugin_range *domain = result.groups[0].domain;
    assert_true(domain[0].minimum == 100 && domain[1].minimum == 1 && domain[1].maximum == 32);
    /* Neither 1/0 nor the logarithm of what is not positive is a number. */
    p[5] = 0;
    n[6] = 0;
    n[7] = -3;
    host_fit(fit, &table, &result);
    assert_int_equal(result.groups[0].rows, ROWS - 3);
    assert_true(host_value(&result.groups[0], "rows_left_out") == 3);
    assert_non_null(strstr(result.groups[0].notes, "3 rows left out: a value is empty or not finite"));
    table.terms = "1+n+p"; /* where they are numbers, they are used */
    host_fit(fit, &table, &result);
    assert_int_equal(result.groups[0].rows, ROWS);
}

/* ---- Selection */

TEST(elimination) {
    struct host_table table = looms("1+tension+x+tension*x");
    table.settings[0] = "select";
    table.values[0] = SELECT_ELIMINATION;
    table.setting_count = 1;
    host_fit(fit, &table, &result);
    /* tension*x goes by its F test, not x, which it needs; then x alone, p 0.0732; tension stays. */
    const struct host_group *group = &result.groups[0];
    assert_string_equal(group->notes, "selection dropped tension*x (p 0.539), x (p 0.0732)|");
    assert_true(group->estimates[3].dropped && group->estimates[4].dropped && group->estimates[5].dropped);
    assert_true(group->estimates[4].estimate == 0 && isnan(group->estimates[4].p) &&
                group->covariance[4 * 6 + 4] == 0);
    assert_false(group->estimates[0].dropped || group->estimates[1].dropped);
    assert_close(host_value(group, "rss"), 7198.555555555556, 1e-12, "rss");
    assert_close(host_value(group, "bic"), 433.40448530795919, 1e-12, "BIC");

    /* By default, terms that the user did not give are selected. */
    table.setting_count = 0;
    host_fit(fit, &table, &result);
    assert_false(result.groups[0].estimates[4].dropped);
    table.suggested = true;
    host_fit(fit, &table, &result);
    assert_true(result.groups[0].estimates[4].dropped);
    table.settings[0] = "threshold";
    table.values[0] = 0.08;
    table.setting_count = 1;
    host_fit(fit, &table, &result);
    assert_true(result.groups[0].estimates[4].dropped && !result.groups[0].estimates[3].dropped);
}

TEST(bic) {
    struct host_table table = looms("1+wool+tension+wool*tension+x+x^2");
    table.settings[0] = "select";
    table.values[0] = SELECT_BIC;
    table.setting_count = 1;
    host_fit(fit, &table, &result);
    assert_string_equal(result.groups[0].notes, "selection dropped x^2 (BIC -3.98), x (BIC -0.0672)|");
    assert_close(host_value(&result.groups[0], "bic"), 433.1927560491817, 1e-12, "BIC");
    /* A last term without an intercept stays, however little it explains. */
    table.terms = "x";
    table.rows = 7;
    table.values[0] = SELECT_ELIMINATION;
    static const double noise[7] = {1, -1, 1, -1, 1, -1, 0.9};
    table.columns[0] = noise;
    host_fit(fit, &table, &result);
    assert_true(result.groups[0].fitted && !result.groups[0].estimates[0].dropped);
}

/* ---- Robust */

static const double phones[] = {
    4.4,  4.7,  4.7, 5.9, 6.6, 7.3, 8.1, 8.8, 10.6, 12.0, 13.5, 14.9,  /* Belgium, */
    16.1, 21.2, 119, 124, 142, 159, 182, 212, 43.0, 24.0, 27.0, 29.0}; /* 1950-73 */

TEST(robust) {
    static double year[24], weight[24];
    for (int i = 0; i < 24; i++) {
        year[i] = 50 + i;
        weight[i] = i % 3 + 1;
    }
    struct host_table table = {.names = {"year", "calls", "w"},
                               .columns = {year, phones, weight},
                               .column_count = 3,
                               .rows = 24,
                               .response = "calls",
                               .terms = "1+year",
                               .settings = {"robust"},
                               .setting_count = 1};
    static const struct {
        double method;
        const char *weights;
        double estimates[2], errors[2], scale;
    } answers[] = {
        {ROBUST_HUBER,
         NULL,
         {-102.52963811808634, 2.0396004657204521},
         {26.546160807796369, 0.42893638242109622},
         9.0090283058273801},
        {ROBUST_BISQUARE,
         NULL,
         {-52.30251068224009, 1.0980464848307456},
         {2.7534575266292647, 0.044490731415882549},
         1.6554557137712502},
        {ROBUST_HUBER,
         "w",
         {-105.91057849636866, 2.097042138644166},
         {26.195263084098332, 0.42101913024528281},
         12.505883802671407},
        {ROBUST_BISQUARE,
         "w",
         {-54.128229461263778, 1.129286754576007},
         {2.5384359550027509, 0.040798601431393064},
         2.28344776645545},
    };
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        table.values[0] = answers[i].method;
        table.weights = answers[i].weights;
        host_fit(fit, &table, &result);
        assert_int_equal(result.code, 0);
        const struct host_group *group = &result.groups[0];
        for (size_t t = 0; t < 2; t++) {
            assert_close(group->estimates[t].estimate, answers[i].estimates[t], 1e-9, "estimate");
            assert_close(group->estimates[t].standard_error, answers[i].errors[t], 1e-9, "standard error");
        }
        assert_close(host_value(group, "sigma"), answers[i].scale, 1e-9, "scale");
        assert_true(isnan(host_value(group, "bic")) && host_value(group, "robust_iterations") > 3);
        assert_true(host_value(group, "cv_rmse") > 0 && group->rows == 24);
    }
}

TEST(robust_selection) {
    struct host_table table = looms("1+tension+x+tension*x");
    table.settings[0] = "select";
    table.values[0] = SELECT_ELIMINATION;
    table.settings[1] = "robust";
    table.values[1] = ROBUST_HUBER;
    table.setting_count = 2;
    host_fit(fit, &table, &result);
    assert_true(result.groups[0].fitted);
    assert_true(result.groups[0].estimates[4].dropped && !result.groups[0].estimates[1].dropped);
    assert_non_null(strstr(result.groups[0].notes, "selection dropped tension*x (p 0."));
    table.values[0] = SELECT_BIC;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, -EINVAL);
    assert_non_null(strstr(result.message.text, "a robust fit has no likelihood"));
    table.settings[0] = "outliers";
    table.values[0] = 3;
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, -EINVAL);
    assert_non_null(strstr(result.message.text, "both 'robust' and 'outliers' are set"));
}

/* ---- Tables that must not upset it, in every way of fitting */

enum { ODD_ROWS = 24, ODD_GROUPS = 9, ODD = ODD_ROWS * ODD_GROUPS };

struct odd {
    double x[ODD], y[ODD], w[ODD];
    uint32_t groups[ODD];
    size_t rows;
};

static void add_odd(struct odd *odd, uint32_t group, double x, double y, double w) {
    odd->x[odd->rows] = x;
    odd->y[odd->rows] = y;
    odd->w[odd->rows] = w;
    odd->groups[odd->rows++] = group;
}

static void make_odd(struct odd *odd) {
    odd->rows = 0;
    for (int i = 0; i < ODD_ROWS; i++) {
        double x = i % 8 + 1, noise = i * 29 % 7;
        add_odd(odd, 0, x, 7, 1);                                                /* constant response */
        add_odd(odd, 1, 64, 5 + noise, 1);                                       /* constant regressor */
        add_odd(odd, 2, 3, 4, 1);                                                /* duplicates only */
        add_odd(odd, 3, i == 4 ? INFINITY : x, i == 9 ? NAN : 2 * x + noise, 1); /* not finite */
        add_odd(odd, 4, x, -2 * x - noise, 1);                                   /* negative durations */
        add_odd(odd, 5, x * 1e-12, (2 * x + noise) * 1e12, 1);                   /* scales */
        add_odd(odd, 6, x, 2 * x + noise, 0);                                    /* no weight */
        add_odd(odd, 7, x, 3 * x - 1, 1);                                        /* no residual */
        if (i == 0)
            add_odd(odd, 8, x, 1, 1); /* one row */
    }
}

static void check_odd(const char *way) {
    const struct host_group *groups = result.groups;
    if (result.code != 0)
        fail_msg("%s: %s", way, result.message.text);
    assert_true(groups[0].fitted && groups[0].estimates[0].estimate == 7 &&
                groups[0].estimates[1].estimate == 0);
    assert_true(isnan(host_value(&groups[0], "r2")) && strstr(groups[0].notes, "the response is constant"));
    assert_string_equal(groups[1].reason, "rank 1 of 2: x is always 64");
    assert_string_equal(groups[2].reason, "rank 1 of 2: x is always 3");
    assert_true(groups[3].rows == ODD_ROWS - 2 && host_value(&groups[3], "rows_left_out") == 2);
    assert_true(groups[4].fitted && groups[4].estimates[1].estimate < -1.5);
    assert_true(fabs(groups[5].estimates[1].estimate / -groups[4].estimates[1].estimate - 1e24) < 1e12);
    assert_true(fabs(host_value(&groups[5], "cv_rmse") / host_value(&groups[5], "sigma") - 1) < 0.2);
    assert_string_equal(groups[6].reason, "0 rows for 2 terms");
    assert_true(groups[7].fitted && fabs(groups[7].estimates[1].estimate - 3) < 1e-12);
    assert_true(host_value(&groups[7], "rss") == 0 && host_value(&groups[7], "cv_rmse") < 1e-12);
    assert_string_equal(groups[8].reason, "1 row for 2 terms");
    for (size_t g = 0; g < ODD_GROUPS; g++)
        if (groups[g].fitted && !isfinite(groups[g].estimates[0].estimate))
            fail_msg("%s: group %zu", way, g);
}

TEST(odd_tables) {
    static struct odd odd;
    static const struct {
        const char *way;
        double value;
    } ways[] = {{"threshold", 0.05}, {"select", SELECT_ELIMINATION}, {"select", SELECT_BIC},
                {"outliers", 3},     {"robust", ROBUST_HUBER},       {"robust", ROBUST_BISQUARE}};
    make_odd(&odd);
    struct host_table table = {.names = {"x", "y", "w"},
                               .columns = {odd.x, odd.y, odd.w},
                               .column_count = 3,
                               .rows = odd.rows,
                               .groups = odd.groups,
                               .group_count = ODD_GROUPS,
                               .response = "y",
                               .terms = "1+x",
                               .weights = "w"};
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        table.settings[0] = ways[i].way;
        table.values[0] = ways[i].value;
        table.setting_count = 1;
        host_fit(fit, &table, &result);
        check_odd(ways[i].way);
    }
}

TEST_GROUP(set_up, fit_library_close)
