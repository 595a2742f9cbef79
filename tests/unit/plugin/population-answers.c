/* Populations of real machines against published moments (data/README.md, dgemm/generative_moments.json), to
 * 1e-9. Skipped, aloud, where the data is not. */
#include "engine/documents/document.h"
#include "engine/foundation/number.h"
#include "engine/plugin/fitting.h"
#include "tests/test.h"
#include "tests/unit/plugin/gzip-file.h"

static const char *data;
static char coefficients[] = "/tmp/assay-population-XXXXXX";
static struct document *answers;
static struct installation installation;
static size_t compared;

static int set_up(void **state) {
    if (!(data = test_data()))
        exit(77);
    struct failure failure = {0};
    char path[8192];
    snprintf(path, sizeof path, "%s/dgemm/generative_moments.json", data);
    int descriptor = mkstemp(coefficients);
    if (descriptor < 0 || document_read_json(path, &answers, &failure) < 0 ||
        installation_init(&installation, test_build(), NULL, &failure) < 0) {
        fprintf(stderr, "%s\n", failure.text);
        return -1;
    }
    close(descriptor);
    snprintf(path, sizeof path, "%s/dgemm/generative_coefficients.csv.gz", data);
    return gzip_file_read(path, coefficients);
}

static int tear_down(void **state) {
    document_free(answers);
    installation_clear(&installation);
    return unlink(coefficients);
}

static double number(const struct document_node *node) {
    double result = NAN;
    assert_non_null(node);
    assert_true(number_parse_double(node->text, strlen(node->text), &result));
    return result;
}

static void compare(double found, double expected, const char *what) {
    compared++;
    assert_close(found, expected, 1e-9, what);
}

static void assert_matrix(const double *found, const struct document_node *rows, const char *what) {
    assert_true(found && rows && rows->count == 3);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            compare(found[3 * i + j], number(rows->items[i]->items[j]), what);
}

static int hear_formula(void *context, const struct fit_formula *formula, struct failure *failure) {
    const struct document_node *names =
        document_get(document_get(answers->root, "dgemm_calibration"), "variables");
    assert_int_equal(formula->term_count, names->count);
    for (size_t i = 0; i < names->count; i++)
        assert_string_equal(formula->terms[i].name, names->items[i]->text);
    return 0;
}

static int hear_group(void *context, const struct fit_group *group, struct failure *failure) {
    const char *days = context;
    const struct document_node *answer = document_get(answers->root, "dgemm_calibration");
    assert_int_equal(group->part_count, 2);
    assert_true((double)group->rows == number(document_get(answer, "rows")));
    for (size_t i = 0; i < 3; i++)
        compare(group->parts[0].estimates[i].estimate, number(document_get(answer, "mu")->items[i]), "mu");
    assert_matrix(group->parts[0].covariance, document_get(answer, "Sigma_S"), "Sigma_S");
    assert_matrix(group->parts[1].covariance, document_get(answer, days), days);
    return 0;
}

static int hear_skipped(void *context, uint32_t code, uint64_t rows, const char *reason,
                        struct failure *failure) {
    fail_msg("skipped: %s", reason);
    return 0;
}

static void fit_with(const char *setting, const char *days) {
    struct failure failure = {0};
    struct table *table = NULL;
    struct fitting *fitting = NULL;
    const char *path = coefficients;
    const struct fitting_options options = {.method = "population",
                                            .response = "mnk",
                                            .terms = "intercept + mnk_residual | node, cpu",
                                            .settings = &setting,
                                            .setting_count = 1};
    if (table_stream_open(&path, 1, false, &table, &failure) < 0 ||
        fitting_run(&installation, table, &options, NULL, NULL, &fitting, &failure) < 0)
        fail_msg("%s", failure.text);
    const struct fitting_listener listener = {(void *)days, hear_formula, hear_group, hear_skipped};
    const struct fitting_listener *const listeners[] = {&listener};
    assert_int_equal(fitting_finish(fitting, listeners, 1, &failure), 0);
    fitting_free(fitting);
    table_close(table);
}

TEST(published) {
    fit_with("days=pooled", "Sigma_T_pooled");
    fit_with("days=mean", "Sigma_T_mean_of_covs");
    assert_int_equal(compared, 2 * (3 + 9 + 9));
}

TEST_GROUP(set_up, tear_down)
