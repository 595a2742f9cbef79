/* Mixtures of real samples against the best that the usual tools find (data/README.md, mixture/): never below
 * them. Skipped, aloud, where the data is not. */
#include "engine/documents/csv.h"
#include "tests/test.h"
#include "tests/unit/plugin/fit-library.h"
#include "tests/unit/plugin/gzip-file.h"

#include <unistd.h>

enum { VALUES_MAX = 20000, ROWS_MAX = 64 };

static const char *data;

struct answer {
    char sample[128], weights[512], means[512], sigmas[512];
    double k, log_likelihood, bic;
    bool agreed;
};
static struct answer answers[ROWS_MAX];
static size_t answer_count;

static int set_up(void **state) {
    if (!(data = test_data()))
        exit(77);
    return fit_library_open("fit-mixture");
}

static size_t column(const struct csv_reader *reader, const char *name) {
    struct failure failure = {0};
    size_t index = 0;
    if (csv_find_column(reader, name, &index, &failure) < 0)
        fail_msg("%s", failure.text);
    return index;
}

static void copy(const struct csv_field *field, char *ret, size_t size) {
    snprintf(ret, size, "%.*s", (int)field->length, field->bytes);
}

static void read_answers(void) {
    char path[8192];
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    const struct csv_field *fields;
    double agreed;
    snprintf(path, sizeof path, "%s/mixture/best_known.csv", data);
    assert_int_equal(csv_open(path, &reader, &failure), 0);
    size_t k = column(reader, "k"), loglik = column(reader, "best_loglik"), bic = column(reader, "bic"),
           agree = column(reader, "agreed");
    while (csv_next(reader, &fields, &failure) > 0 && answer_count < ROWS_MAX) {
        struct answer *answer = &answers[answer_count++];
        copy(&fields[column(reader, "sample")], answer->sample, sizeof answer->sample);
        copy(&fields[column(reader, "weights")], answer->weights, sizeof answer->weights);
        copy(&fields[column(reader, "means")], answer->means, sizeof answer->means);
        copy(&fields[column(reader, "sds")], answer->sigmas, sizeof answer->sigmas);
        assert_int_equal(csv_number(reader, k, &answer->k, &failure), 0);
        assert_int_equal(csv_number(reader, loglik, &answer->log_likelihood, &failure), 0);
        assert_int_equal(csv_number(reader, bic, &answer->bic, &failure), 0);
        assert_int_equal(csv_number(reader, agree, &agreed, &failure), 0);
        answer->agreed = agreed == 1;
    }
    csv_close(reader);
    assert_true(answer_count >= 10);
}

static size_t read_sample(const char *name, double *values) {
    char from[8192], to[] = "/tmp/assay-mixture-XXXXXX";
    struct csv_reader *reader = NULL;
    struct failure failure = {0};
    const struct csv_field *fields;
    size_t count = 0;
    snprintf(from, sizeof from, "%s/mixture/%.200s.csv.gz", data, name);
    int descriptor = mkstemp(to);
    assert_true(descriptor >= 0);
    close(descriptor);
    assert_int_equal(gzip_file_read(from, to), 0);
    assert_int_equal(csv_open(to, &reader, &failure), 0);
    while (csv_next(reader, &fields, &failure) > 0 && count < VALUES_MAX)
        assert_int_equal(csv_number(reader, 0, &values[count++], &failure), 0);
    csv_close(reader);
    unlink(to);
    assert_true(count > 1000);
    return count;
}

/* The likelihoods agree to 1e-9; the tools' parameters only to some 1e-6, where their EM had stopped. */
static void assert_same(const char *texts, double found, const struct answer *answer, const char *what) {
    double expected = strtod(texts, NULL);
    if (!(fabs(found - expected) <= 1e-5 * fabs(expected)))
        fail_msg("%s, %g components, %s: %.12g; expected %.12g", answer->sample, answer->k, what, found,
                 expected);
}

static void assert_components(const struct answer *answer, const struct host_part *part) {
    const char *weights = answer->weights, *means = answer->means, *sigmas = answer->sigmas;
    for (size_t k = 0; k < part->noise.component_count; k++) {
        const struct plugin_component *component = &part->components[k];
        assert_same(weights, component->weight, answer, "weight");
        assert_same(means, part->estimates[0].estimate + component->mean, answer, "mean");
        assert_same(sigmas, component->sigma, answer, "deviation");
        weights += strcspn(weights, " ") + 1;
        means += strcspn(means, " ") + 1;
        sigmas += strcspn(sigmas, " ") + 1;
    }
}

TEST(never_below) {
    static double values[VALUES_MAX];
    size_t rows = 0, equal = 0;
    read_answers();
    for (size_t i = 0; i < answer_count; i++) {
        const struct answer *answer = &answers[i];
        if (i == 0 || strcmp(answer->sample, answers[i - 1].sample) != 0)
            rows = read_sample(answer->sample, values);
        const struct host_table table = {.names = {"x"},
                                         .columns = {values},
                                         .column_count = 1,
                                         .rows = rows,
                                         .response = "x",
                                         .seed = 1,
                                         .settings = {"components", "folds"},
                                         .values = {answer->k, 0},
                                         .setting_count = 2};
        host_fit(fit, &table, &result);
        assert_int_equal(result.code, 0);
        const struct host_group *group = &result.groups[0];
        double found = host_value(group, "log_likelihood"), gap = answer->log_likelihood - found;
        assert_true(group->fitted && (double)group->parts[0].noise.component_count == answer->k);
        if (!(gap <= 1e-6))
            fail_msg("%s, %g components: %.10g; the best known is %.10g", answer->sample, answer->k, found,
                     answer->log_likelihood);
        assert_int_equal((int)host_value(group, "floored"), 0); /* no spike is what makes it higher */
        if (gap < -1e-6) {
            print_message("%s, %g components: %.4f above the best known%s\n", answer->sample, answer->k, -gap,
                          answer->agreed ? ", on which the tools agree" : "");
            continue;
        }
        equal++;
        assert_true(fabs(host_value(group, "bic") - answer->bic) < 1e-5);
        assert_components(answer, &group->parts[0]);
    }
    assert_true(equal >= answer_count / 2);
}

TEST_GROUP(set_up, fit_library_close)
