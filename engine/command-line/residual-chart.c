#include "engine/command-line/residual-chart.h"

#include "engine/command-line/shown.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

enum {
    WIDTH = 60,
    HEIGHT = 13,     /* odd: 0 is a line's middle */
    DOTS_ACROSS = 2, /* of a braille character */
    DOTS_DOWN = 4,
    DOTTED_MOST = 2000, /* of more rows the density says more than dots */
};

static const double least_reach = 3, most_reach = 8; /* sigmas from the middle to the edge */

struct chart {
    uint32_t counts[HEIGHT][WIDTH];
    unsigned char dots[HEIGHT][WIDTH]; /* braille: bits as Unicode numbers them */
    uint32_t largest;
    double reach;
    double left, right; /* of x, logarithms where it is wide */
    bool wide;
    size_t beyond; /* drawn at the edge */
    bool dotted;   /* dots, where they can be shown */
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

/* The bit of a braille character for the dot in COLUMN and LINE: 1 2 3 down, 4 5 6 down, then 7 and 8. */
static unsigned char dot_bit(size_t column, size_t line) {
    static const unsigned char bits[DOTS_DOWN][DOTS_ACROSS] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    return bits[line][column];
}

/* Which of COUNT steps from LEAST to GREATEST. */
static size_t step_of(double value, double least, double greatest, size_t count) {
    double share = greatest > least ? (value - least) / (greatest - least) : 0.5;
    double step = floor(share * (double)count);
    if (!(step >= 0)) /* also where the range is beyond that of doubles */
        return 0;
    return step >= (double)count ? count - 1 : (size_t)step;
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
        size_t across = step_of(x, chart->left, chart->right, WIDTH * DOTS_ACROSS);
        size_t down = step_of(-z, -chart->reach, chart->reach, HEIGHT * DOTS_DOWN);
        size_t column = across / DOTS_ACROSS, line = down / DOTS_DOWN;
        uint32_t *count = &chart->counts[line][column];
        *count += 1;
        chart->largest = *count > chart->largest ? *count : chart->largest;
        chart->dots[line][column] |= dot_bit(across % DOTS_ACROSS, down % DOTS_DOWN);
    }
}

/* Four steps of density, by the logarithm: one row is seen as well as a crowd. */
static int density(const struct chart *chart, uint32_t count) {
    double share = chart->largest > 1 ? log(count) / log(chart->largest) : 0;
    return (int)step_of(share, 0, 1, 4);
}

static void print_cell(FILE *stream, const struct chart *chart, bool unicode, size_t line, size_t column,
                       bool dashed) {
    static const char *const shades[] = {"\u2591", "\u2592", "\u2593", "\u2588"};
    uint32_t count = chart->counts[line][column];
    if (count == 0)
        fputs(!dashed || column % 2 ? " " : unicode ? "\u2574" : "-", stream);
    else if (unicode && chart->dotted) /* U+2800 and the bits of the dots */
        fprintf(stream, "\xe2%c%c", 0xa0 + (chart->dots[line][column] >> 6),
                0x80 + (chart->dots[line][column] & 0x3f));
    else if (unicode)
        fputs(shades[density(chart, count)], stream);
    else
        fputc(".:o@"[density(chart, count)], stream);
}

/* The line where a residual of Z sigmas is. */
static size_t line_of(const struct chart *chart, double z) {
    return step_of(-z, -chart->reach, chart->reach, HEIGHT);
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
    if (line == 0 || line == HEIGHT - 1)
        fprintf(stream, "%+6.2g %s ", line ? -chart->reach : chart->reach, sigma);
    else
        fprintf(stream, "%9s", "");
    return false;
}

static void print_line(FILE *stream, const struct chart *chart, bool unicode, size_t line) {
    bool dashed = print_label(stream, chart, unicode, line);
    fputs(unicode ? "\u2502" : "|", stream);
    size_t end = WIDTH;
    while (!dashed && end > 0 && chart->counts[line][end - 1] == 0)
        end--;
    for (size_t column = 0; column < end; column++)
        print_cell(stream, chart, unicode, line, column, dashed);
    fputc('\n', stream);
}

static void print_axis(FILE *stream, const struct residuals *residuals, const struct chart *chart,
                       const char *response, const char *unit) {
    char left[32], right[32];
    snprintf(left, sizeof left, "%.3g", chart->wide ? residuals->least_positive : residuals->minimum);
    snprintf(right, sizeof right, "%.3g", residuals->maximum);
    int room = WIDTH - (int)strlen(left) - (int)strlen(right);
    char middle[WIDTH * 4];
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
    if (chart.largest == 0)
        return;
    chart.dotted = residuals->count <= DOTTED_MOST;
    for (size_t line = 0; line < HEIGHT; line++)
        print_line(stream, &chart, unicode, line);
    print_axis(stream, residuals, &chart, response, unit);
    if (chart.beyond > 0)
        fprintf(stream, "  %zu row%s beyond %g sigma %s drawn at the edge\n", chart.beyond,
                chart.beyond == 1 ? "" : "s", chart.reach, chart.beyond == 1 ? "is" : "are");
}
