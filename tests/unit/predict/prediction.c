/* The host of predictors: roles, units, scenarios, draws against closed forms. */
#include "engine/predict/prediction.h"
#include "engine/documents/json.h"

#include "tests/test.h"

#include <unistd.h>

#pragma GCC diagnostic ignored "-Wmissing-field-initializers" /* of cases */

static struct installation installation;

/* time = 2 + 3 size, of size 1 to 100; the variances are 0.04 and 0.01, the covariance -0.01. */
static void write_model(const char *name, const char *kind, const char *unit, const char *noise) {
    cleanup_free char *text = NULL;
    assert_true(
        asprintf(
            &text,
            "{\"assay_model\": 2, \"kind\": \"%s\", %s\"response\": {\"name\": \"duration\", \"unit\": %s}, "
            "\"weights\": null, \"by\": [], \"terms\": [{\"name\": \"1\", \"unit\": null, \"factors\": "
            "[]},{\"name\": \"size\", \"unit\": null, \"factors\": [{\"column\": \"size\", \"power\": "
            "1}]}],\"columns\": [{\"name\": \"size\", \"unit\": \"By\", \"type\": \"number\"}],\"origin\": "
            "{\"plugin\": \"fit-linear\", \"version\": \"1\", \"engine\": \"1\", \"created\": "
            "\"2020-01-01T00:00:00Z\", \"rows\": 9, \"seed\": 1, \"settings\": {}, \"inputs\": "
            "[]},\"units\": {}, \"skipped\": [], \"groups\": [{\"labels\": {}, \"rows\": 9, \"values\": {}, "
            "\"notes\": [], \"parts\": [{\"kind\": \"whole\", \"estimates\": [{\"term\": \"1\", "
            "\"estimate\": 2, \"standard_error\": 0.2, \"t\": 1, \"p\": 0},{\"term\": \"size\", "
            "\"estimate\": 3, \"standard_error\": 0.1, \"t\": 1, \"p\": 0}],\"covariance\": [[0.04, -0.01], "
            "[-0.01, 0.01]], %s \"values\": {},\"domain\": {\"size\": [1, 100]}}]}]}\n",
            kind, strcmp(kind, "smpi") == 0 ? "\"over\": \"size\", \"named_by\": \"operation\", " : "", unit,
            noise) > 0);
    test_put(name, text);
}

#define NOISE "\"noise\": {\"kind\": \"N-1\", \"distribution\": \"normal\", \"constant\": 0.5},"

static int set_up(void **state) {
    char path[512];
    assert_int_equal(chdir(test_folder()), 0);
    write_model("time.json", "linear", "\"s\"", NOISE);
    write_model("plain.json", "linear", "null", "");
    write_model("bytes.json", "linear", "\"By\"", "");
    write_model("smpi.json", "smpi", "\"s\"", "");
    snprintf(path, sizeof path, "%s/tests/plugins", getenv("ASSAY_BUILD"));
    return installation_init(&installation, NULL, path, &test_failure);
}

static int tear_down(void **state) {
    installation_clear(&installation);
    return 0;
}
TEST_GROUP(set_up, tear_down)

#define WORDS(...)                                                                                           \
    (const char *const[]) {                                                                                  \
        __VA_ARGS__, NULL                                                                                    \
    }

static struct prediction *predict_as(const char *prefix, const char *const *models,
                                     const char *const *settings, const char *table, size_t draws,
                                     uint64_t seed, bool is_refused) {
    struct prediction_request request = {
        .models = models, .settings = settings, .draws = draws, .seed = seed};
    struct prediction *prediction = NULL;
    while (models[request.model_count])
        request.model_count++;
    while (settings[request.setting_count])
        request.setting_count++;
    if (table)
        test_put("table.csv", table);
    request.scenarios = table ? "table.csv" : NULL;
    int r = prediction_make(&installation, prefix, "travel", &request, &prediction, &test_failure);
    if (r < 0 && !is_refused)
        fail_msg("%s: %s", test_failure.place, test_failure.text);
    return prediction;
}

static struct prediction *predict(const char *const *settings, const char *table, size_t draws) {
    return predict_as("predict", WORDS("time.json"), settings, table, draws, 1, false);
}

static double value_of(const struct prediction *prediction, size_t scenario, size_t column) {
    return prediction->results[scenario].rows[0].values[column];
}

TEST(one_scenario) {
    cleanup(prediction_cleanup) struct prediction *prediction =
        predict(WORDS("size=2kB", "wait=1ms", "scale=2"), NULL, 0);
    assert_int_equal(prediction->scenarios.count, 1);
    assert_close(value_of(prediction, 0, 0), 2 * 6002 + 0.001, 1e-15, "time");
    assert_close(value_of(prediction, 0, 1), sqrt(0.04 - 0.02 * 2000 + 0.01 * 4e6), 1e-12, "error");
    assert_null(prediction->results[0].rows[0].intervals);
    const struct prediction_result *result = &prediction->results[0];
    assert_int_equal(result->remark_count, 2);
    assert_string_equal(result->remarks[0].sentence, "a note");
    assert_says(result->remarks[1].sentence,
                "100 % of the total that 'time.json' predicts is extrapolated; in "
                "the largest extrapolated prediction, 'size' is 20 times the greatest measured value");
}

TEST(units_and_plausible_values) {
    cleanup(prediction_cleanup) struct prediction *prediction =
        predict_as("predict", WORDS("time=plain.json"), WORDS("size=1e10"), NULL, 0, 1, false);
    const struct prediction_result *result = &prediction->results[0];
    assert_string_equal(result->remarks[0].sentence,
                        "size is 10 GB, but plausible values are 1 byte to 1 GB; check its unit");
    assert_true(result->remarks[0].warning);
    assert_says(result->remarks[1].sentence,
                "the unit of the response 'duration' in 'plain.json' is not known");
}

/* Rows of the table times values of the command line. */
TEST(tables_and_sweeps) {
    cleanup(prediction_cleanup) struct prediction *prediction =
        predict(WORDS("wait=1us,2us,3us"), "name,size,hops\na,10,\n\"b,c\",1kB,2\n,13,0\n", 0);
    assert_int_equal(prediction->scenarios.count, 9);
    assert_string_equal(prediction->scenarios.items[3].name, "b,c");
    assert_int_equal(prediction->scenarios.items[3].line, 3);
    assert_close(value_of(prediction, 1, 0), 32 + 2e-6, 1e-15, "time");
    assert_int_equal(prediction->results[5].row_count, 2);
    assert_close(prediction->results[5].rows[1].values[0], 2 * (3002 + 3e-6), 1e-15, "time");
    assert_string_equal(prediction->results[5].rows[1].texts[4], "later");
    assert_true(isnan(value_of(prediction, 8, 0)));
    assert_string_equal(prediction->results[8].remarks[0].sentence, "no answer: 13 has no answer");
}

TEST(ranges) {
    cleanup(prediction_cleanup) struct prediction *prediction =
        predict(WORDS("size=1,10..30:10,1kB..1kB", "wait=0.5..1.5:0.5"), NULL, 0);
    assert_int_equal(prediction->scenarios.count, 15);
    assert_close(value_of(prediction, 9, 0), 2 + 3 * 30 + 0.5, 1e-15, "time");
    assert_close(value_of(prediction, 14, 0), 2 + 3 * 1000 + 1.5, 1e-15, "time");
}

TEST(units_in_the_header) {
    cleanup(prediction_cleanup) struct prediction *prediction =
        predict(WORDS("scale=1"), "size [kB],wait [ms]\n1,5\n2MB,7s\n", 0);
    assert_close(value_of(prediction, 0, 0), 3002.005, 1e-15, "time");
    assert_close(value_of(prediction, 1, 0), 6000009, 1e-15, "time");
}

/* The time at size x is normal with the variance 0.04 - 0.02 x + 0.01 x^2, and 0.25 more with noise. */
TEST(moments_of_draws) {
    static const struct {
        const char *noise;
        double size, variance;
    } cases[] = {{"noise=none", 1, 0.03}, {"noise=none", 10, 0.84}, {"noise=one", 10, 1.09}};
    enum { DRAWS = 10000 };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        char size[32];
        snprintf(size, sizeof size, "size=%g", cases[i].size);
        cleanup(prediction_cleanup) struct prediction *prediction =
            predict(WORDS(size, cases[i].noise), NULL, DRAWS);
        double(*interval)[PREDICTION_INTERVAL] = prediction->results[0].rows[0].intervals;
        double mean = 2 + 3 * cases[i].size, sigma = sqrt(cases[i].variance);
        assert_close(value_of(prediction, 0, 0), mean, 1e-15, "time");
        assert_true(fabs(interval[0][PREDICTION_MEAN] - mean) < 4 * sigma / sqrt(DRAWS));
        /* The standard error of this quantile is 2.67 sigma / sqrt(n). */
        assert_true(fabs(interval[0][PREDICTION_LOW] - (mean - 1.95996 * sigma)) <
                    4 * 2.67 * sigma / sqrt(DRAWS));
        assert_true(fabs(interval[0][PREDICTION_HIGH] - (mean + 1.95996 * sigma)) <
                    4 * 2.67 * sigma / sqrt(DRAWS));
        assert_true(isnan(interval[1][PREDICTION_MEAN])); /* exact */
        assert_true(fabs(interval[2][PREDICTION_HIGH] - (3 + 1.95996 * 0.1)) <
                    0.011); /* the models are drawn ones */
    }
}

/* Equal seeds give equal bits, whatever other scenarios there are; other seeds other ones. */
TEST(determinism) {
    double found[4][2];
    for (int i = 0; i < 4; i++) {
        cleanup(prediction_cleanup) struct prediction *prediction =
            predict_as("predict", WORDS("time.json"), WORDS("noise=one"),
                       i == 1 ? "size\n3\n7\n" : "size\n7\n", 50, i < 3 ? 5 : 6, false);
        size_t scenario = i == 1;
        found[i][0] = prediction->results[scenario].rows[0].intervals[0][PREDICTION_LOW];
        found[i][1] = value_of(prediction, scenario, 3);
    }
    for (int i = 1; i < 4; i++) {
        assert_int_equal(found[0][0] == found[i][0], i < 3);
        assert_int_equal(found[0][1] == found[i][1], i < 3);
    }
}

/* Tables that nobody asked for have no rows, and draws do not want any. */
TEST(tables) {
    for (size_t count = 0; count <= 2; count++) {
        const char *const names[] = {"way", "halves"};
        struct prediction_request request = {.models = WORDS("time.json"),
                                             .model_count = 1,
                                             .settings = WORDS("size=8,40"),
                                             .setting_count = 1,
                                             .draws = 2,
                                             .pictures = names,
                                             .picture_count = count};
        cleanup(prediction_cleanup) struct prediction *prediction = NULL;
        assert_int_equal(
            prediction_make(&installation, "predict", "travel", &request, &prediction, &test_failure), 0);
        const struct prediction_rows *rows = prediction->results[1].tables;
        assert_int_equal(rows[0].count, count == 2 ? 3 : 0);
        assert_int_equal(rows[1].count, count >= 1 ? 2 : 0);
        if (count < 2)
            continue;
        assert_close(rows[0].items[1].values[1], 2 + 3 * 20, 1e-15, "time of half the size");
        assert_string_equal(rows[1].items[1].texts[0], "b");
        assert_close(rows[1].items[1].values[1], 61, 1e-15, "half of the time");
    }
}

static int stop_at_5(void *context, size_t scenario, double share) {
    size_t *calls = context;
    assert_int_equal(scenario, 1);
    assert_true(share == (*calls == 0 ? 0 : 0.5));
    return ++*calls == 5 ? -ECANCELED : 0;
}

/* The host asks before each run, the plugin within. */
TEST(progress) {
    size_t calls = 0;
    struct prediction_request request = {.models = WORDS("time.json"),
                                         .model_count = 1,
                                         .settings = WORDS("stop=begun"),
                                         .setting_count = 1,
                                         .scenarios = "table.csv",
                                         .progress = stop_at_5,
                                         .context = &calls};
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    test_put("table.csv", "size\n8\n9\n");
    assert_int_equal(
        prediction_make(&installation, "predict", "travel", &request, &prediction, &test_failure),
        -ECANCELED);
    assert_int_equal(calls, 5);
    assert_int_equal(test_failure.kind, FAILURE_INTERRUPTED);
}

/* 7e-11 m n k; without an answer where NB is larger than N. */
static int search_hpl(const char *const *settings, size_t budget, int (*progress)(void *, size_t, double),
                      void *context, struct prediction **ret) {
    struct prediction_request request = {.models = WORDS("dgemm.json"),
                                         .model_count = 1,
                                         .settings = settings,
                                         .seed = 1,
                                         .search = budget,
                                         .progress = progress,
                                         .context = context};
    cleanup(installation_clear) struct installation own = {0};
    char path[512];
    snprintf(path, sizeof path, "%s/lib/assay", getenv("ASSAY_BUILD"));
    assert_ok(installation_init(&own, NULL, path, &test_failure));
    while (settings[request.setting_count])
        request.setting_count++;
    test_put(
        "dgemm.json",
        "{\"assay_model\": 2, \"kind\": \"linear\", \"response\": {\"name\": \"duration\", \"unit\": \"s\"}, "
        "\"weights\": null, \"by\": [], \"terms\": [{\"name\": \"m*n*k\", \"unit\": null, \"factors\": "
        "[{\"column\": \"m\", \"power\": 1}, {\"column\": \"n\", \"power\": 1}, {\"column\": \"k\", "
        "\"power\": 1}]}], \"columns\": [{\"name\": \"m\", \"unit\": null, \"type\": \"number\"}, "
        "{\"name\": \"n\", \"unit\": null, \"type\": \"number\"}, {\"name\": \"k\", \"unit\": null, "
        "\"type\": \"number\"}], \"origin\": {\"plugin\": \"fit-linear\", \"version\": \"1\", \"engine\": "
        "\"1\", \"created\": \"2020-01-01T00:00:00Z\", \"rows\": 9, \"seed\": 1, \"settings\": {}, "
        "\"inputs\": []}, \"units\": {}, \"skipped\": [], \"groups\": [{\"labels\": {}, \"rows\": 9, "
        "\"values\": {}, \"notes\": [], \"parts\": [{\"kind\": \"whole\", \"estimates\": [{\"term\": "
        "\"m*n*k\", \"estimate\": 7e-11, \"standard_error\": 1e-12, \"t\": 1, \"p\": 0}], \"covariance\": "
        "[[1e-24]], \"noise\": null, \"values\": {}, \"domain\": {}}]}]}\n");
    return prediction_make(&own, "predict", "hpl", &request, ret, &test_failure);
}

struct heard {
    size_t runs, stop, calls;
    double share;
};

static int hear_run(void *context, size_t run, double share) {
    struct heard *heard = context;
    assert_true(share >= heard->share && share <= 1 && run >= heard->runs);
    *heard = (struct heard){run, heard->stop, heard->calls + 1, share};
    return run == heard->stop ? -ECANCELED : 0;
}

/* A grid of P x Q processes by an expression: what is no whole number is left out. */
TEST(search_with_an_expression) {
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    const char *const *settings =
        WORDS("N=1000", "NB=250..1500:250", "P=1..12", "Q=12/P", "latency=1us", "bandwidth=1GB/s");
    struct heard heard = {0};
    assert_ok(search_hpl(settings, 1000, hear_run, &heard, &prediction));
    assert_int_equal(prediction->searched, 6 * 6); /* 1, 2, 3, 4, 6, 12 */
    assert_int_equal(heard.runs, 36);
    assert_true(heard.calls >= 36 + 24 + 10); /* hpl itself says how far it is, where it has an answer */
    assert_int_equal(prediction->scenarios.left_out, 6 * 6);
    assert_string_equal(prediction->scenarios.left_out_reason,
                        "Q=12/P: '2.3999999999999999' is not a whole number");
    assert_int_equal(prediction->without_answer, 2 * 6);
    assert_string_equal(
        prediction->no_answer,
        "the block size NB = 1250 is larger than the order of the matrix, N = 1000; set a smaller NB");
    assert_int_equal(prediction->scenarios.count, 10);
    for (size_t i = 0; i < 10; i++) {
        const struct plugin_value *values = prediction->scenarios.items[i].parameters.values;
        assert_true(values[2].number * values[3].number == 12);
        assert_true(i == 0 || value_of(prediction, i, 0) >= value_of(prediction, i - 1, 0));
    }
    double best = value_of(prediction, 0, 0);
    prediction_free(take_pointer(prediction));
    assert_ok(search_hpl(settings, 25, NULL, NULL, &prediction)); /* of 72 */
    assert_int_equal(prediction->searched, 25);
    assert_close(value_of(prediction, 0, 0), best, 1e-15, "time");
}

/* Stops when it has heard of the same run 200 times. */
static int hear_idle(void *context, size_t run, double share) {
    struct heard *heard = context;
    heard->calls = run == heard->runs ? heard->calls + 1 : 0;
    heard->runs = run;
    return heard->calls == 200 ? -ECANCELED : 0;
}

/* A search that finds no new combination ends, and can be stopped while it looks for one. */
TEST(search_of_fewer_than_its_budget) {
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    const char *const *settings =
        WORDS("N=1000", "NB=100", "P=1..997", "Q=997/P", "latency=1us", "bandwidth=1GB/s");
    struct heard heard = {.stop = SIZE_MAX};
    assert_ok(search_hpl(settings, 50, hear_run, &heard, &prediction)); /* 1 x 997 and 997 x 1 */
    assert_int_equal(prediction->searched, 2);
    assert_int_equal(prediction->scenarios.count, 2);
    assert_true(heard.calls < 40000);
    prediction_free(take_pointer(prediction));
    heard = (struct heard){0};
    int r = search_hpl(settings, 50, hear_idle, &heard, &prediction);
    assert_true(r == 0 ? prediction->is_interrupted && prediction->searched <= 2
                       : test_failure.kind == FAILURE_INTERRUPTED);
}

TEST(interrupted_search) {
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    const char *const *settings = WORDS("N=1000", "NB=1..1000", "P=1", "Q=1");
    struct heard heard = {.stop = 8};
    assert_ok(search_hpl(settings, 50, hear_run, &heard, &prediction));
    assert_true(prediction->is_interrupted);
    assert_int_equal(prediction->searched, 7);
    assert_int_equal(prediction->scenarios.count, 7);
    assert_true(isfinite(value_of(prediction, 0, 0)));
    prediction_free(take_pointer(prediction));
    heard = (struct heard){.stop = 1};
    assert_int_equal(search_hpl(settings, 50, hear_run, &heard, &prediction), -ECANCELED);
    assert_int_equal(test_failure.kind, FAILURE_INTERRUPTED);
}

/* Of values, other expressions, a column of the table and an option. */
TEST(expressions) {
    static const struct {
        const char *settings[3], *says;
    } refused[] = {
        {{"size=3*wait", "wait=size/2"},
         "size=3*wait: the expression uses 'wait', which is set later; set 'wait' before 'size'"},
        {{"size=3*(away)"}, "size: unknown name 'away', expected one of scale, wait, hops"},
        {{"size=1", "wait=size-9"},
         "none of the 1 combinations is possible; the first: wait=size-9: '-8' is out of range; expected 0 "
         "to"},
        {{"wait=size"}, "wait=size: the expression uses 'size', which has no value; set"},
        {{"size=3GB/s"}, "size: '3GB/s' is not"},
    };
    cleanup(prediction_cleanup) struct prediction *prediction =
        predict(WORDS("wait=max(2*hops, 1kB/1000)*scale", "size=wait^2", "scale=2"), "hops\n0\n3\n", 0);
    assert_int_equal(prediction->scenarios.count, 2);
    assert_close(value_of(prediction, 0, 0), 2 * (2 + 3 * 4) + 2, 1e-15, "time");
    assert_close(value_of(prediction, 1, 0), 2 * (2 + 3 * 144) + 12, 1e-15, "time");
    for (size_t i = 0; i < sizeof refused / sizeof *refused; i++) {
        assert_null(predict_as("predict", WORDS("time.json"), refused[i].settings, NULL, 0, 1, true));
        assert_says(test_failure.text, refused[i].says);
    }
}

TEST(texts) {
    cleanup(prediction_cleanup) struct prediction *prediction =
        predict_as("export", WORDS("time.json"), WORDS("size=1"), NULL, 0, 1, false);
    assert_true(strncmp(prediction->text.bytes, "time: 5 s by time.json (", 24) == 0);
}

TEST(refusals) {
    static const struct {
        const char *models[4], *settings[4], *table, *expected;
        size_t draws;
        bool is_text;
    } cases[] = {
        {{NULL}, {"size=1"}, NULL, "no model is given for the role 'time' (of a message over its size)"},
        {{"time.json", "plain.json"},
         {"size=1"},
         NULL,
         "2 models are given for the role 'time'; expected a single model: remove the others"},
        {{"tiem=time.json"}, {"size=1"}, NULL, "there is no role"},
        {{"time=smpi.json"},
         {"size=1"},
         NULL,
         "the kind 'smpi', which the role 'time' does not accept; expected the role time (linear, "},
        {{"bytes.json"}, {"size=1"}, NULL, "time"},
        {{"nothing.json"}, {"size=1"}, NULL, "nothing.json"},
        {{"time.json"}, {"sice=1"}, NULL, "did you mean 'size'"},
        {{"time.json"}, {"size"}, NULL, "expected NAME=VALUE"},
        {{"time.json"}, {"size=1s"}, NULL, "size: '1s' is not a size"},
        {{"time.json"}, {"size=1", "size=2"}, NULL, "set twice"},
        {{"time.json"}, {"scale=9"}, NULL, "out of range"},
        {{"time.json"}, {"scale=3", "size=1"}, NULL, "travel: scale 3 is refused"},
        {{"time.json"}, {"wait=1s"}, NULL, "the parameter 'size' is not set"},
        {{"time.json"}, {"size=1.5..2.5"}, NULL, "the range of 'size' has no step between its values"},
        {{"time.json"}, {"size=9..1"}, NULL, "goes from 9 down to 1"},
        {{"time.json"}, {"size=1"}, "size\n1\n", "has a column, and a value on the command line; remove one"},
        {{"time.json"}, {NULL}, "size,siez\n1,1\n", "did you mean 'size'"},
        {{"time.json"}, {NULL}, "size,scale\n1,1\n", "one value for all scenarios"},
        {{"time.json"}, {NULL}, "size\n", "the table has no scenarios"},
        {{"time.json"}, {NULL}, "size\n1\n\"\"\n", "the field is empty; expected a value"},
        {{"time.json"}, {"size=1"}, NULL, "draws; expected at most", 1000000},
        {{"time.json"}, {"size=1,2"}, NULL, "writes one text for one scenario; found 2 scenarios", 0, true},
        {{"time.json"}, {"size=1"}, NULL, "there are no intervals; remove --draws", 5, true},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        struct prediction *prediction =
            predict_as(cases[i].is_text ? "export" : "predict", cases[i].models, cases[i].settings,
                       cases[i].table, cases[i].draws, 1, true);
        assert_null(prediction);
        assert_says(test_failure.text, cases[i].expected);
    }
}

TEST(files_and_reports) {
    cleanup(prediction_cleanup) struct prediction *prediction =
        predict(WORDS("wait=0,1"), "name,size\nx,2\n", 20);
    cleanup(report_cleanup) struct report *report = report_new();
    cleanup(text_clear) struct text text;
    text_init(&text, 1 << 20);
    struct report_table *table = prediction_report_table(prediction, 0, report->root);
    assert_int_equal(report_table_append_csv(table, &text, NULL), 0);
    assert_says(text.bytes,
                "name,size,wait,noise,hops,stop,time,time_mean,time_low,time_high,error,slope,slope_"
                "mean,slope_low,slope_high,stream,where,remarks\nx,2,0,none,0,,8,");
    assert_int_equal(report_table_write(table, "out.csv", NULL), 0);
    text_reset(&text);
    prediction_describe(prediction, report->root);
    cleanup(json_cleanup) cJSON *root = report_json(report);
    assert_int_equal(json_print(root, true, &text), 0);
    assert_says(text.bytes, "\"sha256\"");
    assert_says(text.bytes, "\"time_low\"");
}

struct seen {
    size_t scenarios, most;
    double sum, low;
};

static int see(void *context, const struct prediction *prediction, size_t first, struct failure *failure) {
    struct seen *seen = context;
    for (size_t i = first; i < prediction->scenarios.count; i++) {
        const struct prediction_row *row = &prediction->results[i].rows[0];
        seen->sum += row->values[0];
        seen->low = row->intervals ? row->intervals[0][PREDICTION_LOW] : NAN;
        seen->scenarios++;
    }
    seen->most = prediction->scenarios.count > seen->most ? prediction->scenarios.count : seen->most;
    return 0;
}

/* More scenarios than are kept: a sink sees each once, few are in memory; without a sink they are refused.
 * The last has the interval that it has alone. */
TEST(streaming) {
    enum { COUNT = PREDICTION_KEPT_MAX + 1000 };
    cleanup(text_clear) struct text table;
    cleanup(prediction_cleanup) struct prediction *prediction = NULL;
    struct seen seen = {0}, alone = {0};
    struct prediction_request request = {.models = WORDS("time.json"),
                                         .model_count = 1,
                                         .seed = 1,
                                         .scenarios = "many.csv",
                                         .sink = see,
                                         .context = &seen};
    text_init(&table, SIZE_MAX / 4);
    (void)text_printf(&table, "%s", "size\n");
    for (size_t i = 0; i < COUNT; i++)
        (void)text_printf(&table, "%s", i % 2 ? "2\n" : "4\n");
    test_put("many.csv", table.bytes);
    assert_ok(prediction_make(&installation, "predict", "travel", &request, &prediction, &test_failure));
    assert_int_equal(seen.scenarios, COUNT);
    assert_close(seen.sum, COUNT / 2 * (8. + 14), 1e-12, "sum");
    assert_true(seen.most < PREDICTION_SHOWN_MAX + 1000);
    assert_int_equal(prediction->scenario_count, COUNT);
    assert_null(predict_as("predict", WORDS("time.json"), WORDS(NULL), table.bytes, 0, 1, true));
    assert_says(test_failure.text, "more than 100000 scenarios, the most that are kept in memory; write");
    text_reset(&table);
    (void)text_printf(&table, "%s", "size\n");
    for (size_t i = 0; i < 1000; i++)
        (void)text_printf(&table, "%s", "2\n");
    test_put("many.csv", table.bytes);
    request.draws = 20;
    cleanup(prediction_cleanup) struct prediction *drawn = NULL, *one = NULL;
    assert_ok(prediction_make(&installation, "predict", "travel", &request, &drawn, &test_failure));
    test_put("many.csv", "size\n2\n");
    request.context = &alone;
    assert_ok(prediction_make(&installation, "predict", "travel", &request, &one, &test_failure));
    assert_true(seen.low == alone.low);
}
