/* Fits of tables that a test makes, by the plugins of this build: what is here is defined, so that one test
 * program includes it once. */
#ifndef ASSAY_TESTS_UNIT_FIT_FITTED_H
#define ASSAY_TESTS_UNIT_FIT_FITTED_H

#include "engine/fit/fit.h"
#include "engine/foundation/cleanup.h"
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
static struct failure fitted_failure;
static struct fit *fitted; /* the last one; NULL: it was refused, see the failure */

static inline int fitted_set_up(void **state) {
    (void)state;
    return installation_init(&installation, test_build(), NULL, &fitted_failure);
}

static inline int fitted_tear_down(void **state) {
    (void)state;
    fit_free(fitted);
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

/* The fit of the rows of PATH, or NULL with `fitted_failure`. */
static inline struct fit *fitted_file(const char *path, const struct table_of *of) {
    struct library *library = NULL;
    cleanup(table_cleanup) struct table *table = NULL;
    struct fit_options options = {.response = of->names[0],
                                  .settings = of->settings,
                                  .by = &of->by,
                                  .by_count = of->by != NULL,
                                  .weights = of->weights,
                                  .folds = of->folds,
                                  .seed = of->seed};
    while (of->settings[options.setting_count])
        options.setting_count++;
    fit_free(fitted);
    fitted = NULL;
    fitted_failure = (struct failure){0};
    int r = library_open(&installation, "fit", of->method, &library, &fitted_failure);
    r = r < 0 ? r : table_open(&path, 1, NULL, &table, &fitted_failure);
    for (size_t c = 0; r == 0 && of->names[c]; c++)
        for (size_t i = 0; of->units[c] && i < table->column_count; i++)
            if (strcmp(table->columns[i].name, of->names[c]) == 0)
                table->columns[i].unit = xstrdup(of->units[c]);
    r = r < 0 ? r : fit_run(library, table, &options, &fitted, &fitted_failure);
    library_close(library);
    return fitted;
}

static inline struct fit *fitted_table(const struct table_of *of) {
    const char *path = test_path("table.csv");
    fitted_write(of, path);
    return fitted_file(path, of);
}

/* Its first group. */
static inline const struct model_group *fitted_group(const struct table_of *of) {
    if (!fitted_table(of))
        fail_msg("%s: %s", of->method, fitted_failure.text);
    if (fitted->model->group_count == 0)
        fail_msg("%s: skipped: %s", of->method, fitted->model->skipped[0].reason);
    return &fitted->model->groups[0];
}

/* Why it was refused, or why its first group was skipped. */
static inline const char *fitted_refusal(const struct table_of *of) {
    if (!fitted_table(of))
        return fitted_failure.text;
    return fitted->model->skipped_count ? fitted->model->skipped[0].reason : "it was fitted";
}

static inline double part_value(const struct model_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    return NAN;
}

static inline bool group_notes(const struct model_group *group, const char *text) {
    for (size_t i = 0; i < group->note_count; i++)
        if (strstr(group->notes[i], text))
            return true;
    return false;
}

#endif
