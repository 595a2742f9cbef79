#include "engine/command-line/fit-residuals.h"

#include "engine/command-line/fit-print.h"
#include "engine/command-line/residual-chart.h"
#include "engine/command-line/shown.h"
#include "engine/documents/unit.h"
#include "engine/foundation/cleanup.h"
#include "engine/foundation/number.h"

#include <inttypes.h>
#include <math.h>
#include <string.h>

enum {
    WORST_ROWS = 5,
    FACTORS_SHOWN = 8,
};

/* From here down a test says that the model is not true. */
static const double significant = 1e-3, least_p = 1e-300;

static void print_head(FILE *stream, const struct fitting *fitting, const struct residuals *residuals) {
    fprintf(stream, "\nresiduals of %zu row%s", residuals->count, residuals->count == 1 ? "" : "s");
    if (residuals->stride > 1)
        fprintf(stream, " (1 in %" PRIu64 ")", residuals->stride);
    if (residuals->left_out > 0)
        fprintf(stream, ", %zu left out", residuals->left_out);
    const char *unit = fitting_unit(fitting, fitting_options(fitting)->response);
    fprintf(stream, ": root mean square %.4g%s%s, %.3g %% beyond 2 sigma", residuals->rms, unit ? " " : "",
            unit ? shown(unit).text : "", 100 * residuals_beyond(residuals, 2));
    fprintf(stream, ", sigma that of %s\n",
            residuals->noise ? "the model's noise" : "each group's residuals");
}

/* "calls.csv line 17"; in archives the line of their table. */
void fit_residuals_print_place(FILE *stream, const struct fitting *fitting, uint64_t row) {
    const struct table_input *input;
    uint64_t line;
    if (table_stream_place(fitting_table(fitting), row, &input, &line))
        fprintf(stream, "%s%s%s line %" PRIu64, shown(input->name).text, input->archive ? " " : "",
                input->archive ? input->member : "", line);
    else
        fprintf(stream, "data row %" PRIu64, row + 1);
}

static void print_labels(FILE *stream, const struct fitting *fitting, size_t row) {
    const struct kept_rows *rows = fitting_kept_rows(fitting);
    for (size_t j = 0; j < rows->label_count; j++)
        fprintf(stream, ", %s %s", shown(fitting_label_column(fitting, j)).text,
                shown(table_label(fitting_table(fitting), j, rows->labels[j][row])).text);
}

static void print_factors(FILE *stream, const struct fitting *fitting, size_t row) {
    const struct fit_needs *needs = fitting_needs(fitting);
    const char *response = fitting_options(fitting)->response;
    size_t shown_count = 0;
    for (size_t i = 0; i < needs->column_count && shown_count < FACTORS_SHOWN; i++) {
        if (strcmp(needs->columns[i], response) == 0)
            continue;
        char value[NUMBER_TEXT_SIZE];
        number_format_double(fitting_kept_rows(fitting)->columns[i][row], value);
        fprintf(stream, ", %s %s", shown(needs->columns[i]).text, value);
        shown_count++;
    }
}

static void print_worst(FILE *stream, const struct fitting *fitting, const struct residuals *residuals) {
    size_t worst[WORST_ROWS], count = residuals_worst(residuals, WORST_ROWS, worst);
    uint64_t stride = fitting_kept_rows(fitting)->stride;
    const char *unit = fitting_unit(fitting, fitting_options(fitting)->response);
    if (count == 0)
        return;
    fprintf(stream, "the rows that are furthest off");
    if (residuals->stride > 1)
        fprintf(stream, ", of 1 in %" PRIu64 " rows", residuals->stride);
    fprintf(stream, ":\n");
    for (size_t i = 0; i < count; i++) {
        size_t k = worst[i], row = residuals->rows[k];
        fprintf(stream, "  ");
        fit_residuals_print_place(stream, fitting, row * stride);
        print_labels(stream, fitting, row);
        print_factors(stream, fitting, row);
        struct fit_comparison comparison;
        fitting_compare(fitting, row, &comparison);
        if (comparison.as)
            fprintf(stream, ", with the row before it a %s", shown(comparison.as).text);
        fprintf(stream, ": %.6g observed, %.6g predicted%s%s, %+.3g sigma\n",
                residuals->predicted[k] + residuals->residual[k], residuals->predicted[k], unit ? " " : "",
                unit ? shown(unit).text : "", residuals->standardised[k]);
    }
}

static void print_lack_of_fit(FILE *stream, const struct fitting *fitting, const struct lack_of_fit *lack) {
    if (!(lack->pure_freedom > 0))
        return;
    const char *unit = fitting_unit(fitting, fitting_options(fitting)->response);
    char count[FIT_PRINT_COUNT_MAX];
    fprintf(stream, "rows repeat: %s setting%s, pure error %.3g%s%s", fit_print_count(lack->settings, count),
            lack->settings == 1 ? "" : "s", lack->pure_error, unit ? " " : "", unit ? shown(unit).text : "");
    if (!isnan(lack->ratio)) {
        double p = exp(lack->log_p);
        fprintf(stream, "; lack of fit F = %.*g (%.0f, %.0f), p %s %.2g", lack->ratio < 1000 ? 3 : 4,
                lack->ratio, lack->freedom, lack->pure_freedom, p < least_p ? "<" : "=",
                p < least_p ? least_p : p);
        if (p < significant)
            fprintf(stream, ": the standard errors above take rows for independent and the model for true");
    }
    fprintf(stream, "\n");
}

/* What cannot be: a time, or whatever else was observed above 0 everywhere, predicted to be 0 or less. */
static void print_not_positive(FILE *stream, const struct fitting *fitting,
                               const struct residuals *residuals) {
    const char *code = fitting_unit(fitting, fitting_options(fitting)->response);
    const struct unit *unit = code ? unit_find(code) : NULL;
    bool is_time = unit && unit->dimension == UNIT_TIME;
    size_t first = residuals_first_not_positive(residuals);
    if (first == residuals->count || !(is_time || residuals->above_zero))
        return;
    char some[FIT_PRINT_COUNT_MAX], all[FIT_PRINT_COUNT_MAX];
    fprintf(stream, "predicts 0%s%s or less for %s of %s rows, the first ", code ? " " : "",
            code ? shown(code).text : "", fit_print_count(residuals->count - residuals->positive, some),
            fit_print_count(residuals->count, all));
    fit_residuals_print_place(stream, fitting, residuals->rows[first] * fitting_kept_rows(fitting)->stride);
    fprintf(stream, "\n");
}

void fit_residuals_print(FILE *stream, const struct fitting *fitting, const struct residuals *residuals,
                         const struct lack_of_fit *lack) {
    if (residuals->count == 0)
        return;
    const char *response = fitting_options(fitting)->response;
    print_head(stream, fitting, residuals);
    residual_chart_print(stream, residuals, residual_chart_unicode(), response,
                         fitting_unit(fitting, response));
    print_lack_of_fit(stream, fitting, lack);
    print_not_positive(stream, fitting, residuals);
    print_worst(stream, fitting, residuals);
}
