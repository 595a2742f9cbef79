/* Every group of the real dgemm tables against answers in rational arithmetic (data/README.md): coefficients
 * and standard errors to 1e-9, R2 and the residual sum of squares to 1e-11. Skipped, aloud, where the data is
 * not. */
#include "engine/documents/csv.h"
#include "engine/documents/document.h"
#include "engine/numerics/least-squares.h"
#include "tests/test.h"
#include "tests/unit/plugin/gzip-file.h"

enum { ROWS_MAX = 40000, TERMS_MAX = 8 };

static const char *data;
static struct document *answers;
static double columns[TERMS_MAX][ROWS_MAX], duration[ROWS_MAX], major[ROWS_MAX], minor[ROWS_MAX];
static size_t rows, compared;

/* The order of `columns`. */
static const char *const terms[TERMS_MAX] = {"1", "mnk", "mn", "mk", "nk", "m", "n", "k"};
static const struct {
    const char *name, *terms; /* a digit a term */
} models[] = {{"M0", "0"},
              {"M1", "01"},
              {"M1_origin", "1"},
              {"M2", "01234"},
              {"M2_origin", "1234"},
              {"M2_cashew_head", "0134"},
              {"M2_full8", "01234567"}};

static int set_up(void **state) {
    if (!(data = test_data()))
        exit(77);
    struct failure failure = {0};
    char path[8192];
    snprintf(path, sizeof path, "%s/dgemm/ols_exact.json", data);
    return document_read_json(path, &answers, &failure);
}

static int tear_down(void **state) {
    document_free(answers);
    return 0;
}

static void read_table(const char *path, const char *by_major, const char *by_minor) {
    const char *const names[] = {"m", "n", "k", "duration", by_major, by_minor};
    struct csv_reader *reader;
    struct failure failure = {0};
    const struct csv_field *fields;
    size_t at[6];
    double row[6];
    assert_int_equal(csv_open(path, &reader, &failure), 0);
    for (size_t i = 0; i < 6; i++)
        assert_int_equal(csv_find_column(reader, names[i], &at[i], &failure), 0);
    for (rows = 0; csv_next(reader, &fields, &failure) > 0; rows++) {
        assert_true(rows < ROWS_MAX);
        for (size_t i = 0; i < 6; i++)
            assert_int_equal(csv_number(reader, at[i], &row[i], &failure), 0);
        double m = row[0], n = row[1], k = row[2];
        const double values[TERMS_MAX] = {1, m * n * k, m * n, m * k, n * k, m, n, k};
        for (size_t t = 0; t < TERMS_MAX; t++)
            columns[t][rows] = values[t];
        duration[rows] = row[3];
        major[rows] = row[4];
        minor[rows] = row[5];
    }
    csv_close(reader);
}

static double number(const struct document_node *node, const char *key) {
    const struct document_node *value = document_get(node, key);
    assert_non_null(value);
    return strtod(value->text, NULL);
}

static void compare(double found, double expected, double tolerance, const char *what, const char *group) {
    char name[256];
    compared++;
    snprintf(name, sizeof name, "%s of %s", what, group);
    assert_close(found, expected, tolerance, name);
}

/* GROUP is "MAJOR/MINOR" or "all". */
static void check(const char *group, const char *digits, const struct document_node *answer) {
    static double x[TERMS_MAX * ROWS_MAX], y[ROWS_MAX];
    size_t count = 0, p = strlen(digits);
    double of_major = 0, of_minor = 0;
    bool all = sscanf(group, "%lf/%lf", &of_major, &of_minor) != 2;
    for (size_t i = 0; i < rows; i++) {
        if (!all && (major[i] != of_major || minor[i] != of_minor))
            continue;
        y[count] = duration[i];
        for (size_t t = 0; t < p; t++)
            x[count + t * ROWS_MAX] = columns[digits[t] - '0'][i];
        count++;
    }
    struct least_squares sums;
    struct least_squares_fit fit;
    assert_int_equal(least_squares_init(&sums, p), 0);
    assert_int_equal(least_squares_append(&sums, count, x, ROWS_MAX, y, NULL), 0);
    assert_int_equal(least_squares_solve(&sums, NULL, &fit), 0);
    assert_true((double)count == number(answer, "n") && fit.rank == p);
    double total = digits[0] == '0' ? sums.total : sums.total + sums.weight * sums.mean * sums.mean;
    double sigma = sqrt(fit.rss / (double)(count - p));
    compare(fit.rss, number(answer, "rss"), 1e-11, "rss", group);
    compare(sigma, number(answer, "sigma"), 1e-11, "sigma", group);
    compare(1 - fit.rss / total, number(answer, "r2"), 1e-11, "R2", group);
    for (size_t t = 0; t < p; t++) {
        const struct document_node *term =
            document_get(document_get(answer, "terms"), terms[digits[t] - '0']);
        compare(fit.estimate[t], number(term, "coef"), 1e-9, "an estimate", group);
        compare(sigma * sqrt(fit.covariance[t + t * p]), number(term, "se"), 1e-9, "a standard error", group);
    }
    least_squares_fit_clear(&fit);
    least_squares_clear(&sums);
}

static void check_table(const char *name) {
    const struct document_node *table = document_get(answers->root, name);
    for (size_t g = 0; g < table->count; g++)
        for (size_t m = 0; m < sizeof models / sizeof *models; m++) {
            const struct document_node *answer = document_get(table->items[g], models[m].name);
            if (answer)
                check(table->keys[g]->text, models[m].terms, answer);
        }
}

TEST(method) {
    char from[8192], to[] = "/tmp/assay-numerics-XXXXXX";
    int descriptor = mkstemp(to);
    assert_true(descriptor >= 0);
    close(descriptor);
    snprintf(from, sizeof from, "%s/dgemm/dahu5_method_raw.csv.gz", data);
    assert_int_equal(gzip_file_read(from, to), 0);
    read_table(to, "jobid", "cpu");
    unlink(to);
    check_table("method");
}

TEST(yeti) {
    char path[8192];
    snprintf(path, sizeof path, "%s/dgemm/yeti_performance.csv", data);
    read_table(path, "node", "cpu");
    check_table("yeti");
    assert_true(compared > 900);
}

TEST_GROUP(set_up, tear_down)
