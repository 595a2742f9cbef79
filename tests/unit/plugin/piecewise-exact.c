/* Segmented lines of real message times against the global optimum for 0 to 8 breaks (data/README.md):
 * residual sums of squares to 1e-9, breaks equal, lines to 1e-9. Skipped, aloud, where the data is not. */
#include "tests/test.h"
#include "tests/unit/plugin/fit-library.h"

#include <unistd.h>

enum { ROWS = 2000, LINES = 2000, BREAKS = 8, BIC = 0, RELATIVE = 2, RSS = 4 };

/* One table's lines of segments_optimum_lines.csv. */
struct answer {
    char dataset[64], criterion[16];
    int breaks, segment;
    double least, greatest, points, intercept, slope, rss;
};

struct total {
    char dataset[64], criterion[16];
    double n, breaks, rss, bic_strucchange, bic_pycewise;
};

static const char *data;
static struct answer answers[LINES];
static struct total totals[LINES];
static size_t answer_count, total_count;
static double sizes[ROWS], durations[ROWS];
static size_t compared;

static FILE *open_data(const char *name) {
    char path[8192], header[1024];
    snprintf(path, sizeof path, "%s/mpi/%s", data, name);
    FILE *file = fopen(path, "r");
    assert_non_null(file);
    assert_non_null(fgets(header, sizeof header, file));
    return file;
}

static void read_answers(void) {
    FILE *file = open_data("segments_optimum_lines.csv");
    struct answer *a = answers;
    while (fscanf(file, "%63[^,],%15[^,],%d,%d,%lf,%lf,%lf,%lf,%lf,%lf\n", a->dataset, a->criterion,
                  &a->breaks, &a->segment, &a->least, &a->greatest, &a->points, &a->intercept, &a->slope,
                  &a->rss) == 10)
        a++;
    answer_count = (size_t)(a - answers);
    fclose(file);
    file = open_data("segments_optimum.csv");
    char line[1024], *rest;
    while (fgets(line, sizeof line, file)) {
        struct total *t = &totals[total_count++];
        assert_int_equal(sscanf(line, "%63[^,],%15[^,],%lf,%lf,%lf,", t->dataset, t->criterion, &t->n,
                                &t->breaks, &t->rss),
                         5);
        rest = strrchr(line, ',');
        t->bic_pycewise = strtod(rest + 1, NULL);
        *rest = '\0';
        t->bic_strucchange = strtod(strrchr(line, ',') + 1, NULL);
    }
    fclose(file);
}

/* "pycewise_data:dahu/isend" is a part of dahu_gros.csv; other names are files. */
static size_t read_table(const char *dataset) {
    char name[128], cluster[32], experiment[32], row_experiment[32], row_cluster[32];
    size_t rows = 0;
    if (sscanf(dataset, "pycewise_data:%31[^/]/%31s", cluster, experiment) == 2) {
        FILE *file = open_data("dahu_gros.csv");
        while (fscanf(file, "%31[^,],%31[^,],%lf,%lf\n", row_experiment, row_cluster, &sizes[rows],
                      &durations[rows]) == 4)
            rows += strcmp(cluster, row_cluster) == 0 && strcmp(experiment, row_experiment) == 0;
        fclose(file);
        return rows;
    }
    snprintf(name, sizeof name, "%s.csv", dataset);
    FILE *file = open_data(name);
    while (fscanf(file, "%lf,%lf\n", &sizes[rows], &durations[rows]) == 2)
        rows++;
    fclose(file);
    return rows;
}

static struct host_table table_of(size_t rows, double criterion, double segments, double minimum) {
    return (struct host_table){
        .names = {"size", "duration"},
        .columns = {sizes, durations},
        .column_count = 2,
        .rows = rows,
        .response = "duration",
        .settings = {"criterion", "segments", "minimum"},
        .values = {criterion, segments, minimum},
        .setting_count = 3,
    };
}

static void compare(double found, double expected, double tolerance, const char *what, const char *where) {
    compared++;
    char name[256];
    snprintf(name, sizeof name, "%s of %s", what, where);
    assert_close(found, expected, tolerance, name);
}

static double part_value(const struct host_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    return -12345;
}

/* The lines of one answer, as they stand one after the other. */
static void check_lines(const struct answer *lines, size_t count) {
    char where[128];
    snprintf(where, sizeof where, "%s, %s, %zu breaks", lines->dataset, lines->criterion, count - 1);
    assert_int_equal(result.groups[0].part_count, count);
    for (size_t i = 0; i < count; i++) {
        const struct host_part *part = &result.groups[0].parts[i];
        assert_string_equal(part->kind, "segment");
        assert_true(i == 0 ? part->from == -INFINITY : part->from == lines[i].least);
        assert_true(i + 1 == count ? part->to == INFINITY : part->to == lines[i + 1].least);
        assert_true(part_value(part, "points") == lines[i].points);
        compare(part->estimates[0].estimate, lines[i].intercept, 1e-9, "intercept", where);
        compare(part->estimates[1].estimate, lines[i].slope, 1e-9, "slope", where);
        /* Of few points: a sum of squares of nothing is not asked to be exact. */
        if (lines[i].points > 2)
            compare(part_value(part, "rss"), lines[i].rss, 1e-9, "rss of a segment", where);
        if (i > 0) {
            double low = part_value(part, "break_low"), high = part_value(part, "break_high");
            assert_true(low < part->from && high >= part->from);
        }
    }
}

TEST(optima) {
    char read[64] = "";
    size_t rows = 0;
    for (size_t first = 0, next; first < answer_count; first = next) {
        const struct answer *lines = &answers[first];
        for (next = first + 1; next < answer_count && answers[next].segment > 0; next++)
            ;
        if (strcmp(read, lines->dataset) != 0)
            rows = read_table(lines->dataset);
        snprintf(read, sizeof read, "%s", lines->dataset);
        bool relative = strcmp(lines->criterion, "rel") == 0;
        double minimum = strcmp(lines->criterion, "ols_min2") == 0 ? 2 : 3;
        struct host_table table = table_of(rows, relative ? RELATIVE : RSS, lines->breaks + 1, minimum);
        host_fit(fit, &table, &result);
        assert_int_equal(result.code, 0);
        assert_true(result.groups[0].fitted);
        check_lines(lines, next - first);
        const struct total *total = NULL;
        for (size_t i = 0; i < total_count; i++)
            if (strcmp(totals[i].dataset, lines->dataset) == 0 &&
                strcmp(totals[i].criterion, lines->criterion) == 0 && totals[i].breaks == lines->breaks)
                total = &totals[i];
        assert_non_null(total);
        assert_true((double)rows == total->n);
        compare(host_value(&result.groups[0], "total_rss"), total->rss, 1e-9, "rss", lines->dataset);
        if (!relative)
            compare(host_value(&result.groups[0], "bic"),
                    total->bic_pycewise + total->n * (log(2 * M_PI) + 1), 1e-9, "BIC", lines->dataset);
    }
    assert_true(compared > 1000);
}

/* The number of segments is that of the least BIC among those that are told; as pycewise counts (4 a break)
 * and as strucchange does (3). */
TEST(numbers) {
    for (size_t first = 0; first + BREAKS < total_count; first += BREAKS + 1) {
        const struct total *total = &totals[first];
        if (strcmp(total->criterion, "ols_min2") ==
            0) /* with two points a segment the least is at no residual */
            continue;
        size_t rows = read_table(total->dataset);
        bool relative = strcmp(total->criterion, "rel") == 0;
        for (int counting = 3; counting <= 4; counting++) {
            size_t best = 0;
            for (size_t m = 1; m <= BREAKS; m++)
                if (counting == 3 ? total[m].bic_strucchange < total[best].bic_strucchange
                                  : total[m].bic_pycewise < total[best].bic_pycewise)
                    best = m;
            struct host_table table = table_of(rows, relative ? RELATIVE : BIC, 0, 3);
            table.settings[3] = "per_break";
            table.values[3] = counting;
            table.settings[4] = "most";
            table.values[4] = BREAKS + 1;
            table.setting_count = 5;
            host_fit(fit, &table, &result);
            assert_int_equal(result.groups[0].part_count, best + 1);
        }
    }
}

static int set_up(void **state) {
    if (!(data = test_data()))
        exit(77);
    if (fit_library_open("fit-piecewise") < 0)
        return -1;
    read_answers();
    return 0;
}

TEST_GROUP(set_up, fit_library_close)
