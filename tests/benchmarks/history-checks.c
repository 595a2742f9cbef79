/*
 * What the benchmark `history` measures within one process.
 *
 *     history-checks rates SERIES        false alarms and power of shift_find() at its default
 *     history-checks rows ROWS           CPU s of non_regression_check(): series of 212 rows, 4 factors one
 * by one history-checks add ARCHIVE TIMES   CPU s of adding an archive so many times, each in place of the
 * last
 */
#include "engine/foundation/cleanup.h"
#include "engine/history/non-regression.h"
#include "engine/history/shift.h"
#include "engine/history/store.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { LENGTH = 60, SERIES_ROWS = 212, FACTORS = 4, KINDS = 3 };
static const double P_MOST = 0.0005; /* as 'assay history check' has it */

static uint64_t state = 1;

static double uniform(void) {
    uint64_t z = state += 0x9e3779b97f4a7c15; /* splitmix64 */
    z = (z ^ z >> 30) * 0xbf58476d1ce4e5b9;
    z = (z ^ z >> 27) * 0x94d049bb133111eb;
    return ((double)((z ^ z >> 31) >> 11) + 0.5) / 9007199254740992.0;
}

static double normal(void) {
    double radius = sqrt(-2 * log(uniform()));
    return radius * cos(2 * M_PI * uniform());
}

static double cpu_seconds(void) {
    struct timespec now;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &now);
    return (double)now.tv_sec + (double)now.tv_nsec / 1e9;
}

/* A series with noise of 1 % that is SHIFT per cent higher from its middle on. KIND 0: independent rows; 1:
 * lag-1 correlation 0.3; 2: 2 % of the rows are 10 % off. */
static void draw(int kind, double shift, double *ret) {
    double rest = normal(), correlation = kind == 1 ? 0.3 : 0;
    for (int i = 0; i < LENGTH; i++) {
        rest = i > 0 ? correlation * rest + sqrt(1 - correlation * correlation) * normal() : rest;
        ret[i] = 100 + rest + (i < LENGTH / 2 ? 0 : shift);
        if (kind == 2 && uniform() < 0.02)
            ret[i] += uniform() < 0.5 ? -10 : 10;
    }
}

/* The share of SERIES in which a change is found; of these the share of intervals that have it to
 * RET_COVERED. */
static double find(int kind, double shift, int series, double *ret_covered) {
    double values[LENGTH], found = 0, covered = 0;
    for (int i = 0; i < series; i++) {
        struct shift at;
        draw(kind, shift, values);
        if (shift_find(values, LENGTH, &at) < 0 || at.p >= P_MOST)
            continue;
        found++;
        covered += at.low <= shift && shift <= at.high;
    }
    *ret_covered = found > 0 ? covered / found : NAN;
    return found / series;
}

static int rates(int series) {
    static const char *const kinds[] = {"independent", "correlated", "outliers"};
    static const double shifts[] = {1, 2, 5};
    double most = 0, covered;
    for (int kind = 0; kind < KINDS; kind++) {
        double share = find(kind, 0, series, &covered);
        printf("%s: %g false alarms per 1,000 series", kinds[kind], 1000 * share);
        most = fmax(most, share);
        for (int i = 0; i < 3; i++) {
            double power = find(kind, shifts[i], series / 10, &covered);
            printf("; %g %% found in %.3g %%, interval holds in %.3g %%", shifts[i], 100 * power,
                   100 * covered);
        }
        putchar('\n');
    }
    printf("false_alarms_per_1000 %g\n", 1000 * most);
    for (int i = 0; i < 3; i++)
        printf("power_%g_percent %g\n", shifts[i], find(0, shifts[i], series / 10, &covered));
    return 0;
}

static int rows(size_t count) {
    const struct non_regression_rule rule = {.confidence = 0.9999, .least = 10, .keep = 5, .window = 5};
    static double values[SERIES_ROWS];
    static struct non_regression_row marks[SERIES_ROWS];
    static struct non_regression_verdict verdicts[SERIES_ROWS];
    size_t found = 0;
    marks[100].is_cut = true;
    for (size_t done = 0; done < FACTORS * count; done += SERIES_ROWS) {
        for (size_t i = 0; i < SERIES_ROWS; i++)
            values[i] = 100 + normal();
        if (non_regression_check(&rule, SERIES_ROWS, 1, values, marks, verdicts) < 0)
            return 1;
        for (size_t i = 0; i < SERIES_ROWS; i++)
            found += verdicts[i].single.sign > NON_REGRESSION_NORMAL;
    }
    fprintf(stderr, "%zu of %zu rows deviate\n", found, FACTORS * count);
    printf("%.3f\n", cpu_seconds());
    return 0;
}

static int add(const char *archive, int times) {
    cleanup(history_store_cleanup) struct history_store *store = NULL;
    struct failure failure = {0};
    struct history_addition addition;
    int r = history_store_open("history.sqlite", true, &store, &failure);
    for (int i = 0; r == 0 && i < times; i++) {
        r = i % 64 == 0 ? history_store_begin(store, &failure) : 0;
        r = r < 0 ? r : history_store_add(store, archive, true, &addition, &failure);
        if (r == 0 && (i % 64 == 63 || i == times - 1))
            r = history_store_commit(store, &failure);
    }
    if (r < 0)
        fprintf(stderr, "history-checks: %s\n", failure.text);
    printf("%.3f\n", cpu_seconds());
    return r < 0;
}

int main(int count, char **words) {
    if (count == 3 && strcmp(words[1], "rates") == 0)
        return rates((int)strtol(words[2], NULL, 10));
    if (count == 3 && strcmp(words[1], "rows") == 0)
        return rows(strtoul(words[2], NULL, 10));
    if (count == 4 && strcmp(words[1], "add") == 0)
        return add(words[2], (int)strtol(words[3], NULL, 10));
    fprintf(stderr, "usage: history-checks rates SERIES | rows ROWS | add ARCHIVE TIMES\n");
    return 2;
}
