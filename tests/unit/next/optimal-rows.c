/* Optimal rows: designs that are known, and small ones against an exhaustive search. */
#include "engine/next/optimal-rows.h"
#include "engine/design/random.h"
#include "tests/test.h"

enum { POINTS_MAX = 512, TERMS_MAX = 8 };

/* Nothing is known yet, as good as: a single row outweighs it a million times. */
static double wide[TERMS_MAX * TERMS_MAX];
static const struct optimal_group unknown = {.covariance = wide, .sigma = 1, .share = 1};

static void widen(size_t n) {
    for (size_t i = 0; i < n * n; i++)
        wide[i] = i % (n + 1) == 0 ? 1 << 20 : 0;
}

static struct optimal_rows optimal; /* the last that were found */

static void find(const struct optimal_problem *problem) {
    optimal_rows_clear(&optimal);
    assert_ok(optimal_rows_find(problem, &optimal, &test_failure));
}

static int tear_down(void **state) {
    optimal_rows_clear(&optimal);
    return 0;
}
TEST_EACH(NULL, tear_down)

/* Powers 0..DEGREE of POINTS points from -1 to 1. */
static void make_polynomial(size_t points, size_t degree, double *terms) {
    for (size_t i = 0; i < points; i++) {
        double x = -1 + 2 * (double)i / (double)(points - 1), power = 1;
        for (size_t t = 0; t <= degree; t++, power *= x)
            terms[i * (degree + 1) + t] = power;
    }
}

static size_t times(size_t candidate) {
    size_t found = 0;
    for (size_t i = 0; i < optimal.count; i++)
        found += optimal.items[i] == candidate;
    return found;
}

static struct optimal_problem polynomial(size_t points, size_t degree, double *terms,
                                         enum optimal_criterion criterion, size_t most) {
    make_polynomial(points, degree, terms);
    widen(degree + 1);
    return (struct optimal_problem){
        .candidate_count = points,
        .term_count = degree + 1,
        .group_count = 1,
        .terms = terms,
        .groups = &unknown,
        .criterion = criterion,
        .budget = INFINITY,
        .rows_most = most,
    };
}

/* ---- Designs that are known (Atkinson, Donev and Tobias, chapters 9 and 11) */

TEST(known) {
    static const struct {
        size_t points, degree;
        enum optimal_criterion criterion;
        size_t rows, support;
        struct {
            size_t at, times;
        } rows_at[3];
    } cases[] = {
        {101, 1, OPTIMAL_D, 10, 2, {{0, 5}, {100, 5}}},
        {201, 2, OPTIMAL_D, 12, 3, {{0, 4}, {100, 4}, {200, 4}}},
        /* A quarter, a half and a quarter at -1, 0 and 1. */
        {401, 2, OPTIMAL_I, 16, 3, {{0, 4}, {200, 8}, {400, 4}}},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        double terms[POINTS_MAX * 3];
        struct optimal_problem problem =
            polynomial(cases[i].points, cases[i].degree, terms, cases[i].criterion, cases[i].rows);
        find(&problem);
        assert_int_equal(optimal.count, cases[i].rows);
        for (size_t k = 0; k < cases[i].support; k++)
            assert_int_equal(times(cases[i].rows_at[k].at), cases[i].rows_at[k].times);
    }
}

/* Cubic: -1, 1 and the roots of P3', +-1/sqrt(5) (Guest 1958; Hoel 1958), to the grid's width. */
TEST(d_cubic) {
    double terms[POINTS_MAX * 4];
    struct optimal_problem problem = polynomial(401, 3, terms, OPTIMAL_D, 16);
    find(&problem);
    assert_int_equal(times(0), 4);
    assert_int_equal(times(400), 4);
    size_t left = 0, right = 0;
    for (size_t i = 0; i < optimal.count; i++) {
        double x = terms[optimal.items[i] * 4 + 1];
        left += fabs(x + 1 / sqrt(5)) < 0.011;
        right += fabs(x - 1 / sqrt(5)) < 0.011;
    }
    assert_int_equal(left, 4);
    assert_int_equal(right, 4);
}

/* Where the standard deviation of a unit is in proportion to x, a line in x is one in 1 / x of equal units:
 * its ends, half of the rows at each. */
TEST(weights) {
    double terms[10 * 2], weights[10];
    widen(2);
    for (size_t i = 0; i < 10; i++) {
        terms[2 * i] = 1;
        terms[2 * i + 1] = (double)i + 1;
        weights[i] = 1 / ((double)(i + 1) * (double)(i + 1));
    }
    struct optimal_problem problem = {.candidate_count = 10,
                                      .term_count = 2,
                                      .group_count = 1,
                                      .terms = terms,
                                      .weights = weights,
                                      .groups = &unknown,
                                      .criterion = OPTIMAL_D,
                                      .budget = INFINITY,
                                      .rows_most = 8};
    find(&problem);
    assert_int_equal(times(0), 4);
    assert_int_equal(times(9), 4);
}

/* ---- Limits and lack of fit */

/* The places of a polynomial's points, from 0 to 1. */
static void make_places(size_t points, double *ret) {
    for (size_t i = 0; i < points; i++)
        ret[i] = (double)i / (double)(points - 1);
}

TEST(limits) {
    double terms[POINTS_MAX * 2], costs[101];
    struct optimal_problem problem = polynomial(101, 1, terms, OPTIMAL_D, 40);
    problem.repeats_most = 3;
    find(&problem);
    assert_int_equal(optimal.count, 40);
    for (size_t i = 0; i < 101; i++)
        assert_int_equal(times(i), i < 6 || i > 94 ? 3 : i == 6 || i == 94 ? 2 : 0);
    /* Half of the budget, or of the rows. */
    for (size_t i = 0; i < 101; i++)
        costs[i] = i == 0 ? 1 : 0.01;
    problem.repeats_most = 0;
    problem.repeats_share = 0.5;
    problem.costs = costs;
    problem.budget = 7;
    find(&problem);
    assert_true(times(0) <= 3 && times(100) <= 20);
    problem.repeats_share = 0.25;
    find(&problem);
    assert_true(times(0) <= 1 && times(100) <= 10);
}

/* Rows that gain next to nothing, since their terms are as good as 0, are not taken for the rest of a budget.
 */
TEST(least_gain) {
    double terms[] = {1, 0.9, 1e-4, 1e-5}, costs[] = {1, 1, 1e-3, 1e-3};
    widen(1);
    struct optimal_problem problem = {.candidate_count = 4,
                                      .term_count = 1,
                                      .group_count = 1,
                                      .terms = terms,
                                      .costs = costs,
                                      .groups = &unknown,
                                      .criterion = OPTIMAL_I,
                                      .budget = 2.5,
                                      .rows_most = 1000};
    find(&problem);
    assert_true(times(0) == 2 && times(2) == 500);
    problem.least_gain = 0.01;
    find(&problem);
    assert_true(times(0) == 2 && optimal.count == 2);
}

/* A line is precise by its ends; a quarter of the rows is where lack of fit shows, apart from all others.
 * Gains are those of the whole design. */
TEST(lack_of_fit) {
    double terms[POINTS_MAX * 2], places[101];
    struct optimal_problem problem = polynomial(101, 1, terms, OPTIMAL_I, 12);
    make_places(101, places);
    problem.places = places, problem.place_count = 1;
    problem.lack_share = 0.25;
    find(&problem);
    assert_true(optimal.count == 12 && optimal.lack_count == 3);
    assert_true(times(0) + times(100) == 9 && times(50) == 1 && times(25) == 1 && times(75) == 1);
    for (size_t i = 0; i < 12; i++)
        assert_true(i >= 9 || optimal.items[i] == 0 || optimal.items[i] == 100);
    assert_true(optimal.gains[9] > 0 && optimal.gains[9] < optimal.gains[0]);
    /* Without repetitions of others, those for lack of fit are repeated. */
    problem.repeats_most = 2;
    problem.rows_most = 4;
    problem.lack_share = 0.5;
    find(&problem);
    assert_true(optimal.lack_count == 2 && times(50) == 2);
    /* What is left of a budget that fits one row is not exceeded. */
    problem.budget = 1.1;
    find(&problem);
    assert_true(optimal.count == 1 && optimal.lack_count == 0);
}

/* ---- Against everything there is */

/* Gauss and Jordan, with pivots: nothing that the code under test uses. Returns the determinant. */
static double invert(const double *matrix, size_t n, double *ret) {
    double work[TERMS_MAX][2 * TERMS_MAX] = {{0}}, determinant = 1;
    for (size_t i = 0; i < n; i++) {
        for (size_t j = 0; j < n; j++)
            work[i][j] = matrix[i * n + j];
        work[i][n + i] = 1;
    }
    for (size_t c = 0; c < n; c++) {
        size_t pivot = c;
        for (size_t i = c; i < n; i++)
            pivot = fabs(work[i][c]) > fabs(work[pivot][c]) ? i : pivot;
        for (size_t j = 0; j < 2 * n; j++) {
            double kept = work[c][j];
            work[c][j] = work[pivot][j];
            work[pivot][j] = kept;
        }
        determinant *= pivot == c ? work[c][c] : -work[c][c];
        double by = work[c][c];
        for (size_t j = 0; j < 2 * n; j++)
            work[c][j] /= by;
        for (size_t i = 0; i < n; i++) {
            double factor = i == c ? 0 : work[i][c];
            for (size_t j = 0; j < 2 * n; j++)
                work[i][j] -= factor * work[c][j];
        }
    }
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++)
            ret[i * n + j] = work[i][n + j];
    return determinant;
}

/* The covariance of group G with ROWS, by inverting twice. Returns the log det of the information. */
static double recomputed(const struct optimal_problem *problem, size_t g, const size_t *rows, size_t count,
                         double *ret) {
    const struct optimal_group *group = &problem->groups[g];
    size_t n = problem->term_count;
    double information[TERMS_MAX * TERMS_MAX] = {0};
    invert(group->covariance, n, information);
    for (size_t r = 0; r < count; r++) {
        if (problem->kinds && problem->kinds[rows[r]] != group->kind)
            continue;
        double weight = (problem->weights ? problem->weights[rows[r]] : 1) / (group->sigma * group->sigma);
        for (size_t i = 0; i < n; i++)
            for (size_t j = 0; j < n; j++)
                information[i * n + j] +=
                    weight * problem->terms[rows[r] * n + i] * problem->terms[rows[r] * n + j];
    }
    return log(invert(information, n, ret));
}

/* The criterion of ROWS by full recomputation; more is better. */
static double value_of(const struct optimal_problem *problem, const size_t *rows, size_t count) {
    size_t n = problem->term_count;
    double sum = 0, all = 0;
    for (size_t g = 0; g < problem->group_count; g++) {
        double covariance[TERMS_MAX * TERMS_MAX], variance = 0, shares = 0;
        double log_det = recomputed(problem, g, rows, count, covariance);
        for (size_t c = 0; c < problem->candidate_count; c++) {
            if (problem->kinds && problem->kinds[c] != problem->groups[g].kind)
                continue;
            double share = problem->shares ? problem->shares[c] : 1;
            shares += share;
            for (size_t i = 0; i < n; i++)
                for (size_t j = 0; j < n; j++)
                    variance += share * (problem->weights ? problem->weights[c] : 1) *
                                problem->terms[c * n + i] * covariance[i * n + j] * problem->terms[c * n + j];
        }
        all += problem->groups[g].share;
        sum += problem->groups[g].share * (problem->criterion == OPTIMAL_D ? log_det : -variance / shares);
    }
    return sum / all;
}

static double cost_of(const struct optimal_problem *problem, const size_t *rows, size_t count) {
    double cost = 0;
    for (size_t i = 0; i < count; i++)
        cost += problem->costs ? problem->costs[rows[i]] : 1;
    return cost;
}

/* The best of all multisets of at most rows_most rows within the budget. */
static void search_all(const struct optimal_problem *problem, size_t *rows, size_t count, size_t from,
                       double *best) {
    if (cost_of(problem, rows, count) > problem->budget)
        return;
    double value = value_of(problem, rows, count);
    *best = value > *best ? value : *best;
    for (size_t i = from; count < problem->rows_most && i < problem->candidate_count; i++) {
        rows[count] = i;
        search_all(problem, rows, count + 1, problem->repeats_most == 1 ? i + 1 : i, best);
    }
}

static double drawn(struct random_source *source) {
    return 2 * random_fraction(source) - 1;
}

/* A covariance: A A' of a random A, and a little more. */
static void make_covariance(struct random_source *source, size_t n, double *ret) {
    double a[TERMS_MAX * TERMS_MAX];
    for (size_t i = 0; i < n * n; i++)
        a[i] = drawn(source);
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) {
            ret[i * n + j] = i == j ? 0.05 : 0;
            for (size_t k = 0; k < n; k++)
                ret[i * n + j] += a[i * n + k] * a[j * n + k];
        }
}

struct drawn_problem {
    double terms[10 * 3], weights[10], shares[10], costs[10], covariances[2][9];
    uint32_t kinds[10];
    struct optimal_group groups[2];
    struct optimal_problem problem;
};

/* What varies with the seed: criterion, number of groups, kinds, weights, shares, costs, distinct rows. */
static void draw_problem(uint64_t seed, struct drawn_problem *ret) {
    struct random_source source;
    random_start(&source, seed, RANDOM_STREAM_TABLE);
    for (size_t i = 0; i < 10; i++) {
        for (size_t t = 0; t < 3; t++)
            ret->terms[i * 3 + t] = t == 0 ? 1 : drawn(&source);
        ret->weights[i] = 0.2 + random_fraction(&source);
        ret->shares[i] = (double)random_below(&source, 4) + (i < 2);
        ret->costs[i] = 0.2 + random_fraction(&source);
        ret->kinds[i] = (uint32_t)(i % 2);
    }
    for (size_t g = 0; g < 2; g++) {
        make_covariance(&source, 3, ret->covariances[g]);
        ret->groups[g] = (struct optimal_group){ret->covariances[g], 0.3 + random_fraction(&source),
                                                1 + (double)g, seed & 16 ? (uint32_t)g : 0};
    }
    ret->problem = (struct optimal_problem){
        .candidate_count = 10,
        .term_count = 3,
        .group_count = seed & 2 ? 2 : 1,
        .terms = ret->terms,
        .weights = seed & 4 ? ret->weights : NULL,
        .shares = seed & 8 ? ret->shares : NULL,
        .costs = seed & 32 ? ret->costs : NULL,
        .kinds = seed & 2 && seed & 16 ? ret->kinds : NULL,
        .groups = ret->groups,
        .criterion = seed & 1 ? OPTIMAL_I : OPTIMAL_D,
        .budget = seed & 32 ? 2.0 : INFINITY,
        .rows_most = seed & 32 ? 5 : 4,
        .repeats_most = seed & 64 ? 1 : 0,
    };
}

/* The result's own figures are those of a full recomputation; the rows are within the limits. */
static void check_figures(const struct optimal_problem *problem) {
    double before = value_of(problem, NULL, 0), after = value_of(problem, optimal.items, optimal.count);
    assert_true(fabs(after - before - optimal.gain) < 1e-9 * (1 + fabs(after - before)));
    assert_true(optimal.count <= problem->rows_most);
    assert_true(fabs(optimal.cost - cost_of(problem, optimal.items, optimal.count)) < 1e-12);
    assert_true(optimal.cost <= problem->budget * (1 + 1e-9));
    for (size_t i = 0; problem->repeats_most == 1 && i < optimal.count; i++)
        assert_int_equal(times(optimal.items[i]), 1);
}

TEST(exhaustive) {
    size_t best_found = 0, count = 0;
    for (uint64_t seed = 0; seed < 256; seed++, count++) {
        struct drawn_problem drawn_one;
        draw_problem(seed, &drawn_one);
        const struct optimal_problem *problem = &drawn_one.problem;
        find(problem);
        check_figures(problem);
        size_t tried[OPTIMAL_ROWS_MAX];
        double none = value_of(problem, NULL, 0), best = none;
        search_all(problem, tried, 0, 0, &best);
        double share = best > none ? optimal.gain / (best - none) : 1;
        assert_true(share < 1 + 1e-9);
        if (share < 0.93)
            fail_msg("seed %d: %g of the best gain", (int)seed, share);
        best_found += share > 1 - 1e-9;
    }
    /* An exchange of one row for one can end beside the best, most of all under a budget. */
    print_message("the best of all in %zu of %zu problems\n", best_found, count);
    assert_true(best_found * 100 >= count * 90);
}

/* Units of terms and response change nothing, from 1e-12 to 1e12. */
TEST(scales) {
    for (uint64_t seed = 0; seed < 64; seed++) {
        struct drawn_problem plain, scaled;
        draw_problem(seed, &plain);
        draw_problem(seed, &scaled);
        static const double by[3] = {1e-12, 1e12, 1e5};
        const double response = seed & 1 ? 1e12 : 1e-12;
        for (size_t i = 0; i < 30; i++)
            scaled.terms[i] *= by[i % 3];
        for (size_t g = 0; g < 2; g++) {
            scaled.groups[g].sigma *= response;
            for (size_t i = 0; i < 9; i++)
                scaled.covariances[g][i] *= response * response / (by[i / 3] * by[i % 3]);
        }
        cleanup(optimal_rows_clear) struct optimal_rows one = {0};
        assert_ok(optimal_rows_find(&plain.problem, &one, &test_failure));
        find(&scaled.problem);
        assert_int_equal(one.count, optimal.count);
        for (size_t i = 0; i < one.count; i++)
            assert_int_equal(one.items[i], optimal.items[i]);
        double expected = one.gain * (plain.problem.criterion == OPTIMAL_I ? response * response : 1);
        assert_true(fabs(optimal.gain - expected) < 1e-9 * fabs(expected));
    }
}

/* ---- Limits and priors */

TEST(prior_counts) {
    double terms[POINTS_MAX * 2];
    struct optimal_problem problem = polynomial(101, 1, terms, OPTIMAL_D, 4);
    /* The information of 10 units at -1: what is missing is at 1. */
    const double covariance[4] = {1e4 + 0.05, 1e4 - 0.05, 1e4 - 0.05, 1e4 + 0.05};
    const struct optimal_group group = {covariance, 1, 1, 0};
    problem.groups = &group;
    find(&problem);
    assert_int_equal(times(100), 4);
}

TEST(budget) {
    double terms[POINTS_MAX * 2], costs[POINTS_MAX];
    struct optimal_problem problem = polynomial(101, 1, terms, OPTIMAL_I, 1000);
    for (size_t i = 0; i < 101; i++)
        costs[i] = i == 100 ? 10 : 1;
    problem.costs = costs;
    problem.budget = 12;
    find(&problem);
    /* One at the dear end would leave two: better several just beside it. */
    assert_int_equal(times(100), 0);
    assert_int_equal(optimal.count, 12);
    assert_true(times(99) >= 5);
    problem.budget = 0.5;
    find(&problem);
    assert_int_equal(optimal.count, 0);
    assert_true(optimal.gain == 0);
}

/* A coefficient that is known exactly, and two that are one: defined, and the second is said. */
TEST(singular) {
    double terms[POINTS_MAX * 2];
    struct optimal_problem problem = polynomial(101, 1, terms, OPTIMAL_I, 3);
    const double known[4] = {0, 0, 0, 1};
    const struct optimal_group exact = {known, 1, 1, 0};
    problem.groups = &exact;
    find(&problem);
    assert_int_equal(times(0) + times(100), 3);
    assert_true(fabs(optimal.gain - 0.75 * 0.34) < 1e-12); /* 1 to 1/4, times the mean of x^2 */
    const double one[4] = {1, 1, 1, 1};
    const struct optimal_group collinear = {one, 1, 1, 0};
    problem.groups = &collinear;
    find(&problem);
    assert_int_equal(times(100), 3); /* at -1 the response is known */
}

TEST(no_covariance) {
    double terms[POINTS_MAX * 2];
    struct optimal_problem problem = polynomial(2, 1, terms, OPTIMAL_D, 3);
    const double bad[][4] = {{1, 2, 2, 1}, {1, 0, 0, INFINITY}, {1, 0.5, 0, 1}, {0, 0.5, 0.5, 1}};
    for (size_t i = 0; i < sizeof bad / sizeof *bad; i++) {
        const struct optimal_group group = {bad[i], 1, 1, 0};
        problem.groups = &group;
        assert_int_equal(optimal_rows_find(&problem, &optimal, &test_failure), -22);
        assert_string_equal(test_failure.text, "the covariance of group 1 is not positive semidefinite");
        assert_null(optimal.items);
    }
}

/* The update of a covariance is what inverting twice gives. */
TEST(adding) {
    struct random_source source;
    random_start(&source, 1, RANDOM_STREAM_TABLE);
    double covariance[9], expected[9], terms[3] = {1, -2, 0.5}, z[3], work[3];
    make_covariance(&source, 3, covariance);
    const struct optimal_group group = {covariance, 0.5, 1, 0};
    const struct optimal_problem problem = {.term_count = 3, .terms = terms, .groups = &group};
    recomputed(&problem, 0, (size_t[]){0, 0}, 2, expected);
    for (size_t i = 0; i < 3; i++)
        z[i] = terms[i] / 0.5;
    optimal_rows_add(covariance, z, 3, work);
    optimal_rows_add(covariance, z, 3, work);
    for (size_t i = 0; i < 9; i++)
        assert_true(fabs(covariance[i] - expected[i]) < 1e-12);
}
