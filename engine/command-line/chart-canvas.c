#include "engine/command-line/chart-canvas.h"

#include <math.h>

enum { DOTS_ACROSS = 2, DOTS_DOWN = 4 /* of a braille character */ };

/* The bit of a braille character for the dot in COLUMN and LINE: 1 2 3 down, 4 5 6 down, then 7 and 8. */
static unsigned char dot_bit(size_t column, size_t line) {
    static const unsigned char bits[DOTS_DOWN][DOTS_ACROSS] = {{1, 8}, {2, 16}, {4, 32}, {64, 128}};
    return bits[line][column];
}

size_t chart_step(double value, double least, double greatest, size_t count) {
    double share = greatest > least ? (value - least) / (greatest - least) : 0.5;
    double step = floor(share * (double)count);
    if (!(step >= 0)) /* also where the range is beyond that of doubles */
        return 0;
    return step >= (double)count ? count - 1 : (size_t)step;
}

void chart_canvas_add(struct chart_canvas *canvas, double across, double up) {
    size_t x = chart_step(across, 0, 1, CHART_WIDTH * DOTS_ACROSS);
    size_t y = chart_step(-up, -1, 0, CHART_HEIGHT * DOTS_DOWN);
    size_t column = x / DOTS_ACROSS, line = y / DOTS_DOWN;
    uint32_t *count = &canvas->counts[line][column];
    *count += 1;
    canvas->largest = *count > canvas->largest ? *count : canvas->largest;
    canvas->dots[line][column] |= dot_bit(x % DOTS_ACROSS, y % DOTS_DOWN);
    canvas->points++;
}

void chart_canvas_mark(struct chart_canvas *canvas, double across, double up) {
    for (size_t column = 0; column < CHART_WIDTH; column++) {
        double height = ((double)column + 0.5) / CHART_WIDTH * up / across;
        if (height <= 1)
            canvas->marked[chart_step(-height, -1, 0, CHART_HEIGHT)][column] = true;
    }
}

/* Four steps of density, by the logarithm: one point is seen as well as a crowd. */
static size_t density(const struct chart_canvas *canvas, uint32_t count) {
    double share = canvas->largest > 1 ? log(count) / log(canvas->largest) : 0;
    return chart_step(share, 0, 1, 4);
}

static void print_cell(FILE *stream, const struct chart_canvas *canvas, bool unicode, size_t line,
                       size_t column, bool dashed) {
    static const char *const shades[] = {"\u2591", "\u2592", "\u2593", "\u2588"};
    uint32_t count = canvas->counts[line][column];
    if (count == 0 && canvas->marked[line][column])
        fputs(unicode ? "\u00b7" : "'", stream);
    else if (count == 0)
        fputs(!dashed || column % 2 ? " " : unicode ? "\u2574" : "-", stream);
    else if (unicode && canvas->points <= CHART_DOTTED_MAX) /* U+2800 and the bits of the dots */
        fprintf(stream, "\xe2%c%c", 0xa0 + (canvas->dots[line][column] >> 6),
                0x80 + (canvas->dots[line][column] & 0x3f));
    else if (unicode)
        fputs(shades[density(canvas, count)], stream);
    else
        fputc(".:o@"[density(canvas, count)], stream);
}

void chart_canvas_print_line(FILE *stream, const struct chart_canvas *canvas, bool unicode, size_t line,
                             bool dashed) {
    fputs(unicode ? "\u2502" : "|", stream);
    size_t end = CHART_WIDTH;
    while (!dashed && end > 0 && canvas->counts[line][end - 1] == 0 && !canvas->marked[line][end - 1])
        end--;
    for (size_t column = 0; column < end; column++)
        print_cell(stream, canvas, unicode, line, column, dashed);
    fputc('\n', stream);
}
