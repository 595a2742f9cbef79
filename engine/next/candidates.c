#include "engine/next/candidates.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/foundation/portable-math.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

enum { HALVINGS = 50 }; /* on the way to the border of what is admitted */

bool candidate_range_is_logarithmic(const struct candidate_range *range) {
    return range->low > 0 && range->high / range->low >= CANDIDATES_DECADES;
}

double candidate_range_place(const struct candidate_range *range, double value) {
    if (!(range->high > range->low))
        return 0;
    return candidate_range_is_logarithmic(range)
               ? portable_log(fmax(value, range->low) / range->low) / portable_log(range->high / range->low)
               : (value - range->low) / (range->high - range->low);
}

struct grid {
    const struct candidate_range *ranges;
    size_t range_count, levels;
    candidate_admits admits;
    void *context;
    double *points; /* owned: of each its values, then its share */
    size_t count;
};

static void grid_clear(struct grid *grid) {
    free(grid->points);
}

/* PLACE runs from 0 to 1 over the range. */
static double value_at(const struct candidate_range *range, double place) {
    double low = range->low, high = range->high, value = low + place * (high - low);
    if (candidate_range_is_logarithmic(range)) {
        double from = portable_log(low);
        value = portable_exp(from + place * (portable_log(high) - from));
    }
    value = range->whole ? portable_round(value) : value;
    return place == 0 ? low : place == 1 ? high : fmin(fmax(value, low), high);
}

/* Whether the point at PLACES is admitted; its values into RET. */
static bool admits_point(const struct grid *grid, const double *places, double *ret) {
    for (size_t j = 0; j < grid->range_count; j++)
        ret[j] = value_at(&grid->ranges[j], places[j]);
    return grid->admits(grid->context, ret);
}

/* The places of point I. Returns its share by the trapezoidal rule. */
static double place(const struct grid *grid, size_t i, double *ret) {
    double share = 1;
    for (size_t j = 0; j < grid->range_count; j++, i /= grid->levels) {
        size_t level = i % grid->levels;
        ret[j] = (double)level / (double)(grid->levels - 1);
        share *= level == 0 || level + 1 == grid->levels ? 0.5 : 1;
    }
    return share;
}

/* The last point that is admitted on the way from ANCHOR to CORNER, into RET. */
static void find_border(const struct grid *grid, const double *corner, const double *anchor, double *ret) {
    double places[CANDIDATES_FACTORS_MAX], in = 0, out = 1; /* so far out */
    for (size_t i = 0; i <= HALVINGS; i++) {
        double at = i < HALVINGS ? (in + out) / 2 : in;
        for (size_t j = 0; j < grid->range_count; j++)
            places[j] = anchor[j] + at * (corner[j] - anchor[j]);
        *(admits_point(grid, places, ret) ? &in : &out) = at;
    }
}

/* Makes the points of the grid: admitted ones first; others are moved towards the middle admitted point until
 * they are admitted, with a share of 0. */
static void make_points(struct grid *grid, size_t count) {
    size_t width = grid->range_count + 1, admitted = 0;
    double places[CANDIDATES_FACTORS_MAX], anchor[CANDIDATES_FACTORS_MAX];
    cleanup_free size_t *order = xcalloc(count, sizeof *order); /* admitted ones first, others last */
    grid->points = xcalloc(count * width, sizeof *grid->points);
    for (size_t i = 0, last = count; i < count; i++) {
        double *point = grid->points + admitted * width;
        point[width - 1] = place(grid, i, places);
        order[admits_point(grid, places, point) ? admitted++ : --last] = i;
    }
    if (admitted == 0)
        return;
    place(grid, order[admitted / 2], anchor);
    for (size_t k = admitted; k < count; k++) {
        place(grid, order[k], places);
        grid->points[k * width + width - 1] = 0;
        find_border(grid, places, anchor, grid->points + k * width);
    }
    grid->count = count;
}

static int compare_points(const void *a, const void *b, void *context) {
    const double *one = a, *other = b;
    for (size_t j = 0, width = *(const size_t *)context; j < width; j++)
        if (one[j] != other[j])
            return one[j] < other[j] ? -1 : 1;
    return 0;
}

/* Joins equal points into one, with the sum of their shares. */
static void join_equal(struct grid *grid) {
    size_t values = grid->range_count, width = values + 1, count = 0;
    qsort_r(grid->points, grid->count, width * sizeof(double), compare_points, &values);
    for (size_t i = 0; i < grid->count; i++) {
        double *point = grid->points + i * width, *last = grid->points + (count - (count > 0)) * width;
        if (count > 0 && compare_points(point, last, &values) == 0)
            last[values] += point[values];
        else
            memmove(grid->points + count++ * width, point, width * sizeof *point);
    }
    grid->count = count;
}

/* Makes a design of the points, and lists their shares in *RET_SHARES. The caller frees both. */
static int write_design(const struct grid *grid, struct design **ret, double **ret_shares,
                        struct failure *failure) {
    cleanup(design_cleanup) struct design *design = NULL;
    size_t width = grid->range_count + 1;
    int r = design_new(grid->count, &design, failure);
    for (size_t j = 0; r == 0 && j + 1 < width; j++) {
        const struct candidate_range *range = &grid->ranges[j];
        struct design_column *column = NULL;
        r = design_add_column(design, range->name, range->whole ? COLUMN_INTEGER : COLUMN_NUMBER, &column,
                              failure);
        for (size_t i = 0; r == 0 && i < grid->count; i++)
            if (range->whole)
                column->integers[i] = (int64_t)grid->points[i * width + j];
            else
                column->numbers[i] = grid->points[i * width + j];
    }
    if (r < 0)
        return r;
    *ret_shares = xcalloc(grid->count + 1, sizeof **ret_shares);
    for (size_t i = 0; i < grid->count; i++)
        (*ret_shares)[i] = grid->points[i * width + width - 1];
    *ret = take_pointer(design);
    return 0;
}

/* Makes a grid of the admitted points of RANGES (candidates.h). -EINVAL: too many factors, or no point is
 * admitted. */
int candidates_make(const struct candidate_range *ranges, size_t range_count, candidate_admits admits,
                    void *context, struct design **ret, double **ret_shares, struct failure *failure) {
    if (range_count > CANDIDATES_FACTORS_MAX)
        return failure_input(failure, NULL, 0, 0, "the model has %zu factors; expected at most %d",
                             range_count, CANDIDATES_FACTORS_MAX);
    cleanup(grid_clear) struct grid grid = {
        .ranges = ranges, .range_count = range_count, .levels = 2, .admits = admits, .context = context};
    while (range_count > 0 && grid.levels < CANDIDATES_LEVELS_MAX &&
           portable_power((double)grid.levels + 1, (double)range_count) <= CANDIDATES_GRID)
        grid.levels++;
    size_t count = (size_t)portable_power((double)grid.levels, (double)range_count);
    make_points(&grid, count);
    if (grid.count == 0)
        return failure_input(failure, NULL, 0, 0,
                             "none of %zu points lies in the domain of the model, where "
                             "measurements were made",
                             count);
    join_equal(&grid);
    return write_design(&grid, ret, ret_shares, failure);
}
