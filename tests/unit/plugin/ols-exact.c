/* Every group of the real dgemm tables against answers in rational arithmetic (data/README.md): coefficients
 * and standard errors to 1e-9, R2 and the residual sum of squares to 1e-11. Skipped, aloud, where the data is
 * not. */
#include "engine/documents/document.h"
#include "engine/foundation/file.h"
#include "engine/foundation/number.h"
#include "engine/plugin/fitting.h"
#include "tests/test.h"
#include "tests/unit/plugin/gzip-file.h"

#include <unistd.h>

static char folder[] = "/tmp/assay-ols-XXXXXX";
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
    char path[8192];
    snprintf(path, sizeof path, "%s/dgemm/ols_exact.json", data);
    if (document_read_json(path, &answers, &failure) < 0 || !mkdtemp(folder) ||
        installation_init(&installation, test_build(), NULL, &failure) < 0) {
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

/* ---- Listening */

struct listening {
    const struct fitting *fitting;
    const struct document_node *table; /* answers of this table */
    const char *model;
    char terms[16][64]; /* as the answers spell them: mnk */
    size_t term_count, groups, skipped;
};

/* "1964858/0"; "all" without groups. */
static const char *group_name(const struct listening *listening, uint32_t code, char name[static 256]) {
    size_t by = fitting_options(listening->fitting)->by_count;
    name[0] = '\0';
    for (size_t j = 0; j < by; j++)
        snprintf(name + strlen(name), 256 - strlen(name), "%s%s", j ? "/" : "",
                 fitting_label(listening->fitting, code, j));
    return by ? name : "all";
}

static int hear_formula(void *context, const struct fit_formula *formula, struct failure *failure) {
    struct listening *listening = context;
    listening->term_count = formula->term_count;
    for (size_t t = 0; t < formula->term_count; t++) {
        char *at = listening->terms[t];
        for (const char *c = formula->terms[t].name; *c; c++)
            if (*c != '*')
                *at++ = *c;
        *at = '\0';
    }
    return 0;
}

static double value_of(const struct fit_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    return NAN;
}

static int hear_group(void *context, const struct fit_group *group, struct failure *failure) {
    struct listening *listening = context;
    const struct fit_part *part = &group->parts[0];
    char text[256];
    const char *name = group_name(listening, group->code, text);
    const struct document_node *answer = document_get(document_get(listening->table, name), listening->model);
    if (!answer) { /* it has none where there is no residual */
        assert_true(group->rows == listening->term_count && isnan(part->estimates[0].standard_error));
        return 0;
    }
    listening->groups++;
    assert_true((double)group->rows == number(answer, "n"));
    compare(value_of(part, "rss"), number(answer, "rss"), 1e-11, "rss", name);
    compare(value_of(part, "r2"), number(answer, "r2"), 1e-11, "R2", name);
    compare(value_of(part, "adjusted_r2"), number(answer, "adj_r2"), 1e-11, "adjusted R2", name);
    compare(value_of(part, "sigma"), number(answer, "sigma"), 1e-11, "sigma", name);
    compare(value_of(part, "log_likelihood"), number(answer, "loglik"), 1e-11, "log likelihood", name);
    compare(value_of(part, "aic"), number(answer, "aic_R"), 1e-11, "AIC", name);
    compare(value_of(part, "bic"), number(answer, "bic_R"), 1e-11, "BIC", name);
    for (size_t t = 0; t < listening->term_count; t++) {
        const struct document_node *term = document_get(document_get(answer, "terms"), listening->terms[t]);
        compare(part->estimates[t].estimate, number(term, "coef"), 1e-9, listening->terms[t], name);
        compare(part->estimates[t].standard_error, number(term, "se"), 1e-9, listening->terms[t], name);
        compare(part->estimates[t].t, number(term, "t"), 1e-9, listening->terms[t], name);
    }
    return 0;
}

static int hear_skipped(void *context, uint32_t code, uint64_t rows, const char *reason,
                        struct failure *failure) {
    struct listening *listening = context;
    char text[256];
    const char *name = group_name(listening, code, text);
    assert_null(document_get(document_get(listening->table, name), listening->model));
    assert_true(rows < listening->term_count && strstr(reason, "rows for") != NULL);
    listening->skipped++;
    return 0;
}

static void fit_one(const char *path, const char *table_name, size_t model, const char *const *by,
                    size_t by_count, size_t *ret_groups, size_t *ret_skipped) {
    struct failure failure = {0};
    struct table *table = NULL;
    struct fitting *fitting = NULL;
    const struct fitting_options options = {.method = "linear",
                                            .response = "duration",
                                            .terms = models[model].terms,
                                            .by = by,
                                            .by_count = by_count};
    if (table_stream_open(&path, 1, false, &table, &failure) < 0 ||
        fitting_run(&installation, table, &options, NULL, NULL, &fitting, &failure) < 0)
        fail_msg("%s", failure.text);
    struct listening listening = {
        .fitting = fitting, .table = document_get(answers->root, table_name), .model = models[model].name};
    const struct fitting_listener listener = {&listening, hear_formula, hear_group, hear_skipped};
    const struct fitting_listener *const listeners[] = {&listener};
    assert_int_equal(fitting_finish(fitting, listeners, 1, &failure), 0);
    *ret_groups = listening.groups;
    *ret_skipped = listening.skipped;
    fitting_free(fitting);
    table_close(table);
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
        size_t groups, skipped;
        fit_one(path, table_name, model, by, 2, &groups, &skipped);
        assert_int_equal(groups, answered(table_name, models[model].name, false));
        fit_one(path, table_name, model, NULL, 0, &groups, &skipped);
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
