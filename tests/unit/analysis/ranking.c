/* Settings in order of their means: intervals, what is a replicate, and which differences are shown. Expected
 * numbers were computed apart from this program, Student's distribution by integrating its density. */
#include "engine/analysis/ranking.h"
#include "tests/test.h"

enum { ROWS_MAX = 64, SETTINGS_MAX = 12 };

/* Measurements that a test makes row by row; the rows of a setting follow one another. */
static struct {
    struct measurements all;
    size_t first[SETTINGS_MAX + 1];
    uint32_t labels[SETTINGS_MAX]; /* the size of each setting */
    double values[ROWS_MAX];
    uint32_t nodes[ROWS_MAX], rows[ROWS_MAX];
    bool left_out[ROWS_MAX];
} made;

static int begin(void **state) {
    (void)state;
    memset(&made, 0, sizeof made);
    made.all = (struct measurements){
        .settings = {.rows = made.rows, .first = made.first, .labels = made.labels, .label_count = 1},
        .size_count = 1,
        .most = true,
        .values = made.values,
        .nodes = made.nodes,
        .left_out = made.left_out};
    return 0;
}
TEST_EACH(begin, NULL)

/* A setting with COUNT values; PER_NODE of them on each node. */
static void add_setting(const double *values, size_t count, size_t per_node) {
    for (size_t i = 0; i < count; i++) {
        size_t row = made.all.row_count++;
        made.values[row] = values[i];
        made.nodes[row] = (uint32_t)(i / per_node);
        made.rows[row] = (uint32_t)row;
    }
    made.first[++made.all.settings.count] = made.all.row_count;
}

static void check(const struct ranked *item, size_t setting, size_t n, double mean, double low, double high) {
    assert_int_equal(item->setting, setting);
    assert_int_equal(item->n, n);
    assert_close(item->mean, mean, 1e-12, "mean");
    assert_close(item->low, low, 1e-9, "low");
    assert_close(item->high, high, 1e-9, "high");
}

static void add_four(void) {
    add_setting((const double[]){10.1, 10.3, 10.2}, 3, 3);
    add_setting((const double[]){9.0, 9.4, 9.1}, 3, 3);
    add_setting((const double[]){10.0, 10.2, 10.3}, 3, 3);
    add_setting((const double[]){5, 5.2, 4.9}, 3, 3);
}

TEST(repetitions_on_one_node_are_compared_by_welch) {
    add_four();
    cleanup(ranking_clear) struct ranking ranking = {0};
    ranking_make(&made.all, &ranking);
    assert_false(ranking.by_node);
    assert_int_equal(ranking.comparisons, 3);
    check(&ranking.items[0], 0, 3, 10.2, 9.951586228824956, 10.448413771175042);
    check(&ranking.items[1], 2, 3, 10.166666666666666, 9.787208363306977, 10.546124970026355);
    check(&ranking.items[2], 1, 3, 9.166666666666666, 8.649552165412421, 9.68378116792091);
    check(&ranking.items[3], 3, 3, 5.033333333333333, 4.653875029973645, 5.412791636693021);
    assert_close(ranking.items[0].deviation, 0.1, 1e-12, "deviation");
    assert_close(ranking.items[1].p, 0.7700256383911843, 1e-8, "p");
    assert_close(ranking.items[2].p, 0.010354842373835993, 1e-8, "p, of two left");
    assert_close(ranking.items[3].p, 1.5013155589382876e-05, 1e-6, "p, the least of three");
    assert_int_equal(ranking.items[0].standing, RANKING_BEST);
    assert_int_equal(ranking.items[1].standing, RANKING_NO_DIFFERENCE);
    assert_int_equal(ranking.items[2].standing, RANKING_WORSE);
    assert_int_equal(ranking.items[3].standing, RANKING_WORSE);
}

TEST(least_is_the_other_way_round) {
    add_four();
    made.all.most = false;
    cleanup(ranking_clear) struct ranking ranking = {0};
    ranking_make(&made.all, &ranking);
    assert_int_equal(ranking.items[0].setting, 3);
    assert_int_equal(ranking.items[3].setting, 0);
}

/* The nodes differ by 20 %, the settings by 1 %: pairs show it, although the intervals overlap. */
static void add_on_four_nodes(void) {
    add_setting((const double[]){100, 102, 90, 92, 110, 108, 95, 97}, 8, 2);
    add_setting((const double[]){99, 100.4, 89.1, 90.5, 108.4, 107.2, 94.2, 95.2}, 8, 2);
    add_setting((const double[]){101, 100.8, 92.5, 89, 107.9, 110.5, 95, 97.4}, 8, 2);
}

TEST(a_node_counts_once_and_settings_are_paired_by_it) {
    add_on_four_nodes();
    cleanup(ranking_clear) struct ranking ranking = {0};
    ranking_make(&made.all, &ranking);
    assert_true(ranking.by_node);
    check(&ranking.items[0], 2, 4, 99.2625, 86.82525190838852, 111.69974809161148);
    check(&ranking.items[1], 0, 4, 99.25, 87.03621774761919, 111.46378225238081);
    check(&ranking.items[2], 1, 4, 98, 85.77551162661078, 110.22448837338922);
    assert_close(ranking.items[1].p, 0.9185449017025219, 1e-8, "p");
    assert_close(ranking.items[2].p, 0.003795439885743823, 1e-8, "p, the least of two");
    assert_int_equal(ranking.items[1].standing, RANKING_NO_DIFFERENCE);
    assert_int_equal(ranking.items[2].standing, RANKING_WORSE);
}

TEST(a_setting_that_lacks_a_node_is_compared_by_welch) {
    add_on_four_nodes();
    made.left_out[14] = made.left_out[15] = true; /* the middle setting's last node */
    made.labels[0] = 1;                           /* the first is of another size */
    cleanup(ranking_clear) struct ranking ranking = {0};
    ranking_make(&made.all, &ranking);
    assert_true(ranking.by_node);
    check(&ranking.items[2], 1, 3, 99.10000000000001, 76.70552952892439, 121.49447047107563);
    assert_close(ranking.items[2].p, 0.9812674037786101, 1e-6, "p of Welch's test");
    assert_int_equal(ranking.comparisons, 1);
}

TEST(each_size_has_a_best_setting) {
    add_four();
    made.labels[0] = made.labels[1] = 7; /* of the larger size */
    cleanup(ranking_clear) struct ranking ranking = {0};
    ranking_make(&made.all, &ranking);
    const size_t order[] = {0, 1, 2, 3};
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(ranking.items[i].setting, order[i]);
    assert_int_equal(ranking.items[0].standing, RANKING_BEST);
    assert_int_equal(ranking.items[2].standing, RANKING_BEST);
    assert_close(ranking.items[1].p, 0.010354842373835993 / 2, 1e-8, "p, the only one of its size");
    assert_int_equal(ranking.choices, 2);
    assert_ptr_equal(ranking.best, &ranking.items[0]);
    made.labels[1] = 8;
    made.labels[3] = 9;
    ranking_clear(&ranking);
    ranking_make(&made.all, &ranking);
    assert_int_equal(ranking.choices, 0);
    assert_int_equal(ranking.items[0].setting, 3); /* the largest size comes first, and is no better */
    assert_int_equal(ranking.items[0].standing, RANKING_ALONE);
}

TEST(a_single_unit_has_neither_interval_nor_comparison) {
    add_setting((const double[]){3}, 1, 1);
    add_setting((const double[]){1, 1.1}, 2, 2);
    add_setting(NULL, 0, 1);
    cleanup(ranking_clear) struct ranking ranking = {0};
    ranking_make(&made.all, &ranking);
    assert_true(ranking.items[0].mean == 3 && isnan(ranking.items[0].low) && isnan(ranking.items[0].high));
    assert_int_equal(ranking.items[1].standing, RANKING_NOT_COMPARED);
    assert_int_equal(ranking.items[2].standing, RANKING_NO_VALUE);
    assert_int_equal(ranking.items[2].n, 0);
    assert_int_equal(ranking.comparisons, 0);
}

TEST(equal_values_differ_only_from_others) {
    add_setting((const double[]){2, 2}, 2, 2);
    add_setting((const double[]){2, 2}, 2, 2);
    add_setting((const double[]){1, 1}, 2, 2);
    cleanup(ranking_clear) struct ranking ranking = {0};
    ranking_make(&made.all, &ranking);
    check(&ranking.items[0], 0, 2, 2, 2, 2);
    assert_int_equal(ranking.items[1].standing, RANKING_NO_DIFFERENCE);
    assert_int_equal(ranking.items[2].standing, RANKING_WORSE);
}

static double normal(void) { /* Box and Muller */
    return sqrt(-2 * log(test_random())) * cos(2 * M_PI * test_random());
}

TEST(the_best_in_truth_is_told_from_the_first_in_5_percent_of_runs_at_most) {
    enum { RUNS = 1000, SETTINGS = 12, REPETITIONS = 4 };
    int told = 0;
    test_seed = 1;
    for (int i = 0; i < RUNS; i++) {
        begin(NULL);
        for (int g = 0; g < SETTINGS; g++) { /* equal means: each may be called the best in truth */
            double values[REPETITIONS], deviation = 1 + g % 3;
            for (int k = 0; k < REPETITIONS; k++)
                values[k] = 100 + deviation * normal();
            add_setting(values, REPETITIONS, REPETITIONS);
        }
        cleanup(ranking_clear) struct ranking ranking = {0};
        ranking_make(&made.all, &ranking);
        for (int g = 0; g < SETTINGS; g++)
            told += ranking.items[g].setting == 0 && ranking.items[g].standing == RANKING_WORSE;
    }
    assert_in_range(told, 1, RUNS / 20); /* 1: the tests do tell something */
}
