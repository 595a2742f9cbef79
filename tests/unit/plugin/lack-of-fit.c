/* Lack of fit, against sums by hand and an F that is a Student's t squared; and the F distribution. */
#include "engine/plugin/lack-of-fit.h"
#include "engine/foundation/cleanup.h"
#include "engine/plugin/f-probability.h"
#include "tests/test.h"

#include <unistd.h>

static struct installation installation;

static int set_up(void **state) {
    struct failure failure = {0};
    return installation_init(&installation, test_build(), NULL, &failure);
}

static int tear_down(void **state) {
    installation_clear(&installation);
    return 0;
}

static bool near(double found, double expected, double relative) {
    if (fabs(found - expected) <= relative * fabs(expected))
        return true;
    fprintf(stderr, "found %.17g, expected %.17g\n", found, expected);
    return false;
}

/* Fits TERMS to ROWS of the columns g,c,x,w,y, by g. */
static struct lack_of_fit fit(const char *rows, const char *terms, const char *weights, size_t kept) {
    static const char *const by[] = {"g"};
    char path[] = "/tmp/assay-lack-of-fit.XXXXXX";
    const char *const paths[] = {path};
    struct failure failure = {0};
    int descriptor = mkstemp(path);
    assert_true(descriptor >= 0);
    FILE *file = fdopen(descriptor, "w");
    fprintf(file, "g,c,x,w,y\n%s", rows);
    fclose(file);
    cleanup(table_stream_cleanup) struct table *table = NULL;
    cleanup(fitting_cleanup) struct fitting *fitting = NULL;
    cleanup(fitted_model_cleanup) struct fitted_model *model = NULL;
    const struct fitting_options options = {.method = "linear",
                                            .response = "y",
                                            .terms = terms,
                                            .by = by,
                                            .by_count = 1,
                                            .weights = weights,
                                            .kept_rows = kept};
    if (table_stream_open(paths, 1, false, &table, &failure) < 0 ||
        fitting_run(&installation, table, &options, NULL, NULL, &fitting, &failure) < 0 ||
        fitted_model_new("linear", "y", &model, &failure) < 0)
        fail_msg("%s", failure.text);
    const struct fitting_listener *listener = fitted_model_listener(model);
    if (fitting_finish(fitting, &listener, 1, &failure) < 0)
        fail_msg("%s", failure.text);
    unlink(path);
    struct residuals residuals;
    struct lack_of_fit lack;
    assert_int_equal(residuals_init(&residuals, fitting, model, &failure), 0);
    assert_int_equal(lack_of_fit_init(&lack, fitting, model, &residuals, &failure), 0);
    residuals_clear(&residuals);
    return lack;
}

/* Means 2, 7, 6 at 1, 2, 3; the line is 1 + 2 x, which is off by 1, 2 and 1. */
#define SIX "a,p,1,1,1\na,p,3,1,7\na,p,2,1,6\na,p,1,1,3\na,p,2,1,8\na,p,3,1,5\n"

TEST(by_hand) {
    struct lack_of_fit lack = fit(SIX, "1+x", NULL, KEPT_ROWS_MAX);
    assert_int_equal(lack.rows, 6);
    assert_int_equal(lack.settings, 3);
    assert_true(near(lack.pure_squares, 6, 1e-12) && near(lack.squares, 12, 1e-12));
    assert_true(lack.pure_freedom == 3 && lack.freedom == 1);
    assert_true(near(lack.pure_error, sqrt(2), 1e-12) && near(lack.ratio, 6, 1e-12));
    /* Of t = sqrt 6 with 3 degrees of freedom. */
    assert_true(near(exp(lack.log_p), 1 - 2 / acos(-1) * (atan(sqrt(2)) + sqrt(2) / 3), 1e-10));
    /* As many terms as settings leave nothing to test. */
    lack = fit(SIX, "1+x+x^2", NULL, KEPT_ROWS_MAX);
    assert_true(near(lack.pure_error, sqrt(2), 1e-9) && lack.freedom == 0 && isnan(lack.ratio));
    assert_true(isnan(lack.log_p));
}

/* The same x in another group, or with another text that the model uses, is another setting. */
TEST(settings) {
    struct lack_of_fit lack =
        fit(SIX "b,p,1,1,11\nb,p,1,1,13\nb,p,2,1,16\nb,p,2,1,18\nb,p,3,1,15\nb,p,3,1,17\n", "1+x", NULL,
            KEPT_ROWS_MAX);
    assert_int_equal(lack.settings, 6);
    assert_true(lack.pure_freedom == 6 && lack.freedom == 2);
    assert_true(near(lack.ratio, 6, 1e-10)); /* 24 / 2 over 12 / 6 */
    static const char texts[] =
        "a,p,1,1,1\na,q,1,1,3\na,p,2,1,5\na,q,2,1,4\na,p,3,1,6\na,q,3,1,9\na,q,3,1,8\n";
    lack = fit(texts, "1+x", NULL, KEPT_ROWS_MAX);
    assert_int_equal(lack.settings, 3);
    lack = fit(texts, "1+x+category(c)", NULL, KEPT_ROWS_MAX);
    assert_int_equal(lack.settings, 6);
    assert_true(lack.pure_freedom == 1 && near(lack.pure_squares, 0.5, 1e-12));
    assert_true(lack.freedom == 3);
}

TEST(not_told) {
    struct lack_of_fit lack = fit(SIX, "1+x", "w", KEPT_ROWS_MAX);
    assert_true(lack.settings == 0 && lack.pure_freedom == 0 && isnan(lack.ratio));
    lack = fit(SIX, "1+x", NULL, 4); /* every second row was kept */
    assert_true(lack.settings == 0);
    lack = fit("a,p,1,1,1\na,p,2,1,6\na,p,3,1,7\na,p,4,1,7\n", "1+x", NULL, KEPT_ROWS_MAX);
    assert_true(lack.settings == 4 && lack.pure_freedom == 0 && isnan(lack.pure_error) && isnan(lack.ratio));
/* Each row thrice: nothing scatters, and there is nothing to compare with. */
#define THREE "a,p,1,1,0.1\na,p,2,1,0.7\na,p,3,1,0.9\n"
    lack = fit(THREE THREE THREE, "1+x", NULL, KEPT_ROWS_MAX);
    assert_true(lack.pure_freedom == 6 && lack.squares > 0);
    assert_true(lack.pure_error == 0 && isnan(lack.ratio));
}

/* Two degrees above: p = (1 + 2 F / d)^(-d/2). Two below: 1 - (d F / (2 + d F))^(d/2). */
TEST(distribution) {
    static const double ratios[] = {1e-3, 0.3, 1, 2.5, 17, 1e4}, freedoms[] = {1, 2, 5, 100, 8100, 1e6};
    for (size_t i = 0; i < 6; i++)
        for (size_t j = 0; j < 6; j++) {
            double f = ratios[i], d = freedoms[j];
            assert_true(near(f_upper_logarithm(f, 2, d), -d / 2 * log1p(2 * f / d), 1e-8));
            double below = exp(-d / 2 * log1p(2 / (d * f)));
            assert_true(near(exp(f_upper_logarithm(f, d, 2)), 1 - below, 1e-7));
            /* The same turned round. */
            double sum = exp(f_upper_logarithm(f, 7, d)) + exp(f_upper_logarithm(1 / f, d, 7));
            assert_true(near(sum, 1, 1e-8));
        }
    assert_true(f_upper_logarithm(76, 531, 8100) < log(1e-300));
    assert_true(isfinite(f_upper_logarithm(76, 531, 8100)));
    assert_true(f_upper_logarithm(0, 3, 4) == 0 && f_upper_logarithm(INFINITY, 3, 4) == -INFINITY);
    assert_true(isnan(f_upper_logarithm(-1, 3, 4)) && isnan(f_upper_logarithm(1, 0, 4)));
}

TEST_GROUP(set_up, tear_down)
