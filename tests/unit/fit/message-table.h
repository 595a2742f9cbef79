/* Tables of messages in memory, and what a method of this build makes of them: for the tests of fit-piecewise
 * and fit-smpi. */
#ifndef ASSAY_TESTS_MESSAGE_TABLE_H
#define ASSAY_TESTS_MESSAGE_TABLE_H

#include "engine/fit/fit.h"
#include "engine/foundation/text.h"
#include "engine/model/model.h"
#include "tests/test.h"

#include <unistd.h>

enum { MESSAGE_SETTINGS_MAX = 12 };

static struct installation installation;
static struct text table_text;
static struct fit *fit;
static struct failure refusal;
static const char *settings[MESSAGE_SETTINGS_MAX + 1]; /* "NAME=VALUE", up to NULL */

static inline int open_messages(void **state) {
    (void)state;
    text_init(&table_text, 64 << 20);
    return installation_init(&installation, test_build(), NULL, &test_failure);
}

static inline int close_messages(void **state) {
    (void)state;
    fit_free(fit);
    text_clear(&table_text);
    installation_clear(&installation);
    return 0;
}

/* Fits the file PATH, or where that is NULL what is in table_text, by METHOD and `settings`: 0, or less with
 * `refusal`. */
static inline int try_fit(const char *method, const char *path, struct fit_options options) {
    struct library *library = NULL;
    struct table *table = NULL;
    path = path ? path : test_put("table.csv", table_text.bytes);
    options.settings = settings;
    while (options.setting_count < MESSAGE_SETTINGS_MAX && settings[options.setting_count])
        options.setting_count++;
    options.response = options.response ? options.response : "duration";
    fit_free(fit);
    fit = NULL;
    refusal = (struct failure){0};
    int r = library_open(&installation, "fit", method, &library, &refusal);
    r = r < 0 ? r : table_open(&path, 1, NULL, &table, &refusal);
    r = r < 0 ? r : fit_run(library, table, &options, &fit, &refusal);
    table_free(table);
    library_close(library);
    return r;
}

/* The only group, or the first. */
static inline const struct model_group *fitted(void) {
    if (!fit)
        fail_msg("%s", refusal.text);
    if (fit->model->group_count == 0)
        fail_msg("skipped: %s", fit->model->skipped[0].reason);
    return &fit->model->groups[0];
}

static inline void assert_skipped(const char *reason) {
    assert_non_null(fit);
    assert_int_equal(fit->model->skipped_count, 1);
    assert_says(fit->model->skipped[0].reason, reason);
}

static inline double value_of(const struct model_part *part, const char *name) {
    for (size_t i = 0; i < part->value_count; i++)
        if (strcmp(part->values[i].name, name) == 0)
            return part->values[i].value;
    return NAN;
}

static inline double line_at(const struct model_part *part, double x) {
    return part->estimates[0].estimate + part->estimates[1].estimate * x;
}

/* Whether a note of GROUP has these words. */
static inline bool is_noted(const struct model_group *group, const char *words) {
    for (size_t i = 0; i < group->note_count; i++)
        if (strstr(group->notes[i], words))
            return true;
    return false;
}

static inline void assert_noted(const char *words) {
    if (is_noted(fitted(), words))
        return;
    for (size_t i = 0; i < fitted()->note_count; i++)
        print_error("note: %s\n", fitted()->notes[i]);
    fail_msg("no note has '%s'", words);
}

#endif
