/* Finds the breaks, fits the lines, and describes the fit as a whole. */
#include "plugins/fit-piecewise/piecewise.h"

#include <stdlib.h>
#include <string.h>

/* A sum of squares up to this share of the response's is rounding. */
static const double rounding = 1e-28;

struct work {
    const struct fit_request *request;
    struct segmentation *result;
    size_t *borders; /* breaks that are given, as points; those beside all points are none */
    double price;    /* what a break more costs in the criterion */
    struct plugin_message *message;
};

/* ---- Given breaks */

/* Converts the given breaks to points; breaks without points on both sides are counted and ignored. */
static void find_borders(struct work *work) {
    const struct plugin_value *given = &work->request->values[BREAKS];
    const struct points *points = &work->result->points;
    size_t at = 0, count = 0;
    for (size_t i = 0; i < given->count; i++) {
        while (at < points->count && points->x[at] < given->numbers[i])
            at++;
        if (at == (count ? work->borders[count - 1] : 0) || at == points->count)
            work->result->breaks_outside++;
        else
            work->borders[count++] = at;
    }
    work->result->points.problem.given = work->borders;
    work->result->points.problem.given_count = count;
}

/* -EDOM if lines cannot be fitted: too few values, or too many segments. */
static int check_points(const struct work *work) {
    const struct points *points = &work->result->points;
    const struct segments_problem *problem = &points->problem;
    const char *size = work->request->values[SIZE].text;
    size_t segments = (size_t)piecewise_number(work->request, SEGMENTS), most = segments_most(problem);
    if (points->count == 0)
        return plugin_refuse(work->message, -EDOM, "no row has a response above 0");
    if (points->count == 1)
        return plugin_refuse(work->message, -EDOM,
                             "%.100s is %.10g in all rows; a line needs at least two different "
                             "values",
                             size, points->x[0]);
    if (problem->given_count == 0 && most == 0)
        return plugin_refuse(work->message, -EDOM,
                             "%zu different values of %.100s; a segment needs at least %zu "
                             "(parameter minimum)",
                             points->count, size, problem->minimum);
    if (segments > most)
        return plugin_refuse(work->message, -EDOM,
                             "%zu segments of at least %zu values are too many for %zu different "
                             "values of %.100s; at most %zu segments are possible",
                             segments, problem->minimum, points->count, size, most);
    for (size_t i = 0; i <= problem->given_count; i++) {
        size_t begin = i > 0 ? work->borders[i - 1] : 0;
        if ((i < problem->given_count ? work->borders[i] : points->count) - begin < 2)
            return plugin_refuse(work->message, -EDOM,
                                 "a segment between the given breaks has the single value %.100s = "
                                 "%.10g; a line needs at least two: remove a break",
                                 size, points->x[begin]);
    }
    return 0;
}

/* ---- Finding breaks */

/* Finds the best breaks, or, with given breaks alone, keeps these. -EDOM: sums overflow. */
static int find_breaks(const struct work *work, struct segments *ret) {
    struct segments_problem problem = work->result->points.problem;
    size_t segments = (size_t)piecewise_number(work->request, SEGMENTS);
    bool only_given =
        work->request->values[BREAKS].count > 0 && piecewise_number(work->request, BETWEEN) == 0;
    problem.penalty = only_given ? INFINITY : work->price;
    int r = segments > 0 ? segments_exactly(&problem, segments, ret) : segments_best(&problem, ret);
    return r == -EINVAL
               ? plugin_refuse(work->message, -EDOM, "sums over the rows exceed the range of a double")
               : r;
}

/* Makes a part of each segment, with bounds and name. -ENOMEM. */
static int set_parts(struct work *work, const struct segments *segments) {
    struct segmentation *result = work->result;
    const struct plugin_value *given = &work->request->values[BREAKS], *names = &work->request->values[NAMES];
    const double *x = result->points.x;
    size_t zone = 0; /* how many given breaks there are up to here */
    result->parts = calloc(segments->count, sizeof *result->parts);
    result->count = segments->count;
    result->places = segments->places;
    for (size_t i = 0; result->parts && i < result->count; i++) {
        struct part *part = &result->parts[i];
        part->begin = segments->segments[i].begin;
        part->end = segments->segments[i].end;
        while (zone < given->count && given->numbers[zone] <= x[part->begin])
            zone++;
        part->is_given = part->begin > 0 && zone > 0 && x[part->begin - 1] < given->numbers[zone - 1];
        part->from = part->is_given ? given->numbers[zone - 1] : x[part->begin];
        if (names->count > 0 && strcmp(names->texts[zone], "-") != 0)
            part->name = names->texts[zone];
        part->low = part->high = part->noise = NAN;
    }
    return result->parts ? 0 : -ENOMEM;
}

/* Fits the line of a part, with the standard errors of R's lm. */
static void fit_line(const struct points *points, struct part *part) {
    struct segment line;
    double scatter = 0, squares = 0;
    part->freedom = -2;
    for (size_t i = part->begin; i < part->end; i++) {
        scatter += points->scatter[i];
        squares += points->weight[i] * points->y[i] * points->y[i] + points->scatter[i];
        part->freedom += points->is_raw ? points->copies[i] : 1;
    }
    segments_line(&points->problem, part->begin, part->end, &line);
    double explained = line.slope * line.slope * line.spread;
    part->estimates[0] = line.intercept;
    part->estimates[1] = line.slope;
    part->rss = line.rss + scatter > rounding * squares || isinf(squares) ? line.rss + scatter : 0;
    part->r2 = explained + part->rss > rounding * squares ? explained / (explained + part->rss) : NAN;
    part->sigma = part->freedom > 0 ? sqrt(part->rss / part->freedom) : NAN;
    double variance = part->sigma * part->sigma;
    part->covariance[0] = variance * (1 / line.weight + line.mean * line.mean / line.spread);
    part->covariance[1] = part->covariance[2] = -variance * line.mean / line.spread;
    part->covariance[3] = variance / line.spread;
}

/* Finds the breaks and fits a line between them. */
static int fit_parts(struct work *work) {
    struct segmentation *result = work->result;
    struct segments segments;
    int r = find_breaks(work, &segments);
    r = r < 0 ? r : set_parts(work, &segments);
    segments_clear(&segments);
    for (size_t i = 0; r == 0 && i < result->count; i++) {
        fit_line(&result->points, &result->parts[i]);
        result->rss += result->parts[i].rss;
    }
    return r;
}

/* ---- Intervals and noise */

/* The confidence interval of the break before part I, with other breaks fixed: all places whose likelihood
 * ratio N (R' - R) / R is at most -2 log(1 - sqrt(confidence)) (B. E. Hansen, Econometrica 68 (2000), 575,
 * theorem 2 and table I). Breaks may be treated one by one (J. Bai, P. Perron, Econometrica 66 (1998), 47).
 * ROOM: two numbers a point. */
static void find_interval(const struct work *work, size_t i, double *room) {
    const struct points *points = &work->result->points;
    const struct segments_problem *problem = &points->problem;
    struct part *left = &work->result->parts[i - 1], *right = left + 1;
    size_t count = right->end - left->begin, present = right->begin - left->begin, low = present,
           high = present;
    double *before = room, *after = room + points->count;
    double limit = -2 * log1p(-sqrt(piecewise_number(work->request, CONFIDENCE)));
    segments_scan(problem, left->begin, right->end, false, before);
    segments_scan(problem, left->begin, right->end, true, after);
    double most =
        before[present - 1] + after[count - present - 1] + limit * work->result->rss / problem->measurements;
    for (size_t at = problem->minimum; at + problem->minimum <= count; at++)
        if (before[at - 1] + after[count - at - 1] <= most) {
            low = at < low ? at : low;
            high = at > high ? at : high;
        }
    right->low = points->x[left->begin + low - 1];
    right->high = points->x[left->begin + high];
}

/* Finds the intervals of all breaks that were found, and the likelihood of the response, which makes criteria
 * comparable. -ENOMEM. */
static int find_intervals(struct work *work) {
    struct segmentation *result = work->result;
    const struct points *points = &result->points;
    double *room = malloc(2 * points->count * sizeof *room), n = points->problem.measurements;
    for (size_t i = 1; room && i < result->count; i++)
        if (!result->parts[i].is_given)
            find_interval(work, i, room);
    result->log_likelihood =
        result->rss > 0 ? (points->log_weights - n * (log(2 * M_PI) + 1 + log(result->rss / n))) / 2 : NAN;
    free(room);
    return room ? 0 : -ENOMEM;
}

/* The scatter of rows about the line of their part; relative to the line if RELATIVE, or to the mean at an x
 * where the line is below a hundredth of it, so that one bad x does not dominate. */
static void measure_noise(const struct points *points, bool relative, struct part *part) {
    double squares = 0, rows = 0;
    for (size_t k = part->begin; k < part->end; k++) {
        double line = part_at(part, points->x[k]), mean = points->mean[k];
        double unit = !relative ? 1 : line > mean / 100 ? line : mean;
        double distance = part->rss > 0 ? mean - line : 0; /* else it is rounding */
        squares += (points->within[k] + points->copies[k] * distance * distance) / unit / unit;
        rows += points->copies[k];
    }
    part->noise = rows > 2 ? sqrt(squares / (rows - 2)) : NAN;
}

/* ---- The segmentation */

/* Finds breaks and lines of a group (segmentation.h). -EDOM, -ENOMEM. To be cleared after failures too. */
int segmentation_fit(const struct fit_rows *rows, const struct fit_request *request, struct segmentation *ret,
                     struct plugin_message *message) {
    *ret = (struct segmentation){0};
    struct work work = {.request = request,
                        .result = ret,
                        .borders = calloc(request->values[BREAKS].count + 1, sizeof *work.borders),
                        .message = message};
    bool is_aic = piecewise_number(request, CRITERION) == CRITERION_AIC;
    double per_break = piecewise_number(request, PER_BREAK);
    int r = work.borders ? points_make(rows, request, &ret->points) : -ENOMEM;
    if (r == 0) {
        work.price = per_break * (is_aic ? 2 : log(ret->points.problem.measurements));
        find_borders(&work);
        r = check_points(&work);
    }
    r = r < 0 ? r : fit_parts(&work);
    r = r < 0 ? r : find_intervals(&work);
    ret->parameters = 3 + per_break * ((double)ret->count - 1);
    for (size_t i = 0; r == 0 && !rows->weights && i < ret->count; i++)
        measure_noise(&ret->points, is_relative(request), &ret->parts[i]);
    free(work.borders);
    return r;
}

void segmentation_clear(struct segmentation *segmentation) {
    points_clear(&segmentation->points);
    free(segmentation->parts);
}
