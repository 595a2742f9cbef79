/* Fits of tables that a test makes, by the plugins of this build: what is here is defined, so that one test
 * program includes it once. */
#ifndef ASSAY_TESTS_UNIT_FIT_FITTED_H
#define ASSAY_TESTS_UNIT_FIT_FITTED_H

#include "engine/fit/fit.h"
#include "engine/foundation/memory.h"
#include "engine/model/model.h"
#include "tests/test.h"

#include <unistd.h>

enum { FITTED_COLUMNS_MAX = 16, FITTED_SETTINGS_MAX = 8 };

/* A table with numbers, NaN where they are missing, and one column of texts. */
struct table_of {
    const char *method;
    const char *names[FITTED_COLUMNS_MAX]; /* ended by NULL; the first is the response */
    const char *units[FITTED_COLUMNS_MAX]; /* or NULL */
    const double *columns[FITTED_COLUMNS_MAX];
    size_t rows;
    const char *text_name; /* or NULL */
    const char *const *texts;
    const char *settings[FITTED_SETTINGS_MAX]; /* ended by NULL */
    const char *by, *weights;
    size_t folds;
    uint64_t seed;
};

static struct installation installation;
static struct fit *fit; /* the last one; NULL: it was refused */
static struct failure refusal;

static inline int fitted_set_up(void **state) {
    (void)state;
    return installation_init(&installation, test_build(), NULL, &test_failure);
}

static inline int fitted_tear_down(void **state) {
    (void)state;
    fit_free(fit);
    installation_clear(&installation);
    return 0;
}

static inline void fitted_write(const struct table_of *of, const char *path) {
    FILE *file = fopen(path, "w");
    assert_non_null(file);
    for (size_t c = 0; of->names[c]; c++)
        fprintf(file, "%s%s", c ? "," : "", of->names[c]);
    fprintf(file, of->text_name ? ",%s\n" : "\n", of->text_name);
    for (size_t i = 0; i < of->rows; i++) {
        for (size_t c = 0; of->names[c]; c++)
            fprintf(file, isnan(of->columns[c][i]) ? "%s" : "%s%.17g", c ? "," : "", of->columns[c][i]);
        fprintf(file, of->text_name ? ",%s\n" : "\n", of->text_name ? of->texts[i] : "");
    }
    fclose(file);
}

/* Fits the rows of PATH by METHOD; the columns of UNITS, if not NULL, are in its units: 0, or less with
 * `refusal`. */
static inline int fit_file(const char *method, const char *path, struct fit_options options,
                           const struct table_of *units) {
    struct library *library = NULL;
    cleanup(table_cleanup) struct table *table = NULL;
    while (options.settings[options.setting_count])
        options.setting_count++;
    fit_free(fit);
    fit = NULL;
    refusal = (struct failure){0};
    int r = library_open(&installation, "fit", method, &library, &refusal);
    r = r < 0 ? r : table_open(&path, 1, NULL, &table, &refusal);
    for (size_t c = 0; r == 0 && units && units->names[c]; c++)
        for (size_t i = 0; units->units[c] && i < table->column_count; i++)
            if (strcmp(table->columns[i].name, units->names[c]) == 0)
                table->columns[i].unit = xstrdup(units->units[c]);
    r = r < 0 ? r : fit_run(library, table, &options, &fit, &refusal);
    library_close(library);
    return r;
}

/* The fit of the rows of PATH, or NULL with `refusal`. */
static inline struct fit *fitted_file(const char *path, const struct table_of *of) {
    struct fit_options options = {.response = of->names[0],
                                  .settings = of->settings,
                                  .by = &of->by,
                                  .by_count = of->by != NULL,
                                  .weights = of->weights,
                                  .folds = of->folds,
                                  .seed = of->seed};
    (void)fit_file(of->method, path, options, of);
    return fit;
}

static inline struct fit *fitted_table(const struct table_of *of) {
    const char *path = test_path("table.csv");
    fitted_write(of, path);
    return fitted_file(path, of);
}

/* The first group of the last fit. */
static inline const struct model_group *fitted(void) {
    if (!fit)
        fail_msg("%s", refusal.text);
    if (fit->model->group_count == 0)
        fail_msg("skipped: %s", fit->model->skipped[0].reason);
    return &fit->model->groups[0];
}

static inline const struct model_group *fitted_group(const struct table_of *of) {
    (void)fitted_table(of);
    return fitted();
}

/* Why it was refused, or why its first group was skipped. */
static inline const char *fitted_refusal(const struct table_of *of) {
    if (!fitted_table(of))
        return refusal.text;
    return fit->model->skipped_count ? fit->model->skipped[0].reason : "it was fitted";
}

static inline double value_of(const struct model_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    return NAN;
}

/* Whether a note of GROUP has these words. */
static inline bool is_noted(const struct model_group *group, const char *words) {
    for (size_t i = 0; i < group->note_count; i++)
        if (strstr(group->notes[i], words))
            return true;
    return false;
}

#endif
