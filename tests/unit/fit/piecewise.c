/* fit-piecewise against exhaustive search and the known optima of real message times (data/README.md;
 * skipped, aloud, where that is not), and what it says of what it cannot fit. */
#include "tests/unit/fit/message-table.h"

TEST_GROUP(open_messages, close_messages)

enum { POINTS = 40, SEGMENTS = 8, ANSWERS = 2000 };

/* ---- Every partition there is */

struct plain {
    size_t n, minimum, border;                   /* no line goes across the border, if it is not 0 */
    double x[POINTS], y[POINTS], weight[POINTS]; /* of the table; the weight too in relative errors */
    long double cost[POINTS + 1][POINTS + 1];    /* of a line over a <= i < b */
    long double least[SEGMENTS + 1][POINTS + 1]; /* by segments, of the points before */
};

static long double line_rss(const struct plain *plain, size_t a, size_t b, const double *weight) {
    long double w = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    for (size_t i = a; i < b; i++) {
        w += weight[i];
        x += (long double)weight[i] * plain->x[i];
        y += (long double)weight[i] * plain->y[i];
    }
    for (size_t i = a; i < b; i++) {
        long double dx = plain->x[i] - x / w, dy = plain->y[i] - y / w;
        xx += weight[i] * dx * dx;
        xy += weight[i] * dx * dy;
        yy += weight[i] * dy * dy;
    }
    return b - a <= 2 ? 0 : yy - xy * xy / xx;
}

static void search_plainly(struct plain *plain, const char *criterion) {
    double weight[POINTS];
    bool relative = strcmp(criterion, "relative") == 0;
    for (size_t i = 0; i < plain->n; i++)
        weight[i] = plain->weight[i] / (relative ? plain->y[i] * plain->y[i] : 1);
    for (size_t a = 0; a < plain->n; a++)
        for (size_t b = a + 1; b <= plain->n; b++)
            plain->cost[a][b] = line_rss(plain, a, b, weight);
    for (size_t s = 0; s <= plain->n; s++)
        plain->least[0][s] = s == 0 ? 0 : INFINITY;
    for (size_t k = 1; k <= SEGMENTS; k++)
        for (size_t s = 0; s <= plain->n; s++) {
            plain->least[k][s] = INFINITY;
            for (size_t t = 0; t + plain->minimum <= s; t++)
                if (!(t < plain->border && plain->border < s) &&
                    plain->least[k - 1][t] + plain->cost[t][s] < plain->least[k][s])
                    plain->least[k][s] = plain->least[k - 1][t] + plain->cost[t][s];
        }
}

static size_t below(size_t limit) {
    return (size_t)(test_random() * (double)limit);
}

/* Steps and bends at random places, noise of a random size; or sizes over many decades. */
static void make_plain(struct plain *plain, bool wide) {
    *plain = (struct plain){.n = 12 + below(POINTS - 12), .minimum = 2 + below(3)};
    double x = test_random(), level = 2, slope = 1, noise = pow(10, -4 * test_random());
    for (size_t i = 0; i < plain->n; i++) {
        if (below(8) == 0) {
            level = 1 + 3 * test_random();
            slope = 2 * test_random();
        }
        x = wide ? x * (1.1 + test_random()) : x + 0.1 + test_random();
        plain->x[i] = x;
        plain->y[i] = level + slope * (wide ? log(x) : x) + noise * (test_random() - 0.5);
        plain->weight[i] = 1;
    }
}

/* ---- Asking */

static void write_rows(size_t n, const double *x, const double *y, const double *weight) {
    text_reset(&table_text);
    assert_int_equal(text_printf(&table_text, "size,duration,weight\n"), 0);
    for (size_t i = 0; i < n; i++)
        assert_int_equal(text_printf(&table_text, "%.17g,%.17g,%.17g\n", x[i], y[i], weight ? weight[i] : 1),
                         0);
}

/* SETTINGS: with blanks between. */
static int ask(const char *words, struct fit_options options) {
    static char copy[512];
    size_t count = 0;
    char *save = NULL;
    snprintf(copy, sizeof copy, "%s", words);
    for (char *word = strtok_r(copy, " ", &save); word; word = strtok_r(NULL, " ", &save))
        settings[count++] = word;
    settings[count] = NULL;
    return try_fit("piecewise", NULL, options);
}

static double total(void) {
    return model_group_value(fitted(), "total_rss");
}

TEST(every_number_of_segments) {
    static struct plain plain;
    static const char *const criteria[] = {"bic", "relative"};
    char words[256];
    for (int trial = 0; trial < 24; trial++) {
        const char *criterion = criteria[trial / 2 % 2];
        make_plain(&plain, trial % 2);
        for (size_t i = 0; trial % 3 == 0 && i < plain.n; i++)
            plain.weight[i] = 0.01 + test_random();
        search_plainly(&plain, criterion);
        write_rows(plain.n, plain.x, plain.y, plain.weight);
        for (size_t k = 1; k <= SEGMENTS; k++) {
            snprintf(words, sizeof words, "criterion=%s segments=%zu minimum=%zu", criterion, k,
                     plain.minimum);
            assert_int_equal(ask(words, (struct fit_options){.weights = trial % 3 ? NULL : "weight"}), 0);
            if (isinf(plain.least[k][plain.n])) {
                assert_skipped("are too many for");
                continue;
            }
            assert_int_equal(fitted()->part_count, k);
            if (plain.least[k][plain.n] > 1e-14)
                assert_close(total(), (double)plain.least[k][plain.n], 1e-9, "R");
        }
    }
}

/* The criterion's own optimum, with breaks that are given and without, over as many segments as are searched.
 */
TEST(chosen_numbers) {
    static struct plain plain;
    static const struct {
        const char *name;
        double per_break;
    } cases[] = {{"relative", 4}, {"bic", 4}, {"aic", 4}, {"bic", 3}};
    char words[256];
    size_t several = 0;
    for (int trial = 0; trial < 60; trial++) {
        const char *criterion = cases[trial % 4].name;
        bool is_aic = strcmp(criterion, "aic") == 0;
        make_plain(&plain, trial % 2);
        plain.minimum = 3;
        plain.border = trial % 5 ? 0 : plain.n / 2;
        double n = (double)plain.n, least = INFINITY,
               price = cases[trial % 4].per_break * (is_aic ? 2 : log(n));
        search_plainly(&plain, criterion);
        size_t most = 0;
        for (size_t k = 1; k <= SEGMENTS; k++) {
            double value = n * log((double)plain.least[k][plain.n]) + price * ((double)k - 1);
            most = value < least ? k : most;
            least = fmin(least, value);
        }
        write_rows(plain.n, plain.x, plain.y, NULL);
        snprintf(words, sizeof words,
                 plain.border ? "criterion=%s per_break=%g between=yes breaks=%.17g"
                              : "criterion=%s per_break=%g",
                 criterion, cases[trial % 4].per_break, plain.x[plain.border]);
        assert_int_equal(ask(words, (struct fit_options){0}), 0);
        size_t count = fitted()->part_count;
        double found = n * log(total()) + price * ((double)count - 1);
        /* More segments than are searched here may be better. */
        if (count <= SEGMENTS ? fabs(found - least) > 1e-6 : found > least)
            fail_msg("trial %d, %s: %zu segments, %.12g; expected %zu, %.12g", trial, criterion, count, found,
                     most, least);
        several += count > 1;
    }
    assert_true(several > 40);
}

/* ---- What a fit says */

/* Conventions of R's lm; noise in proportion to the line for relative errors. */
TEST(lines_and_noise) {
    const double x[] = {1, 2, 3, 4}, y[] = {2, 4, 5, 8};
    write_rows(4, x, y, NULL);
    assert_int_equal(ask("criterion=bic", (struct fit_options){0}), 0);
    assert_string_equal(fit->model->kind, "piecewise");
    assert_string_equal(fit->model->over, "size");
    const struct model_part *part = &fitted()->parts[0];
    assert_int_equal(fitted()->part_count, 1);
    assert_string_equal(part->kind, "segment");
    assert_true(part->from == -INFINITY && part->to == INFINITY && !part->name);
    assert_true(fabs(part->estimates[0].estimate) < 1e-15);
    assert_close(part->estimates[1].estimate, 1.9, 1e-15, "slope");
    assert_close(value_of(part, "rss"), 0.7, 1e-14, "rss");
    assert_close(value_of(part, "sigma"), sqrt(0.35), 1e-14, "sigma");
    assert_close(part->estimates[1].standard_error, sqrt(0.07), 1e-14, "standard error");
    assert_close(part->covariance[1], -0.175, 1e-14, "covariance");
    assert_close(part->covariance[0], 0.35 * 1.5, 1e-14, "variance");
    assert_close(value_of(part, "r2"), 1 - 0.7 / 18.75, 1e-14, "R2");
    assert_close(model_group_value(fitted(), "bic"), 4 * (log(2 * M_PI) + 1 + log(0.175)) + 3 * log(4), 1e-13,
                 "BIC");
    assert_int_equal(part->noise.kind, MODEL_NOISE_HOMOSCEDASTIC);
    assert_close(part->noise.constant, sqrt(0.35), 1e-14, "noise");
    assert_int_equal(ask("", (struct fit_options){0}), 0);
    part = &fitted()->parts[0];
    assert_int_equal(part->noise.kind, MODEL_NOISE_HETEROSCEDASTIC);
    double squares = 0;
    for (size_t i = 0; i < 4; i++)
        squares += pow(y[i] / line_at(part, x[i]) - 1, 2);
    assert_close(part->noise.coefficients[1] / part->estimates[1].estimate, sqrt(squares / 2), 1e-13,
                 "noise");
    assert_close(part->noise.constant / part->estimates[0].estimate, sqrt(squares / 2), 1e-12, "noise");
}

/* Rows of one size: the mean counts once, or every row does; whatever becomes of them, the noise is that of
 * one row, and their order does not matter. */
TEST(equal_sizes) {
    enum { SIZES = 60, ROWS = 8 * SIZES };
    static double x[ROWS], y[ROWS];
    static const char *const criteria[] = {"bic", "relative"}, *const equals[] = {"averaged", "raw"};
    char words[256];
    for (size_t i = 0; i < ROWS; i++) {
        x[i] = (double)(i * 7 % ROWS / 8 + 1);
        double line = x[i] <= 30 ? 10 + 2 * x[i] : 400 + x[i];
        y[i] = line * (1 + 0.03 * test_normal());
    }
    for (size_t c = 0; c < 4; c++) {
        double r[2], sigma[2], rss = 0, noise = 0, rows = 0;
        for (size_t sorted = 0; sorted < 2; sorted++) {
            for (size_t i = 0; sorted && i < ROWS; i++) /* another order */
                for (size_t k = i; k > 0 && (x[k] < x[k - 1] || (x[k] == x[k - 1] && y[k] < y[k - 1])); k--) {
                    double swap_x = x[k], swap_y = y[k];
                    x[k] = x[k - 1], y[k] = y[k - 1];
                    x[k - 1] = swap_x, y[k - 1] = swap_y;
                }
            write_rows(ROWS, x, y, NULL);
            snprintf(words, sizeof words, "criterion=%s equal=%s breaks=31 names=small,large",
                     criteria[c / 2], equals[c % 2]);
            assert_int_equal(ask(words, (struct fit_options){0}), 0);
            r[sorted] = total();
            sigma[sorted] = value_of(&fitted()->parts[0], "sigma");
        }
        const struct model_part *part = &fitted()->parts[0];
        assert_true(r[0] == r[1] && sigma[0] == sigma[1]);
        assert_int_equal(fitted()->part_count, 2);
        assert_true(fitted()->rows == ROWS && part->to == 31 && fitted()->parts[1].from == 31);
        assert_string_equal(part->name, "small");
        assert_string_equal(fitted()->parts[1].name, "large");
        assert_true(value_of(part, "points") == 30);
        assert_true(value_of(part, "degrees_of_freedom") == (c % 2 ? 238 : 28));
        for (size_t i = 0; i < ROWS; i++)
            if (x[i] < 31) {
                double line = line_at(part, x[i]);
                rss += pow(y[i] - line, 2) / (c / 2 ? y[i] * y[i] : 1);
                noise += pow((y[i] - line) / (c / 2 ? line : 1), 2);
                rows++;
            }
        double one = c / 2 ? part->noise.coefficients[1] / part->estimates[1].estimate : part->noise.constant;
        assert_close(one, sqrt(noise / (rows - 2)), 1e-9, "noise of one row");
        if (c % 2)
            assert_close(value_of(part, "rss"), rss, 1e-9, "rss of every row");
        else
            assert_true(sigma[0] < 0.6 * (c / 2 ? 0.03 : sqrt(rss / rows)));
    }
}

/* A clear step: the break is known; a faint one is not. */
TEST(intervals) {
    enum { N = 80 };
    double x[N], y[N];
    for (int faint = 0; faint < 2; faint++) {
        for (size_t i = 0; i < N; i++) {
            x[i] = (double)(i + 1);
            y[i] = (i < 40 ? 10 : 10 + (faint ? 0.9 : 30)) + 0.01 * x[i] + (test_random() - 0.5);
        }
        write_rows(N, x, y, NULL);
        assert_int_equal(ask("segments=2 criterion=bic", (struct fit_options){0}), 0);
        const struct model_part *part = &fitted()->parts[1];
        double low = value_of(part, "break_low"), high = value_of(part, "break_high");
        assert_true(isnan(value_of(&fitted()->parts[0], "break_low")));
        assert_true(low < part->from && part->from <= high);
        assert_true(faint ? high - low > 1 : low == 40 && high == 41);
    }
}

/* No noise at all: the breaks are found all the same, and no more of them; and messages of 1e-12 and 1e+12 in
 * one table. */
TEST(scales) {
    enum { N = 200 };
    double x[N], y[N];
    for (double scale = 1e-12; scale <= 2e12; scale *= 1e12) {
        for (size_t i = 0; i < N; i++) {
            double k = (double)(i + 1);
            x[i] = k * scale;
            y[i] = (i < 50 ? 3 + 2 * k : i < 120 ? 900 + 0.5 * k : 7 * k) * scale;
        }
        write_rows(N, x, y, NULL);
        for (int c = 0; c < 2; c++) {
            assert_int_equal(ask(c ? "criterion=bic" : "", (struct fit_options){0}), 0);
            assert_int_equal(fitted()->part_count, 3);
            assert_true(fitted()->parts[1].from == x[50] && fitted()->parts[2].from == x[120]);
            assert_close(fitted()->parts[1].estimates[1].estimate, 0.5, 1e-9, "slope");
            assert_noted("pass through all rows");
        }
    }
    for (size_t i = 0; i < N; i++) {
        x[i] = pow(10, -12 + 24 * (double)i / (N - 1));
        y[i] = (i < 50 ? 5 * x[i] : i < 120 ? 40 * x[i] : 0.3 * x[i]) * (1 + 0.02 * (test_random() - 0.5));
    }
    write_rows(N, x, y, NULL);
    assert_int_equal(ask("", (struct fit_options){0}), 0);
    assert_int_equal(fitted()->part_count, 3);
    assert_true(fitted()->parts[1].from == x[50] && fitted()->parts[2].from == x[120]);
}

TEST(bad_input) {
    static const char *const four = "1,2\n2,4\n3,5\n4,8\n";
    static const struct {
        const char *rows, *settings, *refused, *skipped, *noted; /* rows: NULL: four */
    } cases[] = {
        {0, "size=sise", "there is no size column 'sise'; did you mean 'size'?", 0, 0},
        {0, "breaks=5,4", "the break 4 follows the break 5", 0, 0},
        {0, "breaks=x", "'x' is not", 0, 0},
        {0, "breaks=3 names=a", "1 names are set for 2 segments", 0, 0},
        {0, "breaks=3 segments=2", "both breaks and segments are set", 0, 0},
        {0, "criterion=hqc", "expected one of relative, bic, aic", 0, 0},
        {"3,2\n3,4\n", "", 0, "size is 3 in all rows", 0},
        {"1,2\n2,4\n", "", 0, "2 different values of size; a segment needs at least 3", 0},
        {"1,-2\n2,-4\n3,0\n", "", 0, "no row has a response above 0", 0},
        {0, "segments=2", 0, "2 segments of at least 3 values are too many for 4 different values", 0},
        {0, "breaks=1.5", 0, "the single value size = 1", 0},
        {"1,1e200\n2,3e200\n3,2e200\n4,8e200\n", "criterion=bic", 0, "exceed the range of a double", 0},
        {"1,3\n2,3\n3,3\n4,3\n", "", 0, 0, "pass through all rows"},
        {0, "breaks=0,3,9", 0, 0, "2 of the given breaks are ignored"},
        {"1,2\n2,4\n3,5\n4,8\n5,0\n6,-1\n", "", 0, 0, "no relative error: 2"},
        {"1,1\n2,1\n3,1\n4,9\n", "criterion=bic", 0, 0, "predicts 0 or less at 1 values of size"},
    };
    for (size_t i = 0; i < sizeof cases / sizeof *cases; i++) {
        text_reset(&table_text);
        assert_int_equal(text_printf(&table_text, "size,duration\n%s", cases[i].rows ? cases[i].rows : four),
                         0);
        int r = ask(cases[i].settings, (struct fit_options){0});
        assert_int_equal(r < 0, cases[i].refused != NULL);
        if (cases[i].refused)
            assert_says(refusal.text, cases[i].refused);
        if (cases[i].skipped)
            assert_skipped(cases[i].skipped);
        if (cases[i].noted)
            assert_noted(cases[i].noted);
    }
    assert_true(ask("", (struct fit_options){.terms = "1 + size"}) < 0);
    assert_says(refusal.text, "piecewise has no --terms");
    assert_int_equal(ask("", (struct fit_options){.terms = "1 + size", .suggested = true}), 0);
}

/* ---- Real message times: the global optimum for 0 to 8 breaks; R, lines and breaks to 1e-9 */

struct answer {
    char dataset[64], criterion[16];
    int breaks, segment;
    double least, greatest, points, intercept, slope, rss;
};

static struct answer answers[ANSWERS];

static size_t read_answers(const char *data) {
    char path[8192], header[1024];
    size_t count = 0;
    snprintf(path, sizeof path, "%s/mpi/segments_optimum_lines.csv", data);
    FILE *file = fopen(path, "r");
    assert_true(file && fgets(header, sizeof header, file));
    for (struct answer *a = answers;
         count < ANSWERS &&
         fscanf(file, "%63[^,],%15[^,],%d,%d,%lf,%lf,%lf,%lf,%lf,%lf\n", a->dataset, a->criterion, &a->breaks,
                &a->segment, &a->least, &a->greatest, &a->points, &a->intercept, &a->slope, &a->rss) == 10;
         a++)
        count++;
    fclose(file);
    return count;
}

/* "pycewise_data:dahu/isend" is a part of dahu_gros.csv; other names are files. */
static void fit_answer(const char *data, const struct answer *answer) {
    char path[8192], line[256], cluster[32], experiment[32], prefix[80] = "", words[128];
    bool is_part = sscanf(answer->dataset, "pycewise_data:%31[^/]/%31s", cluster, experiment) == 2;
    snprintf(path, sizeof path, "%s/mpi/%s.csv", data, is_part ? "dahu_gros" : answer->dataset);
    if (is_part)
        snprintf(prefix, sizeof prefix, "%s,%s,", experiment, cluster);
    FILE *file = fopen(path, "r");
    assert_true(file && fgets(line, sizeof line, file));
    text_reset(&table_text);
    assert_int_equal(text_append_string(&table_text, "size,duration\n"), 0);
    while (fgets(line, sizeof line, file))
        if (strncmp(line, prefix, strlen(prefix)) == 0)
            assert_int_equal(text_append_string(&table_text, line + strlen(prefix)), 0);
    fclose(file);
    snprintf(words, sizeof words, "criterion=%s minimum=%d segments=%d",
             strcmp(answer->criterion, "rel") ? "bic" : "relative",
             strcmp(answer->criterion, "ols_min2") ? 3 : 2, answer->breaks + 1);
    if (ask(words, (struct fit_options){0}) < 0)
        fail_msg("%s", refusal.text);
}

TEST(known_optima) {
    const char *data = test_data();
    if (!data)
        skip();
    size_t count = read_answers(data), compared = 0;
    for (size_t first = 0, next; first < count; first = next) {
        for (next = first + 1; next < count && answers[next].segment > 0;)
            next++;
        fit_answer(data, &answers[first]);
        assert_int_equal(fitted()->part_count, next - first);
        double rss = 0;
        for (size_t i = first; i < next; i++) {
            const struct model_part *part = &fitted()->parts[i - first];
            const struct answer *answer = &answers[i];
            char what[160];
            snprintf(what, sizeof what, "segment %zu of %s, %s", i - first, answer->dataset,
                     answer->criterion);
            assert_true(i == first ? part->from == -INFINITY : part->from == answer->least);
            assert_true(value_of(part, "points") == answer->points);
            assert_close(part->estimates[0].estimate, answer->intercept, 1e-9, what);
            assert_close(part->estimates[1].estimate, answer->slope, 1e-9, what);
            if (answer->points > 2) /* a sum of squares of nothing is not asked to be exact */
                assert_close(value_of(part, "rss"), answer->rss, 1e-9, what);
            rss += answer->rss;
            compared++;
        }
        assert_close(total(), rss, 1e-9, answers[first].dataset);
    }
    assert_true(compared > 1000);
}
