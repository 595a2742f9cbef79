/* Segmented lines against all segmentations of few points, and against the best number of breaks in real
 * message times (data/README.md; skipped, aloud, where that is not). unit/fit/piecewise.c has the lines
 * themselves. */
#include "engine/numerics/segments.h"

#include "tests/test.h"

enum { POINTS_MAX = 50000, BREAKS_MAX = 12 };

static double x[POINTS_MAX], y[POINTS_MAX], weights[POINTS_MAX];

/* The least R for each number of breaks, over all segmentations. */
struct all {
    const struct segments_problem *problem;
    double rss[BREAKS_MAX + 1];
};

static bool is_given(const struct segments_problem *problem, size_t at) {
    for (size_t i = 0; i < problem->given_count; i++)
        if (problem->given[i] == at)
            return true;
    return at == 0 || at == problem->points;
}

static void try_all(struct all *all, size_t begin, size_t breaks, double rss) {
    const struct segments_problem *problem = all->problem;
    struct segment line;
    for (size_t end = begin + 1; end <= problem->points; end++) {
        bool short_part = is_given(problem, begin) && is_given(problem, end);
        if (end - begin >= problem->minimum || short_part) {
            segments_line(problem, begin, end, &line);
            if (end == problem->points)
                all->rss[breaks] = fmin(all->rss[breaks], rss + line.rss);
            else if (breaks + !is_given(problem, end) <= BREAKS_MAX)
                try_all(all, end, breaks + !is_given(problem, end), rss + line.rss);
        }
        if (is_given(problem, end))
            return;
    }
}

static void assert_partition(const struct segments_problem *problem, const struct segments *found) {
    double rss = 0;
    size_t end = 0, given = 0;
    for (size_t i = 0; i < found->count; i++) {
        const struct segment *segment = &found->segments[i];
        struct segment line;
        assert_int_equal(segment->begin, end);
        end = segment->end;
        segments_line(problem, segment->begin, end, &line);
        assert_true(line.rss == segment->rss && line.slope == segment->slope &&
                    line.intercept == segment->intercept);
        assert_true(end - segment->begin >= problem->minimum ||
                    (is_given(problem, segment->begin) && is_given(problem, end)));
        rss += line.rss;
        given += end < problem->points && is_given(problem, end);
    }
    assert_int_equal(end, problem->points);
    assert_int_equal(given, problem->given_count);
    assert_true(rss == found->rss);
}

/* Straight pieces with noise; sizes over nine decades where WIDE. */
static void make_points(size_t n, size_t pieces, double noise, bool wide) {
    double at = wide ? 1 : 0, level = 0, slope = 1;
    for (size_t i = 0; i < n; i++) {
        at += wide ? at * 40 * test_random() / (double)n + 1 : 0.1 + test_random();
        if (i % (n / pieces + 1) == 0) {
            level = 10 * test_random();
            slope = test_random();
        }
        x[i] = at;
        y[i] = (level + slope * at) * (wide ? 1e-9 * (1 + noise * test_normal()) : 1) +
               (wide ? 0 : noise * test_normal());
        weights[i] = wide ? 1 / (y[i] * y[i]) : 0.5 + test_random();
    }
}

TEST(all_segmentations) {
    size_t several = 0;
    test_seed = 21;
    for (size_t trial = 0; trial < 500; trial++) {
        const size_t given[] = {4, 6, 11};
        size_t n = 5 + trial % 16;
        make_points(n, 1 + trial % 4, trial % 3 ? 0.1 : 2, trial % 2);
        struct segments_problem problem = {.points = n,
                                           .x = x,
                                           .y = y,
                                           .weights = trial % 4 > 1 ? weights : NULL,
                                           .minimum = 1 + trial % 4,
                                           .measurements = (double)n,
                                           .penalty = trial % 5 == 0 ? 2 : 3 * log((double)n),
                                           .scatter = trial % 7 == 0 ? 0.1 : 0};
        if (trial % 6 == 5 && n > 11) {
            problem.given = given;
            problem.given_count = 3;
        }
        if (problem.minimum < 3) /* else many segmentations leave nothing */
            problem.scatter = problem.weights ? 1 : trial % 2 ? 1e-18 : 1;
        struct all all = {.problem = &problem};
        for (size_t m = 0; m <= BREAKS_MAX; m++)
            all.rss[m] = INFINITY;
        try_all(&all, 0, 0, 0);
        double best = INFINITY;
        for (size_t m = 0; m <= BREAKS_MAX; m++)
            best = fmin(best, problem.measurements * log(all.rss[m] + problem.scatter) +
                                  problem.penalty * (double)m);
        struct segments found;
        assert_int_equal(segments_best(&problem, &found), 0);
        assert_partition(&problem, &found);
        size_t breaks = found.count - 1 - problem.given_count;
        double value =
            problem.measurements * log(found.rss + problem.scatter) + problem.penalty * (double)breaks;
        if (isfinite(best) && breaks <= BREAKS_MAX && !(fabs(value - best) <= 1e-8))
            fail_msg("trial %zu: %zu breaks, %.15g; expected %.15g", trial, breaks, value, best);
        several += breaks > 1;
        segments_clear(&found);
        for (size_t m = 0; !problem.given_count && m <= 5 && (m + 1) * problem.minimum <= n; m++) {
            assert_int_equal(segments_exactly(&problem, m + 1, &found), 0);
            assert_partition(&problem, &found);
            assert_int_equal(found.count, m + 1);
            double floor = 1e-24 * (problem.weights ? (double)n
                                    : trial % 2     ? 1e-18
                                                    : 1); /* rounding where lines are exact */
            if (!(found.rss - all.rss[m] <= 1e-9 * all.rss[m] + floor))
                fail_msg("trial %zu: R of %zu breaks is %.17g; expected %.17g", trial, m, found.rss,
                         all.rss[m]);
            segments_clear(&found);
        }
    }
    assert_true(several > 50);
}

/* Only the given breaks. */
TEST(given_breaks) {
    const size_t given[] = {1, 30};
    make_points(100, 3, 0.1, false);
    const struct segments_problem problem = {.points = 100,
                                             .x = x,
                                             .y = y,
                                             .minimum = 3,
                                             .given = given,
                                             .given_count = 2,
                                             .measurements = 100,
                                             .penalty = INFINITY};
    struct segments found;
    assert_int_equal(segments_best(&problem, &found), 0);
    assert_partition(&problem, &found);
    assert_true(found.count == 3 && found.segments[0].rss == 0 && found.segments[0].slope == 0);
    assert_true(found.segments[0].intercept == y[0] && found.segments[1].end == 30);
    segments_clear(&found);
    assert_int_equal(segments_exactly(&problem, 3, &found), -EINVAL);
}

/* Lines without noise: the residuals are rounding, and the fewest segments that leave no more are found. */
TEST(exact_lines) {
    for (size_t i = 0; i < 3000; i++) {
        x[i] = 1e6 + (double)i;
        y[i] = i < 1000 ? 0.1 + 1e-3 * x[i] : i < 1800 ? 7 - 3e-7 * x[i] : 1e-3 * x[i] / 3;
    }
    struct segments_problem problem = {
        .points = 3000, .x = x, .y = y, .minimum = 3, .measurements = 3000, .penalty = 4 * log(3000)};
    struct segments found;
    assert_int_equal(segments_best(&problem, &found), 0);
    assert_int_equal(found.count, 3);
    assert_true(found.segments[0].end == 1000 && found.segments[1].end == 1800);
    assert_close(found.segments[1].slope, -3e-7, 1e-9, "the slope");
    segments_clear(&found);
    problem.points = 900;
    assert_int_equal(segments_best(&problem, &found), 0);
    assert_int_equal(found.count, 1);
    segments_clear(&found);
    for (size_t i = 0; i < 900; i++)
        y[i] = 5;
    assert_int_equal(segments_best(&problem, &found), 0);
    assert_true(found.count == 1 && found.rss == 0);
    segments_clear(&found);
}

/* Many points: breaks where they were made, one more or less of them is worse, and a moved break as well. */
TEST(many_points) {
    enum { N = 5000 };
    test_seed = 5;
    for (size_t i = 0; i < N; i++) {
        size_t piece = 5 * i / N;
        x[i] = (double)i + 1;
        y[i] = 1 + (double)piece / 2 + (1 + 0.3 * (double)piece) * (double)i / N + 0.05 * test_normal();
    }
    struct segments_problem problem = {
        .points = N, .x = x, .y = y, .minimum = 3, .measurements = N, .penalty = 4 * log(N)};
    struct segments found, other;
    assert_int_equal(segments_best(&problem, &found), 0);
    assert_int_equal(found.count, 5);
    assert_true(found.runs < 10);
    double least = N * log(found.rss) + 4 * problem.penalty;
    for (size_t count = 1; count < 9; count++) {
        assert_int_equal(segments_exactly(&problem, count, &other), 0);
        assert_int_equal(other.count, count);
        assert_true(count == 5 ? other.rss == found.rss
                               : N * log(other.rss) + (double)(count - 1) * problem.penalty > least);
        segments_clear(&other);
    }
    for (size_t i = 0; i + 1 < found.count; i++)
        for (int way = -1; way <= 1; way += 2) {
            struct segment left, right;
            segments_line(&problem, found.segments[i].begin, found.segments[i].end + way, &left);
            segments_line(&problem, found.segments[i].end + way, found.segments[i + 1].end, &right);
            assert_true(left.rss + right.rss >= found.segments[i].rss + found.segments[i + 1].rss);
        }
    segments_clear(&found);
    problem.penalty = 2; /* AIC: hundreds of breaks are nearly as good */
    assert_int_equal(segments_best(&problem, &found), 0);
    assert_partition(&problem, &found);
    for (double factor = 0.5; factor < 2.1; factor *= 2) { /* no other corner nearby is better */
        problem.penalty = 2 * factor;
        assert_int_equal(segments_best(&problem, &other), 0);
        assert_true(N * log(other.rss) + 2 * (double)other.count >=
                    N * log(found.rss) + 2 * (double)found.count - 1e-6);
        segments_clear(&other);
    }
    segments_clear(&found);
}

TEST(refusals) {
    struct segments found;
    const double level[] = {1, 1, 2}, one[] = {1, 2, 3}, nothing[] = {1, 0, 1}, infinite[] = {1, INFINITY, 1};
    struct segments_problem problem = {
        .points = 3, .x = level, .y = one, .minimum = 1, .measurements = 3, .penalty = 1};
    assert_int_equal(segments_best(&problem, &found), -EINVAL);
    problem.x = one;
    problem.weights = nothing;
    assert_int_equal(segments_best(&problem, &found), -EINVAL);
    problem.weights = NULL;
    problem.y = infinite;
    assert_int_equal(segments_best(&problem, &found), -EINVAL);
    problem.y = level;
    assert_int_equal(segments_exactly(&problem, 4, &found), -EINVAL);
    assert_int_equal(segments_exactly(&problem, 3, &found), 0);
    assert_true(found.count == 3 && found.rss == 0);
    segments_clear(&found);
    segments_clear(&found);
}

/* ---- More points than the exact search takes */

/* Breaks at single points are found to the point; so is a given one, and a number of segments. */
TEST(beyond_the_exact_search) {
    enum { N = SEGMENTS_EXACT_MAX + 20001 };
    static const size_t breaks[] = {30007, 70011, 70411, 119990};
    double *many_x = malloc(2 * N * sizeof *many_x), *many_y = many_x + N, truth = 0;
    assert_non_null(many_x);
    test_seed = 3;
    for (size_t i = 0, at = 0; i < N; i++) {
        at += at < 4 && i == breaks[at];
        many_x[i] = 1e6 * pow(1e3, (double)i / N); /* runs are of uneven spread */
        many_y[i] = (at % 2 ? 5 : 2) + 1e-9 * many_x[i] * (double)at + 0.3 * (test_random() - 0.5);
    }
    struct segments_problem problem = {.points = N,
                                       .x = many_x,
                                       .y = many_y,
                                       .minimum = 3,
                                       .measurements = N,
                                       .penalty = 4 * log((double)N)};
    for (size_t i = 0; i < 5; i++) {
        struct segment line;
        segments_line(&problem, i ? breaks[i - 1] : 0, i < 4 ? breaks[i] : N, &line);
        truth += line.rss;
    }
    struct segments found;
    assert_int_equal(segments_best(&problem, &found), 0);
    assert_partition(&problem, &found);
    assert_true(found.count == 5 && found.places > 0 && found.rss <= truth * (1 + 1e-12));
    for (size_t i = 0; i < 4; i++)
        assert_int_equal(found.segments[i + 1].begin, breaks[i]);
    segments_clear(&found);
    if (getenv("ASSAY_TEST_ALL")) {
        problem.given = (const size_t[]){1, 50001};
        problem.given_count = 2;
        assert_int_equal(segments_best(&problem, &found), 0);
        assert_partition(&problem, &found);
        assert_true(found.count == 7 && found.rss <= truth);
        segments_clear(&found);
        problem.given_count = 0;
        assert_int_equal(segments_exactly(&problem, 3, &found), 0);
        assert_partition(&problem, &found);
        assert_int_equal(found.count, 3);
        segments_clear(&found);
    }
    free(many_x);
}

/* ---- Real message times */

static FILE *open_data(const char *name) {
    char path[8192], header[1024];
    snprintf(path, sizeof path, "%s/mpi/%s", test_data(), name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(header, sizeof header, file));
    return file;
}

static int by_x(const void *a, const void *b) {
    double left = *(const double *)a, right = *(const double *)b;
    return (left > right) - (left < right);
}

/* "pycewise_data:dahu/isend" is a part of dahu_gros.csv; other names are files. Equal sizes are averaged. */
static size_t read_points(const char *dataset) {
    char name[128], cluster[32], experiment[32], row_cluster[32], row_experiment[32];
    static double rows[2000][2];
    size_t count = 0, points = 0;
    if (sscanf(dataset, "pycewise_data:%31[^/]/%31s", cluster, experiment) == 2) {
        FILE *file = open_data("dahu_gros.csv");
        while (fscanf(file, "%31[^,],%31[^,],%lf,%lf\n", row_experiment, row_cluster, &rows[count][0],
                      &rows[count][1]) == 4)
            count += strcmp(row_cluster, cluster) == 0 && strcmp(row_experiment, experiment) == 0;
        fclose(file);
    } else {
        snprintf(name, sizeof name, "%s.csv", dataset);
        FILE *file = open_data(name);
        while (fscanf(file, "%lf,%lf\n", &rows[count][0], &rows[count][1]) == 2)
            count++;
        fclose(file);
    }
    qsort(rows, count, sizeof *rows, by_x);
    for (size_t i = 0, same = 0; i < count; i++) {
        if (i > 0 && rows[i][0] == rows[i - 1][0]) {
            same++;
            y[points - 1] += (rows[i][1] - y[points - 1]) / (double)(same + 1);
            continue;
        }
        same = 0;
        x[points] = rows[i][0];
        y[points++] = rows[i][1];
    }
    return points;
}

struct answer {
    char dataset[64], criterion[16];
    size_t breaks, n;
    double rss;
};

static struct segments_problem problem_of(const struct answer *answer) {
    bool relative = strcmp(answer->criterion, "rel") == 0;
    double n = (double)read_points(answer->dataset);
    for (size_t i = 0; i < (size_t)n; i++)
        weights[i] = 1 / (y[i] * y[i]);
    return (struct segments_problem){.points = (size_t)n,
                                     .x = x,
                                     .y = y,
                                     .weights = relative ? weights : NULL,
                                     .minimum = strcmp(answer->criterion, "ols_min2") == 0 ? 2 : 3,
                                     .measurements = n,
                                     .penalty = 3 * log(n)};
}

/* By strucchange's BIC: not worse than the best of 0 to 8 breaks. */
TEST(best_of_real_times) {
    char text[1024], dataset[64] = "", criterion[16] = "";
    double least = INFINITY;
    if (!test_data())
        skip();
    FILE *file = open_data("segments_optimum.csv");
    struct answer answer;
    for (bool more = true; more;) {
        more = fgets(text, sizeof text, file) != NULL;
        if (more)
            sscanf(text, "%63[^,],%15[^,],%zu,%zu,%lf,", answer.dataset, answer.criterion, &answer.n,
                   &answer.breaks, &answer.rss);
        if (*dataset &&
            (!more || strcmp(dataset, answer.dataset) != 0 || strcmp(criterion, answer.criterion) != 0)) {
            struct answer last;
            snprintf(last.dataset, sizeof last.dataset, "%s", dataset);
            snprintf(last.criterion, sizeof last.criterion, "%s", criterion);
            struct segments_problem problem = problem_of(&last);
            struct segments found;
            assert_int_equal(segments_best(&problem, &found), 0);
            assert_partition(&problem, &found);
            double value =
                problem.measurements * log(found.rss) + problem.penalty * (double)(found.count - 1);
            assert_true(found.count <= 9 ? fabs(value - least) < 1e-6 : value < least + 1e-6);
            segments_clear(&found);
            least = INFINITY;
        }
        snprintf(dataset, sizeof dataset, "%s", answer.dataset);
        snprintf(criterion, sizeof criterion, "%s", answer.criterion);
        least = fmin(least,
                     (double)answer.n * log(answer.rss) + 3 * log((double)answer.n) * (double)answer.breaks);
    }
    fclose(file);
}
