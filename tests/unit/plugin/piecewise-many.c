/* The plugin fit-piecewise against exhaustive search where there are many sizes, so that all that leaves ways
 * out has its part in it; and the inverse variance of equal sizes. */
#include "tests/test.h"
#include "tests/unit/plugin/piecewise-host.h"

enum { TABLES = 6, AVERAGED = 0, PRECISE = 3 };

/* ---- Many sizes */

/* Clear steps, faint ones, noise alone, and lines without much of it. */
static void make_many(struct plain *plain, int trial) {
    static const double noises[TABLES] = {0.05, 0.5, 2, 0.3, 1e-4, 0.05};
    *plain = (struct plain){.n = PLAIN_POINTS, .minimum = trial % 3 == 1 ? 2 : 3};
    for (size_t i = 0; i < plain->n; i++) {
        size_t part = trial == 2 ? 0 : 5 * i / plain->n;
        plain->x[i] = trial % 2 ? pow(1.1, (double)i) : (double)i;
        double line = 3 + (double)(part * part % 7) + (1 + 0.3 * (double)part) * (double)i / PLAIN_POINTS;
        double noise = sqrt(-2 * log(test_random())) * cos(2 * M_PI * test_random());
        plain->y[i] = line * exp(0.2 * noises[trial] * noise);
        plain->weight[i] = 1;
    }
}

static void ask_for(const struct plain *plain, double criterion, double segments) {
    struct host_table table = table_of(plain->x, plain->y, plain->n);
    set(&table, "criterion", criterion);
    set(&table, "segments", segments);
    set(&table, "minimum", (double)plain->minimum);
    ask(&table);
}

static void check_choice(const struct plain *plain, double criterion) {
    double n = (double)plain->n, cost = 4 * (criterion == AIC ? 2 : log(n)), least = INFINITY;
    for (size_t k = 1; k <= PLAIN_SEGMENTS; k++)
        least = fmin(least, n * log((double)plain->least[k][plain->n]) + cost * (double)(k - 1));
    ask_for(plain, criterion, 0);
    double found = n * log(total()) + cost * (host_value(&result.groups[0], "segments") - 1);
    assert_true(fabs(found - least) < 1e-6);
}

TEST(every_number) {
    static struct plain plain;
    for (int trial = 0; trial < TABLES; trial++) {
        make_many(&plain, trial);
        for (int relative = 0; relative < 2; relative++) {
            for (size_t i = 0; relative && i < plain.n; i++)
                plain.weight[i] = 1 / (plain.y[i] * plain.y[i]);
            fill_costs(&plain);
            search_plainly(&plain);
            for (size_t k = 1; k <= PLAIN_SEGMENTS; k += k < 20 ? 1 : 5) {
                ask_for(&plain, relative ? RELATIVE : RSS, (double)k);
                assert_true(host_value(&result.groups[0], "segments") == (double)k);
                assert_near(total(), (double)plain.least[k][plain.n], 1e-9);
            }
            if (plain.minimum == 2) /* more segments than are searched here leave least */
                continue;
            check_choice(&plain, relative ? RELATIVE : BIC);
            if (!relative)
                check_choice(&plain, AIC);
        }
    }
}

/* ---- Inverse variance */

enum { SIZES = 30, ROWS_OF_A_SIZE = 5, ROWS = SIZES * ROWS_OF_A_SIZE };

struct scattered {
    double x[ROWS], y[ROWS], mean_x[SIZES], mean_y[SIZES], weight[SIZES];
    size_t rows;
};

/* Size 3 has one row, the rows of size 7 are equal; sizes from 20 on scatter ten times as much. WEIGHTED by
 * the definition. */
static void make_scattered(struct scattered *table, bool relative) {
    double own[SIZES], counts[SIZES], sum = 0, degrees = 0;
    table->rows = 0;
    for (size_t i = 0; i < SIZES; i++) {
        size_t count = i == 3 ? 1 : ROWS_OF_A_SIZE;
        double *y = table->y + table->rows, squares = 0;
        for (size_t k = 0; k < count; k++) {
            table->x[table->rows] = (double)i + 1;
            y[k] = (i < 12 ? 2 : 9) + 0.1 * (double)i + (i < 20 ? 0.05 : 0.5) * (test_random() - 0.5);
            y[k] = i == 7 ? 2.7 : y[k];
            table->rows++;
        }
        table->mean_x[i] = (double)i + 1;
        table->mean_y[i] = 0;
        for (size_t k = 0; k < count; k++)
            table->mean_y[i] += y[k] / (double)count;
        for (size_t k = 0; k < count; k++)
            squares += (y[k] - table->mean_y[i]) * (y[k] - table->mean_y[i]);
        squares = i == 7 ? 0 : squares / (relative ? table->mean_y[i] * table->mean_y[i] : 1);
        counts[i] = (double)count;
        own[i] = count > 1 ? squares / (double)(count - 1) : 0;
        sum += squares;
        degrees += (double)(count - 1);
    }
    for (size_t i = 0; i < SIZES; i++)
        table->weight[i] = counts[i] * (own[i] > 0 ? sum / degrees / own[i] : 1);
}

TEST(inverse_variance) {
    static struct scattered scattered;
    static const double criteria[] = {BIC, AIC, RELATIVE, LOG};
    for (size_t c = 0; c < 4; c++) {
        make_scattered(&scattered, criteria[c] == RELATIVE || criteria[c] == LOG);
        struct host_table table = table_of(scattered.mean_x, scattered.mean_y, SIZES);
        table.names[2] = "weight";
        table.columns[2] = scattered.weight;
        table.column_count = 3;
        table.sizes[0] = "size";
        table.size_count = 1;
        table.weights = "weight";
        set(&table, "criterion", criteria[c]);
        ask(&table);
        double rss = total(), bic = host_value(&result.groups[0], "bic");
        size_t count = result.groups[0].part_count;
        struct fit_estimate slope = result.groups[0].parts[0].estimates[1];
        table = table_of(scattered.x, scattered.y, scattered.rows);
        set(&table, "criterion", criteria[c]);
        set(&table, "equal", PRECISE);
        ask(&table);
        assert_int_equal(result.groups[0].part_count, count);
        assert_true(count > 1);
        assert_near(total(), rss, 1e-9);
        assert_near(host_value(&result.groups[0], "bic"), bic, 1e-9);
        assert_near(result.groups[0].parts[0].estimates[1].estimate, slope.estimate, 1e-9);
        assert_near(result.groups[0].parts[0].estimates[1].standard_error, slope.standard_error, 1e-9);
        set(&table, "equal", AVERAGED);
        ask(&table);
        assert_true(fabs(total() - rss) > 1e-3 * rss);
    }
}

/* Where no size has a variance they count as often as they have rows. */
TEST(no_variance) {
    double x[] = {1, 1, 2, 3, 3, 3, 4, 5}, y[] = {1, 1, 2, 4, 4, 4, 3, 6};
    struct host_table table = table_of(x, y, 8);
    set(&table, "equal", PRECISE);
    ask(&table);
    double precise = total();
    set(&table, "equal", 1);
    ask(&table);
    assert_true(total() == precise);
    table.weights = "time";
    set(&table, "equal", PRECISE);
    host_fit(fit, &table, &result);
    assert_int_equal(result.code, -EINVAL);
    assert_non_null(strstr(result.message.text, "expected no --weights"));
}

TEST_GROUP(load_piecewise, fit_library_close)
