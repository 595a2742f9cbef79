/* The plugin fit-piecewise against exhaustive search, and what it says of bad input. */
#include "tests/test.h"
#include "tests/unit/plugin/piecewise-host.h"

enum { POINTS = 40, SEGMENTS = 20, AVERAGED = 0, WEIGHTED, RAW };

static struct host_result other; /* large */

/* ---- Optima */

static void check_all_numbers(const struct plain *plain, double criterion) {
    for (size_t k = 1; k <= SEGMENTS; k++) {
        struct host_table table = table_of(plain->x, plain->y, plain->n);
        table.names[2] = "weight";
        table.columns[2] = plain->weight;
        table.column_count = 3;
        table.sizes[0] = "size";
        table.size_count = 1;
        table.weights = criterion == RSS ? "weight" : NULL;
        set(&table, "criterion", criterion);
        set(&table, "segments", (double)k);
        set(&table, "minimum", (double)plain->minimum);
        host_fit(fit, &table, &result);
        assert_int_equal(result.code, 0);
        assert_true(result.groups[0].fitted == (plain->least[k][plain->n] < INFINITY));
        if (!result.groups[0].fitted) {
            assert_non_null(strstr(result.groups[0].reason, "no room for"));
            continue;
        }
        assert_int_equal(result.groups[0].part_count, k);
        if (plain->least[k][plain->n] > 1e-14)
            assert_near(total(), (double)plain->least[k][plain->n], 1e-9);
    }
}

TEST(exactly_so_many) {
    static struct plain plain;
    for (int trial = 0; trial < 40; trial++) {
        make_plain(&plain, trial % 2, POINTS);
        for (size_t i = 0; trial % 3 == 0 && i < plain.n; i++)
            plain.weight[i] = 0.01 + test_random();
        fill_costs(&plain);
        search_plainly(&plain);
        check_all_numbers(&plain, RSS);
    }
}

TEST(relative) {
    static struct plain plain;
    for (int trial = 0; trial < 10; trial++) {
        make_plain(&plain, trial % 2, POINTS);
        for (size_t i = 0; i < plain.n; i++)
            plain.weight[i] = 1 / (plain.y[i] * plain.y[i]);
        fill_costs(&plain);
        search_plainly(&plain);
        check_all_numbers(&plain, RELATIVE);
    }
}

/* The criterion's own optimum over every number of segments that there may be. */
TEST(chosen_numbers) {
    static struct plain plain;
    for (int trial = 0; trial < 60; trial++) {
        make_plain(&plain, trial % 2, POINTS);
        plain.minimum = 3;
        fill_costs(&plain);
        search_plainly(&plain);
        double n = (double)plain.n, cost = (trial % 3 ? log(n) : 2) * (trial % 4 ? 4 : 3), least = INFINITY;
        size_t most = trial % 5 ? SEGMENTS : 1 + random_below(5);
        for (size_t k = 1; k <= most; k++)
            if (plain.least[k][plain.n] < INFINITY)
                least = fmin(least, n * log((double)plain.least[k][plain.n]) + cost * (double)(k - 1));
        struct host_table table = table_of(plain.x, plain.y, plain.n);
        set(&table, "criterion", trial % 3 ? BIC : AIC);
        set(&table, "per_break", trial % 4 ? 4 : 3);
        set(&table, "most", (double)most);
        ask(&table);
        double found = n * log(total()) + cost * (double)(result.groups[0].part_count - 1);
        assert_true(fabs(found - least) < 1e-6);
    }
}

/* Breaks that are given part the search, and hold where nothing was measured. */
TEST(given_breaks) {
    static struct plain plain;
    for (int trial = 0; trial < 20; trial++) {
        make_plain(&plain, false, POINTS);
        plain.minimum = 2;
        size_t border = 3 + random_below(plain.n - 6);
        for (size_t i = border; i < plain.n; i++)
            plain.first_of_zone[i] = border;
        fill_costs(&plain);
        search_plainly(&plain);
        char terms[128];
        double at = (plain.x[border - 1] + plain.x[border]) / 2;
        snprintf(terms, sizeof terms, "1 + size eager | %.17g rendezvous | 1e9 never", at);
        struct host_table table = table_of(plain.x, plain.y, plain.n);
        table.terms = terms;
        ask(&table);
        const struct host_group *group = &result.groups[0];
        assert_int_equal(group->part_count, 2);
        assert_near(total(), (double)(plain.cost[0][border] + plain.cost[border][plain.n]), 1e-9);
        assert_true(group->parts[0].to == at && group->parts[1].from == at);
        assert_string_equal(group->parts[0].name, "eager");
        assert_string_equal(group->parts[1].name, "rendezvous");
        assert_non_null(strstr(group->notes, "1 of the given breaks left out"));
        set(&table, "between", 1);
        set(&table, "minimum", 2);
        set(&table, "segments", 4);
        snprintf(terms, sizeof terms, "size | %.17g", at);
        host_fit(fit, &table, &result);
        if (plain.least[4][plain.n] < INFINITY && plain.least[4][plain.n] > 1e-14)
            assert_near(total(), (double)plain.least[4][plain.n], 1e-9);
    }
}

/* ---- Lines that meet */

/* The best broken line through knots at points AT[0 .. COUNT - 1], by Gaussian elimination. */
static long double broken_rss(const struct plain *plain, const size_t *at, size_t count) {
    long double a[8][9] = {{0}}, rss = 0;
    for (int pass = 0; pass < 2; pass++) {
        for (size_t i = 0, k = 0; i < plain->n; i++) {
            while (k + 2 < count && plain->x[i] >= plain->x[at[k + 1]])
                k++;
            long double u = (plain->x[i] - (long double)plain->x[at[k]]) /
                            (plain->x[at[k + 1]] - (long double)plain->x[at[k]]);
            long double shares[8] = {0};
            shares[k] = 1 - u;
            shares[k + 1] = u;
            if (pass == 0)
                for (size_t p = k; p < k + 2; p++) {
                    for (size_t q = k; q < k + 2; q++)
                        a[p][q] += shares[p] * shares[q];
                    a[p][count] += shares[p] * plain->y[i];
                }
            else {
                long double left = plain->y[i] - shares[k] * a[k][count] - shares[k + 1] * a[k + 1][count];
                rss += left * left;
            }
        }
        for (size_t p = 0; pass == 0 && p < count; p++) /* Gauss and Jordan */
            for (size_t q = 0; q < count; q++) {
                long double factor = q == p ? 0 : a[q][p] / a[p][p];
                for (size_t c = 0; q != p && c <= count; c++)
                    a[q][c] -= factor * a[p][c];
            }
        for (size_t p = 0; pass == 0 && p < count; p++)
            a[p][count] /= a[p][p];
    }
    return rss;
}

static long double best_broken(const struct plain *plain, size_t segments, size_t minimum) {
    long double least = INFINITY;
    size_t at[5] = {0};
    at[segments] = plain->n - 1;
    for (size_t p = 1; p + 1 < plain->n; p++)
        for (size_t q = p; q + 1 < plain->n && (segments == 3 || q == p); q++) {
            at[1] = p;
            if (segments == 3)
                at[2] = q;
            bool room = true;
            for (size_t k = 1; k <= segments; k++)
                room = room && at[k] >= at[k - 1] + minimum - (k == 1);
            if (!room)
                continue;
            long double rss = broken_rss(plain, at, segments + 1);
            least = rss < least ? rss : least;
        }
    return least;
}

TEST(lines_that_meet) {
    static struct plain plain;
    for (int trial = 0; trial < 12; trial++) {
        make_plain(&plain, trial % 2, POINTS);
        for (size_t segments = 2; segments <= 3; segments++) {
            struct host_table table = table_of(plain.x, plain.y, plain.n);
            set(&table, "criterion", RSS);
            set(&table, "continuous", 1);
            set(&table, "segments", (double)segments);
            set(&table, "minimum", 3);
            ask(&table);
            assert_near(total(), (double)best_broken(&plain, segments, 3), 1e-7);
            for (size_t k = 1; k < segments; k++) {
                const struct host_part *left = &result.groups[0].parts[k - 1], *right = left + 1;
                double x = right->from;
                assert_true(left->to == x);
                assert_near(left->estimates[0].estimate + left->estimates[1].estimate * x,
                            right->estimates[0].estimate + right->estimates[1].estimate * x, 1e-10);
            }
        }
    }
}

/* What cannot be looked for is said, and what to do; breaks that are given have no such limit. */
TEST(many_that_meet) {
    enum { N = 1100 };
    static double x[N], y[N];
    for (size_t i = 0; i < N; i++) {
        x[i] = (double)i;
        y[i] = 1 + fabs((double)i - 500) + (double)(i * 7919 % 101) / 101;
    }
    struct host_table table = table_of(x, y, N);
    set(&table, "continuous", 1);
    host_fit(fit, &table, &result);
    assert_false(result.groups[0].fitted);
    assert_string_equal(result.groups[0].reason,
                        "1100 values of size, and lines that meet are looked for over at most 1024; expected "
                        "breaks in --terms, fewer values, or continuous=no");
    table.terms = "size | 500";
    ask(&table);
    assert_int_equal(result.groups[0].part_count, 2);
    table = table_of(x, y, 100);
    set(&table, "continuous", 1);
    set(&table, "segments", 65);
    host_fit(fit, &table, &result);
    assert_false(result.groups[0].fitted);
    assert_string_equal(result.groups[0].reason, "65 segments that meet; expected at most 33");
}

/* ---- Log error */

/* The least sum of (log y - log(a + b x))^2, by Gauss and Newton. */
static long double log_rss(const struct plain *plain, size_t first, size_t end) {
    long double a = 0, b = 0, rss = 0;
    for (int step = 0; step < 60; step++) {
        long double s[6] = {0};
        rss = 0;
        for (size_t i = first; i < end; i++) {
            long double x = plain->x[i], f = step ? a + b * x : plain->y[i];
            long double z = f * (1 + logl(plain->y[i] / f)), w = 1 / (f * f);
            rss += logl(plain->y[i] / f) * logl(plain->y[i] / f);
            s[0] += w;
            s[1] += w * x;
            s[2] += w * x * x;
            s[3] += w * z;
            s[4] += w * x * z;
        }
        b = (s[0] * s[4] - s[1] * s[3]) / (s[0] * s[2] - s[1] * s[1]);
        a = (s[3] - b * s[1]) / s[0];
    }
    return rss;
}

TEST(log_error) {
    static struct plain plain;
    plain.n = 24;
    plain.minimum = 3;
    for (int trial = 0; trial < 5; trial++) {
        for (size_t i = 0; i < plain.n; i++) {
            double x = plain.x[i] = pow(1.7, (double)i);
            double line = i < 9 ? 1 + 0.1 * x : i < 16 ? 30 + 0.02 * x : 5 + 0.3 * x;
            plain.y[i] = line * exp(0.2 * (test_random() - 0.5));
            plain.weight[i] = 1;
        }
        for (size_t a = 0; a < plain.n; a++)
            for (size_t b = a + plain.minimum; b <= plain.n; b++)
                plain.cost[a][b] = log_rss(&plain, a, b);
        search_plainly(&plain);
        for (size_t k = 1; k <= 4; k++) {
            struct host_table table = table_of(plain.x, plain.y, plain.n);
            set(&table, "criterion", LOG);
            set(&table, "segments", (double)k);
            ask(&table);
            assert_near(total(), (double)plain.least[k][plain.n], 1e-9);
        }
    }
}

/* ---- Equal sizes */

TEST(equal_sizes) {
    enum { N = 60 };
    double x[N], y[N], mean_x[20], mean_y[20];
    double within = 0;
    for (size_t i = 0; i < 20; i++) {
        mean_x[i] = (double)i;
        mean_y[i] = 0;
        for (size_t k = 0; k < 3; k++) {
            x[3 * i + k] = (double)i;
            y[3 * i + k] = (i < 10 ? 1.0 : 5.0) + 0.5 * (double)i + 0.2 * test_random();
            mean_y[i] += y[3 * i + k] / 3;
        }
        for (size_t k = 0; k < 3; k++)
            within += (y[3 * i + k] - mean_y[i]) * (y[3 * i + k] - mean_y[i]);
    }
    struct host_table table = table_of(mean_x, mean_y, 20);
    ask(&table);
    double of_means = total();
    assert_int_equal(result.groups[0].part_count, 2);
    double expected[] = {of_means, 3 * of_means, 3 * of_means + within};
    for (int equal = AVERAGED; equal <= RAW; equal++) {
        table = table_of(x, y, N);
        set(&table, "equal", equal);
        ask(&table);
        assert_int_equal(result.groups[0].part_count, 2);
        assert_true(result.groups[0].parts[1].from == 10 && result.groups[0].rows == N);
        assert_near(total(), expected[equal], 1e-12);
    }
    /* Raw rows: the variance is that of single ones. */
    assert_near(host_value(&result.groups[0], "degrees_of_freedom"), 28, 0);
}

TEST(any_order) {
    enum { N = 300 };
    static double x[N], y[N], shuffled_x[N], shuffled_y[N];
    for (size_t i = 0; i < N; i++) {
        x[i] = floor(exp(20 * test_random()));
        y[i] = 1e-6 + x[i] * (x[i] < 60000 ? 1e-9 : 1e-10) * (1 + 0.1 * test_random());
    }
    for (size_t i = 0; i < N; i++) {
        size_t k = random_below(i + 1);
        shuffled_x[i] = shuffled_x[k];
        shuffled_y[i] = shuffled_y[k];
        shuffled_x[k] = x[i];
        shuffled_y[k] = y[i];
    }
    for (double criterion = BIC; criterion <= LOG; criterion++) {
        struct host_table table = table_of(x, y, N), mixed = table_of(shuffled_x, shuffled_y, N);
        set(&table, "criterion", criterion);
        set(&mixed, "criterion", criterion);
        host_fit(fit, &mixed, &other);
        ask(&table);
        assert_int_equal(other.groups[0].part_count, result.groups[0].part_count);
        for (size_t i = 0; i < result.groups[0].part_count; i++)
            assert_memory_equal(other.groups[0].parts[i].estimates, result.groups[0].parts[i].estimates,
                                2 * sizeof(struct fit_estimate));
    }
}

/* ---- What is told */

/* A clear step: the break is known; a faint one is not. */
TEST(intervals) {
    enum { N = 80 };
    double x[N], y[N];
    for (int faint = 0; faint < 2; faint++) {
        for (size_t i = 0; i < N; i++) {
            x[i] = (double)(i + 1);
            y[i] = (i < 40 ? 1 : 1 + (faint ? 0.9 : 30)) + 0.01 * x[i] + (test_random() - 0.5);
        }
        struct host_table table = table_of(x, y, N);
        set(&table, "segments", 2);
        ask(&table);
        const struct host_part *part = &result.groups[0].parts[1];
        double low = NAN, high = NAN;
        for (size_t i = 0; i < part->value_count; i++) {
            low = strcmp(part->values[i].name, "break_low") == 0 ? part->values[i].value : low;
            high = strcmp(part->values[i].name, "break_high") == 0 ? part->values[i].value : high;
        }
        assert_true(low < part->from && part->from <= high);
        if (faint)
            assert_true(high - low > 1);
        else
            assert_true(low == 40 && high == 41);
    }
}

/* Conventions of R's lm on one segment; noise in proportion to the line for relative errors. */
TEST(lines_and_noise) {
    double x[] = {1, 2, 3, 4}, y[] = {2, 4, 5, 8};
    struct host_table table = table_of(x, y, 4);
    ask(&table);
    const struct host_group *group = &result.groups[0];
    assert_int_equal(group->part_count, 1);
    assert_string_equal(result.kind, "piecewise");
    assert_string_equal(result.over, "size");
    assert_near(group->estimates[0].estimate, 0, 0);
    assert_near(group->estimates[1].estimate, 1.9, 1e-15);
    assert_near(host_value(group, "rss"), 0.7, 1e-14);
    assert_near(host_value(group, "sigma"), sqrt(0.35), 1e-14);
    assert_near(group->estimates[1].standard_error, sqrt(0.07), 1e-14);
    assert_near(group->covariance[1], -0.175, 1e-14);
    assert_near(group->covariance[0], 0.35 * 1.5, 1e-14);
    assert_near(host_value(group, "bic"), 4 * (log(2 * M_PI) + 1 + log(0.175)) + 3 * log(4), 1e-13);
    assert_string_equal(group->parts[0].noise.kind, "N-1");
    assert_near(group->parts[0].noise.constant, sqrt(0.35), 1e-14);
    set(&table, "criterion", RELATIVE);
    ask(&table);
    const struct host_part *part = &result.groups[0].parts[0];
    assert_string_equal(part->noise.kind, "N-2");
    assert_near(part->noise.constant / part->estimates[0].estimate,
                part->noise.coefficients[1] / part->estimates[1].estimate, 1e-14);
    double squares = 0;
    for (size_t i = 0; i < 4; i++) {
        double line = part->estimates[0].estimate + part->estimates[1].estimate * x[i];
        squares += (y[i] / line - 1) * (y[i] / line - 1);
    }
    assert_near(part->noise.coefficients[1] / part->estimates[1].estimate, sqrt(squares / 2), 1e-14);
}

enum { NOISY_SIZES = 60, NOISY_ROWS = 8, NOISY = NOISY_SIZES * NOISY_ROWS };

static double standard_normal(void) {
    return sqrt(-2 * log(test_random())) * cos(2 * M_PI * test_random());
}

/* Two segments, NOISY_ROWS rows of each size, shuffled. */
static void make_noisy(double *x, double *y, bool in_proportion) {
    for (size_t i = 0; i < NOISY; i++) {
        x[i] = (double)(i * 7 % NOISY / NOISY_ROWS + 1);
        double line = x[i] <= 30 ? 10 + 2 * x[i] : 400 + x[i];
        y[i] = line + standard_normal() * (in_proportion ? 0.03 * line : 5);
    }
}

static double line_of(const struct host_part *part, double x) {
    return part->estimates[0].estimate + part->estimates[1].estimate * x;
}

/* The same from the rows one by one; and whether as many are within two sigma as of a normal. */
static void check_noise_of_rows(const double *x, const double *y, bool in_proportion) {
    size_t within = 0;
    for (size_t k = 0; k < 2; k++) {
        const struct host_part *part = &result.groups[0].parts[k];
        double squares = 0, rows = 0, sigma = part->noise.constant;
        if (in_proportion)
            sigma = part->noise.coefficients[1] / part->estimates[1].estimate;
        for (size_t i = 0; i < NOISY; i++) {
            if (x[i] < part->from || x[i] >= part->to)
                continue;
            double line = line_of(part, x[i]), residual = (y[i] - line) / (in_proportion ? line : 1);
            squares += residual * residual;
            within += fabs(residual) < 1.96 * sigma;
            rows++;
        }
        assert_near(sigma, sqrt(squares / (rows - 2)), 1e-10);
    }
    assert_true(within > NOISY * 0.92 && within < NOISY * 0.98);
}

/* Whatever becomes of equal sizes, the noise is that of one row. */
TEST(noise_of_one_row) {
    double x[NOISY], y[NOISY];
    for (int criterion = BIC; criterion <= LOG; criterion++)
        for (int equal = AVERAGED; equal <= RAW; equal++) {
            bool in_proportion = criterion >= RELATIVE;
            make_noisy(x, y, in_proportion);
            struct host_table table = table_of(x, y, NOISY);
            set(&table, "criterion", criterion);
            set(&table, "equal", equal);
            table.terms = "size | 31";
            ask(&table);
            assert_int_equal(result.groups[0].part_count, 2);
            check_noise_of_rows(x, y, in_proportion);
            /* That of the fit is of what the fit counts: of a mean of eight, about a third. */
            double sigma = host_value(&result.groups[0], "sigma"), one = in_proportion ? 0.03 : 5;
            if (equal == AVERAGED)
                assert_true(sigma < 0.6 * one);
        }
}

/* Lines that meet have one noise; two sizes are enough where there are rows; weights leave none. */
TEST(noise_where_told) {
    double x[NOISY], y[NOISY], squares = 0;
    make_noisy(x, y, false);
    struct host_table table = table_of(x, y, NOISY);
    table.terms = "size | 31";
    set(&table, "continuous", 1);
    ask(&table);
    const struct host_part *parts = result.groups[0].parts;
    for (size_t i = 0; i < NOISY; i++)
        squares += pow(y[i] - line_of(&parts[x[i] >= 31], x[i]), 2);
    assert_near(parts[0].noise.constant, sqrt(squares / (NOISY - 3)), 1e-10);
    assert_near(parts[1].noise.constant, parts[0].noise.constant, 0);
    double few[] = {1, 1, 2, 2, 3, 4}, times[] = {1, 3, 6, 8, 9, 9};
    table = table_of(few, times, 6);
    table.terms = "size | 3";
    ask(&table);
    assert_true(parts[0].noisy && !parts[0].has_covariance && !parts[1].noisy);
    assert_near(parts[0].noise.constant, sqrt(4 / 2.0), 1e-14);
    table.weights = "size";
    ask(&table);
    assert_false(parts[0].noisy || parts[1].noisy);
    /* Rows that repeat to the last digit. */
    double same[] = {0.1, 0.1, 0.1, 0.2, 0.2, 0.2, 0.3, 0.3, 0.3}, exact[] = {7, 7, 7, 8, 8, 8, 9, 9, 9};
    table = table_of(exact, same, 9);
    ask(&table);
    assert_true(parts[0].noise.constant <= 1e-16);
}

static void assert_noted(const double *x, const double *y, size_t rows, const char *terms, const char *note) {
    struct host_table table = table_of(x, y, rows);
    table.terms = terms;
    ask(&table);
    const char *said = strstr(result.groups[0].notes, "predicts");
    if (note ? !said || strncmp(said, note, strlen(note)) != 0 : said != NULL)
        fail_msg("'%s'; expected '%s'", result.groups[0].notes, note ? note : "none of that");
}

/* A line that is not above 0 where it was measured, and what was measured is. */
TEST(sunken_lines) {
    double x[] = {1, 2, 3, 4, 5, 6, 7, 8}, y[] = {1, 1, 1, 9, 1, 1, 1, 9}, down[] = {9, 1, 1, 1, 9, 1, 1, 1};
    /* -3 + 2.4 x, and the same line over x - 4. */
    assert_noted(x, y, 4, NULL, "predicts 0 or less for size below 1.25, where all");
    assert_noted(x, y, 8, "size | 5", "predicts 0 or less for size below 1.25 and in 1 more segment, where");
    assert_noted(x, down, 4, NULL, "predicts 0 or less for size above 3.75, where all");
    double late[] = {5, 6, 7, 8, 1, 1, 1, 9};
    assert_noted(x, late, 8, "size | 5", "predicts 0 or less for size from 5 to 5.25, where all");
    y[2] = 0;
    assert_noted(x, y, 4, NULL, NULL);
    assert_noted(x, x, 8, NULL, NULL);
}

/* No noise at all: the breaks are found all the same, and no more of them. */
TEST(without_noise) {
    enum { N = 200 };
    double x[N], y[N];
    for (double scale = 1e-12; scale <= 2e12; scale *= 1e12) {
        for (size_t i = 0; i < N; i++) {
            x[i] = (double)(i + 1) * scale;
            y[i] = (i < 50    ? 3 + 2 * x[i] / scale
                    : i < 120 ? 900 + 0.5 * x[i] / scale
                              : 7 * x[i] / scale) *
                   scale;
        }
        struct host_table table = table_of(x, y, N);
        ask(&table);
        assert_int_equal(result.groups[0].part_count, 3);
        assert_true(result.groups[0].parts[1].from == x[50] && result.groups[0].parts[2].from == x[120]);
        assert_near(result.groups[0].parts[1].estimates[1].estimate, 0.5, 1e-9);
    }
}

/* Messages of 1e-12 and 1e+12 in one table: the small ones count in relative errors. */
TEST(wide_scales) {
    enum { N = 90 };
    double x[N], y[N];
    for (size_t i = 0; i < N; i++) {
        x[i] = pow(10, -12 + 24 * (double)i / (N - 1));
        y[i] = (i < 30 ? 5 * x[i] : i < 60 ? 40 * x[i] : 0.3 * x[i]) * (1 + 0.02 * (test_random() - 0.5));
    }
    struct host_table table = table_of(x, y, N);
    set(&table, "criterion", RELATIVE);
    ask(&table);
    assert_int_equal(result.groups[0].part_count, 3);
    assert_true(result.groups[0].parts[1].from == x[30] && result.groups[0].parts[2].from == x[60]);
    assert_near(result.groups[0].parts[0].estimates[1].estimate, 5, 0.02);
}

/* ---- Bad input */

static void assert_skipped(const struct host_table *table, const char *reason) {
    host_fit(fit, table, &result);
    assert_int_equal(result.code, 0);
    assert_false(result.groups[0].fitted);
    if (!strstr(result.groups[0].reason, reason))
        fail_msg("'%s'; expected '%s'", result.groups[0].reason, reason);
}

static void assert_refused(const struct host_table *table, const char *sentence) {
    host_fit(fit, table, &result);
    assert_int_equal(result.code, -EINVAL);
    if (!strstr(result.message.text, sentence))
        fail_msg("'%s'; expected '%s'", result.message.text, sentence);
}

TEST(bad_rows) {
    double x[] = {1, 2, 3, 4, 5, 6, 7, 8}, same[] = {3, 3, 3, 3, 3, 3, 3, 3};
    double y[] = {1, 2.5, 3, 4.5, 5, 6.5, 7, 8}, none[8] = {0};
    struct host_table table = table_of(same, y, 8);
    assert_skipped(&table, "size is always 3");
    table = table_of(same, same, 8);
    assert_skipped(&table, "size is always 3");
    double bytes[] = {16777217, 16777217};
    table = table_of(bytes, bytes, 2);
    assert_skipped(&table, "size is always 16777217");
    table = table_of(x, y, 2);
    assert_skipped(&table, "2 values of size for a segment of at least 3");
    table = table_of(x, same, 8);
    ask(&table);
    assert_int_equal(result.groups[0].part_count, 1);
    assert_true(result.groups[0].estimates[0].estimate == 3 && result.groups[0].estimates[1].estimate == 0);
    assert_true(isnan(host_value(&result.groups[0], "r2")) && total() == 0);
    assert_non_null(strstr(result.groups[0].notes, "to its last digit"));
    table = table_of(x, y, 8);
    table.names[2] = "w";
    table.columns[2] = none;
    table.column_count = 3;
    table.weights = "w";
    assert_skipped(&table, "no rows");
    none[3] = -1;
    assert_refused(&table, "the weight 'w' of table data row 4 is -1; expected 0 or more");
    double odd[] = {1, 2.5, NAN, 4.5, INFINITY, 6.5, -7, 0};
    table = table_of(x, odd, 8);
    ask(&table);
    assert_int_equal(result.groups[0].rows, 6);
    assert_true(host_value(&result.groups[0], "rows_left_out") == 2);
    assert_non_null(strstr(result.groups[0].notes, "2 rows left out: a value is empty or not finite"));
    for (double criterion = RELATIVE; criterion <= LOG; criterion++) {
        table = table_of(x, odd, 8);
        set(&table, "criterion", criterion);
        ask(&table);
        assert_int_equal(result.groups[0].rows, 4);
        assert_non_null(strstr(result.groups[0].notes, "2 rows left out: the response is not above 0"));
    }
}

TEST(bad_requests) {
    double x[] = {1, 2, 3, 4, 5, 6, 7, 8}, y[] = {1, 2, 3, 4, 5, 6, 7, 9};
    static const struct {
        const char *terms, *sentence;
    } cases[] = {
        {"sise", "no column 'sise'; did you mean 'size'"},
        {"time", "'time' is the response"},
        {"size |", "expected a number"},
        {"size | 5 | 4", "breaks in ascending order"},
        {"size | 5 a b", "expected '|' or the end"},
        {"size + 3", "expected a column, and breaks after '|'"},
    };
    struct host_table table = table_of(x, y, 8);
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        table.terms = cases[i].terms;
        assert_refused(&table, cases[i].sentence);
    }
    table.terms = "size | 1.5";
    assert_skipped(&table, "between the given breaks there is size 1 alone");
    table.terms = NULL;
    set(&table, "criterion", RSS);
    assert_refused(&table, "the criterion rss never has enough segments");
    set(&table, "segments", 4);
    assert_skipped(&table, "no room for 4 segments of at least 3 of 8 values of size: at most 2");
    table = table_of(x, y, 8);
    table.names[2] = "other";
    table.columns[2] = x;
    table.column_count = 3;
    assert_refused(&table, "over which column are the lines? there are: size, other");
}

/* A small group among others is said, and the others are fitted. */
TEST(groups) {
    double x[21], y[21];
    uint32_t codes[21];
    for (size_t i = 0; i < 21; i++) {
        x[i] = (double)i;
        y[i] = (i % 2 ? 1 : 50) + (double)(i * i % 7);
        codes[i] = i == 20 ? 2 : i % 2;
    }
    struct host_table table = table_of(x, y, 21);
    table.groups = codes;
    table.group_count = 3;
    ask(&table);
    assert_true(result.groups[0].fitted && result.groups[1].fitted && !result.groups[2].fitted);
    assert_string_equal(result.groups[2].reason, "size is always 20");
    assert_true(result.groups[0].rows == 10 && result.groups[2].rows == 1);
}

TEST_GROUP(load_piecewise, fit_library_close)
