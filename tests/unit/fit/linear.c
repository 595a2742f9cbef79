/* The plugin fit-linear through its host: against R 4.2 (lm, drop1, MASS::rlm with acc = 1e-14), answers in
 * rational arithmetic and in closed form, the likelihood itself, and tables that must not upset it. */
#include "engine/fit/fit.h"
#include "engine/model/model.h"
#include "tests/test.h"

enum { SETTINGS_MAX = 4, ROWS = 1200 };

static const char *path;
static struct installation installation;
static struct fit *fit; /* the last one */

static int set_up(void **state) {
    path = test_path("table.csv");
    return installation_init(&installation, getenv("ASSAY_BUILD"), NULL, &test_failure);
}

static int tear_down(void **state) {
    fit_free(fit);
    installation_clear(&installation);
    return 0;
}
TEST_GROUP(set_up, tear_down)

/* Fits the table that was written; 0, or the failure's code. */
static int fit_written(struct fit_options options, const char *terms, const char *settings) {
    char copy[256], *save = NULL;
    const char *each[SETTINGS_MAX];
    struct library *library = NULL;
    cleanup(table_cleanup) struct table *table = NULL;
    const char *const paths[] = {path};
    snprintf(copy, sizeof copy, "%s", settings);
    for (char *one = strtok_r(copy, " ", &save); one; one = strtok_r(NULL, " ", &save))
        each[options.setting_count++] = one;
    options.settings = each;
    options.terms = terms;
    options.response = "y";
    options.seed = 3;
    fit_free(fit);
    fit = NULL;
    int r = library_open(&installation, "fit", "linear", &library, &test_failure);
    r = r < 0 ? r : table_open(paths, 1, NULL, &table, &test_failure);
    r = r < 0 ? r : fit_run(library, table, &options, &fit, &test_failure);
    library_close(library);
    return r;
}

static const struct model_part *fit_as(struct fit_options options, const char *terms, const char *settings) {
    assert_ok(fit_written(options, terms, settings));
    if (fit->model->group_count == 0)
        fail_msg("%s", fit->model->skipped[0].reason);
    return &fit->model->groups[0].parts[0];
}

static const struct model_part *fit_to(const char *terms, const char *settings) {
    return fit_as((struct fit_options){0}, terms, settings);
}

static double value(const char *name) {
    return model_group_value(&fit->model->groups[0], name);
}

static bool has_note(const struct model_group *group, const char *text) {
    for (size_t i = 0; i < group->note_count; i++)
        if (strstr(group->notes[i], text))
            return true;
    return false;
}

/* ---- Estimates */

struct answer {
    const char *table, *terms, *settings;
    size_t count;
    struct {
        const char *name;
        double estimate, error;
    } terms_of[7];
    double rss, r2, bic; /* 0: not compared */
};

/* R's warpbreaks (L. H. C. Tippett, Technological Applications of Statistics, 1950). */
static void write_looms(void) {
    static const double breaks[] = {26, 30, 54, 25, 70, 52, 51, 26, 67, 18, 21, 29, 17, 12, 18, 35, 30, 36,
                                    36, 21, 24, 18, 10, 43, 28, 15, 26, 27, 14, 29, 19, 29, 31, 41, 20, 44,
                                    42, 26, 19, 16, 39, 28, 21, 39, 29, 20, 21, 24, 17, 13, 15, 15, 16, 28};
    FILE *file = fopen(path, "w");
    fprintf(file, "y,x,wool,tension\n");
    for (int i = 0; i < 54; i++)
        fprintf(file, "%g,%d,%c,%c\n", breaks[i], (i + 1) % 7, "AB"[i / 27], "LMH"[i % 27 / 9]);
    fclose(file);
}

/* Belgium's phone calls, 1950 to 1973 (MASS::phones). */
static void write_phones(void) {
    static const double phones[] = {4.4,  4.7,  4.7, 5.9, 6.6, 7.3, 8.1, 8.8, 10.6, 12.0, 13.5, 14.9,
                                    16.1, 21.2, 119, 124, 142, 159, 182, 212, 43.0, 24.0, 27.0, 29.0};
    FILE *file = fopen(path, "w");
    fprintf(file, "y,year,w\n");
    for (int i = 0; i < 24; i++)
        fprintf(file, "%g,%d,%d\n", phones[i], 50 + i, i % 3 + 1);
    fclose(file);
}

static void write_scales(void) {
    FILE *file = fopen(path, "w");
    fprintf(file, "a,b,y\n");
    for (int i = 0; i < 30; i++)
        fprintf(file, "%.17g,%.17g,%d\n", (i * 29 % 31 + 1) * 1e-12, (i * 17 % 37 + 1) * 1e12, i * 13 % 41);
    fclose(file);
}

static void write_weights(void) {
    FILE *file = fopen(path, "w");
    fprintf(file, "x,w,y,u,v\n");
    for (int i = 0; i < 12; i++) /* two of w are 0 */
        fprintf(file, "%d,%d,%d,%.17g,%.17g\n", i, i * 5 % 7, i * i % 11, 0.3 * i + 0.7, 0.1 * (i + 1));
    fclose(file);
}

static void compare(const struct answer *answer, const char *weights, double tolerance) {
    const struct model_part *part =
        fit_as((struct fit_options){.weights = weights}, answer->terms, answer->settings);
    assert_int_equal(fit->model->term_count, answer->count);
    for (size_t t = 0; t < answer->count; t++) {
        const char *name = answer->terms_of[t].name;
        assert_string_equal(fit->model->terms[t].name, name);
        assert_close(part->estimates[t].estimate, answer->terms_of[t].estimate, tolerance, name);
        assert_close(part->estimates[t].standard_error, answer->terms_of[t].error, tolerance, name);
    }
    if (answer->rss > 0)
        assert_close(value("rss"), answer->rss, tolerance, "rss");
    if (answer->r2 > 0)
        assert_close(value("r2"), answer->r2, tolerance, "R2");
    if (answer->bic > 0)
        assert_close(value("bic"), answer->bic, tolerance, "BIC");
}

TEST(categories) {
    static const char plain[] = "noise=homoscedastic";
    static const struct answer answers[] = {
        {NULL, "1+category(wool)+category(tension)+category(wool)*category(tension)", .settings = plain,
         .count = 6,
         .terms_of = {{"1", 24.555555555555556, 3.646761345736405},
                      {"wool[B]", -5.777777777777778, 5.157299353878384},
                      {"tension[L]", 20, 5.157299353878384},
                      {"tension[M]", -0.55555555555555556, 5.157299353878384},
                      {"wool[B]*tension[L]", -10.555555555555556, 7.293522691472811},
                      {"wool[B]*tension[M]", 10.555555555555556, 7.293522691472811}},
         .rss = 5745.111111111111, .bic = 433.1927560491817},
        {NULL, "category(tension) + category(wool)", /* every level has a dummy where there is no constant */
         .settings = plain, .count = 4,
         .terms_of = {{"tension[H]", 24.555555555555556, 3.161783108940830},
                      {"tension[L]", 39.277777777777778, 3.161783108940830},
                      {"tension[M]", 29.277777777777778, 3.161783108940830},
                      {"wool[B]", -5.777777777777778, 3.161783108940829}},
         .r2 = 0.870277809817969},
        {NULL, "1+category(tension)+category(tension)*x", .settings = plain, .count = 6,
         .terms_of = {{"1", 17.0867507886435241, 5.539117671320424},
                      {"tension[L]", 12.5504731861198788, 7.140891272788267},
                      {"tension[M]", 8.2676553416246694, 7.716799797962901},
                      {"tension[H]*x", 1.3296529968454265, 1.394497287355160},
                      {"tension[L]*x", 2.6419558359621451, 1.394497287355160},
                      {"tension[M]*x", 0.3448275862068964, 1.536834322725999}}},
    };
    write_looms();
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++)
        compare(&answers[i], NULL, 1e-12);
}

/* In rational arithmetic. */
TEST(scales_and_weights) {
    static const struct answer scales = {NULL,
                                         "1+a+b+a*b",
                                         .settings = "noise=none",
                                         .count = 4,
                                         .terms_of = {{"1", 12.523309345577863, 9.35474468982804},
                                                      {"a", 623808798685.3289, 556378245381.7899},
                                                      {"b", 3.761056080079966e-13, 4.0045548108263154e-13},
                                                      {"a*b", -0.03004966466914237, 0.023997164802458837}},
                                         .rss = 4159.661556234989,
                                         .r2 = 0.05872973474045329};
    static const struct answer parabola = {NULL,
                                           "1+x+x^2",
                                           .settings = "noise=homoscedastic",
                                           .count = 3,
                                           .terms_of = {{"1", -1.1615085475228992, 2.5890688100841843},
                                                        {"x", 2.4601136349487644, 1.014751145004128},
                                                        {"x^2", -0.20807480483259805, 0.08115794056922063}},
                                           .rss = 157.67006022071243,
                                           .r2 = 0.488084220062622,
                                           .bic = 54.08924545569674};
    static const struct answer origin = {NULL,
                                         "u+u^3",
                                         .settings = "noise=homoscedastic",
                                         .count = 2,
                                         .terms_of = {{"u", 3.6687810184285867, 0.7062474547700919},
                                                      {"u^3", -0.2253457933489614, 0.05767348476381019}},
                                         .rss = 36.441709614726435,
                                         .r2 = 0.7876357248559066};
    write_scales();
    compare(&scales, NULL, 1e-11);
    write_weights();
    compare(&parabola, "w", 1e-11);
    assert_int_equal(fit->model->groups[0].rows, 10); /* those of weight 0 are not there */
    assert_close(value("aic"), 52.87890508372056, 1e-12, "AIC");
    compare(&origin, "v", 1e-11);
}

TEST(robust) {
    static const struct {
        const char *settings, *weights;
        double estimates[2], errors[2], scale;
    } answers[] = {
        {"robust=huber",
         NULL,
         {-102.52963811808634, 2.0396004657204521},
         {26.546160807796369, 0.42893638242109622},
         9.0090283058273801},
        {"robust=bisquare",
         NULL,
         {-52.30251068224009, 1.0980464848307456},
         {2.7534575266292647, 0.044490731415882549},
         1.6554557137712502},
        {"robust=huber",
         "w",
         {-105.91057849636866, 2.097042138644166},
         {26.195263084098332, 0.42101913024528281},
         12.505883802671407},
        {"robust=bisquare",
         "w",
         {-54.128229461263778, 1.129286754576007},
         {2.5384359550027509, 0.040798601431393064},
         2.28344776645545},
    };
    write_phones();
    for (size_t i = 0; i < sizeof answers / sizeof *answers; i++) {
        const struct answer answer = {NULL, "1+year", .settings = answers[i].settings, .count = 2,
                                      .terms_of = {{"1", answers[i].estimates[0], answers[i].errors[0]},
                                                   {"year", answers[i].estimates[1], answers[i].errors[1]}}};
        compare(&answer, answers[i].weights, 1e-9);
        assert_close(value("sigma"), answers[i].scale, 1e-9, "scale");
        assert_true(isnan(value("bic")) && value("robust_iterations") > 3);
        assert_string_equal(fit->model->groups[0].parts[0].noise.method, "robust");
    }
}

static const char looms[] = "1+category(tension)+x+category(tension)*x";

/* tension*x goes by its F test, not x, which it needs; then x alone, p 0.0732; tension stays. */
TEST(elimination) {
    write_looms();
    const struct model_part *part = fit_to(looms, "select=elimination noise=homoscedastic");
    const struct model_group *group = &fit->model->groups[0];
    assert_true(has_note(group, "p = 0.539") && has_note(group, "dropped x: p = 0.0732"));
    assert_true(part->estimates[3].dropped && part->estimates[4].dropped && part->estimates[5].dropped);
    assert_true(part->estimates[4].estimate == 0 && isnan(part->estimates[4].p));
    assert_close(value("rss"), 7198.555555555556, 1e-12, "rss");
    assert_close(value("bic"), 433.40448530795919, 1e-12, "BIC");
    part = fit_to(looms, "select=elimination threshold=0.08");
    assert_true(part->estimates[4].dropped && !part->estimates[3].dropped);
    assert_false(fit_to(looms, "")->estimates[4].dropped); /* not unless asked for */
}

/* The slope would be below 0: it is at its bound, and the constant is the mean. */
TEST(bounds) {
    test_put("table.csv", "x,y\n1,9\n2,7\n3,8\n4,4\n");
    const struct model_part *part = fit_to("1+x", "bounds=nonnegative noise=homoscedastic");
    assert_true(part->estimates[1].at_bound && part->estimates[1].estimate == 0);
    assert_true(isnan(part->estimates[1].standard_error) && part->estimates[0].estimate == 7);
    assert_true(value("degrees_of_freedom") == 3);
    assert_close(value("sigma"), sqrt(14 / 3.), 1e-15, "sigma");
    assert_true(fit_to("1+x", "")->estimates[1].estimate < -1);
}

/* ---- Noise */

static double x[ROWS], z[ROWS], y[ROWS], w[ROWS];

/* y = 0.5 + 0.01 x z + 0.2 x, and noise: in proportion to 1e-3 + 1e-4 x z + 2e-3 x, or of one size. */
static void make_rows(bool grows) {
    FILE *file = fopen(path, "w");
    test_seed = 11;
    fprintf(file, "x,z,w,half,y\n");
    for (size_t i = 0; i < ROWS; i++) {
        x[i] = floor(1 + 999 * pow(test_random(), 3));
        z[i] = floor(1 + 99 * test_random());
        w[i] = i % 2 ? 4 : 1;
        double sigma = grows ? 1e-3 + 1e-4 * x[i] * z[i] + 2e-3 * x[i] : 0.3;
        y[i] = 0.5 + 0.01 * x[i] * z[i] + 0.2 * x[i] + sigma * test_normal() / sqrt(w[i]);
        fprintf(file, "%.17g,%.17g,%g,%zu,%.17g\n", x[i], z[i], w[i], i % 2, y[i]);
    }
    fclose(file);
}

static const struct fit_options weighted = {.weights = "w"};
static const char formula[] = "1 + x*z + x";

static double log_likelihood(size_t first, size_t step, const double *b, const double *c) {
    double sum = 0;
    for (size_t i = first; i < ROWS; i += step) {
        double sigma = (c[0] + c[1] * x[i] * z[i] + c[2] * x[i]) / sqrt(w[i]);
        double t = (y[i] - b[0] - b[1] * x[i] * z[i] - b[2] * x[i]) / sigma;
        sum -= 0.5 * log(2 * M_PI) + log(sigma) + t * t / 2;
    }
    return sum;
}

static void take(const struct model_part *part, double *b, double *c) {
    for (size_t t = 0; t < 3; t++) {
        b[t] = part->estimates[t].estimate;
        c[t] = t == 0 ? part->noise.constant : part->noise.coefficients[t];
    }
}

/* Two levels, each with rows of its own: mean and sigma of each are those of its rows alone. */
TEST(two_levels) {
#define LEVELS "0,1\n0,2\n0,2.5\n0,4\n0,3\n0,1.5\n1,10\n1,16\n1,25\n1,2\n1,8\n"
    test_put("table.csv", "x,y\n" LEVELS LEVELS LEVELS);
    const struct model_part *part = fit_to("1 + x", "noise=heteroscedastic");
    double mean[2] = {14.0 / 6, 61.0 / 5}, sigma[2] = {sqrt((38.5 - 196.0 / 6) / 6), sqrt(304.8 / 5)};
    assert_int_equal(part->noise.kind, MODEL_NOISE_HETEROSCEDASTIC);
    assert_string_equal(part->noise.method, "maximum-likelihood");
    assert_close(part->estimates[0].estimate, mean[0], 1e-9, "mean");
    assert_close(part->estimates[1].estimate, mean[1] - mean[0], 1e-9, "step");
    assert_close(part->noise.constant, sigma[0], 1e-6, "sigma");
    assert_close(part->noise.coefficients[1], sigma[1] - sigma[0], 1e-6, "sigma's step");
    assert_close(part->estimates[0].standard_error, sigma[0] / sqrt(18), 1e-5, "standard error");
    double likelihood = 3 * (-5.5 * log(2 * M_PI) - 6 * log(sigma[0]) - 5 * log(sigma[1]) - 5.5);
    assert_close(value("aic"), 8 - 2 * likelihood, 1e-9, "AIC");
    assert_close(value("bic"), 4 * log(33) - 2 * likelihood, 1e-9, "BIC");
    test_put("table.csv", "x,y\n" LEVELS LEVELS);
    part = fit_to("1 + x", "noise=heteroscedastic");
    assert_int_equal(part->noise.kind, MODEL_NOISE_HOMOSCEDASTIC);
    assert_true(has_note(&fit->model->groups[0], "needs at least 16 rows for each term"));
}

/* No step in any direction makes it likelier; a weight of 4 is half the sigma. */
TEST(maximum) {
    double b[3], c[3], best;
    static const double steps[3] = {1e-4, 1e-7, 1e-5};
    make_rows(true);
    take(fit_as(weighted, formula, "noise=heteroscedastic"), b, c);
    best = log_likelihood(0, 1, b, c);
    assert_close(value("log_likelihood"), best, 1e-10, "log likelihood");
    assert_close(c[1], 1e-4, 0.2, "sigma of x*z");
    for (size_t t = 0; t < 6; t++)
        for (int sign = -1; sign <= 1; sign += 2) {
            double *moved = t < 3 ? &b[t] : &c[t - 3], before = *moved;
            *moved += sign * steps[t % 3];
            assert_true(log_likelihood(0, 1, b, c) < best);
            *moved = before;
        }
}

/* By default estimates and errors are those of the noise that is found: term by term where rows are many. */
TEST(auto_takes_the_estimates_of_its_noise) {
    double b[3], c[3], other[3];
    make_rows(true);
    const struct model_part *part = fit_as(weighted, formula, "noise=homoscedastic");
    double plain = part->estimates[0].standard_error;
    take(fit_as(weighted, formula, "noise=heteroscedastic"), other, c);
    part = fit_as(weighted, formula, "");
    assert_int_equal(part->noise.kind, MODEL_NOISE_HETEROSCEDASTIC);
    take(part, b, c);
    for (size_t t = 0; t < 3; t++)
        assert_close(b[t], other[t], 1e-2, "estimate");
    assert_true(part->estimates[0].standard_error < plain / 10);
    make_rows(false);
    part = fit_as(weighted, formula, "");
    assert_int_equal(part->noise.kind, MODEL_NOISE_HOMOSCEDASTIC);
    assert_true(part->estimates[0].standard_error == plain || part->freedom == ROWS - 3);
    assert_int_equal(fit_to(formula, "noise=none")->noise.kind, MODEL_NOISE_NONE);
}

/* y = 5 + x with errors of 1 % of it, up and down: with few rows too sigma is in proportion to the mean, and
 * the estimates are those of weights 1/mean^2. */
TEST(few_rows_in_proportion) {
    FILE *file = fopen(path, "w");
    fprintf(file, "x,y\n");
    for (int i = 0; i < 15; i++)
        fprintf(file, "%g,%.17g\n", exp2(i), (5 + exp2(i)) * (1 + 0.01 * (i % 2 ? 1 : -1)));
    fclose(file);
    const struct model_part *part = fit_to("1+x", "");
    assert_int_equal(part->noise.kind, MODEL_NOISE_HETEROSCEDASTIC);
    assert_string_equal(part->noise.method, "restricted-maximum-likelihood");
    assert_close(part->noise.coefficients[1], 0.01, 0.15, "sigma over the mean");
    assert_close(part->estimates[0].estimate, 5, 0.02, "intercept");
    assert_true(part->estimates[0].standard_error < 0.1 && part->freedom > 5 && part->freedom <= 13);
    assert_true(has_note(&fit->model->groups[0], "15 rows are few for 2 coefficients"));
}

/* 60 rows whose noise is 1 % of the mean, one of them 10 % off where the mean is small: noise that is the
 * same everywhere would hide that row, and delete rows where the mean is great. A constant that noise in
 * proportion to the mean does not show is not known to be 0, so the model has a floor. */
TEST(outliers_by_the_noise_that_is_found) {
    FILE *file = fopen(path, "w");
    fprintf(file, "x,y\n");
    for (int i = 0; i < 60; i++)
        fprintf(file, "%g,%.17g\n", exp2(i % 15),
                (5 + exp2(i % 15)) * (i == 3 ? 1.1 : 1 + 0.01 * sin(i * 1.7)));
    fclose(file);
    const struct model_part *part = fit_to("1+x", "outliers=3");
    assert_true(value("outliers_deleted") == 1);
    assert_true(part->noise.floor.sigma > 0);
}

/* A coefficient at its bound is no surer than without: the covariance is that of the fit without bounds. */
TEST(covariance_at_a_bound) {
    test_put("table.csv", "x,y\n1,9\n2,7\n3,8\n4,4\n5,4\n");
    double sigma, variance = fit_to("1+x", "noise=homoscedastic")->covariance[0];
    variance /= pow(value("sigma"), 2);
    const struct model_part *part = fit_to("1+x", "bounds=nonnegative noise=homoscedastic");
    sigma = value("sigma");
    assert_true(part->estimates[1].at_bound && part->covariance[3] > 0);
    assert_close(part->covariance[0], variance * sigma * sigma, 1e-12, "variance");
    assert_close(part->estimates[0].standard_error, sqrt(part->covariance[0]), 1e-12, "standard error");
}

/* Each fold is predicted by a whole fit of the others: as when these are fitted by themselves. */
TEST(folds_are_fitted_anew) {
    static const char *const settings[] = {"noise=heteroscedastic", "noise=homoscedastic", ""};
    static const char *const halves[] = {"half == 0", "half == 1"}, *const half[] = {"half"};
    make_rows(true);
    for (size_t k = 0; k < 2; k++) {
        double expected = 0, squares = 0, weights = 0;
        for (size_t left_out = 0; left_out < 2; left_out++) {
            double b[3], c[3] = {0};
            const struct model_part *part = fit_as(
                (struct fit_options){.weights = "w", .where = halves[1 - left_out]}, formula, settings[k]);
            if (part->noise.coefficients)
                take(part, b, c);
            for (size_t t = 0; t < 3; t++)
                b[t] = part->estimates[t].estimate;
            c[0] = part->noise.constant;
            expected += log_likelihood(left_out, 2, b, c);
            for (size_t i = left_out; i < ROWS; i += 2) {
                squares += w[i] * pow(y[i] - b[0] - b[1] * x[i] * z[i] - b[2] * x[i], 2);
                weights += w[i];
            }
        }
        fit_as((struct fit_options){.weights = "w",
                                    .folds = 2,
                                    .folds_by = FIT_FOLDS_BY_COLUMNS,
                                    .fold_columns = half,
                                    .fold_column_count = 1},
               formula, settings[k]);
        assert_close(value("cv_log_score"), expected / ROWS, 1e-7, "log score");
        assert_close(value("cv_rmse"), sqrt(squares / weights), 1e-8, "error");
    }
}

/* Residuals -1 -1 0 2: a half-normal must reach down to -1, which needs a wider one than the likelihood. */
TEST(half_normal) {
    test_put("table.csv", "y\n9\n9\n10\n12\n");
    const struct model_part *part = fit_to("1", "distribution=half-normal");
    double k = sqrt(2 / M_PI), s = 1 / k, likelihood = 0;
    assert_true(part->noise.half_normal);
    assert_close(part->noise.constant, s * sqrt(1 - 2 / M_PI), 1e-11, "sigma");
    for (size_t i = 0; i < 4; i++)
        likelihood += 0.5 * log(2 / M_PI) - log(s) - pow(((double[]){-1, -1, 0, 2})[i] / s + k, 2) / 2;
    assert_close(value("log_likelihood"), likelihood, 1e-10, "log likelihood");
    test_put("table.csv",
             "y\n10\n10.5\n10\n13\n"); /* here it does not: residuals add up to 0, s^2 = mean square */
    part = fit_to("1", "distribution=half-normal");
    assert_close(part->noise.constant, sqrt(6.1875 / 4 * (1 - 2 / M_PI)), 1e-11, "sigma");
    make_rows(true);
    double normal = fit_to(formula, "noise=heteroscedastic")->noise.coefficients[1];
    part = fit_to(formula, "noise=heteroscedastic distribution=half-normal");
    assert_true(part->noise.half_normal && part->noise.coefficients[1] > normal);
    assert_true(isfinite(value("log_likelihood")));
}

/* The rule can give a sigma below 0: it is reported, not clipped. */
TEST(negative_rule) {
    FILE *file = fopen(path, "w");
    fprintf(file, "x,y\n");
    for (int i = 0; i < 40; i++)
        fprintf(file, "%d,%g\n", 1 << i / 4, (1 << i / 4) + (i % 2 ? 1 : -1) * (i < 16 ? 10 : 0.01));
    fclose(file);
    const struct model_part *part = fit_to("1+x", "noise=rule");
    assert_string_equal(part->noise.method, "rule");
    assert_true(part->noise.coefficients[1] < 0 && part->noise.constant > 0);
    assert_true(part->noise.constant + 512 * part->noise.coefficients[1] < 0);
    assert_true(has_note(&fit->model->groups[0], "no standard deviation above 0") &&
                isnan(value("log_likelihood")));
}

/* ---- What cannot be fitted */

TEST(refusals) {
    static const struct {
        const char *terms, *settings, *expected;
    } cases[] = {
        {"1+x", "robust=huber outliers=3", "robust=huber cannot be combined with outliers"},
        {"1+x", "robust=huber select=elimination", "remove one"},
        {"1+x", "robust=huber noise=rule", "set noise=auto"},
        {"1+x", "noise=N-3", "N-3"},
        {"1+q", "", "q"},
        {"M-3", "", "M-3"},
    };
    test_put("table.csv", "x,y\n1,2\n2,3\n4,4\n");
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        assert_error(fit_written((struct fit_options){0}, cases[i].terms, cases[i].settings), -EINVAL,
                     cases[i].expected);
    }
}

/* Groups of 24 rows, each odd in its own way, and in every way of fitting. */
static double odd_x(int group, int i) {
    double plain = i % 8 + 1;
    return group == 1   ? 64
           : group == 4 ? plain * 1e-12
           : group == 5 ? plain * 1e200
           : group == 6 ? plain * 1e-160
           : group == 8 ? 1e9 + plain
                        : plain;
}

static double odd_y(int group, int i) {
    double plain = i % 8 + 1, noise = i * 29 % 7;
    return group == 0   ? 7
           : group == 2 ? 3 * plain - 1
           : group == 3 ? -2 * plain - noise
           : group == 4 ? (2 * plain + noise) * 1e12
           : group == 7 ? (2 * plain + noise) * 1e-150
                        : 2 * plain + noise;
}

TEST(odd_groups) {
    static const char *const ways[] = {"",
                                       "noise=homoscedastic",
                                       "noise=heteroscedastic",
                                       "noise=rule",
                                       "distribution=half-normal",
                                       "select=elimination",
                                       "outliers=3",
                                       "robust=huber",
                                       "robust=bisquare",
                                       "bounds=nonnegative"};
    static const struct {
        const char *group, *reason; /* NULL: it is fitted */
    } groups[] = {
        {"0", NULL}, /* the response is constant */
        {"1", "only 1 of 2 terms can be estimated: 'x' is 64"},
        {"2", NULL}, /* no residuals */
        {"3", NULL}, /* below 0 */
        {"4", NULL}, /* scales */
        {"5", "sums over the rows exceed the range of a double"},
        {"6", "value of 'x' is 8e-160; expected 1e-140 or more"},
        {"7", "value of 'y' is 2e-149; expected 1e-140 or more"},
        {"8", "only 1 of 2 terms can be estimated: 'x' is a linear combination of the terms before it (to "
              "1e-7 of its size); remove one"},
        {"9", "1 row for 2 terms"},
    };
    static const char *const by[] = {"g"};
    FILE *file = fopen(path, "w");
    fprintf(file, "g,x,y\n9,1,1\n");
    for (int i = 0; i < 9 * 24; i++)
        fprintf(file, "%d,%.17g,%.17g\n", i % 9, odd_x(i % 9, i / 9), odd_y(i % 9, i / 9));
    fclose(file);
    for (size_t i = 0; i < sizeof ways / sizeof *ways; i++) {
        fit_as((struct fit_options){.by = by, .by_count = 1, .folds = 5}, "1+x", ways[i]);
        size_t fitted = 0, skipped = 0;
        for (size_t g = 0; g < sizeof groups / sizeof *groups; g++) {
            if (groups[g].reason) {
                assert_string_equal(fit->model->skipped[skipped].name, groups[g].group);
                assert_says(fit->model->skipped[skipped++].reason, groups[g].reason);
                continue;
            }
            const struct model_group *group = &fit->model->groups[fitted++];
            assert_string_equal(group->name, groups[g].group);
            assert_true(isfinite(group->parts[0].estimates[0].estimate));
        }
        const struct model_group *constant = &fit->model->groups[0], *exact = &fit->model->groups[1];
        assert_close(constant->parts[0].estimates[0].estimate, 7, 1e-13, "constant");
        assert_true(isnan(model_group_value(constant, "r2")) && has_note(constant, "does not vary"));
        assert_true(model_group_value(exact, "rss") == 0 || strstr(ways[i], "bounds"));
        assert_true(exact->parts[0].noise.kind == MODEL_NOISE_NONE || strstr(ways[i], "bounds"));
        assert_int_equal(fit->model->group_count, fitted);
        assert_int_equal(fit->model->skipped_count, skipped);
    }
}

/* What noise cannot be found is homoscedastic, and the note says why. */
TEST(fallbacks) {
    static const struct {
        const char *table, *terms, *settings, *reason;
    } cases[] = {
        {"x,y\n1,2\n2,3\n3,4\n", "1+x", "noise=heteroscedastic", "there are no residuals"},
        {"x,y\n1,2\n2,3\n", "1+x", "noise=rule", "there are no residuals"},
        {"x,y\n1,2\n2,3\n4,4\n", "1", "noise=rule", "the formula has no term except the constant"},
        {"x,y\n1,2\n2,3\n4,4\n5,7\n", "1+x", "noise=rule",
         "too few settings have two rows or more: expected more of these settings than terms"},
        {"x,y\n1,2\n2,3\n", "1+x", "", "as many rows as terms"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        test_put("table.csv", cases[i].table);
        const struct model_part *part = fit_to(cases[i].terms, cases[i].settings);
        assert_true(part->noise.kind <= MODEL_NOISE_HOMOSCEDASTIC);
        assert_true(has_note(&fit->model->groups[0], cases[i].reason));
    }
    test_put("table.csv", "x,y\n");
    if (fit_written((struct fit_options){0}, "1+x", "") == 0)
        assert_true(fit->model->group_count == 0);
}
