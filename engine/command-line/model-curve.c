#include "engine/command-line/model-curve.h"

#include "engine/command-line/shown.h"
#include "engine/foundation/cleanup.h"
#include "engine/plugin/evaluation.h"

#include <math.h>
#include <string.h>

enum { WIDTH = 64, HEIGHT = 12 };

/* From so many times on an axis is logarithmic. */
static const double wide = 100;

struct axis {
    double low, high;
    bool logarithmic;
};

static struct axis make_axis(double low, double high) {
    return (struct axis){low, high, low > 0 && high / low >= wide};
}

static double place(const struct axis *axis, double value) {
    if (!(axis->high > axis->low))
        return 0.5;
    double share = axis->logarithmic ? log(value / axis->low) / log(axis->high / axis->low)
                                     : (value - axis->low) / (axis->high - axis->low);
    return isfinite(share) ? share : 0.5; /* a range beyond that of doubles has no places */
}

static double value_at(const struct axis *axis, double place) {
    return axis->logarithmic ? axis->low * pow(axis->high / axis->low, place)
                             : axis->low + (axis->high - axis->low) * place;
}

/* Where the group saw the column; false where it does not say. */
static bool find_range(const struct predict_model *model, size_t group, double *ret_low, double *ret_high) {
    *ret_low = INFINITY;
    *ret_high = -INFINITY;
    for (size_t p = 0; p < model->groups[group].part_count; p++) {
        const struct predict_part *part = &model->groups[group].parts[p];
        for (size_t i = 0; i < part->domain_count; i++)
            if (strcmp(part->domain[i].name, model->over) == 0) {
                *ret_low = fmin(*ret_low, part->domain[i].minimum);
                *ret_high = fmax(*ret_high, part->domain[i].maximum);
            }
    }
    return *ret_low < *ret_high;
}

static bool is_over_one_column(const struct predict_model *model) {
    if (!model->over || model->named_by || !evaluation_is_possible(model))
        return false;
    for (size_t t = 0; t < model->term_count; t++)
        for (size_t f = 0; f < model->terms[t].factor_count; f++)
            if (strcmp(model->terms[t].factors[f].name, model->over) != 0 || model->terms[t].factors[f].level)
                return false;
    return true;
}

static void print_chart(const struct predict_model *model, const struct axis *x, const struct axis *y,
                        char cells[HEIGHT][WIDTH + 1], FILE *stream) {
    for (size_t row = 0; row < HEIGHT; row++) {
        double at = row == 0 ? y->high : row + 1 == HEIGHT ? y->low : NAN;
        if (isnan(at))
            fprintf(stream, "  %11s |%s\n", "", cells[row]);
        else
            fprintf(stream, "  %11.4g |%s\n", at, cells[row]);
    }
    fprintf(stream, "  %11s  %-*.4g%*.4g\n", "", WIDTH / 2, x->low, WIDTH / 2, x->high);
    fprintf(stream, "  %11s  %s%s over %s%s; ':' is where a segment begins\n", "",
            shown(model->response).text, y->logarithmic ? " (logarithmic)" : "", shown(model->over).text,
            x->logarithmic ? " (logarithmic)" : "");
}

static void draw(const struct predict_model *model, size_t group, const struct axis *x, const double *means,
                 FILE *stream) {
    char cells[HEIGHT][WIDTH + 1];
    double least = INFINITY, most = -INFINITY;
    for (size_t c = 0; c < WIDTH; c++) {
        least = fmin(least, means[c]);
        most = fmax(most, means[c]);
    }
    if (!isfinite(least) || !isfinite(most))
        return;
    const struct axis y = make_axis(least, most);
    memset(cells, ' ', sizeof cells);
    for (size_t row = 0; row < HEIGHT; row++)
        cells[row][WIDTH] = '\0';
    for (size_t p = 1; p < model->groups[group].part_count; p++) {
        double at = place(x, model->groups[group].parts[p].from) * (WIDTH - 1);
        for (size_t row = 0; at >= 0 && at <= WIDTH - 1 && row < HEIGHT; row++)
            cells[row][(size_t)(at + 0.5)] = ':';
    }
    for (size_t c = 0; c < WIDTH; c++)
        if (!isnan(means[c]))
            cells[HEIGHT - 1 - (size_t)(fmin(fmax(place(&y, means[c]), 0), 1) * (HEIGHT - 1) + 0.5)][c] = '*';
    print_chart(model, x, &y, cells, stream);
}

int model_curve_print(const struct predict_model *model, size_t group, FILE *stream,
                      struct failure *failure) {
    double low, high, means[WIDTH];
    if (!is_over_one_column(model) || !find_range(model, group, &low, &high))
        return 0;
    cleanup(evaluation_cleanup) struct evaluation *evaluation = NULL;
    int r = evaluation_new(model, &model->over, 1, &evaluation, failure);
    if (r < 0)
        return r;
    const struct axis x = make_axis(low, high);
    for (size_t c = 0; c < WIDTH; c++) {
        struct evaluation_value value;
        double at = value_at(&x, (double)c / (WIDTH - 1));
        means[c] = evaluation_row(evaluation, group, &at, NULL, &value) < 0 ? NAN : value.mean;
    }
    draw(model, group, &x, means, stream);
    return 0;
}
