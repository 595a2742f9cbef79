/* What is said of a run, from its folder: flags, failures, factors that never varied, and the best setting.
 */
#include "engine/analysis/answer.h"
#include "engine/analysis/influence.h"
#include "engine/analysis/trust.h"
#include "tests/unit/analysis/made-run.h"

static const struct column results_columns[] = {
    {"row", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
    {"order", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
    {"attempt", COLUMN_INTEGER, "", COLUMN_ROLE_ID, .label = NULL},
    {"node", COLUMN_STRING, "", COLUMN_ROLE_ID, .label = NULL},
    {"core", COLUMN_STRING, "", COLUMN_ROLE_ID, .label = NULL},
    {"N", COLUMN_INTEGER, "1", COLUMN_ROLE_FACTOR, .label = NULL},
    {"NB", COLUMN_INTEGER, "1", COLUMN_ROLE_FACTOR, .label = NULL},
    {"swap", COLUMN_STRING, "", COLUMN_ROLE_FACTOR, .label = NULL},
    {"time", COLUMN_NUMBER, "s", COLUMN_ROLE_RESPONSE, .label = NULL},
    {"note", COLUMN_STRING, "", COLUMN_ROLE_RESPONSE, .label = NULL},
    {"state.flags", COLUMN_STRING, "", COLUMN_ROLE_COVARIATE, .label = NULL},
};
#define HEAD "row,order,attempt,node,core,N,NB,swap,time,note,state.flags\n"

static void make_run(const char *name, const char *answer, const char *results) {
    made_run(name, answer, results_columns, sizeof results_columns / sizeof *results_columns, results);
}

#define LEAST ", \"answer\": {\"response\": \"time\", \"unit\": \"s\", \"best\": \"least\"}"

/* The report of the runs NAMES, and the best setting, or why there is none. */
static struct {
    struct measurements measurements;
    struct ranking ranking;
    struct text best;
    char *text;
} said;

static int forget(void **state) {
    (void)state;
    ranking_clear(&said.ranking);
    measurements_clear(&said.measurements);
    text_clear(&said.best);
    free(said.text);
    said.text = NULL;
    return 0;
}
TEST_EACH(NULL, forget)

static void report(size_t count, const char *const *names) {
    const char *paths[2];
    for (size_t i = 0; i < count; i++)
        paths[i] = strdup(test_path(names[i]));
    assert_ok(measurements_read(paths, count, NULL, false, &said.measurements, &test_failure));
    for (size_t i = 0; i < count; i++)
        free((char *)paths[i]);
    ranking_make(&said.measurements, &said.ranking);
    cleanup(report_cleanup) struct report *report = report_new();
    answer_report(report->root, &said.measurements, &said.ranking, SIZE_MAX);
    said.text = report_render(report, false);
    text_init(&said.best, 1 << 20);
    test_forget();
    (void)answer_best(&said.measurements, &said.ranking, &said.best, &test_failure);
}

TEST(flagged_units_are_counted_and_left_out) {
    make_run("a", LEAST,
             HEAD "1,1,1,n,all,100,32,mix,3,,\n2,2,1,n,all,100,64,mix,2,,\n1,3,1,n,all,100,32,mix,3.1,,\n"
                  "2,4,1,n,all,100,64,mix,2.1,,\n2,5,1,n,all,100,64,mix,9,,load;drift\n");
    report(1, (const char *[]){"a"});
    assert_says(said.text, "1 of 5 measurements were flagged (load;drift) and are left out\n");
    assert_says(said.text,
                "x by time, less is better: 2 settings, 5 measurements; units failed: 0, not measured: 0\n");
    assert_null(strstr(said.text, "swap")); /* it never varies */
    assert_says(said.text, "\n64      2      2.05 ");
    assert_says(said.text, "  best\n32      2      3.05 ");
    assert_string_equal(said.best.bytes, "N=100\nNB=64\nswap=mix\n");
}

TEST(where_every_unit_was_flagged_all_are_used_and_not_trusted) {
    make_run("a", LEAST, HEAD "1,1,1,n,all,100,32,mix,3,,load\n2,2,1,n,all,100,64,mix,2,,load\n");
    report(1, (const char *[]){"a"});
    assert_int_equal(strncmp(said.text, "do not trust: every unit was flagged (load)\n", 44), 0);
    assert_int_equal(said.ranking.items[1].n, 1);
}

TEST(without_a_unit_no_setting_is_the_best) {
    make_run("a", LEAST, HEAD);
    report(1, (const char *[]){"a"});
    assert_says(said.text, "0 settings, 0 measurements; ");
    assert_says(said.text, "warning: no setting can be ranked: no measurement has a value of 'time'\n");
    assert_says(test_failure.text, "no best setting, because");
}

#define OF_SIZE_N LEAST ", \"model\": {\"method\": \"linear\", \"response\": \"time\", \"sizes\": [\"N\"]}"

TEST(settings_are_compared_within_the_sizes_that_the_model_names) {
    make_run("a", OF_SIZE_N,
             HEAD "1,1,1,n,all,90,32,mix,1,,\n2,2,1,n,all,90,64,mix,1.5,,\n"
                  "3,3,1,n,all,1000,32,mix,9,,\n4,4,1,n,all,1000,64,mix,8,,\n");
    report(1, (const char *[]){"a"});
    assert_says(said.text, "\n1000  64      1         8              -       -  best\n"
                           "1000  32      1         9              -       -  not compared\n"
                           "  90  32      1         1              -       -  best\n");
    assert_says(said.text,
                "only settings with the same problem size (N) are compared; the largest size is first\n");
    assert_string_equal(said.best.bytes, "N=1000\nNB=64\nswap=mix\n");
}

TEST(of_sizes_alone_none_is_the_best) {
    make_run("a", OF_SIZE_N, HEAD "1,1,1,n,all,90,32,mix,1,,\n3,3,1,n,all,1000,32,mix,9,,\n");
    report(1, (const char *[]){"a"});
    assert_says(said.text,
                "(N) are compared; each size has a single setting, so that no settings can be compared");
    assert_null(strstr(said.text, "  best\n"));
}

TEST(runs_of_one_experiment_are_taken_together) {
    make_run("a", LEAST, HEAD "1,1,1,n,all,100,32,mix,3,,\n2,2,1,n,all,100,64,mix,2,,\n");
    make_run("b", LEAST, HEAD "1,1,1,n,all,100,32,mix,3.2,,\n2,2,1,n,all,100,64,mix,2.2,,\n");
    report(2, (const char *[]){"a", "b"});
    assert_int_equal(said.measurements.settings.count, 2);
    assert_int_equal(said.ranking.items[0].n, 2);
    assert_close(said.ranking.items[0].mean, 2.1, 1e-15, "mean");
}

TEST(the_lines_of_a_unit_of_the_best_setting_are_printed) {
    make_run(
        "a",
        ", \"answer\": {\"response\": \"1/time\", \"unit\": \"Hz\", \"best\": \"most\", \"lines\": \"in: \"}",
        HEAD "1,7,2,n-[1-2],all,100,32,mix,3,,\n2,2,1,n-[1-2],all,100,64,mix,4,,\n");
    test_put("a/results/raw/7-job-all-again-2.out", "head\nin: one\n[1,0]<stdout>:in: two  2\nin: \nrest\n");
    report(1, (const char *[]){"a"});
    assert_string_equal(said.best.bytes, "one\ntwo  2\n\n");
    test_put("a/results/raw/7-job-all-again-2.out", "nothing\n");
    forget(NULL);
    report(1, (const char *[]){"a"});
    assert_says(test_failure.text, "the best setting printed no line that begins with 'in: '");
}

TEST(one_response_needs_no_answer) {
    make_run("a", "", HEAD "1,1,1,n,all,100,32,mix,3,,\n2,2,1,n,all,100,64,mix,2,,\n");
    report(1, (const char *[]){"a"});
    assert_says(
        said.text,
        "x by time, less is better (assumed, because the experiment declares no 'answer'): 2 settings");
}

TEST(what_is_no_run_is_refused) {
    test_put("a.csv", "x\n1\n");
    const char *path = test_path("a.csv");
    assert_error(measurements_read(&path, 1, NULL, false, &said.measurements, &test_failure), -EINVAL,
                 "this is not a run; expected the archive of a run, or its folder");
}

/* Two settings, not in turn, 20 times each; `drift` from the first to the last measurement. */
static const char *verdict_of(double drift, const char *flag) {
    static char results[1 << 14];
    size_t length = (size_t)snprintf(results, sizeof results, "%s", HEAD);
    test_seed = 3;
    for (size_t i = 0; i < 40; i++) {
        size_t setting = i * 5 / 3 % 2 + 1;
        double time = (double)setting * (1 + 0.02 * test_random() + drift * (double)i / 39);
        length += (size_t)snprintf(results + length, sizeof results - length,
                                   "%zu,%zu,1,n,all,100,%zu,mix,%.4f,,%s\n", setting, i + 1, 32 * setting,
                                   time, flag);
    }
    make_run("t", LEAST, results);
    report(1, (const char *[]){"t"});
    cleanup(report_cleanup) struct report *report = report_new();
    trust_report(report->root, &said.measurements, true);
    free(said.text);
    said.text = report_render(report, false);
    return said.text;
}

TEST(a_run_says_whether_it_can_be_trusted) {
    assert_says(verdict_of(0, ""),
                "can it be trusted: yes: 5 checks found no fault (least adjusted p-value ");
    assert_says(
        said.text,
        "\nnot tested, because measurements are too few  nodes, cores, neighbours, frequency, temperature\n");
    forget(NULL);
    assert_says(verdict_of(0.1, ""), "can it be trusted: with care: 1 of 5 checks found a fault\n");
    assert_says(said.text,
                "\nwarning: drift: time changes by +10 % from the first measurement to the last (p = ");
    forget(NULL);
    assert_says(verdict_of(0, "load"), "can it be trusted: no: every unit was flagged (load)\n");
}

TEST(factors_that_follow_from_others_are_named_and_left_out) {
    make_run(
        "f", LEAST,
        HEAD
        "1,1,1,n,all,1,32,a,3,,\n2,2,1,n,all,2,64,a,2,,\n3,3,1,n,all,1,32,b,3.3,,\n4,4,1,n,all,2,64,b,2.2,,\n"
        "1,5,1,n,all,1,32,a,3.1,,\n2,6,1,n,all,2,64,a,2.1,,\n3,7,1,n,all,1,32,b,3.2,,\n4,8,1,n,all,2,64,b,2."
        "3,,\n");
    report(1, (const char *[]){"f"});
    cleanup(report_cleanup) struct report *report = report_new();
    influence_report(report->root, &said.measurements);
    free(said.text);
    said.text = report_render(report, false);
    assert_says(said.text, "\nleft out, as other factors determine them  NB from N\n");
    assert_says(said.text, "\nN ");
    assert_null(strstr(said.text, "\nNB "));
}

TEST(the_best_setting_says_which_share_it_reached) {
    make_run("s",
             ", \"answer\": {\"response\": \"time\", \"unit\": \"s\", \"best\": \"least\", \"share\": "
             "\"attempt\", "
             "\"of\": \"the dgemm of its ranks\"}",
             HEAD "1,1,1,n,all,1,32,a,2,,\n2,2,1,n,all,1,64,a,3,,\n1,3,1,n,all,1,32,a,2.1,,\n");
    report(1, (const char *[]){"s"});
    assert_says(said.text, "\nbest: share of the dgemm of its ranks  100 %\n");
}
