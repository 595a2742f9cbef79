/*
 * How often 95 % intervals of fit-linear hold, with noise=auto: of the mean, of one measurement, and of both
 * by draws of the model, as 'assay predict --draws' makes them.
 *
 *     coverage FOLDER SIMULATIONS [SEED CELLS]      FOLDER: scratch; ASSAY_BUILD names the build tree
 *
 * Without SEED the cells are those of listed_cell(), on which the settings of noise=auto were chosen. With
 * SEED they are CELLS cells that random_cell() draws, so that settings can be judged on others than these;
 * COVERAGE_ALL in the environment prints each share. A measurement whose sigma is not defined counts as
 * outside. Each cell is a truth, a distribution of sizes and of noise and a number of rows; its data sets are
 * the groups of one table. Judged at the smallest, a middle and the largest size. Prints the worst cells,
 * then the figures coverage_worst_low, coverage_worst_high (cells with 8 rows a coefficient or more) and
 * coverage_few_rows_width: of cells with fewer rows, the mean width of the interval of the mean over that
 * with known variances.
 */
#include "engine/fit/fit.h"
#include "engine/foundation/cleanup.h"
#include "engine/model/interval.h"
#include "engine/model/model.h"
#include "engine/model/noise.h"
#include "engine/numerics/distribution.h"
#include "engine/numerics/least-squares.h"
#include "engine/numerics/random.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { TERMS_MAX = 5, POINTS = 3, DRAWS = 39, KINDS = 4, ROWS_A_COEFFICIENT = 8 };

struct truth {
    const char *name, *terms, *bounds;
    size_t count; /* of terms */
    double b[TERMS_MAX];
};

static const struct truth truths[] = {
    {"M-2", "1 + m*n*k + m*n + m*k + n*k", "none", 5, {4e-4, 6.9e-11, 5.8e-11, 2.4e-9, 3.2e-9}},
    {"1+n", "1 + n", "none", 2, {4e-4, 3e-6}},
    {"m*n*k alone", "1 + m*n*k + m*n + m*k + n*k", "none", 5, {1e-5, 7e-11}},
    {"m*n*k alone, bounded", "1 + m*n*k + m*n + m*k + n*k", "nonnegative", 5, {1e-5, 7e-11}},
};

struct cell {
    const struct truth *truth;
    bool log_uniform, half_normal;
    char noise; /* c: constant, p: in proportion to the mean, m: mixed, s: mixed, the constant a tenth of m's
                 */
    size_t rows;
    const char *distribution; /* that the fit is told */
    double largest, level;    /* the greatest size; noise in proportion to the mean */
};

static const char *const places[POINTS] = {"smallest", "middle", "largest"};
static const char *const kinds[KINDS] = {"mean", "measurement", "mean by draws", "measurement by draws"};

static void terms_at(const struct truth *truth, const double *sizes, double *ret) {
    double m = sizes[0], n = sizes[1], k = sizes[2];
    const double all[TERMS_MAX] = {1, m * n * k, m * n, m * k, n * k}, line[2] = {1, n};
    memcpy(ret, truth->count == 2 ? line : all, truth->count * sizeof *ret);
}

static double mean_at(const struct truth *truth, const double *sizes) {
    double terms[TERMS_MAX], sum = 0;
    terms_at(truth, sizes, terms);
    for (size_t t = 0; t < truth->count; t++)
        sum += truth->b[t] * terms[t];
    return sum;
}

/* The size in all columns. */
static void point(const struct cell *cell, size_t i, double *ret) {
    const double most = cell->largest;
    const double size[POINTS] = {64, floor(cell->log_uniform ? sqrt(64 * most) : (64 + most) / 2), most};
    ret[0] = ret[1] = ret[2] = size[i];
}

static double sigma_at(const struct cell *cell, const double *sizes) {
    double middle[3];
    point(cell, 1, middle);
    double constant = cell->noise == 'm' ? 4e-4 : cell->noise == 's' ? 4e-5 : 0;
    return cell->noise == 'c' ? 2 * cell->level / 3 * mean_at(cell->truth, middle)
                              : cell->level * mean_at(cell->truth, sizes) + constant;
}

static double draw_noise(const struct cell *cell, struct random_stream *stream) {
    double z = random_stream_normal(stream), two_over_pi = 2 / M_PI;
    return cell->half_normal ? (fabs(z) - sqrt(two_over_pi)) / sqrt(1 - two_over_pi) : z;
}

/* Writes the table; adds the half widths of intervals with known variances to KNOWN. */
static int write_table(const struct cell *cell, const char *path, size_t simulations,
                       struct random_stream *stream, double *known) {
    FILE *file = fopen(path, "w");
    size_t n = cell->rows, p = cell->truth->count;
    cleanup_free double *x = malloc((p + 2) * n * sizeof *x);
    if (!file || !x)
        return -1;
    fprintf(file, "set,m,n,k,y\n");
    for (size_t s = 0; s < simulations; s++) {
        for (size_t i = 0; i < n; i++) {
            double sizes[3], terms[TERMS_MAX];
            for (size_t j = 0; j < 3; j++) {
                double u = random_stream_uniform(stream);
                sizes[j] = floor(cell->log_uniform ? 64 * pow((cell->largest + 1) / 64, u)
                                                   : 64 + (cell->largest - 63) * u);
            }
            double sigma = sigma_at(cell, sizes),
                   y = mean_at(cell->truth, sizes) + sigma * draw_noise(cell, stream);
            fprintf(file, "%zu,%g,%g,%g,%.12g\n", s, sizes[0], sizes[1], sizes[2], y);
            terms_at(cell->truth, sizes, terms);
            for (size_t t = 0; t < p; t++)
                x[t * n + i] = terms[t];
            x[p * n + i] = y;
            x[(p + 1) * n + i] = 1 / sigma / sigma;
        }
        cleanup(least_squares_clear) struct least_squares sums;
        cleanup(least_squares_fit_clear) struct least_squares_fit fit = {0};
        if (n >= ROWS_A_COEFFICIENT * p)
            continue;
        if (least_squares_init(&sums, p) < 0 ||
            least_squares_append(&sums, n, x, n, x + p * n, x + (p + 1) * n) < 0 ||
            least_squares_solve(&sums, NULL, &fit) < 0)
            return -1;
        for (size_t i = 0; i < POINTS; i++) {
            double sizes[3], terms[TERMS_MAX], variance = 0;
            point(cell, i, sizes);
            terms_at(cell->truth, sizes, terms);
            for (size_t t = 0; t < p * p; t++)
                variance += terms[t / p] * fit.covariance[t] * terms[t % p];
            known[i] += 1.96 * sqrt(variance);
        }
    }
    return fclose(file);
}

static double seeded_normal(void *seed, const char *name, uint64_t index) {
    struct random_stream stream;
    random_stream_init(&stream, *(uint64_t *)seed, name, index);
    return random_stream_normal(&stream);
}

struct worst {
    double low, high, width;
    char low_name[160], high_name[160];
};

/* What is counted of one cell. */
struct counts {
    size_t inside[POINTS][KINDS];
    double width[POINTS], known[POINTS];
};

static void count_intervals(const struct cell *cell, const struct evaluator *evaluator,
                            const struct model *model, struct random_stream *stream, struct counts *counts,
                            double *truth, double *next) {
    for (size_t i = 0; i < POINTS; i++) {
        double sizes[3], inputs[3], ends[2];
        point(cell, i, sizes);
        memcpy(inputs, sizes, sizeof inputs);
        for (size_t g = 0; g < model->group_count; g++) {
            struct evaluator_value value;
            size_t at = i * model->group_count + g;
            evaluator_predict(evaluator, &model->groups[g], inputs, &value);
            struct uncertainty uncertainty =
                uncertainty_find(evaluator, &model->groups[g], inputs, &value, 1);
            truth[at] = mean_at(cell->truth, sizes);
            next[at] = truth[at] + sigma_at(cell, sizes) * draw_noise(cell, stream);
            interval_of_mean(&uncertainty, ends);
            counts->width[i] += ends[1];
            counts->inside[i][0] += truth[at] >= value.mean + ends[0] && truth[at] <= value.mean + ends[1];
            interval_of_measurement(&uncertainty, ends);
            counts->inside[i][1] += next[at] >= value.mean + ends[0] && next[at] <= value.mean + ends[1];
        }
    }
}

/* Between the least and the greatest of 39 draws 38 of 40 values like them lie. */
static void count_draws(const struct evaluator *evaluator, const struct model *model, const struct cell *cell,
                        struct random_stream *stream, struct counts *counts, const double *truth,
                        const double *next) {
    size_t all = POINTS * model->group_count;
    cleanup_free size_t *below = calloc(2 * all, sizeof *below);
    for (uint64_t draw = 1; draw <= DRAWS; draw++) {
        uint64_t seed = random_stream_bits(stream);
        struct model *drawn = model_draw(model, seeded_normal, &seed);
        for (size_t at = 0; at < all; at++) {
            double sizes[3], mean, sigma;
            const struct model_group *group = &drawn->groups[at % model->group_count];
            point(cell, at / model->group_count, sizes);
            evaluator_row(evaluator, group, sizes, &mean, &sigma);
            double offset = noise_draw(&group->parts[0].noise, sigma, random_stream_normal(stream), 0);
            below[at] += mean < truth[at];
            below[all + at] += mean + (isfinite(offset) ? offset : 0) < next[at];
        }
        model_draw_free(drawn);
    }
    for (size_t at = 0; at < 2 * all; at++)
        counts->inside[at % all / model->group_count][2 + at / all] += below[at] > 0 && below[at] < DRAWS;
}

static int fit_cell(const struct cell *cell, const struct library *library, const char *path,
                    struct fit **ret, struct failure *failure) {
    char bounds[32], distribution[32];
    const char *const by[] = {"set"}, *const settings[] = {bounds, distribution};
    const struct fit_options options = {.response = "y",
                                        .terms = cell->truth->terms,
                                        .by = by,
                                        .by_count = 1,
                                        .settings = settings,
                                        .setting_count = 2,
                                        .seed = 1};
    cleanup(table_cleanup) struct table *table = NULL;
    snprintf(bounds, sizeof bounds, "bounds=%s", cell->truth->bounds);
    snprintf(distribution, sizeof distribution, "distribution=%s", cell->distribution);
    int r = table_open(&path, 1, NULL, &table, failure);
    return r < 0 ? r : fit_run(library, table, &options, ret, failure);
}

static int judge_cell(const struct cell *cell, const struct library *library, const char *path,
                      size_t simulations, uint64_t seed, struct worst *worst, struct failure *failure) {
    struct random_stream stream;
    struct counts counts = {0};
    cleanup(fit_cleanup) struct fit *fit = NULL;
    cleanup(evaluator_cleanup) struct evaluator *evaluator = NULL;
    random_stream_init(&stream, seed, "coverage", 0);
    if (write_table(cell, path, simulations, &stream, counts.known) < 0)
        return failure_set(failure, -EIO, "cannot write %s", path);
    int r = fit_cell(cell, library, path, &fit, failure);
    r = r < 0 ? r : evaluator_new(fit->model, &evaluator, failure);
    if (r < 0)
        return r;
    size_t groups = fit->model->group_count;
    cleanup_free double *truth = calloc(2 * POINTS * groups, sizeof *truth);
    count_intervals(cell, evaluator, fit->model, &stream, &counts, truth, truth + POINTS * groups);
    count_draws(evaluator, fit->model, cell, &stream, &counts, truth, truth + POINTS * groups);
    bool few = cell->rows < ROWS_A_COEFFICIENT * cell->truth->count;
    for (size_t i = 0; i < POINTS; i++) {
        for (size_t k = 0; k < KINDS; k++) {
            double share = (double)counts.inside[i][k] / (double)groups;
            char name[160];
            snprintf(name, sizeof name,
                     "%s, %s sizes to %g, noise %c %g %s, fit as %s, %zu rows: %s at the %s size",
                     cell->truth->name, cell->log_uniform ? "log-uniform" : "uniform", cell->largest,
                     cell->noise, cell->level, cell->half_normal ? "half-normal" : "normal",
                     cell->distribution, cell->rows, kinds[k], places[i]);
            if (getenv("COVERAGE_ALL"))
                printf("%.4f %s\n", share, name);
            if (share < worst->low) {
                worst->low = share;
                memcpy(worst->low_name, name, sizeof name);
            }
            if (!few && share > worst->high && strcmp(cell->truth->bounds, "none") == 0) {
                worst->high = share;
                memcpy(worst->high_name, name, sizeof name);
            }
        }
        if (few && strcmp(cell->truth->bounds, "none") == 0)
            worst->width = fmax(worst->width, counts.width[i] / counts.known[i]);
    }
    return 0;
}

/* The cell I of those that every run of the benchmark has; a truth of NULL: it is left out. */
static struct cell listed_cell(size_t i) {
    static const size_t rows[] = {30, 60, 200, 1000};
    struct cell ret = {.truth = &truths[i / 48],
                       .rows = rows[i / 12 % 4],
                       .noise = "cpm"[i % 3],
                       .log_uniform = i / 3 % 2,
                       .half_normal = i / 6 % 2,
                       .distribution = "normal",
                       .largest = 3000,
                       .level = 0.03};
    /* The other truths with few rows and normal noise; many rows, which take long, with normal noise. */
    if (ret.half_normal ? i >= 48 || ret.rows == 1000 : i >= 48 && ret.rows > 60)
        ret.truth = NULL;
    return ret;
}

static struct cell random_cell(uint64_t seed, size_t i) {
    static const size_t rows[] = {30, 60, 200, 1000}, sizes[] = {3000, 3000, 30000};
    static const double levels[] = {0.01, 0.03, 0.1};
    struct random_stream stream;
    size_t d[8];
    random_stream_init(&stream, seed, "cell", i);
    for (size_t k = 0; k < 8; k++)
        d[k] = (size_t)(random_stream_uniform(&stream) * 12);
    return (struct cell){.truth = &truths[d[0] % 4],
                         .rows = rows[d[1] % 4],
                         .noise = "cpms"[d[2] % 4],
                         .log_uniform = d[3] % 2,
                         .half_normal = d[4] < 6,
                         .distribution = d[4] < 3 ? "half-normal" : "normal",
                         .largest = (double)sizes[d[5] % 3],
                         .level = levels[d[6] % 3]};
}

int main(int argc, char **argv) {
    struct failure failure = {0};
    struct installation installation;
    struct library *library = NULL;
    struct worst worst = {.low = 1};
    char path[4096];
    if (argc != 3 && argc != 5)
        return 2;
    size_t simulations = strtoul(argv[2], NULL, 10);
    uint64_t seed = argc == 5 ? strtoul(argv[3], NULL, 10) : 0;
    size_t cells = argc == 5 ? strtoul(argv[4], NULL, 10) : sizeof truths / sizeof *truths * 48;
    snprintf(path, sizeof path, "%s/coverage.csv", argv[1]);
    int r = installation_init(&installation, getenv("ASSAY_BUILD"), NULL, &failure);
    r = r < 0 ? r : library_open(&installation, "fit", "linear", &library, &failure);
    for (size_t i = 0; r == 0 && i < cells; i++) {
        struct cell cell = argc == 5 ? random_cell(seed, i) : listed_cell(i);
        if (cell.truth)
            r = judge_cell(&cell, library, path, simulations, 1000 * (seed + 1) + i, &worst, &failure);
    }
    if (r < 0) {
        fprintf(stderr, "coverage: %s\n", failure.text);
        return 1;
    }
    printf("least coverage:    %s\ngreatest coverage: %s\n", worst.low_name, worst.high_name);
    printf("figure coverage_worst_low %.4g 1\nfigure coverage_worst_high %.4g 1\nfigure "
           "coverage_few_rows_width %.3g 1\n",
           worst.low, worst.high, worst.width);
    library_close(library);
    installation_clear(&installation);
    return 0;
}
