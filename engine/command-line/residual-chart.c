#include "engine/command-line/residual-chart.h"

#include "engine/command-line/chart-canvas.h"
#include "engine/command-line/shown.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

static const double least_reach = 3, most_reach = 8; /* sigmas from the middle to the edge */

struct chart {
    struct chart_canvas canvas;
    double reach;
    double left, right; /* of x, logarithms where it is wide */
    bool wide;
    size_t beyond; /* drawn at the edge */
};

bool residual_chart_unicode(void) {
    static const char *const names[] = {"LC_ALL", "LC_CTYPE", "LANG"};
    for (size_t i = 0; i < sizeof names / sizeof *names; i++) {
        const char *value = getenv(names[i]);
        if (value && value[0])
            return strcasestr(value, "utf-8") || strcasestr(value, "utf8");
    }
    return false;
}

/* Where VALUE is between the ends; in the middle where these are one. */
static double share_of(double value, double least, double greatest) {
    return greatest > least ? (value - least) / (greatest - least) : 0.5;
}

static void draw(struct chart *chart, const struct residuals *residuals) {
    for (size_t k = 0; k < residuals->count; k++) {
        double z = residuals->standardised[k];
        if (isnan(z))
            continue;
        double x = residuals->predicted[k];
        if (chart->wide)
            x = x > 0 ? log10(x) : chart->left;
        chart->beyond += fabs(z) > chart->reach;
        chart_canvas_add(&chart->canvas, share_of(x, chart->left, chart->right),
                         share_of(z, -chart->reach, chart->reach));
    }
}

/* The line where a residual of Z sigmas is. */
static size_t line_of(const struct chart *chart, double z) {
    return chart_step(-z, -chart->reach, chart->reach, CHART_HEIGHT);
}

/* What stands left of LINE; true where a line is drawn across. */
static bool print_label(FILE *stream, const struct chart *chart, bool unicode, size_t line) {
    static const double across[] = {0, 2, -2};
    const char *sigma = unicode ? "\u03c3" : "s";
    for (size_t i = 0; i < sizeof across / sizeof *across; i++)
        if (line == line_of(chart, across[i])) {
            fprintf(stream, i ? "%+6.0f %s " : "%6.0f %s ", across[i], sigma);
            return true;
        }
    if (line == 0 || line == CHART_HEIGHT - 1)
        fprintf(stream, "%+6.2g %s ", line ? -chart->reach : chart->reach, sigma);
    else
        fprintf(stream, "%9s", "");
    return false;
}

static void print_axis(FILE *stream, const struct residuals *residuals, const struct chart *chart,
                       const char *response, const char *unit) {
    char left[32], right[32];
    snprintf(left, sizeof left, "%.3g", chart->wide ? residuals->least_positive : residuals->minimum);
    snprintf(right, sizeof right, "%.3g", residuals->maximum);
    int room = CHART_WIDTH - (int)strlen(left) - (int)strlen(right);
    char middle[CHART_WIDTH * 4];
    snprintf(middle, sizeof middle, "predicted %.24s%s%.12s%s", shown(response).text, unit ? ", " : "",
             unit ? shown(unit).text : "", chart->wide ? " (log)" : "");
    int before = (room - (int)strlen(middle)) / 2;
    before = before < 1 ? 1 : before;
    int after = room - before - (int)strlen(middle);
    fprintf(stream, "          %s%*s%s%*s%s\n", left, before, "", middle, after < 1 ? 1 : after, "", right);
}

void residual_chart_print(FILE *stream, const struct residuals *residuals, bool unicode, const char *response,
                          const char *unit) {
    struct chart chart = {.wide = residuals_are_wide(residuals), .reach = least_reach};
    for (size_t k = 0; k < residuals->count; k++)
        chart.reach = fmax(chart.reach, fabs(residuals->standardised[k]));
    chart.reach = fmin(chart.reach, most_reach);
    chart.left = chart.wide ? log10(residuals->least_positive) : residuals->minimum;
    chart.right = chart.wide ? log10(residuals->maximum) : residuals->maximum;
    draw(&chart, residuals);
    if (chart.canvas.largest == 0)
        return;
    for (size_t line = 0; line < CHART_HEIGHT; line++) {
        bool dashed = print_label(stream, &chart, unicode, line);
        chart_canvas_print_line(stream, &chart.canvas, unicode, line, dashed);
    }
    print_axis(stream, residuals, &chart, response, unit);
    if (chart.beyond > 0)
        fprintf(stream, "  %zu row%s beyond %g sigma %s drawn at the edge\n", chart.beyond,
                chart.beyond == 1 ? "" : "s", chart.reach, chart.beyond == 1 ? "is" : "are");
}
