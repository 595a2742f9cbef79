/* Every group of the real dgemm tables against answers in rational arithmetic (data/README.md): coefficients
 * and standard errors to 1e-9, R2 and the residual sum of squares to 1e-11. Skipped, aloud, where the data is
 * not. */
#include "engine/fit/fit.h"

#include "engine/documents/document.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"
#include "engine/model/model.h"
#include "tests/test.h"
#include "tests/unit/plugin/gzip-file.h"

#include <unistd.h>

static char folder[] = "/tmp/assay-linear-XXXXXX";
static const char *data;
static struct document *answers;
static struct installation installation;
static size_t compared;

static const struct {
    const char *name, *terms;
} models[] = {
    {"M0", "M-0"},
    {"M1", "M-1"},
    {"M1_origin", "mnk"},
    {"M2", "M-2"},
    {"M2_origin", "mnk+mn+mk+nk"},
    {"M2_cashew_head", "1+mnk+mk+nk"},
    {"M2_full8", "1+mnk+mn+mk+nk+m+n+k"},
};

static int set_up(void **state) {
    if (!(data = test_data()))
        exit(77);
    struct failure failure = {0};
    char path[8192], plugins[8192];
    snprintf(plugins, sizeof plugins, "%s", getenv("ASSAY_BUILD"));
    snprintf(path, sizeof path, "%s/dgemm/ols_exact.json", data);
    if (document_read_json(path, &answers, &failure) < 0 || !mkdtemp(folder) ||
        installation_init(&installation, plugins, NULL, &failure) < 0) {
        fprintf(stderr, "%s\n", failure.text);
        return -1;
    }
    char table[8192];
    snprintf(path, sizeof path, "%s/dgemm/dahu5_method_raw.csv.gz", data);
    snprintf(table, sizeof table, "%s/method.csv", folder);
    return gzip_file_read(path, table);
}

static int tear_down(void **state) {
    document_free(answers);
    installation_clear(&installation);
    return file_remove_tree(folder, NULL);
}

static double number(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    double result = NAN;
    assert_non_null(value);
    assert_true(number_parse_double(value->text, strlen(value->text), &result));
    return result;
}

static void compare(double found, double expected, double tolerance, const char *what, const char *group) {
    compared++;
    char name[256];
    snprintf(name, sizeof name, "%s of %s", what, group);
    assert_close(found, expected, tolerance, name);
}

/* "m*n*k" as the answers spell it: mnk. */
static void spell(const char *name, char ret[static 64]) {
    for (; *name; name++)
        if (*name != '*')
            *ret++ = *name;
    *ret = '\0';
}

static void compare_group(const struct model *model, const struct model_group *group,
                          const struct document_node *answer) {
    static const struct {
        const char *value, *answer;
    } values[] = {{"rss", "rss"},
                  {"r2", "r2"},
                  {"adjusted_r2", "adj_r2"},
                  {"sigma", "sigma"},
                  {"log_likelihood", "loglik"},
                  {"aic", "aic_R"},
                  {"bic", "bic_R"}};
    assert_true((double)group->rows == number(answer, "n"));
    for (size_t i = 0; i < sizeof values / sizeof *values; i++)
        compare(model_group_value(group, values[i].value), number(answer, values[i].answer), 1e-11,
                values[i].value, group->name);
    for (size_t t = 0; t < model->term_count; t++) {
        char name[64];
        spell(model->terms[t].name, name);
        const struct document_node *term = document_get(document_get(answer, "terms"), name);
        const struct model_estimate *estimate = &group->parts[0].estimates[t];
        compare(estimate->estimate, number(term, "coef"), 1e-9, name, group->name);
        compare(estimate->standard_error, number(term, "se"), 1e-9, name, group->name);
        compare(estimate->t, number(term, "t"), 1e-9, name, group->name);
    }
}

static void fit_one(const char *path, const char *table_name, size_t index, const char *const *by,
                    size_t by_count, size_t *ret_groups) {
    struct failure failure = {0};
    struct library *library = NULL;
    struct table *table = NULL;
    struct fit *fit = NULL;
    const struct fit_options options = {
        .response = "duration", .terms = models[index].terms, .by = by, .by_count = by_count};
    if (library_open(&installation, "fit", "linear", &library, &failure) < 0 ||
        table_open(&path, 1, NULL, &table, &failure) < 0 ||
        fit_run(library, table, &options, &fit, &failure) < 0)
        fail_msg("%s", failure.text);
    const struct model *model = fit->model;
    const struct document_node *answers_of = document_get(answers->root, table_name);
    *ret_groups = 0;
    for (size_t g = 0; g < model->group_count; g++) {
        const struct model_group *group = &model->groups[g];
        const struct document_node *answer =
            document_get(document_get(answers_of, group->name), models[index].name);
        if (answer) {
            compare_group(model, group, answer);
            ++*ret_groups;
        } else { /* it has none where there is no residual */
            assert_true(group->rows == model->term_count &&
                        isnan(group->parts[0].estimates[0].standard_error));
        }
    }
    for (size_t i = 0; i < model->skipped_count; i++) {
        assert_null(document_get(document_get(answers_of, model->skipped[i].name), models[index].name));
        assert_true(strstr(model->skipped[i].reason, "for") != NULL);
    }
    fit_free(fit);
    table_free(table);
    library_close(library);
}

/* How many groups of the answers have this model; "all" or the others. */
static size_t answered(const char *table_name, const char *model, bool all) {
    const struct document_node *table = document_get(answers->root, table_name);
    size_t count = 0;
    for (size_t i = 0; i < table->count; i++)
        if ((strcmp(table->keys[i]->text, "all") == 0) == all && document_get(table->items[i], model))
            count++;
    return count;
}

static void check_table(const char *path, const char *table_name, const char *const *by) {
    for (size_t model = 0; model < sizeof models / sizeof *models; model++) {
        size_t groups;
        fit_one(path, table_name, model, by, 2, &groups);
        assert_int_equal(groups, answered(table_name, models[model].name, false));
        fit_one(path, table_name, model, NULL, 0, &groups);
        assert_int_equal(groups, answered(table_name, models[model].name, true));
        assert_int_equal(groups, 1);
    }
}

TEST(method) {
    static const char *const by[] = {"jobid", "cpu"};
    char path[8192];
    snprintf(path, sizeof path, "%s/method.csv", folder);
    check_table(path, "method", by);
}

TEST(yeti) {
    static const char *const by[] = {"node", "cpu"};
    char path[8192];
    snprintf(path, sizeof path, "%s/dgemm/yeti_performance.csv", data);
    check_table(path, "yeti", by);
    assert_true(compared > 1000);
}

TEST_GROUP(set_up, tear_down)
