/* Non-regression tests against published verdicts of real measurements (data/README.md; skipped, aloud, where
 * they are not), and by hand. */
#include "engine/history/non-regression.h"

#include "tests/test.h"

#include "engine/documents/csv.h"
#include "engine/foundation/memory.h"
#include <time.h>

static const struct non_regression_rule published = {
    .confidence = 0.9999, .least = 10, .keep = 5, .window = 5, .published_count = true};

/* ---- The verdicts of 13,540 rows ------------------------------------------------------------------------
 */

enum { ROWS_MAX = 20000 };

/* A change or an outlier of the logs: of all nodes, or of those in "1/2/3"; JOB 0: any. */
struct logged {
    double time;
    char nodes[128];
    long job;
};

static struct logged changes[100], outliers[100];
static size_t change_count, outlier_count;

static double date_seconds(const char *date) {
    struct tm parts = {0};
    assert_int_equal(sscanf(date, "%d-%d-%d", &parts.tm_year, &parts.tm_mon, &parts.tm_mday), 3);
    parts.tm_year -= 1900;
    parts.tm_mon--;
    return (double)timegm(&parts);
}

static bool names_node(const char *nodes, long node) {
    if (strcmp(nodes, "all") == 0)
        return true;
    for (const char *at = nodes; at; at = strchr(at, '/')) {
        at += *at == '/';
        if (strtol(at, NULL, 10) == node)
            return true;
    }
    return false;
}

static size_t read_log(const char *path, bool has_job, struct logged *ret) {
    char line[512], date[16], cluster[32], third[64];
    size_t count = 0;
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(line, sizeof line, file));
    while (fgets(line, sizeof line, file)) {
        struct logged *at = &ret[count];
        assert_int_equal(sscanf(line, "%15[^,],%31[^,],%127[^,],%63[^,]", date, cluster, at->nodes, third),
                         4);
        at->time = date_seconds(date);
        at->job = has_job ? strtol(third, NULL, 10) : 0;
        count += strcmp(cluster, "all") == 0 || strcmp(cluster, "dahu") == 0;
    }
    fclose(file);
    return count;
}

struct answer {
    long node, cpu, job;
    double time, value;
    double
        numbers[10]; /* nb_obs, mu, sigma, low, high, windowed low, high, likelihood, windowed likelihood */
    enum non_regression_sign single, windowed;
    bool is_outlier;
};

static struct answer answers[ROWS_MAX];
static size_t answer_count;

static enum non_regression_sign read_sign(const struct csv_field *field) {
    static const char *const words[] = {"NA", "False", "negative", "positive"};
    for (size_t i = 0; i < 4; i++)
        if (field->length == strlen(words[i]) && memcmp(field->bytes, words[i], field->length) == 0)
            return (enum non_regression_sign)i;
    fail_msg("a verdict '%.*s'", (int)field->length, field->bytes);
    return NON_REGRESSION_NONE;
}

static void read_answers(const char *path) {
    static const char *const names[] = {"node",
                                        "cpu",
                                        "jobid",
                                        "start_time",
                                        "mean_frequency",
                                        "nb_obs",
                                        "mu",
                                        "sigma",
                                        "low_bound",
                                        "high_bound",
                                        "windowed_low_bound",
                                        "windowed_high_bound",
                                        "likelihood",
                                        "windowed_likelihood",
                                        "weird",
                                        "windowed_weird",
                                        "outlier"};
    size_t columns[17];
    struct csv_reader *reader = NULL;
    const struct csv_field *fields;
    assert_ok(csv_open(path, &reader, &test_failure));
    for (size_t i = 0; i < 17; i++)
        assert_ok(csv_find_column(reader, names[i], &columns[i], &test_failure));
    while (csv_next(reader, &fields, &test_failure) == 1) {
        double numbers[14];
        for (size_t i = 0; i < 14; i++)
            if (fields[columns[i]].length == 0)
                numbers[i] = NAN;
            else
                assert_ok(csv_number(reader, columns[i], &numbers[i], &test_failure));
        struct answer *at = &answers[answer_count++];
        *at = (struct answer){(long)numbers[0],
                              (long)numbers[1],
                              (long)numbers[2],
                              numbers[3],
                              numbers[4],
                              {0},
                              read_sign(&fields[columns[14]]),
                              read_sign(&fields[columns[15]]),
                              fields[columns[16]].bytes[0] == 'T'};
        memcpy(at->numbers, numbers + 5, 9 * sizeof *numbers);
    }
    csv_close(reader);
}

static int compare_answers(const void *left, const void *right) {
    const struct answer *a = left, *b = right;
    if (a->node != b->node)
        return a->node < b->node ? -1 : 1;
    if (a->cpu != b->cpu)
        return a->cpu < b->cpu ? -1 : 1;
    return a->time < b->time ? -1 : a->time > b->time;
}

static bool is_logged_outlier(const struct answer *at) {
    for (size_t i = 0; i < outlier_count; i++)
        if (outliers[i].job == at->job && names_node(outliers[i].nodes, at->node))
            return true;
    return false;
}

static bool is_cut(const struct answer *before, const struct answer *at) {
    for (size_t i = 0; i < change_count; i++)
        if (names_node(changes[i].nodes, at->node) && changes[i].time > before->time &&
            changes[i].time <= at->time)
            return true;
    return false;
}

static void assert_number(double found, double expected, const char *what, const struct answer *at) {
    bool same = isnan(expected) ? isnan(found) : fabs(found - expected) <= 1e-9 * fmax(fabs(expected), 1e-3);
    if (!same)
        fail_msg("node %ld cpu %ld job %ld: %s %.12g; expected %.12g", at->node, at->cpu, at->job, what,
                 found, expected);
}

static size_t check_series(const struct answer *series, size_t count) {
    cleanup_free double *values = xcalloc(count, sizeof *values);
    cleanup_free struct non_regression_row *marks = xcalloc(count, sizeof *marks);
    cleanup_free struct non_regression_verdict *verdicts = xcalloc(count, sizeof *verdicts);
    for (size_t i = 0; i < count; i++) {
        values[i] = series[i].value;
        marks[i].is_outlier = is_logged_outlier(&series[i]);
        marks[i].is_cut = i > 0 && is_cut(&series[i - 1], &series[i]);
        assert_int_equal(marks[i].is_outlier, series[i].is_outlier);
    }
    assert_int_equal(non_regression_check(&published, count, 1, values, marks, verdicts), 0);
    for (size_t i = 0; i < count; i++) {
        const struct non_regression_verdict *found = &verdicts[i];
        const struct answer *at = &series[i];
        assert_number(found->count > 0 ? (double)found->count : NAN, at->numbers[0], "count", at);
        assert_number(found->single.mean, at->numbers[1], "mean", at);
        assert_number(found->single.sigma, at->numbers[2], "sigma", at);
        assert_number(found->single.low, at->numbers[3], "low", at);
        assert_number(found->single.high, at->numbers[4], "high", at);
        assert_number(found->windowed.low, at->numbers[5], "windowed low", at);
        assert_number(found->windowed.high, at->numbers[6], "windowed high", at);
        assert_number(found->single.p, at->numbers[7], "p", at);
        assert_number(found->windowed.p, at->numbers[8], "windowed p", at);
        assert_int_equal(found->single.sign, at->single);
        assert_int_equal(found->windowed.sign, at->windowed);
    }
    return count;
}

TEST(published_verdicts) {
    const char *data = test_data();
    char path[4200];
    size_t checked = 0;
    if (!data)
        skip();
    snprintf(path, sizeof path, "%s/nonregression/exp_changelog.csv", data);
    change_count = read_log(path, false, changes);
    snprintf(path, sizeof path, "%s/nonregression/exp_outlierlog.csv", data);
    outlier_count = read_log(path, true, outliers);
    snprintf(path, sizeof path, "%s/nonregression/frequency_verdicts.csv.gz", data);
    read_answers(path);
    qsort(answers, answer_count, sizeof *answers, compare_answers);
    for (size_t i = 0, end; i < answer_count; i = end) {
        for (end = i + 1; end < answer_count && answers[end].node == answers[i].node &&
                          answers[end].cpu == answers[i].cpu;)
            end++;
        checked += check_series(answers + i, end - i);
    }
    assert_int_equal(checked, 13540);
}
