#include "engine/plugin/lack-of-fit.h"

#include "engine/foundation/cleanup.h"
#include "engine/foundation/memory.h"
#include "engine/plugin/f-probability.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

/* What settings are told apart by. */
struct settings {
    const struct kept_rows *kept;
    const uint32_t *rows;   /* of kept rows, by place among the residuals */
    const double **columns; /* the factors */
    size_t column_count;
    uint32_t *const *labels; /* the categories */
    size_t label_count;
};

/* ---- Settings */

static int compare_numbers(double a, double b) {
    if (isnan(a) || isnan(b))
        return isnan(a) - isnan(b);
    return (a > b) - (a < b);
}

static int compare_codes(uint32_t a, uint32_t b) {
    return (a > b) - (a < b);
}

/* By group and factors, A and B being places among the residuals. */
static int compare_settings(const struct settings *settings, size_t a, size_t b) {
    uint32_t one = settings->rows[a], two = settings->rows[b];
    int order = compare_codes(settings->kept->groups[one], settings->kept->groups[two]);
    for (size_t i = 0; order == 0 && i < settings->column_count; i++)
        order = compare_numbers(settings->columns[i][one], settings->columns[i][two]);
    for (size_t j = 0; order == 0 && j < settings->label_count; j++)
        order = compare_codes(settings->labels[j][one], settings->labels[j][two]);
    return order;
}

static int compare_places(const void *a, const void *b, void *context) {
    size_t one = *(const size_t *)a, two = *(const size_t *)b;
    int order = compare_settings(context, one, two);
    return order ? order : (one > two) - (one < two);
}

/* Adds the COUNT rows of one setting. */
static void add_setting(struct lack_of_fit *ret, const struct residuals *residuals, const size_t *places,
                        size_t count) {
    /* About the first one, so that equal ones have no scatter, not even of rounding. */
    double first = residuals->residual[places[0]], mean = first;
    for (size_t i = 1; i < count; i++)
        mean += (residuals->residual[places[i]] - first) / (double)count;
    for (size_t i = 0; i < count; i++) {
        double off = residuals->residual[places[i]] - mean;
        ret->pure_squares += off * off;
    }
    ret->squares += (double)count * mean * mean;
    ret->rows += count;
    ret->settings++;
}

static int add_settings(struct lack_of_fit *ret, struct settings *settings,
                        const struct residuals *residuals) {
    cleanup_free size_t *places = calloc(residuals->count + 1, sizeof *places);
    if (!places)
        return -1;
    for (size_t k = 0; k < residuals->count; k++)
        places[k] = k;
    qsort_r(places, residuals->count, sizeof *places, compare_places, settings);
    for (size_t first = 0, end; first < residuals->count; first = end) {
        for (end = first + 1;
             end < residuals->count && compare_settings(settings, places[first], places[end]) == 0; end++)
            ;
        add_setting(ret, residuals, places + first, end - first);
    }
    return 0;
}

/* ---- The test */

/* What was estimated: coefficients that were not dropped, and where segments meet. */
static double count_estimates(const struct predict_model *view, size_t group) {
    double count = 0;
    for (size_t i = 0; i < view->groups[group].part_count; i++) {
        const struct predict_part *part = &view->groups[group].parts[i];
        for (size_t t = 0; t < view->term_count; t++)
            count += !(part->dropped && part->dropped[t]);
        count += i > 0;
    }
    return count;
}

/* Of the groups that have rows here; -1 when out of memory. */
static double count_all_estimates(const struct settings *settings, const struct fitted_model *model,
                                  const struct residuals *residuals) {
    const struct predict_model *view = fitted_model_view(model);
    cleanup_free bool *seen = calloc(view->group_count + 1, sizeof *seen);
    if (!seen)
        return -1;
    double count = 0;
    for (size_t k = 0; k < residuals->count; k++) {
        size_t group = fitted_model_group(model, settings->kept->groups[residuals->rows[k]]);
        if (group == SIZE_MAX || seen[group])
            continue;
        seen[group] = true;
        count += count_estimates(view, group);
    }
    return count;
}

static void judge(struct lack_of_fit *ret, double estimates) {
    ret->pure_freedom = (double)(ret->rows - ret->settings);
    ret->freedom = (double)ret->settings - estimates;
    ret->pure_error = ret->ratio = ret->log_p = NAN;
    if (ret->pure_freedom > 0)
        ret->pure_error = sqrt(ret->pure_squares / ret->pure_freedom);
    if (!(ret->pure_error > 0) || !(ret->freedom > 0))
        return;
    ret->ratio = ret->squares / ret->freedom / (ret->pure_squares / ret->pure_freedom);
    ret->log_p = f_upper_logarithm(ret->ratio, ret->freedom, ret->pure_freedom);
}

/* ---- */

static bool is_told(const struct fitting *fitting, const struct fitted_model *model,
                    const struct residuals *residuals) {
    const char *kind = fitted_model_view(model)->kind;
    return (strcmp(kind, "linear") == 0 || strcmp(kind, "piecewise") == 0) && residuals->stride == 1 &&
           !fitting_options(fitting)->weights;
}

int lack_of_fit_init(struct lack_of_fit *ret, const struct fitting *fitting, const struct fitted_model *model,
                     const struct residuals *residuals, struct failure *failure) {
    *ret = (struct lack_of_fit){.pure_error = NAN, .ratio = NAN, .log_p = NAN};
    if (!is_told(fitting, model, residuals))
        return 0;
    const struct kept_rows *kept = fitting_kept_rows(fitting);
    const struct fit_needs *needs = fitting_needs(fitting);
    size_t by_count = fitting_options(fitting)->by_count;
    cleanup_free const double **columns = xcalloc(needs->column_count + 1, sizeof *columns);
    struct settings settings = {.kept = kept,
                                .rows = residuals->rows,
                                .columns = columns,
                                .labels = kept->labels + by_count,
                                .label_count = needs->category_count};
    for (size_t i = 0; i < needs->column_count; i++)
        if (strcmp(needs->columns[i], fitting_options(fitting)->response) != 0)
            columns[settings.column_count++] = kept->columns[i];
    double estimates = count_all_estimates(&settings, model, residuals);
    if (estimates < 0 || add_settings(ret, &settings, residuals) < 0)
        return failure_memory(failure);
    judge(ret, estimates);
    return 0;
}
