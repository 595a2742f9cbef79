/* Populations of real machines against published moments (data/README.md, dgemm/generative_moments.json), to
 * 1e-9. Skipped, aloud, where the data is not. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>

#include <cmocka.h>

#include "engine/documents/document.h"
#include "engine/foundation/number.h"
#include "engine/plugin/fitting.h"
#include "tests/unit/plugin/gzip-file.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

static char data[4096], coefficients[] = "/tmp/assay-population-XXXXXX";
static struct document *answers;
static struct installation installation;
static size_t compared;

static int set_up(void **state) {
    (void)state;
    struct failure failure = {0};
    char path[8192];
    const char *build = getenv("ASSAY_BUILD");
    snprintf(path, sizeof path, "%s/dgemm/generative_moments.json", data);
    int descriptor = mkstemp(coefficients);
    if (descriptor < 0 || document_read_json(path, &answers, &failure) < 0 ||
        installation_init(&installation, build ? build : "build", NULL, &failure) < 0) {
        fprintf(stderr, "%s\n", failure.text);
        return -1;
    }
    close(descriptor);
    snprintf(path, sizeof path, "%s/dgemm/generative_coefficients.csv.gz", data);
    return gzip_file_read(path, coefficients);
}

static int tear_down(void **state) {
    (void)state;
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

static void assert_close(double found, double expected, const char *what) {
    compared++;
    if (!(fabs(found - expected) <= 1e-9 * fabs(expected)))
        fail_msg("%s is %.17g; expected %.17g (relative error %.3g)", what, found, expected,
                 fabs(found - expected) / fabs(expected));
}

static void assert_matrix(const double *found, const struct document_node *rows, const char *what) {
    assert_true(found && rows && rows->count == 3);
    for (size_t i = 0; i < 3; i++)
        for (size_t j = 0; j < 3; j++)
            assert_close(found[3 * i + j], number(rows->items[i]->items[j]), what);
}

static int hear_formula(void *context, const struct fit_formula *formula, struct failure *failure) {
    (void)context;
    (void)failure;
    const struct document_node *names =
        document_get(document_get(answers->root, "dgemm_calibration"), "variables");
    assert_int_equal(formula->term_count, names->count);
    for (size_t i = 0; i < names->count; i++)
        assert_string_equal(formula->terms[i].name, names->items[i]->text);
    return 0;
}

static int hear_group(void *context, const struct fit_group *group, struct failure *failure) {
    (void)failure;
    const char *days = context;
    const struct document_node *answer = document_get(answers->root, "dgemm_calibration");
    assert_int_equal(group->part_count, 2);
    assert_true((double)group->rows == number(document_get(answer, "rows")));
    for (size_t i = 0; i < 3; i++)
        assert_close(group->parts[0].estimates[i].estimate, number(document_get(answer, "mu")->items[i]),
                     "mu");
    assert_matrix(group->parts[0].covariance, document_get(answer, "Sigma_S"), "Sigma_S");
    assert_matrix(group->parts[1].covariance, document_get(answer, days), days);
    return 0;
}

static int hear_skipped(void *context, uint32_t code, uint64_t rows, const char *reason,
                        struct failure *failure) {
    (void)context;
    (void)code;
    (void)rows;
    (void)failure;
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
    if (table_open(&path, 1, false, &table, &failure) < 0 ||
        fitting_run(&installation, table, &options, NULL, NULL, &fitting, &failure) < 0)
        fail_msg("%s", failure.text);
    const struct fitting_listener listener = {(void *)days, hear_formula, hear_group, hear_skipped};
    const struct fitting_listener *const listeners[] = {&listener};
    assert_int_equal(fitting_finish(fitting, listeners, 1, &failure), 0);
    fitting_free(fitting);
    table_close(table);
}

static void published(void **state) {
    (void)state;
    fit_with("days=pooled", "Sigma_T_pooled");
    fit_with("days=mean", "Sigma_T_mean_of_covs");
    assert_int_equal(compared, 2 * (3 + 9 + 9));
}

int main(void) {
    const char *set = getenv("ASSAY_TEST_DATA"), *source = getenv("ASSAY_SOURCE");
    snprintf(data, sizeof data, "%s%s", set ? set : source ? source : ".", set ? "" : "/../shared/data");
    if (access(data, R_OK) != 0) {
        fprintf(stderr, "skipped: the measurements are not here (no folder '%s'; ASSAY_TEST_DATA names it)\n",
                data);
        return 77;
    }
    const struct CMUnitTest tests[] = {cmocka_unit_test(published)};
    return cmocka_run_group_tests(tests, set_up, tear_down);
}
