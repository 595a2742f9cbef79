/* The host's cross-validation of a plugin that does none (means, in two passes), against the same by hand;
 * and residuals, from the model in memory. */
#include "engine/plugin/cross-validation.h"
#include "engine/foundation/cleanup.h"
#include "engine/plugin/folds.h"
#include "engine/plugin/residuals.h"
#include "tests/test.h"

#include <unistd.h>

enum { ROWS = 900, GROUPS = 3, FOLDS = 4, SEED = 17 };

static char folder[4096], path[8192];
static struct installation installation;
static double responses[ROWS];

static int set_up(void **state) {
    struct failure failure = {0};
    char plugins[4096];
    snprintf(plugins, sizeof plugins, "%s/tests/plugins", test_build());
    snprintf(folder, sizeof folder, "/tmp/assay-cross-validation.XXXXXX");
    if (!mkdtemp(folder) || installation_init(&installation, test_build(), plugins, &failure) < 0)
        return -1;
    snprintf(path, sizeof path, "%s/rows.csv", folder);
    FILE *file = fopen(path, "w");
    fprintf(file, "g,note,y\n");
    for (int i = 0; i < ROWS; i++) {
        responses[i] = (double)((unsigned)i * (unsigned)i * 7919u % 1000) + (i % GROUPS) * 500;
        fprintf(file, "g%d,%s,%.17g\n", i % GROUPS, i == 10 ? "\"two\nlines\"" : "plain", responses[i]);
    }
    return fclose(file);
}

static int tear_down(void **state) {
    unlink(path);
    rmdir(folder);
    installation_clear(&installation);
    return 0;
}

/* What a listener behind it hears. */
struct heard {
    const struct fitting *fitting;
    size_t groups;
    double rmse[GROUPS], relative[GROUPS], score[GROUPS], folds[GROUPS];
};

static int hear_formula(void *context, const struct fit_formula *formula, struct failure *failure) {
    return 0;
}

static int hear_group(void *context, const struct fit_group *group, struct failure *failure) {
    struct heard *heard = context;
    heard->groups++;
    for (size_t i = 0; i < group->value_count; i++) {
        const struct fit_value *value = &group->values[i];
        double *at = strcmp(value->name, "cv_rmse") == 0        ? heard->rmse
                     : strcmp(value->name, "cv_relative") == 0  ? heard->relative
                     : strcmp(value->name, "cv_log_score") == 0 ? heard->score
                     : strcmp(value->name, "folds") == 0        ? heard->folds
                                                                : NULL;
        assert_non_null(at);
        at[group->code] = value->value;
    }
    return 0;
}

static int hear_skipped(void *context, uint32_t code, uint64_t rows, const char *reason,
                        struct failure *failure) {
    fail_msg("skipped: %s", reason);
    return 0;
}

static void note(void *context, const char *sentence) {
    snprintf(context, 256, "%s", sentence);
}

/* The mean of the rows of GROUP that are not in FOLD (-1: all). */
static double mean_without(int group, int fold) {
    double sum = 0, count = 0;
    for (int i = group; i < ROWS; i += GROUPS)
        if (folds_of_key((uint64_t)i, SEED, FOLDS) != fold) {
            sum += responses[i];
            count++;
        }
    return sum / count;
}

static void fit(size_t kept_rows, uint32_t folds, struct heard *heard, char *said,
                struct residuals *residuals) {
    static const char *const by[] = {"g"};
    const char *const paths[] = {path};
    struct failure failure = {0};
    cleanup(table_stream_cleanup) struct table *table = NULL;
    cleanup(fitting_cleanup) struct fitting *fitting = NULL;
    cleanup(fitted_model_cleanup) struct fitted_model *model = NULL;
    cleanup(cross_validation_cleanup) struct cross_validation *validation = NULL;
    const struct fitting_options options = {
        .method = "passes", .response = "y", .by = by, .by_count = 1, .seed = SEED, .kept_rows = kept_rows};
    if (table_stream_open(paths, 1, false, &table, &failure) < 0 ||
        fitting_run(&installation, table, &options, NULL, NULL, &fitting, &failure) < 0 ||
        fitted_model_new("passes", "y", &model, &failure) < 0)
        fail_msg("%s", failure.text);
    const struct fitting_listener listener = {heard, hear_formula, hear_group, hear_skipped};
    const struct fitting_listener *const listeners[] = {&listener, fitted_model_listener(model)};
    const struct cross_validation_options validated = {folds, note, said};
    assert_int_equal(cross_validation_new(fitting, &validated, listeners, 2, &validation), 0);
    const struct fitting_listener *first = cross_validation_listener(validation);
    if (fitting_finish(fitting, &first, 1, &failure) < 0)
        fail_msg("%s", failure.text);
    assert_int_equal(heard->groups, GROUPS);
    assert_int_equal(residuals_init(residuals, fitting, model, &failure), 0);
    const struct table_input *input;
    uint64_t line;
    assert_true(table_stream_place(table, 10, &input, &line) && line == 12);
    assert_true(table_stream_place(table, 11, &input, &line) && line == 14); /* row 10 has two lines */
    assert_true(table_stream_place(table, ROWS - 1, &input, &line) && line == ROWS + 2);
}

TEST(by_hand) {
    char said[256] = "";
    struct heard heard = {0};
    struct residuals residuals;
    fit(KEPT_ROWS_MAX, FOLDS, &heard, said, &residuals);
    assert_string_equal(said, "");
    for (int g = 0; g < GROUPS; g++) {
        double squares = 0, sum = 0, count = 0;
        for (int i = g; i < ROWS; i += GROUPS) {
            double error = responses[i] - mean_without(g, folds_of_key((uint64_t)i, SEED, FOLDS));
            squares += error * error;
            sum += responses[i];
            count++;
        }
        assert_true(fabs(heard.rmse[g] / sqrt(squares / count) - 1) < 1e-12);
        assert_true(fabs(heard.relative[g] / (sqrt(squares / count) / (sum / count)) - 1) < 1e-12);
        assert_true(isnan(heard.score[g])); /* this plugin tells no noise */
        assert_true(heard.folds[g] == FOLDS);
    }
    assert_int_equal(residuals.count, ROWS);
    assert_false(residuals.noise);
    for (size_t k = 0; k < residuals.count; k++)
        assert_true(fabs(residuals.residual[k] - (responses[residuals.rows[k]] -
                                                  mean_without((int)residuals.rows[k] % GROUPS, -1))) < 1e-9);
    size_t worst[7];
    assert_int_equal(residuals_worst(&residuals, 7, worst), 7);
    for (size_t k = 0; k < residuals.count; k++)
        assert_true(fabs(residuals.standardised[k]) <= fabs(residuals.standardised[worst[0]]));
    for (size_t i = 1; i < 7; i++)
        assert_true(fabs(residuals.standardised[worst[i]]) <= fabs(residuals.standardised[worst[i - 1]]));
    residuals_clear(&residuals);
}

/* A table that was thinned is not cross-validated, and that is said; without folds nothing is. */
TEST(not_at_all) {
    char said[256] = "";
    struct heard heard = {.rmse = {-1, -1, -1}};
    struct residuals residuals;
    fit(256, FOLDS, &heard, said, &residuals);
    assert_string_equal(said,
                        "there is no cross-validated error: the table has more rows than stay in memory");
    assert_true(heard.rmse[0] == -1);
    assert_int_equal(residuals.stride, 4);
    assert_int_equal(residuals.count, ROWS / 4);
    residuals_clear(&residuals);
    heard = (struct heard){.rmse = {-1, -1, -1}};
    said[0] = '\0';
    fit(KEPT_ROWS_MAX, 0, &heard, said, &residuals);
    assert_true(heard.rmse[0] == -1 && said[0] == '\0');
    residuals_clear(&residuals);
}

/* Folds are even, and the same for the same seed. */
TEST(folds) {
    size_t counts[5] = {0}, moved = 0;
    for (uint64_t row = 0; row < 100000; row++) {
        uint8_t fold = folds_of_key(row, 1, 5);
        assert_true(fold < 5);
        counts[fold]++;
        moved += fold != folds_of_key(row, 2, 5);
    }
    for (size_t i = 0; i < 5; i++)
        assert_in_range(counts[i], 19500, 20500);
    assert_in_range(moved, 78000, 82000);
}

TEST_GROUP(set_up, tear_down)
