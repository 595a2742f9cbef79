#include "engine/command-line/fit-distances.h"

#include "engine/command-line/chart-canvas.h"
#include "engine/command-line/fit-residuals.h"
#include "engine/command-line/residual-chart.h"
#include "engine/command-line/shown.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum { FURTHEST = 5, NAMED_MAX = 12 };

/* Of what is normal so few are further (P. J. Rousseeuw, B. C. van Zomeren, J. Amer. Statist. Assoc. 85
 * (1990), 633). */
static const double cut = 0.025;

static void print_head(FILE *stream, const struct fit_distances *distances) {
    size_t beyond = 0;
    for (size_t i = 0; i < distances->count; i++)
        beyond += distances->items[i].p < cut;
    fprintf(stream, "\ndistances of %zu %s from %s", distances->count, distances->whats, distances->from);
    if (distances->left_out > 0)
        fprintf(stream, ", %" PRIu64 " left out", distances->left_out);
    fprintf(stream, ": %zu beyond the %g %% point of chi-squared (%u), %.3g expected\n", beyond,
            100 * (1 - cut), distances->freedom, cut * (double)distances->count);
}

/* Distances upwards, the roots of chi-squared's quantiles to the right, and the line where they are equal. */
static void print_chart(FILE *stream, const struct fit_distances *distances) {
    struct chart_canvas canvas = {0};
    bool unicode = residual_chart_unicode();
    double across = 0, up = 0;
    for (size_t i = 0; i < distances->count; i++) {
        across = fmax(across, sqrt(distances->items[i].quantile));
        up = fmax(up, sqrt(distances->items[i].square));
    }
    if (!(across > 0) || !(up > 0))
        return;
    for (size_t i = 0; i < distances->count; i++)
        chart_canvas_add(&canvas, sqrt(distances->items[i].quantile) / across,
                         sqrt(distances->items[i].square) / up);
    chart_canvas_mark(&canvas, fmin(across, up) / across, fmin(across, up) / up);
    for (size_t line = 0; line < CHART_HEIGHT; line++) {
        if (line == 0)
            fprintf(stream, "%8.3g ", up);
        else
            fprintf(stream, "%8s ", line + 1 == CHART_HEIGHT ? "0" : "");
        chart_canvas_print_line(stream, &canvas, unicode, line, false);
    }
    char right[32];
    snprintf(right, sizeof right, "%.3g", across);
    static const char below[] = "as normal ones would be";
    int before = (CHART_WIDTH - (int)sizeof below) / 2;
    fprintf(stream, "          0%*s%s%*s\n", before, "", below, CHART_WIDTH - before - (int)sizeof below,
            right);
}

/* The places of the FURTHEST greatest, greatest first. */
static size_t find_furthest(const struct fit_distances *distances, size_t ret[static FURTHEST]) {
    size_t count = 0;
    for (size_t i = 0; i < distances->count; i++) {
        double square = distances->items[i].square;
        if (count == FURTHEST && !(square > distances->items[ret[count - 1]].square))
            continue;
        size_t at = count < FURTHEST ? count++ : count - 1;
        for (; at > 0 && square > distances->items[ret[at - 1]].square; at--)
            ret[at] = ret[at - 1];
        ret[at] = i;
    }
    return count;
}

static void print_furthest(FILE *stream, const struct fitting *fitting,
                           const struct fit_distances *distances) {
    size_t furthest[FURTHEST], count = find_furthest(distances, furthest);
    const char *response = fitting_options(fitting)->response, *unit = fitting_unit(fitting, response);
    fprintf(stream, "the %s that are furthest off:\n", distances->whats);
    for (size_t i = 0; i < count; i++) {
        const struct fit_distance *item = &distances->items[furthest[i]];
        fprintf(stream, "  %s, ", shown(item->name).text);
        fit_residuals_print_place(stream, fitting, item->row);
        fprintf(stream, ": %s %.6g, %.6g expected%s%s%s%s%s, distance %.3g, p %.2g\n", shown(response).text,
                item->value, item->expected, unit ? " " : "", unit ? shown(unit).text : "",
                item->part ? " of '" : "", item->part ? shown(item->part).text : "", item->part ? "'" : "",
                sqrt(item->square), item->p);
    }
}

/* "slow: node 3, cpu 0; node 7, cpu 1 (2 of 40 machines)" */
static void print_slow(FILE *stream, const struct fit_distances *distances) {
    size_t count = 0;
    for (size_t i = 0; i < distances->count; i++) {
        const struct fit_distance *item = &distances->items[i];
        if (!item->part || strncmp(item->part, "slow", 4) != 0)
            continue;
        if (count < NAMED_MAX)
            fprintf(stream, "%s%s", count ? "; " : "slow: ", shown(item->name).text);
        count++;
    }
    if (count > NAMED_MAX)
        fprintf(stream, "; and %zu more", count - NAMED_MAX);
    if (count > 0)
        fprintf(stream, " (%zu of %zu %s)\n", count, distances->count, distances->whats);
}

void fit_distances_print(FILE *stream, const struct fitting *fitting) {
    struct fit_distances distances;
    for (size_t set = 0; fitting_distances(fitting, set, &distances); set++) {
        if (distances.count == 0)
            continue;
        print_head(stream, &distances);
        print_chart(stream, &distances);
        print_furthest(stream, fitting, &distances);
        print_slow(stream, &distances);
    }
}
