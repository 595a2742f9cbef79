/* The lines of parts whose places are known. */
#include "plugins/fit-piecewise/piecewise.h"

#include "engine/numerics/least-squares.h"

#include <stdlib.h>
#include <string.h>

/* What is this much of the response's squares, and less, is rounding. */
static const double rounding = 1e-28;

/* The line of a part by itself, with the errors of R's lm. */
static void fit_apart(const struct points *points, struct part *part) {
    struct segment line;
    double scatter = 0, squares = 0;
    for (size_t i = part->begin; i < part->end; i++) {
        scatter += points->scatter[i];
        squares += points->weight[i] * points->y[i] * points->y[i] + points->scatter[i];
    }
    segments_line(&points->problem, part->begin, part->end, &line);
    double explained = line.slope * line.slope * line.spread;
    part->estimates[0] = line.intercept;
    part->estimates[1] = line.slope;
    part->rss = line.rss + scatter > rounding * squares || isinf(squares) ? line.rss + scatter : 0;
    part->r2 = explained + part->rss > rounding * squares ? explained / (explained + part->rss) : NAN;
    part->freedom = (double)(points->first[part->end] - points->first[part->begin]) - 2;
    part->sigma = part->freedom > 0 ? sqrt(part->rss / part->freedom) : NAN;
    double variance = part->sigma * part->sigma;
    part->covariance[0] = variance * (1 / line.weight + line.mean * line.mean / line.spread);
    part->covariance[1] = part->covariance[2] = -variance * line.mean / line.spread;
    part->covariance[3] = variance / line.spread;
}

/* ---- Lines that meet: 1, x, and (x - break)+ of each break */

/* The estimates of part I from those of the columns, and their covariance. */
static void take_part(struct segmentation *segmentation, size_t i, const struct least_squares_fit *fit) {
    struct part *part = &segmentation->parts[i];
    double from[LEAST_SQUARES_COLUMNS_MAX][2] = {{1, 0}, {0, 1}}; /* of each column in intercept and slope */
    for (size_t k = 1; k <= i; k++) {
        from[k + 1][0] = -segmentation->parts[k].from;
        from[k + 1][1] = 1;
    }
    memset(part->estimates, 0, sizeof part->estimates);
    memset(part->covariance, 0, sizeof part->covariance);
    for (size_t e = 0; e < 4; e++)
        for (size_t k = 0; k < i + 2; k++) {
            part->estimates[e % 2] += e < 2 ? from[k][e] * fit->estimate[k] : 0;
            for (size_t l = 0; l < i + 2; l++)
                part->covariance[e] +=
                    from[k][e / 2] * fit->covariance[k * fit->columns + l] * from[l][e % 2];
        }
}

/* One sigma of all lines, whose parts had lines by themselves before: what those explain is the r2 of each.
 */
static void take_joined(struct segmentation *segmentation, const struct least_squares_fit *fit) {
    const struct points *points = &segmentation->points;
    double rss = 0, freedom = points->problem.measurements - (double)fit->columns;
    for (size_t i = 0; i < segmentation->count; i++) {
        struct part *part = &segmentation->parts[i];
        double total = part->rss / (1 - part->r2);
        take_part(segmentation, i, fit);
        part->rss = 0;
        for (size_t k = part->begin; k < part->end; k++)
            part->rss +=
                points->weight[k] * pow(points->y[k] - part_at(part, points->x[k]), 2) + points->scatter[k];
        part->r2 = 1 - part->rss / total;
        rss += part->rss;
    }
    for (size_t i = 0; i < segmentation->count; i++) {
        struct part *part = &segmentation->parts[i];
        part->freedom = freedom;
        part->sigma = freedom > 0 ? sqrt(rss / freedom) : NAN;
        for (size_t e = 0; e < 4; e++)
            part->covariance[e] *= part->sigma * part->sigma;
    }
}

static int fit_joined(struct segmentation *segmentation) {
    const struct points *points = &segmentation->points;
    size_t size = segmentation->count + 1;
    struct least_squares sums = {0};
    struct least_squares_fit fit = {0};
    double *columns =
        size <= LEAST_SQUARES_COLUMNS_MAX ? malloc(size * points->count * sizeof *columns) : NULL;
    int r = columns ? least_squares_init(&sums, size) : -ENOMEM;
    for (size_t i = 0; r == 0 && i < points->count; i++) {
        columns[i] = 1;
        columns[points->count + i] = points->x[i];
        for (size_t k = 1; k < segmentation->count; k++)
            columns[(k + 1) * points->count + i] = fmax(points->x[i] - segmentation->parts[k].from, 0);
    }
    r = r < 0 ? r
              : least_squares_append(&sums, points->count, columns, points->count, points->y, points->weight);
    r = r < 0 ? r : least_squares_solve(&sums, NULL, &fit);
    r = r == 0 && fit.rank < size ? -EDOM : r;
    if (r == 0)
        take_joined(segmentation, &fit);
    least_squares_fit_clear(&fit);
    least_squares_clear(&sums);
    free(columns);
    return r;
}

int lines_fit(struct segmentation *segmentation, bool are_joined, struct plugin_message *message) {
    for (size_t i = 0; i < segmentation->count; i++)
        fit_apart(&segmentation->points, &segmentation->parts[i]);
    int r = are_joined && segmentation->count > 1 ? fit_joined(segmentation) : 0;
    return r == 0 || r == -ENOMEM
               ? r
               : plugin_refuse(message, -EDOM, "too few values between the breaks for lines that meet");
}
