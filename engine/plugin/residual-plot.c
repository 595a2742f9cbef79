#include "engine/plugin/residual-plot.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/plugin/evaluation.h"
#include "engine/plugin/normal-quantile.h"
#include "engine/plugin/plot-panel.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

enum {
    PANEL_WIDTH = 430,
    PANEL_HEIGHT = 340,
    HEAD_HEIGHT = 46,
    QUANTILES_MAX = 3000,
    CURVE_POINTS = 400,
    CURVES_MAX = 8, /* groups */
    TITLE_SIZE = 256,
    HEAD_TERMS_MAX = 12,
};

static const double least_reach = 3, most_reach = 8; /* sigmas */
static const double wide = 100;                      /* from this ratio on a scale is logarithmic */
static const double mostly = 0.75;                   /* of the values must be positive for that */
static const char ink[] = "#1f4e79", line_ink[] = "#c0392b";
static const char *const group_inks[CURVES_MAX] = {"#1f4e79", "#d55e00", "#009e73", "#cc79a7",
                                                   "#8c6d00", "#56b4e9", "#7a1f1f", "#555555"};

struct plot {
    const struct fitting *fitting;
    const struct fitted_model *model;
    const struct residuals *residuals;
    struct text *text;
    const char *response;
    char response_title[TITLE_SIZE]; /* "duration, s" */
    /* Of a model over one column: */
    const char *factor;    /* its name, or NULL */
    const double *factors; /* of every kept row */
};

static void make_title(char title[static TITLE_SIZE], const char *before, const char *name,
                       const char *unit) {
    snprintf(title, TITLE_SIZE, "%s%.120s%s%.60s", before, name, unit ? ", " : "", unit ? unit : "");
}

/* The one column that all terms are of; NULL where there are more, or none. */
static const char *only_factor(const struct predict_model *model) {
    const char *only = model->over;
    for (size_t t = 0; t < model->term_count; t++)
        for (size_t f = 0; f < model->terms[t].factor_count; f++) {
            const struct plugin_factor *factor = &model->terms[t].factors[f];
            if (factor->level || (only && strcmp(only, factor->name) != 0))
                return NULL;
            only = factor->name;
        }
    return only;
}

static void find_factor(struct plot *plot) {
    const struct fit_needs *needs = fitting_needs(plot->fitting);
    const char *only = only_factor(fitted_model_view(plot->model));
    for (size_t i = 0; only && i < needs->column_count; i++)
        if (strcmp(needs->columns[i], only) == 0) {
            plot->factor = needs->columns[i];
            plot->factors = fitting_kept_rows(plot->fitting)->columns[i];
        }
}

/* ---- Residuals against predicted values */

static double reach_of(const struct residuals *residuals) {
    double reach = least_reach;
    for (size_t k = 0; k < residuals->count; k++)
        reach = fmax(reach, fabs(residuals->standardised[k])); /* fmax passes over NaN */
    return fmin(reach, most_reach);
}

static void rule(struct plot_panel *panel, double y, bool dashed) {
    const double x[] = {panel->x.minimum, panel->x.maximum}, level[] = {y, y};
    plot_panel_line(panel, x, level, 2, dashed ? "#888888" : line_ink, dashed);
}

static int append_residuals(const struct plot *plot, size_t column) {
    const struct residuals *residuals = plot->residuals;
    char title[TITLE_SIZE];
    make_title(title, "predicted ", plot->response_title, NULL);
    double reach = reach_of(residuals);
    bool wide_scale = residuals_are_wide(residuals);
    struct plot_panel panel = {
        .text = plot->text,
        .title = "Residuals",
        .x = {title, wide_scale ? residuals->least_positive : residuals->minimum, residuals->maximum,
              wide_scale, 0, 0},
        .y = {"residual, sigma", -reach, reach, false, 0, 0},
    };
    plot_axis_widen(&panel.x);
    plot_axis_widen(&panel.y);
    plot_panel_place(&panel, (double)column * PANEL_WIDTH, HEAD_HEIGHT, PANEL_WIDTH, PANEL_HEIGHT);
    plot_panel_frame(&panel);
    plot_panel_points(&panel, residuals->predicted, residuals->standardised, residuals->count, ink);
    rule(&panel, 0, false);
    rule(&panel, 2, true);
    rule(&panel, -2, true);
    return panel.error;
}

/* ---- Quantiles */

static int compare_doubles(const void *a, const void *b) {
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* The COUNT sorted values against normal quantiles: all where they are few, else all in the tails and evenly
 * many between. Returns how many there are in RET_X and RET_Y (QUANTILES_MAX). */
static size_t choose_quantiles(const double *sorted, size_t count, double *ret_x, double *ret_y) {
    const size_t tail = QUANTILES_MAX / 4, inner = QUANTILES_MAX - 2 * tail;
    size_t chosen = count < QUANTILES_MAX ? count : QUANTILES_MAX;
    for (size_t i = 0; i < chosen; i++) {
        size_t at = i;
        if (count > QUANTILES_MAX && i >= tail)
            at = i >= tail + inner ? count - QUANTILES_MAX + i
                                   : tail + (i - tail) * (count - 2 * tail) / inner;
        ret_x[i] = normal_quantile(((double)at + 0.5) / (double)count);
        ret_y[i] = sorted[at];
    }
    return chosen;
}

static int append_quantiles(const struct plot *plot, size_t column) {
    const struct residuals *residuals = plot->residuals;
    cleanup_free double *sorted = calloc(residuals->count + 1, sizeof *sorted);
    cleanup_free double *points = calloc((size_t)2 * QUANTILES_MAX, sizeof *points);
    if (!sorted || !points)
        return -ENOMEM;
    size_t count = 0;
    for (size_t k = 0; k < residuals->count; k++)
        if (!isnan(residuals->standardised[k]))
            sorted[count++] = residuals->standardised[k];
    qsort(sorted, count, sizeof *sorted, compare_doubles);
    double *x = points, *y = points + QUANTILES_MAX;
    size_t chosen = choose_quantiles(sorted, count, x, y);
    double across = chosen > 0 ? fmax(-x[0], 1) : 1, reach = reach_of(residuals);
    struct plot_panel panel = {
        .text = plot->text,
        .title = "Normal quantiles",
        .x = {"quantile of a normal, sigma", -across, across, false, 0, 0},
        .y = {"residual, sigma", -reach, reach, false, 0, 0},
    };
    plot_axis_widen(&panel.x);
    plot_axis_widen(&panel.y);
    plot_panel_place(&panel, (double)column * PANEL_WIDTH, HEAD_HEIGHT, PANEL_WIDTH, PANEL_HEIGHT);
    plot_panel_frame(&panel);
    plot_panel_points(&panel, x, y, chosen, ink);
    double end = fmin(across, reach), line[] = {-end, end};
    plot_panel_line(&panel, line, line, 2, line_ink, false);
    return panel.error;
}

/* ---- Data and curve */

/* Rows that are drawn in one colour, with their curve: of a group, and of the parts of one name where the
 * model has names. */
struct series {
    uint32_t code;    /* of the group; UINT32_MAX: of all */
    const char *name; /* NULL: all parts */
};

/* What has no segments has no curve: a cost that is the same for all sizes. */
static bool is_drawn(const struct plot *plot, size_t k) {
    return !fitted_model_view(plot->model)->named_by ||
           strcmp(plot->residuals->parts[k]->kind, "segment") == 0;
}

/* A size of 0 is drawn at the edge where nearly all others are seen best on a logarithmic scale. */
static void choose_scale(struct plot_axis *axis, double least_positive, double positive) {
    if (axis->minimum <= 0 && positive > mostly && axis->maximum / least_positive > wide)
        axis->minimum = least_positive;
    axis->logarithmic = axis->minimum > 0 && axis->maximum / axis->minimum > wide;
    plot_axis_widen(axis);
}

static void find_bounds(const struct plot *plot, struct plot_axis *x, struct plot_axis *y) {
    const struct residuals *residuals = plot->residuals;
    double least_x = INFINITY, least_y = INFINITY, count = 0, positive_x = 0, positive_y = 0;
    x->minimum = y->minimum = INFINITY;
    x->maximum = y->maximum = -INFINITY;
    for (size_t k = 0; k < residuals->count; k++) {
        if (!is_drawn(plot, k))
            continue;
        double factor = plot->factors[residuals->rows[k]];
        double observed = residuals->predicted[k] + residuals->residual[k];
        x->minimum = fmin(x->minimum, factor);
        x->maximum = fmax(x->maximum, factor);
        y->minimum = fmin(y->minimum, observed);
        y->maximum = fmax(y->maximum, observed);
        least_x = factor > 0 ? fmin(least_x, factor) : least_x;
        least_y = observed > 0 ? fmin(least_y, observed) : least_y;
        positive_x += factor > 0;
        positive_y += observed > 0;
        count++;
    }
    choose_scale(x, least_x, positive_x / count);
    choose_scale(y, least_y, positive_y / count);
}

static bool is_of(const struct plot *plot, size_t k, const struct series *series) {
    uint32_t code = fitting_kept_rows(plot->fitting)->groups[plot->residuals->rows[k]];
    const char *name = plot->residuals->parts[k]->name;
    return is_drawn(plot, k) && (series->code == UINT32_MAX || series->code == code) &&
           (!series->name || (name && strcmp(series->name, name) == 0));
}

static void put_data(const struct plot *plot, struct plot_panel *panel, const struct series *series,
                     double *points, const char *colour) {
    const struct residuals *residuals = plot->residuals;
    double *x = points, *y = points + residuals->count;
    size_t count = 0;
    for (size_t k = 0; k < residuals->count; k++) {
        if (!is_of(plot, k, series))
            continue;
        x[count] = plot->factors[residuals->rows[k]];
        y[count++] = residuals->predicted[k] + residuals->residual[k];
    }
    plot_panel_points(panel, x, y, count, colour);
}

static void put_curve(struct plot_panel *panel, const struct evaluation *evaluation, size_t group,
                      const char *name, const char *colour) {
    double x[CURVE_POINTS], y[CURVE_POINTS];
    for (size_t i = 0; i < CURVE_POINTS; i++) {
        double share = (double)i / (CURVE_POINTS - 1);
        x[i] = panel->x.logarithmic ? panel->x.minimum * pow(panel->x.maximum / panel->x.minimum, share)
                                    : panel->x.minimum + share * (panel->x.maximum - panel->x.minimum);
        struct evaluation_value value;
        const double values[] = {x[i], NAN};
        const char *const texts[] = {NULL, name};
        y[i] = evaluation_row(evaluation, group, values, texts, &value) == 0 ? value.mean : NAN;
    }
    plot_panel_line(panel, x, y, CURVE_POINTS, colour, false);
}

static void put_breaks(struct plot_panel *panel, const struct predict_group *group, const char *name,
                       const char *colour) {
    for (size_t i = 1; i < group->part_count; i++) {
        const struct predict_part *part = &group->parts[i];
        if (name && (!part->name || strcmp(part->name, name) != 0))
            continue;
        const double x[] = {part->from, part->from}, y[] = {panel->y.minimum, panel->y.maximum};
        if (part->from > panel->x.minimum && part->from < panel->x.maximum)
            plot_panel_line(panel, x, y, 2, colour, true);
    }
}

static void name_series(const struct plot *plot, const struct series *series, char name[static TITLE_SIZE]) {
    size_t length = 0;
    name[0] = '\0';
    for (size_t j = 0; j < fitting_options(plot->fitting)->by_count && length < TITLE_SIZE - 1; j++) {
        int written = snprintf(name + length, TITLE_SIZE - length, "%s%.40s", j ? "/" : "",
                               fitting_label(plot->fitting, series->code, j));
        length += written < 0 ? 0 : (size_t)written;
    }
    if (series->name && length < TITLE_SIZE - 1)
        snprintf(name + length, TITLE_SIZE - length, "%s%.40s", length ? " " : "", series->name);
}

/* The names of the group's segments, each once; one that is NULL where they have none. Counts on from COUNT,
 * also what there is no room for. */
static size_t list_group(const struct plot *plot, uint32_t code, size_t group, struct series *ret,
                         size_t count) {
    const struct predict_model *view = fitted_model_view(plot->model);
    const struct predict_group *of = &view->groups[group];
    const char *last = NULL;
    for (size_t p = 0; p < of->part_count; p++) {
        const char *name = view->named_by ? of->parts[p].name : NULL;
        bool again = p > 0 && (!name || (last && strcmp(name, last) == 0));
        if (again || (view->named_by && (!name || strcmp(of->parts[p].kind, "segment") != 0)))
            continue;
        last = name;
        if (count < CURVES_MAX)
            ret[count] = (struct series){code, name};
        count++;
    }
    return count;
}

static size_t list_series(const struct plot *plot, struct series ret[static CURVES_MAX]) {
    size_t count = 0;
    for (uint32_t code = 0; code < fitting_group_count(plot->fitting) && count <= CURVES_MAX; code++) {
        size_t group = fitted_model_group(plot->model, code);
        if (group != SIZE_MAX)
            count = list_group(plot, code, group, ret, count);
    }
    return count;
}

static void put_series(const struct plot *plot, struct plot_panel *panel, const struct evaluation *evaluation,
                       double *points) {
    const struct predict_model *view = fitted_model_view(plot->model);
    struct series series[CURVES_MAX];
    size_t count = list_series(plot, series);
    bool apart = count > 1 && count <= CURVES_MAX;
    if (!apart)
        put_data(plot, panel, &(struct series){UINT32_MAX, NULL}, points, ink);
    for (size_t i = 0; i < count && count <= CURVES_MAX; i++) {
        size_t group = fitted_model_group(plot->model, series[i].code);
        const char *colour = apart ? group_inks[i] : line_ink;
        if (apart)
            put_data(plot, panel, &series[i], points, colour);
        put_curve(panel, evaluation, group, series[i].name, colour);
        put_breaks(panel, &view->groups[group], series[i].name, apart ? colour : "#888888");
        char name[TITLE_SIZE];
        name_series(plot, &series[i], name);
        if (apart)
            plot_panel_legend(panel, i, name, colour);
    }
}

static int append_data(const struct plot *plot, size_t column) {
    cleanup(evaluation_cleanup) struct evaluation *evaluation = NULL;
    cleanup_free double *points = calloc(2 * plot->residuals->count + 1, sizeof *points);
    const struct predict_model *view = fitted_model_view(plot->model);
    const char *const columns[] = {plot->factor, view->named_by};
    int r = points ? evaluation_new(view, columns, view->named_by ? 2 : 1, &evaluation, NULL) : -ENOMEM;
    if (r < 0)
        return r;
    char title[TITLE_SIZE];
    make_title(title, "", plot->factor, fitting_unit(plot->fitting, plot->factor));
    struct plot_panel panel = {
        .text = plot->text,
        .title = "Data and model",
        .x = {.title = title},
        .y = {.title = plot->response_title},
    };
    find_bounds(plot, &panel.x, &panel.y);
    plot_panel_place(&panel, (double)column * PANEL_WIDTH, HEAD_HEIGHT, PANEL_WIDTH, PANEL_HEIGHT);
    plot_panel_frame(&panel);
    put_series(plot, &panel, evaluation, points);
    return panel.error;
}

/* ---- The whole */

static int append_formula(const struct plot *plot, struct text *text) {
    const struct predict_model *view = fitted_model_view(plot->model);
    const struct fitting_options *options = fitting_options(plot->fitting);
    int r = text_printf(text, "%s: %s =", fitting_plugin(plot->fitting)->name, plot->response);
    for (size_t t = 0; r == 0 && t < view->term_count && t < HEAD_TERMS_MAX; t++)
        r = text_printf(text, "%s %s", t ? " +" : "", view->terms[t].name);
    if (r == 0 && view->term_count > HEAD_TERMS_MAX)
        r = text_append_string(text, " + ...");
    for (size_t j = 0; r == 0 && j < options->by_count; j++)
        r = text_printf(text, "%s%s", j ? ", " : "; by ", options->by[j]);
    return r;
}

static int append_counts(const struct plot *plot, struct text *text) {
    const struct table *table = fitting_table(plot->fitting);
    const struct residuals *residuals = plot->residuals;
    int r = text_printf(text, "n = %" PRIu64 " rows of %s%s, ", fitting_rows(plot->fitting),
                        table_input(table, 0)->name, table_input_count(table) > 1 ? " and others" : "");
    uint32_t groups = fitting_group_count(plot->fitting);
    r = r < 0 ? r : text_printf(text, "%u group%s", groups, groups == 1 ? "" : "s");
    if (r == 0 && residuals->stride > 1)
        r = text_printf(text, "; 1 row in %" PRIu64 " is shown", residuals->stride);
    return r < 0 ? r
                 : text_printf(text, "; sigma is that of %s",
                               residuals->noise ? "the model's noise" : "each group's residuals");
}

static int append_head(const struct plot *plot, size_t columns) {
    cleanup(text_clear) struct text formula, counts;
    text_init(&formula, 1 << 20);
    text_init(&counts, 1 << 20);
    int r = append_formula(plot, &formula);
    r = r < 0 ? r : append_counts(plot, &counts);
    if (r == 0)
        r = plot_append_head(plot->text, (unsigned)columns * PANEL_WIDTH, HEAD_HEIGHT + PANEL_HEIGHT,
                             formula.bytes, counts.bytes);
    return r;
}

int residual_plot_append(struct text *text, const struct fitting *fitting, const struct fitted_model *model,
                         const struct residuals *residuals, struct failure *failure) {
    struct plot plot = {.fitting = fitting, .model = model, .residuals = residuals, .text = text};
    plot.response = fitting_options(fitting)->response;
    make_title(plot.response_title, "", plot.response, fitting_unit(fitting, plot.response));
    if (residuals->count == 0)
        return failure_input(failure, NULL, 0, 0, "there are no residuals to plot");
    find_factor(&plot);
    int r = append_head(&plot, plot.factor ? 3 : 2);
    r = r < 0 ? r : append_residuals(&plot, 0);
    r = r < 0 ? r : append_quantiles(&plot, 1);
    if (r == 0 && plot.factor)
        r = append_data(&plot, 2);
    r = r < 0 ? r : text_append_string(text, "</svg>\n");
    if (r == -EFBIG)
        return failure_set(failure, r, "the plot is larger than it may be");
    return r < 0 ? failure_memory(failure) : 0;
}

int residual_plot_write(const char *path, const struct fitting *fitting, const struct fitted_model *model,
                        const struct residuals *residuals, struct failure *failure) {
    cleanup(text_clear) struct text text;
    text_init(&text, RESIDUAL_PLOT_BYTES_MAX);
    int r = residual_plot_append(&text, fitting, model, residuals, failure);
    return r < 0 ? r : file_write_output(path, text.bytes, text.length, failure);
}
