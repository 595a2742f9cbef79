#include "plugins/fit-piecewise/segmentation.h"

#include "plugins/fit-piecewise/joined.h"
#include "plugins/numerics/frontier.h"

#include <errno.h>
#include <gsl/gsl_cdf.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* Gauss-Newton steps of the log error. */
enum { LOG_STEPS_QUICK = 20, LOG_STEPS_MAX = 200 };

struct work {
    const struct request *request;
    const struct point_row *rows;
    size_t row_count;
    struct point *plain; /* the measurements themselves */
    double *about;       /* the log error's: the line's value at each point, NaN where it is not above 0 */
    size_t borders[REQUEST_BREAKS_MAX];
    size_t border_names[REQUEST_BREAKS_MAX + 1]; /* of zones: which name of the request */
    size_t border_count;
    bool guessing;             /* the number of segments need not be proven yet */
    struct frontier *frontier; /* of the points as they are bent now */
    struct partition knots;    /* where lines that meet do so; breaks owned */
    struct segmentation *result;
};

static enum points_error error_of(const struct request *request) {
    return request->criterion == CRITERION_RELATIVE ? POINTS_RELATIVE
           : request->criterion == CRITERION_LOG    ? POINTS_LOG
                                                    : POINTS_PLAIN;
}

/* ---- Beginning */

/* Breaks that are given, as places among the points; those beside all points are none. */
static void find_borders(struct work *work) {
    const struct segmentation *result = work->result;
    size_t place = 0;
    for (size_t i = 0; i < work->request->break_count; i++) {
        size_t before = work->border_count ? work->borders[work->border_count - 1] : 0;
        while (place < result->point_count && result->points[place].x < work->request->breaks[i])
            place++;
        if (place == before)
            work->border_names[work->border_count] = i + 1;
        if (place == before || place == result->point_count) {
            work->result->given_left_out++;
            continue;
        }
        work->borders[work->border_count++] = place;
        work->border_names[work->border_count] = i + 1;
    }
}

static bool can_be_fitted(const struct work *work, char *reason) {
    const struct request *request = work->request;
    const struct segmentation *result = work->result;
    const char *over = request->over;
    size_t points = result->point_count;
    if (points == 1)
        snprintf(reason, SEGMENTATION_REASON_SIZE, "%.100s is always %.10g", over, result->points[0].x);
    else if (points > SEGMENTATION_POINTS_MAX)
        snprintf(reason, SEGMENTATION_REASON_SIZE, "%zu different values of %.100s; expected at most %d",
                 points, over, SEGMENTATION_POINTS_MAX);
    else if (work->border_count == 0 && points < request->minimum)
        snprintf(reason, SEGMENTATION_REASON_SIZE, "%zu values of %.100s for a segment of at least %zu",
                 points, over, request->minimum);
    else
        for (size_t z = 0; z <= work->border_count; z++) {
            size_t first = z ? work->borders[z - 1] : 0;
            size_t end = z < work->border_count ? work->borders[z] : points;
            if (end - first >= 2)
                continue;
            snprintf(reason, SEGMENTATION_REASON_SIZE,
                     "between the given breaks there is %.100s %.10g alone, which is no line", over,
                     result->points[first].x);
            return false;
        }
    return points > 1 && points <= SEGMENTATION_POINTS_MAX &&
           (work->border_count > 0 || points >= request->minimum);
}

/* ---- Where to break */

static int make_frontier(struct work *work) {
    struct segmentation *result = work->result;
    const struct request *request = work->request;
    frontier_free(work->frontier);
    work->frontier = NULL;
    bool cut = request->break_count == 0 || request->between;
    return frontier_new(result->points, result->point_count, work->borders, work->border_count,
                        request->minimum, cut, &work->frontier);
}

static double cost_of_break(const struct work *work) {
    double one = work->request->criterion == CRITERION_AIC ? 2 : log(work->result->observations);
    /* Where lines meet, a break more is a slope and a place, but no intercept. */
    return one * fmax(work->request->per_break - work->request->continuous, 0);
}

/* No number of segments above this one can be better than BEST. */
static bool is_last(const struct work *work, size_t segments, size_t most, double best) {
    double n = work->result->observations;
    for (size_t m = segments; m < most; m++)
        if (n * log(frontier_bound(work->frontier, m)) + cost_of_break(work) * (double)m < best)
            return false;
    return true;
}

static int try_knots(struct work *work, struct joined_search *search, size_t most, double *best) {
    size_t knots[JOINED_SEGMENTS_MAX];
    const struct request *request = work->request;
    int r = 0;
    for (size_t segments = 1; r >= 0 && segments <= most; segments++) {
        double rss;
        r = joined_next(search, &rss, knots);
        double value = work->result->observations * log(rss) + cost_of_break(work) * (double)(segments - 1);
        bool better = request->segments > 0 ? segments == request->segments : value < *best - 1e-9;
        if (r >= 0 && rss < INFINITY && better) {
            *best = value;
            work->knots.count = segments - 1;
            memcpy(work->knots.breaks, knots, (segments - 1) * sizeof *knots);
        }
        if (r >= 0 && request->segments == 0 && is_last(work, segments, most, *best))
            break;
    }
    return r;
}

/* The same where lines meet. */
static int find_knots(struct work *work, const struct partition **ret, char *reason) {
    const struct request *request = work->request;
    const struct segmentation *result = work->result;
    size_t points = result->point_count, most = frontier_most(work->frontier) + 1;
    size_t limit = most < JOINED_SEGMENTS_MAX ? most : JOINED_SEGMENTS_MAX;
    if (points > JOINED_POINTS_MAX) {
        snprintf(reason, SEGMENTATION_REASON_SIZE,
                 "%zu values of %.100s, and lines that meet are looked for over at most %d; expected breaks "
                 "in --terms, fewer values, or continuous=no",
                 points, request->over, JOINED_POINTS_MAX);
        return SEGMENTATION_SKIPPED;
    }
    if (request->segments > limit) {
        snprintf(reason, SEGMENTATION_REASON_SIZE, "%zu segments that meet; expected at most %zu",
                 request->segments, limit);
        return SEGMENTATION_SKIPPED;
    }
    free(work->knots.breaks);
    work->knots = (struct partition){.breaks = malloc(JOINED_SEGMENTS_MAX * sizeof *work->knots.breaks)};
    struct joined_search *search = NULL;
    int r = work->knots.breaks ? joined_new(result->points, points, request->minimum, &search) : -ENOMEM;
    limit = request->segments > 0 ? request->segments : request->most < limit ? request->most : limit;
    /* Lines that need not meet leave less: their bounds say when no more segments need be tried. */
    const struct partition *apart;
    if (r >= 0 && request->segments == 0)
        r = frontier_choose(work->frontier, result->observations, cost_of_break(work), most - 1, &apart);
    double best = INFINITY;
    r = r < 0 ? r : try_knots(work, search, limit, &best);
    joined_free(search);
    *ret = &work->knots;
    if (r < 0 || best < INFINITY)
        return r;
    snprintf(reason, SEGMENTATION_REASON_SIZE, "no room for %zu segments that meet", request->segments);
    return SEGMENTATION_SKIPPED;
}

/* 0, SEGMENTATION_SKIPPED with its reason, or a negative errno. */
static int find_breaks(struct work *work, const struct partition **ret, char *reason) {
    const struct request *request = work->request;
    if (request->continuous && work->request->break_count == 0)
        return find_knots(work, ret, reason);
    size_t most = frontier_most(work->frontier) + 1;
    if (request->segments > most) {
        snprintf(reason, SEGMENTATION_REASON_SIZE,
                 "no room for %zu segments of at least %zu of %zu values of %.100s: at most %zu",
                 request->segments, request->minimum, work->result->point_count, request->over, most);
        return SEGMENTATION_SKIPPED;
    }
    size_t limit = (request->most < most ? request->most : most) - 1;
    double n = work->result->observations;
    int r = request->segments > 0 ? frontier_exactly(work->frontier, request->segments - 1, ret)
            : work->guessing      ? frontier_guess(work->frontier, n, cost_of_break(work), limit, ret)
                                  : frontier_choose(work->frontier, n, cost_of_break(work), limit, ret);
    work->result->greatest = r >= 0 && request->segments == 0 && most > 1 && (*ret)->count + 1 == most &&
                             (request->break_count == 0 || request->between);
    if (r != -E2BIG)
        return r;
    snprintf(
        reason, SEGMENTATION_REASON_SIZE,
        "too many ways to have that many segments are nearly as good as the best; let the criterion choose");
    return SEGMENTATION_SKIPPED;
}

static int set_segments(struct work *work, const struct partition *partition) {
    struct segmentation *result = work->result;
    size_t count = partition->count + 1, zone = 0;
    struct segment *segments = realloc(result->segments, count * sizeof *segments);
    if (!segments)
        return -ENOMEM;
    result->segments = segments;
    result->segment_count = count;
    for (size_t i = 0; i < count; i++) {
        size_t first = i ? partition->breaks[i - 1] : 0;
        bool given = zone < work->border_count && work->borders[zone] == first;
        zone += given;
        const char *name = work->request->names[work->border_names[zone]];
        segments[i] = (struct segment){
            .first = first,
            .from = given ? work->request->breaks[work->border_names[zone] - 1] : result->points[first].x,
            .end = i + 1 < count ? partition->breaks[i] : result->point_count,
            .given = given,
            .name = *name ? name : NULL,
            .break_low = NAN,
            .break_high = NAN,
            .noise = NAN,
        };
    }
    return 0;
}

/* 0, SEGMENTATION_SKIPPED with its reason, or -ENOMEM. */
static int fit_lines(struct work *work, char *reason) {
    struct segmentation *result = work->result;
    size_t count = result->segment_count;
    if (!work->request->continuous) {
        for (size_t i = 0; i < count; i++) {
            struct segment *segment = &result->segments[i];
            line_fit(result->points + segment->first, segment->end - segment->first,
                     work->request->equal == POINTS_RAW, &segment->line);
        }
        return 0;
    }
    double *knots = malloc(count * sizeof *knots);
    struct line *lines = malloc(count * sizeof *lines);
    double rss;
    for (size_t i = 1; knots && i < count; i++)
        knots[i - 1] = result->segments[i].from;
    int r = knots && lines ? joined_fit(result->points, result->point_count, knots, count - 1,
                                        result->observations, lines, &rss)
                           : -ENOMEM;
    for (size_t i = 0; r > 0 && i < count; i++)
        result->segments[i].line = lines[i];
    free(knots);
    free(lines);
    if (r == 0)
        snprintf(reason, SEGMENTATION_REASON_SIZE,
                 "too few values of %.100s between the breaks for lines that meet", work->request->over);
    return r < 0 ? r : r == 0 ? SEGMENTATION_SKIPPED : 0;
}

/* ---- The log error */

/* Lines about which to bend next; whether they moved by more than that share of themselves anywhere. */
static bool take_lines(struct work *work, double share) {
    struct segmentation *result = work->result;
    bool moved = false;
    result->below_zero = 0;
    for (size_t i = 0; i < result->segment_count; i++)
        for (size_t k = result->segments[i].first; k < result->segments[i].end; k++) {
            double value = line_at(&result->segments[i].line, result->points[k].x);
            bool above = value > 0;
            result->below_zero += !above;
            if (above != !isnan(work->about[k]) || (above && fabs(value - work->about[k]) > share * value))
                moved = true;
            work->about[k] = above ? value : NAN;
        }
    return moved;
}

static void bend(struct work *work) {
    points_make_sorted(work->rows, work->row_count, (enum points_equal)work->request->equal, POINTS_LOG,
                       work->about, work->result->points);
}

/* Gauss-Newton: lines and what they are bent about until they are the same; the breaks stay. In 16 digits
 * as far as these go. */
static int converge(struct work *work, char *reason) {
    struct segmentation *result = work->result;
    int r = 0;
    for (int i = 0; i < LOG_STEPS_QUICK && !work->request->continuous && take_lines(work, 1e-11); i++) {
        bend(work);
        for (size_t k = 0; k < result->segment_count; k++) {
            struct segment *segment = &result->segments[k];
            line_estimate(result->points + segment->first, segment->end - segment->first, &segment->line);
        }
    }
    for (int i = 0; i < LOG_STEPS_MAX && r == 0; i++) {
        if (!take_lines(work, 1e-13) && i > 0)
            break;
        bend(work);
        r = fit_lines(work, reason);
    }
    return r;
}

static bool same_breaks(const struct segmentation *result, const struct partition *partition) {
    if (result->segment_count != partition->count + 1)
        return false;
    for (size_t i = 0; i < partition->count; i++)
        if (result->segments[i + 1].first != partition->breaks[i])
            return false;
    return true;
}

static double sum_rss(const struct segmentation *result) {
    double rss = 0;
    for (size_t i = 0; i < result->segment_count; i++)
        rss += result->segments[i].line.rss;
    return rss;
}

/* What the rounds found so far at the least. */
struct kept {
    struct segment *segments;
    double *about;
    size_t count;
    double criterion;
    double values[SEGMENTATION_ROUNDS_MAX];
    bool round; /* it has been there before */
};

static int keep_best(struct work *work, struct kept *kept) {
    struct segmentation *result = work->result;
    double value =
        result->observations * log(sum_rss(result)) + cost_of_break(work) * (double)result->segment_count;
    for (size_t i = 0; i + 1 < result->rounds; i++)
        kept->round = kept->round || fabs(kept->values[i] - value) <= 1e-9 * fabs(value);
    kept->values[result->rounds - 1] = value;
    if (kept->segments && !(value < kept->criterion))
        return 0;
    struct segment *segments = realloc(kept->segments, result->segment_count * sizeof *segments);
    if (!segments)
        return -ENOMEM;
    kept->segments = segments;
    memcpy(segments, result->segments, result->segment_count * sizeof *segments);
    memcpy(kept->about, work->about, result->point_count * sizeof *kept->about);
    kept->count = result->segment_count;
    kept->criterion = value;
    return 0;
}

/* The breaks that are best about the lines, the lines that are best for the breaks, and again, until nothing
 * moves. The first are those of the relative error, which need not be proven. */
static int log_rounds(struct work *work, struct kept *kept, char *reason) {
    struct segmentation *result = work->result;
    int r = 0;
    work->guessing = true;
    while (r == 0 && !result->settled && !kept->round && result->rounds < SEGMENTATION_ROUNDS_MAX) {
        result->rounds++;
        const struct partition *partition;
        r = make_frontier(work);
        r = r < 0 ? r : find_breaks(work, &partition, reason);
        if (r != 0)
            return r;
        bool same = result->segments && same_breaks(result, partition);
        result->settled = same && !work->guessing;
        if (result->settled)
            break;
        if (!same)
            r = set_segments(work, partition);
        r = r < 0 ? r : fit_lines(work, reason);
        r = r != 0 ? r : converge(work, reason);
        if (r == 0 && !work->guessing)
            r = keep_best(work, kept);
        work->guessing = false;
    }
    return r;
}

static int fit_log(struct work *work, char *reason) {
    struct segmentation *result = work->result;
    struct kept kept = {.about = malloc(result->point_count * sizeof *kept.about)};
    work->about = malloc(result->point_count * sizeof *work->about);
    int r = kept.about && work->about ? 0 : -ENOMEM;
    for (size_t i = 0; r == 0 && i < result->point_count; i++)
        work->about[i] = NAN;
    r = r < 0 ? r : log_rounds(work, &kept, reason);
    if (r == 0 && !result->settled) {
        /* Round and round: the best of what they came by. */
        struct segment *last = result->segments;
        result->segments = kept.segments;
        kept.segments = last;
        result->segment_count = kept.count;
        memcpy(work->about, kept.about, result->point_count * sizeof *kept.about);
        bend(work);
        r = make_frontier(work);
        result->settled = false;
    }
    free(kept.segments);
    free(kept.about);
    return r;
}

/* ---- What is said of all segments */

/*
 * The interval of a break, the others held: all places at which it would be no worse than by a likelihood
 * ratio n (R(p) - R) / R of -2 log(1 - sqrt(confidence)): B. E. Hansen, Econometrica 68 (2000), 575, theorem
 * 2 and table I. That breaks may be looked at one by one: J. Bai, P. Perron, Econometrica 66 (1998), 47,
 * proposition 3.
 */
static void find_interval(const struct work *work, size_t i) {
    const struct segmentation *result = work->result;
    struct segment *left = &result->segments[i - 1], *right = &result->segments[i];
    size_t minimum = work->request->minimum, low = right->first, high = right->first;
    double rest = frontier_segment(work->frontier, left->first, right->first) +
                  frontier_segment(work->frontier, right->first, right->end);
    double cut = -2 * log1p(-sqrt(work->request->confidence)), all = sum_rss(result);
    double most = rest + cut * all / result->observations;
    for (size_t at = left->first + minimum; at + minimum <= right->end; at++) {
        if (frontier_leaves_more(work->frontier, left->first, at, right->end, most))
            continue;
        low = at < low ? at : low;
        high = at > high ? at : high;
    }
    right->break_low = result->points[low - 1].x;
    right->break_high = result->points[high].x;
}

/* Where lines meet the likelihood ratio is that of one parameter more: P. I. Feder, Ann. Statist. 3
 * (1975), 49. The other breaks are held, the lines are not. */
static int find_knot_interval(const struct work *work, size_t i) {
    const struct segmentation *result = work->result;
    struct segment *segment = &result->segments[i];
    size_t count = result->segment_count, low = segment->first, high = low;
    double *knots = malloc(count * sizeof *knots);
    struct line *lines = malloc(count * sizeof *lines);
    int r = knots && lines ? 0 : -ENOMEM;
    for (size_t k = 1; r >= 0 && k < count; k++)
        knots[k - 1] = result->segments[k].from;
    double all = sum_rss(result);
    double most = all * (1 + gsl_cdf_chisq_Pinv(work->request->confidence, 1) / result->observations);
    for (size_t at = result->segments[i - 1].first + 1; r >= 0 && at + 1 < segment->end; at++) {
        double rss;
        knots[i - 1] = result->points[at].x;
        r = joined_fit(result->points, result->point_count, knots, count - 1, result->observations, lines,
                       &rss);
        if (r > 0 && rss <= most) {
            low = at < low ? at : low;
            high = at > high ? at : high;
        }
    }
    segment->break_low = result->points[low].x;
    segment->break_high = result->points[high].x;
    free(knots);
    free(lines);
    return r < 0 ? r : 0;
}

static void judge(struct work *work) {
    struct segmentation *result = work->result;
    const struct request *request = work->request;
    enum points_error error = error_of(request);
    double log_weights = 0, n = result->observations;
    if (request->equal == POINTS_RAW)
        for (size_t i = 0; i < work->row_count; i++)
            log_weights +=
                log(work->rows[i].weight) - (error == POINTS_PLAIN ? 0 : 2 * log(fabs(work->rows[i].y)));
    else
        for (size_t i = 0; i < result->point_count; i++)
            log_weights +=
                log(work->plain[i].weight) - (error == POINTS_PLAIN ? 0 : 2 * log(fabs(work->plain[i].y)));
    result->rss = sum_rss(result);
    result->log_likelihood = result->aic = result->bic = NAN;
    if (!(result->rss > 0))
        return;
    double parameters =
        3 + fmax(request->per_break - request->continuous, 0) * (double)(result->segment_count - 1);
    result->log_likelihood = 0.5 * (log_weights - n * (log(2 * M_PI) + 1 + log(result->rss / n)));
    result->aic = 2 * parameters - 2 * result->log_likelihood;
    result->bic = log(n) * parameters - 2 * result->log_likelihood;
}

/* The squares of how far the rows of a segment are from its line; in proportion to the line for relative and
 * log errors, or to the size's mean where the line is below a hundredth of it: one size that a line misses so
 * far is not to be the noise of all others. ROWS: those of the segment's first size; their weights are not
 * looked at. What the line leaves of the means is nothing where the fit says so: its rounding is no noise. */
static double scatter_of(const struct work *work, const struct segment *segment,
                         const struct point_row *rows) {
    bool relative = error_of(work->request) != POINTS_PLAIN;
    double squares = 0;
    for (size_t k = segment->first; k < segment->end; k++) {
        const struct point *point = &work->plain[k];
        double line = line_at(&segment->line, point->x);
        double mean = segment->line.rss > 0 ? point->y - line : 0;
        double unit = !relative ? 1 : line > point->y / 100 ? line : point->y;
        for (size_t i = 0; i < point->rows; i++, rows++) {
            double residual = (rows->y - point->y + mean) / unit;
            squares += residual * residual;
        }
    }
    return squares;
}

/* One standard deviation a segment, over its rows less 2; where lines meet, one of all, as sigma is. */
static void measure_noise(struct work *work) {
    struct segmentation *result = work->result;
    bool joined = work->request->continuous;
    const struct point_row *rows = work->rows;
    double squares = 0, all = (double)work->row_count - (double)result->segment_count - 1;
    for (size_t i = 0; i < result->segment_count; i++) {
        struct segment *segment = &result->segments[i];
        double count = 0, own = scatter_of(work, segment, rows);
        for (size_t k = segment->first; k < segment->end; k++) {
            count += (double)work->plain[k].rows;
            rows += work->plain[k].rows;
        }
        squares += own;
        segment->noise = count > 2 ? sqrt(own / (count - 2)) : NAN;
    }
    for (size_t i = 0; joined && i < result->segment_count; i++)
        result->segments[i].noise = all > 0 ? sqrt(squares / all) : NAN;
}

/* Of a segment: between which of its sizes the line is not above 0. Whether there are any. */
static bool is_sunken(const struct segmentation *result, const struct segment *segment, double *ret_low,
                      double *ret_high) {
    double low = result->points[segment->first].x, high = result->points[segment->end - 1].x;
    bool at_low = line_at(&segment->line, low) <= 0, at_high = line_at(&segment->line, high) <= 0;
    double zero = -segment->line.estimates[0].estimate / segment->line.estimates[1].estimate;
    *ret_low = at_low ? low : zero;
    *ret_high = at_high ? high : zero;
    return at_low || at_high;
}

static void find_sunken(struct work *work) {
    struct segmentation *result = work->result;
    for (size_t i = 0; i < work->row_count; i++)
        if (work->rows[i].y <= 0)
            return;
    for (size_t i = 0; i < result->segment_count; i++) {
        double low, high;
        if (!is_sunken(result, &result->segments[i], &low, &high))
            continue;
        if (result->sunken.segments++ == 0)
            result->sunken = (struct sunken_line){.segments = 1, .first = i, .low = low, .high = high};
    }
}

/* ---- Altogether */

static int prepare(struct work *work, struct point_row *rows, size_t count) {
    struct segmentation *result = work->result;
    enum points_equal equal = (enum points_equal)work->request->equal;
    result->points = malloc(count * sizeof *result->points);
    work->plain = malloc(count * sizeof *work->plain);
    if (!result->points || !work->plain)
        return -ENOMEM;
    result->point_count = points_make(rows, count, equal, POINTS_PLAIN, NULL, work->plain);
    enum points_error error = error_of(work->request);
    points_make_sorted(rows, count, equal, error == POINTS_LOG ? POINTS_RELATIVE : error, NULL,
                       result->points);
    result->observations = equal == POINTS_RAW ? (double)count : (double)result->point_count;
    find_borders(work);
    return 0;
}

static int solve(struct work *work, char *reason) {
    int r;
    if (work->request->criterion == CRITERION_LOG) {
        r = fit_log(work, reason);
    } else {
        const struct partition *partition;
        r = make_frontier(work);
        r = r < 0 ? r : find_breaks(work, &partition, reason);
        r = r != 0 ? r : set_segments(work, partition);
        r = r != 0 ? r : fit_lines(work, reason);
    }
    if (r != 0)
        return r;
    judge(work);
    measure_noise(work);
    find_sunken(work);
    for (size_t i = 1; r == 0 && i < work->result->segment_count; i++) {
        if (work->result->segments[i].given)
            continue;
        if (work->request->continuous)
            r = find_knot_interval(work, i);
        else
            find_interval(work, i);
    }
    return r;
}

int segmentation_fit(const struct request *request, struct point_row *rows, size_t count,
                     struct segmentation *ret, char reason[static SEGMENTATION_REASON_SIZE]) {
    *ret = (struct segmentation){0};
    struct work work = {.request = request, .rows = rows, .row_count = count, .result = ret};
    if (count == 0) {
        snprintf(reason, SEGMENTATION_REASON_SIZE, "no rows");
        return SEGMENTATION_SKIPPED;
    }
    int r = prepare(&work, rows, count);
    if (r >= 0)
        r = can_be_fitted(&work, reason) ? solve(&work, reason) : SEGMENTATION_SKIPPED;
    frontier_free(work.frontier);
    free(work.plain);
    free(work.knots.breaks);
    free(work.about);
    return r;
}

void segmentation_clear(struct segmentation *segmentation) {
    free(segmentation->points);
    free(segmentation->segments);
    *segmentation = (struct segmentation){0};
}
