/* The plugin fit-linear against exact answers: computed in rational arithmetic from the doubles given here,
 * rounded once. */
#include "tests/test.h"
#include "tests/unit/plugin/fit-library.h"

static int set_up(void **state) {
    return fit_library_open("fit-linear");
}

struct answer {
    double rss, r2, estimates[12], errors[12];
    size_t terms;
};

static void assert_answer(const struct host_group *group, const struct answer *answer) {
    assert_true(group->fitted);
    assert_close(host_value(group, "rss"), answer->rss, 1e-11, "rss");
    assert_close(host_value(group, "r2"), answer->r2, 1e-11, "r2");
    for (size_t t = 0; t < answer->terms; t++) {
        assert_close(group->estimates[t].estimate, answer->estimates[t], 1e-11, "estimate");
        assert_close(group->estimates[t].standard_error, answer->errors[t], 1e-11, "standard error");
        assert_close(group->estimates[t].t, answer->estimates[t] / answer->errors[t], 1e-11, "t");
        assert_close(group->covariance[t * answer->terms + t], answer->errors[t] * answer->errors[t], 1e-11,
                     "variance");
    }
}

/* J. W. Longley, J. Am. Stat. Assoc. 62 (1967): the classic collinear table (NIST StRD). */
TEST(longley) {
    static const double rows[16][7] = {
        {83.0, 234289, 2356, 1590, 107608, 1947, 60323},  {88.5, 259426, 2325, 1456, 108632, 1948, 61122},
        {88.2, 258054, 3682, 1616, 109773, 1949, 60171},  {89.5, 284599, 3351, 1650, 110929, 1950, 61187},
        {96.2, 328975, 2099, 3099, 112075, 1951, 63221},  {98.1, 346999, 1932, 3594, 113270, 1952, 63639},
        {99.0, 365385, 1870, 3547, 115094, 1953, 64989},  {100.0, 363112, 3578, 3350, 116219, 1954, 63761},
        {101.2, 397469, 2904, 3048, 117388, 1955, 66019}, {104.6, 419180, 2822, 2857, 118734, 1956, 67857},
        {108.4, 442769, 2936, 2798, 120445, 1957, 68169}, {110.8, 444546, 4681, 2637, 121950, 1958, 66513},
        {112.6, 482704, 3813, 2552, 123366, 1959, 68655}, {114.2, 502601, 3931, 2514, 125368, 1960, 69564},
        {115.7, 518173, 4806, 2572, 127852, 1961, 69331}, {116.9, 554894, 4007, 2827, 130081, 1962, 70551},
    };
    static double columns[7][16];
    for (size_t r = 0; r < 16; r++)
        for (size_t c = 0; c < 7; c++)
            columns[c][r] = rows[r][c];
    const struct host_table table = {
        .names = {"deflator", "gnp", "unemployed", "forces", "population", "year", "employed"},
        .columns = {columns[0], columns[1], columns[2], columns[3], columns[4], columns[5], columns[6]},
        .column_count = 7,
        .rows = 16,
        .response = "employed",
        .terms = "1 + deflator + gnp + unemployed + forces + population + year",
    };
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    const struct answer answer = {
        .rss = 836424.0555059146,
        .r2 = 0.9954790045772957,
        .estimates = {-3482258.6345958184, 15.061872271373323, -0.03581917929259102, -2.020229803816825,
                      -1.033226867173592, -0.05110410565358071, 1829.151464613552},
        .errors = {890420.3836073726, 84.91492577476696, 0.03349100777224318, 0.4883996816516994,
                   0.21427416316167527, 0.2260732000693702, 455.478499142212},
        .terms = 7,
    };
    assert_answer(&result.groups[0], &answer);
    assert_true(strstr(result.groups[0].notes, "collinear") != NULL);
    assert_close(host_value(&result.groups[0], "condition"), 43275.0468, 1e-6, "condition");
}

/* A polynomial of degree 10 over [-9, -3.33]: where normal equations in double precision have no digit left.
 */
TEST(degree_ten) {
    static double x[82], y[82];
    for (int i = 0; i < 82; i++) {
        x[i] = (-900 + 7 * i) / 100.0;
        y[i] = 0.8 + (i * 37 % 101) / 1024.0 + i / 512.0;
    }
    const struct host_table table = {
        .names = {"x", "y"},
        .columns = {x, y},
        .column_count = 2,
        .rows = 82,
        .response = "y",
        .terms = "1+x+x^2+x^3+x^4+x^5+x^6+x^7+x^8+x^9+x^10",
    };
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    const struct answer answer = {
        .rss = 0.06337406195103581,
        .r2 = 0.7499237063546688,
        .estimates = {-1794.0053795673402, -3231.6093483069203, -2582.442518602718, -1206.9739910371534,
                      -365.59139026415966, -75.03492770800077, -10.57439009971569, -1.0109404182904644,
                      -0.06278139798018152, -0.002288066826363044, -3.7177830767745e-05},
        .errors = {3473.7303720925233, 6280.67465493211, 5044.093801168582, 2369.8653667780595,
                   721.4694753708302, 148.7435276091027, 21.037527954763036, 2.0161596314479517,
                   0.12534239982932996, 0.004566177860648119, 7.404633770140243e-05},
        .terms = 11,
    };
    assert_answer(&result.groups[0], &answer);
}

/* R. H. Wampler, J. Am. Stat. Assoc. 65 (1970), problem 5 (NIST StRD): noise a million times the signal. */
TEST(wampler) {
    static const double noise[21] = {759,   -2048, 2048,  -2048, 2523,  -2048, 2048,
                                     -2048, 1838,  -2048, 2048,  -2048, 1838,  -2048,
                                     2048,  -2048, 2523,  -2048, 2048,  -2048, 759};
    double x[21], y[21];
    for (int i = 0; i < 21; i++) {
        x[i] = i;
        y[i] = 1 + x[i] * (1 + x[i] * (1 + x[i] * (1 + x[i] * (1 + x[i])))) + 10000 * noise[i];
    }
    const struct host_table table = {
        .names = {"x", "y"},
        .columns = {x, y},
        .column_count = 2,
        .rows = 21,
        .response = "y",
        .terms = "1+x+x^2+x^3+x^4+x^5",
    };
    host_fit(fit, &table, &result);
    const struct answer answer = {
        .rss = 8355426800000000.0,
        .r2 = 0.002246689215749398,
        .estimates = {1, 1, 1, 1, 1, 1},
        .errors = {21523262.467816968, 23635517.34696805, 7793435.243315831, 1014755.0755034965,
                   56456.65121707516, 1123.2485467931194},
        .terms = 6,
    };
    assert_answer(&result.groups[0], &answer);
}

/* Columns of a billion that differ by units: the mean takes 18 digits away. */
TEST(offset) {
    double a[40], b[40], y[40];
    for (int i = 0; i < 40; i++) {
        a[i] = 1e9 + i;
        b[i] = a[i] + i % 3;
        y[i] = 5e9 + i * i * 7 % 23;
    }
    const struct host_table table = {
        .names = {"a", "b", "y"},
        .columns = {a, b, y},
        .column_count = 3,
        .rows = 40,
        .response = "y",
        .terms = "1+a+b",
    };
    host_fit(fit, &table, &result);
    const struct answer answer = {
        .rss = 1483.085978835979,
        .r2 = 0.01715669322819872,
        .estimates = {4934439030.159917, -0.2513566680233347, 0.31691765025098356},
        .errors = {86732632.10413922, 1.2237365263518194, 1.2191731672895472},
        .terms = 3,
    };
    assert_answer(&result.groups[0], &answer);
}

/* Scales of 1e-12 and 1e12 in one table. */
TEST(scales) {
    double a[30], b[30], y[30];
    for (int i = 0; i < 30; i++) {
        a[i] = (i * 29 % 31 + 1) * 1e-12;
        b[i] = (i * 17 % 37 + 1) * 1e12;
        y[i] = i * 13 % 41;
    }
    const struct host_table table = {
        .names = {"a", "b", "y"},
        .columns = {a, b, y},
        .column_count = 3,
        .rows = 30,
        .response = "y",
        .terms = "1+a+b+a*b",
    };
    host_fit(fit, &table, &result);
    const struct answer answer = {
        .rss = 4159.661556234989,
        .r2 = 0.05872973474045329,
        .estimates = {12.523309345577863, 623808798685.3289, 3.761056080079966e-13, -0.03004966466914237},
        .errors = {9.35474468982804, 556378245381.7899, 4.0045548108263154e-13, 0.023997164802458837},
        .terms = 4,
    };
    assert_answer(&result.groups[0], &answer);
}

TEST(weights) {
    double x[12], w[12], y[12], u[12], v[12];
    for (int i = 0; i < 12; i++) {
        x[i] = i;
        w[i] = i * 5 % 7; /* two of them 0 */
        y[i] = i * i % 11;
        u[i] = 0.3 * i + 0.7;
        v[i] = 0.1 * (i + 1);
    }
    struct host_table table = {
        .names = {"x", "w", "y", "u", "v"},
        .columns = {x, w, y, u, v},
        .column_count = 5,
        .rows = 12,
        .response = "y",
        .terms = "1+x+x^2",
        .weights = "w",
    };
    host_fit(fit, &table, &result);
    const struct answer answer = {
        .rss = 157.67006022071243,
        .r2 = 0.488084220062622,
        .estimates = {-1.1615085475228992, 2.4601136349487644, -0.20807480483259805},
        .errors = {2.5890688100841843, 1.014751145004128, 0.08115794056922063},
        .terms = 3,
    };
    assert_answer(&result.groups[0], &answer);
    assert_int_equal(result.groups[0].rows, 10); /* rows of weight 0 are not there */
    assert_close(host_value(&result.groups[0], "log_likelihood"), -22.43945254186028, 1e-12,
                 "log likelihood");
    assert_close(host_value(&result.groups[0], "aic"), 52.87890508372056, 1e-12, "AIC");
    assert_close(host_value(&result.groups[0], "bic"), 54.08924545569674, 1e-12, "BIC");

    table.terms = "u+u^3";
    table.weights = "v";
    host_fit(fit, &table, &result);
    const struct answer origin = {
        .rss = 36.441709614726435,
        .r2 = 0.7876357248559066,
        .estimates = {3.6687810184285867, -0.2253457933489614},
        .errors = {0.7062474547700919, 0.05767348476381019},
        .terms = 2,
    };
    assert_answer(&result.groups[0], &origin);

    w[3] = -1;
    table.weights = "w";
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, -EINVAL);
    assert_true(strstr(result.message.text, "data row 4 is -1") != NULL);
}

/* ---- Groups that cannot be fitted, by name and without stopping the others */

TEST(odd_groups) {
    enum { GROUPS = 7, EACH = 6 };
    static double m[GROUPS * EACH], n[GROUPS * EACH], k[GROUPS * EACH], y[GROUPS * EACH];
    static uint32_t groups[GROUPS * EACH];
    size_t rows = 0;
    for (uint32_t g = 0; g < GROUPS; g++)
        for (size_t i = 0; i < EACH; i++) {
            if (g == 1 && i >= 3) /* group 1: too few */
                continue;
            if (g == 2 && i >= 4) /* group 2: as many as terms */
                continue;
            m[rows] = (double)(i * i + 1);
            n[rows] = (double)(i + 2);
            k[rows] = (double)(i * 3 % 5);
            y[rows] = 3 * m[rows] + (double)(i * 5 % 4);
            if (g == 3)
                k[rows] = 64; /* constant factor */
            if (g == 4)
                k[rows] = 2 * m[rows] - 3 * n[rows] + 7; /* linear combination */
            if (g == 5)
                y[rows] = 0.1; /* constant response */
            if (g == 6)
                y[rows] = 2 + 3 * m[rows] - n[rows] + 4 * k[rows]; /* no residual */
            groups[rows++] = g;
        }
    struct host_table table = {
        .names = {"m", "n", "k", "y"},
        .columns = {m, n, k, y},
        .column_count = 4,
        .rows = rows,
        .groups = groups,
        .group_count = GROUPS,
        .response = "y",
        .terms = "1+m+n+k",
    };
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_true(result.groups[0].fitted);
    assert_false(result.groups[1].fitted);
    assert_string_equal(result.groups[1].reason, "3 rows for 4 terms");
    assert_true(result.groups[2].fitted);
    assert_false(result.groups[2].has_covariance);
    assert_true(isnan(result.groups[2].estimates[1].standard_error) &&
                isnan(host_value(&result.groups[2], "sigma")));
    assert_true(isfinite(result.groups[2].estimates[1].estimate));
    assert_true(host_value(&result.groups[2], "r2") == 1 && host_value(&result.groups[2], "rss") == 0);
    assert_true(strstr(result.groups[2].notes, "as many rows as terms") != NULL);
    assert_string_equal(result.groups[3].reason, "rank 3 of 4: k is always 64");
    assert_string_equal(result.groups[4].reason, "rank 3 of 4: k is a linear combination of 1, m and n");
    assert_true(result.groups[5].fitted);
    assert_true(isnan(host_value(&result.groups[5], "r2")));
    assert_close(result.groups[5].estimates[0].estimate, 0.1, 1e-15, "constant");
    assert_true(result.groups[5].estimates[1].estimate == 0);
    assert_true(strstr(result.groups[5].notes, "constant") != NULL);
    assert_true(result.groups[6].fitted);
    assert_true(host_value(&result.groups[6], "rss") == 0 && host_value(&result.groups[6], "r2") == 1);
    assert_true(result.groups[6].estimates[3].standard_error == 0 && isnan(result.groups[6].estimates[3].t));
    assert_true(isnan(host_value(&result.groups[6], "aic")));
    assert_close(result.groups[6].estimates[3].estimate, 4, 1e-15, "k");

    table.terms = "m+2"; /* only the constant 1 is a number */
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, -EINVAL);
}

TEST(multiples_without_intercept) {
    double a[5] = {1, 2, 3, 4, 5}, b[5] = {0.5, 1, 1.5, 2, 2.5}, zero[5] = {0}, y[5] = {1, 3, 2, 5, 4};
    struct host_table table = {
        .names = {"a", "b", "zero", "y"},
        .columns = {a, b, zero, y},
        .column_count = 4,
        .rows = 5,
        .response = "y",
        .terms = "a+b",
    };
    host_fit(fit, &table, &result);
    assert_string_equal(result.groups[0].reason, "rank 1 of 2: b is a multiple of a");
    table.terms = "a+zero";
    host_fit(fit, &table, &result);
    assert_string_equal(result.groups[0].reason, "rank 1 of 2: zero is always 0");
    table.terms = "1+b+a+zero";
    host_fit(fit, &table, &result);
    assert_string_equal(result.groups[0].reason, "rank 2 of 4: a is a multiple of b; zero is always 0");
}

TEST(incomplete_rows) {
    double x[8] = {0, 1, NAN, 3, 4, 5, 6, 7}, y[8] = {1, 3, 5, 7, INFINITY, 11, 13, -1};
    static uint32_t groups[8] = {0, 0, 0, 0, 0, 0, 0, 1};
    const struct host_table table = {
        .names = {"x", "y"},
        .columns = {x, y},
        .column_count = 2,
        .rows = 8,
        .groups = groups,
        .group_count = 3, /* group 2 has no row at all */
        .response = "y",
        .terms = "1+x",
    };
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_true(result.groups[0].fitted);
    assert_int_equal(result.groups[0].rows, 5);
    assert_close(result.groups[0].estimates[1].estimate, 2, 1e-15, "slope");
    assert_true(host_value(&result.groups[0], "rows_left_out") == 2);
    assert_true(strstr(result.groups[0].notes, "2 rows left out") != NULL);
    assert_string_equal(result.groups[1].reason, "1 row for 2 terms");
    assert_string_equal(result.groups[2].reason, "0 rows for 2 terms");
}

TEST(beyond_the_range) {
    /* The scale is chosen from the first block: a later value 1e200 times larger overflows its square. */
    enum { ROWS = 2 * HOST_BLOCK };
    static double x[ROWS], y[ROWS];
    for (int i = 0; i < ROWS; i++) {
        x[i] = i < HOST_BLOCK ? i % 7 : 1e200 + i;
        y[i] = i;
    }
    struct host_table table = {
        .names = {"x", "y"},
        .columns = {x, y},
        .column_count = 2,
        .rows = ROWS,
        .response = "y",
        .terms = "1+x",
    };
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, 0);
    assert_string_equal(result.groups[0].reason, "the sums of its products are beyond the range of a double");
    /* The same size throughout is fine. */
    for (int i = 0; i < ROWS; i++) {
        x[i] = 1e100 * (i % 7 + 1);
        y[i] = 1e-100 * (2 * (i % 7) + i % 2);
    }
    table.terms = "1+x+x^2";
    host_fit(fit, &table, &result);
    assert_true(result.groups[0].fitted);
    assert_true(isfinite(result.groups[0].estimates[0].standard_error));
    /* The scaled sums hold, but no double holds x^2, nor its coefficient. */
    for (int i = 0; i < ROWS; i++)
        x[i] *= 1e100;
    host_fit(fit, &table, &result);
    assert_false(result.groups[0].fitted);
    assert_string_equal(result.groups[0].reason, "x^2 or its coefficient is beyond the range of a double");
    /* The values hold, the coefficient is below all doubles. */
    for (int i = 0; i < ROWS; i++) {
        x[i] *= 1e-50;
        y[i] *= 1e-50;
    }
    host_fit(fit, &table, &result);
    assert_false(result.groups[0].fitted);
    assert_string_equal(result.groups[0].reason, "x^2 or its coefficient is beyond the range of a double");
}

TEST(domain) {
    double m[4] = {3, 10, 7, 1.5}, n[4] = {2, 5, 1, 8}, y[4] = {1, 2, 3, 4};
    const struct host_table table = {
        .names = {"m", "n", "y"},
        .columns = {m, n, y},
        .column_count = 3,
        .rows = 4,
        .response = "y",
        .terms = "1+m*n+n",
    };
    host_fit(fit, &table, &result);
    const struct host_group *group = &result.groups[0];
    assert_int_equal(group->domain_count, 3);
    /* Names belong to the closed instance; the numbers are copies. */
    assert_true(group->domain[0].minimum == 1.5 && group->domain[0].maximum == 10);
    assert_true(group->domain[1].minimum == 1 && group->domain[1].maximum == 8);
    assert_true(group->domain[2].minimum == 6 && group->domain[2].maximum == 50);
}

/* ---- The language of terms */

static const char *terms_of(const char *terms, const char *const *sizes, size_t size_count) {
    static double numbers[6][8];
    static char text[1024];
    for (int i = 0; i < 8; i++)
        for (int c = 0; c < 6; c++)
            numbers[c][i] = (c + 2) * i + i * i % (c + 3) + 1;
    struct host_table table = {
        .names = {"m", "n", "k", "size", "a b", "y"},
        .columns = {numbers[0], numbers[1], numbers[2], numbers[3], numbers[4], numbers[5]},
        .column_count = 6,
        .rows = 8,
        .response = "y",
        .terms = terms,
        .size_count = size_count,
    };
    for (size_t i = 0; i < size_count; i++)
        table.sizes[i] = sizes[i];
    host_fit(fit, &table, &result);
    if (result.code < 0)
        return result.message.text;
    text[0] = '\0';
    for (size_t t = 0; t < result.term_count; t++)
        snprintf(text + strlen(text), sizeof text - strlen(text), "%s%s", t ? "+" : "", result.terms[t]);
    return text;
}

TEST(language) {
    static const char *const two[] = {"m", "size"}, *const one[] = {"size"}, *const lost[] = {"m", "q"};
    assert_string_equal(terms_of(NULL, NULL, 0), "1+m*n*k+m*n+m*k+n*k");
    assert_string_equal(terms_of("M-2", NULL, 0), "1+m*n*k+m*n+m*k+n*k");
    assert_string_equal(terms_of("M-1", NULL, 0), "1+m*n*k");
    assert_string_equal(terms_of("M-0", NULL, 0), "1");
    assert_string_equal(terms_of("M-2", two, 2), "1+m*size+m+size");
    assert_string_equal(terms_of("M-2", one, 1), "1+size");
    assert_string_equal(terms_of(" 1 + mnk\t+ m ^ 2 * n + `a b` ", NULL, 0), "1+m*n*k+m^2*n+a b");
    assert_string_equal(terms_of("m*m*n*m", NULL, 0), "m^3*n");
    assert_string_equal(terms_of("size", NULL, 0), "size");
    assert_string_equal(terms_of("m^-1+log2(n)*k^-2+m^3*m^-1", NULL, 0), "m^-1+log2(n)*k^-2+m^2");
    static const char *const wrong[][2] = {
        {"", "column 1: it ends where"},
        {"1+", "column 3: it ends where"},
        {"1++m", "column 3: '+' where"},
        {"1 m", "column 3: 'm' where '+' or '*'"},
        {"m*", "column 3: it ends where"},
        {"m^", "whole power"},
        {"m^0", "whole power"},
        {"m^17", "whole power"},
        {"m^2.5", "whole power"},
        {"m^-", "whole power"},
        {"m^-17", "from -16 to -1"},
        {"m*m^-1", "the powers of 'm' cancel out"},
        {"log3(m)", "there is no function 'log3'"},
        {"log2(mm)", "there is no column 'mm'"},
        {"log2(m", "expected ')'"},
        {"category(m)^2", "a category has no powers"},
        {"category(y)", "cannot explain itself"},
        {"category(m)*n*category(m)", "given twice in one term"},
        {"2*m", "only the constant 1"},
        {"m-n", "'-' where"},
        {"sise", "did you mean 'size'"},
        {"1+m*zz", "column 5: there is no column 'zz'"},
        {"mnk^2", "could mean the last letter"},
        {"1+m*n+n*m", "column 7: the term m*n is given twice"},
        {"1+1", "given twice"},
        {"y", "cannot explain itself"},
        {"`a b", "not closed"},
        {"m^9*n^9", "add up to more than 16"},
        {"M-3", "there is no model 'M-3'"},
        {"M-2+m", "there is no model"},
    };
    for (size_t i = 0; i < sizeof wrong / sizeof *wrong; i++) {
        const char *message = terms_of(wrong[i][0], NULL, 0);
        if (result.code != -EINVAL || !strstr(message, wrong[i][1]))
            fail_msg("terms '%s': %d '%s'; expected '%s'", wrong[i][0], result.code, message, wrong[i][1]);
    }
    assert_true(strstr(terms_of("M-2", lost, 2), "there is no column 'q'") != NULL);
}

TEST(hostile_formulas) {
    struct text long_text;
    text_init(&long_text, 1 << 16);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(text_append_string(&long_text, i ? "+m^2" : "m^2"), 0);
    assert_true(strstr(terms_of(long_text.bytes, NULL, 0), "given twice") != NULL);
    for (int i = 0; i < 1000; i++)
        assert_int_equal(text_append_string(&long_text, "+m^2"), 0);
    assert_true(strstr(terms_of(long_text.bytes, NULL, 0), "longer than") != NULL);
    text_reset(&long_text);
    for (int i = 0; i < 4000; i++)
        assert_int_equal(text_append_string(&long_text, "m"), 0);
    assert_true(strstr(terms_of(long_text.bytes, NULL, 0), "add up to more than 16") != NULL);
    text_clear(&long_text);
}

TEST_GROUP(set_up, fit_library_close)
