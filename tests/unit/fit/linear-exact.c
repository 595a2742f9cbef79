/* Every group of the real dgemm tables against answers in rational arithmetic (data/README.md): coefficients
 * and standard errors to 1e-9, R2 and the residual sum of squares to 1e-11. The moment estimator against the
 * published rule to 1e-9, elimination with outliers step by step and to 1e-8. Skipped, aloud, where the data
 * is not. */
#include "engine/fit/fit.h"

#include "engine/documents/csv.h"
#include "engine/documents/document.h"
#include "engine/foundation/number.h"
#include "engine/model/model.h"
#include "tests/test.h"
#include "tests/unit/plugin/gzip-file.h"

#include <unistd.h>

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
    char path[8192];
    snprintf(path, sizeof path, "%s/dgemm/ols_exact.json", data);
    assert_ok(document_read_json(path, &answers, &test_failure));
    assert_ok(installation_init(&installation, test_build(), NULL, &test_failure));
    snprintf(path, sizeof path, "%s/dgemm/dahu5_method_raw.csv.gz", data);
    return gzip_file_read(path, test_path("method.csv"));
}

static int tear_down(void **state) {
    document_free(answers);
    installation_clear(&installation);
    return 0;
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
    char name[512];
    snprintf(name, sizeof name, "%.200s of %.200s", what, group);
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

static struct fit *fit_file(const char *path, const struct fit_options *options) {
    struct library *library = NULL;
    struct table *table = NULL;
    struct fit *fit = NULL;
    assert_ok(library_open(&installation, "fit", "linear", &library, &test_failure));
    assert_ok(table_open(&path, 1, NULL, &table, &test_failure));
    assert_ok(fit_run(library, table, options, &fit, &test_failure));
    table_free(table);
    library_close(library);
    return fit;
}

static void fit_one(const char *path, const char *table_name, size_t index, const char *const *by,
                    size_t by_count, size_t *ret_groups) {
    static const char *const settings[] = {"noise=homoscedastic"};
    const struct fit_options options = {.response = "duration",
                                        .terms = models[index].terms,
                                        .by = by,
                                        .by_count = by_count,
                                        .settings = settings,
                                        .setting_count = 1};
    cleanup(fit_cleanup) struct fit *fit = fit_file(path, &options);
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
    check_table(test_path("method.csv"), "method", by);
}

TEST(yeti) {
    static const char *const by[] = {"node", "cpu"};
    char path[8192];
    snprintf(path, sizeof path, "%s/dgemm/yeti_performance.csv", data);
    check_table(path, "yeti", by);
    assert_true(compared > 1000);
}

/* ---- Answers in CSV */

static struct csv_reader *answer_file;
static const struct csv_field *fields;

static void open_answers(const char *name) {
    char path[8192];
    snprintf(path, sizeof path, "%s/%s", data, name);
    assert_ok(csv_open(path, &answer_file, &test_failure));
}

static bool next_answer(void) {
    if (csv_next(answer_file, &fields, &test_failure) == 1)
        return true;
    csv_close(answer_file);
    return false;
}

static const char *text_of(const char *column) {
    static char texts[4][256];
    static size_t next;
    size_t place;
    assert_ok(csv_find_column(answer_file, column, &place, &test_failure));
    char *text = texts[next++ % 4];
    snprintf(text, sizeof *texts, "%.*s", (int)fields[place].length, fields[place].bytes);
    return text;
}

static double number_of(const char *column) {
    return strtod(text_of(column), NULL);
}

/* The rule's deviations: those of peanut and cashew, which are floating point themselves. */
TEST(rule) {
    static const char *const by[] = {"jobid", "cpu"}, *const settings[] = {"noise=rule"};
    static const char *const rules[] = {"head_mnk_mk_nk", "generate_model_mnk_mn_mk_nk"};
    size_t matched = 0;
    for (size_t k = 0; k < 2; k++) {
        cleanup(fit_cleanup) struct fit *fit = fit_file(
            test_path("method.csv"), &(struct fit_options){.response = "duration",
                                                           .terms = k == 0 ? "1+mnk+mk+nk" : "1+mnk+mn+mk+nk",
                                                           .by = by,
                                                           .by_count = 2,
                                                           .settings = settings,
                                                           .setting_count = 1});
        open_answers("dgemm/sigma_model.csv");
        while (next_answer()) {
            for (size_t g = 0; g < fit->model->group_count; g++) {
                const struct model_group *group = &fit->model->groups[g];
                const struct model_noise *noise = &group->parts[0].noise;
                if (strcmp(text_of("rule"), rules[k]) != 0 || strcmp(text_of("group"), group->name) != 0)
                    continue;
                compare(noise->constant, number_of("intercept_residual"), 1e-9, "constant", group->name);
                for (size_t t = 1; t < fit->model->term_count; t++) {
                    char term[64], name[80];
                    spell(fit->model->terms[t].name, term);
                    snprintf(name, sizeof name, "%s_residual", term);
                    compare(noise->coefficients[t], number_of(name), 1e-9, name, group->name);
                }
                matched++;
            }
        }
    }
    assert_int_equal(matched, 8);
}

/* What went in which order, with its p in three digits, in all rounds of outliers. */
static void compare_path(const char *name, const struct model_group *group) {
    size_t note = 0;
    open_answers("elimination/path.csv");
    while (next_answer()) {
        char step[256];
        const char *dropped = text_of("dropped");
        if (strcmp(text_of("table"), name) != 0 || !*dropped)
            continue;
        snprintf(step, sizeof step, "dropped %s: p = %.3g", dropped, number_of("worst_p"));
        assert_true(note < group->note_count);
        assert_string_equal(group->notes[note++], step);
    }
    assert_true(note > 1 && (note == group->note_count || !strstr(group->notes[note], "dropped")));
}

static void eliminate(const char *name, const char *response, const char *terms) {
    static const char *const settings[] = {"select=elimination", "outliers=3", "noise=homoscedastic"};
    char path[8192];
    size_t kept = 0, matched = 0;
    snprintf(path, sizeof path, "%s/elimination/%s.csv", data, name);
    struct fit *fit =
        fit_file(path, &(struct fit_options){
                           .response = response, .terms = terms, .settings = settings, .setting_count = 3});
    const struct model_group *group = &fit->model->groups[0];
    compare_path(name, group);
    open_answers("elimination/final.csv");
    while (next_answer()) {
        char term[256];
        snprintf(term, sizeof term, "%s",
                 strcmp(text_of("term"), "(Intercept)") == 0 ? "1" : text_of("term"));
        for (size_t t = 0; t < fit->model->term_count; t++) {
            const struct model_estimate *estimate = &group->parts[0].estimates[t];
            if (strcmp(text_of("table"), name) != 0 || strcmp(fit->model->terms[t].name, term) != 0)
                continue;
            compare(estimate->estimate, number_of("coef"), 1e-8, term, name);
            compare(estimate->standard_error, number_of("se"), 1e-8, term, name);
            compare(estimate->t, number_of("t"), 1e-8, term, name);
            compare(estimate->p, number_of("p"), 1e-8, term, name);
            compare(model_group_value(group, "r2"), number_of("r2"), 1e-8, "r2", name);
            compare((double)group->rows, number_of("n_kept"), 0, "rows", name);
            compare(model_group_value(group, "outliers_deleted"), number_of("n_deleted"), 0, "deleted", name);
            matched++;
        }
    }
    for (size_t t = 0; t < fit->model->term_count; t++)
        kept += !group->parts[0].estimates[t].dropped;
    assert_true(matched == kept && kept > 3);
    fit_free(fit);
}

TEST(elimination) {
    eliminate("longley", "Employed", "1+`GNP.deflator`+GNP+Unemployed+`Armed.Forces`+Population+Year");
    eliminate("MASS_cpus_invperf", "invperf", "1+cycle_ns+inv_mmin+inv_mmax+inv_cach1+inv_chmin1+inv_chmax1");
}

TEST_GROUP(set_up, tear_down)
