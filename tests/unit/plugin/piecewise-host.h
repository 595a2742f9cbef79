/* The plugin fit-piecewise, tables at random, and what exhaustive search says of them. */
#ifndef ASSAY_TESTS_PIECEWISE_HOST_H
#define ASSAY_TESTS_PIECEWISE_HOST_H

#include "tests/test.h"
#include "tests/unit/plugin/fit-library.h"

enum { PLAIN_POINTS = 120, PLAIN_SEGMENTS = 40, BIC = 0, AIC, RELATIVE, LOG, RSS };

/* ---- Numbers at random */

static inline size_t random_below(size_t limit) {
    return (size_t)(test_random() * (double)limit);
}

/* ---- The plain way: every partition there is */

struct plain {
    size_t n;
    double x[PLAIN_POINTS], y[PLAIN_POINTS], weight[PLAIN_POINTS];
    long double cost[PLAIN_POINTS + 1][PLAIN_POINTS + 1];    /* of a line over a <= i < b */
    long double least[PLAIN_SEGMENTS + 1][PLAIN_POINTS + 1]; /* by segments, of the points before */
    size_t minimum, first_of_zone[PLAIN_POINTS + 1];         /* where the zone of a point begins */
};

static inline long double line_rss(const struct plain *plain, size_t a, size_t b) {
    long double w = 0, x = 0, y = 0, xx = 0, xy = 0, yy = 0;
    for (size_t i = a; i < b; i++) {
        w += plain->weight[i];
        x += (long double)plain->weight[i] * plain->x[i];
        y += (long double)plain->weight[i] * plain->y[i];
    }
    x /= w;
    y /= w;
    for (size_t i = a; i < b; i++) {
        long double dx = plain->x[i] - x, dy = plain->y[i] - y;
        xx += plain->weight[i] * dx * dx;
        xy += plain->weight[i] * dx * dy;
        yy += plain->weight[i] * dy * dy;
    }
    return b - a <= 2 ? 0 : yy - xy * xy / xx;
}

/* Each least cost of exactly so many segments. Costs are filled in. */
static inline void search_plainly(struct plain *plain) {
    for (size_t s = 0; s <= plain->n; s++)
        plain->least[0][s] = s == 0 ? 0 : INFINITY;
    for (size_t k = 1; k <= PLAIN_SEGMENTS; k++)
        for (size_t s = 0; s <= plain->n; s++) {
            plain->least[k][s] = INFINITY;
            for (size_t t = 0; t + plain->minimum <= s; t++)
                if (plain->first_of_zone[s - 1] <= t ||
                    plain->first_of_zone[s - 1] == plain->first_of_zone[t])
                    if (plain->least[k - 1][t] + plain->cost[t][s] < plain->least[k][s])
                        plain->least[k][s] = plain->least[k - 1][t] + plain->cost[t][s];
        }
}

static inline void fill_costs(struct plain *plain) {
    for (size_t a = 0; a < plain->n; a++)
        for (size_t b = a + 1; b <= plain->n; b++)
            plain->cost[a][b] = line_rss(plain, a, b);
}

/* Steps and bends at random places, noise of a random size. */
static inline void make_plain(struct plain *plain, bool wide, size_t most) {
    *plain = (struct plain){.n = 10 + random_below(most - 10), .minimum = 2 + random_below(3)};
    double x = test_random(), level = 2, slope = 1, noise = pow(10, -4 * test_random());
    for (size_t i = 0; i < plain->n; i++) {
        if (random_below(8) == 0) {
            level = 1 + 3 * test_random();
            slope = 2 * test_random();
        }
        x = wide ? x * (1.1 + test_random()) : x + 0.1 + test_random();
        plain->x[i] = x;
        plain->y[i] = level + slope * (wide ? log(x) : x) + noise * (test_random() - 0.5);
        plain->weight[i] = 1;
    }
}

/* ---- Asking the plugin */

static inline struct host_table table_of(const double *x, const double *y, size_t rows) {
    return (struct host_table){
        .names = {"size", "time"}, .columns = {x, y}, .column_count = 2, .rows = rows, .response = "time"};
}

static inline void set(struct host_table *table, const char *name, double value) {
    table->settings[table->setting_count] = name;
    table->values[table->setting_count++] = value;
}

static inline void ask(const struct host_table *table) {
    host_fit(fit, table, &result);
    if (result.code < 0)
        fail_msg("%s", result.message.text);
    if (!result.groups[0].fitted)
        fail_msg("%s", result.groups[0].reason);
}

static inline double total(void) {
    return host_value(&result.groups[0], "total_rss");
}

static inline void assert_near(double found, double expected, double tolerance) {
    if (!(fabs(found - expected) <= tolerance * fabs(expected)))
        fail_msg("%.17g; expected %.17g", found, expected);
}

/* ---- Beginning and end */

static inline int load_piecewise(void **state) {
    (void)state;
    return fit_library_open("fit-piecewise");
}

#endif
