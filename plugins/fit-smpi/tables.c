/* Where segments begin, and the lines of each. */
#include "plugins/fit-smpi/smpi.h"

#include <stdlib.h>
#include <string.h>

enum { MINIMUM_SIZES = 3, DETACHED_DEFAULT = 65536 };

static const double per_break = 4; /* parameters that BIC takes a break for, as fit-piecewise */

static bool is_old(const struct tables *tables) {
    return smpi_number(tables->request, RULES) == RULES_2016_06;
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

static void trim(const struct tables *tables, enum operation operation, struct calls *calls,
                 double *scratch) {
    const struct fit_request *request = tables->request;
    double share = smpi_number(request, operation == PING_PONG ? TRIM_PING_PONG : TRIM);
    size_t block = (size_t)smpi_number(request, BLOCK), blocks = (calls->count + block - 1) / block;
    size_t mixed = trim_mixed_blocks(calls, block);
    enum trim_per per = (enum trim_per)smpi_number(request, TRIM_PER);
    bool by_size =
        operation == PING_PONG || per == TRIM_PER_SIZE || (per == TRIM_PER_AUTO && 2 * mixed > blocks);
    if (share == 0)
        return;
    if (by_size)
        trim_by_size(calls, share, is_old(tables), scratch);
    else
        trim_by_rows(calls, block, share, is_old(tables), scratch);
    if (mixed > 0 && per != TRIM_PER_SIZE && operation != PING_PONG)
        fit_result_note(tables->result,
                        "%s is trimmed %s: %zu of its %zu blocks of %zu rows hold several sizes",
                        operation_names[operation], by_size ? "size by size" : "by blocks (see trim-per)",
                        mixed, blocks, block);
}

/* ---- Breaks that are found */

/* The mean of each size of CALLS, sorted by size and trimmed, where it is above 0. */
static size_t average(const struct calls *calls, double *x, double *y, double *weights) {
    size_t count = 0;
    for (size_t begin = 0, end; begin < calls->count; begin = end) {
        long double sum = 0;
        for (end = begin; end < calls->count && calls->calls[end].size == calls->calls[begin].size; end++)
            sum += calls->calls[end].duration;
        x[count] = calls->calls[begin].size;
        y[count] = (double)(sum / (long double)(end - begin));
        weights[count] = 1 / (y[count] * y[count]);
        count += y[count] > 0; /* errors are relative */
    }
    return count;
}

/* Costs are charged by segments that end at the threshold, so that it is a break whatever is found, where
 * both sides have points enough for a line. */
static int find_in_points(struct tables *tables, const double *x, const double *y, const double *weights,
                          size_t count, struct plugin_message *message) {
    size_t border = 0;
    struct segments segments;
    while (border < count && x[border] < tables->detached_threshold)
        border++;
    bool has_border = border >= 2 && count - border >= 2;
    struct segments_problem problem = {.points = count,
                                       .x = x,
                                       .y = y,
                                       .weights = weights,
                                       .minimum = MINIMUM_SIZES,
                                       .given = &border,
                                       .given_count = has_border,
                                       .measurements = (double)count,
                                       .penalty = per_break * log((double)count)};
    int r = segments_best(&problem, &segments);
    if (r == -EINVAL || (r == 0 && segments.count > SMPI_BREAKS_MAX + 1))
        r = plugin_refuse(message, -EDOM,
                          "no breaks can be found in PingPong's %zu sizes; expected breaks to be set", count);
    for (size_t i = 1; r == 0 && i < segments.count; i++) {
        size_t begin = segments.segments[i].begin;
        tables->breaks[tables->break_count++] =
            has_border && begin == border ? tables->detached_threshold : x[begin];
    }
    segments_clear(&segments);
    return r;
}

static int find_breaks(struct tables *tables, const struct calls *ping_pong, double *scratch,
                       struct plugin_message *message) {
    size_t all = ping_pong->count;
    double *x = malloc(3 * (all + 1) * sizeof *x), *y = x + all, *weights = y + all;
    struct calls calls = {malloc((all + 1) * sizeof *calls.calls), all};
    int r = x && calls.calls ? 0 : -ENOMEM;
    if (r == 0) {
        memcpy(calls.calls, ping_pong->calls, all * sizeof *calls.calls);
        trim_by_size(&calls, smpi_number(tables->request, TRIM), is_old(tables), scratch);
        size_t count = average(&calls, x, y, weights);
        r = count < MINIMUM_SIZES ? 0 : find_in_points(tables, x, y, weights, count, message);
    }
    free(x);
    free(calls.calls);
    return r;
}

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
    for (size_t i = 0; i < tables->break_count && length < sizeof list - 32; i++)
        length += (size_t)snprintf(list + length, sizeof list - length, "%s%.15g", i ? ", " : "",
                                   tables->breaks[i]);
    const char *from = are_found      ? "found in PingPong: the best segments by BIC of relative errors"
                       : given->count ? "given"
                                      : "find-breaks=no";
    fit_result_note(tables->result, "breaks (By): %s; %s", list, from);
    return r;
}

/* ---- Lines */

/* What is set; else the least that was measured; else FALLBACK. */
static double choose_threshold(const struct tables *tables, enum parameter parameter,
                               const struct calls *measured, double fallback) {
    double set = smpi_number(tables->request, parameter), least = INFINITY;
    for (size_t i = 0; i < measured->count; i++)
        least = fmin(least, measured->calls[i].size);
    return !isnan(set) ? set : isfinite(least) ? fmin(least, INT32_MAX) : fallback;
}

static void fit_lines(struct tables *tables, enum operation operation, const struct calls *calls,
                      double *room) {
    double *x = room, *y = room + calls->count;
    for (size_t s = 0; s <= tables->break_count; s++) {
        struct segments_problem problem = {.x = x, .y = y};
        struct segment *line = &tables->lines[(size_t)operation * (tables->break_count + 1) + s];
        size_t count = 0;
        for (size_t i = 0; i < calls->count; i++)
            if (calls->calls[i].size >= tables_from(tables, s) &&
                calls->calls[i].size < tables_to(tables, s)) {
                x[count] = calls->calls[i].size;
                y[count++] = calls->calls[i].duration;
            }
        if (count > 0)
            segments_line(&problem, 0, count, line);
        tables->rows += is_line(line) ? count : 0;
        if (!is_line(line) && calls->count > 0 && is_to_charge(tables, operation, s))
            fit_result_note(tables->result,
                            "%s has fewer than two sizes from %.15g byte on: nothing is charged there",
                            operation_names[operation], tables_from(tables, s));
    }
}

int tables_make(struct group *group, struct tables *tables, struct plugin_message *message) {
    size_t longest = 0;
    for (size_t o = 0; o < OPERATIONS; o++)
        longest = group->calls[o].count > longest ? group->calls[o].count : longest;
    double *room = malloc(2 * (longest + 1) * sizeof *room);
    tables->async_threshold = choose_threshold(tables, ASYNC, &group->calls[ASYNCHRONOUS], 0);
    tables->detached_threshold =
        choose_threshold(tables, DETACHED, &group->calls[DETACHED_THRESHOLD], DETACHED_DEFAULT);
    int r = room ? choose_breaks(tables, &group->calls[PING_PONG], room, message) : -ENOMEM;
    tables->lines = calloc(LINES * (tables->break_count + 1), sizeof *tables->lines);
    r = r == 0 && !tables->lines ? -ENOMEM : r;
    for (enum operation o = 0; r == 0 && o < LINES; o++) {
        trim(tables, o, &group->calls[o], room);
        fit_lines(tables, o, &group->calls[o], room);
    }
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
                             "no operation has two sizes, and there is no Iprobe, Test or Wtime");
    for (size_t s = 0; r == 0 && group->calls[PING_PONG].count > 0 && s <= tables->break_count; s++)
        if (!is_line(tables_line(tables, PING_PONG, s)))
            return plugin_refuse(message, -EDOM,
                                 "PingPong has fewer than two sizes in the segment from %.15g byte on",
                                 tables_from(tables, s));
    return r;
}

void tables_clear(struct tables *tables) {
    free(tables->lines);
}
