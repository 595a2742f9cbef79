/* How fit-linear finds its terms, step by step, against data/elimination (README there): which term is the
 * worst, its p, the residual sums and what is dropped and deleted, to 1e-8. Linked to the plugin's own
 * sources: what is tested is inside it. Skipped, aloud, where the data is not. */
#include "plugins/fit-linear/settle.h"
#include "tests/test.h"
#include "tests/unit/plugin/fit-host.h"

#include <unistd.h>

enum { ROWS_MAX = 256, LINE = 4096, FIELDS = 16 };

extern const struct assay_plugin assay_plugin;
static const char *data;
static struct host_result result;
static struct settled settled;

struct csv {
    char text[ROWS_MAX][LINE];
    char *fields[ROWS_MAX][FIELDS];
    size_t rows, columns;
};
static struct csv table, path, final;

/* Fields hold neither quotes nor commas; numbers may be padded. */
static void read_csv(const char *name, struct csv *ret) {
    char place[8192];
    snprintf(place, sizeof place, "%s/elimination/%s.csv", data, name);
    FILE *file = fopen(place, "re");
    assert_non_null(file);
    for (ret->rows = 0; ret->rows < ROWS_MAX && fgets(ret->text[ret->rows], LINE, file); ret->rows++) {
        char *line = ret->text[ret->rows];
        line[strcspn(line, "\r\n")] = '\0';
        for (ret->columns = 0; line && ret->columns < FIELDS; ret->columns++) {
            char *field = strsep(&line, ",");
            ret->fields[ret->rows][ret->columns] = field + strspn(field, " ");
        }
    }
    fclose(file);
    assert_true(ret->rows > 1 && ret->rows < ROWS_MAX);
}

static const char *field(const struct csv *csv, size_t row, const char *column) {
    for (size_t c = 0; c < csv->columns; c++)
        if (strcmp(csv->fields[0][c], column) == 0)
            return csv->fields[row][c];
    fail_msg("no column %s", column);
    return NULL;
}

static double number(const struct csv *csv, size_t row, const char *column) {
    return strtod(field(csv, row, column), NULL);
}

/* ---- The path, heard where it is written */

static int settle_and_finish(struct fit *fit, const struct fit_writer *writer,
                             struct plugin_message *message) {
    struct settling *settling = settling_new(fit);
    assert_non_null(settling);
    assert_int_equal(settle(settling, 0, &settled), 0);
    settling_free(settling);
    return ((const struct fit_operations *)assay_plugin.operations)->finish(fit, writer, message);
}

static void assert_step(const struct selection_step *step, size_t row, double total) {
    const char *dropped = field(&path, row, "dropped"), *terms = field(&path, row, "terms");
    double n = (double)step->rows, p = n - step->degrees;
    assert_true(step->round + 1 == number(&path, row, "outlier_round") && n == number(&path, row, "n"));
    size_t pluses = 0;
    for (const char *c = terms; *c; c++)
        pluses += *c == '+';
    assert_true(p == (double)pluses + 2); /* the terms and the intercept */
    assert_close(sqrt(step->rss / step->degrees), number(&path, row, "sigma"), 1e-8, "sigma");
    assert_close(n * (log(2 * M_PI) + 1 + log(step->rss / n)) + 2 * (p + 1), number(&path, row, "aic"), 1e-8,
                 "AIC");
    if (total > 0)
        assert_close(1 - step->rss / total, number(&path, row, "r2"), 1e-8, "R2");
    assert_close(step->p, number(&path, row, "worst_p"), 1e-8, "p of the worst");
    assert_string_equal(result.terms[step->worst], field(&path, row, "worst"));
    assert_int_equal(step->dropped, *dropped != '\0');
    if (step->dropped)
        assert_string_equal(result.terms[step->worst], dropped);
}

static void compare_path(const char *name) {
    size_t steps = 0;
    for (size_t row = 1; row < path.rows; row++) {
        if (strcmp(field(&path, row, "table"), name) != 0)
            continue;
        assert_true(steps < settled.path.count);
        const struct selection_step *step = &settled.path.steps[steps++];
        assert_step(step, row, step->rows == settled.result.rows ? settled.result.total : 0);
    }
    assert_true(steps > 2 && steps == settled.path.count);
}

static void compare_final(const char *name) {
    const struct host_group *group = &result.groups[0];
    size_t compared = 0, stayed = 0;
    for (size_t t = 0; t < result.term_count; t++)
        stayed += !group->estimates[t].dropped;
    for (size_t row = 1; row < final.rows; row++) {
        const char *term = field(&final, row, "term");
        if (strcmp(field(&final, row, "table"), name) != 0)
            continue;
        size_t t = 0;
        while (t < result.term_count &&
               strcmp(result.terms[t], strcmp(term, "(Intercept)") == 0 ? "1" : term) != 0)
            t++;
        assert_true(t < result.term_count && !group->estimates[t].dropped);
        assert_close(group->estimates[t].estimate, number(&final, row, "coef"), 1e-8, term);
        assert_close(group->estimates[t].standard_error, number(&final, row, "se"), 1e-8, term);
        assert_close(group->estimates[t].t, number(&final, row, "t"), 1e-8, term);
        assert_close(group->estimates[t].p, number(&final, row, "p"), 1e-8, term);
        assert_close(host_value(group, "r2"), number(&final, row, "r2"), 1e-8, "R2");
        assert_true((double)group->rows == number(&final, row, "n_kept"));
        assert_true(host_value(group, "outliers_deleted") == number(&final, row, "n_deleted"));
        assert_true(settled.outcome.rounds == number(&final, row, "rounds") && settled.outcome.settled);
        compared++;
    }
    assert_true(compared == stayed && compared > 3);
}

static void check(const char *name, const char *response) {
    static double columns[HOST_COLUMNS][ROWS_MAX];
    struct fit_operations operations = *(const struct fit_operations *)assay_plugin.operations;
    operations.finish = settle_and_finish;
    read_csv(name, &table);
    struct host_table host = {.rows = table.rows - 1,
                              .column_count = table.columns,
                              .response = response,
                              .settings = {"select", "outliers"},
                              .values = {SELECT_ELIMINATION, 3},
                              .setting_count = 2};
    char terms[1024] = "1";
    for (size_t c = 0; c < table.columns; c++) {
        for (size_t r = 1; r < table.rows; r++)
            columns[c][r - 1] = strtod(table.fields[r][c], NULL);
        host.names[c] = table.fields[0][c];
        host.columns[c] = columns[c];
        if (strcmp(host.names[c], response) != 0)
            snprintf(terms + strlen(terms), sizeof terms - strlen(terms), "+%s", host.names[c]);
    }
    host.terms = terms;
    host_fit(&operations, &host, &result);
    assert_int_equal(result.code, 0);
    compare_path(name);
    compare_final(name);
}

TEST(longley) {
    check("longley", "Employed");
}

TEST(processors) {
    check("MASS_cpus_invperf", "invperf");
    const char *notes = result.groups[0].notes;
    assert_non_null(
        strstr(notes, "selection, round 2, 204 rows: dropped inv_chmax1 (p 0.517), inv_mmax (p 0.0726)"));
    assert_non_null(strstr(notes, "9 outliers deleted: table data row 100, "));
}

static int set_up(void **state) {
    char place[8192];
    if (!(data = test_data()))
        exit(77);
    snprintf(place, sizeof place, "%s/elimination", data);
    if (access(place, R_OK) != 0)
        exit(77);
    read_csv("path", &path);
    read_csv("final", &final);
    return 0;
}

TEST_GROUP(set_up, NULL)
