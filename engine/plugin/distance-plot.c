#include "engine/plugin/distance-plot.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/file.h"
#include "engine/foundation/text.h"
#include "engine/plugin/plot-panel.h"

#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdlib.h>

enum { PANEL_WIDTH = 430, PANEL_HEIGHT = 340, HEAD_HEIGHT = 46, TITLE_SIZE = 256 };

static const char ink[] = "#1f4e79", line_ink[] = "#c0392b";

static int append_panel(struct text *text, const struct fit_distances *distances, size_t column) {
    size_t count = distances->count;
    cleanup_free double *points = calloc(2 * count + 1, sizeof *points);
    if (!points)
        return -ENOMEM;
    double *x = points, *y = points + count, across = 0, up = 0;
    for (size_t i = 0; i < count; i++) {
        x[i] = sqrt(distances->items[i].quantile);
        y[i] = sqrt(distances->items[i].square);
        across = fmax(across, x[i]);
        up = fmax(up, y[i]);
    }
    char title[TITLE_SIZE], below[TITLE_SIZE], beside[TITLE_SIZE];
    snprintf(title, sizeof title, "%zu %s", count, distances->whats);
    snprintf(below, sizeof below, "root of the quantile of chi-squared (%u)", distances->freedom);
    snprintf(beside, sizeof beside, "distance from %s", distances->from);
    struct plot_panel panel = {.text = text,
                               .title = title,
                               .x = {below, 0, across, false, 0, 0},
                               .y = {beside, 0, up, false, 0, 0}};
    plot_axis_widen(&panel.x);
    plot_axis_widen(&panel.y);
    plot_panel_place(&panel, (double)column * PANEL_WIDTH, HEAD_HEIGHT, PANEL_WIDTH, PANEL_HEIGHT);
    plot_panel_frame(&panel);
    plot_panel_points(&panel, x, y, count, ink);
    const double line[] = {0, fmin(across, up)};
    plot_panel_line(&panel, line, line, 2, line_ink, false);
    return panel.error;
}

static int append_head(const struct fitting *fitting, size_t panels, struct text *text) {
    cleanup(text_clear) struct text title, counts;
    text_init(&title, 1 << 16);
    text_init(&counts, 1 << 16);
    const struct table *table = fitting_table(fitting);
    uint32_t groups = fitting_group_count(fitting);
    int r = text_printf(&title, "%s: %s and what goes with it", fitting_plugin(fitting)->name,
                        fitting_options(fitting)->response);
    r = r < 0 ? r
              : text_printf(&counts, "n = %" PRIu64 " rows of %s%s, %u group%s", fitting_rows(fitting),
                            table_input(table, 0)->name, table_input_count(table) > 1 ? " and others" : "",
                            groups, groups == 1 ? "" : "s");
    return r < 0 ? r
                 : plot_append_head(text, (unsigned)panels * PANEL_WIDTH, HEAD_HEIGHT + PANEL_HEIGHT,
                                    title.bytes, counts.bytes);
}

/* The panels side by side, of kinds that have distances. */
static int append_all(const struct fitting *fitting, struct text *text, size_t *ret_panels) {
    struct fit_distances distances;
    size_t panels = 0, column = 0;
    for (size_t set = 0; fitting_distances(fitting, set, &distances); set++)
        panels += distances.count > 0;
    *ret_panels = panels;
    int r = panels > 0 ? append_head(fitting, panels, text) : 0;
    for (size_t set = 0; r == 0 && fitting_distances(fitting, set, &distances); set++)
        if (distances.count > 0)
            r = append_panel(text, &distances, column++);
    return r < 0 ? r : text_append_string(text, "</svg>\n");
}

int distance_plot_write(const char *path, const struct fitting *fitting, struct failure *failure) {
    cleanup(text_clear) struct text text;
    text_init(&text, DISTANCE_PLOT_BYTES_MAX);
    size_t panels = 0;
    int r = append_all(fitting, &text, &panels);
    if (r < 0)
        return r == -EFBIG ? failure_set(failure, r, "the plot is larger than it may be")
                           : failure_memory(failure);
    if (panels == 0)
        return failure_input(
            failure, path, 0, 0,
            "there are neither residuals nor distances to plot: %s says nothing of single rows",
            fitting_plugin(fitting)->name);
    return file_write_output(path, text.bytes, text.length, failure);
}
