/* The tables of SMPI: where segments begin, and the line of each operation in each segment. */
#include "plugins/fit-smpi/smpi.h"

#include "engine/numerics/quantile.h"

#include <stdlib.h>
#include <string.h>

enum {
    MINIMUM_SIZES = 3,  /* of a segment that is found */
    MINIMUM_ROWS = 4,   /* likewise, at the mean number of rows a size */
    SEGMENTS_MAX = 40,  /* likewise */
    SCALE_POINTS = 10,  /* on either side, whose noise counts as a point's */
    OUTLIER_POINTS = 4, /* on either side, whose median tells an outlier */
    DETACHED_DEFAULT = 65536,
};

static const double level = 0.05; /* at which a break is significant */
static const double middle_half = 0.25, normal_quartile = 0.674489750196082;
static const double far_share = 0.3, far_scales = 5; /* an outlier is so far off: share, and scales */
static const double accuracy = 0.005;                /* relative noise that every point has at least */
static const double rounding = 1e-9;                 /* relative differences that are none */
static const double unexplained = 0.1; /* of the noise's squares, which no line has to explain */

static bool is_old(const struct tables *tables) {
    return smpi_number(tables->request, RULES) == RULES_2016_06;
}

/* Whether quantiles are those of R before 4.0. */
static bool has_old_quantiles(const struct tables *tables) {
    enum quantiles quantiles = (enum quantiles)smpi_number(tables->request, QUANTILES);
    return quantiles == QUANTILES_OLD_R || (quantiles == QUANTILES_AUTO && is_old(tables));
}

/* Whether SMPI charges OPERATION there, if there is a line. */
static bool is_to_charge(const struct tables *tables, enum operation operation, size_t segment) {
    double to = tables_to(tables, segment);
    if (operation == PING_PONG)
        return false;
    if (is_old(tables))
        return operation == RECV ? to < tables->detached_threshold : to <= tables->detached_threshold;
    return to <= tables->detached_threshold || operation == ISEND;
}

bool tables_is_charged(const struct tables *tables, enum operation operation, size_t segment) {
    return is_line(tables_line(tables, operation, segment)) && is_to_charge(tables, operation, segment);
}

/* ---- Trimming */

/* Trims the calls of OPERATION at both ends, size by size or by blocks of rows, and notes which. */
static void trim_calls(const struct tables *tables, enum operation operation, struct calls *calls,
                       double *scratch) {
    const struct fit_request *request = tables->request;
    double share = smpi_number(request, operation == PING_PONG ? TRIM_PING_PONG : TRIM);
    if (isnan(share))
        share = smpi_is_published(request) ? 0 : middle_half;
    size_t block = (size_t)smpi_number(request, BLOCK), blocks = (calls->count + block - 1) / block;
    size_t mixed = trim_mixed_blocks(calls, block);
    enum trim_per per = (enum trim_per)smpi_number(request, TRIM_PER);
    bool by_size =
        operation == PING_PONG || per == TRIM_PER_SIZE || (per == TRIM_PER_AUTO && 2 * mixed > blocks);
    if (share == 0)
        return;
    if (by_size)
        trim_by_size(calls, share, has_old_quantiles(tables), scratch);
    else
        trim_by_rows(calls, block, share, has_old_quantiles(tables), scratch);
    if (mixed > 0 && per != TRIM_PER_SIZE && operation != PING_PONG)
        fit_result_note(tables->result,
                        "the rows of %s are trimmed %s: %zu of their %zu blocks of %zu rows "
                        "hold several sizes",
                        operation_names[operation], by_size ? "size by size" : "by blocks (see trim-per)",
                        mixed, blocks, block);
}

/* ---- Finding breaks */

/* A point for each size: the mean duration, and how much single points scatter about it, relative to it. */
struct points {
    double *x, *y, *scale, *weights, *room;
    size_t count, rows;
    double tick; /* the least difference of two durations */
};

/* The mean of each size of CALLS, which are sorted and trimmed, if it is above 0. */
static void average(const struct calls *calls, struct points *ret) {
    for (size_t begin = 0, end; begin < calls->count; begin = end) {
        double sum = 0;
        for (end = begin; end < calls->count && calls->calls[end].size == calls->calls[begin].size; end++)
            sum += calls->calls[end].duration;
        ret->x[ret->count] = calls->calls[begin].size;
        ret->y[ret->count] = sum / (double)(end - begin);
        ret->rows += sum > 0 ? end - begin : 0;
        ret->room[ret->count] = calls->calls[begin].duration;
        ret->count += sum > 0; /* errors are relative */
    }
    quantile_sort(ret->room, ret->count);
    ret->tick = INFINITY;
    for (size_t i = 1; i < ret->count; i++)
        if (ret->room[i] - ret->room[i - 1] > rounding * ret->room[i])
            ret->tick = fmin(ret->tick, ret->room[i] - ret->room[i - 1]);
    ret->tick = isfinite(ret->tick) ? ret->tick : 0;
}

/* The median of VALUES from I - HALF to I + HALF, fewer at both ends. */
static double median_around(const double *values, size_t count, size_t i, size_t half, double *room) {
    size_t side = i < half ? i : half;
    side = count - 1 - i < side ? count - 1 - i : side;
    memcpy(room, values + i - side, (2 * side + 1) * sizeof *room);
    return quantile_median(room, 2 * side + 1);
}

/* Estimates the noise at each point by its distance from the line between its neighbours, and takes the
 * median of such distances around it, so that breaks do not matter. */
static void find_scales(struct points *points) {
    double *x = points->x, *y = points->y, *distances = points->weights;
    size_t n = points->count;
    for (size_t i = 1; i + 1 < n; i++) {
        double t = (x[i] - x[i - 1]) / (x[i + 1] - x[i - 1]);
        double between = (1 - t) * y[i - 1] + t * y[i + 1];
        distances[i] = fabs(y[i] - between) / sqrt(1 + t * t + (1 - t) * (1 - t)) / y[i] / normal_quartile;
    }
    distances[0] = distances[1];
    distances[n - 1] = distances[n - 2];
    size_t half = n > 2 * SCALE_POINTS ? SCALE_POINTS : (n - 1) / 2;
    for (size_t i = 0; i < n; i++) {
        size_t at = i < half ? half : i > n - 1 - half ? n - 1 - half : i;
        double scale = median_around(distances, n, at, half, points->room);
        points->scale[i] = fmax(scale, points->tick / y[i]);
    }
}

/* Leaves out points far from the median around them: outliers that trimming left. */
static void drop_outliers(struct points *points) {
    size_t kept = 0;
    for (size_t i = 0; i < points->count; i++) {
        double middle = median_around(points->y, points->count, i, OUTLIER_POINTS, points->room);
        double distance = fabs(log(points->y[i] / middle));
        points->weights[i] = !(distance > far_share && distance > far_scales * points->scale[i]);
    }
    for (size_t i = 0; i < points->count; i++)
        if (points->weights[i] > 0) {
            points->x[kept] = points->x[i];
            points->y[kept] = points->y[i];
            points->scale[kept++] = points->scale[i];
        }
    points->count = kept;
}

/* The price of a break, in N log R with N = COUNT points: two more coefficients are significant where R falls
 * by the factor of the F test with 2 and N - 4 degrees of freedom, p^(2 / (N - 4)), at the level divided by
 * the possible number of segments (Bonferroni). */
static double price_of_break(double count) {
    return 2 * count / fmax(count - 4, 1) * log(count * count / level);
}

/* Finds the breaks by penalised segmentation. The detached threshold is always a break if both sides have
 * points for a line, since costs are charged by segments that end there. -EDOM: no breaks can be found. */
static int find_in_points(struct tables *tables, struct points *points, struct plugin_message *message) {
    size_t border = 0, count, minimum;
    struct segments segments;
    find_scales(points);
    drop_outliers(points);
    count = points->count;
    minimum = (MINIMUM_ROWS * count + points->rows - 1) / points->rows;
    minimum = minimum < count / SEGMENTS_MAX ? count / SEGMENTS_MAX : minimum;
    memcpy(points->room, points->scale, count * sizeof *points->room);
    double least = fmax(accuracy, quantile_median(points->room, count) / 2);
    for (size_t i = 0; i < count; i++)
        points->weights[i] = 1 / pow(points->y[i] * fmax(points->scale[i], least), 2);
    while (border < count && points->x[border] < tables->detached_threshold)
        border++;
    bool has_border = border >= 2 && count - border >= 2;
    struct segments_problem problem = {.points = count,
                                       .x = points->x,
                                       .y = points->y,
                                       .weights = points->weights,
                                       .minimum = minimum < MINIMUM_SIZES ? MINIMUM_SIZES : minimum,
                                       .given = &border,
                                       .given_count = has_border,
                                       .measurements = (double)count,
                                       .penalty = price_of_break((double)count),
                                       .scatter = unexplained * (double)count};
    int r = segments_best(&problem, &segments);
    if (r == -EINVAL || (r == 0 && segments.count > SMPI_BREAKS_MAX))
        r = plugin_refuse(message, -EDOM,
                          "no breaks can be found from the %zu sizes of PingPong; set "
                          "breaks=SIZE,...",
                          count);
    for (size_t i = 1; r == 0 && i < segments.count; i++) {
        size_t begin = segments.segments[i].begin;
        tables->breaks[tables->break_count++] =
            has_border && begin == border ? tables->detached_threshold : points->x[begin];
    }
    tables->has_tail = border == count && !smpi_is_published(tables->request);
    if (r == 0 && tables->has_tail)
        tables->breaks[tables->break_count++] = tables->detached_threshold;
    segments_clear(&segments);
    return r;
}

/* Finds breaks in copies of the PingPong calls; none with too few sizes. -ENOMEM. */
static int find_breaks(struct tables *tables, const struct calls *ping_pong, double *scratch,
                       struct plugin_message *message) {
    size_t all = ping_pong->count;
    double *room = malloc(5 * (all + 1) * sizeof *room);
    struct points points = {.x = room,
                            .y = room + all,
                            .scale = room + 2 * all,
                            .weights = room + 3 * all,
                            .room = room + 4 * all};
    struct calls calls = {malloc((all + 1) * sizeof *calls.calls), all};
    int r = room && calls.calls ? 0 : -ENOMEM;
    if (r == 0) {
        memcpy(calls.calls, ping_pong->calls, all * sizeof *calls.calls);
        trim_by_size(&calls, smpi_number(tables->request, TRIM), has_old_quantiles(tables), scratch);
        average(&calls, &points);
        r = points.count < MINIMUM_SIZES ? 0 : find_in_points(tables, &points, message);
    }
    free(room);
    free(calls.calls);
    return r;
}

/* Takes the breaks that are given, or finds them, with a note. */
static int choose_breaks(struct tables *tables, const struct calls *ping_pong, double *scratch,
                         struct plugin_message *message) {
    const struct plugin_value *given = &tables->request->values[BREAKS];
    char list[1024] = "none";
    size_t length = 0;
    tables->break_count = given->count;
    for (size_t i = 0; i < given->count; i++)
        tables->breaks[i] = given->numbers[i];
    bool are_found = given->count == 0 && smpi_number(tables->request, FIND_BREAKS) > 0;
    int r = are_found ? find_breaks(tables, ping_pong, scratch, message) : 0;
    for (size_t i = 0; i + tables->has_tail < tables->break_count && length < sizeof list - 32; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%.15g", i ? ", " : "",
                                   tables->breaks[i]);
    const char *from = are_found      ? "found from the PingPong rows, minimising relative errors"
                       : given->count ? "given"
                                      : "find-breaks=no";
    fit_result_note(tables->result, "breaks (By): %s; %s", list, from);
    if (r == 0 && tables->has_tail)
        fit_result_note(tables->result,
                        "no PingPong is as large as send-is-detached-thresh, %.15g byte: the "
                        "line fitted below this size is used above it, too",
                        tables->detached_threshold);
    return r;
}

/* ---- Lines */

/* The value of PARAMETER if set, else the least measured size, else FALLBACK. */
static double choose_threshold(const struct tables *tables, enum parameter parameter,
                               const struct calls *measured, double fallback) {
    double set = smpi_number(tables->request, parameter), least = INFINITY;
    for (size_t i = 0; i < measured->count; i++)
        least = fmin(least, measured->calls[i].size);
    return !isnan(set) ? set : isfinite(least) ? fmin(least, INT32_MAX) : fallback;
}

/* Fits a line to the calls of OPERATION in each segment, with a note where a line is missing. */
static void fit_lines(struct tables *tables, enum operation operation, const struct calls *calls,
                      double *room) {
    double *x = room, *y = room + calls->count;
    for (size_t s = 0; s <= tables->break_count; s++) {
        struct segments_problem problem = {.x = x, .y = y};
        struct segment *line = &tables->lines[(size_t)operation * (tables->break_count + 1) + s];
        bool is_tail = tables->has_tail && s == tables->break_count,
             has_tail = tables->has_tail && s + 1 >= tables->break_count;
        size_t count = 0;
        for (size_t i = 0; i < calls->count; i++)
            if (calls->calls[i].size >= tables_from(tables, is_tail ? s - 1 : s) &&
                (has_tail || calls->calls[i].size < tables_to(tables, s))) {
                x[count] = calls->calls[i].size;
                y[count++] = calls->calls[i].duration;
            }
        if (count > 0)
            segments_line(&problem, 0, count, line);
        if (is_line(line) && !smpi_is_published(tables->request))
            lines_weigh(x, y, count, y + calls->count, y + 2 * calls->count, line);
        tables->rows += is_line(line) && !is_tail ? count : 0;
        if (!is_line(line) && calls->count > 0 && is_to_charge(tables, operation, s))
            fit_result_note(tables->result,
                            "the operation %s has fewer than two sizes in the segment from %.15g "
                            "byte on: its time there is taken as 0",
                            operation_names[operation], tables_from(tables, s));
    }
}

/* Makes the tables of a group: thresholds, breaks, lines, costs. -EDOM: the rows do not suffice. To be
 * cleared in any case. */
int tables_make(struct group *group, struct tables *tables, struct plugin_message *message) {
    size_t longest = 0;
    for (size_t o = 0; o < OPERATIONS; o++)
        longest = group->calls[o].count > longest ? group->calls[o].count : longest;
    double *room = malloc(4 * (longest + 1) * sizeof *room);
    tables->async_threshold = choose_threshold(tables, ASYNC, &group->calls[ASYNCHRONOUS], 0);
    tables->detached_threshold =
        choose_threshold(tables, DETACHED, &group->calls[DETACHED_THRESHOLD], DETACHED_DEFAULT);
    int r = room ? choose_breaks(tables, &group->calls[PING_PONG], room, message) : -ENOMEM;
    tables->lines = calloc(LINES * (tables->break_count + 1), sizeof *tables->lines);
    r = r == 0 && !tables->lines ? -ENOMEM : r;
    for (enum operation o = 0; r == 0 && o < LINES; o++) {
        trim_calls(tables, o, &group->calls[o], room);
        fit_lines(tables, o, &group->calls[o], room);
    }
    for (size_t s = 0; r == 0 && !smpi_is_published(tables->request) && s <= tables->break_count; s++)
        r = lines_bound(tables, s);
    if (r == -ERANGE || r == -EAGAIN)
        r = plugin_refuse(message, -EDOM, "sums of the durations exceed the range of a double");
    for (enum operation o = IPROBE; r == 0 && o <= WTIME; o++) {
        struct cost *cost = &tables->costs[o - LINES];
        double calls = o == WTIME ? smpi_number(tables->request, WTIME_CALLS) : 1;
        double share = o == WTIME ? 0 : smpi_number(tables->request, TRIM);
        trim_mean(&group->calls[o], share, room, &cost->mean, &cost->sigma);
        cost->mean /= calls;
        cost->sigma /= calls;
        tables->rows += group->calls[o].count;
    }
    free(room);
    if (r == 0 && tables->rows == 0)
        return plugin_refuse(message, -EDOM,
                             "no operation was measured at two sizes, and there are no rows of "
                             "Iprobe, Test or Wtime");
    for (size_t s = 0; r == 0 && group->calls[PING_PONG].count > 0 && s <= tables->break_count; s++) {
        const struct segment *line = tables_line(tables, PING_PONG, s);
        if (!is_line(line))
            r = plugin_refuse(message, -EDOM,
                              "PingPong has fewer than two sizes in the segment from %.15g byte on; "
                              "measure more sizes, or set other breaks",
                              tables_from(tables, s));
        else if (!(line->intercept > 0 || line->slope > 0))
            r = plugin_refuse(message, -EDOM,
                              "the time of PingPong is not above 0 in the segment from %.15g byte "
                              "on; set other breaks",
                              tables_from(tables, s));
    }
    return r;
}

/* The variances of intercept and slope of LINE, and their covariance; NaN with two calls. */
void line_variances(const struct segment *line, double ret[static 3]) {
    double n = (double)(line->end - line->begin), variance = n > 2 ? line->rss / (n - 2) : NAN;
    ret[0] = variance * (1 / line->weight + line->mean * line->mean / line->spread);
    ret[1] = variance / line->spread;
    ret[2] = -variance * line->mean / line->spread;
}

/* The delay and pace of a message in a segment: half of PingPong, less what SMPI charges for Send and
 * Recv. */
struct transfer tables_transfer(const struct tables *tables, size_t segment) {
    static const double published[] = {[SEND] = 0, [RECV] = 0.5}, all[] = {[SEND] = 1, [RECV] = 1};
    const struct segment *line = tables_line(tables, PING_PONG, segment);
    const double *shares = smpi_is_published(tables->request) ? published : all;
    double v[3];
    line_variances(line, v);
    struct transfer ret = {line->intercept / 2, line->slope / 2, v[0] / 4, v[1] / 4};
    for (enum operation o = SEND; o <= RECV; o++)
        if (shares[o] > 0 && tables_is_charged(tables, o, segment)) {
            line = tables_line(tables, o, segment);
            line_variances(line, v);
            ret.delay -= shares[o] * line->intercept;
            ret.pace -= shares[o] * line->slope;
            ret.delay_variance += shares[o] * shares[o] * v[0];
            ret.pace_variance += shares[o] * shares[o] * v[1];
        }
    if (!smpi_is_published(tables->request))
        ret.delay -= SMPI_ENVELOPE * ret.pace;
    return ret;
}

void tables_clear(struct tables *tables) {
    free(tables->lines);
}
